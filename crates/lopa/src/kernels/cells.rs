//! Products of short sparse rows with a matrix of few columns.
//!
//! Rows that are drawn at random come from far away, and what they cost is the cache lines that
//! they lie on. So the values of a row and their columns, a byte each, lie together on lines of
//! their own, and there is no table of where rows begin: all have room for as many entries. The
//! weights are copied so that every row of them has lines of its own, too.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::dense::{last, load, store};
use super::fetch::fetch;
use super::sparse::Csr;
use super::vector::{Number, Vector};
use super::{Pages, Rows};

/// A byte tells so many columns apart.
const MOST: usize = 256;

/// Room for entries is a multiple of this.
const GROUP: usize = 4;

/// Rows lie far apart: fetching one so many turns early hides how long that takes.
const AHEAD: usize = 12;

/// A cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; 64],
}

/// A sparse matrix whose rows have nearly the same number of entries.
#[derive(Debug, Clone)]
pub struct Cells<T> {
    cols: usize,
    room: usize,      // entries of every row, a multiple of GROUP
    lines: Vec<Line>, // of every row: its values, then their columns, each below `cols`
    values: PhantomData<T>,
}

impl Cells<f64> {
    /// Of a matrix; `None` if it has more than 256 columns or rows of very different lengths.
    pub fn new(matrix: Csr<f64>) -> Option<Cells<f64>> {
        let Csr { cols, starts, columns, values } = matrix;
        let longest = starts.windows(2).map(|pair| pair[1] - pair[0]).max()?;
        let room = longest.next_multiple_of(GROUP);
        if cols > MOST || 2 * room * (starts.len() - 1) > 3 * values.len() {
            return None;
        }
        assert!(columns.iter().all(|&q| (q as usize) < cols), "a column beyond the matrix");
        let mut cells = Cells::empty(cols, room, starts.len() - 1);
        for (row, pair) in starts.windows(2).enumerate() {
            (pair[0]..pair[1]).enumerate().for_each(|(i, e)| {
                // SAFETY: there is room for the longest row.
                unsafe { cells.set(row, i, values[e], columns[e] as u8) }
            });
        }
        Some(cells)
    }
}

impl<T: Copy> Cells<T> {
    /// With room for entries that are all zero.
    fn empty(cols: usize, room: usize, rows: usize) -> Cells<T> {
        let cells = Cells { cols, room, lines: Vec::new(), values: PhantomData };
        let lines = vec![Line { _bytes: [0; 64] }; rows * cells.per_row()];
        Cells { lines, ..cells }
    }

    /// The same matrix in another precision.
    pub fn cast<U: Copy>(&self, of: impl Fn(T) -> U) -> Cells<U> {
        let rows = self.lines.len() / self.per_row().max(1);
        let mut cells = Cells::empty(self.cols, self.room, rows);
        for (row, i) in (0..rows).flat_map(|row| (0..self.room).map(move |i| (row, i))) {
            let (values, columns) = self.row(row);
            // SAFETY: both have `room` entries in a row.
            unsafe { cells.set(row, i, of(*values.add(i)), *columns.add(i)) };
        }
        cells
    }

    /// Some rows, in the given order, in the same form.
    pub fn select(&self, rows: &[u32]) -> Cells<T> {
        let per = self.per_row();
        let lines = |&row: &u32| &self.lines[row as usize * per..(row as usize + 1) * per];
        let lines = rows.iter().flat_map(lines).copied().collect();
        Cells { lines, ..*self }
    }

    /// # Safety
    /// i must be below `room`.
    unsafe fn set(&mut self, row: usize, i: usize, value: T, column: u8) {
        let (per, room) = (self.per_row(), self.room);
        let values = self.lines[row * per..(row + 1) * per].as_mut_ptr().cast::<T>();
        // SAFETY: lines hold `room` values and then as many columns.
        unsafe {
            values.add(i).write(value);
            values.add(room).cast::<u8>().add(i).write(column);
        }
    }

    /// Where its numbers lie.
    pub fn pages(&self) -> Pages {
        Pages::default().with(&self.lines)
    }

    /// How many columns there are.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Lines of a row.
    #[inline(always)]
    fn per_row(&self) -> usize {
        (self.room * (size_of::<T>() + 1)).div_ceil(64)
    }

    /// The values and the columns of a row.
    #[inline(always)]
    fn row(&self, row: usize) -> (*const T, *const u8) {
        let per = self.per_row();
        let values = self.lines[row * per..(row + 1) * per].as_ptr().cast::<T>();
        (values, values.wrapping_add(self.room).cast())
    }

    #[inline(always)]
    fn fetch_row(&self, row: Option<usize>) {
        if let Some(row) = row {
            let per = self.per_row();
            fetch(&self.lines[row * per..(row + 1) * per]);
        }
    }
}

