//! The discrete Fourier transform of a power of two of complex numbers.

/// A complex number: real and imaginary part.
pub type Complex = (f64, f64);

/// a · b.
pub fn times(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// aⁿ, by squaring.
pub fn power(mut a: Complex, mut n: u64) -> Complex {
    let mut out = (1.0, 0.0);
    while n > 0 {
        if n & 1 == 1 {
            out = times(out, a);
        }
        a = times(a, a);
        n >>= 1;
    }
    out
}

/// e^{−2πi k / n} for k below n/2.
fn roots(n: usize) -> Vec<Complex> {
    let angle = |k: usize| -std::f64::consts::TAU * k as f64 / n as f64;
    (0..n / 2).map(|k| (libm::cos(angle(k)), libm::sin(angle(k)))).collect()
}

/// values_k ← Σ_j values_j e^{−2πi jk/n}, where n is a power of two.
pub fn transform(values: &mut [Complex]) {
    let n = values.len();
    if n < 2 {
        return;
    }
    let shift = usize::BITS - n.trailing_zeros();
    for at in 0..n {
        let other = at.reverse_bits() >> shift;
        if at < other {
            values.swap(at, other);
        }
    }
    let roots = roots(n);
    let mut half = 1;
    while half < n {
        let stride = n / (2 * half);
        for block in values.chunks_exact_mut(2 * half) {
            let (left, right) = block.split_at_mut(half);
            for (k, (a, b)) in left.iter_mut().zip(right).enumerate() {
                let turned = times(*b, roots[k * stride]);
                *b = (a.0 - turned.0, a.1 - turned.1);
                *a = (a.0 + turned.0, a.1 + turned.1);
            }
        }
        half *= 2;
    }
}

/// The inverse of [`transform`], of which only the real part is wanted.
pub fn back(values: &mut [Complex]) -> impl Iterator<Item = f64> + '_ {
    let n = values.len() as f64;
    values.iter_mut().for_each(|value| value.1 = -value.1);
    transform(values);
    values.iter().map(move |value| value.0 / n)
}
