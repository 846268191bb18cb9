//! An iteration of a method without inner loops as data, for a device that computes it.

use std::sync::Arc;

use super::parts::steps::Finder;
use crate::math::schedule::Schedule;
use crate::problem::oracle::Draws;

/// An iteration.
pub enum UpdateRule {
    /// LoPA or D-SOBA in the personal scope, which devices have kernels for.
    Usual(Box<UsualRule>),
    /// Any other method: sums and evaluations, in order.
    Listed(ListedRule),
}

impl UpdateRule {
    /// The step sizes, if they are given: devices do not find those of every method.
    pub fn given<const N: usize>(
        steps: [Option<Schedule>; N],
    ) -> Result<[Schedule; N], &'static str> {
        match steps.iter().all(Option::is_some) {
            true => Ok(steps.map(|step| step.expect("all are given"))),
            false => Err("devices find no step sizes of this method: give them in the file"),
        }
    }

    /// The same as a list, if all steps are given.
    pub fn listed(self) -> Result<ListedRule, &'static str> {
        match self {
            UpdateRule::Usual(rule) => rule.listed(),
            UpdateRule::Listed(rule) => Ok(rule),
        }
    }

    /// The rule that finds step sizes, if there is one.
    pub fn finder(&self) -> Option<Finder> {
        match self {
            UpdateRule::Usual(rule) => rule.finder,
            UpdateRule::Listed(_) => None,
        }
    }

    /// The evaluations that every iteration has.
    pub fn evaluations(&self) -> Vec<Evaluation> {
        match self {
            UpdateRule::Usual(_) => vec![Evaluation::directions()],
            UpdateRule::Listed(rule) => rule.evaluations(),
        }
    }
}

/// The updates of x, θ and v, then d, h and s at the new point.
#[derive(Debug, Clone, Copy)]
pub struct UsualRule {
    /// How x moves.
    pub x: XUpdate,
    /// Step size of x, if it is given.
    pub alpha: Option<Schedule>,
    /// Step size of θ, if it is given: θ⁺ = θ − β d.
    pub beta: Option<Schedule>,
    /// Step size of v, if it is given: v⁺ = v − λ h.
    pub lambda: Option<Schedule>,
    /// The rule that finds the others.
    pub finder: Option<Finder>,
    /// Weight of the moving average.
    pub gamma: Schedule,
    /// Relaxation of x.
    pub tau: Schedule,
    /// The minibatches of the directions.
    pub draws: Draws,
}

impl UsualRule {
    /// How x moves as a list, in two stages: before the nodes exchange it, and from then on.
    pub fn of_x(&self) -> [Vec<Sum>; 2] {
        let UsualRule { x, alpha, gamma, tau, .. } = *self;
        let alpha = alpha.unwrap_or(0.0.into());
        let average = |of| {
            sum(of, [own("s").by(move |k| gamma.at(k)), own(of).by(move |k| 1.0 - gamma.at(k))])
        };
        let down = own("y").by(move |k| -tau.at(k) * alpha.at(k));
        let moved = [own("x").by(move |k| 1.0 - tau.at(k)), mixed("x").by(move |k| tau.at(k))];
        let moved = sum("x", moved.into_iter().chain([down.clone()]));
        let change =
            [mixed("y"), own("s").by(move |k| gamma.at(k)), own("z").by(move |k| -gamma.at(k))];
        match x {
            XUpdate::Tracking => [vec![], vec![moved, sum("y", change), average("z")]],
            XUpdate::Local => [vec![], vec![moved, average("z"), sum("y", [own("z")])]],
            XUpdate::Alone => {
                [vec![], vec![sum("x", [own("x"), down]), average("z"), sum("y", [own("z")])]]
            }
            XUpdate::Combined => {
                let sent = sum("sent_x", [own("x"), own("r").by(move |k| -alpha.at(k))]);
                [vec![sent], vec![sum("x", [mixed("sent_x")]), average("r")]]
            }
        }
    }

    /// The iteration as a list, if all steps are given.
    pub fn listed(&self) -> Result<ListedRule, &'static str> {
        let UsualRule { alpha, beta, lambda, draws, .. } = *self;
        let [_, beta, lambda] = UpdateRule::given([alpha, beta, lambda])?;
        let [before, x] = self.of_x();
        let moved = |w, q, step: Schedule| sum(w, [own(w), own(q).by(move |k| -step.at(k))]);
        let theta = vec![moved("theta", "d", beta), moved("v", "h", lambda)];
        let stages = vec![
            Stage::Update { theta: vec![], x: before },
            Stage::Update { theta, x },
            Stage::Evaluate(Evaluation::directions()),
        ];
        Ok(ListedRule { stages, joined: vec![], draws })
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
}

