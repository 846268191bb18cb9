//! All nodes' directions in one call to Python: numbers go over in arrays that are written again and again.

use std::sync::Arc;

use lopa::error::Result;
use lopa::math::real::Real;
use lopa::problem::{Ask, Together};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::errors::keep;
use crate::part::{All, is_all};

/// Where a derivative's rows begin among those of its node, and how many they are; a negative number
/// stands for all samples in their order.
type Slot = (usize, i64);

/// Answers for all nodes.
pub struct Whole<T: Element> {
    all: Arc<All>,
    room: Option<Room<T>>,
    bytes: Vec<u8>,
}

/// What is the same in every iteration, or written over.
struct Room<T: Element> {
    nodes: Vec<usize>,
    named: Py<PyTuple>,        // the nodes, for Python
    arrays: [Py<PyAny>; 3],    // x, theta and v, with a row for each node
    cells: [PyBuffer<T>; 3],   // their entries
    slots: Vec<[Slot; 5]>,     // of each node, or one for all
    told: Option<Py<PyTuple>>, // the slots, for Python
}

impl<T: Real + Element> Together<T> for Whole<T> {
    fn directions(&mut self, asks: &mut [Ask<T>]) -> Result<()> {
        Python::attach(|py| self.ask(py, asks).map_err(|error| keep(py, error)))
    }
}

impl<T: Real + Element> Whole<T> {
    pub fn new(all: Arc<All>) -> Whole<T> {
        Whole { all, room: None, bytes: Vec::new() }
    }

    fn ask(&mut self, py: Python, asks: &mut [Ask<T>]) -> PyResult<()> {
        let same = |room: &Room<T>| room.nodes.iter().eq(asks.iter().map(|ask| &ask.node));
        let room = match self.room.take_if(|room| same(room)) {
            Some(room) => room,
            None => Room::new(py, &self.all, asks.iter().map(|ask| ask.node).collect())?,
        };
        let room = self.room.insert(room);
        room.write(py, 0, asks.iter().map(|ask| ask.at.x))?;
        room.write(py, 1, asks.iter().map(|ask| ask.at.theta))?;
        room.write(py, 2, asks.iter().map(|ask| ask.v))?;
        self.bytes.clear();
        let mut slots: Vec<[Slot; 5]> = Vec::with_capacity(asks.len());
        for ask in asks.iter() {
            slots.push(batches(ask, self.all.samples[ask.node], &mut self.bytes));
        }
        let alike = slots.iter().all(|five| *five == slots[0]);
        slots.truncate(if alike { 1 } else { slots.len() });
        let [x, theta, v] = &room.arrays;
        let (x, theta, v) = (x.bind(py), theta.bind(py), v.bind(py));
        let told = match room.told.take_if(|_| room.slots == slots) {
            Some(told) => told,
            None => {
                PyTuple::new(py, slots.iter().map(|&[a, b, c, d, e]| (a, b, c, d, e)))?.unbind()
            }
        };
        let indices = PyBytes::new(py, &self.bytes);
        let args = (room.named.bind(py), x, theta, v, told.bind(py), indices);
        let found = self.all.parts.bind(py).call_method1(pyo3::intern!(py, "together"), args)?;
        (room.slots, room.told) = (slots, Some(told));
        let (d, h, s): (Bound<PyAny>, Bound<PyAny>, Bound<PyAny>) = found.extract()?;
        spread(&d, asks, |ask| &mut *ask.out.d)?;
        spread(&h, asks, |ask| &mut *ask.out.h)?;
        spread(&s, asks, |ask| &mut *ask.out.s)
    }
}

impl<T: Real + Element> Room<T> {
    fn new(py: Python, all: &All, nodes: Vec<usize>) -> PyResult<Room<T>> {
        let made = all.parts.bind(py).call_method1("room", (nodes.len(),))?;
        let arrays: [Py<PyAny>; 3] = made.extract()?;
        let [x, theta, v] = &arrays;
        let cells = |array: &Py<PyAny>| PyBuffer::get(array.bind(py));
        let cells = [cells(x)?, cells(theta)?, cells(v)?];
        let named = PyTuple::new(py, &nodes)?.unbind();
        Ok(Room { nodes, named, arrays, cells, slots: Vec::new(), told: None })
    }

    /// Writes rows into an array.
    fn write<'a>(
        &self,
        py: Python,
        array: usize,
        rows: impl Iterator<Item = &'a [T]>,
    ) -> PyResult<()> {
        let cells = self.cells[array].as_mut_slice(py);
        let mut cells = cells.ok_or_else(|| PyValueError::new_err("an array is not writable"))?;
        for row in rows {
            let (own, rest) = cells.split_at_checked(row.len()).ok_or_else(|| {
                PyValueError::new_err(format!("no room for {} numbers of a node", row.len()))
            })?;
            own.iter().zip(row).for_each(|(cell, &value)| cell.set(value));
            cells = rest;
        }
        Ok(())
    }
}

/// The slots of five derivatives. Those of g that have the same rows share them, and so do those of f.
fn batches<T>(ask: &Ask<T>, (f, g): (usize, usize), bytes: &mut Vec<u8>) -> [Slot; 5] {
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
                bytes.extend(batch.iter().flat_map(|row| row.to_le_bytes()));
                begin += batch.len();
                (begin - batch.len(), batch.len() as i64)
            }
        };
    }
    slots
}

/// The rows of a matrix to the nodes that they belong to.
fn spread<T: Real + Element>(
    matrix: &Bound<PyAny>,
    asks: &mut [Ask<T>],
    out: impl for<'a> Fn(&'a mut Ask<T>) -> &'a mut [T],
) -> PyResult<()> {
    let buffer = PyBuffer::<T>::get(matrix)?;
    let wanted: usize = asks.iter_mut().map(|ask| out(ask).len()).sum();
    let cells = buffer.as_slice(matrix.py()).filter(|cells| cells.len() == wanted);
    let Some(mut cells) = cells else {
        let message = format!("{} numbers came back, not {wanted} in rows", buffer.item_count());
        return Err(PyValueError::new_err(message));
    };
    for ask in asks {
        let row = out(ask);
        let (own, rest) = cells.split_at(row.len());
        row.iter_mut().zip(own).for_each(|(out, cell)| *out = cell.get());
        cells = rest;
    }
    Ok(())
}
