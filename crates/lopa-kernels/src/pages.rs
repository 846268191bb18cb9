//! Memory in large pages.
//!
//! Rows are drawn at random from tens of megabytes, and the vectors of many nodes are gone through
//! in every iteration: in pages of four kilobytes the processor spends much of its time on looking
//! up where they are. Where the system does not listen, nothing happens.

use std::ops::Range;

/// Bytes of a large page.
const LARGE: usize = 2 << 20;

/// Places in memory, to be put in large pages together.
#[derive(Debug, Default)]
pub struct Pages {
    addresses: Vec<Range<usize>>,
    bytes: usize,
}

impl Pages {
    /// With one more slice.
    pub fn with<T>(mut self, slice: &[T]) -> Pages {
        self.add(slice);
        self
    }

    /// One more slice.
    pub fn add<T>(&mut self, slice: &[T]) {
        if !slice.is_empty() {
            let Range { start, end } = slice.as_ptr_range();
            let (start, end) = (start as usize / LARGE * LARGE, end as usize);
            self.addresses.push(start..end.next_multiple_of(LARGE));
            self.bytes += size_of_val(slice);
        }
    }

    /// Asks for large pages, if there is enough to fill one.
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
            ask(start, end - start);
        }
    }
}

#[cfg(target_os = "linux")]
fn ask(start: usize, bytes: usize) {
    for advice in [libc::MADV_HUGEPAGE, libc::MADV_COLLAPSE] {
        // SAFETY: what is in memory stays as it is, whatever lies there.
        unsafe { libc::madvise(start as *mut libc::c_void, bytes, advice) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask(_start: usize, _bytes: usize) {}
