//! A user's crate, made from the text of CONTRIBUTING.md: it has the whole tool.

#[path = "../../../lopa-peers/tests/ports/mod.rs"]
mod ports;
#[path = "../cli/program.rs"]
#[allow(dead_code)]
mod program;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use ports::free_port;
use serde_json::Value;
use tempfile::TempDir;

const TEXT: &str = include_str!("../../../../CONTRIBUTING.md");

/// The crate, built once for all tests.
struct Stranger {
    folder: TempDir,
    target: PathBuf,
    program: PathBuf,
}

/// The code blocks of CONTRIBUTING.md that name a file in their first line, and those that do not.
fn blocks() -> (Vec<(String, String)>, Vec<String>) {
    let (mut files, mut commands) = (Vec::new(), Vec::new());
    for block in TEXT.split("```").skip(1).step_by(2) {
        let (kind, body) = block.split_once('\n').expect("a kind, then the text");
        let first = body.lines().next().unwrap_or_default();
        match first.strip_prefix("// ").or(first.strip_prefix("# ")) {
            Some(name) if name.ends_with(".rs") || name.ends_with(".toml") => {
                files.push((name.to_string(), body.to_string()));
            }
            _ if kind == "sh" => commands.extend(body.lines().map(str::to_string)),
            _ => {}
        }
    }
    (files, commands)
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn stranger() -> &'static Stranger {
    static BUILT: OnceLock<Stranger> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        let root = workspace();
        for (name, body) in blocks().0 {
            let body = match name.as_str() {
                "Cargo.toml" => published_here(&body, &root),
                _ => body,
            };
            std::fs::write(folder.path().join(name), body).unwrap();
        }
        // The same versions as in the workspace.
        std::fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
        std::os::unix::fs::symlink(root.join("crates"), folder.path().join("crates")).unwrap();
        // `target/PROFILE/deps/this-test`
        let target = std::env::current_exe().unwrap();
        let target = target.ancestors().nth(3).unwrap().to_path_buf();
        cargo(&folder, &target, &["build", "--quiet", "--bins", "--tests"]);
        Stranger { program: target.join("debug/mine"), target, folder }
    })
}

#[test]
fn its_problem_and_its_algorithm_conform() {
    let Stranger { folder, target, .. } = stranger();
    cargo(folder, target, &["test", "--quiet"]);
}

/// The crates of this workspace in place of published ones. Cargo knows a crate by its path below the root of the
/// workspace, its features and its profile: with the same ones as here, it reuses what it has built for these tests.
fn published_here(text: &str, root: &Path) -> String {
    let features = match cfg!(feature = "mpi") {
        true => "[\"full\", \"mpi\"]",
        false => "[\"full\"]",
    };
    let text = text.replace("lopa = \"0.1\"", "lopa = { path = \"crates/lopa\" }").replace(
        "lopa-cli = \"0.1\"",
        &format!("lopa-cli = {{ path = \"crates/lopa-cli\", features = {features} }}"),
    );
    // Dependencies of the workspace's tests and of the Python package switch on features of others.
    let python = std::fs::read_to_string(root.join("python/Cargo.toml")).unwrap();
    let python: toml::Table = python.parse().unwrap();
    let tests = format!(
        "[dev-dependencies]\ntempfile = \"3\"\npyo3 = {}\nproptest = {{ version = \"1.12\", \
         default-features = false, features = [\"std\"] }}\n",
        python["dependencies"]["pyo3"]
    );
    let ours = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let mut ours: toml::Table = ours.parse().unwrap();
    ours["workspace"].as_table_mut().unwrap().remove("members");
    format!("{text}\n{tests}\n{}", toml::to_string(&ours).unwrap())
}

fn cargo(folder: &TempDir, target: &Path, args: &[&str]) {
    let mut command = Command::new(env!("CARGO"));
    // The environment variables that the outer cargo sets must not reach the inner one: build scripts that watch them
    // (`ring`'s does) would run again, and all that depends on them would be built again, here and in the next tests.
    let set_by_cargo =
        |key: &str| ["CARGO_PKG", "CARGO_MANIFEST"].iter().any(|own| key.starts_with(own));
    for (key, _) in std::env::vars().filter(|(key, _)| set_by_cargo(key) || key == "OUT_DIR") {
        command.env_remove(key);
    }
    let output = command
        .args(args)
        .args(["--offline", "--target-dir"])
        .arg(target)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {args:?}:\n{said}");
}

/// A folder with the experiment of the page, and its program.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = TempDir::new().unwrap();
        let file = stranger().folder.path().join("ridge.toml");
        std::fs::copy(file, folder.path().join("ridge.toml")).unwrap();
        Place { folder }
    }

    fn mine(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&stranger().program);
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("NO_COLOR", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn good(&self, args: &[&str]) -> String {
        good(self.mine(args).output().unwrap(), &format!("{args:?}"))
    }

    /// The digest of every run.
    fn digests(&self, args: &[&str]) -> Vec<String> {
        digests(&self.good(&[args, &["--format", "json"]].concat()))
    }
}

