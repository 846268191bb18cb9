//! Iterations in steady state allocate nothing, and nodes use the memory that the documentation
//! states.

#[path = "suite/common/mod.rs"]
mod common;

use common::bench::Bench;
use lopa::algorithms::algorithms;
use lopa::conformance::Counting;
use lopa::math::real::Real;
use lopa::problem::scope::Scope;

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

/// Every algorithm with its typical parameters, and options of some that change what they do.
fn field() -> Vec<(&'static [Scope], String)> {
    let steps = "alpha = 0.001, beta = 0.1, lambda = 0.1";
    let mut field: Vec<_> = algorithms()
        .iter()
        .map(|entry| {
            let typical = entry.typical.iter().flatten();
            let params: String = typical.map(|(key, value)| format!(", {key} = {value}")).collect();
            (entry.facts.scopes, format!("name = '{}'{params}", entry.name))
        })
        .collect();
    let personal = &[Scope::Personal][..];
    field.extend([
        (
            personal,
            format!("name = 'spdb', {steps}, inverse = 'shia', consensus = 'gt', inner_steps = 2"),
        ),
        (personal, format!("name = 'spdb', {steps}, hv_steps = 4")),
        (Scope::BOTH, format!("name = 'd-soba', {steps}, order = 'first'")),
        (Scope::BOTH, format!("name = 'sldbo', {steps}, radius = 1")),
        (Scope::BOTH, format!("name = 'sparkle', {steps}, upper = 'extra', lower = 'gt'")),
        (
            Scope::BOTH,
            format!("name = 'zhang', {steps}, eta = 0.5, gamma = 0.1, order = 'alternating'"),
        ),
        (personal, format!("name = 'prometheus', {steps}, period = 3, l1 = 0.1")),
    ]);
    field
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
