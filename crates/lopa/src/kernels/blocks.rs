//! Sparse rows times one column: entries that lie near each other go through one register.
//!
//! A column of weights has nothing to put side by side in a register but neighbouring rows, so
//! the entries of a sparse row are taken sixteen columns at a time, with a bit for each that is
//! not zero. Pixels lie together; so do the columns of a category.

use super::Rows;
use super::sparse::Csr;
use super::vector::{Number, Vector};

/// Columns in a block.
const BLOCK: usize = 16;

/// Where the entries of a sparse matrix lie, by blocks of sixteen columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocks {
    cols: usize,
    entries: usize,
    rows: Vec<Row>,
    blocks: Vec<Block>,
}

/// The first block and the first entry of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    block: usize,
    entry: usize,
}

/// Which of the columns from 16 · `number` on have an entry.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Block {
    number: u32,
    bits: u16,
}

impl Blocks {
    /// Of a matrix whose columns increase within each row.
    pub fn new<T>(matrix: Csr<T>) -> Blocks {
        let Csr { cols, starts, columns, .. } = matrix;
        let (mut rows, mut blocks) = (Vec::with_capacity(starts.len()), Vec::<Block>::new());
        for pair in starts.windows(2) {
            rows.push(Row { block: blocks.len(), entry: pair[0] });
            let first = blocks.len();
            for (i, &column) in columns[pair[0]..pair[1]].iter().enumerate() {
                let before = i.checked_sub(1).map(|i| columns[pair[0] + i]);
                assert!(before < Some(column) && (column as usize) < cols, "columns increase");
                let (number, bit) = (column / BLOCK as u32, 1 << (column as usize % BLOCK));
                match blocks[first..].last_mut().filter(|block| block.number == number) {
                    Some(block) => block.bits |= bit,
                    None => blocks.push(Block { number, bits: bit }),
                }
            }
        }
        let entries = starts.last().copied().unwrap_or(0);
        rows.push(Row { block: blocks.len(), entry: entries });
        Blocks { cols, entries, rows, blocks }
    }

    /// What the unsafe code below relies on.
    pub(super) fn check<T>(&self, values: &[T], column: &[T]) {
        assert_eq!(values.len(), self.entries, "as many values as entries");
        assert_eq!(column.len(), self.cols, "as many weights as columns");
    }

    /// The blocks of a row, and its first entry.
    #[inline(always)]
    fn row(&self, row: usize) -> (&[Block], usize) {
        let Row { block, entry } = self.rows[row];
        (&self.blocks[block..self.rows[row + 1].block], entry)
    }
}

/// `out[r] = Σ_q a[row_r, q] weights[q]`.
///
/// # Safety
/// See [`Vector`]; values and weights passed [`Blocks::check`].
#[inline(always)]
pub unsafe fn product<V: Vector>(
    blocks: &Blocks,
    values: &[V::Scalar],
    rows: Rows,
    weights: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    for (row, out) in rows.iter().zip(out) {
        // SAFETY: bits stand for entries and columns that are there, as `check` and `new` made
        // sure; a mask keeps loads at the end of `weights` within them.
        unsafe {
            let mut sums = [V::splat(V::Scalar::ZERO); 2];
            let (blocks, entry) = blocks.row(row);
            let (mut from, mut turn) = (values.as_ptr().add(entry), 0);
            for block in blocks {
                let (column, bits) = (block.number as usize * BLOCK, u32::from(block.bits));
                let mut l = 0;
                while l < BLOCK {
                    let some = bits >> l & ((1u32 << V::LANES) - 1);
                    let at = column + l;
                    let w = match at + V::LANES <= weights.len() {
                        true => V::load(weights.as_ptr().add(at)),
                        false if at < weights.len() => {
                            V::load_part(weights.as_ptr().add(at), V::mask(weights.len() - at))
                        }
                        false => break,
                    };
                    sums[turn] = V::expand(from, some).mul_add(w, sums[turn]);
                    from = from.add(some.count_ones() as usize);
                    l += V::LANES;
                }
                turn = 1 - turn;
            }
            *out = sums[0].add(sums[1]).total();
        }
    }
}

/// `out[q] += Σ_r a[row_r, q] delta[r]`.
///
/// # Safety
/// See [`Vector`]; values and `out` passed [`Blocks::check`].
#[inline(always)]
pub unsafe fn add_transposed<V: Vector>(
    blocks: &Blocks,
    values: &[V::Scalar],
    rows: Rows,
    delta: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    for (row, &delta) in rows.iter().zip(delta) {
        // SAFETY: as in `product`.
        unsafe {
            let (blocks, entry) = blocks.row(row);
            let (mut from, delta) = (values.as_ptr().add(entry), V::splat(delta));
            for block in blocks {
                let (column, bits) = (block.number as usize * BLOCK, u32::from(block.bits));
                let mut l = 0;
                while l < BLOCK && column + l < out.len() {
                    let some = bits >> l & ((1u32 << V::LANES) - 1);
                    let a = V::expand(from, some);
                    let to = out.as_mut_ptr().add(column + l);
                    match column + l + V::LANES <= out.len() {
                        true => a.mul_add(delta, V::load(to)).store(to),
                        false => {
                            let mask = V::mask(out.len() - column - l);
                            a.mul_add(delta, V::load_part(to, mask)).store_part(to, mask);
                        }
                    }
                    from = from.add(some.count_ones() as usize);
                    l += V::LANES;
                }
            }
        }
    }
}
