//! Products of short sparse rows with a matrix of few columns.
//!
//! Rows that are drawn at random come from far away, and what they cost is the cache lines that
//! they lie on. So the values of a row and their columns, a byte each, lie together on lines of
//! their own, and there is no table of where rows begin: all have room for as many entries. Columns
//! that most rows have are the head of every row, a value each and no number; they come first.
//! The weights are copied in that order, so that every row of them has lines of its own, too.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::dense::{last, load, store};
use super::fetch::fetch;
use super::sparse::Csr;
use super::vector::{Number, Vector};
use super::{Pages, Rows};

/// A byte tells so many columns apart.
const MOST: usize = 256;

/// So many rows are multiplied side by side, which hides how long a multiplication takes.
const SIDE: usize = 4;

/// Rows lie far apart: fetching one so many turns early hides how long that takes.
const AHEAD: usize = 24;

/// Rows that are looked up at a time.
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
    head: usize,      // columns of which every row has a value
    room: usize,      // values of every row, with those of the head
    per_row: usize,   // lines of every row
    lines: Vec<Line>, // of every row: its values, then the places in `order` of those not of the head
    values: PhantomData<T>,
}

impl Cells<f64> {
    /// Of a matrix; `None` if it has more than 256 columns or rows of very different lengths.
    pub fn new(matrix: Csr<f64>) -> Option<Cells<f64>> {
        let Csr { cols, starts, columns, values } = matrix;
        if cols > MOST {
            return None;
        }
        assert!(columns.iter().all(|&q| (q as usize) < cols), "a column beyond the matrix");
        let rows = starts.len() - 1;
        let (order, head) = by_frequency(columns, cols, rows);
        let mut places = [0; MOST];
        order.iter().enumerate().for_each(|(place, &q)| places[q as usize] = place);
        let place = |e: usize| places[columns[e] as usize];
        let tail = |pair: &[usize]| (pair[0]..pair[1]).filter(|&e| place(e) >= head).count();
        let room = head + starts.windows(2).map(tail).max()?;
        if 2 * room * rows > 3 * values.len() {
            return None;
        }
        let mut cells = Cells::empty(order, head, room, rows);
        for (row, pair) in starts.windows(2).enumerate() {
            let mut end = head;
            for e in pair[0]..pair[1] {
                let i = if place(e) < head { place(e) } else { end };
                end += usize::from(place(e) >= head);
                // SAFETY: there is room for the head and the longest tail.
                unsafe { cells.set(row, i, values[e], place(e)) }
            }
        }
        Some(cells)
    }
}

/// All columns, those that at least three of four rows have first, and how many these are.
fn by_frequency(columns: &[u32], cols: usize, rows: usize) -> (Vec<u8>, usize) {
    let mut counts = [0; MOST];
    columns.iter().for_each(|&q| counts[q as usize] += 1);
    let frequent = |q: &usize| 4 * counts[*q] >= 3 * rows;
    let (head, rest): (Vec<usize>, Vec<usize>) = (0..cols).partition(frequent);
    (head.iter().chain(&rest).map(|&q| q as u8).collect(), head.len())
}

impl<T: Copy> Cells<T> {
    /// With room for entries that are all zero.
    fn empty(order: Vec<u8>, head: usize, room: usize, rows: usize) -> Cells<T> {
        let per_row = (room * size_of::<T>() + room - head).div_ceil(64);
        let lines = vec![Line { _bytes: [0; 64] }; rows * per_row];
        Cells { order, head, room, per_row, lines, values: PhantomData }
    }

    /// The same matrix in another precision.
    pub fn cast<U: Copy>(&self, of: impl Fn(T) -> U) -> Cells<U> {
        let rows = self.lines.len() / self.per_row.max(1);
        let mut cells = Cells::empty(self.order.clone(), self.head, self.room, rows);
        for (row, i) in (0..rows).flat_map(|row| (0..self.room).map(move |i| (row, i))) {
            let values = self.row(row).as_ptr().cast::<T>();
            // SAFETY: both have `room` values in a row, and places of those after the head.
            unsafe {
                let place = if i < self.head { i } else { self.place(values, i) };
                cells.set(row, i, of(*values.add(i)), place);
            }
        }
        cells
    }

    /// Some rows, in the given order, in the same form.
    pub fn select(&self, rows: &[u32]) -> Cells<T> {
        let lines = rows.iter().flat_map(|&row| self.row(row as usize)).copied().collect();
        Cells { lines, order: self.order.clone(), ..*self }
    }

