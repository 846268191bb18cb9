//! The update rule of a method without inner loops, for a device that computes its iterations.

use crate::math::schedule::Schedule;
use crate::problem::oracle::Draws;
use crate::problem::scope::Scope;

/// The updates of x, θ and v in the personal scope. All but DGD's end with a request for d, h and
/// s.
#[derive(Debug, Clone, Copy)]
pub struct UpdateRule {
    /// How x moves.
    pub x: XUpdate,
    /// Step size of x.
    pub alpha: Schedule,
    /// Step size of θ: θ⁺ = θ − β d.
    pub beta: Schedule,
    /// Step size of v: v⁺ = v − λ h.
    pub lambda: Schedule,
    /// Weight of the moving average.
    pub gamma: Schedule,
    /// Relaxation of x.
    pub tau: Schedule,
    /// The minibatches of the directions.
    pub draws: Draws,
}

impl UpdateRule {
    /// Refuses the global scope, which no device serves.
    pub fn serves(scope: Scope) -> Result<(), &'static str> {
        match scope {
            Scope::Personal => Ok(()),
            Scope::Global => Err("devices serve the personal scope only"),
        }
    }

    /// The step sizes, if they are given: no device finds them.
    pub fn given<const N: usize>(
        steps: [Option<Schedule>; N],
    ) -> Result<[Schedule; N], &'static str> {
        match steps.iter().all(Option::is_some) {
            true => Ok(steps.map(|step| step.expect("all are given"))),
            false => Err("devices find no step sizes: give `alpha`, `beta` and `lambda`"),
        }
    }
}

/// How x moves; the formulas are in the files of the algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XUpdate {
    /// `lopa-gt`; variables x, y, z.
    Tracking,
    /// `lopa-lg`; variables x, y, z.
    Local,
    /// `local`; variables x, y, z.
    Alone,
    /// `d-soba`; variables x and r.
    Combined,
    /// `dgd`; variables θ and x.
    Descent {
        /// Whether x also moves.
        both: bool,
    },
}
