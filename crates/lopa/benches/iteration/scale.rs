//! Many nodes: what one of them costs an iteration, and how much memory all take.

use std::time::Instant;

use lopa::data::Data;
use lopa::engine::Simulation;
use lopa::problem::Bilevel;
use lopa::problems::{Setting, problems};
use lopa::random::{Purpose, Stream};
use lopa::registry::find;
use lopa::scope::Scope;

use crate::bench::Bench;

/// Samples that every node draws from the digits; they are shared, not copied.
const SAMPLES: usize = 60;

const ITERATIONS: usize = 20;

/// One line for each number of nodes.
pub fn table(sizes: &[&str]) {
    println!("{:>8} {:>16} {:>18} {:>14}", "nodes", "start, s", "µs a node and it.", "MB");
    let sizes = if sizes.is_empty() { &["8", "100", "1000", "10000"][..] } else { sizes };
    sizes.iter().for_each(|nodes| line(nodes.parse().expect("a number of nodes")));
}

fn line(nodes: usize) {
    let begin = Instant::now();
    let setup = "problem = { name = 'representation', hidden = [20], ridge = 0.01 }
         data = { name = 'digits' }
         network = { nodes = 8, graph = 'ring', weights = 'lazy-metropolis' }
         run = { iterations = 1, batch = 32 }";
    let algorithm = "name = 'lopa-gt', alpha = 1.0, beta = 0.3, lambda = 0.3";
    let bench = Bench::new(setup, algorithm);
    let ring = format!(
        "problem = {{ name = 'quadratic' }}
         network = {{ nodes = {nodes}, graph = {{ name = 'random-regular', degree = 4 }}, weights = 'lazy-metropolis' }}
         run = {{ iterations = 1 }}"
    );
    let world = Bench::new(&ring, algorithm).world;
    let before = resident();
    let parts = parts(&bench, nodes);
    let nodes_of = parts.into_iter().enumerate().map(|(i, part)| bench.node::<f32>(i, part));
    let mut simulation = Simulation::new(nodes_of.collect(), &world.mixing, None);
    simulation.iterate();
    let start = begin.elapsed().as_secs_f64();
    let spell = |_| {
        let begin = Instant::now();
        simulation.iterate();
        begin.elapsed().as_secs_f64()
    };
    let best = (0..ITERATIONS).map(spell).fold(f64::INFINITY, f64::min);
    let cost = best / nodes as f64 * 1e6;
    println!("{nodes:>8} {start:>16.2} {cost:>18.2} {:>14.1}", resident() - before);
}

/// Parts of nodes that may have samples in common: there are fewer digits than nodes.
fn parts(bench: &Bench, nodes: usize) -> Vec<Box<dyn Bilevel<f32>>> {
    let data: &Data = bench.data.as_ref().expect("digits");
    let draw = |node: usize| {
        let mut stream = Stream::new(1, Purpose::Data, node);
        (0..SAMPLES).map(|_| stream.below(data.train.len()) as u32).collect()
    };
    let partition: Vec<Vec<u32>> = (0..nodes).map(draw).collect();
    let setting = Setting {
        nodes,
        seed: 1,
        scope: Scope::Personal,
        batch: Some(32),
        data: Some(data),
        partition: &partition,
    };
    let registry = problems::<f32>();
    let kind = &find("problem", &registry, "representation").expect("it is there").build;
    kind.parts(&bench.experiment.problem.params, &setting).expect("enough samples")
}

/// Megabytes of memory that this process has in use.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.map_or(f64::NAN, |pages| pages * 4096.0 / 1e6)
}
