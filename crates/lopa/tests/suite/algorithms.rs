//! The promises of every entry of the registry of algorithms, in both precisions.
//!
//! The parameters are those of `experiments/quadratic.toml` and, for the global scope, of
//! `experiments/quadratic-global.toml`; algorithms that are not there have their typical ones.

use crate::common::bench::*;
use crate::common::recorder::{Call, Log, recorder, take};
use lopa::algorithms::algorithms;
use lopa::config::Source;
use lopa::engine::Simulation;
use lopa::error::Kind;
use lopa::experiment::{Experiment, Registries};
use lopa::math::real::Real;
use lopa::network::Mixing;
use lopa::problem::At;
use lopa::problem::builtin::quadratic;
use lopa::problem::derivative::{Batches, Counts};
use lopa::problem::oracle::{Oracle, SIGMA1, SIGMA2, XI1, XI2, XI3};
use lopa::problem::scope::Scope;

/// The file of a scope.
fn text(scope: Scope) -> &'static str {
    match scope {
        Scope::Personal => include_str!("../../../../experiments/quadratic.toml"),
        Scope::Global => include_str!("../../../../experiments/quadratic-global.toml"),
    }
}

fn in_file(text: &str, name: &str) -> bool {
    text.contains(&format!("[[algorithm]]\nname = \"{name}\"\n"))
}

/// The file of a scope; an algorithm that it does not have is added with its typical parameters.
fn file(scope: Scope, name: &str) -> String {
    let text = text(scope);
    if in_file(text, name) {
        return text.into();
    }
    let typical = algorithms().typical(name).unwrap().expect("typical parameters");
    let lines = typical.to_table().into_iter().map(|(key, value)| format!("{key} = {value}\n"));
    format!("{text}\n[[algorithm]]\n{}", lines.collect::<String>())
}

/// Noise and minibatches for the file's problem, on a graph without symmetries.
const NOISY: [&str; 4] =
    ["problem.noise=0.5", "problem.samples=30", "run.batch=4", "network.graph=path"];

/// The files' algorithms, and other choices that they have.
fn variants() -> Vec<(Scope, String, &'static [&'static str])> {
    let registry = algorithms();
    let plain = registry.iter().flat_map(|entry| {
        entry.facts.scopes.iter().map(|&scope| (scope, entry.name.clone(), &[][..]))
    });
    let more: [(&[Scope], &str, &[&str]); 22] = [
        (Scope::BOTH, "sparkle", &["upper=extra", "lower=extra"]),
        (Scope::BOTH, "sparkle", &["upper=gt", "lower=gt"]),
        (&[Scope::Global], "sparkle", &["lower=gt"]),
        (Scope::BOTH, "sparkle", &["upper=atc", "lower=atc"]),
        (&[Scope::Global], "sparkle", &["upper=gt", "lower=atc"]),
        (&[Scope::Global], "c2dfb", &["inner_steps=2", "tau=0.8", "tau_inner=0.4"]),
        (&[Scope::Global], "sparkle", &["upper=extra"]),
        (Scope::BOTH, "c2dfb", &["penalty=40.0", "inner_steps=2", "tau=0.5"]),
        (Scope::BOTH, "lopa-gt", &["start=zero"]),
        (&[Scope::Personal], "spdb", &["consensus=gt"]),
        (&[Scope::Personal], "spdb", &["inverse=neumann"]),
        (&[Scope::Personal], "spdb", &["inner_steps=3"]),
        (&[Scope::Personal], "ma-dsbo", &["warm=false"]),
        (&[Scope::Global], "ma-dsbo", &["inner_steps=1", "hv_steps=1"]),
        (&[Scope::Global], "slam", &["inverse=neumann"]),
        (Scope::BOTH, "mdbo", &["inverse=neumann"]),
        (Scope::BOTH, "gossip-dsbo-mf", &["inverse=neumann"]),
        (Scope::BOTH, "d-soba", &["order=first", "delta=0.1"]),
        (Scope::BOTH, "sldbo", &["radius=0.5"]),
        (Scope::BOTH, "zhang", &["order=alternating"]),
        (&[Scope::Personal], "prometheus", &["period=0"]),
        (&[Scope::Personal], "prometheus", &["l1=0.1", "low=-0.5", "high=0.5", "tau=2.0"]),
    ];
    let changed = more.into_iter().flat_map(|(scopes, name, own)| {
        scopes.iter().map(move |&scope| (scope, name.to_string(), own))
    });
    plain.chain(changed).collect()
}

