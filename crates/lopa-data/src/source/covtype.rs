//! UCI Covertype: 54 features of a forest patch (ten numeric, 44 binary) and its cover type.

use super::raw::{Raw, Usual};
use super::{Where, file, integers};
use crate::Method;
use crate::config::NoParams;
use crate::error::Result;

const COVER_TYPES: [&str; 7] = [
    "spruce-fir",
    "lodgepole-pine",
    "ponderosa-pine",
    "cottonwood-willow",
    "aspen",
    "douglas-fir",
    "krummholz",
];

pub fn read(_: &NoParams, place: &Where) -> Result<Raw> {
    let paths = file::find_set("covtype", &["covtype"], &["covtype.data"], place)?;
    let (name, text) = file::read(&paths[0])?;
    let train = integers::read(&name, &text, 54, 1..=7)?;
    let usual =
        Usual { method: Method::Standardise, maximum: None, columns: Some((0..10).collect()) };
    Ok(Raw::coded(train, None, |code| COVER_TYPES[code as usize - 1].to_string(), usual))
}
