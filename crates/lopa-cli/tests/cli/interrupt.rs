//! Signals that stop a run.
#![cfg(unix)]

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::program::{Folder, QUADRATIC};

/// Starts an endless run, sends a signal once it has started, and waits.
fn interrupted(signal: &str, more: &[&str]) -> (Folder, Output) {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    let endless = ["--set", "run.iterations=4000000000", "--set", "algorithm.lopa-gt.alpha=1e-5"];
    let args = [&["run", "q.toml"], more, &endless].concat();
    let mut program = folder.program(&args);
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
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
    (folder, child.wait_with_output().unwrap())
}

#[test]
fn a_signal_ends_a_run_cleanly() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let (folder, ended) = interrupted(signal, &["--format", "json", "-q"]);
        assert_eq!(ended.status.code(), Some(code));
        let results: Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(results.as_array().unwrap().len(), 1, "only the first algorithm was started");
        assert_eq!(results[0]["stop"], "interrupted");
        let run = folder.run_folder();
        let manifest: Value =
            serde_json::from_str(&folder.read(run.join("manifest.json"))).unwrap();
        assert_eq!(manifest["status"], "interrupted");
        // Its files are intact.
        folder.lopa(&["evaluate", run.to_str().unwrap()]).good();
    }
}

#[test]
fn what_was_stopped_is_not_judged() {
    let (_folder, ended) = interrupted("-INT", &[]);
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("\n0 of "), "{said}");
    assert!(said.contains("run the same command to resume"), "{said}");
    assert!(!said.contains("trajectory digest") && !said.contains("ends with"), "{said}");
}
