//! Scalings of counts, which leave zeros zeros.

use crate::files::{File, dense, load_files};

/// Counts of four words in five texts.
fn texts() -> [File; 1] {
    [("a.svm", b"1 1:2 2:1\n2 1:1 3:4\n1 1:3\n2\n1 2:2 4:1\n".to_vec())]
}

fn load(more: &str) -> lopa::data::Data {
    let section = format!("name = 'libsvm'\npath = 'a.svm'\ntest = 0\n{more}");
    load_files(&section, &texts()).unwrap()
}

fn close(found: &[f64], want: &[f64]) {
    let near = found.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(near && found.len() == want.len(), "{found:?}, not {want:?}");
}

#[test]
fn counts_are_weighted_and_rows_have_length_one() {
    let ln = f64::ln;
    let log = dense(&load("scaling = 'log'").train);
    close(&log[1], &[ln(2.0), 0.0, ln(5.0), 0.0]);
    let row = dense(&load("scaling = 'row'").train);
    close(&row[1], &[1.0 / 17f64.sqrt(), 0.0, 4.0 / 17f64.sqrt(), 0.0]);
    close(&row[3], &[0.0; 4]);
    // Three of five texts have word 1, one has word 3.
    let (first, third) = (ln(6.0 / 4.0) + 1.0, 4.0 * (ln(6.0 / 2.0) + 1.0));
    let length = first.hypot(third);
    let weighted = dense(&load("scaling = 'tf-idf'").train);
    close(&weighted[1], &[first / length, 0.0, third / length, 0.0]);
}

#[test]
fn zeros_are_not_stored() {
    for scaling in ["log", "row", "tf-idf"] {
        let data = load(&format!("scaling = '{scaling}'"));
        assert_eq!(data.train.features().stored(), 7, "{scaling}");
        let full = load(&format!("scaling = '{scaling}'\nsparse = false"));
        let pairs = dense(&data.train).into_iter().zip(dense(&full.train));
        pairs.for_each(|(sparse, full)| close(&sparse, &full));
        // A saved scaling does the same to new rows.
        let raw = load("scaling = 'none'");
        let applied = data.scaling.of(0).apply(raw.train.features().clone());
        assert_eq!(&applied, data.train.features(), "{scaling}");
    }
}
