//! The `[time]` section: the times of computations and messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Params;
use crate::error::Fault;

/// How long computing takes, and messages on their way: a run then has the cost `virtual_seconds`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeSpec {
    /// Seconds of computing per oracle call: a number for every kind of call, a table, or "measured"
    /// for what they take on this machine.
    pub compute: Compute,
    /// How many times slower nodes are than that.
    #[serde(default, skip_serializing_if = "Slowness::is_usual")]
    pub slowness: Slowness,
    /// Nodes that are slow now and then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stragglers: Option<Stragglers>,
    /// Latency and bandwidth of links: a table, or "data-centre", "regions", "home", "hospitals".
    pub links: LinkSpec,
}

/// Seconds of computing per oracle call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "invalid compute: write seconds, a table of them, or \"measured\"")]
pub enum Compute {
    /// The same for every kind of call.
    Same(f64),
    /// By kind.
    Each(Calls),
    /// What they take on this machine, before the first run.
    Measured(Measured),
}

/// The word `measured`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Measured {
    /// What calls take on this machine.
    Measured,
}

/// Seconds by kind of call; one left out takes none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Calls {
    /// A gradient.
    pub gradient: f64,
    /// A Hessian-vector product.
    pub hessian: f64,
    /// A Jacobian-vector product.
    pub jacobian: f64,
    /// Each sample that a call uses, beside the call itself.
    pub sample: f64,
}

impl Compute {
    /// Seconds by kind of call, unless they are still to be measured.
    pub fn calls(&self) -> Option<Calls> {
        match *self {
            Compute::Same(seconds) => {
                Some(Calls { gradient: seconds, hessian: seconds, jacobian: seconds, sample: 0.0 })
            }
            Compute::Each(calls) => Some(calls),
            Compute::Measured(_) => None,
        }
    }
}

/// How many times slower nodes are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "invalid slowness: write a factor, one for each node, or a range")]
pub enum Slowness {
    /// All alike.
    Same(f64),
    /// One factor for each node.
    Each(Vec<f64>),
    /// Drawn for each node, from the seed.
    Drawn(Range),
}

impl Default for Slowness {
    fn default() -> Slowness {
        Slowness::Same(1.0)
    }
}

impl Slowness {
    fn is_usual(&self) -> bool {
        *self == Slowness::default()
    }
}

/// A range to draw from, all values alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The smallest value.
    pub from: f64,
    /// The largest.
    pub to: f64,
}

/// In every iteration, each node is slow with this probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stragglers {
    /// The probability.
    pub p: f64,
    /// How many times longer computing then takes.
    pub factor: f64,
}

/// Latency and bandwidth of links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "invalid links: write the name of a preset, or a table")]
pub enum LinkSpec {
    /// A preset.
    Preset(Preset),
    /// Given.
    Given(Links),
}

/// Links as they are in some places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// One hall: 25 to 50 µs, 10 Gbit/s.
    DataCentre,
    /// Clouds on several continents: 10 to 80 ms, 1 Gbit/s a link, 10 Gbit/s a node.
    Regions,
    /// Homes: 10 to 30 ms, uplinks of 10 to 40 Mbit/s.
    Home,
    /// Hospitals of a country: 5 to 20 ms, uplinks of 100 Mbit/s.
    Hospitals,
}

impl LinkSpec {
    /// As a table.
    pub fn links(&self) -> Links {
        let range = |from: f64, to: f64| Some(Amount::Drawn(Range { from, to }));
        let one = |value: f64| Some(Amount::Same(value));
        let usual = Links::default();
        match self {
            LinkSpec::Given(links) => links.clone(),
            LinkSpec::Preset(Preset::DataCentre) => {
                Links { latency: range(25e-6, 50e-6), uplink: one(1.25e9), ..usual }
            }
            LinkSpec::Preset(Preset::Regions) => Links {
                latency: range(0.01, 0.08),
                bandwidth: one(1.25e8),
                uplink: one(1.25e9),
                ..usual
            },
            LinkSpec::Preset(Preset::Home) => {
                Links { latency: range(0.01, 0.03), uplink: range(1.25e6, 5e6), ..usual }
            }
            LinkSpec::Preset(Preset::Hospitals) => {
                Links { latency: range(0.005, 0.02), uplink: one(1.25e7), ..usual }
            }
        }
    }
}

