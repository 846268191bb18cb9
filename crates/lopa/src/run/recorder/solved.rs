//! The θ_i that a run may end with: the exact solutions of the inner problems.
//!
//! ```text
//! personal scope:  θ_i = argmin_θ g_i(x_i, θ)
//! global scope:    θ_i = argmin_θ 1/m Σ_j g_j(x̄, θ)
//! ```
//!
//! g_i has all rows that node i trains on, those of f_i among them. Where x belongs to the rows of g_i
//! (`hyper-cleaning`), these stay as they are.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::math::parallel;
use crate::problem::scope::Scope;
use crate::problem::{Bilevel, Setting};
use crate::run::Setup;
use crate::run::evaluate::exact::inner;
use crate::run::evaluate::mean::Mean;
use crate::run::evaluate::{Everyone, Point, mean};

/// θ_i of some nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Solved {
    /// One for each of them.
    pub theta: Vec<Vec<f64>>,
    /// How many were not found to the tolerance.
    pub unsolved: usize,
}

impl Setup<'_> {
    /// θ_i of the nodes `here`, whose points are given, on the rows that they train on; `refit` adds
    /// those that they hold out. `everyone` collects the numbers of all processes.
    pub fn exact_theta(
        &self,
        here: Range<usize>,
        points: &[Point],
        refit: bool,
        everyone: Everyone,
    ) -> Result<Solved> {
        let mut parts = self.whole_parts(here, refit)?;
        let solved = match self.experiment.scope {
            Scope::Personal => self.each(&mut parts, points)?,
            Scope::Global => self.common(&mut parts, points, everyone)?,
        };
        match parts.iter_mut().find_map(|part| part.error()) {
            Some(error) => Err(error),
            None => Ok(solved),
        }
    }

    /// The parts whose g has all rows.
    fn whole_parts(&self, here: Range<usize>, refit: bool) -> Result<Vec<Box<dyn Bilevel<f64>>>> {
        let Setup { experiment, world, .. } = *self;
        let problem = experiment.problem.build.get::<f64>();
        let mut rows = world.partition.nodes.clone();
        if refit {
            rows.iter_mut().zip(&world.holdout).for_each(|(rows, held)| rows.extend(held));
        }
        let setting = Setting {
            partition: &rows,
            holdout: &[],
            whole: problem.transfers(),
            ..self.setting()
        };
        let parts = problem.parts(&setting, here).map_err(|error| error.at("[problem]"))?;
        Ok(parts.each)
    }

    fn each(&self, parts: &mut [Box<dyn Bilevel<f64>>], points: &[Point]) -> Result<Solved> {
        let lengths = parts.iter().map(|part| (part.dims().n, part.dims().p));
        if !lengths.eq(points.iter().map(|(x, theta)| (x.len(), theta.len()))) {
            return Err(unfit());
        }
        let one =
            |(part, (x, guess)): (&mut Box<dyn Bilevel<f64>>, &Point)| inner(&mut **part, x, guess);
        let found = parallel::map(self.pool, parts.iter_mut().zip(points), one);
        let unsolved = found.iter().filter(|(_, exact)| !exact).count();
        Ok(Solved { theta: found.into_iter().map(|(theta, _)| theta).collect(), unsolved })
    }

    /// One θ for all nodes; x̄ and the guess are means over all of them, in every process.
    fn common(
        &self,
        parts: &mut [Box<dyn Bilevel<f64>>],
        points: &[Point],
        everyone: Everyone,
    ) -> Result<Solved> {
        let count = points.len();
        let xs = everyone(points.iter().map(|(x, _)| x.clone()).collect())?;
        let thetas = everyone(points.iter().map(|(_, theta)| theta.clone()).collect())?;
        let x = mean(xs.iter().map(Vec::as_slice));
        let guess = mean(thetas.iter().map(Vec::as_slice));
        let mut all = Mean::new(parts, self.pool, everyone);
        let (theta, exact) = inner(&mut all, &x, &guess);
        all.check()?;
        Ok(Solved { theta: vec![theta; count], unsolved: if exact { 0 } else { count } })
    }
}

/// Rounding is not the cause: a user's problem has other lengths on all rows.
fn unfit() -> Error {
    let message =
        "theta cannot be solved for: on all rows of a node, x or theta has another length";
    Error::config("problem/malformed", message)
        .at("[problem]")
        .hint("leave out `final_theta` in `[run]`")
}
