//! Rows in one allocation, each aligned to 64 bytes.
//!
//! The vectors of many nodes can then be passed on as one matrix, without a copy, although each is
//! owned on its own and may be sent to another thread.
//!
//! On names: [`Rows`](crate::Rows) selects rows of a matrix by number, and
//! [`Blocks`](crate::Blocks) is a matrix; so these are [`AlignedRow`] and [`aligned_rows`].

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

/// The alignment of a row in bytes: a cache line, and a vector of the kernels.
const ALIGNMENT: usize = 64;

/// A row of an allocation that it may share with others; see [`aligned_rows`].
///
/// A clone, and a row made from a `Vec`, has an allocation of its own.
pub struct AlignedRow<T> {
    // The `stride` numbers from `start` on belong to this row alone, and the first `length` of them
    // are initialised. They are `Copy`, so they need not be dropped.
    start: NonNull<T>,
    length: usize,
    stride: usize,
    _allocation: Arc<Allocation>, // kept alive
}

/// `count` rows of `length` numbers each, all `T::default()`, in one allocation.
///
/// Every row is aligned to 64 bytes: row r begins [`stride`](AlignedRow::stride) numbers after row
/// r − 1, and the bytes between them are zero. The memory is freed when the last row is dropped.
///
/// # Panics
///
/// If the rows take more than `isize::MAX` bytes, with the message "… rows of … numbers exceed the
/// address space".
///
/// # Example
///
/// ```
/// let mut rows = lopa_kernels::aligned_rows::<f32>(3, 20);
/// rows[1][0] = 1.0;
/// assert_eq!(rows[0].stride(), 32); // 20 numbers, padded to a multiple of 64 bytes
/// assert_eq!(rows[1].as_ptr(), rows[0].as_ptr().wrapping_add(32));
/// ```
pub fn aligned_rows<T: Copy + Default>(count: usize, length: usize) -> Vec<AlignedRow<T>> {
    filled(count, length, |_| T::default())
}

/// Rows whose number at index i is `value(i)`.
fn filled<T: Copy>(count: usize, length: usize, value: impl Fn(usize) -> T) -> Vec<AlignedRow<T>> {
    let Some((stride, layout)) = shape::<T>(count, length) else {
        panic!("{count} rows of {length} numbers exceed the address space");
    };
    let allocation = Arc::new(Allocation::new(layout));
    let first = allocation.start.cast::<T>();
    let row = |r: usize| {
        // SAFETY: r < count, so the row is within the allocation.
        let start = unsafe { first.add(r * stride) };
        for i in 0..length {
            // SAFETY: i < length ≤ stride, and no other row has access.
            unsafe { start.add(i).write(value(i)) };
        }
        AlignedRow { start, length, stride, _allocation: allocation.clone() }
    };
    (0..count).map(row).collect()
}

/// The stride of rows of `length` numbers, and the layout of `count` of them; `None` if they are too
/// large.
fn shape<T>(count: usize, length: usize) -> Option<(usize, Layout)> {
    // The largest power of two, up to the alignment, that divides the size of a number.
    let divisor = 1 << size_of::<T>().trailing_zeros().min(ALIGNMENT.ilog2());
    let stride = length.checked_next_multiple_of(ALIGNMENT / divisor)?;
    let layout = Layout::array::<T>(stride.checked_mul(count)?).ok()?;
    Some((stride, layout.align_to(ALIGNMENT).ok()?))
}

impl<T> AlignedRow<T> {
    /// How many numbers after this row the next row of its allocation begins: the length, padded to
    /// a multiple of 64 bytes.
    pub fn stride(&self) -> usize {
        self.stride
    }
}

// SAFETY: a row alone has access to its numbers, as a `Box<[T]>` has. Rows share only ownership of
// the allocation; the `Arc` frees it after all accesses.
unsafe impl<T: Send> Send for AlignedRow<T> {}
// SAFETY: as above; `&AlignedRow<T>` gives access to `&[T]` only.
unsafe impl<T: Sync> Sync for AlignedRow<T> {}

impl<T> Deref for AlignedRow<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `length` numbers from `start` on are initialised, allocated as long as the row
        // exists, and accessible through this row alone, which is borrowed.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T> DerefMut for AlignedRow<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the row is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl<T: Copy> From<&[T]> for AlignedRow<T> {
    /// Copies the numbers, so that they are aligned.
    fn from(numbers: &[T]) -> AlignedRow<T> {
        filled(1, numbers.len(), |i| numbers[i]).remove(0)
    }
}

impl<T: Copy> From<Vec<T>> for AlignedRow<T> {
    /// Copies the numbers, so that they are aligned.
    fn from(numbers: Vec<T>) -> AlignedRow<T> {
        numbers.as_slice().into()
    }
}

impl<T: Copy> Clone for AlignedRow<T> {
    fn clone(&self) -> AlignedRow<T> {
        (**self).into()
    }
}

