//! The accountant against Python's `dp-accounting`, closed forms and itself.

// Expected values may be the system's: they are compared with a tolerance.
#![allow(clippy::disallowed_methods)]

use lopa_privacy::{Release, calibrate, delta, epsilon, longest, renyi};
use proptest::prelude::*;

/// A line of `golden/grid.csv`.
struct Line {
    releases: Vec<Release>,
    delta: f64,
    renyi: f64,
    above: f64,
    below: f64,
}

fn grid() -> Vec<Line> {
    let text = include_str!("../golden/grid.csv");
    let line = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<f64>().ok();
        let release = |at: usize| {
            let count = number(at + 2)? as u64;
            Some(Release { q: number(at)?, sigma: number(at + 1)?, count })
        };
        let releases = [release(0), release(3)].into_iter().flatten().collect();
        let [delta, renyi, above, below] = [6, 7, 8, 9].map(|at| number(at).unwrap());
        Line { releases, delta, renyi, above, below }
    };
    text.lines().skip(1).map(line).collect()
}

#[test]
fn epsilon_is_that_of_dp_accounting_and_never_below_the_true_value() {
    let grid = grid();
    assert!(grid.len() > 100);
    let mut furthest: f64 = 0.0;
    for Line { releases, delta, above, below, .. } in grid {
        let ours = epsilon(&releases, delta);
        let far = (ours - above).abs() / above;
        furthest = furthest.max(far);
        assert!(far < 0.01, "{releases:?} {delta}: {ours}, and dp-accounting {above}");
        assert!(ours >= below * (1.0 - 1e-6), "{releases:?} {delta}: {ours} below {below}");
    }
    println!("largest relative difference: {furthest:.5}");
}

#[test]
fn renyi_is_that_of_dp_accounting_and_above_the_loss_distribution() {
    let (mut same, mut all) = (0, 0);
    for Line { releases, delta, renyi, above, .. } in grid() {
        let ours = renyi::epsilon(&releases, delta);
        // Its series for fractional orders do not always converge, and it then takes another order.
        assert!(ours <= renyi * (1.0 + 1e-6), "{releases:?} {delta}: {ours}, not {renyi}");
        assert!(ours >= 0.995 * above, "{releases:?} {delta}: {ours}, below {above}");
        same += usize::from((ours / renyi - 1.0).abs() < 1e-6);
        all += 1;
    }
    assert!(2 * same > all, "{same} of {all}");
}

/// δ of the Gaussian mechanism with sensitivity μ in units of its deviation (Balle and Wang, 2018).
fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    let above = |z: f64| 0.5 * libm::erfc(z / 2f64.sqrt());
    above(epsilon / mu - mu / 2.0) - epsilon.exp() * above(epsilon / mu + mu / 2.0)
}

#[test]
fn without_sampling_it_is_the_closed_form_from_above() {
    for (sigma, count) in [(0.7, 1), (1.0, 4), (30.0, 1000), (200.0, 100_000), (2000.0, 10_000_000)]
    {
        let mu = (count as f64).sqrt() / sigma;
        for wanted in [1e-3, 1e-5, 1e-7] {
            let ours = epsilon(&[Release { q: 1.0, sigma, count }], wanted);
            // The true ε has δ = wanted; at ours δ is not larger, and at 0.99 of ours it is.
            assert!(gaussian_delta(mu, ours) <= wanted * (1.0 + 1e-6), "{sigma} {count} {wanted}");
            assert!(gaussian_delta(mu, 0.99 * ours) > wanted, "{sigma} {count} {wanted}");
        }
    }
}

/// R(α) for a whole α: (1/(α−1)) ln Σ_k C(α,k) (1−q)^{α−k} q^k e^{(k²−k)/(2σ²)}.
fn whole_order(q: f64, sigma: f64, alpha: i32) -> f64 {
    let mut binomial = 1.0;
    let mut sum = 0.0;
    for k in 0..=alpha {
        let exponent = f64::from(k * k - k) / (2.0 * sigma * sigma);
        sum += binomial * (1.0 - q).powi(alpha - k) * q.powi(k) * exponent.exp();
        binomial *= f64::from(alpha - k) / f64::from(k + 1);
    }
    sum.ln() / f64::from(alpha - 1)
}

