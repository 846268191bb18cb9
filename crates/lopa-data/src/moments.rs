//! Sums over training rows from which a scaling follows.

use super::Dataset;
use super::scaling::{self, Method, Scaling, idf};
use crate::error::Result;
use crate::math::exact::Exact;
use crate::store::bytes::{Reader, Writer};

/// Sums over a node's training rows: as few as the method needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moments {
    rows: f64,
    largest: f64,
    /// The mean of each column, or the share of rows in which it is not zero.
    first: Vec<f64>,
    /// The sum of each column's squared deviations from its mean.
    second: Vec<f64>,
}

impl Moments {
    /// The moments of some training rows that a method needs.
    pub fn of(method: Method, train: &Dataset) -> Moments {
        let (cols, rows) = (train.cols(), train.len() as f64);
        let mut moments = Moments { rows, ..Moments::default() };
        let each = |f: &mut dyn FnMut(usize, f64)| {
            (0..train.len()).for_each(|row| train.each(row, &mut *f));
        };
        match method {
            Method::None | Method::Row | Method::Log => {}
            Method::Unit => {
                each(&mut |_, value| moments.largest = moments.largest.max(value.abs()));
            }
            Method::TfIdf => {
                moments.first = vec![0.0; cols];
                each(&mut |j, value| moments.first[j] += f64::from(value != 0.0));
                moments.first.iter_mut().for_each(|count| *count /= rows);
            }
            Method::Standardise | Method::Centre => {
                let (mut mean, mut stored) = (vec![0.0; cols], vec![0.0; cols]);
                each(&mut |j, value| {
                    mean[j] += value;
                    stored[j] += 1.0;
                    moments.largest = moments.largest.max(value.abs());
                });
                mean.iter_mut().for_each(|sum| *sum /= rows);
                if method == Method::Standardise {
                    // The largest entry is sent only if the scaling needs it.
                    moments.largest = 0.0;
                    moments.second = vec![0.0; cols];
                    each(&mut |j, value| moments.second[j] += (value - mean[j]).powi(2));
                    for j in 0..cols {
                        moments.second[j] += (rows - stored[j]) * mean[j] * mean[j];
                    }
                }
                moments.first = mean;
            }
        }
        moments
    }

    /// The moments of all rows, from those of each node. Sums are exact, so that their order does not matter.
    pub fn joined(each: &[Moments]) -> Option<Moments> {
        let largest = each.iter().map(|moments| moments.largest).fold(0.0, f64::max);
        let sums = total(each.iter().map(Moments::summands))?;
        let spreads = total(each.iter().map(|moments| moments.spreads(&means(&sums))))?;
        Some(Moments { largest, ..Moments::of_sums(&sums, spreads) })
    }

    /// The numbers to be summed over the nodes first: rows, and those of each column.
    pub fn summands(&self) -> Vec<f64> {
        std::iter::once(self.rows).chain(self.first.iter().map(|mean| self.rows * mean)).collect()
    }

    /// The numbers to be summed next: squared deviations from the means of all rows.
    pub fn spreads(&self, means: &[f64]) -> Vec<f64> {
        let columns = self.second.iter().zip(self.first.iter().zip(means));
        columns.map(|(second, (own, mean))| second + self.rows * (own - mean).powi(2)).collect()
    }

    /// The moments of all rows, from both sums.
    pub fn of_sums(sums: &[f64], second: Vec<f64>) -> Moments {
        let rows = sums.first().copied().unwrap_or_default();
        Moments { rows, largest: 0.0, first: means(sums), second }
    }

    /// The scaling that follows.
    pub fn scaling(
        &self,
        method: Method,
        listed: Option<&[usize]>,
        cols: usize,
    ) -> Result<Scaling> {
        let Moments { rows, largest, first, second } = self;
        Ok(match method {
            Method::None => Scaling::default(),
            Method::Row => Scaling { row: true, ..Scaling::default() },
            Method::Log => Scaling { log: true, ..Scaling::default() },
            Method::TfIdf => {
                let factor = first.iter().map(|mean| idf(*rows, (mean * rows).round())).collect();
                Scaling { factor, row: true, ..Scaling::default() }
            }
            Method::Unit => {
                Scaling { factor: scaling::divided(*largest, cols), ..Scaling::default() }
            }
            Method::Centre => {
                let factor = scaling::divided(*largest, cols);
                Scaling { shift: first.clone(), factor, ..Scaling::default() }
            }
            Method::Standardise => {
                let deviation: Vec<f64> = second.iter().map(|sum| (sum / rows).sqrt()).collect();
                scaling::standard(first.clone(), &deviation, listed)?
            }
        })
    }

    /// The moments of the columns at the given indices; `None` if one is out of range.
    pub fn at(&self, order: &[usize]) -> Option<Moments> {
        let at = |values: &[f64]| -> Option<Vec<f64>> {
            match values.len() {
                0 => Some(Vec::new()),
                length if length == order.len() => Some(order.iter().map(|&j| values[j]).collect()),
                _ => None,
            }
        };
        let (first, second) = (at(&self.first)?, at(&self.second)?);
        Some(Moments { first, second, ..self.clone() })
    }

    /// Whether they may be those of a node's rows, `cols` columns each, with the same parts as
    /// `ours`.
    pub fn fits(&self, ours: &Moments, cols: usize) -> bool {
        let Moments { rows, largest, first, second } = self;
        let as_long =
            |theirs: &[f64], ours: &[f64]| theirs.len() == if ours.is_empty() { 0 } else { cols };
        let positive = second.iter().chain([largest]).all(|&value| value >= 0.0);
        // Where nothing is agreed on, nothing is sent.
        let counted = if ours.rows > 0.0 { *rows >= 1.0 } else { *rows == 0.0 };
        counted && positive && as_long(first, &ours.first) && as_long(second, &ours.second)
    }

    /// Writes them.
    pub fn write(&self, out: &mut Writer) {
        out.f64(self.rows);
        out.f64(self.largest);
        out.reals(&self.first);
        out.reals(&self.second);
    }

    /// Reads them; `None` if they are malformed.
    pub fn read(bytes: &mut Reader) -> Option<Moments> {
        let (rows, largest) = (bytes.f64()?, bytes.f64()?);
        let (first, second) = (bytes.reals()?, bytes.reals()?);
        let finite = [&[rows, largest], &first[..], &second].concat().iter().all(|v| v.is_finite());
        finite.then_some(Moments { rows, largest, first, second })
    }
}

/// The means of all columns, from the first sums.
pub fn means(sums: &[f64]) -> Vec<f64> {
    let Some((rows, sums)) = sums.split_first() else { return Vec::new() };
    sums.iter().map(|sum| sum / rows).collect()
}

/// Sums over the nodes; `None` if one is not finite.
fn total(nodes: impl Iterator<Item = Vec<f64>>) -> Option<Vec<f64>> {
    let mut sums: Vec<Exact> = Vec::new();
    for numbers in nodes {
        sums.resize(numbers.len(), Exact::default());
        for (sum, number) in sums.iter_mut().zip(numbers) {
            *sum = std::mem::take(sum).plus(&Exact::of(number)?);
        }
    }
    Some(sums.iter().map(Exact::to_f64).collect())
}
