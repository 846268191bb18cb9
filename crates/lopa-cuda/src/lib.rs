//! lopa on a graphics card: the iterations of all nodes, in CUDA.
//!
//! [`cuda`] is the device that `device = "cuda"` names in experiment files. The driver is loaded when a
//! run begins; nothing of CUDA is needed to build or to link. The kernels are kernels/lopa.cu, shipped
//! as kernels/lopa.ptx.
//!
//! [`emulated`] does the same on the processor, sum by sum in the same order: tests compare it with the
//! library's own engine everywhere, and with the card where there is one. It is slow.

mod card;
mod driver;
mod emulate;
mod exponential;
mod job;
mod plan;

use lopa::config::Entry;
use lopa::engine::device::{Place, device_entry};
use lopa::error::Result;

pub use card::PTX;

/// The graphics card, as an entry of the registry of devices.
pub fn cuda() -> Entry<Place> {
    let place = Place::there(card::open::<f32>, card::open::<f64>, describe);
    device_entry("cuda", "an NVIDIA graphics card", place)
}

/// The card in words; an error says what is missing.
pub fn describe() -> Result<String> {
    driver::Card::first().map(|card| card.name.clone())
}

/// The arithmetic of the card's kernels, on the processor.
pub fn emulated() -> Entry<Place> {
    let describe = || Ok("an emulated card".into());
    let place = Place::there(emulate::open::<f32>, emulate::open::<f64>, describe);
    device_entry("emulated", "the kernels of `cuda`, emulated", place)
}
