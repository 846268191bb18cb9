//! New rows for trained models, in every format.

use std::path::PathBuf;

use crate::files::{doubles, gzip, header, npy, zip};
use lopa::data::{Columns, Features, Named, Needed, NewRows, Unnamed, new_rows};
use lopa::error::Result;

static USUAL: Unnamed = Unnamed { dropped: Vec::new(), zero_based: false, encoding: Vec::new() };

/// A model with three features.
fn needs(columns: Option<&Columns>) -> Needed<'_> {
    Needed { features: 3, outputs: 1, fills: false, columns, unnamed: &USUAL }
}

/// Writes a file and reads it for a model with three features.
fn read(name: &str, bytes: &[u8], label: Option<&str>) -> Result<NewRows> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    new_rows(&path, &needs(None), Named { label, group: None })
}

/// The three features of two rows.
fn rows(labels: Option<Vec<String>>, guessed: bool) -> NewRows {
    NewRows { features: three(), labels, groups: None, guessed }
}

fn three() -> Features<f64> {
    Features::Dense { cols: 3, values: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0] }
}

fn labels(of: &[&str]) -> Option<Vec<String>> {
    Some(of.iter().map(|label| label.to_string()).collect())
}

#[test]
fn tables_tell_by_their_width_whether_they_have_labels() {
    let last = rows(labels(&["a", "1"]), true);
    let none = rows(None, false);
    for (name, text) in [
        ("a.csv", "1,2,3,a\n4,5,6,+1\n"),
        ("a.data", "1,2,3,a\n4,5,6,1.0\n"),
        ("a.tsv", "1\t2\t3\ta\n4\t5\t6\t1\n"),
        ("a.CSV", "x,y,z,kind\n1,2,3,a\n4,5,6,1\n"),
    ] {
        assert_eq!(read(name, text.as_bytes(), None).unwrap(), last, "{name}");
    }
    assert_eq!(read("a.csv", b"1,2,3\n4,5,6\n", None).unwrap(), none);
    assert_eq!(read("a.csv.gz", &gzip(b"x,y,z\n1,2,3\n4,5,6\n"), None).unwrap(), none);
}

#[test]
fn the_label_column_is_chosen_by_name_or_number() {
    let first = rows(labels(&["a", "b"]), false);
    let text = b"kind,x,y,z\na,1,2,3\nb,4,5,6\n";
    assert_eq!(read("a.csv", text, Some("kind")).unwrap(), first);
    assert_eq!(read("a.csv", text, Some("0")).unwrap(), first);
    assert_eq!(read("a.csv", text, Some("-4")).unwrap(), first);
}

#[test]
fn libsvm_stays_sparse_and_is_as_wide_as_the_model() {
    let sparse = Features::Sparse {
        cols: 3,
        starts: vec![0, 1, 1, 3],
        columns: vec![1, 0, 1],
        values: vec![2.0, 1.0, 5.0],
    };
    let found = read("a.libsvm", b"+1 2:2\n-1\n1 1:1 2:5\n", None).unwrap();
    assert_eq!(
        found,
        NewRows {
            features: sparse,
            labels: labels(&["1", "-1", "1"]),
            groups: None,
            guessed: false
        }
    );
    let bare = read("a.txt", b"2:2\n1:1 2:5\n", None).unwrap();
    assert_eq!((bare.features.rows(), bare.features.cols(), bare.labels), (2, 3, None));
}

#[test]
fn arrays_have_labels_beside_them() {
    let x = doubles("(2, 3)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = npy(&header("|u1", "(2,)"), &[7, 9]);
    let none = rows(None, false);
    let with = rows(labels(&["7", "9"]), false);
    assert_eq!(read("a.npy", &x, None).unwrap(), none);
    let bytes = npy(&header("|u1", "(2, 3)"), &[1, 2, 3, 4, 5, 6]);
    assert_eq!(read("a.npy.gz", &gzip(&bytes), None).unwrap(), none);
    assert_eq!(read("a.npz", &zip(&[("X.npy", x.clone(), 0)]), None).unwrap(), none);
    let both = zip(&[("X.npy", x.clone(), 8), ("y.npy", y.clone(), 8)]);
    assert_eq!(read("a.npz", &both, None).unwrap(), with);
    let other = zip(&[("X.npy", x, 0), ("kind.npy", y, 0)]);
    assert_eq!(read("a.npz", &other, Some("kind")).unwrap(), with);
}

/// A file's name and content, the label requested, the error's id, and a part of its message.
type Case<'a> = (&'a str, &'a [u8], Option<&'a str>, &'a str, &'a str);

