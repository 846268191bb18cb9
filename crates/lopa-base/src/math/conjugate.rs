//! Conjugate gradients for H v = b with positive definite H, one product per step.

use crate::math::real::{Real, axpy, dot, update};

/// The iterate and the state of the method.
pub struct ConjugateGradients<T> {
    /// ≈ H⁻¹ b
    pub v: Vec<T>,
    inverse: Option<Vec<T>>, // M⁻¹, where the diagonal M approximates H
    r: Vec<T>,               // b − H v
    p: Vec<T>,               // the next direction
    z: Vec<T>,               // H p, then M⁻¹ r
    rz: T,                   // ⟨r, M⁻¹ r⟩
}

impl<T: Real> ConjugateGradients<T> {
    /// All zeros.
    pub fn new(length: usize) -> ConjugateGradients<T> {
        let [v, r, p, z] = [(); 4].map(|()| vec![T::zero(); length]);
        ConjugateGradients { v, inverse: None, r, p, z, rz: T::zero() }
    }

    /// The iterate, and memory of the same length that is no longer needed.
    pub fn into_parts(self) -> (Vec<T>, Vec<T>) {
        (self.v, self.p)
    }

    /// Preconditions with an estimate of H's diagonal, which saves steps where it varies. Tiny
    /// entries are raised so that their inverses stay finite.
    pub fn with_diagonal(mut self, mut diagonal: Vec<T>) -> ConjugateGradients<T> {
        assert_eq!(diagonal.len(), self.v.len(), "one entry per unknown");
        let smallest = diagonal.iter().fold(T::zero(), |max, &d| max.max(d)) * T::epsilon();
        update(&mut diagonal, [], |d, []| T::one() / d.max(smallest));
        self.inverse = Some(diagonal).filter(|_| smallest > T::zero());
        self
    }

    /// Starts on b from v = 0.
    pub fn begin(&mut self, b: &[T]) {
        self.v.fill(T::zero());
        self.r.copy_from_slice(b);
        self.precondition();
        self.p.copy_from_slice(&self.z);
        self.rz = dot(&self.r, &self.z);
    }

    /// ‖b − H v‖
    pub fn residual(&self) -> T {
        dot(&self.r, &self.r).sqrt()
    }

    /// One step; `product` computes H p. False, and nothing is changed, if the curvature along p is
    /// not positive.
    pub fn step(&mut self, product: &mut impl FnMut(&[T], &mut [T])) -> bool {
        let ConjugateGradients { v, r, p, z, rz, .. } = self;
        product(p, z);
        let curvature = dot(p, z);
        if curvature.is_nan() || curvature <= T::zero() {
            return false;
        }
        let a = *rz / curvature;
        axpy(a, p, v);
        axpy(-a, z, r);
        self.precondition();
        let rz = dot(&self.r, &self.z);
        let b = rz / self.rz;
        update(&mut self.p, [&self.z], |p, [z]| z + b * p);
        self.rz = rz;
        true
    }

    /// z ← M⁻¹ r
    fn precondition(&mut self) {
        match &self.inverse {
            None => self.z.copy_from_slice(&self.r),
            Some(inverse) => update(&mut self.z, [&self.r, inverse], |_, [r, inverse]| r * inverse),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::portable::powf;

    /// Steps until H v = b is solved, for H = D + 1 1ᵀ with D from 0.01 to 100.
    fn steps(diagonal: Option<Vec<f64>>) -> usize {
        let d: Vec<f64> = (0..81).map(|i| powf(10.0, i as f64 / 20.0 - 2.0)).collect();
        let mut cg = ConjugateGradients::new(81);
        if let Some(diagonal) = diagonal {
            cg = cg.with_diagonal(diagonal);
        }
        let mut product = |v: &[f64], out: &mut [f64]| {
            let sum: f64 = v.iter().sum();
            update(out, [v, &d], |_, [v, d]| d * v + sum);
        };
        let (want, mut b) = (vec![1.0; 81], vec![0.0; 81]);
        product(&want, &mut b);
        cg.begin(&b);
        let count = (1..1000).find(|_| {
            assert!(cg.step(&mut product));
            cg.v.iter().all(|v| (v - 1.0).abs() < 1e-6)
        });
        count.expect("it converges")
    }

    #[test]
    fn a_diagonal_saves_steps() {
        let near = (0..81).map(|i| 0.02 + powf(10.0, i as f64 / 20.0 - 2.0)).collect();
        let (plain, helped) = (steps(None), steps(Some(near)));
        assert!(2 * helped < plain, "{helped} against {plain}");
        assert_eq!(steps(Some(vec![0.0; 81])), plain, "no diagonal at all");
    }
}
