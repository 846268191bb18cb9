//! Three nodes with keys, a roster and an experiment, in a temporary folder.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::ports::free_port;
use crate::program::Folder;

pub const NAMES: [&str; 3] = ["alice", "bob", "carol"];

/// Noisy quadratics on three nodes: quick, and every random number matters.
pub const QUADRATIC: &str = r#"schema = 1
name = "trio"

[problem]
name = "quadratic"
n = 3
p = 4
condition = 2.0
heterogeneity = 0.5
noise = 0.3
samples = 20

[network]
nodes = 3
graph = "path"
weights = "lazy-metropolis"

[run]
iterations = 40
evaluations = 4
batch = 4

[checkpoint]
iterations = 10

[[algorithm]]
name = "lopa-gt"
alpha = 0.005
beta = 0.2
lambda = 0.2
"#;

pub struct Trio {
    pub folder: Folder,
}

impl Trio {
    /// Keys, a roster on loopback, and an experiment `e.toml`.
    pub fn new(experiment: &str) -> Trio {
        Trio::at(experiment, &["127.0.0.1"; 3])
    }

    /// The same with one address per node.
    pub fn at(experiment: &str, hosts: &[&str; 3]) -> Trio {
        let folder = Folder::with(&[("e.toml", experiment)]);
        for (name, host) in NAMES.iter().zip(hosts) {
            let file = format!("{name}.key");
            let made = folder.lopa(&["key", "new", &file]).good();
            let address = format!("{host}:{}", free_port());
            let key = made.stdout.trim();
            folder.lopa(&["roster", "add", "roster.toml", name, key, &address]).good();
        }
        Trio { folder }
    }

    /// A node, not yet started.
    pub fn node(&self, name: &str, more: &[&str]) -> Command {
        let args = ["node", "e.toml", "--roster", "roster.toml", "--name", name];
        let patience: &[&str] =
            if more.contains(&"--deadline") { &[] } else { &["--deadline", "60"] };
        let args = [&args[..], &["--format", "json"], patience, more].concat();
        let mut command = self.folder.program(&args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn start(&self, name: &str, more: &[&str]) -> Child {
        self.node(name, more).spawn().unwrap()
    }

    /// Runs all three to their end.
    pub fn run(&self, more: &[&str]) -> Vec<Output> {
        let nodes = NAMES.map(|name| self.start(name, more));
        nodes.into_iter().map(|node| node.wait_with_output().unwrap()).collect()
    }

    /// The results of a single process.
    pub fn alone(&self, more: &[&str]) -> Vec<Value> {
        let args = [&["run", "e.toml", "--out", "alone", "--format", "json"], more].concat();
        results(&self.folder.lopa(&args).good().json())
    }

    /// The run folder of a node, if it has one.
    pub fn run_folder(&self, name: &str) -> Option<PathBuf> {
        let runs = std::fs::read_dir(self.folder.path().join("runs").join(name)).ok()?;
        let folders = runs.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
        let mut folders: Vec<PathBuf> = folders.collect();
        assert!(folders.len() < 2, "{name} started a new run: {folders:?}");
        folders.pop()
    }

    /// The results in a node's folder, if its status is done.
    pub fn done(&self, name: &str) -> Option<Vec<Value>> {
        let folder = self.run_folder(name)?;
        let read = |file: &str| -> Option<Value> {
            serde_json::from_str(&std::fs::read_to_string(folder.join(file)).ok()?).ok()
        };
        (read("manifest.json")?["status"] == "done").then_some(results(&read("results.json")?))
    }
}

/// Algorithm, seed, reason to stop, digest and last metrics of each run.
pub fn results(runs: &Value) -> Vec<Value> {
    let keys = ["algorithm", "seed", "stop", "digest", "loss", "grad_phi_sq"];
    let pick = |run: &Value| keys.iter().map(|key| run[*key].clone()).collect();
    runs.as_array().unwrap().iter().map(pick).collect()
}

pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
