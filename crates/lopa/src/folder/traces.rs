//! The measurements of runs, by which comparisons and claims are judged.

use crate::run::trace::{Row, more_is_better};

/// The runs of a folder that ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Traces {
    /// In the order they were run.
    pub runs: Vec<Run>,
}

/// The trace of one algorithm on one seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The label.
    pub algorithm: String,
    /// The seed.
    pub seed: u64,
    /// Whether it diverged.
    pub diverged: bool,
    /// Its measurements.
    pub rows: Vec<Row>,
}

impl Traces {
    /// The runs of an algorithm, by seed.
    pub fn of(&self, algorithm: &str) -> Vec<&Run> {
        let mut runs: Vec<&Run> =
            self.runs.iter().filter(|run| run.algorithm == algorithm).collect();
        runs.sort_by_key(|run| run.seed);
        runs
    }
}

impl Run {
    /// A measure at the end.
    pub fn last(&self, name: &str) -> Option<f64> {
        self.rows.last()?.value(name)
    }

    /// The last row within a budget that has the measure, and its value, without interpolation.
    pub fn within(&self, cost: &str, budget: f64, measure: &str) -> Option<(&Row, f64)> {
        let inside = |row: &&Row| row.value(cost).is_some_and(|spent| spent <= budget);
        let measured = |row| Some((row, Row::value(row, measure)?));
        self.rows.iter().filter(inside).filter_map(measured).next_back()
    }

    /// The first row at which a measure is as good as `level`.
    pub fn reaches(&self, measure: &str, level: f64) -> Option<&Row> {
        let more = more_is_better(measure);
        let there = |value: f64| if more { value >= level } else { value <= level };
        self.rows.iter().find(|row| row.value(measure).is_some_and(there))
    }

    /// The cost at which a measure was as good as `level`, interpolated linearly between
    /// measurements; `None` if it never was.
    pub fn cost_to(&self, cost: &str, measure: &str, level: f64, more: bool) -> Option<f64> {
        let points: Vec<(f64, f64)> = self
            .rows
            .iter()
            .filter_map(|row| Some((row.value(cost)?, row.value(measure)?)))
            .collect();
        let reached = |value: f64| if more { value >= level } else { value <= level };
        let at = points.iter().position(|&(_, value)| reached(value))?;
        let (cost, value) = points[at];
        let Some((before, worse)) = at.checked_sub(1).map(|before| points[before]) else {
            return Some(cost);
        };
        Some(before + (cost - before) * (level - worse) / (value - worse))
    }
}
