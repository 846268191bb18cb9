//! Small files in every format, built by hand, to test the readers.

// Each test program uses only some of these.
#![allow(dead_code)]

use std::io::Write;
use std::path::Path;

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};
use lopa::config::Source;
use lopa::data::{Data, Where, load, read, sources};
use lopa::error::Result;

/// A file's name and contents.
pub type File = (&'static str, Vec<u8>);

/// Writes files into a new folder and loads a `[data]` section from there.
pub fn load_files(section: &str, files: &[File]) -> Result<Data> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    load_from(section, folder.path())
}

/// Loads a `[data]` section with a data folder.
pub fn load_from(section: &str, folder: &Path) -> Result<Data> {
    let source = Source::new("experiment.toml", section);
    let (choice, preparation) = read(source.root()?, &sources())?;
    load(&*choice.build, &preparation, &Where::new(Some(folder), 0))
}

/// The rows of a table, zeros included.
pub fn dense(set: &lopa::data::Dataset) -> Vec<Vec<f64>> {
    let row = |i| {
        let mut row = vec![0.0; set.features().cols()];
        set.features().each(i, |j, value| row[j] = value);
        row
    };
    (0..set.len()).map(row).collect()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An IDX file of bytes.
pub fn idx(sizes: &[u32], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, sizes.len() as u8];
    sizes.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
    bytes.extend_from_slice(data);
    bytes
}

/// Three training and two test images of 2 × 2 pixels.
pub fn mnist() -> Vec<File> {
    vec![
        (
            "mnist/train-images-idx3-ubyte",
            idx(&[3, 2, 2], &[0, 255, 51, 0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ),
        ("mnist/train-labels-idx1-ubyte", idx(&[3], &[7, 1, 7])),
        ("mnist/t10k-images-idx3-ubyte", idx(&[2, 2, 2], &[9, 9, 9, 9, 0, 0, 0, 1])),
        ("mnist/t10k-labels-idx1-ubyte", idx(&[2], &[1, 7])),
    ]
}

/// The files of [`mnist`] with one of them replaced.
pub fn mnist_with(name: &'static str, bytes: Vec<u8>) -> Vec<File> {
    let mut files = mnist();
    files.iter_mut().find(|(known, _)| *known == name).unwrap().1 = bytes;
    files
}

/// A CIFAR-10 record with equal pixels.
pub fn cifar(label: u8, pixel: u8) -> Vec<u8> {
    let mut record = vec![pixel; 3073];
    record[0] = label;
    record
}

/// A line of covtype: consecutive numbers from `start`, then the label.
pub fn covtype(start: i32, label: i32) -> String {
    let numbers: Vec<String> = (start..start + 54).map(|number| number.to_string()).collect();
    format!("{},{label}\n", numbers.join(","))
}

/// A NumPy array file with this header and data.
pub fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16 + 1).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.push(b'\n');
    bytes.extend_from_slice(data);
    bytes
}

/// The usual header.
pub fn header(descr: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
}

/// An array of doubles.
pub fn doubles(shape: &str, values: &[f64]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    npy(&header("<f8", shape), &data)
}

/// A ZIP archive of entries that are stored (0) or deflated (8).
pub fn zip(entries: &[(&str, Vec<u8>, u16)]) -> Vec<u8> {
    let (mut bytes, mut list) = (Vec::new(), Vec::new());
    for (name, contents, method) in entries {
        let mut crc = Crc::new();
        crc.update(contents);
        let packed = match method {
            8 => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(contents).unwrap();
                encoder.finish().unwrap()
            }
            _ => contents.clone(),
        };
        let mut common = vec![20, 0, 0, 0];
        common.extend(method.to_le_bytes());
        common.extend([0; 4]);
        common.extend(crc.sum().to_le_bytes());
        common.extend((packed.len() as u32).to_le_bytes());
        common.extend((contents.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        let offset = bytes.len() as u32;
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend([0; 2]);
        bytes.extend(name.as_bytes());
        bytes.extend(&packed);
        list.extend(b"PK\x01\x02\x14\x00");
        list.extend(&common);
        list.extend([0; 12]);
        list.extend(offset.to_le_bytes());
        list.extend(name.as_bytes());
    }
    let (at, length, count) = (bytes.len() as u32, list.len() as u32, entries.len() as u16);
    bytes.extend(list);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend(count.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(at.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}
