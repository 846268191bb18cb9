//! Ranks.

/// The probability that one of `high` is above one of `low`; a tie counts half. This is the area under
/// the ROC curve. `low` is sorted.
pub fn auc(high: &[f64], low: &mut [f64]) -> f64 {
    low.sort_by(f64::total_cmp);
    let wins = high.iter().map(|value| {
        let below = low.partition_point(|other| other < value);
        let not_above = low.partition_point(|other| other <= value);
        (below + not_above) as f64 / 2.0
    });
    wins.sum::<f64>() / (high.len() as f64 * low.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::auc;

    #[test]
    fn pairs_are_counted_and_ties_count_half() {
        // Of six pairs 3 are won, 2 are tied and 1 is lost.
        assert_eq!(auc(&[0.9, 0.5, 0.3], &mut [0.5, 0.3]), (2.0 + 1.5 + 0.5) / 6.0);
        assert_eq!(auc(&[0.5; 4], &mut [0.5; 7]), 0.5);
        assert_eq!(auc(&[2.0, 3.0], &mut [1.0, 0.0]), 1.0);
        assert_eq!(auc(&[0.0], &mut [1.0]), 0.0);
    }
}
