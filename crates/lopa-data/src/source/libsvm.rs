//! LIBSVM text: a label, then `index:value` for nonzero features, by increasing index from 1.

use super::cells::Odd;
use super::names::Names;
use super::raw::{Part, Raw, Table};
use super::{Where, file, text};
use crate::Features;
use crate::error::{Error, Result};
use crate::params;

params! {
    /// Parameters of `libsvm`.
    pub struct Libsvm {
        /// The file, plain or `.gz`.
        path: String = String::new(), required;
        /// A file with the test rows.
        test_path: Option<String> = None;
        /// A file with the rows of the outer function, in place of a share of the training rows.
        validation_path: Option<String> = None;
        /// Number of features; by default the largest index.
        features: Option<usize> = None, from_to(1, MAX_FEATURES);
        /// Whether indices start at 0.
        zero_based: bool = false;
        /// Features that are left out, by their index in the file.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        drop: Vec<u32> = Vec::new();
    }
}

/// A model has a number for every feature, so larger indices are refused as mistakes.
const MAX_FEATURES: usize = 1 << 28;

/// The same where the number of features is not given.
const USUAL_FEATURES: usize = 1 << 24;

pub fn read(libsvm: &Libsvm, place: &Where) -> Result<Raw> {
    let mut names = Names::default();
    let mut read = |path: &String| {
        let (name, bytes) = file::read(&file::find(path, place)?)?;
        SparseRows::read(libsvm, true, (&name, &bytes), &mut names)
    };
    let train = read(&libsvm.path)?;
    let validation = libsvm.validation_path.as_ref().map(&mut read).transpose()?;
    let test = libsvm.test_path.as_ref().map(&mut read).transpose()?;
    let parts = [Some(&train), validation.as_ref(), test.as_ref()].into_iter().flatten();
    let seen = parts.map(|rows| rows.cols).max().unwrap_or(0);
    let cols = libsvm.features.unwrap_or(seen);
    if cols == 0 {
        return Err(Error::data("data/no-features", "no row has a feature").at(&libsvm.path));
    }
    let part = |rows: Option<SparseRows>| rows.map(|rows| rows.part(cols));
    let parts = (train.part(cols), part(validation), part(test));
    let raw = Raw::named(parts, names, Names::default());
    let raw = raw.without(&libsvm.drop, u32::from(!libsvm.zero_based));
    let raw = raw.map_err(|error| match error.id {
        "data/no-column" => {
            let hint = error.hint.unwrap_or_default();
            let hint = format!("{hint}; if other files have more, give their number as `features`");
            Error { hint: Some(hint), ..error }
        }
        _ => error,
    });
    let mut raw = raw.map_err(|error| error.at(&libsvm.path))?;
    raw.unnamed.zero_based = libsvm.zero_based;
    Ok(Raw { test_at: libsvm.test_path.clone(), ..raw })
}

/// The rows of a file, whether they have labels, and whether indices start at 0.
pub fn look(name: &str, bytes: &[u8]) -> Result<(Raw, bool, bool)> {
    let mut names = Names::default();
    let read = |zero_based: bool, names: &mut Names| {
        let options = Libsvm { path: name.into(), zero_based, ..Libsvm::default() };
        let rows = SparseRows::read(&options, is_labelled(bytes), (name, bytes), names)?;
        let cols = rows.cols.max(1);
        Ok(rows.part(cols))
    };
    let (part, zero_based) = match read(false, &mut names) {
        // An index 0: indices start at 0.
        Err(Error { id: "data/bad-index", .. }) => (read(true, &mut names)?, true),
        part => (part?, false),
    };
    let raw = Raw::named((part, None, None), names, Names::default());
    Ok((raw, is_labelled(bytes), zero_based))
}

/// Whether the first row has a label.
fn is_labelled(bytes: &[u8]) -> bool {
    let mut first = bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    first.next().is_none_or(|word| !word.contains(&b':'))
}

/// New rows for a model with this many features, numbered as in training; all have labels if the first
/// one does.
pub fn new_rows(
    name: &str,
    bytes: &[u8],
    features: usize,
    zero_based: bool,
) -> Result<(Raw, bool)> {
    let path = name.into();
    let options = Libsvm { path, features: Some(features), zero_based, ..Libsvm::default() };
    let labelled = is_labelled(bytes);
    let mut names = Names::default();
    let rows = SparseRows::read(&options, labelled, (name, bytes), &mut names)?;
    let raw = Raw::named((rows.part(features), None, None), names, Names::default());
    Ok((raw, labelled))
}

