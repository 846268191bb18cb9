//! The theorems against hundreds of runs: where every condition holds, the mean of ‖∇Φ‖² must lie
//! below the bound.

use lopa_paper::theory::study::Case;
use lopa_paper::theory::{Scheme, Steps, Study};
use lopa_study::practical::course::{self, with_steps};

use super::{Quadratics, random};

/// The largest steps that meet the proofs' own conditions, found from the simple ones.
fn largest_steps(study: &Study, case: &Case) -> Steps {
    let admissible = study.admissible(case);
    let holds = |steps: &Steps| study.conditions(case, steps).iter().all(|c| c.holds());
    let mut best = admissible.at(admissible.u);
    assert!(admissible.admits(&best));
    assert!(holds(&best), "{:?}", study.conditions(case, &best));
    for _ in 0..20 {
        let larger = admissible.at(best.alpha * 1.3);
        if !holds(&larger) {
            break;
        }
        best = larger;
    }
    best
}

struct Tally {
    runs: usize,
    tightest: f64,
}

/// The measured mean and the bound of one run with admissible steps.
fn measured_and_bound(quadratics: &Quadratics, scheme: Scheme, iterations: u64) -> (f64, f64) {
    let study = quadratics.study(40);
    let case = study.cases.iter().find(|case| case.scheme == scheme).unwrap();
    let steps = largest_steps(&study, case);
    let spec = quadratics.experiment.algorithms.iter().find(|a| a.label == case.label).unwrap();
    let choice = with_steps(spec, scheme, &steps).unwrap();
    let run = course::run(&quadratics.setup(), &choice, &[0, iterations / 2, iterations]).unwrap();
    assert_eq!(run.diverged, None);
    assert!(run.seen.iter().all(|(_, seen)| study.region.holds(seen)), "left the region");
    (run.average(), study.bound(case, &steps, iterations).total())
}

fn algorithms(more: &str) -> String {
    let one = |name| {
        format!("{{ name = '{name}', alpha = 0.1, beta = 0.5, lambda = 0.5, tau = 0.9{more} }}")
    };
    format!("algorithm = [{}, {}]", one("lopa-gt"), one("lopa-lg"))
}

#[test]
fn no_run_on_full_batches_exceeds_the_bound() {
    let mut tally = Tally { runs: 0, tightest: 0.0 };
    for seed in 0..150 {
        let (nodes, n, p) = (2 + seed as usize % 3, 1 + seed as usize % 3, 1 + seed as usize % 2);
        let coupling = [0.02, 0.1, 0.3][seed as usize % 3];
        let setup = format!("run = {{ iterations = 40 }}\n{}", algorithms(""));
        let data = random(nodes, n, p, coupling, seed);
        let quadratics = Quadratics::new(nodes, &data, 0.0, &setup);
        for scheme in Scheme::ALL {
            let (measured, bound) = measured_and_bound(&quadratics, scheme, 300);
            assert!(measured <= bound, "seed {seed}, {scheme:?}: {measured} > {bound}");
            tally.runs += 1;
            tally.tightest = tally.tightest.max(measured / bound);
        }
    }
    assert_eq!(tally.runs, 300);
    // The test is not vacuous: some runs come near the bound.
    assert!(tally.tightest > 0.02, "the tightest run uses {} of its bound", tally.tightest);
}

#[test]
fn no_mean_over_minibatches_exceeds_the_bound() {
    let mut tightest: f64 = 0.0;
    for problem in 0..25 {
        let (nodes, n, p) = (2 + problem % 3, 1 + problem % 2, 1 + problem % 2);
        let data = random(nodes, n, p, 0.1, 1000 + problem as u64);
        for scheme in Scheme::ALL {
            // Each seed has its own samples, hence its own variances and bound: means are compared.
            let pairs: Vec<(f64, f64)> = (1..=8)
                .map(|seed| {
                    let run = format!("run = {{ iterations = 40, batch = 2, seeds = [{seed}] }}");
                    let setup = format!("{run}\n{}", algorithms(", start = 'zero'"));
                    let quadratics = Quadratics::new(nodes, &data, 0.05, &setup);
                    measured_and_bound(&quadratics, scheme, 200)
                })
                .collect();
            let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / 8.0;
            let (measured, bound) = (mean(|p| p.0), mean(|p| p.1));
            let spread: f64 = pairs.iter().map(|p| (p.0 - measured).powi(2)).sum();
            let error = (spread / 7.0 / 8.0).sqrt();
            assert!(
                measured <= bound + 3.0 * error,
                "problem {problem}, {scheme:?}: {measured} ± {error} > {bound}"
            );
            tightest = tightest.max(measured / bound);
        }
    }
    assert!(tightest > 1e-3, "the tightest mean uses {tightest} of its bound");
}
