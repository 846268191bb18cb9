//! Inspects data files: format, columns, the label.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::Wish;
use super::columns::Table as Columns;
use lopa::error::{Error, Result};

/// Names that label columns usually have.
const LABELS: [&str; 10] = [
    "label",
    "labels",
    "target",
    "class",
    "y",
    "outcome",
    "diagnosis",
    "species",
    "result",
    "classe",
];

/// The data as in the section `[data]` of an experiment file, and the guesses.
pub struct Look {
    /// The name of the source and its parameters.
    pub data: Table,
    /// The names of nodes that have files of their own.
    pub nodes: Option<Vec<String>>,
    /// The guesses, and how to override them.
    pub guesses: Vec<String>,
    /// A name for the experiment.
    pub name: String,
}

impl Look {
    /// Inspects the files, or those in a folder; of several files, each belongs to one node.
    pub fn at(wish: &Wish) -> Result<Look> {
        let files = files(&wish.data)?;
        let first = &files[0];
        let format = format_of(first)?;
        let mut look = Look {
            data: Table::new(),
            nodes: None,
            guesses: Vec::new(),
            name: plain(&stem(first)),
        };
        look.data.insert("name".into(), format.into());
        look.data.insert("path".into(), first.display().to_string().into());
        if files.len() > 1 {
            look.per_node(&files)?;
        }
        match format {
            "csv" => look.columns(&files, wish)?,
            _ => no_columns(wish, first)?,
        }
        if let Some(features) = wish.features {
            let width = i64::try_from(features).unwrap_or(i64::MAX);
            look.data.insert("features".into(), Value::Integer(width));
        }
        if let Some(features) = wish.features.filter(|_| format != "libsvm") {
            let message = format!("--features {features} is for LIBSVM files");
            return Err(Error::config("config/no-meaning", message)
                .at(shown(first))
                .hint("other formats say themselves how many features there are"));
        }
        Ok(look)
    }

    /// A file for each node: their names differ in one place.
    fn per_node(&mut self, files: &[PathBuf]) -> Result<()> {
        let first = &files[0];
        let (folder, end) = (first.parent(), ending(first));
        let alike = |file: &PathBuf| file.parent() == folder && ending(file) == end;
        if let Some(other) = files.iter().find(|file| !alike(file)) {
            let message = "the files of the nodes must lie in one folder and have one ending";
            return Err(Error::config("config/out-of-range", message)
                .at(other.display().to_string())
                .hint("for example `--data hospitals/`, with a CSV file for each of them"));
        }
        let path = folder.unwrap_or(Path::new("")).join(format!("{{node}}{end}"));
        self.data.insert("path".into(), path.display().to_string().into());
        self.nodes = Some(files.iter().map(|file| stem(file)).collect());
        self.name = match folder.and_then(Path::file_name) {
            Some(folder) => plain(&folder.to_string_lossy()),
            None => "nodes".into(),
        };
        Ok(())
    }

