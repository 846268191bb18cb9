//! A first experiment on somebody's own data: looks at it, chooses a problem, finds step sizes that
//! survive, and writes a commented file.

mod look;
mod text;

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use toml::{Table, Value};

use crate::practical::{self, Scheme, Steps};
use look::Look;
use lopa::algorithms::lopa::LopaParams;
use lopa::config::Source;
use lopa::data::{Data, Raw, Where};
use lopa::error::{Error, Kind, Result};
use lopa::experiment::{Exactly, Experiment, Registries};
use lopa::run::trace::Stop;
use lopa::run::{Context, Setup};

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
    /// What short trials of the file came to: each algorithm's accuracy on held-out rows, the mean
    /// over nodes and seeds.
    pub tried: Vec<(String, f64)>,
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

impl Facts {
    /// The accuracy of always naming the largest class.
    pub fn majority(&self) -> f64 {
        let largest = self.classes.iter().map(|(_, count)| *count).max().unwrap_or(0);
        largest as f64 / self.rows.max(1) as f64
    }
}

/// The nodes of a file that does not say whose rows are whose.
const NODES: usize = 8;

/// A node needs so many rows.
const ROWS_PER_NODE: usize = 20;

/// More nodes than groups are not made of one file.
const MOST_NODES: usize = 64;

/// Trials use at most so many rows.
const TRIAL_ROWS: usize = 4000;

/// More classes than these are hardly labels.
const MOST_CLASSES: usize = 200;

/// How often step sizes are halved when a trial diverges.
const HALVINGS: usize = 8;

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
    let trial = plan.trial(TRIAL_ROWS);
    let experiment = Experiment::read(&Source::new("init", trial), registries)?;
    let data = experiment.load_data(context)?;
    told("measuring curvature and trying step sizes ...");
    plan.steps = steps(&experiment, data.as_ref(), context)?;
    let mut tried = None;
    for _ in 0..HALVINGS {
        let experiment =
            Experiment::read(&Source::new("init", plan.trial(TRIAL_ROWS)), registries)?;
        tried = outcome(&experiment, data.as_ref(), context)?;
        if tried.is_some() {
            break;
        }
        plan.steps.alpha /= 2.0;
    }
    let Some(tried) = tried else { return Err(lost()) };
    let text = plan.text(None);
    Experiment::read(&Source::new(&plan.look.name[..], &text[..]), registries)?;
    let text::Plan { look, facts, .. } = plan;
    Ok(Written { name: look.name, text, facts, guesses: look.guesses, tried })
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

/// Step sizes for LoPA-GT that survive the whole length on several seeds.
fn steps(experiment: &Experiment, data: Option<&Data>, context: &Context) -> Result<Steps> {
    let seed = experiment.run.seeds[0];
    let world = experiment.world(data, seed)?;
    let setup = Setup { experiment, data, world: &world, seed, pool: context.pool };
    let spec = &experiment.algorithms[0];
    let params: LopaParams = spec.choice.typed().unwrap_or_default();
    let planned = experiment.run.iterations.unwrap_or(1);
    let point = practical::at_start(&setup, spec)?;
    let (scheme, own) = (Scheme::GradientTracking, Steps::of(&params));
    let found = practical::suggest(&setup, spec, scheme, &own, &[&point], planned)?;
    let steps = found.steps.ok_or_else(lost)?;
    // To two digits: more are meaningless and hard to read.
    let short = |value: f64| format!("{value:.1e}").parse().unwrap_or(value);
    let Steps { alpha, beta, lambda, .. } = steps;
    Ok(Steps { alpha: short(alpha), beta: short(beta), lambda: short(lambda), ..steps })
}

/// The accuracy of each algorithm; none if a run diverged.
fn outcome(
    experiment: &Experiment,
    data: Option<&Data>,
    context: &Context,
) -> Result<Option<Vec<(String, f64)>>> {
    let mut experiment = experiment.clone();
    (experiment.run.evaluations, experiment.run.exact) = (1, Exactly::Never);
    let outcomes = experiment.run_on(data, context, &mut (), &mut ())?;
    if context.interrupt.load(Ordering::Relaxed) {
        return Err(Error::new(Kind::Run, "init/interrupted", "interrupted: nothing was written"));
    }
    let mut tried = Vec::new();
    for algorithm in &experiment.algorithms {
        let own = outcomes.iter().filter(|outcome| outcome.algorithm == algorithm.label);
        let mut values = Vec::new();
        for outcome in own {
            if outcome.stop == Stop::Diverged {
                return Ok(None);
            }
            values.extend(outcome.row.value("test_accuracy"));
        }
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        tried.push((algorithm.label.clone(), mean));
    }
    Ok(Some(tried))
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
