//! Errors of lopa as exceptions, and exceptions of users' code as errors of lopa and back.

use std::sync::Mutex;

use lopa::error::{Error, Kind, Result};
use pyo3::prelude::*;

use crate::going::detached;

/// Exceptions of users' code that a run ended with, and the errors that stood for them.
static KEPT: Mutex<Vec<(Error, PyErr)>> = Mutex::new(Vec::new());

/// The identifier of errors that represent an exception.
pub const PYTHON: &str = "problem/python";

/// The exception for an error: the user's own, with its traceback, if the error represents one.
pub fn raise(py: Python, error: Error) -> PyErr {
    if let Some(own) = take(&error) {
        return own;
    }
    match made(py, &error) {
        Ok(exception) => PyErr::from_value(exception),
        Err(broken) => broken,
    }
}

/// Works without Python; an error becomes an exception.
pub fn without<R: Send>(py: Python, work: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
    detached(py, work).map_err(|error| raise(py, error))
}

fn made<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let name = match error.kind {
        Kind::Run if error.id == "run/diverged" => "DivergedError",
        Kind::Run => "RunError",
        Kind::Config => "ConfigError",
        Kind::Data => "DataError",
        Kind::Network => "NetworkError",
        Kind::Storage => "StorageError",
        Kind::Peer => "PeerError",
        Kind::Refused => "RefusedError",
        Kind::Mismatch => "MismatchError",
        Kind::Left => "LeftError",
    };
    let Error { id, message, place, hint, .. } = error;
    py.import("lopa._errors")?.getattr(name)?.call1((*id, message, place, hint))
}

/// The error that represents an exception of the user's code during a run.
pub fn keep(py: Python, exception: PyErr) -> Error {
    let error = described(py, &exception).unwrap_or_else(|_| {
        let message = exception.to_string();
        Error::new(Kind::Run, PYTHON, message)
    });
    if let Ok(mut kept) = KEPT.lock() {
        // Callers that never raise them, such as the command line, must not accumulate them.
        let surplus = kept.len().saturating_sub(15);
        kept.drain(..surplus);
        kept.push((error.clone(), exception));
    }
    error
}

/// An exception of ours keeps its kind; any other is named, with the place in the user's file.
fn described(py: Python, exception: &PyErr) -> PyResult<Error> {
    let found = py.import("lopa._errors")?.getattr("describe")?.call1((exception.value(py),))?;
    let (kind, message, place, hint): (String, String, Option<String>, Option<String>) =
        found.extract()?;
    let kind = match kind.as_str() {
        "ConfigError" => Kind::Config,
        "DataError" => Kind::Data,
        _ => Kind::Run,
    };
    let mut error = Error::new(kind, PYTHON, message);
    (error.place, error.hint) = (place, hint);
    Ok(error)
}

fn take(error: &Error) -> Option<PyErr> {
    let mut kept = KEPT.lock().ok()?;
    // The reader of a file adds the place and its own identifier.
    let same = |(known, _): &(Error, PyErr)| error.message.contains(&known.message);
    let at = kept.iter().rposition(same)?;
    Some(kept.swap_remove(at).1)
}
