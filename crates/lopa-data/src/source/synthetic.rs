//! Synthetic data: it depends on its own seed, not on the experiment's.

use super::Where;
use super::raw::{Class, Part, Raw, Table, Usual};
use crate::error::{Fault, Result};
use crate::math::random::{Purpose, Stream};
use crate::math::real::dot;
use crate::params;
use crate::{Features, Unnamed};

/// The largest number of entries of a table.
const MAX_ENTRIES: usize = 1 << 28;

params! {
    /// Parameters of `blobs`.
    pub struct Blobs {
        /// Number of rows.
        rows: usize = 600;
        /// Number of features.
        features: usize = 10;
        /// Number of classes: the centre of each is drawn from a standard normal distribution.
        centres: usize = 3;
        /// Standard deviation of a row about the centre of its class.
        spread: f64 = 1.0, not_negative;
        /// Share of entries that are set to zero; the table is sparse unless this is 0.
        sparsity: f64 = 0.0, share_or_none;
        /// Seed.
        seed: u64 = 0;
    }
    check |blobs| {
        check_size(blobs.rows, "features", blobs.features)?;
        let right = (1..=blobs.rows.min(10_000)).contains(&blobs.centres);
        Fault::unless(right, "centres", blobs.centres, "from 1 to `rows`, at most 10000")
    }
}

fn check_size(rows: usize, key: &'static str, cols: usize) -> Result<(), Fault> {
    Fault::unless((1..=MAX_ENTRIES).contains(&rows), "rows", rows, "from 1 to 268435456")?;
    let right = (1..=MAX_ENTRIES / rows).contains(&cols);
    Fault::unless(right, key, cols, "at least 1, and rows times features at most 268435456")
}

pub fn blobs(params: &Blobs, _: &Where) -> Result<Raw> {
    let Blobs { rows, features, centres, spread, sparsity, seed } = params.clone();
    let mut stream = Stream::new(seed, Purpose::Problem, 0);
    let centre: Vec<f64> = (0..centres * features).map(|_| stream.normal()).collect();
    let mut values = Vec::with_capacity(rows * features);
    for row in 0..rows {
        let class = row % centres;
        let centre = &centre[class * features..(class + 1) * features];
        values.extend(centre.iter().map(|centre| {
            let value = centre + spread * stream.normal();
            // Always drawn, so that sparsity changes nothing else.
            if stream.unit() < sparsity { 0.0 } else { value }
        }));
    }
    let dense = Table::Numbers(Features::Dense { cols: features, values });
    let all: Vec<u32> = (0..rows as u32).collect();
    let table = match sparsity > 0.0 {
        true => Table::Numbers(dense.take(&all, &Default::default(), true)),
        false => dense,
    };
    let labels = all.iter().map(|row| row % centres as u32).collect();
    Ok(synthetic(Part { table, labels, groups: Vec::new() }, centres, 0))
}

params! {
    /// Parameters of `logistic`.
    pub struct Logistic {
        /// Rows per group.
        rows: usize = 500;
        /// Number of features.
        features: usize = 100;
        /// Number of groups; features of group i = 1, 2, … have standard deviation i r.
        groups: usize = 8, from_to(1, 10_000);
        /// The r above: heterogeneity between groups.
        heterogeneity: f64 = 1.0, positive;
        /// Standard deviation of the noise on ⟨row, w⟩, whose sign is the label.
        noise: f64 = 0.1, not_negative;
        /// Seed.
        seed: u64 = 0;
    }
    check |logistic| {
        check_size(logistic.rows.saturating_mul(logistic.groups), "features", logistic.features)
    }
}

pub fn logistic(params: &Logistic, _: &Where) -> Result<Raw> {
    let Logistic { rows, features, groups, heterogeneity, noise, seed } = params.clone();
    let mut stream = Stream::new(seed, Purpose::Problem, 1);
    let w: Vec<f64> = (0..features).map(|_| stream.normal()).collect();
    let mut values = Vec::with_capacity(groups * rows * features);
    let (mut labels, mut of) = (Vec::new(), Vec::new());
    for group in 0..groups {
        let deviation = (group + 1) as f64 * heterogeneity;
        for _ in 0..rows {
            let start = values.len();
            values.extend((0..features).map(|_| deviation * stream.normal()));
            let score = dot(&values[start..], &w) + noise * stream.normal();
            labels.push(u32::from(score < 0.0));
            of.push(group as u32);
        }
    }
    let table = Table::Numbers(Features::Dense { cols: features, values });
    Ok(synthetic(Part { table, labels, groups: of }, 2, groups))
}

fn synthetic(train: Part, classes: usize, groups: usize) -> Raw {
    let classes = (0..classes).map(|class| class.to_string());
    let classes = classes.map(|name| Class { code: name.clone(), name }).collect();
    let groups = (0..groups).map(|group| group.to_string()).collect();
    let (usual, columns, test_at) = (Usual::nothing(), None, None);
    let unnamed = Unnamed::default();
    let none = Raw::new(Features::Dense { cols: 1, values: Vec::new() }, Vec::new(), &[]);
    Raw { train, classes, groups, usual, columns, unnamed, test_at, ..none }
}