/// One algorithm of a file, with overrides of the file and of its own parameters.
fn bench(scope: Scope, name: &str, own: &[&str], sets: &[&str]) -> Bench {
    let own = own.iter().map(|set| format!("algorithm.{name}.{set}"));
    let sets = sets.iter().map(|set| set.to_string()).chain(own).collect();
    let source = Source { sets, ..Source::new("file.toml", file(scope, name)) };
    let mut experiment = Experiment::read(&source, &Registries::default()).unwrap();
    experiment.algorithms.retain(|algorithm| algorithm.choice.name == name);
    assert_eq!(experiment.algorithms.len(), 1, "{name} stands once in the file of its scope");
    Bench::of(experiment)
}

/// Calls a test with every variant of every algorithm.
fn each(sets: &[&str], test: impl Fn(&str, &Bench)) {
    for (scope, name, own) in variants() {
        let label = format!("{name} {} ({})", own.join(" "), scope.name());
        test(&label, &bench(scope, &name, own, sets));
    }
}

#[test]
fn unknown_keys_are_named() {
    for entry in algorithms().iter() {
        let sets = vec![format!("algorithm.{}.momentun=0.9", entry.name)];
        let text = file(entry.facts.scopes[0], &entry.name);
        let source = Source { sets, ..Source::new("file.toml", text) };
        let error = Experiment::read(&source, &Registries::default()).unwrap_err();
        assert_eq!((error.kind, error.id), (Kind::Config, "config/unknown-key"));
        assert!(error.message.contains("`momentun`"), "{error}");
    }
}

/// Every variant, through the library's own conformance tests.
#[test]
fn every_variant_conforms() {
    let registries = Registries::default();
    each(&[], |_, bench| {
        let (choice, scope) = (bench.choice(), bench.experiment.scope);
        let params = toml::to_string(choice.params()).unwrap();
        lopa::conformance::variant(&registries, &choice.name, &params, &[scope])
            .unwrap_or_else(|error| panic!("{error}\n{params}"));
    });
}

fn variables_are_named_and_finite<T: Real>() {
    each(&NOISY, |name, bench| {
        let mut simulation = bench.start::<T>();
        for _ in 0..200 {
            simulation.iterate();
        }
        for node in simulation.nodes() {
            let variables = node.algorithm.variables();
            let mut names: Vec<_> = variables.iter().map(|(name, _)| *name).collect();
            assert!(names.contains(&"x") && names.contains(&"theta"), "{name}: {names:?}");
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), variables.len(), "{name}: a name stands twice");
            for (variable, values) in &variables {
                assert!(values.iter().all(|v| v.is_finite()), "{name}: {variable} is not finite");
            }
            let at = node.algorithm.at();
            assert_eq!((at.x, at.theta), (variable(node, "x"), variable(node, "theta")), "{name}");
        }
        let moved = rows(&simulation, "theta").concat();
        assert!(largest(&moved) > 0.1, "{name} does nothing");
    });
}

#[test]
fn variables_have_their_own_names_and_stay_numbers() {
    variables_are_named_and_finite::<f32>();
    variables_are_named_and_finite::<f64>();
}

fn seeds_decide<T: Real>() {
    each(&NOISY, |name, bench| {
        let run = |seed: u64| {
            let mut oracle_seed = bench.experiment.clone();
            oracle_seed.run.seeds = vec![seed];
            // The problem stays that of the first seed: only samples are drawn again.
            let other = Bench::of(oracle_seed);
            let node = |(i, part)| other.node(i, part);
            let nodes = bench.parts::<T>().into_iter().enumerate().map(node).collect();
            let mut simulation = Simulation::new(nodes, &bench.world.mixing, None);
            (0..20).for_each(|_| simulation.iterate());
            bits(&simulation)
        };
        assert_eq!(run(1), run(1), "{name}");
        assert_ne!(run(1), run(2), "{name}");
    });
}

