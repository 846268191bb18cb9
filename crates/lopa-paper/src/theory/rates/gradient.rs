//! ∇Φ along a run: affine on quadratics, by exact solves elsewhere.

use lopa::math::real::axpy;
use lopa::problem::Bilevel;
use lopa::run::evaluate::exact::solve;
use lopa_study::practical::course::LinearGradient;

/// The gradient of the mean of the Φ_i.
pub enum Gradient {
    /// ∇Φ(x) = H x + h.
    Linear(LinearGradient),
    /// Every part solved, starting from its last solution.
    Solved {
        /// One part per different node.
        parts: Vec<Box<dyn Bilevel<f64>>>,
        /// The last θ*.
        guesses: Vec<Vec<f64>>,
    },
}

impl Gradient {
    /// By exact solves; of one node if all are equal.
    pub fn solved(mut parts: Vec<Box<dyn Bilevel<f64>>>, equal: bool) -> Gradient {
        if equal {
            parts.truncate(1);
        }
        let guesses = parts.iter().map(|part| vec![0.0; part.dims().p]).collect();
        Gradient::Solved { parts, guesses }
    }

    /// ∇Φ(x)
    pub fn at(&mut self, x: &[f64]) -> Vec<f64> {
        match self {
            Gradient::Linear(linear) => linear.at(x),
            Gradient::Solved { parts, guesses } => {
                let (mut sum, share) = (vec![0.0; x.len()], 1.0 / parts.len() as f64);
                for (part, guess) in parts.iter_mut().zip(guesses) {
                    let solution = solve(&mut **part, x, guess);
                    axpy(share, &solution.grad, &mut sum);
                    *guess = solution.theta;
                }
                sum
            }
        }
    }

    /// The iteration to measure after iteration `k`: solves are expensive, and means need few of
    /// them.
    pub fn next(&self, k: u64) -> u64 {
        match self {
            Gradient::Linear(_) => k + 1,
            Gradient::Solved { .. } => k + 1 + k / 100,
        }
    }
}
