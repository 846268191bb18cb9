//! Products with several columns, block by block instead of row by row: the four rows of weights of
//! a block stay in registers while all rows of a batch that have the block are multiplied.
//!
//! With [`Columns`], weights are scaled where they are loaded and sums where they are stored:
//!
//! ```text
//! A W = B (F W) − 1 (σᵀ F W),    Aᵀ R = F (Bᵀ R − σ (1ᵀ R)),    A = (B − 1 σᵀ) F
//! ```

use super::super::Rows;
use super::super::dense::{last_mask, load, panel, store};
use super::super::prefetch::prefetch;
use super::super::vector::{Number, Vector};
use super::{Blocks, Columns, FOUR, Layout, WORD, WORDS};

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

/// Prefetches the rows from the `from`-th on, at most a batch.
#[inline(always)]
fn prefetch_batch(layout: &Layout, rows: Rows, from: usize) {
    for r in from..rows.len().min(from + BATCH) {
        prefetch(layout.words_of(rows.at(r).expect("fewer than there are rows")));
    }
}

/// Calls `$run` for all columns of the matrices, two of them at a time, one panel of columns at a time.
macro_rules! each_panel {
    ($v:ty, $run:ident($blocks:ident, $rows:ident, $columns:ident, $of:ident, $width:ident, $to:ident)) => {
        let mut m = 0;
        while m < $of.len() {
            if let ([a, b, ..], [x, y, ..], true) = (&$of[m..], &mut $to[m..], <$v>::FUSED) {
                let (of, to) = ([a.as_ptr(), b.as_ptr()], [x.as_mut_ptr(), y.as_mut_ptr()]);
                for from in (0..$width).step_by(panel::<$v>($width).min(2) * <$v>::LANES) {
                    match panel::<$v>($width - from) {
                        1 => $run::<$v, 2, 1>($blocks, $rows, $columns, of, ($width, from), to),
                        _ => $run::<$v, 2, 2>($blocks, $rows, $columns, of, ($width, from), to),
                    }
                }
                m += 2;
                continue;
            }
            let (of, to) = ([$of[m].as_ptr()], [$to[m].as_mut_ptr()]);
            for from in (0..$width).step_by(panel::<$v>($width) * <$v>::LANES) {
                match panel::<$v>($width - from) {
                    4 if <$v>::FUSED => {
                        $run::<$v, 1, 4>($blocks, $rows, $columns, of, ($width, from), to)
                    }
                    3 if <$v>::FUSED => {
                        $run::<$v, 1, 3>($blocks, $rows, $columns, of, ($width, from), to)
                    }
                    2 if <$v>::FUSED => {
                        $run::<$v, 1, 2>($blocks, $rows, $columns, of, ($width, from), to)
                    }
                    _ => $run::<$v, 1, 1>($blocks, $rows, $columns, of, ($width, from), to),
                }
            }
            m += 1;
        }
    };
}

/// `outs[m][r, :] = Σ_q a[row_r, q] weights[m][q, :]`.
///
/// # Safety
/// See [`Vector`]; each of `weights` is cols × width, each of `outs` rows × width; `columns` has cols numbers of each
/// kind.
#[inline(always)]
pub unsafe fn product<V: Vector>(
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    columns: Option<Columns<V::Scalar>>,
    weights: &[&[V::Scalar]],
    width: usize,
    outs: &mut [&mut [V::Scalar]],
) {
    // SAFETY: shapes as for this function.
    unsafe {
        each_panel!(V, forward(blocks, rows, columns, weights, width, outs));
    }
}

