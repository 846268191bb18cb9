//! Scalings of counts, which leave zeros zeros.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use crate::files::{File, dense, load_files};
use lopa::config::Source;
use lopa::experiment::{Experiment, Registries};
use lopa::math::random::{Purpose, Stream};
use lopa::run::Context;

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

/// Texts of four topics: common words, and rare ones that identify the topic.
fn corpus(texts: usize, words: usize) -> (String, usize) {
    let mut stream = Stream::new(5, Purpose::Data, 0);
    let (mut lines, mut entries) = (String::new(), 0);
    for _ in 0..texts {
        let topic = stream.below(4);
        let mut counts = BTreeMap::new();
        for _ in 0..40 {
            let common = 1 + (stream.unit() * stream.unit() * 200.0) as usize;
            let own = 201 + 4 * stream.below((words - 200) / 4 - 1) + topic;
            let word = if stream.unit() < 0.7 { common } else { own };
            *counts.entry(word).or_insert(0) += 1;
        }
        entries += counts.len();
        let pairs: String = counts.iter().map(|(word, count)| format!(" {word}:{count}")).collect();
        lines += &format!("{topic}{pairs}\n");
    }
    (lines, entries)
}

#[test]
fn text_is_learnt_without_filling_zeros() {
    let (text, entries) = corpus(400, 1000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.svm");
    std::fs::write(&path, text).unwrap();
    let run = |scaling: &str| {
        let text = format!(
            "problem = {{ name = 'hyperparameter', start = -6 }}\nnetwork = {{ nodes = 2, graph = \
             'complete' }}\nrun = {{ iterations = 150, batch = 50, evaluations = 1, exact = 'never' }}\n\
             data = {{ name = 'libsvm', path = {path:?}, scaling = '{scaling}' }}\n\
             algorithm = [{{ name = 'lopa-gt', alpha = 0.01, beta = 2.0, lambda = 2.0 }}]\n"
        );
        let source = Source::new("e.toml", text);
        let experiment = Experiment::read(&source, &Registries::default()).unwrap();
        let interrupt = AtomicBool::new(false);
        let context =
            Context { pool: None, data_dir: "".into(), interrupt: &interrupt, probe: None };
        let data = experiment.load_data(&context).unwrap().unwrap();
        let stored = data.train.features().stored() + data.test.features().stored();
        assert_eq!(stored, entries, "{scaling}");
        let outcomes = experiment.run_on(Some(&data), &context, &mut (), &mut ()).unwrap();
        outcomes[0].row.value("test_accuracy").unwrap()
    };
    for scaling in ["tf-idf", "row"] {
        let accuracy = run(scaling);
        assert!(accuracy > 0.5, "{scaling}: {accuracy}, and chance is 0.25");
    }
}
