//! The cost of an iteration: `cargo bench -p lopa --bench iteration [-- COMMAND]`.
//!
//! ```text
//! (nothing)             LoPA-GT on the four problems of docs/performance.md, and its own part
//! field [WORD…]         every algorithm on every problem
//! kernels               the products alone, against the peak of the processor
//! growth                cost against batch, features, hidden units and degree
//! scale [--svg FILE]    cost and memory of 8 to 10 000 nodes
//! export CASE DIR       writes the case to files, for other implementations
//! rate CASE f32|f64 THREADS, loss CASE ITERATIONS     what `bench/peers` compares
//! ```
//!
//! The four problems use the real data if it is in `LOPA_DATA_DIR`, otherwise synthetic data of the
//! same shape and sparsity.

#[path = "../../tests/suite/common/bench.rs"]
#[allow(dead_code)]
mod bench;
mod cases;
mod clock;
mod export;
mod field;
mod growth;
mod kernels;
mod peak;
mod plot;
mod scale;
mod share;

use cases::{CASES, Case};
use clock::fastest;
use lopa::engine::{Node, Simulation};
use lopa::problem::Bilevel;

/// Seconds per measurement.
const BUDGET: f64 = 2.0;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => table(),
        ["field", ref filter @ ..] => field::table(filter),
        ["kernels"] => kernels::table(),
        ["growth"] => growth::table(),
        ["scale"] => scale::table(None),
        ["scale", "--svg", path] => scale::table(Some(path)),
        ["export", name, dir] => export::case(cases::find(name), dir),
        ["rate", name, precision, threads] => rate(cases::find(name), precision, threads),
        ["loss", name, iterations] => loss(cases::find(name), iterations),
        _ => panic!("no such command: {args:?}"),
    }
}

fn table() {
    println!(
        "{:<42} {:>10} {:>10} {:>14} {:>14}",
        "one iteration, one thread", "f32 µs", "f64 µs", "own part, f32", "own part, f64"
    );
    for case in CASES {
        let bench = case.bench(None);
        let single = share::of(&mut bench.run::<f32>(3), BUDGET);
        let double = share::of(&mut bench.run::<f64>(3), BUDGET);
        let [(f32s, own32), (f64s, own64)] =
            [single, double].map(|(seconds, own)| (1e6 * seconds, 100.0 * own));
        let title = case.title(&bench);
        println!("{title:<42} {f32s:>10.1} {f64s:>10.1} {own32:>12.1} % {own64:>12.1} %");
    }
    println!("\nown part: all but the five derivatives, that is mixing, updates, messages");
}

/// Iterations per second, for the comparison with peers.
fn rate(case: &Case, precision: &str, threads: &str) {
    let bench = case.bench(None);
    let threads = threads.parse().expect("a number of threads");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    let pool = (threads > 1).then_some(&pool);
    let mixing = &bench.world.mixing;
    let seconds = if precision == "f32" {
        let mut simulation = Simulation::new(bench.nodes::<f32>(), mixing, pool);
        fastest(BUDGET, || simulation.iterate())
    } else {
        let mut simulation = Simulation::new(bench.nodes::<f64>(), mixing, pool);
        fastest(BUDGET, || simulation.iterate())
    };
    println!("{}", 1.0 / seconds);
}

/// The mean outer loss after some iterations, to compare with other implementations.
fn loss(case: &Case, iterations: &str) {
    let bench = case.bench(None);
    let simulation = bench.run::<f64>(iterations.parse().expect("a number of iterations"));
    let mut parts = bench.parts::<f64>();
    let of = |(part, node): (&mut Box<dyn Bilevel<f64>>, &Node<f64>)| {
        part.metrics(node.algorithm.at()).into_iter().find(|(name, _)| *name == "loss").unwrap().1
    };
    let losses: Vec<f64> = parts.iter_mut().zip(simulation.nodes()).map(of).collect();
    println!("{}", losses.iter().sum::<f64>() / losses.len() as f64);
}
