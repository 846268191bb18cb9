//! Products of sparse rows of few different values, eight columns at a time.
//!
//! Pixels that are not zero lie together: a row is kept as the blocks of eight columns that hold
//! any, a byte for each value. Rows that are drawn at random come from far away, and what they
//! cost is how long they are.
//!
//! Products with a matrix go block by block, not row by row: the eight rows of weights that belong
//! to a block stay in registers while all rows of a batch that have the block are multiplied.

use std::mem::MaybeUninit;
use std::sync::Arc;

use super::{Pages, Rows};
use super::dense::{last, load, store};
use super::fetch::fetch;
use super::sparse::Csr;
use super::vector::{Number, Vector};

/// Columns in a block.
const EIGHT: usize = 8;
/// So many blocks there may be.
const MOST: usize = 512;
/// So many rows are multiplied at a time: a bit tells each.
const BATCH: usize = 64;

/// A sparse matrix in blocks.
#[derive(Debug, Clone)]
pub struct Blocks<T> {
    layout: Arc<Layout>,
    list: Box<[T; 256]>,
    unit: Option<T>, // what all values are multiples of, if their places say how many times
}

/// Where the values are; the same in every precision.
#[derive(Debug)]
struct Layout {
    cols: usize,
    starts: Vec<usize>, // where the blocks of each row begin, and where the last end
    numbers: Vec<u16>,  // of the blocks, increasing within a row, below ⌈cols / 8⌉
    places: Vec<[u8; EIGHT]>, // of the values in the list; one more than there are blocks
}

impl Blocks<f64> {
    /// Of a matrix whose columns increase within each row; `None` if it has too many columns, too
    /// many different values, or blocks that are mostly empty.
    pub fn new(matrix: Csr<f64>) -> Option<Blocks<f64>> {
        let Csr { cols, starts: rows, columns, values } = matrix;
        if cols == 0 || cols > MOST * EIGHT {
            return None;
        }
        let mut listing = Listing::new(values)?;
        let (mut starts, mut numbers) = (Vec::with_capacity(rows.len()), Vec::<u16>::new());
        let mut places: Vec<[u8; EIGHT]> = Vec::new();
        starts.push(0);
        for pair in rows.windows(2) {
            let mut open = None;
            for e in pair[0]..pair[1] {
                let (block, column) = (columns[e] / EIGHT as u32, columns[e] as usize % EIGHT);
                assert!((columns[e] as usize) < cols, "a column beyond the matrix");
                if open != Some(block) {
                    assert!(open < Some(block), "columns increase");
                    open = Some(block);
                    numbers.push(block as u16);
                    places.push([0; EIGHT]);
                }
                places.last_mut().expect("one was pushed")[column] = listing.place(values[e]);
            }
            starts.push(numbers.len());
        }
        if values.len() < 2 * numbers.len() {
            return None;
        }
        places.push([0; EIGHT]); // so that two blocks can be read where one is left
        let layout = Arc::new(Layout { cols, starts, numbers, places });
        Some(Blocks { layout, list: Box::new(listing.values), unit: listing.unit })
    }
}

impl<T: Copy> Blocks<T> {
    /// The same matrix in another precision.
    pub fn cast<U>(&self, of: impl Fn(T) -> U) -> Blocks<U> {
        let list = Box::new(self.list.map(&of));
        Blocks { layout: self.layout.clone(), list, unit: self.unit.map(of) }
    }

    /// Some rows, in the given order, in the same form.
    pub fn select(&self, rows: &[u32]) -> Blocks<T> {
        let Layout { cols, starts, numbers, places } = &*self.layout;
        let (mut ends, mut some_numbers, mut some) = (vec![0], Vec::new(), Vec::new());
        for &row in rows {
            let blocks = starts[row as usize]..starts[row as usize + 1];
            some_numbers.extend_from_slice(&numbers[blocks.clone()]);
            some.extend_from_slice(&places[blocks]);
            ends.push(some.len());
        }
        some.push([0; EIGHT]);
        let layout = Layout { cols: *cols, starts: ends, numbers: some_numbers, places: some };
        Blocks { layout: Arc::new(layout), list: self.list.clone(), unit: self.unit }
    }

    /// Where its numbers lie.
    pub fn pages(&self) -> Pages {
        let Layout { starts, numbers, places, .. } = &*self.layout;
        Pages::default().with(starts).with(numbers).with(places)
    }

