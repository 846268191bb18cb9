//! Files that a user names: pipes are written to, links are followed, `-` is standard output.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::Command;

use crate::program::{Folder, blobs_folder};

/// A folder with a run, and every command that writes a file, up to the file's name.
fn commands() -> (Folder, Vec<Vec<String>>) {
    let folder = blobs_folder();
    folder.lopa(&["run", "e.toml"]).good();
    let run = folder.run_folder().display().to_string();
    let lines = [
        format!("report {run} --out"),
        format!("export {run} --to csv --out"),
        format!("export {run} --to onnx -a lopa-gt -n 0 --out"),
        format!("predict {run} -a lopa-gt -n 0 -i blobs.csv --out"),
        format!("adapt {run} -a lopa-gt -i blobs.csv --out"),
        "graph make ring -m 5 --out".into(),
        "init --data blobs.csv --nodes 3 --out".into(),
    ];
    let words = |line: &String| line.split(' ').map(String::from).collect();
    let commands = lines.iter().map(words).collect();
    (folder, commands)
}

fn call(folder: &Folder, command: &[String], out: &str) -> crate::program::Done {
    let words: Vec<&str> = command.iter().map(String::as_str).chain([out]).collect();
    folder.lopa(&words)
}

/// What a pipe is given while something runs.
fn through(folder: &Folder, pipe: &str, run: impl FnOnce()) -> Vec<u8> {
    let path = folder.path().join(pipe);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    });
    run();
    reader.join().unwrap()
}

#[test]
fn every_named_file_may_be_a_pipe_a_link_or_standard_output() {
    let (folder, commands) = commands();
    assert!(
        Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success(),
        "mkfifo"
    );
    for command in &commands {
        let shown = command.join(" ");
        let piped = through(&folder, "pipe", || drop(call(&folder, command, "pipe").good()));
        let kind = fs::symlink_metadata(folder.path().join("pipe")).unwrap().file_type();
        assert!(kind.is_fifo(), "{shown}: the pipe is still one");
        assert!(piped.len() > 20, "{shown}");

        // A link in another folder, to a file that is there.
        let end = if command[0] == "predict" { ".csv" } else { ".toml" };
        let (target, link) = (format!("target{end}"), format!("below/link{end}"));
        let _ = fs::remove_dir_all(folder.path().join("below"));
        fs::create_dir(folder.path().join("below")).unwrap();
        folder.write(&target, b"old");
        symlink(format!("../{target}"), folder.path().join(&link)).unwrap();
        let force: &[String] = if command[0] == "init" { &["--force".into()] } else { &[] };
        call(&folder, &[&command[..1], force, &command[1..]].concat(), &link).good();
        assert!(fs::symlink_metadata(folder.path().join(&link)).unwrap().is_symlink(), "{shown}");
        assert_eq!(fs::read_dir(folder.path().join("below")).unwrap().count(), 1, "{shown}");
        let linked = fs::read(folder.path().join(&target)).unwrap();
        assert!(linked == piped, "{shown}: the same bytes behind a link as in a pipe");

        let words: Vec<&str> = command.iter().map(String::as_str).chain(["-"]).collect();
        let printed = folder.program(&words).output().unwrap();
        assert!(printed.status.success(), "{shown}: {}", String::from_utf8_lossy(&printed.stderr));
        assert!(
            printed.stdout == piped,
            "{shown}: standard output holds the file and nothing else"
        );
        assert!(!folder.path().join("-").exists(), "{shown}");
    }
}

#[test]
fn a_tuned_experiment_may_go_to_standard_output() {
    let folder = blobs_folder();
    let tune = ["tune", "e.toml", "--set", "tune.seeds=[9]", "--set", "tune.trials=1", "--out"];
    let printed = folder.lopa(&[&tune[..], &["-"]].concat()).good();
    folder.lopa(&[&tune[..], &["t.toml"]].concat()).good();
    assert_eq!(printed.stdout, folder.read("t.toml"));
}
