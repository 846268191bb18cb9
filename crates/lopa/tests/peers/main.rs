//! Peers: on any network and through any crash they reach the digest of a single process.

// Expected values may be the system's: they are compared with a tolerance.
#![allow(clippy::disallowed_methods)]

mod back;
mod changing;
mod cluster;
mod connections;
mod dialling;
mod diverging;
mod faulty;
mod hostile;
mod leave;
mod leaving;
mod malicious;
mod masked;
mod policies;
mod private;
mod progress;
mod relay;
mod relays;
mod skips;
mod waits;

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use lopa::algorithms::algorithms;
use lopa::config::Source;
use lopa::experiment::Experiment;
use lopa::math::random::Stream;
use lopa::run::{Context, Outcome};

use faulty::{Cut, Death, Faults, seconds};

const PERSONAL: &str = include_str!("../../../../experiments/quadratic.toml");
const GLOBAL: &str = include_str!("../../../../experiments/quadratic-global.toml");

/// The outcomes of a single process.
fn single_process(experiment: &Experiment) -> Vec<Outcome> {
    let never = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &never, probe: None };
    experiment.run_with(&context, &mut (), &mut ()).unwrap()
}

fn read(text: &str, sets: &[String]) -> Experiment {
    let source = Source { sets: sets.to_vec(), ..Source::new("test", text) };
    Experiment::read(&source, &lopa::experiment::Registries::default())
        .unwrap_or_else(|error| panic!("{error}\n{sets:?}"))
}

/// Seeds of clusters to run; an environment variable `from..to` overrides them.
fn seeds(variable: &str, usual: Range<u64>) -> Range<u64> {
    let Ok(asked) = std::env::var(variable) else { return usual };
    let (from, to) = asked.split_once("..").expect("from..to");
    from.parse().unwrap()..to.parse().unwrap()
}

/// Messages as they are, half of the time; else compressed, lost, late or clipped.
fn drawn_messages(stream: &mut Stream) -> Vec<String> {
    // Addresses of their own: experiments drawn before have the same draws after.
    let mut stream = stream.clone();
    stream.seek(1, 0);
    let all = [
        "messages.drop=0.3",
        "messages.bursts={begin=0.3,end=0.5}",
        "messages.active=0.7",
        "messages.late=0.3",
        "messages.clip={median=1.5}",
    ];
    let compressors = [
        "{name='top-k',share=0.5}",
        "{name='random-k',share=0.5}",
        "'quantise'",
        "'f16'",
        "'sign'",
    ];
    let mut sets = Vec::new();
    if stream.unit() < 0.5 {
        return sets;
    }
    sets.extend(all.into_iter().filter(|_| stream.unit() < 0.3).map(String::from));
    if stream.unit() < 0.5 {
        let compressor = compressors[stream.below(compressors.len())];
        sets.push(format!("messages.compress={compressor}"));
    }
    sets
}

/// A small random experiment.
fn drawn(stream: &mut Stream) -> Experiment {
    let global = stream.unit() < 0.3;
    let nodes = 2 + stream.below(4);
    let graphs: &[&str] = match nodes {
        2 => &["path", "complete"],
        _ => &["path", "complete", "star", "ring", "erdos-renyi"],
    };
    let graph = graphs[stream.below(graphs.len())];
    let iterations = 2 + stream.below(14);
    let (every, evaluations) = (1 + stream.below(5), 1 + stream.below(3));
    let precision = ["f32", "f64"][stream.below(2)];
    let mut sets = vec![
        format!("network.nodes={nodes}"),
        format!("network.graph={graph}"),
        "problem.n=2".into(),
        "problem.p=2".into(),
        "problem.noise=0.5".into(),
        "problem.samples=5".into(),
        "run.batch=2".into(),
        // Random networks differ between seeds.
        format!("run.seeds={}", ["[1]", "[1]", "[1]", "[3,4]"][stream.below(4)]),
        format!("run.iterations={iterations}"),
        format!("run.evaluations={evaluations}"),
        format!("run.precision={precision}"),
        "run.exact=never".into(),
        format!("checkpoint.iterations={every}"),
    ];
    sets.extend(drawn_messages(stream));
    let mut experiment = read(if global { GLOBAL } else { PERSONAL }, &sets);
    let first = stream.below(experiment.algorithms.len());
    experiment.algorithms.rotate_left(first);
    experiment.algorithms.truncate(1 + usize::from(stream.unit() < 0.1));
    leave_steps_out(&mut experiment, stream);
    experiment
}

/// Half of the time, algorithms that can find their step sizes.
fn leave_steps_out(experiment: &mut Experiment, stream: &Stream) {
    // Addresses of their own, as for messages.
    let mut stream = stream.clone();
    stream.seek(2, 0);
    if stream.unit() < 0.5 {
        return;
    }
    for spec in &mut experiment.algorithms {
        let mut params = spec.choice.params().clone();
        ["alpha", "beta", "lambda"].iter().for_each(|key| drop(params.remove(*key)));
        if let Ok(choice) = algorithms().choose(&spec.choice.name, &params) {
            spec.choice = choice;
        }
    }
}

/// Random faults; they cease after the first seconds of a run.
fn drawn_faults(stream: &mut Stream, nodes: usize) -> Faults {
    let some = |stream: &mut Stream, max: f64| {
        if stream.unit() < 0.5 { 0.0 } else { stream.between(0.0, max) }
    };
    let mut deaths = Vec::new();
    for _ in 0..stream.below(4) {
        let at = seconds(stream.between(0.0, 3.0));
        deaths.push(Death {
            node: stream.below(nodes),
            at,
            downtime: seconds(stream.between(0.0, 5.0)),
        });
    }
    deaths.sort_by_key(|death| death.at);
    let mut cuts = Vec::new();
    for _ in 0..stream.below(3) {
        let (from, to) = (stream.below(nodes), stream.below(nodes));
        let since = stream.between(0.0, 2.0);
        let (since, until) = (seconds(since), seconds(since + stream.between(0.0, 5.0)));
        cuts.push(Cut { from, to, since, until });
        if stream.unit() < 0.5 {
            cuts.push(Cut { from: to, to: from, since, until });
        }
    }
    Faults {
        loss: some(stream, 0.3),
        duplicate: some(stream, 0.5),
        late: some(stream, 0.3),
        damage: some(stream, 0.05),
        torn: some(stream, 0.3),
        reported: [0.0, 1.0][stream.below(2)],
        cuts,
        deaths,
        calm: seconds(20.0),
        ..Faults::default()
    }
}

/// The same on a network where machines must connect, slow links among them.
fn drawn_connections(stream: &mut Stream, nodes: usize) -> Faults {
    let delay = 10f64.powf(stream.between(-3.0, -0.3));
    Faults { connects: true, delay, ..drawn_faults(stream, nodes) }
}
