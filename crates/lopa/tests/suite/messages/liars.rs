//! Lying nodes, and the effect of clipping.

use super::{GT, LG, heterogeneous, run};

const END: &str = "run = { iterations = 1500, evaluations = 1, exact = 'end' }";

/// ‖∇Φ(x̄)‖² of the honest nodes' problem, at their mean.
fn harm(messages: &str, attack: &str, algorithm: &str) -> f64 {
    let attack = if attack.is_empty() { "" } else { &format!("attack = {{ {attack} }}") };
    let text = heterogeneous(messages, &format!("{attack}\n{END}"));
    let text = text.replace("graph = 'ring'", "graph = 'complete'");
    run(&text, algorithm, 1).row.values.get("grad_phi_sq").copied().unwrap_or(f64::INFINITY)
}

const CONSTANT: &str = "nodes = [2], kind = 'constant', size = 1000";

#[test]
fn clipping_bounds_the_harm_of_a_liar() {
    let open = harm("", CONSTANT, LG);
    let [wide, narrow] = ["clip = 1", "clip = 0.1"].map(|clip| harm(clip, CONSTANT, LG));
    assert!(open > 1e3, "{open:e}");
    assert!(wide < open / 1e4 && narrow < wide, "{open:e}, {wide:e}, {narrow:e}");
    let adaptive = harm("clip = { median = 1 }", CONSTANT, LG);
    assert!(adaptive < open / 100.0, "{adaptive:e}");
}

/// False trackers add up: clipping helps local gradients and hardly tracking.
#[test]
fn tracking_needs_honest_neighbours() {
    let [lg, gt] = [LG, GT].map(|algorithm| harm("clip = 0.1", CONSTANT, algorithm));
    assert!(gt > 10.0 * lg, "{gt:e}, {lg:e}");
}

/// Without a lying node, a radius larger than all distances changes nothing.
#[test]
fn clipping_costs_nothing_among_honest_nodes() {
    let [plain, clipped] = ["", "clip = 100"].map(|clip| harm(clip, "", LG));
    assert!((plain - clipped).abs() <= 1e-9 * plain, "{plain:e}, {clipped:e}");
}

#[test]
fn every_lie_does_harm() {
    let honest = harm("", "", GT);
    for kind in ["sign-flip", "noise", "constant"] {
        let found = harm("", &format!("nodes = [0, 4], kind = '{kind}', size = 3"), GT);
        assert!(found > 1e3 * honest.max(1e-12), "{kind}: {found:e}");
    }
}

/// Measures of honest nodes do not depend on a lying node's messages or point.
#[test]
fn measures_are_of_honest_nodes() {
    // Nothing is mixed before the first iteration: all nodes are still where they started.
    let text = |attack: &str| {
        heterogeneous("", &format!("{attack}\nrun = {{ iterations = 1, evaluations = 1 }}"))
    };
    let all = run(&text(""), LG, 1).nodes;
    let outcome = run(&text("attack = { nodes = [1], kind = 'noise', size = 0 }"), LG, 1);
    assert_eq!(outcome.nodes.len(), all.len());
    let losses = |nodes: &[Vec<(String, f64)>], skip: usize| -> f64 {
        let kept = nodes.iter().enumerate().filter(|(i, _)| *i != skip);
        let losses: Vec<f64> = kept.map(|(_, node)| node[0].1).collect();
        losses.iter().sum::<f64>() / losses.len() as f64
    };
    let name = &outcome.nodes[0][0].0;
    let (mine, want) = (outcome.row.values[name], losses(&outcome.nodes, 1));
    assert!((mine - want).abs() < 1e-12 * want.abs().max(1.0), "{mine}, {want}");
    assert!((mine - losses(&outcome.nodes, 9)).abs() > 1e-9);
}
