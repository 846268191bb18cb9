//! Promises of single problems beyond the trait.

use lopa::data::{Data, Dataset, Target};
use lopa::math::random::{Purpose, Stream};
use lopa::math::real::{axpy, dot};
use lopa::problem::builtin::Scale;
use lopa::problem::builtin::quadratic::{self, coefficients};
use lopa::problem::predictor::decide;
use lopa::problem::scope::Scope;
use lopa::problem::{At, Bilevel, Setting};
use proptest::prelude::*;

use super::cases::*;

fn case(text: &'static str, classes: usize) -> Case {
    Case { text, classes, outputs: 0, survival: false, mu: 0.0 }
}

/// The largest eigenvalue of a symmetric operator.
fn largest(p: usize, mut apply: impl FnMut(&[f64]) -> Vec<f64>) -> f64 {
    let mut v: Vec<f64> = (0..p).map(|j| 1.0 + j as f64).collect();
    let mut size = 0.0;
    for _ in 0..2000 {
        let norm = dot(&v, &v).sqrt();
        v.iter_mut().for_each(|v| *v /= norm);
        let next = apply(&v);
        size = dot(&v, &next);
        v = next;
    }
    size
}

#[test]
fn a_made_quadratic_has_the_condition_number_asked_for() {
    let case = case("name = 'quadratic'\nn = 3\np = 6\ncondition = 50", 0);
    for part in case.parts::<f64>(false).iter_mut() {
        let point = Point::new(part.as_ref(), 1);
        let mut hess = |v: &[f64]| {
            let mut out = vec![0.0; 6];
            part.hess_g(point.at(), &[0], v, &mut out);
            out
        };
        let high = largest(6, &mut hess);
        let shifted = largest(6, |v| {
            let mut out = v.to_vec();
            axpy(-1.0, &hess(v), &mut out);
            out
        });
        close("eigenvalues", &[high, 1.0 - shifted], &[1.0, 0.02], 1e-6);
    }
}

#[test]
fn heterogeneity_zero_makes_nodes_equal_and_one_does_not() {
    let parts = |heterogeneity: f64| {
        let options = quadratic::Options { heterogeneity, n: 4, p: 3, ..Default::default() };
        coefficients(&options, 3, 9).unwrap()
    };
    let x = [0.3, -0.2, 1.0, 0.5];
    let (equal, unequal) = (parts(0.0), parts(1.0));
    assert_eq!(equal[0].grad_phi(&x), equal[2].grad_phi(&x));
    assert_eq!(equal[0].theta_star(&x), equal[1].theta_star(&x));
    assert_ne!(unequal[0].grad_phi(&x), unequal[2].grad_phi(&x));
}

#[test]
fn closed_forms_of_the_quadratic_belong_together() {
    let options = quadratic::Options { n: 5, p: 4, condition: 30.0, ..Default::default() };
    let nodes = coefficients(&options, 4, 2).unwrap();
    let x: Vec<f64> = (0..5).map(|j| 0.3 * j as f64 - 0.5).collect();
    let h = 1e-5;
    for node in &nodes {
        let slope = (0..5).map(|j| {
            let moved = |by: f64| {
                let mut x = x.clone();
                x[j] += by;
                node.phi(&x)
            };
            (moved(h) - moved(-h)) / (2.0 * h)
        });
        close("grad_phi", &node.grad_phi(&x), &slope.collect::<Vec<_>>(), 1e-8);
    }
    let x_star = quadratic::x_star(&nodes).unwrap();
    let mut sum = vec![0.0; 5];
    nodes.iter().for_each(|node| axpy(1.0, &node.grad_phi(&x_star), &mut sum));
    close("grad_phi at x_star", &sum, &[0.0; 5], 1e-10);
}

