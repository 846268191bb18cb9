//! The values that a search tries.

use std::collections::BTreeMap;

use super::spec::{Around, Between, Method, Range, Scale, Tried, TuneSpec};
use super::trial::{Candidate, Trial};
use lopa::error::{Error, Result};
use lopa::experiment::AlgorithmSpec;
use lopa::math::portable::{exp, ln};
use lopa::math::random::{Purpose, Stream};

/// The parameters of an algorithm that are searched, and their ranges.
pub struct Space {
    axes: Vec<Axis>,
    tied: Vec<(String, String)>,
    base: Candidate,
}

/// A parameter that is searched.
struct Axis {
    key: String,
    range: Range,
    moves: bool, // it is around a value, and follows the best
}

/// A value this near to an end of its range is at the edge, as a share of the range.
const EDGE: f64 = 0.25;

impl Space {
    /// The ranges that the section gives for an algorithm, or the default ones; `found` are step sizes that
    /// it finds itself.
    pub fn new(spec: &TuneSpec, algorithm: &AlgorithmSpec, found: &Candidate) -> Result<Space> {
        let params = algorithm.choice.params();
        let known = |key: &str| params.get(key).and_then(Tried::of);
        let middle = |key: &str| known(key).or(found.get(key).cloned());
        let given = ["*", algorithm.label.as_str()].into_iter().filter_map(|l| spec.ranges.get(l));
        let mut ranges: BTreeMap<String, Range> = BTreeMap::new();
        for (key, range) in given.flatten() {
            ranges.insert(key.clone(), range.clone());
        }
        if ranges.is_empty() {
            ranges = default_ranges();
            ranges.retain(|key, _| middle(key).is_some());
            if !ranges.contains_key("beta") {
                ranges.remove("lambda");
            }
        }
        // A range for all algorithms applies to those that have the parameter.
        let own = spec.ranges.get(&algorithm.label);
        let asked = |key: &String| own.is_some_and(|own| own.contains_key(key));
        let mut base = Candidate::new();
        for key in ranges.keys() {
            match known(key) {
                Some(value) => base.insert(key.clone(), value),
                None if asked(key) && middle(key).is_none() => {
                    return Err(untunable(algorithm, key));
                }
                None => None,
            };
        }
        ranges.retain(|key, _| middle(key).is_some());
        let kept: Vec<String> = ranges.keys().cloned().collect();
        let (mut axes, mut tied) = (Vec::new(), Vec::new());
        for (key, range) in ranges {
            match range {
                Range::Same(other) if kept.contains(&other) => tied.push((key, other)),
                Range::Same(other) => return Err(untunable(algorithm, &other)),
                Range::Around(Around { around }) => {
                    let number = middle(&key).and_then(|value| value.number());
                    let middle = number.filter(|number| *number > 0.0);
                    let middle = middle.ok_or_else(|| untunable(algorithm, &key))?;
                    let (low, high) = (middle / around, middle * around);
                    let range = Range::Between(Between { low, high, scale: Scale::Log });
                    axes.push(Axis { key, range, moves: true });
                }
                range => axes.push(Axis { key, range, moves: false }),
            }
        }
        Ok(Space { axes, tied, base })
    }

    /// The ranges by parameter.
    pub fn ranges(self) -> BTreeMap<String, Range> {
        let tied = self.tied.into_iter().map(|(key, other)| (key, Range::Same(other)));
        self.axes.into_iter().map(|axis| (axis.key, axis.range)).chain(tied).collect()
    }

    /// The values of every trial, the file's own first; step sizes that it leaves out are found in that one.
    pub fn candidates(&self, spec: &TuneSpec) -> Result<Vec<Candidate>> {
        let mut all = vec![self.base.clone()];
        if spec.method == Method::Grid {
            all.extend(self.grid(spec.trials - 1)?);
        }
        all.extend(self.draws(spec, all.len()..spec.trials));
        Ok(all)
    }

    /// Random values for the trials with these numbers; none if nothing is searched.
    pub fn draws(&self, spec: &TuneSpec, numbers: std::ops::Range<usize>) -> Vec<Candidate> {
        let numbers = if self.axes.is_empty() { 0..0 } else { numbers };
        // The draws are the same for every algorithm.
        let mut stream = Stream::new(spec.seeds[0], Purpose::Tuning, 0);
        let draw = |number: usize| {
            stream.seek(number as u64, 0);
            let at: Vec<f64> = self.axes.iter().map(|_| stream.unit()).collect();
            self.candidate(&at)
        };
        numbers.map(draw).collect()
    }

