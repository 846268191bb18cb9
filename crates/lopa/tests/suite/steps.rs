//! Step sizes that nobody gives: trajectories of an independent implementation, and invariants.

use lopa::algorithms::parts::steps::number::{ALL, CURVATURE, CUTS, LAG, SQUARE, STEPS};
use lopa::algorithms::{Start, algorithms};
use lopa::config::Source;
use lopa::engine::{Node, Simulation};
use lopa::network::Mixing;
use lopa::problem::derivative::Batches;
use lopa::problem::oracle::Oracle;
use lopa::problem::scope::Scope;
use lopa::problem::{At, Bilevel, Dims};
use serde_json::Value;

use crate::common::bench::{Bench, distance, largest, mean, norm, rows, variable};
use crate::common::golden::{Golden, matrix, vector};

/// The nodes of a golden run at its start, and W.
fn start(golden: &Golden, name: &str) -> Simulation<'static, f64> {
    let (algorithm, scope) = match name.split_at(7) {
        (algorithm, "-personal") => (algorithm, Scope::Personal),
        (algorithm, "-global") => (algorithm, Scope::Global),
        other => panic!("unknown run {other:?}"),
    };
    let text = format!("algorithm = {{ name = '{algorithm}', lazy = false }}");
    let source = Source::new("test", text);
    let section = source.root().unwrap().required("algorithm").unwrap();
    let choice = algorithms().read(section).unwrap();
    let init = &golden.json()["init"];
    let node = |(i, part)| {
        let mut oracle = Oracle::new(part, Batches::all(None), false, 0, i);
        let [x, theta, v] = ["x", "theta", "v"].map(|of| vector(&init[of][i]).into());
        let start = Start { x, theta, v, rows: None, scope, oracle: &mut oracle };
        let algorithm = choice.build.start(start).unwrap();
        Node { algorithm, oracle }
    };
    let nodes = golden.parts().into_iter().enumerate().map(node).collect();
    let w = matrix(&golden.json()["runs"][name]["W"]);
    Simulation::new(nodes, &Mixing::from_matrix(w).unwrap(), None)
}

fn close(got: f64, want: f64, size: f64, what: &str) {
    assert!((got - want).abs() <= 1e-8 * size.max(1e-3), "{what}: {got} is not {want}");
}

/// Every variable and every step of every iteration.
fn compare(file: &str) {
    let golden = Golden::read(file);
    for (name, run) in golden.json()["runs"].as_object().unwrap() {
        let mut simulation = start(&golden, name);
        let states = run["states"].as_array().unwrap();
        for (i, rule) in rows(&simulation, "rule").iter().enumerate() {
            close(rule[CURVATURE], vector(&states[0]["L"])[i], rule[CURVATURE], name);
        }
        for (k, state) in states[1..].iter().enumerate() {
            simulation.iterate();
            let rules = rows(&simulation, "rule");
            let what = |of: &str, i| format!("{file}, {name}, k = {k}: {of} of node {i}");
            for (i, rule) in rules.iter().enumerate() {
                assert_eq!(rule.len(), ALL);
                let of = |key: &str| vector(&state["steps"][key])[i];
                let all =
                    [("alpha", STEPS[0]), ("beta", STEPS[1]), ("beta", STEPS[2]), ("E", SQUARE)];
                for (key, at) in all {
                    close(rule[at], of(key), of(key), &what(key, i));
                }
            }
            for of in ["x", "theta", "v"] {
                let ours = rows(&simulation, of);
                for (i, (ours, want)) in ours.iter().zip(matrix(&state[of])).enumerate() {
                    let size = want.iter().fold(0.0f64, |most, entry| entry.abs().max(most));
                    let pairs = ours.iter().zip(&want);
                    pairs.for_each(|(ours, want)| close(*ours, *want, size, &what(of, i)));
                }
            }
            counts(&simulation, state, k);
        }
    }
}

/// Probes are made in the same iterations: those of the next iteration at the end of this one.
fn counts(simulation: &Simulation<f64>, state: &Value, k: usize) {
    for (i, node) in simulation.nodes().iter().enumerate() {
        let probes = node.oracle.counts().hess_g - (k as u64 + 2);
        let known = vector(&state["steps"]["probes"])[i] as u64;
        assert!((known..=known + 1).contains(&probes), "k = {k}, node {i}: {probes}, {known}");
    }
}

#[test]
fn the_golden_quadratic() {
    compare("steps-quadratic");
}

#[test]
fn the_golden_logistic_regression() {
    compare("steps-logistic");
}

