//! A first experiment on somebody's own data: looks at it, chooses a problem, finds step sizes that
//! survive, and writes a commented file.

mod look;
mod text;

use std::path::PathBuf;

use toml::{Table, Value};

use crate::choose::{self, Course};
use look::Look;
use lopa::config::Source;
use lopa::data::{Data, Raw, Where};
use lopa::error::{Error, Kind, Result};
use lopa::experiment::{Exactly, Experiment, FinalTheta, Registries};
use lopa::run::Context;
use lopa::run::trace::majority_of;

/// What the user asks for.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// A file, a folder with a file for each node, or such files.
    pub data: Vec<PathBuf>,
    /// The column to predict, by name or number.
    pub label: Option<String>,
    /// The column that says whose row it is.
    pub nodes_from: Option<String>,
    /// The number of nodes.
    pub nodes: Option<usize>,
    /// The problem.
    pub problem: Option<String>,
}

/// The experiment file, and what led to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The name of the experiment.
    pub name: String,
    /// The file.
    pub text: String,
    /// What the data are.
    pub facts: Facts,
    /// What was guessed, and how to say otherwise.
    pub guesses: Vec<String>,
    /// What a trial of the file came to: each algorithm's accuracy on held-out rows, the mean over
    /// nodes and seeds.
    pub tried: Vec<(String, f64)>,
    /// What nodes get there by always naming their most frequent class, as in the results of a run.
    pub majority: Option<f64>,
}

/// What the data are.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Rows of all files.
    pub rows: usize,
    /// Features.
    pub features: usize,
    /// The classes, by name, with their numbers of rows.
    pub classes: Vec<(String, usize)>,
    /// Nodes of the experiment.
    pub nodes: usize,
    /// Whether most features of a row are zero, and left out.
    pub sparse: bool,
}

/// The nodes of a file that does not say whose rows are whose.
const NODES: usize = 8;

/// A node needs so many rows.
const ROWS_PER_NODE: usize = 20;

/// More nodes than groups are not made of one file.
const MOST_NODES: usize = 64;

/// More classes than these are hardly labels.
const MOST_CLASSES: usize = 200;

/// Looks at the data, tries step sizes and writes the experiment.
pub fn init(
    wish: &Wish,
    registries: &Registries,
    context: &Context,
    told: &dyn Fn(&str),
) -> Result<Written> {
    let look = Look::at(wish)?;
    told("reading the data ...");
    let facts = facts(&look, wish, registries, context)?;
    let mut plan = text::Plan::new(look, facts, wish);
    let problem = registries.problems.choose(&plan.problem, &Table::new());
    plan.refits = problem.is_ok_and(|problem| problem.build.get::<f64>().transfers());
    let (mut experiment, data) = trial(&mut plan, registries, context)?;
    told("measuring curvature and trying step sizes ...");
    let steps = choose::steps(&experiment, data.as_ref(), context)?;
    choose::set(&mut experiment, &steps)?;
    (experiment.run.evaluations, experiment.run.exact) = (1, Exactly::Never);
    experiment.run.final_theta = FinalTheta::Solved;
    let courses = choose::run(&mut experiment, data.as_ref(), context, &mut (), choose::HALVINGS);
    let courses = courses.map_err(|error| match error.id {
        "run/interrupted" => {
            Error::new(Kind::Run, "init/interrupted", "interrupted: nothing was written")
        }
        "run/diverged" => lost(),
        _ => error,
    })?;
    plan.steps = choose::steps_of(&experiment);
    let text = plan.text(None);
    Experiment::read(&Source::new(&plan.look.name[..], &text[..]), registries)?;
    let (tried, majority) = measured(&experiment, &courses);
    let text::Plan { look, facts, .. } = plan;
    Ok(Written { name: look.name, text, facts, guesses: look.guesses, tried, majority })
}

/// The experiment of the plan on some of its rows, and its data. Nodes that are too small hold no rows out.
fn trial(
    plan: &mut text::Plan,
    registries: &Registries,
    context: &Context,
) -> Result<(Experiment, Option<Data>)> {
    let read = |plan: &text::Plan| {
        let text = plan.trial(choose::TRIAL_ROWS);
        let experiment = Experiment::read(&Source::new("init", text), registries)?;
        let data = experiment.load_data(context)?;
        let world = experiment.world(data.as_ref(), experiment.run.seeds[0]);
        Ok((world.map(|_| ()), experiment, data))
    };
    let (mut drawn, mut experiment, mut data) = read(plan)?;
    if drawn.as_ref().is_err_and(|error| error.id == "partition/too-few-samples") {
        plan.holdout = false;
        let said =
            "held-out rows: a fifth of all, common to the nodes, since some node has a single row";
        plan.look.guesses.push(said.into());
        (drawn, experiment, data) = read(plan)?;
    }
    drawn.map(|()| (experiment, data))
}

