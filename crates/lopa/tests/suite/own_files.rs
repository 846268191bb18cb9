//! A file for each node: columns by name, and scalings by whose moments.

use crate::files::{File, dense, load_files};
use lopa::config::Source;
use lopa::data::{Data, Where, each_own, load_own, read, sources};
use lopa::error::Result;

const NODES: [&str; 3] = ["north", "south", "west"];

/// Temperatures and pressures of three hospitals; the west writes its columns in another order.
fn files() -> [File; 3] {
    [
        ("north.csv", b"t,p,ill\n36,120,no\n40,150,yes\n37,130,no\n39,145,yes\n".to_vec()),
        (
            "south.csv",
            b"t,p,ill\n35,110,no\n38,160,yes\n36,115,no\n41,155,yes\n36,121,no\n".to_vec(),
        ),
        ("west.csv", b"ill,p,t\nyes,170,39\nno,125,36\nno,118,35\n".to_vec()),
    ]
}

fn own(files: &[File], more: &str) -> Result<Data> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let section = format!(
        "name = 'csv'\npath = '{{node}}.csv'\nnodes = {NODES:?}\nclasses = ['no', 'yes']\n\
         label = 'ill'\ntest = 0\n{more}"
    );
    let source = Source::new("e.toml", &section);
    let (choice, preparation) = read(source.root()?, &sources())?;
    let names = preparation.nodes.clone().unwrap();
    let each = each_own(&choice, &names, &sources())?;
    load_own(&each, &preparation, &names, 0..3, &Where::new(Some(folder.path()), 0))
}

/// All rows in one file.
fn whole(more: &str) -> Data {
    let text = "t,p,ill\n36,120,no\n40,150,yes\n37,130,no\n39,145,yes\n35,110,no\n38,160,yes\n\
                36,115,no\n41,155,yes\n36,121,no\n39,170,yes\n36,125,no\n35,118,no\n";
    let section = format!("name = 'csv'\npath = 'a.csv'\nlabel = 'ill'\ntest = 0\n{more}");
    load_files(&section, &[("a.csv", text.as_bytes().to_vec())]).unwrap()
}

fn near(a: &[Vec<f64>], b: &[Vec<f64>]) -> bool {
    let pairs = || a.iter().flatten().zip(b.iter().flatten());
    a.len() == b.len() && pairs().all(|(a, b)| (a - b).abs() < 1e-12)
}

#[test]
fn agreed_moments_are_those_of_all_rows() {
    for scaling in ["standardise", "unit", "centre", "tf-idf", "row", "log"] {
        let scaling = format!("scaling = '{scaling}'");
        let agreed = own(&files(), &format!("{scaling}\nmoments = 'agreed'")).unwrap();
        let all = whole(&scaling);
        assert!(near(&dense(&agreed.train), &dense(&all.train)), "{scaling}");
        assert_eq!(agreed.scaling.as_slice().len(), 1, "{scaling}");
        assert_eq!(agreed.columns, all.columns);
    }
}

#[test]
fn own_moments_standardise_each_node_alone() {
    for more in ["", "moments = 'own'"] {
        let data = own(&files(), &format!("scaling = 'standardise'\n{more}")).unwrap();
        let rows = dense(&data.train);
        for (node, range) in data.train.owners().unwrap().iter().enumerate() {
            let rows = &rows[range.start as usize..range.end as usize];
            for j in 0..2 {
                let sum = |f: &dyn Fn(f64) -> f64| rows.iter().map(|row| f(row[j])).sum::<f64>();
                assert!(sum(&|value| value).abs() < 1e-12);
                assert!((sum(&|value| value * value) - rows.len() as f64).abs() < 1e-12);
            }
            assert_eq!(data.scaling.of(node).shift.len(), 2);
        }
        assert_eq!(data.scaling.of(0).shift, [38.0, 136.25]);
    }
}

#[test]
fn given_moments_are_taken_as_they_are() {
    let given = "scaling = 'standardise'\nmoments = { mean = [36, 100], deviation = [2, 10] }";
    for data in [own(&files(), given).unwrap(), whole(given)] {
        assert_eq!(dense(&data.train)[1], [2.0, 5.0]);
    }
    let unit = own(&files(), "scaling = 'unit'\nmoments = { largest = 200 }").unwrap();
    assert_eq!(dense(&unit.train)[0][1], 120.0 / 200.0);
    let short = "scaling = 'standardise'\nmoments = { mean = [36], deviation = [2, 10] }";
    let error = own(&files(), short).unwrap_err();
    assert!(error.message.contains("`moments.mean` has 1 entries for 2 features"), "{error}");
}

#[test]
fn moments_without_meaning_are_refused() {
    for (more, says) in [
        ("moments = 'agreed'", "go with a `scaling`"),
        ("scaling = 'none'\nmoments = 'own'", "go with a `scaling`"),
        ("scaling = 'unit'\nmoments = { mean = [1, 2] }", "what the `scaling` needs"),
        ("scaling = 'row'\nmoments = { largest = 2 }", "what the `scaling` needs"),
    ] {
        let error = own(&files(), more).unwrap_err();
        assert_eq!(error.id, "config/out-of-range", "{error}");
        assert!(error.message.contains(says), "{error}");
    }
    let section = "name = 'digits'\nscaling = 'unit'\nmoments = 'agreed'";
    let error = load_files(section, &[]).unwrap_err();
    assert!(error.message.contains("unless nodes have files of their own"), "{error}");
}

#[test]
fn other_columns_are_refused_by_name() {
    let mut files = files();
    files[2].1 = b"ill,pp,t\nyes,170,39\n".to_vec();
    let error = own(&files, "").unwrap_err();
    assert_eq!(error.id, "data/other-columns");
    assert!(error.message.contains("the file of `west` differs from that of `north`"), "{error}");
}

#[test]
fn rows_of_classes_that_are_not_listed_are_counted() {
    let said = |data: &Data| data.own.as_ref().unwrap().left_out.clone();
    assert!(said(&own(&files(), "").unwrap()).is_empty());
    let mut files = files();
    files[0].1.extend_from_slice(b"38,140,perhaps\n38,141,perhaps\n36,119,YES\n");
    files[2].1.extend_from_slice(b"maybe,119,36\n");
    let data = own(&files, "").unwrap();
    let why = "left out, because `classes` does not list";
    let north = format!("3 rows of `north` are {why} `YES`, `perhaps`");
    assert_eq!(said(&data), [north, format!("1 row of `west` is {why} `maybe`")]);
    assert_eq!(data.train.labels().len(), 12, "the others stay");
}
