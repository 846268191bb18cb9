//! NumPy archives: a ZIP file of arrays.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::npy::{Array, assemble, pair};
use super::raw::Raw;
use super::zip::Zip;
use super::{Where, file};
use crate::config::Params;
use crate::error::{Error, Result, nearest};

/// Parameters of `npz`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Npz {
    /// The archive.
    path: String,
    /// The array of the features: one row per sample, further dimensions flattened.
    #[serde(default = "x")]
    features: String,
    /// The array of the labels: numbers or text.
    #[serde(default = "y")]
    labels: String,
    /// The array of the test features.
    test_features: Option<String>,
    /// The array of the test labels.
    test_labels: Option<String>,
}

fn x() -> String {
    "X".into()
}

fn y() -> String {
    "y".into()
}

impl Params for Npz {}

pub fn read(npz: &Npz, place: &Where) -> Result<Raw> {
    let (name, bytes) = file::read(&file::find(&npz.path, place)?)?;
    let archive = Zip::open(&name, &bytes)?;
    let test = pair(npz.test_features.as_deref(), npz.test_labels.as_deref())?;
    assemble(|wanted| array(&name, &archive, wanted), (&npz.features, &npz.labels), test)
        .map_err(|error| error.at(&npz.path))
}

/// Reads an array of an archive by name.
fn array(name: &str, archive: &Zip, wanted: &str) -> Result<Array> {
    let entry = archive.find(&format!("{wanted}.npy")).ok_or_else(|| {
        let array = |name: Cow<str>| name.strip_suffix(".npy").map(str::to_string);
        let known: Vec<String> = archive.names().filter_map(array).take(20).collect();
        let near = nearest(wanted, known.iter().map(String::as_str));
        let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        Error::data("data/no-array", format!("the archive has no array `{wanted}`"))
            .at(name)
            .hint(format!("{did}it has: {}", known.join(", ")))
    })?;
    Array::read(&format!("{name}, array `{wanted}`"), &archive.unpack(&entry)?)
}

/// New rows: the array `X`, with labels from the array `label`, else from `y` if there is one.
pub fn new_rows(name: &str, bytes: &[u8], label: Option<&str>) -> Result<(Raw, bool)> {
    let archive = Zip::open(name, bytes)?;
    let labelled = label.is_some() || archive.find("y.npy").is_some();
    if !labelled {
        return Ok((array(name, &archive, &x())?.unlabelled()?, false));
    }
    let label = label.map_or_else(y, str::to_string);
    let raw = assemble(|wanted| array(name, &archive, wanted), (&x(), &label), None);
    Ok((raw.map_err(|error| error.at(name))?, true))
}
