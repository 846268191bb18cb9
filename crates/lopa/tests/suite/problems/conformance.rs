//! Tests that run over all cases.

use lopa::math::random::{Purpose, Stream};
use lopa::math::real::{axpy, dot};
use lopa::problem::{At, Bilevel, Directions, Minibatches, Trains};
use lopa::problems::problems;

use super::cases::*;

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

/// The derivative of `f` along each axis of x, or of θ.
fn differences(point: &Point, of_theta: bool, mut f: impl FnMut(At<f64>) -> f64) -> Vec<f64> {
    let h = 1e-5;
    let (mut x, mut theta) = (point.x.clone(), point.theta.clone());
    let count = if of_theta { theta.len() } else { x.len() };
    (0..count)
        .map(|j| {
            let mut value = |by: f64| {
                let entry = if of_theta { &mut theta[j] } else { &mut x[j] };
                let kept = *entry;
                *entry += by;
                let value = f(At { x: &x, theta: &theta });
                if of_theta {
                    theta[j] = kept
                } else {
                    x[j] = kept
                }
                value
            };
            (value(h) - value(-h)) / (2.0 * h)
        })
        .collect()
}

#[test]
fn directions_are_made_of_the_derivatives() {
    each_part(|_, what, part| {
        let (first, second) = (Point::new(part, 1), Point::new(part, 2));
        // Twice, at two points: nothing of the first may be left over. Different batches, and one
        // for all.
        let apart = ([&[0, 2, 2][..], &[1, 3], &[2, 0, 1]], [&[1, 0][..], &[0, 1, 1]]);
        let alike = ([&[1, 0][..]; 3], [&[1, 0][..]; 2]);
        for (point, (xi, sigma)) in [(&first, apart), (&second, apart), (&first, alike)] {
            let (at, v) = (point.at(), &point.v[..]);
            let [mut d, mut h, mut hold_p] = [(); 3].map(|()| vec![f64::NAN; v.len()]);
            let [mut s, mut hold_n] = [(); 2].map(|()| vec![f64::NAN; at.x.len()]);
            let mut hold = vec![f64::NAN; v.len().max(at.x.len())];
            let out = Directions { d: &mut d, h: &mut h, s: &mut s, scratch: &mut hold };
            part.directions(at, v, Minibatches { xi, sigma }, out);

            part.grad_theta_g(at, xi[0], &mut hold_p);
            close(&format!("{what}: d"), &d, &hold_p, 1e-12);
            part.hess_g(at, xi[1], v, &mut hold_p);
            let mut want = hold_p.clone();
            part.grad_theta_f(at, sigma[0], &mut hold_p);
            axpy(-1.0, &hold_p, &mut want);
            close(&format!("{what}: h"), &h, &want, 1e-12);
            part.grad_x_f(at, sigma[1], &mut hold_n);
            let mut want = hold_n.clone();
            part.cross_g(at, xi[2], v, &mut hold_n);
            axpy(-1.0, &hold_n, &mut want);
            close(&format!("{what}: s"), &s, &want, 1e-12);
        }
    });
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
fn derivatives_agree_with_central_differences() {
    each_part(|_, what, part| {
        let point = Point::new(part, 1);
        for batch in [Batches::full(part), Batches::small()] {
            let said = oracles(part, &point, &batch);
            let check = |oracle: usize, found: Vec<f64>| {
                close(&format!("{what}: {}", ORACLES[oracle]), &said[oracle], &found, 2e-8);
            };
            check(2, differences(&point, false, |at| part.f(at, &batch.f)));
            check(3, differences(&point, true, |at| part.f(at, &batch.f)));
            check(4, differences(&point, true, |at| part.g(at, &batch.g)));
            check(7, differences(&point, false, |at| part.g(at, &batch.g)));
            // ∇²_θθ g v and ∇²_xθ g v are gradients of ⟨∇_θ g, v⟩.
            let mut gradient = vec![0.0; point.v.len()];
            let mut along_v = |at: At<f64>| {
                part.grad_theta_g(at, &batch.g, &mut gradient);
                dot(&gradient, &point.v)
            };
            check(5, differences(&point, true, &mut along_v));
            check(6, differences(&point, false, &mut along_v));
        }
    });
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
    each_part(|_, what, part| {
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
fn answers_do_not_depend_on_what_was_asked_before() {
    for case in CASES {
        let mut fresh = case.parts::<f64>(false);
        let mut used = case.parts::<f64>(false);
        for i in 0..NODES {
            let (fresh, used) = (fresh[i].as_mut(), used[i].as_mut());
            let full = Batches::full(fresh);
            let point = Point::new(fresh, 1);
            let expected = oracles(fresh, &point, &full);
            for number in 2..5 {
                let other = Point::new(used, number);
                oracles(used, &other, &full);
                oracles(used, &point, &Batches::small());
                used.metrics(other.at());
            }
            let again = oracles(used, &point, &full);
            assert_eq!(again, expected, "{:?}", case.text);
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
                let predict = |features| {
                    choice.build.get::<f64>().predict(case.classes, point.at(), features)
                };
                let predicted = predict(data.test.features()).unwrap();
                let pairs = predicted.iter().zip(data.test.labels());
                let hits = pairs.filter(|(a, b)| a == b).count();
                let metrics = part.metrics(point.at());
                let counted = metrics.iter().find(|(name, _)| *name == "test_accuracy").unwrap();
                assert_eq!(counted.1, hits as f64 / data.test.len() as f64, "{:?}", case.text);
                // Features of another width are no reason to panic.
                assert_eq!(predict(&features(&[vec![1.0, 2.0]], sparse)), None);
            }
        }
    }
}
