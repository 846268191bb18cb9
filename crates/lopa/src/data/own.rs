//! Data with files of each node's own: a process reads only those of its nodes.

use std::ops::Range;

use toml::{Table, Value};

use super::agreement::{Agreement, Told};
use super::prepare::{check_fill, prepare_own};
use super::source::{Class, Raw, SourceBuild, Where};
use super::{Data, Dataset, Features, Method, Preparation, Scalings};
use crate::config::{Choice, Registry};
use crate::error::{Error, Fault, Result};

/// The placeholder for a node's name in a path.
const NODE: &str = "{node}";

/// Whether a source's files depend on the node.
pub fn is_template(source: &Choice<SourceBuild>) -> bool {
    source.params().values().any(|value| value.as_str().is_some_and(|text| text.contains(NODE)))
}

impl Preparation {
    /// Where nodes have files of their own, whatever depends on all rows must be in the experiment file.
    pub(super) fn check_nodes(&self) -> Result<(), Fault> {
        let Some(nodes) = &self.nodes else { return Ok(()) };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let bad = |name: &&String| name.is_empty() || !name.chars().all(plain);
        if let Some(name) = nodes.iter().find(bad) {
            return Fault::unless(false, "nodes", name, "letters, digits, `-` and `_`");
        }
        let double = (1..nodes.len()).find(|&at| nodes[..at].contains(&nodes[at]));
        if let Some(at) = double {
            return Fault::unless(false, "nodes", &nodes[at], "named once");
        }
        let must = "given where nodes have files of their own: a file may lack a class";
        Fault::unless(self.classes.is_some(), "classes", "left out", must)
    }
}

/// The source of each node: `source` with the node's name filled in.
pub fn each(
    source: &Choice<SourceBuild>,
    nodes: &[String],
    sources: &Registry<SourceBuild>,
) -> Result<Vec<Choice<SourceBuild>>> {
    let own = |name: &String| sources.choose(&source.name, &filled(source.params(), name));
    nodes.iter().map(own).collect()
}

/// The files of some nodes.
#[derive(Debug)]
pub struct Own {
    /// The nodes.
    pub here: Range<usize>,
    /// What each of them tells the others before a run.
    pub told: Vec<Told>,
    /// Whether their columns are in the common order and their rows scaled.
    pub settled: bool,
    /// A sentence for each file with rows that are left out, because `classes` does not list theirs.
    pub left_out: Vec<String>,
}

/// Reads and prepares the files of some nodes, each alone. If these are all, the data is settled;
/// else it is once [`Agreement`] with the others is reached.
pub fn load(
    sources: &[Choice<SourceBuild>],
    preparation: &Preparation,
    nodes: &[String],
    here: Range<usize>,
    place: &Where,
) -> Result<Data> {
    let (mut parts, mut out) = (Vec::new(), Vec::new());
    for (source, name) in sources[here.clone()].iter().zip(&nodes[here.clone()]) {
        let raw = (source.build)(place)?;
        let sparse = preparation.sparse.unwrap_or(raw.train.table.is_sparse());
        let method = preparation.scaling.unwrap_or(Method::None);
        check_fill(method, preparation.columns.as_deref(), sparse)?;
        let each = Preparation {
            sparse: Some(sparse),
            scaling: Some(Method::None),
            moments: None,
            nodes: None,
            ..preparation.clone()
        };
        out.extend(left_out(&raw, preparation, name));
        let raw = with_classes(raw, preparation);
        parts.push(prepare_own(raw, &each, place.seed).map_err(|error| error.at(name))?);
    }
    let names = &nodes[here.clone()];
    same_columns(&parts, names)?;
    let tell = |data: &Data| Told::of(&data.train, data.columns.as_ref(), preparation);
    let told: Vec<Told> = parts.iter().map(tell).collect();
    let first = parts.first().map(|data| (data.classes.clone(), data.columns.clone()));
    let (classes, columns) = first.unwrap_or_default();
    let (train, test): (Vec<_>, Vec<_>) = parts.into_iter().map(|d| (d.train, d.test)).unzip();
    let (train, test) = (joined(train, &here, nodes.len()), joined(test, &here, nodes.len()));
    let whole = here == (0..nodes.len());
    let own = Own { here, told: told.clone(), settled: false, left_out: out };
    let scaling = Scalings::default();
    let mut data = Data { train, test, classes, scaling, columns, own: Some(own) };
    if whole {
        data.settle(&Agreement::of(&told, preparation)?, preparation)?;
    }
    Ok(data)
}

