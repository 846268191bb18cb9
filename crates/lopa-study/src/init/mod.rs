//! A first experiment on a user's own data: inspects the data, chooses a problem, writes a commented
//! file without step sizes, which algorithms find themselves, and tries it.

mod columns;
mod look;
mod narrow;
mod text;

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::{Table, Value};

use crate::choose::{self, Ended};
use look::Look;
use lopa::config::Source;
use lopa::data::{Data, Raw, Targets, Where, check_spelling, parsed_label};
use lopa::error::{Error, Kind, Result};
use lopa::experiment::{Exactly, Experiment, FinalTheta, Registries};
use lopa::run::Context;
use lopa::run::trace::baseline_of;

/// The user's request.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// A file, a folder with a file for each node, or such files.
    pub data: Vec<PathBuf>,
    /// The columns to predict, by name or number.
    pub label: Vec<String>,
    /// The column that names each row's group.
    pub nodes_from: Option<String>,
    /// Columns to leave out, by name or number.
    pub drop: Vec<String>,
    /// The classes, in their order, if they are not those that occur.
    pub classes: Vec<String>,
    /// The number of features of LIBSVM files, if it is not that of the widest.
    pub features: Option<usize>,
    /// The number of nodes.
    pub nodes: Option<usize>,
    /// The problem.
    pub problem: Option<String>,
    /// The privacy budget of each row, if rows are to be protected.
    pub epsilon: Option<f64>,
}

/// The experiment file, and the findings behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The name of the experiment.
    pub name: String,
    /// The file.
    pub text: String,
    /// What the data are.
    pub facts: Facts,
    /// The guesses, and how to override them.
    pub guesses: Vec<String>,
    /// The result of a trial of the file: each algorithm's accuracy, R² or concordance on held-out rows, the
    /// mean over nodes and seeds.
    pub tried: Vec<(String, f64)>,
    /// The same of always naming each node's most frequent class, or the mean of its numbers, as in the
    /// results of a run.
    pub baseline: Option<f64>,
}

/// A progress event of the search for an experiment.
#[derive(Debug)]
pub enum Heard<'a> {
    /// Its current step.
    Doing(&'a str),
    /// The file as it would be now, if the search had to stop.
    Draft(Written),
}

/// What the data are.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Rows of all files.
    pub rows: usize,
    /// Features.
    pub features: usize,
    /// What the labels are.
    pub predicted: Predicted,
    /// Whether the file lists the classes.
    pub listed: bool,
    /// Whether some cells have no value.
    pub missing: bool,
    /// Nodes of the experiment.
    pub nodes: usize,
    /// Whether most features of a row are zero, and left out.
    pub sparse: bool,
}

/// What the labels are.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicted {
    /// Classes, by name, with their numbers of rows.
    Classes(Vec<(String, usize)>),
    /// Numbers: the lowest, mean and highest of each column.
    Numbers(Vec<[f64; 3]>),
    /// Times and events.
    Survival {
        /// The lowest, mean and highest time.
        times: [f64; 3],
        /// Rows in which an event was seen.
        events: usize,
    },
}

/// The number of nodes for a file without groups.
const NODES: usize = 8;

/// The fewest rows per node.
const ROWS_PER_NODE: usize = 20;

/// The most nodes made from the groups of one file.
const MOST_NODES: usize = 64;

/// More distinct values than this are hardly labels.
const MOST_CLASSES: usize = 200;

/// Trials use only as many rows and columns of wide tables as give θ at most this many entries.
const TRIAL_WEIGHTS: usize = 200_000;

/// Inspects the data, writes the experiment and tries it.
pub fn init(
    wish: &Wish,
    registries: &Registries,
    context: &Context,
    hear: &dyn Fn(Heard),
) -> Result<Written> {
    hear(Heard::Doing("reading the data ..."));
    let mut look = Look::at(wish)?;
    let facts = facts(&mut look, wish, registries, context).map_err(|mut error| {
        let guessed = wish.label.is_empty() && error.id == "data/bad-label";
        if let Some(hint) = error.hint.as_mut().filter(|_| guessed) {
            hint.push_str("; this column was only guessed to be the label: --label names another");
        }
        error
    })?;
    let mut plan = text::Plan::new(look, facts, wish);
    let mut best: Option<(f64, Written)> = None;
    let mut tried = Vec::new();
    let mut failed = None;
    for problem in plan.problems.clone() {
        plan.problem = problem;
        let attempted = attempt(&mut plan, registries, context, &|heard| match heard {
            // The first that can be run is better than none; later ones must be better than it.
            Heard::Draft(_) if best.is_some() => {}
            heard => hear(heard),
        });
        let (accuracy, written) = match attempted {
            Ok(found) => found,
            Err(error) if error.id == "init/interrupted" => return Err(error),
            // Some need more rows at every node than others.
            Err(error) => {
                failed = failed.or(Some(error));
                continue;
            }
        };
        tried.push(format!("{} {accuracy:.3}", plan.problem));
        if best.as_ref().is_none_or(|(least, _)| accuracy > *least) {
            hear(Heard::Draft(written.clone()));
            best = Some((accuracy, written));
        }
    }
    let Some((_, mut written)) = best else {
        return Err(failed.expect("at least one problem is tried"));
    };
    if tried.len() > 1 {
        let said = format!(
            "problem: the better one on held-out rows ({}); choose with --problem",
            tried.join(", ")
        );
        written.guesses.push(said);
    }
    Ok(written)
}

