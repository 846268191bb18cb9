//! Partitions: the guarantees of each, for any labels and any number of nodes.

use lopa::config::Source;
use lopa::data::partition::{Partition, Rows, partitions, split};
use lopa::data::{Dataset, Features, Groups};
use lopa::error::{Error, Result};
use proptest::prelude::*;

/// A data set with these labels; the only feature of a row is its number, counted backwards.
fn dataset(labels: Vec<u32>) -> Dataset {
    let values = (0..labels.len()).map(|row| (labels.len() - row) as f64).collect();
    Dataset::new(Features::Dense { cols: 1, values }, labels)
}

/// `counts[c]` rows of each class c, in turn.
fn labels(counts: &[usize]) -> Vec<u32> {
    let longest = counts.iter().copied().max().unwrap_or(0);
    let turn = |i| (0..counts.len()).filter(move |&c| i < counts[c]).map(|c| c as u32);
    (0..longest).flat_map(turn).collect()
}

fn cut(
    section: &str,
    train: &Dataset,
    classes: usize,
    nodes: usize,
    seed: u64,
) -> Result<Partition> {
    let source = Source::new("partition.toml", section);
    let choice = partitions().read(source.root()?)?;
    split(&choice, &Rows::of(train, classes, nodes, seed))
}

fn sizes(partition: &Partition) -> Vec<usize> {
    partition.nodes.iter().map(Vec::len).collect()
}

/// All rows that are held, sorted.
fn held(partition: &Partition) -> Vec<u32> {
    let mut rows = partition.nodes.concat();
    rows.sort_unstable();
    rows
}

fn assert_once(partition: &Partition, rows: usize) {
    let held = held(partition);
    assert!(held.windows(2).all(|pair| pair[0] < pair[1]), "a row is held twice");
    assert!(held.last().is_none_or(|&last| (last as usize) < rows), "a row is out of range");
}

fn assert_all(partition: &Partition, rows: usize) {
    assert_eq!(held(partition), (0..rows as u32).collect::<Vec<_>>());
}

#[test]
fn rows_held_out_follow_each_nodes_own_classes() {
    let train = dataset(labels(&[300, 200, 100]));
    let mut kept = cut("name = 'classes'\nper_node = 2", &train, 3, 6, 4).unwrap();
    let before = kept.clone();
    let out = kept.hold_out(0.2, train.labels(), None, 4).unwrap();
    let counts = before.counts(train.labels(), 3);
    let taken = Partition { nodes: out.clone() }.counts(train.labels(), 3);
    for node in 0..6 {
        assert_eq!(out[node].len(), (0.2 * before.nodes[node].len() as f64).round() as usize);
        for class in 0..3 {
            let due = 0.2 * counts[node][class] as f64;
            assert!((taken[node][class] as f64 - due).abs() <= 1.0, "{taken:?} of {counts:?}");
        }
        // Nothing is lost, nothing is in both, and the order of the rows that stay is as it was.
        let stays: Vec<u32> =
            before.nodes[node].iter().copied().filter(|row| !out[node].contains(row)).collect();
        assert_eq!(kept.nodes[node], stays);
        assert_eq!(stays.len() + out[node].len(), before.nodes[node].len());
    }
    // A node's draw depends on nothing but its own rows and the seed.
    let mut alone = before.clone();
    alone.nodes[..5].iter_mut().for_each(Vec::clear);
    assert_eq!(alone.hold_out(0.2, train.labels(), None, 4).unwrap()[5], out[5]);
    assert_ne!(before.clone().hold_out(0.2, train.labels(), None, 5).unwrap(), out);
    // However small the share, a node holds a row out; and it keeps one.
    let few = || Partition { nodes: vec![vec![0, 1], vec![2, 3, 4]] };
    assert!(
        few().hold_out(0.01, train.labels(), None, 1).unwrap().iter().all(|out| out.len() == 1)
    );
    let mut rest = few();
    rest.hold_out(0.99, train.labels(), None, 1).unwrap();
    assert_eq!(sizes(&rest), [1, 1]);
    let mut single = Partition { nodes: vec![vec![0, 1], vec![7]] };
    let refused = single.hold_out(0.5, train.labels(), None, 1).unwrap_err();
    assert_eq!(refused.id, "partition/too-few-samples");
}

