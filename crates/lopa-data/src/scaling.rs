//! The scaling of raw features, and the methods that choose it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::source::{Table, Usual};
use super::{Features, TargetScaling};
use crate::error::{Error, Result};
use crate::math::portable::{ln, ln_1p};

/// Feature j becomes `(raw − shift[j]) · factor[j]`, after a logarithm if there is one and before the
/// row is divided by its length if it is. Empty vectors mean no change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// Subtracted first.
    pub shift: Vec<f64>,
    /// Multiplied second.
    pub factor: Vec<f64>,
    /// Whether raw becomes sign(raw) ln(1 + |raw|) before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub log: bool,
    /// Whether each row is divided by its Euclidean length after.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub row: bool,
    /// What a missing value of each feature becomes first; empty where none may be missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fill: Vec<f64>,
    /// How numbers to predict are scaled.
    #[serde(default, skip_serializing_if = "TargetScaling::is_empty")]
    pub target: TargetScaling,
}

/// The scaling of every node's features: one for all, or one for each.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalings {
    each: Vec<Scaling>,
}

impl Default for Scalings {
    fn default() -> Scalings {
        Scalings::all(Scaling::default())
    }
}

impl Scalings {
    /// The same scaling at every node.
    pub fn all(scaling: Scaling) -> Scalings {
        Scalings { each: vec![scaling] }
    }

    /// A scaling for each node.
    ///
    /// # Panics
    /// If there is none.
    pub fn each(each: Vec<Scaling>) -> Scalings {
        assert!(!each.is_empty(), "a scaling for each node");
        Scalings { each }
    }

    /// The scalings of some nodes; those of other processes are NaN.
    pub(super) fn some(each: Vec<Option<Scaling>>) -> Scalings {
        let unknown = |values: &Vec<f64>| vec![f64::NAN; values.len()];
        let known = each.iter().flatten().next().cloned().unwrap_or_default();
        let (shift, factor) = (unknown(&known.shift), unknown(&known.factor));
        let (target, fill) = (known.target.unknown(), unknown(&known.fill));
        let unknown = Scaling { shift, factor, target, fill, ..known };
        Scalings { each: each.into_iter().map(|own| own.unwrap_or(unknown.clone())).collect() }
    }

    /// A node's scaling.
    pub fn of(&self, node: usize) -> &Scaling {
        self.each.get(node).unwrap_or(&self.each[0])
    }

    /// The scalings: a single one, or one for each node.
    pub fn as_slice(&self) -> &[Scaling] {
        &self.each
    }
}

/// A way to scale features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// No scaling.
    None,
    /// Divided by the largest value: 255 for pixels, 16 for digits, else the largest in training.
    Unit,
    /// Mean 0 and standard deviation 1 over the training rows.
    Standardise,
    /// Divided by the largest value, then centred by the mean training row.
    Centre,
    /// sign(raw) ln(1 + |raw|), for counts; zeros stay zeros.
    Log,
    /// Every row divided by its Euclidean length; zeros stay zeros.
    Row,
    /// Counts times ln((1 + rows) / (1 + rows with the feature)) + 1, then as `row`; zeros stay zeros.
    #[serde(rename = "tf-idf")]
    TfIdf,
}

impl Scaling {
    /// Whether it changes nothing.
    pub fn is_none(&self) -> bool {
        self.shift.is_empty() && self.factor.is_empty()
    }

    /// The scaling of a method, computed from the training rows only.
    pub(super) fn choose(
        method: Method,
        usual: &Usual,
        columns: Option<&[usize]>,
        (table, rows): (&Table, &[u32]),
    ) -> Result<Scaling> {
        let cols = table.cols();
        let columns = columns.or(usual.columns.as_deref());
        let largest = || usual.maximum.unwrap_or_else(|| largest(table, rows));
        match method {
            Method::None => Ok(Scaling::default()),
            Method::Log => Ok(Scaling { log: true, ..Scaling::default() }),
            Method::Row => Ok(Scaling { row: true, ..Scaling::default() }),
            Method::TfIdf => {
                let mut with = vec![0.0; cols];
                for &row in rows {
                    table.each(row as usize, |j, value| with[j] += f64::from(value != 0.0));
                }
                let factor = with.iter().map(|&with| idf(rows.len() as f64, with)).collect();
                Ok(Scaling { factor, row: true, ..Scaling::default() })
            }
            Method::Unit => Ok(Scaling { factor: divided(largest(), cols), ..Scaling::default() }),
            Method::Centre => {
                let (shift, _) = moments(table, rows);
                Ok(Scaling { shift, factor: divided(largest(), cols), ..Scaling::default() })
            }
            Method::Standardise => {
                let (mean, deviation) = moments(table, rows);
                standard(mean, &deviation, columns)
            }
        }
    }

