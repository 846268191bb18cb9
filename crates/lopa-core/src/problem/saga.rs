//! SAGA (Defazio, Bach, Lacoste-Julien, *NeurIPS* 2014) for the five terms of d, h and s; with D-SOBA's step on one node it
//! is SABA (Dagréou, Ablin, Vaiter, Moreau, *NeurIPS* 2022).
//!
//! ```text
//! the samples of f and of g are cut into blocks; w_b is the share of block b, B their number
//! row_b    the term on block b, where it was last evaluated
//! mean     Σ_b w_b row_b
//!
//! estimate = B w_b (new − row_b) + mean,   mean ← mean + w_b (new − row_b),   row_b ← new
//! ```
//!
//! B w_b is 1 where blocks are equal; the last one may be shorter, and the estimate is still unbiased for a block drawn
//! uniformly. As the iterates settle, new − row_b vanishes, and so does the noise: constant steps suffice.
//!
//! A row has only the entries that its block can change ([`Bilevel::entries_of_g`]). No table is copied in an
//! iteration: a row and the mean are updated in place.

use std::ops::Range;

use super::derivative::Batches;
use super::derivative::Derivative;
use super::{At, Bilevel, Dims};
use crate::math::real::{Real, update};
use lopa_kernels::{Level, Loop};

/// One of the five terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// ∇_θ ĝ
    GradThetaG,
    /// ∇²_θθ ĝ v
    HessG,
    /// ∇²_xθ ĝ v
    CrossG,
    /// ∇_θ f̂
    GradThetaF,
    /// ∇_x f̂
    GradXF,
}

impl Term {
    /// All of them, in the order of their tables.
    pub const ALL: [Term; 5] =
        [Term::GradThetaG, Term::HessG, Term::CrossG, Term::GradThetaF, Term::GradXF];

    pub(super) fn derivative(self) -> Derivative {
        match self {
            Term::GradThetaG => Derivative::GradThetaG,
            Term::HessG => Derivative::HessG,
            Term::CrossG => Derivative::CrossG,
            Term::GradThetaF => Derivative::GradThetaF,
            Term::GradXF => Derivative::GradXF,
        }
    }

    /// The number of samples that it is a mean over.
    pub(super) fn samples<T: Real>(self, part: &dyn Bilevel<T>) -> usize {
        if self.derivative().is_outer() { part.samples_f() } else { part.samples_g() }
    }

    /// `out` ← the term on a minibatch.
    pub(super) fn compute<T: Real>(
        self,
        part: &mut dyn Bilevel<T>,
        (at, v): (At<T>, &[T]),
        batch: &[u32],
        out: &mut [T],
    ) {
        match self {
            Term::GradThetaG => part.grad_theta_g(at, batch, out),
            Term::HessG => part.hess_g(at, batch, v, out),
            Term::CrossG => part.cross_g(at, batch, v, out),
            Term::GradThetaF => part.grad_theta_f(at, batch, out),
            Term::GradXF => part.grad_x_f(at, batch, out),
        }
    }
}

/// The tables of a node.
#[derive(Debug, Default)]
pub struct Saga<T> {
    /// For each term its rows, then its mean: everything that one iteration passes to the next.
    pub values: Vec<T>,
    tables: Vec<Table>, // one per term
}

/// Where the rows of a term are.
#[derive(Debug)]
struct Table {
    length: usize, // of the term
    rows: Vec<Row>,
    mean: usize,           // where the mean starts
    entries: Range<usize>, // of the mean: from the first to the last of any row
}

/// The row of a block.
#[derive(Debug)]
struct Row {
    start: usize,
    entries: Range<usize>,
    share: f64,
}

/// The blocks of an epoch; the last one may be shorter than the others.
pub(super) fn blocks(size: Option<usize>, samples: usize) -> usize {
    size.map_or(1, |size| samples.div_ceil(size).max(1))
}

/// The bytes of the tables of a node in precision `T`.
pub fn bytes<T: Real>(part: &dyn Bilevel<T>, batches: Batches) -> u64 {
    let (tables, length) = layout(part, batches);
    let own: usize = tables.iter().map(|table| size_of::<Row>() * table.rows.len()).sum();
    (length * T::BYTES + own) as u64
}

