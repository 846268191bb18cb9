//! The `[tune]` section: which steps are tried, how often, and by what they are judged.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use lopa::config::{Params, Section, Source};
use lopa::error::{Error, Fault, Result};
use lopa::experiment::{AlgorithmSpec, Experiment, RunSpec};

/// How step sizes are searched: the same number of trials for every algorithm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TuneSpec {
    /// How the values to try are chosen.
    #[serde(default)]
    pub method: Method,
    /// Trials of each algorithm; the first is with the file's own values.
    #[serde(default = "sixteen")]
    pub trials: usize,
    /// The seeds that trials run on; none of them may be among the run's.
    pub seeds: Vec<u64>,
    /// The measure that is made best, at the end of a trial; none on test data is accepted.
    #[serde(default = "loss")]
    pub metric: String,
    /// The part of the run's budget that a trial gets.
    #[serde(default = "whole")]
    pub share: f64,
    /// What is tried, by the label of the algorithm (`*` for all) and the parameter. Left out:
    /// `alpha` up to 30 times and `beta` up to 10 times smaller or larger than the file says, and
    /// `lambda` as `beta`.
    #[serde(default)]
    pub ranges: BTreeMap<String, BTreeMap<String, Range>>,
}

/// How the values to try are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The largest even grid that the trials allow, then random values.
    Grid,
    /// Random values, the same draws for every algorithm.
    #[default]
    Random,
    /// Random values on a small part of the budget, the best third on three times as much, and so
    /// on.
    Halving,
}

/// What is tried of one parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "invalid range: write a list of numbers, `{ low = a, high = b }`, or the name of the parameter it shall equal"
)]
pub enum Range {
    /// One of these.
    Values(Vec<f64>),
    /// Anything between two numbers.
    Between(Between),
    /// The same as another parameter.
    Same(String),
}

/// Anything between two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Between {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// Whether factors or differences are evenly spread.
    #[serde(default)]
    pub scale: Scale,
}

/// How values are spread over a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Evenly in their logarithm.
    #[default]
    Log,
    /// Evenly.
    Linear,
}

fn sixteen() -> usize {
    16
}

fn loss() -> String {
    "loss".into()
}

fn whole() -> f64 {
    1.0
}

impl Params for TuneSpec {
    fn check(&self) -> std::result::Result<(), Fault> {
        let trials = (1..=100_000).contains(&self.trials);
        Fault::unless(trials, "trials", self.trials, "from 1 to 100000")?;
        let seeds = format!("{:?}", self.seeds);
        let sane = !self.seeds.is_empty() && self.seeds.iter().all(|&s| s <= i64::MAX as u64);
        Fault::unless(sane, "seeds", seeds, "a list of at least one seed below 2^63")?;
        let share = self.share > 0.0 && self.share <= 1.0;
        Fault::unless(share, "share", self.share, "in (0, 1]")?;
        let on_test = self.metric.split('_').any(|word| word == "test");
        let metric = format!("\"{}\"", self.metric);
        Fault::unless(!on_test, "metric", metric, "one that is not measured on test data")?;
        for (key, range) in self.ranges.values().flatten() {
            let said = format!("{{ {key} = … }}");
            Fault::unless(range.sane(), "ranges", said, "of finite numbers, from low to high")?;
        }
        Ok(())
    }
}

impl Range {
    fn sane(&self) -> bool {
        match self {
            Range::Values(values) => {
                !values.is_empty() && values.iter().all(|value| value.is_finite())
            }
            Range::Between(Between { low, high, scale }) => {
                let positive = *scale == Scale::Linear || *low > 0.0;
                positive && low <= high && low.is_finite() && high.is_finite()
            }
            Range::Same(_) => true,
        }
    }
}

impl TuneSpec {
    /// What the `[tune]` section of an experiment file asks for, if it has one.
    pub fn of(source: &Source, experiment: &Experiment) -> Result<Option<TuneSpec>> {
        let mut root = source.root()?;
        let place = root.place_of("tune");
        let spec = root.section("tune")?.map(Section::read::<TuneSpec>).transpose()?;
        if let Some(spec) = &spec {
            spec.fits(&experiment.run, &experiment.algorithms).map_err(|error| error.at(place))?;
        }
        Ok(spec)
    }

    /// Whether more of the metric is better.
    pub fn maximises(&self) -> bool {
        self.metric.ends_with("accuracy")
    }

    /// Whether it fits the experiment that it is part of.
    pub fn fits(&self, run: &RunSpec, algorithms: &[AlgorithmSpec]) -> Result<()> {
        if let Some(seed) = self.seeds.iter().find(|seed| run.seeds.contains(seed)) {
            let message = format!("seed {seed} is tuned on and reported: that is not a fair test");
            return Err(Error::config("tune/seeds-overlap", message)
                .hint("give `tune.seeds` other numbers than `run.seeds`"));
        }
        let known = |label: &String| label == "*" || algorithms.iter().any(|a| a.label == *label);
        match self.ranges.keys().find(|label| !known(label)) {
            None => Ok(()),
            Some(label) => {
                let labels: Vec<_> = algorithms.iter().map(|a| a.label.as_str()).collect();
                let message = format!("`tune.ranges` names no algorithm `{label}`");
                Err(Error::config("config/unknown-name", message)
                    .hint(format!("the algorithms are {}; `*` means all", labels.join(", "))))
            }
        }
    }
}
