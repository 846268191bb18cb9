//! One vector register's worth of numbers, so that every kernel is written once.

/// Numbers side by side. Kernels are generic over it; each instruction set has its own.
///
/// # Safety
/// Methods may use instructions beyond the baseline: call them only where the processor has them,
/// and inside a function compiled for them. Pointers must be good for [`LANES`](Vector::LANES)
/// numbers, or for those that the mask selects.
pub unsafe trait Vector: Copy {
    /// f32 or f64.
    type Scalar: Copy + 'static;
    /// The lanes that a partial load or store touches.
    type Mask: Copy;
    /// How many numbers there are.
    const LANES: usize;
    const ZERO: Self::Scalar;
    const ONE: Self::Scalar;
    /// Below every number.
    const LOWEST: Self::Scalar;
    /// 1/0!, 1/1!, … as far as eˣ needs them for |x| ≤ ln 2 / 2.
    const INVERSE_FACTORIALS: &'static [Self::Scalar];

    /// The first `n` lanes.
    unsafe fn mask(n: usize) -> Self::Mask;
    unsafe fn splat(value: Self::Scalar) -> Self;
    unsafe fn load(from: *const Self::Scalar) -> Self;
    /// Lanes outside the mask are zero.
    unsafe fn load_part(from: *const Self::Scalar, mask: Self::Mask) -> Self;
    /// Lane l takes the next number from memory if bit l is set, else zero.
    unsafe fn expand(from: *const Self::Scalar, bits: u32) -> Self;
    unsafe fn store(self, to: *mut Self::Scalar);
    unsafe fn store_part(self, to: *mut Self::Scalar, mask: Self::Mask);
    /// `to[l] += a · with[l]` for the first `n` < LANES lanes, with stores that touch no others: a
    /// load that follows a masked store close by would have to wait for it.
    unsafe fn add_part(to: *mut Self::Scalar, a: Self::Scalar, with: *const Self::Scalar, n: usize);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self · a + b`.
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    /// The larger; `other` where one is not a number.
    unsafe fn max(self, other: Self) -> Self;
    /// The smaller; `other` where one is not a number.
    unsafe fn min(self, other: Self) -> Self;
    /// Lanes outside the mask become `other`'s.
    unsafe fn or_else(self, other: Self, mask: Self::Mask) -> Self;
    /// The sum of all lanes.
    unsafe fn total(self) -> Self::Scalar;
    /// The largest lane.
    unsafe fn top(self) -> Self::Scalar;
    /// x = n ln 2 + r with |r| ≤ ln 2 / 2: (r, 2ⁿ⁻¹), for x within [`EXP_RANGE`](Self::EXP_RANGE).
    unsafe fn reduce(self) -> (Self, Self);
    /// Below the first, eˣ is taken for the least it can be; above the second it is infinite.
    const EXP_RANGE: [Self::Scalar; 2];
}

/// The parts of ln 2, and the number whose addition rounds to an integer.
pub struct Split<T> {
    pub log2_e: T,
    pub high: T,
    pub low: T,
    pub round: T,
}

pub const SPLIT32: Split<f32> = Split {
    log2_e: std::f32::consts::LOG2_E,
    high: 0.693_359_375, // nine bits, so that n · high is exact
    low: -2.121_944_4e-4,
    round: 12_582_912.0, // 1.5 · 2²³
};

pub const SPLIT64: Split<f64> = Split {
    log2_e: std::f64::consts::LOG2_E,
    high: 0.693_147_180_369_123_8, // 32 bits, so that n · high is exact
    low: 1.908_214_929_270_587_7e-10,
    round: 6_755_399_441_055_744.0, // 1.5 · 2⁵²
};

const fn inverse_factorials<const N: usize>() -> [f64; N] {
    let mut all = [1.0; N];
    let mut k = 1;
    while k < N {
        all[k] = all[k - 1] / k as f64;
        k += 1;
    }
    all
}

pub const FACTORIALS64: [f64; 14] = inverse_factorials();
pub const FACTORIALS32: [f32; 8] = {
    let (from, mut all): ([f64; 8], _) = (inverse_factorials(), [1.0; 8]);
    let mut k = 0;
    while k < 8 {
        all[k] = from[k] as f32;
        k += 1;
    }
    all
};

/// Plain Rust: what the compiler makes of it on any processor.
#[derive(Clone, Copy)]
pub struct Plain<T>([T; 8]);

macro_rules! plain {
    ($t:ty, $split:expr, $bias:expr, $shift:expr, $range:expr, $factorials:expr) => {
        #[allow(unsafe_code)]
        // SAFETY: only the given pointers are touched, and no more of them than the trait says.
        unsafe impl Vector for Plain<$t> {
            type Scalar = $t;
            type Mask = usize;
            const LANES: usize = 8;
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const LOWEST: $t = <$t>::NEG_INFINITY;
            const INVERSE_FACTORIALS: &'static [$t] = &$factorials;
            const EXP_RANGE: [$t; 2] = $range;

            #[inline(always)]
            unsafe fn mask(n: usize) -> usize {
                n
            }
            #[inline(always)]
            unsafe fn splat(value: $t) -> Self {
                Plain([value; 8])
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                Plain(std::array::from_fn(|l| unsafe { *from.add(l) }))
            }
            #[inline(always)]
            unsafe fn load_part(from: *const $t, mask: usize) -> Self {
                Plain(std::array::from_fn(|l| if l < mask { unsafe { *from.add(l) } } else { 0.0 }))
            }
            #[inline(always)]
            unsafe fn expand(mut from: *const $t, bits: u32) -> Self {
                let mut lanes = [0.0; 8];
                for l in 0..8 {
                    if bits >> l & 1 == 1 {
                        unsafe {
                            lanes[l] = *from;
                            from = from.add(1);
                        }
                    }
                }
                Plain(lanes)
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                (0..8).for_each(|l| unsafe { *to.add(l) = self.0[l] });
            }
            #[inline(always)]
            unsafe fn store_part(self, to: *mut $t, mask: usize) {
                (0..mask).for_each(|l| unsafe { *to.add(l) = self.0[l] });
            }
            #[inline(always)]
            unsafe fn add_part(to: *mut $t, a: $t, with: *const $t, n: usize) {
                (0..n).for_each(|l| unsafe { *to.add(l) += a * *with.add(l) });
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                Plain(std::array::from_fn(|l| self.0[l] + other.0[l]))
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                Plain(std::array::from_fn(|l| self.0[l] - other.0[l]))
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                Plain(std::array::from_fn(|l| self.0[l] * other.0[l]))
            }
            #[inline(always)]
            unsafe fn div(self, other: Self) -> Self {
                Plain(std::array::from_fn(|l| self.0[l] / other.0[l]))
            }
            #[inline(always)]
            unsafe fn mul_add(self, a: Self, b: Self) -> Self {
                Plain(std::array::from_fn(|l| self.0[l] * a.0[l] + b.0[l]))
            }
            #[inline(always)]
            unsafe fn max(self, other: Self) -> Self {
                let larger = |l: usize| if self.0[l] > other.0[l] { self.0[l] } else { other.0[l] };
                Plain(std::array::from_fn(larger))
            }
            #[inline(always)]
            unsafe fn min(self, other: Self) -> Self {
                let less = |l: usize| if self.0[l] < other.0[l] { self.0[l] } else { other.0[l] };
                Plain(std::array::from_fn(less))
            }
            #[inline(always)]
            unsafe fn or_else(self, other: Self, mask: usize) -> Self {
                let pick = |l: usize| if l < mask { self.0[l] } else { other.0[l] };
                Plain(std::array::from_fn(pick))
            }
            #[inline(always)]
            unsafe fn total(self) -> $t {
                let half: [$t; 4] = std::array::from_fn(|l| self.0[l] + self.0[l + 4]);
                (half[0] + half[2]) + (half[1] + half[3])
            }
            #[inline(always)]
            unsafe fn top(self) -> $t {
                self.0.into_iter().fold(<$t>::NEG_INFINITY, <$t>::max)
            }
            #[inline(always)]
            unsafe fn reduce(self) -> (Self, Self) {
                let shifted = self.0.map(|x| x * $split.log2_e + $split.round);
                let n = shifted.map(|t| t - $split.round);
                let r = |l: usize| (self.0[l] - n[l] * $split.high) - n[l] * $split.low;
                let power =
                    shifted.map(|t| <$t>::from_bits(t.to_bits().wrapping_add($bias) << $shift));
                (Plain(std::array::from_fn(r)), Plain(power))
            }
        }
    };
}

plain!(f32, SPLIT32, 126, 23, [-86.6, 89.0], FACTORIALS32);
plain!(f64, SPLIT64, 1022, 52, [-707.7, 709.9], FACTORIALS64);
