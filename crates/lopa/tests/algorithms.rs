//! What every line of the registry of algorithms promises, in both precisions.
//!
//! The parameters are those of `experiments/quadratic.toml`; a new algorithm is added there.

mod common;

use common::bench::*;
use common::recorder::{Call, Log, Recorder, take};
use lopa::algorithms::algorithms;
use lopa::config::Source;
use lopa::engine::Simulation;
use lopa::error::Kind;
use lopa::experiment::Experiment;
use lopa::network::Mixing;
use lopa::oracle::{Batches, Counts, Oracle, SIGMA1, SIGMA2, XI1, XI2, XI3};
use lopa::problem::At;
use lopa::real::Real;
use toml::Table;

const FILE: &str = include_str!("../../../experiments/quadratic.toml");

/// Noise and minibatches for the file's problem, on a graph without symmetries.
const NOISY: [&str; 4] =
    ["problem.noise=0.5", "problem.samples=30", "run.batch=4", "network.graph=path"];

/// The file's algorithms, and other choices that they have.
fn variants() -> Vec<(String, Vec<String>)> {
    let registered: Vec<_> = algorithms::<f64>().iter().map(|entry| entry.name).collect();
    let plain = registered.iter().map(|name| (name.to_string(), Vec::new()));
    let more = [
        ("lopa-gt", "start=zero"),
        ("spdb", "consensus=gt"),
        ("spdb", "inverse=neumann"),
        ("spdb", "inner_steps=3"),
        ("ma-dsbo", "warm=false"),
    ];
    let changed = more.iter().map(|(name, set)| (name.to_string(), vec![set.to_string()]));
    plain.chain(changed).collect()
}

/// One algorithm of the file, with overrides of the file and of its own parameters.
fn bench(name: &str, own: &[String], sets: &[&str]) -> Bench {
    let own = own.iter().map(|set| format!("algorithm.{name}.{set}"));
    let sets = sets.iter().map(|set| set.to_string()).chain(own).collect();
    let source = Source { name: "quadratic.toml".into(), text: FILE.into(), sets };
    let mut experiment = Experiment::read(&source).unwrap();
    experiment.algorithms.retain(|algorithm| algorithm.choice.name == name);
    assert_eq!(experiment.algorithms.len(), 1, "{name} stands once in quadratic.toml");
    Bench::of(experiment)
}

/// Calls a test with every variant of every algorithm.
fn each(sets: &[&str], test: impl Fn(&str, &Bench)) {
    for (name, own) in variants() {
        test(&format!("{name} {}", own.join(" ")), &bench(&name, &own, sets));
    }
}

#[test]
fn unknown_keys_are_named() {
    for entry in algorithms::<f64>() {
        let sets = vec![format!("algorithm.{}.momentun=0.9", entry.name)];
        let source = Source { name: "quadratic.toml".into(), text: FILE.into(), sets };
        let error = Experiment::read(&source).unwrap_err();
        assert_eq!((error.kind, error.id), (Kind::Config, "config/unknown-key"));
        assert!(error.message.contains("`momentun`"), "{error}");
    }
}

fn messages_keep_their_length<T: Real>() {
    each(&NOISY, |name, bench| {
        let mut simulation = bench.start::<T>();
        let exchanges = simulation.nodes()[0].algorithm.exchanges();
        let mut lengths = vec![None; exchanges];
        for _ in 0..10 {
            for (e, length) in lengths.iter_mut().enumerate() {
                for node in simulation.nodes() {
                    let mut message = vec![T::one(); 3];
                    node.algorithm.share(e, &mut message);
                    assert_eq!(*length.get_or_insert(message.len()), message.len(), "{name}");
                    assert_eq!(message[..3], [T::one(); 3], "{name}: share appends");
                }
            }
            simulation.iterate();
        }
    });
}

#[test]
fn messages_of_all_nodes_have_one_length_for_ever() {
    messages_keep_their_length::<f32>();
    messages_keep_their_length::<f64>();
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
            // The problem stays that of the first seed: only samples are drawn anew.
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

/// What a node asks for at the start and in every iteration; products of a random series aside.
fn costs(name: &str, params: &Table) -> (Counts, Counts, &'static [&'static str]) {
    let whole = |key: &str| params.get(key).map_or(0, |value| value.as_integer().unwrap()) as u64;
    let word = |key: &str| params.get(key).map_or("", |value| value.as_str().unwrap());
    let (inner, q) = (whole("inner_steps"), whole("hv_steps"));
    let counts = |grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f| Counts {
        grad_theta_g,
        hess_g,
        cross_g,
        grad_theta_f,
        grad_x_f,
        ..Counts::default()
    };
    let series = if word("inverse") == "shia" { q.saturating_sub(1) } else { 0 };
    let (none, hyper) = (Counts::default(), counts(0, series, 1, 1, 1));
    match name {
        "lopa-gt" => (counts(1, 1, 1, 1, 1), counts(1, 1, 1, 1, 1), &["x", "y"]),
        "lopa-lg" => (counts(1, 1, 1, 1, 1), counts(1, 1, 1, 1, 1), &["x"]),
        "local" => (counts(1, 1, 1, 1, 1), counts(1, 1, 1, 1, 1), &[]),
        "spdb" if word("consensus") == "gt" => (hyper, counts(inner, series, 1, 1, 1), &["x", "y"]),
        "spdb" => (none, counts(inner, series, 1, 1, 1), &["x"]),
        "ma-dsbo" => (none, counts(inner, q, 1, q, 1), &["x"]),
        "dgd" => (none, counts(1, 0, 0, 0, 0), &["theta"]),
        other => panic!("{other}: add its line of the table of costs"),
    }
}

