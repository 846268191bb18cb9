//! What a run is given from outside: threads, signals, where data sets lie.

use std::path::{Path, PathBuf};

use lopa::data::Where;
use lopa::error::Result;
use lopa::run::Context;
use lopa_study::theory::trace::Lyapunov;
use rayon::ThreadPool;

use super::signals::Signals;
use super::threads::{pool, threads};
use crate::args::ThreadArgs;

/// What a run is given from outside, for as long as it goes.
pub struct Outside {
    /// How many threads there are.
    pub threads: usize,
    /// What asks for a stop.
    pub signals: Signals,
    pool: Option<ThreadPool>,
    data_dir: PathBuf,
}

impl Outside {
    /// With the threads and the data folder that were asked for; signals are listened to from here.
    pub fn new(jobs: &ThreadArgs, data: Option<&Path>) -> Result<Outside> {
        let threads = threads(jobs)?;
        let pool = pool(threads)?;
        let signals = Signals::listen()?;
        Ok(Outside { threads, signals, pool, data_dir: Where::new(data, 0).directory })
    }

    /// The same, for the library.
    pub fn context(&self) -> Context<'_> {
        Context {
            pool: self.pool.as_ref(),
            data_dir: self.data_dir.clone(),
            interrupt: self.signals.interrupt(),
            probe: Some(&Lyapunov),
        }
    }
}
