//! Products of sparse rows with few distinct values, four columns at a time.
//!
//! Nonzero pixels are close together: a row is stored as its nonempty blocks of four columns, one
//! byte per value. The cost of rows drawn at random is proportional to their length in memory.

mod dots;
mod palette;
mod product;
mod windows;

use std::sync::{Arc, OnceLock};

pub use dots::{add_sums, dots};
use palette::Palette;
pub use product::{add_transposed, product};
use windows::Windows;

use super::Pages;
use super::sparse::Csr;

/// Columns in a block.
const FOUR: usize = 4;
/// Words in the bitmap of a row's blocks, and bits in a word.
const WORDS: usize = 4;
const WORD: usize = 64;
/// The largest number of columns: block numbers are bytes.
const MAX_COLS: usize = WORDS * WORD * FOUR;

/// A sparse matrix in blocks of four columns.
#[derive(Debug, Clone)]
pub struct Blocks<T> {
    layout: Arc<Layout>,
    palette: Box<[T; 256]>, // the value of each code
    unit: Option<T>,        // if given, the value of a code is that many units
}

/// What columns of codes stand for: code a of column q is `factors[q] (a − shifts[q])`.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a, T> {
    /// Of each column.
    pub factors: &'a [T],
    /// Of each column.
    pub shifts: &'a [T],
}

/// The part that does not depend on the precision.
#[derive(Debug)]
struct Layout {
    cols: usize,
    /// The first word of each row, then the number of words.
    starts: Vec<u32>,
    /// For each row a bitmap of its nonempty blocks, then the codes of their values.
    words: Vec<[u8; FOUR]>,
    /// The same rows for products with one column, built when first needed.
    windows: OnceLock<Windows>,
}

impl Blocks<f64> {
    /// Packs a matrix; `None` if it has too many columns, too many distinct values, or blocks that
    /// are mostly empty.
    pub fn new(matrix: Csr<f64>) -> Option<Blocks<f64>> {
        let Csr { cols, starts, columns, values } = matrix;
        let mut layout = Layout::new(cols)?;
        let mut palette = Palette::new(values)?;
        let mut codes = vec![0; cols];
        for entries in starts.windows(2).map(|pair| pair[0]..pair[1]) {
            for e in entries.clone() {
                assert!((columns[e] as usize) < cols, "column out of range");
                codes[columns[e] as usize] = palette.code(values[e]);
            }
            layout.push(&codes);
            entries.for_each(|e| codes[columns[e] as usize] = 0);
        }
        layout.with(palette.values, palette.unit)
    }

    /// Packs rows of bytes, whose values are multiples of `unit`; `None` as for [`Blocks::new`].
    pub fn of_bytes(bytes: &[u8], cols: usize, unit: f64) -> Option<Blocks<f64>> {
        let mut layout = Layout::new(cols)?;
        bytes.chunks_exact(cols).for_each(|row| layout.push(row));
        layout.with(std::array::from_fn(|byte| byte as f64 * unit), Some(unit))
    }
}

impl<T: Copy> Blocks<T> {
    /// The same matrix in another precision.
    pub fn cast<U>(&self, of: impl Fn(T) -> U) -> Blocks<U> {
        let palette = Box::new(self.palette.map(&of));
        Blocks { layout: self.layout.clone(), palette, unit: self.unit.map(of) }
    }

    /// The given rows, in the given order.
    pub fn select(&self, rows: &[u32]) -> Blocks<T> {
        let mut selected = Layout::empty(self.layout.cols);
        for &row in rows {
            selected.words.extend_from_slice(self.layout.words_of(row as usize));
            selected.starts.push(selected.words.len() as u32);
        }
        assert!(selected.fits(), "too many rows for one matrix");
        Blocks { layout: Arc::new(selected), palette: self.palette.clone(), unit: self.unit }
    }

    /// The memory it occupies.
    pub fn pages(&self) -> Pages {
        Pages::default().with(&self.layout.starts).with(&self.layout.words)
    }

    /// How many columns there are.
    pub fn cols(&self) -> usize {
        self.layout.cols
    }

    /// Whether all values are multiples of one number, as products with one column require.
    pub fn has_unit(&self) -> bool {
        self.unit.is_some()
    }
}

impl Layout {
    /// No rows yet.
    fn empty(cols: usize) -> Layout {
        Layout { cols, starts: vec![0], words: Vec::new(), windows: OnceLock::new() }
    }

    /// No rows yet; `None` if there are too many columns.
    fn new(cols: usize) -> Option<Layout> {
        (1..=MAX_COLS).contains(&cols).then(|| Layout::empty(cols))
    }

    /// Appends a row, given as the codes of its values.
    fn push(&mut self, codes: &[u8]) {
        let (fours, rest) = codes.as_chunks();
        let mut last = [0; FOUR];
        last[..rest.len()].copy_from_slice(rest);
        let blocks = fours.iter().chain([&last]).enumerate();
        let blocks = blocks.filter(|(_, codes)| **codes != [0; FOUR]);
        let mut map = [0u64; WORDS];
        blocks.clone().for_each(|(b, _)| map[b / WORD] |= 1 << (b % WORD));
        self.words.extend_from_slice(map.map(u64::to_le_bytes).as_flattened().as_chunks().0);
        self.words.extend(blocks.map(|(_, codes)| codes));
        self.starts.push(self.words.len() as u32);
    }

    /// The matrix with these values, unless its blocks are mostly empty or too many.
    fn with(self, palette: [f64; 256], unit: Option<f64>) -> Option<Blocks<f64>> {
        if !self.fits() {
            return None;
        }
        let codes = (0..self.rows()).flat_map(|row| self.row(row).codes);
        let (blocks, stored) = codes.fold((0, 0), |(blocks, stored), codes| {
            (blocks + 1, stored + codes.iter().filter(|code| **code != 0).count())
        });
        (3 * stored >= FOUR * blocks).then(|| Blocks {
            layout: Arc::new(self),
            palette: Box::new(palette),
            unit,
        })
    }

    /// Whether `starts` can count the words. Every [`Blocks`] fits: products rely on it.
    fn fits(&self) -> bool {
        u32::try_from(self.words.len()).is_ok()
    }

    /// How many words of a bitmap may have bits set.
    #[inline(always)]
    fn map_words(&self) -> usize {
        self.cols.div_ceil(FOUR * WORD)
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

    #[inline(always)]
    fn row(&self, row: usize) -> PackedRow<'_> {
        let (map, codes) = self.words_of(row).split_at(WORDS * WORD / 8 / FOUR);
        PackedRow { map: map.as_flattened().as_chunks().0, codes }
    }
}

/// A row: the bitmap of its nonempty blocks, and as many blocks of codes as it has bits set.
struct PackedRow<'a> {
    map: &'a [[u8; WORD / 8]],
    codes: &'a [[u8; FOUR]],
}

impl PackedRow<'_> {
    /// A word of the bitmap.
    #[inline(always)]
    fn word(&self, word: usize) -> u64 {
        u64::from_le_bytes(self.map[word])
    }

    /// The numbers of its nonempty blocks.
    fn blocks(&self) -> impl Iterator<Item = usize> {
        (0..WORDS * WORD).filter(|b| self.word(b / WORD) >> (b % WORD) & 1 == 1)
    }
}