/// Latency and bandwidth. What is drawn is drawn from the seed, once for each link or node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Links {
    /// Seconds from one node to another: a number, or a range; by default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Amount>,
    /// Bytes per second of a link; by default no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Amount>,
    /// Bytes per second that a node can send, shared by its messages of a round; by default no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink: Option<Amount>,
    /// Bytes of each message beside its content.
    pub overhead: u64,
    /// Links that differ from the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<Special>,
}

/// A number, or a range to draw it from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "invalid amount: write a number, or a range `{ from, to }`")]
pub enum Amount {
    /// The same for all.
    Same(f64),
    /// Drawn.
    Drawn(Range),
}

/// A link that differs from the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Special {
    /// Its two nodes.
    pub between: [usize; 2],
    /// Seconds from one to the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<f64>,
    /// Bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<f64>,
}

/// The longest time, in seconds: about eleven days.
const LONG: f64 = 1e6;
/// The slowest and fastest bandwidth, in bytes per second.
const BANDWIDTHS: std::ops::RangeInclusive<f64> = 1.0..=1e12;
/// How much slower a node may be.
const FACTORS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

impl Params for TimeSpec {
    fn check(&self) -> Result<(), Fault> {
        let long = |seconds: f64| (0.0..=LONG).contains(&seconds);
        if let Some(Calls { gradient, hessian, jacobian, sample }) = self.compute.calls() {
            for seconds in [gradient, hessian, jacobian, sample] {
                Fault::unless(long(seconds), "compute", seconds, "from 0 to 1000000 seconds")?;
            }
        }
        let factor = |value: f64, key| {
            Fault::unless(FACTORS.contains(&value), key, value, "from 0.000001 to 1000000")
        };
        match &self.slowness {
            Slowness::Same(value) => factor(*value, "slowness")?,
            Slowness::Each(all) => all.iter().try_for_each(|&value| factor(value, "slowness"))?,
            Slowness::Drawn(range) => {
                [range.from, range.to].iter().try_for_each(|&value| factor(value, "slowness"))?;
                ordered(range, "slowness")?;
            }
        }
        if let Some(Stragglers { p, factor: slow }) = self.stragglers {
            let must = "given with p from 0 to 1";
            Fault::unless((0.0..=1.0).contains(&p), "stragglers", format!("{{ p = {p} }}"), must)?;
            factor(slow, "stragglers")?;
        }
        let Links { latency, bandwidth, uplink, overhead, table } = self.links.links();
        let second = |value: f64| {
            let must = "a latency from 0 to 1000000 seconds";
            Fault::unless(long(value), "links", value, must)
        };
        let rate = |value: f64| {
            let must = "a bandwidth from 1 to 10^12 bytes per second";
            Fault::unless(BANDWIDTHS.contains(&value), "links", value, must)
        };
        amount(latency, &second)?;
        amount(bandwidth, &rate)?;
        amount(uplink, &rate)?;
        let must = "an overhead below 2^20 bytes";
        Fault::unless(overhead < 1 << 20, "links", overhead, must)?;
        for Special { between: [i, j], latency, bandwidth } in table {
            let shown = format!("between = [{i}, {j}]");
            Fault::unless(i != j, "links", shown, "between two different nodes")?;
            latency.map_or(Ok(()), second)?;
            bandwidth.map_or(Ok(()), rate)?;
        }
        Ok(())
    }
}

fn amount(given: Option<Amount>, check: &dyn Fn(f64) -> Result<(), Fault>) -> Result<(), Fault> {
    match given {
        None => Ok(()),
        Some(Amount::Same(value)) => check(value),
        Some(Amount::Drawn(range)) => {
            check(range.from)?;
            check(range.to)?;
            ordered(&range, "links")
        }
    }
}

fn ordered(range: &Range, key: &'static str) -> Result<(), Fault> {
    let Range { from, to } = range;
    let shown = format!("{{ from = {from}, to = {to} }}");
    Fault::unless(from <= to, key, shown, "a range whose `from` is at most its `to`")
}
