//! What methods without inner loops have in common: a point, the directions there, and the step sizes.

use super::directions::{DirectionBuffers, Estimate};
use super::steps::{Given, Steps};
use crate::algorithms::Start;
use crate::algorithms::update_rule::{UsualRule, XUpdate};
use crate::error::Result;
use crate::math::real::{Real, Vector};
use crate::math::schedule::Schedule;
use crate::problem::At;
use crate::problem::oracle::{DirectionRequest, Draws, Oracle};
use crate::problem::scope::Scope;

/// Declares the parameters of a method without inner loops: its step sizes, which may be left out, then its own, then how
/// d, h and s are estimated.
macro_rules! loopless_params {
    ($(#[$about:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $crate::algorithms::parts::loopless::stepped_params! {
            $(#[$about])*
            pub struct $name {
                $($own)*
                /// How the terms of d, h and s are estimated from minibatches; by default `plain`.
                #[serde(skip_serializing_if = "Estimate::is_plain")]
                estimate: Estimate = Estimate::Plain;
            }
        }
    };
}
pub(crate) use loopless_params;

/// The same without the estimates.
macro_rules! stepped_params {
    ($(#[$about:meta])* pub struct $name:ident { $($own:tt)* }) => {
        params! {
            $(#[$about])*
            pub struct $name {
                /// Step size of x; by default `steps` finds it.
                alpha: Option<Schedule> = None, step;
                /// Step size of θ; by default `steps` finds it.
                beta: Option<Schedule> = None, step;
                /// Step size of v; by default `steps` finds it.
                lambda: Option<Schedule> = None, step;
                /// How step sizes are found that are not given; by default `auto`.
                steps: Option<Rule> = None;
                $($own)*
            }
        }

        impl $name {
            /// The step sizes that are given, and the rule for the others.
            pub fn given(&self) -> Given {
                let $name { alpha, beta, lambda, steps, .. } = *self;
                Given { alpha, beta, lambda, rule: steps.unwrap_or_default() }
            }
        }
    };
}
pub(crate) use stepped_params;

/// A node of such a method whose directions all belong to one point.
pub struct Loopless<T> {
    /// Of the inner problem.
    pub scope: Scope,
    /// x_i
    pub x: Vector<T>,
    /// θ_i
    pub theta: Vector<T>,
    /// v_i, which tracks [∇²_θθ g]⁻¹ ∇_θ f.
    pub v: Vector<T>,
    /// d, h and s at (x, θ, v).
    pub now: DirectionBuffers<T>,
    /// The step sizes.
    pub steps: Steps<T>,
}

impl<T: Real> Loopless<T> {
    /// At the start, with directions on these minibatches.
    ///
    /// # Errors
    /// If the run cannot estimate like that.
    pub fn start(
        mut start: Start<T>,
        draws: Draws,
        given: Given,
        estimate: Estimate,
    ) -> Result<Loopless<T>> {
        let now = start.estimated(draws, estimate)?;
        let Start { x, theta, v, scope, oracle, .. } = start;
        let steps = Steps::start(given, scope, At { x: &x, theta: &theta }, &v, &now, oracle);
        Ok(Loopless { scope, x, theta, v, now, steps })
    }

    /// (x_i, θ_i)
    pub fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    /// Requests d, h and s at the new point.
    pub fn asks(&mut self) -> DirectionRequest<'_, T> {
        let Loopless { x, theta, v, now, steps, .. } = self;
        now.at(At { x, theta }, v).noting(steps.hess())
    }

    /// Measures what the rule for step sizes needs, after the new directions.
    pub fn look(&mut self, oracle: &mut Oracle<T>) {
        let Loopless { x, theta, v, now, steps, .. } = self;
        steps.look(At { x, theta }, v, now, oracle);
    }

    /// The update rule, for devices.
    ///
    /// # Errors
    /// If no device can estimate like that.
    pub fn rule(&self, x: XUpdate, [gamma, tau]: [Schedule; 2]) -> Result<UsualRule, &'static str> {
        let (finder, draws) = (self.steps.finder(), self.now.on_device()?);
        let Given { alpha, beta, lambda, .. } = self.steps.given();
        Ok(UsualRule { x, alpha, beta, lambda, finder, gamma, tau, draws })
    }
}
