//! TensorBoard's event files: one per algorithm and seed, in a folder that names both.

use std::path::Path;

use lopa::folder::MetricsRow;

use super::thrift::varint;
use super::{Files, One, ones, plain};
use crate::quantity::is_cost;
use crate::saved::Saved;

/// The event files of a run.
pub fn files(saved: &Saved) -> Files {
    let started = saved.manifest.started_seconds().unwrap_or(0);
    let file = |one: One| {
        let folder = format!("{}-seed{}", plain(one.algorithm), one.seed);
        let name = format!("events.out.tfevents.{started:010}.lopa");
        let path = Path::new(&plain(&saved.name)).join(folder).join(name);
        (path, events(&one.rows, started as f64))
    };
    ones(saved).into_iter().map(file).collect()
}

/// One event per measurement, at its iteration.
fn events(rows: &[&MetricsRow], started: f64) -> Vec<u8> {
    let version = [double(1, started), bytes(3, b"brain.Event:2")].concat();
    let mut file = record(&version);
    for MetricsRow { row, .. } in rows {
        let value = |(name, value): (&str, f64)| {
            let group = if is_cost(name) { "cost" } else { "quality" };
            let tag = format!("{group}/{name}");
            bytes(1, &[bytes(1, tag.as_bytes()), float(2, value as f32)].concat())
        };
        let finite = row.quantities().filter(|(_, value)| (*value as f32).is_finite());
        let summary: Vec<u8> = finite.flat_map(value).collect();
        let event =
            [double(1, started + row.seconds), integer(2, row.iteration), bytes(5, &summary)];
        file.extend(record(&event.concat()));
    }
    file
}

/// A record: its length and its content, each with a checksum.
fn record(content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u64).to_le_bytes();
    let sum = |bytes: &[u8]| masked(crc32c(bytes)).to_le_bytes();
    [&length[..], &sum(&length), content, &sum(content)].concat()
}

/// A checksum of data that contain checksums.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The CRC of Castagnoli's polynomial, bit by bit: event files are small.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

// Fields of protocol buffers: a key (number and wire type), then the value.

fn integer(field: u8, value: u64) -> Vec<u8> {
    [vec![field << 3], varint(value)].concat()
}

fn double(field: u8, value: f64) -> Vec<u8> {
    [&[field << 3 | 1][..], &value.to_le_bytes()].concat()
}

fn bytes(field: u8, value: &[u8]) -> Vec<u8> {
    [&[field << 3 | 2], &varint(value.len() as u64)[..], value].concat()
}

fn float(field: u8, value: f32) -> Vec<u8> {
    [&[field << 3 | 5][..], &value.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_rfc_3720() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(masked(0), 0xa282_ead8);
    }

    #[test]
    fn a_record_is_framed() {
        let record = record(b"abc");
        assert_eq!(record.len(), 8 + 4 + 3 + 4);
        assert_eq!(record[..8], 3u64.to_le_bytes());
        assert_eq!(record[12..15], *b"abc");
    }
}
