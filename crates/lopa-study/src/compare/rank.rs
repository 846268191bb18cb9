//! Ranking algorithms by one number per seed.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::seeds::Count;
use crate::statistics::{Interval, Summary, interval, spread};
use lopa::math::portable::{exp, ln};

/// Squares below this are rounding errors and count as equal.
const ROUNDING: f64 = 1e-20;

/// How numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scale {
    /// Whether more is better.
    pub more: bool,
    /// Whether logarithms are compared.
    pub log: bool,
}

impl Scale {
    /// The number that is compared: higher is better.
    fn score(self, value: f64) -> f64 {
        let value = if self.log { ln(value.max(ROUNDING)) } else { value };
        if self.more { value } else { -value }
    }
}

/// One algorithm's numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Place {
    /// Its label.
    pub algorithm: String,
    /// (seed, number) of each seed that has one.
    pub values: Vec<(u64, f64)>,
    /// Their mean.
    pub mean: Option<f64>,
    /// Their standard deviation (n − 1); one number has none.
    pub sd: Option<f64>,
    /// The geometric mean and standard deviation, where logarithms of two or more values are compared.
    pub geometric: Option<(f64, f64)>,
    /// The seeds on which it diverged.
    pub diverged: usize,
    /// The share of the budget spent at these measurements, the least over the seeds.
    pub used: Option<f64>,
    /// Whether it can win: it has a number on every seed and spends some of the cost.
    pub ranked: bool,
    /// The gradients, Hessian products, rounds and bytes that it had spent at these measurements, the mean over the
    /// seeds; empty where a cost itself is compared.
    pub spent: BTreeMap<&'static str, f64>,
}

impl Place {
    /// Summarises an algorithm's numbers.
    pub fn new(
        algorithm: &str,
        scale: Scale,
        values: Vec<(u64, f64)>,
        count: Count,
        used: Option<f64>,
        ranked: bool,
    ) -> Place {
        let of = |map: fn(f64) -> f64| Summary::of(values.iter().map(|&(_, value)| map(value)));
        let plain = of(|value| value);
        let logs = of(|value| ln(value.max(f64::MIN_POSITIVE))).filter(|_| scale.log);
        Place {
            algorithm: algorithm.to_string(),
            mean: plain.map(|numbers| numbers.mean),
            sd: plain.and_then(|numbers| numbers.sd),
            geometric: logs.and_then(|logs| Some((exp(logs.mean), exp(logs.sd?)))),
            diverged: count.diverged(),
            used,
            ranked: ranked && count.ranked(),
            spent: BTreeMap::new(),
            values,
        }
    }

    /// The mean of the compared numbers, by which algorithms are ranked.
    fn score(&self, scale: Scale) -> f64 {
        let scores: Vec<f64> = self.values.iter().map(|&(_, value)| scale.score(value)).collect();
        spread(&scores).0
    }

    /// One difference per seed, positive where this algorithm is better.
    fn ahead_of(&self, other: &Place, scale: Scale) -> Vec<f64> {
        let pair = |&(seed, value): &(u64, f64)| {
            let (_, theirs) = other.values.iter().find(|(of, _)| *of == seed)?;
            Some(scale.score(value) - scale.score(*theirs))
        };
        self.values.iter().filter_map(pair).collect()
    }
}

/// The leader.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lead {
    /// The best mean.
    pub winner: String,
    /// The next best; `None` if no other was ranked.
    pub runner_up: Option<String>,
    /// The winner's lead over it, paired over seeds: a difference of numbers or of their
    /// logarithms.
    pub by: Option<Interval>,
    /// The rows whose sampling error the interval contains; none where it contains that of the seeds
    /// alone.
    pub rows: Option<f64>,
    /// Whether the lead is significant: the interval lies above zero.
    pub significant: bool,
    /// All algorithms over which the winner's lead is not significant.
    pub on_a_par: Vec<String>,
}

/// The leader of the algorithms that can be ranked. `rows` decide the numbers, if these are accuracies.
pub fn lead(places: &[Place], scale: Scale, rows: Option<f64>) -> Option<Lead> {
    let mut ranked: Vec<&Place> = places.iter().filter(|place| place.ranked).collect();
    ranked.sort_by(|a, b| b.score(scale).total_cmp(&a.score(scale)));
    let (winner, rest) = ranked.split_first()?;
    let over = |other: &Place| {
        let seeds = interval(&winner.ahead_of(other, scale))?;
        Some(match (rows, winner.mean.zip(other.mean)) {
            (Some(rows), Some((p, q))) => seeds.with_rows([p, q], rows),
            _ => seeds,
        })
    };
    let clear = |by: Option<Interval>| by.is_some_and(|by| by.low > 0.0);
    let tied = rest.iter().filter(|other| !clear(over(other)));
    let by = rest.first().and_then(|second| over(second));
    Some(Lead {
        winner: winner.algorithm.clone(),
        runner_up: rest.first().map(|second| second.algorithm.clone()),
        by,
        rows,
        significant: clear(by),
        on_a_par: tied.map(|place| place.algorithm.clone()).collect(),
    })
}
