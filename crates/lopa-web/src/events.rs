//! Events of a run, one JSON object per line on standard output.

use std::io::{ErrorKind, Write, stdout};

use lopa::data::Data;
use lopa::error::{Error, Result};
use lopa::run::trace::Row;
use lopa::run::{Listener, Outcome, Store, World};
use serde_json::{Value, json};

use crate::spread::Spread;

/// Writes to standard output, to the last byte.
pub fn say(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.or_else(|error| match error.kind() {
        ErrorKind::BrokenPipe => Ok(()), // the reader has enough
        _ => Err(Error::storage("storage/write", format!("cannot write the output: {error}"))),
    })
}

/// Writes an event. A run goes on without a reader: its caller ends it.
fn event(event: &Value) {
    let _ = say(&format!("{event}\n"));
}

/// The event `world`: the network and who has what data, before the first iteration.
pub struct Worlds<'a> {
    pub data: Option<&'a Data>,
}

impl Store for Worlds<'_> {
    fn world(&mut self, seed: u64, world: &World) -> Result<()> {
        let counts =
            self.data.map(|data| world.partition.counts(data.train.labels(), data.classes.len()));
        let edges: Vec<_> = world.graph.edges().collect();
        event(&json!({
            "event": "world", "seed": seed, "nodes": world.graph.nodes(), "edges": edges,
            "rho": world.analysis.rho, "class_counts": counts,
        }));
        Ok(())
    }
}

/// The events `warning`, `row` (with the nodes' distances from their mean) and `end` (with the entry of
/// `results.json`).
pub struct Events<'a> {
    pub spread: &'a Spread,
}

impl Listener for Events<'_> {
    fn warn(&mut self, text: &str) {
        event(&json!({ "event": "warning", "text": text }));
    }

    fn row(&mut self, algorithm: &str, _: u64, row: &Row) {
        let spread = self.spread.last();
        event(&json!({ "event": "row", "algorithm": algorithm, "row": row, "spread": spread }));
    }

    fn end(&mut self, outcome: &Outcome) {
        event(&json!({ "event": "end", "result": outcome }));
    }
}