#[test]
fn whole_orders_have_a_closed_form() {
    for (q, sigma) in [(0.01, 1.0), (0.3, 0.8), (0.9, 4.0), (0.001, 20.0)] {
        for alpha in [2, 3, 8, 20] {
            let release = Release { q, sigma, count: 1 };
            let (ours, exact) =
                (renyi::divergence(&release, f64::from(alpha)), whole_order(q, sigma, alpha));
            assert!((ours / exact - 1.0).abs() < 1e-6, "{q} {sigma} {alpha}: {ours} and {exact}");
        }
    }
}

#[test]
fn nothing_released_costs_nothing_and_nonsense_costs_everything() {
    let release = Release { q: 0.1, sigma: 1.0, count: 10 };
    assert_eq!(epsilon(&[], 1e-5), 0.0);
    assert_eq!(epsilon(&[Release { count: 0, ..release }], 1e-5), 0.0);
    assert_eq!(epsilon(&[Release { q: 0.0, ..release }], 1e-5), 0.0);
    for bad in [
        Release { sigma: 0.0, ..release },
        Release { sigma: -1.0, ..release },
        Release { sigma: f64::NAN, ..release },
        Release { q: 1.1, ..release },
        Release { q: f64::NAN, ..release },
        Release { count: u64::MAX, ..release },
    ] {
        assert_eq!(epsilon(&[bad], 1e-5), f64::INFINITY, "{bad:?}");
    }
    for bad in [0.0, 1.0, -1.0, 1e-300, f64::NAN, f64::INFINITY] {
        assert_eq!(epsilon(&[release], bad), f64::INFINITY, "{bad}");
    }
    assert_eq!(calibrate(0.0, 1e-5, &[release]), None);
    assert_eq!(calibrate(f64::NAN, 1e-5, &[release]), None);
    assert_eq!(calibrate(1.0, 1.0, &[release]), None);
}

#[test]
fn the_longest_run_fits_and_one_more_does_not() {
    let run = |k: u64| vec![Release { q: 0.05, sigma: 1.1, count: 3 * k }];
    let most = longest(2.0, 1e-5, 1_000_000, run);
    assert!(epsilon(&run(most), 1e-5) <= 2.0);
    assert!(epsilon(&run(most + 1), 1e-5) > 2.0);
    assert_eq!(longest(2.0, 1e-5, most - 1, run), most - 1);
    assert_eq!(longest(1e-9, 1e-5, 1000, run), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn calibrated_noise_is_enough_and_hardly_more(
        q in 0.002f64..1.0, other in 0.002f64..1.0, count in 1u64..20_000, budget in 0.05f64..20.0,
    ) {
        let plan = [(q, count), (other, count / 2)].map(|(q, count)| Release { q, sigma: 1.0, count });
        let sigma = calibrate(budget, 1e-5, &plan).unwrap();
        let with = |sigma: f64| plan.map(|one| Release { sigma, ..one });
        prop_assert!(epsilon(&with(sigma), 1e-5) <= budget);
        prop_assert!(epsilon(&with(0.999 * sigma), 1e-5) > budget || sigma == lopa_privacy::SIGMA.start);
    }

    #[test]
    fn more_noise_fewer_repetitions_and_smaller_samples_cost_less(
        q in 0.002f64..0.9, sigma in 0.5f64..30.0, count in 2u64..5000,
    ) {
        let at = |q: f64, sigma: f64, count: u64| epsilon(&[Release { q, sigma, count }], 1e-5);
        let here = at(q, sigma, count);
        // Both are upper bounds within a per cent.
        let slack = 1.005 * here + 1e-9;
        prop_assert!(at(q, 1.1 * sigma, count) <= slack);
        prop_assert!(at(0.9 * q, sigma, count) <= slack);
        prop_assert!(at(q, sigma, count / 2) <= slack);
        // ε and δ belong to each other.
        if here.is_finite() && here > 0.0 {
            let back = delta(&[Release { q, sigma, count }], here, 1e-5);
            prop_assert!(back <= 1e-5 * (1.0 + 1e-6), "{back}");
        }
    }
}