impl<T: PartialEq> PartialEq for AlignedRow<T> {
    fn eq(&self, other: &AlignedRow<T>) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug> fmt::Debug for AlignedRow<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Zeroed memory, freed when dropped.
struct Allocation {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: nothing is accessed through an allocation; it is freed, which any thread may do.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Allocation {
    fn new(layout: Layout) -> Allocation {
        let start = match layout.size() {
            0 => layout.dangling_ptr(),
            // SAFETY: the size is not zero.
            _ => NonNull::new(unsafe { alloc_zeroed(layout) })
                .unwrap_or_else(|| handle_alloc_error(layout)),
        };
        Allocation { start, layout }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: `new` allocated it with this layout.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_layout<T: Copy + Default>(count: usize, length: usize) {
        let rows = aligned_rows::<T>(count, length);
        assert_eq!(rows.len(), count);
        for (r, row) in rows.iter().enumerate() {
            let (address, stride) = (row.as_ptr().addr(), row.stride());
            assert_eq!((row.len(), address % 64), (length, 0));
            assert!(stride >= length && (stride * size_of::<T>()).is_multiple_of(64));
            assert_eq!(address, rows[0].as_ptr().addr() + r * stride * size_of::<T>());
        }
    }

    #[test]
    fn rows_are_aligned_and_a_stride_apart() {
        for length in 0..130 {
            check_layout::<f32>(3, length);
            check_layout::<f64>(3, length);
            check_layout::<u8>(3, length);
            check_layout::<[f32; 3]>(3, length);
            check_layout::<[f64; 16]>(3, length);
            check_layout::<()>(3, length);
        }
        assert_eq!(aligned_rows::<f32>(1, 17)[0].stride(), 32);
        assert_eq!(aligned_rows::<f64>(1, 17)[0].stride(), 24);
        assert_eq!(aligned_rows::<[f32; 3]>(1, 17)[0].stride(), 32);
    }

    #[test]
    fn types_with_a_larger_alignment_keep_it() {
        #[derive(Clone, Copy, Default)]
        #[repr(align(256))]
        struct Wide(u8);
        let mut rows = aligned_rows::<Wide>(3, 2);
        rows[2][1].0 = 7;
        assert!(rows.iter().all(|row| row.as_ptr().addr().is_multiple_of(256)));
        assert_eq!((rows[2][1].0, rows[2].stride()), (7, 2));
    }

    #[test]
    fn rows_begin_with_the_default_and_do_not_overlap() {
        let mut rows = aligned_rows::<f64>(5, 11);
        assert!(rows.iter().all(|row| **row == [0.0; 11]));
        for (r, row) in rows.iter_mut().enumerate() {
            row.fill(r as f64);
        }
        for (r, row) in rows.iter().enumerate() {
            assert!(row.iter().all(|&number| number == r as f64), "{row:?}");
        }
        assert!(aligned_rows::<Option<char>>(2, 2).iter().all(|row| **row == [None; 2]));
    }

    #[test]
    fn rows_outlive_each_other_in_any_order() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let mut rows: Vec<_> = aligned_rows::<u32>(3, 100).into_iter().map(Some).collect();
            for (r, row) in rows.iter_mut().flatten().enumerate() {
                row.fill(r as u32);
            }
            let allocation = Arc::downgrade(&rows[0].as_ref().unwrap()._allocation);
            for dropped in order {
                assert!(allocation.upgrade().is_some(), "freed while a row is left");
                rows[dropped] = None;
                for (r, row) in rows.iter().enumerate() {
                    assert!(row.iter().flat_map(|row| row.iter()).all(|&n| n == r as u32));
                }
            }
            assert!(allocation.upgrade().is_none(), "not freed");
        }
    }

    #[test]
    fn threads_write_their_rows_at_the_same_time() {
        let mut rows = aligned_rows::<u64>(4, 33);
        std::thread::scope(|scope| {
            for (r, row) in rows.iter_mut().enumerate() {
                scope.spawn(move || {
                    (0..1000).for_each(|_| row.iter_mut().for_each(|n| *n += r as u64))
                });
            }
        });
        for (r, row) in rows.into_iter().enumerate() {
            let sum = std::thread::spawn(move || row.iter().sum::<u64>()).join().unwrap();
            assert_eq!(sum, 33_000 * r as u64);
        }
    }

    #[test]
    fn no_rows_and_empty_rows() {
        assert!(aligned_rows::<f32>(0, 7).is_empty());
        assert!(aligned_rows::<f32>(0, 0).is_empty());
        let mut rows = aligned_rows::<f32>(3, 0);
        assert!(rows.iter().all(|row| row.is_empty() && row.stride() == 0));
        rows[1].fill(1.0);
        let (clone, none) = (rows[0].clone(), AlignedRow::from(Vec::<f32>::new()));
        drop(rows);
        assert_eq!(clone, none);
    }

    #[test]
    fn clones_and_vectors_have_allocations_of_their_own() {
        let mut rows = aligned_rows::<f32>(2, 3);
        rows[1].copy_from_slice(&[1.0, 2.0, 3.0]);
        let mut clone = rows[1].clone();
        assert_eq!(clone, rows[1]);
        assert!(!Arc::ptr_eq(&clone._allocation, &rows[1]._allocation));
        clone[0] = 5.0;
        assert_eq!(*rows[1], [1.0, 2.0, 3.0]);
        let row = AlignedRow::from(vec![1.0, 2.0, 3.0]);
        assert!(row == rows[1] && row != clone && row.as_ptr().addr().is_multiple_of(64));
        assert_eq!(format!("{row:?}"), "[1.0, 2.0, 3.0]");
    }

    #[test]
    #[should_panic(expected = "2 rows of 18446744073709551615 numbers exceed the address space")]
    #[cfg(target_pointer_width = "64")]
    fn the_length_is_too_large() {
        aligned_rows::<f32>(2, usize::MAX);
    }

    #[test]
    #[should_panic(expected = "exceed the address space")]
    fn the_count_is_too_large() {
        aligned_rows::<f32>(usize::MAX / 16 + 2, 1); // the number of numbers wraps around to 16
    }

    #[test]
    #[should_panic(expected = "exceed the address space")]
    fn the_bytes_are_too_many() {
        aligned_rows::<f64>(1, isize::MAX as usize / 8 + 1);
    }
}
