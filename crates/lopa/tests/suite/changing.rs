//! Graphs that change: every round is doubly stochastic, every window connects, means are kept, bytes
//! are those of the links used, and tracking ends at the exact solution.

use std::collections::BTreeMap;

use lopa::config::{Choice, Registry, Source};
use lopa::engine::Simulation;
use lopa::error::Result;
use lopa::experiment::{Experiment, Registries};
use lopa::math::random::{Purpose, Stream};
use lopa::network::{self, Graph, Joint, Mixing, Rounds, graphs, weights};
use lopa::run::World;
use serde::Deserialize;

use crate::common::bench::*;

fn choice_in<B: ?Sized>(registry: &Registry<B>, text: &str) -> Result<Choice<B>> {
    let source = Source::new("test", format!("choice = {text}"));
    registry.read(source.root()?.required("choice")?)
}

/// The rounds of a changing graph, given as in a file.
fn rounds(graph: &str, rule: &str, nodes: usize, seed: u64) -> Result<(Graph, Rounds, Joint)> {
    let registry = graphs();
    let kind = network::settled(&registry, choice_in(&registry, graph)?)?;
    let rule = choice_in(&weights(), rule)?;
    let (whole, mixing) = network::build(&kind, &rule, nodes, seed)?;
    let (rounds, joint) = network::rounds(&kind, &rule, (&whole, &mixing), seed)?.unwrap();
    Ok((whole, rounds, joint))
}

const KINDS: [&str; 6] = [
    "'one-peer-exponential'",
    "'random-matching'",
    "{ name = 'random-matching', base = 'ring' }",
    "{ name = 'random-edges', base = 'complete', p = 0.3 }",
    "{ name = 'random-edges', base = { name = 'circulant', offsets = [1, 2] }, p = 0.6 }",
    "{ name = 'sequence', graphs = ['path', { name = 'star' }, 'ring'], every = 2 }",
];

/// Rows and columns sum to one, nothing is negative, entries are on links only; and whether it is
/// symmetric.
fn check_round(whole: &Graph, mixing: &Mixing, what: &str) -> bool {
    let w = dense(mixing);
    let m = w.len();
    for i in 0..m {
        let row: f64 = w[i].iter().sum();
        let column: f64 = w.iter().map(|row| row[i]).sum();
        assert!(
            (row - 1.0).abs() < 1e-14 && (column - 1.0).abs() < 1e-14,
            "{what}: {row}, {column}"
        );
        for j in 0..m {
            assert!(w[i][j] >= 0.0, "{what}");
            assert!(i == j || w[i][j] == 0.0 || whole.joins(i, j), "{what}: {i}, {j}");
        }
        let order: Vec<usize> = mixing.row(i).iter().map(|&(j, _)| j).collect();
        assert!(order.is_sorted() && order.contains(&i), "{what}: {order:?}");
    }
    (0..m).all(|i| (0..m).all(|j| w[i][j] == w[j][i]))
}

/// Whether links used in some rounds connect all nodes: an independent search.
fn connects(rounds: &Rounds, from: u64, count: u64) -> bool {
    let m = rounds.nodes();
    let mut near = vec![vec![]; m];
    let mut cursor = rounds.cursor();
    for round in from..from + count {
        cursor.go(round);
        for i in 0..m {
            for &(j, w) in cursor.mixing().row(i).iter().filter(|(j, _)| *j != i) {
                assert!(w > 0.0);
                near[i].push(j);
                near[j].push(i);
            }
        }
    }
    let (mut seen, mut stack) = (vec![false; m], vec![0]);
    while let Some(i) = stack.pop() {
        if !std::mem::replace(&mut seen[i], true) {
            stack.extend(&near[i]);
        }
    }
    seen.into_iter().all(|seen| seen)
}

