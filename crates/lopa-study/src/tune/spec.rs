//! The `[tune]` section: which values to try, how many trials, and which metric decides.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use lopa::config::{Section, Source};
use lopa::error::{Error, Fault, Result};
use lopa::experiment::{AlgorithmSpec, Experiment, RunSpec};
use lopa::params;
use lopa::run::trace::more_is_better;

params! {
    /// The search for step sizes: the same number of trials for every algorithm.
    #[derive(PartialEq)]
    pub struct TuneSpec {
        /// How the values to try are chosen.
        method: Method = Method::Random;
        /// Trials per algorithm; the first uses the file's own values. Where the best is at the edge of a
        /// range that moves, it moves, and every algorithm gets half as many again, up to three times.
        trials: usize = 16, from_to(1, 100_000);
        /// The seeds of the trials; they must differ from the run's seeds.
        seeds: Vec<u64> = Vec::new(), required;
        /// The metric to optimise, at the end of a trial; metrics on test data are not accepted.
        metric: String = "loss".into();
        /// The share of the run's budget that a trial gets.
        share: f64 = 1.0, weight;
        /// Further seeds on which the best trial must survive at full length, and its neighbour with
        /// steps a quarter larger; 0 takes the best trial as it is.
        confirm: usize = 3, from_to(0, 1000);
        /// The values to try, by the label of the algorithm (`*` for all) and the parameter. Default:
        /// `alpha` up to 30 times and `beta` up to 10 times smaller or larger than in the file, or than the
        /// algorithm finds, and `lambda` equal to `beta`. Ranges around such a value move, others do not.
        ranges: BTreeMap<String, BTreeMap<String, Range>> = BTreeMap::new();
    }
    check |tune| {
        let seeds = format!("{:?}", tune.seeds);
        let valid = !tune.seeds.is_empty() && tune.seeds.iter().all(|&s| s <= i64::MAX as u64);
        Fault::unless(valid, "seeds", seeds, "a list of at least one seed below 2^63")?;
        let on_test = tune.metric.split('_').any(|word| word == "test");
        let metric = format!("\"{}\"", tune.metric);
        Fault::unless(!on_test, "metric", metric, "one that is not measured on test data")?;
        for (key, range) in tune.ranges.values().flatten() {
            let shown = format!("{{ {key} = … }}");
            let must = "of finite numbers, from low to high, or of names; `around` more than 1";
            Fault::unless(range.is_valid(), "ranges", shown, must)?;
        }
        Ok(())
    }
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
    /// Random values on a small share of the budget, the best third on three times as much, and
    /// so on.
    Halving,
}

/// The values to try for one parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "invalid range: write a list of values, `{ around = factor }`, `{ low = a, high = b }`, or the name of a parameter to copy"
)]
pub enum Range {
    /// These values.
    Values(Vec<Tried>),
    /// Numbers around the file's own; moves.
    Around(Around),
    /// All numbers between two.
    Between(Between),
    /// Equal to another parameter.
    Same(String),
}

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Tried {
    /// A number.
    Number(f64),
    /// One of a parameter's choices.
    Name(String),
}

impl Tried {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Tried::Number(number) => Some(*number),
            Tried::Name(_) => None,
        }
    }

    /// The value of a parameter, if it is a number or a choice.
    pub fn of(value: &toml::Value) -> Option<Tried> {
        let number = value.as_float().or(value.as_integer().map(|whole| whole as f64));
        number.map(Tried::Number).or(value.as_str().map(|name| Tried::Name(name.into())))
    }

    /// As TOML; a number is whole if `whole`.
    pub fn value(&self, whole: bool) -> toml::Value {
        match self {
            Tried::Number(number) if whole => toml::Value::Integer(number.round() as i64),
            Tried::Number(number) => toml::Value::Float(*number),
            Tried::Name(name) => toml::Value::String(name.clone()),
        }
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Tried::Number(number) => number.fmt(out),
            Tried::Name(name) => name.fmt(out),
        }
    }
}

/// Numbers around the file's own, or around those that the algorithm finds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Around {
    /// How many times smaller or larger.
    pub around: f64,
}

/// An interval of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Between {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Whether ratios or differences are evenly spread.
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

impl Range {
    fn is_valid(&self) -> bool {
        match self {
            Range::Values(values) => {
                let finite = |value: &Tried| value.number().is_none_or(f64::is_finite);
                !values.is_empty() && values.iter().all(finite)
            }
            Range::Around(Around { around }) => *around > 1.0 && around.is_finite(),
            Range::Between(Between { low, high, scale }) => {
                let positive = *scale == Scale::Linear || *low > 0.0;
                positive && low <= high && low.is_finite() && high.is_finite()
            }
            Range::Same(_) => true,
        }
    }
}

impl TuneSpec {
    /// The `[tune]` section of an experiment file, if it has one.
    pub fn of(source: &Source, experiment: &Experiment) -> Result<Option<TuneSpec>> {
        let mut root = source.root()?;
        let place = root.place_of("tune");
        let spec = root.section("tune")?.map(Section::read::<TuneSpec>).transpose()?;
        if let Some(spec) = &spec {
            spec.fits(&experiment.run, &experiment.algorithms).map_err(|error| error.at(place))?;
        }
        Ok(spec)
    }

    /// Whether a larger metric is better.
    pub fn maximises(&self) -> bool {
        more_is_better(&self.metric)
    }

    /// Checks the section against the experiment it belongs to.
    pub fn fits(&self, run: &RunSpec, algorithms: &[AlgorithmSpec]) -> Result<()> {
        if let Some(seed) = self.seeds.iter().find(|seed| run.seeds.contains(seed)) {
            let message =
                format!("seed {seed} is used for both tuning and reporting: not a fair test");
            return Err(Error::config("tune/seeds-overlap", message)
                .hint("choose `tune.seeds` different from `run.seeds`"));
        }
        let known = |label: &String| label == "*" || algorithms.iter().any(|a| a.label == *label);
        match self.ranges.keys().find(|label| !known(label)) {
            None => Ok(()),
            Some(label) => {
                let labels: Vec<_> = algorithms.iter().map(|a| a.label.as_str()).collect();
                let message = format!("`tune.ranges` has an unknown algorithm `{label}`");
                Err(Error::config("config/unknown-name", message)
                    .hint(format!("the algorithms are {}; `*` means all", labels.join(", "))))
            }
        }
    }
}
