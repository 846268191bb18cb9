//! Data with files of each node's own: a process reads only those of its nodes.

use std::ops::Range;

use toml::{Table, Value};

use super::agreement::{Agreement, Told};
use super::labels::{Unlisted, unlisted};
use super::prepare::{NODE, check_fill, prepare_own};
use super::source::{Class, Raw, SourceBuild, Where};
use super::{ClassName, Data, Dataset, Features, Method, Preparation, Scalings};
use crate::config::{Choice, Registry};
use crate::error::{Error, Fault, Result};

impl Preparation {
    /// Where nodes have files of their own, settings that depend on all rows must be in the
    /// experiment file.
    pub(super) fn check_nodes(&self) -> Result<(), Fault> {
        self.check_groups()?;
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
        let known = self.classes.is_some() || self.predicts_numbers();
        Fault::without(known, "classes", must)
    }

    fn check_groups(&self) -> Result<(), Fault> {
        let Some(names) = &self.group_names else { return Ok(()) };
        let shown = format!("{names:?}");
        let must = "left out, or go with `nodes`: one file has all its groups";
        Fault::unless(self.nodes.is_some(), "group_names", &shown, must)?;
        let twice = (1..names.len()).any(|at| names[..at].contains(&names[at]));
        let must = "a list of different names";
        Fault::unless(!names.is_empty() && !twice, "group_names", &shown, must)
    }

    /// The table with the groups in the order of `group_names`; without the list, with no groups.
    fn with_groups(&self, mut raw: Raw, node: &str) -> Result<Raw> {
        let Some(names) = &self.group_names else {
            raw.groups.clear();
            raw.parts_mut().for_each(|part| part.groups.clear());
            return Ok(raw);
        };
        if raw.groups.is_empty() {
            return Err(Error::config("config/no-meaning", "the rows have no groups")
                .at("data.group_names")
                .hint("name their column: `group = \"source\"` in [data]"));
        }
        let number = |group: &String| {
            names.iter().position(|name| name == group).map(|at| at as u32).ok_or_else(|| {
                let message = format!("the file of `{node}` has a group `{group}`");
                Error::data("data/unknown-group", message)
                    .at("data.group_names")
                    .hint(format!("list it, or correct the file: listed are {}", names.join(", ")))
            })
        };
        let numbers = raw.groups.iter().map(number).collect::<Result<Vec<u32>>>()?;
        for part in raw.parts_mut() {
            part.groups.iter_mut().for_each(|group| *group = numbers[*group as usize]);
        }
        raw.groups.clone_from(names);
        Ok(raw)
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
    /// The message of each to the others before a run.
    pub told: Vec<Told>,
    /// Whether their columns are in the common order and their rows scaled.
    pub settled: bool,
    /// The labels of each of them that `classes` does not list.
    pub unlisted: Vec<Vec<Unlisted>>,
    /// What fills the missing values of each of them; empty where none may be missing.
    pub fills: Vec<Vec<f64>>,
}

impl Own {
    /// Refuses labels of these nodes that are not listed: here they are known by name.
    pub fn judge(&self, files: &Preparation) -> Result<()> {
        let names = files.nodes.iter().flatten().skip(self.here.start);
        for (name, unlisted) in names.zip(&self.unlisted) {
            files.judge_unlisted(unlisted, Some(name)).map_err(|error| error.at("[data]"))?;
        }
        Ok(())
    }

