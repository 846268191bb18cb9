//! Untrusted input: names that would control a terminal or a browser, files without an end, and
//! every input that fuzzing kept.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::program::{Folder, QUADRATIC};

#[allow(dead_code)]
#[path = "../../../../fuzz/src/targets.rs"]
mod targets;

/// Clears the screen, sets the window's title, turns the text, and ends a table of a page.
const NAME: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}1m\u{202e}<script>alert(1)</script>'\"&|";

/// Characters that a terminal obeys.
fn obeyed(text: &str) -> Option<char> {
    text.chars().find(|&c| {
        c.is_control() && !"\n\t".contains(c)
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    })
}

/// Classes, groups and a column by that name; the experiment and its label too, as far as names may be so.
fn hostile() -> Folder {
    let folder = Folder::new();
    let mut text = format!("x,\"{0}\",site,y\n", NAME.replace('"', "\"\""));
    for i in 0..24 {
        let class =
            if i % 2 == 0 { format!("\"{}\"", NAME.replace('"', "\"\"")) } else { "b".into() };
        let site =
            if i % 3 == 0 { "s".into() } else { format!("\"{}\"", NAME.replace('"', "\"\"")) };
        text += &format!("{}.5,{i},{site},{class}\n", i % 7);
    }
    folder.write("rows.csv", text.as_bytes());
    let experiment = "name = 'hostile'\nproblem = 'hyperparameter'\n\
        data = { name = 'csv', path = 'rows.csv', label = 'y', group = 'site', scaling = 'standardise' }\n\
        partition = 'group'\nnetwork = { nodes = 2, graph = 'path' }\n\
        run = { iterations = 4, evaluations = 1 }\nalgorithm = [{ name = 'dgd', alpha = 0.01 }]\n";
    folder.write("e.toml", experiment.as_bytes());
    folder
}

#[test]
fn names_from_data_are_shown_and_never_obeyed() {
    let folder = hostile();
    let run = folder.lopa(&["run", "e.toml"]).good();
    let path = folder.run_folder().display().to_string();
    let model = format!("{path}/models/dgd-seed1.safetensors");
    let commands: [&[&str]; 12] = [
        &["check", "e.toml"],
        &["data", "stats", "rows.csv"],
        &["data", "stats", "rows.csv", "--format", "json"],
        &["data", "stats", "rows.csv", "--format", "md"],
        &["predict", &model, "--input", "rows.csv", "--node", "s"],
        &["predict", &model, "--input", "rows.csv", "--node", "s", "--probabilities"],
        &["predict", &model, "--input", "rows.csv", "--node", "s", "--format", "json"],
        &["predict", &model, "--input", "rows.csv"],
        &["predict", &model, "--input", "rows.csv", "--node", NAME],
        &["evaluate", &path],
        &["evaluate", &path, "--input", "rows.csv"],
        &["init", "--data", "rows.csv", "--out", "new.toml", "--label", NAME],
    ];
    assert_eq!(obeyed(&(run.stdout + &run.stderr)), None);
    for command in commands {
        let done = folder.lopa(command);
        let said = done.stdout + &done.stderr;
        assert_eq!(obeyed(&said), None, "{command:?}: {said:?}");
        assert!([0, 2, 3].contains(&done.code), "{command:?}: {}: {said}", done.code);
        assert!(!said.contains("Usage:"), "{command:?}: {said}");
    }
}

#[test]
fn names_from_data_are_text_in_a_report() {
    let folder = hostile();
    folder.lopa(&["run", "e.toml"]).good();
    let path = folder.run_folder().display().to_string();
    folder.lopa(&["report", &path, "--out", "report.html"]).good();
    let html = folder.read("report.html");
    assert!(html.contains("&lt;script&gt;alert(1)"), "the class is shown");
    assert!(!html.contains("<script>alert(1)"), "the class is a tag");
    assert_eq!(obeyed(&html).filter(|c| c.is_control()), None);
    // Nothing ends the script that holds the data.
    assert_eq!(html.matches("</script>").count(), html.matches("<script").count());
}

