//! Step sizes of LoPA.

use serde::Serialize;

use lopa::algorithms::lopa::LopaParams;
use lopa::math::schedule::Schedule;

/// How the direction of x is formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Scheme {
    /// LoPA-LG, Theorem 1.
    #[serde(rename = "lopa-lg")]
    LocalGradient,
    /// LoPA-GT, Theorem 2.
    #[serde(rename = "lopa-gt")]
    GradientTracking,
}

impl Scheme {
    /// Both.
    pub const ALL: [Scheme; 2] = [Scheme::GradientTracking, Scheme::LocalGradient];

    /// The algorithm's name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::LocalGradient => "lopa-lg",
            Scheme::GradientTracking => "lopa-gt",
        }
    }

    /// The scheme of an algorithm in experiment files, if the theorems cover it.
    pub fn of(name: &str) -> Option<Scheme> {
        Scheme::ALL.into_iter().find(|scheme| scheme.name() == name)
    }
}

/// Constant step sizes of LoPA.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Steps {
    /// α, of x.
    pub alpha: f64,
    /// β, of θ.
    pub beta: f64,
    /// λ, of v.
    pub lambda: f64,
    /// γ, the momentum weight.
    pub gamma: f64,
    /// τ, the relaxation.
    pub tau: f64,
}

impl Steps {
    /// The step sizes of the first iteration.
    pub fn of(params: &LopaParams) -> Steps {
        let at = |schedule: &Schedule| schedule.at(0);
        Steps {
            alpha: at(&params.alpha),
            beta: at(&params.beta),
            lambda: at(&params.lambda),
            gamma: at(&params.gamma),
            tau: at(&params.tau),
        }
    }
}
