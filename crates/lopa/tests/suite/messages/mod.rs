//! Messages on imperfect networks: whatever is compressed, lost, late or clipped, means are kept
//! and methods reach the same limits; naive schemes do not.

mod bad_input;
mod changing;
mod compressors;
mod failures;
mod golden;
mod liars;
mod limits;
mod means;

use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::experiment::{Experiment, Registries};
use lopa::run::{Context, Outcome};

/// Every option by itself, and some together.
pub const OPTIONS: [&str; 15] = [
    "compress = { name = 'top-k', share = 0.4 }",
    "compress = { name = 'random-k', share = 0.5 }",
    "compress = { name = 'quantise', bits = 4 }",
    "compress = 'bf16'",
    "compress = 'f16'",
    "compress = 'sign'",
    "drop = 0.2",
    "bursts = { begin = 0.05, end = 0.25 }",
    "active = 0.8",
    "late = 0.2",
    "clip = 0.5",
    "clip = { median = 1.5 }",
    "compress = { name = 'top-k', share = 0.5 }, drop = 0.1, late = 0.1, clip = { median = 2 }",
    "compress = 'f16', active = 0.9, bursts = { begin = 0.1, end = 0.5, drop = 0.7 }, clip = 5",
    "compress = { name = 'top-k', share = 0.5 }, drop = 0.1, late = 0.1, clip = 2",
];

/// Nodes with very different quadratics, without noise.
pub fn heterogeneous(messages: &str, more: &str) -> String {
    format!(
        "problem = {{ name = 'quadratic', n = 4, p = 3, condition = 2.0, heterogeneity = 0.5 }}
         network = {{ nodes = 5, graph = 'ring' }}
         messages = {{ {messages} }}
         {more}"
    )
}

/// Graphs that change, for eight nodes.
pub const CHANGING: [&str; 4] = [
    "'one-peer-exponential'",
    "'random-matching'",
    "{ name = 'random-edges', base = 'complete', p = 0.3 }",
    "{ name = 'sequence', graphs = ['path', 'star', 'ring'], every = 2 }",
];

/// The options that work on changing graphs: a radius that adapts needs fixed neighbours.
pub fn options() -> impl Iterator<Item = &'static str> {
    OPTIONS.into_iter().filter(|messages| !messages.contains("median"))
}

/// The same setup with eight nodes on another graph.
pub fn on(graph: &str, setup: &str) -> String {
    setup.replace("nodes = 5, graph = 'ring'", &format!("nodes = 8, graph = {graph}"))
}

pub const GT: &str = "name = 'lopa-gt', alpha = 0.03, beta = 0.9, lambda = 0.9";
/// With steps that suit rounds of one neighbour.
pub const CAREFUL: &str = "name = 'lopa-gt', alpha = 0.015, beta = 0.9, lambda = 0.9";
pub const LG: &str = "name = 'lopa-lg', alpha = 0.03, beta = 0.9, lambda = 0.9";

pub fn read(text: &str) -> lopa::error::Result<Experiment> {
    Experiment::read(&Source::new("test", text), &Registries::default())
}

/// Runs an experiment with one algorithm, on this thread or on several.
pub fn run(text: &str, algorithm: &str, threads: usize) -> Outcome {
    let text = format!("algorithm = [{{ {algorithm} }}]\n{text}");
    let experiment = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let never = AtomicBool::new(false);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let pool = (threads > 1).then_some(&pool);
    let context = Context { pool, data_dir: "".into(), interrupt: &never, probe: None };
    let mut outcomes =
        experiment.run_with(&context, &mut (), &mut ()).unwrap_or_else(|e| panic!("{e}"));
    outcomes.swap_remove(0)
}