#[test]
fn v_star_solves_the_linear_system_of_the_part() {
    let text = "name = 'quadratic'\nn = 4\np = 3\ncondition = 20";
    let options =
        quadratic::Options { n: 4, p: 3, condition: 20.0, ..quadratic::Options::default() };
    let nodes = coefficients(&options, NODES, 3).unwrap();
    for (node, part) in nodes.iter().zip(case(text, 0).parts::<f64>(false).iter_mut()) {
        let x = [0.1, 0.7, -0.4, 0.2];
        let (theta, v) = (node.theta_star(&x), node.v_star(&x));
        let at = At { x: &x, theta: &theta };
        let (mut hv, mut rhs) = ([0.0; 3], [0.0; 3]);
        part.hess_g(at, &[0], &v, &mut hv);
        part.grad_theta_f(at, &[0], &mut rhs);
        close("H v*", &hv, &rhs, 1e-12);
        let (mut direct, mut cross) = ([0.0; 4], [0.0; 4]);
        part.grad_x_f(at, &[0], &mut direct);
        part.cross_g(at, &[0], &v, &mut cross);
        axpy(-1.0, &cross, &mut direct);
        close("grad_phi", &direct, &node.grad_phi(&x), 1e-12);
    }
}

#[test]
fn noise_reaches_every_oracle_and_leaves_the_full_batch_alone() {
    let noisy = case("name = 'quadratic'\nn = 3\np = 4\nnoise = 3\nsamples = 9", 0);
    let still = case("name = 'quadratic'\nn = 3\np = 4\nsamples = 9", 0);
    for (noisy, still) in
        noisy.parts::<f64>(false).iter_mut().zip(still.parts::<f64>(false).iter_mut())
    {
        let point = Point::new(noisy.as_ref(), 1);
        let full = Batches::full(noisy.as_ref());
        let expected = oracles(still.as_mut(), &point, &full);
        let same = oracles(noisy.as_mut(), &point, &full);
        let single = oracles(noisy.as_mut(), &point, &Batches { f: vec![4], g: vec![4] });
        for oracle in 0..ORACLES.len() {
            close(ORACLES[oracle], &same[oracle], &expected[oracle], 1e-14);
            let off = single[oracle].iter().zip(&expected[oracle]).map(|(a, b)| (a - b).abs());
            assert!(off.fold(0.0, f64::max) > 1e-3, "{} has no noise", ORACLES[oracle]);
        }
    }
}

#[test]
fn the_cache_of_activations_does_not_go_stale() {
    let case = case("name = 'representation'\nhidden = [4, 3]", 3);
    let mut part = case.parts::<f64>(false).swap_remove(1);
    let mut x = Point::new(part.as_ref(), 1);
    let batch = Batches::full(part.as_ref());
    for j in [0, 3, x.x.len() - 1] {
        oracles(part.as_mut(), &x, &batch);
        // The same slice with other contents, as an algorithm's iterate is.
        x.x[j] += 0.25;
        let mut fresh = case.parts::<f64>(false).swap_remove(1);
        let expected = oracles(fresh.as_mut(), &x, &batch);
        assert_eq!(oracles(part.as_mut(), &x, &batch), expected);
    }
    let mut reversed = batch.clone();
    reversed.f.reverse();
    reversed.g = vec![0; batch.g.len()];
    let mut fresh = case.parts::<f64>(false).swap_remove(1);
    let expected = oracles(fresh.as_mut(), &x, &reversed);
    assert_eq!(oracles(part.as_mut(), &x, &reversed), expected);
}

#[test]
fn scales_multiply_the_data_loss_alone() {
    assert_eq!(Scale::Mean.factor(Some(6), 40), 1.0);
    assert_eq!(Scale::BatchSum.factor(Some(6), 40), 6.0);
    assert_eq!(Scale::BatchSum.factor(None, 40), 40.0);
    assert_eq!(Scale::Sum.factor(Some(6), 40), 40.0);
    let mean = case("name = 'hyperparameter'", 2);
    let sum = case("name = 'hyperparameter'\nscale = 'sum'", 2);
    for (mean, sum) in mean.parts::<f64>(false).iter_mut().zip(sum.parts::<f64>(false).iter_mut()) {
        let point = Point::new(mean.as_ref(), 1);
        let batch = Batches::full(mean.as_ref());
        let ridge: f64 = (0..5).map(|q| point.x[q].exp() * point.theta[q].powi(2)).sum();
        let (a, b) = (mean.g(point.at(), &batch.g), sum.g(point.at(), &batch.g));
        close("g", &[b - ridge], &[(a - ridge) * batch.g.len() as f64], 1e-13);
    }
}