    /// Only the filling of missing values by the means of the others, over these rows.
    pub(super) fn filling(raw: &Features<f64>, rows: &[u32]) -> Scaling {
        let cols = raw.cols();
        let (mut sum, mut lacks) = (vec![0.0; cols], vec![0.0; cols]);
        for &row in rows {
            raw.each(row as usize, |j, value| match value.is_nan() {
                true => lacks[j] += 1.0,
                false => sum[j] += value,
            });
        }
        let mean = |j: usize| match rows.len() as f64 - lacks[j] {
            present if present > 0.0 => sum[j] / present,
            _ => 0.0,
        };
        Scaling { fill: (0..cols).map(mean).collect(), ..Scaling::default() }
    }

    /// The same with missing values filled by the means of these rows, if it fills any.
    pub fn refilled(self, raw: &Features<f64>) -> Scaling {
        if self.fill.is_empty() {
            return self;
        }
        let rows: Vec<u32> = (0..raw.rows() as u32).collect();
        Scaling { fill: Scaling::filling(raw, &rows).fill, ..self }
    }

    /// Like a scaling by a node's own moments, but by those of these rows.
    pub fn own(like: &Scaling, raw: &Features<f64>) -> Scaling {
        let rows: Vec<u32> = (0..raw.rows() as u32).collect();
        let like = &like.clone().refilled(raw);
        let filling = Scaling { fill: like.fill.clone(), ..Scaling::default() };
        let raw = &filling.apply(raw.clone());
        let table = Table::Numbers(raw.clone());
        let (mut shift, deviation) = moments(&table, &rows);
        let one = like.factor.windows(2).all(|pair| pair[0] == pair[1]);
        if like.shift.is_empty() || one && like.factor.len() > 1 {
            let factor = divided(largest(&table, &rows), raw.cols());
            shift.truncate(like.shift.len());
            return Scaling { shift, factor, ..like.clone() };
        }
        let mut factor: Vec<f64> =
            deviation.iter().map(|&d| if d > 0.0 { d.recip() } else { 1.0 }).collect();
        // Columns that were not scaled stay unscaled.
        for j in (0..raw.cols()).filter(|&j| like.shift[j] == 0.0 && like.factor[j] == 1.0) {
            (shift[j], factor[j]) = (0.0, 1.0);
        }
        Scaling { shift, factor, ..like.clone() }
    }

    /// Scales new raw features, for a model that was trained on scaled ones.
    pub fn apply(&self, raw: Features<f64>) -> Features<f64> {
        let sparse = matches!(raw, Features::Sparse { .. });
        let rows: Vec<u32> = (0..raw.rows() as u32).collect();
        Table::Numbers(raw).take(&rows, self, sparse)
    }

    /// Scales one row of all columns.
    pub(super) fn row(&self, row: &mut [f64]) {
        for (value, fill) in row.iter_mut().zip(&self.fill).filter(|(value, _)| value.is_nan()) {
            *value = *fill;
        }
        if self.log {
            row.iter_mut().for_each(|value| *value = log(*value));
        }
        if !self.shift.is_empty() {
            row.iter_mut().zip(&self.shift).for_each(|(value, shift)| *value -= shift);
        }
        if !self.factor.is_empty() {
            row.iter_mut().zip(&self.factor).for_each(|(value, factor)| *value *= factor);
        }
        self.shorten(row);
    }

    /// Divides the entries of a row by its length, if this scaling does.
    pub(super) fn shorten(&self, row: &mut [f64]) {
        let length = row.iter().map(|value| value * value).sum::<f64>().sqrt();
        if self.row && length > 0.0 {
            row.iter_mut().for_each(|value| *value /= length);
        }
    }

