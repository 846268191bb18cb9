//! Many nodes: the cost of an iteration per node, and the memory of all.

use std::time::Instant;

use lopa::data::Data;
use lopa::engine::Simulation;
use lopa::math::random::{Purpose, Stream};
use lopa::network;
use lopa::problem::scope::Scope;
use lopa::problem::{Bilevel, Setting};

use crate::BUDGET;
use crate::bench::Bench;
use crate::clock::fastest;

/// Samples that each node draws from the digits; they are shared, not copied.
const SAMPLES: usize = 60;

const SIZES: [usize; 6] = [8, 32, 100, 1000, 3000, 10_000];

const TITLE: &str =
    "µs per node and iteration: LoPA-GT, digits, 20 hidden units, batch 32, degree 4";

/// One line per number of nodes, and a drawing if a path is given.
pub fn table(svg: Option<&str>) {
    println!("{TITLE}, f32, one thread\n");
    println!("{:>8} {:>10} {:>8} {:>10} {:>12}", "nodes", "start, s", "µs", "MB", "kB per node");
    let points: Vec<(usize, f64)> = SIZES.map(|nodes| (nodes, line(nodes))).to_vec();
    let costs = points.iter().map(|point| point.1);
    let (lowest, highest) = costs.fold((f64::INFINITY, 0.0), |(a, b), c| (c.min(a), c.max(b)));
    println!("\nthe most expensive size costs {:.2} times the cheapest", highest / lowest);
    if let Some(path) = svg {
        let drawing = crate::plot::svg(TITLE, &points);
        std::fs::write(path, drawing).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

/// Prints the cost of this many nodes; returns the microseconds per node and iteration.
fn line(nodes: usize) -> f64 {
    let begin = Instant::now();
    let setup = "problem = { name = 'representation', hidden = [20], ridge = 0.01 }
         data = { name = 'digits' }
         network = { nodes = 8, graph = 'ring', weights = 'lazy-metropolis' }
         run = { iterations = 1, batch = 32 }";
    let algorithm = "name = 'lopa-gt', alpha = 1.0, beta = 0.3, lambda = 0.3";
    let bench = Bench::new(setup, algorithm);
    let params = "degree = 4".parse().expect("a table");
    let graph = network::graphs().choose("random-regular", &params).expect("a graph");
    let weights = bench.experiment.network.weights.clone();
    let (_, mixing) = network::build(&graph, &weights, nodes, 1).expect("a graph");
    let before = resident();
    let parts = parts(&bench, nodes);
    let nodes_of = parts.into_iter().enumerate().map(|(i, part)| bench.node::<f32>(i, part));
    let mut simulation = Simulation::new(nodes_of.collect(), &mixing, None);
    simulation.iterate();
    let start = begin.elapsed().as_secs_f64();
    let cost = 1e6 * fastest(BUDGET, || simulation.iterate()) / nodes as f64;
    let megabytes = resident() - before;
    let kilobytes = 1e3 * megabytes / nodes as f64;
    println!("{nodes:>8} {start:>10.2} {cost:>8.1} {megabytes:>10.1} {kilobytes:>12.1}");
    cost
}

/// Parts of nodes, which may have samples in common, because there are fewer digits than nodes.
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
        ..Setting::default()
    };
    let problem = bench.experiment.problem.build.get::<f32>();
    problem.parts(&setting, 0..nodes).expect("enough samples").each
}

/// Resident memory of this process, in megabytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.map_or(f64::NAN, |pages| pages * 4096.0 / 1e6)
}
