//! The parameters of the kernels: `Work` of kernels/tensor.cuh, field by field.

use crate::job::Address;

/// See kernels/tensor.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
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
    pub flags: Address,
    pub largest: Address,
    pub unit: f32,
    pub ridge: f32,
    pub m: u32,
    pub n: u32,
    pub p: u32,
    pub scheme: u32,
    pub units: u32,
    pub classes: u32,
    pub tanh: u32,
    pub chunks: u32,
    pub size: [u32; 5],
    pub slot: [u32; 5],
    pub full: [u32; 5],
    pub side: [u32; 5],
    pub seed: [u32; 2],
}

#[cfg(test)]
mod tests {
    use super::Work;
    use crate::kernels::tensor_ptx;

    /// The kernels' parameters have the same size.
    #[test]
    fn it_is_as_large_as_the_kernels_take_it_for() {
        let parameter = format!(".param .align 8 .b8 mix_64_param_0[{}]", size_of::<Work>());
        assert!(tensor_ptx().contains(&parameter), "{parameter}");
    }
}
