//! Generated tables of numbers to predict, and of times and events.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use lopa::math::random::{Purpose, Stream};
use tempfile::TempDir;

/// Features and numbers to predict of each row.
pub const FEATURES: usize = 160;
pub const OUTPUTS: usize = 20;
const ROWS: usize = 240;

/// The file of a table, made once: of small whole numbers, which are stored as bytes, or of any.
pub fn table(whole: bool) -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        [true, false].into_iter().for_each(|whole| {
            std::fs::write(folder.path().join(name(whole)), text(whole)).unwrap();
        });
        folder
    });
    folder.path().join(name(whole))
}

fn name(whole: bool) -> &'static str {
    if whole { "whole.csv" } else { "numbers.csv" }
}

/// Numbers to predict that depend on the features, some of them far out.
fn text(whole: bool) -> String {
    let stream = &mut Stream::new(3, Purpose::Data, 0);
    let names = (0..FEATURES).map(|q| format!("f{q}"));
    let names = names.chain((0..OUTPUTS).map(|o| format!("t{o}")));
    let mut lines = vec![names.chain(["days", "seen"].map(String::from)).collect::<Vec<_>>()];
    for _ in 0..ROWS {
        let features: Vec<usize> = (0..FEATURES).map(|_| stream.below(200)).collect();
        let target = |o: usize| {
            let near = features[o] as f64 / 100.0 - features[o + 1] as f64 / 150.0;
            let far = if stream.below(9) == 0 { 3.0 } else { 0.0 };
            format!("{}", near + far + stream.between(0.0, 0.3))
        };
        let targets: Vec<String> = (0..OUTPUTS).map(target).collect();
        let event = [stream.below(90), stream.below(2)].map(|value| value.to_string());
        let cell = |&value: &usize| match whole {
            true => value.to_string(),
            false => format!("{}", value as f64 / 200.0 + 0.125),
        };
        lines.push(features.iter().map(cell).chain(targets).chain(event).collect());
    }
    lines.iter().map(|cells| cells.join(",") + "\n").collect()
}

/// The overrides for a regression with some features and numbers to predict, which are scaled.
pub fn sets(whole: bool, features: usize, outputs: usize) -> Vec<String> {
    let names = |letter: char, range: Range<usize>| range.map(move |at| format!("{letter}{at}"));
    let event = ["days", "seen"].map(String::from);
    let dropped = names('f', features..FEATURES).chain(names('t', outputs..OUTPUTS)).chain(event);
    let scaling = if whole { "unit" } else { "centre" };
    vec![
        "data.name=csv".into(),
        format!("data.path={}", table(whole).display()),
        format!("data.label={:?}", names('t', 0..outputs).collect::<Vec<_>>()),
        format!("data.drop={:?}", dropped.collect::<Vec<_>>()),
        "data.target=number".into(),
        format!("data.scaling={scaling}"),
    ]
}

/// The overrides for times and events.
pub fn survival() -> Vec<String> {
    let mut sets = sets(false, 9, OUTPUTS);
    sets[2] = "data.label=[\"days\", \"seen\"]".into();
    sets[3] = sets[3].replace("\"days\", \"seen\"", "\"t0\"");
    sets[4] = "data.target=survival".into();
    sets
}