/// f and g of a part times factors; a Hessian that is `seen` times smaller or larger than it is.
struct Scaled {
    part: Box<dyn Bilevel<f64>>,
    f: f64,
    g: f64,
    seen: f64,
}

impl Scaled {
    fn times(factor: f64, out: &mut [f64]) {
        out.iter_mut().for_each(|entry| *entry *= factor);
    }
}

impl Bilevel<f64> for Scaled {
    fn dims(&self) -> Dims {
        self.part.dims()
    }
    fn samples_f(&self) -> usize {
        self.part.samples_f()
    }
    fn samples_g(&self) -> usize {
        self.part.samples_g()
    }
    fn f(&mut self, at: At<f64>, batch: &[u32]) -> f64 {
        self.f * self.part.f(at, batch)
    }
    fn g(&mut self, at: At<f64>, batch: &[u32]) -> f64 {
        self.g * self.part.g(at, batch)
    }
    fn grad_x_f(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
        self.part.grad_x_f(at, batch, out);
        Scaled::times(self.f, out);
    }
    fn grad_theta_f(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
        self.part.grad_theta_f(at, batch, out);
        Scaled::times(self.f, out);
    }
    fn grad_theta_g(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
        self.part.grad_theta_g(at, batch, out);
        Scaled::times(self.g, out);
    }
    fn hess_g(&mut self, at: At<f64>, batch: &[u32], v: &[f64], out: &mut [f64]) {
        self.part.hess_g(at, batch, v, out);
        Scaled::times(self.g * self.seen, out);
    }
    fn cross_g(&mut self, at: At<f64>, batch: &[u32], v: &[f64], out: &mut [f64]) {
        self.part.cross_g(at, batch, v, out);
        Scaled::times(self.g, out);
    }
}

const QUADRATIC: &str = "problem = { name = 'quadratic', n = 4, p = 5, condition = 30 }
    network = { nodes = 6, graph = 'ring' }
    run = { iterations = 1, batch = 'full' }";

const SCHEMES: [&str; 8] =
    ["lopa-gt", "lopa-lg", "d-soba", "sldbo", "sparkle", "zhang", "dgd", "gt-sgd"];

/// A scheme with its steps left out, on parts that are scaled.
fn scaled(scheme: &str, [f, g, seen]: [f64; 3]) -> Simulation<'static, f64> {
    let bench = Bench::new(QUADRATIC, &format!("name = '{scheme}'"));
    let node = |(i, part)| bench.node(i, Box::new(Scaled { part, f, g, seen }) as Box<_>);
    let nodes = bench.parts().into_iter().enumerate().map(node).collect();
    Simulation::new(nodes, &bench.world.mixing, None)
}

/// Units of f and g change no bit of x and θ.
#[test]
fn steps_have_no_units() {
    for scheme in ["lopa-gt", "lopa-lg", "d-soba", "sldbo", "sparkle", "zhang"] {
        let [mut plain, mut larger_f, mut larger_g] =
            [[1.0; 3], [4.0, 1.0, 1.0], [1.0, 8.0, 1.0]].map(|factors| scaled(scheme, factors));
        for k in 0..200 {
            for simulation in [&mut plain, &mut larger_f, &mut larger_g] {
                simulation.iterate();
            }
            for of in ["x", "theta"] {
                let want = rows(&plain, of);
                assert_eq!(rows(&larger_f, of), want, "{scheme}, f times 4: {of}, k = {k}");
                assert_eq!(rows(&larger_g, of), want, "{scheme}, g times 8: {of}, k = {k}");
            }
        }
    }
}

