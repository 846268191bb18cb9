//! Products with several columns, block by block instead of row by row: the four rows of weights of
//! a block stay in registers while all rows of a batch that have the block are multiplied.

use super::super::Rows;
use super::super::dense::{last_mask, load, panel, store};
use super::super::prefetch::prefetch;
use super::super::vector::{Number, Vector};
use super::{Blocks, FOUR, Layout, WORD, WORDS};

/// Rows multiplied at a time, one bit of a word each.
const BATCH: usize = 64;

/// Up to `BATCH` rows.
struct Batch {
    /// For each block, in words of the bitmap, the rows that have it: bit r is row r.
    rows: [[u64; WORD]; WORDS],
    /// The addresses of the rows' codes.
    codes: [*const [u8; FOUR]; BATCH],
}

impl Batch {
    #[inline(always)]
    fn new(layout: &Layout, rows: Rows) -> Batch {
        let mut batch = Batch { rows: [[0; WORD]; WORDS], codes: [std::ptr::null(); BATCH] };
        for (r, row) in rows.iter().enumerate() {
            let row = layout.row(row);
            (0..WORDS).for_each(|word| batch.rows[word][r] = row.word(word));
            batch.codes[r] = row.codes.as_ptr();
        }
        batch.rows[..layout.map_words()].iter_mut().for_each(transpose);
        batch
    }
}

/// Transposes 64 × 64 bits: bit r of word b becomes bit b of word r.
#[inline(always)]
fn transpose(bits: &mut [u64; WORD]) {
    swap::<32>(bits, 0x0000_0000_ffff_ffff);
    swap::<16>(bits, 0x0000_ffff_0000_ffff);
    swap::<8>(bits, 0x00ff_00ff_00ff_00ff);
    swap::<4>(bits, 0x0f0f_0f0f_0f0f_0f0f);
    swap::<2>(bits, 0x3333_3333_3333_3333);
    swap::<1>(bits, 0x5555_5555_5555_5555);
}

/// A step of transposing bits: swaps the off-diagonal quarters of each 2J × 2J square.
#[inline(always)]
fn swap<const J: usize>(bits: &mut [u64; WORD], mask: u64) {
    for pair in bits.chunks_exact_mut(2 * J) {
        let (low, high) = pair.split_at_mut(J);
        for i in 0..J {
            let change = ((low[i] >> J) ^ high[i]) & mask;
            high[i] ^= change;
            low[i] ^= change << J;
        }
    }
}

/// The rows in batches; while one is multiplied, the next is prefetched.
#[inline(always)]
fn batches<'a>(layout: &'a Layout, rows: Rows<'a>) -> impl Iterator<Item = Batch> + 'a {
    let prefetch_batch = move |b: usize| {
        let numbers = rows.numbers.chunks(BATCH).nth(b).unwrap_or_default();
        for row in (Rows { numbers, ..rows }).iter() {
            prefetch(layout.words_of(row));
        }
    };
    rows.numbers.chunks(BATCH).enumerate().map(move |(b, numbers)| {
        if b == 0 {
            prefetch_batch(0);
        }
        prefetch_batch(b + 1);
        Batch::new(layout, Rows { numbers, ..rows })
    })
}

