//! Products of short sparse rows with a matrix of few columns.
//!
//! The cost of rows drawn at random is the number of cache lines they occupy. So the values of a
//! row and their columns, one byte per column, are together on lines of their own, and all rows
//! have the same number of entries, so that no table of row starts is needed. Columns that most
//! rows have form the *head* of every row: they come first and are stored without column numbers.
//! The weights are copied in that order, each row of them to lines of its own.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::dense::{last_mask, load, store};
use super::prefetch::prefetch_line;
use super::sparse::Csr;
use super::vector::{Number, Vector};
use super::{Pages, Rows};

/// The largest number of columns: column numbers are bytes.
const MAX_COLS: usize = 256;

/// Rows multiplied side by side, to hide the latency of the multiplications.
const GROUP: usize = 4;

/// How many rows ahead to prefetch: they are far apart in memory.
const AHEAD: usize = 24;

/// Rows located at a time.
const CHUNK: usize = 256;

/// A cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; 64],
}

/// A sparse matrix whose rows have nearly the same number of entries.
#[derive(Debug, Clone)]
pub struct Cells<T> {
    order: Vec<u8>,   // all columns, those of the head first
    head: usize,      // number of columns of which every row stores a value
    entries: usize,   // values per row, including the head
    per_row: usize,   // lines per row
    lines: Vec<Line>, // per row: its values, then for those after the head the index in `order`
    values: PhantomData<T>,
}

impl Cells<f64> {
    /// Packs a matrix; `None` if it has more than 256 columns or rows of very different lengths.
    pub fn new(matrix: Csr<f64>) -> Option<Cells<f64>> {
        let Csr { cols, starts, columns, values } = matrix;
        if cols > MAX_COLS {
            return None;
        }
        assert!(columns.iter().all(|&q| (q as usize) < cols), "column out of range");
        let rows = starts.len() - 1;
        let (order, head) = by_frequency(columns, cols, rows);
        let mut indices = [0; MAX_COLS];
        order.iter().enumerate().for_each(|(index, &q)| indices[q as usize] = index);
        let index = |e: usize| indices[columns[e] as usize];
        let tail = |pair: &[usize]| (pair[0]..pair[1]).filter(|&e| index(e) >= head).count();
        let entries = head + starts.windows(2).map(tail).max()?;
        if 2 * entries * rows > 3 * values.len() {
            return None;
        }
        let mut cells = Cells::empty(order, head, entries, rows);
        for (row, pair) in starts.windows(2).enumerate() {
            let mut end = head;
            for e in pair[0]..pair[1] {
                let i = if index(e) < head { index(e) } else { end };
                end += usize::from(index(e) >= head);
                // SAFETY: i < `entries`, which is the head and the longest tail.
                unsafe { cells.set(row, i, values[e], index(e)) }
            }
        }
        Some(cells)
    }
}

/// All columns, first those that at least three quarters of the rows have; and how many these are.
fn by_frequency(columns: &[u32], cols: usize, rows: usize) -> (Vec<u8>, usize) {
    let mut counts = [0; MAX_COLS];
    columns.iter().for_each(|&q| counts[q as usize] += 1);
    let frequent = |q: &usize| 4 * counts[*q] >= 3 * rows;
    let (head, rest): (Vec<usize>, Vec<usize>) = (0..cols).partition(frequent);
    (head.iter().chain(&rest).map(|&q| q as u8).collect(), head.len())
}

impl<T: Copy> Cells<T> {
    /// A matrix whose entries are all zero.
    fn empty(order: Vec<u8>, head: usize, entries: usize, rows: usize) -> Cells<T> {
        let per_row = (entries * size_of::<T>() + entries - head).div_ceil(64);
        let lines = vec![Line { _bytes: [0; 64] }; rows * per_row];
        Cells { order, head, entries, per_row, lines, values: PhantomData }
    }

