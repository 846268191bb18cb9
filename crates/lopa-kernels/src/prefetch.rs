//! Prefetching: loading memory into the cache before it is read.

/// Prefetches every cache line that a slice touches.
#[inline(always)]
pub fn prefetch<T>(slice: &[T]) {
    let first = slice.as_ptr().cast::<u8>();
    let before = if align_of::<T>() >= 64 { 0 } else { first.addr() % 64 };
    for byte in (0..before + size_of_val(slice)).step_by(64) {
        prefetch_line(first.wrapping_sub(before).wrapping_add(byte));
    }
}

/// Prefetches the cache line at an address, which need not be valid.
#[inline(always)]
pub fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch accesses nothing, and every x86-64 processor has the instruction.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch accesses nothing, and every ARM processor with 64 bits has the instruction.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{}]",
            in(reg) address,
            options(nostack, readonly, preserves_flags)
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
