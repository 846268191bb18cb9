//! Published data sets: their addresses and contents, and whether a copy is intact.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result, nearest};
use crate::store::bytes::hex;
use crate::store::limits;

/// A published data set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Its name in experiment files.
    pub name: String,
    /// A description.
    pub about: String,
    /// Its folder inside the data folder.
    pub folder: PathBuf,
    /// Samples, training and test together.
    pub rows: usize,
    /// Features per sample.
    pub features: usize,
    /// Classes.
    pub classes: usize,
    /// Its licence.
    pub licence: String,
    /// How to cite it.
    pub citation: String,
    /// Addresses in the order in which they are tried; `{file}` stands for a file's name.
    pub mirrors: Vec<String>,
    /// The archive that contains all files, if there is one.
    pub archive: Option<Archive>,
    /// Its files.
    pub files: Vec<PublishedFile>,
}

/// A tar.gz file that contains the files of a data set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The folder in it that contains the files.
    pub inside: String,
}

/// A file of a published data set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFile {
    /// Its name; a `.gz` file may also be present unpacked.
    pub name: String,
    /// Size of the unpacked content.
    pub bytes: u64,
    /// SHA-256 of the unpacked content: mirrors compress the same content differently.
    pub sha256: String,
    /// Approximate download size in bytes.
    pub packed: Option<u64>,
}

/// The state of a published file on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Present, with the published content.
    Good,
    /// Not present.
    Missing,
    /// Present, but with other content or unreadable.
    Different(String),
}

/// Every published data set that can be fetched.
pub fn published() -> Vec<Published> {
    serde_json::from_str(include_str!("../assets/datasets.json")).expect("the list is valid")
}

/// A published data set by its name.
pub fn find_published(name: &str) -> Result<Published> {
    let all = published();
    if let Some(found) = all.iter().find(|set| set.name == name) {
        return Ok(found.clone());
    }
    let known: Vec<&str> = all.iter().map(|set| set.name.as_str()).collect();
    let did = nearest(name, known.iter().copied());
    let did = did.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    Err(Error::config("config/unknown-name", format!("no published data set is named `{name}`"))
        .hint(format!("{did}known: {}", known.join(", "))))
}

impl Published {
    /// The state of each file in a data folder.
    pub fn check(&self, directory: &Path) -> Vec<(&PublishedFile, State)> {
        let folder = directory.join(&self.folder);
        self.files.iter().map(|file| (file, file.state(&folder))).collect()
    }

    /// Total download size in bytes.
    pub fn download_bytes(&self) -> u64 {
        match &self.archive {
            Some(archive) => archive.bytes,
            None => self.files.iter().map(|file| file.packed.unwrap_or(file.bytes)).sum(),
        }
    }
}

impl PublishedFile {
    /// Its state in a folder.
    pub fn state(&self, folder: &Path) -> State {
        let plain = self.name.strip_suffix(".gz").unwrap_or(&self.name);
        let paths = [folder.join(&self.name), folder.join(plain)];
        let Some(path) = paths.iter().find(|path| path.exists()) else { return State::Missing };
        match limits::open(path)
            .map_err(|error| error.to_string())
            .and_then(|file| self.verify(file))
        {
            Ok(()) => State::Good,
            Err(why) => State::Different(why),
        }
    }

    /// Checks that a stream, gzipped or plain, has the published content.
    pub fn verify(&self, stream: impl Read) -> Result<(), String> {
        let mut stream = std::io::BufReader::with_capacity(1 << 16, stream);
        let packed = std::io::BufRead::fill_buf(&mut stream)
            .map_err(|error| error.to_string())?
            .starts_with(&[0x1f, 0x8b]);
        match packed {
            true => self.verify_content(MultiGzDecoder::new(stream)),
            false => self.verify_content(stream),
        }
    }

    fn verify_content(&self, content: impl Read) -> Result<(), String> {
        // One extra byte is enough to detect content that is too long.
        let mut content = content.take(self.bytes + 1);
        let (mut hash, mut read, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
        loop {
            match content.read(&mut buffer).map_err(|error| format!("it is damaged: {error}"))? {
                0 => break,
                count => hash.update(&buffer[..count]),
            }
            read = self.bytes + 1 - content.limit();
        }
        if read != self.bytes {
            let (expected, more) = (self.bytes, read > self.bytes);
            let found = if more { format!("more than {expected}") } else { format!("{read}") };
            return Err(format!("it holds {found} bytes, not the published {expected}"));
        }
        match hex(&hash.finalize()) == self.sha256 {
            true => Ok(()),
            false => Err(format!("its SHA-256 is not {}", self.sha256)),
        }
    }
}
