//! Linear classifiers: scores, losses, gradients and Hessian-vector products.
//!
//! ```text
//! scores   z = s W + b
//! one column     ℓ = log(1 + e^{−y z}),     y = +1 for class 0, −1 for class 1
//! C columns      ℓ = log Σ_c e^{z_c} − z_y
//! ```
//!
//! Sums over a batch carry a weight for every example: `each(r)` is the label and the weight of
//! the r-th.

use super::affine::{Affine, Rows};
use crate::math::real::{Real, dot, update};
use crate::problem::predictor::{Layer, Then};
use lopa_kernels::Level;

/// ℓ(z; y), finite for every finite z.
pub fn loss<T: Real>(z: &[T], label: u32) -> T {
    match z {
        [z] => softplus(if label == 0 { -*z } else { *z }),
        _ => {
            let top = highest(z);
            let sum: T = z.iter().map(|&z| (z - top).exp()).sum();
            sum.ln() - (z[label as usize] - top)
        }
    }
}

/// The class with the highest score, the first of several.
pub fn decide<T: Real>(z: &[T]) -> u32 {
    match z {
        [z] => u32::from(*z < T::zero()),
        _ => (1..z.len()).fold(0, |best, c| if z[c] > z[best] { c } else { best }) as u32,
    }
}

/// 1 / (1 + e^{−z}).
pub fn sigmoid<T: Real>(z: T) -> T {
    let mut z = [z];
    Level::best().sigmoid(&mut z);
    z[0]
}

/// log(1 + e^z), without overflow for large z.
fn softplus<T: Real>(z: T) -> T {
    z.max(T::zero()) + (-z.abs()).exp().ln_1p()
}

fn highest<T: Real>(z: &[T]) -> T {
    z.iter().copied().fold(T::neg_infinity(), T::max)
}

/// A linear classifier with its workspace; θ has the layout of [`Affine`].
#[derive(Debug, Clone)]
pub struct Classifier<T> {
    map: Affine,
    /// Its workspace.
    pub room: Room<T>,
}

/// The workspace of a classifier.
#[derive(Debug, Clone, Default)]
pub struct Room<T> {
    scores: Vec<T>,
    spent: Vec<T>,
    tangents: Vec<T>,
    back: Vec<T>,
    scratch: Vec<T>,
}

impl<T: Real> Classifier<T> {
    /// Softmax over `classes` columns, with a bias.
    pub fn softmax(inputs: usize, classes: usize) -> Classifier<T> {
        Classifier::new(Affine { inputs, outputs: classes, bias: true })
    }

    /// A classifier of the given shape; one column stands for the logistic loss of two classes.
    pub fn new(map: Affine) -> Classifier<T> {
        let [scores, spent, tangents, back, scratch] = std::array::from_fn(|_| Vec::new());
        Classifier { map, room: Room { scores, spent, tangents, back, scratch } }
    }

    /// Length of θ.
    pub fn size(&self) -> usize {
        self.map.size()
    }

    /// The classifier with its weights, as a saved model has it; `None` if θ does not fit.
    pub fn layer(&self, theta: &[f64]) -> Option<Layer> {
        self.map.layer(theta, Then::Softmax)
    }

    /// Columns of scores.
    pub fn columns(&self) -> usize {
        self.map.outputs
    }

    /// Calls `f(r, w_r ℓ_r(θ))` for every row.
    pub fn each_loss(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        each: impl Fn(usize) -> (u32, T),
        mut f: impl FnMut(usize, T),
    ) {
        self.map.apply(rows, theta, &mut self.room.scores);
        for (r, z) in self.room.scores.chunks_exact(self.map.outputs).enumerate() {
            let (label, weight) = each(r);
            f(r, weight * loss(z, label));
        }
    }

    /// Σ_r w_r ℓ_r(θ).
    pub fn loss(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        each: impl Fn(usize) -> (u32, T),
    ) -> f64 {
        let mut sum = 0.0;
        self.each_loss(rows, theta, each, |_, loss| sum += loss.to_f64());
        sum
    }

    /// `out += Σ_r w_r ∇ℓ_r(θ)`.
    pub fn add_gradient(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        each: impl Fn(usize) -> (u32, T),
        out: &mut [T],
    ) {
        self.map.apply(rows, theta, &mut self.room.scores);
        self.find_slopes(each);
        self.map.add_gradient(rows, &self.room.scores, out);
    }

    /// `out += Σ_r w_r ∇²ℓ_r(θ) v`.
    pub fn add_hessian_product(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        v: &[T],
        each: impl Fn(usize) -> (u32, T),
        out: &mut [T],
    ) {
        self.map.apply(rows, theta, &mut self.room.scores);
        self.find_curves(rows, v, each);
        self.map.add_gradient(rows, &self.room.tangents, out);
    }