/// Tries the plan: the accuracy, R² or concordance of its first algorithm on held-out rows, 0 if it is not measured.
fn attempt(
    plan: &mut text::Plan,
    registries: &Registries,
    context: &Context,
    hear: &dyn Fn(Heard),
) -> Result<(f64, Written)> {
    let known = registries.problems.choose(&plan.problem, &Table::new());
    plan.refits = known.is_ok_and(|problem| problem.build.get::<f64>().transfers());
    let (mut experiment, data) = trial(plan, registries, context)?;
    let written = plan.written();
    Experiment::read(&Source::new(&written.name[..], &written.text[..]), registries)?;
    hear(Heard::Draft(written.clone()));
    if plan.epsilon.is_some() {
        // A trial would measure the rows without noise.
        return Ok((0.0, written));
    }
    let data = data.map(|data| narrow::narrow(data, plan.facts.nodes, TRIAL_WEIGHTS));
    hear(Heard::Doing("trying it on these data ..."));
    (experiment.run.evaluations, experiment.run.exact) = (1, Exactly::Never);
    experiment.run.final_theta = FinalTheta::Solved;
    let runs = choose::run(&experiment, data.as_ref(), context, &mut ());
    let runs = runs.map_err(|error| match error.id {
        "run/interrupted" => {
            Error::new(Kind::Run, "init/interrupted", "interrupted: nothing was written")
        }
        "run/diverged" => lost(),
        _ => error,
    })?;
    let (tried, baseline) = measured(&experiment, &runs);
    let score = tried.first().map_or(0.0, |(_, score)| *score);
    Ok((score, Written { tried, baseline, ..written }))
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
        let said = match plan.epsilon {
            None => {
                "held-out rows: a fifth of all, common to the nodes, since some node has a single row"
            }
            Some(_) => "held-out rows: none, since some node has a single row",
        };
        plan.look.guesses.push(said.into());
        (drawn, experiment, data) = read(plan)?;
    }
    drawn.map(|()| (experiment, data))
}

/// Rows, features and classes of all files. Where LIBSVM files differ in width, the widest counts.
fn facts(
    look: &mut Look,
    wish: &Wish,
    registries: &Registries,
    context: &Context,
) -> Result<Facts> {
    let raws = match read(look, registries, context) {
        // A feature 0 in a LIBSVM file.
        Err(error) if error.id == "data/bad-index" && !look.data.contains_key("zero_based") => {
            look.data.insert("zero_based".into(), true.into());
            let raws = read(look, registries, context).map_err(|other| match other.id {
                "data/bad-index" => error,
                _ => other,
            })?;
            look.guesses.push("features are numbered from 0 (`zero_based = true`)".into());
            raws
        }
        raws => raws?,
    };
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for raw in &raws {
        let mut counts = vec![0; raw.classes.len()];
        raw.train.labels.iter().for_each(|&label| counts[label as usize] += 1);
        for (class, count) in raw.classes.iter().zip(counts) {
            *counted.entry(class.name.clone()).or_default() += count;
        }
    }
    let mut classes: Vec<(String, usize)> = counted.into_iter().collect();
    let number = |name: &str| name.parse::<f64>().unwrap_or(f64::INFINITY);
    classes.sort_by(|(a, _), (b, _)| number(a).total_cmp(&number(b)).then(a.cmp(b)));
    let rows: usize = raws.iter().map(|raw| raw.train.labels.len()).sum();
    let predicted = predicted(look, wish, classes, (rows, raws[0].outputs))?;
    let features = raws.iter().map(|raw| raw.train.table.cols()).max().unwrap_or(0);
    if look.nodes.is_some() && look.data.get("name").and_then(Value::as_str) == Some("libsvm") {
        let width = |raw: &Raw| raw.train.table.cols() + raw.unnamed.dropped.len();
        let width = raws.iter().map(width).max().unwrap_or(0);
        look.data.insert("features".into(), Value::Integer(width as i64));
    }
    let groups = raws[0].groups.len();
    let nodes = match (&look.nodes, wish.nodes) {
        (Some(files), _) => files.len(),
        (None, Some(nodes)) => nodes,
        (None, None) if groups > 0 => groups.min(MOST_NODES),
        (None, None) => NODES.min(rows / ROWS_PER_NODE).max(2),
    };
    let sparse = raws[0].train.table.is_sparse();
    let listed = look.nodes.is_some() || !wish.classes.is_empty() || wish.epsilon.is_some();
    let listed = listed && matches!(predicted, Predicted::Classes(_));
    let missing = raws.iter().any(|raw| raw.missing.is_some());
    if missing {
        look.guesses.push(
            "missing values: filled by the mean of their column (`missing = \"mean\"`)".into(),
        );
    }
    Ok(Facts { rows, features, predicted, listed, missing, nodes, sparse })
}

