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
    /// Of every row: a map of its blocks, a bit each; and the places of their values in the list.
    words: Vec<[u8; FOUR]>,
    /// The same rows for products with one column, made when there is one.
    windows: OnceLock<Windows>,
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
        layout.with(listing.values, listing.unit)
    }

    /// Of rows of bytes, each of which counts `unit`.
    pub fn of_bytes(bytes: &[u8], cols: usize, unit: f64) -> Option<Blocks<f64>> {
        let mut layout = Layout::new(cols)?;
        bytes.chunks_exact(cols).for_each(|row| layout.push(row));
        layout.with(std::array::from_fn(|byte| byte as f64 * unit), Some(unit))
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
        let mut some = Layout::of(self.layout.cols);
        for &row in rows {
            some.words.extend_from_slice(self.layout.words_of(row as usize));
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
    /// No rows yet.
    fn of(cols: usize) -> Layout {
        Layout { cols, starts: vec![0], words: Vec::new(), windows: OnceLock::new() }
    }

    /// No rows yet; `None` if there are too many columns.
    fn new(cols: usize) -> Option<Layout> {
        (1..=MOST).contains(&cols).then(|| Layout::of(cols))
    }

    /// One more row, as the places of its values.
    fn push(&mut self, places: &[u8]) {
        let (fours, rest) = places.as_chunks();
        let mut last = [0; FOUR];
        last[..rest.len()].copy_from_slice(rest);
        let blocks = fours.iter().chain([&last]).enumerate();
        let blocks = blocks.filter(|(_, places)| **places != [0; FOUR]);
        let mut map = [0u64; WORDS];
        blocks.clone().for_each(|(b, _)| map[b / WORD] |= 1 << (b % WORD));
        self.words.extend_from_slice(map.map(u64::to_le_bytes).as_flattened().as_chunks().0);
        self.words.extend(blocks.map(|(_, places)| places));
        self.starts.push(self.words.len() as u32);
    }

    /// The matrix of these values, unless its blocks are mostly empty or too many.
    fn with(self, list: [f64; 256], unit: Option<f64>) -> Option<Blocks<f64>> {
        let values = (0..self.rows()).flat_map(|row| self.row(row).values);
        let (blocks, stored) = values.fold((0, 0), |(blocks, stored), places| {
            (blocks + 1, stored + places.iter().filter(|place| **place != 0).count())
        });
        let fits = 3 * stored >= FOUR * blocks && u32::try_from(self.words.len()).is_ok();
        fits.then(|| Blocks { layout: Arc::new(self), list: Box::new(list), unit })
    }

    fn windows(&self) -> &Windows {
        self.windows.get_or_init(|| Windows::new(self))
    }

    fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline(always)]
    fn words_of(&self, row: usize) -> &[[u8; FOUR]] {
        &self.words[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// A row: the map of its blocks, and their values.
    #[inline(always)]
    fn row(&self, row: usize) -> Row<'_> {
        let (map, values) = self.words_of(row).split_at(WORDS * WORD / 8 / FOUR);
        Row { map: map.as_flattened().as_chunks().0, values }
    }
}

/// A row in its parts.
struct Row<'a> {
    map: &'a [[u8; WORD / 8]],
    values: &'a [[u8; FOUR]],
}

impl Row<'_> {
    /// A word of the map.
    #[inline(always)]
    fn word(&self, word: usize) -> u64 {
        u64::from_le_bytes(self.map[word])
    }

    /// The numbers of its blocks.
    fn numbers(&self) -> impl Iterator<Item = usize> {
        (0..WORDS * WORD).filter(|b| self.word(b / WORD) >> (b % WORD) & 1 == 1)
    }
}
