//! Runs on a device against runs on the processor.

mod agree;
mod experiment;
mod folder;
mod golden;
mod images;
mod methods;
mod processes;
mod processor;
mod refuse;
mod shapes;
mod steps;
mod tables;

use std::sync::atomic::AtomicBool;

use lopa::run::trace::Row;
use lopa::run::{Context, Listener, Outcome};

pub use experiment::{experiment, registries};

/// Whether there is a card; prints a note if not.
pub fn card() -> bool {
    let found = lopa_cuda::describe(0);
    if let Err(error) = &found {
        eprintln!("skipped: {}", error.message);
    }
    found.is_ok()
}

/// Whether there is a card with the tensor cores that the kernels need; prints a note if not.
pub fn hopper() -> bool {
    let found = card() && lopa_cuda::describe(0).is_ok_and(|name| name.contains("capability 9."));
    if !found {
        eprintln!("skipped: no Hopper card");
    }
    found
}

/// All measurements.
#[derive(Default)]
pub struct Rows(pub Vec<Row>);

impl Listener for Rows {
    fn row(&mut self, _: &str, _: u64, row: &Row) {
        self.0.push(row.clone());
    }
}

/// The outcome and all measurements of a run.
pub fn run(text: &str, sets: &[&str]) -> lopa::error::Result<(Outcome, Vec<Row>)> {
    let never = AtomicBool::new(false);
    let data_dir = if text.contains("mnist") { images::folder() } else { "".into() };
    let context = Context { pool: None, data_dir, interrupt: &never, probe: None };
    let mut rows = Rows::default();
    let mut outcomes = experiment(text, sets)?.run_with(&context, &mut (), &mut rows)?;
    Ok((outcomes.remove(0), rows.0))
}
