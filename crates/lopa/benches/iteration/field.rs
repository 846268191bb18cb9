//! One iteration of every algorithm on every problem.

use std::collections::BTreeSet;
use std::path::Path;

use lopa::algorithms::algorithms;
use lopa::config::Source;
use lopa::engine::Simulation;
use lopa::experiment::Experiment;
use lopa::math::real::Real;
use toml::Table;

use crate::bench::Bench;
use crate::clock::fastest;

/// Files that list every algorithm of their scope.
const FILES: &[&str] = &[
    "quadratic",
    "quadratic-global",
    "compare/libsvm-personal",
    "compare/libsvm-global",
    "compare/representation-personal",
    "compare/representation-global",
    "compare/hyper-cleaning-personal",
    "compare/hyper-cleaning-global",
];

/// Seconds per measurement.
const BUDGET: f64 = 0.1;

/// One table per file; `filter` selects algorithms or files by parts of their names.
pub fn table(filter: &[&str]) {
    let mut seen = BTreeSet::new();
    for file in FILES {
        each(read(file, None), file, filter, &mut seen);
    }
    let adapt: Table = "name = 'meta-learning'".parse().expect("a table");
    let file = "compare/representation-personal";
    each(read(file, Some(adapt)), "meta-learning", filter, &mut seen);
    let registry = algorithms();
    let missing: Vec<&str> =
        registry.names().into_iter().filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty(), "no file has {missing:?}");
}

/// The experiment of a file, with another problem if one is given.
fn read(file: &str, problem: Option<Table>) -> Experiment {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::set_current_dir(&root).expect("the folder of the workspace");
    let path = root.join("experiments").join(file).with_extension("toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let mut table: Table = text.parse().expect("a TOML file");
    if let Some(problem) = problem {
        table.insert("problem".into(), problem.into());
    }
    let read = Experiment::read(
        &Source::new(file, table.to_string()),
        &lopa::experiment::Registries::default(),
    );
    read.unwrap_or_else(|error| panic!("{error}"))
}

fn each(of: Experiment, title: &str, filter: &[&str], seen: &mut BTreeSet<String>) {
    println!("\n{title}, m = {}", of.network.nodes);
    println!("{:<24} {:>12} {:>12} {:>9}", "one iteration", "f32 µs", "f64 µs", "f64/f32");
    for algorithm in &of.algorithms {
        seen.insert(algorithm.choice.name.clone());
        let wanted = |word: &&str| title.contains(word) || algorithm.label.contains(word);
        if filter.is_empty() || filter.iter().any(wanted) {
            let bench = Bench::of(Experiment { algorithms: vec![algorithm.clone()], ..of.clone() });
            let (single, double) = (micros(bench.run::<f32>(3)), micros(bench.run::<f64>(3)));
            let (ratio, name) = (double / single, &algorithm.label);
            println!("{name:<24} {single:>12.1} {double:>12.1} {ratio:>9.2}");
        }
    }
}

fn micros<T: Real>(mut simulation: Simulation<T>) -> f64 {
    1e6 * fastest(BUDGET, || simulation.iterate())
}
