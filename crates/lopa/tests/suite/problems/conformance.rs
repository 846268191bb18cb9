//! Tests that run over all cases.

use lopa::config::Source;
use lopa::data::Target;
use lopa::experiment::Experiment;
use lopa::math::random::{Purpose, Stream};
use lopa::math::real::dot;
use lopa::problem::builtin::problems;
use lopa::problem::predictor::decide;
use lopa::problem::{Bilevel, Trains};

use super::cases::*;
use crate::common::bench::Bench;

fn each_part(mut f: impl FnMut(&Case, &str, &mut dyn Bilevel<f64>)) {
    for case in CASES {
        for sparse in [false, true] {
            for (i, part) in case.parts::<f64>(sparse).iter_mut().enumerate() {
                let what = format!("{:?}, sparse {sparse}, node {i}", case.text);
                f(case, &what, part.as_mut());
            }
        }
    }
}

#[test]
fn the_cases_cover_the_registry() {
    for entry in problems().iter() {
        let covered = CASES.iter().any(|case| choice(case.text).unwrap().name == entry.name);
        assert!(covered, "no case for `{}`", entry.name);
    }
}

/// All that the library checks of any problem, derivatives by central differences among it.
#[test]
fn every_case_conforms() {
    let registries = registries();
    for case in CASES {
        for sparse in [false, true] {
            lopa::conformance::problem(&registries, &case.file(sparse))
                .unwrap_or_else(|error| panic!("{:?}, sparse {sparse}: {error}", case.text));
        }
    }
}

#[test]
fn the_files_of_the_cases_are_the_cases() {
    for case in CASES {
        for sparse in [false, true] {
            let text =
                format!("algorithm = [{{ name = 'dgd', alpha = 1 }}]\n{}", case.file(sparse));
            let read = Experiment::read(&Source::new("test", text), &registries());
            let mut same = Bench::of(read.unwrap()).parts::<f64>();
            for (part, same) in case.parts::<f64>(sparse).iter_mut().zip(&mut same) {
                let (point, batch) = (Point::new(part.as_ref(), 1), Batches::full(part.as_ref()));
                let [here, there] = [part, same].map(|part| oracles(part.as_mut(), &point, &batch));
                assert_eq!(here, there, "{:?}", case.text);
            }
        }
    }
}

#[test]
fn estimated_diagonals_are_near_the_true_ones() {
    let mut found = 0;
    each_part(|_, what, part| {
        let point = Point::new(part, 1);
        let Some(estimate) = part.shortcuts().and_then(|known| known.hess_diagonal(point.at()))
        else {
            return;
        };
        found += 1;
        let all = all(part.samples_g());
        let (mut unit, mut column) = (vec![0.0; estimate.len()], vec![0.0; estimate.len()]);
        for (q, &estimate) in estimate.iter().enumerate() {
            unit.fill(0.0);
            unit[q] = 1.0;
            part.hess_g(point.at(), &all, &unit, &mut column);
            let ratio = estimate / column[q];
            assert!((0.5..2.0).contains(&ratio), "{what}: {q} is {ratio} times too large");
        }
    });
    assert!(found > 0);
}

#[test]
fn hessians_are_symmetric_and_strongly_convex() {
    each_part(|case, what, part| {
        let point = Point::new(part, 1);
        for batch in [Batches::full(part), Batches::small(), Batches { f: vec![0], g: vec![1] }] {
            for number in 2..7 {
                let (u, v) = (Point::new(part, number).v, Point::new(part, number + 100).v);
                let (mut hu, mut hv) = (vec![f64::NAN; u.len()], vec![f64::NAN; u.len()]);
                part.hess_g(point.at(), &batch.g, &u, &mut hu);
                part.hess_g(point.at(), &batch.g, &v, &mut hv);
                close(what, &[dot(&u, &hv)], &[dot(&v, &hu)], 1e-13);
                let (curvature, least) = (dot(&v, &hv), case.mu * dot(&v, &v));
                assert!(curvature >= least * (1.0 - 1e-12), "{what}: {curvature} < {least}");
            }
        }
    });
}