/// What the labels are; `found` are their different values, each with its number of rows.
fn predicted(
    look: &mut Look,
    wish: &Wish,
    found: Vec<(String, usize)>,
    (rows, outputs): (usize, usize),
) -> Result<Predicted> {
    if outputs > 1 && !wish.classes.is_empty() {
        return Err(Error::config("config/no-meaning", "several labels are numbers, not classes")
            .at("--classes")
            .hint("leave it out, or name one column with --label"));
    }
    if outputs > 1 {
        return several(look, &found, (rows, outputs));
    }
    if !wish.classes.is_empty() {
        return listed(&wish.classes, &found).map(Predicted::Classes);
    }
    if let Some(range) = numbers(&found, rows) {
        look.guesses.push(format!(
            "predicts numbers (`target = \"number\"`), since the label has {} different ones in \
             {rows} rows; if they are classes, list them with --classes",
            found.len()
        ));
        return Ok(Predicted::Numbers(vec![range]));
    }
    check_classes(look, &found, rows)?;
    Ok(Predicted::Classes(found))
}

/// Two labels, of which the first is a time and the second is 0 or 1, or several numbers.
fn several(
    look: &mut Look,
    found: &[(String, usize)],
    (rows, outputs): (usize, usize),
) -> Result<Predicted> {
    let labels = found.iter().map(|(label, rows)| Ok((parsed_label(label, outputs)?, *rows)));
    let labels: Vec<(Vec<f64>, usize)> =
        labels.collect::<Result<_>>().map_err(|error: Error| error.at(look.place()))?;
    let of = |at: usize| range(labels.iter().map(|(label, rows)| (label[at], *rows)), rows);
    let values = labels.iter().flat_map(|(label, _)| label).copied().collect();
    if (Targets { outputs, values }).check_survival().is_err() {
        look.guesses.push(format!("predicts {outputs} numbers (`target = \"number\"`)"));
        return Ok(Predicted::Numbers((0..outputs).map(of).collect()));
    }
    let events = labels.iter().filter(|(label, _)| label[1] == 1.0).map(|(_, rows)| rows).sum();
    if events == 0 {
        let message = format!("no event is seen in {rows} rows: the second label is 0 in all");
        return Err(Error::data("data/bad-label", message).at(look.place()).hint(
            "it should be 1 in the rows in which the event was seen at the time of the first",
        ));
    }
    look.guesses.push(
        "predicts the risk of an event (`target = \"survival\"`), since the second label is 0 or 1; if \
         both are numbers to predict, write `target = \"number\"`"
            .into(),
    );
    Ok(Predicted::Survival { times: of(0), events })
}

/// The lowest, mean and highest of numbers, each with its rows.
fn range(numbers: impl Iterator<Item = (f64, usize)>, rows: usize) -> [f64; 3] {
    let (mut low, mut sum, mut high) = (f64::INFINITY, 0.0, f64::NEG_INFINITY);
    for (number, rows) in numbers {
        (low, high) = (low.min(number), high.max(number));
        sum += number * rows as f64;
    }
    [low, sum / rows as f64, high]
}

/// Reads all files.
fn read(look: &Look, registries: &Registries, context: &Context) -> Result<Vec<Raw>> {
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
    match &look.nodes {
        None => Ok(vec![read(None)?]),
        Some(nodes) => nodes.iter().map(|node| read(Some(node)).map_err(|e| e.at(node))).collect(),
    }
}

/// Real numbers with more distinct values than this are numbers to predict.
const MAX_REAL: usize = 20;

/// More distinct values than this, with fewer than [`ROWS_EACH`] rows each on average, are numbers to
/// predict, if they are numbers.
const MANY: usize = 50;

