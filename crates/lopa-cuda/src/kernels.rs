//! The kernels, compressed: as plain PTX they would make the program two megabytes larger.

use std::io::Read;

use flate2::read::GzDecoder;

/// The kernels for any card.
pub fn ptx() -> String {
    text(include_bytes!("../kernels/lopa.ptx.gz"))
}

/// The kernels for Hopper cards.
pub fn tensor_ptx() -> String {
    text(include_bytes!("../kernels/tensor.ptx.gz"))
}

fn text(packed: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).expect("kernels are packed by kernels/make");
    text
}
