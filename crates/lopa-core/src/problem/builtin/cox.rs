//! Cox's partial likelihood: the loss of a risk score z where rows are times, and whether an event was
//! seen then.
//!
//! ```text
//! R_i      = { j : t_j ≥ t_i },  S_i = Σ_{j ∈ R_i} e^{z_j}       the risk set of row i, in the batch
//! ℓ_i      = log S_i − z_i  if row i has an event, else 0
//!
//! Σ w_i ℓ_i:   (∇)_k    = e^{z_k} Σ_{events i, k ∈ R_i} w_i/S_i  −  w_k [k has an event]
//!              (∇² a)_k = e^{z_k} Σ_{events i, k ∈ R_i} (w_i/S_i) (a_k − ā_i),   ā_i = Σ_{j ∈ R_i} e^{z_j} a_j / S_i
//! ```
//!
//! Events at equal times are in each other's risk sets: Breslow's rule for ties. A risk set has the rows of
//! the batch: with those of the node, each iteration would need the scores of all rows. On full batches
//! both are the same; on minibatches, the loss is that of smaller risk sets, and a batch of one row has
//! none.
//!
//! Sums are kept relative to the highest score of their risk set, so that no exponential overflows. Risk
//! sets shrink with time, and so do their highest scores.

use std::cmp::Ordering;

use super::goal::Goal;
use crate::math::real::Real;

/// The risk sets of a batch, as scratch memory.
#[derive(Debug, Clone)]
pub struct RiskSets<T> {
    rows: Vec<Row<T>>,
    order: Vec<u32>,   // rows, latest first
    sets: Vec<Set<T>>, // of the rows in this order
}

impl<T> Default for RiskSets<T> {
    fn default() -> RiskSets<T> {
        RiskSets { rows: Vec::new(), order: Vec::new(), sets: Vec::new() }
    }
}

/// t, whether an event was seen then, and w.
#[derive(Debug, Clone, Copy)]
struct Row<T> {
    time: T,
    event: bool,
    weight: T,
}

/// S = sum · e^top, and ā.
#[derive(Debug, Clone, Copy)]
struct Set<T> {
    top: T,
    sum: T,
    mean: T,
}

impl<T: Real> RiskSets<T> {
    /// Calls `f(r, w_r ℓ_r)` for every row.
    pub fn losses<'a>(
        &mut self,
        scores: &[T],
        each: impl Fn(usize) -> (Goal<'a, T>, T),
        mut f: impl FnMut(usize, T),
    ) {
        self.take(scores.len(), each);
        self.find(scores, None);
        for (&r, set) in self.order.iter().zip(&self.sets) {
            let (r, Row { event, weight, .. }) = (r as usize, self.rows[r as usize]);
            let loss = if event { set.sum.ln() + (set.top - scores[r]) } else { T::zero() };
            f(r, weight * loss);
        }
    }

