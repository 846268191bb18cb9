//! How many rows decide an accuracy.
//!
//! ```text
//! n_i      rows that node i is judged on
//! own rows at each node (its own files, or rows that it holds out):  n = m² / Σ_i 1/n_i
//! the same test rows at all nodes:                                   n = m  / Σ_i 1/n_i
//! ```
//!
//! An accuracy p is a mean over the nodes; its variance by the draw of the rows is p (1 − p)/n if every
//! node is right with probability p, and, on common rows, at most that.

use std::collections::BTreeMap;

use crate::data::partition::Partition;
use crate::data::{Data, Target};

/// n of `test_accuracy`, `own_test_accuracy` and `holdout_accuracy`; without those that no row decides or
/// whose rows are not all here.
pub fn rows(data: &Data, partition: &Partition, holdout: &[Vec<u32>]) -> BTreeMap<String, f64> {
    let here = data.own.as_ref().map_or(partition.nodes.len(), |own| own.here.len());
    // The sampling error of other measures does not follow from the number of rows.
    if here != partition.nodes.len() || !matches!(data.target(), Target::Classes(_)) {
        return BTreeMap::new();
    }
    let classes = data.classes.len();
    let own = partition.counts(data.train.labels(), classes);
    let tests: Vec<Vec<usize>> = match data.test.owners() {
        Some(owners) => owners.iter().map(|rows| tested(data, rows.clone(), classes)).collect(),
        None => vec![tested(data, 0..data.test.len() as u32, classes)],
    };
    let of = |node: usize| &tests[node.min(tests.len() - 1)];
    let all = (0..own.len()).map(|node| of(node).iter().sum());
    let seen = |node: usize| {
        let known = of(node).iter().zip(&own[node]).filter(|(_, own)| **own > 0);
        known.map(|(rows, _)| rows).sum()
    };
    let apart = data.test.owners().is_some();
    let found = [
        ("test_accuracy", number(all, apart)),
        ("own_test_accuracy", number((0..own.len()).map(seen), apart)),
        ("holdout_accuracy", number(holdout.iter().map(Vec::len), true)),
    ];
    found.into_iter().filter_map(|(name, n)| Some((name.to_string(), n?))).collect()
}

/// Test rows of each class.
fn tested(data: &Data, rows: std::ops::Range<u32>, classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    let labels = &data.test.labels()[rows.start as usize..rows.end as usize];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    counts
}

/// n, from every node's number of rows; none if a node has no rows.
fn number(nodes: impl ExactSizeIterator<Item = usize>, apart: bool) -> Option<f64> {
    let m = nodes.len() as f64;
    let sum: f64 = nodes.map(|rows| 1.0 / rows as f64).sum();
    let n = if apart { m * m / sum } else { m / sum };
    (n.is_finite() && n > 0.0).then_some(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_nodes_add_up_only_where_each_has_its_own() {
        assert_eq!(number([50, 50].into_iter(), true), Some(100.0));
        assert_eq!(number([50, 50].into_iter(), false), Some(50.0));
        // 1/10 + 1/90: the small node weighs as much as the large one, and decides.
        assert!((number([10, 90].into_iter(), true).unwrap() - 36.0).abs() < 1e-12);
        assert_eq!(number([10, 0].into_iter(), true), None);
        assert_eq!(number([].into_iter(), true), None);
    }
}
