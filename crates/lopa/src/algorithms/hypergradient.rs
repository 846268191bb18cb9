//! v ≈ [∇²_θθ g]⁻¹ ∇_θ f by a loop of Hessian-vector products at a fixed point.
//!
//! ```text
//! Neumann, randomly truncated: q ~ U{0, …, Q−1};  r = Π_{t<q} (I − λ H_t) b;  v = Q λ r
//! SHIA, summed:                v = λ Σ_{t=0}^{Q−1} Π_{j<t} (I − λ H_j) b
//! ```
//!
//! with b = ∇_θ f̂ and a fresh minibatch for every H. LoPA's paper prints the first with a fixed
//! length, which tends to zero, and the second without its first term; these are the forms that
//! approximate the inverse (Ghadimi and Wang 2018, Ji et al. 2021).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::oracle::{Oracle, SIGMA1, SIGMA2, XI2, XI3};
use crate::problem::At;
use crate::real::{Real, update};

/// How the Hessian's inverse is approximated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Inverse {
    /// Random truncation: unbiased for Q terms, (Q − 1) / 2 products on average, noisy.
    #[default]
    Neumann,
    /// The sum of Q terms: Q − 1 products, no truncation noise.
    Shia,
}

/// Vectors that the loop works in.
pub struct Workspace<T> {
    r: Vec<T>,
    hold: Vec<T>,
}

impl<T: Real> Workspace<T> {
    pub fn new(n: usize, p: usize) -> Workspace<T> {
        Workspace { r: vec![T::zero(); p], hold: vec![T::zero(); n.max(p)] }
    }
}

/// v, then u = ∇_x f̂ − ∇²_xθ ĝ v.
pub fn hypergradient<T: Real>(
    (inverse, q, lambda): (Inverse, usize, T),
    at: At<T>,
    oracle: &mut Oracle<T>,
    v: &mut [T],
    u: &mut [T],
    Workspace { r, hold }: &mut Workspace<T>,
) {
    let hess_r = &mut hold[..v.len()];
    oracle.grad_theta_f(at, SIGMA1, r);
    let products = match inverse {
        Inverse::Neumann => oracle.truncation(q),
        Inverse::Shia => q - 1,
    };
    v.copy_from_slice(r);
    for t in 0..products {
        oracle.hess_g(at, XI2.turn(t), r, hess_r);
        update(r, [hess_r], |r, [hess_r]| r - lambda * hess_r);
        update(v, [r], |v, [r]| v + r);
    }
    match inverse {
        Inverse::Neumann => update(v, [r], |_, [r]| T::of(q as f64) * lambda * r),
        Inverse::Shia => update(v, [], |v, []| lambda * v),
    }
    let cross_v = &mut hold[..u.len()];
    oracle.grad_x_f(at, SIGMA2, u);
    oracle.cross_g(at, XI3, v, cross_v);
    update(u, [cross_v], |grad, [cross_v]| grad - cross_v);
}
