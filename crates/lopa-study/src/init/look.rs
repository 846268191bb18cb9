//! Inspects data files: format, columns, the label.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::columns::Table as Columns;
use super::{MOST_NODES, Wish};
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

/// Names that columns of times usually have beside one of [`EVENTS`].
const TIMES: [&str; 13] = [
    "time",
    "times",
    "duration",
    "survival_time",
    "time_to_event",
    "followup",
    "follow_up",
    "followup_time",
    "futime",
    "lenfol",
    "os_time",
    "days",
    "months",
];

/// Names that columns usually have that say whether an event was seen at a time.
const EVENTS: [&str; 12] = [
    "event",
    "events",
    "event_observed",
    "observed",
    "status",
    "death",
    "death_event",
    "died",
    "dead",
    "deceased",
    "fustat",
    "relapse",
];

/// Names that columns usually have that say whose row it is.
const GROUPS: [&str; 14] = [
    "hospital",
    "clinic",
    "site",
    "centre",
    "center",
    "institution",
    "silo",
    "node",
    "client",
    "group",
    "owner",
    "lab",
    "station",
    "branch",
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
            _ => look.features(&files, format, wish)?,
        }
        if let Some(features) = wish.features {
            let width = i64::try_from(features).unwrap_or(i64::MAX);
            look.data.insert("features".into(), Value::Integer(width));
        }
        if let Some(features) = wish.features.filter(|_| format != "libsvm") {
            let message = format!("--features {features} is for LIBSVM files");
            return Err(Error::config("config/no-meaning", message)
                .at(first.display().to_string())
                .hint("other formats say themselves how many features there are"));
        }
        Ok(look)
    }

    /// The file or files, for messages.
    pub fn place(&self) -> &str {
        self.data.get("path").and_then(Value::as_str).unwrap_or_default()
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
        let mut dropped = table.find_all(&wish.drop)?;
        let group = match &wish.nodes_from {
            Some(name) => Some(table.find(name)?),
            None => self.group(&table, wish, &dropped)?,
        };
        let is_free = |at: &usize| Some(*at) != group && !dropped.contains(at);
        let all: Vec<usize> = (0..table.width()).filter(is_free).collect();
        let words: Vec<usize> = all.iter().copied().filter(|at| table.is_word(*at)).collect();
        // A column of words between columns of numbers is more likely a feature, and a label has no gaps.
        let sound: Vec<usize> =
            all.iter().copied().filter(|at| table.doubt(*at).is_none()).collect();
        let is_label = |at: &usize, name: Option<usize>| {
            let first = sound.first() == Some(at) && name.is_none();
            table.is_complete(*at) && (sound.last() == Some(at) || first || name == Some(*at))
        };
        let named = |names: &[&str]| all.iter().copied().find(|at| table.has_name(*at, names));
        let survival = || {
            let (time, event) = (named(&TIMES)?, named(&EVENTS)?);
            (table.is_within(time, 0.0, f64::INFINITY) && table.is_flag(event))
                .then_some([time, event])
        };
        let (labels, why) = match (&wish.label[..], named(&LABELS), survival(), &words[..]) {
            (wanted @ [_, ..], ..) => (table.find_all(wanted)?, None),
            ([], None, Some(both), _) => (both.to_vec(), Some("their names say so")),
            ([], name, _, [only]) if is_label(only, name) => {
                (vec![*only], Some("the only column of words"))
            }
            ([], Some(at), ..) => (vec![at], Some("its name says so")),
            ([], None, ..) => (vec![*all.last().unwrap_or(&0)], Some("the last column")),
        };
        if let Some(at) = labels.iter().enumerate().find(|(at, own)| labels[..*at].contains(own)) {
            let message = format!("column {} is named twice", table.key(*at.1));
            return Err(Error::config("config/out-of-range", message)
                .at("--label")
                .hint("name each column once"));
        }
        if let Some(why) = why {
            let columns: Vec<String> = labels.iter().map(|at| table.key(*at).to_string()).collect();
            let s = if columns.len() == 1 { "" } else { "s" };
            let columns = columns.join(" and ");
            self.guesses.push(format!("label: column{s} {columns} ({why}; else --label COLUMN)"));
        }
        let doubtful = self.doubtful(&table, |at| is_free(at) && !labels.contains(at));
        dropped.extend(doubtful);
        let is_feature =
            |at: &usize| !labels.contains(at) && Some(*at) != group && !dropped.contains(at);
        let features: Vec<usize> = (0..table.width()).filter(is_feature).collect();
        let encoded = self.categories(&table, &features);
        table.refuse_words(features.into_iter().filter(|at| !encoded.contains(at)))?;
        self.guesses.extend(table.warnings(is_feature));
        let key = match labels[..] {
            [label] => table.key(label),
            _ => Value::Array(labels.iter().map(|at| table.key(*at)).collect()),
        };
        self.data.insert("label".into(), key);
        if let Some(group) = group {
            self.data.insert("group".into(), table.key(group));
        }
        self.leave_out(&table, dropped);
        Ok(())
    }

    /// Lists the values of columns with a few words, which become a feature for each; returns these columns.
    /// A column whose name says that it says whose row it is may be meant as that.
    fn categories(&mut self, table: &Columns, features: &[usize]) -> Vec<usize> {
        let (mut keys, mut encoded) = (Table::new(), Vec::new());
        for &at in features {
            let group = table.has_name(at, &GROUPS);
            let Some(words) = table.categories(at).filter(|_| !group) else { continue };
            self.guesses.push(format!(
                "categories: {} becomes a feature for each of its words, {} (else --drop)",
                table.shown(at),
                words.join(", ")
            ));
            let words = words.into_iter().map(Value::String).collect();
            keys.insert(table.category_key(at), Value::Array(words));
            encoded.push(at);
        }
        if !keys.is_empty() {
            self.data.insert("categories".into(), Value::Table(keys));
        }
        encoded
    }

    /// The column whose name says that it says whose row it is, unless rows are divided in another way.
    fn group(&mut self, table: &Columns, wish: &Wish, dropped: &[usize]) -> Result<Option<usize>> {
        if self.nodes.is_some() || wish.nodes.is_some() {
            return Ok(None);
        }
        let labels = table.find_all(&wish.label)?;
        let is_group = |at: &usize| {
            table.has_name(*at, &GROUPS)
                && table.has_few_values(*at, MOST_NODES)
                && !labels.contains(at)
                && !dropped.contains(at)
        };
        let group = (0..table.width()).find(is_group);
        if let Some(at) = group {
            self.guesses.push(format!(
                "nodes: column {} (its name says so; else --nodes-from COLUMN, --nodes N or --drop)",
                table.key(at)
            ));
        }
        Ok(group)
    }

    /// The features to leave out of files whose labels are not a column of theirs.
    fn features(&mut self, files: &[PathBuf], format: &str, wish: &Wish) -> Result<()> {
        no_columns(wish, &files[0])?;
        // In sparse rows, a feature that is the same everywhere costs nothing: none is left out unasked.
        if format == "libsvm" {
            return self.indices(wish);
        }
        let table = Columns::of(files)?;
        let mut dropped = table.find_all(&wish.drop)?;
        dropped.extend(self.doubtful(&table, |at| !dropped.contains(at)));
        self.guesses.extend(table.warnings(|at| !dropped.contains(at)));
        self.leave_out(&table, dropped);
        Ok(())
    }

    /// The features to leave out of LIBSVM files, by their indices; their range is checked when the files
    /// are read.
    fn indices(&mut self, wish: &Wish) -> Result<()> {
        let index = |text: &String| {
            text.parse::<u32>().map(|index| Value::Integer(index.into())).map_err(|_| {
                let message = format!("`{text}` is not the index of a feature");
                Error::config("config/out-of-range", message)
                    .at("--drop")
                    .hint("features of LIBSVM files have numbers: --drop 7,12")
            })
        };
        let dropped = wish.drop.iter().map(index).collect::<Result<Vec<Value>>>()?;
        if !dropped.is_empty() {
            self.data.insert("drop".into(), Value::Array(dropped));
        }
        Ok(())
    }

    /// Columns that are not features, and says why; if no others are left, these may be features.
    fn doubtful(&mut self, table: &Columns, is_free: impl Fn(&usize) -> bool) -> Vec<usize> {
        let doubtful: Vec<_> = table.doubtful().filter(|(at, _)| is_free(at)).collect();
        if doubtful.len() == (0..table.width()).filter(&is_free).count() {
            return Vec::new();
        }
        let said = |(at, why): &(usize, String)| format!("left out: {}, {why}", table.shown(*at));
        self.guesses.extend(doubtful.iter().map(said));
        doubtful.into_iter().map(|(at, _)| at).collect()
    }

    fn leave_out(&mut self, table: &Columns, mut dropped: Vec<usize>) {
        if !dropped.is_empty() {
            dropped.sort_unstable();
            let keys = dropped.into_iter().map(|at| table.key(at)).collect();
            self.data.insert("drop".into(), Value::Array(keys));
        }
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
        Error::data("data/unreadable", message).at(folder.display().to_string())
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
            .at(folder.display().to_string())
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
            .at(path.display().to_string())
            .hint("rename it to `.csv`, `.tsv`, `.libsvm` or `.npz`")),
    }
}

/// A label or a group needs columns with names.
fn no_columns(wish: &Wish, path: &Path) -> Result<()> {
    let flag = match (&wish.label[..], &wish.nodes_from) {
        ([_, ..], _) => "--label",
        (_, Some(_)) => "--nodes-from",
        _ => return Ok(()),
    };
    Err(Error::config("config/no-meaning", format!("{flag} needs a CSV file"))
        .at(path.display().to_string())
        .hint("this format says itself where its labels are; divide the rows with --nodes"))
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
