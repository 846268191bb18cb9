//! The shipped kernels are those of the source.

use sha2::{Digest, Sha256};

fn check(code: &str, names: &str, sources: &[&[u8]]) {
    let hash = Sha256::digest(sources.concat());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let first = code.lines().next().unwrap();
    assert_eq!(first, format!("// of {names}, SHA-256 {hash}"), "run kernels/make");
}

/// PTX is made from its source, and the translated kernels from this PTX.
fn check_both((ptx, named): (String, String), name: &str, names: &str, sources: &[&[u8]]) {
    check(&ptx, names, sources);
    check(&named, name, &[ptx.as_bytes()]);
}

#[test]
fn the_ptx_is_made_from_the_source() {
    let sources: [&[u8]; 9] = [
        include_bytes!("../../kernels/lopa.cu"),
        include_bytes!("../../kernels/common.cuh"),
        include_bytes!("../../kernels/job.cuh"),
        include_bytes!("../../kernels/move.cuh"),
        include_bytes!("../../kernels/losses.cuh"),
        include_bytes!("../../kernels/layer.cuh"),
        include_bytes!("../../kernels/linear.cuh"),
        include_bytes!("../../kernels/quadratic.cuh"),
        include_bytes!("../../kernels/steps.cuh"),
    ];
    let names = "lopa.cu common.cuh job.cuh move.cuh losses.cuh layer.cuh linear.cuh quadratic.cuh \
                 steps.cuh";
    check(&lopa_cuda::ptx(), names, &sources);
    let sources: [&[u8]; 5] = [
        include_bytes!("../../kernels/tensor.cu"),
        include_bytes!("../../kernels/common.cuh"),
        include_bytes!("../../kernels/cores.cuh"),
        include_bytes!("../../kernels/tensor.cuh"),
        include_bytes!("../../kernels/cluster.cuh"),
    ];
    check_both(
        lopa_cuda::tensor_ptx(),
        "tensor.ptx",
        "tensor.cu common.cuh cores.cuh tensor.cuh cluster.cuh",
        &sources,
    );
    let sources: [&[u8]; 3] = [
        include_bytes!("../../kernels/general.cu"),
        include_bytes!("../../kernels/common.cuh"),
        include_bytes!("../../kernels/cores.cuh"),
    ];
    check_both(
        lopa_cuda::general_ptx(),
        "general.ptx",
        "general.cu common.cuh cores.cuh",
        &sources,
    );
}
