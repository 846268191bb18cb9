//! Iterations in steady state allocate nothing, and nodes use the memory that the documentation
//! states.

#[path = "suite/common/mod.rs"]
mod common;

use common::bench::Bench;
use lopa::algorithms::{Task, algorithms};
use lopa::conformance::Counting;
use lopa::math::real::Real;
use lopa::problem::scope::Scope;
use schemars::generate::SchemaSettings;
use toml::{Table, Value};

#[global_allocator]
static COUNTING: Counting = Counting;

const QUADRATIC: &str = "problem = { name = 'quadratic', noise = 0.2, samples = 30 }";

fn learning(problem: &str, sparsity: f64) -> String {
    format!(
        "problem = {{ name = '{problem}' }}
         data = {{ name = 'blobs', rows = 200, features = 6, sparsity = {sparsity} }}"
    )
}

/// Allocations in ten iterations.
fn allocated<T: Real>(problem: &str, batch: &str, algorithm: &str) -> u64 {
    let setup = format!(
        "{problem}
         network = {{ nodes = 4, graph = 'ring', weights = 'lazy-metropolis' }}
         run = {{ iterations = 1, batch = {batch} }}"
    );
    let mut simulation = Bench::new(&setup, algorithm).run::<T>(5);
    let before = Counting::allocations();
    (0..10).for_each(|_| simulation.iterate());
    Counting::allocations() - before
}

/// Every algorithm with its typical parameters; then with each other word that a parameter can be, with
/// each switch turned, and with 1 for each number that is left out by default; where that has a meaning.
fn field() -> Vec<(Vec<Scope>, String)> {
    let mut field = Vec::new();
    let registry = algorithms();
    for entry in &registry {
        let typical = entry.typical.clone().unwrap_or_default();
        let line = |params: &Table| {
            let method = registry.choose(&entry.name, params).unwrap().build;
            let serves =
                |scope: &Scope| method.sent(Task { scope: *scope, ..Task::default() }).is_ok();
            let scopes = entry.facts.scopes.iter().copied().filter(serves).collect();
            let params: String =
                params.iter().map(|(key, value)| format!(", {key} = {value}")).collect();
            (scopes, format!("name = '{}'{params}", entry.name))
        };
        field.push(line(&typical));
        let inline = SchemaSettings::draft2020_12().with(|all| all.inline_subschemas = true);
        let schema = entry.schema(&mut inline.into_generator()).to_value();
        for (key, property) in schema["properties"].as_object().unwrap() {
            for value in others(property, typical.get(key)) {
                let mut params = typical.clone();
                params.insert(key.clone(), value);
                field.push(line(&params));
            }
        }
    }
    field
}

/// The other values of a parameter.
fn others(property: &serde_json::Value, now: Option<&Value>) -> Vec<Value> {
    let words = property["oneOf"].as_array().into_iter().flatten();
    let words = words.filter_map(|word| word["const"].as_str()).map(Value::from);
    match now {
        None if property["type"][0] == "number" => vec![Value::from(1.0)],
        Some(Value::Boolean(now)) => vec![Value::from(!now)],
        _ => words.filter(|word| Some(word) != now).collect(),
    }
}

/// Runs the whole field on a problem.
fn check(problem: &str) {
    for (scopes, algorithm) in field() {
        for scope in scopes {
            let problem = format!("scope = '{}'\n{problem}", scope.name());
            for batch in ["7", "'full'"] {
                let found = allocated::<f64>(&problem, batch, &algorithm);
                assert_eq!(found, 0, "{problem}, {algorithm}, batch {batch}");
                let found = allocated::<f32>(&problem, batch, &algorithm);
                assert_eq!(found, 0, "{problem}, {algorithm}, batch {batch}, f32");
            }
        }
    }
}

#[test]
fn the_counter_counts() {
    let (before, bytes) = (Counting::allocations(), Counting::bytes());
    let mut grown = vec![0.0f64];
    grown.extend([1.0; 100]);
    assert!(Counting::bytes() - bytes >= 808);
    drop(std::hint::black_box(grown));
    assert_eq!((Counting::allocations() - before, Counting::bytes()), (2, bytes));
}