#[test]
fn a_seed_decides_everything() {
    seeds_decide::<f32>();
    seeds_decide::<f64>();
}

fn threads_do_not_matter<T: Real>() {
    let pools = [1, 2, 3, 8]
        .map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    each(&NOISY, |name, bench| {
        let alone = bits(&bench.run::<T>(30));
        for pool in &pools {
            let nodes = bench.nodes::<T>();
            let mut simulation = Simulation::new(nodes, &bench.world.mixing, Some(pool));
            (0..30).for_each(|_| simulation.iterate());
            assert!(bits(&simulation) == alone, "{name} on {} threads", pool.current_num_threads());
        }
    });
}

#[test]
fn every_number_of_threads_gives_the_same_bits() {
    threads_do_not_matter::<f32>();
    threads_do_not_matter::<f64>();
}

/// Runs the nodes in the order that `order` lists them, on the network renumbered likewise. Each
/// keeps the samples that it draws.
fn renumbered(bench: &Bench, order: &[usize]) -> Simulation<'static, f64> {
    let mut parts: Vec<_> = bench.parts().into_iter().map(Some).collect();
    let node = |&i: &usize| bench.node(i, parts[i].take().unwrap());
    let nodes = order.iter().map(node).collect();
    let w = dense(&bench.world.mixing);
    let row = |&i: &usize| order.iter().map(|&j| w[i][j]).collect();
    let mixing = Mixing::from_matrix(order.iter().map(row).collect()).unwrap();
    let mut simulation = Simulation::new(nodes, &mixing, None);
    (0..50).for_each(|_| simulation.iterate());
    simulation
}

#[test]
fn renumbered_nodes_have_renumbered_results() {
    let (straight, mixed) = ([0, 1, 2, 3, 4, 5, 6, 7], [3, 0, 6, 1, 7, 2, 5, 4]);
    each(&NOISY, |name, bench| {
        let (one, other) = (renumbered(bench, &straight), renumbered(bench, &mixed));
        for (variable, _) in one.nodes()[0].algorithm.variables() {
            let (one, other) = (rows(&one, variable), rows(&other, variable));
            let size = largest(&one.concat()).max(1.0);
            for (i, &was) in mixed.iter().enumerate() {
                let off = largest(&minus(&other[i], &one[was]));
                assert!(off <= 1e-12 * size, "{name}: {variable} of node {was} is off by {off:e}");
            }
        }
    });
}

#[test]
fn dgd_trains_x_too_where_the_problem_says_so() {
    let setup = "problem = { name = 'representation', hidden = [3] }
        data = { name = 'blobs', rows = 60, features = 4 }
        network = { nodes = 3, graph = 'path' }
        run = { iterations = 1, batch = 5 }";
    let bench = Bench::new(setup, "name = 'dgd', alpha = 0.1");
    let simulation = bench.run::<f64>(10);
    for node in simulation.nodes() {
        let Counts { grad_theta_g, grad_x_g, samples, .. } = node.oracle.counts();
        assert_eq!((grad_theta_g, grad_x_g, samples), (10, 10, 100));
    }
    let (n, p) = (rows(&simulation, "x")[0].len(), rows(&simulation, "theta")[0].len());
    assert_eq!(simulation.floats(), 10 * 4 * (n + p) as u64);
    assert!(distance(&rows(&simulation, "x")[0], &rows(&bench.start::<f64>(), "x")[0]) > 1e-3);
}

fn one_node_works<T: Real>() {
    let sets = ["network.nodes=1", "network.graph=complete"];
    each(&sets, |name, bench| {
        let simulation = bench.run::<T>(500);
        assert_eq!(simulation.floats(), 0, "{name}");
        let x = rows(&simulation, "x").remove(0);
        let mut part = bench.parts::<f64>().remove(0);
        let random =
            bench.choice().params().get("inverse").is_some_and(|i| i.as_str() != Some("shia"));
        let second_order = bench.choice().build.facts.second_order;
        // The files have step sizes that reach it; typical ones may be smaller.
        let in_file = in_file(text(bench.experiment.scope), &bench.choice().name);
        let held_back = ["warm=false", "hv_steps=1", "radius", "l1"];
        let reaches = !held_back.iter().any(|held| name.contains(held));
        if in_file && second_order && !random && reaches {
            let grad = lopa::run::evaluate::exact::solve(part.as_mut(), &x, &[0.0; 6]).grad;
            assert!(norm(&grad) < 1.0, "{name}: |∇Φ| = {}", norm(&grad));
        }
        assert!(x.iter().all(|x| x.is_finite()), "{name}");
    });
}

