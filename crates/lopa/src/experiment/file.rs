//! Experiment files on disk, with the files they extend.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::config::Source;
use crate::error::{Error, Result, nearest};
use crate::store::limits::{self, read_text};

/// Opens an experiment file and the files it extends.
pub fn open(path: &Path) -> Result<Source> {
    let name = path.display().to_string();
    let found = text(path).map_err(|error| Error {
        message: format!("cannot read the experiment: {}", error.message),
        ..error.at(&name)
    })?;
    Source::new(name, found).extending(text)
}

fn text(path: &Path) -> Result<String> {
    read_text(path, limits::EXPERIMENT).map_err(|error| {
        let found = Error::config("config/unreadable", error.to_string());
        match error.kind() {
            ErrorKind::InvalidData => found.hint("an experiment is a TOML file: save it as UTF-8"),
            ErrorKind::NotFound => match near(path) {
                Some(near) => found.hint(format!("did you mean `{}`?", near.display())),
                None => found,
            },
            _ => found.hint("name a TOML file that can be read"),
        }
    })
}

/// The file beside a missing one that has nearly the same name.
fn near(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let names: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    let typed = path.file_name()?.to_string_lossy();
    nearest(&typed, names.iter().map(String::as_str)).map(|near| path.with_file_name(near))
}
