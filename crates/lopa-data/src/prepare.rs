//! From a raw table to a data set: choose classes, hold rows out, draw samples, scale.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::given::MomentsOf;
use super::source::{Class, Part, Raw, SourceBuild, Table, Where};
use super::{
    Data, Dataset, Groups, Method, Scaling, Scalings, Stored, TargetScaling, Targets, labels,
};
use crate::config::{Choice, Params, Registry, Section};
use crate::error::{Error, Fault, Result, nearest};
use crate::math::random::{Purpose, Stream};

/// The placeholder for a node's name in a path.
pub(super) const NODE: &str = "{node}";

/// Whether a source's files depend on the node.
fn is_template(source: &Choice<SourceBuild>) -> bool {
    source.params().values().any(|value| value.as_str().is_some_and(|text| text.contains(NODE)))
}

/// How the data of any source are prepared; the keys stand beside those of the source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Preparation {
    /// What labels are: names of classes, which is the default, numbers to predict, or a time and an event.
    pub target: Option<TargetKind>,
    /// How cells of text tables without a value are filled; by default they are refused, as NaN in arrays
    /// always is.
    pub missing: Option<Missing>,
    /// Keep only these classes, in this order: the first becomes class 0.
    pub classes: Option<Vec<ClassName>>,
    /// The name of one class that all classes become which `classes` does not list.
    pub others: Option<String>,
    /// What becomes of rows whose label `classes` does not list; by default they are refused, and left
    /// out of published data sets, whose classes are known.
    pub unknown_labels: Option<UnknownLabels>,
    /// Use at most this many training rows, drawn without replacement.
    pub samples: Option<usize>,
    /// Share of every class held out for testing, if the source has no test set (0.2).
    pub test: Option<f64>,
    /// Share of every node's rows held out to measure it on its own distribution; none by default.
    pub holdout: Option<f64>,
    /// How features are scaled; the default depends on the source.
    pub scaling: Option<Method>,
    /// What features are scaled by, instead of the moments of all training rows: `own`, `agreed`, or
    /// given ones.
    pub moments: Option<MomentsOf>,
    /// Standardise only these feature columns, numbered from 0.
    pub columns: Option<Vec<usize>>,
    /// Whether to store only non-zero entries; the default is whatever is faster. Of pixels, products can skip those
    /// that are zero also where `scaling` subtracts a mean.
    pub sparse: Option<bool>,
    /// The names of nodes that have files of their own: `{node}` in the source's paths stands for the
    /// name.
    pub nodes: Option<Vec<String>>,
    /// The names in the column `group`, where nodes have files of their own: a file may lack some.
    pub group_names: Option<Vec<String>>,
}

/// What labels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// Names of classes.
    Class,
    /// Numbers to predict; a source may have several columns of them.
    Number,
    /// A time, and whether an event was seen then: two columns, the second 0 or 1.
    Survival,
}

/// How missing values are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// By the mean of the column's other values, over the training rows; where nodes have files of their
    /// own, over those of the node.
    Mean,
}

/// What becomes of rows whose label is not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnknownLabels {
    /// They are an error, at every node.
    Refuse,
    /// They are left out; every node says how many.
    Drop,
}

/// A class, by number or name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ClassName {
    /// As in `classes = [0, 1]`.
    Number(i64),
    /// As in `classes = ["dog", "horse"]`.
    Text(String),
}

impl fmt::Display for ClassName {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ClassName::Number(number) => number.fmt(out),
            ClassName::Text(text) => text.fmt(out),
        }
    }
}

/// The default share held out for testing.
const TEST_SHARE: f64 = 0.2;

/// The largest number of entries of a dense table: 8 GiB.
const MOST_DENSE: usize = 1 << 30;

/// Sparse products are faster up to this share of non-zero entries.
const SPARSE: f64 = 0.3;

// Indices of draws in the stream.
const HOLD_OUT: u64 = 0;
const SAMPLES: u64 = 1;

