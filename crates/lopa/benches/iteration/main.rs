//! What an iteration costs: `cargo bench --bench iteration [-- FILTER…]`.
//!
//! The problems are those of `docs/performance.md`: on the real data if `LOPA_DATA_DIR` has it,
//! else on made-up data of the same shape and sparsity. A figure is the least over many short
//! spells, since whatever else the machine does only adds to it.
//!
//! `-- export NAME DIR` writes what another implementation needs to compute the same thing, and
//! `-- once NAME` does one iteration between two marks, for instruction counts.

#[path = "../../tests/suite/common/bench.rs"]
#[allow(dead_code)]
mod bench;
mod cases;
mod scale;

use std::time::Instant;

use bench::Bench;
use cases::{CASES, Case};
use lopa::engine::{Node, Simulation};
use lopa::problem::Bilevel;
use lopa::real::Real;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["export", name, dir] => cases::export(cases::find(name), dir),
        ["rate", name, precision, threads] => rate(cases::find(name), precision, threads),
        ["loss", name, iterations] => loss(cases::find(name), iterations),
        ["scale", ref sizes @ ..] => scale::table(sizes),
        ["once", name] => once(cases::find(name)),
        _ => table(&args),
    }
}

fn table(filter: &[&str]) {
    println!(
        "{:<42} {:>12} {:>12} {:>9}",
        "one iteration, one thread", "f32 µs", "f64 µs", "f64/f32"
    );
    for case in CASES {
        if filter.is_empty() || filter.iter().any(|word| case.name.contains(word)) {
            let bench = case.bench(None);
            let (single, double) = (time(&mut bench.run::<f32>(3)), time(&mut bench.run::<f64>(3)));
            let (ratio, name) = (double / single, case.title(&bench));
            println!("{name:<42} {:>12.1} {:>12.1} {ratio:>9.2}", single * 1e6, double * 1e6);
        }
    }
    for (name, choice) in cases::ALGORITHMS {
        if filter.is_empty() || filter.iter().any(|word| name.contains(word)) {
            let bench = Bench::new(cases::QUADRATIC, choice);
            let (single, double) = (time(&mut bench.run::<f32>(3)), time(&mut bench.run::<f64>(3)));
            let (ratio, name) = (double / single, format!("quadratic, m = 8: {name}"));
            println!("{name:<42} {:>12.1} {:>12.1} {ratio:>9.2}", single * 1e6, double * 1e6);
        }
    }
}

/// Iterations a second, for the comparison with peers.
fn rate(case: &Case, precision: &str, threads: &str) {
    let bench = case.bench(None);
    let threads = threads.parse().expect("a number of threads");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    let pool = (threads > 1).then_some(&pool);
    let seconds = match precision {
        "f32" => time(&mut Simulation::new(bench.nodes::<f32>(), &bench.world.mixing, pool)),
        _ => time(&mut Simulation::new(bench.nodes::<f64>(), &bench.world.mixing, pool)),
    };
    println!("{}", 1.0 / seconds);
}

/// The mean outer loss after some iterations, to compare with others.
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

/// Seconds an iteration takes.
fn time<T: Real>(simulation: &mut Simulation<T>) -> f64 {
    let spell = |simulation: &mut Simulation<T>, iterations: usize| {
        let begin = Instant::now();
        (0..iterations).for_each(|_| simulation.iterate());
        begin.elapsed().as_secs_f64() / iterations as f64
    };
    // Spells shorter than the turns that a busy system gives out.
    let first = (0..5).map(|_| spell(simulation, 1)).fold(f64::INFINITY, f64::min);
    let iterations = (0.5e-3 / first).clamp(1.0, 1e4) as usize;
    let spells = (1.5 / (first * iterations as f64)).clamp(20.0, 3e3) as usize;
    (0..spells).map(|_| spell(simulation, iterations)).fold(f64::INFINITY, f64::min)
}

/// An iteration in each precision: callgrind counts what `marked_…` does.
fn once(case: &Case) {
    let bench = case.bench(None);
    marked_f32(&mut bench.run(3));
    marked_f64(&mut bench.run(3));
}

#[inline(never)]
fn marked_f32(simulation: &mut Simulation<f32>) {
    simulation.iterate();
}

#[inline(never)]
fn marked_f64(simulation: &mut Simulation<f64>) {
    simulation.iterate();
}
