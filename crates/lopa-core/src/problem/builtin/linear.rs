//! Linear models: scores, losses, gradients and Hessian-vector products.
//!
//! ```text
//! scores   z = s W + b,   ℓ(z) as in `loss`
//! ```
//!
//! Sums over a batch carry a weight for every example: `each(r)` is the goal and the weight of
//! the r-th.

use super::affine::{Affine, Rows};
use super::cox::RiskSets;
use super::goal::Goal;
use super::loss::Loss;
use crate::math::real::{Real, dot};
use crate::problem::predictor::Layer;

/// A linear model with its workspace; θ has the layout of [`Affine`].
#[derive(Debug, Clone)]
pub struct Linear<T> {
    map: Affine,
    loss: Loss,
    /// Its workspace.
    pub room: Room<T>,
}

/// The workspace of a linear model.
#[derive(Debug, Clone, Default)]
pub struct Room<T> {
    scores: Vec<T>,
    spent: Vec<T>,
    tangents: Vec<T>,
    back: Vec<T>,
    scratch: Vec<T>,
    risk: RiskSets<T>,
}

impl<T: Real> Linear<T> {
    /// A model of the given shape, with as many columns as the loss has.
    pub fn new(map: Affine, loss: Loss) -> Linear<T> {
        Linear { map, loss, room: Room::default() }
    }

    /// Its loss.
    pub fn kind(&self) -> Loss {
        self.loss
    }

    /// Whether it has a bias.
    pub fn bias(&self) -> bool {
        self.map.bias
    }

    /// Length of θ.
    pub fn size(&self) -> usize {
        self.map.size()
    }

    /// The model with its weights, as it is saved; `None` if θ does not fit.
    pub fn layer(&self, theta: &[f64]) -> Option<Layer> {
        self.map.layer(theta, self.loss.then())
    }

    /// Columns of scores.
    pub fn columns(&self) -> usize {
        self.map.outputs
    }

