//! Which rows each node's model is judged on.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use lopa::data::{Features, NewRows};
use lopa::error::{Error, Result};
use lopa::folder::model::Model;
use lopa::folder::serve::{Answers, Truth};

use crate::commands::finished::{LabelArgs, WhoseArgs, homes, rows_for};
use crate::output::Output;

/// Where a node's name belongs in the name of a file.
const NODE: &str = "{node}";

/// Rows with known classes or numbers.
pub struct Rows {
    pub features: Features<f64>,
    pub answers: Answers,
}

/// A node, and the rows that its model is judged on.
pub struct Share {
    pub node: usize,
    pub rows: Rc<Rows>,
}

/// The shares of all nodes.
pub struct Shares {
    pub each: Vec<Share>,
    /// Whether every row belongs to the node that is judged on it.
    pub own: bool,
    /// All rows, each counted once.
    pub rows: usize,
}

/// The options of the command line.
pub struct Asked<'a> {
    pub input: &'a Path,
    pub node: Option<&'a str>,
    pub all_nodes: bool,
    pub label: &'a LabelArgs,
    pub whose: &'a WhoseArgs,
}

impl Shares {
    /// One file per node, the rows of each node by the column of groups, or all rows for each node.
    pub fn of(model: &Model, asked: &Asked, output: &Output) -> Result<Shares> {
        let nodes = match asked.node {
            None => (0..model.x.len()).collect(),
            Some(wanted) => vec![model.node(Some(wanted))?],
        };
        if asked.input.to_string_lossy().contains(NODE) {
            return Shares::by_file(model, &nodes, asked, output);
        }
        let rows = asked.read(model, asked.input, output)?;
        if let (None, false, Some(groups)) = (asked.node, asked.all_nodes, &rows.groups) {
            let homes = homes(model, groups, asked.input)?;
            return Shares::by_column(model, &rows, &homes).map_err(|e| e.at(place(asked.input)));
        }
        let count = rows.features.rows();
        let rows = Rows::of(model, rows).map_err(|error| error.at(place(asked.input)))?;
        let rows = Rc::new(rows);
        let share = |node| Share { node, rows: rows.clone() };
        let each: Vec<Share> = nodes.into_iter().map(share).collect();
        if each.len() > 1 && !asked.all_nodes {
            output.note(
                "no column says whose rows these are: every node's model is judged on all of them \
                 (--nodes-from COLUMN names one)",
            );
        }
        Ok(Shares { each, own: false, rows: count })
    }

    fn by_file(model: &Model, nodes: &[usize], asked: &Asked, output: &Output) -> Result<Shares> {
        let mut each = Vec::new();
        for &node in nodes {
            let path = asked.input.to_string_lossy().replace(NODE, &model.name(node));
            let path = PathBuf::from(path);
            let rows = asked.read(model, &path, output)?;
            let rows = Rows::of(model, rows).map_err(|error| error.at(place(&path)))?;
            each.push(Share { node, rows: Rc::new(rows) });
        }
        let rows = each.iter().map(|share| share.rows.answers.rows()).sum();
        Ok(Shares { each, own: true, rows })
    }

    fn by_column(model: &Model, rows: &NewRows, homes: &[usize]) -> Result<Shares> {
        let labels = rows.labels.as_deref().unwrap_or_default();
        let mut each = Vec::new();
        for node in 0..model.x.len() {
            let own: Vec<u32> =
                (0..).zip(homes).filter(|(_, home)| **home == node).map(|(row, _)| row).collect();
            if own.is_empty() {
                continue;
            }
            let features = rows.features.select(&own);
            let labels: Vec<String> = own.iter().map(|&row| labels[row as usize].clone()).collect();
            let answers = Answers::new(&labels, &model.about.classes, model.about.target())?;
            each.push(Share { node, rows: Rc::new(Rows { features, answers }) });
        }
        Ok(Shares { each, own: true, rows: homes.len() })
    }

    /// Of the rows that decide a node's accuracy, the share of its most frequent class: the mean over
    /// nodes; and the class, if it is the same at all of them.
    pub fn majority(&self) -> Option<(Option<usize>, f64)> {
        let all: Vec<(usize, f64)> =
            self.each.iter().filter_map(|share| share.rows.truth()?.majority()).collect();
        let &(first, _) = all.first()?;
        let same = all.iter().all(|(class, _)| *class == first);
        let mean = all.iter().map(|(_, share)| share).sum::<f64>() / all.len() as f64;
        Some((same.then_some(first), mean))
    }

    /// Every truth about classes once.
    pub fn truths(&self) -> impl Iterator<Item = &Truth> {
        let count = if self.own { self.each.len() } else { 1 };
        self.each.iter().take(count).filter_map(|share| share.rows.truth())
    }
}

impl Rows {
    fn of(model: &Model, rows: NewRows) -> Result<Rows> {
        let labels = rows.labels.as_deref().unwrap_or_default();
        let answers = Answers::new(labels, &model.about.classes, model.about.target())?;
        Ok(Rows { features: rows.features, answers })
    }

    /// The classes, if the answers are classes.
    fn truth(&self) -> Option<&Truth> {
        match &self.answers {
            Answers::Classes(truth) => Some(truth),
            Answers::Numbers(_) | Answers::Survival(_) => None,
        }
    }
}

fn place(path: &Path) -> String {
    path.display().to_string()
}

impl Asked<'_> {
    /// The rows of a file, which must have labels.
    fn read(&self, model: &Model, path: &Path, output: &Output) -> Result<NewRows> {
        let rows = rows_for(&model.about, path, (self.label, self.whose), output)?;
        match rows.labels {
            Some(_) => Ok(rows),
            None => Err(Error::data("data/no-labels", "the file has no labels to compare with")
                .at(path.display().to_string())
                .hint("add a column of labels, or predict them with `lopa predict`")),
        }
    }
}
