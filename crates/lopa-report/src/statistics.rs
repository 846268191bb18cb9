//! Measurements over all seeds.

use std::collections::BTreeMap;

use lopa::run::trace::Row;
use lopa_study::statistics::Summary;

use crate::saved::Saved;

/// An algorithm's measurements over all seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The algorithm's label.
    pub algorithm: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The k-th measurements of all seeds, by quantity.
    pub points: Vec<BTreeMap<String, Summary>>,
    /// The last measurements of all seeds.
    pub last: BTreeMap<String, Summary>,
}

/// The traces of a run, one per algorithm. The k-th measurements of the seeds belong together: they
/// are taken at the same part of the budget.
pub fn traces(saved: &Saved) -> Vec<Trace> {
    saved.algorithms().iter().map(|algorithm| trace(saved, algorithm)).collect()
}

fn trace(saved: &Saved, algorithm: &str) -> Trace {
    let seeds = saved.seeds(algorithm);
    let of_seed = |seed: &u64| -> Vec<&Row> {
        let lines = saved.rows.iter();
        let own = lines.filter(|line| line.algorithm == algorithm && line.seed == *seed);
        own.map(|line| &line.row).collect()
    };
    let runs: Vec<_> = seeds.iter().map(of_seed).collect();
    let longest = runs.iter().map(Vec::len).max().unwrap_or(0);
    let at = |k: usize| together(runs.iter().filter_map(|run| run.get(k).copied()));
    let points = (0..longest).map(at).collect();
    let last = together(runs.iter().filter_map(|run| run.last().copied()));
    Trace { algorithm: algorithm.to_string(), seeds, points, last }
}

fn together<'a>(rows: impl Iterator<Item = &'a Row>) -> BTreeMap<String, Summary> {
    let mut numbers: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in rows.flat_map(Row::quantities) {
        numbers.entry(name).or_default().push(value);
    }
    let summary = |(name, numbers): (&str, Vec<f64>)| Some((name.into(), Summary::of(numbers)?));
    numbers.into_iter().filter_map(summary).collect()
}

#[cfg(test)]
mod tests {
    use lopa::folder::{Machine, Manifest, MetricsRow, Status};
    use lopa::problem::oracle::Counts;

    use super::*;

    #[test]
    fn seeds_are_put_together_by_the_order_of_measurements() {
        let line = |seed, iteration, loss: Option<f64>| {
            let values = loss.map(|loss| ("loss".to_string(), loss)).into_iter().collect();
            let row = Row { iteration, values, ..Row::new(&Counts::default(), 1) };
            MetricsRow { algorithm: "a".into(), seed, row }
        };
        // Seed 2 diverges at its second measurement, and stops there.
        let rows = vec![
            line(1, 0, Some(4.0)),
            line(1, 10, Some(2.0)),
            line(1, 20, Some(1.0)),
            line(2, 0, Some(6.0)),
            line(2, 10, None),
        ];
        let saved = Saved {
            name: "run".into(),
            manifest: manifest(),
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

    fn manifest() -> Manifest {
        Manifest {
            lopa: "0.1.0".into(),
            name: "run".into(),
            started: String::new(),
            status: Status::Done,
            experiment_digest: String::new(),
            data_digest: None,
            algorithms: vec!["a".into()],
            classes: None,
            seeds: vec![1, 2],
            worlds: Vec::new(),
            threads: 1,
            machine: Machine { arch: String::new(), os: String::new(), simd: Vec::new() },
            ended: None,
            resumed: Vec::new(),
            other: Default::default(),
        }
    }
}
