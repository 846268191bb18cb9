//! Which share of a work list is this process's own: `3/16`.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The most parts of a work list.
const MOST: usize = 1_000_000;

/// One of N equal shares. A part does its own share first, and then what others have not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Its number, from 1.
    pub number: usize,
    /// The number of shares.
    pub of: usize,
}

impl fmt::Display for Share {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Share {
    type Err = Error;

    fn from_str(text: &str) -> Result<Share> {
        let wrong = || {
            Error::config("config/out-of-range", format!("`{text}` is no share of the work"))
                .at("--share")
                .hint("write `--share 3/16` for the third of sixteen parts")
        };
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let whole = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let share = Share { number: whole(number)?, of: whole(of)? };
        let fits = (1..=share.of).contains(&share.number) && share.of <= MOST;
        if fits { Ok(share) } else { Err(wrong()) }
    }
}

impl Share {
    /// The share of this task of a Slurm array, of this task of a Slurm job, of both, or of this pod of an indexed
    /// Kubernetes job; `get` reads the environment.
    pub fn of_job(get: &dyn Fn(&str) -> Option<String>) -> Result<Share> {
        let number = |name: &str| -> Result<Option<usize>> {
            let Some(text) = get(name) else { return Ok(None) };
            let wrong = |_| {
                Error::config("config/out-of-range", format!("`{name}={text}` is no whole number"))
                    .at("--share")
                    .hint("write the share yourself: `--share 3/16`")
            };
            text.trim().parse().map(Some).map_err(wrong)
        };
        let mut share = None;
        if let Some(id) = number("SLURM_ARRAY_TASK_ID")? {
            let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(id);
            let step = number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
            let of = number("SLURM_ARRAY_TASK_COUNT")?.unwrap_or(1).max(1);
            // An array such as 1,5,6 has gaps: two tasks may then begin at the same units, which does no harm.
            share = Some((id.saturating_sub(first) / step % of, of));
        }
        let tasks = number("SLURM_NTASKS")?.filter(|&tasks| tasks > 1);
        if let (Some(rank), Some(tasks)) = (number("SLURM_PROCID")?, tasks) {
            let (at, of) = share.unwrap_or((0, 1));
            share = Some((at * tasks + rank % tasks, of * tasks));
        }
        if let (None, Some(at)) = (share, number("JOB_COMPLETION_INDEX")?) {
            let of = number("LOPA_PARTS")?.ok_or_else(|| {
                let message = "Kubernetes tells a pod its index, but not how many pods there are";
                Error::config("config/missing-key", message)
                    .at("--share")
                    .hint("set the variable LOPA_PARTS to the job's `completions`")
            })?;
            share = Some((at, of));
        }
        let (at, of) = share.ok_or_else(|| {
            let message =
                "this is neither a task of a Slurm array or job nor a pod of an indexed job";
            Error::config("config/missing-key", message)
                .at("--share")
                .hint("write the share: `--share 3/16`")
        })?;
        format!("{}/{of}", at + 1).parse()
    }

    /// The place of a unit in the order in which this part does them: its own share first, then that of the next
    /// part, and so on, so that parts seldom want the same unit.
    pub(super) fn place(self, index: usize) -> (usize, usize) {
        ((index % self.of + self.of - (self.number - 1)) % self.of, index)
    }
}
