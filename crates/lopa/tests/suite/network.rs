//! Networks: known values, properties of random graphs, files, and graphs that must be refused.

use std::path::Path;

use lopa::config::{Choice, Registry, Source};
use lopa::error::{Error, Kind, Result};
use lopa::math::random::{Purpose, Stream};
use lopa::network::{
    Analysis, Audit, Format, Graph, GraphFile, Mixing, build, graphs, search, warnings, weights,
};
use proptest::prelude::*;

fn choice_in<B: ?Sized>(registry: &Registry<B>, text: &str) -> Result<Choice<B>> {
    let source = Source::new("test", format!("choice = {text}"));
    registry.read(source.root()?.required("choice")?)
}

/// Builds a network from text as in a file: `"ring"` or `{ name = "circulant", … }`.
fn network(graph: &str, weights: &str, nodes: usize) -> Result<(Graph, Mixing)> {
    build(&choice_in(&graphs(), graph)?, &choice_in(&self::weights(), weights)?, nodes, 1)
}

fn analysis(graph: &str, weights: &str, nodes: usize) -> Analysis {
    let (graph, mixing) = network(graph, weights, nodes).unwrap();
    mixing.analyse(&graph)
}

/// Graphs that need parameters.
const MADE_OF_OTHERS: [&str; 3] = ["file", "random-edges", "sequence"];

fn rule(name: &str, graph: &Graph) -> Mixing {
    (weights().choose(name, &toml::Table::new()).unwrap().build)(graph).unwrap()
}

const RULES: [&str; 5] = ["metropolis", "lazy-metropolis", "max-degree", "constant", "laplacian"];

/// All eigenvalues of a dense symmetric matrix by Jacobi rotations: slow, simple, and independent
/// of the library.
fn jacobi(mut a: Vec<Vec<f64>>) -> Vec<f64> {
    let m = a.len();
    let beside = |a: &[Vec<f64>]| -> f64 {
        let below = a.iter().enumerate().flat_map(|(i, row)| &row[..i]);
        below.map(|entry| entry * entry).sum::<f64>().sqrt()
    };
    while beside(&a) > 1e-14 * m as f64 {
        for p in 0..m {
            for q in p + 1..m {
                if a[p][q].abs() < 1e-300 {
                    continue;
                }
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                for k in 0..m {
                    (a[k][p], a[k][q]) = (c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q]);
                }
                for k in 0..m {
                    (a[p][k], a[q][k]) = (c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]);
                }
            }
        }
    }
    let mut eigenvalues: Vec<f64> = (0..m).map(|i| a[i][i]).collect();
    eigenvalues.sort_by(f64::total_cmp);
    eigenvalues
}

fn dense(mixing: &Mixing) -> Vec<Vec<f64>> {
    let m = mixing.nodes();
    (0..m).map(|i| (0..m).map(|j| mixing.weight(i, j)).collect()).collect()
}

/// (λ_2, λ_min) by Jacobi rotations.
fn eigenvalues_again(mixing: &Mixing) -> (f64, f64) {
    let all = jacobi(dense(mixing));
    (all[all.len() - 2], all[0])
}

/// ρ by its definition, the squared norm of W − 11'/m.
fn rho_again(mixing: &Mixing) -> f64 {
    let mut centred = dense(mixing);
    centred.iter_mut().flatten().for_each(|w| *w -= 1.0 / mixing.nodes() as f64);
    jacobi(centred).into_iter().fold(0.0, |norm: f64, value| norm.max(value.abs())).powi(2)
}

// Known values

#[test]
fn rho_of_the_papers_ring_and_star() {
    let close = |graph, weights, rho: f64| {
        let found = analysis(graph, weights, 10).rho;
        assert!((found - rho).abs() < 5e-4, "{graph} {weights}: {found} and not {rho}");
    };
    close("'ring'", "'metropolis'", 0.762);
    close("'star'", "'metropolis'", 0.810);
    close("'ring'", "'constant'", 0.917);
    close("'star'", "'constant'", 0.790);
    close("{ name = 'circulant', offsets = [1, 2] }", "'metropolis'", 0.4189);
}

/// Every rule on the star of three leaves, by hand: degrees 3 and 1, λ_max(L) = 4.
#[test]
fn weights_by_hand() {
    for (name, on_edge) in [
        ("metropolis", 1.0 / 4.0),
        ("lazy-metropolis", 1.0 / 8.0),
        ("max-degree", 1.0 / 4.0),
        ("constant", 1.0 / 3.0),
        ("laplacian", 1.0 / 6.0),
    ] {
        let (_, mixing) = network("'star'", &format!("'{name}'"), 4).unwrap();
        let [(0, to_hub), (3, own)] = mixing.row(3) else { panic!("{name}: {:?}", mixing.row(3)) };
        assert!((to_hub - on_edge).abs() < 1e-14, "{name}");
        assert!((own - (1.0 - on_edge)).abs() < 1e-14, "{name}");
        assert!((mixing.weight(0, 0) - (1.0 - 3.0 * on_edge)).abs() < 1e-14, "{name}");
    }
    // Metropolis uses the degrees of an edge's ends, max-degree those of all nodes.
    let (_, mixing) = network("'barbell'", "'metropolis'", 6).unwrap();
    assert_eq!((mixing.weight(0, 1), mixing.weight(2, 3)), (1.0 / 3.0, 1.0 / 4.0));
    let (_, mixing) = network("'barbell'", "'max-degree'", 6).unwrap();
    assert_eq!((mixing.weight(0, 1), mixing.weight(2, 3)), (1.0 / 4.0, 1.0 / 4.0));
}

