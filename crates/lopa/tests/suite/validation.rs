//! Rows for validation that the data name: in every format, for every problem, and where nodes have files of their own.

use lopa::config::Source;
use lopa::data::{Data, Where, digest, each_own, load_own, read, sources};
use lopa::error::{Error, Result};
use lopa::experiment::Experiment;
use lopa::problem::{At, Bilevel, Setting};

use crate::files::{File, dense, doubles, header, load_files, npy, zip};
use crate::problems::cases::{CASES, all, build, close};

const TRAIN: &[u8] = b"t,p,ill\n1,2,no\n3,4,yes\n5,6,no\n7,8,yes\n9,1,no\n2,2,yes\n";
const VALIDATION: &[u8] = b"p,t,ill\n10,20,yes\n30,40,no\n";

/// The keys of a source that has six training rows and two for validation.
const CSV: &str = "name = 'csv'\npath = 'a.csv'\nvalidation_path = 'v.csv'\nlabel = 'ill'";

fn files() -> Vec<File> {
    vec![("a.csv", TRAIN.to_vec()), ("v.csv", VALIDATION.to_vec())]
}

fn csv(more: &str) -> Result<Data> {
    load_files(&format!("{CSV}\n{more}"), &files())
}

/// The rows for validation.
fn named(data: &Data) -> Vec<Vec<f64>> {
    let marks = data.train.validation().unwrap_or(&[]);
    let rows = dense(&data.train).into_iter().zip(marks);
    rows.filter(|(_, named)| **named).map(|(row, _)| row).collect()
}

#[test]
fn every_format_names_rows_for_validation() {
    let data = csv("test = 0").unwrap();
    assert_eq!(data.train.labels(), [0, 1, 0, 1, 0, 1, 1, 0]);
    assert_eq!(data.train.validation().unwrap()[5..], [false, true, true]);
    assert_eq!(named(&data), [[20.0, 10.0], [40.0, 30.0]]);
    let lines = |text: &[u8]| text.to_vec();
    let libsvm = [
        (
            "a",
            lines(b"no 1:1 2:2\nyes 1:3 2:4\nno 1:5 2:6\nyes 1:7 2:8\nno 1:9 2:1\nyes 1:2 2:2\n"),
        ),
        ("v", lines(b"yes 1:20 2:10\nno 1:40 2:30\n")),
    ];
    let section = "name = 'libsvm'\npath = 'a'\nvalidation_path = 'v'\ntest = 0\nsparse = false";
    assert_eq!(digest(&load_files(section, &libsvm).unwrap()), digest(&data));
    let numbers: Vec<f64> = vec![1., 2., 3., 4., 5., 6., 7., 8., 9., 1., 2., 2.];
    let words = |words: &[&str]| -> Vec<u8> {
        let wide = |c: char| (c as u32).to_le_bytes();
        words
            .iter()
            .flat_map(|word| format!("{word:\0<3}").chars().flat_map(wide).collect::<Vec<_>>())
            .collect()
    };
    let labels = npy(&header("<U3", "(6,)"), &words(&["no", "yes", "no", "yes", "no", "yes"]));
    let few = npy(&header("<U3", "(2,)"), &words(&["yes", "no"]));
    let arrays = [
        ("X", doubles("(6, 2)", &numbers)),
        ("y", labels),
        ("X_val", doubles("(2, 2)", &[20., 10., 40., 30.])),
        ("y_val", few),
    ];
    let keys = "validation_features = 'X_val'\nvalidation_labels = 'y_val'\ntest = 0";
    let section = format!("name = 'npy'\nfeatures = 'X'\nlabels = 'y'\n{keys}");
    assert_eq!(digest(&load_files(&section, &arrays).unwrap()), digest(&data));
    let names = arrays.each_ref().map(|(name, _)| format!("{name}.npy"));
    let entries: Vec<_> =
        names.iter().zip(&arrays).map(|(name, (_, array))| (&name[..], array.clone(), 0)).collect();
    let section = format!("name = 'npz'\npath = 'a.npz'\n{keys}");
    let packed = load_files(&section, &[("a.npz", zip(&entries))]).unwrap();
    assert_eq!(digest(&packed), digest(&data));
    // Bytes stay bytes, and bytes beside numbers become numbers.
    let bytes = npy(&header("|u1", "(2, 2)"), &[20, 10, 40, 30]);
    let mixed = arrays
        .clone()
        .map(|(name, array)| (name, if name == "X_val" { bytes.clone() } else { array }));
    let section = format!("name = 'npy'\nfeatures = 'X'\nlabels = 'y'\n{keys}");
    assert_eq!(digest(&load_files(&section, &mixed).unwrap()), digest(&data));
    let whole = [("X_val", bytes.clone()), ("y_val", arrays[3].1.clone())];
    let section = format!("name = 'npy'\nfeatures = 'X_val'\nlabels = 'y_val'\n{keys}");
    assert_eq!(named(&load_files(&section, &whole).unwrap()), [[20.0, 10.0], [40.0, 30.0]]);
}