    /// Moves each range that moves and at whose edge the best trial is, so that its value is in the middle; returns
    /// the parameters and their new ranges. Where no trial survived, ranges move down. A value with others
    /// beyond it is not at the edge.
    pub fn follow(&mut self, best: &Trial, all: &[&Trial]) -> Vec<(String, Between)> {
        let mut moved = Vec::new();
        for Axis { key, range, .. } in self.axes.iter_mut().filter(|axis| axis.moves) {
            let Range::Between(Between { low, high, .. }) = range else { continue };
            let (bottom, width) = (ln(*low), ln(*high) - ln(*low));
            let number = |trial: &Trial| trial.params.get(key.as_str()).and_then(Tried::number);
            let tried = || all.iter().filter_map(|trial| number(trial));
            let middle = match (best.value, number(best)) {
                (None, _) => Some(*low),
                (Some(_), Some(value)) => {
                    let at = (ln(value) - bottom) / width;
                    let lowest = at < EDGE && tried().all(|other| other >= value);
                    let highest = at > 1.0 - EDGE && tried().all(|other| other <= value);
                    (lowest || highest).then_some(value)
                }
                (Some(_), None) => None, // the algorithm finds it, and that was best
            };
            if let Some(middle) = middle {
                let half = exp(width / 2.0);
                (*low, *high) = (middle / half, middle * half);
                moved.push((key.clone(), Between { low: *low, high: *high, scale: Scale::Log }));
            }
        }
        moved
    }

    /// The largest even grid of at most `limit` points.
    fn grid(&self, limit: usize) -> Result<Vec<Candidate>> {
        let listed = |range: &Range| match range {
            Range::Values(values) => Some(values.len()),
            _ => None,
        };
        let fixed: usize = self.axes.iter().filter_map(|axis| listed(&axis.range)).product();
        let free = self.axes.iter().filter(|axis| listed(&axis.range).is_none()).count();
        if fixed > limit && fixed > 1 {
            let message = format!("the listed values make a grid of {fixed} points");
            return Err(Error::config("config/out-of-range", message)
                .hint(format!("set `trials = {}` or list fewer values", fixed + 1)));
        }
        let fits =
            |points: usize| points.saturating_pow(free as u32).saturating_mul(fixed) <= limit;
        let points = (1..=limit).take_while(|&points| fits(points)).last().unwrap_or(0);
        if points == 0 || self.axes.is_empty() {
            return Ok(Vec::new());
        }
        let counts: Vec<usize> =
            self.axes.iter().map(|axis| listed(&axis.range).unwrap_or(points)).collect();
        let point = |mut number: usize| {
            let at = counts.iter().map(|&count| {
                let index = number % count;
                number /= count;
                // Points cover the range from end to end; a single one is in the middle.
                if count == 1 { 0.5 } else { index as f64 / (count - 1) as f64 }
            });
            self.candidate(&at.collect::<Vec<_>>())
        };
        let total = if free == 0 { fixed } else { counts.iter().product() };
        Ok((0..total).map(point).collect())
    }

    /// The values at a point of the unit cube.
    fn candidate(&self, at: &[f64]) -> Candidate {
        let mut candidate = self.base.clone();
        for (Axis { key, range, .. }, &u) in self.axes.iter().zip(at) {
            candidate.insert(key.clone(), value(range, u));
        }
        for (key, other) in &self.tied {
            candidate.insert(key.clone(), candidate[other].clone());
        }
        candidate
    }
}

/// The default ranges, around the values in the file, or around those that the algorithm found.
fn default_ranges() -> BTreeMap<String, Range> {
    let around = |around: f64| Range::Around(Around { around });
    let lambda = Range::Same("beta".into());
    let all = [("alpha", around(30.0)), ("beta", around(10.0)), ("lambda", lambda)];
    all.into_iter().map(|(key, range)| (key.to_string(), range)).collect()
}

/// The value of a range at u in [0, 1]; a number to four digits: more are meaningless and hard to read.
fn value(range: &Range, u: f64) -> Tried {
    let value = match range {
        Range::Values(values) => {
            return values[((u * values.len() as f64) as usize).min(values.len() - 1)].clone();
        }
        Range::Between(Between { low, high, scale: Scale::Log }) => {
            exp(ln(*low) + u * (ln(*high) - ln(*low)))
        }
        Range::Between(Between { low, high, scale: Scale::Linear }) => low + u * (high - low),
        Range::Same(_) | Range::Around(_) => unreachable!("an axis has a list or an interval"),
    };
    Tried::Number(format!("{value:.3e}").parse().expect("a number"))
}

fn untunable(algorithm: &AlgorithmSpec, key: &str) -> Error {
    let message = format!("`{}` has no parameter `{key}` to tune", algorithm.label);
    Error::config("tune/unknown-parameter", message)
        .hint("name one of its parameters; to tune a schedule, replace it with a number")
}