#[test]
fn closed_forms() {
    use std::f64::consts::PI;
    for m in [4, 5, 9, 64, 200] {
        // Circulant with weights 1/3: (1 + 2 cos(2πk/m)) / 3.
        let ring = analysis("'ring'", "'metropolis'", m);
        let k = |k: usize| (1.0 + 2.0 * (2.0 * PI * k as f64 / m as f64).cos()) / 3.0;
        assert!((ring.lambda_2 - k(1)).abs() < 1e-12, "{m}");
        assert!((ring.lambda_min - k(m / 2)).abs() < 1e-12, "{m}");
        let complete = analysis("'complete'", "'metropolis'", m);
        assert!(complete.rho < 1e-24 && complete.gap == 1.0 - complete.rho, "{}", complete.rho);
        // A star's Laplacian has 1 and m beside 0, so I − 2L/(3m) has 1 − 2/(3m) and 1/3.
        let star = analysis("'star'", "'laplacian'", m);
        assert!((star.lambda_2 - (1.0 - 2.0 / (3.0 * m as f64))).abs() < 1e-12, "{m}");
        assert!((star.lambda_min - 1.0 / 3.0).abs() < 1e-12, "{m}");
    }
    // Hypercube of dimension d: 1 − 2k/(d + 1).
    let cube = analysis("'hypercube'", "'metropolis'", 32);
    assert!((cube.lambda_2 - 2.0 / 3.0).abs() < 1e-12);
    assert!((cube.lambda_min + 2.0 / 3.0).abs() < 1e-12);
}

#[test]
fn golden_graphs() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/graphs.json");
    let golden: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    let mut values = 0;
    for (name, entry) in golden.as_object().unwrap() {
        let edges: Vec<(usize, usize)> = serde_json::from_value(entry["edges"].clone()).unwrap();
        let m = entry["m"].as_u64().unwrap_or(10) as usize;
        let graph = Graph::from_edges(m, edges).unwrap();
        let analysis = rule("metropolis", &graph).analyse(&graph);
        assert!(analysis.connected, "{name}");
        let expected = [
            (&entry["rho"], analysis.rho),
            (&entry["sigma2"], analysis.sigma),
            match entry["definition"].as_str() {
                Some("rho=sigma2^2") => (&entry["value"], analysis.rho),
                _ => (&entry["value"], analysis.sigma),
            },
        ];
        for (expected, found) in expected {
            let Some(expected) = expected.as_f64() else { continue };
            assert!((found - expected).abs() < 1e-10, "{name}: {found} and not {expected}");
            values += 1;
        }
    }
    assert_eq!(values, 12, "six searched graphs with one value, three drawn ones with two");
}

#[test]
fn large_sparse_networks_need_no_dense_matrix() {
    use std::f64::consts::PI;
    // The hardest case, a gap of 1e-7, and an easy one.
    let m = 10_000;
    let (graph, mixing) = network("'ring'", "'metropolis'", m).unwrap();
    let lambda_2 = (1.0 + 2.0 * (2.0 * PI / m as f64).cos()) / 3.0;
    assert!((mixing.eigenvalues().0 - lambda_2).abs() < 1e-13);
    assert_eq!(graph.edges().count(), m);
    let (_, mixing) =
        network("{ name = 'random-regular', degree = 6 }", "'metropolis'", m).unwrap();
    let (drawn, _) = mixing.eigenvalues();
    // Friedman: a random d-regular graph has λ_2 near 2 √(d − 1), here (1 + 2 √5) / 7.
    assert!((drawn - (1.0 + 2.0 * 5f64.sqrt()) / 7.0).abs() < 0.01, "{drawn}");
}

#[test]
fn one_node_is_a_network() {
    for entry in graphs().iter().filter(|entry| !MADE_OF_OTHERS.contains(&&*entry.name)) {
        let own = match entry.name.as_str() {
            "random-regular" => "{ name = 'random-regular', degree = 0 }".to_string(),
            name => format!("'{name}'"),
        };
        for weights in RULES {
            let found = analysis(&own, &format!("'{weights}'"), 1);
            assert_eq!((found.nodes, found.edges, found.rho), (1, 0, 0.0), "{own} {weights}");
            assert_eq!((found.connected, found.diameter), (true, Some(0)));
        }
    }
}

