//! Products of sparse rows of few different values, four columns at a time.
//!
//! Pixels that are not zero lie together: of a row the blocks of four columns are kept that hold
//! any, a byte for each value. Rows that are drawn at random come from far away, and what they cost
//! is how long they are.

mod dots;
mod listing;
mod product;
mod windows;

use std::sync::{Arc, OnceLock};

pub use dots::{add_sums, dots};
use listing::Listing;
pub use product::{add_transposed, product};
use windows::Windows;

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
    /// Where each row begins, and where the last ends.
    starts: Vec<u32>,
    /// Of every row: the numbers of its blocks, a byte each; the places of their values in the list;
    /// a map of the blocks, a bit each. There are whole eights of blocks: the last block comes
    /// again where one is missing, with zeros for values.
    words: Vec<[u8; EIGHT]>,
    /// The same rows for products with one column, made when there is one.
    windows: OnceLock<Windows>,
}

impl Blocks<f64> {
    /// Of a matrix whose columns increase within each row; `None` if it has too many columns, too
    /// many different values, or blocks that are mostly empty.
    pub fn new(matrix: Csr<f64>) -> Option<Blocks<f64>> {
        let Csr { cols, starts: rows, columns, values } = matrix;
        if cols == 0 || cols > MOST {
            return None;
        }
        let mut listing = Listing::new(values)?;
        let mut layout = Layout::new(cols);
        let mut blocks = 0;
        for pair in rows.windows(2) {
            let entries = (pair[0]..pair[1]).map(|e| (columns[e], listing.place(values[e])));
            blocks += layout.push(entries);
        }
        if 3 * values.len() < 4 * blocks || u32::try_from(layout.words.len()).is_err() {
            return None;
        }
        let layout = Arc::new(layout);
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
        let mut some = Layout::new(self.layout.cols);
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
    /// Without rows yet.
    fn new(cols: usize) -> Layout {
        Layout { cols, starts: vec![0], words: Vec::new(), windows: OnceLock::new() }
    }

    /// One more row, of columns that increase and the places of their values; tells its blocks.
    fn push(&mut self, entries: impl Iterator<Item = (u32, u8)>) -> usize {
        let (mut map, mut values, mut numbers) = ([0u64; WORDS], Vec::new(), Vec::new());
        for (column, place) in entries {
            assert!((column as usize) < self.cols, "a column beyond the matrix");
            let (block, within) = ((column as usize / FOUR) as u8, column as usize % FOUR);
            if numbers.last() != Some(&block) {
                assert!(numbers.last() < Some(&block), "columns increase");
                numbers.push(block);
                values.push([0; FOUR]);
                map[block as usize / WORD] |= 1 << (block as usize % WORD);
            }
            values.last_mut().expect("one was pushed")[within] = place;
        }
        let count = numbers.len();
        numbers.resize(count.next_multiple_of(EIGHT), numbers.last().copied().unwrap_or(0));
        values.resize(numbers.len(), [0; FOUR]);
        self.words.extend_from_slice(numbers.as_chunks().0);
        self.words.extend_from_slice(values.as_flattened().as_chunks().0);
        self.words.extend(map.map(u64::to_le_bytes));
        self.starts.push(self.words.len() as u32);
        count
    }

    fn windows(&self) -> &Windows {
        self.windows.get_or_init(|| Windows::new(self))
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
