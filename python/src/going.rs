//! The end of Python. It does not wait for daemon threads: one that is in the middle of a run must not call the
//! interpreter from then on, nor go back to it, or the process ends with a panic.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{self, ThreadId};
use std::time::Duration;

use lopa::error::{Error, Kind, Result};
use pyo3::prelude::*;

/// The thread that ends Python, once it does. That thread may still call it.
static ENDS: OnceLock<ThreadId> = OnceLock::new();

/// Threads that are in Python, or on their way into it.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// How often to check whether threads are still inside, and how many times: one may stay in a
/// user's function for ever.
const LOOK: Duration = Duration::from_millis(1);
const LOOKS: usize = 5000;

/// Called by `atexit`: lets no thread in from now on, and waits for those that are inside.
#[pyfunction]
pub fn going(py: Python) {
    let _ = ENDS.set(thread::current().id());
    py.detach(|| {
        for _ in 0..LOOKS {
            if INSIDE.load(SeqCst) == 0 {
                break;
            }
            thread::sleep(LOOK);
        }
    });
}

/// Counts a thread as inside, until it is dropped.
struct Inside;

impl Inside {
    /// `None` if Python is ending.
    fn enter() -> Option<Inside> {
        INSIDE.fetch_add(1, SeqCst);
        let inside = Inside;
        let others = ENDS.get().is_some_and(|ends| *ends != thread::current().id());
        (!others).then_some(inside)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, SeqCst);
    }
}

/// Calls Python; `None` if it is ending.
pub fn attached<R>(call: impl FnOnce(Python) -> R) -> Option<R> {
    let _inside = Inside::enter()?;
    Some(Python::attach(call))
}

/// The same; fails if Python is ending.
pub fn asked<R>(call: impl FnOnce(Python) -> Result<R>) -> Result<R> {
    attached(call).unwrap_or_else(|| Err(ending()))
}

/// The error for a call that Python no longer accepts.
pub fn ending() -> Error {
    Error::new(Kind::Run, "run/python-ends", "Python is ending").hint("wait for the run's thread")
}

/// Calls a function without Python. If Python ends in the meantime, the thread stays here: the
/// process is about to end.
pub fn detached<R: Send>(py: Python, work: impl FnOnce() -> R + Send) -> R {
    let (done, _inside) = py.detach(|| {
        let done = work();
        match Inside::enter() {
            Some(inside) => (done, inside),
            None => loop {
                thread::park();
            },
        }
    });
    done
}