#[test]
fn shapes() {
    let count = |graph: &str, m| {
        let found = analysis(graph, "'lazy-metropolis'", m);
        (found.edges, found.degree_min, found.degree_max, found.bridges.len(), found.diameter)
    };
    assert_eq!(count("'ring'", 2), (1, 1, 1, 1, Some(1)));
    assert_eq!(count("'ring'", 7), (7, 2, 2, 0, Some(3)));
    assert_eq!(count("'path'", 7), (6, 1, 2, 6, Some(6)));
    assert_eq!(count("'star'", 7), (6, 1, 6, 6, Some(2)));
    assert_eq!(count("'complete'", 7), (21, 6, 6, 0, Some(1)));
    assert_eq!(count("'grid'", 12), (17, 2, 4, 0, Some(5)));
    assert_eq!(count("{ name = 'grid', rows = 2 }", 12), (16, 2, 3, 0, Some(6)));
    assert_eq!(count("{ name = 'grid', cols = 12 }", 12), (11, 1, 2, 11, Some(11)));
    assert_eq!(count("'grid'", 7), (6, 1, 2, 6, Some(6)));
    assert_eq!(count("'torus'", 9), (18, 4, 4, 0, Some(2)));
    assert_eq!(count("{ name = 'torus', rows = 3, cols = 5 }", 15), (30, 4, 4, 0, Some(3)));
    assert_eq!(count("'circulant'", 10), (20, 4, 4, 0, Some(3)));
    assert_eq!(count("{ name = 'circulant', offsets = [1, 4] }", 8), (12, 3, 3, 0, Some(2)));
    assert_eq!(count("'exponential'", 8), (20, 5, 5, 0, Some(2)));
    assert_eq!(count("'exponential'", 10), (30, 6, 6, 0, Some(2)));
    assert_eq!(count("'hypercube'", 16), (32, 4, 4, 0, Some(4)));
    assert_eq!(count("'barbell'", 8), (13, 3, 4, 1, Some(3)));
    assert_eq!(count("'barbell'", 9), (14, 2, 4, 2, Some(4)));
    let drawn = count("{ name = 'random-regular', degree = 3 }", 10);
    assert_eq!((drawn.0, drawn.1, drawn.2), (15, 3, 3));
    assert_eq!(analysis("'star'", "'metropolis'", 4).degree_mean, 1.5);
}

#[test]
fn an_analysis_is_a_json_object() {
    let json = serde_json::to_value(analysis("'path'", "'metropolis'", 3)).unwrap();
    assert_eq!(json["bridges"], serde_json::json!([[0, 1], [1, 2]]));
    assert_eq!((&json["symmetric"], &json["doubly_stochastic"]), (&true.into(), &true.into()));
    assert_eq!(json["diameter"], 2);
}

#[test]
fn negative_eigenvalues_are_warned_of_where_they_matter() {
    let matrix =
        |w: f64| format!("{{ name = 'matrix', rows = [[{}, {w}], [{w}, {}]] }}", 1.0 - w, 1.0 - w);
    let trap = analysis("'path'", &matrix(0.96), 2);
    assert!((trap.lambda_min + 0.92).abs() < 1e-12);
    assert!(warnings(trap.lambda_min, false).is_empty());
    let [strong] = warnings(trap.lambda_min, true).try_into().unwrap();
    assert!(strong.contains("near -1") && strong.contains("lazy-metropolis"), "{strong}");
    let [mild] = warnings(analysis("'path'", &matrix(0.8), 2).lambda_min, true).try_into().unwrap();
    assert!(mild.contains("-0.600") && mild.contains("lazy-metropolis"), "{mild}");
    let ring = analysis("'ring'", "'metropolis'", 8);
    assert!(ring.lambda_min < 0.0 && warnings(ring.lambda_min, true).is_empty());
    assert!(warnings(analysis("'ring'", "'lazy-metropolis'", 8).lambda_min, true).is_empty());
    assert!(warnings(analysis("'complete'", "'metropolis'", 8).lambda_min, true).is_empty());
}

