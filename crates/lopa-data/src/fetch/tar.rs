//! Extracts chosen files from a tar.gz archive.
//!
//! An archive is blocks of 512 bytes: a header with the name at 0, the size in octal at 124 and
//! the kind at 156, then the content, padded to a whole block.
//!
//! Written by hand after a look at `tar` 0.4 and `tar-no-std` 0.5. The first reads long names of
//! any size into memory (its raw mode does not, but would replace only the twenty lines of
//! `member`, with three more crates); the second needs the whole archive in memory.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::{partial_path, unwritable};
use crate::catalog::{Archive, PublishedFile};
use crate::error::Result;
use crate::store::disk;

const BLOCK: u64 = 512;

/// Unpacks the files as partial files into the folder and verifies them; the inner error describes
/// the fault of the archive.
pub fn unpack(
    packed: &Path,
    archive: &Archive,
    files: &[&PublishedFile],
    folder: &Path,
) -> Result<Result<(), String>> {
    let open = |path: &Path| File::open(path).map_err(|error| unwritable(path, &error));
    let mut stream = MultiGzDecoder::new(BufReader::with_capacity(1 << 16, open(packed)?));
    let mut left: Vec<&PublishedFile> = files.to_vec();
    while !left.is_empty() {
        let (name, size) = match member(&mut stream) {
            Ok(Some(member)) => member,
            Ok(None) => return Ok(Err(format!("`{}` is not in it", left[0].name))),
            Err(why) => return Ok(Err(why)),
        };
        let inside = name.strip_prefix(&archive.inside).and_then(|name| name.strip_prefix('/'));
        let wanted = left.iter().position(|file| inside == Some(&file.name) && size == file.bytes);
        let mut content = (&mut stream).take(size);
        if let Some(at) = wanted {
            let file = left.swap_remove(at);
            let path = partial_path(&folder.join(&file.name));
            let mut out = disk::open(&path, true).map_err(|error| unwritable(&path, &error))?;
            if let Err(error) = std::io::copy(&mut content, &mut out) {
                return Ok(Err(format!("`{name}` cannot be unpacked: {error}")));
            }
            out.sync_all().map_err(|error| unwritable(&path, &error))?;
            if let Err(why) = file.verify(open(&path)?) {
                return Ok(Err(format!("`{name}`: {why}")));
            }
        }
        let rest = content.limit() + (BLOCK - size % BLOCK) % BLOCK;
        if let Err(error) = std::io::copy(&mut (&mut stream).take(rest), &mut std::io::sink()) {
            return Ok(Err(format!("the archive is damaged: {error}")));
        }
    }
    Ok(Ok(()))
}

/// Name and size of the next file, or `None` at the end of the archive.
fn member(stream: &mut impl Read) -> Result<Option<(String, u64)>, String> {
    let mut header = [0; BLOCK as usize];
    stream.read_exact(&mut header).map_err(|error| format!("the archive is damaged: {error}"))?;
    if header.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    let text = |range: std::ops::Range<usize>| {
        let bytes = &header[range];
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).trim().to_string()
    };
    let name = text(0..100);
    let size = u64::from_str_radix(&text(124..136), 8)
        .map_err(|_| format!("the archive is damaged: `{name}` has no size"))?;
    Ok(Some((name, size)))
}