/// Calls `$run` for all columns of the weights, one panel at a time.
macro_rules! each_panel {
    ($v:ty, $width:ident, |$from:ident| $run:ident($($arg:expr),*)) => {
        for $from in (0..$width).step_by(panel::<$v>($width) * <$v>::LANES) {
            match panel::<$v>($width - $from) {
                4 if <$v>::FUSED => $run::<$v, 4>($($arg),*),
                3 if <$v>::FUSED => $run::<$v, 3>($($arg),*),
                2 if <$v>::FUSED => $run::<$v, 2>($($arg),*),
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
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    for (batch, out) in batches(&blocks.layout, rows).zip(out.chunks_mut(BATCH * width)) {
        // SAFETY: shapes as for this function; the batch has rows of these blocks.
        unsafe {
            each_panel!(V, width, |from| forward(blocks, &batch, weights, width, from, out));
        }
    }
}

/// Multiplies a batch with `C` vectors of columns of the weights from `from` on.
///
/// # Safety
/// Shapes as in [`product`]; `batch` has rows of `blocks`, and `out` one row for each; more than
/// `C - 1` vectors of columns are left from `from` on.
#[inline(always)]
unsafe fn forward<V: Vector, const C: usize>(
    blocks: &Blocks<V::Scalar>,
    batch: &Batch,
    weights: &[V::Scalar],
    width: usize,
    from: usize,
    out: &mut [V::Scalar],
) {
    let layout = &*blocks.layout;
    // SAFETY: the mask keeps loads and stores within `width`, and a block's columns are kept within
    // `cols`; a row has as many blocks of codes as bits set.
    unsafe {
        let last = last_mask::<V, C>(width - from);
        let zero = [V::splat(V::Scalar::ZERO); C];
        let (mut sums, mut next) = ([zero; BATCH], batch.codes);
        for word in 0..layout.map_words() {
            for (b, &rows) in batch.rows[word].iter().enumerate() {
                if rows == 0 {
                    continue;
                }
                let mut rows = rows;
                let first = (word * WORD + b) * FOUR;
                let mut w = [zero; FOUR];
                for i in 0..FOUR.min(layout.cols - first) {
                    w[i] = load::<V, C>(weights.as_ptr().add((first + i) * width + from), last);
                }
                while rows != 0 {
                    let r = rows.trailing_zeros() as usize;
                    rows &= rows - 1;
                    let a = blocks.take::<V>(&mut next[r]);
                    let mut sum = sums[r];
                    for i in 0..FOUR {
                        for c in 0..C {
                            sum[c] = a[i].mul_add(w[i][c], sum[c]);
                        }
                    }
                    sums[r] = sum;
                }
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
    for (batch, delta) in batches(&blocks.layout, rows).zip(delta.chunks(BATCH * width)) {
        // SAFETY: shapes as for this function; the batch has rows of these blocks.
        unsafe {
            each_panel!(V, width, |from| back(blocks, &batch, delta, width, from, out));
        }
    }
}

/// Adds a transposed batch times `C` vectors of columns of delta from `from` on.
///
/// # Safety
/// Shapes as in [`add_transposed`]; `batch` has rows of `blocks`, and `delta` one row for each; more
/// than `C - 1` vectors of columns are left from `from` on.
#[inline(always)]
unsafe fn back<V: Vector, const C: usize>(
    blocks: &Blocks<V::Scalar>,
    batch: &Batch,
    delta: &[V::Scalar],
    width: usize,
    from: usize,
    out: &mut [V::Scalar],
) {
    let layout = &*blocks.layout;
    // SAFETY: as in `forward`.
    unsafe {
        let last = last_mask::<V, C>(width - from);
        let mut next = batch.codes;
        for word in 0..layout.map_words() {
            for (b, &rows) in batch.rows[word].iter().enumerate() {
                if rows == 0 {
                    continue;
                }
                let mut rows = rows;
                let first = (word * WORD + b) * FOUR;
                let count = FOUR.min(layout.cols - first);
                let to = out.as_mut_ptr().add(first * width + from);
                // All are loaded before any is stored: a load soon after a masked store would wait.
                let mut sums = [[V::splat(V::Scalar::ZERO); C]; FOUR];
                for i in 0..count {
                    sums[i] = load::<V, C>(to.add(i * width), last);
                }
                while rows != 0 {
                    let r = rows.trailing_zeros() as usize;
                    rows &= rows - 1;
                    let a = blocks.take::<V>(&mut next[r]);
                    let d = load::<V, C>(delta.as_ptr().add(r * width + from), last);
                    for i in 0..FOUR {
                        for c in 0..C {
                            sums[i][c] = a[i].mul_add(d[c], sums[i][c]);
                        }
                    }
                }
                for i in 0..count {
                    store(to.add(i * width), sums[i], last);
                }
            }
        }
    }
}

impl<T: Number> Blocks<T> {
    /// The four values of the next block, each in all lanes; advances `next`.
    ///
    /// # Safety
    /// See [`Vector`]; `next` points to a block of codes.
    #[inline(always)]
    unsafe fn take<V: Vector<Scalar = T>>(&self, next: &mut *const [u8; FOUR]) -> [V; FOUR] {
        // SAFETY: as for this function; there are 256 values, one per code.
        unsafe {
            let codes = **next;
            *next = next.add(1);
            let mut values = [V::splat(self.palette[codes[0] as usize]); FOUR];
            for i in 1..FOUR {
                values[i] = V::splat(self.palette[codes[i] as usize]);
            }
            values
        }
    }
}
