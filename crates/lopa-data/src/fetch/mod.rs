//! Fetches published data sets: mirrors, resumed downloads, verification, and files that appear
//! complete or not at all.

mod download;
mod tar;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::catalog::{Archive, Published, PublishedFile, State};
use crate::error::{Error, Result};

/// Receives progress: the file, bytes so far, total bytes if known.
pub type Progress<'a> = dyn FnMut(&str, u64, Option<u64>) + 'a;

/// The result of fetching a data set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Files that were downloaded.
    pub got: Vec<PathBuf>,
    /// Files that were already present and intact.
    pub kept: Vec<PathBuf>,
}

/// Downloads the missing files of a data set into a data folder; a file with other content is an
/// error and stays as it is.
pub fn fetch(set: &Published, directory: &Path, progress: &mut Progress) -> Result<Fetched> {
    let folder = directory.join(&set.folder);
    let mut fetched = Fetched::default();
    let mut missing = Vec::new();
    for (file, state) in set.check(directory) {
        let path = folder.join(&file.name);
        match state {
            State::Good => fetched.kept.push(path),
            State::Missing => missing.push(file),
            State::Different(why) => return Err(different(&path, &why)),
        }
    }
    if missing.is_empty() {
        return Ok(fetched);
    }
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
    match &set.archive {
        None => {
            for file in missing {
                fetched.got.push(fetch_file(set, file, &folder, progress)?);
            }
        }
        Some(archive) => {
            fetched.got = fetch_archive(set, archive, &missing, &folder, progress)?;
        }
    }
    Ok(fetched)
}

fn fetch_file(
    set: &Published,
    file: &PublishedFile,
    folder: &Path,
    progress: &mut Progress,
) -> Result<PathBuf> {
    let path = folder.join(&file.name);
    let about = file.packed.unwrap_or(file.bytes);
    let partial = from_mirrors(set, &file.name, about, folder, progress, &mut |partial| {
        let stream = File::open(partial).map_err(|error| unwritable(partial, &error))?;
        Ok(file.verify(stream))
    })?;
    fs::rename(&partial, &path).map_err(|error| unwritable(&path, &error))?;
    Ok(path)
}

fn fetch_archive(
    set: &Published,
    archive: &Archive,
    files: &[&PublishedFile],
    folder: &Path,
    progress: &mut Progress,
) -> Result<Vec<PathBuf>> {
    let unpack = &mut |packed: &Path| tar::unpack(packed, archive, files, folder);
    let partial = from_mirrors(set, &archive.name, archive.bytes, folder, progress, unpack)?;
    for file in files {
        let path = folder.join(&file.name);
        fs::rename(partial_path(&path), &path).map_err(|error| unwritable(&path, &error))?;
    }
    fs::remove_file(&partial).map_err(|error| unwritable(&partial, &error))?;
    Ok(files.iter().map(|file| folder.join(&file.name)).collect())
}

/// Checks a download; the inner error describes the fault.
type Verify<'a> = dyn FnMut(&Path) -> Result<Result<(), String>> + 'a;

/// Downloads a file from the first mirror that has it intact, and returns its path.
fn from_mirrors(
    set: &Published,
    name: &str,
    about: u64,
    folder: &Path,
    progress: &mut Progress,
    verify: &mut Verify,
) -> Result<PathBuf> {
    let partial = partial_path(&folder.join(name));
    let mut failures = Vec::new();
    for mirror in &set.mirrors {
        let address = mirror.replace("{file}", name);
        let mut report = |bytes, of| progress(name, bytes, of);
        match download::download(&address, &partial, about, &mut report)? {
            Err(why) => failures.push(format!("{address}: {why}")),
            Ok(resumed) => match verify(&partial)? {
                Ok(()) => return Ok(partial),
                // The first part may come from another mirror: retry from the beginning.
                Err(_) if resumed => {
                    remove(&partial)?;
                    match download::download(&address, &partial, about, &mut report)? {
                        Err(why) => failures.push(format!("{address}: {why}")),
                        Ok(_) => match verify(&partial)? {
                            Ok(()) => return Ok(partial),
                            Err(why) => failures.push(discard(&address, &why, &partial)?),
                        },
                    }
                }
                Err(why) => failures.push(discard(&address, &why, &partial)?),
            },
        }
    }
    let kept = match partial.exists() {
        true => "the partial download is kept, and the same command resumes it; or ",
        false => "",
    };
    let message = format!("`{name}` could not be fetched: {}", failures.join("; "));
    Err(Error::data("data/fetch", message)
        .at(folder.display().to_string())
        .hint(format!("{kept}get the file by other means and put it into this folder")))
}

/// Deletes a download that is not the published file.
fn discard(address: &str, why: &str, partial: &Path) -> Result<String> {
    remove(partial)?;
    Ok(format!("{address}: the download is not what was published: {why}"))
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|error| unwritable(path, &error))
}

/// The path of an incomplete file.
fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().expect("a file has a name").to_os_string();
    name.push(".partial");
    path.with_file_name(name)
}

fn different(path: &Path, why: &str) -> Error {
    Error::data("data/different", format!("the file is not the published one: {why}"))
        .at(path.display().to_string())
        .hint("move it away to fetch the published one; runs can use it as it is")
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::storage("storage/write", format!("cannot write: {error}"))
        .at(path.display().to_string())
        .hint("choose another folder with --data")
}
