//! Resuming interrupted experiments, and judging claims by the traces in their folders.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::experiment::Experiment;
use lopa::folder::{Run, RunReader, Traces, complete};
use lopa::run::{Context, Listener, Outcome};
use lopa_study::reproduce::claims::{Claim, Test, Verdict, judge};
use lopa_study::reproduce::{Part, entries, page};
use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "small"
problem = { name = "quadratic", n = 3, p = 4, condition = 2.0, heterogeneity = 0.5 }
network = { nodes = 4, graph = "ring" }
run = { seeds = [1, 2, 3], iterations = 600, batch = "full", evaluations = 5 }

[[algorithm]]
name = "lopa-gt"
alpha = 0.02
beta = 0.9
lambda = 0.9

[[algorithm]]
name = "lopa-lg"
alpha = 0.02
beta = 0.9
lambda = 0.9
"#;

fn experiment() -> Experiment {
    Experiment::read(
        &Source::new("small.toml", EXPERIMENT),
        &lopa::experiment::Registries::default(),
    )
    .expect("a good file")
}

/// Records the runs made.
#[derive(Default)]
struct Recorder(Vec<String>);

impl Listener for Recorder {
    fn end(&mut self, outcome: &Outcome) {
        self.0.push(format!("{}, seed {}", outcome.algorithm, outcome.seed));
    }
}

/// Completes the experiment; returns its folder and the runs made for it.
fn resume(runs: &Path) -> (std::path::PathBuf, Vec<String>) {
    let interrupt = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: ".".into(), interrupt: &interrupt, probe: None };
    let mut made = Recorder::default();
    let (folder, whole) =
        complete(&experiment(), None, (runs, 1), &context, &mut made).expect("a good run");
    assert!(whole);
    (folder, made.0)
}

fn digests(folder: &Path) -> Vec<(String, u64, String)> {
    let results = RunReader::open(folder).and_then(|folder| folder.results()).expect("whole");
    let mut all: Vec<_> =
        results.into_iter().map(|run| (run.algorithm, run.seed, run.digest)).collect();
    all.sort();
    all
}

fn traces(folder: &Path) -> Traces {
    RunReader::open(folder).and_then(|folder| folder.traces()).expect("whole")
}

#[test]
fn finished_runs_are_not_repeated() {
    let runs = tempfile::tempdir().expect("a folder");
    let (folder, made) = resume(runs.path());
    assert_eq!(made.len(), 6);
    let before = digests(&folder);
    assert_eq!(resume(runs.path()), (folder.clone(), Vec::new()));
    assert_eq!(digests(&folder), before);
    assert_eq!(fs::read_dir(runs.path()).expect("there").count(), 1);
}

#[test]
fn missing_runs_are_made_and_the_rest_kept() {
    let runs = tempfile::tempdir().expect("a folder");
    let (folder, _) = resume(runs.path());
    let before = (digests(&folder), traces(&folder));
    // As if it had been killed in the fourth run: two results are missing, and a row is torn.
    let results = folder.join("results.json");
    let text = fs::read_to_string(&results).expect("written");
    let mut all: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    all.truncate(3);
    fs::write(&results, serde_json::to_string(&all).expect("JSON")).expect("written");
    let metrics = folder.join("metrics.jsonl");
    let text = fs::read_to_string(&metrics).expect("written");
    fs::write(&metrics, &text[..text.len() * 2 / 3]).expect("written");
    let (again, made) = resume(runs.path());
    assert_eq!(made, ["lopa-lg, seed 2", "lopa-gt, seed 3", "lopa-lg, seed 3"]);
    assert_eq!((again.clone(), digests(&again)), (folder.clone(), before.0));
    let after = traces(&folder);
    for (run, was) in after.runs.iter().zip(&before.1.runs) {
        let values = |run: &Run| -> Vec<_> {
            run.rows.iter().map(|row| (row.iteration, row.values.clone())).collect()
        };
        assert_eq!(values(run), values(was));
    }
}

fn part(steps: &'static str) -> Part {
    let experiment = experiment();
    Part { figures: &["fig1"], dataset: "mnist", variant: None, steps, experiment }
}

#[test]
fn entries_and_verdicts_come_from_the_folder() {
    let runs = tempfile::tempdir().expect("a folder");
    let (folder, _) = resume(runs.path());
    let traces = traces(&folder);
    let entries = entries(&part("paper"), &traces);
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["algorithm"], "lopa-gt");
    assert_eq!(entries[0]["seeds"], serde_json::json!([1, 2, 3]));
    assert_eq!(entries[0]["hessians"]["mean"], 601.0);
    assert_eq!(entries[0]["test_accuracy"], Value::Null);
    assert!(entries[0]["consensus"]["mean"].as_f64() < entries[1]["consensus"]["mean"].as_f64());
    let claim = |better, worse| Claim {
        figure: "fig1",
        text: String::new(),
        panels: vec![("fig1", "mnist", None)],
        test: Test::Ends { measure: "consensus", better, worse },
    };
    let all = [(part("paper"), traces)];
    let verdict = |better, worse| {
        let judgement = judge(&claim(better, worse), "paper", &all).expect("it was run");
        assert_eq!(judgement.interval.expect("three seeds").pairs, 3);
        judgement.verdict
    };
    assert_eq!(verdict("lopa-gt", "lopa-lg"), Verdict::Held);
    assert_eq!(verdict("lopa-lg", "lopa-gt"), Verdict::DidNotHold);
    assert_eq!(verdict("lopa-gt", "lopa-gt"), Verdict::Tie);
    assert_eq!(judge(&claim("lopa-gt", "lopa-lg"), "tuned", &all), None);

    // The seeds that survive a divergence are no fair sample: nothing is decided by them.
    let [(part, mut traces)] = all;
    let lost = traces.runs.iter_mut().find(|run| run.algorithm == "lopa-lg").expect("it was run");
    lost.diverged = true;
    let entries = lopa_study::reproduce::entries(&part, &traces);
    assert_eq!((&entries[0]["diverged"], &entries[1]["diverged"]), (&0.into(), &1.into()));
    let page = page("lopa reproduce", &entries, &[], &[]);
    assert!(page.contains("| lopa-lg (2 of 3 seeds) |") && page.contains("| lopa-gt |"), "{page}");
    let judgement = judge(&claim("lopa-gt", "lopa-lg"), "paper", &[(part, traces)]).expect("run");
    assert_eq!((judgement.verdict, judgement.interval), (Verdict::Unknown, None));
    let said = "not known: lopa-lg diverged on 1 of 3 seeds and is not ranked";
    assert_eq!(judgement.words(), said);
}
