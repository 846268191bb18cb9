//! Rows in windows of eight columns, for products with one column.
//!
//! A window begins at a nonempty block of four columns and includes the block after it. Usually both
//! are nonempty, and a vector is then filled from half as many addresses.

use super::super::prefetch::prefetch;
use super::super::{Pages, Rows};
use super::{FOUR, Layout, MAX_COLS, PackedRow};

/// Columns in a window.
pub const EIGHT: usize = 8;
/// Windows in a quad.
pub const QUAD: usize = 4;
/// The largest number of quads in a row: a window begins at most at every other block.
const MAX_QUADS: usize = MAX_COLS / FOUR / 2 / QUAD;

/// Four windows: the blocks they begin at, and the codes of their values.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Quad {
    pub blocks: [u8; QUAD],
    pub codes: [[u8; EIGHT]; QUAD],
}

/// The rows of a matrix in windows.
#[derive(Debug)]
pub struct Windows {
    /// The first quad of each row, then the number of quads.
    starts: Vec<u32>,
    /// The last quad of a row is filled up with its last window, all zero.
    quads: Vec<Quad>,
    /// How many columns the windows cover: up to four more than the matrix has.
    pub reach: usize,
}

impl Windows {
    pub fn new(layout: &Layout) -> Windows {
        let mut windows = Windows { starts: vec![0], quads: Vec::new(), reach: 0 };
        let mut row = Vec::new();
        for r in 0..layout.rows() {
            windows.push(layout.row(r), &mut row);
        }
        Pages::default().with(&windows.starts).with(&windows.quads).settle();
        windows
    }

    /// Appends a row; `row` is scratch space.
    fn push(&mut self, packed: PackedRow, row: &mut Vec<(u8, [u8; EIGHT])>) {
        row.clear();
        for (block, codes) in packed.blocks().zip(packed.codes) {
            let block = block as u8;
            match row.last_mut() {
                Some((last, window)) if block - *last == 1 => {
                    window[FOUR..].copy_from_slice(codes);
                }
                _ => {
                    let mut window = [0; EIGHT];
                    window[..FOUR].copy_from_slice(codes);
                    row.push((block, window));
                }
            }
        }
        if let Some(&(last, _)) = row.last() {
            self.reach = self.reach.max(FOUR * last as usize + EIGHT);
            row.resize(row.len().next_multiple_of(QUAD), (last, [0; EIGHT]));
        }
        self.quads.extend(row.as_chunks().0.iter().map(|quad: &[_; QUAD]| Quad {
            blocks: quad.map(|(block, _)| block),
            codes: quad.map(|(_, codes)| codes),
        }));
        self.starts.push(self.quads.len() as u32);
    }

    /// How many quads a row has.
    #[inline(always)]
    fn length(&self, row: usize) -> usize {
        (self.starts[row + 1] - self.starts[row]) as usize
    }
}

/// Some rows, sorted by length.
///
/// In any other order the processor mispredicts the end of nearly every row, which takes as long as
/// the products.
pub struct Sorted<'a> {
    windows: &'a Windows,
    entries: [Entry; Sorted::MAX],
    count: usize,
}

/// The quads of a row, and its index among the rows wanted.
#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    length: u16,
    r: u16,
}

impl<'a> Sorted<'a> {
    /// The largest number of rows.
    pub const MAX: usize = 128;

    #[inline(always)]
    pub fn new(windows: &'a Windows, rows: Rows) -> Sorted<'a> {
        let mut entries = [Entry { start: 0, length: 0, r: 0 }; Sorted::MAX];
        let mut at = [0; MAX_QUADS + 2]; // where the next row of each length goes
        rows.iter().for_each(|row| at[windows.length(row) + 1] += 1);
        (1..at.len()).for_each(|length| at[length] += at[length - 1]);
        for (r, row) in rows.iter().enumerate() {
            let length = windows.length(row);
            let start = windows.starts[row];
            entries[at[length]] = Entry { start, length: length as u16, r: r as u16 };
            at[length] += 1;
        }
        Sorted { windows, entries, count: rows.len() }
    }

    /// The rows, each with its index among the rows wanted; later ones are prefetched meanwhile.
    #[inline(always)]
    pub fn visit(&self) -> impl Iterator<Item = (usize, &'a [Quad])> {
        let entries = &self.entries[..self.count];
        entries.iter().take(AHEAD).for_each(|&entry| prefetch(self.quads(entry)));
        entries.iter().enumerate().map(move |(i, &entry)| {
            entries.get(i + AHEAD).into_iter().for_each(|&entry| prefetch(self.quads(entry)));
            (entry.r as usize, self.quads(entry))
        })
    }

    #[inline(always)]
    fn quads(&self, Entry { start, length, .. }: Entry) -> &'a [Quad] {
        &self.windows.quads[start as usize..start as usize + length as usize]
    }
}

/// How many rows ahead to prefetch: they are far apart in memory.
const AHEAD: usize = 8;