    /// Whether it takes a single factor and shifts, and nothing else.
    pub(super) fn is_affine(&self) -> bool {
        !self.log && !self.row
    }

    /// Whether it has a shift and a factor for every column, and nothing else.
    pub(super) fn shifts_all(&self) -> bool {
        let (shifts, factors) = (self.shift.len(), self.factor.len());
        self.is_affine() && self.fill.is_empty() && shifts > 0 && shifts == factors
    }

    /// Scales one entry, without dividing by the length of its row.
    pub(super) fn entry(&self, j: usize, raw: f64) -> f64 {
        let raw = if raw.is_nan() { self.fill.get(j).copied().unwrap_or(raw) } else { raw };
        let raw = if self.log { log(raw) } else { raw };
        let shifted = raw - self.shift.get(j).copied().unwrap_or(0.0);
        shifted * self.factor.get(j).copied().unwrap_or(1.0)
    }

    /// The columns in which zeros do not stay zero.
    pub(super) fn filled(&self) -> Vec<u32> {
        (0u32..).zip(&self.shift).filter(|(_, shift)| **shift != 0.0).map(|(j, _)| j).collect()
    }
}

/// Division of all columns by one number.
pub(super) fn divided(by: f64, cols: usize) -> Vec<f64> {
    vec![if by > 0.0 { by.recip() } else { 1.0 }; cols]
}

/// Means to 0 and deviations to 1, of all columns or those listed.
pub(super) fn standard(
    mean: Vec<f64>,
    deviation: &[f64],
    listed: Option<&[usize]>,
) -> Result<Scaling> {
    let (mut shift, cols) = (mean, deviation.len());
    let mut factor: Vec<f64> =
        deviation.iter().map(|&d| if d > 0.0 { d.recip() } else { 1.0 }).collect();
    if let Some(columns) = listed {
        let mut listed = vec![false; cols];
        check_columns(columns, cols)?;
        columns.iter().for_each(|&j| listed[j] = true);
        for j in (0..cols).filter(|&j| !listed[j]) {
            (shift[j], factor[j]) = (0.0, 1.0);
        }
    }
    Ok(Scaling { shift, factor, ..Scaling::default() })
}

/// The weight of a feature found in `with` of the `rows`.
pub(super) fn idf(rows: f64, with: f64) -> f64 {
    ln((1.0 + rows) / (1.0 + with)) + 1.0
}

fn log(raw: f64) -> f64 {
    raw.signum() * ln_1p(raw.abs())
}

fn check_columns(columns: &[usize], cols: usize) -> Result<()> {
    match columns.iter().find(|&&j| j >= cols) {
        None => Ok(()),
        Some(j) => Err(Error::config(
            "data/no-column",
            format!("feature column {j} cannot be standardised: there are {cols}"),
        )
        .hint(format!("feature columns are numbered 0 to {}", cols - 1))),
    }
}

/// The largest absolute value in some rows.
fn largest(table: &Table, rows: &[u32]) -> f64 {
    let mut largest = 0.0f64;
    for &row in rows {
        table.each(row as usize, |_, value| largest = largest.max(value.abs()));
    }
    largest
}

/// Mean and standard deviation of every column over some rows; entries not stored are zeros.
fn moments(table: &Table, rows: &[u32]) -> (Vec<f64>, Vec<f64>) {
    let (cols, count) = (table.cols(), rows.len() as f64);
    let (mut mean, mut stored) = (vec![0.0; cols], vec![0.0; cols]);
    for &row in rows {
        table.each(row as usize, |j, value| {
            mean[j] += value;
            stored[j] += 1.0;
        });
    }
    mean.iter_mut().for_each(|sum| *sum /= count);
    // A second pass: the difference of two large sums of squares would lose precision.
    let mut variance = vec![0.0; cols];
    for &row in rows {
        table.each(row as usize, |j, value| variance[j] += (value - mean[j]).powi(2));
    }
    for j in 0..cols {
        variance[j] = (variance[j] + (count - stored[j]) * mean[j] * mean[j]) / count;
    }
    (mean, variance.iter().map(|variance| variance.sqrt()).collect())
}
