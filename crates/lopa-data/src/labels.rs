//! Labels that are not classes, labels that are not listed, and classes without training rows.

use super::source::Raw;
use super::spelling::{fold, misspelt};
use super::{ClassName, Preparation, UnknownLabels};
use crate::error::{Error, Result, nearest};

/// Real numbers with more distinct values than this are not classes.
const MAX_REAL: usize = 20;

/// Up to this many distinct real values are accepted as classes, however few the rows.
const FEW_REAL: usize = 4;

/// More classes than this are refused: most likely the labels are in another column.
const MAX_CLASSES: usize = 10_000;

/// More classes than this need [`ROWS_EACH`] rows each, on average.
const MANY: usize = 50;

/// See [`MANY`].
const ROWS_EACH: usize = 10;

/// Refuses labels that look like measurements, row numbers or other spellings of each other, unless
/// the file lists `classes`.
pub fn check_classes(raw: &Raw) -> Result<()> {
    check_values(raw)?;
    match raw.known {
        true => Ok(()),
        false => check_spelling(&counted(raw)),
    }
}

/// Whether all labels are numbers.
pub fn are_numbers(raw: &Raw) -> bool {
    raw.classes.len() > 1 && raw.classes.iter().all(|class| class.code.parse::<f64>().is_ok())
}

/// Refuses classes that differ only by case, spaces or accents, and rare ones that look like
/// misspellings of a common one.
pub fn check_spelling(classes: &[(String, usize)]) -> Result<()> {
    let mut alike = Vec::new();
    for (at, (a, rows_a)) in classes.iter().enumerate() {
        for (b, rows_b) in &classes[..at] {
            let same = fold(a).is_some_and(|folded| fold(b).is_some_and(|other| other == folded));
            let (few, many) = (rows_a.min(rows_b), rows_a.max(rows_b));
            if same || RARE * few < *many && misspelt(a, b) {
                let (few, many) = if rows_a < rows_b {
                    ((a, rows_a), (b, rows_b))
                } else {
                    ((b, rows_b), (a, rows_a))
                };
                alike.push(format!(
                    "{:?} ({}) and {:?} ({})",
                    few.0,
                    rows(*few.1),
                    many.0,
                    rows(*many.1)
                ));
            }
        }
    }
    if alike.is_empty() {
        return Ok(());
    }
    let mut some: Vec<String> = alike.iter().take(SHOWN).cloned().collect();
    if alike.len() > SHOWN {
        some.push(format!("and {} more", alike.len() - SHOWN));
    }
    let message = format!("classes differ by their spelling alone: {}", some.join("; "));
    Err(Error::data("data/near-classes", message).hint(
        "write one of them throughout; if they are different classes, list all of them as `classes`",
    ))
}

/// A class is rare beside another that has this many times more rows.
const RARE: usize = 4;

fn rows(count: usize) -> String {
    format!("{count} row{}", if count == 1 { "" } else { "s" })
}

/// The classes by name, with their rows in all parts.
fn counted(raw: &Raw) -> Vec<(String, usize)> {
    let mut counts = vec![0; raw.classes.len()];
    let parts = std::iter::once(&raw.train).chain(&raw.test);
    parts.flat_map(|part| &part.labels).for_each(|&label| counts[label as usize] += 1);
    raw.classes.iter().map(|class| class.name.clone()).zip(counts).collect()
}

fn check_values(raw: &Raw) -> Result<()> {
    if raw.outputs > 1 {
        let message = format!("a row has {} labels, and classes are named by one", raw.outputs);
        return Err(Error::data("data/many-labels", message)
            .hint("write `target = \"number\"` in [data] if these are numbers to predict"));
    }
    let (values, rows) = (raw.classes.len(), raw.train.labels.len());
    if values > MAX_CLASSES {
        let message = format!("the labels have {values} different values");
        return Err(Error::data("data/too-many-classes", message).hint(
            "labels name classes: are they in the right column or array? numbers to predict need \
             `target = \"number\"` in [data]",
        ));
    }
    let numbers: Option<Vec<f64>> = raw.classes.iter().map(|c| c.code.parse().ok()).collect();
    let real = numbers.is_some_and(|numbers| numbers.iter().any(|number| number.fract() != 0.0));
    let real = real && (values > MAX_REAL || values > FEW_REAL && 2 * values > rows);
    if !real && (values <= MANY || rows >= ROWS_EACH * values) {
        return Ok(());
    }
    let some: Vec<&str> = raw.classes.iter().take(3).map(|class| class.code.as_str()).collect();
    let what = if real { "real numbers: this looks like a regression target" } else { "values" };
    let possible = if real { REGRESSION } else { "" };
    let message =
        format!("the {rows} labels have {values} different {what} ({}, …)", some.join(", "));
    Err(Error::data("data/too-many-classes", message).hint(format!(
        "{possible}labels name classes: are they in another column or array? else put values into a few \
         classes (low, high), or list the `classes` if these are really all of them"
    )))
}

