//! Data: features and labels, their sources, and their partition over nodes.

#![forbid(unsafe_code)]

// The macros refer to `lopa`, which hands on the names of this crate.
extern crate self as lopa;

use lopa_base::{config, error, macros, math, params, store};

mod agreement;
mod catalog;
mod columns;
mod digest;
mod doubt;
mod encoding;
mod features;
#[cfg(feature = "fetch")]
pub mod fetch;
mod given;
mod labels;
mod look;
mod moments;
mod origin;
mod own;
mod packed;
pub mod partition;
mod prepare;
mod scaling;
mod source;
mod spelling;
mod stored;
mod target;

pub use agreement::garbled;
pub use agreement::{Agreement, Told};
pub use catalog::{Archive, Published, PublishedFile, State, find_published, published};
pub use columns::{Columns, Unnamed};
pub use digest::digest;
pub use doubt::Remark;
pub use encoding::Encoded;
pub use features::{Features, Samples, Stock};
pub use given::{Given, MomentsOf, Whose};
pub use labels::{Unlisted, check_spelling};
pub use look::{CellKind, ColumnLook, LabelLook, Look, MAX_CATEGORIES, MAX_DISTINCT, look};
pub use moments::{Moments, means};
pub use origin::{Origin, origins};
pub use own::{Own, each as each_own, load as load_own};
use packed::{Bytes, Packed};
pub use prepare::{
    ClassName, Missing, Preparation, TargetKind, UnknownLabels, load, prepare, read,
};
pub use scaling::{Method, Scaling, Scalings};
pub use source::{
    Class, Named, Needed, NewRows, Part, Raw, SourceBuild, Table, Usual, Where,
    entry as source_entry, new_rows, sources,
};

use stored::Stored;
pub use target::{RANGES, SURVIVAL, Target, TargetScaling, Targets, parsed as parsed_label};

use std::ops::Range;
use std::sync::Arc;
use std::sync::OnceLock;

use crate::math::real::Real;

/// Labelled samples: a training or a test set.
#[derive(Debug)]
pub struct Dataset {
    stored: Arc<Stored>,
    single: OnceLock<Arc<Packed<f32>>>,
    double: OnceLock<Arc<Packed<f64>>>,
    labels: Arc<[u32]>,
    targets: Option<Arc<Targets>>,
    groups: Option<Groups>,
    owned: Option<Vec<Range<u32>>>,
    validation: Option<Vec<bool>>, // whether a row is for validation
    held: Option<Held>,
    every: OnceLock<Arc<[u32]>>, // the numbers of all rows
}

/// The rows whose features are kept: the position of each row among them, and their labels.
#[derive(Debug)]
struct Held {
    positions: Vec<u32>,
    labels: Arc<[u32]>,
    targets: Option<Arc<Targets>>,
}

/// The group of each row: a hospital, a writer, a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// The group number of each row.
    pub of: Vec<u32>,
    /// The names of the groups, in the order of their numbers.
    pub names: Vec<String>,
}

impl Dataset {
    /// Features and the class number of each row.
    ///
    /// # Panics
    /// Unless there is one label per row.
    pub fn new(features: Features<f64>, labels: Vec<u32>) -> Dataset {
        Dataset::of(Stored::Numbers(Arc::new(features)), labels)
    }

