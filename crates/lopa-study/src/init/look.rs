//! What a look at data files tells: format, columns, the label.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::Wish;
use lopa::data::CellKind;
use lopa::error::{Error, Result, nearest};

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

/// The data as the section `[data]` of an experiment file has it, and what was guessed.
pub struct Look {
    /// The name of the source and its parameters.
    pub data: Table,
    /// The names of nodes that have files of their own.
    pub nodes: Option<Vec<String>>,
    /// What was guessed, and how to say otherwise.
    pub guesses: Vec<String>,
    /// A name for the experiment.
    pub name: String,
}

impl Look {
    /// Looks at the files, or at those in a folder: several of them are one for each node.
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
            "csv" => look.columns(first, wish)?,
            _ => no_columns(wish, first)?,
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

    /// The label and the group among the columns of a CSV file.
    fn columns(&mut self, path: &Path, wish: &Wish) -> Result<()> {
        let found = lopa::data::look(path, None)?;
        if let Some(comma) = found.delimiter {
            self.data.insert("delimiter".into(), comma.to_string().into());
        }
        // It takes the last column for the label.
        let last = found.labels.iter().map(|label| &label.name);
        let head: Vec<String> =
            found.columns.iter().map(|column| &column.name).chain(last).cloned().collect();
        let named = (0..).zip(&head).any(|(at, name)| *name != usize::to_string(&at));
        let number = |(class, _): &(String, usize)| class.parse::<f64>().is_ok();
        let is_text = |at: &usize| match (found.columns.get(*at), &found.labels) {
            (Some(column), _) => column.kind == CellKind::Text,
            (None, Some(label)) => !label.classes.iter().all(number),
            (None, None) => false,
        };
        let column = |wanted: &str| -> Result<(usize, Value)> {
            if let Some(at) = head.iter().position(|name| named && name == wanted) {
                return Ok((at, wanted.into()));
            }
            match wanted.parse::<usize>() {
                Ok(at) if at < head.len() => Ok((at, Value::Integer(at as i64))),
                _ => Err(no_column(wanted, if named { &head } else { &[] }, head.len(), path)),
            }
        };
        let group = wish.nodes_from.as_deref().map(column).transpose()?;
        let texts: Vec<usize> = (0..head.len())
            .filter(is_text)
            .filter(|at| group.as_ref().is_none_or(|(group, _)| group != at))
            .collect();
        let usual = |at: &usize| LABELS.contains(&head[*at].to_lowercase().as_str());
        let value = |at: usize| match named {
            true => Value::String(head[at].clone()),
            false => Value::Integer(at as i64),
        };
        let last = head.len() - 1;
        let (label, why) = match (&wish.label, &texts[..]) {
            (Some(label), _) => (column(label)?, None),
            // Features are numbers, so a column of words is the label.
            (None, &[only]) => ((only, value(only)), Some("the only column of words")),
            (None, _) => match (0..head.len()).find(|at| named && usual(at)) {
                Some(at) => ((at, value(at)), Some("its name says so")),
                None => ((last, value(last)), Some("the last column")),
            },
        };
        if let Some(why) = why {
            self.guesses.push(format!("label: column {} ({why}; else --label COLUMN)", label.1));
        }
        if let Some(&at) = texts.iter().find(|&&at| at != label.0) {
            let message = format!("column {} holds words, and features must be numbers", value(at));
            return Err(Error::data("data/bad-number", message).at(shown(path)).hint(
                "if it is the label, give --label; if it says whose row it is, --nodes-from; else \
                 take it out or replace it by numbers",
            ));
        }
        self.data.insert("label".into(), label.1);
        if let Some((_, group)) = group {
            self.data.insert("group".into(), group);
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
    let flag = match (&wish.label, &wish.nodes_from) {
        (Some(_), _) => "--label",
        (_, Some(_)) => "--nodes-from",
        _ => return Ok(()),
    };
    Err(Error::config("config/no-meaning", format!("{flag} needs a CSV file"))
        .at(shown(path))
        .hint("this format says itself where its labels are; divide the rows with --nodes"))
}

fn no_column(wanted: &str, names: &[String], count: usize, path: &Path) -> Error {
    let error = Error::data("data/no-column", format!("there is no column `{wanted}`"));
    let error = error.at(shown(path));
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let all = match known.is_empty() {
        true => format!("columns have no names here, only numbers from 0 to {}", count - 1),
        false => format!("the columns are {}", known.join(", ")),
    };
    match nearest(wanted, known) {
        Some(near) => error.hint(format!("did you mean `{near}`? {all}")),
        None => error.hint(all),
    }
}

fn shown(path: &Path) -> String {
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
