//! Step sizes: constant, c / √(k + 1), or lowered in stages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Fault;
use crate::math::portable::powf;

/// A step size as a function of the iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "number or schedule")]
#[serde(
    untagged,
    expecting = "invalid step size: write a number, `{ over_sqrt = c }`, or `{ start = c, factor = f, every = k }`"
)]
pub enum Schedule {
    /// The same at every iteration.
    Constant(f64),
    /// c / √(k + 1): `{ over_sqrt = c }`.
    OverSqrt(OverSqrt),
    /// `{ start = c, factor = 0.8, every = 1000 }`: multiplied by 0.8 every 1000 iterations.
    Stages(Stages),
}

/// c / √(k + 1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverSqrt {
    /// The value at k = 0.
    pub over_sqrt: f64,
}

/// start · factor^⌊k / every⌋.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stages {
    /// The value of the first stage.
    pub start: f64,
    /// The factor from one stage to the next.
    pub factor: f64,
    /// Iterations per stage.
    pub every: u64,
}

impl From<f64> for Schedule {
    fn from(value: f64) -> Schedule {
        Schedule::Constant(value)
    }
}

impl Schedule {
    /// The step size of iteration `k`.
    pub fn at(&self, k: u64) -> f64 {
        match *self {
            Schedule::Constant(c) => c,
            Schedule::OverSqrt(OverSqrt { over_sqrt }) => over_sqrt / ((k + 1) as f64).sqrt(),
            Schedule::Stages(Stages { start, factor, every }) => {
                start * powf(factor, (k / every) as f64)
            }
        }
    }

    /// Checks that step sizes are positive and finite, and that stages never increase.
    pub fn check(&self, key: &'static str) -> Result<(), Fault> {
        let first = self.at_start();
        Fault::unless(first > 0.0 && first.is_finite(), key, first, "a positive number")?;
        if let Schedule::Stages(Stages { factor, every, .. }) = *self {
            let valid = factor > 0.0 && factor <= 1.0;
            Fault::unless(
                valid,
                key,
                format!("{{ factor = {factor} }}"),
                "with a factor in (0, 1]",
            )?;
            Fault::unless(every > 0, key, "{ every = 0 }", "with stages of at least 1 iteration")?;
        }
        Ok(())
    }

    /// Checks a weight, which must lie in (0, 1]; 1 switches averaging off.
    pub fn check_weight(&self, key: &'static str) -> Result<(), Fault> {
        self.check(key)?;
        Fault::unless(self.at_start() <= 1.0, key, self.at_start(), "between 0 and 1")
    }

    fn at_start(&self) -> f64 {
        match *self {
            Schedule::Constant(c) => c,
            Schedule::OverSqrt(OverSqrt { over_sqrt }) => over_sqrt,
            Schedule::Stages(Stages { start, .. }) => start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_kinds() {
        assert_eq!(Schedule::Constant(0.3).at(99), 0.3);
        assert_eq!(Schedule::OverSqrt(OverSqrt { over_sqrt: 2.0 }).at(3), 1.0);
        let stages = Schedule::Stages(Stages { start: 1.0, factor: 0.5, every: 10 });
        assert_eq!([stages.at(9), stages.at(10), stages.at(25)], [1.0, 0.5, 0.25]);
    }

    #[test]
    fn invalid_steps_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Schedule::Constant(bad).check("alpha").is_err(), "{bad}");
        }
        assert!(Schedule::Constant(1.0).check_weight("tau").is_ok());
        assert!(Schedule::Constant(1.01).check_weight("tau").is_err());
        let stages = |factor, every| Schedule::Stages(Stages { start: 1.0, factor, every });
        assert!(stages(1.5, 10).check("alpha").is_err());
        assert!(stages(0.5, 0).check("alpha").is_err());
    }
}
