//! Completes an experiment by the missing runs.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::{Parts, RunFolder, Status};
use crate::data::Data;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::run::{Context, Listener};

/// Does the missing runs of an experiment in its folder below `runs`; false if interrupted.
pub fn complete(
    experiment: &Experiment,
    data: Option<&Data>,
    place: (&Path, usize),
    context: &Context,
    listener: &mut dyn Listener,
) -> Result<(PathBuf, bool)> {
    merge(experiment, Parts::new(), data, place, context, listener)
}

/// The same with the runs that parts did.
pub fn merge(
    experiment: &Experiment,
    parts: Parts,
    data: Option<&Data>,
    (runs, threads): (&Path, usize),
    context: &Context,
    listener: &mut dyn Listener,
) -> Result<(PathBuf, bool)> {
    let mut folder = RunFolder::resume(runs, experiment, data, threads)?;
    folder.merge(parts);
    let done = experiment.run_on(data, context, &mut folder, listener);
    let interrupted = context.interrupt.load(Ordering::Relaxed);
    let finished = match (&done, interrupted) {
        (Err(error), _) => folder.fail(error),
        (Ok(_), true) => folder.finish(Status::Interrupted),
        (Ok(_), false) => folder.finish(Status::Done),
    };
    // The first error is the one that matters.
    done.and(finished)?;
    Ok((folder.path().to_path_buf(), !interrupted))
}
