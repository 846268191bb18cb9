//! u = ∇_x f̂ − ∇²_xθ ĝ v with v ≈ [∇²_θθ g]⁻¹ ∇_θ f by a loop of Hessian-vector products.
//!
//! ```text
//! Neumann, randomly truncated: q ~ U{0, …, Q−1};  r = Π_{t<q} (I − λ H_t) b;  v = Q λ r
//! SHIA, summed:                v = λ Σ_{t=0}^{Q−1} Π_{j<t} (I − λ H_j) b
//! ```
//!
//! with b = ∇_θ f̂ and a fresh minibatch for every H. LoPA's paper prints the first with a fixed
//! length, which tends to zero, and the second without its first term; these are the forms that
//! approximate the inverse (Ghadimi and Wang 2018, Ji et al. 2021). In one iteration minibatches
//! and the truncation are the same at every point: that is what STORM and SPIDER ask for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::oracle::{MOST_TURNS, Oracle, SIGMA1, SIGMA2, XI2, XI3};
use crate::problem::At;
use crate::real::{Real, update};
use crate::registry::Fault;
use crate::schedule::Schedule;

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
    /// Whether its values make sense.
    pub fn check(&self) -> Result<(), Fault> {
        self.lambda.check("lambda")?;
        let fits = (1..=MOST_TURNS).contains(&self.hv_steps);
        Fault::unless(fits, "hv_steps", self.hv_steps, "from 1 to 500")
    }
}

/// v, u and what is needed to find them.
pub struct Hypergradient<T> {
    /// ≈ [∇²_θθ g]⁻¹ ∇_θ f
    pub v: Vec<T>,
    /// ∇_x f̂ − ∇²_xθ ĝ v
    pub u: Vec<T>,
    series: Series,
    r: Vec<T>,
    hold: Vec<T>,
}

impl<T: Real> Hypergradient<T> {
    /// Zeros.
    pub fn new(n: usize, p: usize, series: Series) -> Hypergradient<T> {
        let zeros = |length: usize| vec![T::zero(); length];
        Hypergradient { v: zeros(p), u: zeros(n), series, r: zeros(p), hold: zeros(n.max(p)) }
    }

    /// v, then u, at a point.
    pub fn evaluate(&mut self, at: At<T>, oracle: &mut Oracle<T>) {
        let Hypergradient { v, u, series, r, hold } = self;
        let Series { inverse, hv_steps, lambda } = *series;
        let lambda = T::of(lambda.at(oracle.k()));
        let hess_r = &mut hold[..v.len()];
        oracle.grad_theta_f(at, SIGMA1, r);
        let products = match inverse {
            Inverse::Neumann => oracle.truncation(hv_steps),
            Inverse::Shia => hv_steps - 1,
        };
        v.copy_from_slice(r);
        for t in 0..products {
            oracle.hess_g(at, XI2.turn(t), r, hess_r);
            update(r, [hess_r], |r, [hess_r]| r - lambda * hess_r);
            update(v, [r], |v, [r]| v + r);
        }
        match inverse {
            Inverse::Neumann => update(v, [r], |_, [r]| T::of(hv_steps as f64) * lambda * r),
            Inverse::Shia => update(v, [], |v, []| lambda * v),
        }
        let cross_v = &mut hold[..u.len()];
        oracle.grad_x_f(at, SIGMA2, u);
        oracle.cross_g(at, XI3, v, cross_v);
        update(u, [cross_v], |grad, [cross_v]| grad - cross_v);
    }
}