    /// # Safety
    /// i must be below `room`.
    unsafe fn set(&mut self, row: usize, i: usize, value: T, place: usize) {
        let lines = &mut self.lines[row * self.per_row..(row + 1) * self.per_row];
        let values = lines.as_mut_ptr().cast::<T>();
        // SAFETY: lines hold `room` values and then places of those after the head.
        unsafe {
            values.add(i).write(value);
            if i >= self.head {
                values.add(self.room).cast::<u8>().add(i - self.head).write(place as u8);
            }
        }
    }

    /// Where its numbers lie.
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

    /// The place in `order` of value i of a row.
    ///
    /// # Safety
    /// i must be below `room` and not of the head.
    #[inline(always)]
    unsafe fn place(&self, values: *const T, i: usize) -> usize {
        unsafe { *values.add(self.room).cast::<u8>().add(i - self.head) as usize }
    }
}

/// Where some rows are.
struct Spots<T> {
    at: [*const T; CHUNK + AHEAD], // their values, and after the last those of any rows
    rows: usize,
    lines: usize, // of every row
}

impl<T: Copy> Spots<T> {
    #[inline(always)]
    fn new(cells: &Cells<T>) -> Self {
        let first = cells.lines.as_ptr().cast();
        Spots { at: [first; CHUNK + AHEAD], rows: 0, lines: cells.per_row }
    }

    /// Looks up at most `CHUNK` rows; the first are fetched meanwhile.
    #[inline(always)]
    fn find(&mut self, cells: &Cells<T>, rows: Rows) {
        self.rows = rows.len();
        let first = AHEAD.min(rows.len());
        self.find_some(cells, rows, 0..first);
        (0..AHEAD).step_by(SIDE).for_each(|r| self.fetch(r));
        self.find_some(cells, rows, first..rows.len());
    }

    #[inline(always)]
    fn find_some(&mut self, cells: &Cells<T>, rows: Rows, range: Range<usize>) {
        let mut most = 0;
        let numbers = &rows.numbers[range.clone()];
        for (at, row) in self.at[range].iter_mut().zip(Rows { numbers, ..rows }.iter()) {
            most = row.max(most);
            *at = cells.lines.as_ptr().wrapping_add(row * cells.per_row).cast();
        }
        assert!((most + 1) * cells.per_row <= cells.lines.len(), "a row beyond the matrix");
    }

    /// Asks for the rows from the r-th on.
    #[inline(always)]
    fn fetch(&self, r: usize) {
        let side = self.side(r);
        for line in 0..self.lines {
            for i in 0..SIDE {
                let line = side[i].cast::<Line>().wrapping_add(line);
                // SAFETY: a line of the row.
                fetch(unsafe { std::slice::from_raw_parts(line, 1) });
            }
        }
    }

    /// The rows from the r-th on.
    #[inline(always)]
    fn side(&self, r: usize) -> [*const T; SIDE] {
        let mut side = [self.at[r]; SIDE];
        side.copy_from_slice(&self.at[r..r + SIDE]);
        side
    }
}