    /// The messages of some of these nodes.
    pub fn told_by(&self, nodes: Range<usize>) -> impl Iterator<Item = &Told> {
        self.here.clone().zip(&self.told).filter(move |(node, _)| nodes.contains(node)).map(|t| t.1)
    }
}

/// Reads and prepares the files of some nodes, each alone. If these are all nodes, the data are
/// final; else they are after the [`Agreement`] with the others.
pub fn load(
    sources: &[Choice<SourceBuild>],
    preparation: &Preparation,
    nodes: &[String],
    here: Range<usize>,
    place: &Where,
) -> Result<Data> {
    let (mut parts, mut out) = (Vec::new(), Vec::new());
    let listed = preparation.classes.as_deref().unwrap_or_default();
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
        out.push(match preparation.predicts_numbers() {
            true => Vec::new(),
            false => unlisted(&raw, listed),
        });
        let raw = preparation.with_groups(with_classes(raw, preparation), name)?;
        // Where others have files too, all of them refuse together, and the rows may stay until then.
        let judged = preparation.judge_unlisted(&out[out.len() - 1], Some(name));
        let raw = match judged {
            Err(error) if here == (0..nodes.len()) => return Err(error),
            Err(_) => with_first_class(raw, listed),
            Ok(_) => raw,
        };
        parts.push(prepare_own(raw, &each, place.seed).map_err(|error| error.at(name))?);
    }
    let names = &nodes[here.clone()];
    same_columns(&parts, names)?;
    let tell = |(data, out): (&Data, &Vec<Unlisted>)| {
        Told::of(&data.train, data.columns.as_ref(), preparation, out)
    };
    let told: Vec<Told> = parts.iter().zip(&out).map(tell).collect();
    let of = |data: &Data| {
        let names = (data.classes.clone(), data.outputs.clone());
        (names, data.columns.clone(), data.unnamed.clone())
    };
    let ((classes, outputs), columns, unnamed) = parts.first().map(of).unwrap_or_default();
    let fills = parts.iter().map(|data| data.scaling.of(0).fill.clone()).collect();
    let (train, test): (Vec<_>, Vec<_>) = parts.into_iter().map(|d| (d.train, d.test)).unzip();
    let (train, test) =
        (Dataset::joined(train, &here, nodes.len()), Dataset::joined(test, &here, nodes.len()));
    let whole = here == (0..nodes.len());
    let own = Some(Own { here, told: told.clone(), settled: false, unlisted: out, fills });
    let (scaling, left_out) = (Scalings::default(), Vec::new());
    let survival = preparation.predicts_survival();
    let mut data =
        Data { train, test, classes, outputs, survival, scaling, columns, unnamed, own, left_out };
    if whole {
        data.settle(&Agreement::of(&told, preparation)?, preparation)?;
    }
    Ok(data)
}

/// Refuses files whose columns are not those of the first.
fn same_columns(parts: &[Data], names: &[String]) -> Result<()> {
    let Some(first) = parts.first() else { return Ok(()) };
    let widest = parts.iter().map(|data| data.train.cols()).max().unwrap_or(0);
    for (data, name) in parts.iter().zip(names) {
        if let (Some(columns), Some(own)) = (&first.columns, &data.columns) {
            columns.order(&own.features).map_err(|error| different(error, name, &names[0]))?;
        }
        let (cols, found) = (first.train.cols(), data.train.cols());
        if found != cols {
            let message = format!("`{name}` has {found} features, and `{}` {cols}", names[0]);
            let error = Error::data("data/shape-mismatch", message);
            return Err(match matches!(data.train.features(), Features::Sparse { .. }) {
                true => error.hint(format!(
                    "a LIBSVM file looks narrower if its last features are all zero: \
                     `features = {widest}` in [data] says how many there are"
                )),
                false => error.hint("all files need the same columns"),
            });
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

/// The table with the classes that it has no rows of.
fn with_classes(mut raw: Raw, preparation: &Preparation) -> Raw {
    for class in preparation.classes.iter().flatten().map(ToString::to_string) {
        if !raw.classes.iter().any(|known| known.name == class || known.code == class) {
            raw.classes.push(Class { code: class.clone(), name: class });
        }
    }
    raw
}

/// The table with the first class listed in place of all that are not.
fn with_first_class(mut raw: Raw, listed: &[ClassName]) -> Raw {
    let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
    let place =
        |class: &Class| listed.iter().position(|name| *name == class.name || *name == class.code);
    let first = raw.classes.iter().position(|class| place(class) == Some(0)).unwrap_or(0) as u32;
    let kept: Vec<bool> = raw.classes.iter().map(|class| place(class).is_some()).collect();
    for part in raw.parts_mut() {
        part.labels.iter_mut().filter(|label| !kept[**label as usize]).for_each(|l| *l = first);
    }
    raw
}

/// The error for a file whose columns are not those of the first.
fn different(error: Error, name: &str, first: &str) -> Error {
    let message = format!("the file of `{name}` differs from that of `{first}`: {}", error.message);
    Error { message, ..error }.at(name)
}