/// Thousands of graphs: sizes, seeds, rules and kinds.
#[test]
fn every_round_is_doubly_stochastic_and_every_window_connects() {
    let mut stream = Stream::new(5, Purpose::Tuning, 0);
    let mut checked = 0;
    for seed in 0..60 {
        for kind in KINDS {
            // A circulant graph with these offsets has at least five nodes.
            let m = if kind.contains("circulant") { 5 } else { 1 } + stream.below(20);
            let rule = ["'metropolis'", "'lazy-metropolis'", "'max-degree'", "'laplacian'"]
                [stream.below(4)];
            let what = format!("{kind}, {rule}, {m} nodes, seed {seed}");
            let (whole, rounds, joint) = match rounds(kind, rule, m, seed) {
                Ok(found) => found,
                Err(error) => panic!("{what}: {error}"),
            };
            let window = rounds.window();
            assert!(joint.rho_round < 1.0 && joint.window == window, "{what}: {joint:?}");
            let mut cursor = rounds.cursor();
            let mut all = true;
            for round in 0..2 * window.max(4) {
                cursor.go(round);
                all &= check_round(&whole, cursor.mixing(), &what);
                checked += 1;
            }
            assert!(!rounds.is_symmetric() || all, "{what}");
            let directed = kind.contains("one-peer") && !m.is_power_of_two();
            assert_eq!(rounds.is_symmetric(), !directed, "{what}");
            for number in 0..4 {
                assert!(connects(&rounds, number * window, window), "{what}, window {number}");
            }
        }
    }
    assert!(checked > 3000, "{checked}");
}

/// A cursor that jumps finds the same W as one that steps: a run can be resumed anywhere.
#[test]
fn rounds_have_addresses() {
    for kind in KINDS {
        let (_, rounds, _) = rounds(kind, "'metropolis'", 9, 3).unwrap();
        let mut walking = rounds.cursor();
        let all: Vec<Mixing> = (0..40)
            .map(|round| {
                walking.go(round);
                walking.mixing().clone()
            })
            .collect();
        let mut stream = Stream::new(1, Purpose::Tuning, 0);
        let mut jumping = rounds.cursor();
        for _ in 0..100 {
            let round = stream.below(40);
            jumping.go(round as u64);
            assert_eq!(*jumping.mixing(), all[round], "{kind}, round {round}");
        }
        let (_, other, _) = self::rounds(kind, "'metropolis'", 9, 4).unwrap();
        let mut there = other.cursor();
        let differs = (0..40).any(|round| {
            there.go(round);
            *there.mixing() != all[round as usize]
        });
        assert_eq!(differs, kind.contains("random"), "{kind}");
    }
}

/// Pairs that meet at distances 1, 2, 4, … know the mean of all after as many rounds.
#[test]
fn one_peer_averages_completely() {
    for m in [2, 4, 8, 16, 64] {
        let (whole, rounds, joint) =
            rounds("'one-peer-exponential'", "'metropolis'", m, 1).unwrap();
        assert_eq!(joint.window, u64::from(m.ilog2()));
        assert!(joint.rho_window < 1e-20, "{m}: {joint:?}");
        assert_eq!((joint.messages, whole.max_degree()), (1.0, m.ilog2() as usize));
        let mut cursor = rounds.cursor();
        let mut values: Vec<f64> = (0..m).map(|i| (i * i) as f64).collect();
        let mean = values.iter().sum::<f64>() / m as f64;
        for round in 0..joint.window {
            cursor.go(round);
            let row = |i: usize| cursor.mixing().row(i).iter().map(|&(j, w)| w * values[j]).sum();
            values = (0..m).map(row).collect();
        }
        assert!(values.iter().all(|&value| value == mean), "{m}");
    }
}

