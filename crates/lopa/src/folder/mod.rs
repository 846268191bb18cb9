//! The run folder: all files of a run, written while it runs.
//!
//! ```text
//! runs/<name>-<digest>/
//!   manifest.json     version, seeds, digests, networks, machine, status, checksums of the files
//!                     below that never change: a [`Manifest`]
//!   resolved.toml     the experiment, with every default filled in
//!   metrics.jsonl     one line per measurement, appended as it is taken: [`MetricsRow`]s, numbered
//!                     and with checksums
//!   results.json      one entry per run: a list of [`Outcome`](crate::run::Outcome), with checksums
//!   partition-seed<seed>.json        which training rows each node holds
//!   models/<algorithm>-seed<seed>.safetensors
//!   checkpoints/<algorithm>-seed<seed>.{0,1}  the state of a run that has not ended
//! ```
//!
//! [`RunFolder`] writes and resumes it, [`RunReader`] reads it.

mod checked;
mod compact;
mod complete;
mod entry;
pub mod ledger;
mod line;
mod lock;
mod machine;
mod manifest;
pub mod model;
mod parts;
mod reader;
mod resume;
pub mod serve;
mod traces;
pub mod work;
mod writer;

pub use complete::{complete, merge};
pub use entry::MetricsRow;
pub use machine::{now, simd};
pub use manifest::{LISTED, Machine, Manifest, Status, WorldNote};
pub use parts::{Runs, Shared, merged, parts_folder, remove_parts, run_of, share};
pub use reader::RunReader;
pub use resume::times;
pub use traces::{Run, Traces};
pub use writer::RunFolder;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the runs of an experiment are that parts did: by algorithm and seed.
pub type Parts = BTreeMap<(String, u64), PathBuf>;

const MANIFEST: &str = "manifest.json";
const RESOLVED: &str = "resolved.toml";
const METRICS: &str = "metrics.jsonl";
const RESULTS: &str = "results.json";
const CHECKPOINTS: &str = "checkpoints";

/// The name of a run in the names of its files.
fn run_name(algorithm: &str, seed: u64) -> String {
    format!("{algorithm}-seed{seed}")
}

fn partition_name(seed: u64) -> String {
    format!("partition-seed{seed}.json")
}

/// The models of an algorithm and a seed in a run folder.
pub fn model_path(folder: &Path, algorithm: &str, seed: u64) -> PathBuf {
    folder.join("models").join(format!("{}.safetensors", run_name(algorithm, seed)))
}