    /// scores ← the gradient of Σ w_r ℓ_r with respect to them.
    pub fn slopes<'a>(&mut self, scores: &mut [T], each: impl Fn(usize) -> (Goal<'a, T>, T)) {
        self.take(scores.len(), each);
        self.find(scores, None);
        self.sweep(|r, top, rate, _| {
            let Row { event, weight, .. } = self.rows[r];
            let own = if event { weight } else { T::zero() };
            scores[r] = (scores[r] - top).exp() * rate - own;
        });
    }

    /// tangents a ← the Hessian of Σ w_r ℓ_r with respect to the scores, times a.
    pub fn curves<'a>(
        &mut self,
        scores: &[T],
        tangents: &mut [T],
        each: impl Fn(usize) -> (Goal<'a, T>, T),
    ) {
        self.take(scores.len(), each);
        self.find(scores, Some(tangents));
        self.sweep(|r, top, rate, pulled| {
            tangents[r] = (scores[r] - top).exp() * (tangents[r] * rate - pulled);
        });
    }

    /// Takes the rows. What follows is compiled once for all kinds of rows.
    fn take<'a>(&mut self, count: usize, each: impl Fn(usize) -> (Goal<'a, T>, T)) {
        self.rows.clear();
        self.rows.extend((0..count).map(|r| {
            let (goal, weight) = each(r);
            let time = goal.time().copied().unwrap_or(T::zero());
            Row { time, event: goal.event(), weight }
        }));
    }

    /// The risk set of every row, from the latest time to the earliest.
    fn find(&mut self, scores: &[T], tangents: Option<&[T]>) {
        let RiskSets { rows, order, sets } = self;
        let time = |r: u32| rows[r as usize].time;
        order.clear();
        order.extend(0..scores.len() as u32);
        let later = |a: u32, b: u32| time(b).partial_cmp(&time(a)).unwrap_or(Ordering::Equal);
        order.sort_unstable_by(|&a, &b| later(a, b).then(a.cmp(&b)));
        let mut set = Set { top: T::neg_infinity(), sum: T::zero(), mean: T::zero() };
        let mut pulled = T::zero(); // ā · sum
        sets.clear();
        for (at, &r) in order.iter().enumerate() {
            let z = scores[r as usize];
            if z > set.top {
                let shrink = (set.top - z).exp();
                (set.sum, pulled, set.top) = (set.sum * shrink, pulled * shrink, z);
            }
            let share = (z - set.top).exp();
            set.sum += share;
            pulled += share * tangents.map_or(T::zero(), |tangents| tangents[r as usize]);
            set.mean = pulled / set.sum;
            // Rows at the same time have one risk set, which has all of them.
            let last = order.get(at + 1).is_none_or(|&next| time(next) != time(r));
            if last {
                sets.resize(at + 1, set);
            }
        }
    }

    /// Calls `f(r, top, Σ w_i/S_i, Σ w_i ā_i/S_i)` for every row, from the earliest time to the latest; the
    /// sums are over the events whose risk sets have the row, in units of e^−top.
    fn sweep(&self, mut f: impl FnMut(usize, T, T, T)) {
        let RiskSets { rows, order, sets } = self;
        let time = |at: usize| rows[order[at] as usize].time;
        let (mut rate, mut pulled) = (T::zero(), T::zero());
        let mut top = sets.last().map_or(T::zero(), |set| set.top);
        let mut end = order.len();
        while end > 0 {
            let Set { top: here, sum, mean } = sets[end - 1];
            let shrink = (here - top).exp();
            (rate, pulled, top) = (rate * shrink, pulled * shrink, here);
            let mut start = end - 1;
            while start > 0 && time(start - 1) == time(end - 1) {
                start -= 1;
            }
            for &r in &order[start..end] {
                let Row { event, weight, .. } = rows[r as usize];
                if event {
                    rate += weight / sum;
                    pulled += weight / sum * mean;
                }
            }
            order[start..end].iter().for_each(|&r| f(r as usize, top, rate, pulled));
            end = start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [[f64; 2]; 7] =
        [[3.0, 1.0], [1.0, 1.0], [3.0, 1.0], [2.0, 0.0], [5.0, 0.0], [3.0, 0.0], [4.0, 1.0]];
    const SCORES: [f64; 7] = [0.3, -1.2, 2.0, 0.7, -0.4, 1.1, 0.2];

    fn each(r: usize) -> (Goal<'static, f64>, f64) {
        (Goal::Numbers(&ROWS[r]), 0.5)
    }

    fn total(scores: &[f64]) -> f64 {
        let mut sum = 0.0;
        RiskSets::default().losses(scores, each, |_, loss| sum += loss);
        sum
    }

    /// The definition, pair by pair.
    #[test]
    fn losses_are_those_of_the_definition() {
        let mut found = vec![0.0; ROWS.len()];
        RiskSets::default().losses(&SCORES, each, |r, loss| found[r] = loss);
        for (i, [time, event]) in ROWS.iter().enumerate() {
            let in_set = ROWS.iter().zip(SCORES).filter(|(row, _)| row[0] >= *time);
            let sum: f64 = in_set.map(|(_, z)| Real::exp(z)).sum();
            let want = if *event > 0.5 { 0.5 * (Real::ln(sum) - SCORES[i]) } else { 0.0 };
            assert!((found[i] - want).abs() < 1e-14, "{i}: {} {want}", found[i]);
        }
    }

    #[test]
    fn derivatives_are_differences() {
        let mut slopes = SCORES;
        RiskSets::default().slopes(&mut slopes, each);
        let tangents = [1.0, -0.5, 0.25, 2.0, -1.0, 0.0, 0.75];
        let mut curves = tangents;
        RiskSets::default().curves(&SCORES, &mut curves, each);
        let step = 1e-5;
        let moved = |k: usize, by: f64| {
            let mut scores = SCORES;
            scores[k] += by;
            scores
        };
        for k in 0..ROWS.len() {
            let found = (total(&moved(k, step)) - total(&moved(k, -step))) / (2.0 * step);
            assert!((slopes[k] - found).abs() < 1e-9, "{k}: {} {found}", slopes[k]);
            let slope = |by: f64| {
                let mut scores = SCORES;
                scores.iter_mut().zip(tangents).for_each(|(z, a)| *z += by * a);
                RiskSets::default().slopes(&mut scores, each);
                scores[k]
            };
            let found = (slope(step) - slope(-step)) / (2.0 * step);
            assert!((curves[k] - found).abs() < 1e-9, "{k}: {} {found}", curves[k]);
        }
    }

    /// Scores that differ by more than any exponential holds, in every order.
    #[test]
    fn far_scores_stay_finite() {
        for sign in [1.0, -1.0] {
            let scores: Vec<f64> = (0..7).map(|r| sign * 900.0 * (r as f64 - 3.0)).collect();
            assert!(total(&scores).is_finite());
            let (mut slopes, mut curves) = (scores.clone(), vec![1.0; 7]);
            RiskSets::default().slopes(&mut slopes, each);
            RiskSets::default().curves(&scores, &mut curves, each);
            assert!(slopes.iter().chain(&curves).all(|value| value.is_finite()));
            // A common shift changes nothing.
            assert!(slopes.iter().sum::<f64>().abs() < 1e-12);
            assert!(curves.iter().all(|value| value.abs() < 1e-12), "{curves:?}");
        }
    }

    #[test]
    fn a_row_alone_has_no_loss() {
        let mut scores = [4.0];
        let mut sets = RiskSets::default();
        sets.losses(&[4.0], each, |_, loss| assert_eq!(loss, 0.0));
        sets.slopes(&mut scores, each);
        assert_eq!(scores, [0.0]);
    }
}
