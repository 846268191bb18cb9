//! The environment of a run: threads, signals, the data folder.

use std::path::PathBuf;

use lopa::error::Result;
use lopa::run::Context;
use rayon::ThreadPool;

use super::signals::Signals;
use super::threads::{pool, threads};
use crate::args::{DataArgs, ThreadArgs};
use crate::features::probe;

/// The environment of a run.
pub struct Environment {
    /// The number of threads.
    pub threads: usize,
    /// Requests to stop.
    pub signals: Signals,
    pool: Option<ThreadPool>,
    data_dir: PathBuf,
}

impl Environment {
    /// With the requested threads and data folder; handles signals from here on.
    pub fn new(jobs: &ThreadArgs, data: &DataArgs) -> Result<Environment> {
        let threads = threads(jobs)?;
        let pool = pool(threads)?;
        let signals = Signals::listen()?;
        Ok(Environment { threads, signals, pool, data_dir: data.folder() })
    }

    /// The same, for the library.
    pub fn context(&self) -> Context<'_> {
        Context {
            pool: self.pool.as_ref(),
            data_dir: self.data_dir.clone(),
            interrupt: self.signals.interrupt(),
            probe: probe(),
        }
    }
}