impl Params for Preparation {
    fn check(&self) -> Result<(), Fault> {
        let numbers = self.predicts_numbers();
        let must = "left out where labels are numbers (`target = \"number\"` or `\"survival\"`)";
        Fault::unless(!numbers || self.classes.is_none(), "classes", "[…]", must)?;
        let none = self.classes.as_ref().is_some_and(Vec::is_empty);
        Fault::unless(!none, "classes", "[]", "left out or name a class")?;
        let listed = self.unknown_labels.is_none() || self.classes.is_some();
        Fault::unless(listed, "unknown_labels", "…", "left out, or go with `classes`")?;
        self.check_others()?;
        Fault::unless(self.samples != Some(0), "samples", 0, "at least 1")?;
        let counts = self.scaling == Some(Method::TfIdf) && self.missing.is_some();
        Fault::unless(!counts, "missing", "\"mean\"", "left out with `scaling = \"tf-idf\"`")?;
        let test = self.test.unwrap_or(TEST_SHARE);
        Fault::unless((0.0..1.0).contains(&test), "test", test, "in [0, 1)")?;
        self.check_moments()?;
        let holdout = self.holdout.unwrap_or(0.5);
        Fault::unless(holdout > 0.0 && holdout < 1.0, "holdout", holdout, "in (0, 1)")?;
        self.check_nodes()
    }
}

impl Preparation {
    /// Whether labels are numbers, and not classes.
    pub fn predicts_numbers(&self) -> bool {
        self.target.is_some_and(|target| target != TargetKind::Class)
    }

    /// Whether labels are numbers that are scaled: times and events are not.
    pub fn scales_numbers(&self) -> bool {
        self.target == Some(TargetKind::Number)
    }

    fn check_others(&self) -> Result<(), Fault> {
        let Some(others) = &self.others else { return Ok(()) };
        let shown = format!("{others:?}");
        let fits = self.classes.is_some() && self.unknown_labels.is_none() && self.nodes.is_none();
        let must = "left out, or go with `classes` and without `unknown_labels` and `nodes`";
        Fault::unless(fits, "others", &shown, must)?;
        let mut listed = self.classes.iter().flatten().map(ClassName::to_string);
        Fault::unless(listed.all(|class| class != *others), "others", &shown, "a new name")
    }

    /// Makes one class of those that are not listed, if the section says so; the section that is then left.
    fn joined(&self, raw: &mut Raw) -> Result<Preparation> {
        let Some(others) = &self.others else { return Ok(self.clone()) };
        let listed = choose(&raw.classes, self.classes.as_deref())?;
        if raw.classes.iter().any(|class| class.name == *others || class.code == *others) {
            let message = format!("the data has a class `{others}` of its own");
            return Err(Error::config("data/unknown-class", message)
                .at("data.others")
                .hint("choose another name for the other classes"));
        }
        let one = raw.classes.len() as u32;
        for part in raw.parts_mut() {
            let unlisted = |label: &&mut u32| !listed.contains(&(**label as usize));
            part.labels.iter_mut().filter(unlisted).for_each(|label| *label = one);
        }
        raw.classes.push(Class { code: others.clone(), name: others.clone() });
        let mut classes = self.classes.clone().unwrap_or_default();
        classes.push(ClassName::Text(others.clone()));
        Ok(Preparation { classes: Some(classes), others: None, ..self.clone() })
    }

    /// Whether labels are times and events.
    pub fn predicts_survival(&self) -> bool {
        self.target == Some(TargetKind::Survival)
    }

    /// Takes the keys of preparation out of a section and leaves those of the source.
    pub fn take(section: &mut Section) -> Result<Preparation> {
        let keys = [
            "target",
            "missing",
            "classes",
            "others",
            "unknown_labels",
            "samples",
            "test",
            "holdout",
            "scaling",
            "moments",
            "nodes",
            "group_names",
        ];
        let places = keys.map(|key| (key, section.place_of(key)));
        let preparation = Preparation {
            target: section.value("target")?,
            missing: section.value("missing")?,
            classes: section.value("classes")?,
            others: section.value("others")?,
            unknown_labels: section.value("unknown_labels")?,
            samples: section.value("samples")?,
            test: section.value("test")?,
            holdout: section.value("holdout")?,
            scaling: section.value("scaling")?,
            moments: section.value("moments")?,
            columns: section.value("columns")?,
            sparse: section.value("sparse")?,
            nodes: section.value("nodes")?,
            group_names: section.value("group_names")?,
        };
        preparation.check().map_err(|fault| {
            let place = places.into_iter().find(|(key, _)| *key == fault.key);
            let error = Error::config("config/out-of-range", fault.message);
            error.at(place.map_or(section.place(), |(_, place)| place))
        })?;
        Ok(preparation)
    }
}

