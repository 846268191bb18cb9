//! All nodes' directions in one call to Python: numbers go over in arrays that are written again and again.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use lopa::error::Result;
use lopa::math::real::Real;
use lopa::problem::{Ask, Together};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::keep;
use crate::going::{asked, attached};
use crate::part::{All, is_all};

/// Where a derivative's rows begin among those of its node, and how many they are; a negative
/// number means all samples in order.
pub type Slot = (usize, i64);

/// Computes for all nodes.
pub struct Whole<T: Element> {
    all: Arc<All>,
    room: Option<Room<T>>,
    slots: Vec<[Slot; 5]>, // of each node
    rows: Vec<i32>,
    numbers: Vec<T>, // on their way to an array, or from one
}

/// The arguments of the calls: the same objects in every iteration, with new numbers. One array of
/// numbers in, one of rows, one back: a framework's overhead per array exceeds that per entry.
struct Room<T: Element> {
    nodes: Vec<usize>,
    slots: Vec<[Slot; 5]>,
    asked: Py<PyTuple>,  // the arguments: nodes, numbers, slots, rows
    at: PyBuffer<T>,     // the numbers: every node's x, then every theta, then every v
    rows: PyBuffer<i32>, // the drawn rows of each node
}

impl<T: Real + Element> Together<T> for Whole<T> {
    fn directions(&mut self, asks: &mut [Ask<T>]) -> Result<()> {
        asked(|py| self.ask(py, asks).map_err(|error| keep(py, error)))
    }
}

/// Arrays are given back to Python, unless it is ending.
impl<T: Element> Drop for Whole<T> {
    fn drop(&mut self) {
        let room = ManuallyDrop::new(self.room.take());
        attached(|_| drop(ManuallyDrop::into_inner(room)));
    }
}

impl<T: Real + Element> Whole<T> {
    pub fn new(all: Arc<All>) -> Whole<T> {
        let (slots, rows, numbers) = (Vec::new(), Vec::new(), Vec::new());
        Whole { all, room: None, slots, rows, numbers }
    }

    fn ask(&mut self, py: Python, asks: &mut [Ask<T>]) -> PyResult<()> {
        self.slots.clear();
        self.rows.clear();
        for ask in asks.iter() {
            self.slots.push(batches(ask, self.all.samples[ask.node], &mut self.rows));
        }
        if self.slots.iter().all(|five| *five == self.slots[0]) {
            self.slots.truncate(1);
        }
        let same = |room: &Room<T>| {
            room.slots == self.slots && room.nodes.iter().eq(asks.iter().map(|ask| &ask.node))
        };
        let room = match self.room.take_if(|room| same(room)) {
            Some(room) => room,
            None => {
                let nodes = asks.iter().map(|ask| ask.node).collect();
                Room::new(py, &self.all, nodes, self.slots.clone(), self.rows.len())?
            }
        };
        let room = self.room.insert(room);
        self.numbers.clear();
        asks.iter().for_each(|ask| self.numbers.extend_from_slice(ask.at.x));
        asks.iter().for_each(|ask| self.numbers.extend_from_slice(ask.at.theta));
        asks.iter().for_each(|ask| self.numbers.extend_from_slice(ask.v));
        room.at.copy_from_slice(py, &self.numbers)?;
        room.rows.copy_from_slice(py, &self.rows)?;
        let together = pyo3::intern!(py, "together");
        let found = self.all.parts.bind(py).call_method1(together, room.asked.bind(py))?;
        spread(&found, &mut self.numbers, asks)
    }
}

impl<T: Real + Element> Room<T> {
    fn new(
        py: Python,
        all: &All,
        nodes: Vec<usize>,
        slots: Vec<[Slot; 5]>,
        rows: usize,
    ) -> PyResult<Room<T>> {
        let made = all.parts.bind(py).call_method1("room", (nodes.len(), rows))?;
        let (at, drawn): (Bound<PyAny>, Bound<PyAny>) = made.extract()?;
        let named = PyTuple::new(py, &nodes)?;
        let told = PyTuple::new(py, slots.iter().map(|&[a, b, c, d, e]| (a, b, c, d, e)))?;
        let (cells, rows) = (PyBuffer::get(&at)?, PyBuffer::get(&drawn)?);
        let asked = (named, at, told, drawn).into_pyobject(py)?.unbind();
        Ok(Room { nodes, slots, asked, at: cells, rows })
    }
}

/// The slots of five derivatives. Those of g that have the same rows share them, and so do those of f.
fn batches<T>(ask: &Ask<T>, (f, g): (usize, usize), rows: &mut Vec<i32>) -> [Slot; 5] {
    let [xi1, xi2, xi3] = ask.on.xi;
    let [sigma1, sigma2] = ask.on.sigma;
    let five = [(xi1, g), (xi2, g), (xi3, g), (sigma1, f), (sigma2, f)];
    let mut slots = [(0, 0); 5];
    let mut begin = 0;
    for (at, &(batch, samples)) in five.iter().enumerate() {
        let first = if at < 3 { 0 } else { 3 };
        let earlier = (first..at).find(|&earlier| five[earlier].0 == batch);
        slots[at] = match earlier {
            Some(earlier) => slots[earlier],
            None if is_all(batch, samples) => (0, -(samples as i64)),
            None => {
                rows.extend(batch.iter().map(|&row| row as i32)); // as frameworks count
                begin += batch.len();
                (begin - batch.len(), batch.len() as i64)
            }
        };
    }
    slots
}

/// Distributes the result to the nodes: every d, then every h, then every s.
fn spread<T: Real + Element>(
    found: &Bound<PyAny>,
    numbers: &mut Vec<T>,
    asks: &mut [Ask<T>],
) -> PyResult<()> {
    let buffer = PyBuffer::<T>::get(found)?;
    let of = |ask: &Ask<T>| ask.out.d.len() + ask.out.h.len() + ask.out.s.len();
    let wanted: usize = asks.iter().map(of).sum();
    if buffer.item_count() != wanted {
        let message = format!("{} numbers came back, not {wanted} in a row", buffer.item_count());
        return Err(PyValueError::new_err(message));
    }
    numbers.resize(wanted, T::zero());
    buffer.copy_to_slice(found.py(), numbers)?;
    let mut left = &numbers[..];
    let mut take = |out: &mut [T]| {
        let (own, rest) = left.split_at(out.len());
        out.copy_from_slice(own);
        left = rest;
    };
    asks.iter_mut().for_each(|ask| take(ask.out.d));
    asks.iter_mut().for_each(|ask| take(ask.out.h));
    asks.iter_mut().for_each(|ask| take(ask.out.s));
    Ok(())
}
