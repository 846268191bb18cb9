//! NumPy archives: a ZIP file of arrays.

use std::borrow::Cow;

use super::npy::{Array, assemble, pair};
use super::raw::Raw;
use super::zip::Zip;
use super::{Where, file};
use crate::error::{Error, Result, nearest};
use crate::params;

/// The arrays of features and of labels, unless a file names others.
const ARRAYS: [&str; 2] = ["X", "y"];

params! {
    /// Parameters of `npz`.
    pub struct Npz {
        /// The archive.
        path: String = String::new(), required;
        /// The array of the features: one row per sample, further dimensions flattened.
        features: String = ARRAYS[0].into();
        /// The array of the labels: numbers or text; a row of numbers for each sample where there are several
        /// to predict.
        labels: String = ARRAYS[1].into();
        /// The array of the test features.
        test_features: Option<String> = None;
        /// The array of the test labels.
        test_labels: Option<String> = None;
        /// The array of the features of the outer function, in place of a share of the training rows.
        validation_features: Option<String> = None;
        /// The array of their labels.
        validation_labels: Option<String> = None;
        /// Columns of the features that are left out, by number from 0.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        drop: Vec<u32> = Vec::new();
    }
}

pub fn read(npz: &Npz, place: &Where) -> Result<Raw> {
    let (name, bytes) = file::read(&file::find(&npz.path, place)?)?;
    let archive = Zip::open(&name, &bytes)?;
    let validation = pair("validation", [&npz.validation_features, &npz.validation_labels])?;
    let others = (validation, pair("test", [&npz.test_features, &npz.test_labels])?);
    assemble(|wanted| array(&name, &archive, wanted), (&npz.features, &npz.labels), others)
        .and_then(|raw| raw.without(&npz.drop, 0))
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
        return Ok((array(name, &archive, ARRAYS[0])?.unlabelled()?, false));
    }
    let label = label.unwrap_or(ARRAYS[1]);
    let raw = assemble(|wanted| array(name, &archive, wanted), (ARRAYS[0], label), (None, None));
    Ok((raw.map_err(|error| error.at(name))?, true))
}
