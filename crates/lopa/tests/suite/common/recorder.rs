//! A problem that records the batches of its calls.

use std::sync::{Arc, Mutex};

use lopa::math::real::Real;
use lopa::problem::{At, Bilevel, Dims, SingleLevel};

/// One question: the derivative's name and its batch.
pub type Call = (&'static str, Vec<u32>);

/// A log of calls that outlives the recorder.
pub type Log = Arc<Mutex<Vec<Call>>>;

/// Wraps a part and logs every call of a derivative.
struct Recorder<T> {
    part: Box<dyn Bilevel<T>>,
    log: Log,
}

/// A part that logs, and its log.
pub fn recorder<T: Real>(part: Box<dyn Bilevel<T>>) -> (Box<dyn Bilevel<T>>, Log) {
    let log = Log::default();
    (Box::new(Recorder { part, log: log.clone() }), log)
}

impl<T: Real> Recorder<T> {
    fn note(&self, name: &'static str, batch: &[u32]) {
        self.log.lock().unwrap().push((name, batch.to_vec()));
    }
}

/// The calls since the last time.
pub fn take(log: &Log) -> Vec<Call> {
    std::mem::take(&mut *log.lock().unwrap())
}

impl<T: Real> Bilevel<T> for Recorder<T> {
    fn dims(&self) -> Dims {
        self.part.dims()
    }

    fn samples_f(&self) -> usize {
        self.part.samples_f()
    }

    fn samples_g(&self) -> usize {
        self.part.samples_g()
    }

    fn f(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        self.part.f(at, batch)
    }

    fn g(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        self.part.g(at, batch)
    }

    fn grad_x_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.note("grad_x_f", batch);
        self.part.grad_x_f(at, batch, out);
    }

    fn grad_theta_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.note("grad_theta_f", batch);
        self.part.grad_theta_f(at, batch, out);
    }

    fn grad_theta_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.note("grad_theta_g", batch);
        self.part.grad_theta_g(at, batch, out);
    }

    fn hess_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        self.note("hess_g", batch);
        self.part.hess_g(at, batch, v, out);
    }

    fn cross_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        self.note("cross_g", batch);
        self.part.cross_g(at, batch, v, out);
    }

    fn metrics(&mut self, at: At<T>) -> Vec<(String, f64)> {
        self.part.metrics(at)
    }

    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<T>> {
        match self.part.single_level() {
            Some(_) => Some(self),
            None => None,
        }
    }
}

impl<T: Real> SingleLevel<T> for Recorder<T> {
    fn grad_x_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.note("grad_x_g", batch);
        self.part.single_level().unwrap().grad_x_g(at, batch, out);
    }
}