/// A seed promises these draws: they must not change from version to version.
#[test]
fn drawn_graphs_stay_as_they_are() {
    let edges = |graph| network(graph, "'metropolis'", 6).unwrap().0.edges().collect::<Vec<_>>();
    assert_eq!(
        edges("{ name = 'erdos-renyi', p = 0.4, seed = 7 }"),
        [(0, 5), (1, 3), (2, 5), (3, 4), (3, 5), (4, 5)]
    );
    assert_eq!(
        edges("{ name = 'random-regular', degree = 3, seed = 7 }"),
        [(0, 1), (0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (2, 5), (3, 4), (4, 5)]
    );
}

// The search

#[test]
fn the_papers_rho_are_found() {
    let metropolis = choice_in(&self::weights(), "'metropolis'").unwrap();
    for target in [0.92, 0.79, 0.42] {
        let found = search(10, target, &metropolis, 0.005, 1).unwrap();
        assert!((found.rho - target).abs() <= 0.005, "{target}: {}", found.rho);
        assert!(found.graph.is_connected());
        assert!((rho_again(&found.mixing) - found.rho).abs() < 1e-12);
        let again = search(10, target, &metropolis, 0.005, 1).unwrap();
        assert_eq!(again.graph, found.graph);
    }
}

#[test]
fn other_rules_and_sizes_are_searched() {
    for (nodes, weights, target, tolerance) in [
        (1, "metropolis", 0.0, 1e-9),
        (6, "constant", 0.5, 0.02),
        (10, "lazy-metropolis", 0.8, 0.005),
        (10, "metropolis", 0.935, 0.005),
        (30, "max-degree", 0.6, 0.005),
        (100, "laplacian", 0.9, 0.005),
        (300, "metropolis", 0.3, 0.005),
    ] {
        let rule = choice_in(&self::weights(), &format!("'{weights}'")).unwrap();
        let found = search(nodes, target, &rule, tolerance, 3).unwrap();
        assert!((found.rho - target).abs() <= tolerance, "{nodes} {weights}: {}", found.rho);
    }
}

#[test]
fn what_cannot_be_found_is_said() {
    let lazy = choice_in(&self::weights(), "'lazy-metropolis'").unwrap();
    // (W + I)/2 has no eigenvalue below 1/2 on a complete graph.
    let error = search(10, 0.1, &lazy, 0.005, 1).unwrap_err();
    assert_eq!((error.id, error.kind), ("network/rho-not-found", Kind::Network));
    assert!(error.message.contains("0.25"), "{}", error.message);
    let constant = choice_in(&self::weights(), "'constant'").unwrap();
    assert_eq!(search(2, 0.999, &constant, 0.01, 1).unwrap_err().id, "network/rho-not-found");
    for (nodes, target, tolerance) in
        [(10, 1.0, 0.1), (10, -0.1, 0.1), (10, f64::NAN, 0.1), (10, 0.5, 0.0), (5000, 0.5, 0.1)]
    {
        assert_eq!(
            search(nodes, target, &lazy, tolerance, 1).unwrap_err().id,
            "network/bad-search"
        );
    }
    let given = choice_in(&self::weights(), "{ name = 'matrix', rows = [[1.0]] }").unwrap();
    assert_eq!(search(3, 0.5, &given, 0.1, 1).unwrap_err().id, "network/bad-search");
    assert_eq!(search(0, 0.5, &lazy, 0.1, 1).unwrap_err().id, "network/no-nodes");
}

// Properties

/// Any graph of 1 to 16 nodes: each pair is an edge with a random probability.
fn any_graph() -> impl Strategy<Value = Graph> {
    (1usize..=16, 0u32..=100, any::<u64>()).prop_map(|(m, percent, seed)| {
        let mut stream = Stream::new(seed, Purpose::Problem, 0);
        let pairs = (0..m).flat_map(|j| (0..j).map(move |i| (i, j)));
        let chosen: Vec<_> = pairs.filter(|_| stream.below(100) < percent as usize).collect();
        Graph::from_edges(m, chosen).unwrap()
    })
}

fn relabelled(graph: &Graph, seed: u64) -> Graph {
    let mut label: Vec<usize> = (0..graph.nodes()).collect();
    Stream::new(seed, Purpose::Problem, 1).shuffle(&mut label);
    Graph::from_edges(graph.nodes(), graph.edges().map(|(i, j)| (label[i], label[j]))).unwrap()
}

fn squared_distance(x: &[f64], mean: f64) -> f64 {
    x.iter().map(|x| (x - mean).powi(2)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_rule_mixes_as_it_should(graph in any_graph(), seed in any::<u64>()) {
        let m = graph.nodes();
        let mut stream = Stream::new(seed, Purpose::Problem, 2);
        let x: Vec<f64> = (0..m).map(|_| stream.normal()).collect();
        let mean = x.iter().sum::<f64>() / m as f64;
        for name in RULES {
            let mixing = rule(name, &graph);
            for i in 0..m {
                let row = mixing.row(i);
                prop_assert!(row.windows(2).all(|pair| pair[0].0 < pair[1].0));
                let others: Vec<_> = row.iter().map(|e| e.0).filter(|&j| j != i).collect();
                prop_assert_eq!(&others, graph.neighbours(i));
                prop_assert_eq!(row.len(), others.len() + 1);
                prop_assert!((row.iter().map(|e| e.1).sum::<f64>() - 1.0).abs() < 1e-12);
                for &(j, w) in row {
                    prop_assert_eq!(w, mixing.weight(j, i));
                    prop_assert!(w > 0.0 || (i == j && w == 0.0 && name == "constant"));
                }
            }
            let rho = mixing.rho();
            if name != "constant" {
                prop_assert_eq!(graph.is_connected(), rho < 1.0 - 1e-9, "{} {}", name, rho);
            }
            let mixed: Vec<f64> =
                (0..m).map(|i| mixing.row(i).iter().map(|&(j, w)| w * x[j]).sum()).collect();
            prop_assert!((mixed.iter().sum::<f64>() / m as f64 - mean).abs() < 1e-12);
            let (before, after) = (squared_distance(&x, mean), squared_distance(&mixed, mean));
            prop_assert!(after <= rho * before + 1e-12 * (1.0 + before), "{}", name);
        }
    }

    #[test]
    fn new_names_for_nodes_change_nothing(graph in any_graph(), seed in any::<u64>()) {
        let other = relabelled(&graph, seed);
        for name in RULES {
            let (one, two) = (rule(name, &graph), rule(name, &other));
            prop_assert!((one.rho() - two.rho()).abs() < 1e-12, "{}", name);
        }
        prop_assert_eq!(graph.components().len(), other.components().len());
        prop_assert_eq!(graph.bridges().len(), other.bridges().len());
        prop_assert_eq!(graph.is_bipartite(), other.is_bipartite());
        prop_assert_eq!(graph.diameter(), other.diameter());
    }

    /// The definition of a bridge, tested on every edge.
    #[test]
    fn bridges_are_the_edges_that_matter(graph in any_graph()) {
        let pieces = graph.components().len();
        let matters = |&gone: &(usize, usize)| {
            let rest = Graph::from_edges(graph.nodes(), graph.edges().filter(|&e| e != gone));
            rest.unwrap().components().len() > pieces
        };
        prop_assert_eq!(graph.bridges(), graph.edges().filter(matters).collect::<Vec<_>>());
    }

    #[test]
    fn files_come_back_as_they_were(graph in any_graph(), weighted in any::<bool>()) {
        let file = match weighted {
            true => GraphFile::new(graph.clone(), &rule("metropolis", &graph)),
            false => GraphFile { graph: graph.clone(), weights: None },
        };
        for format in [Format::Toml, Format::EdgeList] {
            let back = GraphFile::parse("g", &file.to_text(format), format).unwrap();
            prop_assert_eq!(&back.graph, &file.graph);
            prop_assert!(back.weights == file.weights || graph.edges().next().is_none());
            if let Some(mixing) = back.mixing().unwrap() {
                prop_assert_eq!(mixing, rule("metropolis", &graph));
            }
        }
    }

    /// No text makes the reader panic.
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-z#:,=\\[\\]. \n-]{0,60}") {
        for format in [Format::Toml, Format::EdgeList] {
            if let Err(error) = GraphFile::parse("g", &text, format) {
                prop_assert_eq!(error.kind, Kind::Network);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn eigenvalues_agree_with_jacobis(graph in any_graph()) {
        for name in RULES {
            let mixing = rule(name, &graph);
            prop_assert!((mixing.rho() - rho_again(&mixing)).abs() < 1e-12, "{}", name);
            if mixing.nodes() > 1 {
                let ((a, b), (c, d)) = (mixing.eigenvalues(), eigenvalues_again(&mixing));
                prop_assert!((a - c).abs() < 1e-12 && (b - d).abs() < 1e-12, "{}", name);
            }
        }
    }
}

#[test]
fn eigenvalues_agree_with_jacobis_on_larger_graphs() {
    for entry in graphs().iter().filter(|entry| !MADE_OF_OTHERS.contains(&&*entry.name)) {
        for (m, rules) in [(64, &RULES[..]), (100, &RULES[..1]), (200, &RULES[..1])] {
            for weights in rules {
                let own = format!("'{}'", entry.name);
                let Ok((_, mixing)) = network(&own, &format!("'{weights}'"), m) else {
                    assert!(entry.name == "hypercube" && m != 64, "{own} {m} {weights}");
                    continue;
                };
                let ((a, b), (c, d)) = (mixing.eigenvalues(), eigenvalues_again(&mixing));
                assert!((a - c).abs() < 1e-12 && (b - d).abs() < 1e-12, "{own} {weights} {m}");
            }
        }
    }
}

// Refusals

/// Checks an error: its id, and what its text must contain.
fn refused(error: Error, id: &str, named: &[&str]) {
    assert_eq!((error.kind, error.kind.exit_code(), error.id), (Kind::Network, 4, id), "{error}");
    assert!(error.hint.is_some(), "no remedy: {error}");
    for name in named {
        assert!(error.to_string().contains(name), "`{name}` is not named: {error}");
    }
}

#[test]
fn bad_graph_files_are_refused_with_their_line() {
    let list = |text: &str| GraphFile::parse("g.csv", text, Format::EdgeList).unwrap_err();
    let toml = |text: &str| GraphFile::parse("g.toml", text, Format::Toml).unwrap_err();
    let bad = "network/malformed-file";
    refused(list("0 1\n1 1\n"), "network/self-loop", &["g.csv:2", "node 1"]);
    refused(list("0,1\n# again\n1,0\n"), "network/duplicate-edge", &["g.csv:3", "0 – 1"]);
    refused(
        list("# nodes: 3\n0 1\n\n1 3"),
        "network/unknown-node",
        &["g.csv:4", "node 3", "0 to 2"],
    );
    refused(list("0 1 -0.5"), "network/negative-weight", &["g.csv:1", "0 – 1", "-0.5"]);
    refused(list("0 1 0.5\n1 2 nan"), "network/not-a-number", &["g.csv:2", "1 – 2"]);
    refused(list("0 1 0.5\n1 2 inf"), "network/not-a-number", &["g.csv:2", "1 – 2"]);
    refused(list("0 1 0"), "network/edge-without-weight", &["g.csv:1", "0 – 1"]);
    refused(list("0 1 .5\n1 2"), "network/edge-without-weight", &["g.csv:2", "1 – 2"]);
    refused(list("0 1 .5\nx 2 .1"), bad, &["g.csv:2", "`x`"]);
    refused(list("0 1 heavy"), bad, &["g.csv:1", "`heavy`"]);
    refused(list("0 -1"), bad, &["g.csv:1", "`-1`"]);
    refused(list("0,,1"), bad, &["g.csv:1", "``"]);
    refused(list("0 1 2 3"), bad, &["g.csv:1", "4 entries"]);
    refused(list("7"), bad, &["g.csv:1", "1 entries"]);
    refused(list("0 99999999999"), bad, &["g.csv:1", "99999999999"]);
    refused(list("0 99999999999999999999999"), bad, &["g.csv:1"]);
    refused(list("# nothing\n"), bad, &["g.csv", "no edges"]);
    refused(list("# nodes: 0"), "network/no-nodes", &["g.csv"]);
    refused(list("# nodes: 18446744073709551615"), "network/too-large", &["g.csv"]);
    refused(
        toml("nodes = 3\nedges = [[0, 1],\n[2, 2]]"),
        "network/self-loop",
        &["g.toml:3", "node 2"],
    );
    refused(
        toml("nodes = 3\nedges = [\n[0, 1], [1, 2],\n[1, 0]]"),
        "network/duplicate-edge",
        &["g.toml:4"],
    );
    refused(toml("nodes = 2\nedges = [[0, 5]]"), "network/unknown-node", &["g.toml:2", "node 5"]);
    refused(
        toml("nodes = 2\nedges = [[0, 1]]\nweights = [0.1, 0.2]"),
        bad,
        &["g.toml", "2 weights"],
    );
    refused(
        toml("nodes = 2\nedges = [[0, 1]]\nweights = [-0.1]"),
        "network/negative-weight",
        &["g.toml:2"],
    );
    refused(toml("edges = [[0, 1]]"), bad, &["g.toml", "`nodes`"]);
    refused(toml("nodes = 4000000000\nedges = []"), "network/too-large", &["4000000000"]);
    refused(toml("nodes = 0\nedges = []"), "network/no-nodes", &[]);
}

#[test]
fn malformed_toml_is_refused_with_its_line() {
    for (text, place) in [
        ("nodes = 2\nedges = [[0, 1]", "g.toml:2"),
        ("nodes = 2\nedges = [[0, -1]]", "g.toml:2"),
        ("nodes = 2\nedges = [[0, 1, 2]]", "g.toml:2"),
        ("nodes = 2\nedges = [0, 1]", "g.toml:2"),
        ("nodes = 'two'\nedges = []", "g.toml:1"),
        ("nodes = 2\nedges = []\nwieghts = []", "g.toml:3"),
    ] {
        let error = GraphFile::parse("g.toml", text, Format::Toml).unwrap_err();
        assert_eq!((error.kind, error.id), (Kind::Network, "network/malformed-file"), "{text}");
        assert!(error.place.as_ref().unwrap().starts_with(place), "{text}: {error}");
    }
}

#[test]
fn bad_networks_are_refused() {
    let refused = |graph: &str, weights: &str, m, id, named: &[&str]| {
        refused(network(graph, weights, m).map(|_| ()).unwrap_err(), id, named);
    };
    let given = |rows: &str| format!("{{ name = 'matrix', rows = {rows} }}");
    let size = "network/impossible-size";
    refused("'ring'", "'metropolis'", 0, "network/no-nodes", &[]);
    refused("'ring'", "'metropolis'", usize::MAX, "network/too-large", &["18446744073709551615"]);
    refused("'complete'", "'metropolis'", 50_000, "network/too-large", &["edges"]);
    refused("'hypercube'", "'metropolis'", 10, size, &["not 10", "8 or 16"]);
    refused("'torus'", "'metropolis'", 10, size, &["2 by 5"]);
    refused("'torus'", "'metropolis'", 7, size, &["1 by 7"]);
    refused("{ name = 'grid', rows = 3, cols = 3 }", "'metropolis'", 10, size, &["not 10 nodes"]);
    refused("{ name = 'grid', rows = 4 }", "'metropolis'", 10, size, &["4 rows of 2"]);
    refused("{ name = 'circulant', offsets = [6] }", "'metropolis'", 10, size, &["offset 6"]);
    refused("'random-regular'", "'metropolis'", 4, size, &["4 neighbours"]);
    refused("{ name = 'random-regular', degree = 3 }", "'metropolis'", 5, size, &["odd"]);
    let unlucky = "network/no-connected-draw";
    refused("{ name = 'random-regular', degree = 1 }", "'metropolis'", 4, unlucky, &["1000 draws"]);
    refused(
        "{ name = 'erdos-renyi', p = 0.01 }",
        "'metropolis'",
        10,
        unlucky,
        &["p = 0.01", "ln(m)/m"],
    );
    refused("{ name = 'erdos-renyi', p = 1e-9 }", "'metropolis'", 1000, unlucky, &["1000 of 1000"]);
    refused(
        "{ name = 'circulant', offsets = [2] }",
        "'metropolis'",
        6,
        "network/disconnected",
        &["2 pieces", "0, 2, 4", "1, 3, 5"],
    );
    refused("'ring'", "'constant'", 2, "network/never-mixes", &["nodes 0 and nodes 1", "lazy"]);
    refused("'path'", &given("[[0, 1], [1, 0]]"), 2, "network/never-mixes", &["rho = 1"]);
    refused(
        "'ring'",
        &given("[[0, 0.5, 0, 0.5], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0.5, 0, 0.5, 0]]"),
        4,
        "network/never-mixes",
        &["0, 2", "1, 3"],
    );
    refused(
        "'path'",
        &given("[[0.5, 0.5], [0.4, 0.6]]"),
        2,
        "network/asymmetric",
        &["w[0][1]", "nodes 0, 1"],
    );
    refused(
        "'path'",
        &given("[[0.5, 0.500001], [0.500001, 0.499999]]"),
        2,
        "network/row-sum",
        &["node 0", "1.000001"],
    );
    refused(
        "'path'",
        &given("[[1.5, -0.5], [-0.5, 1.5]]"),
        2,
        "network/negative-weight",
        &["w[0][1] = -0.5"],
    );
    refused(
        "'path'",
        &given("[[-0.5, 1.5], [1.5, -0.5]]"),
        2,
        "network/negative-weight",
        &["w[0][0] = -0.5"],
    );
    refused("'path'", &given("[[nan, 0.5], [0.5, 0.5]]"), 2, "network/not-a-number", &["node 0"]);
    refused(
        "'path'",
        &given("[[0.5, inf], [inf, 0.5]]"),
        2,
        "network/not-a-number",
        &["nodes 0 and 1"],
    );
    refused("'path'", &given("[[0.5, 0.5]]"), 2, "network/not-square", &["row 0"]);
    refused("'path'", &given("[]"), 2, "network/no-nodes", &[]);
    refused("'path'", &given("[[1.0]]"), 2, "network/wrong-size", &["1 nodes", "has 2"]);
    refused(
        "'path'",
        &given("[[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]]"),
        3,
        "network/weight-without-edge",
        &["w[0][2] = 0.3", "nodes 0 and 2"],
    );
    refused(
        "'path'",
        &given("[[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]]"),
        3,
        "network/edge-without-weight",
        &["w[1][2] = 0", "nodes 1 and 2"],
    );
    refused(
        "{ name = 'file', path = 'no/such.toml' }",
        "'metropolis'",
        3,
        "network/unreadable",
        &["no/such.toml"],
    );
    refused(
        "'path'",
        "{ name = 'matrix', path = 'no/such.txt' }",
        3,
        "network/unreadable",
        &["no/such.txt"],
    );
    refused("'path'", "{ name = 'file', path = '/' }", 3, "network/unreadable", &["/"]);
}

#[test]
fn bad_parameters_are_wrong_configuration() {
    for (graph, id) in [
        ("{ name = 'erdos-renyi', p = 0.0 }", "config/out-of-range"),
        ("{ name = 'erdos-renyi', p = nan }", "config/out-of-range"),
        ("{ name = 'erdos-renyi', seed = 18446744073709551615 }", "config/out-of-range"),
        ("{ name = 'circulant', offsets = [] }", "config/out-of-range"),
        ("{ name = 'circulant', offsets = [1, 1] }", "config/out-of-range"),
        ("{ name = 'circulant', offsets = [0] }", "config/out-of-range"),
        ("{ name = 'circulant', offsets = [18446744073709551615] }", "config/out-of-range"),
        ("{ name = 'grid', rows = 0 }", "config/out-of-range"),
        ("{ name = 'torus', cols = 18446744073709551615 }", "config/out-of-range"),
        ("{ name = 'random-regular', degree = 18446744073709551615 }", "config/out-of-range"),
        ("{ name = 'random-regular', degree = -1 }", "config/wrong-type"),
        ("{ name = 'file' }", "config/missing-key"),
        ("{ name = 'ring', offsets = [1] }", "config/unknown-key"),
        ("'rign'", "config/unknown-name"),
    ] {
        let error = network(graph, "'metropolis'", 5).unwrap_err();
        assert_eq!((error.kind, error.id), (Kind::Config, id), "{graph}: {error}");
    }
    for weights in ["'matrix'", "{ name = 'matrix', rows = [[1.0]], path = 'w.txt' }"] {
        assert_eq!(network("'ring'", weights, 5).unwrap_err().id, "config/out-of-range");
    }
}

// Files

#[test]
fn networks_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, mixing) = network("'barbell'", "'lazy-metropolis'", 7).unwrap();
    for name in ["graph.toml", "graph.csv", "graph.edges"] {
        let path = folder.path().join(name);
        GraphFile::new(graph.clone(), &mixing).write(&path).unwrap();
        let this = format!("{{ name = 'file', path = '{}' }}", path.display());
        let back = network(&this, &this, 7).unwrap();
        assert_eq!(back, (graph.clone(), mixing.clone()), "{name}");
        let error = network(&this, "'metropolis'", 8).unwrap_err();
        refused(error, "network/wrong-size", &[name, "7 nodes", "`nodes = 7`"]);
        let error = network("'ring'", &this, 7).unwrap_err();
        refused(error, "network/weight-without-edge", &[name, "w[0][2]"]);
    }
    let alone = folder.path().join("alone.toml");
    std::fs::write(&alone, "nodes = 1\nedges = []").unwrap();
    let this = format!("{{ name = 'file', path = '{}' }}", alone.display());
    assert_eq!(network(&this, &this, 1).unwrap(), network("'ring'", "'metropolis'", 1).unwrap());
    let bare = folder.path().join("bare.txt");
    std::fs::write(&bare, "\u{feff}# a triangle\n0 1 # first\n\n 1\t2\n2, 0\n").unwrap();
    let this = format!("{{ name = 'file', path = '{}' }}", bare.display());
    assert_eq!(
        network(&this, "'metropolis'", 3).unwrap(),
        network("'ring'", "'metropolis'", 3).unwrap()
    );
    refused(network(&this, &this, 3).unwrap_err(), "network/no-weights", &["bare.txt"]);
    let heavy = folder.path().join("heavy.txt");
    std::fs::write(&heavy, "0 1 .7\n1 2 .7").unwrap();
    let this = format!("{{ name = 'file', path = '{}' }}", heavy.display());
    refused(
        network("'path'", &this, 3).unwrap_err(),
        "network/negative-weight",
        &["heavy.txt", "node 1"],
    );
    std::fs::write(&heavy, [0xff, 0xfe, 0x00]).unwrap();
    refused(network("'path'", &this, 3).unwrap_err(), "network/unreadable", &["heavy.txt"]);
    let error = GraphFile::new(graph, &mixing).write(folder.path()).unwrap_err();
    assert_eq!((error.kind, error.id), (Kind::Storage, "storage/write"));
}

#[test]
fn weights_stay_with_their_edges_in_any_order() {
    let toml = "nodes = 3\nedges = [[2, 1], [0, 1]]\nweights = [0.2, 0.1]";
    for (text, format) in [(toml, Format::Toml), ("2 1 0.2\n1 0 0.1", Format::EdgeList)] {
        let file = GraphFile::parse("g", text, format).unwrap();
        assert_eq!(file.weights, Some(vec![0.1, 0.2]));
        let mixing = file.mixing().unwrap().unwrap();
        assert_eq!((mixing.weight(0, 1), mixing.weight(2, 1)), (0.1, 0.2));
        assert!((mixing.weight(1, 1) - 0.7).abs() < 1e-15);
    }
}

#[test]
fn a_matrix_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.txt");
    let this = format!("{{ name = 'matrix', path = '{}' }}", path.display());
    std::fs::write(&path, "# W\n0.75, 0.25\n\n.25 .75 # second\n").unwrap();
    let (_, mixing) = network("'path'", &this, 2).unwrap();
    assert_eq!(mixing.row(1), [(0, 0.25), (1, 0.75)]);
    assert!((mixing.rho() - 0.25).abs() < 1e-15);
    std::fs::write(&path, "0.75, 0.25\n0.25, much\n").unwrap();
    let error = network("'path'", &this, 2).unwrap_err();
    assert_eq!((error.id, error.kind), ("network/malformed-file", Kind::Network));
    assert!(error.place.unwrap().ends_with("w.txt:2"));
    std::fs::write(&path, "0.75, 0.25\n0.2, 0.8\n").unwrap();
    refused(network("'path'", &this, 2).unwrap_err(), "network/asymmetric", &["w.txt"]);
}

#[test]
fn a_million_edges_are_read_and_one_bad_one_among_them_is_found() {
    let m = 2000;
    let edges = (1..=500).flat_map(|o| (0..m).map(move |i| (i, (i + o) % m)));
    let graph = Graph::from_edges(m, edges).unwrap();
    assert_eq!(graph.edges().count(), 1_000_000);
    let file = GraphFile { graph, weights: None };
    for format in [Format::EdgeList, Format::Toml] {
        let text = file.to_text(format);
        assert_eq!(GraphFile::parse("g", &text, format).unwrap(), file);
    }
    let text = file.to_text(Format::EdgeList) + "1999,1998\n";
    let error = GraphFile::parse("g", &text, Format::EdgeList).unwrap_err();
    refused(error, "network/duplicate-edge", &["g:1000002", "1998 – 1999"]);
}

#[test]
fn an_audit_finds_who_can_rebuild_what_of_whom() {
    // Known counts. On the exponential graph no neighbour's sum has a single unknown x_j, but sums
    // of several do: with S_i the part of node a + i's sum that node a does not see,
    //   2 (x_3 + x_-3) = S_1 + S_-1 − S_8 − S_4 − S_-4 + S_2 + S_-2,   x_3 − x_-3 = S_2 − S_-2.
    let known: [(&str, usize, [usize; 3]); 7] = [
        ("'ring'", 10, [0, 10, 10]),
        ("'path'", 10, [2, 10, 10]),
        ("'star'", 10, [9, 9, 0]),
        ("'complete'", 10, [10, 10, 0]),
        ("{ name = 'grid', rows = 4 }", 16, [0, 12, 8]),
        ("'exponential'", 16, [0, 16, 16]),
        ("'complete'", 2, [2, 2, 0]),
    ];
    for (graph, nodes, counts) in known {
        let (found, mixing) = network(graph, "'metropolis'", nodes).unwrap();
        assert_eq!(Audit::new(&found, &mixing).counts(), counts, "{graph}");
    }
}

#[test]
fn an_audit_of_a_path_names_the_peers() {
    let (graph, mixing) = network("'path'", "'metropolis'", 5).unwrap();
    let audit = Audit::new(&graph, &mixing);
    assert_eq!(audit.bridges, [(0, 1), (1, 2), (2, 3), (3, 4)]);
    assert_eq!(audit.messages, 8);
    // An end reveals everything to its only neighbour; the middle needs one peer on either side.
    assert_eq!(audit.nodes[0].one, [1]);
    assert!(audit.nodes[0].pairs.is_empty());
    assert_eq!(audit.nodes[2].one, [0; 0]);
    assert_eq!(audit.nodes[2].pairs, [(0, 3), (1, 3), (1, 4)]);
    // With tracking, node 1 reveals to node 2 a sum in which only x_0 is unknown.
    assert_eq!(audit.nodes[0].two_hops, [2]);
    assert_eq!(audit.nodes[2].two_hops, [0, 4]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// The definition, tested on every peer and every pair.
    #[test]
    fn an_audit_agrees_with_the_definition(m in 3usize..9, bits in any::<u64>()) {
        let pairs = (0..m).flat_map(|i| (i + 1..m).map(move |j| (i, j)));
        let edges = pairs.enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, edge)| edge);
        let graph = Graph::from_edges(m, edges).unwrap();
        let near = |i: usize| -> u32 {
            graph.neighbours(i).iter().fold(1 << i, |set, &j| set | 1 << j)
        };
        let audit = Audit::new(&graph, &rule("metropolis", &graph));
        for i in 0..m {
            let sees = |set: u32| near(i) & !set == 0;
            let one: Vec<usize> = (0..m).filter(|&a| a != i && sees(near(a))).collect();
            let alone = |a: &usize| one.contains(a);
            let all = (0..m).flat_map(|a| (a + 1..m).map(move |b| (a, b)));
            let pairs: Vec<_> = all
                .filter(|(a, b)| *a != i && *b != i && !alone(a) && !alone(b))
                .filter(|&(a, b)| sees(near(a) | near(b)))
                .collect();
            prop_assert_eq!(&audit.nodes[i].one, &one);
            prop_assert_eq!(&audit.nodes[i].pairs, &pairs);
            for &peer in &audit.nodes[i].two_hops {
                prop_assert!(near(peer) >> i & 1 == 0, "it is not seen directly");
            }
        }
    }
}
