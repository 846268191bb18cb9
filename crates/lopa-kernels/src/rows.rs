//! Which rows a kernel takes.

/// Rows of a matrix: by number, or by numbers in a list of rows.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The numbers, in the order wanted.
    pub numbers: &'a [u32],
    /// The rows that the numbers stand for; without it they stand for themselves.
    pub of: Option<&'a [u32]>,
}

impl<'a> Rows<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// So many of them at a time, the last time fewer.
    #[inline(always)]
    pub fn chunks(&self, size: usize) -> impl Iterator<Item = Rows<'a>> {
        let of = self.of;
        self.numbers.chunks(size).map(move |numbers| Rows { numbers, of })
    }

    /// The i-th row, if there are so many.
    #[inline(always)]
    pub fn at(&self, i: usize) -> Option<usize> {
        let &j = self.numbers.get(i)?;
        Some(self.of.map_or(j, |of| of[j as usize]) as usize)
    }

    /// The rows.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = usize> + Clone {
        let of = self.of;
        self.numbers.iter().map(move |&j| of.map_or(j, |of| of[j as usize]) as usize)
    }
}

/// Calls `f(number of the first, rows)` for rows one after the other, some at a time.
pub fn each_block<T>(values: &[T], cols: usize, mut f: impl FnMut(usize, &[&[T]])) {
    let mut block: [&[T]; BLOCK] = [&[]; BLOCK];
    for (b, values) in values.chunks(BLOCK * cols).enumerate() {
        let count = values.len() / cols;
        block.iter_mut().zip(values.chunks_exact(cols)).for_each(|(place, row)| *place = row);
        f(b * BLOCK, &block[..count]);
    }
}

/// So many dense rows are multiplied at a time: they stay in the cache.
pub const BLOCK: usize = 64;
