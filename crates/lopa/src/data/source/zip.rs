//! As much of the ZIP format as NumPy writes: entries stored or deflated, below 4 GiB, no secrets.

use std::io::Read;

use flate2::{Crc, read::DeflateDecoder};

use super::file::byte;
use crate::error::{Error, Result};

/// An archive in memory.
pub struct Archive<'a> {
    name: &'a str,
    bytes: &'a [u8],
    entries: Vec<Entry>,
}

/// A file in the archive, as the list at its end has it.
pub struct Entry {
    name: String,
    encrypted: bool,
    method: u16,
    crc: u32,
    packed: usize,
    unpacked: usize,
    offset: usize,
}

/// A size or offset that stands in a ZIP64 field.
const ELSEWHERE: usize = u32::MAX as usize;

impl<'a> Archive<'a> {
    /// Reads the list of entries.
    pub fn open(name: &'a str, bytes: &'a [u8]) -> Result<Archive<'a>> {
        let wrong = |at: usize, message: &str| {
            Error::data("data/bad-zip", message).at(byte(name, at as u64))
        };
        // The end record is 22 bytes and a comment of at most 65535.
        let first = bytes.len().saturating_sub(22 + 0xffff);
        let end = bytes[first..].windows(4).rposition(|four| four == b"PK\x05\x06");
        let end = first + end.ok_or_else(|| wrong(0, "this is not a whole ZIP archive"))?;
        let cut = || wrong(bytes.len(), "the archive ends too early");
        let count = short(bytes, end + 10).ok_or_else(cut)?;
        let mut at = long(bytes, end + 16).ok_or_else(cut)?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let broken = || wrong(at, "the list of entries is broken");
            if bytes.get(at..at + 4) != Some(b"PK\x01\x02") {
                return Err(broken());
            }
            let (entry, next) = Entry::read(bytes, at).ok_or_else(broken)?;
            entries.push(entry);
            at = next;
        }
        Ok(Archive { name, bytes, entries })
    }

    /// The names of the entries.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// An entry by name.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The contents of an entry.
    pub fn unpack(&self, entry: &Entry) -> Result<Vec<u8>> {
        let wrong =
            |id, message: String| Error::data(id, message).at(byte(self.name, entry.offset as u64));
        let called = &entry.name;
        if entry.encrypted {
            return Err(wrong("data/unsupported", format!("`{called}` is encrypted")));
        }
        if [entry.packed, entry.unpacked, entry.offset].contains(&ELSEWHERE) {
            return Err(wrong("data/too-large", format!("`{called}` has 4 GiB or more")));
        }
        let packed = self.packed(entry).ok_or_else(|| {
            wrong("data/bad-zip", format!("`{called}` is not where it should be"))
        })?;
        let bytes = match entry.method {
            0 => packed.to_vec(),
            8 => {
                let mut bytes = Vec::with_capacity(packed.len().min(entry.unpacked));
                DeflateDecoder::new(packed)
                    .take(entry.unpacked as u64 + 1)
                    .read_to_end(&mut bytes)
                    .map_err(|error| wrong("data/bad-zip", format!("`{called}`: {error}")))?;
                bytes
            }
            method => {
                let message = format!("`{called}` is packed by method {method}");
                return Err(wrong("data/unsupported", message)
                    .hint("save it with `numpy.savez` or `numpy.savez_compressed`"));
            }
        };
        let mut crc = Crc::new();
        crc.update(&bytes);
        match bytes.len() == entry.unpacked && crc.sum() == entry.crc {
            true => Ok(bytes),
            false => Err(wrong("data/bad-zip", format!("`{called}` is damaged")))
                .map_err(|error| error.hint("get the file again")),
        }
    }

    fn packed(&self, entry: &Entry) -> Option<&'a [u8]> {
        let at = entry.offset;
        if self.bytes.get(at..at + 4)? != b"PK\x03\x04" {
            return None;
        }
        let start = at + 30 + short(self.bytes, at + 26)? + short(self.bytes, at + 28)?;
        self.bytes.get(start..start + entry.packed)
    }
}

impl Entry {
    /// The entry listed at `at`, and where the next one is.
    fn read(bytes: &[u8], at: usize) -> Option<(Entry, usize)> {
        let name_end = at + 46 + short(bytes, at + 28)?;
        let next = name_end + short(bytes, at + 30)? + short(bytes, at + 32)?;
        let entry = Entry {
            name: String::from_utf8_lossy(bytes.get(at + 46..name_end)?).into_owned(),
            encrypted: short(bytes, at + 8)? & 1 == 1,
            method: short(bytes, at + 10)? as u16,
            crc: long(bytes, at + 16)? as u32,
            packed: long(bytes, at + 20)?,
            unpacked: long(bytes, at + 24)?,
            offset: long(bytes, at + 42)?,
        };
        Some((entry, next))
    }
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    let two = bytes.get(at..at + 2)?;
    Some(usize::from(u16::from_le_bytes([two[0], two[1]])))
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes([four[0], four[1], four[2], four[3]]) as usize)
}
