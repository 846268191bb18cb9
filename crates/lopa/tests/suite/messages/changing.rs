//! Messages on graphs that change: replicas belong to links, and only those of the round are used.

use std::collections::BTreeMap;

use lopa::engine::Simulation;
use lopa::engine::messages::Failures;

use super::{CAREFUL, CHANGING, GT, heterogeneous, on, options, read, run};
use crate::common::bench::{Bench, rows};
use crate::common::golden::matrix;

fn end(iterations: usize) -> String {
    format!("run = {{ iterations = {iterations}, evaluations = 1, exact = 'end', seeds = [3] }}")
}

/// On pairs, mixing is the same sum with and without `[messages]`: an option that never acts changes no
/// bit.
#[test]
fn an_option_that_never_acts_changes_no_bit() {
    let run = |graph: &str, messages: &str, threads| {
        run(&on(graph, &heterogeneous(messages, &end(60))), GT, threads)
    };
    for graph in [CHANGING[0], CHANGING[1], "{ name = 'random-matching', base = 'ring' }"] {
        let plain = run(graph, "", 1);
        for messages in ["clip = 1e30", "drop = 1e-300", "compress = { name = 'top-k', share = 1 }"]
        {
            let mailed = run(graph, messages, 1);
            if !messages.contains("top-k") {
                assert_eq!(mailed.digest, plain.digest, "{graph}, {messages}");
                assert_eq!(mailed.row.bytes, plain.row.bytes);
            }
            // With all entries, a replica is the vector up to rounding.
            let (a, b) = (&mailed.row.values["x_error"], &plain.row.values["x_error"]);
            assert!((a - b).abs() < 1e-12 * b.abs().max(1.0), "{graph}, {messages}: {a}, {b}");
        }
    }
}

#[test]
fn threads_do_not_matter() {
    for (at, messages) in options().enumerate() {
        let text = on(CHANGING[at % CHANGING.len()], &heterogeneous(messages, &end(40)));
        let [one, three] = [1, 3].map(|threads| run(&text, GT, threads));
        assert_eq!((one.digest, one.row.bytes), (three.digest, three.row.bytes), "{text}");
        assert_eq!(one.messages, three.messages);
    }
}

/// LoPA-GT still ends at the exact solution: every option, each on two of the graphs.
#[test]
fn tracking_reaches_the_solution() {
    for (at, messages) in options().enumerate() {
        for graph in [CHANGING[at % 4], CHANGING[(at + 1) % 4]] {
            let outcome = run(&on(graph, &heterogeneous(messages, &end(8000))), CAREFUL, 1);
            let values = &outcome.row.values;
            let (grad, apart) = (values["grad_phi_sq"], values["consensus"]);
            assert!(grad < 1e-24 && apart < 1e-24, "{graph}, {messages}: {grad:e}, {apart:e}");
        }
    }
}

/// With one replica for all neighbours, each of which receives only some differences, the replica
/// matches none of them; and without replicas, the error is never corrected.
#[test]
fn naive_ways_stay_away() {
    let compress = "compress = { name = 'top-k', share = 0.5, feedback = false }";
    for graph in CHANGING {
        let text =
            on(graph, &heterogeneous(&format!("{compress}, consensus_step = 0.2"), &end(8000)));
        let apart = run(&text, GT, 1).row.values["consensus"];
        assert!(apart > 1e-8, "{graph}: {apart:e}");
    }
    let apart = one_replica_for_all(6000);
    assert!(apart > 1e-6, "{apart:e}");
}

/// How far averaging on a one-peer graph of eight nodes stays from the mean, if a node keeps one
/// replica of itself, and neighbours add up the differences they happen to receive.
fn one_replica_for_all(rounds: usize) -> f64 {
    let (m, n, k) = (8, 6, 3);
    let mut x: Vec<Vec<f64>> =
        (0..m).map(|i| (0..n).map(|at| ((7 * i + 3 * at) % 11) as f64 - 5.0).collect()).collect();
    let means: Vec<f64> =
        (0..n).map(|at| x.iter().map(|x| x[at]).sum::<f64>() / m as f64).collect();
    let mut own = vec![vec![0.0; n]; m];
    let mut held: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for round in 0..rounds {
        let other = |i: usize| i ^ (1 << (round % 3));
        for i in 0..m {
            let difference: Vec<f64> = x[i].iter().zip(&own[i]).map(|(x, own)| x - own).collect();
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&a, &b| difference[b].abs().total_cmp(&difference[a].abs()));
            let theirs = held.entry((other(i), i)).or_insert_with(|| vec![0.0; n]);
            for &at in &order[..k] {
                own[i][at] += difference[at];
                theirs[at] += difference[at];
            }
        }
        let moved: Vec<Vec<f64>> = (0..m)
            .map(|i| held[&(i, other(i))].iter().zip(&own[i]).map(|(a, b)| 0.1 * (a - b)).collect())
            .collect();
        x.iter_mut().flatten().zip(moved.iter().flatten()).for_each(|(x, moved)| *x += moved);
    }
    let off = |x: &Vec<f64>| x.iter().zip(&means).map(|(x, mean)| (x - mean).powi(2)).sum::<f64>();
    x.iter().map(off).sum::<f64>().min(1e300)
}

