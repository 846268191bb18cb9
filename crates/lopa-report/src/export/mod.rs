//! Run folders for other tools: the rows of `metrics.jsonl` as CSV or Parquet, as TensorBoard's event
//! files, or as a file store of MLflow.
//!
//! Nothing here reads the clock, and names follow from the run: exporting a folder again replaces
//! what was exported before.

mod csv;
mod mlflow;
mod parquet;
mod table;
mod tensorboard;
mod thrift;

use std::path::{Path, PathBuf};

use lopa::error::{Error, Result};
use lopa::folder::{MetricsRow, ResultEntry};
use lopa::store::output;

use crate::saved::Saved;

/// What to export to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table as text.
    Csv,
    /// A table in columns.
    Parquet,
    /// A folder for `tensorboard --logdir`.
    Tensorboard,
    /// A folder for `mlflow ui --backend-store-uri`.
    Mlflow,
}

impl Format {
    /// Where a run goes unless told otherwise: a file, or a folder that collects runs.
    pub fn path(self, saved: &Saved) -> PathBuf {
        match self {
            Format::Csv => format!("{}.csv", saved.name).into(),
            Format::Parquet => format!("{}.parquet", saved.name).into(),
            Format::Tensorboard => "tensorboard".into(),
            Format::Mlflow => "mlruns".into(),
        }
    }

    /// Writes a run at `path`; returns the number of files.
    pub fn write(self, saved: &Saved, path: &Path) -> Result<usize> {
        let files = match self {
            Format::Csv => return file(path, csv::csv(saved).as_bytes()),
            Format::Parquet => return file(path, &parquet::parquet(saved)),
            Format::Tensorboard => tensorboard::files(saved),
            Format::Mlflow => mlflow::files(saved, path)?,
        };
        for (name, content) in &files {
            let file = path.join(name);
            let folder = file.parent().unwrap_or(path);
            std::fs::create_dir_all(folder).map_err(|error| cannot(folder, &error))?;
            output::write(&file, content, "the export", output::OTHER)?;
        }
        Ok(files.len())
    }
}

/// Files of a folder: their paths in it, and what they contain.
type Files = Vec<(PathBuf, Vec<u8>)>;

fn file(path: &Path, content: &[u8]) -> Result<usize> {
    output::write(path, content, "the export", output::OTHER)?;
    Ok(1)
}

fn cannot(path: &Path, error: &std::io::Error) -> Error {
    Error::storage("storage/write", format!("cannot write the export: {error}"))
        .at(path.display().to_string())
        .hint("choose another place with --out")
}

/// One algorithm on one seed.
struct One<'a> {
    algorithm: &'a str,
    seed: u64,
    rows: Vec<&'a MetricsRow>,
    /// How it ended, if it has.
    end: Option<&'a ResultEntry>,
}

/// Every algorithm on every seed, in the order of their first measurement.
fn ones(saved: &Saved) -> Vec<One<'_>> {
    let mut ones: Vec<One> = Vec::new();
    for row in &saved.rows {
        let known = ones.iter_mut().rev();
        match { known }.find(|one| one.algorithm == row.algorithm && one.seed == row.seed) {
            Some(one) => one.rows.push(row),
            None => ones.push(One {
                algorithm: &row.algorithm,
                seed: row.seed,
                rows: vec![row],
                end: saved.results.iter().find(|entry| entry.is_of(&row.algorithm, row.seed)),
            }),
        }
    }
    ones
}

/// A name that is safe in every file system: letters, digits, `-`, `_` and `.`, not hidden.
fn plain(name: &str) -> String {
    let plain = |letter: char| match letter {
        letter if letter.is_ascii_alphanumeric() || "-_.".contains(letter) => letter,
        _ => '_',
    };
    let name: String = name.chars().map(plain).collect();
    if name.is_empty() || name.starts_with('.') { format!("_{name}") } else { name }
}
