//! A fingerprint of a prepared data set.

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::{Data, Dataset};
use crate::store::bytes::hex;

/// Rows that are hashed together; blocks are hashed in parallel.
const BLOCK: usize = 256;

/// SHA-256, in hexadecimal, of classes, features, labels, numbers to predict and which rows are for validation; the same for dense and sparse storage.
pub fn digest(data: &Data) -> String {
    let mut hash = Sha256::new();
    hash.update((data.classes.len() as u64).to_le_bytes());
    for class in &data.classes {
        hash.update((class.len() as u64).to_le_bytes());
        hash.update(class);
    }
    for set in [&data.train, &data.test] {
        hash.update((set.len() as u64).to_le_bytes());
        hash.update((set.cols() as u64).to_le_bytes());
        let blocks: Vec<_> =
            (0..set.len().div_ceil(BLOCK)).into_par_iter().map(|b| block(set, b)).collect();
        blocks.iter().for_each(|block| hash.update(block));
    }
    hex(&hash.finalize())
}

/// Of each row of a block: its label, its mark for validation, its numbers to predict, and its nonzero entries.
fn block(set: &Dataset, block: usize) -> [u8; 32] {
    let mut hash = Sha256::new();
    let (mut columns, mut bits, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for row in block * BLOCK..set.len().min((block + 1) * BLOCK) {
        columns.clear();
        values.clear();
        set.each(row, |j, value| {
            if value != 0.0 {
                columns.push(j as u32);
                values.extend_from_slice(&value.to_le_bytes());
            }
        });
        hash.update(set.labels()[row].to_le_bytes());
        if set.validation().is_some_and(|rows| rows[row]) {
            hash.update(b"validation");
        }
        for value in set.targets().map_or(&[][..], |targets| targets.row(row)) {
            hash.update(value.to_le_bytes());
        }
        hash.update((columns.len() as u64).to_le_bytes());
        // Which columns: a bit for each, or their numbers if these are shorter.
        match set.cols() < 32 * columns.len() {
            true => {
                bits.clear();
                bits.resize(set.cols().div_ceil(8), 0u8);
                columns.iter().for_each(|&j| bits[j as usize / 8] |= 1 << (j % 8));
                hash.update(&bits);
            }
            false => columns.iter().for_each(|j| hash.update(j.to_le_bytes())),
        }
        hash.update(&values);
    }
    hash.finalize().into()
}
