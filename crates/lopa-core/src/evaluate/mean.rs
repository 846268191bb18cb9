//! The mean of all nodes' parts as one part: the global problem is the personal problem of a single
//! node with that part.
//!
//! ```text
//! θ*(x) = argmin_θ 1/m Σ_i g_i     v* = [1/m Σ_i ∇²_θθ g_i]⁻¹ 1/m Σ_i ∇_θ f_i
//! ∇Φ    = 1/m Σ_i ∇_x f_i − (1/m Σ_i ∇²_xθ g_i) v*
//! ```
//!
//! This is not the mean of the ∇Φ_i unless all g_i agree (Chen et al., *ICML* 2023, Lemma 3.1).

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::evaluate::Everyone;
use crate::math::real::axpy;
use crate::problem::{At, Bilevel, Dims, Shortcuts};

/// 1/m Σ_i of f_i and g_i. It has one sample of each: all the data.
pub struct Mean<'a> {
    parts: &'a mut [Box<dyn Bilevel<f64>>],
    pool: Option<&'a ThreadPool>,
    everyone: Everyone<'a>,
    failed: Option<Error>,
    all: Vec<u32>,
    outs: Vec<Vec<f64>>,
}

impl<'a> Mean<'a> {
    /// The mean of these parts and of those in other processes, whose numbers `everyone` collects;
    /// evaluated on a pool's threads if there is one.
    pub fn new(
        parts: &'a mut [Box<dyn Bilevel<f64>>],
        pool: Option<&'a ThreadPool>,
        everyone: Everyone<'a>,
    ) -> Mean<'a> {
        let samples = parts.iter().map(|part| part.samples_f().max(part.samples_g())).max();
        let all = (0..samples.unwrap_or(0) as u32).collect();
        let outs = vec![Vec::new(); parts.len()];
        Mean { parts, pool, everyone, failed: None, all, outs }
    }

    /// Fails if another process could not be reached; the results are then meaningless.
    pub fn check(self) -> Result<()> {
        self.failed.map_or(Ok(()), Err)
    }

    /// `out` ← the mean of the outputs of `each`, summed in the order of the nodes.
    fn mean(
        &mut self,
        out: &mut [f64],
        each: impl Fn(&mut dyn Bilevel<f64>, &[u32], &mut [f64]) + Sync,
    ) {
        let (all, length) = (&self.all, out.len());
        let one = |(part, own): (&mut Box<dyn Bilevel<f64>>, &mut Vec<f64>)| {
            own.resize(length, 0.0);
            each(&mut **part, all, own);
        };
        match self.pool {
            None => self.parts.iter_mut().zip(&mut self.outs).for_each(one),
            Some(pool) => {
                pool.install(|| self.parts.par_iter_mut().zip(&mut self.outs).for_each(one));
            }
        }
        out.fill(0.0);
        match (self.everyone)(std::mem::take(&mut self.outs)) {
            Ok(mut outs) => {
                let weight = 1.0 / outs.len() as f64;
                outs.iter().for_each(|own| axpy(weight, own, out));
                outs.truncate(self.parts.len());
                self.outs = outs;
            }
            Err(error) => {
                self.failed.get_or_insert(error);
                self.outs = vec![Vec::new(); self.parts.len()];
            }
        }
    }

    fn value(&mut self, each: impl Fn(&mut dyn Bilevel<f64>, &[u32]) -> f64 + Sync) -> f64 {
        let mut mean = [0.0];
        self.mean(&mut mean, |part, all, out| out[0] = each(part, all));
        mean[0]
    }
}

impl Bilevel<f64> for Mean<'_> {
    fn dims(&self) -> Dims {
        self.parts[0].dims()
    }

    fn samples_f(&self) -> usize {
        1
    }

    fn samples_g(&self) -> usize {
        1
    }

    fn f(&mut self, at: At<f64>, _: &[u32]) -> f64 {
        self.value(|part, all| part.f(at, &all[..part.samples_f()]))
    }

    fn g(&mut self, at: At<f64>, _: &[u32]) -> f64 {
        self.value(|part, all| part.g(at, &all[..part.samples_g()]))
    }

    fn grad_x_f(&mut self, at: At<f64>, _: &[u32], out: &mut [f64]) {
        self.mean(out, |part, all, own| part.grad_x_f(at, &all[..part.samples_f()], own));
    }

    fn grad_theta_f(&mut self, at: At<f64>, _: &[u32], out: &mut [f64]) {
        self.mean(out, |part, all, own| part.grad_theta_f(at, &all[..part.samples_f()], own));
    }

    fn grad_theta_g(&mut self, at: At<f64>, _: &[u32], out: &mut [f64]) {
        self.mean(out, |part, all, own| part.grad_theta_g(at, &all[..part.samples_g()], own));
    }

    fn hess_g(&mut self, at: At<f64>, _: &[u32], v: &[f64], out: &mut [f64]) {
        self.mean(out, |part, all, own| part.hess_g(at, &all[..part.samples_g()], v, own));
    }

    fn cross_g(&mut self, at: At<f64>, _: &[u32], v: &[f64], out: &mut [f64]) {
        self.mean(out, |part, all, own| part.cross_g(at, &all[..part.samples_g()], v, own));
    }

    /// None: metrics belong to nodes.
    fn metrics(&mut self, _: At<f64>) -> Vec<(String, f64)> {
        Vec::new()
    }

    fn shortcuts(&mut self) -> Option<&mut dyn Shortcuts<f64>> {
        Some(self)
    }
}

impl Shortcuts<f64> for Mean<'_> {
    fn hess_diagonal(&mut self, at: At<f64>) -> Option<Vec<f64>> {
        let mut diagonal = vec![0.0; at.theta.len()];
        // NaN marks a part without a diagonal.
        self.mean(&mut diagonal, |part, _, own| {
            match part.shortcuts().and_then(|known| known.hess_diagonal(at)) {
                Some(diagonal) => own.copy_from_slice(&diagonal),
                None => own.fill(f64::NAN),
            }
        });
        diagonal.iter().all(|entry| *entry > 0.0).then_some(diagonal)
    }
}
