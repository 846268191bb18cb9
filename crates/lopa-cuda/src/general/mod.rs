//! `representation` on the tensor cores of Hopper cards for any shape (kernels/general.cu).

#[cfg(feature = "emulate")]
mod emulate;
mod layout;
mod run;
mod shape;
mod task;

use lopa::math::real::Real;

use crate::plan::{Evaluated, Plan};

#[cfg(feature = "emulate")]
pub use emulate::take as emulated;
pub use layout::{extent, table};
pub use run::take;
pub use shape::Launch;
use shape::Shape;

/// The most hidden units and classes.
const UNITS: u32 = 512;
const CLASSES: u32 = 64;

/// The minibatches in the order of a node's rows: ξ₁, ξ₂, ς₁, ς₂, ξ₃.
pub const ORDER: [usize; 5] = [0, 1, 3, 4, 2];

/// Whether the kernels support this: f32, at most 512 units and 64 classes, minibatches that are
/// not empty and whose rows fit, algorithms that evaluate d, h and s together.
pub fn can<T: Real>(plan: &Plan<T>) -> bool {
    let job = &plan.job;
    let full = |of: &Evaluated<T>| of.job.size.iter().all(|&size| size > 0);
    T::BYTES == 4
        && plan.is_classifier()
        && plan.evaluations.iter().all(|evaluated| !evaluated.single)
        && job.features > 0
        && (1..=UNITS).contains(&job.units)
        && (2..=CLASSES).contains(&job.classes)
        && plan.evaluations.iter().filter(|of| !of.probe).all(full)
        && Shape::new(plan, job, plan.probe().is_some()).fits(plan)
}

/// Whether they are worth using on a card of this compute capability.
pub fn should<T: Real>(plan: &Plan<T>, capability: [i32; 2]) -> bool {
    capability[0] == 9 && can(plan)
}