#[test]
fn what_does_not_fit_is_refused() {
    let flat = doubles("(6,)", &[1.0; 6]);
    let cases: [Case; 11] = [
        ("a.csv", b"1,2\n", None, "data/shape-mismatch", "have 2 columns, and the model needs 3"),
        ("a.csv", b"1:2:3\n", None, "data/shape-mismatch", "have 1 columns"),
        ("a.csv", b"1,2,3,4,5\n", None, "data/shape-mismatch", "have 5 columns"),
        ("a.csv", b"1,2,3\n", Some("kind"), "data/shape-mismatch", "or 4 with labels"),
        ("a.csv", b"x,y,z,k\n1,2,3,a\n", Some("kind"), "data/no-column", "`kind`"),
        ("a.csv", b"1,2,3\n1,x,3\n", None, "data/bad-number", "`x`"),
        ("a.csv", b"x,y,z\n", None, "data/empty", "no rows"),
        ("a.svm", b"1 4:1\n", None, "data/bad-index", "`4:1`"),
        ("a.npy", &flat, None, "data/shape-mismatch", "have 1 features, and the model needs 3"),
        ("a.npz", &zip(&[("x.npy", flat.clone(), 0)]), None, "data/no-array", "`X`"),
        ("a.parquet", b"", None, "data/unknown-format", "format"),
    ];
    for (name, bytes, label, id, part) in cases {
        let error = read(name, bytes, label).unwrap_err();
        assert_eq!(error.id, id, "{name}: {error}");
        assert!(error.message.contains(part), "{name}: {error}");
        assert!(error.place.as_ref().is_some_and(|place| place.contains(name)), "{error:?}");
    }
    let missing =
        new_rows(&PathBuf::from("no/such.csv"), &needs(None), Named::default()).unwrap_err();
    assert_eq!(missing.id, "data/unreadable");
}

/// The columns of a model that was trained on x, y and z, with labels `kind` and groups `ward`.
fn xyz() -> Columns {
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    Columns {
        features: names(&["x", "y", "z"]),
        label: Some("kind".into()),
        more_labels: Vec::new(),
        group: Some("ward".into()),
        dropped: names(&["id"]),
    }
}

fn read_named(text: &str, label: Option<&str>) -> Result<NewRows> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, text).unwrap();
    new_rows(&path, &needs(Some(&xyz())), Named { label, group: None })
}

#[test]
fn columns_are_matched_by_name() {
    let none = rows(None, false);
    let with = rows(labels(&["a", "b"]), false);
    let guessed = rows(labels(&["a", "b"]), true);
    let owned = |rows: &NewRows| NewRows { groups: labels(&["north", "south"]), ..rows.clone() };
    let (theirs, theirs_with) = (owned(&none), owned(&with));
    for (text, label, want) in [
        ("z,x,y\n3,1,2\n6,4,5\n", None, &none),
        ("kind,z,x,y\na,3,1,2\nb,6,4,5\n", None, &with),
        ("kind,z,ward,x,y\na,3,north,1,2\nb,6,south,4,5\n", None, &theirs_with),
        ("z,ward,x,y\n3,north,1,2\n6,south,4,5\n", None, &theirs),
        // What training left out may be there, and may be words.
        ("z;id;x;y\n3;P1;1;2\n6;P2;4;5\n", None, &none),
        ("id,z,x,y,truth\n8,3,1,2,a\n9,6,4,5,b\n", None, &guessed),
        ("z,x,y,truth\n3,1,2,a\n6,4,5,b\n", None, &guessed),
        ("z,truth,x,y\n3,a,1,2\n6,b,4,5\n", Some("truth"), &with),
        // Without a header, by position.
        ("1,2,3\n4,5,6\n", None, &none),
        ("1,2,3,a\n4,5,6,b\n", None, &guessed),
    ] {
        assert_eq!(&read_named(text, label).unwrap(), want, "{text}");
    }
}

