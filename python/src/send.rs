//! Tasks that a Python function does elsewhere.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lopa::error::{Error, Result};
use lopa::folder::work::{Member, Share, Unit, interrupted};
use pyo3::prelude::*;

use crate::errors::raise;
use crate::going::asked;

/// Seconds without a sign of life after which another process takes over.
const LEASE: Duration = Duration::from_secs(120);

/// A Python function that does tasks elsewhere: it receives their texts, and returns an iterator over their numbers
/// and results.
pub struct Send<'a> {
    call: Option<Py<PyAny>>,
    interrupt: &'a AtomicBool,
    /// The exception that ended it.
    raised: Mutex<Option<PyErr>>,
}

impl<'a> Send<'a> {
    /// `None` where this process does everything.
    pub fn new(py: Python, call: &Py<PyAny>, interrupt: &'a AtomicBool) -> Send<'a> {
        let call = (!call.is_none(py)).then(|| call.clone_ref(py));
        Send { call, interrupt, raised: Mutex::new(None) }
    }

    /// Whether there is a function.
    pub fn is_given(&self) -> bool {
        self.call.is_some()
    }

    /// Who takes part in the work.
    pub fn member() -> Member {
        Member::here(Share { number: 1, of: 1 }, LEASE)
    }

    /// Does units, in any order.
    pub fn send(
        &self,
        units: &[Unit],
        keep: &mut dyn FnMut(usize, String) -> Result<()>,
    ) -> Result<()> {
        let Some(call) = &self.call else { return Ok(()) };
        let tasks: Vec<(&str, &str)> =
            units.iter().map(|unit| (unit.task.as_str(), unit.shown.as_str())).collect();
        let results = asked(|py| call.call1(py, (tasks,)).map_err(|error| self.failed(error)))?;
        loop {
            let next = asked(|py| -> Result<Option<(usize, String)>> {
                let next = results.bind(py).call_method0("__next__");
                match next.and_then(|next| next.extract().map(Some)) {
                    Err(error) if error.is_instance_of::<pyo3::exceptions::PyStopIteration>(py) => {
                        Ok(None)
                    }
                    next => next.map_err(|error| self.failed(error)),
                }
            })?;
            match next {
                Some((at, result)) => keep(at, result)?,
                None => return Ok(()),
            }
        }
    }

    /// Keeps an exception, to raise it at the end.
    pub fn failed(&self, error: PyErr) -> Error {
        self.interrupt.store(true, Ordering::Relaxed);
        *self.raised.lock().expect("nothing panics") = Some(error);
        interrupted()
    }

    /// The outcome, or the exception that ended the work.
    pub fn ended<R>(self, py: Python, done: Result<R>) -> PyResult<R> {
        match self.raised.into_inner().expect("nothing panics") {
            Some(raised) => Err(raised),
            None => done.map_err(|error| raise(py, error)),
        }
    }
}
