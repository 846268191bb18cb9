//! The data term of f_i or g_i: c · mean over samples of w_e ℓ_e.

use super::affine::Batch;
use crate::data::Samples;
use crate::math::real::Real;
use crate::problem::form::Term;

/// Samples, the labels they are trained on, and the loss scale c.
#[derive(Debug, Clone)]
pub struct Losses<T> {
    /// The samples; their own labels are the true ones.
    pub samples: Samples<T>,
    /// The label that each sample is trained on.
    pub labels: Vec<u32>,
    /// The factor of the mean.
    pub c: f64,
}

impl<T: Real> Losses<T> {
    /// Trained on the true labels.
    pub fn new(samples: Samples<T>, c: f64) -> Losses<T> {
        let labels = (0..samples.len() as u32).map(|j| samples.label(j)).collect();
        Losses { samples, labels, c }
    }

    /// How many samples there are.
    pub fn count(&self) -> usize {
        self.samples.len()
    }

    /// The same for a device.
    pub fn term(&self) -> Term<'_, T> {
        Term { samples: &self.samples, c: self.c }
    }

    /// The rows of a batch.
    pub fn rows<'a>(&'a self, batch: &'a [u32]) -> Batch<'a, T> {
        Batch { samples: &self.samples, numbers: batch }
    }

    /// The label and the weight c/b of the r-th example of a batch.
    pub fn each<'a>(&'a self, batch: &'a [u32]) -> impl Fn(usize) -> (u32, T) + 'a {
        self.each_weighted(batch, |_| T::one())
    }

    /// The label and the weight w_e c/b of the r-th example of a batch.
    pub fn each_weighted<'a>(
        &'a self,
        batch: &'a [u32],
        w: impl Fn(usize) -> T + 'a,
    ) -> impl Fn(usize) -> (u32, T) + 'a {
        let scale = T::of(self.c / batch.len() as f64);
        move |r| {
            let e = batch[r] as usize;
            (self.labels[e], scale * w(e))
        }
    }

    /// The label and the weight 1/N of the e-th of all samples, for a plain mean.
    pub fn every(&self) -> impl Fn(usize) -> (u32, T) + '_ {
        let weight = T::of(1.0 / self.count() as f64);
        move |e| (self.labels[e], weight)
    }
}
