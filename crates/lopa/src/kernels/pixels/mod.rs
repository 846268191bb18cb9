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
/// for.
macro_rules! panels {
    ($width:expr, |$from:ident| $f:ident::<$v:ident, _>($($arg:expr),* $(,)?)) => {
        let most = if $v::WHOLE { 10 } else { 5 };
        let size = $width.div_ceil($width.div_ceil(most).max(1)).max(1);
        for $from in (0..$width).step_by(size) {
            match size.min($width - $from) {
                1 => $f::<$v, 1>($($arg),*),
                2 => $f::<$v, 2>($($arg),*),
                3 => $f::<$v, 3>($($arg),*),
                4 => $f::<$v, 4>($($arg),*),
                5 => $f::<$v, 5>($($arg),*),
                6 if $v::WHOLE => $f::<$v, 6>($($arg),*),
                7 if $v::WHOLE => $f::<$v, 7>($($arg),*),
                8 if $v::WHOLE => $f::<$v, 8>($($arg),*),
                9 if $v::WHOLE => $f::<$v, 9>($($arg),*),
                _ if $v::WHOLE => $f::<$v, 10>($($arg),*),
                _ => unreachable!("no more than five"),
            }
        }
    };
}
use panels;
