//! Products of sparse rows of few different values, four columns at a time.
//!
//! Pixels that are not zero lie together: of a row the blocks of four columns are kept that hold
//! any, a byte for each value. Rows that are drawn at random come from far away, and what they cost
//! is how long they are.

mod dots;
mod listing;
mod product;

use std::sync::Arc;

pub use dots::{add_sums, dots};
use listing::Listing;
pub use product::{add_transposed, product};

use super::Pages;
use super::sparse::Csr;

/// Columns in a block.
const FOUR: usize = 4;
/// Blocks of a row come in eights.
const EIGHT: usize = 8;
/// Words of a map of blocks, and blocks that each tells.
const WORDS: usize = 4;
const WORD: usize = 64;
/// So many columns there may be: then a byte tells the number of a block.
const MOST: usize = WORDS * WORD * FOUR;

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
    /// How many values are not zero, and how many blocks they are in.
    filled: [usize; 2],
    /// Where each row begins, and where the last ends.
    starts: Vec<u32>,
    /// Of every row: the numbers of its blocks, a byte each; the places of their values in the list;
    /// a map of the blocks, a bit each. Some products want numbers, others a map: what they do not
    /// want, they do not fetch. There are whole eights of blocks: the last block comes again where
    /// one is missing, with zeros for values.
    words: Vec<[u8; EIGHT]>,
}

impl Blocks<f64> {
    /// Of a matrix; `None` if it has too many columns, too many different values, or blocks that
    /// are mostly empty.
    pub fn new(matrix: Csr<f64>) -> Option<Blocks<f64>> {
        let Csr { cols, starts, columns, values } = matrix;
        let mut layout = Layout::new(cols)?;
        let mut listing = Listing::new(values)?;
        let mut places = vec![0; cols];
        for entries in starts.windows(2).map(|pair| pair[0]..pair[1]) {
            for e in entries.clone() {
                assert!((columns[e] as usize) < cols, "a column beyond the matrix");
                places[columns[e] as usize] = listing.place(values[e]);
            }
            layout.push(&places);
            entries.for_each(|e| places[columns[e] as usize] = 0);
        }
        layout.of_values(listing.values, listing.unit)
    }

    /// Of rows of bytes, each of which counts `unit`.
    pub fn of_bytes(bytes: &[u8], cols: usize, unit: f64) -> Option<Blocks<f64>> {
        let mut layout = Layout::new(cols)?;
        bytes.chunks_exact(cols).for_each(|row| layout.push(row));
        layout.of_values(std::array::from_fn(|byte| byte as f64 * unit), Some(unit))
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
        let Layout { cols, filled, .. } = *self.layout;
        let mut some = Layout { cols, filled, starts: vec![0], words: Vec::new() };
        for &row in rows {
            let Row { numbers, values, map } = self.layout.row(row as usize);
            [numbers, values, map].iter().for_each(|part| some.words.extend_from_slice(part));
            some.starts.push(some.words.len() as u32);
        }
        Blocks { layout: Arc::new(some), list: self.list.clone(), unit: self.unit }
    }

    /// Where its numbers lie.
    pub fn pages(&self) -> Pages {
        Pages::default().with(&self.layout.starts).with(&self.layout.words)
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

impl Layout {
    /// No rows yet; `None` if there are too many columns.
    fn new(cols: usize) -> Option<Layout> {
        let none = || Layout { cols, filled: [0; 2], starts: vec![0], words: Vec::new() };
        (1..=MOST).contains(&cols).then(none)
    }

    /// One more row, as the places of its values.
    fn push(&mut self, places: &[u8]) {
        let (mut numbers, mut values) = ([0; MOST / FOUR], [[0; FOUR]; MOST / FOUR]);
        let (mut map, mut count) = ([0u64; WORDS], 0);
        let (fours, rest) = places.as_chunks();
        let mut last = [0; FOUR];
        last[..rest.len()].copy_from_slice(rest);
        for (block, four) in fours.iter().chain([&last]).enumerate() {
            if *four != [0; FOUR] {
                (numbers[count], values[count]) = (block as u8, *four);
                map[block / WORD] |= 1 << (block % WORD);
                count += 1;
            }
        }
        let stored = values[..count].as_flattened().iter().filter(|place| **place != 0).count();
        self.filled = [self.filled[0] + stored, self.filled[1] + count];
        let whole = count.next_multiple_of(EIGHT);
        let again = numbers[count.saturating_sub(1)];
        numbers[count..whole].fill(again);
        self.words.extend_from_slice(numbers[..whole].as_chunks().0);
        self.words.extend_from_slice(values[..whole].as_flattened().as_chunks().0);
        self.words.extend(map.map(u64::to_le_bytes));
        self.starts.push(self.words.len() as u32);
    }

    /// The matrix, unless blocks are mostly empty or too many.
    fn of_values(self, list: [f64; 256], unit: Option<f64>) -> Option<Blocks<f64>> {
        let [stored, blocks] = self.filled;
        let fits = 3 * stored >= 4 * blocks && u32::try_from(self.words.len()).is_ok();
        fits.then(|| Blocks { layout: Arc::new(self), list: Box::new(list), unit })
    }

    /// A row: the numbers of its blocks, their values, and the map.
    #[inline(always)]
    fn row(&self, row: usize) -> Row<'_> {
        let all = &self.words[self.starts[row] as usize..self.starts[row + 1] as usize];
        let (blocks, map) = all.split_at(all.len() - WORDS);
        // Eight numbers take a word, the values of eight blocks four.
        let (numbers, values) = blocks.split_at(blocks.len() / (1 + FOUR));
        Row { numbers, values, map }
    }
}

/// A row in its parts.
struct Row<'a> {
    numbers: &'a [[u8; EIGHT]],
    values: &'a [[u8; EIGHT]],
    map: &'a [[u8; EIGHT]],
}
