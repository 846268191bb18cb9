//! The files of a shared work list.
//!
//! ```text
//! <folder>/
//!   work              which work this is: version and digest
//!   claims/<unit>@<n> the n-th claim to a unit: the id of the part that holds it. Created once, never changed: of
//!                     two parts that claim a unit, the system lets one create the file
//!   parts/<id>        a part: its share, its host, a counter that it raises while it lives, the units under way
//!   results/<unit>    the result of a unit
//! ```
//!
//! No time is written down, since clocks of machines differ: a part that watches another's counter stand still for
//! the lease, by its own clock, takes over.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::list::Unit;
use crate::error::{Error, Result};
use crate::store::bytes::hex;
use crate::store::disk::{self, Log};

/// The end of a temporary file's name.
const PARTIAL: &str = ".partial";

/// What a part says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Its share.
    pub part: String,
    /// Its host.
    pub host: String,
    /// Raised while it lives.
    pub beat: u64,
    /// The names of the units under way.
    pub doing: Vec<String>,
    /// The units that it has done.
    pub done: usize,
    /// Whether it has ended; it then holds no claim any more.
    pub ended: bool,
    /// Why it failed, and the remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<(String, Option<String>)>,
}

impl Note {
    /// "part 3/16 on n2"
    pub fn name(&self) -> String {
        format!("part {} on {}", self.part, self.host)
    }
}

/// The result of a unit, and the part that did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Done {
    unit: String,
    part: String,
    host: String,
    result: String,
    check: String,
}