    /// How many columns there are.
    pub fn cols(&self) -> usize {
        self.layout.cols
    }

    /// Whether values are whole multiples of one number: products with one column need that.
    pub fn has_unit(&self) -> bool {
        self.unit.is_some()
    }
}

/// The different values of a matrix, if they are at most 255 beside zero, which has place 0.
struct Listing {
    values: [f64; 256],
    sorted: Vec<(f64, u8)>,
    seen: Vec<(f64, u8)>, // by the first bits of the hash of a value: most are found here
    unit: Option<f64>,
}

impl Listing {
    fn new(all: &[f64]) -> Option<Listing> {
        let (mut sorted, mut seen): (Vec<f64>, _) = (Vec::new(), vec![0.0; SEEN]);
        for &value in all {
            if std::mem::replace(&mut seen[slot(value)], value) == value {
                continue;
            }
            let at = sorted.partition_point(|&known| known < value);
            if sorted.get(at) != Some(&value) {
                if sorted.len() == 255 || !value.is_finite() {
                    return None;
                }
                sorted.insert(at, value);
            }
        }
        let unit = unit(&sorted);
        let place = |(i, &value): (usize, &f64)| match unit {
            Some(unit) => (value, (value / unit).round() as u8),
            None => (value, i as u8 + 1),
        };
        let sorted: Vec<(f64, u8)> = sorted.iter().enumerate().map(place).collect();
        let mut values = [0.0; 256];
        sorted.iter().for_each(|&(value, place)| values[place as usize] = value);
        Some(Listing { values, sorted, seen: vec![(0.0, 0); SEEN], unit })
    }

    fn place(&mut self, value: f64) -> u8 {
        let seen = &mut self.seen[slot(value)];
        if seen.0 != value {
            let at = self.sorted.partition_point(|&(known, _)| known < value);
            *seen = self.sorted[at];
        }
        seen.1
    }
}

const SEEN: usize = 4096;