fn good(output: Output, what: &str) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{what}: {:?}\n{said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn digests(json: &str) -> Vec<String> {
    let runs: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let digest = |run: &Value| run["digest"].as_str().unwrap().to_string();
    runs.as_array().unwrap().iter().map(digest).collect()
}

#[test]
fn every_command_of_the_page_works() {
    let place = Place::new();
    let (_, commands) = blocks();
    assert!(commands.len() >= 6, "the page shows its commands: {commands:?}");
    for command in commands {
        // In a shell, as the page shows them.
        let line = command.replacen("mine", &format!("{:?}", stranger().program), 1);
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(place.folder.path()).stdin(Stdio::null());
        let said = good(shell.output().unwrap(), &command);
        if command.contains("list") {
            assert!(said.contains("ridge"), "{said}");
        }
    }
}

#[test]
fn mistakes_are_named() {
    let place = Place::new();
    let refused = |sets: &[&str]| {
        let output = place.mine(&[&["check", "ridge.toml"], sets].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused(&["--set", "problem.samplse=3"]);
    assert!(said.contains("did you mean `samples`?"), "{said}");
    let said = refused(&["--set", "problem=\"rigde\""]);
    assert!(said.contains("did you mean `ridge`?"), "{said}");
    let said = refused(&["--set", "algorithm.diffusion.alpha=-1"]);
    assert!(said.contains("`alpha = -1` must be a positive number"), "{said}");
    let schema = place.good(&["schema"]);
    assert!(schema.contains("Samples of f, and of g, at each node."), "the schema has its help");
}

#[test]
fn its_data_source_serves_the_problems_of_the_library() {
    let place = Place::new();
    let file =
        "problem = \"representation\"\ndata = \"xor\"\nnetwork = { nodes = 4, graph = \"wheel\" }
        run = { iterations = 20, batch = 8 }
        algorithm = [{ name = \"lopa-gt\", alpha = 0.1, beta = 0.1, lambda = 0.1 }]";
    std::fs::write(place.folder.path().join("xor.toml"), file).unwrap();
    place.good(&["run", "xor.toml"]);
    let csv = "x,y\n0.1,0.9\n0.2,0.2\n";
    std::fs::write(place.folder.path().join("new.csv"), csv).unwrap();
    let runs = place.folder.path().join("runs");
    let run = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    let run = run.display().to_string();
    let said = place.good(&["predict", &run, "--node", "2", "--input", "new.csv"]);
    let names = ["same", "different"];
    assert!(said.lines().count() == 2 && said.lines().all(|name| names.contains(&name)), "{said}");
}

#[test]
fn a_run_that_is_killed_resumes_to_the_same_digest() {
    let place = Place::new();
    let long = ["run", "ridge.toml", "--set", "run.iterations=20000", "--seed", "1"];
    let want = place.digests(&[&long[..], &["--out", "whole"]].concat());
    for _ in 0..20 {
        let mut child = place.mine(&long).spawn().unwrap();
        let checkpoints = || {
            let found = std::fs::read_dir(place.folder.path().join("runs")).ok()?;
            let mut runs = found.filter_map(|entry| Some(entry.ok()?.path().join("checkpoints")));
            runs.find(|path| std::fs::read_dir(path).is_ok_and(|mut files| files.next().is_some()))
        };
        while checkpoints().is_none() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(place.digests(&long), want);
    let folders = std::fs::read_dir(place.folder.path().join("runs")).unwrap().count();
    assert_eq!(folders, 1, "every start resumed the same run");
}

#[cfg(feature = "mpi")]
#[test]
fn two_ranks_have_the_digest_of_one_process() {
    let place = Place::new();
    let want = place.digests(&["run", "ridge.toml", "--out", "one"]);
    let mut mpirun = Command::new("mpirun");
    mpirun.args(["--allow-run-as-root", "--oversubscribe", "-n", "2"]);
    mpirun.args(["--mca", "mpi_yield_when_idle", "1"]).arg(&stranger().program);
    mpirun.args(["run", "ridge.toml", "--engine", "mpi", "--format", "json", "--out", "two"]);
    mpirun.current_dir(place.folder.path()).env("TMPDIR", place.folder.path());
    let said = good(mpirun.stdin(Stdio::null()).output().unwrap(), "mpirun");
    assert_eq!(digests(&said), want);
}

#[test]
fn two_peers_have_the_digest_of_one_process() {
    let place = Place::new();
    let want = place.digests(&["run", "ridge.toml", "--out", "one"]);
    let names = ["alice", "bob"];
    for name in names {
        let key = place.good(&["key", "new", &format!("{name}.key")]);
        let address = format!("127.0.0.1:{}", free_port());
        place.good(&["roster", "add", "roster.toml", name, key.trim(), &address]);
    }
    let node = |name: &str| -> Child {
        let key = format!("{name}.key");
        let args = ["node", "ridge.toml", "--roster", "roster.toml", "--name", name, "--key", &key];
        let more = ["--deadline", "60", "--format", "json", "--out", name];
        place.mine(&[&args[..], &more].concat()).spawn().unwrap()
    };
    let children = names.map(node);
    for child in children {
        let said = good(child.wait_with_output().unwrap(), "a peer");
        assert_eq!(digests(&said), want);
    }
}