/// Multiplies the rows with `C` vectors of columns of `M` matrices of weights from `from` on.
///
/// # Safety
/// Shapes as in [`product`]; more than `C - 1` vectors of columns are left from `from` on.
#[inline(always)]
unsafe fn forward<V: Vector, const M: usize, const C: usize>(
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    columns: Option<Columns<V::Scalar>>,
    weights: [*const V::Scalar; M],
    (width, from): (usize, usize),
    outs: [*mut V::Scalar; M],
) {
    let layout = &*blocks.layout;
    prefetch_batch(layout, rows, 0);
    // SAFETY: the mask keeps loads and stores within `width`, and a block's columns are kept within
    // `cols`; a row has as many blocks of codes as bits set.
    unsafe {
        let last = last_mask::<V, C>(width - from);
        let zero = [[V::splat(V::Scalar::ZERO); C]; M];
        for done in (0..rows.len()).step_by(BATCH) {
            prefetch_batch(layout, rows, done + BATCH);
            let end = rows.len().min(done + BATCH);
            let batch = Batch::new(layout, Rows { numbers: &rows.numbers[done..end], ..rows });
            let (mut sums, mut next) = ([zero; BATCH], batch.codes);
            // Four sums at a time: one alone would wait for each addition.
            let mut shifted = [zero; FOUR];
            for word in 0..layout.map_words() {
                for (b, &rows) in batch.rows[word].iter().enumerate() {
                    if rows == 0 && columns.is_none() {
                        continue;
                    }
                    let mut rows = rows;
                    let first = (word * WORD + b) * FOUR;
                    let mut w = [zero; FOUR];
                    for i in 0..FOUR.min(layout.cols.saturating_sub(first)) {
                        let at = (first + i) * width + from;
                        for m in 0..M {
                            w[i][m] = load::<V, C>(weights[m].add(at), last);
                        }
                        let Some(Columns { factors, shifts }) = columns else { continue };
                        let factor = V::splat(*factors.get_unchecked(first + i));
                        let shift = V::splat(*shifts.get_unchecked(first + i));
                        for m in 0..M {
                            for c in 0..C {
                                w[i][m][c] = factor.mul(w[i][m][c]);
                                shifted[i][m][c] = shift.mul_add(w[i][m][c], shifted[i][m][c]);
                            }
                        }
                    }
                    while rows != 0 {
                        let r = rows.trailing_zeros() as usize;
                        rows &= rows - 1;
                        let a = blocks.take::<V>(&mut next[r]);
                        let mut sum = sums[r];
                        for i in 0..FOUR {
                            for m in 0..M {
                                for c in 0..C {
                                    sum[m][c] = a[i].mul_add(w[i][m][c], sum[m][c]);
                                }
                            }
                        }
                        sums[r] = sum;
                    }
                }
            }
            for m in 0..M {
                let mut less = zero[m];
                for c in 0..C {
                    let pairs = [
                        shifted[0][m][c].add(shifted[1][m][c]),
                        shifted[2][m][c].add(shifted[3][m][c]),
                    ];
                    less[c] = minus(less[c].add(pairs[0].add(pairs[1])));
                }
                for r in 0..end - done {
                    let mut sum = sums[r][m];
                    if columns.is_some() {
                        for c in 0..C {
                            sum[c] = sum[c].add(less[c]);
                        }
                    }
                    store(outs[m].add((done + r) * width + from), sum, last);
                }
            }
        }
    }
}

/// `outs[m][q, :] += Σ_r a[row_r, q] deltas[m][r, :]`.
///
/// # Safety
/// See [`Vector`]; each of `deltas` is rows × width, each of `outs` cols × width; `columns` has cols numbers of each
/// kind.
#[inline(always)]
pub unsafe fn add_transposed<V: Vector>(
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    columns: Option<Columns<V::Scalar>>,
    deltas: &[&[V::Scalar]],
    width: usize,
    outs: &mut [&mut [V::Scalar]],
) {
    // SAFETY: shapes as for this function.
    unsafe {
        each_panel!(V, back(blocks, rows, columns, deltas, width, outs));
    }
}