fn slot(value: f64) -> usize {
    (value.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize
}

/// The number that all are whole multiples of, up to 255 times and to rounding.
fn unit(sorted: &[f64]) -> Option<f64> {
    let (&least, &most) = (sorted.first()?, sorted.last()?);
    let is_multiple = |value: f64, unit: f64| {
        ((value / unit).round() * unit - value).abs() <= 2.0 * f64::EPSILON * value
    };
    let units = (1..=255).map(|times| most / f64::from(times));
    units.filter(|_| least > 0.0).find(|&unit| sorted.iter().all(|&value| is_multiple(value, unit)))
}

/// Which of some rows have each block, and where a row's next block is.
struct Turns {
    rows: [u64; MOST],
    next: [usize; BATCH],
}

impl Turns {
    #[inline(always)]
    fn new(layout: &Layout, rows: Rows) -> Turns {
        let mut turns = Turns { rows: [0; MOST], next: [0; BATCH] };
        let mut ends = [0; BATCH];
        for (r, row) in rows.iter().enumerate() {
            (turns.next[r], ends[r]) = (layout.starts[row], layout.starts[row + 1]);
        }
        for r in 0..rows.len() {
            fetch(&layout.numbers[turns.next[r]..ends[r]]);
        }
        for r in 0..rows.len() {
            fetch(&layout.places[turns.next[r]..ends[r]]);
        }
        for r in 0..rows.len() {
            for &number in &layout.numbers[turns.next[r]..ends[r]] {
                turns.rows[number as usize] |= 1 << r;
            }
        }
        turns
    }
}

/// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`.
///
/// # Safety
/// See [`Vector`]; `weights` are cols × width, `out` rows × width.
#[inline(always)]
pub unsafe fn product<V: Vector>(
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    let batches = rows.numbers.chunks(BATCH).zip(out.chunks_mut(BATCH * width));
    for (numbers, out) in batches {
        let turns = Turns::new(&blocks.layout, Rows { numbers, ..rows });
        for from in (0..width).step_by(2 * V::LANES) {
            unsafe {
                match width - from > V::LANES {
                    true => forward::<V, 2>(blocks, &turns, weights, width, from, out),
                    false => forward::<V, 1>(blocks, &turns, weights, width, from, out),
                }
            }
        }
    }
}

/// Against `C` vectors of columns from `from` on.
#[inline(always)]
unsafe fn forward<V: Vector, const C: usize>(
    blocks: &Blocks<V::Scalar>,
    turns: &Turns,
    weights: &[V::Scalar],
    width: usize,
    from: usize,
    out: &mut [V::Scalar],
) {
    // SAFETY: the mask keeps loads and stores within `width`, and a block's columns within `cols`;
    // a row has as many blocks as its bits say.
    unsafe {
        let last = last::<V, C>(width - from);
        let zero = [V::splat(V::Scalar::ZERO); C];
        let (mut sums, mut next) = ([zero; BATCH], turns.next);
        for first in (0..blocks.layout.cols).step_by(EIGHT) {
            let mut rows = turns.rows[first / EIGHT];
            if rows == 0 {
                continue;
            }
            let mut w = [zero; EIGHT];
            for i in 0..EIGHT.min(blocks.layout.cols - first) {
                w[i] = load::<V, C>(weights.as_ptr().add((first + i) * width + from), last);
            }
            while rows != 0 {
                let r = rows.trailing_zeros() as usize;
                rows &= rows - 1;
                let places = blocks.layout.places.get_unchecked(next[r]);
                next[r] += 1;
                let mut sum = sums[r];
                for i in 0..EIGHT {
                    let a = V::splat(blocks.list[places[i] as usize]);
                    for c in 0..C {
                        sum[c] = a.mul_add(w[i][c], sum[c]);
                    }
                }
                sums[r] = sum;
            }
        }
        for (r, out) in out.chunks_exact_mut(width).enumerate() {
            store(out.as_mut_ptr().add(from), sums[r], last);
        }
    }
}

/// `out[q, :] += Σ_r a[row_r, q] delta[r, :]`.
///
/// # Safety
/// See [`Vector`]; `delta` is rows × width, `out` cols × width.
#[inline(always)]
pub unsafe fn add_transposed<V: Vector>(
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    for (numbers, delta) in rows.numbers.chunks(BATCH).zip(delta.chunks(BATCH * width)) {
        let turns = Turns::new(&blocks.layout, Rows { numbers, ..rows });
        for from in (0..width).step_by(2 * V::LANES) {
            unsafe {
                match width - from > V::LANES {
                    true => back::<V, 2>(blocks, &turns, delta, width, from, out),
                    false => back::<V, 1>(blocks, &turns, delta, width, from, out),
                }
            }
        }
    }
}

/// Against `C` vectors of columns from `from` on.
#[inline(always)]
unsafe fn back<V: Vector, const C: usize>(
    blocks: &Blocks<V::Scalar>,
    turns: &Turns,
    delta: &[V::Scalar],
    width: usize,
    from: usize,
    out: &mut [V::Scalar],
) {
    // SAFETY: as in `forward`.
    unsafe {
        let last = last::<V, C>(width - from);
        let zero = [V::splat(V::Scalar::ZERO); C];
        let mut next = turns.next;
        for first in (0..blocks.layout.cols).step_by(EIGHT) {
            let mut rows = turns.rows[first / EIGHT];
            if rows == 0 {
                continue;
            }
            let (count, to) =
                (EIGHT.min(blocks.layout.cols - first), out.as_mut_ptr().add(first * width + from));
            // All are loaded before one is stored: a load close to a masked store would wait for it.
            let mut sums = [zero; EIGHT];
            for i in 0..count {
                sums[i] = load::<V, C>(to.add(i * width), last);
            }
            while rows != 0 {
                let r = rows.trailing_zeros() as usize;
                rows &= rows - 1;
                let places = blocks.layout.places.get_unchecked(next[r]);
                next[r] += 1;
                let d = load::<V, C>(delta.as_ptr().add(r * width + from), last);
                for i in 0..EIGHT {
                    let a = V::splat(blocks.list[places[i] as usize]);
                    for c in 0..C {
                        sums[i][c] = a.mul_add(d[c], sums[i][c]);
                    }
                }
            }
            for i in 0..count {
                store(to.add(i * width), sums[i], last);
            }
        }
    }
}

/// One column of weights or of sums, with whole blocks.
#[repr(align(64))]
struct Column<T>([MaybeUninit<T>; MOST * EIGHT]);

impl<T: Number> Column<T> {
    /// With zeros to the end of its last block.
    #[inline(always)]
    fn of(numbers: &[T]) -> Column<T> {
        let mut column = Column([MaybeUninit::uninit(); MOST * EIGHT]);
        let last = numbers.len().next_multiple_of(EIGHT).saturating_sub(EIGHT);
        column.0[last..last + EIGHT].fill(MaybeUninit::new(T::ZERO));
        column.0[..numbers.len()].write_copy_of_slice(numbers);
        column
    }
}

/// `out[r] = Σ_q a[row_r, q] weights[q]`.
///
/// # Safety
/// See [`Vector`]; there are `cols` weights, and values have a unit.
#[inline(always)]
pub unsafe fn dots<V: Vector>(
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    let column = Column::of(weights);
    let unit = blocks.unit.unwrap_or(V::Scalar::ZERO);
    for (r, (row, out)) in rows.iter().zip(out).enumerate() {
        blocks.layout.fetch_row(rows.at(r + AHEAD), rows.at(r + 2 * AHEAD));
        // SAFETY: numbers are below ⌈cols / 8⌉, and there is a block after the last.
        unsafe {
            let mut sum = V::splat(V::Scalar::ZERO);
            let mut e = blocks.layout.starts[row];
            let end = blocks.layout.starts[row + 1];
            while e < end {
                let a = V::bytes(blocks.layout.places.as_ptr().add(e).cast());
                let w = |e: usize| {
                    let number = *blocks.layout.numbers.get_unchecked(e) as usize;
                    column.0.as_ptr().add(number * EIGHT).cast::<V::Scalar>()
                };
                sum = match V::LANES > EIGHT {
                    true if e + 1 == end => a.mul_add(V::load_part(w(e), V::mask(EIGHT)), sum),
                    true => a.mul_add(V::load_eights([w(e), w(e + 1)]), sum),
                    false => a.mul_add(V::load(w(e)), sum),
                };
                e += V::LANES / EIGHT;
            }
            *out = sum.mul(V::splat(unit)).total();
        }
    }
}

/// `out[q] += Σ_r a[row_r, q] delta[r]`.
///
/// # Safety
/// See [`Vector`]; `out` has `cols` numbers, and values have a unit.
#[inline(always)]
pub unsafe fn add_sums<V: Vector>(
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    let mut column = Column::of(out);
    for (r, (row, &delta)) in rows.iter().zip(delta).enumerate() {
        blocks.layout.fetch_row(rows.at(r + AHEAD), rows.at(r + 2 * AHEAD));
        // SAFETY: as in `dots`.
        unsafe {
            let d = V::splat(delta).mul(V::splat(blocks.unit.unwrap_or(V::Scalar::ZERO)));
            let mut e = blocks.layout.starts[row];
            let end = blocks.layout.starts[row + 1];
            while e < end {
                let a = V::bytes(blocks.layout.places.as_ptr().add(e).cast());
                let mut to = |e: usize| {
                    let number = *blocks.layout.numbers.get_unchecked(e) as usize;
                    column.0.as_mut_ptr().add(number * EIGHT).cast::<V::Scalar>()
                };
                match V::LANES > EIGHT {
                    true if e + 1 == end => {
                        let (at, mask) = (to(e), V::mask(EIGHT));
                        a.mul_add(d, V::load_part(at, mask)).store_part(at, mask);
                    }
                    true => {
                        let at = [to(e), to(e + 1)];
                        a.mul_add(d, V::load_eights([at[0], at[1]])).store_eights(at);
                    }
                    false => {
                        let at = to(e);
                        a.mul_add(d, V::load(at)).store(at);
                    }
                }
                e += V::LANES / EIGHT;
            }
        }
    }
    // SAFETY: as many were written in the beginning.
    out.copy_from_slice(unsafe { column.0[..out.len()].assume_init_ref() });
}

/// Rows lie far apart: fetching one so many turns early hides how long that takes.
const AHEAD: usize = 8;

impl Layout {
    /// Asks for the blocks of a row, and for where those of a later one are.
    #[inline(always)]
    fn fetch_row(&self, row: Option<usize>, later: Option<usize>) {
        if let Some(later) = later {
            fetch(&self.starts[later..=later + 1]);
        }
        if let Some(row) = row {
            let (first, end) = (self.starts[row], self.starts[row + 1]);
            fetch(&self.numbers[first..end]);
            fetch(&self.places[first..end]);
        }
    }
}