/// The remedy for a pair without a value.
const LEFT_OUT: &str = "leave the pair out: a feature that a row does not list is 0";

/// The rows read so far.
struct SparseRows<'a> {
    libsvm: &'a Libsvm,
    labelled: bool,
    cols: usize,
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    labels: Vec<u32>,
}

impl<'a> SparseRows<'a> {
    fn read(
        libsvm: &'a Libsvm,
        labelled: bool,
        (name, bytes): (&str, &[u8]),
        names: &mut Names,
    ) -> Result<SparseRows<'a>> {
        let (columns, values, labels) = (Vec::new(), Vec::new(), Vec::new());
        let mut rows =
            SparseRows { libsvm, labelled, cols: 0, starts: vec![0], columns, values, labels };
        for (i, line) in text::utf8(name, bytes)?.split('\n').enumerate() {
            rows.add(line, names).map_err(|error| error.at(format!("{name}:{}", i + 1)))?;
        }
        match rows.starts.len() {
            1 => Err(Error::data("data/empty", "the file has no rows").at(name)),
            _ => Ok(rows),
        }
    }

    fn add(&mut self, line: &str, names: &mut Names) -> Result<()> {
        let text = line.split('#').next().unwrap_or_default();
        let mut words = text.split_ascii_whitespace().peekable();
        if words.peek().is_none() {
            return Ok(());
        }
        if let Some(label) = words.next_if(|_| self.labelled) {
            self.labels.push(class(label, names)?);
        }
        let mut previous = None;
        for word in words {
            let (column, value) = self.pair(word)?;
            if previous.is_some_and(|previous| previous >= column) {
                let message = format!("the index of `{word}` is not larger than the one before it");
                return Err(Error::data("data/index-order", message)
                    .hint("indices must increase within a row"));
            }
            previous = Some(column);
            self.cols = self.cols.max(column as usize + 1);
            if value != 0.0 {
                self.columns.push(column);
                self.values.push(value);
            }
        }
        self.starts.push(self.columns.len());
        Ok(())
    }

    fn pair(&self, word: &str) -> Result<(u32, f64)> {
        let (index, value) = word.split_once(':').ok_or_else(|| {
            Error::data("data/bad-number", format!("`{word}` is not an `index:value` pair"))
                .hint("a row is one label, followed by `index:value` pairs")
        })?;
        let wrong = |message: String, hint: &str| {
            Error::data("data/bad-index", message).hint(hint.to_string())
        };
        let index: u32 = index.parse().map_err(|_| {
            wrong(
                format!("the index of `{word}` is not an integer"),
                "an index is a feature's number",
            )
        })?;
        let column = match index.checked_sub(u32::from(!self.libsvm.zero_based)) {
            Some(column) => column,
            None => {
                let hint = "indices start at 1; if they start at 0 here, set `zero_based`";
                return Err(wrong(format!("the index of `{word}` is 0"), hint));
            }
        };
        let limit = self.libsvm.features.unwrap_or(USUAL_FEATURES);
        if column as usize >= limit {
            let message = format!("the index of `{word}` exceeds the limit of {limit} features");
            return Err(wrong(
                message,
                "correct the index, or give the number of features as `features`",
            ));
        }
        let value: f64 = value.parse().map_err(|_| {
            let message = format!("the value of `{word}` is not a number");
            Error::data("data/bad-number", message).hint(match Odd::of(value) {
                Odd::Word => "a row is one label, followed by `index:value` pairs".into(),
                Odd::Missing => LEFT_OUT.into(),
                odd => odd.remedy(value, ""),
            })
        })?;
        match value.is_finite() {
            true => Ok((column, value)),
            false => {
                Err(Error::data("data/not-finite", format!("`{word}` is not finite"))
                    .hint(LEFT_OUT))
            }
        }
    }

    fn part(self, cols: usize) -> Part {
        let SparseRows { starts, columns, values, labels, .. } = self;
        let table = Table::Numbers(Features::Sparse { cols, starts, columns, values });
        Part { table, labels, groups: Vec::new() }
    }
}

fn class(label: &str, names: &mut Names) -> Result<u32> {
    if label.contains([':', ',']) {
        let message = format!("the row starts with `{label}`, which is not a single label");
        return Err(Error::data("data/bad-label", message)
            .hint("a row is one label, followed by `index:value` pairs"));
    }
    names
        .number(label)
        .ok_or_else(|| Error::data("data/bad-label", format!("`{label}` is not a valid label")))
}
