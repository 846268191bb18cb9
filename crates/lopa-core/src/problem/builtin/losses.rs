//! The data term of f_i or g_i: c · mean over samples of w_e ℓ_e.

use super::affine::Batch;
use super::goal::{Goal, Goals};
use crate::data::Samples;
use crate::math::real::Real;
use crate::problem::form::Term;

/// Samples, the goals they are trained on, and the loss scale c.
#[derive(Debug, Clone)]
pub struct Losses<T> {
    /// The samples; their own labels and targets are the true ones.
    pub samples: Samples<T>,
    /// What each sample is trained on.
    pub goals: Goals<T>,
    /// The factor of the mean.
    pub c: f64,
}

impl<T: Real> Losses<T> {
    /// Trained on the true labels or targets.
    pub fn new(samples: Samples<T>, c: f64) -> Losses<T> {
        let goals = Goals::of(&samples);
        Losses { samples, goals, c }
    }

    /// How many samples there are.
    pub fn count(&self) -> usize {
        self.samples.len()
    }

    /// The same for a device.
    pub fn term(&self) -> Term<'_, T> {
        Term { samples: &self.samples, goals: &self.goals, c: self.c }
    }

    /// The rows of a batch.
    pub fn rows<'a>(&'a self, batch: &'a [u32]) -> Batch<'a, T> {
        Batch { samples: &self.samples, numbers: batch }
    }

    /// The goal and the weight c/b of the r-th example of a batch.
    pub fn each<'a>(&'a self, batch: &'a [u32]) -> impl Fn(usize) -> (Goal<'a, T>, T) + 'a {
        self.each_weighted(batch, |_| T::one())
    }

    /// The goal and the weight w_r c/b of the r-th example of a batch.
    pub fn each_weighted<'a>(
        &'a self,
        batch: &'a [u32],
        w: impl Fn(usize) -> T + 'a,
    ) -> impl Fn(usize) -> (Goal<'a, T>, T) + 'a {
        let scale = T::of(self.c / batch.len() as f64);
        move |r| {
            let e = batch[r] as usize;
            (self.goals.at(e), scale * w(r))
        }
    }

    /// The goal and the weight 1/N of the e-th of all samples, for a plain mean.
    pub fn every<'a>(&'a self) -> impl Fn(usize) -> (Goal<'a, T>, T) + 'a {
        let weight = T::of(1.0 / self.count() as f64);
        move |e| (self.goals.at(e), weight)
    }
}