#[test]
fn missing_and_unknown_columns_are_named() {
    let fails = |text: &str| {
        let error = read_named(text, None).unwrap_err();
        assert!(error.place.as_ref().is_some_and(|place| place.ends_with("a.csv:1")), "{error}");
        (error.id, error.to_string())
    };
    for (text, id, says) in [
        ("z,x\n3,1\n", "data/shape-mismatch", "the column `y` is missing"),
        ("w,z,x,y\n0,3,1,2\n", "data/shape-mismatch", "the column `w` is unknown"),
        ("w,z,x,y\n0,3,1,2\n", "data/shape-mismatch", "take what is unknown out of the file"),
        ("v,w,z,x,y\nn,0,3,1,2\n", "data/shape-mismatch", "the columns `v`, `w` are unknown"),
        ("Z,x,y\n3,1,2\n", "data/other-columns", "did you mean `z` by `Z`?"),
        ("x,x,y\n3,1,2\n", "data/other-columns", "several columns are named `x`"),
        // Text among the columns is no worse.
        ("name,z,x,y\nann,3,1,2\n", "data/shape-mismatch", "the column `name` is unknown"),
    ] {
        let (found, message) = fails(text);
        assert_eq!(found, id, "{message}");
        assert!(message.contains(says), "{message}");
    }
}

/// The second of four columns without names was left out in training, and is again.
#[test]
fn columns_left_out_without_names_are_left_out_again() {
    let folder = tempfile::tempdir().unwrap();
    let with_id = doubles("(2, 4)", &[1.0, 77.0, 2.0, 3.0, 4.0, 78.0, 5.0, 6.0]);
    let without = doubles("(2, 3)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let files: [(&str, Vec<u8>); 6] = [
        ("plain.csv", b"1,77,2,3\n4,78,5,6\n".to_vec()),
        ("labelled.csv", b"a,1,77,2,3\nb,4,78,5,6\n".to_vec()),
        ("rows.libsvm", b"a 1:1 2:77 3:2 4:3\nb 1:4 2:78 3:5 4:6\n".to_vec()),
        ("rows.npy", with_id.clone()),
        ("rows.npz", zip(&[("X.npy", with_id, 0)])),
        ("cut.npz", zip(&[("X.npy", without, 0)])),
    ];
    let unnamed = Unnamed { dropped: vec![1], ..Unnamed::default() };
    let needed = Needed { features: 3, outputs: 1, fills: false, columns: None, unnamed: &unnamed };
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let label = (name == "labelled.csv").then_some("0");
        let found = new_rows(&path, &needed, Named { label, group: None });
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        for row in 0..2 {
            let mut values = vec![0.0; found.features.cols()];
            found.features.each(row, |j, value| values[j] = value);
            assert_eq!(values, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]][row], "{name}");
        }
    }
    let path = folder.path().join("other.csv");
    std::fs::write(&path, "1,2\n").unwrap();
    let error = new_rows(&path, &needed, Named::default()).unwrap_err();
    assert!(error.hint.unwrap().contains("those left out in training"));
}

/// A model of features that are numbered from 0 reads new rows so, also if none of them has feature 0.
#[test]
fn features_keep_the_numbers_that_they_had_in_training() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.libsvm");
    std::fs::write(&path, "a 1:5\nb 2:6\n").unwrap();
    let unnamed = Unnamed { zero_based: true, ..Unnamed::default() };
    let needed = Needed { features: 3, outputs: 1, fills: false, columns: None, unnamed: &unnamed };
    for (needed, places) in [(needed, [1, 2]), (needs(None), [0, 1])] {
        let found = new_rows(&path, &needed, Named::default()).unwrap();
        for (row, place) in places.into_iter().enumerate() {
            found.features.each(row, |j, _| assert_eq!(j, place));
        }
    }
}