/// The bounds of the rule, in every iteration of LoPA: those on L, β, the step of x, E and probes.
#[test]
fn the_rule_keeps_its_bounds() {
    for (scheme, noise) in [("lopa-gt", "'full'"), ("lopa-lg", "3"), ("lopa-gt", "3")] {
        let setup = format!(
            "problem = {{ name = 'quadratic', n = 4, p = 5, noise = 0.5, samples = 9 }}
             network = {{ nodes = 6, graph = 'ring' }}
             run = {{ iterations = 1, batch = {noise} }}"
        );
        let bench = Bench::new(&setup, &format!("name = '{scheme}', tau = 0.25"));
        let mut simulation = bench.start::<f64>();
        let (mut curvature, mut squares) = (vec![0.0; 6], 0.0);
        let mut made = [(0, 0); 6]; // the last probe of a node, and its products
        for k in 0..300u64 {
            let directions = rows(&simulation, "y");
            let before = rows(&simulation, "rule");
            simulation.iterate();
            let rules = rows(&simulation, "rule");
            let root = ((k + 1) as f64).sqrt();
            for (i, rule) in rules.iter().enumerate() {
                let what = format!("{scheme}, {noise}, k = {k}, node {i}");
                assert!(rule[CURVATURE] >= curvature[i], "{what}: L fell");
                curvature[i] = rule[CURVATURE];
                let beta = rule[STEPS[1]] * before[i][CURVATURE];
                assert!((beta - 1.4).abs() < 1e-12 && rule[STEPS[1]] == rule[STEPS[2]], "{what}");
                let moved = 0.25 * rule[STEPS[0]] * largest(&directions[i]);
                let most = 2.0 * ((k + 1) as f64 / 32.0).min(1.0) / root; // x starts at 0: u = 1
                assert!(moved <= most * (1.0 + 1e-12), "{what}: x moves by {moved}, above {most}");
                let extra = simulation.nodes()[i].oracle.counts().hess_g - (k + 2);
                let (last, known) = made[i];
                assert!(extra <= known + 1 || k == 0, "{what}: two probes in an iteration");
                assert!(k - last <= 32, "{what}: no probe since {last}");
                if extra > known {
                    made[i] = (k, extra);
                }
            }
            for (y, rule) in directions.iter().zip(&rules) {
                let lag = rule[LAG];
                assert!((1.0..=((k + 1) as f64 / 4.0).max(1.0)).contains(&lag), "k = {k}: {lag}");
                squares += (lag * largest(y)).powi(2) / 6.0;
            }
            let mean = rules.iter().map(|rule| rule[SQUARE]).sum::<f64>() / 6.0;
            let want = squares / (k + 1) as f64;
            assert!((mean - want).abs() <= 1e-10 * want, "{scheme}, k = {k}: {mean}, {want}");
        }
    }
}

/// Where θ and v need many iterations, x waits for them. Without the lag in the rule, Φ ends hundreds of times
/// above its start.
#[test]
fn x_does_not_run_ahead_of_theta_and_v() {
    for (condition, most) in [(1, 1.0), (10, 1.0), (100, 3.0), (3000, 3.0)] {
        let setup = format!(
            "problem = {{ name = 'quadratic', n = 4, p = 5, condition = {condition} }}
             network = {{ nodes = 6, graph = 'ring' }}
             run = {{ iterations = 1, batch = 'full' }}"
        );
        for scheme in ["lopa-gt", "lopa-lg", "d-soba", "sldbo", "sparkle", "zhang"] {
            let bench = Bench::new(&setup, &format!("name = '{scheme}'"));
            let phi = |x: &[f64]| {
                let one = |mut part: Box<dyn Bilevel<f64>>| {
                    lopa::run::evaluate::exact::solve(part.as_mut(), x, &[0.0; 5]).phi
                };
                bench.parts().into_iter().map(one).sum::<f64>() / 6.0
            };
            let simulation = bench.run::<f64>(400);
            let (start, end) = (phi(&[0.0; 4]), phi(&mean(&rows(&simulation, "x"))));
            assert!(end < most * start, "{scheme}, condition {condition}: {start} to {end}");
            for rule in rows(&simulation, "rule") {
                let lag = rule[LAG];
                let right = (condition > 1 || lag == 1.0) && (condition < 100 || lag > 5.0);
                assert!(right, "{scheme}, condition {condition}: {lag}");
            }
        }
    }
}

/// In the global scope all nodes use one β, to the bit, once L has gone round.
#[test]
fn nodes_agree_on_the_largest_curvature() {
    for scheme in SCHEMES {
        let bench =
            Bench::new(&format!("scope = 'global'\n{QUADRATIC}"), &format!("name = '{scheme}'"));
        let mut simulation = bench.start::<f64>();
        for k in 0..60 {
            simulation.iterate();
            let betas: Vec<f64> =
                rows(&simulation, "rule").iter().map(|rule| rule[STEPS[1]]).collect();
            // L may still rise early in the run, and needs three rounds on this ring.
            if k > 40 {
                assert!(betas.iter().all(|beta| beta == &betas[0]), "{scheme}, k = {k}: {betas:?}");
            }
        }
    }
}

/// Without noise, tracking reaches the solution.
#[test]
fn the_golden_quadratic_is_solved() {
    let golden = Golden::read("steps-quadratic");
    let mut simulation = start(&golden, "lopa-gt-personal");
    (0..1000).for_each(|_| simulation.iterate());
    let x = mean(&rows(&simulation, "x"));
    let grads = golden
        .parts()
        .into_iter()
        .map(|mut part| lopa::run::evaluate::exact::solve(part.as_mut(), &x, &[0.0; 2]).grad);
    let grad = mean(&grads.collect::<Vec<_>>());
    assert!(norm(&grad).powi(2) < 1e-20, "{}", norm(&grad).powi(2));
}