#[test]
fn quadratic() {
    check(QUADRATIC);
}

/// Compressed, lost, late, clipped and false messages need no new memory either.
#[test]
fn messages() {
    let all =
        "bursts = { begin = 0.1, end = 0.5 }, late = 0.2, active = 0.9, clip = { median = 2 }";
    let compressors = [
        "{ name = 'top-k', share = 0.3 }",
        "{ name = 'random-k', share = 0.3 }",
        "{ name = 'quantise', bits = 3 }",
        "'bf16'",
        "'f16'",
        "'sign'",
    ];
    for compressor in compressors {
        let attack = "attack = { nodes = [2], kind = 'noise' }";
        let problem =
            format!("{QUADRATIC}\nmessages = {{ compress = {compressor}, {all} }}\n{attack}");
        for algorithm in ["name = 'lopa-gt'", "name = 'ma-dsbo'"] {
            let algorithm = format!("{algorithm}, alpha = 0.001, beta = 0.1, lambda = 0.1");
            assert_eq!(allocated::<f64>(&problem, "7", &algorithm), 0, "{problem}, {algorithm}");
            assert_eq!(allocated::<f32>(&problem, "7", &algorithm), 0, "{problem}, {algorithm}");
        }
    }
}

#[test]
fn hyperparameter() {
    check(&learning("hyperparameter", 0.0));
    check(&learning("hyperparameter", 0.6));
    // Sparse bytes and one column of weights.
    check(
        "problem = { name = 'hyperparameter' }
         data = { name = 'digits', classes = [0, 1], sparse = true }",
    );
}

#[test]
fn representation() {
    check(&learning("representation', hidden = [5], activation = 'tanh", 0.0));
    check(&learning(
        "representation', hidden = [5, 4], validation = 0.3, activation = 'sigmoid",
        0.6,
    ));
}

#[test]
fn meta_learning() {
    check(&learning("meta-learning", 0.0));
    check(&learning("meta-learning", 0.6));
}

#[test]
fn hyper_cleaning() {
    check(&learning("hyper-cleaning", 0.0));
    check(&learning("hyper-cleaning", 0.6));
}

/// Bytes that a node of LoPA-GT uses after some iterations, and as stated in `docs/performance.md`.
fn memory<T: Real>(hidden: usize, batch: usize) -> (f64, f64) {
    let (nodes, rows, features, classes) = (40, 4000, 64, 10);
    let setup = format!(
        "problem = {{ name = 'representation', hidden = [{hidden}] }}
         data = {{ name = 'blobs', rows = {rows}, features = {features}, centres = {classes}, test = 0.01 }}
         network = {{ nodes = {nodes}, graph = 'ring', weights = 'lazy-metropolis' }}
         run = {{ iterations = 1, batch = {batch} }}"
    );
    let bench = Bench::new(&setup, "name = 'lopa-gt', alpha = 0.001, beta = 0.1, lambda = 0.1");
    drop(bench.run::<T>(0)); // so that the shared features exist in this precision
    let before = Counting::bytes();
    let simulation = bench.run::<T>(3);
    let held = (Counting::bytes() - before) as f64 / nodes as f64;
    let n = (features + 1) * hidden;
    let p = (hidden + 1) * classes;
    let samples = rows as f64 * 0.99 / nodes as f64;
    let numbers = 8 * n + 4 * p;
    drop(simulation);
    let row_numbers = 2.0 * samples + 5.0 * batch as f64;
    (held, (numbers * T::BYTES) as f64 + 4.0 * row_numbers + 3000.0)
}

#[test]
fn memory_is_as_stated() {
    for (hidden, batch) in [(28, 50), (5, 20), (100, 10)] {
        for (held, stated) in [memory::<f32>(hidden, batch), memory::<f64>(hidden, batch)] {
            let ratio = held / stated;
            assert!((0.8..=1.2).contains(&ratio), "{hidden}, {batch}: {held} against {stated}");
        }
    }
}
