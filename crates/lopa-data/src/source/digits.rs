//! The bundled optical digits, so that a first run needs no download.
//!
//! E. Alpaydin and C. Kaynak, *Optical Recognition of Handwritten Digits*, UCI Machine Learning
//! Repository, 1998, doi:10.24432/C50P49, CC BY 4.0: the 1797 test images, 8 × 8 counts of 0 to 16.

use std::io::Read;

use flate2::read::GzDecoder;

use super::raw::{Raw, Usual};
use super::{Where, integers};
use crate::Method;
use crate::config::NoParams;
use crate::error::{Error, Result};

const PACKED: &[u8] = include_bytes!("../../assets/digits.csv.gz");

pub fn read(_: &NoParams, _: &Where) -> Result<Raw> {
    let mut text = Vec::new();
    GzDecoder::new(PACKED)
        .read_to_end(&mut text)
        .map_err(|error| Error::data("data/bad-gzip", error.to_string()).at("digits"))?;
    let train = integers::read("digits", &text, 64, 0..=9)?;
    let usual = Usual { method: Method::Unit, maximum: Some(16.0), columns: None };
    Ok(Raw::coded(train, None, |code| code.to_string(), usual))
}
