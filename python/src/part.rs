//! The nodes' parts of a problem in Python: numbers go over as bytes, and come back in arrays.

use std::sync::Arc;

use lopa::math::random::Stream;
use lopa::math::real::Real;
use lopa::problem::form::Form;
use lopa::problem::{At, Bilevel, Dims, SingleLevel, Trains};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::keep;
use crate::going::asked;

/// The parts of all nodes of this process, as Python has them.
pub struct All {
    pub(crate) parts: Py<PyAny>,
    dims: Dims,
    pub(crate) samples: Vec<(usize, usize)>, // of f and of g
    x: Vec<f64>,
    theta: Vec<Vec<f64>>,
    trains: Trains,
    measures: Vec<String>,
}

impl All {
    pub fn new(parts: &Bound<PyAny>) -> PyResult<All> {
        let (n, p) = parts.getattr("dims")?.extract()?;
        let trains: String = parts.getattr("trains")?.extract()?;
        Ok(All {
            dims: Dims { n, p },
            samples: parts.getattr("samples")?.extract()?,
            x: parts.getattr("start_x")?.extract()?,
            theta: parts.getattr("start_theta")?.extract()?,
            trains: if trains == "both" { Trains::Both } else { Trains::Theta },
            measures: parts.getattr("measures")?.extract()?,
            parts: parts.clone().unbind(),
        })
    }
}

/// One node's part.
pub struct Part<T> {
    all: Arc<All>,
    node: usize,
    bytes: Vec<u8>,
    error: Option<lopa::error::Error>,
    scalar: std::marker::PhantomData<T>,
}

/// Numbers as bytes for `numpy.frombuffer`.
fn bytes<'py, T: Real>(py: Python<'py>, values: &[T], room: &mut Vec<u8>) -> Bound<'py, PyBytes> {
    room.clear();
    T::extend_le(values, room);
    PyBytes::new(py, room)
}

/// Sample indices as bytes; `None` means all samples in order.
fn rows<'py>(
    py: Python<'py>,
    batch: &[u32],
    samples: usize,
    room: &mut Vec<u8>,
) -> Option<Bound<'py, PyBytes>> {
    if is_all(batch, samples) {
        return None;
    }
    room.clear();
    room.extend(batch.iter().flat_map(|row| row.to_le_bytes()));
    Some(PyBytes::new(py, room))
}

/// Whether a minibatch is all samples in their order.
pub fn is_all(batch: &[u32], samples: usize) -> bool {
    batch.len() == samples && (0..).zip(batch).all(|(at, &row)| at == row)
}

/// Copies an array that came back.
pub fn copy<T: Real + Element>(array: &Bound<PyAny>, out: &mut [T]) -> PyResult<()> {
    let buffer = PyBuffer::<T>::get(array)?;
    if buffer.item_count() != out.len() {
        let message = format!("{} numbers came back, not {}", buffer.item_count(), out.len());
        return Err(PyValueError::new_err(message));
    }
    buffer.copy_to_slice(array.py(), out)
}

impl<T: Real + Element> Part<T> {
    pub fn new(all: Arc<All>, node: usize) -> Part<T> {
        Part { all, node, bytes: Vec::new(), error: None, scalar: Default::default() }
    }

    /// Calls Python; after the first error, no more calls are made.
    fn ask<V>(&mut self, ask: impl FnOnce(&mut Self, Python) -> PyResult<V>, failed: V) -> V {
        if self.error.is_some() {
            return failed;
        }
        let asked = asked(|py| ask(self, py).map_err(|error| keep(py, error)));
        asked.unwrap_or_else(|error| {
            self.error = Some(error);
            failed
        })
    }

    fn call<'py>(
        &mut self,
        py: Python<'py>,
        name: &str,
        at: At<T>,
        v: Option<&[T]>,
        batch: &[u32],
    ) -> PyResult<Bound<'py, PyAny>> {
        let room = &mut self.bytes;
        let (f, g) = self.all.samples[self.node];
        let samples = if name.ends_with('f') { f } else { g };
        let x = bytes(py, at.x, room);
        let theta = bytes(py, at.theta, room);
        let v = v.map(|v| bytes(py, v, room));
        let rows = rows(py, batch, samples, room);
        self.all.parts.bind(py).call_method1("one", (name, self.node, x, theta, v, rows))
    }

    fn value(&mut self, name: &str, at: At<T>, batch: &[u32]) -> f64 {
        self.ask(|part, py| part.call(py, name, at, None, batch)?.extract(), f64::NAN)
    }

    fn vector(&mut self, name: &str, at: At<T>, v: Option<&[T]>, batch: &[u32], out: &mut [T]) {
        let done = self
            .ask(|part, py| copy(&part.call(py, name, at, v, batch)?, out).map(|()| true), false);
        if !done {
            out.fill(T::nan());
        }
    }
}

impl<T: Real + Element> Bilevel<T> for Part<T> {
    fn dims(&self) -> Dims {
        self.all.dims
    }
    fn samples_f(&self) -> usize {
        self.all.samples[self.node].0
    }
    fn samples_g(&self) -> usize {
        self.all.samples[self.node].1
    }
    fn f(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        self.value("f", at, batch)
    }
    fn g(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        self.value("g", at, batch)
    }
    fn grad_x_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.vector("grad_x_f", at, None, batch, out);
    }
    fn grad_theta_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.vector("grad_theta_f", at, None, batch, out);
    }
    fn grad_theta_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.vector("grad_theta_g", at, None, batch, out);
    }
    fn hess_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        self.vector("hess_g", at, Some(v), batch, out);
    }
    fn cross_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        self.vector("cross_g", at, Some(v), batch, out);
    }
    fn metrics(&mut self, at: At<T>) -> Vec<(String, f64)> {
        let ask = |part: &mut Part<T>, py: Python| {
            let x = bytes(py, at.x, &mut part.bytes);
            let theta = bytes(py, at.theta, &mut part.bytes);
            part.all.parts.bind(py).call_method1("metrics", (part.node, x, theta))?.extract()
        };
        // The same names everywhere, also where a measure failed.
        let failed = self.all.measures.iter().map(|name| (name.clone(), f64::NAN)).collect();
        self.ask(ask, failed)
    }
    fn start_x(&self, _: &mut Stream) -> Vec<f64> {
        self.all.x.clone()
    }
    fn start_theta(&self, _: &mut Stream) -> Vec<f64> {
        self.all.theta[self.node].clone()
    }
    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<T>> {
        Some(self)
    }
    fn form(&self) -> Result<Form<'_, T>, &'static str> {
        Ok(Form::Code(&self.all))
    }
    fn error(&mut self) -> Option<lopa::error::Error> {
        self.error.take()
    }
}

impl<T: Real + Element> SingleLevel<T> for Part<T> {
    fn grad_x_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.vector("grad_x_g", at, None, batch, out);
    }
    fn trains(&self) -> Trains {
        self.all.trains
    }
}
