//! The shipped kernels are those of the source.

use sha2::{Digest, Sha256};

#[test]
fn the_ptx_is_made_from_the_source() {
    let source = include_bytes!("../../kernels/lopa.cu");
    let hash: String = Sha256::digest(source).iter().map(|byte| format!("{byte:02x}")).collect();
    let first = lopa_cuda::PTX.lines().next().unwrap();
    assert_eq!(first, format!("// of lopa.cu, SHA-256 {hash}"), "run kernels/make");
}
