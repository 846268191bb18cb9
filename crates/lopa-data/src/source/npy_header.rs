//! The header of a NumPy array; see `npy.rs` for why it is parsed here.

use crate::error::{Error, Result};
use crate::source::file;

/// A parsed header.
#[derive(Debug)]
pub struct NpyHeader {
    /// Type of an item, as NumPy writes it: `<f8`.
    descr: String,
    /// Whether items are stored in column-major order.
    pub fortran: bool,
    /// Size of each dimension.
    pub shape: Vec<usize>,
}

impl NpyHeader {
    /// Splits the contents of a file into header and data.
    pub fn read<'a>(name: &str, bytes: &'a [u8]) -> Result<(NpyHeader, &'a [u8])> {
        let wrong =
            |id, at: usize, message: &str| Error::data(id, message).at(file::byte(name, at as u64));
        let Some(rest) = bytes.strip_prefix(b"\x93NUMPY") else {
            return Err(wrong("data/bad-magic", 0, "this is not a NumPy array file"));
        };
        let (start, length) = match *rest {
            [1, _, a, b, ..] => (10, u32::from(u16::from_le_bytes([a, b]))),
            [2 | 3, _, a, b, c, d, ..] => (12, u32::from_le_bytes([a, b, c, d])),
            [version, _, _, _, ..] if version > 3 || version == 0 => {
                return Err(wrong("data/unsupported", 6, "this version of the format is unknown"));
            }
            _ => return Err(wrong("data/truncated", bytes.len(), "the header ends too early")),
        };
        let end = start + length as usize;
        let text = bytes
            .get(start..end)
            .ok_or_else(|| wrong("data/truncated", bytes.len(), "the header ends too early"))?;
        let header =
            std::str::from_utf8(text).ok().and_then(NpyHeader::parse).ok_or_else(|| {
                wrong("data/bad-header", start, "the header is not a valid dictionary")
            })?;
        Ok((header, &bytes[end..]))
    }

    /// `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`, in any order.
    fn parse(text: &str) -> Option<NpyHeader> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        while !rest.is_empty() {
            let (key, after) = quoted(rest)?;
            let value = after.trim_start().strip_prefix(':')?.trim_start();
            rest = match key {
                "descr" if value.starts_with('[') => {
                    // A structured type: well-formed, and refused later.
                    descr = Some("[...]".to_string());
                    value.rsplit_once(']')?.1
                }
                "descr" => {
                    let (word, after) = quoted(value)?;
                    descr = Some(word.to_string());
                    after
                }
                "fortran_order" => {
                    let (word, after) =
                        value.split_at(value.find([',', ' ']).unwrap_or(value.len()));
                    fortran = Some(match word {
                        "True" => true,
                        "False" => false,
                        _ => return None,
                    });
                    after
                }
                "shape" => {
                    let (inside, after) = value.strip_prefix('(')?.split_once(')')?;
                    let sizes = inside.split(',').map(str::trim).filter(|size| !size.is_empty());
                    shape = Some(sizes.map(|size| size.parse().ok()).collect::<Option<_>>()?);
                    after
                }
                _ => return None,
            };
            rest = rest.trim_start().trim_start_matches(',').trim_start();
        }
        Some(NpyHeader { descr: descr?, fortran: fortran?, shape: shape? })
    }

    /// The kind and size of an item, if it is supported.
    pub fn item(&self, name: &str) -> Result<(u8, usize)> {
        let descr = self.descr.as_str();
        let refused = |message: String, hint: &str| {
            Err(Error::data("data/unsupported", message).at(file::byte(name, 10)).hint(hint))
        };
        match descr.as_bytes() {
            [b'|', b'u' | b'i' | b'b', b'1'] => Ok((descr.as_bytes()[1], 1)),
            [b'<', b'f', size @ (b'4' | b'8')] => Ok((b'f', usize::from(size - b'0'))),
            [b'<', kind @ (b'i' | b'u'), size @ (b'2' | b'4' | b'8')] => {
                Ok((*kind, usize::from(size - b'0')))
            }
            [b'<', b'U', ..] => match descr[2..].parse::<usize>() {
                Ok(length @ 1..=0xffff) => Ok((b'U', 4 * length)),
                _ => refused(format!("text of type `{descr}` cannot be read"), "shorten the text"),
            },
            [b'|', b'O', ..] => refused(
                "the array holds pickled Python objects, which are never loaded".into(),
                "save numbers: `numpy.save(file, array.astype('<f8'))`",
            ),
            [b'>', ..] => refused(
                format!("the numbers are big-endian (`{descr}`)"),
                "save them with `array.astype(array.dtype.newbyteorder('<'))`",
            ),
            _ => refused(
                format!("items of type `{descr}` cannot be read"),
                "save numbers: `numpy.save(file, array.astype('<f8'))`",
            ),
        }
    }
}

/// A quoted word and the text after it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}
