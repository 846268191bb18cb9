//! Products of dense rows of bytes, `unit · (byte − shift)`, such as pixels less their mean.
//!
//! A row takes a quarter or an eighth of the memory that it would as numbers: bytes are converted in
//! the registers where they are multiplied. The shift is not subtracted from each byte; it is
//! multiplied as one more row.
//!
//! So that no lane is idle when there are few classes, lanes are rows in the product, and columns of
//! the rows in the transposed product. With many columns of weights they are those columns.

mod product;
mod transposed;
mod wide;

use super::Rows;
use super::vector::Vector;

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

/// From this many columns of weights on, lanes are these columns: in the product, and in the transposed product.
const WIDE: usize = 22;
const WIDE_TRANSPOSED: usize = 11;

/// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`.
///
/// # Safety
/// See [`Vector`]; `weights` is cols × width, `out` rows × width.
#[inline(always)]
pub unsafe fn product<V: Vector>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    // SAFETY: as for this function.
    unsafe {
        match width {
            WIDE.. => wide::product::<V>(pixels, rows, weights, width, out),
            _ => product::product::<V>(pixels, rows, weights, width, out),
        }
    }
}

/// `out[q, :] += Σ_r a[row_r, q] delta[r, :]`.
///
/// # Safety
/// See [`Vector`]; `delta` is rows × width, `out` cols × width.
#[inline(always)]
pub unsafe fn add_transposed<V: Vector>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    // SAFETY: as for this function.
    unsafe {
        match width {
            WIDE_TRANSPOSED.. => wide::add_transposed::<V>(pixels, rows, delta, width, out),
            _ => transposed::add_transposed::<V>(pixels, rows, delta, width, out),
        }
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