/// MNIST's class counts.
const MNIST: [usize; 10] = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949];

/// Section 5.1, Figures 1 to 4: the four settings with MNIST's class counts.
#[test]
fn class_subsets_fill_the_papers_settings() {
    let train = dataset(labels(&MNIST));
    for (nodes, per_node, samples) in [(4, 8, 14_000), (8, 7, 6500), (8, 8, 7500), (8, 7, 7500)] {
        for seed in 0..5 {
            let section = format!("name = 'classes'\nper_node = {per_node}\nsamples = {samples}");
            let partition = cut(&section, &train, 10, nodes, seed).unwrap();
            assert_eq!(sizes(&partition), vec![samples; nodes]);
            assert_once(&partition, train.len());
            for counts in partition.counts(train.labels(), 10) {
                let own: Vec<usize> = counts.into_iter().filter(|&count| count > 0).collect();
                assert_eq!(own.len(), per_node);
            }
        }
    }
}

#[test]
fn class_shares_are_equal_as_long_as_the_classes_last() {
    let train = dataset(labels(&[100; 10]));
    let partition = cut("name = 'classes'\nper_node = 3\nsamples = 31", &train, 10, 8, 1).unwrap();
    for counts in partition.counts(train.labels(), 10) {
        let own: Vec<usize> = counts.into_iter().filter(|&count| count > 0).collect();
        assert!(own.iter().all(|count| (10..=11).contains(count)), "{own:?}");
    }
}

/// Nodes hold {0, 1} or {0, 2}: if the first take all of class 0, the second have too few samples.
#[test]
fn class_samples_are_swapped_when_a_plain_deal_gets_stuck() {
    let train = dataset(labels(&[10, 40, 2]));
    let mut found = 0;
    for seed in 0..60 {
        let section = "name = 'classes'\nper_node = 2\nsamples = 12";
        let Ok(partition) = cut(section, &train, 3, 2, seed) else { continue };
        assert_eq!(sizes(&partition), [12, 12]);
        assert_once(&partition, 52);
        let counts = partition.counts(train.labels(), 3);
        found += usize::from(counts.iter().any(|counts| counts[0] == 10 && counts[2] == 2));
    }
    assert!(found > 0, "no seed leads to this case");
}

#[test]
fn label_proportions_are_the_papers() {
    let train = dataset(labels(&[5000, 5000]));
    let section = "name = 'label-proportion'\nsamples = 400";
    let mut seen = (1.0f64, 0.0f64);
    for seed in 0..50 {
        let partition = cut(section, &train, 2, 10, seed).unwrap();
        assert_eq!(sizes(&partition), [400; 10]);
        assert_once(&partition, 10_000);
        for (node, counts) in partition.counts(train.labels(), 2).iter().enumerate() {
            let off = counts[0] as f64 / 400.0 - if node < 5 { 0.8 } else { 0.35 };
            assert!(off.abs() <= 0.15 + 1.0 / 800.0, "node {node} is off by {off}");
            seen = (seen.0.min(off), seen.1.max(off));
        }
    }
    assert!(seen.0 < -0.13 && seen.1 > 0.13, "the offsets do not fill [-.15, .15]: {seen:?}");
}

#[test]
fn label_proportions_without_samples_take_as_many_as_there_are() {
    let train = dataset(labels(&[2747, 9493]));
    let partition = cut("name = 'label-proportion'", &train, 2, 10, 0).unwrap();
    let each = partition.nodes[0].len();
    assert_eq!(sizes(&partition), vec![each; 10]);
    assert_once(&partition, train.len());
    let more = format!("name = 'label-proportion'\nsamples = {}", each + 1);
    let error = cut(&more, &train, 2, 10, 0).unwrap_err();
    assert_eq!(error.id, "partition/too-few-samples");
    assert!(error.hint.unwrap().contains(&format!("at most {each} ")));
}

#[test]
fn shards_give_a_node_few_classes() {
    let train = dataset(labels(&[100; 10]));
    let partition = cut("name = 'shards'", &train, 10, 10, 3).unwrap();
    assert_all(&partition, 1000);
    assert_eq!(sizes(&partition), [100; 10]);
    for counts in partition.counts(train.labels(), 10) {
        assert!(counts.iter().filter(|&&count| count > 0).count() <= 2, "{counts:?}");
    }
}