#[test]
fn a_fixed_ridge_is_an_x() {
    for part in case("name = 'hyperparameter'\nstart = -2", 3).parts::<f64>(true).iter_mut() {
        let mut point = Point::new(part.as_ref(), 1);
        let batch = all(part.samples_g());
        point.x = part.single_level().unwrap().ridge_x(0.47).unwrap();
        let with = part.g(point.at(), &batch);
        point.x = vec![f64::NEG_INFINITY; 5];
        let without = part.g(point.at(), &batch);
        close("ridge", &[with - without], &[0.47 / 2.0 * dot(&point.theta, &point.theta)], 1e-13);
        let mut stream = Stream::new(0, Purpose::Start, 0);
        assert_eq!(part.start_x(&mut stream), vec![-2.0; 5]);
    }
}

#[test]
fn an_unstable_coordinate_is_named() {
    for part in case("name = 'hyperparameter'", 2).parts::<f64>(false).iter_mut() {
        let mut point = Point::new(part.as_ref(), 1);
        point.x = vec![-20.0, -20.0, 3.0, -20.0, -20.0];
        let hess = |part: &mut dyn Bilevel<f64>, point: &Point, v: &[f64]| {
            let mut out = vec![0.0; 5];
            part.hess_g(point.at(), &all(part.samples_g()), v, &mut out);
            out
        };
        // With 2e^3 at coordinate 2 and L for the data, the bound is 2 / (2e^3 + L).
        let l = {
            let mut flat = Point::new(part.as_ref(), 1);
            flat.x = vec![f64::NEG_INFINITY; 5];
            largest(5, |v| hess(part.as_mut(), &flat, v))
        };
        let bound = 2.0 / (2.0 * 3f64.exp() + l);
        let said = part.shortcuts().unwrap().unstable(point.at(), bound * 1.001).unwrap();
        assert!(said.contains("x[2] = 3.000"), "{said}");
        assert_eq!(part.shortcuts().unwrap().unstable(point.at(), bound * 0.99), None);
        point.theta[0] = f64::NAN;
        assert!(part.shortcuts().unwrap().unstable(point.at(), 1.0).is_some());
    }
}

#[test]
fn every_task_counts_once_whatever_its_size() {
    // At θ = 0 every loss is ln C, so f is the number of tasks times that.
    for part in case("name = 'meta-learning'\ntasks = 3", 4).parts::<f64>(false).iter_mut() {
        let dims = part.dims();
        assert_eq!((dims.n, dims.p), (24, 24));
        let (x, theta) = (vec![0.2; dims.n], vec![0.0; dims.p]);
        let f = part.f(At { x: &x, theta: &theta }, &all(part.samples_f()));
        close("f", &[f], &[3.0 * 4f64.ln()], 1e-14);
    }
}

#[test]
fn cleaning_weights_find_the_corrupted_samples() {
    let case = case("name = 'hyper-cleaning'\ncorruption = 0.3\nvalidation = 0.4", 2);
    let mut offset = 0;
    for part in case.parts::<f64>(false).iter_mut() {
        let (dims, own) = (part.dims(), part.samples_g());
        let (mut x, mut theta) = (vec![0.0; dims.n], vec![0.0; dims.p]);
        let auc = |part: &mut dyn Bilevel<f64>, x: &[f64], theta: &[f64]| {
            let metrics = part.metrics(At { x, theta });
            metrics.iter().find(|(name, _)| *name == "cleaning_auc").unwrap().1
        };
        assert_eq!(auc(part.as_mut(), &x, &theta), 0.5);
        // A model of the clean samples has its largest losses where labels are wrong.
        let mut gradient = vec![0.0; dims.p];
        for _ in 0..500 {
            part.grad_theta_f(At { x: &x, theta: &theta }, &all(part.samples_f()), &mut gradient);
            axpy(-0.5, &gradient, &mut theta);
        }
        let mut losses = vec![f64::NAN; dims.n];
        part.single_level().unwrap().grad_x_g(At { x: &x, theta: &theta }, &all(own), &mut losses);
        let outside =
            losses.iter().enumerate().filter(|(e, _)| !(offset..offset + own).contains(e));
        assert!(outside.clone().count() > 0 && outside.clone().all(|(_, &loss)| loss == 0.0));
        axpy(-1.0, &losses, &mut x);
        assert!(auc(part.as_mut(), &x, &theta) > 0.8);
        offset += own;
    }
}