/// Links of the round that are up, in both directions, and the message of each.
#[test]
fn bytes_are_those_of_the_links_used() {
    for graph in CHANGING {
        for (compress, each) in
            [("compress = { name = 'top-k', share = 0.5 }", 2 * 2 * 10), ("clip = 1", 2 * 4 * 8)]
        {
            for fails in ["", ", drop = 0.3, active = 0.7"] {
                let text = on(graph, &heterogeneous(&format!("{compress}{fails}"), &end(30)));
                let experiment = read(&format!("algorithm = [{{ {GT} }}]\n{text}")).unwrap();
                let world = experiment.world(None, 3).unwrap();
                let failures = Failures::new(&experiment.messages.unwrap().rules, 3, 8);
                let mut cursor = world.rounds.as_ref().unwrap().cursor();
                let (mut sent, mut links) = (0, 0);
                for k in 0..30 {
                    cursor.go(k);
                    for (i, row) in cursor.mixing().rows().iter().enumerate() {
                        for &(j, _) in row.iter().filter(|(j, _)| *j > i) {
                            let awake = failures.awake(k, i) && failures.awake(k, j);
                            sent += 2 * u64::from(awake && failures.fate(k, (i, j)).up);
                            links += 2;
                        }
                    }
                }
                let outcome = run(&text, GT, 1);
                assert_eq!(sent == links, fails.is_empty(), "{text}");
                assert_eq!(outcome.messages.unwrap().sent, sent, "{text}");
                assert_eq!(outcome.row.bytes, sent * each, "{text}");
            }
        }
    }
}

/// Replicas of all links that are ever used: refused, with their size, where they are too many.
#[test]
fn too_many_replicas_are_refused() {
    let text = |messages: &str, base: &str| {
        format!(
            "algorithm = [{{ {GT} }}]
             problem = {{ name = 'hyperparameter', validation = 0.5 }}
             data = {{ name = 'blobs', rows = 1200, features = 3000, centres = 2 }}
             network = {{ nodes = 300, graph = {{ name = 'random-matching'{base} }} }}
             messages = {{ {messages} }}
             run = {{ iterations = 1, exact = 'never' }}"
        )
    };
    let run = |text: String| {
        let never = Default::default();
        let context =
            lopa::run::Context { pool: None, data_dir: "".into(), interrupt: &never, probe: None };
        read(&text).unwrap().run_with(&context, &mut (), &mut ())
    };
    let Err(error) = run(text("compress = 'sign', late = 0.1", "")) else { panic!("8.6 GB") };
    assert_eq!(error.id, "config/messages-replicas");
    assert!(error.message.contains("89700 replicas of 6000 numbers, 8.6 GB"), "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains("fewer links")));
    run(text("compress = 'sign', late = 0.1", ", base = 'ring'")).unwrap();
    // Options without replicas need no such memory.
    run(text("drop = 0.1", "")).unwrap();
}

/// No iteration allocates, whichever links it uses for the first time.
#[test]
fn rounds_allocate_nothing() {
    for graph in CHANGING {
        for messages in options() {
            let bench = Bench::new(&on(graph, &heterogeneous(messages, &end(1))), GT);
            let mut simulation: Simulation<f64> = bench.begin();
            simulation.iterate();
            simulation.iterate();
            let before = lopa::conformance::Counting::allocations();
            (0..60).for_each(|_| simulation.iterate());
            let made = lopa::conformance::Counting::allocations() - before;
            assert_eq!(made, 0, "{graph}, {messages}");
            assert!(rows(&simulation, "x").iter().flatten().all(|x| x.is_finite()));
        }
    }
}

/// Replicas per link on one-peer rounds, step by step as an independent implementation has them:
/// `golden/make_rounds_messages.py`.
#[test]
fn top_k_on_one_peer_rounds_is_that_of_numpy() {
    let folder = format!("{}/tests/golden", env!("CARGO_MANIFEST_DIR"));
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(format!("{folder}/{name}")).unwrap()).unwrap()
    };
    let (given, cases) = (json("rounds_4.json"), json("messages_rounds4.json"));
    for case in cases.as_array().unwrap() {
        let params = case["params"].as_object().unwrap().iter();
        let params: Vec<String> = params.map(|(key, value)| format!("{key} = {value}")).collect();
        let setup = format!(
            "problem = {{ name = 'quadratic', file = '{folder}/rounds_4.json' }}
             network = {{ nodes = 4, graph = 'one-peer-exponential' }}
             messages = {{ compress = {{ name = 'top-k', share = {} }}, consensus_step = {} }}
             run = {{ iterations = 1 }}",
            case["share"], case["consensus_step"]
        );
        let name = case["algorithm"].as_str().unwrap();
        let bench = Bench::new(&setup, &format!("name = '{name}', {}", params.join(", ")));
        let start = |name: &str, i: usize| matrix(&given["init"][name])[i].clone();
        let node = |(i, part)| {
            bench.node_from(i, part, ["x", "theta", "v"].map(|name| start(name, i)), &[])
        };
        let nodes = bench.parts::<f64>().into_iter().enumerate().map(node).collect();
        let mut simulation = bench.begin_with(nodes);
        let states = case["states"].as_array().unwrap();
        assert_eq!(states.len(), 21);
        for (k, state) in states.iter().enumerate() {
            for (variable, want) in state.as_object().unwrap() {
                let (got, want) = (rows(&simulation, variable).concat(), matrix(want).concat());
                for (got, want) in got.into_iter().zip(want) {
                    let near = (got - want).abs() <= 1e-11 * want.abs().max(1.0);
                    assert!(near, "{name}, k = {k}: {variable}: {got} is not {want}");
                }
            }
            simulation.iterate();
        }
    }
}
