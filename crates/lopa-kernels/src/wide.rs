//! Loops of plain Rust, compiled for what the processor has.
//!
//! The compiler puts as many numbers side by side as it is allowed to. It neither fuses nor
//! reorders operations, so that results have the same bits everywhere.

use super::{Level, Set};

/// A loop.
pub trait Loop {
    /// Runs it. Must be `#[inline(always)]`, or it is compiled for any processor.
    fn run(self);
}

impl Level {
    /// Runs a loop in the widest vectors of this level.
    #[inline(always)]
    pub fn run(self, a_loop: impl Loop) {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512vl,avx2")]
        fn avx512(a_loop: impl Loop) {
            a_loop.run();
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn avx2(a_loop: impl Loop) {
            a_loop.run();
        }
        match self.0 {
            // SAFETY: a level is one that the processor has.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512(a_loop) },
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2(a_loop) },
            Set::Baseline => a_loop.run(),
        }
    }
}
