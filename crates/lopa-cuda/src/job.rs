//! The parameters of the kernels: `Common` of kernels/common.cuh and `Job` of kernels/job.cuh, field by field.

use std::ops::{Deref, DerefMut};

use lopa::math::real::Real;

/// `f32` or `f64`, as in the kernels.
pub trait Scalar: Real {
    /// The end of the names of its kernels.
    const END: &'static str;
}

impl Scalar for f32 {
    const END: &'static str = "f32";
}

impl Scalar for f64 {
    const END: &'static str = "f64";
}

/// An address on the card; 0 means none.
pub type Address = u64;

/// The first parameters of every kernel: see kernels/common.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Common {
    pub x: [Address; 2],
    pub y: [Address; 3],
    pub z: Address,
    pub s: Address,
    pub theta: Address,
    pub v: Address,
    pub d: Address,
    pub h: Address,
    pub links: Address,
    pub linked: Address,
    pub w: Address,
    pub steps: Address,
    pub clock: Address,
    pub picks: Address,
    pub own: [Address; 2],
    pub owned: [Address; 2],
    pub labels: Address,
    pub table: Address,
    pub weights: Address,
    pub found: Address,
    pub hess: Address,
    pub awake: Address,
    pub m: u32,
    pub n: u32,
    pub p: u32,
    pub scheme: u32,
    pub features: u32,
    pub stride: u32,
    pub units: u32,
    pub classes: u32,
    pub tanh: u32,
    pub outputs: u32,
    pub samples: u32,
    pub bytes: u32,
    pub drawn: u32,
    pub blocks: u32,
    pub size: [u32; 5],
    pub start: [u32; 5],
    pub slot: [u32; 5],
    pub full: [u32; 5],
    pub block: [u32; 5],
    pub side: [u32; 5],
    pub seed: [u32; 2],
    pub first: u32,
}

impl Common {
    /// The same with minibatches in another order.
    pub fn ordered(self, order: [usize; 5]) -> Common {
        let mut common = Common {
            size: order.map(|at| self.size[at]),
            slot: order.map(|at| self.slot[at]),
            full: order.map(|at| self.full[at]),
            side: order.map(|at| self.side[at]),
            ..self
        };
        (common.drawn, common.blocks) = (0, 0);
        for batch in 0..5 {
            (common.start[batch], common.block[batch]) = (common.drawn, common.blocks);
            common.drawn += common.size[batch];
            common.blocks += common.size[batch].div_ceil(16);
        }
        common
    }
}

/// See kernels/job.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Job<T: Real> {
    pub common: Common,
    pub shift: Address,
    pub hidden: Address,
    pub slopes: Address,
    pub errors: Address,
    pub coefficients: [Address; 12],
    pub rest: Address,
    pub targets: Address,
    pub below: Address,
    pub pulled: Address,
    pub heads: Address,
    pub adds: Address,
    pub layers: Address,
    pub tops: Address,
    pub group: Address,
    pub groups: Address,
    pub unit: T,
    pub ridge: T,
    pub delta: T,
    pub loss: u32,
    pub per: u32,
    pub bias: u32,
    pub offset: u32,
    pub many: u32,
    pub hidden_layers: u32,
    pub pieces: u32,
    pub head_row: u32,
    pub head_behind: u32,
}

/// What hidden units compute, as `tanh` of [`Common`].
pub const TANH: u32 = 1;
pub const RELU: u32 = 2;

/// Losses.
pub const SOFTMAX: u32 = 0;
pub const LOGISTIC: u32 = 1;
pub const SQUARED: u32 = 2;
pub const HUBER: u32 = 3;

/// What x of a linear model has an entry for.
pub const PER_ROW: u32 = 0;
pub const PER_GROUP: u32 = 1;
pub const PER_COLUMN: u32 = 2;
pub const PER_SAMPLE: u32 = 3;

impl<T: Real> Job<T> {
    /// The job of hidden layer `l` of these units; the arrays of all layers are one after the other.
    pub fn layer(&self, units: &[u32], l: usize) -> Job<T> {
        let Some(&own) = units.get(l) else { return *self };
        let [_, _, xi3, _, sigma2] = self.size;
        let count = u64::from(sigma2 + xi3);
        let below = units[..l].iter().map(|&units| u64::from(units)).sum::<u64>();
        let before = below - l.checked_sub(1).map_or(0, |last| u64::from(units[last]));
        // Activations and errors of the layers below, and of those below the layer below.
        let at = |array: Address, rows: u64, units: u64| {
            array + u64::from(self.m) * rows * units * T::BYTES as u64
        };
        let inputs = |l: usize| if l == 0 { self.features } else { units[l - 1] };
        let weights = |l: usize| (inputs(l) + self.bias) * units[l];
        let drawn = u64::from(self.drawn);
        let mut job = *self;
        (job.features, job.units) = (inputs(l), own);
        job.offset = (0..l).map(weights).sum();
        (job.hidden, job.errors) = (at(self.hidden, drawn, below), at(self.errors, count, below));
        (job.below, job.pulled) = (at(self.hidden, drawn, before), at(self.errors, count, before));
        job
    }
}

impl<T: Real> Deref for Job<T> {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

impl<T: Real> DerefMut for Job<T> {
    fn deref_mut(&mut self) -> &mut Common {
        &mut self.common
    }
}

#[cfg(test)]
mod tests {
    use super::Job;
    use crate::kernels::ptx;

    /// The kernels' parameters have the same size.
    #[test]
    fn it_is_as_large_as_the_kernels_take_it_for() {
        let ptx = ptx();
        for (end, size) in [("f32", size_of::<Job<f32>>()), ("f64", size_of::<Job<f64>>())] {
            let parameter = format!(".param .align 8 .b8 move_{end}_param_0[{size}]");
            assert!(ptx.contains(&parameter), "{parameter}");
        }
    }
}