/// The mean distance of the nodes' class shares from the overall shares.
fn skew(section: &str, seed: u64) -> f64 {
    let train = dataset(labels(&[200; 5]));
    let counts = cut(section, &train, 5, 10, seed).unwrap().counts(train.labels(), 5);
    let of = |counts: &Vec<usize>| {
        let all: usize = counts.iter().sum();
        counts.iter().map(|&count| (count as f64 / all as f64 - 0.2).abs()).sum::<f64>()
    };
    counts.iter().map(of).sum::<f64>() / 10.0
}

#[test]
fn dirichlet_partitions_grow_alike_with_alpha() {
    for kind in ["dirichlet-class", "dirichlet-node"] {
        let mean = |alpha: f64| {
            let section = format!("name = '{kind}'\nalpha = {alpha:?}");
            (0..10).map(|seed| skew(&section, seed)).sum::<f64>() / 10.0
        };
        let (strong, middle, weak) = (mean(0.05), mean(1.0), mean(1000.0));
        assert!(strong > 0.9 && weak < 0.25, "{kind}: {strong} {weak}");
        assert!(strong > middle && middle > weak, "{kind}: {strong} {middle} {weak}");
    }
}

#[test]
fn dirichlet_by_class_repairs_small_nodes() {
    let train = dataset(labels(&[60, 60]));
    for seed in 0..50 {
        let section = "name = 'dirichlet-class'\nalpha = 0.01\nmin_size = 9";
        let partition = cut(section, &train, 2, 12, seed).unwrap();
        assert_all(&partition, 120);
        assert!(sizes(&partition).iter().all(|&size| size >= 9), "{:?}", sizes(&partition));
    }
}

#[test]
fn quantities_are_as_asked() {
    let train = dataset(labels(&[500, 500]));
    let of = |section: &str| sizes(&cut(section, &train, 2, 4, 0).unwrap());
    assert_eq!(of("name = 'quantity'\nsizes = [1, 20, 300, 4]"), [1, 20, 300, 4]);
    assert_eq!(of("name = 'quantity'"), [100, 200, 300, 400]);
    assert_eq!(of("name = 'quantity'\npower = 0.0"), [250; 4]);
    assert_eq!(of("name = 'quantity'\npower = 60.0\nmin_size = 7")[..3], [7; 3]);
    let drawn = of("name = 'quantity'\nalpha = 0.3");
    assert_eq!(drawn.iter().sum::<usize>(), 1000);
    assert!(drawn.iter().max().unwrap() > &400, "{drawn:?}");
}

#[test]
fn a_column_cuts_by_its_values() {
    let train = dataset(labels(&[30, 33]));
    let partition = cut("name = 'column'\ncolumn = 0", &train, 2, 5, 0).unwrap();
    assert_all(&partition, 63);
    assert_eq!(sizes(&partition), [13, 13, 13, 12, 12]);
    // The feature decreases with the row, so node 0 has the last rows.
    assert_eq!(partition.nodes[0].iter().min(), Some(&50));
    assert_eq!(partition.nodes[4].iter().max(), Some(&11));
}

fn grouped(of: Vec<u32>, groups: u32) -> Dataset {
    let names = (0..groups).map(|group| group.to_string()).collect();
    dataset(vec![0; of.len()]).grouped(Groups { of, names })
}

#[test]
fn groups_stay_whole() {
    let train = grouped(vec![2, 0, 0, 1, 2, 2], 3);
    let partition = cut("name = 'group'", &train, 1, 3, 0).unwrap();
    let sorted = |node: usize| {
        let mut rows = partition.nodes[node].clone();
        rows.sort_unstable();
        rows
    };
    assert_eq!([sorted(0), sorted(1), sorted(2)], [vec![1, 2], vec![3], vec![0, 4, 5]]);
    let partition = cut("name = 'group'", &train, 1, 2, 0).unwrap();
    assert_eq!(sizes(&partition), [3, 3]);
    assert_all(&partition, 6);
}

