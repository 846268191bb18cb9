//! CIFAR-10 in its binary form: records of a label byte and 3 × 32 × 32 pixels.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::raw::{Raw, Table, Usual};
use super::{Where, file};
use crate::Method;
use crate::config::NoParams;
use crate::error::{Error, Result};

const PIXELS: usize = 3072;
const FOLDERS: [&str; 2] = ["cifar10/cifar-10-batches-bin", "cifar10"];
const NAMES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

pub fn read(_: &NoParams, place: &Where) -> Result<Raw> {
    let folders = FOLDERS.map(|folder| place.directory.join(folder));
    let folder = folders
        .iter()
        .find(|folder| !batches(folder).is_empty())
        .ok_or_else(|| file::missing("cifar10", &["data_batch_1.bin"], &folders))?;
    let test = folder.join("test_batch.bin");
    if !test.exists() {
        return Err(file::missing("cifar10", &["test_batch.bin"], std::slice::from_ref(folder)));
    }
    let train = read_batches(&batches(folder))?;
    let usual = Usual { method: Method::Centre, maximum: Some(255.0), columns: None };
    Ok(Raw::coded(train, Some(read_batches(&[test])?), |c| NAMES[c as usize].into(), usual))
}

/// The training batches of a folder, in the order of their names.
fn batches(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_batch = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("data_batch_") && name.ends_with(".bin")
    };
    let mut batches: Vec<PathBuf> = files.filter(is_batch).collect();
    batches.sort();
    batches
}

fn read_batches(paths: &[PathBuf]) -> Result<(Table, Vec<u8>)> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for path in paths {
        let (name, bytes) = file::read(path)?;
        let records = bytes.chunks_exact(PIXELS + 1);
        if !records.remainder().is_empty() || bytes.is_empty() {
            return Err(Error::data(
                "data/truncated",
                format!("the file does not consist of whole records of {} bytes", PIXELS + 1),
            )
            .at(file::byte(&name, bytes.len() as u64))
            .hint("get the file again"));
        }
        for (i, record) in records.enumerate() {
            if record[0] as usize >= NAMES.len() {
                let message = format!("the label {} is not between 0 and 9", record[0]);
                return Err(Error::data("data/bad-label", message)
                    .at(file::byte(&name, (i * (PIXELS + 1)) as u64)));
            }
            labels.push(record[0]);
            pixels.extend_from_slice(&record[1..]);
        }
    }
    Ok((Table::Bytes { cols: PIXELS, values: Arc::new(pixels) }, labels))
}
