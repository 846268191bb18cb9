//! The files behind a data set, by their content: the same for every name, every folder and every preparation.

use sha2::{Digest, Sha256};
use toml::Value;

use super::source::{SourceBuild, Where, find};
use crate::config::Choice;
use crate::error::{Error, Result};
use crate::store::bytes::hex;
use crate::store::disk;

/// A file of data, or a data set without files of the user's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Where it was found, for messages.
    pub name: String,
    /// SHA-256 of its bytes, in hexadecimal; of its name, where the user has no file.
    pub sha256: String,
}

/// The files that a source reads. Every source without a file of the user's own is one data set.
pub fn origins(source: &Choice<SourceBuild>, place: &Where) -> Result<Vec<Origin>> {
    let mut found: Vec<Origin> = Vec::new();
    let texts = source.params().values().filter_map(Value::as_str);
    let paths = texts.filter_map(|text| find(text, place).ok()).filter(|path| path.is_file());
    for path in paths {
        let name = path.display().to_string();
        let bytes = disk::read(&path).map_err(|error| {
            Error::data("data/unreadable", format!("the file cannot be read: {error}")).at(&name)
        })?;
        found.push(Origin { name, sha256: hex(&Sha256::digest(&bytes)) });
    }
    if found.is_empty() {
        let name = format!("the data set `{}`", source.name);
        let sha256 = hex(&Sha256::digest(&name));
        found.push(Origin { name, sha256 });
    }
    Ok(found)
}
