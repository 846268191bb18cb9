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
    pub unit: T,
    pub ridge: T,
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