/// The tables of a part, and how many numbers they have.
fn layout<T: Real>(part: &dyn Bilevel<T>, batches: Batches) -> (Vec<Table>, usize) {
    let (Dims { n, p }, mut end) = (part.dims(), 0);
    let mut take = |length: usize| {
        end += length;
        end - length
    };
    let mut batch = Vec::new();
    let mut table = |term: Term| {
        let (size, samples) = (term.derivative().batch(batches), term.samples(part));
        let size_or_all = size.unwrap_or(samples);
        let mut row = |block: usize| {
            let own = block * size_or_all..samples.min((block + 1) * size_or_all);
            batch.clear();
            batch.extend(own.map(|e| e as u32));
            let entries = match term {
                Term::CrossG => part.entries_of_g(&batch),
                Term::GradXF => part.entries_of_f(&batch),
                Term::GradThetaG | Term::HessG | Term::GradThetaF => 0..p,
            };
            Row { start: take(entries.len()), entries, share: batch.len() as f64 / samples as f64 }
        };
        let rows: Vec<Row> = (0..blocks(size, samples)).map(&mut row).collect();
        let filled = || rows.iter().map(|row| &row.entries).filter(|entries| !entries.is_empty());
        let first = filled().map(|entries| entries.start).min().unwrap_or(0);
        let last = filled().map(|entries| entries.end).max().unwrap_or(0);
        let length = if matches!(term, Term::CrossG | Term::GradXF) { n } else { p };
        Table { length, rows, mean: take(last - first), entries: first..last }
    };
    (Term::ALL.map(&mut table).into(), end)
}

impl<T: Real> Saga<T> {
    /// Zeros.
    pub(super) fn new(part: &dyn Bilevel<T>, batches: Batches) -> Saga<T> {
        let (tables, length) = layout(part, batches);
        Saga { values: vec![T::zero(); length], tables }
    }

    /// The length of a term.
    pub(super) fn length(&self, term: Term) -> usize {
        self.tables[term as usize].length
    }

    /// Replaces the row of a block.
    pub(super) fn set(&mut self, term: Term, block: usize, new: &[T]) {
        let Row { start, entries, .. } = &self.tables[term as usize].rows[block];
        self.values[*start..start + entries.len()].copy_from_slice(&new[entries.clone()]);
    }

    /// The means from the rows.
    pub(super) fn sum(&mut self) {
        for Table { rows, mean, entries, .. } in &self.tables {
            let (before, own) = self.values.split_at_mut(*mean);
            let own = &mut own[..entries.len()];
            own.fill(T::zero());
            for Row { start, entries: part, share } in
                rows.iter().filter(|row| !row.entries.is_empty())
            {
                let (share, row) = (T::of(*share), &before[*start..start + part.len()]);
                let own = &mut own[part.start - entries.start..][..part.len()];
                update(own, [row], |mean, [row]| mean + share * row);
            }
        }
    }

    /// `new` ← the estimate from the term on a block; its row and the mean follow.
    pub(super) fn correct(&mut self, term: Term, block: usize, new: &mut [T]) {
        let Table { rows, mean, entries, .. } = &self.tables[term as usize];
        let Row { start, entries: part, share } = &rows[block];
        let (before, own) = self.values.split_at_mut(*mean);
        let (row, own) = (&mut before[*start..start + part.len()], &mut own[..entries.len()]);
        let (share, factor) = (T::of(*share), T::of(share * rows.len() as f64));
        // Outside the entries of the block, the term is zero.
        if !part.is_empty() {
            new[entries.start..part.start].copy_from_slice(&own[..part.start - entries.start]);
            new[part.end..entries.end].copy_from_slice(&own[part.end - entries.start..]);
        } else {
            new[entries.clone()].copy_from_slice(own);
        }
        let own = &mut own[part.start.saturating_sub(entries.start)..][..part.len()];
        let new = &mut new[part.clone()];
        Level::best().run(Correct { new, row, mean: own, factor, share });
    }
}

/// The estimate, the row and the mean of a block in one pass.
struct Correct<'a, T> {
    new: &'a mut [T],
    row: &'a mut [T],
    mean: &'a mut [T],
    factor: T,
    share: T,
}

impl<T: Real> Loop for Correct<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Correct { new, row, mean, factor, share } = self;
        let (new, row, mean) = (
            new.as_chunks_mut::<CHUNK>(),
            row.as_chunks_mut::<CHUNK>(),
            mean.as_chunks_mut::<CHUNK>(),
        );
        for ((new, row), mean) in new.0.iter_mut().zip(row.0).zip(mean.0) {
            correct(new, row, mean, factor, share);
        }
        for ((new, row), mean) in new.1.iter_mut().zip(row.1).zip(mean.1) {
            let change = *new - *row;
            *row = *new;
            *new = factor * change + *mean;
            *mean += share * change;
        }
    }
}

/// A function of its own tells the compiler that the arrays are apart: it then vectorises the loop in place.
#[inline(always)]
fn correct<T: Real>(
    new: &mut [T; CHUNK],
    row: &mut [T; CHUNK],
    mean: &mut [T; CHUNK],
    factor: T,
    share: T,
) {
    for i in 0..CHUNK {
        let change = new[i] - row[i];
        row[i] = new[i];
        new[i] = factor * change + mean[i];
        mean[i] += share * change;
    }
}

/// Numbers corrected at a time.
const CHUNK: usize = 64;
