//! Measurements over all seeds.

use std::collections::BTreeMap;

use lopa::folder::Run;
use lopa::run::trace::Row;
use lopa_study::seeds::{Count, Ended, Seeds};
use lopa_study::statistics::Summary;

use crate::saved::Saved;

/// An algorithm's measurements over all seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The algorithm's label.
    pub algorithm: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// How many of them did not diverge.
    pub count: Count,
    /// The k-th measurements of the seeds that did not diverge, by quantity.
    pub points: Vec<BTreeMap<String, Summary>>,
    /// The last measurements of the seeds that did not diverge.
    pub last: BTreeMap<String, Summary>,
    /// The runs that diverged.
    pub lost: Vec<Run>,
}

impl Trace {
    /// Every measured quantity with a value: means over the runs that did not diverge, and the
    /// values of those that did.
    pub fn quantities(&self) -> impl Iterator<Item = (&str, f64)> {
        let sound = self.points.iter().flatten().map(|(name, found)| (name.as_str(), found.mean));
        sound.chain(self.lost.iter().flat_map(|run| &run.rows).flat_map(Row::quantities))
    }
}

/// The traces of a run, one per algorithm. The k-th measurements of the seeds belong together: they
/// are taken at the same part of the budget.
pub fn traces(saved: &Saved) -> Vec<Trace> {
    saved.algorithms().iter().map(|algorithm| trace(saved, algorithm)).collect()
}

fn trace(saved: &Saved, algorithm: &str) -> Trace {
    let seeds = saved.seeds(algorithm);
    let runs: Vec<Run> = seeds.iter().map(|&seed| run(saved, algorithm, seed)).collect();
    let all = Seeds::of(algorithm, &runs);
    let sound: Vec<&Run> = all.sound().collect();
    let longest = sound.iter().map(|run| run.rows.len()).max().unwrap_or(0);
    let at = |k: usize| together(sound.iter().filter_map(|run| run.rows.get(k)));
    let mut points: Vec<_> = (0..longest).map(at).collect();
    forget_rounding(&mut points);
    Trace {
        algorithm: algorithm.to_string(),
        seeds,
        count: all.count(),
        points,
        last: together(sound.iter().filter_map(|run| run.rows.last())),
        lost: runs.iter().filter(|run| run.diverged).cloned().collect(),
    }
}

/// All copies start equal. Their measured distance is then rounding, which would fill most of a
/// logarithmic axis.
fn forget_rounding(points: &mut [BTreeMap<String, Summary>]) {
    let [first, second, ..] = points else { return };
    for name in ["consensus", "theta_consensus"] {
        if let (Some(start), Some(next)) = (first.get_mut(name), second.get(name))
            && start.high < 1e-12 * next.mean
        {
            *start = Summary { mean: 0.0, sd: start.sd.map(|_| 0.0), low: 0.0, high: 0.0 };
        }
    }
}

/// One run, whether it has ended or not.
fn run(saved: &Saved, algorithm: &str, seed: u64) -> Run {
    let own = saved.rows.iter().filter(|line| line.algorithm == algorithm && line.seed == seed);
    let rows = own.map(|line| line.row.clone()).collect();
    let result = saved.results.iter().find(|result| result.is_of(algorithm, seed));
    let diverged = result.is_some_and(Ended::diverged);
    Run { algorithm: algorithm.to_string(), seed, diverged, rows }
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
    use lopa::problem::derivative::Counts;
    use lopa::run::Outcome;
    use lopa::run::trace::Stop;

    use super::*;

    #[test]
    fn seeds_are_put_together_by_the_order_of_measurements() {
        let line = |seed, iteration, loss: Option<f64>| {
            let values = loss.map(|loss| ("loss".to_string(), loss)).into_iter().collect();
            let row = Row { iteration, values, ..Row::new(&Counts::default(), 1) };
            MetricsRow { algorithm: "a".into(), seed, row }
        };
        // Seed 2 is still under way; seed 3 has diverged.
        let rows = vec![
            line(1, 0, Some(4.0)),
            line(1, 10, Some(2.0)),
            line(1, 20, Some(1.0)),
            line(2, 0, Some(6.0)),
            line(2, 10, None),
            line(3, 0, Some(5.0)),
            line(3, 10, Some(2.8e144)),
        ];
        let lost = Outcome {
            algorithm: "a".into(),
            seed: 3,
            digest: String::new(),
            stop: Stop::Diverged,
            row: rows[6].row.clone(),
            measuring: 0.0,
            diagnosis: None,
            chapters: Vec::new(),
            messages: None,
            nodes: Vec::new(),
            spread: Default::default(),
            models: Vec::new(),
        };
        let saved = Saved {
            name: "run".into(),
            manifest: manifest(),
            settings: String::new(),
            rows,
            results: vec![lost],
        };
        let [trace] = traces(&saved).try_into().unwrap();
        assert_eq!(trace.seeds, [1, 2, 3]);
        assert_eq!(trace.count, Count { sound: 2, of: 3 });
        let losses: Vec<f64> = trace.points.iter().map(|point| point["loss"].mean).collect();
        assert_eq!(losses, [5.0, 2.0, 1.0]);
        assert_eq!(trace.points[1]["iteration"].mean, 10.0);
        assert_eq!(trace.last["iteration"].mean, 15.0);
        assert_eq!(trace.last["loss"].mean, 1.0);
        assert_eq!((trace.lost[0].seed, trace.lost[0].rows.len()), (3, 2));
        assert!(trace.quantities().any(|(name, value)| (name, value) == ("loss", 2.8e144)));
    }

    #[test]
    fn copies_that_differ_by_rounding_are_equal() {
        let point = |consensus: f64| {
            BTreeMap::from([("consensus".to_string(), Summary::of(vec![consensus; 2]).unwrap())])
        };
        let mut points = [point(1e-29), point(1e-3), point(1e-29)];
        forget_rounding(&mut points);
        let means: Vec<f64> = points.iter().map(|point| point["consensus"].mean).collect();
        assert_eq!(means, [0.0, 1e-3, 1e-29]);
        let mut apart = [point(1e-9), point(1e-3)];
        forget_rounding(&mut apart);
        assert_eq!(apart[0]["consensus"].mean, 1e-9);
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
            nodes: Vec::new(),
            seeds: vec![1, 2, 3],
            final_theta: Default::default(),
            worlds: Vec::new(),
            threads: 1,
            machine: Machine {
                arch: String::new(),
                os: String::new(),
                simd: Vec::new(),
                device: None,
            },
            ended: None,
            resumed: Vec::new(),
            missed: Vec::new(),
            left: Default::default(),
            checksums: Default::default(),
            other: Default::default(),
        }
    }
}
