//! The optional parts of a build. Every build has their commands; a command whose part is missing
//! fails and prints how to install it.

#[cfg(not(all(
    feature = "cuda",
    feature = "fetch",
    feature = "paper",
    feature = "peers",
    feature = "mpi"
)))]
use lopa::error::Error;

use std::sync::atomic::{AtomicBool, Ordering};

use lopa::config::Entry;
use lopa::engine::device::Device;
use lopa::error::Result;
use lopa::experiment::RunSpec;
use lopa::run::Probe;

/// How to install everything except MPI and CUDA.
const FULL: &[&str] = &["cargo install --path crates/lopa-cli --features full"];
const FULL_PYTHON: &[&str] = &["pip install ./python"];

/// Whether this is the program of the Python package, whose parts are installed in another way.
static OF_PYTHON: AtomicBool = AtomicBool::new(false);

/// Declares that this is the program of the Python package.
pub fn of_python() {
    OF_PYTHON.store(true, Ordering::Relaxed);
}

/// An optional part of a build.
pub struct Feature {
    /// Its purpose.
    pub commands: &'static str,
    /// Whether this build has it.
    pub built_in: bool,
    /// The commands that install it, in order.
    install: &'static [&'static str],
    /// The same for the Python package.
    install_python: &'static [&'static str],
}

/// A part of `full`.
const fn of_full(commands: &'static str, built_in: bool) -> Feature {
    Feature { commands, built_in, install: FULL, install_python: FULL_PYTHON }
}

pub const FETCH: Feature = of_full("lopa data fetch", cfg!(feature = "fetch"));
pub const PEERS: Feature =
    of_full("lopa invite, join, key, roster, node, status", cfg!(feature = "peers"));
pub const PAPER: Feature = of_full("lopa theory, reproduce", cfg!(feature = "paper"));
pub const PNG: Feature = of_full("lopa report --figure-format png", cfg!(feature = "png"));

pub const MPI: Feature = Feature {
    commands: "lopa run --engine mpi",
    built_in: cfg!(feature = "mpi"),
    install: &[
        "apt-get install libopenmpi-dev libclang-dev",
        "cargo install --path crates/lopa-cli --features mpi",
    ],
    install_python: &[
        "apt-get install libopenmpi-dev libclang-dev",
        "MATURIN_PEP517_ARGS='--features full,mpi' pip install ./python",
    ],
};

pub const CUDA: Feature = Feature {
    commands: "lopa run --device cuda",
    built_in: cfg!(feature = "cuda"),
    install: &["cargo install --path crates/lopa-cli --features full,cuda"],
    install_python: &["MATURIN_PEP517_ARGS='--features full,cuda' pip install ./python"],
};

/// The entry of the graphics card in the registry of devices, also if this build does not support
/// it.
pub fn cuda() -> Entry<Device> {
    #[cfg(feature = "cuda")]
    return lopa_cuda::cuda();
    #[cfg(not(feature = "cuda"))]
    {
        let missing = || CUDA.missing("lopa run --device cuda").at("run.device");
        let device =
            Device::new(move |_| Err(missing()), move |_| Err(missing()), move |_| Err(missing()));
        lopa::engine::device::device_entry("cuda", "an NVIDIA graphics card", device)
    }
}

/// The name of the graphics card.
pub fn card() -> Result<String> {
    #[cfg(feature = "cuda")]
    return lopa_cuda::describe(0);
    #[cfg(not(feature = "cuda"))]
    Err(CUDA.missing("lopa run --device cuda"))
}

/// The probe for the terms of LoPA's Lyapunov function, if this build has it.
pub fn probe() -> Option<&'static dyn Probe> {
    #[cfg(feature = "paper")]
    return Some(&lopa_paper::theory::trace::Lyapunov);
    #[cfg(not(feature = "paper"))]
    None
}

/// Fails if an experiment needs the measures of the paper's part, in a build without it.
pub fn can_measure(run: &RunSpec) -> Result<()> {
    #[cfg(not(feature = "paper"))]
    if run.lyapunov {
        return Err(PAPER.missing("lopa run` with `lyapunov = true").at("run.lyapunov"));
    }
    let _ = run;
    Ok(())
}

impl Feature {
    /// How to install it.
    pub fn remedy(&self) -> String {
        let install = match OF_PYTHON.load(Ordering::Relaxed) {
            true => self.install_python,
            false => self.install,
        };
        let commands: Vec<String> = install.iter().map(|one| format!("`{one}`")).collect();
        commands.join(", then ")
    }

    /// The error for a command that needs it, in a build without it.
    #[cfg(not(all(
        feature = "cuda",
        feature = "fetch",
        feature = "paper",
        feature = "peers",
        feature = "mpi"
    )))]
    pub fn missing(&self, command: &str) -> Error {
        Error::config("config/not-built-in", format!("this build has no `{command}`"))
            .hint(format!("install it with {}", self.remedy()))
    }
}
