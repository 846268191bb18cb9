//! Experiments with the devices of this crate.

use lopa::config::Source;
use lopa::experiment::{Experiment, Registries};

/// Everything of the library, the card and its emulation.
pub fn registries() -> Registries {
    let mut registries = Registries::default();
    lopa_cuda::devices().into_iter().for_each(|entry| registries.devices.add(entry));
    registries
}

/// An experiment with overrides.
pub fn experiment(text: &str, sets: &[&str]) -> lopa::error::Result<Experiment> {
    let mut source = Source::new("test", text.to_string());
    source.sets = sets.iter().map(|set| set.to_string()).collect();
    Experiment::read(&source, &registries())
}
