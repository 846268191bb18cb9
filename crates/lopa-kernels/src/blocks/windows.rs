//! Rows in windows of eight columns, for products with one column.
//!
//! A window begins where a block of four columns does and covers the block after it as well: most
//! of the time both hold something, and a vector is filled from half as many places.

use super::super::fetch::fetch;
use super::super::{Pages, Rows};
use super::{FOUR, Layout, MOST, Row};

/// Columns of a window.
pub const EIGHT: usize = 8;
/// Windows of a row come in so many.
pub const QUAD: usize = 4;
/// Quads of a row, at most: of two blocks that follow each other a window begins at one.
const LONGEST: usize = MOST / FOUR / 2 / QUAD;

/// Four windows: the numbers of the blocks where they begin, and their values.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Quad {
    pub numbers: [u8; QUAD],
    pub values: [[u8; EIGHT]; QUAD],
}

/// The rows of a matrix in windows.
#[derive(Debug)]
pub struct Windows {
    /// Where each row begins, and where the last ends.
    starts: Vec<u32>,
    /// There are whole quads: the last window comes again where one is missing, with zeros.
    quads: Vec<Quad>,
    /// So many columns the windows cover: up to four more than there are.
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

    /// One more row; `row` is room for it.
    fn push(&mut self, blocks: Row, row: &mut Vec<(u8, [u8; EIGHT])>) {
        row.clear();
        for (number, values) in blocks.numbers().zip(blocks.values) {
            let number = number as u8;
            match row.last_mut() {
                Some((last, window)) if number - *last == 1 => {
                    window[FOUR..].copy_from_slice(values);
                }
                _ => {
                    let mut window = [0; EIGHT];
                    window[..FOUR].copy_from_slice(values);
                    row.push((number, window));
                }
            }
        }
        if let Some(&(last, _)) = row.last() {
            self.reach = self.reach.max(FOUR * last as usize + EIGHT);
            row.resize(row.len().next_multiple_of(QUAD), (last, [0; EIGHT]));
        }
        self.quads.extend(row.as_chunks().0.iter().map(|quad: &[_; QUAD]| Quad {
            numbers: quad.map(|(number, _)| number),
            values: quad.map(|(_, values)| values),
        }));
        self.starts.push(self.quads.len() as u32);
    }

    /// Quads of a row.
    #[inline(always)]
    fn length(&self, row: usize) -> usize {
        (self.starts[row + 1] - self.starts[row]) as usize
    }
}

/// Some rows in the order of their lengths.
///
/// Where rows of all lengths follow each other, the processor guesses wrong where each of them ends,
/// and that takes it as long as the products do.
pub struct Sorted<'a> {
    windows: &'a Windows,
    places: [Place; Sorted::MOST],
    count: usize,
}

/// Where a row is, and which of the rows wanted it is.
#[derive(Clone, Copy)]
struct Place {
    start: u32,
    length: u16,
    r: u16,
}

impl<'a> Sorted<'a> {
    /// So many rows are sorted at a time.
    pub const MOST: usize = 128;

    #[inline(always)]
    pub fn new(windows: &'a Windows, rows: Rows) -> Sorted<'a> {
        let mut places = [Place { start: 0, length: 0, r: 0 }; Sorted::MOST];
        let mut at = [0; LONGEST + 2]; // where rows of each length go
        rows.iter().for_each(|row| at[windows.length(row) + 1] += 1);
        (1..at.len()).for_each(|length| at[length] += at[length - 1]);
        for (r, row) in rows.iter().enumerate() {
            let length = windows.length(row);
            let start = windows.starts[row];
            places[at[length]] = Place { start, length: length as u16, r: r as u16 };
            at[length] += 1;
        }
        Sorted { windows, places, count: rows.len() }
    }

    /// Each row, with its number among those wanted; rows to come are on their way meanwhile.
    #[inline(always)]
    pub fn visit(&self) -> impl Iterator<Item = (usize, &'a [Quad])> {
        let places = &self.places[..self.count];
        places.iter().take(AHEAD).for_each(|&place| self.ask(place));
        places.iter().enumerate().map(move |(i, &place)| {
            places.get(i + AHEAD).into_iter().for_each(|&place| self.ask(place));
            (place.r as usize, self.quads(place))
        })
    }

    #[inline(always)]
    fn quads(&self, Place { start, length, .. }: Place) -> &'a [Quad] {
        &self.windows.quads[start as usize..start as usize + length as usize]
    }

    #[inline(always)]
    fn ask(&self, place: Place) {
        fetch(self.quads(place));
    }
}

/// Rows lie far apart: fetching one so many turns early hides how long that takes.
const AHEAD: usize = 8;