/// The options for a regression target.
const REGRESSION: &str = "write `target = \"number\"` in [data] to predict numbers; ";

/// Rows with a label that the experiment does not list.
#[derive(Debug, Clone, PartialEq)]
pub struct Unlisted {
    /// The label; `None` for other nodes, which do not send theirs.
    pub label: Option<String>,
    /// The index of the listed class that it resembles.
    pub near: Option<usize>,
    /// The number of rows.
    pub rows: usize,
}

/// The labels that the experiment does not list, most frequent first.
pub fn unlisted(raw: &Raw, listed: &[ClassName]) -> Vec<Unlisted> {
    let names: Vec<String> = listed.iter().map(ToString::to_string).collect();
    let mut found = Vec::new();
    for (class, (name, rows)) in raw.classes.iter().zip(counted(raw)) {
        if rows == 0 || names.contains(&class.name) || names.contains(&class.code) {
            continue;
        }
        let folded = fold(&name);
        let same = names.iter().position(|known| folded.is_some() && fold(known) == folded);
        let near = || {
            let near = nearest(&name, names.iter().map(String::as_str))?;
            names.iter().position(|known| known == near)
        };
        // Numbers resemble each other by chance.
        let near = same.or_else(|| folded.is_some().then(near).flatten());
        found.push(Unlisted { label: Some(name), near, rows });
    }
    found.sort_by_key(|unlisted| std::cmp::Reverse(unlisted.rows));
    found
}

/// How many labels a message shows.
const SHOWN: usize = 3;

/// `25 rows of `west` have labels that `classes` does not list: …`
fn said(unlisted: &[Unlisted], listed: &[ClassName], whose: &str) -> String {
    let count = unlisted.iter().fold(0usize, |count, own| count.saturating_add(own.rows));
    let one = |own: &Unlisted| {
        let near = own.near.map(|near| match own.label {
            Some(_) => format!(", did you mean `{}`?", listed[near]),
            None => format!("near to `{}`", listed[near]),
        });
        match &own.label {
            Some(label) => format!("{label:?} ({}{})", rows(own.rows), near.unwrap_or_default()),
            None => format!("{} {}", rows(own.rows), near.unwrap_or("near to none of them".into())),
        }
    };
    let mut some: Vec<String> = unlisted.iter().take(SHOWN).map(one).collect();
    if unlisted.len() > SHOWN {
        some.push(format!("and {} more", unlisted.len() - SHOWN));
    }
    let (has, s) = if count == 1 { ("has a label", "") } else { ("have labels", "s") };
    let some = some.join(", ");
    format!("{count} row{s}{whose} {has} that `classes` does not list: {some}")
}

impl Preparation {
    /// Rows whose labels are not listed are refused, or left out with a sentence. `whose` names the
    /// node where there are several.
    pub(crate) fn judge_unlisted(
        &self,
        unlisted: &[Unlisted],
        whose: Option<&str>,
    ) -> Result<Option<String>> {
        if unlisted.is_empty() {
            return Ok(None);
        }
        let of = whose.map(|name| format!(" of `{name}`")).unwrap_or_default();
        let said = said(unlisted, self.classes.as_deref().unwrap_or_default(), &of);
        match self.unknown_labels {
            Some(UnknownLabels::Drop) => Ok(Some(format!("left out: {said}"))),
            _ => Err(Error::data("data/unknown-label", said).hint(
                "correct the labels, add them to `classes`, or leave their rows out with \
                 `unknown_labels = \"drop\"` in [data]",
            )),
        }
    }
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