/// Calls `$run` for all columns of the weights, one or two vectors at a time: room for more would
/// take so much of the stack that it is felt.
macro_rules! each_panel {
    ($v:ty, $width:ident, |$from:ident, $left:ident| $run:ident($($arg:expr),*)) => {
        for $from in (0..$width).step_by(2 * <$v>::LANES) {
            let $left = $width - $from;
            match $left > <$v>::LANES {
                true => $run::<$v, 2>($($arg),*),
                false => $run::<$v, 1>($($arg),*),
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
    let mut spots = Spots::new(cells);
    let mut space = Space::<V>(MaybeUninit::uninit());
    for (numbers, out) in rows.numbers.chunks(CHUNK).zip(out.chunks_mut(CHUNK * width)) {
        spots.find(cells, Rows { numbers, ..rows });
        unsafe {
            each_panel!(V, width, |from, left| forward(
                cells,
                &spots,
                &mut space,
                &weights[from..],
                width,
                left,
                &mut out[from..]
            ))
        }
    }
}

/// `C` vectors of columns of the weights.
#[inline(always)]
unsafe fn forward<V: Vector, const C: usize>(
    cells: &Cells<V::Scalar>,
    spots: &Spots<V::Scalar>,
    space: &mut Space<V>,
    weights: &[V::Scalar],
    width: usize,
    left: usize,
    out: &mut [V::Scalar],
) {
    // SAFETY: all columns are copied before they are read; the mask keeps loads and stores within
    // `width`; a row has `room` entries.
    unsafe {
        let last = last::<V, C>(left);
        let mut panel = Panel::<V, C>(space.0.as_mut_ptr().cast());
        for (place, &q) in cells.order.iter().enumerate() {
            panel.set(place, load::<V, C>(weights.as_ptr().add(q as usize * width), last));
        }
        for r in (0..spots.rows).step_by(SIDE) {
            spots.fetch(r + AHEAD);
            let side = spots.side(r);
            let mut sums = [[V::splat(V::Scalar::ZERO); C]; SIDE];
            let mut add = |i: usize, e: usize, w: [V; C]| {
                let a = V::splat(*side[i].add(e));
                for c in 0..C {
                    sums[i][c] = a.mul_add(w[c], sums[i][c]);
                }
            };
            for e in 0..cells.head {
                let w = panel.at(e);
                for i in 0..SIDE {
                    add(i, e, w);
                }
            }
            for e in cells.head..cells.room {
                for i in 0..SIDE {
                    add(i, e, panel.at(cells.place(side[i], e)));
                }
            }
            for i in 0..SIDE {
                if r + i < spots.rows {
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
    let mut spots = Spots::new(cells);
    let mut space = Space::<V>(MaybeUninit::uninit());
    for (numbers, delta) in rows.numbers.chunks(CHUNK).zip(delta.chunks(CHUNK * width)) {
        spots.find(cells, Rows { numbers, ..rows });
        unsafe {
            each_panel!(V, width, |from, left| back(
                cells,
                &spots,
                &mut space,
                &delta[from..],
                width,
                left,
                &mut out[from..]
            ))
        }
    }
}

/// `C` vectors of columns of delta.
#[inline(always)]
unsafe fn back<V: Vector, const C: usize>(
    cells: &Cells<V::Scalar>,
    spots: &Spots<V::Scalar>,
    space: &mut Space<V>,
    delta: &[V::Scalar],
    width: usize,
    left: usize,
    out: &mut [V::Scalar],
) {
    // SAFETY: as in `forward`.
    unsafe {
        let last = last::<V, C>(left);
        let zero = [V::splat(V::Scalar::ZERO); C];
        let mut panel = Panel::<V, C>(space.0.as_mut_ptr().cast());
        for (place, &q) in cells.order.iter().enumerate() {
            panel.set(place, load::<V, C>(out.as_ptr().add(q as usize * width), last));
        }
        for r in (0..spots.rows).step_by(SIDE) {
            spots.fetch(r + AHEAD);
            let side = spots.side(r);
            let mut d = [zero; SIDE];
            for i in 0..SIDE.min(spots.rows - r) {
                d[i] = load::<V, C>(delta.as_ptr().add((r + i) * width), last);
            }
            let times = |i: usize, e: usize, mut sum: [V; C]| {
                let a = V::splat(*side[i].add(e));
                for c in 0..C {
                    sum[c] = a.mul_add(d[i][c], sum[c]);
                }
                sum
            };
            for e in 0..cells.head {
                // Added to what was there at the end only: that waits for the rows before.
                let mut sum = zero;
                for i in 0..SIDE {
                    sum = times(i, e, sum);
                }
                panel.add(e, sum);
            }
            for e in cells.head..cells.room {
                for i in 0..SIDE {
                    let place = cells.place(side[i], e);
                    panel.set(place, times(i, e, panel.at(place)));
                }
            }
        }
        for (place, &q) in cells.order.iter().enumerate() {
            store(out.as_mut_ptr().add(q as usize * width), panel.at(place), last);
        }
    }
}

/// Room for a panel.
#[repr(align(64))]
struct Space<V>(MaybeUninit<[[V; 2]; MOST]>);

/// Weights or sums of all columns, every row on cache lines of its own.
struct Panel<V: Vector, const C: usize>(*mut V::Scalar);

impl<V: Vector, const C: usize> Panel<V, C> {
    /// # Safety
    /// Below `MOST`.
    #[inline(always)]
    unsafe fn set(&mut self, place: usize, row: [V; C]) {
        for c in 0..C {
            unsafe { row[c].store(self.0.add((place * C + c) * V::LANES)) };
        }
    }

    /// # Safety
    /// The row was set.
    #[inline(always)]
    unsafe fn at(&self, place: usize) -> [V; C] {
        unsafe {
            let at = self.0.add(place * C * V::LANES);
            let mut row = [V::load(at); C];
            for c in 1..C {
                row[c] = V::load(at.add(c * V::LANES));
            }
            row
        }
    }

    /// # Safety
    /// The row was set.
    #[inline(always)]
    unsafe fn add(&mut self, place: usize, row: [V; C]) {
        unsafe {
            let mut sum = self.at(place);
            for c in 0..C {
                sum[c] = sum[c].add(row[c]);
            }
            self.set(place, sum);
        }
    }
}