#[test]
fn replaced_labels_are_other_classes_or_drawn_among_all() {
    let other = "name = 'hyper-cleaning'\ncorruption = 0.999";
    let any = "name = 'hyper-cleaning'\ncorruption = 0.999\nwrong = 'any'";
    for (text, some_are_right) in [(other, false), (any, true)] {
        let mut right = false;
        for part in case(text, 3).parts::<f64>(false).iter_mut() {
            let (x, theta) = (vec![0.0; part.dims().n], vec![0.0; part.dims().p]);
            let metrics = part.metrics(At { x: &x, theta: &theta });
            right |= metrics.iter().any(|(name, _)| name == "cleaning_auc");
        }
        assert_eq!(right, some_are_right, "{text}");
    }
}

#[test]
fn cleaning_starts_where_the_file_says_and_may_have_no_bias() {
    let [with, without] = ["", "\nstart = -2\nbias = false"].map(|keys| {
        let text: &'static str = format!("name = 'hyper-cleaning'{keys}").leak();
        let part = case(text, 3).parts::<f64>(false).remove(0);
        (part.start_x(&mut Stream::new(1, Purpose::Start, 0))[0], part.dims().p)
    });
    assert_eq!([with, without], [(0.0, 18), (-2.0, 15)]);
}

#[test]
fn strengths_belong_to_classes_or_groups_and_may_start_at_random() {
    let start = |keys: &str| {
        let text: &'static str = format!("name = 'hyperparameter'\n{keys}").leak();
        let part = case(text, 3).parts::<f64>(false).remove(1);
        part.start_x(&mut Stream::new(1, Purpose::Start, 0))
    };
    assert_eq!(start("start = -1"), [-1.0; 5]);
    assert_eq!(start("strength = 'class'").len(), 3);
    assert_eq!(start("strength = 'class'\nbias = true").len(), 3);
    assert_eq!(start("groups = [2, 3]").len(), 2);
    assert_eq!(start("groups = [2, 3]\nbias = true").len(), 3);
    let drawn = start("start = -1\nspread = 0.1");
    assert!(drawn.iter().all(|x| (x + 1.0).abs() < 1.0) && drawn[0] != drawn[1], "{drawn:?}");
    assert_eq!(drawn, start("start = -1\nspread = 0.1"));
}

#[test]
fn splits_are_repeated_by_the_seed_and_changed_by_another() {
    let (data, partition) = (data(3, false), partition());
    let f = |seed: u64| {
        let setting = Setting {
            nodes: NODES,
            scope: Scope::Personal,
            seed,
            batch: None,
            data: Some(&data),
            partition: &partition,
            ..Setting::default()
        };
        let mut parts = build::<f64>("name = 'hyperparameter'", &setting).unwrap();
        let point = Point::new(parts[0].as_ref(), 1);
        let count = parts[0].samples_f();
        parts[0].f(point.at(), &all(count))
    };
    assert_eq!(f(1), f(1));
    assert_ne!(f(1), f(2));
}