/// The folder of a shared work list.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(path: &Path) -> Folder {
        Folder(path.to_path_buf())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder of this work, unless it is there; fails if it is that of other work. `id` names the process.
    pub fn make(&self, work: &str, id: &str) -> Result<()> {
        for name in ["claims", "parts", "results"] {
            disk::make_folder(&self.0.join(name)).map_err(|error| self.failed(name, &error))?;
        }
        if !self.0.join("work").exists() {
            self.put("work", format!("{work}\n").as_bytes(), id)?;
        }
        self.check(work)
    }

    /// Fails if the folder is not that of this work.
    pub fn check(&self, work: &str) -> Result<()> {
        let known = match disk::read(&self.0.join("work")) {
            Ok(known) => known,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::storage("share/missing", "no part of this work has begun here")
                    .at(self.0.display().to_string())
                    .hint(
                        "run the parts first: the same command with `--share 1/N` to `--share N/N`",
                    ));
            }
            Err(error) => return Err(self.failed("work", &error)),
        };
        if String::from_utf8_lossy(&known).trim() == work {
            return Ok(());
        }
        Err(Error::storage("share/other-work", "the parts in this folder do other work")
            .at(self.0.display().to_string())
            .hint(
                "the experiment, its overrides or the version has changed: give all parts the same, or delete the \
                 folder to begin anew",
            ))
    }

    /// Creates the n-th claim to a unit; false if it exists.
    pub fn claim(&self, unit: &Unit, n: u64, id: &str) -> Result<bool> {
        let name = format!("claims/{}@{n}", file_name(&unit.name));
        let path = self.0.join(&name);
        let created = match Log::create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            created => created,
        };
        let written = created.and_then(|mut file| file.write(id.as_bytes()));
        written.map_err(|error| self.failed(&name, &error))?;
        Ok(true)
    }

    /// The last claim to every claimed unit, by the file name of the unit.
    pub fn claims(&self) -> Result<BTreeMap<String, u64>> {
        let mut claims = BTreeMap::new();
        for name in self.names("claims")? {
            if let Some((unit, n)) =
                name.rsplit_once('@').and_then(|(u, n)| Some((u, n.parse::<u64>().ok()?)))
            {
                let last: &mut u64 = claims.entry(unit.to_string()).or_default();
                *last = n.max(*last);
            }
        }
        Ok(claims)
    }

    /// The part that made the n-th claim to a unit; empty if it was killed before it wrote its id.
    pub fn holder(&self, unit: &Unit, n: u64) -> String {
        let path = self.0.join(format!("claims/{}@{n}", file_name(&unit.name)));
        disk::read(&path).map_or(String::new(), |id| String::from_utf8_lossy(&id).into_owned())
    }

    /// What a part says about itself; `None` if it says nothing readable.
    pub fn note(&self, id: &str) -> Option<Note> {
        self.note_in(&file_name(id))
    }

    fn note_in(&self, file: &str) -> Option<Note> {
        let path = self.0.join("parts").join(file);
        serde_json::from_slice(&disk::read(&path).ok()?).ok()
    }

    /// Every part, by the name of its file.
    pub fn notes(&self) -> Result<BTreeMap<String, Note>> {
        let names = self.names("parts")?.into_iter().filter(|name| !name.ends_with(PARTIAL));
        Ok(names.filter_map(|file| Some((file.clone(), self.note_in(&file)?))).collect())
    }

    /// Replaces what a part says about itself. A beat need not survive a power cut.
    pub fn say(&self, id: &str, note: &Note) -> Result<()> {
        let name = format!("parts/{}", file_name(id));
        let text = serde_json::to_vec(note).expect("a note is JSON");
        let partial = self.0.join(format!("{name}{PARTIAL}"));
        let written = Log::open(&partial, true)
            .and_then(|mut file| file.write(&text))
            .and_then(|()| disk::rename(&partial, &self.0.join(&name)));
        written.map_err(|error| self.failed(&name, &error))
    }

    /// File names of the units that have a result.
    pub fn results(&self) -> Result<Vec<String>> {
        self.names("results")
    }

    /// The result of a unit; `None` if there is none, or a damaged one.
    pub fn result(&self, unit: &Unit) -> Option<String> {
        let path = self.0.join("results").join(file_name(&unit.name));
        let done: Done = serde_json::from_slice(&disk::read(&path).ok()?).ok()?;
        let sound = done.unit == unit.name && done.check == check(&done.unit, &done.result);
        sound.then_some(done.result)
    }

    /// Keeps the result of a unit, as a whole. If it is there already, it is the same.
    pub fn keep(&self, unit: &Unit, result: &str, (id, note): (&str, &Note)) -> Result<()> {
        let done = Done {
            unit: unit.name.clone(),
            part: note.part.clone(),
            host: note.host.clone(),
            result: result.into(),
            check: check(&unit.name, result),
        };
        let text = serde_json::to_vec(&done).expect("a result is JSON");
        self.put(&format!("results/{}", file_name(&unit.name)), &text, id)
    }

    /// Writes a file as a whole, under a name of this process until then.
    fn put(&self, name: &str, content: &[u8], id: &str) -> Result<()> {
        let path = self.0.join(name);
        let partial = self.0.join(format!("{name}@{}{PARTIAL}", file_name(id)));
        let written = Log::open(&partial, true)
            .and_then(|mut file| file.write(content).and_then(|()| file.sync()))
            .and_then(|()| disk::rename(&partial, &path))
            .and_then(|()| disk::sync_folder(path.parent().unwrap_or(&self.0)));
        written.map_err(|error| self.failed(name, &error))
    }

    fn names(&self, folder: &str) -> Result<Vec<String>> {
        let list = || -> io::Result<Vec<String>> {
            let entries = fs::read_dir(self.0.join(folder))?;
            entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
        };
        list().map_err(|error| self.failed(folder, &error))
    }

    fn failed(&self, name: &str, error: &io::Error) -> Error {
        Error::storage("share/folder", format!("cannot use the shared folder: {error}"))
            .at(self.0.join(name).display().to_string())
            .hint("all parts must be able to write there; then run this part again")
    }
}

/// A name that every file system accepts.
pub fn file_name(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02x}"),
    };
    let plain: String = name.bytes().map(byte).collect();
    match plain.len() > 120 {
        true => format!("{}-{}", &plain[..100], &hex(&Sha256::digest(name))[..16]),
        false => plain,
    }
}

fn check(unit: &str, result: &str) -> String {
    hex(&Sha256::digest(format!("{unit}\n{result}"))[..8])
}
