//! A disk that records which data are synced. After a power cut, content that is not synced may be
//! missing, torn or zero, and names that are not synced may be missing or restored.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use lopa::math::random::{Purpose, Stream};
use lopa_base::store::disk::Step;

/// A step that was taken.
#[derive(Debug, Clone)]
pub enum Taken {
    MakeFolder(PathBuf),
    Open { path: PathBuf, empty: bool },
    Write(PathBuf, Vec<u8>),
    Cut(PathBuf, usize),
    Sync(PathBuf),
    SyncFolder(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl Taken {
    /// A step that changes something.
    pub fn of(step: &Step) -> Option<Taken> {
        Some(match *step {
            Step::Read(_) => return None,
            Step::MakeFolder(path) => Taken::MakeFolder(path.into()),
            Step::Open { path, empty } => Taken::Open { path: path.into(), empty },
            Step::Write(path, bytes) => Taken::Write(path.into(), bytes.into()),
            Step::Cut(path, length) => Taken::Cut(path.into(), length as usize),
            Step::Sync(path) => Taken::Sync(path.into()),
            Step::SyncFolder(path) => Taken::SyncFolder(path.into()),
            Step::Rename(from, to) => Taken::Rename(from.into(), to.into()),
            Step::Remove(path) | Step::RemoveFolder(path) => Taken::Remove(path.into()),
        })
    }
}

/// The fate of changes that are not synced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cut {
    /// They are all lost.
    Lost,
    /// They are all there: the process was killed, and the power stayed.
    Kept,
    /// Names are there, content is not.
    NamesOnly,
    /// Content is there, names are not.
    ContentOnly,
    /// Names are there; of each write there is half.
    Torn,
    /// Drawn from a seed for each, independently of earlier changes.
    Drawn(u64),
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Cut(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Entry {
    File(usize),
    Folder,
}

/// What a power cut leaves: folders, and files with their content.
pub type State = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// A change of names in one folder, all of it or nothing: names that are put, or that go.
type Naming = Vec<(PathBuf, Option<Entry>)>;

#[derive(Debug, Default)]
struct File {
    length: usize, // as processes see it
    synced: Vec<u8>,
    changes: Vec<Change>,
}

#[derive(Debug, Default)]
pub struct Simulated {
    files: Vec<File>,
    names: BTreeMap<PathBuf, Entry>, // as processes see them
    synced: BTreeMap<PathBuf, Entry>,
    changes: Vec<(PathBuf, Naming)>, // of names, by folder
}

impl Simulated {
    pub fn take(&mut self, step: &Taken) {
        match step {
            Taken::MakeFolder(path) => self.name(vec![(path.clone(), Some(Entry::Folder))]),
            Taken::Open { path, empty } => {
                if !self.names.contains_key(path) {
                    self.files.push(File::default());
                    let entry = Entry::File(self.files.len() - 1);
                    self.name(vec![(path.clone(), Some(entry))]);
                }
                if *empty {
                    self.cut(path, 0);
                }
            }
            Taken::Write(path, bytes) => {
                let file = self.file(path);
                file.changes.push(Change::Write(file.length, bytes.clone()));
                file.length += bytes.len();
            }
            Taken::Cut(path, length) => self.cut(path, *length),
            Taken::Sync(path) => {
                let file = self.file(path);
                let changes = std::mem::take(&mut file.changes);
                changes.iter().for_each(|change| apply(&mut file.synced, change));
            }
            Taken::SyncFolder(folder) => {
                let changes = std::mem::take(&mut self.changes);
                let (synced, rest) = changes.into_iter().partition(|(of, _)| of == folder);
                self.changes = rest;
                let synced: Vec<(PathBuf, Naming)> = synced;
                synced.iter().for_each(|(_, naming)| rename(&mut self.synced, naming));
            }
            Taken::Rename(from, to) => {
                let entry = self.names[from];
                self.name(vec![(to.clone(), Some(entry)), (from.clone(), None)]);
            }
            Taken::Remove(path) => self.name(vec![(path.clone(), None)]),
        }
    }

    fn file(&mut self, path: &Path) -> &mut File {
        match self.names[path] {
            Entry::File(at) => &mut self.files[at],
            Entry::Folder => panic!("{path:?} is a folder"),
        }
    }

    fn cut(&mut self, path: &Path, length: usize) {
        let file = self.file(path);
        if file.length != length {
            file.changes.push(Change::Cut(length));
            file.length = length;
        }
    }

    fn name(&mut self, naming: Naming) {
        rename(&mut self.names, &naming);
        self.changes.push((naming[0].0.parent().unwrap().to_path_buf(), naming));
    }

    /// Writes the state of `top` after a power cut to `root`.
    pub fn leave(&self, cut: Cut, top: &Path, root: &Path) {
        for (path, content) in self.left(cut, top) {
            let to = root.join(path);
            match content {
                None => fs::create_dir(to).unwrap(),
                Some(content) => fs::write(to, content).unwrap(),
            }
        }
    }

    /// The state of `top` after a power cut: folders, and files with their content.
    pub fn left(&self, cut: Cut, top: &Path) -> State {
        let mut stream = match cut {
            Cut::Drawn(seed) => Stream::new(seed, Purpose::Data, 0),
            _ => Stream::new(0, Purpose::Data, 0),
        };
        let mut names = self.synced.clone();
        for (_, naming) in &self.changes {
            let there = match cut {
                Cut::Lost | Cut::ContentOnly => false,
                Cut::Kept | Cut::NamesOnly | Cut::Torn => true,
                Cut::Drawn(_) => stream.unit() < 0.5,
            };
            if there {
                rename(&mut names, naming);
            }
        }
        let mut left = State::new();
        for (path, entry) in &names {
            let path = path.strip_prefix(top).unwrap();
            // The content of a lost folder is also lost.
            let parent = path.parent().unwrap();
            if parent != Path::new("") && left.get(parent) != Some(&None) {
                continue;
            }
            let content = match entry {
                Entry::Folder => None,
                Entry::File(at) => Some(self.files[*at].left(cut, &mut stream)),
            };
            left.insert(path.to_path_buf(), content);
        }
        left
    }
}

impl File {
    fn left(&self, cut: Cut, stream: &mut Stream) -> Vec<u8> {
        let mut content = self.synced.clone();
        for change in &self.changes {
            let part = match (cut, change) {
                (Cut::Lost | Cut::NamesOnly, _) => continue,
                (Cut::Kept | Cut::ContentOnly, _) => change.clone(),
                (Cut::Torn, Change::Write(at, bytes)) => {
                    Change::Write(*at, bytes[..bytes.len() / 2].to_vec())
                }
                (Cut::Torn, Change::Cut(_)) => change.clone(),
                (Cut::Drawn(_), Change::Cut(_)) if stream.unit() < 0.5 => continue,
                (Cut::Drawn(_), Change::Cut(_)) => change.clone(),
                (Cut::Drawn(_), Change::Write(at, bytes)) => match stream.below(4) {
                    0 => continue,
                    1 => change.clone(),
                    // The length is there, the content is not.
                    2 => Change::Write(*at, vec![0; bytes.len()]),
                    _ => Change::Write(*at, bytes[..stream.below(bytes.len().max(1))].to_vec()),
                },
            };
            apply(&mut content, &part);
        }
        content
    }
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Cut(length) => content.resize(*length, 0),
        Change::Write(at, bytes) => {
            let end = at + bytes.len();
            content.resize(content.len().max(end), 0);
            content[*at..end].copy_from_slice(bytes);
        }
    }
}

fn rename(names: &mut BTreeMap<PathBuf, Entry>, naming: &Naming) {
    for (path, entry) in naming {
        match entry {
            Some(entry) => drop(names.insert(path.clone(), *entry)),
            None => drop(names.remove(path)),
        }
    }
}
