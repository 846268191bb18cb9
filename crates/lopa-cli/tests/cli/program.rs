//! Runs the program in a temporary folder.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Sends a signal, such as `-TERM`.
pub fn send_signal(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Four small quadratics on a ring.
pub const QUADRATIC: &str = r#"schema = 1
name = "tiny"

[problem]
name = "quadratic"
n = 2
p = 3

[network]
nodes = 4
graph = "ring"
weights = "lazy-metropolis"

[run]
iterations = 6
evaluations = 3

[[algorithm]]
name = "lopa-gt"
alpha = 0.01
beta = 0.05
lambda = 0.05

[[algorithm]]
name = "dgd"
alpha = 0.01
"#;

/// Three nodes that learn to classify three blobs of points, read from `blobs.csv`.
pub const BLOBS: &str = r#"schema = 1
name = "blobs"

[problem]
name = "hyperparameter"
start = -4.0

[data]
name = "csv"
path = "blobs.csv"
scaling = "standardise"

[network]
nodes = 3
graph = "complete"

[run]
seeds = [3, 4]
iterations = 20
batch = 8
evaluations = 2

[[algorithm]]
name = "lopa-gt"
alpha = 0.1
beta = 0.4
lambda = 0.4

[[algorithm]]
name = "lopa-lg"
label = "decaying"
alpha = { over_sqrt = 0.1 }
beta = 0.4
lambda = 0.4
"#;

/// How a command ended.
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// The one document on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.stdout, self.stderr))
    }

    /// The same; the command must have succeeded.
    pub fn good(self) -> Done {
        assert_eq!(self.code, 0, "{}\n{}", self.stdout, self.stderr);
        self
    }
}

/// A folder to run commands in.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    /// A folder with these files in it.
    pub fn with(files: &[(&str, &str)]) -> Folder {
        let folder = Folder::new();
        files.iter().for_each(|(name, text)| folder.write(name, text.as_bytes()));
        folder
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path().join(name), bytes).unwrap();
    }

    pub fn read(&self, name: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// The program, not yet started, without the settings of the environment.
    pub fn program(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lopa"));
        command.args(args).current_dir(self.path()).stdin(Stdio::null());
        for name in ["LOPA_DATA_DIR", "LOPA_RUNS_DIR", "LOPA_THREADS", "NO_COLOR"] {
            command.env_remove(name);
        }
        command.env("LOPA_PRIVACY_DIR", self.path().join("ledgers"));
        command
    }

    pub fn lopa(&self, args: &[&str]) -> Done {
        let output = self.program(args).output().unwrap();
        Done {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The only run folder.
    pub fn run_folder(&self) -> PathBuf {
        let folders: Vec<_> = std::fs::read_dir(self.path().join("runs"))
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        let [folder] = &folders[..] else { panic!("{folders:?}") };
        folder.strip_prefix(self.path()).unwrap().to_path_buf()
    }
}

/// 20 points around each of three centres, labelled with the name of the centre.
pub fn blobs() -> String {
    let centres = [("red", 0.0, 0.0), ("green", 4.0, 0.0), ("blue", 0.0, 4.0)];
    let mut text = String::from("x,y,colour\n");
    for i in 0..20 {
        for (name, x, y) in centres {
            // Spread without random numbers: multiples of a number modulo 1.
            let off = |step: f64| (f64::from(i) * step).fract() - 0.5;
            text += &format!("{:.4},{:.4},{name}\n", x + off(0.618), y + off(0.414));
        }
    }
    text
}

/// A folder with the blobs and their experiment.
pub fn blobs_folder() -> Folder {
    Folder::with(&[("blobs.csv", &blobs()), ("e.toml", BLOBS)])
}
