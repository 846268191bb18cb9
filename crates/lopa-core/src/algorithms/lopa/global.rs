//! LoPA in the global scope, which is ours and not the paper's \[D\]: θ and v are mixed like x.
//!
//! ```text
//!        local gradients                      gradient tracking
//! (4')   θ⁺ = Σ_j w_ij θ_j − β d              θ⁺ = Σ_j w_ij θ_j − β yθ,  yθ⁺ = Σ_j w_ij yθ_j + d⁺ − d
//! (5')   v⁺ = Σ_j w_ij v_j − λ h              v⁺ = Σ_j w_ij v_j − λ yv,  yv⁺ likewise with h
//! ```
//!
//! With `lazy`, θ, v, yθ and yv are mixed with (W + I)/2 in place of W. With tracking, the means of yθ and yv are those of d and h, so that the mean v solves the system
//! of the mean Hessian, and the limit is exact. Local gradients have a bias of the order of their
//! steps.

use super::{LopaParams, Scheme};
use crate::algorithms::parts::consensus::add_change;
use crate::algorithms::parts::loopless::Loopless;
use crate::algorithms::update_rule::{
    Evaluation, ListedRule, Stage, Term, UpdateRule, UsualRule, XUpdate, mixed, own, sum,
};
use crate::math::real::{Real, update};
use crate::math::schedule::Schedule;
use crate::network::mixed::Mixed;
use crate::network::outbox::Outbox;
use crate::problem::scope::Scope;

/// The direction y of w in the global scope, where all nodes agree on w: θ or v. Its q is d or h.
pub(super) struct Agreed<T> {
    tracks: bool,   // whether y tracks q
    pub lazy: bool, // (W + I)/2 in place of W
    pub y: Vec<T>,  // empty in the personal scope
    q_old: Vec<T>,  // of the point just left, where y tracks q
}

impl<T: Real> Agreed<T> {
    /// That of θ, and that of v. They are lazy where `params` says so; by default where y tracks q with a
    /// step that is found, which needs it.
    pub fn both(point: &Loopless<T>, scheme: Scheme, params: &LopaParams) -> [Agreed<T>; 2] {
        let tracks = scheme == Scheme::GradientTracking;
        let lazy = params.lazy.unwrap_or(tracks && params.given().finds_inner());
        point.now.inner().map(|q| {
            let y = if point.scope == Scope::Global { q.to_vec() } else { Vec::new() };
            Agreed { tracks, lazy, q_old: y.clone(), y }
        })
    }

    /// Sends w, and y where it tracks q; nothing in the personal scope.
    pub fn share(&self, [name, y_name]: [&'static str; 2], w: &[T], out: &mut Outbox<T>) {
        out.vector_if(!self.y.is_empty(), name, w);
        out.vector_if(self.tracks, y_name, &self.y);
    }

    /// (4') or (5'): w⁺ = Σ_j w_ij w_j − η y, and Σ_j w_ij y_j where y tracks q.
    pub fn step(&mut self, mixed: &mut Mixed<T>, w: &mut [T], q: &[T], eta: T) {
        let Agreed { y, q_old, lazy, tracks } = self;
        q_old.copy_from_slice(q);
        let half = T::of(0.5);
        let lazy = *lazy;
        let mix = |own: T, sum: T| if lazy { half * (own + sum) } else { sum };
        if *tracks {
            mixed.each_piece([w, y], [], [], |[ww, wy], [w, y], [], []| {
                update(w, [ww, y], |w, [ww, y]| mix(w, ww) - eta * y);
                update(y, [wy], |y, [wy]| mix(y, wy));
            });
        } else {
            mixed.each_piece([w], [], [y], |[ww], [w], [], [y]| {
                update(w, [ww, y], |w, [ww, y]| mix(w, ww) - eta * y);
            });
        }
    }

    /// y⁺ from q⁺; nothing in the personal scope.
    pub fn finish(&mut self, q: &[T]) {
        match self.tracks {
            _ if self.y.is_empty() => {}
            true => add_change(&mut self.y, q, &self.q_old),
            false => self.y.copy_from_slice(q),
        }
    }
}

/// The iteration as a list, for devices.
pub(super) fn rule(usual: UsualRule, lazy: bool) -> Result<ListedRule, &'static str> {
    let UsualRule { x, alpha, beta, lambda, draws, .. } = usual;
    let [_, beta, lambda] = UpdateRule::given([alpha, beta, lambda])?;
    let tracks = x == XUpdate::Tracking;
    let agreed = move |w| -> Vec<Term> {
        if lazy { vec![own(w).times(0.5), mixed(w).times(0.5)] } else { vec![mixed(w)] }
    };
    let [_, outer] = usual.of_x(); // (9) – (12)
    let levels: [(_, _, _, _, Schedule); 2] =
        [("theta", "y_theta", "d", "old_d", beta), ("v", "y_v", "h", "old_h", lambda)];
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (w, y, q, old, step) in levels {
        let down = own(y).by(move |k| -step.at(k));
        before.push(sum(w, agreed(w).into_iter().chain([down]))); // (4'), (5')
        if tracks {
            before.extend([sum(y, agreed(y)), sum(old, [own(q)])]);
            after.push(sum(y, [own(y), own(q), own(old).times(-1.0)]));
        } else {
            after.push(sum(y, [own(q)]));
        }
    }
    let stages = vec![
        Stage::Update { theta: before, x: outer },
        Stage::Evaluate(Evaluation::directions()), // (6) – (8)
        Stage::Update { theta: after, x: vec![] },
    ];
    Ok(ListedRule { stages, joined: vec![], draws })
}