#[test]
fn a_node_list_is_in_random_order() {
    let train = dataset(labels(&[300, 300]));
    for section in [
        "name = 'classes'\nper_node = 2",
        "name = 'label-proportion'",
        "name = 'dirichlet-class'\nalpha = 50.0",
        "name = 'dirichlet-node'\nalpha = 50.0",
        "name = 'shards'\nper_node = 10",
        "name = 'iid'",
    ] {
        let partition = cut(section, &train, 2, 2, 4).unwrap();
        let rows = &partition.nodes[0];
        let share = |rows: &[u32]| {
            let zeros = rows.iter().filter(|&&row| train.labels()[row as usize] == 0).count();
            zeros as f64 / rows.len() as f64
        };
        let (first, second) = rows.split_at(rows.len() / 2);
        assert!((share(first) - share(second)).abs() < 0.2, "{section}: halves differ");
    }
}

#[test]
fn files_bring_partitions_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("partition.json");
    let train = dataset(labels(&[20, 30]));
    let partition = cut("name = 'dirichlet-class'", &train, 2, 4, 9).unwrap();
    partition.write(&path, 50).unwrap();
    let section = format!("name = 'file'\npath = '{}'", path.display());
    let back = cut(&section, &train, 2, 4, 0).unwrap();
    assert_eq!(back, partition);
    assert_eq!(back.digest(), partition.digest());
    assert_eq!(cut(&section, &train, 2, 3, 0).unwrap_err().id, "partition/wrong-nodes");
    let other = dataset(labels(&[20, 31]));
    assert_eq!(cut(&section, &other, 2, 4, 0).unwrap_err().id, "partition/wrong-data");
}

#[test]
fn bad_partition_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.json");
    let cases = [
        ("", "partition/bad-file", "p.json:1:0"),
        ("{\"samples\": 3", "partition/bad-file", "p.json:1:13"),
        ("{\"samples\": 3}", "partition/bad-file", "p.json:1:14"),
        ("{\"samples\": 3,\n\"nodes\": [[0], [-1]]}", "partition/bad-file", "p.json:2:"),
        ("{\"samples\": 3, \"nodes\": [[0], [1]], \"more\": 1}", "partition/bad-file", "p.json:1:"),
        ("{\"samples\": 4, \"nodes\": [[0], [1]]}", "partition/wrong-data", "p.json"),
        ("{\"samples\": 3, \"nodes\": [[0], [3]]}", "partition/no-sample", "p.json"),
        ("{\"samples\": 3, \"nodes\": [[0, 1], [1]]}", "partition/twice", "p.json"),
        ("{\"samples\": 3, \"nodes\": [[0, 1, 2]]}", "partition/wrong-nodes", "p.json"),
        ("{\"samples\": 3, \"nodes\": [[0, 1], []]}", "partition/empty-node", ""),
        (
            "{\"samples\": 3, \"digest\": \"0\", \"nodes\": [[0], [1]]}",
            "partition/wrong-digest",
            "p.json",
        ),
    ];
    let train = dataset(vec![0; 3]);
    let section = format!("name = 'file'\npath = '{}'", path.display());
    assert_eq!(cut(&section, &train, 1, 2, 0).unwrap_err().id, "data/unreadable");
    for (text, id, place) in cases {
        std::fs::write(&path, text).unwrap();
        let error = cut(&section, &train, 1, 2, 0).unwrap_err();
        assert_eq!(error.id, id, "{text}");
        assert!(error.place.unwrap_or_default().contains(place), "{text}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |section: &str, counts: &[usize], nodes: usize| -> Error {
        cut(section, &dataset(labels(counts)), counts.len(), nodes, 0).unwrap_err()
    };
    let cases: [(&str, &[usize], usize, &str); 22] = [
        ("name = 'iid'", &[2, 2], 5, "partition/too-few-samples"),
        ("name = 'iid'", &[2, 2], 0, "partition/no-nodes"),
        ("name = 'iid'\nsamples = 3", &[2, 3], 2, "partition/too-few-samples"),
        ("name = 'iid'\nsamples = 0", &[2, 3], 2, "config/out-of-range"),
        ("name = 'iid'\nsamples = 9000000000000000000", &[2, 3], 3, "partition/too-few-samples"),
        ("name = 'classes'\nper_node = 3", &[5, 5], 2, "partition/too-few-classes"),
        ("name = 'classes'\nper_node = 2", &[5, 0], 2, "partition/too-few-classes"),
        ("name = 'classes'\nper_node = 0", &[5, 5], 2, "config/out-of-range"),
        ("name = 'classes'", &[5, 5], 2, "config/missing-key"),
        ("name = 'classes'\nper_node = 1\nsamples = 4", &[9, 3], 2, "partition/too-few-samples"),
        ("name = 'classes'\nper_node = 1", &[50, 1], 4, "partition/empty-node"),
        ("name = 'shards'\nper_node = 3", &[2, 3], 2, "partition/too-few-samples"),
        ("name = 'dirichlet-class'\nalpha = 0.0", &[5, 5], 2, "config/out-of-range"),
        ("name = 'dirichlet-node'\nalpha = nan", &[5, 5], 2, "config/out-of-range"),
        ("name = 'dirichlet-class'\nmin_size = 6", &[5, 5], 2, "partition/too-few-samples"),
        ("name = 'label-proportion'", &[5, 5, 5], 2, "partition/not-binary"),
        ("name = 'label-proportion'\nfirst = 0.9", &[5, 5], 2, "config/out-of-range"),
        ("name = 'quantity'\nsizes = [1]", &[5, 5], 2, "partition/wrong-nodes"),
        ("name = 'quantity'\nsizes = [9, 2]", &[5, 5], 2, "partition/too-few-samples"),
        ("name = 'quantity'\nsizes = [1, 2]\nalpha = 1.0", &[5, 5], 2, "config/out-of-range"),
        ("name = 'column'\ncolumn = 1", &[5, 5], 2, "data/no-column"),
        ("name = 'group'", &[5, 5], 2, "partition/no-groups"),
    ];
    for (section, counts, nodes, id) in cases {
        assert_eq!(refused(section, counts, nodes).id, id, "{section}");
    }
    let train = grouped(vec![0, 0, 1, 1], 2);
    assert_eq!(cut("name = 'group'", &train, 1, 3, 0).unwrap_err().id, "partition/too-few-groups");
}

