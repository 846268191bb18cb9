//! Many nodes and many features: the same results on any number of threads, in memory and folders
//! that grow only as needed.

use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::experiment::{Experiment, Registries};
use lopa::folder::model::{About, Model};
use lopa::folder::{LISTED, RunFolder, RunReader, Status, model_path};
use lopa::network::{Audit, Graph, MAX_NODES};
use lopa::run::Context;
use rayon::ThreadPoolBuilder;
use serde_json::json;

use crate::common::bench::Bench;

fn experiment(text: &str) -> Experiment {
    Experiment::read(&Source::new("large.toml", text), &Registries::default()).unwrap()
}

const STEPS: &str = "alpha = 0.02, beta = 0.3, lambda = 0.3";

#[test]
fn folders_of_many_nodes_do_not_list_them() {
    let nodes = LISTED + 2;
    let experiment = experiment(&format!(
        "name = 'many'
         problem = {{ name = 'quadratic', n = 1, p = 1 }}
         network = {{ nodes = {nodes}, graph = 'random-regular' }}
         run = {{ iterations = 2, evaluations = 1, exact = 'end' }}
         algorithm = [{{ name = 'lopa-gt', {STEPS} }}]"
    ));
    let (runs, interrupt) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let context = Context { pool: None, data_dir: "".into(), interrupt: &interrupt, probe: None };
    let mut writer = RunFolder::create(runs.path(), &experiment, None, 1).unwrap();
    let outcomes = experiment.run_with(&context, &mut writer, &mut ()).unwrap();
    writer.finish(Status::Done).unwrap();
    let folder = writer.path();
    assert_eq!(outcomes[0].nodes.len(), nodes);
    let reader = RunReader::open(folder).unwrap();
    let world = &reader.manifest().worlds[0];
    assert!(world.edges.is_empty() && world.weights.is_empty() && world.graph_digest.len() == 64);
    let entry = &reader.results().unwrap()[0];
    assert!(entry.nodes.is_empty());
    let losses = || outcomes[0].nodes.iter().map(|node| node[0].1);
    let spread = entry.spread["loss"];
    assert_eq!(spread.min, losses().fold(f64::INFINITY, f64::min));
    assert_eq!(spread.max, losses().fold(f64::NEG_INFINITY, f64::max));
    let below = losses().filter(|loss| *loss <= spread.median).count();
    assert!(below.abs_diff(nodes / 2) <= 1, "{below}");
    let model = Model::load(&model_path(folder, "lopa-gt", experiment.run.seeds[0])).unwrap();
    assert_eq!((model.x.len(), model.theta.len()), (nodes, nodes));
    // Nothing but models grows with the nodes.
    for file in ["manifest.json", "results.json"] {
        assert!(folder.join(file).metadata().unwrap().len() < 10_000, "{file}");
    }
}

#[test]
fn nodes_made_on_threads_are_the_same() {
    let pool = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let interrupt = AtomicBool::new(false);
    for problem in [
        "problem = { name = 'quadratic', noise = 0.1, samples = 9, n = 3, p = 4 }",
        "problem = { name = 'quadratic', n = 3, p = 4 }\nscope = 'global'",
        "problem = { name = 'hyperparameter' }\ndata = { name = 'digits', samples = 300 }",
    ] {
        let experiment = experiment(&format!(
            "{problem}
             network = {{ nodes = 7, graph = 'ring', weights = 'lazy-metropolis' }}
             run = {{ iterations = 4, evaluations = 2, batch = 3 }}
             algorithm = [{{ name = 'lopa-gt', {STEPS} }}]"
        ));
        let run = |pool| {
            let context = Context { pool, data_dir: "".into(), interrupt: &interrupt, probe: None };
            let outcome = experiment.run_with(&context, &mut (), &mut ()).unwrap().swap_remove(0);
            (outcome.digest, outcome.row.values, outcome.nodes, outcome.models)
        };
        assert_eq!(run(None), run(Some(&pool)), "{problem}");
    }
}

/// Zeros where there is no noise, and no zeros at all, are the same problem to the bit.
#[test]
fn quadratics_without_noise_keep_no_samples() {
    let run = |noise: &str| {
        let setup = format!(
            "problem = {{ name = 'quadratic', n = 2, p = 3, samples = 5{noise} }}
             network = {{ nodes = 4, graph = 'ring', weights = 'lazy-metropolis' }}
             run = {{ iterations = 1, batch = 2 }}"
        );
        let simulation = Bench::new(&setup, &format!("name = 'lopa-gt', {STEPS}")).run::<f64>(20);
        let of = |node: &lopa::engine::Node<f64>| node.algorithm.at().theta.to_vec();
        (simulation.nodes().iter().map(of).collect::<Vec<_>>(), simulation.counts().samples)
    };
    // Perturbations of 1e-320 are below the last bit of everything they are added to.
    assert_eq!(run(""), run(", noise = 1e-320"));
    assert_ne!(run("").0, run(", noise = 0.1").0);
}

