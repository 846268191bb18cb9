//! Asking for memory before it is read.

/// Asks for every cache line of a slice, from that on which it begins to that on which it ends.
#[inline(always)]
pub fn fetch<T>(slice: &[T]) {
    let first = slice.as_ptr().cast::<u8>();
    let before = if align_of::<T>() >= 64 { 0 } else { first.addr() % 64 };
    for byte in (0..before + size_of_val(slice)).step_by(64) {
        fetch_line(first.wrapping_sub(before).wrapping_add(byte));
    }
}

/// Asks for a cache line, wherever it is.
#[inline(always)]
pub fn fetch_line(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch touches nothing, and every such processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