#[test]
fn rows_for_validation_are_neither_drawn_nor_held_out() {
    let data = csv("test = 0.34\nsamples = 3").unwrap();
    assert_eq!((data.train.len(), data.test.len()), (5, 2));
    assert_eq!(named(&data), [[20.0, 10.0], [40.0, 30.0]]);
    assert!(dense(&data.test).iter().all(|row| row[0] < 10.0));
    let one = csv("test = 0\nclasses = ['no']\nunknown_labels = 'drop'").unwrap();
    assert_eq!(named(&one), [[40.0, 30.0]]);
    // They may be the only ones of a class, and are the same rows at other seeds.
    assert_ne!(digest(&csv("test = 0").unwrap()), digest(&csv("test = 0\nsamples = 5").unwrap()));
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let load = |validation: &[u8]| {
        let files = [("a.csv", TRAIN.to_vec()), ("v.csv", validation.to_vec())];
        load_files(CSV, &files).unwrap_err()
    };
    assert_eq!(load(b"t,q,ill\n1,2,no\n").id, "data/other-columns");
    let narrow = load_files(
        "name = 'csv'\npath = 'a.csv'\nvalidation_path = 'v.csv'",
        &[("a.csv", b"1,2,0\n3,4,1\n".to_vec()), ("v.csv", b"1,0\n".to_vec())],
    );
    let message = narrow.unwrap_err().message;
    assert!(message.starts_with("the rows for validation have 1 features"), "{message}");
    let missing = load_files(CSV, &files()[..1]).unwrap_err();
    assert_eq!(missing.id, "data/missing", "{missing}");
    let none = csv("classes = ['other', 'no']");
    assert_eq!(none.unwrap_err().id, "data/unknown-class");
    let empty = load_files(
        &format!("{CSV}\nclasses = ['no']\nunknown_labels = 'drop'\ntest = 0"),
        &[("a.csv", TRAIN.to_vec()), ("v.csv", b"t,p,ill\n1,2,yes\n".to_vec())],
    );
    assert_eq!(empty.unwrap_err().id, "data/empty");
    let single = "name = 'npy'\nfeatures = 'a'\nlabels = 'a'\nvalidation_features = 'a'";
    let message = load_files(single, &[]).unwrap_err().message;
    assert!(
        message.contains("`validation_features` and `validation_labels` go together"),
        "{message}"
    );
}

/// The part of the only node.
fn part(text: &str, data: &Data) -> Result<Box<dyn Bilevel<f64>>> {
    let partition = [all(data.train.len())];
    let setting =
        Setting { nodes: 1, data: Some(data), partition: &partition, ..Setting::default() };
    Ok(build(text, &setting)?.remove(0))
}

#[test]
fn f_is_of_the_rows_for_validation_and_g_of_the_others() {
    let numbers = |text: &str, data: &Data| {
        let mut part = part(text, data).unwrap();
        let dims = part.dims();
        let x: Vec<f64> = (0..dims.n).map(|j| 0.1 * j as f64).collect();
        let theta: Vec<f64> = (0..dims.p).map(|j| 0.3 - 0.2 * j as f64).collect();
        let at = At { x: &x, theta: &theta };
        let (f, g) = (all(part.samples_f()), all(part.samples_g()));
        ((f.len(), g.len()), (part.f(at, &f), part.g(at, &g)))
    };
    let section = "name = 'csv'\npath = 'a.csv'\nvalidation_path = 'v.csv'\nlabel = 'ill'\ntest = 0\n\
                   target = 'number'";
    let of = |validation: &str| {
        let train = b"t,p,ill\n1,2,3\n3,4,1\n5,6,2\n7,8,5\n";
        let files = [("a.csv", train.to_vec()), ("v.csv", validation.as_bytes().to_vec())];
        let mut data = load_files(section, &files).unwrap();
        let mut values = data.train.targets().unwrap().values.clone();
        // Back in the units of the file.
        data.scaling.of(0).target.undo(&mut values);
        data.train = data.train.targeted(lopa::data::Targets { outputs: 1, values });
        data
    };
    let data = of("t,p,ill\n2,1,4\n6,2,0\n");
    let ((f_rows, g_rows), (f, g)) = numbers("name = 'hyperparameter'\nloss = 'squared'", &data);
    assert_eq!((f_rows, g_rows), (2, 4));
    let loss = |rows: &[[f64; 3]]| {
        let one = |[t, p, y]: &[f64; 3]| (0.3 * t + 0.1 * p - y).powi(2) / 2.0;
        rows.iter().map(one).sum::<f64>() / rows.len() as f64
    };
    let ridge = 0.09 + 0.1f64.exp() * 0.01;
    close("f", &[f], &[loss(&[[2., 1., 4.], [6., 2., 0.]])], 1e-12);
    let inner = loss(&[[1., 2., 3.], [3., 4., 1.], [5., 6., 2.], [7., 8., 5.]]);
    close("g", &[g], &[inner + ridge], 1e-12);
}