    /// Calls `f(r, w_r ℓ_r(θ))` for every row.
    pub fn each_loss<'a>(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        each: impl Fn(usize) -> (Goal<'a, T>, T),
        f: impl FnMut(usize, T),
    ) {
        self.map.apply(rows, theta, &mut self.room.scores);
        let Room { scores, risk, .. } = &mut self.room;
        self.loss.values(scores, self.map.outputs, each, risk, f);
    }

    /// Σ_r w_r ℓ_r(θ).
    pub fn loss<'a>(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        each: impl Fn(usize) -> (Goal<'a, T>, T),
    ) -> f64 {
        let mut sum = 0.0;
        self.each_loss(rows, theta, each, |_, loss| sum += loss.to_f64());
        sum
    }

    /// `out += Σ_r w_r ∇ℓ_r(θ)`.
    pub fn add_gradient<'a>(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        each: impl Fn(usize) -> (Goal<'a, T>, T),
        out: &mut [T],
    ) {
        self.map.apply(rows, theta, &mut self.room.scores);
        self.find_slopes(each);
        self.map.add_gradient(rows, &self.room.scores, out);
    }

    /// `out += Σ_r w_r ∇²ℓ_r(θ) v`.
    pub fn add_hessian_product<'a>(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        v: &[T],
        each: impl Fn(usize) -> (Goal<'a, T>, T),
        out: &mut [T],
    ) {
        self.map.apply(rows, theta, &mut self.room.scores);
        self.find_curves(rows, v, each);
        self.map.add_gradient(rows, &self.room.tangents, out);
    }

    /// `d += Σ_r w_r ∇ℓ_r(θ)`, `h += Σ_r w_r ∇²ℓ_r(θ) v` and calls `f(r, w'_r ⟨∇ℓ_r(θ), v⟩)`, with the weights of
    /// the first and of the second `each`: the bits of the single sums, but the rows are multiplied with θ and
    /// v once.
    pub fn add_terms<'a>(
        &mut self,
        rows: &impl Rows<T>,
        (theta, v): (&[T], &[T]),
        (each, sloping): (impl Fn(usize) -> (Goal<'a, T>, T), impl Fn(usize) -> (Goal<'a, T>, T)),
        (d, h): (&mut [T], &mut [T]),
        mut f: impl FnMut(usize, T),
    ) {
        let (map, width) = (self.map, self.map.outputs);
        let Room { scores, spent, tangents, risk, .. } = &mut self.room;
        map.apply_two(rows, [theta, v], [&mut *scores, &mut *tangents]);
        self.loss.prepare(scores, width);
        spent.clone_from(scores);
        self.loss.slopes(spent, width, sloping, risk);
        let pairs = spent.chunks_exact(width).zip(tangents.chunks_exact(width));
        pairs.enumerate().for_each(|(r, (slope, a))| f(r, dot(slope, a)));
        spent.clone_from(scores);
        self.loss.slopes(spent, width, &each, risk);
        self.loss.curves(scores, tangents, width, each, risk);
        map.add_two_gradients(rows, [&spent[..], &tangents[..]], [d, h]);
    }

    /// The mean over rows of ∂²ℓ/∂z_c², for every column c.
    pub fn mean_curvatures<'a>(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        each: impl Fn(usize) -> (Goal<'a, T>, T),
    ) -> Vec<T> {
        self.map.apply(rows, theta, &mut self.room.scores);
        self.loss.mean_curvatures(&mut self.room.scores, self.map.outputs, each)
    }

    /// Calls `f(r, w_r ⟨∇ℓ_r(θ), v⟩)` for every row.
    pub fn each_slope<'a>(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        v: &[T],
        each: impl Fn(usize) -> (Goal<'a, T>, T),
        mut f: impl FnMut(usize, T),
    ) {
        self.map.apply(rows, theta, &mut self.room.scores);
        self.find_slopes(each);
        self.map.apply(rows, v, &mut self.room.tangents);
        let width = self.map.outputs;
        let pairs =
            self.room.scores.chunks_exact(width).zip(self.room.tangents.chunks_exact(width));
        pairs.enumerate().for_each(|(r, (slope, a))| f(r, dot(slope, a)));
    }

    /// Row r: w_r ∂ℓ_r/∂s_r.
    pub fn row_gradients<'a>(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        each: impl Fn(usize) -> (Goal<'a, T>, T),
    ) -> &mut Vec<T> {
        self.map.apply(rows, theta, &mut self.room.scores);
        self.find_slopes(each);
        self.map.pull_back(
            theta,
            &self.room.scores,
            false,
            &mut self.room.back,
            &mut self.room.scratch,
        );
        &mut self.room.back
    }

    /// Row r: w_r ∂⟨∇_θ ℓ_r, v⟩/∂s_r = w_r ((∇ℓ(z)) Vᵀ + (∇²ℓ(z) a) Wᵀ), where a = s V + v_b.
    pub fn row_cross<'a>(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        v: &[T],
        each: impl Fn(usize) -> (Goal<'a, T>, T),
    ) -> &mut Vec<T> {
        self.map.apply(rows, theta, &mut self.room.scores);
        self.find_curves(rows, v, &each);
        self.map.pull_back(
            theta,
            &self.room.tangents,
            false,
            &mut self.room.back,
            &mut self.room.scratch,
        );
        self.find_slopes(each);
        self.map.pull_back(v, &self.room.scores, true, &mut self.room.back, &mut self.room.scratch);
        &mut self.room.back
    }

    /// The scores of every row.
    pub fn scores(&mut self, rows: &impl Rows<T>, theta: &[T]) -> Vec<T> {
        self.map.apply(rows, theta, &mut self.room.scores);
        self.room.scores.clone()
    }

    /// scores ← w_r ∇ℓ(z_r), from the scores z.
    fn find_slopes<'a>(&mut self, each: impl Fn(usize) -> (Goal<'a, T>, T)) {
        let Room { scores, risk, .. } = &mut self.room;
        self.loss.prepare(scores, self.map.outputs);
        self.loss.slopes(scores, self.map.outputs, each, risk);
    }

    /// tangents ← w_r ∇²ℓ(z_r) a_r with a = s V + v_b, from the scores z, which are kept.
    fn find_curves<'a>(
        &mut self,
        rows: &impl Rows<T>,
        v: &[T],
        each: impl Fn(usize) -> (Goal<'a, T>, T),
    ) {
        let Room { scores, spent, tangents, risk, .. } = &mut self.room;
        self.map.apply(rows, v, tangents);
        spent.clone_from(scores);
        self.loss.prepare(spent, self.map.outputs);
        self.loss.curves(spent, tangents, self.map.outputs, each, risk);
    }
}
