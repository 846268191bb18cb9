//! `lopa data stats` on files.

use serde_json::{Value, json};

use crate::program::Folder;

fn look(folder: &Folder, args: &[&str]) -> Value {
    let args = [&["data", "stats"], args, &["--format", "json"]].concat();
    folder.lopa(&args).good().json()[0].clone()
}

#[test]
fn a_table_is_described_column_by_column() {
    let text = "age;sex;bmi;ill\n30;m;20.5;no\n50;f;NA;yes\n40;m;22.5;no\n";
    let folder = Folder::with(&[("my.csv", text)]);
    let found = look(&folder, &["my.csv"]);
    assert_eq!(
        (&found["format"], &found["rows"], &found["delimiter"]),
        (&json!("csv"), &json!(3), &json!(";"))
    );
    let column = |j: usize, key: &str| found["columns"][j][key].clone();
    assert_eq!(
        [column(0, "name"), column(0, "kind"), column(0, "mean")],
        [json!("age"), json!("integer"), json!(40.0)]
    );
    assert_eq!(
        [column(1, "kind"), column(1, "text"), column(1, "distinct")],
        [json!("text"), json!("m"), json!(2)]
    );
    assert_eq!(
        [column(2, "kind"), column(2, "missing"), column(2, "max")],
        [json!("number"), json!(1), json!(22.5)]
    );
    assert_eq!(found["labels"]["classes"], json!([["no", 2], ["yes", 1]]));
    let names: Vec<&Value> =
        found["scalings"].as_array().unwrap().iter().map(|s| &s["scaling"]).collect();
    assert_eq!(names, ["none", "unit", "standardise", "centre", "log", "row", "tf-idf"]);
    let text = folder.lopa(&["data", "stats", "my.csv"]).good().stdout;
    for says in ["column `sex` has cells that are not numbers (`m`)", "column `bmi` lacks 1 of 3"] {
        assert!(text.contains(says), "{says}: {text}");
    }
    // Another column may have the labels.
    let other = look(&folder, &["my.csv", "--label", "sex"]);
    assert_eq!(other["labels"]["classes"], json!([["f", 1], ["m", 2]]));
}

#[test]
fn labels_that_a_run_would_refuse_are_pointed_out() {
    let rows: String = (0..40).map(|row| format!("{row},{}.5\n", row)).collect();
    let folder = Folder::with(&[("my.csv", &rows)]);
    let text = folder.lopa(&["data", "stats", "my.csv"]).good().stdout;
    assert!(text.contains("is a number to predict: `target = \"number\"` in [data]"), "{text}");
    let names: String = (0..80).map(|row| format!("{row},name {row}\n")).collect();
    let folder = Folder::with(&[("my.csv", &names)]);
    let text = folder.lopa(&["data", "stats", "my.csv"]).good().stdout;
    assert!(text.contains("80 different values"), "{text}");
}

#[test]
fn sparse_rows_count_their_zeros() {
    let folder = Folder::with(&[("my.svm", "1 1:2 4:1\n2 1:4\n1 3:3\n")]);
    let found = look(&folder, &["my.svm"]);
    assert_eq!((&found["format"], &found["density"]), (&json!("libsvm"), &json!(1.0 - 8.0 / 12.0)));
    let first = &found["columns"][0];
    assert_eq!(
        (&first["mean"], &first["zeros"], &first["min"]),
        (&json!(2.0), &json!(1), &json!(0.0))
    );
    assert!((first["deviation"].as_f64().unwrap() - (8.0f64 / 3.0).sqrt()).abs() < 1e-12);
    let effect = found["scalings"][2]["effect"].as_str().unwrap();
    assert!(effect.contains("refused unless `sparse = false`"), "{effect}");
}

#[test]
fn images_and_arrays_are_recognised() {
    let folder = Folder::with(&[]);
    let idx = [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2][..], &[0, 255, 7, 0]].concat();
    folder.write("images-idx3-ubyte", &idx);
    let found = look(&folder, &["images-idx3-ubyte"]);
    assert_eq!(
        (&found["format"], &found["rows"], &found["columns"][1]["max"]),
        (&json!("idx"), &json!(2), &json!(255.0))
    );
    assert_eq!(found.get("labels"), None);
}

#[test]
fn a_format_is_no_file() {
    let folder = Folder::with(&[]);
    for format in ["csv", "libsvm", "npy", "npz"] {
        let done = folder.lopa(&["data", "stats", format]);
        assert_eq!(done.code, 2, "{}", done.stderr);
        assert!(done.stderr.contains(&format!("`lopa data stats my.{format}`")), "{}", done.stderr);
    }
    assert_eq!(folder.lopa(&["data", "stats", "none.csv"]).code, 3);
    assert_eq!(folder.lopa(&["data", "stats", "minst"]).code, 2);
}