#[test]
fn one_node_alone_works() {
    one_node_works::<f32>();
    one_node_works::<f64>();
}

/// |∇Φ(x̄)|² and the consensus error at the end of a run of one of the files.
fn ends(scope: Scope, name: &str) -> (f64, f64) {
    let bench = bench(scope, name, &[], &[]);
    let iterations = bench.experiment.run.iterations.unwrap() as usize;
    let x = rows(&bench.run::<f64>(iterations), "x");
    let options = bench.experiment.problem.typed().unwrap();
    let nodes = quadratic::coefficients(&options, 8, bench.seed()).unwrap();
    let nodes = match scope {
        Scope::Personal => nodes,
        Scope::Global => vec![quadratic::Coefficients::mean(&nodes).unwrap()],
    };
    let centre = mean(&x);
    let grads: Vec<_> = nodes.iter().map(|node| node.grad_phi(&centre)).collect();
    (norm(&mean(&grads)).powi(2), spread(&x))
}

#[test]
fn the_files_do_what_their_comments_say() {
    let registry = algorithms();
    for name in registry.names() {
        let scopes = registry.find(name).unwrap().facts.scopes.iter();
        for &scope in scopes.filter(|&&scope| in_file(text(scope), name)) {
            let (grad_sq, apart) = ends(scope, name);
            let said = match (scope, name) {
                (_, "dgd" | "gt-sgd" | "extra" | "exact-diffusion") => {
                    (30.0..60.0).contains(&grad_sq) && apart == 0.0
                }
                (_, "lopa-gt" | "sldbo" | "zhang") => grad_sq < 1e-20 && apart < 1e-20,
                (Scope::Personal, "spdb" | "mdbo" | "vrdbo" | "prometheus" | "interact") => {
                    (1e-20..1e-16).contains(&grad_sq) && apart < 1e-16
                }
                (Scope::Personal, "local") => (5.0..20.0).contains(&apart),
                (Scope::Personal, _) => (0.05..0.2).contains(&grad_sq) && apart > 0.05,
                (Scope::Global, "slam" | "mdbo" | "vrdbo") => {
                    (0.9..1.1).contains(&grad_sq) && apart < 1e-20
                }
                (Scope::Global, _) => (0.1..1.0).contains(&grad_sq) && apart > 0.01,
            };
            let what = format!("{name} ({})", scope.name());
            assert!(said, "{what}: |∇Φ|² = {grad_sq:e}, consensus {apart:e}");
        }
    }
}

// ---- minibatches ----

/// LoPA on one noisy quadratic that writes down its batches.
fn recorded(run: &str, node: usize) -> (Simulation<'static, f64>, Log) {
    let setup = format!(
        "problem = {{ name = 'quadratic', n = 2, p = 2, noise = 1, samples = 1000 }}
         network = {{ nodes = 1, graph = 'complete' }}
         run = {{ iterations = 1, seeds = [5], {run} }}"
    );
    let bench = Bench::new(&setup, "name = 'lopa-gt', alpha = 0.001, beta = 0.1, lambda = 0.1");
    let (part, log) = recorder(bench.parts().remove(0));
    let nodes = vec![bench.node(node, part)];
    (Simulation::new(nodes, &bench.world.mixing, None), log)
}

fn batch<'a>(calls: &'a [Call], name: &str) -> &'a [u32] {
    &calls.iter().find(|(called, _)| *called == name).unwrap_or_else(|| panic!("{name}")).1
}

const FIVE: [&str; 5] = ["grad_theta_g", "hess_g", "cross_g", "grad_theta_f", "grad_x_f"];

