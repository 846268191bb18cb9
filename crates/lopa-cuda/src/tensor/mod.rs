//! `representation` on the tensor cores of Hopper cards (kernels/tensor.cu), where its shape allows.

#[cfg(feature = "emulate")]
mod emulate;
mod layout;
mod run;
mod work;

use lopa::math::real::Real;

use crate::plan::{LISTED, Plan, Table};

#[cfg(feature = "emulate")]
pub use emulate::take as emulated;
pub use run::take;

/// The most hidden units, classes, and samples of a minibatch.
const UNITS: u32 = 28;
const CLASSES: u32 = 10;
const SLOT: u32 = 50;

/// With fewer features or units, padding costs more than tensor cores gain.
const FEATURES: u32 = 128;
const FEW_UNITS: u32 = 17;

/// The minibatches in the order of a node's rows: ξ₁, ξ₂, ς₁, ς₂, ξ₃.
const ORDER: [usize; 5] = [0, 1, 3, 4, 2];

/// Whether the kernels support this: LoPA or D-SOBA with given steps in f32, features that are bytes without a shift, at most
/// 28 units, 10 classes and 50 samples in a minibatch.
pub fn can<T: Real>(plan: &Plan<T>) -> bool {
    let job = &plan.job;
    let rows = match &plan.table {
        Table::Bytes(bytes) => bytes.len() as u64 / u64::from(job.features.max(1)),
        Table::Numbers(_) => return false,
    };
    let stride = 128 * u64::from(layout::chunks(job.features) + 1);
    T::BYTES == 4
        && plan.is_classifier()
        && job.scheme != LISTED
        && plan.finds.is_none()
        && plan.shift.iter().all(|&shift| shift == T::zero())
        && job.units <= UNITS
        && (2..=CLASSES).contains(&job.classes)
        && job.size.iter().all(|size| (1..=SLOT).contains(size))
        // Rows and their indices are numbers of 28 and 32 bits.
        && rows < 1 << 28
        && rows * stride < 1 << 32
}

/// Whether they are worth using on a card of this compute capability: they support the run, and
/// there are at least 128 features and 17 units.
pub fn should<T: Real>(plan: &Plan<T>, capability: [i32; 2]) -> bool {
    capability[0] == 9 && plan.job.features >= FEATURES && plan.job.units >= FEW_UNITS && can(plan)
}
