//! Killed and stopped runs resume.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::program::{Folder, send_signal};

/// Algorithms with different kinds of state.
const EXPERIMENT: &str = r#"schema = 1
name = "mortal"

[problem]
name = "quadratic"
n = 12
p = 10
noise = 0.3
samples = 20

[network]
nodes = 4
graph = "path"

[run]
seeds = [1, 2]
iterations = 400
batch = 3
evaluations = 5

[checkpoint]
iterations = 20

[[algorithm]]
name = "lopa-gt"
alpha = 0.001
beta = 0.05
lambda = 0.05

[[algorithm]]
name = "vrdbo"
alpha = 0.05
beta = 0.2
eta = 0.3
gamma = 0.3
hv_steps = 4
lambda = 0.1

[[algorithm]]
name = "d-soba"
alpha = 0.001
beta = 0.05
lambda = 0.05
"#;

const RUN: [&str; 5] = ["run", "e.toml", "--format", "json", "--no-progress"];

fn folder() -> Folder {
    Folder::with(&[("e.toml", EXPERIMENT)])
}

/// What must not depend on interruptions: everything but the time.
fn timeless(mut runs: Value) -> Value {
    let timed = |key: &String| ["seconds", "measuring", "check"].contains(&key.as_str());
    let strip = |run: &mut Value| run.as_object_mut().unwrap().retain(|key, _| !timed(key));
    runs.as_array_mut().unwrap().iter_mut().for_each(strip);
    runs
}

fn metrics(folder: &Folder, run: &Path) -> Value {
    let text = folder.read(run.join("metrics.jsonl"));
    timeless(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect())
}

/// The results and measurements of an uninterrupted run.
fn straight() -> (Value, Value) {
    let folder = folder();
    let printed = folder.lopa(&RUN).good().json();
    (timeless(printed), metrics(&folder, &folder.run_folder()))
}

fn spawn(folder: &Folder, more: &[&str]) -> Child {
    let args = [&RUN[..], more].concat();
    folder.program(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Run folders, by name.
fn runs(folder: &Folder) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.path().join("runs")).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| path.strip_prefix(folder.path()).unwrap().to_path_buf()).collect()
}

/// The complete checkpoints of all runs.
fn checkpoints(folder: &Folder) -> Vec<PathBuf> {
    let inner = |run: PathBuf| std::fs::read_dir(folder.path().join(run).join("checkpoints"));
    let entries = runs(folder).into_iter().filter_map(|run| inner(run).ok()).flatten().flatten();
    let whole = |path: &PathBuf| path.extension().is_none_or(|end| end != "partial");
    entries.map(|entry| entry.path()).filter(whole).collect()
}

/// Starts a run and stops it once it has written both generations.
fn stopped(folder: &Folder, signal: &str, more: &[&str]) -> i32 {
    let endless = [&["--set", "run.iterations=4000000000"], more].concat();
    checkpoints(folder).into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let mut child = spawn(folder, &endless);
    while checkpoints(folder).len() < 2 {
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
        std::thread::sleep(Duration::from_millis(2));
    }
    send_signal(&child, signal);
    let output = child.wait_with_output().unwrap();
    output.status.code().unwrap_or(-1)
}

/// Whether a run has finished; one that was killed early may not even have a manifest.
fn is_done(folder: &Folder, run: &Path) -> bool {
    let manifest = std::fs::read(folder.path().join(run).join("manifest.json"));
    let manifest = manifest.ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    manifest.is_some_and(|manifest| manifest["status"] == "done")
}

#[test]
fn a_hundred_kills_at_random_instants_lose_nothing() {
    let (want, measured) = straight();
    let folder = folder();
    // A fixed sequence of times; the work that they interrupt varies, and must not matter.
    let mut word = 1u64;
    let mut instant = || {
        word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        Duration::from_micros(5_000 + (word >> 33) % 150_000)
    };
    let (mut kills, mut ended) = (0, 0);
    while kills < 100 || ended == 0 {
        let mut child = spawn(&folder, &[]);
        if kills < 100 {
            std::thread::sleep(instant());
        }
        if kills < 100 && child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            continue;
        }
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        assert_eq!(timeless(serde_json::from_slice(&output.stdout).unwrap()), want, "{text}");
        ended += 1;
    }
    for run in runs(&folder).iter().filter(|run| is_done(&folder, run)) {
        assert_eq!(metrics(&folder, run), measured);
    }
    let last = runs(&folder).into_iter().rfind(|run| is_done(&folder, run)).unwrap();
    assert!(!folder.path().join(last).join("checkpoints").exists());
}

