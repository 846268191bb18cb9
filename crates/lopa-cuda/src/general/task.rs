//! The parameters of the kernels: `Task` of kernels/general.cu, field by field.

use crate::job::Address;

/// See kernels/general.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Task {
    pub x: [Address; 2],
    pub y: [Address; 2],
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
    pub factors: Address,
    pub errors: Address,
    pub hidden: Address,
    pub shares: Address,
    pub heads: Address,
    pub tops: Address,
    pub scales: Address,
    pub largest: Address,
    pub ridge: f32,
    pub unit: f32,
    pub bias: f32,
    pub m: u32,
    pub n: u32,
    pub p: u32,
    pub scheme: u32,
    pub features: u32,
    pub units: u32,
    pub classes: u32,
    pub tanh: u32,
    pub across: u32,
    pub deep: u32,
    pub stride: u32,
    pub terms: u32,
    pub width: u32,
    pub tiles: u32,
    pub steps_in: u32,
    pub steps_back: u32,
    pub groups: u32,
    pub together: u32,
    pub size: [u32; 5],
    pub end: [u32; 5],
    pub slot: [u32; 5],
    pub full: [u32; 5],
    pub side: [u32; 5],
    pub block: [u32; 5],
    pub blocks: u32,
    pub seed: [u32; 2],
}

#[cfg(test)]
mod tests {
    use super::Task;
    use crate::kernels::general_ptx;

    /// The kernels' parameters have the same size.
    #[test]
    fn it_is_as_large_as_the_kernels_take_it_for() {
        let parameter = format!(".param .align 8 .b8 mix_param_0[{}]", size_of::<Task>());
        assert!(general_ptx().contains(&parameter), "{parameter}");
    }
}