#[test]
fn accuracies_count_the_right_samples() {
    let data = data(4, true);
    let of_class = |wanted: &[u32]| -> Vec<u32> {
        let labels = data.train.labels().iter().enumerate();
        labels.filter(|(_, label)| wanted.contains(label)).map(|(row, _)| row as u32).collect()
    };
    let partition = vec![of_class(&[0, 2]), of_class(&[1, 3])];
    let setting = Setting {
        nodes: 2,
        scope: Scope::Personal,
        seed: 0,
        batch: None,
        data: Some(&data),
        partition: &partition,
        ..Setting::default()
    };
    let text = "name = 'representation'\nhidden = [6]";
    let chosen = choice(text).unwrap();
    for (i, part) in build::<f64>(text, &setting).unwrap().iter_mut().enumerate() {
        let point = Point::new(part.as_ref(), 4);
        let share = |set: &lopa::data::Dataset, counts: &dyn Fn(usize) -> bool| {
            let problem = chosen.build.get::<f64>();
            let said = decide(
                &problem.predictions(Target::Classes(4), point.at(), set.features()).unwrap(),
                4,
            );
            let rows: Vec<usize> = (0..set.len()).filter(|&row| counts(row)).collect();
            let hits = rows.iter().filter(|&&row| said[row] == set.labels()[row]).count();
            hits as f64 / rows.len() as f64
        };
        let own = |row: usize| data.test.labels()[row] as usize % 2 == i;
        let expected = [
            ("train_accuracy", share(&data.train, &|row| partition[i].contains(&(row as u32)))),
            ("test_accuracy", share(&data.test, &|_| true)),
            ("own_test_accuracy", share(&data.test, &own)),
        ];
        // Always naming the most frequent class is right only on that class.
        let mut counts = [0; 4];
        partition[i]
            .iter()
            .for_each(|&row| counts[data.train.labels()[row as usize] as usize] += 1);
        let most = (0..4).max_by_key(|&class| counts[class]).unwrap() as u32;
        let of = |counts: &dyn Fn(usize) -> bool| {
            let rows: Vec<usize> = (0..data.test.len()).filter(|&row| counts(row)).collect();
            let hits = rows.iter().filter(|&&row| data.test.labels()[row] == most).count();
            hits as f64 / rows.len() as f64
        };
        let majorities = [("test_majority", of(&|_| true)), ("own_test_majority", of(&own))];
        let expected = expected.into_iter().chain(majorities);
        let expected: Vec<_> = expected.map(|(name, share)| (name.to_string(), share)).collect();
        assert_eq!(part.metrics(point.at())[1..], expected);
    }
}

#[test]
fn large_batches_are_the_sum_of_their_blocks() {
    let mut stream = Stream::new(1, Purpose::Data, 0);
    let rows: Vec<Vec<f64>> = (0..700).map(|_| (0..4).map(|_| stream.normal()).collect()).collect();
    let labels: Vec<u32> = (0..700).map(|_| stream.below(3) as u32).collect();
    let partition = vec![(0..700).rev().collect::<Vec<u32>>()];
    let said = [false, true].map(|sparse| {
        let train = Dataset::new(features(&rows, sparse), labels.clone());
        let data = Data { train, ..data(3, sparse) };
        let setting = Setting {
            nodes: 1,
            scope: Scope::Personal,
            seed: 0,
            batch: None,
            data: Some(&data),
            partition: &partition,
            ..Setting::default()
        };
        let mut part =
            build::<f64>("name = 'representation'\nhidden = [3]", &setting).unwrap().remove(0);
        let point = Point::new(part.as_ref(), 1);
        oracles(part.as_mut(), &point, &Batches { f: all(700), g: all(613) })
    });
    for oracle in 0..ORACLES.len() {
        close(ORACLES[oracle], &said[0][oracle], &said[1][oracle], 1e-13);
    }
}

/// θ*(x) of ridge regression by its normal equations: (SᵀS/N + 2 diag(eˣ)) θ = Sᵀt/N.
#[test]
fn ridge_regression_has_its_closed_form() {
    use lopa::problem::builtin::linalg::{Cholesky, Matrix};
    use lopa::run::evaluate::exact;
    for outputs in [1, 3] {
        let data = number_data(outputs, false);
        let rows: Vec<u32> = (5..31).collect();
        let partition = [rows.clone()];
        let setting = Setting {
            nodes: 1,
            seed: 3,
            data: Some(&data),
            partition: &partition,
            whole: true,
            ..Setting::default()
        };
        let mut part = build::<f64>("name = 'hyperparameter'", &setting).unwrap().remove(0);
        let x = [-1.0, 0.5, -3.0, 0.0, 1.0];
        let (theta, solved) = exact::inner(part.as_mut(), &x, &vec![0.0; 5 * outputs]);
        assert!(solved);
        let row = |&row: &u32| {
            let mut values = vec![0.0; 5];
            data.train.each(row as usize, |q, value| values[q] = value);
            values
        };
        let s: Vec<Vec<f64>> = rows.iter().map(row).collect();
        let n = rows.len() as f64;
        let gram = Matrix::from_fn(5, 5, |p, q| {
            let ridge = if p == q { 2.0 * x[p].exp() } else { 0.0 };
            s.iter().map(|s| s[p] * s[q]).sum::<f64>() / n + ridge
        });
        let gram = Cholesky::new(&gram).unwrap();
        for o in 0..outputs {
            let target = |row: &u32| data.train.targets().unwrap().row(*row as usize)[o];
            let pairs = || s.iter().zip(&rows);
            let right: Vec<f64> = (0..5)
                .map(|q| pairs().map(|(s, row)| s[q] * target(row)).sum::<f64>() / n)
                .collect();
            let own: Vec<f64> = (0..5).map(|q| theta[q * outputs + o]).collect();
            close("ridge", &own, &gram.solve(&right), 1e-9);
        }
    }
}