#[test]
fn a_stopped_run_resumes_where_it_was() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = folder();
        // The budget is that of the straight run, so both are the same experiment.
        let mut child = spawn(&folder, &["--set", "checkpoint.iterations=1"]);
        while checkpoints(&folder).is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
            std::thread::sleep(Duration::from_millis(1));
        }
        send_signal(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert!(String::from_utf8_lossy(&output.stderr).contains("run the same command to resume"));
        let done = folder.lopa(&RUN).good();
        assert!(done.stderr.contains("resuming runs/mortal-"), "{}", done.stderr);
        assert!(done.stderr.contains("resumes from iteration"), "{}", done.stderr);
        let (want, measured) = straight();
        assert_eq!(timeless(done.json()), want);
        assert_eq!(metrics(&folder, &folder.run_folder()), measured);
    }
}

#[test]
fn what_is_resumed_is_the_users_choice() {
    let folder = folder();
    let none = folder.lopa(&[&RUN[..], &["--resume", "require"]].concat());
    assert_eq!(none.code, 5, "{}", none.stderr);
    assert_eq!(none.json()["error"]["id"], "storage/nothing-to-resume");
    assert_eq!(stopped(&folder, "-TERM", &[]), 143);
    assert_eq!(stopped(&folder, "-TERM", &["--resume", "require"]), 143);
    assert_eq!(runs(&folder).len(), 1);
    assert_eq!(stopped(&folder, "-TERM", &["--resume", "never"]), 143);
    assert_eq!(runs(&folder).len(), 2);
    // Another experiment is another run; a finished one is left alone.
    folder.lopa(&RUN).good();
    folder.lopa(&RUN).good();
    assert_eq!(runs(&folder).len(), 4);
    let changed = ["--set", "run.iterations=4000000000", "--set", "run.batch=2"];
    let require = [&RUN[..], &changed, &["--resume", "require"]].concat();
    assert_eq!(folder.lopa(&require).code, 5);
}

#[test]
fn two_at_once_do_not_share_a_folder() {
    let folder = folder();
    let endless = ["--set", "run.iterations=4000000000"];
    let mut first = spawn(&folder, &endless);
    while checkpoints(&folder).is_empty() {
        assert!(first.try_wait().unwrap().is_none(), "the run ended by itself");
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut second = spawn(&folder, &endless);
    while runs(&folder).len() < 2 {
        assert!(second.try_wait().unwrap().is_none(), "the second run ended by itself");
        std::thread::sleep(Duration::from_millis(2));
    }
    for child in [&mut first, &mut second] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(runs(&folder).len(), 2);
}

#[test]
fn damaged_checkpoints_are_noticed_and_skipped() {
    let (want, _) = straight();
    for both in [false, true] {
        let folder = folder();
        let mut child = spawn(&folder, &["--set", "checkpoint.iterations=1"]);
        while checkpoints(&folder).len() < 2 {
            assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut files = checkpoints(&folder);
        files.sort_by_key(|path| std::fs::metadata(path).unwrap().modified().unwrap());
        for path in files.iter().rev().take(if both { 2 } else { 1 }) {
            let mut bytes = std::fs::read(path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
            std::fs::write(path, bytes).unwrap();
        }
        let done = folder.lopa(&RUN).good();
        assert!(done.stderr.contains("is not used: it was damaged"), "{}", done.stderr);
        let how = if both { "starts from the beginning" } else { "resumes from iteration" };
        assert!(done.stderr.contains(how), "{}", done.stderr);
        assert_eq!(timeless(done.json()), want);
    }
}

#[test]
fn a_disk_that_is_full_costs_nothing_but_the_rest() {
    let folder = folder();
    let mut child = spawn(&folder, &["--set", "checkpoint.iterations=1"]);
    while checkpoints(&folder).is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // No file may exceed 8 kB, and writing more is an error, not a signal.
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
    let lopa = folder.program(&RUN).get_program().to_os_string();
    let full = Command::new("bash")
        .args(["-c", limited, "bash"])
        .arg(lopa)
        .args(RUN)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&full.stderr);
    assert_eq!(full.status.code(), Some(5), "{text}");
    let error: Value = serde_json::from_slice(&full.stdout).unwrap();
    assert_eq!(error["error"]["id"], "storage/write", "{error}");
    let done = folder.lopa(&RUN).good();
    assert!(done.stderr.contains("resumes from iteration"), "{}", done.stderr);
    assert_eq!(timeless(done.json()), straight().0);
    assert_eq!(runs(&folder).len(), 1);
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = folder();
    // A run long enough to be signalled twice.
    let long = ["--set", "run.iterations=4000000000", "--set", "run.evaluations=1000000"];
    let child = spawn(&folder, &long);
    while runs(&folder).is_empty() {
        std::thread::sleep(Duration::from_millis(2));
    }
    send_signal(&child, "-TERM");
    // It may have ended already.
    let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).output().unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
}
