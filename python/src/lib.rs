//! The Python module `lopa._lopa`: a thin layer that passes text and numbers. `lopa/` builds the
//! objects that users see from them.

mod arrays;
mod device;
mod errors;
mod experiment;
mod fit;
mod going;
mod network;
mod part;
mod problem;
mod runs;
mod send;
mod together;
mod values;
mod work;

use std::ffi::OsString;
use std::process::ExitCode;

use lopa::experiment::Registries;
use pyo3::prelude::*;

/// The registries of experiment files: all of lopa, problems and data in Python, and their frameworks as a device.
fn registries() -> Registries {
    let mut all = Registries::default();
    all.problems.add(problem::entry());
    all.sources.add(arrays::entry());
    all.devices.add(device::entry());
    all
}

/// Runs the command line; returns its exit code.
#[pyfunction]
fn main(py: Python, args: Vec<OsString>) -> u8 {
    lopa_cli::of_python();
    let code = going::detached(py, || lopa_cli::run_with(args, registries()));
    (0..=u8::MAX).find(|&number| ExitCode::from(number) == code).unwrap_or(1)
}

#[pymodule]
fn _lopa(module: &Bound<PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let atexit = module.py().import("atexit")?;
    atexit.call_method1("register", (wrap_pyfunction!(going::going, module)?,))?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::check, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::run, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::listing, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::schema, module)?)?;
    for function in [
        wrap_pyfunction!(experiment::parts, module)?,
        wrap_pyfunction!(work::tune, module)?,
        wrap_pyfunction!(work::tune_unit, module)?,
        wrap_pyfunction!(work::ranges, module)?,
        wrap_pyfunction!(work::trial, module)?,
        wrap_pyfunction!(work::run_unit, module)?,
        wrap_pyfunction!(work::compare, module)?,
    ] {
        module.add_function(function)?;
    }
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(fit::usual, module)?)?;
    module.add_function(wrap_pyfunction!(fit::spelling, module)?)?;
    module.add_function(wrap_pyfunction!(fit::predictions, module)?)?;
    module.add_function(wrap_pyfunction!(fit::personal, module)?)?;
    module.add_function(wrap_pyfunction!(network::graph, module)?)?;
    module.add_function(wrap_pyfunction!(network::partition, module)?)?;
    module.add_function(wrap_pyfunction!(network::shuffled, module)?)?;
    module.add_function(wrap_pyfunction!(runs::read_run, module)?)?;
    module.add_function(wrap_pyfunction!(runs::read_model, module)?)?;
    module.add_function(wrap_pyfunction!(runs::model_about, module)?)?;
    module.add_function(wrap_pyfunction!(runs::model_predictions, module)?)?;
    module.add_function(wrap_pyfunction!(runs::report, module)?)?;
    module.add_function(wrap_pyfunction!(runs::pictures, module)?)
}