#[test]
fn the_mean_over_single_samples_is_the_full_batch() {
    each_part(|case, what, part| {
        assert_eq!(part.adds_up(), !case.survival);
        if case.survival {
            return;
        }
        let point = Point::new(part, 1);
        let batch = Batches::full(part);
        let full = oracles(part, &point, &batch);
        let (samples_f, samples_g) = (part.samples_f(), part.samples_g());
        let mut means: Vec<Vec<f64>> = full.iter().map(|said| vec![0.0; said.len()]).collect();
        for k in 0..samples_f.max(samples_g) as u32 {
            let batch = Batches { f: vec![k % samples_f as u32], g: vec![k % samples_g as u32] };
            let said = oracles(part, &point, &batch);
            for (oracle, said) in said.iter().enumerate() {
                let of_f = [0, 2, 3].contains(&oracle);
                let count = if of_f { samples_f } else { samples_g };
                if (k as usize) < count {
                    let mean = means[oracle].iter_mut().zip(said);
                    mean.for_each(|(mean, said)| *mean += said / count as f64);
                }
            }
        }
        for (oracle, mean) in means.iter().enumerate() {
            close(&format!("{what}: {}", ORACLES[oracle]), mean, &full[oracle], 1e-13);
        }
    });
}

#[test]
fn dense_is_sparse_and_single_is_nearly_double() {
    for case in CASES {
        let mut dense = case.parts::<f64>(false);
        let mut sparse = case.parts::<f64>(true);
        let mut single = case.parts::<f32>(true);
        for i in 0..NODES {
            let point = Point::new(dense[i].as_ref(), 1);
            for batch in [Batches::full(dense[i].as_ref()), Batches::small()] {
                let expected = oracles(dense[i].as_mut(), &point, &batch);
                let same = oracles(sparse[i].as_mut(), &point, &batch);
                let near = oracles(single[i].as_mut(), &point, &batch);
                for oracle in 0..ORACLES.len() {
                    let what = format!("{:?}, node {i}: {}", case.text, ORACLES[oracle]);
                    close(&what, &same[oracle], &expected[oracle], 1e-14);
                    close(&what, &near[oracle], &expected[oracle], 1e-5);
                }
            }
            let metrics = dense[i].metrics(point.at());
            for (a, b) in metrics.iter().zip(sparse[i].metrics(point.at())) {
                assert_eq!(a.0, b.0);
                close(&a.0, &[a.1], &[b.1], 1e-14);
            }
        }
    }
}

#[test]
fn starts_are_finite_common_and_of_the_right_length() {
    for case in CASES {
        let mut parts = case.parts::<f64>(false);
        let start = |part: &dyn Bilevel<f64>| part.start_x(&mut Stream::new(5, Purpose::Start, 0));
        let first = start(parts[0].as_ref());
        for part in &mut parts {
            assert_eq!(start(part.as_ref()), first);
            assert_eq!(first.len(), part.dims().n);
            assert_eq!(
                part.start_theta(&mut Stream::new(5, Purpose::Start, 1)).len(),
                part.dims().p
            );
            assert!(first.iter().all(|x| x.is_finite() && x.abs() < 1.0));
            let both = case.text.contains("representation");
            let single = part.single_level().unwrap();
            assert_eq!(single.trains() == Trains::Both, both);
        }
    }
}

#[test]
fn loss_is_the_outer_function_without_its_scale() {
    each_part(|case, what, part| {
        let point = Point::new(part, 1);
        let all = all(part.samples_f());
        let mut f = part.f(point.at(), &all);
        if case.text.contains("'sum'") {
            f /= all.len() as f64;
        }
        if case.text.contains("batch-sum") {
            f /= BATCH as f64;
        }
        if case.text.contains("tasks = 4") {
            f /= 4.0;
        }
        let metrics = part.metrics(point.at());
        assert_eq!(metrics[0].0, "loss");
        close(what, &[metrics[0].1], &[f], 1e-14);
        let named: Vec<_> = metrics.iter().map(|(name, _)| name.as_str()).collect();
        if case.classes > 0 {
            assert_eq!(named[1..4], ["train_accuracy", "test_accuracy", "own_test_accuracy"]);
            assert!(metrics[1..4].iter().all(|(_, value)| (0.0..=1.0).contains(value)));
        }
    });
}

