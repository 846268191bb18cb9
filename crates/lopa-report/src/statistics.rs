//! What several seeds say together.

use std::collections::BTreeMap;

use crate::saved::Saved;

/// Mean and spread of a few numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of a sample; zero for a single number.
    pub sd: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Summary {
    /// Sums up the finite ones of some numbers, if there are any.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Summary> {
        let numbers: Vec<f64> = numbers.into_iter().filter(|number| number.is_finite()).collect();
        let count = numbers.len() as f64;
        let low = numbers.iter().copied().reduce(f64::min)?;
        let high = numbers.iter().copied().reduce(f64::max)?;
        // Rounding must not push the mean of equal numbers off their value.
        let mean = (numbers.iter().sum::<f64>() / count).clamp(low, high);
        let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
        let sd = if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Some(Summary { mean, sd, low, high })
    }
}

/// An algorithm's measurements over all seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The algorithm's label.
    pub algorithm: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The k-th measurement of all seeds together, by quantity.
    pub points: Vec<BTreeMap<String, Summary>>,
    /// The last measurement of all seeds together.
    pub last: BTreeMap<String, Summary>,
}

/// The traces of a run, an algorithm each. The k-th measurements of the seeds belong together: they
/// are taken at the same part of the budget.
pub fn traces(saved: &Saved) -> Vec<Trace> {
    saved.algorithms().iter().map(|algorithm| trace(saved, algorithm)).collect()
}

fn trace(saved: &Saved, algorithm: &str) -> Trace {
    let seeds = saved.seeds(algorithm);
    let of_seed = |seed: &u64| -> Vec<&BTreeMap<String, f64>> {
        let rows = saved.rows.iter();
        let own = rows.filter(|row| row.algorithm == algorithm && row.seed == *seed);
        own.map(|row| &row.values).collect()
    };
    let runs: Vec<_> = seeds.iter().map(of_seed).collect();
    let longest = runs.iter().map(Vec::len).max().unwrap_or(0);
    let at = |k: usize| together(runs.iter().filter_map(|run| run.get(k).copied()));
    let points = (0..longest).map(at).collect();
    let last = together(runs.iter().filter_map(|run| run.last().copied()));
    Trace { algorithm: algorithm.to_string(), seeds, points, last }
}

fn together<'a>(
    rows: impl Iterator<Item = &'a BTreeMap<String, f64>>,
) -> BTreeMap<String, Summary> {
    let mut numbers: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for (name, value) in rows.flatten() {
        numbers.entry(name).or_default().push(*value);
    }
    let summary =
        |(name, numbers): (&String, Vec<f64>)| Some((name.clone(), Summary::of(numbers)?));
    numbers.into_iter().filter_map(summary).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::saved::Line;

    #[test]
    fn known_numbers() {
        let summary = Summary::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0, f64::NAN]).unwrap();
        assert_eq!((summary.mean, summary.low, summary.high), (5.0, 2.0, 9.0));
        assert!((summary.sd - (32.0f64 / 7.0).sqrt()).abs() < 1e-15);
        assert_eq!(Summary::of([3.0]).unwrap().sd, 0.0);
        assert_eq!(Summary::of([f64::NAN, f64::INFINITY]), None);
    }

    proptest! {
        #[test]
        fn the_mean_lies_between(numbers in prop::collection::vec(-1e9f64..1e9, 1..9)) {
            let summary = Summary::of(numbers).unwrap();
            prop_assert!(summary.low <= summary.mean && summary.mean <= summary.high);
            prop_assert!(summary.sd >= 0.0);
        }
    }

    #[test]
    fn seeds_are_put_together_by_the_order_of_measurements() {
        let line = |seed, iteration: f64, loss: Option<f64>| {
            let loss = loss.map(|loss| ("loss".to_string(), loss));
            let values = [("iteration".to_string(), iteration)].into_iter().chain(loss).collect();
            Line { algorithm: "a".into(), seed, values }
        };
        // Seed 2 diverges at its second measurement, and stops there.
        let rows = vec![
            line(1, 0.0, Some(4.0)),
            line(1, 10.0, Some(2.0)),
            line(1, 20.0, Some(1.0)),
            line(2, 0.0, Some(6.0)),
            line(2, 10.0, None),
        ];
        let saved = Saved {
            name: "run".into(),
            manifest: Value::Null,
            settings: String::new(),
            rows,
            results: Vec::new(),
        };
        let [trace] = traces(&saved).try_into().unwrap();
        assert_eq!(trace.seeds, [1, 2]);
        let losses: Vec<f64> = trace.points.iter().map(|point| point["loss"].mean).collect();
        assert_eq!(losses, [5.0, 2.0, 1.0]);
        assert_eq!(trace.points[1]["iteration"].mean, 10.0);
        assert_eq!(trace.last["iteration"].mean, 15.0);
        assert_eq!(trace.last["loss"].mean, 1.0);
    }
}