    /// The same matrix in another precision.
    pub fn cast<U: Copy>(&self, of: impl Fn(T) -> U) -> Cells<U> {
        let rows = self.lines.len() / self.per_row.max(1);
        let mut cells = Cells::empty(self.order.clone(), self.head, self.entries, rows);
        for (row, i) in (0..rows).flat_map(|row| (0..self.entries).map(move |i| (row, i))) {
            let values = self.row(row).as_ptr().cast::<T>();
            // SAFETY: i < `entries`, which both have; `values` points to a row.
            unsafe {
                let index = if i < self.head { i } else { self.index(values, i) };
                cells.set(row, i, of(*values.add(i)), index);
            }
        }
        cells
    }

    /// The given rows, in the given order.
    pub fn select(&self, rows: &[u32]) -> Cells<T> {
        let lines = rows.iter().flat_map(|&row| self.row(row as usize)).copied().collect();
        Cells { lines, order: self.order.clone(), ..*self }
    }

    /// Writes entry i of a row: its value and the index of its column in `order`.
    ///
    /// # Safety
    /// i must be below `entries`, and `index` below the number of columns.
    unsafe fn set(&mut self, row: usize, i: usize, value: T, index: usize) {
        let lines = &mut self.lines[row * self.per_row..(row + 1) * self.per_row];
        let values = lines.as_mut_ptr().cast::<T>();
        // SAFETY: the lines of a row have space for `entries` values, then for the indices of those
        // after the head.
        unsafe {
            values.add(i).write(value);
            if i >= self.head {
                values.add(self.entries).cast::<u8>().add(i - self.head).write(index as u8);
            }
        }
    }

    /// The memory it occupies.
    pub fn pages(&self) -> Pages {
        Pages::default().with(&self.lines)
    }

    /// How many columns there are.
    pub fn cols(&self) -> usize {
        self.order.len()
    }

    /// The lines of a row.
    #[inline(always)]
    fn row(&self, row: usize) -> &[Line] {
        &self.lines[row * self.per_row..(row + 1) * self.per_row]
    }

    /// The index in `order` of entry i of a row.
    ///
    /// # Safety
    /// `values` must point to a row; i must be below `entries` and not in the head.
    #[inline(always)]
    unsafe fn index(&self, values: *const T, i: usize) -> usize {
        // SAFETY: a row has `entries` values, then the indices of those after the head.
        unsafe { *values.add(self.entries).cast::<u8>().add(i - self.head) as usize }
    }
}

/// The addresses of up to `CHUNK` rows.
struct Located<T> {
    rows: [*const T; CHUNK + AHEAD], // after the last one, addresses of arbitrary rows
    count: usize,
    per_row: usize, // lines per row
}

impl<T: Copy> Located<T> {
    #[inline(always)]
    fn new(cells: &Cells<T>) -> Self {
        let first = cells.lines.as_ptr().cast();
        Located { rows: [first; CHUNK + AHEAD], count: 0, per_row: cells.per_row }
    }

    /// Locates at most `CHUNK` rows, while the first are prefetched.
    #[inline(always)]
    fn locate(&mut self, cells: &Cells<T>, rows: Rows) {
        self.count = rows.len();
        let first = AHEAD.min(rows.len());
        self.locate_range(cells, rows, 0..first);
        (0..AHEAD).step_by(GROUP).for_each(|r| self.prefetch(r));
        self.locate_range(cells, rows, first..rows.len());
    }

    #[inline(always)]
    fn locate_range(&mut self, cells: &Cells<T>, rows: Rows, range: Range<usize>) {
        let mut largest = 0;
        let numbers = &rows.numbers[range.clone()];
        for (address, row) in self.rows[range].iter_mut().zip(Rows { numbers, ..rows }.iter()) {
            largest = row.max(largest);
            *address = cells.lines.as_ptr().wrapping_add(row * cells.per_row).cast();
        }
        assert!((largest + 1) * cells.per_row <= cells.lines.len(), "row out of range");
    }

    /// Prefetches the group from row r on.
    #[inline(always)]
    fn prefetch(&self, r: usize) {
        let group = self.group(r);
        for line in 0..self.per_row {
            for i in 0..GROUP {
                prefetch_line(group[i].cast::<Line>().wrapping_add(line).cast());
            }
        }
    }

