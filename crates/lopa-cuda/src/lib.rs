//! lopa on a graphics card: the iterations of the nodes of a process, in CUDA.
//!
//! [`cuda`] is the device that `device = "cuda"` names in experiment files. The driver is loaded
//! when a run begins; building and linking need no part of CUDA. kernels/lopa.cu works for every shape
//! on every card, kernels/layers.cu for networks and linear models on the tensor cores of any card from sm_80 on: both are
//! shipped as PTX, of which the driver translates the kernels that a run needs. On Hopper cards, kernels/general.cu is faster
//! for classifiers with one hidden layer, and kernels/tensor.cu for those small shapes that src/tensor/mod.rs names. For these
//! cards all three are shipped as code.
//!
//! The feature `emulate`, for tests, adds devices that do the same on the processor, with every
//! sum in the same order (except within a tensor core): tests compare them with the library's own
//! engine everywhere, and with the card where there is one. They are slow.

mod card;
mod choice;
mod driver;
#[cfg(feature = "emulate")]
mod emulate;
#[cfg(feature = "emulate")]
mod exponential;
mod finds;
mod general;
mod halves;
mod job;
mod kernels;
mod layers;
mod plan;
mod post;
mod run;
mod steps;
mod tensor;

use lopa::config::Entry;
use lopa::engine::device::{Device, device_entry};
use lopa::error::Result;

/// Every device of this crate: the card, each of its kinds of kernels, and for tests their emulation.
pub fn devices() -> Vec<Entry<Device>> {
    vec![
        cuda(),
        plain(),
        tensor(),
        general(),
        layers(),
        #[cfg(feature = "emulate")]
        emulated(),
        #[cfg(feature = "emulate")]
        emulated_tensor(),
        #[cfg(feature = "emulate")]
        emulated_general(),
    ]
}

/// The graphics card, as an entry of the registry of devices.
pub fn cuda() -> Entry<Device> {
    let device = Device::new(card::open::<f32>, card::open::<f64>, describe);
    device_entry("cuda", "an NVIDIA graphics card", device)
}

/// The same with plain kernels only, which give the same bits on every card.
pub fn plain() -> Entry<Device> {
    let device = Device::new(card::open_plain::<f32>, card::open_plain::<f64>, describe);
    device_entry("plain", "a graphics card without its tensor cores", device)
}

/// The same on tensor cores wherever they support it, even where that is slower.
pub fn tensor() -> Entry<Device> {
    let device = Device::new(card::open_tensor::<f32>, card::open_tensor::<f64>, describe);
    device_entry("tensor", "the tensor cores of a graphics card", device)
}

/// The same with the kernels for any shape, also where others are faster.
pub fn general() -> Entry<Device> {
    let device = Device::new(card::open_general::<f32>, card::open_general::<f64>, describe);
    device_entry("general", "the tensor cores of a graphics card, as for any shape", device)
}

/// The same with the kernels for any model on tensor cores, also where others are faster.
pub fn layers() -> Entry<Device> {
    let device = Device::new(card::open_layers::<f32>, card::open_layers::<f64>, describe);
    device_entry("layers", "the tensor cores of a graphics card, as for any model", device)
}

/// The name of the card of the process with this number among those of the machine; the error names the missing part.
pub fn describe(place: usize) -> Result<String> {
    driver::Card::of_process(place).map(|card| card.name.clone())
}

/// The arithmetic of the card's kernels, on the processor.
#[cfg(feature = "emulate")]
pub fn emulated() -> Entry<Device> {
    let describe = |_| Ok("an emulated card".into());
    let device = Device::new(emulate::open::<f32>, emulate::open::<f64>, describe);
    device_entry("emulated", "the kernels of `cuda`, emulated", device)
}

/// The arithmetic of tensor cores, on the processor.
#[cfg(feature = "emulate")]
pub fn emulated_tensor() -> Entry<Device> {
    let describe = |_| Ok("an emulated card with tensor cores".into());
    let device = Device::new(emulate::open_tensor::<f32>, emulate::open_tensor::<f64>, describe);
    device_entry("emulated-tensor", "the tensor cores of `cuda`, emulated", device)
}

/// The arithmetic of the kernels for any shape, on the processor.
#[cfg(feature = "emulate")]
pub fn emulated_general() -> Entry<Device> {
    let describe = |_| Ok("an emulated card with tensor cores, as for any shape".into());
    let device = Device::new(emulate::open_general::<f32>, emulate::open_general::<f64>, describe);
    device_entry("emulated-general", "the tensor cores of `cuda` for any shape, emulated", device)
}
