//! Runs in folders: resumed from one device to the other, and the same manifest except for the
//! device.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lopa::folder::{RunFolder, Status};
use lopa::run::trace::Stop;
use lopa::run::{Context, Listener, Outcome};

use super::{card, experiment, images};

const LINEAR: &str = r#"
problem = { name = "hyperparameter" }
data = "digits"
network = { nodes = 4, graph = "ring" }
run = { iterations = 60, batch = 5, precision = "f32" }
[[algorithm]]
name = "lopa-gt"
alpha = 0.02
beta = 0.1
lambda = 0.1
"#;

const IMAGES: &[&str] = &["problem.name=representation", "data.name=mnist"];

/// Stops a run at an iteration.
struct StopAt<'a>(u64, &'a AtomicBool);

impl Listener for StopAt<'_> {
    fn progress(&mut self, iteration: u64, _: f64) {
        self.1.store(iteration >= self.0, Ordering::Relaxed);
    }
}

fn go(runs: &Path, (text, sets): Case, device: &str, until: u64) -> Outcome {
    let interrupt = AtomicBool::new(false);
    let data_dir = images::folder();
    let context = Context { pool: None, data_dir, interrupt: &interrupt, probe: None };
    let device = format!("run.device={device}");
    let experiment = experiment(text, &[sets, &[&device]].concat()).unwrap();
    let data = experiment.load_data(&context).unwrap();
    let mut folder = RunFolder::resume(runs, &experiment, data.as_ref(), 1).unwrap();
    let mut listener = StopAt(until, &interrupt);
    let mut outcomes =
        experiment.run_on(data.as_ref(), &context, &mut folder, &mut listener).unwrap();
    let stopped = outcomes[0].stop == Stop::Interrupted;
    folder.finish(if stopped { Status::Interrupted } else { Status::Done }).unwrap();
    outcomes.remove(0)
}

/// A file with overrides.
type Case<'a> = (&'a str, &'a [&'a str]);

/// To the device and back, in one folder.
fn there_and_back(case: Case, device: &str) {
    let [whole, cut] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let straight = go(whole.path(), case, device, u64::MAX);
    assert_eq!(go(cut.path(), case, device, 20).stop, Stop::Interrupted);
    let resumed = go(cut.path(), case, device, u64::MAX);
    assert_eq!(resumed.digest, straight.digest, "a resumed run has the same bits");

    let mixed = tempfile::tempdir().unwrap();
    go(mixed.path(), case, "cpu", 10);
    go(mixed.path(), case, device, 30);
    let ended = go(mixed.path(), case, "cpu", u64::MAX);
    assert_eq!((ended.stop, ended.row.iteration), (Stop::Finished, 60));
    assert_eq!(ended.row.value("samples"), straight.row.value("samples"));
    let (ours, theirs) = (ended.row.value("loss").unwrap(), straight.row.value("loss").unwrap());
    assert!((ours / theirs - 1.0).abs() < 1e-5, "{ours}, {theirs}");
    let folders = std::fs::read_dir(mixed.path()).unwrap().count();
    assert_eq!(folders, 1, "all of it in one folder");
    let folder = std::fs::read_dir(mixed.path()).unwrap().next().unwrap().unwrap().path();
    let manifest = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"device\""), "{manifest}");
}

const LISTED: &[&str] =
    &["problem.name=representation", "scope=global", "algorithm.lopa-gt.lazy=true"];

#[test]
fn a_run_moves_to_the_emulation_and_back() {
    there_and_back((LINEAR, &[]), "emulated");
    there_and_back((LINEAR, LISTED), "emulated");
    there_and_back((LINEAR, LISTED), "emulated-general");
}

#[test]
fn a_run_moves_to_the_card_and_back() {
    if card() {
        there_and_back((LINEAR, &[]), "cuda");
        // In clusters, and more nodes than clusters.
        there_and_back((LINEAR, IMAGES), "cuda");
        there_and_back((LINEAR, &[IMAGES, &["network.nodes=18"]].concat()), "cuda");
        // In any shape, and as a list.
        there_and_back((LINEAR, &[IMAGES, &["problem.hidden=[40]"]].concat()), "cuda");
        there_and_back((LINEAR, LISTED), "plain");
        there_and_back((LINEAR, &[LISTED, &["problem.hidden=[40]"]].concat()), "cuda");
    }
}
