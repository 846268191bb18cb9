//! A lower bound of ε by attack: a guess whether a row took part, from everything that is released.

use lopa::problem::private::Private;
use lopa_privacy::{Release, epsilon};

use super::mechanism::{KEY, ask, mechanism};

const STEPS: u64 = 8;
const TRIALS: u64 = 4000;
const ROWS: usize = 5;
const BATCH: usize = 2;
const DELTA: f64 = 1e-5;

/// How far the answers of all steps point to the canary, whose vector is (1, 0) with the clip 1.
fn statistic(trial: u64, present: bool, sigma: f64) -> f64 {
    let mut rows = vec![vec![0.0, 0.3]; ROWS];
    rows[0] = if present { vec![1.0, 0.0] } else { vec![0.0, 0.0] };
    let key = KEY.of(&format!("{trial} {present}"));
    let mut private = Private::new(mechanism(ROWS, Some(BATCH), 1.0, sigma), key, 2);
    let q = BATCH as f64 / ROWS as f64;
    let step = |address| {
        private.begin();
        let sum = ask(&mut private, address, &[0.0, 0.0], &rows)[0] * BATCH as f64;
        // The most powerful test: the sum of the logarithms of likelihood ratios.
        (1.0 - q + q * ((2.0 * sum - 1.0) / (2.0 * sigma * sigma)).exp()).ln()
    };
    (0..STEPS).map(step).sum()
}

/// A lower bound of a probability, from hits among trials: normal approximation with 3.3 deviations, 1 in 2000.
fn at_least(hits: usize, trials: usize) -> f64 {
    let share = hits as f64 / trials as f64;
    share - 3.3 * (share * (1.0 - share) / trials as f64 + 1.0 / (trials * trials) as f64).sqrt()
}

fn at_most(hits: usize, trials: usize) -> f64 {
    1.0 - at_least(trials - hits, trials)
}

/// The largest ε that the attack proves, over thresholds chosen on one half of the trials and judged on the other.
fn proved(sigma: f64) -> f64 {
    let draw =
        |present| (0..TRIALS).map(|trial| statistic(trial, present, sigma)).collect::<Vec<_>>();
    let (with, without) = (draw(true), draw(false));
    let half = TRIALS as usize / 2;
    let bound = |range: std::ops::Range<usize>, threshold: f64| {
        let hits = |of: &[f64]| of[range.clone()].iter().filter(|&&one| one > threshold).count();
        // P(above | with) ≤ e^ε P(above | without) + δ
        let (most, least) = (at_most(hits(&without), half), at_least(hits(&with), half));
        ((least - DELTA).max(0.0) / most).ln()
    };
    let mut thresholds = with[..half].to_vec();
    thresholds.sort_by(f64::total_cmp);
    let best = |a: &f64, b: &f64| bound(0..half, *a).total_cmp(&bound(0..half, *b));
    let threshold = thresholds.into_iter().step_by(20).max_by(best).unwrap();
    bound(half..2 * half, threshold)
}

#[test]
fn an_attack_proves_less_than_is_stated_and_more_if_the_noise_is_too_small() {
    let sigma = 2.0;
    let q = BATCH as f64 / ROWS as f64;
    let stated = epsilon(&[Release { q, sigma, count: STEPS }], DELTA);
    let found = proved(sigma);
    assert!(found <= stated, "an attack proves ε ≥ {found}, and {stated} was stated");
    assert!(found > 0.1 * stated, "the attack is too weak to say anything: {found} of {stated}");
    // A mechanism that forgot most of its noise is caught.
    let careless = proved(sigma / 5.0);
    assert!(careless > stated, "{careless} with a fifth of the noise, {stated} stated");
}
