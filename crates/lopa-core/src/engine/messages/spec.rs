//! The `[messages]` section: how vectors travel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::compress::AnyCompressor;
use crate::config::{Choice, Registry, Section};
use crate::error::{Fault, Result};
use crate::params;

/// The `[messages]` section.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Messages {
    /// How vectors are compressed, if they are.
    pub compress: Option<Compress>,
    /// The other keys.
    pub rules: Rules,
}

/// A compressor, and whether its error is fed back.
#[derive(Debug, Clone, PartialEq)]
pub struct Compress {
    /// The compressor.
    pub choice: Choice<AnyCompressor>,
    /// Whether its error is sent later.
    pub feedback: bool,
}

params! {
    /// How vectors travel from `share` to `step`.
    #[derive(PartialEq)]
    pub struct Rules {
        /// The part of each weighted difference between neighbours that a node moves by: above 0 and at
        /// most 1. By default 1, or what suits the compressor and W.
        #[serde(skip_serializing_if = "Option::is_none")]
        consensus_step: Option<f64> = None, weight;
        /// The probability that a link carries nothing in an iteration, in either direction.
        #[serde(skip_serializing_if = "is_zero")]
        drop: f64 = 0.0, share_or_none;
        /// Outages that last: a link is good or bad, and changes between iterations (Gilbert–Elliott).
        #[serde(skip_serializing_if = "Option::is_none")]
        bursts: Option<Bursts> = None;
        /// The probability that a node takes part in an iteration. One that sleeps neither computes nor
        /// exchanges anything.
        #[serde(skip_serializing_if = "is_one")]
        active: f64 = 1.0, weight;
        /// The probability that what a link carries is late: both ends then use what it carried one
        /// iteration before.
        #[serde(skip_serializing_if = "is_zero")]
        late: f64 = 0.0, share_or_none;
        /// The longest difference between neighbours that counts in full; longer ones are shortened to
        /// it, at both ends alike. A radius, or a table for one that adapts.
        #[serde(skip_serializing_if = "Option::is_none")]
        clip: Option<Clip> = None;
    }
    check |rules| {
        if let Some(Bursts { begin, end, drop }) = rules.bursts {
            let sane = [begin, end, drop].iter().all(|&value| value > 0.0 && value <= 1.0);
            let value = format!("{{ begin = {begin}, end = {end}, drop = {drop} }}");
            Fault::unless(sane, "bursts", value, "of numbers above 0 and at most 1")?;
        }
        let (value, radius) = match rules.clip {
            None => (String::new(), 1.0),
            Some(Clip::Radius(radius)) => (radius.to_string(), radius),
            Some(Clip::Adaptive(Adaptive { median })) => {
                (format!("{{ median = {median} }}"), median)
            }
        };
        let sane = radius > 0.0 && radius.is_finite();
        Fault::unless(sane, "clip", value, "a positive number, or `{ median = … }` of one")
    }
}

/// Outages that last.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// The probability that a good link turns bad in an iteration.
    pub begin: f64,
    /// The probability that a bad link turns good.
    pub end: f64,
    /// The probability that a bad link carries nothing in an iteration.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub drop: f64,
}

/// How far apart neighbours may be before their difference is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Clip {
    /// A fixed radius.
    #[schemars(title = "number")]
    Radius(f64),
    /// A multiple of the median distance to a node's neighbours one iteration before; of the two ends
    /// of a link, the smaller counts. In iteration 0 there is none before: the radius is 0, and nothing is mixed.
    #[schemars(title = "{ median }")]
    Adaptive(Adaptive),
}

/// A radius that adapts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adaptive {
    /// How many times the median distance.
    pub median: f64,
}

fn one() -> f64 {
    1.0
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn is_one(value: &f64) -> bool {
    *value == 1.0
}

impl Messages {
    /// Reads the section.
    pub fn read(mut section: Section, registry: &Registry<AnyCompressor>) -> Result<Messages> {
        let mut compress = None;
        if let Some(mut section) = section.section("compress")? {
            let feedback = section.value("feedback")?.unwrap_or(true);
            compress = Some(Compress { choice: registry.read(section)?, feedback });
        }
        Ok(Messages { compress, rules: section.read()? })
    }

    /// The section with every default filled in that does not depend on W.
    pub fn to_table(&self) -> Table {
        let mut table = Table::try_from(&self.rules).expect("rules are TOML");
        if let Some(Compress { choice, feedback }) = &self.compress {
            let mut compress = choice.to_table();
            compress.insert("feedback".into(), Value::Boolean(*feedback));
            table.insert("compress".into(), compress.into());
        }
        table
    }

    /// The consensus step size: the file's, or the compressor's default on a W whose eigenvalues
    /// lie between 1 − `spread` and 1.
    pub fn consensus_step(&self, spread: f64) -> f64 {
        let suits = || Some(self.compress.as_ref()?.choice.build.consensus_step(spread));
        self.rules.consensus_step.or_else(suits).unwrap_or(1.0)
    }

    /// Whether links or nodes fail.
    pub fn fail(&self) -> bool {
        let Rules { drop, bursts, active, .. } = &self.rules;
        *drop > 0.0 || bursts.is_some() || *active < 1.0
    }
}
