//! Arguments that several commands take; each command's own are beside it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lopa::data::Where;

/// An experiment file with overrides.
#[derive(Debug, Clone, Default, Args)]
pub struct FileArgs {
    /// Experiment file (TOML) [default: the built-in quickstart]
    pub file: Option<PathBuf>,
    /// Override a value of the file; repeatable
    ///
    /// `--set run.batch=20`, `--set algorithm.lopa-gt.alpha=0.1`, `--set 'algorithm.*.beta=0.05'`
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    #[command(flatten)]
    pub data: DataArgs,
}

/// The folder of the data sets.
#[derive(Debug, Clone, Default, Args)]
pub struct DataArgs {
    /// Folder with the data sets
    #[arg(long = "data", value_name = "DIR", env = "LOPA_DATA_DIR")]
    given: Option<PathBuf>,
}

impl DataArgs {
    /// The folder given, or the default one.
    pub fn folder(&self) -> PathBuf {
        Where::new(self.given.as_deref(), 0).directory
    }
}

/// An experiment to run, and where to put its run folder.
#[derive(Debug, Clone, Args)]
pub struct ExperimentArgs {
    #[command(flatten)]
    pub file: FileArgs,
    /// Folder for the run folders
    #[arg(short, long, value_name = "DIR", env = "LOPA_RUNS_DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Device that computes iterations, instead of the file's `run.device`: cpu, or cuda for a
    /// graphics card
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Seed to use instead of the file's; repeatable
    #[arg(short, long = "seed", value_name = "SEED")]
    pub seeds: Vec<u64>,
}

#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Whether to resume an unfinished run of the same experiment
    #[arg(long, value_enum, default_value_t = Resume::Auto)]
    pub resume: Resume,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Resume {
    /// Resume if there is such a run, else start a new one
    Auto,
    /// Always start a new run
    Never,
    /// Resume, or fail with exit code 5
    Require,
}

/// Work that several processes share.
#[derive(Debug, Default, Args)]
pub struct ShareArgs {
    /// Do part I of N on a folder that all parts share; without I/N, the index of the Slurm array or of the
    /// indexed Kubernetes job
    ///
    /// A part does its own share first, then whatever no other part has begun, and ends when all is done. Whatever a
    /// dead part had begun is taken over.
    #[arg(long, value_name = "I/N", num_args = 0..=1, default_missing_value = "job")]
    pub share: Option<String>,
    /// Put the work of all parts together
    #[arg(long, conflicts_with = "share")]
    pub merge: bool,
    /// Seconds without a sign of life after which other parts take over a part's work
    #[arg(long, value_name = "SECONDS", env = "LOPA_LEASE", default_value_t = 120.0)]
    pub lease: f64,
}

#[derive(Debug, Args)]
pub struct CodeArgs {
    /// Run the Python code that the run folder or the file names
    #[arg(long)]
    pub run_code: bool,
}

#[derive(Debug, Args)]
pub struct ThreadArgs {
    /// Number of threads; results do not depend on it [default: all cores]
    #[arg(short, long, value_name = "N", env = "LOPA_THREADS")]
    pub jobs: Option<usize>,
}
