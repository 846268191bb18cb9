//! Which rows a kernel takes.

/// A selection of rows of a matrix: by number, or by position in a list of numbers.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The numbers, in the order wanted.
    pub numbers: &'a [u32],
    /// If given, the numbers are positions in this list of row numbers.
    pub of: Option<&'a [u32]>,
}

impl<'a> Rows<'a> {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Chunks of `size` rows; the last may be shorter.
    #[inline(always)]
    pub fn chunks(&self, size: usize) -> impl Iterator<Item = Rows<'a>> {
        let of = self.of;
        self.numbers.chunks(size).map(move |numbers| Rows { numbers, of })
    }

    /// The row number at index `i`, if there is one.
    #[inline(always)]
    pub fn at(&self, i: usize) -> Option<usize> {
        let &j = self.numbers.get(i)?;
        Some(self.of.map_or(j, |of| of[j as usize]) as usize)
    }

    /// The row numbers.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = usize> + Clone {
        let of = self.of;
        self.numbers.iter().map(move |&j| of.map_or(j, |of| of[j as usize]) as usize)
    }
}

/// Calls `f(number of the first row, rows)` for consecutive rows of `values`, up to [`BLOCK`] at a
/// time.
#[inline]
pub fn each_block<T>(values: &[T], cols: usize, mut f: impl FnMut(usize, &[&[T]])) {
    let mut block: [&[T]; BLOCK] = [&[]; BLOCK];
    for (b, values) in values.chunks(BLOCK * cols).enumerate() {
        let count = values.len() / cols;
        for (r, slot) in block[..count].iter_mut().enumerate() {
            *slot = &values[r * cols..(r + 1) * cols];
        }
        f(b * BLOCK, &block[..count]);
    }
}

/// How many dense rows to multiply at a time, so that they stay in the cache.
pub const BLOCK: usize = 64;