/// Reads a `[data]` section: a source by name with its parameters, and its preparation.
pub fn read(
    mut section: Section,
    sources: &Registry<SourceBuild>,
) -> Result<(Choice<SourceBuild>, Preparation)> {
    let (place, nodes_at) = (section.place(), section.place_of("nodes"));
    let preparation = Preparation::take(&mut section)?;
    let source = sources.read(section)?;
    match (preparation.nodes.is_some(), is_template(&source)) {
        (true, false) => Err(Error::config(
            "config/missing-key",
            "the data has `nodes`, but no path of it depends on the node",
        )
        .at(nodes_at)
        .hint("write `{node}` where a node's name belongs: `path = \"{node}.csv\"`")),
        (false, true) => Err(Error::config(
            "config/missing-key",
            "a path has `{node}` in it, but the data does not say which nodes there are",
        )
        .at(place)
        .hint("name them in their order: `nodes = [\"alice\", \"bob\"]`")),
        _ => Ok((source, preparation)),
    }
}

/// Gets a data set and prepares it.
pub fn load(source: &SourceBuild, preparation: &Preparation, place: &Where) -> Result<Data> {
    prepare(source(place)?, preparation, place.seed)
}

/// Prepares a raw table; the seed chooses the samples, but not the rows held out for testing.
pub fn prepare(mut raw: Raw, preparation: &Preparation, seed: u64) -> Result<Data> {
    let preparation = &preparation.joined(&mut raw)?;
    if preparation.predicts_numbers() {
        let mut data = prepare_kept(raw, &[], preparation, seed)?;
        if !preparation.scales_numbers() {
            return Ok(data);
        }
        let target = data.train.targets().map(TargetScaling::of).unwrap_or_default();
        data.train = data.train.with_scaled_targets(&target);
        data.test = data.test.with_scaled_targets(&target);
        data.scaling = Scalings::all(Scaling { target, ..data.scaling.of(0).clone() });
        return Ok(data);
    }
    let kept = choose(&raw.classes, preparation.classes.as_deref())?;
    if preparation.classes.is_none() {
        labels::check_classes(&raw)?;
    }
    let left_out = match &preparation.classes {
        // A published data set has a known list of classes.
        Some(listed) if !raw.known || preparation.unknown_labels.is_some() => {
            preparation.judge_unlisted(&labels::unlisted(&raw, listed), None)?
        }
        _ => None,
    };
    labels::check_test(&raw, &kept)?;
    let data = prepare_kept(raw, &kept, preparation, seed)?;
    Ok(Data { left_out: left_out.into_iter().collect(), ..data })
}

/// The same for one node's file, which may lack classes of the others. Numbers to predict are not yet
/// scaled.
pub(super) fn prepare_own(raw: Raw, preparation: &Preparation, seed: u64) -> Result<Data> {
    let kept = match preparation.predicts_numbers() {
        true => Vec::new(),
        false => choose(&raw.classes, preparation.classes.as_deref())?,
    };
    prepare_kept(raw, &kept, preparation, seed)
}