/// As long as nothing pulls at x, α is 0, and nothing is NaN.
#[test]
fn nothing_moves_where_nothing_pulls() {
    let golden = Golden::read("steps-quadratic");
    let choice = lopa_gt();
    let node = |(i, part): (usize, Box<dyn Bilevel<f64>>)| {
        let part = Box::new(Scaled { part, f: 0.0, g: 0.0, seen: 1.0 });
        let mut oracle = Oracle::new(part, Batches::all(None), false, 0, i);
        let [x, theta, v] = [3, 2, 2].map(|length| vec![0.0; length].into());
        let scope = Scope::Personal;
        let start = Start { x, theta, v, rows: None, scope, oracle: &mut oracle };
        let algorithm = choice.build.start(start).unwrap();
        Node { algorithm, oracle }
    };
    let nodes = golden.parts().into_iter().enumerate().map(node).collect();
    let w = matrix(&golden.json()["graph"]["W"]);
    let mut simulation = Simulation::new(nodes, &Mixing::from_matrix(w).unwrap(), None);
    for _ in 0..40 {
        simulation.iterate();
        for node in simulation.nodes() {
            for (name, values) in node.algorithm.variables() {
                assert!(values.iter().all(|value| value.is_finite()), "{name}");
            }
            assert_eq!(variable(node, "rule")[STEPS[0]], 0.0);
            assert_eq!(variable(node, "rule")[STEPS[1]], 1.0);
        }
    }
}

fn lopa_gt() -> lopa::config::Choice<lopa::algorithms::AnyMethod> {
    let source = Source::new("test", "algorithm = { name = 'lopa-gt' }");
    algorithms().read(source.root().unwrap().required("algorithm").unwrap()).unwrap()
}

/// A Hessian that is far larger than its products say: the safeguard finds stable steps, and notes it.
#[test]
fn steps_are_halved_where_something_grows() {
    for scheme in ["lopa-gt", "lopa-lg", "d-soba", "sldbo", "sparkle", "zhang"] {
        let mut simulation = scaled(scheme, [1.0, 1.0, 0.05]);
        (0..400).for_each(|_| simulation.iterate());
        let cuts: f64 = rows(&simulation, "rule").iter().map(|rule| rule[CUTS]).sum();
        let theta = largest(&rows(&simulation, "theta").concat());
        assert!(cuts >= 1.0 && theta < 1e4, "{scheme}: {cuts} cuts, theta {theta}");
        let mut honest = scaled(scheme, [1.0; 3]);
        (0..400).for_each(|_| honest.iterate());
        let cuts: f64 = rows(&honest, "rule").iter().map(|rule| rule[CUTS]).sum();
        assert_eq!(cuts, 0.0, "{scheme}");
    }
}

/// Some steps may be given: they are used as they are.
#[test]
fn some_steps_may_be_given() {
    let given = [("alpha", 1e-4, 0), ("beta", 0.3, 1), ("lambda", 0.2, 2)];
    for scheme in ["lopa-gt", "lopa-lg", "d-soba", "sldbo", "sparkle"] {
        for rule in ["auto", "adaptive"] {
            for (key, step, at) in given {
                let choice = format!("name = '{scheme}', steps = '{rule}', {key} = {step}");
                let mut simulation = Bench::new(QUADRATIC, &choice).start::<f64>();
                (0..100).for_each(|_| simulation.iterate());
                for rule in rows(&simulation, "rule") {
                    assert_eq!(rule[STEPS[at]], step, "{choice}");
                    let others = STEPS.iter().filter(|other| **other != STEPS[at]);
                    others.for_each(|other| assert!(rule[*other] > 0.0, "{choice}: {rule:?}"));
                }
                assert!(largest(&rows(&simulation, "theta").concat()) < 1e3, "{choice}");
            }
        }
    }
}

