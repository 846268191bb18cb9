//! Products of dense rows of bytes, `unit · (byte − shift)`, such as pixels less their mean.
//!
//! A row takes a quarter or an eighth of the memory that it would as numbers: bytes are converted where they are
//! multiplied.
//!
//! So that no lane is idle when there are few classes, lanes are rows in the product, and columns of
//! the rows in the transposed product; the shift is not subtracted from each byte, but multiplied as one more row. With many
//! columns of weights, lanes are those columns, and bytes become numbers less the shift, a block at a time.

mod product;
mod transposed;
mod wide;

pub use product::product;
pub use transposed::add_transposed;

use super::Rows;

/// Rows of bytes.
#[derive(Debug, Clone)]
pub struct Pixels<'a, T> {
    /// Row after row.
    pub bytes: &'a [u8],
    /// The value of one step of a byte.
    pub unit: T,
    /// Subtracted from the bytes of each row.
    pub shift: &'a [T],
}

impl<T> Pixels<'_, T> {
    /// The addresses of at most `N` rows; after them, that of the first row of all.
    #[inline(always)]
    fn addresses<const N: usize>(&self, rows: Rows) -> [*const u8; N] {
        let cols = self.shift.len();
        let mut addresses = [self.bytes.as_ptr(); N];
        for (address, row) in addresses.iter_mut().zip(rows.iter()) {
            *address = self.bytes[row * cols..(row + 1) * cols].as_ptr();
        }
        addresses
    }
}

/// How many bytes of a row to prefetch ahead.
const AHEAD: usize = 192;

/// Calls `$f` for all columns of the weights, several at a time: as many as registers allow, then
/// the rest in few sizes, so that there is less to compile.
macro_rules! panels {
    ($width:expr, |$from:ident| $f:ident::<$v:ident, _>($($arg:expr),* $(,)?)) => {
        let mut $from = 0;
        while $from < $width {
            $from += match $width - $from {
                10.. if $v::WHOLE => $f::<$v, 10>($($arg),*),
                4 | 8 => $f::<$v, 4>($($arg),*),
                5.. => $f::<$v, 5>($($arg),*),
                2.. => $f::<$v, 2>($($arg),*),
                _ => $f::<$v, 1>($($arg),*),
            };
        }
    };
}
use panels;