    /// Joins the nodes' sets, and records which rows belong to which node.
    fn joined(sets: Vec<Dataset>, here: &Range<usize>, nodes: usize) -> Dataset {
        let mut ranges = vec![0..0; nodes];
        let (mut labels, mut parts) = (Vec::new(), Vec::new());
        let mut targets: Option<Targets> = None;
        let mut validation: Option<Vec<bool>> = None;
        let mut groups: Option<Groups> = None;
        for (node, set) in here.clone().zip(&sets) {
            let start = labels.len() as u32;
            labels.extend_from_slice(set.labels());
            ranges[node] = start..labels.len() as u32;
            parts.push(set.features());
            if let Some(own) = set.validation() {
                validation.get_or_insert_default().extend(own);
            }
            if let Some(own) = set.groups() {
                let none = || Groups { of: Vec::new(), names: own.names.clone() };
                groups.get_or_insert_with(none).of.extend_from_slice(&own.of);
            }
            if let Some(own) = set.targets() {
                let none = Targets { outputs: own.outputs, values: Vec::new() };
                targets.get_or_insert(none).values.extend_from_slice(&own.values);
            }
        }
        let targets = targets.map(Arc::new);
        // Labels stay ranges of a node's own numbers, whichever nodes are in this process.
        let joined = Dataset::new(Features::stacked(&parts), labels);
        Dataset { targets, validation, groups, ..joined }.owned(ranges)
    }

    fn of(stored: Stored, labels: Vec<u32>) -> Dataset {
        assert_eq!(stored.rows(), labels.len(), "one label per row");
        let (stored, labels) = (Arc::new(stored), labels.into());
        let (single, double, every) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (targets, groups, owned, validation, held) = (None, None, None, None, None);
        Dataset { stored, single, double, labels, targets, groups, owned, validation, held, every }
    }

    /// The same rows with numbers to predict; their labels are ranges of these numbers.
    ///
    /// # Panics
    /// Unless there is one row of numbers per row.
    pub fn targeted(mut self, targets: Targets) -> Dataset {
        assert_eq!(self.len() * targets.outputs, targets.values.len(), "one target per row");
        self.labels = targets.ranges().into();
        self.targets = Some(Arc::new(targets));
        self
    }

    /// The same rows with their numbers to predict scaled.
    fn with_scaled_targets(mut self, scaling: &TargetScaling) -> Dataset {
        self.targets =
            self.targets.map(|targets| Arc::new(Arc::unwrap_or_clone(targets).scaled(scaling)));
        self
    }

    /// The numbers to predict, if labels are numbers.
    pub fn targets(&self) -> Option<&Targets> {
        self.targets.as_deref()
    }

    /// How two rows compare by their labels, or by their first numbers to predict.
    pub fn compare(&self, a: u32, b: u32) -> std::cmp::Ordering {
        match &self.targets {
            Some(targets) => targets.compare(a, b),
            None => self.labels[a as usize].cmp(&self.labels[b as usize]),
        }
    }

    /// Assigns each row to a group.
    ///
    /// # Panics
    /// Unless there is one group number per row.
    pub fn grouped(mut self, groups: Groups) -> Dataset {
        assert_eq!(self.len(), groups.of.len(), "one group per row");
        self.groups = Some(groups);
        self
    }

    /// Marks the rows as read from per-node files: node i owns the i-th range.
    pub fn owned(mut self, ranges: Vec<Range<u32>>) -> Dataset {
        self.owned = Some(ranges);
        self
    }

    /// The rows of each node, if there are per-node files; empty for nodes of other processes.
    pub fn owners(&self) -> Option<&[Range<u32>]> {
        self.owned.as_deref()
    }

    /// The groups of the rows, if the source has any.
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// Whether each row is for validation, if the source names rows for it.
    pub fn validation(&self) -> Option<&[bool]> {
        self.validation.as_deref()
    }

    /// The class number of each row.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Number of features.
    pub fn cols(&self) -> usize {
        self.stored.cols()
    }

    /// The features in double precision; bytes are converted.
    pub fn features(&self) -> &Features<f64> {
        self.stored.numbers()
    }

