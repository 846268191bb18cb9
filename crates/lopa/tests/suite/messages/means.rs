//! Mixing never changes the mean over the nodes, and all bytes sent are counted.

use lopa::engine::Simulation;
use lopa::engine::messages::{Compress, Failures, Messages};
use lopa::math::random::{Purpose, Stream};
use lopa::math::schedule::Schedule;

use super::{CAREFUL, CHANGING, GT, OPTIONS, heterogeneous, on, read, run};
use crate::common::bench::{Bench, rows};

/// The mean over the nodes of a variable.
fn mean(simulation: &Simulation<f64>, name: &str) -> Vec<f64> {
    let all = rows(simulation, name);
    let m = all.len() as f64;
    (0..all[0].len()).map(|at| all.iter().map(|row| row[at]).sum::<f64>() / m).collect()
}

fn gap(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |most, (a, b)| (a - b).abs().max(most))
}

/// Messages in random words, for a graph that stays or changes.
fn drawn(stream: &mut Stream, stays: bool) -> String {
    let mut keys = Vec::new();
    let share = stream.between(0.05, 1.0);
    let feedback = stream.unit() < 0.8;
    let compressors = [
        format!("name = 'top-k', share = {share}"),
        format!("name = 'random-k', share = {share}"),
        format!("name = 'quantise', bits = {}", 2 + stream.below(15)),
        "name = 'bf16'".into(),
        "name = 'f16'".into(),
        "name = 'sign'".into(),
    ];
    if stream.unit() < 0.7 {
        let compressor = &compressors[stream.below(compressors.len())];
        keys.push(format!("compress = {{ {compressor}, feedback = {feedback} }}"));
    }
    let mut some = |stream: &mut Stream, key: String| {
        if stream.unit() < 0.4 {
            keys.push(key);
        }
    };
    let key = format!("drop = {}", stream.between(0.0, 0.9));
    some(stream, key);
    let key = format!("late = {}", stream.between(0.0, 0.9));
    some(stream, key);
    // In all iterations, so that mean(x) moves as it would without messages.
    let (begin, end) = (stream.between(0.01, 1.0), stream.between(0.01, 1.0));
    some(stream, format!("bursts = {{ begin = {begin}, end = {end} }}"));
    let radius = stream.between(0.01, 2.0);
    // A radius that adapts needs neighbours that stay.
    let key = match stream.below(2) {
        1 if stays => format!("clip = {{ median = {radius} }}"),
        _ => format!("clip = {radius}"),
    };
    some(stream, key);
    let key = format!("consensus_step = {}", stream.between(0.01, 1.0));
    some(stream, key);
    keys.join(", ")
}

/// Graphs that stay, and graphs that change.
const GRAPHS: [&str; 10] = [
    "'path'",
    "'complete'",
    "'star'",
    "'erdos-renyi'",
    "'one-peer-exponential'",
    "'random-matching'",
    "{ name = 'random-matching', base = 'complete' }",
    "{ name = 'random-edges', base = 'complete', p = 0.4 }",
    "{ name = 'random-edges', base = 'path', p = 0.7 }",
    "{ name = 'sequence', graphs = ['path', 'star'], every = 2 }",
];

/// Thousands of random graphs, seeds and options: mean(x) moves by −τα mean(y) only, and
/// mean(y) = mean(z).
#[test]
fn means_move_as_without_messages() {
    const TAU: f64 = 0.7;
    for seed in 0..2000 {
        let mut stream = Stream::new(seed, Purpose::Data, 0);
        let graph = GRAPHS[stream.below(GRAPHS.len())];
        let stays = GRAPHS[..4].contains(&graph);
        let (nodes, messages) = (2 + stream.below(6), drawn(&mut stream, stays));
        // On other numbers of nodes its links work in one direction.
        let nodes = if graph.contains("one-peer") { 2 << stream.below(3) } else { nodes };
        let setup = format!(
            "problem = {{ name = 'quadratic', n = 3, p = 2, condition = 2.0, heterogeneity = 0.5 }}
             network = {{ nodes = {nodes}, graph = {graph}, weights = 'lazy-metropolis' }}
             messages = {{ {messages} }}
             run = {{ iterations = 1, seeds = [{seed}] }}"
        );
        let alpha = Schedule::from(0.03).at(0);
        let bench = Bench::new(&setup, &format!("{GT}, tau = {TAU}"));
        let mut simulation = bench.begin::<f64>();
        for k in 0..5 {
            let (x, y) = (mean(&simulation, "x"), mean(&simulation, "y"));
            simulation.iterate();
            let want: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x - TAU * alpha * y).collect();
            let moved = gap(&mean(&simulation, "x"), &want);
            assert!(moved < 1e-13, "{seed}, {k}: mean(x) is off by {moved}: {setup}");
            let apart = gap(&mean(&simulation, "y"), &mean(&simulation, "z"));
            assert!(apart < 1e-12, "{seed}, {k}: mean(y) is off by {apart}: {setup}");
        }
    }
}

