//! The parameters of the kernels: `Task` of kernels/general.cu, field by field.

use crate::job::{Address, Common};

/// See kernels/general.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Task {
    pub common: Common,
    pub factors: Address,
    pub errors: Address,
    pub hidden: Address,
    pub shares: Address,
    pub heads: Address,
    pub tops: Address,
    pub scales: Address,
    pub ridge: f32,
    pub unit: f32,
    pub bias: f32,
    pub across: u32,
    pub deep: u32,
    pub reach: u32,
    pub terms: u32,
    pub width: u32,
    pub tiles: u32,
    pub steps_in: u32,
    pub steps_back: u32,
    pub groups: u32,
    pub together: u32,
    pub end: [u32; 5],
    pub live: u32,
}

#[cfg(test)]
mod tests {
    use super::Task;
    use crate::kernels::tests::general_ptx;

    /// The kernels' parameters have the same size.
    #[test]
    fn it_is_as_large_as_the_kernels_take_it_for() {
        let parameter = format!(".param .align 8 .b8 mix_param_0[{}]", size_of::<Task>());
        assert!(general_ptx().contains(&parameter), "{parameter}");
    }
}
