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
    /// The step sizes of the first iteration; typical ones in place of those that are not given.
    pub fn of(params: &LopaParams) -> Steps {
        let at = |schedule: Option<Schedule>, typical| schedule.map_or(typical, |step| step.at(0));
        Steps {
            alpha: at(params.alpha, 0.02),
            beta: at(params.beta, 0.5),
            lambda: at(params.lambda, 0.5),
            gamma: params.gamma.at(0),
            tau: params.tau.at(0),
        }
    }
}
