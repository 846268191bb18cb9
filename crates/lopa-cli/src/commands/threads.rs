//! The number of threads.

use lopa::error::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::args::ThreadArgs;

/// The requested number of threads, or the number of cores.
pub fn threads(args: &ThreadArgs) -> Result<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match args.jobs {
        None => Ok(cores),
        Some(n) if (1..=1024).contains(&n) => Ok(n),
        Some(n) => {
            let message = format!("cannot run on {n} threads");
            Err(Error::config("config/out-of-range", message)
                .at("--jobs")
                .hint("choose 1 to 1024, here or in LOPA_THREADS"))
        }
    }
}

/// A pool of threads, if more than one is requested.
pub fn pool(threads: usize) -> Result<Option<ThreadPool>> {
    if threads == 1 {
        return Ok(None);
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map(Some).map_err(|error| {
        Error::config("config/threads", format!("cannot start {threads} threads: {error}"))
            .at("--jobs")
    })
}