    /// The mean over rows of ∂²ℓ/∂z_c², for every column c.
    pub fn mean_curvatures(&mut self, rows: &impl Rows<T>, theta: &[T]) -> Vec<T> {
        let width = self.map.outputs;
        self.map.apply(rows, theta, &mut self.room.scores);
        match width {
            1 => Level::best().sigmoid(&mut self.room.scores),
            _ => Level::best().softmax(&mut self.room.scores, width),
        }
        let mut mean = vec![T::zero(); width];
        for p in self.room.scores.chunks_exact(width) {
            update(&mut mean, [p], |sum, [p]| sum + p * (T::one() - p));
        }
        update(&mut mean, [], |sum, []| sum / T::of(rows.count() as f64));
        mean
    }

    /// Calls `f(r, w_r ⟨∇ℓ_r(θ), v⟩)` for every row.
    pub fn each_slope(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        v: &[T],
        each: impl Fn(usize) -> (u32, T),
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
    pub fn row_gradients(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        each: impl Fn(usize) -> (u32, T),
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
    pub fn row_cross(
        &mut self,
        rows: &impl Rows<T>,
        theta: &[T],
        v: &[T],
        each: impl Fn(usize) -> (u32, T),
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

    /// The predicted class of every row.
    pub fn predict(&mut self, rows: &impl Rows<T>, theta: &[T]) -> Vec<u32> {
        self.map.apply(rows, theta, &mut self.room.scores);
        self.room.scores.chunks_exact(self.map.outputs).map(decide).collect()
    }

    /// scores ← w_r ∇ℓ(z_r), from the scores z.
    fn find_slopes(&mut self, each: impl Fn(usize) -> (u32, T)) {
        let width = self.map.outputs;
        if width == 1 {
            return self.find_logistic_slopes(each);
        }
        Level::best().softmax(&mut self.room.scores, width);
        for (r, p) in self.room.scores.chunks_exact_mut(width).enumerate() {
            p[each(r).0 as usize] -= T::one();
        }
        // In a separate loop: loading a partly stored vector at once would stall.
        for (r, p) in self.room.scores.chunks_exact_mut(width).enumerate() {
            let weight = each(r).1;
            p.iter_mut().for_each(|p| *p *= weight);
        }
    }

    /// [`find_slopes`](Self::find_slopes) of one column: −y w_r σ(−y z_r).
    fn find_logistic_slopes(&mut self, each: impl Fn(usize) -> (u32, T)) {
        // Without a branch: the processor would mispredict half of the labels.
        let minus_y = |r| T::of(2.0 * f64::from(each(r).0) - 1.0);
        self.room.scores.iter_mut().enumerate().for_each(|(r, z)| *z *= minus_y(r));
        Level::best().sigmoid(&mut self.room.scores);
        self.room.scores.iter_mut().enumerate().for_each(|(r, s)| *s *= minus_y(r) * each(r).1);
    }

    /// tangents ← w_r ∇²ℓ(z_r) a_r with a = s V + v_b, from the scores z, which are kept.
    fn find_curves(&mut self, rows: &impl Rows<T>, v: &[T], each: impl Fn(usize) -> (u32, T)) {
        self.map.apply(rows, v, &mut self.room.tangents);
        self.room.spent.clone_from(&self.room.scores);
        let width = self.map.outputs;
        if width == 1 {
            return self.find_logistic_curves(each);
        }
        Level::best().softmax(&mut self.room.spent, width);
        let spent = self.room.spent.chunks_exact(width);
        for (r, (p, a)) in spent.zip(self.room.tangents.chunks_exact_mut(width)).enumerate() {
            let (_, weight) = each(r);
            let mean: T = p.iter().zip(&*a).map(|(&p, &a)| p * a).sum();
            a.iter_mut().zip(p).for_each(|(a, &p)| *a = weight * p * (*a - mean));
        }
    }

    /// [`find_curves`](Self::find_curves) of one column: w_r σ(z_r) σ(−z_r) a_r.
    fn find_logistic_curves(&mut self, each: impl Fn(usize) -> (u32, T)) {
        // The smaller of σ(z) and σ(−z): computed as 1 minus the larger, it would lose digits.
        update(&mut self.room.spent, [], |z, []| -z.abs());
        Level::best().sigmoid(&mut self.room.spent);
        for (r, (&s, a)) in self.room.spent.iter().zip(&mut self.room.tangents).enumerate() {
            *a *= each(r).1 * s * (T::one() - s);
        }
    }
}
