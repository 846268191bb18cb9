//! Products with a matrix, block by block and not row by row: the rows of weights that belong to a
//! block stay in registers while all rows of a batch that have the block are multiplied.

use super::super::Rows;
use super::super::dense::{last, load, store};
use super::super::fetch::fetch;
use super::super::vector::{Number, Vector};
use super::{Blocks, FOUR, Layout, WORD, WORDS};

/// So many rows are multiplied at a time: a bit tells each.
const BATCH: usize = 64;

/// Some rows: their maps, word by word, and where their values begin.
struct Batch {
    maps: [[u64; BATCH]; WORDS],
    values: [*const [u8; FOUR]; BATCH],
}

impl Batch {
    #[inline(always)]
    fn new(layout: &Layout, rows: Rows) -> Batch {
        let mut batch = Batch { maps: [[0; BATCH]; WORDS], values: [std::ptr::null(); BATCH] };
        for (r, row) in rows.iter().enumerate() {
            let row = layout.row(row);
            (0..WORDS).for_each(|word| batch.maps[word][r] = row.word(word));
            batch.values[r] = row.values.as_ptr();
        }
        batch
    }

    /// Which rows have each block of a word: bit r of number b is bit b of row r's map.
    #[inline(always)]
    fn turns(&self, word: usize) -> [u64; WORD] {
        let mut bits = self.maps[word];
        swap::<32>(&mut bits, 0x0000_0000_ffff_ffff);
        swap::<16>(&mut bits, 0x0000_ffff_0000_ffff);
        swap::<8>(&mut bits, 0x00ff_00ff_00ff_00ff);
        swap::<4>(&mut bits, 0x0f0f_0f0f_0f0f_0f0f);
        swap::<2>(&mut bits, 0x3333_3333_3333_3333);
        swap::<1>(&mut bits, 0x5555_5555_5555_5555);
        bits
    }
}

/// A step of transposing bits: of every 2J × 2J of them, the two quarters off the diagonal change
/// places.
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

/// Rows in batches; while one is multiplied, the next is on its way.
#[inline(always)]
fn batches<'a>(layout: &'a Layout, rows: Rows<'a>) -> impl Iterator<Item = Batch> + 'a {
    let ask = move |b: usize| {
        let numbers = rows.numbers.chunks(BATCH).nth(b).unwrap_or_default();
        for row in (Rows { numbers, ..rows }).iter() {
            fetch(layout.words_of(row));
        }
    };
    rows.numbers.chunks(BATCH).enumerate().map(move |(b, numbers)| {
        if b == 0 {
            ask(0);
        }
        ask(b + 1);
        Batch::new(layout, Rows { numbers, ..rows })
    })
}

/// Calls `$run` for all columns of the weights, up to four vectors at a time.
macro_rules! each_panel {
    ($v:ty, $width:ident, |$from:ident| $run:ident($($arg:expr),*)) => {
        for $from in (0..$width).step_by(4 * <$v>::LANES) {
            match ($width - $from).div_ceil(<$v>::LANES) {
                1 => $run::<$v, 1>($($arg),*),
                2 => $run::<$v, 2>($($arg),*),
                3 => $run::<$v, 3>($($arg),*),
                _ => $run::<$v, 4>($($arg),*),
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
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    for (batch, out) in batches(&blocks.layout, rows).zip(out.chunks_mut(BATCH * width)) {
        unsafe {
            each_panel!(V, width, |from| forward(blocks, &batch, weights, width, from, out));
        }
    }
}

/// Against `C` vectors of columns from `from` on.
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
    // SAFETY: the mask keeps loads and stores within `width`, and a block's columns within `cols`;
    // a row has as many blocks as its bits say.
    unsafe {
        let last = last::<V, C>(width - from);
        let zero = [V::splat(V::Scalar::ZERO); C];
        let (mut sums, mut next) = ([zero; BATCH], batch.values);
        for word in 0..WORDS {
            for (b, mut rows) in batch.turns(word).into_iter().enumerate() {
                if rows == 0 {
                    continue;
                }
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
        unsafe {
            each_panel!(V, width, |from| back(blocks, &batch, delta, width, from, out));
        }
    }
}

/// Against `C` vectors of columns from `from` on.
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
        let last = last::<V, C>(width - from);
        let mut next = batch.values;
        for word in 0..WORDS {
            for (b, mut rows) in batch.turns(word).into_iter().enumerate() {
                if rows == 0 {
                    continue;
                }
                let first = (word * WORD + b) * FOUR;
                let count = FOUR.min(layout.cols - first);
                let to = out.as_mut_ptr().add(first * width + from);
                // All are loaded before one is stored: a load close to a masked store would wait.
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
    /// The four values of the next block, each in all lanes.
    ///
    /// # Safety
    /// See [`Vector`]; there is a block.
    #[inline(always)]
    unsafe fn take<V: Vector<Scalar = T>>(&self, next: &mut *const [u8; FOUR]) -> [V; FOUR] {
        unsafe {
            let places = **next;
            *next = next.add(1);
            let mut values = [V::splat(self.list[places[0] as usize]); FOUR];
            for i in 1..FOUR {
                values[i] = V::splat(self.list[places[i] as usize]);
            }
            values
        }
    }
}
