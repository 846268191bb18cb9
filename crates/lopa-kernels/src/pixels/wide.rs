//! Products with many columns of weights: a block of rows becomes numbers, and lanes are columns of the weights, as for dense
//! rows. The weights that belong to a block stay in the cache while all rows pass.

use super::super::vector::{Number, Vector};
use super::super::{Rows, dense};
use super::Pixels;

/// Rows and columns of a block.
const ROWS: usize = 64;
const COLS: usize = 128;

/// A block: `unit · (byte − shift)`.
struct Block<T>([[T; COLS]; ROWS]);

impl<T: Number> Block<T> {
    fn new() -> Block<T> {
        Block([[T::ZERO; COLS]; ROWS])
    }

    /// The first `count` numbers of each row.
    #[inline(always)]
    fn rows(&self, count: usize) -> [&[T]; ROWS] {
        self.0.each_ref().map(|row| &row[..count])
    }

    /// Computes the `count` numbers of each row from column `first` on.
    ///
    /// # Safety
    /// See [`Vector`]; there are at most `ROWS` rows and `COLS` columns, and the rows have these columns.
    #[inline(always)]
    unsafe fn fill<V: Vector<Scalar = T>>(
        &mut self,
        pixels: &Pixels<T>,
        rows: Rows,
        first: usize,
        count: usize,
    ) {
        let (addresses, shift) = (pixels.addresses::<ROWS>(rows), &pixels.shift[first..][..count]);
        let mut last_shift = [T::ZERO; 16];
        let whole = count / V::LANES * V::LANES;
        last_shift[..count - whole].copy_from_slice(&shift[whole..]);
        // SAFETY: a vector of bytes and one of the shift are within the `count` columns, or within copies of the last ones; a
        // row of the block has `COLS` numbers, a multiple of `LANES`.
        unsafe {
            let unit = V::splat(pixels.unit);
            for (address, to) in addresses[..rows.len()].iter().zip(&mut self.0) {
                let (from, to) = (address.add(first), to.as_mut_ptr());
                for q in (0..whole).step_by(V::LANES) {
                    let shift = V::load(shift.as_ptr().add(q));
                    V::load_bytes(from.add(q)).sub(shift).mul(unit).store(to.add(q));
                }
                if whole < count {
                    let mut bytes = [0; 16];
                    bytes.as_mut_ptr().copy_from_nonoverlapping(from.add(whole), count - whole);
                    let shift = V::load(last_shift.as_ptr());
                    V::load_bytes(bytes.as_ptr()).sub(shift).mul(unit).store(to.add(whole));
                }
            }
        }
    }
}

/// Columns of blocks: the first, and how many; one block of none if there are none.
fn blocks(cols: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..cols.max(1)).step_by(COLS).map(move |first| (first, COLS.min(cols - first)))
}

/// As [`super::product`].
///
/// # Safety
/// As for that function.
#[inline(always)]
pub unsafe fn product<V: Vector>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    let mut block = Block::new();
    for (first, count) in blocks(pixels.shift.len()) {
        for (rows, out) in rows.chunks(ROWS).zip(out.chunks_mut(ROWS * width)) {
            let weights = &weights[first * width..][..count * width];
            // SAFETY: shapes as for this function, of some rows and columns.
            unsafe {
                block.fill::<V>(pixels, rows, first, count);
                let numbers = &block.rows(count)[..rows.len()];
                dense::product::<V>(numbers, weights, width, first > 0, out);
            }
        }
    }
}

/// As [`super::add_transposed`].
///
/// # Safety
/// As for that function.
#[inline(always)]
pub unsafe fn add_transposed<V: Vector>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    let mut block = Block::new();
    for (first, count) in blocks(pixels.shift.len()) {
        let out = &mut out[first * width..][..count * width];
        for (rows, delta) in rows.chunks(ROWS).zip(delta.chunks(ROWS * width)) {
            // SAFETY: shapes as for this function, of some rows and columns.
            unsafe {
                block.fill::<V>(pixels, rows, first, count);
                dense::add_transposed::<V>(&block.rows(count)[..rows.len()], delta, width, out);
            }
        }
    }
}
