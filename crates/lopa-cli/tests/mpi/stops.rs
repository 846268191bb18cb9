//! Runs under `mpirun` that are stopped or die, and resume.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::program::Folder;
use crate::{PERSONAL, mpirun, text, timeless};

/// Long enough to be stopped in the middle, with checkpoints.
const RUN: [&str; 12] = [
    "run",
    "e.toml",
    "--set",
    "problem.noise=0.3",
    "--set",
    "run.batch=4",
    "--set",
    "run.iterations=6000",
    "--set",
    "checkpoint.iterations=100",
    "--set",
    "run.evaluations=3",
];

/// One algorithm of the file.
fn folder() -> Folder {
    let head = PERSONAL.split("[[algorithm]]").next().unwrap();
    let text = format!(
        "{head}\n[[algorithm]]\nname = \"lopa-gt\"\nalpha = 0.002\nbeta = 0.2\nlambda = 0.2\n"
    );
    Folder::with(&[("e.toml", &text)])
}

fn checkpoints(folder: &Folder) -> usize {
    let runs = std::fs::read_dir(folder.path().join("runs")).into_iter().flatten().flatten();
    let inner = |run: PathBuf| std::fs::read_dir(run.join("checkpoints")).into_iter().flatten();
    runs.flat_map(|run| inner(run.path())).count()
}

/// Starts a run, and waits until it has written checkpoints.
fn start(folder: &Folder, size: usize) -> Child {
    let mut command = mpirun(folder, size, &RUN);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while checkpoints(folder) < 2 {
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// The processes that an `mpirun` started.
fn ranks(mpirun: &Child) -> Vec<u32> {
    let found =
        Command::new("ps").args(["-o", "pid=", "--ppid", &mpirun.id().to_string()]).output();
    let text = String::from_utf8(found.unwrap().stdout).unwrap();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn send(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

fn single_process() -> serde_json::Value {
    let folder = folder();
    let output = folder.program(&[&RUN[..], &["--format", "json"]].concat()).output().unwrap();
    timeless(&output.stdout)
}

#[test]
fn a_signal_to_any_process_stops_all_and_the_run_resumes_anywhere() {
    let want = single_process();
    let folder = folder();
    for (turn, signal, code) in [(0, "-TERM", 143), (2, "-TERM", 143), (1, "-INT", 130)] {
        let child = start(&folder, 3);
        let ranks = ranks(&child);
        assert_eq!(ranks.len(), 3);
        send(ranks[turn], signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        assert!(text(&output).contains("run the same command to resume"), "{}", text(&output));
        // In any number of processes, or in one without MPI.
        let done = match turn {
            0 => mpirun(&folder, 2, &RUN).output().unwrap(),
            1 => mpirun(&folder, 4, &RUN).output().unwrap(),
            _ => folder.program(&[&RUN[..], &["--format", "json"]].concat()).output().unwrap(),
        };
        assert!(text(&done).contains("resumes from iteration"), "{}", text(&done));
        assert_eq!(timeless(&done.stdout), want);
    }
}

#[test]
fn a_process_that_dies_ends_the_job_and_loses_nothing() {
    let want = single_process();
    for turn in 0..3 {
        let folder = folder();
        let child = start(&folder, 3);
        send(ranks(&child)[turn], "-KILL");
        assert!(!child.wait_with_output().unwrap().status.success());
        let done = mpirun(&folder, 3, &RUN).output().unwrap();
        assert!(text(&done).contains("resumes from iteration"), "{}", text(&done));
        assert_eq!(timeless(&done.stdout), want);
    }
}
