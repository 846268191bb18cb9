//! Which kernels a run uses, the same in all of its processes.

use lopa::engine::device::{Facts, Program};
use lopa::error::Result;
use lopa::math::real::Real;

use crate::general;
use crate::kernels::mark;
use crate::plan::{Extent, Kind, Plan};

/// Kinds of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Plain,
    Layers,
    General,
    Tensor,
}

/// What a process can use besides plain kernels.
#[derive(Debug, Clone, Copy, Default)]
pub struct Can {
    pub layers: bool,
    pub general: bool,
    pub tensor: bool,
}

/// Numbers of a process before the extent of its features.
const OWN: usize = 3;

/// The fastest kernels that all processes can use, with the extent of the features of all of them. An error of one process is an
/// error of all.
pub fn choose<T: Real, C>(
    program: &Program<T>,
    found: Result<(C, Plan<T>)>,
    can: impl Fn(&C, &Plan<T>) -> Can,
) -> Result<(C, Plan<T>, Choice)> {
    let facts = found.as_ref().map(|(card, plan)| {
        let can = can(card, plan);
        let sizes: Vec<_> = plan.evaluations.iter().map(|evaluated| evaluated.job.size).collect();
        let same = format!(
            "lopa {}, kernels {:08x}, minibatches {sizes:?}",
            env!("CARGO_PKG_VERSION"),
            mark()
        );
        let own = [can.layers, can.general, can.tensor].map(f64::from);
        let (norm, tops) = match can.layers || can.general {
            true => general::extent(plan),
            false => Default::default(),
        };
        let extent = std::iter::once(norm).chain(tops).map(f64::from);
        Facts { same, own: own.into_iter().chain(extent).collect() }
    });
    let all = program.company.agree(facts.as_ref().map_err(|error| *error))?;
    let (card, mut plan) = found?;
    let own = |at: usize| all.iter().map(move |own| own.get(at).copied().unwrap_or(0.0));
    let most = |at: usize| own(at).fold(0.0, f64::max) as f32;
    let tops: Vec<f32> = (OWN + 1..all[0].len()).map(most).collect();
    plan.extent = Extent::new(most(OWN), &tops);
    let choice = match [0, 1, 2].map(|at| own(at).all(|can| can > 0.0)) {
        [_, _, true] => Choice::Tensor,
        [_, true, false] => Choice::General,
        [true, false, false] if plan.kind == Kind::Layers || plan.extent.even => Choice::Layers,
        [_, false, false] => Choice::Plain,
    };
    Ok((card, plan, choice))
}
