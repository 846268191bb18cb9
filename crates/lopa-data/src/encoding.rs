//! How the cells of a text table become features: a number, a column for each category, and a column
//! that says where a value is missing.

use serde::{Deserialize, Serialize};

/// How a column becomes features.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoded {
    /// Its name, or its number where columns have no names.
    pub column: String,
    /// Its categories, a feature each; none where its cells are numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Whether one more feature is 1 where its value is missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub indicator: bool,
}

/// What a cell is.
pub enum Cell {
    /// A number, or one of the categories.
    Value,
    /// Nothing.
    Missing,
    /// Neither.
    Odd,
}

impl Encoded {
    /// A column of numbers.
    pub fn number(column: String) -> Encoded {
        Encoded { column, categories: Vec::new(), indicator: false }
    }

    /// Whether it is a plain column of numbers.
    pub fn is_plain(&self) -> bool {
        self.categories.is_empty() && !self.indicator
    }

    /// The number of its features.
    pub fn width(&self) -> usize {
        self.categories.len().max(1) + usize::from(self.indicator)
    }

    /// The names of its features.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let plain = self.categories.is_empty().then(|| self.column.clone());
        let each = self.categories.iter().map(|category| format!("{}={category}", self.column));
        let missing = self.indicator.then(|| format!("{} missing", self.column));
        plain.into_iter().chain(each).chain(missing)
    }

    /// Writes the features of a cell, which are zeros before. A missing number is NaN, and a missing
    /// category none of them.
    pub fn write(&self, text: &str, out: &mut [f64]) -> Cell {
        if is_missing(text) {
            if self.categories.is_empty() {
                out[0] = f64::NAN;
            }
            if let (true, Some(last)) = (self.indicator, out.last_mut()) {
                *last = 1.0;
            }
            return Cell::Missing;
        }
        let number = text.parse::<f64>().ok().filter(|value| value.is_finite());
        if self.categories.is_empty() {
            let Some(number) = number else { return Cell::Odd };
            out[0] = number;
            return Cell::Value;
        }
        let name = category(text);
        match self.categories.iter().position(|category| *category == name) {
            None => Cell::Odd,
            Some(at) => {
                out[at] = 1.0;
                Cell::Value
            }
        }
    }
}

/// The name of a category: `3`, `3.0` and `+3` are one.
pub fn category(text: &str) -> String {
    text.parse::<f64>().ok().and_then(numeral).unwrap_or_else(|| text.to_string())
}

/// The number of features that columns become.
pub fn width(columns: &[Encoded]) -> usize {
    columns.iter().map(Encoded::width).sum()
}

/// Marks of missing values in tables.
const MISSING: [&str; 8] = ["", "na", "n/a", "nan", "null", "none", "?", "-"];

/// Whether a cell has no value.
pub fn is_missing(text: &str) -> bool {
    MISSING.contains(&text.to_ascii_lowercase().as_str())
}

/// A number as a class name: integers without a decimal point; none for NaN and infinities.
pub fn numeral(number: f64) -> Option<String> {
    let whole = number.fract() == 0.0 && number.abs() < 2f64.powi(53);
    match number.is_finite() {
        true if whole => Some((number as i64).to_string()),
        true => Some(number.to_string()),
        false => None,
    }
}
