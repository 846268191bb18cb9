//! u = ∇_x f̂ − ∇²_xθ ĝ v with v ≈ [∇²_θθ g]⁻¹ ∇_θ f by a loop of Hessian-vector products.
//!
//! ```text
//! Neumann, randomly truncated: q ~ U{0, …, Q−1};  r = Π_{t<q} (I − λ H_t) b;  v = Q λ r
//! SHIA, summed:                v = λ Σ_{t=0}^{Q−1} Π_{j<t} (I − λ H_j) b
//! conjugate gradients:         v = argmin ½ vᵀHv − bᵀv over the span of b, Hb, …, H^{Q−2} b
//! ```
//!
//! with b = ∇_θ f̂ and a fresh minibatch for every H; conjugate gradients, which none of the papers
//! uses, need one H and hence one minibatch, and no λ. LoPA's paper prints the first with a fixed
//! length, which tends to zero, and the second without its first term; these are the forms that
//! approximate the inverse (Ghadimi and Wang 2018, Ji et al. 2021). Within an iteration, minibatches and
//! the truncation are the same at every point, as STORM and SPIDER require.

use crate::algorithms::cost::{Count, steps};
use crate::choices;
use crate::math::conjugate::ConjugateGradients;
use crate::math::real::{Real, update};
use crate::math::schedule::Schedule;
use crate::problem::At;
use crate::problem::oracle::{Oracle, SIGMA1, SIGMA2, XI2, XI3};

choices! {
    /// How the Hessian's inverse is approximated.
    pub enum Inverse {
        /// Random truncation: unbiased for Q terms, (Q − 1) / 2 products on average, noisy.
        Neumann,
        /// The sum of Q terms: Q − 1 products, no truncation noise.
        Shia,
        /// Conjugate gradients: Q − 1 products on one minibatch.
        Cg,
    }
}

/// A series for the Hessian's inverse.
#[derive(Debug, Clone, Copy)]
pub struct Series {
    /// Which.
    pub inverse: Inverse,
    /// Q: its terms.
    pub hv_steps: usize,
    /// λ: at most 1 / L.
    pub lambda: Schedule,
}

impl Series {
    /// Hessian-vector products of one evaluation; for a random truncation, their mean.
    pub fn products(&self) -> Count {
        let most = steps("Q", self.hv_steps) - 1.0.into();
        match self.inverse {
            Inverse::Neumann => most * 0.5,
            Inverse::Shia | Inverse::Cg => most,
        }
    }
}

/// v, u and scratch memory.
pub struct Hypergradient<T> {
    /// ≈ [∇²_θθ g]⁻¹ ∇_θ f
    pub v: Vec<T>,
    /// ∇_x f̂ − ∇²_xθ ĝ v
    pub u: Vec<T>,
    series: Series,
    r: Vec<T>,
    hess_r: Vec<T>,
    conjugate: Option<ConjugateGradients<T>>,
}

impl<T: Real> Hypergradient<T> {
    /// Zeros.
    pub fn new(n: usize, p: usize, series: Series) -> Hypergradient<T> {
        let zeros = |length: usize| vec![T::zero(); length];
        let conjugate = (series.inverse == Inverse::Cg).then(|| ConjugateGradients::new(p));
        let [r, hess_r] = [(); 2].map(|()| zeros(p));
        Hypergradient { v: zeros(p), u: zeros(n), series, r, hess_r, conjugate }
    }

    /// v, then u, at a point.
    pub fn evaluate(&mut self, at: At<T>, oracle: &mut Oracle<T>) {
        oracle.grad_theta_f(at, SIGMA1, &mut self.r);
        match &mut self.conjugate {
            Some(conjugate) => {
                conjugate.begin(&self.r);
                let mut product = |p: &[T], out: &mut [T]| oracle.hess_g(at, XI2, p, out);
                for _ in 1..self.series.hv_steps {
                    if !conjugate.step(&mut product) {
                        break;
                    }
                }
                self.v.copy_from_slice(&conjugate.v);
            }
            None => self.sum(at, oracle),
        }
        oracle.hypergradient(at, &self.v, (XI3, SIGMA2), &mut self.u);
    }

    /// v by a truncated or summed series from b, which is in r.
    fn sum(&mut self, at: At<T>, oracle: &mut Oracle<T>) {
        let Hypergradient { v, series, r, hess_r, .. } = self;
        let Series { inverse, hv_steps, lambda } = *series;
        let lambda = T::of(lambda.at(oracle.k()));
        let summed = inverse != Inverse::Neumann;
        let products = if summed { hv_steps - 1 } else { oracle.truncation(hv_steps) };
        v.copy_from_slice(r);
        for t in 0..products {
            oracle.hess_g(at, XI2.pass(t), r, hess_r);
            update(r, [hess_r], |r, [hess_r]| r - lambda * hess_r);
            update(v, [r], |v, [r]| v + r);
        }
        if summed {
            update(v, [], |v, []| lambda * v);
        } else {
            update(v, [r], |_, [r]| T::of(hv_steps as f64) * lambda * r);
        }
    }
}