fn prepare_kept(
    mut raw: Raw,
    kept: &[usize],
    preparation: &Preparation,
    seed: u64,
) -> Result<Data> {
    if let Some(error) = raw.missing.take().filter(|_| preparation.missing.is_none()) {
        return Err(error);
    }
    let numbers = preparation.predicts_numbers();
    let of = |part: &Part| -> Result<Option<Targets>> {
        let targets = numbers.then(|| Targets::of(&raw, part)).transpose()?;
        match &targets {
            Some(targets) if preparation.predicts_survival() => targets.check_survival()?,
            _ => {}
        }
        Ok(targets)
    };
    let (targets, test_targets) = (of(&raw.train)?, raw.test.as_ref().map(of).transpose()?);
    let test_targets = test_targets.unwrap_or_else(|| targets.clone());
    let mut number = vec![numbers.then_some(0); raw.classes.len()];
    (0..).zip(kept).for_each(|(new, &old)| number[old] = Some(new));
    let of_kept = |part: &Part| -> Vec<u32> {
        (0..)
            .zip(&part.labels)
            .filter(|(_, l)| number[**l as usize].is_some())
            .map(|r| r.0)
            .collect()
    };
    let share = preparation.test.unwrap_or(TEST_SHARE);
    let first = raw.train.labels.len() - raw.validation;
    let (train, validation): (Vec<u32>, Vec<u32>) =
        of_kept(&raw.train).into_iter().partition(|&row| (row as usize) < first);
    let (train, test) = match &raw.test {
        Some(test) => (train, of_kept(test)),
        None => match &targets {
            None => hold_out(&raw.train.labels[..first], kept, share),
            Some(_) => hold_out(&vec![0; first], &[0], share),
        },
    };
    let mut train = sample(train, preparation.samples, seed);
    if raw.validation > 0 && validation.is_empty() {
        return Err(Error::data("data/empty", "no row is left for validation")
            .hint("choose other `classes`, or another file"));
    }
    if train.is_empty() {
        return Err(Error::data("data/empty", "no row is left to train on")
            .hint("choose other `classes`, or hold a smaller share out for `test`"));
    }
    let marks = (raw.validation > 0)
        .then(|| (0..train.len() + validation.len()).map(|row| row >= train.len()).collect());
    train.extend(validation);

    let mut fill = Vec::new();
    if let (Some(Missing::Mean), Table::Numbers(features)) = (preparation.missing, &raw.train.table)
    {
        let filling = Scaling::filling(features, &train);
        for part in raw.parts_mut() {
            if part.table.has_missing() {
                part.table = part.table.filled(&filling);
            }
        }
        fill = filling.fill;
    }
    let table = &raw.train.table;
    let test_part = raw.test.as_ref().unwrap_or(&raw.train);
    let method = preparation.scaling.unwrap_or(raw.usual.method);
    let columns = preparation.columns.as_deref();
    let standard = columns.or(raw.usual.columns.as_deref());
    let sparse = preparation.sparse.unwrap_or_else(|| {
        table.is_sparse() || !fills(method, standard) && mostly_zero(table, &train)
    });
    check_size(table, train.len().max(test.len()), sparse)?;
    let skips = sparse && skips_bytes(table, method, standard);
    check_fill(method, standard, sparse && !skips)?;
    let scaling = match &preparation.moments {
        Some(MomentsOf::Given(given)) => given.scaling(method, columns, table.cols())?,
        _ => Scaling::choose(method, &raw.usual, columns, (table, &train))?,
    };

    let scaling = Scaling { fill, ..scaling };
    let set = |part: &Part, targets: Option<Targets>, rows: &[u32]| {
        let label = |&row: &u32| number[part.labels[row as usize] as usize].expect("a kept class");
        let labels = rows.iter().map(label).collect();
        let stored = Some(&part.table).filter(|_| skips);
        let stored = stored
            .and_then(|table| Stored::standard(table, rows, &scaling))
            .unwrap_or_else(|| Stored::take(&part.table, rows, &scaling, sparse && !skips));
        let set = Dataset::of(stored, labels);
        let set = match targets {
            None => set,
            Some(targets) => set.targeted(targets.select(rows)),
        };
        match part.groups.is_empty() {
            true => set,
            false => {
                let of = rows.iter().map(|&row| part.groups[row as usize]).collect();
                set.grouped(Groups { of, names: raw.groups.clone() })
            }
        }
    };
    let train = Dataset { validation: marks, ..set(&raw.train, targets, &train) };
    let test = set(test_part, test_targets, &test);
    let classes = kept.iter().map(|&old| raw.classes[old].name.clone()).collect();
    let scaling = Scalings::all(scaling);
    let outputs = if numbers { raw.output_names() } else { Vec::new() };
    let Raw { columns, unnamed, .. } = raw;
    let (own, left_out) = (None, Vec::new());
    let survival = preparation.predicts_survival();
    Ok(Data { train, test, classes, outputs, survival, scaling, columns, unnamed, own, left_out })
}

