//! Loops of plain Rust, compiled for each instruction set.
//!
//! The compiler vectorises them as widely as it may. It neither fuses nor reorders operations, so
//! results have the same bits everywhere.

use super::{Level, Set};

/// A loop to run at a [`Level`].
pub trait Loop {
    /// Runs the loop. Must be `#[inline(always)]`; otherwise it is compiled for the baseline.
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
            // SAFETY: the processor has these instructions, because `Level::best` detected them.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512(a_loop) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2(a_loop) },
            // All processors with ARM's 64-bit instructions have NEON, and the baseline uses it.
            #[cfg(target_arch = "aarch64")]
            Set::Neon => a_loop.run(),
            Set::Baseline => a_loop.run(),
        }
    }
}
