//! Harrell's concordance: whether rows with higher risk scores have their events earlier.
//!
//! ```text
//! comparable   rows i, j where i has an event, and t_i < t_j, or t_i = t_j and j has none
//! C            share of comparable pairs with risk_i > risk_j; a pair of equal risks counts one half
//! ```

/// A row: when it was seen last, and whether an event was seen then.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// The time.
    pub time: f64,
    /// Whether the event was seen; else it is later, or never.
    pub event: bool,
}

/// C of risk scores; `None` if no pair can be compared or a score is not a number.
pub fn concordance(seen: &[Seen], risks: &[f64]) -> Option<f64> {
    if risks.iter().any(|risk| risk.is_nan()) {
        return None;
    }
    let mut sorted = risks.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup_by(|a, b| a == b);
    let rank = |row: usize| sorted.partition_point(|&risk| risk < risks[row]);
    // From the last time to the first: the rows counted so far are those that outlive an event.
    let mut order: Vec<usize> = (0..seen.len().min(risks.len())).collect();
    order.sort_by(|&a, &b| seen[b].time.total_cmp(&seen[a].time));
    let mut counted = Counts::new(sorted.len());
    let (mut pairs, mut won) = (0u64, 0.0);
    for together in order.chunk_by(|&a, &b| seen[a].time == seen[b].time) {
        let (events, others): (Vec<usize>, Vec<usize>) =
            together.iter().partition(|&&row| seen[row].event);
        others.iter().for_each(|&row| counted.add(rank(row)));
        for &row in &events {
            let (below, same) = counted.below_and_at(rank(row));
            pairs += counted.all;
            won += below as f64 + 0.5 * same as f64;
        }
        events.iter().for_each(|&row| counted.add(rank(row)));
    }
    (pairs > 0).then(|| won / pairs as f64)
}

/// How many of each rank were added, with sums in logarithmic time (a Fenwick tree).
struct Counts {
    tree: Vec<u64>,
    all: u64,
}

impl Counts {
    fn new(ranks: usize) -> Counts {
        Counts { tree: vec![0; ranks + 1], all: 0 }
    }

    fn add(&mut self, rank: usize) {
        self.all += 1;
        let mut at = rank + 1;
        while at < self.tree.len() {
            self.tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// How many have a rank below this number.
    fn below(&self, rank: usize) -> u64 {
        let (mut at, mut sum) = (rank, 0);
        while at > 0 {
            sum += self.tree[at];
            at -= at & at.wrapping_neg();
        }
        sum
    }

    fn below_and_at(&self, rank: usize) -> (u64, u64) {
        let below = self.below(rank);
        (below, self.below(rank + 1) - below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::random::{Purpose, Stream};

    fn seen(rows: &[(f64, bool)]) -> Vec<Seen> {
        rows.iter().map(|&(time, event)| Seen { time, event }).collect()
    }

    #[test]
    fn pairs_are_those_counted_by_hand() {
        let rows = seen(&[(1.0, true), (2.0, false), (3.0, true), (3.0, false), (3.0, true)]);
        // The first event is before four rows; each of those at 3 is before the row that is not seen again.
        assert_eq!(concordance(&rows, &[5.0, 4.0, 3.0, 2.0, 1.0]), Some(5.0 / 6.0));
        assert_eq!(concordance(&rows, &[1.0; 5]), Some(0.5));
        assert_eq!(concordance(&rows, &[0.0, 9.0, 9.0, 9.0, 9.0]), Some(1.0 / 6.0));
        assert_eq!(concordance(&seen(&[(1.0, false), (2.0, true)]), &[1.0, 2.0]), None);
        assert_eq!(concordance(&[], &[]), None);
        assert_eq!(concordance(&rows, &[f64::NAN; 5]), None);
    }

    #[test]
    fn sums_are_those_of_all_pairs_one_by_one() {
        let mut stream = Stream::new(5, Purpose::Data, 0);
        let rows: Vec<Seen> = (0..120)
            .map(|_| Seen { time: stream.below(30) as f64, event: stream.unit() < 0.6 })
            .collect();
        let risks: Vec<f64> = (0..120).map(|_| stream.below(25) as f64).collect();
        let (mut pairs, mut won) = (0.0, 0.0);
        for (i, a) in rows.iter().enumerate().filter(|(_, a)| a.event) {
            for (j, b) in rows.iter().enumerate() {
                if a.time < b.time || a.time == b.time && !b.event {
                    pairs += 1.0;
                    won += match risks[i].total_cmp(&risks[j]) {
                        std::cmp::Ordering::Greater => 1.0,
                        std::cmp::Ordering::Equal => 0.5,
                        std::cmp::Ordering::Less => 0.0,
                    };
                }
            }
        }
        assert_eq!(concordance(&rows, &risks), Some(won / pairs));
    }
}