/// Refuses files whose columns are not those of the first.
fn same_columns(parts: &[Data], names: &[String]) -> Result<()> {
    let Some(first) = parts.first() else { return Ok(()) };
    for (data, name) in parts.iter().zip(names) {
        if let (Some(columns), Some(own)) = (&first.columns, &data.columns) {
            columns.order(&own.features).map_err(|error| different(error, name, &names[0]))?;
        }
        let (cols, found) = (first.train.cols(), data.train.cols());
        if found != cols {
            let message = format!("`{name}` has {found} features, and `{}` {cols}", names[0]);
            return Err(Error::data("data/shape-mismatch", message));
        }
    }
    Ok(())
}

/// The parameters with a node's name filled in.
fn filled(params: &Table, name: &str) -> Table {
    let fill = |value: &Value| match value {
        Value::String(text) => Value::String(text.replace(NODE, name)),
        other => other.clone(),
    };
    params.iter().map(|(key, value)| (key.clone(), fill(value))).collect()
}

/// Says how many rows have classes that the experiment does not list.
fn left_out(raw: &Raw, preparation: &Preparation, name: &str) -> Option<String> {
    let listed: Vec<String> =
        preparation.classes.iter().flatten().map(ToString::to_string).collect();
    let is_listed = |class: &Class| listed.contains(&class.name) || listed.contains(&class.code);
    let mut counts = vec![0; raw.classes.len()];
    let parts = std::iter::once(&raw.train).chain(&raw.test);
    parts.flat_map(|part| &part.labels).for_each(|&label| counts[label as usize] += 1);
    let out: Vec<(&str, usize)> = (raw.classes.iter().zip(counts))
        .filter(|(class, rows)| *rows > 0 && !is_listed(class))
        .map(|(class, rows)| (class.name.as_str(), rows))
        .collect();
    let mut names: Vec<String> = out.iter().take(5).map(|(name, _)| format!("`{name}`")).collect();
    if out.len() > names.len() {
        names.push("…".into());
    }
    let rows: usize = out.iter().map(|(_, rows)| rows).sum();
    (rows > 0).then(|| {
        let (s, are) = if rows == 1 { ("", "is") } else { ("s", "are") };
        format!(
            "{rows} row{s} of `{name}` {are} left out, because `classes` does not list {}",
            names.join(", ")
        )
    })
}

/// The table with the classes that it has no rows of.
fn with_classes(mut raw: Raw, preparation: &Preparation) -> Raw {
    for class in preparation.classes.iter().flatten().map(ToString::to_string) {
        if !raw.classes.iter().any(|known| known.name == class || known.code == class) {
            raw.classes.push(Class { code: class.clone(), name: class });
        }
    }
    raw
}

/// The error for a file whose columns are not those of the first.
fn different(error: Error, name: &str, first: &str) -> Error {
    let message = format!("the file of `{name}` differs from that of `{first}`: {}", error.message);
    Error { message, ..error }.at(name)
}

/// Joins the nodes' sets, and notes which rows belong to which node.
pub(super) fn joined(sets: Vec<Dataset>, here: &Range<usize>, nodes: usize) -> Dataset {
    let mut ranges = vec![0..0; nodes];
    let (mut labels, mut parts) = (Vec::new(), Vec::new());
    for (node, set) in here.clone().zip(&sets) {
        let start = labels.len() as u32;
        labels.extend_from_slice(set.labels());
        ranges[node] = start..labels.len() as u32;
        parts.push(set.features());
    }
    Dataset::new(Features::stacked(&parts), labels).owned(ranges)
}
