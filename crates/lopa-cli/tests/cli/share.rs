//! `--share` and `--merge`.
#![cfg(unix)]

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::program::{Folder, QUADRATIC};

fn folder() -> Folder {
    let search =
        "[tune]\nseeds = [11]\ntrials = 5\nmetric = \"loss\"\nmethod = \"halving\"\nconfirm = 1\n";
    Folder::with(&[("e.toml", &format!("{QUADRATIC}\n{search}"))])
}

/// The parts of a command, at the same time.
fn parts(folder: &Folder, command: &[&str], of: usize) {
    let start = |number: usize| {
        let share = format!("{number}/{of}");
        let args = [command, &["--share", &share, "--no-progress", "-j", "1"]].concat();
        let mut part = folder.program(&args);
        part.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let all: Vec<_> = (1..=of).map(start).collect();
    for part in all {
        let output = part.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && text.contains("all are done"), "{text}");
    }
}

#[test]
fn parts_of_a_search_write_the_file_of_one_process() {
    let (alone, shared) = (folder(), folder());
    alone.lopa(&["tune", "e.toml", "--no-progress", "-j", "1"]).good();
    parts(&shared, &["tune", "e.toml"], 3);
    let early = shared.path().join("e-tuned.toml");
    assert!(!early.exists(), "parts leave the outcome to the merge");
    shared.lopa(&["tune", "e.toml", "--merge", "--no-progress"]).good();
    assert_eq!(shared.read("e-tuned.toml"), alone.read("e-tuned.toml"));
    assert_eq!(shared.read("e-tune.jsonl"), alone.read("e-tune.jsonl"));
}

#[test]
fn parts_of_a_run_and_of_a_comparison_end_in_the_same_digest() {
    let digest = |text: &str| {
        let at = text.find("trajectory digest").unwrap_or_else(|| panic!("{text}"));
        text[at..].lines().next().unwrap().to_string()
    };
    let (alone, shared) = (folder(), folder());
    let run = ["run", "e.toml", "--seed", "1", "--seed", "2"];
    let one = alone.lopa(&[&run[..], &["--no-progress"]].concat()).good();
    parts(&shared, &run, 2);
    let merged = shared.lopa(&[&run[..], &["--merge", "--no-progress"]].concat()).good();
    assert_eq!(digest(&merged.stderr), digest(&one.stderr));
    assert_eq!(merged.stdout.lines().count(), one.stdout.lines().count());
    // A comparison of the same experiment has the same parts.
    let compare = ["compare", "e.toml", "--seed", "1", "--seed", "2", "--cost", "hessians"];
    let one = alone.lopa(&[&compare[..], &["--no-progress"]].concat()).good();
    let merged = shared.lopa(&[&compare[..], &["--merge", "--no-progress"]].concat()).good();
    assert_eq!(merged.stdout, one.stdout);
}

/// Every file of the figures is a small quadratic here, so that the paper's data are not needed.
#[test]
#[cfg(feature = "paper")]
fn parts_of_a_reproduction_write_the_page_of_one_process() {
    let experiments = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let files = std::fs::read_dir(experiments).unwrap().flatten();
    let names: Vec<String> = files.map(|file| file.file_name().into_string().unwrap()).collect();
    let folder = || {
        let folder = Folder::new();
        std::fs::create_dir(folder.path().join("files")).unwrap();
        for name in names.iter().filter(|name| name.starts_with("fig")) {
            folder.write(&format!("files/{name}"), QUADRATIC.as_bytes());
        }
        folder
    };
    let (alone, shared) = (folder(), folder());
    let figures = ["reproduce", "fig1", "fig8", "--experiments", "files", "--seeds", "2"];
    alone.lopa(&[&figures[..], &["--no-progress", "-j", "1"]].concat()).good();
    parts(&shared, &figures, 2);
    let early = shared.path().join("reproduction/reproduction.md");
    assert!(!early.exists(), "parts leave the page to the merge");
    shared.lopa(&[&figures[..], &["--merge", "--no-progress"]].concat()).good();
    for name in ["reproduction.md", "reproduction-tables.md", "claims.json"] {
        let name = format!("reproduction/{name}");
        assert_eq!(shared.read(&name), alone.read(&name), "{name}");
    }
}

#[test]
fn a_merge_after_a_kill_names_the_part() {
    let shared = folder();
    let long = ["--set", "run.iterations=20000000", "--share", "1/2", "--lease", "1"];
    let long = [&["run", "e.toml", "--no-progress"], &long[..]].concat();
    let mut killed = shared.program(&long).stderr(Stdio::null()).spawn().unwrap();
    let begun = |name: &str| {
        let runs = std::fs::read_dir(shared.path().join("runs")).into_iter().flatten().flatten();
        runs.map(|entry| entry.path())
            .any(|path| std::fs::read_dir(path.join(name)).is_ok_and(|found| found.count() > 0))
    };
    let start = Instant::now();
    while !begun("claims") && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let merge = ["run", "e.toml", "--set", "run.iterations=20000000", "--merge"];
    let missing = shared.lopa(&merge);
    assert_eq!(missing.code, 5, "{}", missing.stderr);
    for words in ["part 1/2 on", "is at work on it, or was killed", "--share 1/2"] {
        assert!(missing.stderr.contains(words), "{}", missing.stderr);
    }
}

#[test]
fn wrong_shares_are_refused_with_the_remedy() {
    let folder = folder();
    for (args, words) in [
        (&["tune", "e.toml", "--share", "5/4"][..], "--share 3/16"),
        (&["tune", "e.toml", "--share"], "--share 3/16"),
        (&["run", "e.toml", "--share", "1/2", "--lease", "0"], "--lease"),
        (&["run", "e.toml", "--merge"], "--share 1/N"),
        (&["tune", "e.toml", "--merge"], "--share 1/N"),
        (&["run", "e.toml", "--share", "1/2", "--merge"], "cannot be used with"),
    ] {
        let mut program = folder.program(args);
        for name in ["SLURM_ARRAY_TASK_ID", "SLURM_PROCID", "JOB_COMPLETION_INDEX", "LOPA_LEASE"] {
            program.env_remove(name);
        }
        let output = program.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(words), "{args:?}\n{text}");
    }
    // In a task of an array, the share is that of the task.
    let mut program = folder.program(&["tune", "e.toml", "--share", "--no-progress"]);
    program.env("SLURM_ARRAY_TASK_ID", "7").env("SLURM_ARRAY_TASK_MIN", "7");
    program.env("SLURM_ARRAY_TASK_COUNT", "3").env_remove("SLURM_PROCID");
    let output = program.env("SLURMD_NODENAME", "n9").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && text.contains("part 1/3 on n9 did"), "{text}");
}
