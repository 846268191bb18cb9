//! How a metric spreads over nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a metric spreads over nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quartiles {
    /// The smallest.
    pub min: f64,
    /// A quarter of the nodes are not above it.
    pub lower: f64,
    /// Half of the nodes are not above it.
    pub median: f64,
    /// Three quarters of the nodes are not above it.
    pub upper: f64,
    /// The largest.
    pub max: f64,
}

impl Quartiles {
    /// Of values that are finite; `None` if there are none.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Quartiles> {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let [min, lower, median, upper, max] = [0, 1, 2, 3, 4].map(|part| values[last * part / 4]);
        Some(Quartiles { min, lower, median, upper, max })
    }

    /// Of every metric of some nodes.
    pub fn of_nodes(nodes: &[Vec<(String, f64)>]) -> BTreeMap<String, Quartiles> {
        let names = nodes.first().into_iter().flatten().enumerate();
        let spread = |(at, (name, _)): (usize, &(String, f64))| {
            let values = nodes.iter().filter_map(|node| Some(node.get(at)?.1));
            Some((name.clone(), Quartiles::of(values)?))
        };
        names.filter_map(spread).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_known_values() {
        let found = Quartiles::of([5.0, 1.0, f64::NAN, 4.0, 2.0, 3.0].into_iter()).unwrap();
        let expected = Quartiles { min: 1.0, lower: 2.0, median: 3.0, upper: 4.0, max: 5.0 };
        assert_eq!(found, expected);
        assert_eq!(Quartiles::of([f64::NAN].into_iter()), None);
        let nodes = [vec![("loss".to_string(), 2.0)], vec![("loss".to_string(), 1.0)]];
        assert_eq!(Quartiles::of_nodes(&nodes)["loss"].max, 2.0);
    }
}
