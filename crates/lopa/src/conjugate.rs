//! Conjugate gradients for H v = b with a positive definite H, one product at a time.

use crate::real::{Real, axpy, dot, update};

/// The iterate and what is needed to go on from it.
pub struct ConjugateGradients<T> {
    /// ≈ H⁻¹ b
    pub v: Vec<T>,
    r: Vec<T>, // b − H v
    p: Vec<T>, // the next direction
    hp: Vec<T>,
    rr: T, // ‖r‖²
}

impl<T: Real> ConjugateGradients<T> {
    /// Zeros.
    pub fn new(length: usize) -> ConjugateGradients<T> {
        let [v, r, p, hp] = [(); 4].map(|()| vec![T::zero(); length]);
        ConjugateGradients { v, r, p, hp, rr: T::zero() }
    }

    /// Starts on b from v = 0.
    pub fn begin(&mut self, b: &[T]) {
        self.v.fill(T::zero());
        self.r.copy_from_slice(b);
        self.p.copy_from_slice(b);
        self.rr = dot(b, b);
    }

    /// ‖b − H v‖
    pub fn residual(&self) -> T {
        self.rr.sqrt()
    }

    /// One step with the product H p; false, and nothing done, if H shows no positive curvature.
    pub fn step(&mut self, product: &mut impl FnMut(&[T], &mut [T])) -> bool {
        let ConjugateGradients { v, r, p, hp, rr } = self;
        product(p, hp);
        let curvature = dot(p, hp);
        if curvature.is_nan() || curvature <= T::zero() {
            return false;
        }
        let a = *rr / curvature;
        axpy(a, p, v);
        axpy(-a, hp, r);
        let rr_new = dot(r, r);
        let b = rr_new / *rr;
        update(p, [r], |p, [r]| r + b * p);
        *rr = rr_new;
        true
    }
}