impl XUpdate {
    /// What the rule that finds step sizes does before the updates, after d, h and s at the new point, and last.
    pub fn turns(self) -> [Turn; 3] {
        let all = ["y", "d", "h"].map(Some);
        let seen = Turn { notes: true, shows: true, ..Turn::default() };
        let settled = Turn { settles: true, ..Turn::default() };
        match self {
            // The steps are part of the message: they are found at the end of the iteration before.
            XUpdate::Combined => [
                Turn { mixes: true, leaves: true, ..Turn::default() },
                seen,
                Turn { finds: all, ahead: 1, ..settled },
            ],
            _ => [
                Turn { mixes: self != XUpdate::Alone, finds: all, leaves: true, ..Turn::default() },
                seen,
                settled,
            ],
        }
    }
}

/// What the rule that finds step sizes does at some point of an iteration, in this order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Turn {
    /// Whether it takes the last probe into account.
    pub settles: bool,
    /// Whether it combines the numbers of the neighbours.
    pub mixes: bool,
    /// The directions of x, θ and v whose steps it finds.
    pub finds: [Option<&'static str>; 3],
    /// How many iterations later these steps are taken.
    pub ahead: u64,
    /// Whether it notes the curvature along v.
    pub notes: bool,
    /// Whether it compares d and h with those before, and decides on a probe.
    pub shows: bool,
    /// Whether it keeps d and h for the next comparison.
    pub leaves: bool,
}

/// An iteration as a list. Arrays have names; a variable of the algorithm is the array of its name.
pub struct ListedRule {
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// Variables that are several arrays, one after the other.
    pub joined: Vec<(&'static str, Vec<&'static str>)>,
    /// The minibatches of the evaluations.
    pub draws: Draws,
}

impl ListedRule {
    /// The evaluations of an iteration.
    pub fn evaluations(&self) -> Vec<Evaluation> {
        let found = |stage: &Stage| match stage {
            Stage::Evaluate(evaluation) => Some(evaluation.clone()),
            Stage::Update { .. } => None,
        };
        self.stages.iter().filter_map(found).collect()
    }
}

/// A part of an iteration.
pub enum Stage {
    /// Sums of arrays as long as θ, and as long as x, each computed in order.
    Update {
        /// Of arrays as long as θ.
        theta: Vec<Sum>,
        /// Of arrays as long as x.
        x: Vec<Sum>,
    },
    /// Derivatives at a point.
    Evaluate(Evaluation),
}

/// Derivatives at a point.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// The arrays of x, θ and v.
    pub at: [&'static str; 3],
    /// The arrays for d, h and s; `None` where it is not wanted.
    pub into: [Option<&'static str>; 3],
    /// Whether s is ∇_x g on the samples of d, as single-level methods need it.
    pub single: bool,
    /// Whether h is ∇²_θθ g v alone, on a minibatch of its own, at the nodes that need it.
    pub probe: bool,
    /// The first iteration that needs them: before it, they have no effect and are not counted.
    pub from: u64,
}

impl Evaluation {
    /// d, h and s at (x, θ, v).
    pub fn directions() -> Evaluation {
        let into = ["d", "h", "s"].map(Some);
        Evaluation { at: ["x", "theta", "v"], into, single: false, probe: false, from: 0 }
    }

    /// ∇²_θθ g times `w`, which measures a curvature.
    pub fn probe(w: &'static str, product: &'static str) -> Evaluation {
        let (at, into) = (["x", "theta", w], [None, Some(product), None]);
        Evaluation { at, into, single: false, probe: true, from: 0 }
    }

    /// ∇_θ g, and ∇_x g if there is an array for it, at (x, θ).
    pub fn gradient(of_theta: &'static str, of_x: Option<&'static str>) -> Evaluation {
        let (at, into) = (["x", "theta", "v"], [Some(of_theta), None, of_x]);
        Evaluation { at, into, single: true, probe: false, from: 0 }
    }
}

/// `to` ← the sum of some terms. A term of the same stage that is mixed has the value before the stage; any
/// other has the latest.
#[derive(Clone)]
pub struct Sum {
    /// The array that it is written to.
    pub to: &'static str,
    /// The terms.
    pub terms: Vec<Term>,
}

/// An array, or Σ_j w_ij of it, times a number.
#[derive(Clone)]
pub struct Term {
    /// The array.
    pub from: &'static str,
    /// Whether it is Σ_j w_ij of it.
    pub mixed: bool,
    /// The number, in iteration k.
    pub factor: Factor,
}

/// A number that depends on the iteration.
pub type Factor = Arc<dyn Fn(u64) -> f64 + Send + Sync>;

/// `to` ← the sum of these terms.
pub fn sum(to: &'static str, terms: impl IntoIterator<Item = Term>) -> Sum {
    Sum { to, terms: terms.into_iter().collect() }
}

/// An array.
pub fn own(from: &'static str) -> Term {
    Term { from, mixed: false, factor: Arc::new(|_| 1.0) }
}

/// Σ_j w_ij of an array.
pub fn mixed(from: &'static str) -> Term {
    Term { mixed: true, ..own(from) }
}

impl Term {
    /// The same times a number that depends on the iteration.
    pub fn by(self, factor: impl Fn(u64) -> f64 + Send + Sync + 'static) -> Term {
        Term { factor: Arc::new(factor), ..self }
    }

    /// The same times a number.
    pub fn times(self, factor: f64) -> Term {
        self.by(move |_| factor)
    }
}
