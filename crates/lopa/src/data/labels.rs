//! Labels that are no classes, and classes that nobody can learn.

use super::source::Raw;
use crate::error::{Error, Result};

/// Real numbers with more different values than this are no classes.
const MAX_REAL: usize = 20;

/// So many values of real numbers may occur in any number of rows.
const FEW_REAL: usize = 4;

/// More classes than this need [`ROWS_EACH`] rows each, on average.
const MANY: usize = 50;

/// See [`MANY`].
const ROWS_EACH: usize = 10;

/// Refuses labels that look like measurements or row numbers; who lists `classes` knows better.
pub fn check_classes(raw: &Raw) -> Result<()> {
    let (values, rows) = (raw.classes.len(), raw.train.labels.len());
    let numbers: Option<Vec<f64>> = raw.classes.iter().map(|c| c.code.parse().ok()).collect();
    let real = numbers.is_some_and(|numbers| numbers.iter().any(|number| number.fract() != 0.0));
    let real = real && (values > MAX_REAL || values > FEW_REAL && 2 * values > rows);
    if !real && (values <= MANY || rows >= ROWS_EACH * values) {
        return Ok(());
    }
    let some: Vec<&str> = raw.classes.iter().take(3).map(|class| class.code.as_str()).collect();
    let what = if real { "real numbers: this looks like a regression target" } else { "values" };
    let message =
        format!("the {rows} labels have {values} different {what} ({}, …)", some.join(", "));
    Err(Error::data("data/too-many-classes", message).hint(
        "labels name classes: are they in another column or array? else put values into a few \
         classes (low, high), or list the `classes` if these are really all of them",
    ))
}

/// Refuses test rows of a class that no training row has.
pub fn check_test(raw: &Raw, kept: &[usize]) -> Result<()> {
    let Some(test) = &raw.test else { return Ok(()) };
    let mut seen = vec![false; raw.classes.len()];
    raw.train.labels.iter().for_each(|&label| seen[label as usize] = true);
    let unseen = |label: u32| !seen[label as usize] && kept.contains(&(label as usize));
    let Some(row) = test.labels.iter().position(|&label| unseen(label)) else { return Ok(()) };
    let label = test.labels[row];
    let rows = test.labels.iter().filter(|&&other| other == label).count();
    let name = &raw.classes[label as usize].name;
    let message = format!("no training row has the class `{name}`, but test rows have it: {rows}");
    let place = raw.test_at.as_deref().unwrap_or("the test set");
    Err(Error::data("data/untrained-class", message)
        .at(format!("{place}, row {}", row + 1))
        .hint("correct the label, leave the class out of `classes`, or train on some of its rows"))
}