    /// The group from row r on.
    #[inline(always)]
    fn group(&self, r: usize) -> [*const T; GROUP] {
        let mut group = [self.rows[r]; GROUP];
        group.copy_from_slice(&self.rows[r..r + GROUP]);
        group
    }
}

/// Calls `$run` for all columns of the weights, one or two vectors at a time: scratch space for more
/// would take enough of the stack to cost time.
macro_rules! each_panel {
    ($v:ty, $width:ident, |$from:ident, $left:ident| $run:ident($($arg:expr),*)) => {
        for $from in (0..$width).step_by(if <$v>::FUSED { 2 } else { 1 } * <$v>::LANES) {
            let $left = $width - $from;
            match $left > <$v>::LANES {
                true if <$v>::FUSED => $run::<$v, 2>($($arg),*),
                _ => $run::<$v, 1>($($arg),*),
            }
        }
    };
}

/// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`.
///
/// # Safety
/// See [`Vector`]; `weights` is cols × width, `out` rows × width.
#[inline(always)]
pub unsafe fn product<V: Vector>(
    cells: &Cells<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    let mut located = Located::new(cells);
    let mut scratch = Scratch::<V>(MaybeUninit::uninit());
    for (numbers, out) in rows.numbers.chunks(CHUNK).zip(out.chunks_mut(CHUNK * width)) {
        located.locate(cells, Rows { numbers, ..rows });
        // SAFETY: shapes as for this function; the rows have been located in these cells.
        unsafe {
            each_panel!(V, width, |from, left| forward(
                cells,
                &located,
                &mut scratch,
                &weights[from..],
                width,
                left,
                &mut out[from..]
            ))
        }
    }
}

