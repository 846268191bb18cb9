//! Signals that stop a run.
#![cfg(unix)]

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::program::{Folder, QUADRATIC};

/// Starts an endless run, sends a signal once it has started, and waits.
fn interrupted(signal: &str) -> (Folder, i32, Value) {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    let endless = ["--set", "run.iterations=4000000000", "--set", "algorithm.lopa-gt.alpha=1e-5"];
    let args = [&["run", "q.toml", "--format", "json", "-q"], &endless[..]].concat();
    let mut child = folder.program(&args).stdout(Stdio::piped()).spawn().unwrap();
    // The first measurement is written when the first algorithm starts.
    let started = || {
        let runs = std::fs::read_dir(folder.path().join("runs")).ok()?;
        let run = runs.filter_map(Result::ok).next()?.path();
        let metrics = std::fs::read_to_string(run.join("metrics.jsonl")).ok()?;
        metrics.contains('\n').then_some(())
    };
    while started().is_none() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    let results = serde_json::from_slice(&output.stdout).unwrap();
    (folder, output.status.code().unwrap(), results)
}

#[test]
fn a_signal_ends_a_run_cleanly() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let (folder, ended, results) = interrupted(signal);
        assert_eq!(ended, code);
        assert_eq!(results.as_array().unwrap().len(), 1, "only the first algorithm was started");
        assert_eq!(results[0]["stop"], "interrupted");
        let run = folder.run_folder();
        let manifest: Value =
            serde_json::from_str(&folder.read(run.join("manifest.json"))).unwrap();
        assert_eq!(manifest["status"], "interrupted");
        // What it left is intact.
        folder.lopa(&["evaluate", run.to_str().unwrap()]).good();
    }
}