    /// The label, the group and the columns to leave out among the columns of CSV files.
    fn columns(&mut self, files: &[PathBuf], wish: &Wish) -> Result<()> {
        let table = Columns::of(files)?;
        let group = wish.nodes_from.as_deref().map(|name| table.find(name)).transpose()?;
        let mut dropped = Vec::new();
        for name in &wish.drop {
            dropped.push(table.find(name)?);
        }
        let is_free = |at: &usize| Some(*at) != group && !dropped.contains(at);
        let texts: Vec<usize> =
            (0..table.width()).filter(is_free).filter(|at| table.is_word(*at)).collect();
        let usual =
            |at: &usize| table.named() && LABELS.contains(&table.name(*at).to_lowercase().as_str());
        let (label, why) = match (&wish.label, &texts[..]) {
            (Some(label), _) => (table.find(label)?, None),
            // Features are numbers, so a column of words is the label.
            (None, &[only]) => (only, Some("the only column of words")),
            (None, _) => match (0..table.width()).filter(is_free).find(usual) {
                Some(at) => (at, Some("its name says so")),
                None => ((0..table.width()).rfind(is_free).unwrap_or(0), Some("the last column")),
            },
        };
        if let Some(why) = why {
            let column = table.key(label);
            self.guesses.push(format!("label: column {column} ({why}; else --label COLUMN)"));
        }
        let doubtful: Vec<(usize, String)> =
            table.doubtful().filter(|(at, _)| is_free(at) && *at != label).collect();
        let features = (0..table.width()).filter(|at| is_free(at) && *at != label).count();
        // If no other columns are left, doubtful ones may be features.
        let doubtful = if doubtful.len() < features { doubtful } else { Vec::new() };
        for (at, why) in doubtful {
            self.guesses.push(format!("left out: {}, {why}", table.shown(at)));
            dropped.push(at);
        }
        let is_feature = |at: &usize| *at != label && Some(*at) != group && !dropped.contains(at);
        table.refuse_words((0..table.width()).filter(is_feature))?;
        self.guesses.extend(table.warnings(is_feature));
        self.data.insert("label".into(), table.key(label));
        if let Some(group) = group {
            self.data.insert("group".into(), table.key(group));
        }
        if !dropped.is_empty() {
            dropped.sort_unstable();
            let keys = dropped.into_iter().map(|at| table.key(at)).collect();
            self.data.insert("drop".into(), Value::Array(keys));
        }
        Ok(())
    }
}

/// The files given, or the files of a folder, in the order of their names.
fn files(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let [folder] = given else { return Ok(given.to_vec()) };
    if !folder.is_dir() {
        return Ok(given.to_vec());
    }
    let unreadable = |error: std::io::Error| {
        let message = format!("the folder cannot be read: {error}");
        Error::data("data/unreadable", message).at(shown(folder))
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() && format_of(&path).is_ok() {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() {
        false => Ok(files),
        true => Err(Error::data("data/missing", "no data files are in this folder")
            .at(shown(folder))
            .hint("CSV, LIBSVM and NPZ files are recognised by their endings")),
    }
}

/// The source that reads a file.
fn format_of(path: &Path) -> Result<&'static str> {
    match ending(path).to_lowercase().trim_end_matches(".gz") {
        ".csv" | ".data" | ".tsv" => Ok("csv"),
        ".libsvm" | ".svm" | ".txt" => Ok("libsvm"),
        ".npz" => Ok("npz"),
        _ => Err(Error::data("data/unknown-format", "the file's ending does not say its format")
            .at(shown(path))
            .hint("rename it to `.csv`, `.tsv`, `.libsvm` or `.npz`")),
    }
}

/// A label or a group needs columns with names.
fn no_columns(wish: &Wish, path: &Path) -> Result<()> {
    let flag = match (&wish.label, &wish.nodes_from, &wish.drop[..]) {
        (Some(_), ..) => "--label",
        (_, Some(_), _) => "--nodes-from",
        (.., [_, ..]) => "--drop",
        _ => return Ok(()),
    };
    Err(Error::config("config/no-meaning", format!("{flag} needs a CSV file"))
        .at(shown(path))
        .hint("this format says itself where its labels are; divide the rows with --nodes"))
}

pub fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// `north` of `data/north.csv.gz`.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_string();
    name[..name.len() - ending(path).len()].to_string()
}

/// `.csv.gz` of `data/north.csv.gz`.
fn ending(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_string();
    let packed = name.to_lowercase().ends_with(".gz");
    let inner = if packed { &name[..name.len() - 3] } else { &name[..] };
    inner.rfind('.').filter(|&at| at > 0).map_or(String::new(), |at| name[at..].to_string())
}

/// A name that a run folder may have.
fn plain(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let plain: String = name.chars().map(keep).collect();
    if plain.is_empty() { "experiment".into() } else { plain }
}
