//! The end of shared work: all results, or the parts that are missing.

use std::collections::BTreeMap;
use std::path::Path;

use super::list::{Ledger, Next, Unit};
use super::notes::{Folder, Note, file_name};
use crate::error::{Error, Result};

/// Reads the results of all parts, and does nothing itself.
pub struct Merge {
    folder: Folder,
    results: BTreeMap<String, String>,
}

impl Merge {
    /// Of the work in a folder; `work` identifies it.
    pub fn open(folder: &Path, work: &str) -> Result<Merge> {
        let folder = Folder::new(folder);
        folder.check(work)?;
        Ok(Merge { folder, results: BTreeMap::new() })
    }

    /// Names a missing unit that a part has begun, or else the first, with that part and the remedy.
    fn missing(&self, units: &[Unit], missing: &[&Unit]) -> Error {
        let claims = self.folder.claims().unwrap_or_default();
        let begun = missing.iter().find(|unit| claims.contains_key(&file_name(&unit.name)));
        let first = *begun.unwrap_or(&missing[0]);
        let last = claims.get(&file_name(&first.name)).copied();
        let holder: Option<Note> =
            last.and_then(|n| self.folder.note(&self.folder.holder(first, n)));
        let again =
            |note: &Note| format!("run the same command with `--share {}` again", note.part);
        let (why, remedy) = match (&holder, last) {
            (None, None) => (
                "no part has begun it".into(),
                "run the same command with `--share I/N` for any part; it does all that is left"
                    .into(),
            ),
            (None, Some(_)) => (
                "the part that began it left no name".into(),
                "run any part again: it does all that is left".to_string(),
            ),
            (Some(note), _) => match &note.error {
                Some((message, hint)) => {
                    let hint = hint.as_ref().map_or(String::new(), |hint| format!("{hint}; then "));
                    (format!("{} failed: {message}", note.name()), hint + &again(note))
                }
                None if note.ended => (format!("{} was stopped", note.name()), again(note)),
                None => (
                    format!("{} is at work on it, or was killed", note.name()),
                    format!("wait for it; if it is dead, {}", again(note)),
                ),
            },
        };
        let message = format!(
            "{} of {} results are missing, among them that of {}: {why}",
            missing.len(),
            units.len(),
            first.shown
        );
        Error::storage("share/missing", message)
            .at(self.folder.path().display().to_string())
            .hint(remedy)
    }
}

impl Ledger for Merge {
    fn next(&mut self, units: &[Unit]) -> Result<Next> {
        for unit in units {
            if let Some(result) = self.folder.result(unit) {
                self.results.insert(unit.name.clone(), result);
            }
        }
        let lost = |unit: &&Unit| !self.results.contains_key(&unit.name);
        let missing: Vec<&Unit> = units.iter().filter(lost).collect();
        if missing.is_empty() { Ok(Next::Over) } else { Err(self.missing(units, &missing)) }
    }

    fn keep(&mut self, unit: &Unit, result: &str) -> Result<()> {
        self.results.insert(unit.name.clone(), result.to_string());
        Ok(())
    }

    fn result(&self, unit: &Unit) -> Option<String> {
        self.results.get(&unit.name).cloned()
    }
}
