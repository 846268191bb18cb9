//! How the kernels of any shape keep x and the table of features.

use lopa::math::real::Real;

use super::shape::Shape;
use crate::halves::{SUBNORMAL, bits, power_below, split};
use crate::plan::{Plan, Table};
use crate::run::Layout;

/// Rows of units, padded.
pub struct Padded(pub Shape);

impl<T: Real> Layout<T> for Padded {
    fn length(&self, _: usize) -> usize {
        self.0.length()
    }

    fn pack(&self, from: &[T], to: &mut [T]) {
        to.fill(T::zero());
        let rows = to.chunks_exact_mut(self.0.across as usize);
        let of = from.chunks_exact(self.0.units as usize);
        rows.zip(of).for_each(|(to, from)| to[..from.len()].copy_from_slice(from));
    }

    fn unpack(&self, from: &[T], to: &mut [T]) {
        let rows = from.chunks_exact(self.0.across as usize);
        let of = to.chunks_exact_mut(self.0.units as usize);
        of.zip(rows).for_each(|(to, from)| to.copy_from_slice(&from[..to.len()]));
    }
}

/// Features as they are stored: a byte times 2^-24, or a number times a power of two, split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stored {
    /// What sums with stored features are multiplied by.
    pub unit: f32,
    /// The power of two of numbers.
    pub scale: f32,
    /// The feature of the bias: a byte, or a number that half precision has.
    pub one: f32,
    /// What makes 1 of the stored feature of the bias times `unit`.
    pub bias: f32,
}

impl Stored {
    pub fn new<T: Real>(plan: &Plan<T>, shape: &Shape) -> Stored {
        if !shape.numbers {
            // The byte that is nearest to 1, so that the bias has the precision of other weights.
            let unit = Real::to_f64(plan.job.unit);
            let one = (1.0 / unit).round().clamp(1.0, 255.0);
            let bias = (1.0 / (one * unit)) as f32;
            return Stored { unit: SUBNORMAL * unit as f32, scale: 1.0, one: one as f32, bias };
        }
        // The largest is below 2^14; small numbers are not made too large, for the bias's sake.
        let scale = power_below(plan.extent.top, 14).min(2f32.powi(17));
        let one = scale.clamp(2f32.powi(-10), 2f32.powi(13));
        Stored { unit: 1.0 / scale, scale, one, bias: scale / one }
    }
}

/// The features of a row.
pub fn features<T: Real>(plan: &Plan<T>, row: usize) -> impl Iterator<Item = f32> + '_ {
    let features = plan.job.features as usize;
    let unit = plan.job.unit;
    (row * features..(row + 1) * features).map(move |at| {
        let value = match &plan.table {
            Table::Numbers(values) => values[at],
            Table::Bytes(bytes) => (T::of(f64::from(bytes[at])) - plan.shift[at % features]) * unit,
        };
        Real::to_f64(value) as f32
    })
}

/// How many rows the table has.
fn count<T: Real>(plan: &Plan<T>) -> usize {
    let all = match &plan.table {
        Table::Bytes(bytes) => bytes.len(),
        Table::Numbers(values) => values.len(),
    };
    all / (plan.job.features as usize).max(1)
}

/// A bound of the norms of the nodes' rows and, unless features are bytes, the largest feature of each column.
pub fn extent<T: Real>(plan: &Plan<T>) -> (f32, Vec<f32>) {
    let all = plan.job.features as usize;
    if plan.has_bytes() {
        return (255.0 * Real::to_f64(plan.job.unit) as f32 * (all as f32).sqrt(), Vec::new());
    }
    let (mut tops, mut square) = (vec![0.0f32; all], 0.0f64);
    for &row in plan.owned.iter().flatten() {
        let mut own = 0.0;
        for (top, value) in tops.iter_mut().zip(features(plan, row as usize)) {
            *top = top.max(value.abs());
            own += f64::from(value) * f64::from(value);
        }
        square = square.max(own);
    }
    (square.sqrt() as f32, tops)
}

/// The table of the kernels, whose rows have `stride` bytes: features times `scale`, and `one`, which is 1.
pub fn table<T: Real>(plan: &Plan<T>, stride: u32, scale: f32, one: f32) -> Vec<u8> {
    let (stride, all) = (stride as usize, plan.job.features as usize);
    let mut table = vec![0; count(plan) * stride];
    for (row, to) in table.chunks_exact_mut(stride).enumerate() {
        match &plan.table {
            Table::Bytes(bytes) if plan.has_bytes() => {
                to[..all].copy_from_slice(&bytes[row * all..(row + 1) * all]);
                to[all] = one as u8;
            }
            _ => {
                let values = features(plan, row).map(|value| split(value * scale));
                for (q, halves) in values.chain([[one, 0.0]]).enumerate() {
                    for (term, value) in halves.into_iter().enumerate().take(plan.terms as usize) {
                        let at = match plan.terms {
                            2 => q / 32 * 128 + term * 64 + q % 32 * 2,
                            _ => q * 2,
                        };
                        to[at..at + 2].copy_from_slice(&bits(value).to_le_bytes());
                    }
                }
            }
        }
    }
    table
}
