//! A fingerprint of a prepared data set.

use sha2::{Digest, Sha256};

use super::{Data, Dataset};
use crate::store::bytes::hex;

/// SHA-256, in hexadecimal, of classes, features, labels, numbers to predict and which rows are for validation; the same for dense and sparse storage.
pub fn digest(data: &Data) -> String {
    let mut hash = Sha256::new();
    hash.update((data.classes.len() as u64).to_le_bytes());
    for class in &data.classes {
        hash.update((class.len() as u64).to_le_bytes());
        hash.update(class);
    }
    add(&mut hash, &data.train);
    add(&mut hash, &data.test);
    hex(&hash.finalize())
}

/// Adds each row: its label, the size of its nonzero entries in bytes, and the entries.
fn add(hash: &mut Sha256, set: &Dataset) {
    hash.update((set.len() as u64).to_le_bytes());
    hash.update((set.cols() as u64).to_le_bytes());
    let mut bytes = Vec::new();
    for (row, label) in set.labels().iter().enumerate() {
        bytes.clear();
        set.each(row, |j, value| {
            if value != 0.0 {
                bytes.extend_from_slice(&(j as u32).to_le_bytes());
                bytes.extend_from_slice(&value.to_le_bytes());
            }
        });
        hash.update(label.to_le_bytes());
        if set.validation().is_some_and(|rows| rows[row]) {
            hash.update(b"validation");
        }
        for value in set.targets().map_or(&[][..], |targets| targets.row(row)) {
            hash.update(value.to_le_bytes());
        }
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(&bytes);
    }
}