#[test]
fn every_problem_with_data_takes_them() {
    let rows = |from: usize, to: usize, flip: bool| -> Vec<u8> {
        let row = |i: usize| {
            let label = (i + usize::from(flip)) % 2;
            format!("{},{},{},k{label}\n", i % 3, i % 5, (i * i) % 7)
        };
        format!("a,b,c,kind\n{}", (from..to).map(row).collect::<String>()).into_bytes()
    };
    let section = "name = 'csv'\npath = 'a.csv'\nvalidation_path = 'v.csv'\ntest = 0";
    let data = |flip: bool| {
        load_files(section, &[("a.csv", rows(0, 24, false)), ("v.csv", rows(24, 34, flip))])
            .unwrap()
    };
    let (plain, flipped) = (data(false), data(true));
    let mut tried = 0;
    for case in CASES.iter().filter(|case| case.classes == 2 && !case.text.contains("groups")) {
        let values = |data: &Data| {
            let mut part = part(case.text, data).unwrap();
            let dims = part.dims();
            let (x, theta) =
                (vec![0.2; dims.n], (0..dims.p).map(|j| 0.1 * j as f64).collect::<Vec<_>>());
            let at = At { x: &x, theta: &theta };
            let (f, g) = (all(part.samples_f()), all(part.samples_g()));
            ((f.len(), g.len()), part.f(at, &f), part.g(at, &g))
        };
        let (here, there) = (values(&plain), values(&flipped));
        assert_eq!(here.0, (10, 24), "{}", case.text);
        // Meta-learning shuffles rows by their labels, also those for validation.
        close(case.text, &[here.2], &[there.2], 1e-12);
        assert_ne!(here.1, there.1, "{}: f does not depend on them", case.text);
        tried += 1;
    }
    assert!(tried >= 8, "{tried}");
}

#[test]
fn a_node_without_them_is_named() {
    let data = csv("test = 0").unwrap();
    let partition = [vec![0, 1, 6], vec![2, 3, 4, 5], vec![7]];
    for (nodes, lacking) in [(2, "node 1 has 4 sample(s)"), (3, "node 2 has 1 sample(s)")] {
        let partition = match nodes {
            2 => &partition[..2],
            _ => &[partition[0].clone(), vec![2, 3, 4, 5, 6], partition[2].clone()][..],
        };
        let setting = Setting { nodes, data: Some(&data), partition, ..Setting::default() };
        let refused: Error = build::<f64>("name = 'hyperparameter'", &setting).err().unwrap();
        assert!(refused.message.starts_with(lacking), "{refused}");
        assert_eq!(refused.id, "data/too-few-samples");
    }
}

#[test]
fn nodes_with_files_of_their_own_name_their_own_rows() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).unwrap();
    write("east.csv", TRAIN);
    write("east-v.csv", VALIDATION);
    write("west.csv", b"ill,p,t\nyes,170,39\nno,125,36\n");
    write("west-v.csv", b"ill,p,t\nyes,1,2\n");
    let section = "name = 'csv'\npath = '{node}.csv'\nvalidation_path = '{node}-v.csv'\nlabel = 'ill'\ntest = 0\n\
                   nodes = ['east', 'west']\nclasses = ['no', 'yes']";
    let source = Source::new("e.toml", section);
    let (choice, preparation) = read(source.root().unwrap(), &sources()).unwrap();
    let names = preparation.nodes.clone().unwrap();
    let each = each_own(&choice, &names, &sources()).unwrap();
    let place = Where::new(Some(folder.path()), 0);
    let data = load_own(&each, &preparation, &names, 0..2, &place).unwrap();
    assert_eq!(named(&data), [[20.0, 10.0], [40.0, 30.0], [2.0, 1.0]]);
    assert_eq!(data.train.owners().unwrap(), [0..8, 8..11]);
}

const EXPERIMENT: &str = "\
problem = 'hyperparameter'
data = { name = 'csv', path = 'a.csv', validation_path = 'v.csv', label = 'ill', test = 0.0 }
network = { nodes = 1, graph = 'complete' }
run = { iterations = 20, evaluations = 2 }
[[algorithm]]
name = 'lopa-gt'
";

#[test]
fn an_experiment_names_them_once_and_is_read_again_as_it_was() {
    let experiment = Experiment::parse(EXPERIMENT).unwrap();
    let resolved = experiment.resolved();
    assert!(!resolved["problem"].as_table().unwrap().contains_key("validation"), "{resolved}");
    let again = Experiment::parse(&resolved.to_string()).unwrap();
    assert_eq!(again.resolved(), resolved);
    let refused = |problem: &str| {
        let text = EXPERIMENT.replace("problem = 'hyperparameter'", problem);
        Experiment::parse(&text).unwrap_err()
    };
    let share = refused("problem = { name = 'hyperparameter', validation = 0.5 }");
    assert_eq!((share.id, share.place.as_deref()), ("config/no-meaning", Some("experiment:1:51")));
    let trusted = refused("problem = { name = 'reweighting', trusted = ['A'] }");
    assert_eq!(
        (trusted.id, trusted.place.as_deref()),
        ("config/no-meaning", Some("problem.trusted"))
    );
}