/// ρ of a window against the norm of the dense product, by power iteration.
#[test]
fn rho_of_a_window_is_the_norm_of_its_product() {
    for (kind, m) in [(KINDS[0], 6), (KINDS[0], 11), (KINDS[5], 7)] {
        let (_, rounds, joint) = rounds(kind, "'metropolis'", m, 1).unwrap();
        let mut cursor = rounds.cursor();
        let identity = |i: usize| (0..m).map(|j| f64::from(u8::from(i == j))).collect();
        let mut product: Vec<Vec<f64>> = (0..m).map(identity).collect();
        for round in 0..joint.window {
            cursor.go(round);
            let w = dense(cursor.mixing());
            let entry = |i: usize, j: usize| (0..m).map(|k| w[i][k] * product[k][j]).sum();
            product = (0..m).map(|i| (0..m).map(|j| entry(i, j)).collect()).collect();
        }
        product.iter_mut().flatten().for_each(|entry| *entry -= 1.0 / m as f64);
        let mut v: Vec<f64> = (0..m).map(|i| ((7 * i + 3) % 5) as f64 - 1.0).collect();
        let mut size = 0.0;
        for _ in 0..20_000 {
            let image: Vec<f64> =
                product.iter().map(|row| row.iter().zip(&v).map(|(a, v)| a * v).sum()).collect();
            let back = |j: usize| (0..m).map(|i| product[i][j] * image[i]).sum::<f64>();
            v = (0..m).map(back).collect();
            size = norm(&v);
            v.iter_mut().for_each(|v| *v /= size);
        }
        let off = (joint.rho_window - size).abs();
        assert!(off < 1e-9 * size, "{kind}, {m}: {} and {size}", joint.rho_window);
        let again = joint.rho_round.powi(joint.window as i32);
        assert!((again - joint.rho_window).abs() < 1e-12, "{joint:?}");
    }
}

const QUADRATIC: &str =
    "problem = { name = 'quadratic', n = 4, p = 3, condition = 2.0, heterogeneity = 1.0 }";

fn bench(graph: &str, nodes: usize, algorithm: &str) -> Bench {
    let setup = format!(
        "{QUADRATIC}
         network = {{ nodes = {nodes}, graph = {graph} }}
         run = {{ iterations = 1 }}"
    );
    Bench::new(&setup, algorithm)
}

const GT: &str = "name = 'lopa-gt', alpha = 0.02, beta = 0.9, lambda = 0.9, tau = 0.5";

fn start(bench: &Bench) -> Simulation<'_, f64> {
    let World { mixing, rounds, .. } = &bench.world;
    Simulation::new(bench.nodes(), mixing, None).over(rounds.as_ref())
}

/// mean(y) = mean(z) through ten thousand rounds, and x ends at the minimiser: both need every round
/// to be doubly stochastic.
#[test]
fn means_are_kept_and_tracking_is_exact_on_each() {
    for kind in KINDS {
        for nodes in [6, 8] {
            let bench = bench(kind, nodes, GT);
            let mut simulation = start(&bench);
            let mut floats = 0;
            let (mut cursor, length) = (bench.world.rounds.as_ref().unwrap().cursor(), 2 * 4);
            for k in 0..10_000 {
                let before = mean(&rows(&simulation, "x"));
                let y = mean(&rows(&simulation, "y"));
                cursor.go(k);
                floats += cursor.mixing().arrows() * length;
                simulation.iterate();
                let after = mean(&rows(&simulation, "x"));
                // mean(x) moves by −τα mean(y) only.
                let moved: Vec<f64> = before.iter().zip(&y).map(|(x, y)| x - 0.01 * y).collect();
                let off = distance(&moved, &after);
                assert!(off < 1e-12 * (1.0 + norm(&before)), "{kind}, {nodes}, {k}: {off:e}");
            }
            assert_eq!((simulation.floats(), simulation.exchanges()), (floats, 10_000), "{kind}");
            let gap = distance(&mean(&rows(&simulation, "y")), &mean(&rows(&simulation, "z")));
            assert!(gap < 1e-11, "{kind}: {gap:e}");
            let x = rows(&simulation, "x");
            assert!(spread(&x) < 1e-20, "{kind}, {nodes}: {:e}", spread(&x));
            // The same point as on a fixed graph.
            let fixed = self::bench("'complete'", nodes, GT);
            let there = mean(&rows(&fixed.run::<f64>(10_000), "x"));
            assert!(distance(&there, &mean(&x)) < 1e-9, "{kind}, {nodes}");
        }
    }
}

