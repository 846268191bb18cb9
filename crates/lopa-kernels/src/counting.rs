//! An allocator that counts, for tests that claim that nothing is allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which also counts the allocations of each thread.
///
/// ```
/// #[global_allocator]
/// static COUNTING: lopa_kernels::counting::Counting = lopa_kernels::counting::Counting;
///
/// fn main() {
///     use lopa_kernels::counting::Counting;
///     let before = Counting::allocations();
///     drop(std::hint::black_box(vec![0; 100]));
///     assert_eq!(Counting::allocations() - before, 1);
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

impl Counting {
    /// Allocations and reallocations of this thread so far; always 0 where `Counting` is not the
    /// program's allocator.
    pub fn allocations() -> u64 {
        ALLOCATIONS.get()
    }

    /// Bytes that this thread has allocated less those that it has freed.
    pub fn bytes() -> i64 {
        BYTES.get()
    }

    /// Whether it is the program's allocator.
    pub fn is_installed() -> bool {
        let before = Counting::allocations();
        drop(std::hint::black_box(Box::new(0u8)));
        Counting::allocations() > before
    }
}

fn count(allocations: u64, bytes: i64) {
    // A thread that is ending no longer has counters.
    let _ = ALLOCATIONS.try_with(|all| all.set(all.get() + allocations));
    let _ = BYTES.try_with(|all| all.set(all.get() + bytes));
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting accesses only the
// thread's own counters, which are never allocated.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: as for this function, by its caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: as for this function, by its caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: as for this function, by its caller.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        // SAFETY: as for this function, by its caller.
        unsafe { System.realloc(place, layout, size) }
    }
}
