//! The lemmas, one step at a time.

use lopa_paper::theory::Scheme;
use lopa_paper::theory::lemmas::recursions;
use lopa_study::practical::course;

use super::{Quadratics, random};

fn quadratics(seed: u64, noise: f64, batch: &str, steps: &str) -> Quadratics {
    let algorithm = |name: &str| format!("{{ name = '{name}', {steps}, start = 'zero' }}");
    let setup = format!(
        "run = {{ iterations = 30, seeds = [{seed}]{batch} }}
         algorithm = [{}, {}]",
        algorithm("lopa-gt"),
        algorithm("lopa-lg")
    );
    Quadratics::new(3, &random(3, 2, 2, 0.4, 5), noise, &setup)
}

#[test]
fn every_lemma_holds_at_every_step_on_full_batches() {
    for (seed, steps) in [
        (1, "alpha = 0.05, beta = 0.5, lambda = 0.5"),
        (2, "alpha = 0.3, beta = 0.9, lambda = 0.9, gamma = 0.9, tau = 1.0"),
        (3, "alpha = 0.01, beta = 0.05, lambda = 1.0, gamma = 0.05, tau = 0.2"),
    ] {
        let quadratics = quadratics(seed, 0.0, "", steps);
        let study = quadratics.study(30);
        for case in &study.cases {
            for lemma in study.lemmas(case, &case.steps, 25).unwrap() {
                assert!(lemma.holds(), "{steps}, {:?}: {lemma:?}", case.scheme);
            }
        }
    }
}

#[test]
fn a_wrong_constant_is_noticed() {
    let quadratics = quadratics(1, 0.0, "", "alpha = 0.3, beta = 0.9, lambda = 0.9");
    let mut study = quadratics.study(30);
    // As if β contracted faster than it does.
    study.derived.omega_theta *= 8.0;
    let case = &study.cases[0];
    let worst = study.lemmas(case, &case.steps, 25).unwrap();
    assert!(worst.iter().any(|lemma| lemma.place == "(32)" && !lemma.holds()), "{worst:?}");
}

#[test]
fn every_lemma_holds_in_the_mean_over_minibatches() {
    const SEEDS: u64 = 60;
    let steps = "alpha = 0.05, beta = 0.4, lambda = 0.4";
    for scheme in Scheme::ALL {
        // For each lemma, the sum of left − right over the steps of a run, seed by seed.
        let mut sums: Vec<(&str, Vec<f64>)> = Vec::new();
        for seed in 1..=SEEDS {
            let quadratics = quadratics(seed, 0.3, ", batch = 2", steps);
            let study = quadratics.study(30);
            let case = study.cases.iter().find(|case| case.scheme == scheme).unwrap();
            let spec = &quadratics.experiment.algorithms;
            let spec = spec.iter().find(|spec| spec.label == case.label).unwrap();
            let all: Vec<u64> = (0..=10).collect();
            let run = course::run(&quadratics.setup(), &spec.choice, &all).unwrap();
            let mut parts = quadratics.setup().parts().unwrap();
            let mut excess: Vec<(&str, f64)> = Vec::new();
            for pair in run.seen.windows(2) {
                let both = [&pair[0].1, &pair[1].1];
                let now = recursions(
                    scheme,
                    &study.values(),
                    &study.derived,
                    &case.steps,
                    &mut parts,
                    both,
                );
                for (at, one) in now.into_iter().enumerate() {
                    let off = one.left - one.right;
                    match excess.get_mut(at) {
                        None => excess.push((one.place, off)),
                        Some(sum) => sum.1 += off,
                    }
                }
            }
            for (at, (place, off)) in excess.into_iter().enumerate() {
                match sums.get_mut(at) {
                    None => sums.push((place, vec![off])),
                    Some(list) => list.1.push(off),
                }
            }
        }
        for (place, offs) in sums {
            let mean = offs.iter().sum::<f64>() / SEEDS as f64;
            let spread: f64 = offs.iter().map(|off| (off - mean).powi(2)).sum();
            let error = (spread / (SEEDS * (SEEDS - 1)) as f64).sqrt();
            assert!(mean <= 3.0 * error, "{scheme:?} {place}: {mean} ± {error}");
        }
    }
}
