//! Memory in large pages.
//!
//! Rows are drawn at random from tens of megabytes, and every iteration reads the vectors of many
//! nodes: with pages of 4 kB the processor spends much of its time on address translation. This is
//! a request only; systems without large pages ignore it.

use std::ops::Range;

/// Bytes of a large page.
const LARGE: usize = 2 << 20;

/// Memory to be put in large pages together.
#[derive(Debug, Default)]
pub struct Pages {
    addresses: Vec<Range<usize>>,
    bytes: usize,
}

impl Pages {
    /// Adds a slice.
    pub fn with<T>(mut self, slice: &[T]) -> Pages {
        self.add(slice);
        self
    }

    /// Adds a slice.
    pub fn add<T>(&mut self, slice: &[T]) {
        if !slice.is_empty() {
            let Range { start, end } = slice.as_ptr_range();
            let (start, end) = (start as usize / LARGE * LARGE, end as usize);
            self.addresses.push(start..end.next_multiple_of(LARGE));
            self.bytes += size_of_val(slice);
        }
    }

    /// Requests large pages, if the slices fill at least one.
    pub fn settle(mut self) {
        if self.bytes < LARGE {
            return;
        }
        self.addresses.sort_unstable_by_key(|range| range.start);
        let mut rest = self.addresses.into_iter().peekable();
        while let Some(Range { start, mut end }) = rest.next() {
            while let Some(next) = rest.next_if(|next| next.start <= end) {
                end = end.max(next.end);
            }
            request(start, end - start);
        }
    }
}

#[cfg(target_os = "linux")]
fn request(start: usize, bytes: usize) {
    // From Linux's mman-common.h: not every libc has it.
    const MADV_COLLAPSE: libc::c_int = 25;
    for advice in [libc::MADV_HUGEPAGE, MADV_COLLAPSE] {
        // SAFETY: these two calls change neither contents nor access rights of any mapping, and
        // fail harmlessly where nothing is mapped.
        unsafe { libc::madvise(start as *mut libc::c_void, bytes, advice) };
    }
}

#[cfg(not(target_os = "linux"))]
fn request(_start: usize, _bytes: usize) {}
