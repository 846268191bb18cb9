//! The limits of methods: the solution under every option, and another point with naive schemes.

use lopa::engine::Node;
use lopa::math::random::{Purpose, Stream};
use lopa::network::mixed::{Mixed, Row};
use lopa::network::outbox::{Outbox, Round};

use super::{GT, OPTIONS, heterogeneous, run};
use crate::common::bench::Bench;

fn end(iterations: usize) -> String {
    format!("run = {{ iterations = {iterations}, evaluations = 1, exact = 'end' }}")
}

/// ‖∇Φ(x̄)‖² and how far apart the nodes are, at the end.
fn errors(messages: &str, iterations: usize) -> (f64, f64) {
    let outcome = run(&heterogeneous(messages, &end(iterations)), GT, 1);
    (outcome.row.values["grad_phi_sq"], outcome.row.values["consensus"])
}

#[test]
fn tracking_reaches_the_solution_under_every_option() {
    for messages in OPTIONS {
        let (grad, apart) = errors(messages, 4000);
        // The rest is rounding: entries of the gradient are right to about 1e-14.
        assert!(grad < 1e-24 && apart < 1e-24, "{messages}: {grad:e}, {apart:e}");
    }
}

/// Differences shrink as the run converges, and with them the errors of compression: the rate is
/// linear, as without compression.
#[test]
fn the_rate_is_linear() {
    for messages in
        ["compress = { name = 'top-k', share = 0.4 }", "compress = 'sign'", "drop = 0.2"]
    {
        let [early, late] = [600, 1200].map(|k| errors(messages, k).0);
        assert!(late < early * 1e-2 && early > 1e-22, "{messages}: {early:e}, {late:e}");
    }
}

/// Compressing the messages themselves, without correcting the error.
#[test]
fn without_replicas_it_stays_away() {
    for compress in ["name = 'top-k', share = 0.5", "name = 'quantise', bits = 4", "name = 'sign'"]
    {
        let messages =
            format!("compress = {{ {compress}, feedback = false }}, consensus_step = 0.2");
        let (_, apart) = errors(&messages, 4000);
        assert!(apart > 1e-8, "{compress}: {apart:e}");
        let (grad, apart) = errors(&messages.replace("false", "true"), 4000);
        assert!(grad < 1e-12 && apart < 1e-12, "{compress}: {grad:e}, {apart:e}");
    }
}

/// A message that only one end misses: trackers lose the gradients' mean, so that a run ends where
/// the trackers vanish and the gradient does not.
#[test]
fn one_way_losses_end_elsewhere() {
    let bench = Bench::new(&heterogeneous("", &end(1)), GT);
    let mut nodes: Vec<Node<f64>> = bench.nodes();
    let others = |i: usize| bench.world.mixing.row(i).iter().filter(move |(j, _)| *j != i);
    let rows: Vec<Row<f64>> = (0..5).map(|i| others(i).copied().collect()).collect();
    let mut draw = Stream::new(1, Purpose::Failures, 0);
    let mut scratch = Vec::new();
    for k in 0..4000 {
        let mut messages = vec![Outbox::default(); 5];
        let all = nodes.iter().zip(&mut messages);
        all.for_each(|(node, out)| node.algorithm.share(Round { k, e: 0 }, out));
        for (i, node) in nodes.iter_mut().enumerate() {
            let lost: Vec<bool> = (0..5).map(|_| draw.unit() < 0.02).collect();
            let heard = |j: usize| messages[if lost[j] { i } else { j }].clone();
            let heard: Vec<_> = (0..5).map(heard).collect();
            node.oracle.begin(k);
            let mixed = Mixed::new(&rows[i], &messages[i], (&heard, &[]), &mut scratch);
            node.algorithm.step(0, mixed, &mut node.oracle);
            if let Some(wanted) = node.algorithm.asks(0) {
                node.oracle.answer(wanted);
            }
            node.algorithm.finish(0, &mut node.oracle);
        }
    }
    let mut gap = [0.0; 4];
    for (y, z) in nodes.iter().filter_map(|node| node.algorithm.tracked()) {
        gap.iter_mut().zip(y.iter().zip(z)).for_each(|(gap, (y, z))| *gap += (y - z) / 5.0);
    }
    let gap = gap.iter().fold(0.0, |most: f64, gap| most.max(gap.abs()));
    assert!(gap > 1e-4, "{gap:e}");
}
