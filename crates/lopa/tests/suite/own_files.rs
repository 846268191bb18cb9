//! One file per node: columns by name, and scalings by own, agreed or given moments.

use std::ops::Range;

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
    own_of(files, more, 0..3)
}

/// The data of a process that has some of the nodes.
fn own_of(files: &[File], more: &str, here: Range<usize>) -> Result<Data> {
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
    load_own(&each, &preparation, &names, here, &Where::new(Some(folder.path()), 0))
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

/// A file may lack a group, and has its groups in any order; each process reads the files of its nodes only.
#[test]
fn groups_have_the_numbers_of_their_list() {
    let groups: [&[&str]; 3] =
        [&["b", "a", "b", "c"], &["c", "c", "a", "a", "c"], &["b", "b", "b"]];
    let grouped = files().into_iter().zip(groups).map(|((name, bytes), groups)| {
        let text = String::from_utf8(bytes).unwrap();
        let groups = std::iter::once(&"of").chain(groups);
        let lines = text.lines().zip(groups).map(|(line, group)| format!("{line},{group}\n"));
        (name, lines.collect::<String>().into_bytes())
    });
    let grouped: Vec<File> = grouped.collect();
    let more = "group = 'of'\ngroup_names = ['c', 'a', 'x', 'b']\nscaling = 'standardise'";
    let number =
        |name: &&str| ["c", "a", "x", "b"].iter().position(|own| own == name).unwrap() as u32;
    let numbers = |groups: &[&[&str]]| -> Vec<u32> {
        groups.iter().flat_map(|groups| groups.iter().map(number)).collect()
    };
    let data = own(&grouped, more).unwrap();
    let found = data.train.groups().unwrap();
    assert_eq!(found.of, numbers(&groups));
    assert_eq!(found.names, ["c", "a", "x", "b"]);
    for here in [0..1, 1..3, 2..3] {
        let data = own_of(&grouped, more, here.clone()).unwrap();
        let found = data.train.groups().unwrap();
        assert_eq!(found.of, numbers(&groups[here]));
        assert_eq!(found.names, ["c", "a", "x", "b"]);
    }
    assert!(own(&grouped, "group = 'of'").unwrap().train.groups().is_none());
    for (more, id, says) in [
        ("group = 'of'\ngroup_names = ['a', 'b']", "data/unknown-group", "group `c`"),
        ("drop = ['of']\ngroup_names = ['a', 'b', 'c']", "config/no-meaning", "no groups"),
        ("group = 'of'\ngroup_names = ['a', 'b', 'a']", "config/out-of-range", "different names"),
        ("group = 'of'\ngroup_names = []", "config/out-of-range", "different names"),
    ] {
        let error = own(&grouped, more).unwrap_err();
        assert_eq!(error.id, id, "{error}");
        assert!(error.to_string().contains(says), "{error}");
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
fn labels_that_are_not_listed_are_refused_by_name_and_count() {
    let mut files = files();
    files[0].1.extend_from_slice(b"38,140,perhaps\n38,141,perhaps\n36,119,YES\n");
    let error = own(&files, "").unwrap_err();
    assert_eq!(error.id, "data/unknown-label");
    let said = "3 rows of `north` have labels that `classes` does not list: \"perhaps\" (2 rows), \"YES\" \
                (1 row, did you mean `yes`?)";
    assert_eq!(error.message, said);
    assert!(error.hint.unwrap().contains("unknown_labels = \"drop\""));
    // A file of which no label is listed is no exception.
    files[0].1 = b"t,p,ill\n36,120,No\n40,150,Yes\n".to_vec();
    assert_eq!(own(&files, "").unwrap_err().id, "data/unknown-label");
}

#[test]
fn rows_that_are_left_out_on_demand_are_counted() {
    let drop = "unknown_labels = 'drop'";
    assert!(own(&files(), drop).unwrap().left_out.is_empty());
    let mut files = files();
    files[0].1.extend_from_slice(b"38,140,perhaps\n38,141,perhaps\n36,119,YES\n");
    files[2].1.extend_from_slice(b"maybe,119,36\n");
    let data = own(&files, drop).unwrap();
    let said = &data.left_out;
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("left out: 3 rows of `north` have labels that"), "{said:?}");
    assert!(
        said[1].contains("1 row of `west` has a label") && said[1].contains("\"maybe\""),
        "{said:?}"
    );
    assert_eq!(data.train.labels().len(), 12, "the others stay");
}

#[test]
fn one_file_is_held_to_the_same_rule() {
    let text = b"t,p,ill\n36,120,no\n40,150,yes\n37,130,no\n39,145,Yes\n".to_vec();
    let load = |more: &str| {
        let section = format!("name = 'csv'\npath = 'a.csv'\ntest = 0\n{more}");
        load_files(&section, &[("a.csv", text.clone())])
    };
    let error = load("classes = ['no', 'yes']").unwrap_err();
    assert_eq!(error.id, "data/unknown-label");
    assert!(error.message.contains("\"Yes\" (1 row, did you mean `yes`?)"), "{error}");
    let data = load("classes = ['no', 'yes']\nunknown_labels = 'drop'").unwrap();
    assert_eq!((data.train.len(), data.left_out.len()), (3, 1));
    // Without a list, the two spellings are named; with both in it, they are two classes.
    let error = load("").unwrap_err();
    assert_eq!(error.id, "data/near-classes");
    assert!(error.message.contains("\"Yes\" (1 row) and \"yes\" (1 row)"), "{error}");
    assert_eq!(load("classes = ['no', 'yes', 'Yes']").unwrap().classes.len(), 3);
    let error = load("unknown_labels = 'drop'").unwrap_err();
    assert!(error.message.contains("go with `classes`"), "{error}");
    // A published set knows its classes: choosing two of ten leaves the others out.
    let digits = load_files("name = 'digits'\nclasses = [0, 1]", &[]).unwrap();
    assert!(digits.left_out.is_empty() && digits.classes.len() == 2);
}

#[test]
fn columns_are_left_out_by_name_or_number() {
    let files = [("a.csv", b"id,t,note,p,ill\n7,36,x,120,no\n8,40,y,150,yes\n".to_vec())];
    let load = |more: &str| {
        let section = format!("name = 'csv'\npath = 'a.csv'\ntest = 0\n{more}");
        load_files(&section, &files)
    };
    for drop in ["['id', 'note']", "[0, 2]", "[0, 'note']"] {
        let data = load(&format!("drop = {drop}")).unwrap();
        assert_eq!(dense(&data.train), [[36.0, 120.0], [40.0, 150.0]]);
        let columns = data.columns.unwrap();
        assert_eq!(
            (columns.features, columns.dropped),
            (names(&["t", "p"]), names(&["id", "note"]))
        );
    }
    for (drop, says) in
        [("['idd']", "no column is named `idd`"), ("['ill']", "the label and left out")]
    {
        let error = load(&format!("drop = {drop}")).unwrap_err();
        assert_eq!(error.id, "data/no-column");
        assert!(error.message.contains(says), "{error}");
    }
    let error = load("").unwrap_err();
    assert!(error.hint.unwrap().contains("drop = [\"note\"]"));
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn bad_cells_are_counted_and_explained() {
    for (text, id, says, remedy) in [
        (
            "t,p,ill\n36,120,no\nhot,x,yes\n37,,no\n1,low,no\n",
            "data/bad-number",
            "4 cells are not numbers: `hot` in column `t` (1 of 3), line 3; `x` in column `p` (2 of 3), line 3; \
             nothing in column `p` (2 of 3), line 4; and 1 more",
            "drop = [\"t\"]",
        ),
        (
            "36;1,5;no\n37;2,5;yes\n",
            "data/bad-number",
            "`1,5` in column 2 of 3, line 1",
            "write `1.5`",
        ),
        (
            "t;p;ill\n36,5;1,5;no\n",
            "data/bad-number",
            "`36,5` in column `t` (1 of 3)",
            "write `36.5`",
        ),
        ("t,ill\n\"1,234,567\",no\n", "data/bad-number", "is not a number", "write `1234567`"),
        ("t,ill\n,no\n", "data/bad-number", "column `t` (1 of 2) has no value", "fill in"),
        (
            "t,p,ill\n,1,no\n2,NA,no\n",
            "data/bad-number",
            "2 cells have no value: column `t` (1 of 3), line 2; `NA` in column `p` (2 of 3), line 3",
            "fill in",
        ),
        ("d,t,ill\n2021-03-04,1,no\n", "data/bad-number", "is not a number", "drop = [\"d\"]"),
        (
            "t,ill\n1,no\n2,\n3,?\n",
            "data/bad-label",
            "2 rows have no label in column `ill` (2 of 2): lines 3, 4",
            "fill",
        ),
        ("t,p,ill\n1,2,no\n1,5,2,yes\n", "data/ragged", "the row has 4 columns", "decimal points"),
    ] {
        // Lines are counted alike however they end.
        for text in [text.to_string(), text.replace('\n', "\r\n")] {
            let section = "name = 'csv'\npath = 'a.csv'\ntest = 0\n";
            let error = load_files(section, &[("a.csv", text.as_bytes().to_vec())]).unwrap_err();
            assert_eq!(error.id, id, "{text}: {error}");
            assert!(error.message.contains(says), "{text}: {error}");
            let hint = error.hint.as_ref();
            assert!(hint.is_some_and(|hint| hint.contains(remedy)), "{text}: {error}");
        }
    }
    for text in ["t,ill\n\n1,no\n\n\nx,yes\n", "t,ill\r\n\r\n1,\"n\r\no\"\r\nx,yes\r\n"] {
        let files = [("a.csv", text.as_bytes().to_vec())];
        let error = load_files("name = 'csv'\npath = 'a.csv'\ntest = 0", &files).unwrap_err();
        let line = text.lines().position(|line| line.starts_with('x')).unwrap() + 1;
        let place = error.place.unwrap();
        assert!(place.ends_with(&format!("a.csv:{line}")), "{text:?}: {place}");
    }
    let latin = b"t,ill\n1,no\n2,b\xe9nin\n".to_vec();
    let error = load_files("name = 'csv'\npath = 'a.csv'", &[("a.csv", latin)]).unwrap_err();
    assert!(error.message.contains("`\u{e9}` in Latin-1"), "{error}");
    assert!(error.place.unwrap().ends_with("a.csv:3") && error.hint.unwrap().contains("iconv"));
}

#[test]
fn semicolons_are_found_without_being_named() {
    let files = [("a.csv", b"t;p;ill\n36;120;no\n40.5;150;yes\n".to_vec())];
    let data = load_files("name = 'csv'\npath = 'a.csv'\ntest = 0", &files).unwrap();
    assert_eq!(dense(&data.train), [[36.0, 120.0], [40.5, 150.0]]);
}
