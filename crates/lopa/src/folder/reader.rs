//! Reading a run folder. All of its files are read here, and models in `model.rs`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::manifest::{Manifest, Status};
use super::model::Model;
use super::{
    MANIFEST, METRICS, MetricsRow, RESOLVED, RESULTS, Run, Traces, checked, line, model_path,
};
use crate::config::Source;
use crate::error::{Error, Result};
use crate::run::Outcome;
use crate::run::trace::Stop;
use crate::store::bytes::hex;
use crate::store::disk;

/// A run folder, read back. The manifest is read when the folder is opened; each method reads its
/// file again.
#[derive(Debug, Clone)]
pub struct RunReader {
    path: PathBuf,
    manifest: Manifest,
}

impl RunReader {
    /// Opens a run folder.
    pub fn open(path: &Path) -> Result<RunReader> {
        let file = path.join(MANIFEST);
        let bytes = read(&file)?.ok_or_else(|| {
            Error::storage("storage/read", "this is not a run folder: it has no manifest")
                .at(file.display().to_string())
                .hint("name a folder that `lopa run` made; `lopa ls` lists them")
        })?;
        Ok(RunReader { path: path.to_path_buf(), manifest: parse(&file, &bytes)? })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder's name.
    pub fn name(&self) -> String {
        let whole = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        whole.file_name().map_or("run".into(), |name| name.to_string_lossy().into())
    }

    /// `manifest.json`.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// `resolved.toml`: the experiment, with every default filled in.
    pub fn resolved(&self) -> Result<Source> {
        let path = self.path.join(RESOLVED);
        let bytes = read_existing(&path)?;
        self.checked(RESOLVED, &bytes)?;
        let text = String::from_utf8(bytes)
            .map_err(|error| damaged(&path, None, &error.utf8_error().to_string()))?;
        Ok(Source::new(path.display().to_string(), text))
    }

    /// `results.json`; empty as long as no run has ended.
    pub fn results(&self) -> Result<Vec<Outcome>> {
        let path = self.path.join(RESULTS);
        let Some(bytes) = read(&path)? else { return Ok(Vec::new()) };
        let results = parse(&path, &bytes)?;
        match checked::fault(parse(&path, &bytes)?) {
            None => Ok(results),
            Some(what) => Err(damaged(&path, None, &what)),
        }
    }

    /// Fails if one of the files that never change did.
    pub fn check(&self) -> Result<()> {
        for name in self.manifest.checksums.keys() {
            let bytes = read(&self.path.join(name))?;
            bytes.map_or(Ok(()), |bytes| self.checked(name, &bytes))?;
        }
        Ok(())
    }

    fn checked(&self, name: &str, bytes: &[u8]) -> Result<()> {
        match self.manifest.checksums.get(name) {
            Some(known) if *known != hex(&Sha256::digest(bytes)) => {
                Err(damaged(&self.path.join(name), None, "the file does not match its checksum"))
            }
            _ => Ok(()),
        }
    }

    /// `metrics.jsonl`. Its last line may be truncated, unless the folder is done: a process that
    /// is killed while it writes leaves such a line.
    pub fn rows(&self) -> Result<Vec<MetricsRow>> {
        let path = self.path.join(METRICS);
        let bytes = read_existing(&path)?;
        let Lines { rows, damage } = Lines::parse(&path, &bytes);
        match damage {
            Some(Damage { error, cut }) if !cut || self.manifest.status == Status::Done => {
                Err(error)
            }
            _ => Ok(rows.into_iter().map(|(row, _)| row).collect()),
        }
    }

    /// The measurements of each run that has a result.
    pub fn traces(&self) -> Result<Traces> {
        let run = |entry: Outcome| Run {
            diverged: entry.stop == Stop::Diverged,
            algorithm: entry.algorithm,
            seed: entry.seed,
            rows: Vec::new(),
        };
        let mut runs: Vec<Run> = self.results()?.into_iter().map(run).collect();
        for MetricsRow { algorithm, seed, row } in self.rows()? {
            let is = |run: &&mut Run| run.algorithm == algorithm && run.seed == seed;
            if let Some(run) = runs.iter_mut().find(is) {
                run.rows.push(row);
            }
        }
        Ok(Traces { runs })
    }

    /// The models that a run ended with.
    pub fn model(&self, algorithm: &str, seed: u64) -> Result<Model> {
        Model::load(&model_path(&self.path, algorithm, seed))
    }
}

/// The lines of `metrics.jsonl` up to the first that cannot be read.
pub(super) struct Lines {
    /// Each row, and where its line ends in the file.
    pub rows: Vec<(MetricsRow, usize)>,
    /// The damage of the next line, if any.
    pub damage: Option<Damage>,
}

/// A line that cannot be read.
pub(super) struct Damage {
    pub error: Error,
    /// Whether the file ends within the line.
    pub cut: bool,
}

impl Lines {
    pub fn parse(path: &Path, bytes: &[u8]) -> Lines {
        let mut rows: Vec<(MetricsRow, usize)> = Vec::new();
        let (mut end, mut checked) = (0, false);
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            end += line.len();
            let number = rows.len();
            let row = serde_json::from_slice(line).map_err(|error| without_place(&error));
            let row = row.and_then(|row| {
                line::fault(line, number as u64, &mut checked).map_or(Ok(row), Err)
            });
            match row {
                Ok(row) => rows.push((row, end)),
                Err(what) => {
                    let error = damaged(path, Some((number + 1, None)), &what);
                    let cut = !line.ends_with(b"\n");
                    return Lines { rows, damage: Some(Damage { error, cut }) };
                }
            }
        }
        Lines { rows, damage: None }
    }
}

/// The content of a file; `None` if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match disk::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(Error::storage("storage/read", format!("cannot read the run: {error}"))
            .at(path.display().to_string())
            .hint("check who may read the file, and the disk")),
    }
}

/// The content of a file that every run folder has.
fn read_existing(path: &Path) -> Result<Vec<u8>> {
    read(path)?.ok_or_else(|| damaged(path, None, "the file is missing"))
}

/// The value in a JSON file.
pub(super) fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        damaged(path, Some((error.line(), Some(error.column()))), &without_place(&error))
    })
}

/// The error for a damaged file: line and column where they are known, and the remedy.
pub(super) fn damaged(path: &Path, at: Option<(usize, Option<usize>)>, what: &str) -> Error {
    let path = path.display();
    let place = match at {
        None => path.to_string(),
        Some((line, None)) => format!("{path}:{line}"),
        Some((line, Some(column))) => format!("{path}:{line}:{column}"),
    };
    Error::storage("storage/read", format!("the run folder is damaged: {what}"))
        .at(place)
        .hint("restore the file from a copy, or delete the folder and run the experiment again")
}

/// The description of a JSON error, without its position.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_string()
}
