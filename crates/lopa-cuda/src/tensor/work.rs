//! The parameters of the kernels: `Work` of kernels/tensor.cuh, field by field.

use crate::job::{Address, Common};

/// See kernels/tensor.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    pub common: Common,
    pub flags: Address,
    pub unit: f32,
    pub ridge: f32,
    pub chunks: u32,
    pub none: u32,
}

#[cfg(test)]
mod tests {
    use super::Work;
    use crate::kernels::tests::tensor_ptx;

    /// The kernels' parameters have the same size.
    #[test]
    fn it_is_as_large_as_the_kernels_take_it_for() {
        let parameter = format!(".param .align 8 .b8 mix_64_param_0[{}]", size_of::<Work>());
        assert!(tensor_ptx().contains(&parameter), "{parameter}");
    }
}