/// Calls `$run` for all columns of the weights, up to four vectors at a time.
macro_rules! each_panel {
    ($v:ty, $width:ident, |$from:ident, $left:ident| $run:ident($($arg:expr),*)) => {
        for $from in (0..$width).step_by(4 * <$v>::LANES) {
            let $left = ($width - $from).min(4 * <$v>::LANES);
            match $left.div_ceil(<$v>::LANES) {
                1 => $run::<$v, 1, 4>($($arg),*),
                2 => $run::<$v, 2, 2>($($arg),*),
                3 => $run::<$v, 3, 2>($($arg),*),
                _ => $run::<$v, 4, 2>($($arg),*),
            }
        }
    };
}

/// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`.
///
/// # Safety
/// See [`Vector`]; `weights` are cols × width, `out` rows × width.
#[inline(always)]
pub unsafe fn product<V: Vector>(
    cells: &Cells<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    unsafe {
        each_panel!(V, width, |from, left| forward(
            cells,
            rows,
            &weights[from..],
            width,
            left,
            &mut out[from..]
        ))
    }
}

/// `C` vectors of columns of the weights, in `S` sums side by side to hide latency.
#[inline(always)]
unsafe fn forward<V: Vector, const C: usize, const S: usize>(
    cells: &Cells<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    left: usize,
    out: &mut [V::Scalar],
) {
    // SAFETY: all columns are copied before they are read; the mask keeps loads and stores within
    // `width`; a row has `room` entries.
    unsafe {
        let last = last::<V, C>(left);
        let mut panel = Panel::<V, C>::uninit();
        for q in 0..cells.cols {
            panel.set(q, load::<V, C>(weights.as_ptr().add(q * width), last));
        }
        for (r, row) in rows.iter().enumerate() {
            cells.fetch_row(rows.at(r + AHEAD));
            let (values, columns) = cells.row(row);
            let mut sums = [[V::splat(V::Scalar::ZERO); C]; S];
            for e in (0..cells.room).step_by(GROUP) {
                for i in 0..GROUP {
                    let w = panel.at(*columns.add(e + i));
                    let a = V::splat(*values.add(e + i));
                    for c in 0..C {
                        sums[i % S][c] = a.mul_add(w[c], sums[i % S][c]);
                    }
                }
            }
            for other in 1..S {
                for c in 0..C {
                    sums[0][c] = sums[0][c].add(sums[other][c]);
                }
            }
            store(out.as_mut_ptr().add(r * width), sums[0], last);
        }
    }
}

/// `out[q, :] += Σ_r a[row_r, q] delta[r, :]`.
///
/// # Safety
/// See [`Vector`]; `delta` is rows × width, `out` cols × width.
#[inline(always)]
pub unsafe fn add_transposed<V: Vector>(
    cells: &Cells<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    unsafe {
        each_panel!(V, width, |from, left| back(
            cells,
            rows,
            &delta[from..],
            width,
            left,
            &mut out[from..]
        ))
    }
}

/// `C` vectors of columns of delta.
#[inline(always)]
unsafe fn back<V: Vector, const C: usize, const S: usize>(
    cells: &Cells<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    width: usize,
    left: usize,
    out: &mut [V::Scalar],
) {
    // SAFETY: as in `forward`.
    unsafe {
        let last = last::<V, C>(left);
        let mut panel = Panel::<V, C>::uninit();
        for q in 0..cells.cols {
            panel.set(q, [V::splat(V::Scalar::ZERO); C]);
        }
        for (r, row) in rows.iter().enumerate() {
            cells.fetch_row(rows.at(r + AHEAD));
            let (values, columns) = cells.row(row);
            let d = load::<V, C>(delta.as_ptr().add(r * width), last);
            for e in 0..cells.room {
                let column = *columns.add(e);
                let a = V::splat(*values.add(e));
                let mut sum = panel.at(column);
                for c in 0..C {
                    sum[c] = a.mul_add(d[c], sum[c]);
                }
                panel.set(column as usize, sum);
            }
        }
        for q in 0..cells.cols {
            let to = out.as_mut_ptr().add(q * width);
            let (mut sum, before) = (panel.at(q as u8), load::<V, C>(to, last));
            for c in 0..C {
                sum[c] = sum[c].add(before[c]);
            }
            store(to, sum, last);
        }
    }
}

/// Weights or sums of all columns, every row on cache lines of its own.
struct Panel<V, const C: usize>(MaybeUninit<Rows256<V, C>>);

#[repr(align(64))]
struct Rows256<V, const C: usize>([[V; C]; MOST]);

impl<V: Vector, const C: usize> Panel<V, C> {
    #[inline(always)]
    fn uninit() -> Self {
        Panel(MaybeUninit::uninit())
    }

    /// # Safety
    /// Below `MOST`.
    #[inline(always)]
    unsafe fn set(&mut self, q: usize, row: [V; C]) {
        let at = self.0.as_mut_ptr().cast::<V::Scalar>();
        for c in 0..C {
            unsafe { row[c].store(at.add((q * C + c) * V::LANES)) };
        }
    }

    /// # Safety
    /// The row was set.
    #[inline(always)]
    unsafe fn at(&self, q: u8) -> [V; C] {
        unsafe {
            let at = self.0.as_ptr().cast::<V::Scalar>().add(q as usize * C * V::LANES);
            let mut row = [V::load(at); C];
            for c in 1..C {
                row[c] = V::load(at.add(c * V::LANES));
            }
            row
        }
    }
}