/// Multiplies the located rows with `C` vectors of columns of the weights.
///
/// # Safety
/// Shapes as in [`product`]; `weights` and `out` begin at the first of the `left` columns left,
/// which are more than `C - 1` vectors; the rows have been located in `cells`.
#[inline(always)]
unsafe fn forward<V: Vector, const C: usize>(
    cells: &Cells<V::Scalar>,
    located: &Located<V::Scalar>,
    scratch: &mut Scratch<V>,
    weights: &[V::Scalar],
    width: usize,
    left: usize,
    out: &mut [V::Scalar],
) {
    // SAFETY: all columns are copied before any is read, and every index in a row is that of a
    // column; the mask keeps loads and stores within `width`; a row has `entries` values.
    unsafe {
        let last = last_mask::<V, C>(left);
        let mut panel = Panel::<V, C>(scratch.0.as_mut_ptr().cast());
        for (index, &q) in cells.order.iter().enumerate() {
            panel.set(index, load::<V, C>(weights.as_ptr().add(q as usize * width), last));
        }
        for r in (0..located.count).step_by(GROUP) {
            located.prefetch(r + AHEAD);
            let group = located.group(r);
            let mut sums = [[V::splat(V::Scalar::ZERO); C]; GROUP];
            let mut add = |i: usize, e: usize, w: [V; C]| {
                let a = V::splat(*group[i].add(e));
                for c in 0..C {
                    sums[i][c] = a.mul_add(w[c], sums[i][c]);
                }
            };
            for e in 0..cells.head {
                let w = panel.at(e);
                for i in 0..GROUP {
                    add(i, e, w);
                }
            }
            for e in cells.head..cells.entries {
                for i in 0..GROUP {
                    add(i, e, panel.at(cells.index(group[i], e)));
                }
            }
            for i in 0..GROUP {
                if r + i < located.count {
                    store(out.as_mut_ptr().add((r + i) * width), sums[i], last);
                }
            }
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
    let mut located = Located::new(cells);
    let mut scratch = Scratch::<V>(MaybeUninit::uninit());
    for (numbers, delta) in rows.numbers.chunks(CHUNK).zip(delta.chunks(CHUNK * width)) {
        located.locate(cells, Rows { numbers, ..rows });
        // SAFETY: shapes as for this function; the rows have been located in these cells.
        unsafe {
            each_panel!(V, width, |from, left| back(
                cells,
                &located,
                &mut scratch,
                &delta[from..],
                width,
                left,
                &mut out[from..]
            ))
        }
    }
}

/// Adds the transposed rows times `C` vectors of columns of delta.
///
/// # Safety
/// As for [`forward`], with `delta` for `weights`.
#[inline(always)]
unsafe fn back<V: Vector, const C: usize>(
    cells: &Cells<V::Scalar>,
    located: &Located<V::Scalar>,
    scratch: &mut Scratch<V>,
    delta: &[V::Scalar],
    width: usize,
    left: usize,
    out: &mut [V::Scalar],
) {
    // SAFETY: as in `forward`.
    unsafe {
        let last = last_mask::<V, C>(left);
        let zero = [V::splat(V::Scalar::ZERO); C];
        let mut panel = Panel::<V, C>(scratch.0.as_mut_ptr().cast());
        for (index, &q) in cells.order.iter().enumerate() {
            panel.set(index, load::<V, C>(out.as_ptr().add(q as usize * width), last));
        }
        for r in (0..located.count).step_by(GROUP) {
            located.prefetch(r + AHEAD);
            let group = located.group(r);
            let mut d = [zero; GROUP];
            for i in 0..GROUP.min(located.count - r) {
                d[i] = load::<V, C>(delta.as_ptr().add((r + i) * width), last);
            }
            let times = |i: usize, e: usize, mut sum: [V; C]| {
                let a = V::splat(*group[i].add(e));
                for c in 0..C {
                    sum[c] = a.mul_add(d[i][c], sum[c]);
                }
                sum
            };
            for e in 0..cells.head {
                // The old sum is added last, because it depends on the previous rows.
                let mut sum = zero;
                for i in 0..GROUP {
                    sum = times(i, e, sum);
                }
                panel.add(e, sum);
            }
            for e in cells.head..cells.entries {
                for i in 0..GROUP {
                    let index = cells.index(group[i], e);
                    panel.set(index, times(i, e, panel.at(index)));
                }
            }
        }
        for (index, &q) in cells.order.iter().enumerate() {
            store(out.as_mut_ptr().add(q as usize * width), panel.at(index), last);
        }
    }
}

/// Scratch space for a panel.
#[repr(align(64))]
struct Scratch<V>(MaybeUninit<[[V; 2]; MAX_COLS]>);

/// Weights or sums of all columns, in a [`Scratch`]: each row on cache lines of its own.
struct Panel<V: Vector, const C: usize>(*mut V::Scalar);

impl<V: Vector, const C: usize> Panel<V, C> {
    /// # Safety
    /// See [`Vector`]; `index` is below `MAX_COLS`.
    #[inline(always)]
    unsafe fn set(&mut self, index: usize, row: [V; C]) {
        for c in 0..C {
            // SAFETY: a scratch has `MAX_COLS` rows of two vectors, and C is at most 2.
            unsafe { row[c].store(self.0.add((index * C + c) * V::LANES)) };
        }
    }

    /// # Safety
    /// See [`Vector`]; the row has been set.
    #[inline(always)]
    unsafe fn at(&self, index: usize) -> [V; C] {
        // SAFETY: as in `set`, and a row that has been set is initialised.
        unsafe {
            let at = self.0.add(index * C * V::LANES);
            let mut row = [V::load(at); C];
            for c in 1..C {
                row[c] = V::load(at.add(c * V::LANES));
            }
            row
        }
    }

    /// # Safety
    /// See [`Vector`]; the row has been set.
    #[inline(always)]
    unsafe fn add(&mut self, index: usize, row: [V; C]) {
        // SAFETY: as for this function.
        unsafe {
            let mut sum = self.at(index);
            for c in 0..C {
                sum[c] = sum[c].add(row[c]);
            }
            self.set(index, sum);
        }
    }
}