/// See [`MANY`].
const ROWS_EACH: usize = 10;

/// The lowest, mean and highest label, if labels look like numbers to predict and not like classes.
fn numbers(labels: &[(String, usize)], rows: usize) -> Option<[f64; 3]> {
    let number = |(name, rows): &(String, usize)| Some((name.parse::<f64>().ok()?, *rows));
    let all: Vec<(f64, usize)> = labels.iter().map(number).collect::<Option<_>>()?;
    let count = all.len();
    let real = all.iter().any(|(value, _)| value.fract() != 0.0);
    let real = real && (count > MAX_REAL || count > 4 && 2 * count > rows);
    let many =
        count > MANY && rows < ROWS_EACH * count || count > MOST_CLASSES.min(rows / 2).max(2);
    (real || many).then(|| range(all.into_iter(), rows))
}

/// Refuses labels that are not classes, or that are different spellings of one class.
fn check_classes(look: &Look, classes: &[(String, usize)], rows: usize) -> Result<()> {
    check_spelling(classes).map_err(|error| {
        let hint =
            "write one of them throughout; if they are different classes, list all with --classes";
        Error { hint: Some(hint.into()), ..error }
    })?;
    if (2..=MOST_CLASSES.min(rows / 2).max(2)).contains(&classes.len()) {
        return Ok(());
    }
    let column = look.data.get("label");
    let column = column.map_or("the label".into(), |label| format!("the label, column {label},"));
    let message = format!("{column} has {} different values in {rows} rows", classes.len());
    Err(Error::data("data/bad-label", message)
        .at(look.place())
        .hint("it should name a few classes, or be a number: choose another column with --label"))
}

/// The classes that the user lists, with their rows; others are refused when the file is read.
fn listed(names: &[String], found: &[(String, usize)]) -> Result<Vec<(String, usize)>> {
    let mut classes: Vec<(String, usize)> = Vec::new();
    for name in names {
        let rows = found.iter().find(|(known, _)| known == name).map_or(0, |(_, rows)| *rows);
        classes.push((name.clone(), rows));
    }
    match classes.len() {
        0 | 1 => Err(Error::config("config/out-of-range", "one class leaves nothing to learn")
            .at("--classes")
            .hint("list all, separated by commas: --classes benign,malignant")),
        _ => Ok(classes),
    }
}

/// The accuracy, R² or concordance of each algorithm, and of the majority class or the mean: means over nodes and
/// seeds.
fn measured(experiment: &Experiment, runs: &[Ended]) -> (Vec<(String, f64)>, Option<f64>) {
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let known = |name: &&&str| runs.iter().any(|run| run.outcome.row.value(name).is_some());
    let measures = [
        "holdout_accuracy",
        "test_accuracy",
        "holdout_r2",
        "test_r2",
        "holdout_concordance",
        "test_concordance",
    ];
    let Some(name) = measures.iter().find(known) else {
        return (Vec::new(), None);
    };
    let of = |label: &str| {
        let own = runs.iter().filter(|run| run.outcome.algorithm == label);
        mean(own.filter_map(|run| run.outcome.row.value(name)).collect())
    };
    let tried = experiment.algorithms.iter().map(|spec| (spec.label.clone(), of(&spec.label)));
    let baseline = baseline_of(name).map(|baseline| {
        mean(runs.iter().filter_map(|run| run.outcome.row.value(&baseline)).collect())
    });
    (tried.collect(), baseline)
}

fn lost() -> Error {
    Error::new(Kind::Run, "init/no-steps", "a trial run on these data diverged").hint(
        "are there values that are not finite or very large? `lopa data stats FILE` shows them",
    )
}

/// How rows are prepared; nodes with files of their own agree on the scaling.
fn preparation(facts: &Facts, private: bool) -> Table {
    let mut keys = Table::new();
    let target = match facts.predicted {
        Predicted::Classes(_) => None,
        Predicted::Numbers(_) => Some("number"),
        Predicted::Survival { .. } => Some("survival"),
    };
    keys.extend(target.map(|target| ("target".to_string(), target.into())));
    if facts.missing {
        keys.insert("missing".into(), "mean".into());
    }
    if let (true, Predicted::Classes(classes)) = (facts.listed, &facts.predicted) {
        let classes = classes.iter().map(|(name, _)| match name.parse::<i64>() {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::String(name.clone()),
        });
        keys.insert("classes".into(), Value::Array(classes.collect()));
    }
    let scaling = match (private, facts.sparse) {
        (true, _) => "row",
        (false, true) => "unit",
        (false, false) => "standardise",
    };
    keys.insert("scaling".into(), scaling.into());
    keys
}
