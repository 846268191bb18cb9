//! MNIST and Fashion-MNIST: images and labels in IDX files.

use std::path::Path;
use std::sync::Arc;

use super::file::{Input, byte, find_set};
use super::names::Names;
use super::raw::{Part, Raw, Table, Usual};
use super::{Where, file};
use crate::Method;
use crate::config::NoParams;
use crate::error::{Error, Result};

const FILES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

const CLOTHES: [&str; 10] = [
    "t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot",
];

pub fn mnist(_: &NoParams, place: &Where) -> Result<Raw> {
    read("mnist", place, |code| code.to_string())
}

pub fn fashion(_: &NoParams, place: &Where) -> Result<Raw> {
    let name = |code: u8| CLOTHES.get(code as usize).map_or(code.to_string(), |&n| n.to_string());
    read("fashion-mnist", place, name)
}

fn read(set: &str, place: &Where, name: impl Fn(u8) -> String) -> Result<Raw> {
    let paths = find_set(set, &[set], &FILES, place)?;
    let (train, test) =
        rayon::join(|| read_pair(&paths[0], &paths[1]), || read_pair(&paths[2], &paths[3]));
    let (train, test) = (train?, test?);
    if train.0.cols() != test.0.cols() {
        return Err(Error::data(
            "data/shape-mismatch",
            format!(
                "test images have {} pixels, training images {}",
                test.0.cols(),
                train.0.cols()
            ),
        )
        .at(paths[2].display().to_string()));
    }
    let usual = Usual { method: Method::Unit, maximum: Some(255.0), columns: None };
    Ok(Raw::coded(train, Some(test), name, usual))
}

fn read_pair(images: &Path, labels: &Path) -> Result<(Table, Vec<u8>)> {
    let (count, cols, values) = read_idx(images, 3)?;
    let (labelled, _, codes) = read_idx(labels, 1)?;
    if count != labelled {
        return Err(Error::data(
            "data/count-mismatch",
            format!("there are {labelled} labels for {count} images"),
        )
        .at(byte(&labels.display().to_string(), 4)));
    }
    Ok((Table::Bytes { cols, values: Arc::new(values) }, codes))
}

/// Whether a file starts like an IDX file of bytes.
pub fn is_idx(path: &Path) -> bool {
    let start = Input::open(path).and_then(|mut input| input.take(4));
    start.is_ok_and(|start| matches!(start[..], [0, 0, 8, 1..=3]))
}

/// The rows of an IDX file; one of labels has a single column.
pub fn look(path: &Path) -> Result<Raw> {
    let start = Input::open(path)?.take(4)?;
    let (_, cols, values) = read_idx(path, start.get(3).copied().unwrap_or(3))?;
    let table = Table::Bytes { cols, values: Arc::new(values) };
    let part = Part { table, labels: Vec::new(), groups: Vec::new() };
    Ok(Raw::named((part, None, None), Names::default(), Names::default()))
}

/// The number of items in an IDX file of bytes, the size of each, and their bytes.
fn read_idx(path: &Path, dimensions: u8) -> Result<(u64, usize, Vec<u8>)> {
    let mut input = Input::open(path)?;
    let header_bytes = 4 + 4 * u64::from(dimensions);
    let header = input.take(header_bytes)?;
    let name = input.name.clone();
    let wrong = |id, at: u64, message: String| Err(Error::data(id, message).at(byte(&name, at)));
    if header.len() < 4 || header[..2] != [0, 0] {
        return wrong("data/bad-magic", 0, "this is not an IDX file".into());
    }
    if header[2] != 8 {
        let message = format!("the IDX file holds type {:#04x}, not bytes (0x08)", header[2]);
        return wrong("data/unsupported", 2, message);
    }
    if header[3] != dimensions {
        let message = format!("the IDX file has {} dimensions, not {dimensions}", header[3]);
        return wrong("data/bad-magic", 3, message);
    }
    if (header.len() as u64) < header_bytes {
        return wrong("data/truncated", header.len() as u64, "the header ends too early".into());
    }
    let sizes: Vec<u64> = header[4..]
        .chunks_exact(4)
        .map(|four| u64::from(u32::from_be_bytes([four[0], four[1], four[2], four[3]])))
        .collect();
    let product = |sizes: &[u64]| sizes.iter().try_fold(1u64, |all, &size| all.checked_mul(size));
    let Some(expected) = product(&sizes).filter(|&bytes| bytes <= file::max_bytes()) else {
        return wrong("data/too-large", 4, format!("the sizes {sizes:?} are too large"));
    };
    if expected == 0 {
        return wrong("data/empty", 4, format!("the sizes {sizes:?} leave no data"));
    }
    let values = input.take(expected + 1)?;
    let found = values.len() as u64;
    if found < expected {
        let message = format!("the file ends after {found} of {expected} bytes of data");
        return wrong("data/truncated", header_bytes + found, message);
    }
    if found > expected {
        let message = format!("the file continues after the {expected} bytes its header gives");
        return wrong("data/trailing-bytes", header_bytes + expected, message);
    }
    Ok((sizes[0], (expected / sizes[0]) as usize, values))
}
