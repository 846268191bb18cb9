//! Asking for memory before it is read.

/// Asks for every cache line of a slice.
#[inline(always)]
pub fn fetch<T>(slice: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // From the line on which it begins to that on which it ends.
        let first = slice.as_ptr().cast::<i8>();
        let before = if align_of::<T>() >= 64 { 0 } else { first.addr() % 64 };
        for byte in (0..before + size_of_val(slice)).step_by(64) {
            // SAFETY: a prefetch touches nothing, and every such processor has it.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_sub(before).wrapping_add(byte)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slice;
}
