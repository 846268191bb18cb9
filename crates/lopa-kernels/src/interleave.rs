//! Transposing bytes by interleaving registers, for every instruction set that interleaves.

/// Interleaves register i with register i + 8: the highest bit of a register's number becomes the
/// lowest bit of the position in it, and the highest bit of the position the lowest of the number.
macro_rules! interleave {
    ($low:ident, $high:ident, $x:ident) => {
        $crate::interleave::interleave!($low, $high, $x, 0 1 2 3 4 5 6 7)
    };
    ($low:ident, $high:ident, $x:ident, $($i:literal)*) => {
        [$($low($x[$i], $x[$i + 8]), $high($x[$i], $x[$i + 8])),*]
    };
}

/// Transposes bytes, several groups of 16 columns at a time; after four rounds, positions and register
/// numbers have changed places.
macro_rules! transpose_bytes {
    ($name:ident, $groups:literal, $zero:ident, $load:ident, $store:ident, $low:ident, $high:ident) => {
        #[inline(always)]
        pub unsafe fn $name(rows: &[*const u8; 16], to: *mut u8) {
            for group in (0..4).step_by($groups) {
                let mut x = [$zero(); 16];
                for r in 0..16 {
                    x[r] = $load(rows[r].add(16 * group).cast());
                }
                let x = $crate::interleave::interleave!($low, $high, x);
                let x = $crate::interleave::interleave!($low, $high, x);
                let x = $crate::interleave::interleave!($low, $high, x);
                let x = $crate::interleave::interleave!($low, $high, x);
                for q in 0..16 {
                    $store(to.add((4 * q + group) * 16).cast(), x[q]);
                }
            }
        }
    };
}

pub(crate) use {interleave, transpose_bytes};
