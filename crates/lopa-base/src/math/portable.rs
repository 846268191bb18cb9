//! Logarithms, exponentials, powers and angles with the same bits on every platform.
//!
//! The standard library takes these functions from the system, and systems round them differently. Here they are those of
//! the crate `libm`, plain Rust without choices by processor. `clippy.toml` refuses the others. Operations that
//! IEEE 754 defines to the last bit (+, −, ·, /, √, rounding) are the standard library's; fused products are not, because
//! some systems round them twice. Nor are negative whole powers: on Windows the standard library inverts first.

/// The functions of one precision, under the names of the standard library.
macro_rules! functions {
    ($t:ty: $($name:ident($($x:ident),*) = $libm:ident, $what:literal;)*) => {
        $(#[doc = $what]
        #[inline]
        pub fn $name($($x: $t),*) -> $t {
            libm::$libm($($x),*)
        })*
    };
}

functions! { f64:
    exp(x) = exp, "eˣ.";
    exp_m1(x) = expm1, "eˣ − 1, exact near 0.";
    ln(x) = log, "The natural logarithm.";
    ln_1p(x) = log1p, "log(1 + x), exact near 0.";
    log2(x) = log2, "The logarithm to base 2.";
    log10(x) = log10, "The logarithm to base 10.";
    powf(x, y) = pow, "xʸ.";
    cbrt(x) = cbrt, "The cube root.";
    hypot(x, y) = hypot, "√(x² + y²), without overflow on the way.";
    sin(x) = sin, "The sine of an angle in radians.";
    cos(x) = cos, "The cosine of an angle in radians.";
    tanh(x) = tanh, "The hyperbolic tangent.";
    mul_add(x, a, b) = fma, "x · a + b, rounded once.";
}

/// xⁿ: products in one order, then the inverse if n is negative.
pub fn powi(x: f64, n: i32) -> f64 {
    let (mut product, mut square, mut left) = (1.0, x, n.unsigned_abs());
    while left > 0 {
        if left % 2 == 1 {
            product *= square;
        }
        square *= square;
        left /= 2;
    }
    if n < 0 { 1.0 / product } else { product }
}

/// The functions in single precision, under the same names.
pub mod single {
    functions! { f32:
        exp(x) = expf, "eˣ.";
        exp_m1(x) = expm1f, "eˣ − 1, exact near 0.";
        ln(x) = logf, "The natural logarithm.";
        ln_1p(x) = log1pf, "log(1 + x), exact near 0.";
        powf(x, y) = powf, "xʸ.";
        sin(x) = sinf, "The sine of an angle in radians.";
        cos(x) = cosf, "The cosine of an angle in radians.";
        tanh(x) = tanhf, "The hyperbolic tangent.";
        mul_add(x, a, b) = fmaf, "x · a + b, rounded once.";
    }
}