// Assumption 5: the five samples are "mutually independent for any iteration k; and also
// independent across all the iterations".
#[test]
fn five_samples_are_drawn_anew_in_every_iteration() {
    let (mut simulation, log) = recorded("batch = 20", 0);
    let mut seen: Vec<Vec<u32>> = Vec::new();
    for _ in 0..20 {
        let calls = take(&log);
        assert_eq!(calls.len(), 5);
        for name in FIVE {
            let batch = batch(&calls, name);
            assert_eq!(batch.len(), 20);
            assert!(batch.iter().all(|&sample| sample < 1000));
            assert!(!seen.iter().any(|other| other == batch), "{name}: a batch came twice");
            seen.push(batch.to_vec());
        }
        simulation.iterate();
    }
    // Uniform: 2000 draws from 1000 samples, in ten bins of 200 on average.
    let mut bins = [0.0f64; 10];
    seen.iter().flatten().for_each(|&sample| bins[sample as usize / 100] += 1.0);
    let chi_square: f64 = bins.iter().map(|n| (n - 200.0).powi(2) / 200.0).sum();
    assert!(chi_square < 33.0, "{bins:?}");
}

// f and g have as many samples each: the same random words would give them the same minibatch.
#[test]
fn shared_samples_are_one_batch_of_g_and_another_of_f() {
    let (mut simulation, log) = recorded("batch = 20, shared_samples = true", 0);
    let mut seen: Vec<Vec<u32>> = Vec::new();
    for _ in 0..10 {
        let calls = take(&log);
        for of in [&FIVE[..3], &FIVE[3..]] {
            let first = batch(&calls, of[0]);
            assert!(of.iter().all(|name| batch(&calls, name) == first), "{calls:?}");
            assert!(!seen.iter().any(|other| other == first), "{}: a batch came twice", of[0]);
            seen.push(first.to_vec());
        }
        simulation.iterate();
    }
}

#[test]
fn each_derivative_has_its_own_batch_size() {
    let sizes = "batch = { grad_g = 3, hess_g = 5, cross_g = 7, grad_theta_f = 11 }";
    let (mut simulation, log) = recorded(sizes, 0);
    simulation.iterate();
    let calls = take(&log);
    let lengths = FIVE.map(|name| batch(&calls, name).len());
    assert_eq!(lengths, [3, 5, 7, 11, 1000]);
    assert_eq!(simulation.counts().samples, 2 * (3 + 5 + 7 + 11 + 1000));
}

#[test]
fn a_full_batch_is_every_sample_once() {
    let (_, log) = recorded("batch = 'full'", 0);
    let all: Vec<u32> = (0..1000).collect();
    let calls = take(&log);
    assert!(FIVE.iter().all(|name| batch(&calls, name) == all));
}

#[test]
fn nodes_draw_independently_and_an_address_is_always_the_same_draw() {
    let calls = |node: usize| {
        let (mut simulation, log) = recorded("batch = 20", node);
        (0..3).for_each(|_| simulation.iterate());
        take(&log)
    };
    let (zero, one) = (calls(0), calls(1));
    assert_eq!(zero, calls(0));
    assert!(zero.iter().zip(&one).all(|((_, a), (_, b))| a != b));
}

#[test]
fn an_oracle_can_go_back_to_an_iteration() {
    let bench = bench(Scope::Personal, "lopa-gt", &[], &NOISY);
    let (part, log) = recorder(bench.parts::<f32>().remove(2));
    let mut oracle = Oracle::new(part, Batches::all(Some(6)), false, 9, 2);
    let (x, theta) = ([0.0; 5], [0.0; 6]);
    let at = At { x: &x, theta: &theta };
    let mut ask = |k: u64| {
        oracle.begin(k);
        let (mut of_x, mut of_theta) = ([0.0; 5], [0.0; 6]);
        oracle.grad_x_f(at, SIGMA2, &mut of_x);
        oracle.grad_theta_f(at, SIGMA1, &mut of_theta);
        oracle.cross_g(at, XI3, &theta, &mut of_x);
        oracle.hess_g(at, XI2, &theta, &mut of_theta);
        oracle.grad_theta_g(at, XI1, &mut of_theta);
        oracle.grad_theta_g(at, XI1.pass(1), &mut of_theta);
        take(&log)
    };
    let (first, second) = (ask(7), ask(8));
    assert_ne!(first, second);
    assert_eq!(first, ask(7), "the same address is the same minibatch");
    assert_ne!(first[4], first[5], "turns of a loop draw anew");
}