/// Messages that are compressed, lost, late or clipped, nodes that sleep, graphs that change: steps are
/// found, and means over nodes are kept.
#[test]
fn steps_are_found_over_any_messages() {
    let messages = [
        "compress = 'f16'",
        "compress = { name = 'top-k', share = 0.3 }",
        "compress = { name = 'quantise', feedback = false }",
        "compress = 'sign'",
        "drop = 0.3",
        "late = 0.3",
        "active = 0.6",
        "clip = { median = 1.5 }",
    ];
    let graphs =
        ["'ring'", "'random-matching'", "{ name = 'random-edges', base = 'complete', p = 0.4 }"];
    for (at, with) in messages.iter().enumerate() {
        for scope in ["personal", "global"] {
            for scheme in ["lopa-gt", "d-soba", "dgd"] {
                let graph = graphs[at % if with.contains("median") { 1 } else { 3 }];
                let setup = format!(
                    "scope = '{scope}'
                     problem = {{ name = 'quadratic', n = 4, p = 5, noise = 0.3, samples = 9 }}
                     network = {{ nodes = 6, graph = {graph} }}
                     messages = {{ {with} }}
                     run = {{ iterations = 1, batch = 3 }}"
                );
                let bench = Bench::new(&setup, &format!("name = '{scheme}'"));
                let mut simulation = bench.begin::<f64>();
                (0..300).for_each(|_| simulation.iterate());
                let what = format!("{scheme}, {scope}, {with}, {graph}");
                for rule in rows(&simulation, "rule") {
                    assert!(
                        rule.iter().all(|number| number.is_finite() && *number >= 0.0),
                        "{what}"
                    );
                    assert!(rule[CURVATURE] < 10.0 && rule[CUTS] == 0.0, "{what}: {rule:?}");
                }
                assert!(largest(&rows(&simulation, "theta").concat()) < 1e3, "{what}");
            }
        }
    }
}

/// Where minibatches are drawn, the mean of θ is nearer to the solution than the last θ.
#[test]
fn the_mean_of_theta_is_less_noisy() {
    let setup = "problem = { name = 'quadratic', n = 4, p = 5, noise = 1.0, samples = 40 }
        network = { nodes = 6, graph = 'ring' }
        run = { iterations = 1, batch = 2 }";
    let bench = Bench::new(setup, "name = 'lopa-gt'");
    let simulation = bench.run::<f64>(2000);
    let mut off = [0.0; 2];
    for (node, mut part) in simulation.nodes().iter().zip(bench.parts::<f64>()) {
        let x: Vec<f64> = variable(node, "x").to_vec();
        let theta = lopa::run::evaluate::exact::solve(part.as_mut(), &x, &[0.0; 5]).theta;
        off[0] += distance(node.algorithm.mean_theta().unwrap(), &theta);
        off[1] += distance(variable(node, "theta"), &theta);
    }
    assert!(off[0] < 0.5 * off[1], "{off:?}");
    let full = Bench::new(QUADRATIC, "name = 'lopa-gt'").run::<f64>(3);
    assert!(full.nodes()[0].algorithm.mean_theta().is_none());
}

/// Features of any scale: no run ends above its start.
#[test]
fn raw_features_are_survived() {
    for (seed, scale) in [(1, 1.0), (2, 30.0), (3, 1e3), (4, 0.1)] {
        let rows: Vec<String> = (0..120)
            .map(|i| {
                let t = f64::from(i) * 0.37 + f64::from(seed);
                let label = i32::from(t.sin() > 0.0);
                format!(
                    "{},{},{},{label}",
                    scale * t.sin(),
                    t.cos() * 0.1,
                    scale * scale * (2.0 * t).cos()
                )
            })
            .collect();
        let folder = std::env::temp_dir().join(format!("lopa-steps-{}-{seed}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("raw.csv");
        std::fs::write(&path, format!("a,b,c,y\n{}\n", rows.join("\n"))).unwrap();
        let setup = format!(
            "problem = 'hyperparameter'
             data = {{ name = 'csv', path = {path:?}, label = 'y', test = 0.0 }}
             network = {{ nodes = 4, graph = 'ring' }}
             run = {{ iterations = 400, batch = 8, seeds = [{seed}], exact = 'never' }}
             algorithm = [{{ name = 'lopa-gt' }}, {{ name = 'lopa-lg' }}, {{ name = 'd-soba' }}]"
        );
        let source = Source::new("test", &setup);
        let experiment = lopa::experiment::Experiment::read(&source, &Default::default()).unwrap();
        for outcome in experiment.run().unwrap() {
            let loss = outcome.row.value("loss").unwrap();
            let what = format!("{}, scale {scale}", outcome.algorithm);
            assert!(loss.is_finite() && loss < std::f64::consts::LN_2 * 1.5, "{what}: {loss}");
            for told in ["step_alpha", "step_beta", "step_lambda", "curvature", "last_loss"] {
                assert!(outcome.row.value(told).is_some(), "{what}: {told}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