fn total(c: &Counts) -> u64 {
    let Counts { grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, .. } = *c;
    grad_theta_g + hess_g + cross_g + grad_theta_f + grad_x_f + grad_x_g
}

#[test]
fn costs_are_those_of_the_table() {
    let iterations = 40;
    each(&NOISY, |name, bench| {
        let choice = bench.choice();
        let (start, each, shared) = costs(&choice.name, &choice.params);
        let neumann = choice.params.get("inverse").is_some_and(|i| i.as_str() == Some("neumann"));
        let simulation = bench.run::<f64>(iterations);
        let mut products = 0;
        for node in simulation.nodes() {
            let mut want = start;
            (0..iterations).for_each(|_| want += each);
            let got = node.oracle.counts();
            if neumann {
                want.hess_g = got.hess_g;
                products += got.hess_g;
            }
            want.samples = 4 * total(&want);
            assert_eq!(got, want, "{name}");
        }
        if neumann {
            // (Q − 1)/2 on average, with Q = 30: 14.5, give or take four standard deviations.
            let average = products as f64 / (8 * iterations) as f64;
            assert!((12.5..16.5).contains(&average), "{name}: {average}");
        }
        let length = |name: &&str| variable(&simulation.nodes()[0], name).len() as u64;
        let message: u64 = shared.iter().map(length).sum();
        let degrees = 2 * 7; // of a path of eight
        assert_eq!(simulation.exchanges(), iterations as u64, "{name}");
        assert_eq!(simulation.floats(), iterations as u64 * degrees * message, "{name}");
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
            bench.choice().params.get("inverse").is_some_and(|i| i.as_str() != Some("shia"));
        if bench.choice().name != "dgd" && !random && !name.contains("warm=false") {
            let grad = lopa::exact::solve(part.as_mut(), &x, &[0.0; 6]).grad;
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

#[test]
fn the_file_does_what_its_comment_says() {
    for entry in algorithms::<f64>() {
        let bench = bench(entry.name, &[], &[]);
        let iterations = bench.experiment.run.iterations.unwrap() as usize;
        let simulation = bench.run::<f64>(iterations);
        let x = rows(&simulation, "x");
        let centre = mean(&x);
        let grads: Vec<_> = bench
            .parts::<f64>()
            .iter_mut()
            .map(|part| lopa::exact::solve(part.as_mut(), &centre, &[0.0; 6]).grad)
            .collect();
        let (grad_sq, apart) = (norm(&mean(&grads)).powi(2), spread(&x));
        let said = match entry.name {
            "lopa-gt" => grad_sq < 1e-20 && apart < 1e-20,
            "spdb" => (1e-20..1e-16).contains(&grad_sq) && apart < 1e-20,
            "lopa-lg" | "ma-dsbo" => (0.05..0.2).contains(&grad_sq) && apart > 0.05,
            "local" => (5.0..20.0).contains(&apart),
            "dgd" => (40.0..60.0).contains(&grad_sq) && apart == 0.0,
            other => panic!("{other}: say in the file's comment what to expect of it"),
        };
        assert!(said, "{}: |∇Φ|² = {grad_sq:e}, consensus {apart:e}", entry.name);
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
    let (part, log) = Recorder::new(bench.parts().remove(0));
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

#[test]
fn shared_samples_are_one_batch_for_all() {
    let (mut simulation, log) = recorded("batch = 20, shared_samples = true", 0);
    let mut last = Vec::new();
    for _ in 0..10 {
        let calls = take(&log);
        let first = batch(&calls, FIVE[0]);
        assert!(FIVE.iter().all(|name| batch(&calls, name) == first), "{calls:?}");
        assert_ne!(first, last, "the next iteration draws anew");
        last = first.to_vec();
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
    let bench = bench("lopa-gt", &[], &NOISY);
    let (part, log) = Recorder::new(bench.parts::<f32>().remove(2));
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
        oracle.grad_theta_g(at, XI1.turn(1), &mut of_theta);
        take(&log)
    };
    let (first, second) = (ask(7), ask(8));
    assert_ne!(first, second);
    assert_eq!(first, ask(7), "the same address is the same minibatch");
    assert_ne!(first[4], first[5], "turns of a loop draw anew");
}