/// The indices of the chosen classes.
fn choose(classes: &[Class], chosen: Option<&[ClassName]>) -> Result<Vec<usize>> {
    let Some(chosen) = chosen else { return Ok((0..classes.len()).collect()) };
    let mut kept = Vec::new();
    for wanted in chosen.iter().map(ClassName::to_string) {
        let is = |class: &Class| class.name == wanted || class.code == wanted;
        let Some(found) = classes.iter().position(is) else {
            let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
            let near = nearest(&wanted, names.iter().copied());
            let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            let some = names.iter().take(20).copied().collect::<Vec<_>>().join(", ");
            let message = format!("the data has no class `{wanted}`");
            return Err(Error::config("data/unknown-class", message)
                .hint(format!("{did}the classes are {some}")));
        };
        if kept.contains(&found) {
            let message = format!("the class `{wanted}` is chosen twice");
            return Err(Error::config("data/unknown-class", message));
        }
        kept.push(found);
    }
    Ok(kept)
}

/// Splits the rows of some classes, each in the same shares, into those to train and to test on.
///
/// The rows held out of a class depend only on the class: not on a seed, so that tuning on one seed
/// never uses test rows of another, and not on which other classes are kept.
fn hold_out(labels: &[u32], kept: &[usize], share: f64) -> (Vec<u32>, Vec<u32>) {
    let mut by_class = vec![Vec::new(); labels.iter().map(|&l| l as usize + 1).max().unwrap_or(0)];
    (0u32..).zip(labels).for_each(|(row, &label)| by_class[label as usize].push(row));
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for &class in kept {
        let Some(rows) = by_class.get_mut(class).filter(|rows| !rows.is_empty()) else { continue };
        let mut stream = Stream::new(0, Purpose::Data, class);
        stream.seek(HOLD_OUT, 0);
        stream.shuffle(rows);
        let held = ((share * rows.len() as f64).round() as usize).min(rows.len() - 1);
        test.extend_from_slice(&rows[..held]);
        train.extend_from_slice(&rows[held..]);
    }
    train.sort_unstable();
    test.sort_unstable();
    (train, test)
}

/// At most `samples` of the rows, in their order.
fn sample(mut rows: Vec<u32>, samples: Option<usize>, seed: u64) -> Vec<u32> {
    if let Some(samples) = samples.filter(|&samples| samples < rows.len()) {
        let mut stream = Stream::new(seed, Purpose::Data, 0);
        stream.seek(SAMPLES, 0);
        stream.shuffle(&mut rows);
        rows.truncate(samples);
        rows.sort_unstable();
    }
    rows
}

fn check_size(table: &Table, rows: usize, sparse: bool) -> Result<()> {
    let cols = table.cols();
    match sparse || cols.checked_mul(rows).is_some_and(|entries| entries <= MOST_DENSE) {
        true => Ok(()),
        false => Err(Error::data(
            "data/too-large",
            format!("{rows} rows of {cols} features are too many to be stored in full"),
        )
        .hint("set `sparse = true`, or use fewer `samples`")),
    }
}

/// Whether so few entries are non-zero that sparse products are faster.
///
/// Estimated on the first rows; the answer may change the last bits of results, no more.
fn mostly_zero(table: &Table, rows: &[u32]) -> bool {
    let rows = &rows[..rows.len().min(1000)];
    let mut stored = 0;
    for &row in rows {
        table.each(row as usize, |_, value| stored += usize::from(value != 0.0));
    }
    stored as f64 <= SPARSE * (rows.len() * table.cols()) as f64
}

/// Whether zeros become non-zero because a mean is subtracted from every column.
fn fills(method: Method, columns: Option<&[usize]>) -> bool {
    match method {
        Method::None | Method::Unit | Method::Log | Method::Row | Method::TfIdf => false,
        Method::Centre => true,
        Method::Standardise => columns.is_none(),
    }
}

/// Whether products skip the zeros of the raw bytes, though scaled entries are not zero.
fn skips_bytes(table: &Table, method: Method, columns: Option<&[usize]>) -> bool {
    let scales = matches!(method, Method::Standardise | Method::Centre);
    matches!(table, Table::Bytes { .. }) && scales && columns.is_none()
}

/// Refuses a scaling that would fill a sparse table.
pub(super) fn check_fill(method: Method, columns: Option<&[usize]>, sparse: bool) -> Result<()> {
    match sparse && fills(method, columns) {
        false => Ok(()),
        true => Err(Error::config(
            "data/would-be-dense",
            "this `scaling` subtracts a mean from every column, and zeros would not stay zeros",
        )
        .hint("use `scaling = \"unit\"`, `\"row\"`, `\"log\"` or `\"tf-idf\"`, name the `columns`, or set `sparse = false`")),
    }
}