/// Roundings do not add up to much.
#[test]
fn means_stay_over_ten_thousand_iterations() {
    for messages in OPTIONS {
        let setup = heterogeneous(messages, "run = { iterations = 1 }");
        let simulation = Bench::new(&setup, GT).run::<f64>(10_000);
        let apart = gap(&mean(&simulation, "y"), &mean(&simulation, "z"));
        assert!(apart < 1e-13, "{messages}: {apart}");
        if messages.contains("median") {
            continue;
        }
        let bench = Bench::new(&on(CHANGING[0], &setup), CAREFUL);
        let mut simulation = bench.begin::<f64>();
        (0..10_000).for_each(|_| simulation.iterate());
        let apart = gap(&mean(&simulation, "y"), &mean(&simulation, "z"));
        assert!(apart < 1e-13, "{messages}, on a graph that changes: {apart}");
    }
}

/// The size of a message of vectors with 11 entries, by hand.
fn by_hand(compress: &str, scalar: usize) -> usize {
    match compress {
        "compress = { name = 'top-k', share = 0.25 }" => 3 * (2 + scalar),
        "compress = { name = 'random-k', share = 0.25 }" => 3 * scalar,
        "compress = { name = 'quantise', bits = 5 }" => scalar + 7, // 55 bits
        "compress = 'bf16'" => 22,
        "compress = 'f16'" => 24,
        "compress = 'sign'" => scalar + 2,
        "clip = { median = 1 }" => 12 * scalar,
        _ => 11 * scalar,
    }
}

#[test]
fn bytes_are_a_closed_form() {
    let options = [
        "compress = { name = 'top-k', share = 0.25 }",
        "compress = { name = 'random-k', share = 0.25 }",
        "compress = { name = 'quantise', bits = 5 }",
        "compress = 'bf16'",
        "compress = 'f16'",
        "compress = 'sign'",
        "clip = { median = 1 }",
        "clip = 1",
    ];
    for compress in options {
        for (precision, scalar) in [("f32", 4), ("f64", 8)] {
            for fails in ["", ", drop = 0.3, active = 0.7"] {
                let text = format!(
                    "problem = {{ name = 'quadratic', n = 11, p = 2 }}
                     network = {{ nodes = 5, graph = 'ring' }}
                     messages = {{ {compress}{fails} }}
                     run = {{ iterations = 30, seeds = [3], precision = '{precision}', evaluations = 1 }}"
                );
                let messages = read(&format!("algorithm = [{{ {GT} }}]\n{text}")).unwrap().messages;
                let failures = Failures::new(&messages.unwrap().rules, 3, 5);
                let up = |k: u64, i: usize| {
                    let (i, j) = (i.min((i + 1) % 5), i.max((i + 1) % 5));
                    let awake = failures.awake(k, i) && failures.awake(k, j);
                    awake && failures.fate(k, (i, j)).up
                };
                let links: usize = (0..30).map(|k| (0..5).filter(|&i| up(k, i)).count()).sum();
                assert_eq!(links == 150, fails.is_empty());
                let outcome = run(&text, GT, 1);
                let tally = outcome.messages.unwrap();
                assert_eq!(tally.sent, 2 * links as u64, "{text}");
                // Two vectors, x and y, in either direction of a link.
                let bytes = 2 * links * 2 * by_hand(compress, scalar);
                assert_eq!(outcome.row.bytes, bytes as u64, "{text}");
            }
        }
    }
}

/// Without anything in it, the section changes nothing; nor does a link that never fails.
#[test]
fn nothing_said_is_nothing_done() {
    let end = "run = { iterations = 50, evaluations = 2 }";
    let plain = run(&heterogeneous("", end).replace("messages = {  }", ""), GT, 1);
    assert_eq!(plain.messages, None);
    let empty = run(&heterogeneous("", end), GT, 1);
    assert_eq!((empty.digest, empty.messages), (plain.digest.clone(), None));
    assert_eq!(Messages::default().compress.map(|Compress { feedback, .. }| feedback), None);
    let compressed = run(&heterogeneous("compress = 'bf16'", end), GT, 1);
    assert_ne!(compressed.digest, plain.digest);
}

/// The same bits on any number of threads.
#[test]
fn threads_do_not_matter() {
    for messages in OPTIONS {
        let text =
            heterogeneous(messages, "run = { iterations = 40, evaluations = 4, seeds = [7] }");
        let one = run(&text, GT, 1);
        let three = run(&text, GT, 3);
        assert_eq!((one.digest, one.row.bytes), (three.digest, three.row.bytes), "{messages}");
        assert_eq!(one.messages, three.messages);
    }
}
