//! Products of dense rows of bytes, `unit · (byte − shift)`, as pixels less their mean are.
//!
//! A row takes an eighth or a quarter of what it would as numbers, and rows come from far away:
//! bytes become numbers in the registers where these are multiplied. Nothing is subtracted from
//! them: the shift is one row more.
//!
//! No lane is idle for want of classes: lanes are rows on the way forward, and columns of the rows
//! on the way back.

mod back;
mod forward;

pub use back::add_transposed;
pub use forward::product;

use super::Rows;

/// Rows of bytes.
#[derive(Debug, Clone)]
pub struct Pixels<'a, T> {
    /// Row after row.
    pub bytes: &'a [u8],
    /// What a byte counts.
    pub unit: T,
    /// What is subtracted from the bytes of every row.
    pub shift: &'a [T],
}

impl<T> Pixels<'_, T> {
    /// Where at most `N` rows begin, and the first of all rows after them.
    #[inline(always)]
    fn places<const N: usize>(&self, rows: Rows) -> [*const u8; N] {
        let cols = self.shift.len();
        let mut places = [self.bytes.as_ptr(); N];
        for (place, row) in places.iter_mut().zip(rows.iter()) {
            *place = self.bytes[row * cols..(row + 1) * cols].as_ptr();
        }
        places
    }
}

/// Cache lines of a row that are on their way while one is multiplied, in bytes.
const AHEAD: usize = 192;

/// Does something for all columns of the weights, some at a time: as many as there are registers
/// for, then what is left in few sizes, so that there is less to compile.
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