#[test]
fn every_partition_is_listed() {
    let registry = partitions();
    let names = registry.names();
    let known = [
        "iid",
        "classes",
        "shards",
        "dirichlet-class",
        "dirichlet-node",
        "label-proportion",
        "quantity",
        "column",
        "group",
        "own",
        "file",
    ];
    assert_eq!(names, known);
}

/// Partitions that use every sample, for any labels.
const WHOLE: [&str; 7] = [
    "name = 'iid'",
    "name = 'shards'\nper_node = 1",
    "name = 'dirichlet-class'\nalpha = 0.1",
    "name = 'dirichlet-node'\nalpha = 0.1",
    "name = 'quantity'\nalpha = 0.2",
    "name = 'quantity'\npower = 2.0",
    "name = 'column'\ncolumn = 0",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whole_partitions_hold_every_sample_once_and_no_node_is_empty(
        labels in prop::collection::vec(0..6u32, 1..200),
        nodes in 1..20usize,
        seed: u64,
    ) {
        let train = dataset(labels);
        for section in WHOLE {
            match cut(section, &train, 6, nodes, seed) {
                Ok(partition) => {
                    assert_all(&partition, train.len());
                    prop_assert!(sizes(&partition).iter().all(|&size| size > 0), "{}", section);
                    let counts = partition.counts(train.labels(), 6);
                    prop_assert_eq!(counts.concat().iter().sum::<usize>(), train.len());
                    let again = cut(section, &train, 6, nodes, seed).unwrap();
                    prop_assert_eq!(partition.digest(), again.digest());
                }
                Err(error) => {
                    prop_assert_eq!(error.id, "partition/too-few-samples");
                    prop_assert!(nodes > train.len(), "{}", section);
                }
            }
        }
    }

    #[test]
    fn equal_partitions_are_equal(
        labels in prop::collection::vec(0..6u32, 20..200),
        nodes in 1..20usize,
        seed: u64,
    ) {
        let train = dataset(labels);
        for section in ["name = 'iid'", "name = 'dirichlet-node'", "name = 'column'\ncolumn = 0"] {
            let sizes = sizes(&cut(section, &train, 6, nodes, seed).unwrap());
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{}", section);
        }
        let each = train.len() / nodes;
        for kind in ["iid", "dirichlet-node"] {
            let section = format!("name = '{kind}'\nsamples = {each}");
            let partition = cut(&section, &train, 6, nodes, seed).unwrap();
            prop_assert_eq!(sizes(&partition), vec![each; nodes]);
            assert_once(&partition, train.len());
        }
    }

    #[test]
    fn class_subsets_keep_their_promises(
        counts in prop::collection::vec(20..60usize, 2..8),
        nodes in 1..12usize,
        per_node in 1..8usize,
        seed: u64,
    ) {
        let classes = counts.len();
        let per_node = per_node.min(classes);
        let train = dataset(labels(&counts));
        let section = format!("name = 'classes'\nper_node = {per_node}");
        let partition = cut(&section, &train, classes, nodes, seed).unwrap();
        assert_once(&partition, train.len());
        let by_node = partition.counts(train.labels(), classes);
        let has = |counts: &Vec<usize>, class: usize| usize::from(counts[class] > 0);
        for counts in &by_node {
            prop_assert_eq!((0..classes).map(|c| has(counts, c)).sum::<usize>(), per_node);
        }
        // The numbers of nodes per class differ by at most one, and every class is used up.
        for class in 0..classes {
            let holders: usize = by_node.iter().map(|counts| has(counts, class)).sum();
            prop_assert!(holders == nodes * per_node / classes || holders == (nodes * per_node).div_ceil(classes));
            let used: usize = by_node.iter().map(|counts| counts[class]).sum();
            prop_assert_eq!(used, if holders > 0 { counts[class] } else { 0 });
        }
    }

    /// With `samples`: exactly that many per node, from its classes, none twice; or an error that
    /// an exhaustive count (Hall's condition) confirms.
    #[test]
    fn class_subsets_of_a_size_are_found_whenever_there_are_any(
        counts in prop::collection::vec(1..12usize, 2..5),
        nodes in 1..5usize,
        samples in 1..12usize,
        seed: u64,
    ) {
        let (classes, per_node) = (counts.len(), 2);
        let train = dataset(labels(&counts));
        // The classes of each node do not depend on `samples`: a plain split shows them.
        let plain = format!("name = 'classes'\nper_node = {per_node}");
        let sized = format!("{plain}\nsamples = {samples}");
        let result = cut(&sized, &train, classes, nodes, seed);
        if let Ok(partition) = &result {
            prop_assert_eq!(sizes(partition), vec![samples; nodes]);
            assert_once(partition, train.len());
        }
        let Ok(whole) = cut(&plain, &train, classes, nodes, seed) else { return Ok(()) };
        let by_node = whole.counts(train.labels(), classes);
        // A plain split shows all classes of a node only if each had enough for all its holders.
        prop_assume!(by_node.iter().all(|c| c.iter().filter(|&&n| n > 0).count() == per_node));
        let possible = (1..1u32 << nodes).all(|some| {
            let chosen: Vec<usize> = (0..nodes).filter(|i| some >> i & 1 == 1).collect();
            let reach = (0..classes).filter(|&c| chosen.iter().any(|&i| by_node[i][c] > 0));
            reach.map(|c| counts[c]).sum::<usize>() >= chosen.len() * samples
        });
        prop_assert_eq!(result.is_ok(), possible);
    }

    #[test]
    fn label_proportions_keep_their_promises(
        zeros in 30..300usize,
        ones in 30..300usize,
        nodes in 1..8usize,
        seed: u64,
    ) {
        let train = dataset(labels(&[zeros, ones]));
        let partition = cut("name = 'label-proportion'", &train, 2, nodes, seed).unwrap();
        assert_once(&partition, train.len());
        let each = partition.nodes[0].len();
        prop_assert_eq!(sizes(&partition), vec![each; nodes]);
        for (node, counts) in partition.counts(train.labels(), 2).iter().enumerate() {
            let middle = if node < nodes.div_ceil(2) { 0.8 } else { 0.35 };
            let off = counts[0] as f64 / each as f64 - middle;
            prop_assert!(off.abs() <= 0.15 + 0.5 / each as f64 + 1e-12);
        }
    }

    #[test]
    fn files_round_trip(lists in prop::collection::vec(0..5usize, 1..6)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.json");
        let mut next = 0..;
        let nodes = lists.iter().map(|&size| next.by_ref().take(size).collect()).collect();
        let partition = Partition { nodes };
        partition.write(&path, 30).unwrap();
        prop_assert_eq!(Partition::read(&path, 30).unwrap(), partition);
    }
}
