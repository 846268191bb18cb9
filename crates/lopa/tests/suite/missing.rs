//! Cells without a value, and categories: filled and encoded alike in one file, in files of nodes, and in
//! rows that a model reads later.

use lopa::config::Source;
use lopa::data::{
    Data, Encoded, Features, Named, Needed, Unnamed, Where, each_own, load_own, new_rows, read,
    sources,
};
use lopa::error::Result;

use crate::files::{dense, load_files};

const ALL: &str =
    "age,kind,dose,ill\n40,a,1,no\n?,b,3,yes\n50,,5,no\n60,a,NA,yes\n30,b,7,no\n20,a,,yes\n";
const KEYS: &str =
    "label = 'ill'\ntest = 0\ncategories = { kind = ['a', 'b'] }\nindicators = ['kind', 'dose']\n";

fn one(more: &str) -> Result<Data> {
    let section = format!("name = 'csv'\npath = 'a.csv'\n{KEYS}{more}");
    load_files(&section, &[("a.csv", ALL.as_bytes().to_vec())])
}

#[test]
fn missing_values_are_refused_unless_they_are_filled() {
    let refused = one("").unwrap_err();
    assert_eq!(refused.id, "data/bad-number");
    assert!(refused.hint.unwrap().contains("missing = \"mean\""));
    let data = one("missing = 'mean'").unwrap();
    let names = ["age", "dose", "dose missing", "kind=a", "kind=b", "kind missing"];
    assert_eq!(data.columns.as_ref().unwrap().features, names);
    let rows = dense(&data.train);
    // Means of the values that are there: 40 of age, 4 of dose.
    assert_eq!(rows[0], [40.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(rows[1], [40.0, 3.0, 0.0, 0.0, 1.0, 0.0]);
    assert_eq!(rows[2], [50.0, 5.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(rows[3], [60.0, 4.0, 1.0, 1.0, 0.0, 0.0]);
    assert_eq!(data.scaling.of(0).fill[..2], [40.0, 4.0]);
}

#[test]
fn a_category_that_is_not_listed_is_refused_by_name() {
    let section = "name = 'csv'\npath = 'a.csv'\nlabel = 'y'\ncategories = { k = ['low', 'high'] }";
    let refused =
        |text: &str| load_files(section, &[("a.csv", text.as_bytes().to_vec())]).unwrap_err();
    let error = refused("k,y\nlow,0\nhihg,1\n");
    assert_eq!(error.id, "data/unknown-category");
    assert!(error.message.contains("hihg") && error.hint.unwrap().contains("`high`"));
    let twice = section.replace("'high'", "'low'");
    let error = load_files(&twice, &[("a.csv", b"k,y\nlow,0\n".to_vec())]).unwrap_err();
    assert_eq!(error.id, "config/out-of-range");
}

/// The rows of `ALL` in three files; the last one has another order of columns.
fn own(more: &str) -> Result<Data> {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("a", "age,kind,dose,ill\n40,a,1,no\n?,b,3,yes\n"),
        ("b", "age,kind,dose,ill\n50,,5,no\n60,a,NA,yes\n"),
        ("c", "dose,ill,kind,age\n7,no,b,30\n,yes,a,20\n"),
    ];
    for (name, text) in files {
        std::fs::write(folder.path().join(format!("{name}.csv")), text).unwrap();
    }
    let section = format!(
        "name = 'csv'\npath = '{{node}}.csv'\nnodes = ['a', 'b', 'c']\nclasses = ['no', 'yes']\n\
         missing = 'mean'\n{KEYS}{more}"
    );
    let source = Source::new("e.toml", &section);
    let (choice, preparation) = read(source.root()?, &sources())?;
    let names = preparation.nodes.clone().unwrap();
    let each = each_own(&choice, &names, &sources())?;
    load_own(&each, &preparation, &names, 0..3, &Where::new(Some(folder.path()), 0))
}

#[test]
fn nodes_fill_by_their_own_means_and_may_agree_on_moments() {
    let alone = own("").unwrap();
    assert_eq!(alone.scaling.as_slice().len(), 3);
    // 40 of age in the first file, 25 in the last, whose columns have another order.
    assert_eq!((alone.scaling.of(0).fill[0], alone.scaling.of(2).fill[0]), (40.0, 25.0));
    assert_eq!((dense(&alone.train)[1][0], dense(&alone.train)[5][1]), (40.0, 7.0));
    let agreed = own("scaling = 'standardise'\nmoments = 'agreed'").unwrap();
    assert_eq!(agreed.scaling.of(0).shift, agreed.scaling.of(2).shift);
    assert_ne!(agreed.scaling.of(0).fill, agreed.scaling.of(2).fill);
    let rows = dense(&agreed.train);
    for j in 0..6 {
        let mean = rows.iter().map(|row| row[j]).sum::<f64>() / 6.0;
        let square = rows.iter().map(|row| row[j] * row[j]).sum::<f64>() / 6.0;
        assert!(mean.abs() < 1e-12 && (square - 1.0).abs() < 1e-12, "column {j}: {mean}, {square}");
    }
}

#[test]
fn new_rows_are_encoded_as_those_of_training() {
    let data = one("missing = 'mean'").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.csv");
    let rows = |text: &str, fills: bool| {
        std::fs::write(&path, text).unwrap();
        let (columns, unnamed) = (data.columns.as_ref(), &data.unnamed);
        let needed = Needed { features: 6, outputs: 1, fills, columns, unnamed };
        new_rows(&path, &needed, Named::default())
    };
    let found = rows("kind,dose,age\nb,?,35\n,2,45\n", true).unwrap();
    let Features::Dense { values, .. } = data.scaling.of(0).apply(found.features) else { panic!() };
    assert_eq!(values, [35.0, 4.0, 1.0, 0.0, 1.0, 0.0, 45.0, 2.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(rows("kind,dose,age\nb,?,35\n", false).unwrap_err().id, "data/bad-number");
    assert_eq!(rows("kind,dose,age\nc,1,35\n", true).unwrap_err().id, "data/unknown-category");
}

/// Encoded columns with names are in the order of these: `age`, `dose`, `kind`, and not in the file's.
#[test]
fn encoded_columns_without_names_are_not_matched_by_position() {
    let data = one("missing = 'mean'").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.csv");
    std::fs::write(&path, "35,b,2\n45,a,3\n").unwrap();
    let (columns, unnamed) = (data.columns.as_ref(), &data.unnamed);
    let needed = Needed { features: 6, outputs: 1, fills: true, columns, unnamed };
    let error = new_rows(&path, &needed, Named::default()).unwrap_err();
    assert_eq!(error.id, "data/no-column");
    assert!(error.hint.unwrap().contains("first row"));
    // The bundled hospitals' columns are in the order of their files, which have no names.
    let heart = load_files("name = 'heart'\nmissing = 'mean'\ntest = 0", &[]).unwrap();
    let row = "63,1,1,145,233,1,2,150,0,2.3,3,0,6\n";
    std::fs::write(&path, row).unwrap();
    let (columns, unnamed) = (heart.columns.as_ref(), &heart.unnamed);
    let needed = Needed { features: 20, outputs: 1, fills: true, columns, unnamed };
    let found = new_rows(&path, &needed, Named::default()).unwrap();
    let Features::Dense { values, .. } = found.features else { panic!() };
    assert_eq!(values[..6], [63.0, 1.0, 1.0, 0.0, 0.0, 0.0]);

    // Neither are those of a test file.
    let section = "name = 'csv'\npath = 'a.csv'\ntest_path = 'b.csv'\nlabel = -1\n\
                   categories = { 1 = ['p', 'q'] }";
    let named = b"z,a,ill\n1,p,no\n2,q,yes\n".to_vec();
    let bare = b"1,p,no\n2,q,yes\n".to_vec();
    let files = |a: &[u8], b: &[u8]| [("a.csv", a.to_vec()), ("b.csv", b.to_vec())];
    for (a, b) in [(&named, &bare), (&bare, &named)] {
        assert_eq!(load_files(section, &files(a, b)).unwrap_err().id, "data/no-column");
    }
    assert!(load_files(section, &files(&named, &named)).is_ok());
    assert!(load_files(section, &files(&bare, &bare)).is_ok());
}

/// `missing = "mean"` fills cells of text tables, so that nothing else may advise it.
#[test]
fn the_advice_for_missing_values_is_for_the_place_where_they_are() {
    let advice = |section: &str, name: &'static str, text: &[u8]| {
        load_files(section, &[(name, text.to_vec())]).unwrap_err().hint.unwrap()
    };
    let libsvm = "name = 'libsvm'\npath = 'a.txt'";
    for text in [&b"1 2:?\n0 1:1\n"[..], b"1 2:nan\n0 1:1\n"] {
        let hint = advice(libsvm, "a.txt", text);
        assert!(hint.contains("leave the pair out") && !hint.contains("mean"), "{hint}");
    }
    let numbers = "name = 'libsvm'\npath = 'a.txt'\ntarget = 'number'";
    let hint = advice(numbers, "a.txt", b"2.5 2:1\n? 1:1\n");
    assert!(hint.contains("rows without a label") && !hint.contains("mean"), "{hint}");
    let hint = advice("name = 'csv'\npath = 'a.csv'", "a.csv", b"a,y\n1,p\n?,q\n");
    assert!(hint.contains("missing = \"mean\""), "{hint}");
}

#[test]
fn four_hospitals_are_included() {
    let load = |more: &str| load_files(&format!("name = 'heart'\n{more}"), &[]);
    assert_eq!(load("").unwrap_err().id, "data/bad-number");
    let data = load("missing = 'mean'\ntest = 0").unwrap();
    assert_eq!((data.train.len(), data.train.cols()), (920, 20));
    let groups = data.train.groups().unwrap();
    assert_eq!(groups.names, ["cleveland", "hungary", "switzerland", "long-beach"]);
    let rows = |group: u32| groups.of.iter().filter(|of| **of == group).count();
    assert_eq!([0, 1, 2, 3].map(rows), [303, 294, 123, 200]);
    let ill = data.train.labels().iter().filter(|label| **label == 1).count();
    assert_eq!(ill, 509);
    assert!(dense(&data.train).iter().flatten().all(|value| value.is_finite()));
    assert_eq!(data.unnamed.encoding.len(), 13);
    let plain = |encoded: &&Encoded| encoded.is_plain();
    assert_eq!(data.unnamed.encoding.iter().filter(plain).count(), 10);
    assert_ne!(data.unnamed, Unnamed::default());
}
