//! What one can see of data files without reading them whole: format, columns, the label.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::Wish;
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
        let (format, delimiter) = format_of(first)?;
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
            "csv" => look.columns(first, delimiter, wish)?,
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
    fn columns(&mut self, path: &Path, comma: char, wish: &Wish) -> Result<()> {
        let lines = first_lines(path)?;
        let Some(first) = lines.first() else {
            return Err(Error::data("data/empty", "the file is empty").at(shown(path)));
        };
        let comma = if first.contains(comma) {
            comma
        } else {
            [';', '\t', '|'].into_iter().find(|&other| first.contains(other)).unwrap_or(comma)
        };
        if comma != ',' {
            self.data.insert("delimiter".into(), comma.to_string().into());
        }
        let cells = |line: &str| -> Vec<String> {
            line.split(comma).map(|cell| cell.trim().trim_matches('"').to_string()).collect()
        };
        let number = |cell: &String| cell.is_empty() || cell.parse::<f64>().is_ok();
        let head = cells(first);
        let named = !head.iter().any(number);
        let rows: Vec<Vec<String>> =
            lines.iter().skip(usize::from(named)).map(|line| cells(line)).collect();
        let is_text =
            |at: &usize| rows.iter().any(|row| row.get(*at).is_some_and(|cell| !number(cell)));
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

/// The source that reads a file, and the usual delimiter.
fn format_of(path: &Path) -> Result<(&'static str, char)> {
    match ending(path).to_lowercase().trim_end_matches(".gz") {
        ".csv" | ".data" => Ok(("csv", ',')),
        ".tsv" => Ok(("csv", '\t')),
        ".libsvm" | ".svm" | ".txt" => Ok(("libsvm", ' ')),
        ".npz" => Ok(("npz", ' ')),
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

/// The first lines of a text file; none of a packed one, whose columns are not looked at.
fn first_lines(path: &Path) -> Result<Vec<String>> {
    let unreadable = |error: std::io::Error| {
        Error::data("data/unreadable", format!("the file cannot be read: {error}")).at(shown(path))
    };
    let file = BufReader::new(File::open(path).map_err(unreadable)?);
    let lines = file.split(b'\n').take(50).collect::<std::io::Result<Vec<_>>>();
    let lines = lines.map_err(unreadable)?;
    if lines.first().is_some_and(|first| first.starts_with(&[0x1f, 0x8b])) {
        return Err(Error::data(
            "data/unknown-format",
            "columns are not looked up in packed files",
        )
        .at(shown(path))
        .hint("unpack it first: `gunzip FILE`"));
    }
    let text = |line: &Vec<u8>| String::from_utf8_lossy(line).trim_end_matches('\r').to_string();
    let lines = lines.iter().map(text).filter(|line| !line.trim().is_empty());
    Ok(lines.map(|line| line.trim_start_matches('\u{feff}').to_string()).collect())
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