    /// Calls `f(column, value)` for the stored entries of a row, like [`Features::each`].
    pub fn each(&self, row: usize, f: impl FnMut(usize, f64)) {
        self.stored.each(row, f);
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The features in the form used for products.
    fn double(&self) -> &Arc<Packed<f64>> {
        self.double.get_or_init(|| Arc::new(self.stored.packed().settled()))
    }

    /// Some rows, in the given order, in precision `T`; the features are shared, not copied.
    pub fn samples<T: Real>(&self, rows: Vec<u32>) -> Samples<T> {
        let rows = match &self.held {
            None => rows,
            Some(Held { positions, .. }) => {
                rows.into_iter().map(|row| positions[row as usize]).collect()
            }
        };
        self.shared(rows.into())
    }

    /// All rows; the row numbers are also shared, for the test samples of many nodes.
    pub fn every<T: Real>(&self) -> Samples<T> {
        match &self.held {
            None => {
                let all = || (0..self.len() as u32).collect();
                self.shared(self.every.get_or_init(all).clone())
            }
            Some(_) => self.samples((0..self.len() as u32).collect()),
        }
    }

    fn shared<T: Real>(&self, rows: Arc<[u32]>) -> Samples<T> {
        let single = || self.single.get_or_init(|| Arc::new(self.double().cast().settled()));
        let any: Box<dyn std::any::Any> = match T::BYTES {
            8 => Box::new(self.double().clone()),
            _ => Box::new(single().clone()),
        };
        let packed = *any.downcast::<Arc<Packed<T>>>().expect("T is f32 or f64");
        let (labels, targets) = match &self.held {
            None => (&self.labels, &self.targets),
            Some(held) => (&held.labels, &held.targets),
        };
        Samples::new(self.stored.clone(), packed, (labels.clone(), targets.clone()), rows)
    }

    /// Drops the features of all other rows; row numbers stay valid, and all labels are kept.
    pub fn hold(&mut self, rows: &[u32]) {
        assert!(self.held.is_none(), "rows are dropped only once");
        let mut positions = vec![u32::MAX; self.len()];
        (0..).zip(rows).for_each(|(position, &row)| positions[row as usize] = position);
        let packed = self.double().select(rows).settled();
        self.stored = Arc::new(match &packed {
            Packed::Plain(features) => Stored::Numbers(features.clone()),
            _ => self.stored.select(rows),
        });
        (self.single, self.double) = (OnceLock::new(), OnceLock::from(Arc::new(packed)));
        let labels = rows.iter().map(|&row| self.labels[row as usize]).collect();
        let targets = self.targets.as_ref().map(|targets| Arc::new(targets.select(rows)));
        self.held = Some(Held { positions, labels, targets });
    }
}

/// A data set as an experiment uses it.
#[derive(Debug)]
pub struct Data {
    /// Training samples, to be divided among the nodes.
    pub train: Dataset,
    /// Test samples; may be empty.
    pub test: Dataset,
    /// Class names as in the source, in the order of their numbers; none where labels are numbers.
    pub classes: Vec<String>,
    /// The names of the numbers to predict; none where labels are classes.
    pub outputs: Vec<String>,
    /// Whether these are a time and an event.
    pub survival: bool,
    /// How raw features were scaled, so that a saved model can be applied to new raw ones.
    pub scaling: Scalings,
    /// The names of the columns, if the source has any.
    pub columns: Option<Columns>,
    /// What must be known of columns without names.
    pub unnamed: Unnamed,
    /// Which nodes' files these are, where nodes have files of their own.
    pub own: Option<Own>,
    /// A sentence for each file with rows that are left out, because `classes` does not list their
    /// labels.
    pub left_out: Vec<String>,
}

impl Data {
    /// What rows are labelled with.
    pub fn target(&self) -> Target {
        match self.outputs.len() {
            0 => Target::Classes(self.classes.len()),
            _ if self.survival => Target::Survival,
            outputs => Target::Numbers(outputs),
        }
    }

    /// The number of classes, or of the ranges of numbers that stand for them.
    pub fn strata(&self) -> usize {
        match self.target() {
            Target::Classes(classes) => classes,
            Target::Numbers(_) | Target::Survival => RANGES,
        }
    }
}