/// Rows, features and classes of all files.
fn facts(look: &Look, wish: &Wish, registries: &Registries, context: &Context) -> Result<Facts> {
    let place = Where { directory: context.data_dir.clone(), seed: 0 };
    let read = |node: Option<&String>| -> Result<Raw> {
        let mut params: Table = look.data.clone();
        let name = params.remove("name");
        let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
        if let (Some(node), Some(Value::String(path))) = (node, params.get_mut("path")) {
            *path = path.replace("{node}", node);
        }
        (registries.sources.choose(name, &params)?.build)(&place)
    };
    let mut raws = Vec::new();
    match &look.nodes {
        None => raws.push(read(None)?),
        Some(nodes) => {
            for node in nodes {
                raws.push(read(Some(node)).map_err(|error| error.at(node))?);
            }
        }
    }
    let mut classes: Vec<(String, usize)> = Vec::new();
    for raw in &raws {
        for &label in raw.train.labels.iter() {
            let name = &raw.classes[label as usize].name;
            match classes.iter_mut().find(|(known, _)| known == name) {
                Some((_, count)) => *count += 1,
                None => classes.push((name.clone(), 1)),
            }
        }
    }
    let number = |name: &str| name.parse::<f64>().unwrap_or(f64::INFINITY);
    classes.sort_by(|(a, _), (b, _)| number(a).total_cmp(&number(b)).then(a.cmp(b)));
    let rows: usize = raws.iter().map(|raw| raw.train.labels.len()).sum();
    if classes.len() < 2 || classes.len() > MOST_CLASSES.min(rows / 2).max(2) {
        let column = look
            .data
            .get("label")
            .map_or("the label".into(), |label| format!("the label, column {label},"));
        let message = format!("{column} has {} different values in {rows} rows", classes.len());
        return Err(Error::data("data/bad-label", message)
            .hint("it should name a few classes: choose another column with --label"));
    }
    let groups = raws[0].groups.len();
    let nodes = match (&look.nodes, wish.nodes) {
        (Some(files), _) => files.len(),
        (None, Some(nodes)) => nodes,
        (None, None) if groups > 0 => groups.min(MOST_NODES),
        (None, None) => NODES.min(rows / ROWS_PER_NODE).max(2),
    };
    let features = raws[0].train.table.cols();
    let sparse = raws[0].train.table.is_sparse();
    Ok(Facts { rows, features, classes, nodes, sparse })
}

/// The accuracy of each algorithm, and of the majority class: means over nodes and seeds.
fn measured(experiment: &Experiment, courses: &[Course]) -> (Vec<(String, f64)>, Option<f64>) {
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let known = |name: &&&str| courses.iter().any(|run| run.outcome.row.value(name).is_some());
    let Some(name) = ["holdout_accuracy", "test_accuracy"].iter().find(known) else {
        return (Vec::new(), None);
    };
    let of = |label: &str| {
        let own = courses.iter().filter(|run| run.outcome.algorithm == label);
        mean(own.filter_map(|run| run.outcome.row.value(name)).collect())
    };
    let tried = experiment.algorithms.iter().map(|spec| (spec.label.clone(), of(&spec.label)));
    let majority = majority_of(name).map(|majority| {
        mean(courses.iter().filter_map(|run| run.outcome.row.value(&majority)).collect())
    });
    (tried.collect(), majority)
}

fn lost() -> Error {
    Error::new(Kind::Run, "init/no-steps", "no step sizes were found that survive").hint(
        "are there values that are not finite or very large? `lopa data stats FILE` shows them",
    )
}

/// How rows are prepared; nodes with files of their own agree on the scaling.
fn preparation(look: &Look, facts: &Facts) -> Table {
    let mut keys = Table::new();
    if look.nodes.is_some() {
        let classes = facts.classes.iter().map(|(name, _)| match name.parse::<i64>() {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::String(name.clone()),
        });
        keys.insert("classes".into(), Value::Array(classes.collect()));
    }
    let scaling = if facts.sparse { "unit" } else { "standardise" };
    keys.insert("scaling".into(), scaling.into());
    keys
}