#[test]
fn names_of_files_are_shown_and_never_obeyed() {
    let folder = Folder::new();
    let name = "\u{1b}[31m\u{202e}.toml";
    folder.write(name, QUADRATIC.replace("nodes = 4", "nodes = 'four'").as_bytes());
    for command in [&["run", name][..], &["run", name, "--format", "json"], &["report", name]] {
        let done = folder.lopa(command);
        let said = done.stdout + &done.stderr;
        assert_ne!(done.code, 0);
        assert_eq!(obeyed(&said), None, "{command:?}: {said:?}");
    }
}

/// Runs a command that must end by itself; one that reads a pipe without a writer never does.
fn ends(folder: &Folder, args: &[&str]) -> (i32, String) {
    let mut child = folder
        .program(args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            panic!("{args:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), said)
}

#[cfg(unix)]
#[test]
fn files_without_an_end_are_refused_by_every_reader() {
    let folder = Folder::with(&[("e.toml", QUADRATIC)]);
    let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert!(made.success());
    // The endings say the format.
    let ends_in = ["csv", "libsvm", "npy", "npz", "toml", "txt", "safetensors"];
    for end in ends_in {
        for (of, name) in [("pipe", "pipe"), ("/dev/zero", "zero")] {
            let link = folder.path().join(format!("{name}.{end}"));
            std::os::unix::fs::symlink(of, link).unwrap();
        }
    }
    let data = |name: &str, path: &str| {
        let more = if name == "npy" {
            format!("features = '{path}', labels = '{path}'")
        } else {
            format!("path = '{path}'")
        };
        format!("data={{ name = '{name}', {more} }}")
    };
    for from in ["pipe", "zero"] {
        let file = |end: &str| format!("{from}.{end}");
        let set = |text: String| vec!["run".to_string(), "e.toml".into(), "--set".into(), text];
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let mut commands = vec![
            words(&format!("run {}", file("toml"))),
            words(&format!("check {}", file("toml"))),
            words(&format!("graph check {}", file("toml"))),
            words(&format!("graph check {}", file("txt"))),
            words(&format!("graph show {}", file("txt"))),
            words(&format!("roster check {}", file("toml"))),
            words(&format!("key show {}", file("txt"))),
            words(&format!("predict {} --input e.toml", file("safetensors"))),
            words(&format!("init --data {} --out new.toml", file("csv"))),
            words(&format!("data stats {}", file("csv"))),
            words(&format!("report {}", file("toml"))),
            set(format!("network.graph={{ name = 'file', path = '{}' }}", file("txt"))),
            set(format!("network.weights={{ name = 'file', path = '{}' }}", file("txt"))),
            set(format!("problem={{ name = 'quadratic', file = '{}' }}", file("txt"))),
        ];
        for name in ["csv", "libsvm", "npy", "npz"] {
            let mut command = set(data(name, &file(name)));
            command.extend(["--set".into(), "problem=hyperparameter".into()]);
            commands.push(command);
        }
        for command in commands {
            let args: Vec<&str> = command.iter().map(String::as_str).collect();
            let (code, said) = ends(&folder, &args);
            assert!((2..=5).contains(&code), "{args:?}: {code}: {said}");
            let refused = ["regular file", "run folder", "there is no file"];
            assert!(refused.iter().any(|text| said.contains(text)), "{args:?}: {said}");
        }
    }
}

#[test]
fn a_limit_that_an_error_names_can_be_raised() {
    let comment = format!("# {}\n", "x".repeat(17 << 20));
    let folder = Folder::with(&[("e.toml", &(comment + QUADRATIC))]);
    let refused = folder.lopa(&["check", "e.toml"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("--max-bytes"), "{}", refused.stderr);
    folder.lopa(&["check", "e.toml", "--max-bytes", "20000000"]).good();
}

/// No input that fuzzing found or kept causes a panic.
#[test]
fn inputs_that_fuzzing_kept_are_read_or_refused() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in targets::TARGETS {
        let inputs = std::fs::read_dir(corpus.join(name));
        let inputs = inputs.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut count = 0;
        for input in inputs {
            let path = input.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let read = std::panic::catch_unwind(|| target(&bytes));
            assert!(read.is_ok(), "{}", path.display());
            count += 1;
        }
        assert!(count > 0, "{name} has no inputs");
    }
}