/// A round with one neighbour costs the bytes of one message per node; an idle node costs nothing.
#[test]
fn bytes_are_those_of_the_links_used() {
    let sent = |kind: &str, nodes: usize| {
        let bench = bench(kind, nodes, GT);
        let mut simulation = start(&bench);
        (0..12).for_each(|_| simulation.iterate());
        simulation.floats()
    };
    assert_eq!(sent("'one-peer-exponential'", 8), 12 * 8 * 8);
    assert_eq!(sent("'one-peer-exponential'", 7), 12 * 7 * 8);
    assert_eq!(sent("'random-matching'", 8), 12 * 8 * 8);
    assert_eq!(sent("'random-matching'", 7), 12 * 6 * 8);
    // Ring, then star: 12 and 10 messages of 8 numbers, three rounds each in turn.
    let turns = "{ name = 'sequence', graphs = ['ring', 'star'], every = 3 }";
    assert_eq!(sent(turns, 6), 6 * (12 + 10) * 8);
}

/// No iteration allocates, for any draw.
#[test]
fn rounds_allocate_nothing() {
    for kind in KINDS {
        let bench = bench(kind, 12, GT);
        let mut simulation = start(&bench);
        (0..3).for_each(|_| simulation.iterate());
        let before = lopa::conformance::Counting::allocations();
        (0..100).for_each(|_| simulation.iterate());
        assert_eq!(lopa::conformance::Counting::allocations() - before, 0, "{kind}");
    }
}

#[derive(Deserialize)]
struct Golden {
    #[serde(rename = "W")]
    w: Vec<Vec<Vec<f64>>>,
    init: BTreeMap<String, Vec<Vec<f64>>>,
    algorithms: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    params: toml::Table,
    states: Vec<BTreeMap<String, Vec<Vec<f64>>>>,
}

/// LoPA on one-peer graphs against an independent implementation: `golden/make_rounds.py`.
#[test]
fn one_peer_trajectories_are_those_of_numpy() {
    for m in [4, 5] {
        let path = format!("{}/tests/golden/rounds_{m}.json", env!("CARGO_MANIFEST_DIR"));
        let golden: Golden =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for case in &golden.algorithms {
            let setup = format!(
                "problem = {{ name = 'quadratic', file = {path:?} }}
                 network = {{ nodes = {m}, graph = 'one-peer-exponential' }}
                 run = {{ iterations = 1 }}"
            );
            let params: Vec<String> =
                case.params.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            let bench =
                Bench::new(&setup, &format!("name = '{}', {}", case.name, params.join(", ")));
            let World { mixing, rounds, .. } = &bench.world;
            let mut cursor = rounds.as_ref().unwrap().cursor();
            for (k, want) in golden.w.iter().enumerate() {
                cursor.go(k as u64);
                assert_eq!(dense(cursor.mixing()), *want, "{m} nodes, round {k}");
            }
            let from = |i: usize| ["x", "theta", "v"].map(|name| golden.init[name][i].clone());
            let node = |(i, part)| bench.node_from(i, part, from(i), &[]);
            let nodes = bench.parts::<f64>().into_iter().enumerate().map(node).collect();
            let mut simulation = Simulation::new(nodes, mixing, None).over(rounds.as_ref());
            for (k, want) in case.states.iter().enumerate() {
                for (name, want) in want {
                    let ours = rows(&simulation, name);
                    for (ours, want) in ours.iter().zip(want) {
                        let off = largest(&minus(ours, want));
                        let what = format!("{m} nodes, {}, k = {k}, {name}", case.name);
                        assert!(off <= 1e-12 * largest(want).max(1.0), "{what}: {off:e}");
                    }
                }
                simulation.iterate();
            }
        }
    }
}

