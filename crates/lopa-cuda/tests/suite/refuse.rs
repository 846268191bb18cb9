//! Experiments that no device supports are refused by name.

use std::sync::atomic::AtomicBool;

use lopa::folder::complete;
use lopa::run::Context;

use super::{Rows, card, experiment, run, tables};

const FILE: &str = r#"
problem = { name = "quadratic" }
network = { nodes = 4, graph = "ring" }
run = { iterations = 3, batch = 8, device = "emulated" }
[[algorithm]]
name = "lopa-gt"
alpha = 0.05
beta = 0.5
lambda = 0.3
"#;

const LAYER: &[&str] = &["problem.name=representation", "data.name=digits", "run.batch=4"];

fn refusal(sets: &[&str]) -> String {
    let error = run(FILE, sets).unwrap_err();
    assert_eq!(error.id, "device/refused", "{error}");
    assert!(error.hint.is_some());
    error.message
}

#[test]
fn a_refusal_names_what_it_refuses() {
    assert!(refusal(&["algorithm.lopa-gt.name=spdb"]).contains("algorithm"));
    assert!(refusal(&["run.finite_differences=1e-3"]).contains("finite_differences"));
    let found = FILE.replace("beta = 0.5\n", "");
    let error = run(&found, &["scope=global"]).unwrap_err();
    assert!(error.id == "device/refused" && error.message.contains("step sizes"), "{error}");
    let times = tables::survival();
    let cox = times.iter().map(String::as_str).chain(["problem.name=hyperparameter"]);
    assert!(refusal(&cox.collect::<Vec<_>>()).contains("`cox`"));
    let rows = ["problem.name=reweighting", "problem.by=class", "data.name=digits"];
    assert!(refusal(&rows).contains("by group"));
    let many = ["data.name=blobs", "data.centres=65", "data.rows=3000"];
    assert!(refusal(&[LAYER, &many].concat()).contains("64 classes"));
    assert!(refusal(&["problem.name=meta-learning", "data.name=digits"]).contains("form"));
    let uneven = ["run.batch=full", "partition.name=dirichlet-class", "partition.alpha=0.5"];
    assert!(refusal(&[LAYER, &uneven].concat()).contains("batch"));
}

#[test]
fn an_algorithm_is_refused_before_any_other_has_run() {
    let two =
        format!("{FILE}[[algorithm]]\nname = \"spdb\"\nalpha = 0.1\nbeta = 0.1\nlambda = 0.1\n");
    let never = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &never, probe: None };
    let mut rows = Rows::default();
    let error = experiment(&two, &[]).unwrap().run_with(&context, &mut (), &mut rows).unwrap_err();
    assert!(error.message.contains("`spdb`"), "{error}");
    assert!(rows.0.is_empty());
}

#[test]
fn what_is_refused_leaves_no_folder() {
    let runs = tempfile::tempdir().unwrap();
    let never = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &never, probe: None };
    let count = || std::fs::read_dir(runs.path()).unwrap().count();
    let go = |sets: &[&str]| {
        let experiment = experiment(FILE, sets).unwrap();
        let data = experiment.load_data(&context).unwrap();
        complete(&experiment, data.as_ref(), (runs.path(), 1), &context, &mut Rows::default())
    };
    let error = go(&["problem.name=meta-learning", "data.name=digits"]).unwrap_err();
    assert_eq!((error.id, count()), ("device/refused", 0), "{error}");
    go(&[]).unwrap();
    assert_eq!(count(), 1);
}

#[test]
fn an_unknown_device_is_a_mistake_in_the_file() {
    let error = experiment(FILE, &["run.device=abacus"]).unwrap_err();
    assert_eq!(error.id, "config/unknown-name");
    assert!(error.hint.unwrap().contains("cpu"));
}

#[test]
fn without_a_card_there_is_one_clear_error() {
    if card() {
        return;
    }
    let error = run(FILE, &["run.device=cuda"]).unwrap_err();
    assert!(["device/no-driver", "device/no-card"].contains(&error.id), "{error}");
    assert!(error.hint.unwrap().contains("cpu"));
}