#[test]
fn closed_forms_are_stationary() {
    each_part(|case, what, part| {
        let mut point = Point::new(part, 1);
        let closed = part.shortcuts().and_then(|known| known.theta_star(&point.x));
        let expected = case.text.contains("quadratic") || case.text.contains("meta");
        assert_eq!(closed.is_some(), expected);
        let Some(theta) = closed else { return };
        point.theta = theta;
        let mut gradient = vec![f64::NAN; part.dims().p];
        part.grad_theta_g(point.at(), &all(part.samples_g()), &mut gradient);
        close(what, &gradient, &vec![0.0; gradient.len()], 1e-12);
    });
}

#[test]
fn a_saved_model_predicts_what_the_metrics_count() {
    for case in CASES.iter().filter(|case| case.classes > 0) {
        for sparse in [false, true] {
            let data = case.data(sparse).unwrap();
            let choice = choice(case.text).unwrap();
            for part in case.parts::<f64>(sparse).iter_mut() {
                let point = Point::new(part.as_ref(), 1);
                let problem = choice.build.get::<f64>();
                let target = Target::Classes(case.classes);
                let probabilities = |features| problem.predictions(target, point.at(), features);
                let found = probabilities(data.test.features()).unwrap();
                for row in found.chunks_exact(case.classes) {
                    assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-14, "{row:?}");
                }
                let predicted = decide(&found, case.classes);
                let pairs = predicted.iter().zip(data.test.labels());
                let hits = pairs.filter(|(a, b)| a == b).count();
                let metrics = part.metrics(point.at());
                let counted = metrics.iter().find(|(name, _)| *name == "test_accuracy").unwrap();
                assert_eq!(counted.1, hits as f64 / data.test.len() as f64, "{:?}", case.text);
                // Features of another width are no reason to panic.
                assert_eq!(probabilities(&features(&[vec![1.0, 2.0]], sparse)), None);
            }
        }
    }
}

#[test]
fn a_saved_model_says_the_numbers_whose_errors_are_measured() {
    for case in CASES.iter().filter(|case| case.outputs > 0 && !case.survival) {
        for sparse in [false, true] {
            let (data, choice) = (case.data(sparse).unwrap(), choice(case.text).unwrap());
            let target = &data.scaling.of(0).target;
            for part in case.parts::<f64>(sparse).iter_mut() {
                let point = Point::new(part.as_ref(), 1);
                let problem = choice.build.get::<f64>();
                let said = |features| problem.predictions(data.target(), point.at(), features);
                let mut found = said(data.test.features()).unwrap();
                let mut truth = data.test.targets().unwrap().values.clone();
                // Back in the units of the numbers, with the measures written out once more.
                target.undo(&mut found);
                target.undo(&mut truth);
                let outputs = case.outputs;
                let rmse = |o: usize| {
                    let pairs = found.iter().zip(&truth).skip(o).step_by(outputs);
                    let squares: f64 = pairs.map(|(a, b)| (a - b).powi(2)).sum();
                    (squares / data.test.len() as f64).sqrt()
                };
                let expected = (0..outputs).map(rmse).sum::<f64>() / outputs as f64;
                let metrics = part.metrics(point.at());
                let measured = metrics.iter().find(|(name, _)| *name == "test_rmse").unwrap().1;
                close(case.text, &[measured], &[expected], 1e-12);
                let known = |name: &str| metrics.iter().any(|(known, _)| known == name);
                assert!(known("test_r2_of_mean") && known("train_mae") && !known("holdout_r2"));
                assert_eq!(said(&features(&[vec![1.0, 2.0]], sparse)), None);
            }
        }
    }
}