#[test]
fn a_loss_that_does_not_fit_the_target_is_refused() {
    let rows = vec![(0..20).collect::<Vec<u32>>()];
    let (two, three, number) = (data(2, false), data(3, false), number_data(1, false));
    for (text, data, fits) in [
        ("loss = 'logistic'", &two, true),
        ("loss = 'softmax'", &two, true),
        ("loss = 'logistic'", &three, false),
        ("loss = 'squared'", &two, false),
        ("loss = 'huber'", &three, false),
        ("loss = 'squared'", &number, true),
        ("loss = 'huber'", &number, true),
        ("loss = 'softmax'", &number, false),
        ("loss = 'logistic'", &number, false),
    ] {
        for problem in ["hyperparameter", "representation", "meta-learning", "hyper-cleaning"] {
            let setting =
                Setting { nodes: 1, data: Some(data), partition: &rows, ..Setting::default() };
            let built = build::<f64>(&format!("name = '{problem}'\n{text}"), &setting);
            let id = built.as_ref().err().map(|error| error.id);
            assert_eq!(id, (!fits).then_some("config/unfit-loss"), "{problem}, {text}");
        }
    }
}

proptest! {
    /// Losses stay finite and exact for margins at which e^z overflows.
    #[test]
    fn logistic_losses_are_stable(z in -1e4f64..1e4, label in 0u32..2) {
        use lopa::problem::builtin::affine::{Affine, Table};
        use lopa::problem::builtin::goal::Goal;
        use lopa::problem::builtin::linear::Linear;
        use lopa::problem::builtin::loss::Loss;
        let goal = Goal::Class(label);
        let loss = |z: &[f64], _| match z {
            [_] => Loss::Logistic.value(z, goal),
            _ => Loss::Softmax.value(z, goal),
        };
        let margin = if label == 0 { z } else { -z };
        let value = loss(&[z], label);
        prop_assert!(value.is_finite() && value >= 0.0);
        prop_assert!((value - (-margin).max(0.0)).abs() <= 2f64.ln() + 1e-12);
        // Two softmax columns whose scores differ by z give the same probabilities.
        let (shift, two) = (100.0, [z + 100.0, 100.0]);
        prop_assert!((loss(&two, label) - value).abs() <= 1e-11 * (1.0 + value + shift));
        // With the one feature 1, the scores are θ.
        let row = Table { values: &[1.0], cols: 1 };
        let map = |outputs| Affine { inputs: 1, outputs, bias: false };
        let mut one = Linear::new(map(1), Loss::Logistic);
        let mut other = Linear::new(map(2), Loss::Softmax);
        let (mut slope, mut slopes) = ([0.0], [0.0; 2]);
        one.add_gradient(&row, &[z], |_| (goal, 1.0), &mut slope);
        other.add_gradient(&row, &two, |_| (goal, 1.0), &mut slopes);
        prop_assert!((slope[0] - slopes[0]).abs() <= 1e-12);
        let (mut curve, mut curves) = ([0.0], [0.0; 2]);
        one.add_hessian_product(&row, &[z], &[1.0], |_| (goal, 1.0), &mut curve);
        other.add_hessian_product(&row, &two, &[1.0, 0.0], |_| (goal, 1.0), &mut curves);
        prop_assert!((curve[0] - curves[0]).abs() <= 1e-12);
    }
}
