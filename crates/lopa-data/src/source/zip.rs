//! The part of the ZIP format that NumPy writes: entries stored or deflated, below 4 GiB, not
//! encrypted.
//!
//! `rawzip` finds the entries in memory and copies nothing; the unpacked size of an entry is
//! bounded and checked here, because no size in a header is trusted.

use std::borrow::Cow;
use std::io::Read;

use flate2::{Crc, read::DeflateDecoder};
use rawzip::{
    CompressionMethod, ZipArchive, ZipFileHeaderRecord, ZipSliceArchive, ZipVerification,
};

use super::file::{byte, unpacked_limit, unpacks_too_far};
use crate::error::{Error, Result};

/// An archive in memory.
pub struct Zip<'a> {
    name: &'a str,
    archive: ZipSliceArchive<&'a [u8]>,
}

/// A file in the archive, as the central directory lists it.
pub type ZipEntry<'a> = ZipFileHeaderRecord<'a>;

/// Sizes and offsets from here on are refused.
const LIMIT: u64 = u32::MAX as u64;

impl<'a> Zip<'a> {
    /// Opens an archive and checks its central directory.
    pub fn open(name: &'a str, bytes: &'a [u8]) -> Result<Zip<'a>> {
        let bad = |at: u64, message: &str| Error::data("data/bad-zip", message).at(byte(name, at));
        let archive = ZipArchive::from_slice(bytes).map_err(|error| {
            bad(error.eocd_offset().unwrap_or(0), "this is not a complete ZIP archive")
        })?;
        let (mut at, mut count) = (archive.directory_offset(), 0);
        for entry in archive.entries() {
            let entry = entry.map_err(|_| bad(at, "the list of entries is malformed"))?;
            at = end(&entry);
            count += 1;
        }
        match count == archive.entries_hint() {
            true => Ok(Zip { name, archive }),
            false => Err(bad(at, "the list of entries does not match its count")),
        }
    }

    /// The names of the entries.
    pub fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.entries().map(|entry| String::from_utf8_lossy(entry.file_path().as_bytes()))
    }

    /// An entry by name.
    pub fn find(&self, name: &str) -> Option<ZipEntry<'_>> {
        self.entries().find(|entry| entry.file_path().as_bytes() == name.as_bytes())
    }

    fn entries(&self) -> impl Iterator<Item = ZipEntry<'_>> {
        self.archive.entries().map_while(std::result::Result::ok)
    }

    /// The contents of an entry.
    pub fn unpack(&self, entry: &ZipEntry) -> Result<Vec<u8>> {
        let offset = entry.local_header_offset();
        let wrong = |id, message: String| Error::data(id, message).at(byte(self.name, offset));
        let name = String::from_utf8_lossy(entry.file_path().as_bytes());
        if entry.flags().is_encrypted() {
            return Err(wrong("data/unsupported", format!("`{name}` is encrypted")));
        }
        let size = entry.uncompressed_size_hint();
        if [entry.compressed_size_hint(), size, offset].iter().any(|&number| number >= LIMIT) {
            return Err(wrong("data/too-large", format!("`{name}` has 4 GiB or more"))
                .hint("save the array by itself, with `numpy.save`"));
        }
        let found = self.archive.get_entry(entry.wayfinder()).map_err(|error| {
            wrong("data/bad-zip", format!("`{name}` is not where the archive lists it: {error}"))
        })?;
        let bytes = match entry.compression_method() {
            CompressionMethod::STORE => found.data().to_vec(),
            CompressionMethod::DEFLATE => {
                let packed = found.data().len() as u64;
                if size > unpacked_limit(packed) {
                    let remedy = "if that is right, save it with `numpy.savez`, or raise the limit with \
                        `--max-bytes`";
                    let error = unpacks_too_far(packed, remedy);
                    return Err(Error { message: format!("`{name}`: {}", error.message), ..error }
                        .at(byte(self.name, offset)));
                }
                let mut bytes = Vec::with_capacity(found.data().len().min(size as usize));
                // One byte more than listed is enough to detect the mismatch.
                DeflateDecoder::new(found.data())
                    .take(size + 1)
                    .read_to_end(&mut bytes)
                    .map_err(|error| wrong("data/bad-zip", format!("`{name}`: {error}")))?;
                bytes
            }
            method => {
                let message = format!("`{name}` uses compression method {method}");
                return Err(wrong("data/unsupported", message)
                    .hint("save it with `numpy.savez` or `numpy.savez_compressed`"));
            }
        };
        let mut crc = Crc::new();
        crc.update(&bytes);
        let unpacked = ZipVerification { crc: crc.sum(), uncompressed_size: bytes.len() as u64 };
        match found.claim_verifier().valid(unpacked) {
            Ok(()) => Ok(bytes),
            Err(_) => {
                Err(wrong("data/bad-zip", format!("`{name}` is damaged"))
                    .hint("get the file again"))
            }
        }
    }
}

/// Where an entry of the central directory ends.
fn end(entry: &ZipEntry) -> u64 {
    let variable = entry.file_path().len()
        + entry.extra_fields().remaining_bytes().len()
        + entry.comment().as_bytes().len();
    entry.central_directory_offset() + 46 + variable as u64
}