#[test]
fn one_rule_says_how_many_nodes_there_may_be() {
    let text = |nodes: usize| {
        format!(
            "problem = {{ name = 'quadratic' }}
             network = {{ nodes = {nodes}, graph = 'ring' }}
             run = {{ iterations = 1 }}
             algorithm = [{{ name = 'lopa-gt', {STEPS} }}]"
        )
    };
    let read =
        |nodes| Experiment::read(&Source::new("t.toml", text(nodes)), &Registries::default());
    assert_eq!(read(MAX_NODES).unwrap().network.nodes, MAX_NODES);
    assert!(read(MAX_NODES + 1).is_err());
    let path = |m: usize| Graph::from_edges(m, (1..m).map(|i| (i - 1, i)));
    assert!(path(MAX_NODES + 1).is_err() && path(MAX_NODES).is_ok());
}

#[test]
fn a_large_star_is_analysed_and_audited() {
    let m = 50_000;
    let bench = Bench::new(
        &format!(
            "problem = {{ name = 'quadratic', n = 1, p = 1 }}
             network = {{ nodes = {m}, graph = 'star' }}
             run = {{ iterations = 1 }}"
        ),
        &format!("name = 'lopa-gt', {STEPS}"),
    );
    let (graph, mixing) = (&bench.world.graph, &bench.world.mixing);
    let analysis = mixing.analyse(graph);
    assert_eq!((analysis.diameter, analysis.diameter_between), (Some(2), None));
    // W of a star has the eigenvalues 1, 1 − 1/m and 0.
    assert!((analysis.lambda_2 - (1.0 - 1.0 / m as f64)).abs() < 1e-12 && !analysis.estimated);
    assert_eq!(Audit::new(graph, mixing).counts(), [m - 1, m - 1, 0]);
}

/// A large random graph, against the limit of Friedman's theorem: 2 √3 of degree 4.
#[test]
fn the_spectrum_of_a_large_random_graph_is_near_its_limit() {
    let bench = Bench::new(
        "problem = { name = 'quadratic', n = 1, p = 1 }
         network = { nodes = 12000, graph = 'random-regular' }
         run = { iterations = 1 }",
        &format!("name = 'lopa-gt', {STEPS}"),
    );
    let limit = (1.0 + 2.0 * 3f64.sqrt()) / 5.0;
    let found = bench.world.analysis;
    assert!((found.rho.sqrt() - limit).abs() < 1e-2, "{} {limit}", found.rho.sqrt());
    assert_eq!(bench.world.mixing.spectrum(), found, "the same bits again");
}

fn about(classes: usize) -> About {
    let classes: Vec<String> = (0..classes).map(|class| class.to_string()).collect();
    serde_json::from_value(json!({
        "algorithm": "lopa-gt", "seed": 1, "problem": "hyperparameter", "params": {},
        "features": 40_000, "classes": classes,
    }))
    .unwrap()
}

#[test]
fn large_models_take_the_room_of_what_is_not_zero() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let size = |theta: &dyn Fn(usize, usize) -> f64| {
        let (nodes, features, classes) = (3, 40_000, 5);
        let of = |i| (0..features * classes).map(|at| theta(i, at)).collect();
        let model = Model {
            about: about(classes),
            x: vec![vec![0.5; features]; nodes],
            theta: (0..nodes).map(of).collect(),
            scaling: Default::default(),
        };
        model.save(&path).unwrap();
        let found = Model::load(&path).unwrap();
        let bits = |rows: &[Vec<f64>]| -> Vec<u64> {
            rows.iter().flatten().map(|v| v.to_bits()).collect()
        };
        assert_eq!(bits(&found.theta), bits(&model.theta));
        assert_eq!(found, model);
        path.metadata().unwrap().len() as usize
    };
    let (dense, x) = (3 * 200_000, 3 * 40_000);
    let close =
        |found: usize, wanted: usize| assert!(found.abs_diff(wanted) < 2000, "{found} {wanted}");
    close(size(&|i, at| 0.1 + (i + at) as f64), 8 * dense + 4 * x);
    close(size(&|i, at| 0.5 + (i + at) as f64), 4 * dense + 4 * x);
    // One word in ten, another one at every node; a single weight of a word is not alone.
    let of =
        |i: usize, at: usize, value: f64| if (at / 5 + i).is_multiple_of(10) { value } else { 0.0 };
    close(size(&|i, at| of(i, at, 0.1)), (8 * dense + 4 * dense / 5) / 10 + 4 * x);
    close(size(&|i, at| of(i, at, -0.25)), (4 * dense + 4 * dense / 5) / 10 + 4 * x);
    // Minus zero is no zero.
    close(size(&|i, at| of(i, at, -0.0)), (4 * dense + 4 * dense / 5) / 10 + 4 * x);
    // A flipped bit anywhere is noticed, and no byte makes the reader panic.
    size(&|i, at| of(i, at, 0.1));
    let sound = std::fs::read(&path).unwrap();
    for at in (0..sound.len()).step_by(99_991).chain(0..9) {
        let mut damaged = sound.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&path, &damaged).unwrap();
        assert!(Model::load(&path).is_err(), "byte {at}");
    }
}
