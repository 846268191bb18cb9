//! What an algorithm is tried with.

use std::collections::BTreeMap;

use super::spec::{Between, Method, Range, Scale, TuneSpec};
use lopa::error::{Error, Result};
use lopa::experiment::AlgorithmSpec;
use lopa::math::random::{Purpose, Stream};

/// Values of some parameters.
pub type Candidate = BTreeMap<String, f64>;

/// The parameters of an algorithm that are searched, and over what.
pub struct Space {
    axes: Vec<(String, Range)>,
    same: Vec<(String, String)>,
    base: Candidate,
}

impl Space {
    /// The ranges that the section gives for an algorithm, or else the usual ones.
    pub fn new(spec: &TuneSpec, algorithm: &AlgorithmSpec) -> Result<Space> {
        let params = &algorithm.choice.params;
        let number = |key: &str| {
            let value = params.get(key)?;
            value.as_float().or(value.as_integer().map(|whole| whole as f64))
        };
        let given = ["*", algorithm.label.as_str()].into_iter().filter_map(|l| spec.ranges.get(l));
        let mut ranges: BTreeMap<String, Range> = BTreeMap::new();
        for (key, range) in given.flatten() {
            ranges.insert(key.clone(), range.clone());
        }
        if ranges.is_empty() {
            ranges = usual(&number);
        }
        // A range for all algorithms concerns those that have the parameter.
        let own = spec.ranges.get(&algorithm.label);
        let asked = |key: &String| own.is_some_and(|own| own.contains_key(key));
        let mut base = Candidate::new();
        for key in ranges.keys() {
            match number(key) {
                Some(value) => base.insert(key.clone(), value),
                None if asked(key) => return Err(absent(algorithm, key)),
                None => None,
            };
        }
        ranges.retain(|key, _| base.contains_key(key));
        let (mut axes, mut same) = (Vec::new(), Vec::new());
        for (key, range) in ranges {
            match range {
                Range::Same(other) if base.contains_key(&other) => same.push((key, other)),
                Range::Same(other) => return Err(absent(algorithm, &other)),
                range => axes.push((key, range)),
            }
        }
        Ok(Space { axes, same, base })
    }

    /// The values of every trial: the file's own first.
    pub fn candidates(&self, spec: &TuneSpec) -> Result<Vec<Candidate>> {
        let mut all = vec![self.base.clone()];
        if spec.method == Method::Grid {
            all.extend(self.grid(spec.trials - 1)?);
        }
        // The draws are the same for every algorithm.
        let mut stream = Stream::new(spec.seeds[0], Purpose::Tuning, 0);
        while all.len() < spec.trials && !self.axes.is_empty() {
            stream.seek(all.len() as u64, 0);
            let at: Vec<f64> = self.axes.iter().map(|_| stream.unit()).collect();
            all.push(self.candidate(&at));
        }
        Ok(all)
    }

    /// The largest even grid of at most `most` points.
    fn grid(&self, most: usize) -> Result<Vec<Candidate>> {
        let listed = |range: &Range| match range {
            Range::Values(values) => Some(values.len()),
            _ => None,
        };
        let fixed: usize = self.axes.iter().filter_map(|(_, range)| listed(range)).product();
        let free = self.axes.iter().filter(|(_, range)| listed(range).is_none()).count();
        if fixed > most && fixed > 1 {
            let message = format!("the values to try make a grid of {fixed} points");
            return Err(Error::config("config/out-of-range", message)
                .hint(format!("allow `trials = {}`, or give fewer values", fixed + 1)));
        }
        let fits = |points: usize| points.saturating_pow(free as u32).saturating_mul(fixed) <= most;
        let points = (1..=most).take_while(|&points| fits(points)).last().unwrap_or(0);
        if points == 0 || self.axes.is_empty() {
            return Ok(Vec::new());
        }
        let counts: Vec<usize> =
            self.axes.iter().map(|(_, range)| listed(range).unwrap_or(points)).collect();
        let point = |mut number: usize| {
            let at = counts.iter().map(|&count| {
                let index = number % count;
                number /= count;
                // From end to end; a single point is in the middle.
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
        for ((key, range), &u) in self.axes.iter().zip(at) {
            candidate.insert(key.clone(), value(range, u));
        }
        for (key, other) in &self.same {
            candidate.insert(key.clone(), candidate[other]);
        }
        candidate
    }
}

/// The usual ranges, around the values in the file.
fn usual(number: &dyn Fn(&str) -> Option<f64>) -> BTreeMap<String, Range> {
    let around = |key: &str, factor: f64| {
        let middle = number(key)?;
        let between = Between { low: middle / factor, high: middle * factor, scale: Scale::Log };
        Some((key.to_string(), Range::Between(between)))
    };
    let lambda = || {
        let both = number("lambda").and(number("beta"));
        both.map(|_| ("lambda".to_string(), Range::Same("beta".into())))
    };
    [around("alpha", 30.0), around("beta", 10.0), lambda()].into_iter().flatten().collect()
}

/// The value of a range at u in [0, 1], to four digits: more mean nothing and are hard to read.
fn value(range: &Range, u: f64) -> f64 {
    let value = match range {
        Range::Values(values) => {
            return values[((u * values.len() as f64) as usize).min(values.len() - 1)];
        }
        Range::Between(Between { low, high, scale: Scale::Log }) => {
            (low.ln() + u * (high.ln() - low.ln())).exp()
        }
        Range::Between(Between { low, high, scale: Scale::Linear }) => low + u * (high - low),
        Range::Same(_) => unreachable!("such a parameter is no axis"),
    };
    format!("{value:.3e}").parse().expect("a number")
}

fn absent(algorithm: &AlgorithmSpec, key: &str) -> Error {
    let message = format!("`{}` has no number `{key}` to tune", algorithm.label);
    Error::config("tune/unknown-parameter", message)
        .hint("name one of its parameters; a schedule cannot be tuned: give a number")
}