/// Adds the transposed rows times `C` vectors of columns of `M` matrices from `from` on.
///
/// # Safety
/// Shapes as in [`add_transposed`]; more than `C - 1` vectors of columns are left from `from` on.
#[inline(always)]
unsafe fn back<V: Vector, const M: usize, const C: usize>(
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    columns: Option<Columns<V::Scalar>>,
    deltas: [*const V::Scalar; M],
    (width, from): (usize, usize),
    outs: [*mut V::Scalar; M],
) {
    let layout = &*blocks.layout;
    prefetch_batch(layout, rows, 0);
    // SAFETY: as in `forward`.
    unsafe {
        let last = last_mask::<V, C>(width - from);
        let zero = [[V::splat(V::Scalar::ZERO); C]; M];
        let mut total = zero;
        for done in (0..rows.len()).step_by(BATCH) {
            prefetch_batch(layout, rows, done + BATCH);
            let end = rows.len().min(done + BATCH);
            let batch = Batch::new(layout, Rows { numbers: &rows.numbers[done..end], ..rows });
            let (mut d, mut next) = ([zero; BATCH], batch.codes);
            for r in 0..end - done {
                for m in 0..M {
                    d[r][m] = load::<V, C>(deltas[m].add((done + r) * width + from), last);
                    for c in 0..C {
                        total[m][c] = total[m][c].add(d[r][m][c]);
                    }
                }
            }
            // Shifts are subtracted once, for all rows.
            let shifts = match columns {
                Some(columns) if end == rows.len() => Some(columns.shifts),
                _ => None,
            };
            let mut less = total;
            for m in 0..M {
                for c in 0..C {
                    less[m][c] = minus(less[m][c]);
                }
            }
            for word in 0..layout.map_words() {
                for (b, &rows) in batch.rows[word].iter().enumerate() {
                    if rows == 0 && shifts.is_none() {
                        continue;
                    }
                    let mut rows = rows;
                    let first = (word * WORD + b) * FOUR;
                    let count = FOUR.min(layout.cols.saturating_sub(first));
                    let mut sums = [zero; FOUR];
                    // All are loaded before any is stored: a load soon after a masked store would wait.
                    if columns.is_none() {
                        sums = old::<V, M, C>(outs, (first, count), (width, from), last);
                    }
                    while rows != 0 {
                        let r = rows.trailing_zeros() as usize;
                        rows &= rows - 1;
                        let a = blocks.take::<V>(&mut next[r]);
                        for i in 0..FOUR {
                            for m in 0..M {
                                for c in 0..C {
                                    sums[i][m][c] = a[i].mul_add(d[r][m][c], sums[i][m][c]);
                                }
                            }
                        }
                    }
                    if let Some(Columns { factors, .. }) = columns {
                        let before = old::<V, M, C>(outs, (first, count), (width, from), last);
                        for i in 0..count {
                            let factor = V::splat(*factors.get_unchecked(first + i));
                            let mut shift = V::splat(V::Scalar::ZERO);
                            if let Some(shifts) = shifts {
                                shift = V::splat(*shifts.get_unchecked(first + i));
                            }
                            for m in 0..M {
                                for c in 0..C {
                                    let mut sum = sums[i][m][c];
                                    if shifts.is_some() {
                                        sum = shift.mul_add(less[m][c], sum);
                                    }
                                    sums[i][m][c] = factor.mul_add(sum, before[i][m][c]);
                                }
                            }
                        }
                    }
                    for i in 0..count {
                        for m in 0..M {
                            store(outs[m].add((first + i) * width + from), sums[i][m], last);
                        }
                    }
                }
            }
        }
    }
}

/// `C` vectors of columns from `from` on of the rows of a block in `M` matrices.
///
/// # Safety
/// See [`Vector`]; the rows exist, and more than `C - 1` vectors of columns are left.
#[inline(always)]
unsafe fn old<V: Vector, const M: usize, const C: usize>(
    outs: [*mut V::Scalar; M],
    (first, count): (usize, usize),
    (width, from): (usize, usize),
    last: V::Mask,
) -> [[[V; C]; M]; FOUR] {
    // SAFETY: as for this function.
    unsafe {
        let mut sums = [[[V::splat(V::Scalar::ZERO); C]; M]; FOUR];
        for i in 0..count {
            for m in 0..M {
                sums[i][m] = load::<V, C>(outs[m].add((first + i) * width + from), last);
            }
        }
        sums
    }
}

/// −a.
///
/// # Safety
/// See [`Vector`].
#[inline(always)]
unsafe fn minus<V: Vector>(a: V) -> V {
    // SAFETY: as for this function.
    unsafe { V::splat(V::Scalar::ZERO - V::Scalar::ONE).mul(a) }
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