/// Every key of every changing graph, wrong in every way.
#[test]
fn bad_keys_are_refused() {
    let cases = [
        ("{ name = 'one-peer-exponential', p = 1 }", "config/unknown-key"),
        ("{ name = 'one-peer-exponental' }", "config/unknown-name"),
        ("{ name = 'random-matching', base = 7 }", "config/wrong-type"),
        ("{ name = 'random-matching', base = 'rign' }", "config/unknown-name"),
        ("{ name = 'random-matching', base = { p = 1 } }", "config/missing-key"),
        ("{ name = 'random-matching', base = { name = 'ring', p = 1 } }", "config/unknown-key"),
        ("{ name = 'random-matching', base = 'random-matching' }", "network/nested-rounds"),
        ("{ name = 'random-matching', window = 0 }", "config/out-of-range"),
        ("{ name = 'random-matching', window = 20000 }", "config/out-of-range"),
        ("{ name = 'random-matching', window = 1 }", "network/short-window"),
        ("{ name = 'random-matching', window = 'long' }", "config/wrong-type"),
        ("{ name = 'random-matching', window = -1 }", "config/wrong-type"),
        ("{ name = 'random-matching', windows = 4 }", "config/unknown-key"),
        ("'random-edges'", "config/missing-key"),
        ("{ name = 'random-edges', base = 'ring', p = 0 }", "config/out-of-range"),
        ("{ name = 'random-edges', base = 'ring', p = 1.1 }", "config/out-of-range"),
        ("{ name = 'random-edges', base = 'ring', p = nan }", "config/out-of-range"),
        ("{ name = 'random-edges', base = 'ring', p = 'half' }", "config/wrong-type"),
        ("{ name = 'random-edges', base = 'ring', p = 0.01, window = 3 }", "network/short-window"),
        ("{ name = 'random-edges', base = 'sequence' }", "config/missing-key"),
        ("{ name = 'random-edges', base = 'hypercube' }", "network/impossible-size"),
        ("'sequence'", "config/missing-key"),
        ("{ name = 'sequence', graphs = [] }", "config/out-of-range"),
        ("{ name = 'sequence', graphs = 'ring' }", "config/wrong-type"),
        ("{ name = 'sequence', graphs = ['ring', 3] }", "config/wrong-type"),
        ("{ name = 'sequence', graphs = ['ring'], every = 0 }", "config/out-of-range"),
        ("{ name = 'sequence', graphs = ['ring'], every = 10001 }", "config/out-of-range"),
        ("{ name = 'sequence', graphs = ['ring'], every = 1.5 }", "config/wrong-type"),
        (
            "{ name = 'sequence', graphs = ['ring', 'one-peer-exponential'] }",
            "network/nested-rounds",
        ),
        ("{ name = 'sequence', graphs = ['ring'], evry = 2 }", "config/unknown-key"),
    ];
    for (graph, id) in cases {
        let text = format!(
            "{QUADRATIC}
             network = {{ nodes = 6, graph = {graph} }}
             run = {{ iterations = 1 }}
             algorithm = [{{ {GT} }}]"
        );
        let read = Experiment::read(&Source::new("test", &text), &Registries::default());
        let error = read.and_then(|experiment| experiment.world(None, 1).map(|_| ())).unwrap_err();
        assert_eq!(error.id, id, "{graph}: {error}");
        assert!(error.place.is_some(), "{graph}: {error}");
    }
    // Weights that belong to one graph, and rounds that never mix.
    let given = "{ name = 'matrix', rows = [[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]] }";
    let turns = "{ name = 'sequence', graphs = ['path', 'star'] }";
    assert_eq!(
        rounds("'one-peer-exponential'", given, 3, 1).unwrap_err().id,
        "network/edge-without-weight"
    );
    assert_eq!(
        rounds("{ name = 'random-matching', base = 'path' }", given, 3, 1).unwrap_err().id,
        "network/fixed-weights"
    );
    assert_eq!(rounds(turns, given, 3, 1).unwrap_err().id, "network/edge-without-weight");
    let edges = "{ name = 'random-edges', base = 'path', p = 0.5 }";
    assert!(rounds(edges, given, 3, 1).is_ok());
    let swap = "{ name = 'sequence', graphs = ['path'] }";
    assert_eq!(rounds(swap, "'constant'", 2, 1).unwrap_err().id, "network/never-mixes");
}
