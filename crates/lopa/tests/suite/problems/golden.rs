//! The oracles and closed forms of the golden files, to 1e-12.

use lopa::data::{Dataset, Target};
use lopa::problem::builtin::linalg::{Cholesky, Matrix};
use lopa::problem::builtin::quadratic::{self, coefficients};
use lopa::problem::builtin::{Local, hyperparameter, representation};
use lopa::problem::builtin::{hyperparameter::Hyperparameter, representation::Representation};
use lopa::problem::scope::Scope;
use lopa::problem::{At, Bilevel, Setting};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cases::{Batches, Point, build, close, features, oracles};

const QUADRATIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/quadratic_path3.json");
const LOGISTIC: &str = include_str!("../../golden/logistic_ring4_mean.json");
const MLP: &str = include_str!("../../golden/mlp_path3_bias.json");

fn read<V: DeserializeOwned>(file: &Value, path: &str) -> V {
    serde_json::from_value(file.pointer(path).unwrap().clone()).unwrap()
}

type Rows = Vec<Vec<f64>>;

/// How x-like and θ-like vectors of the file are laid out here.
struct Layout {
    x: Vec<usize>,
    theta: Vec<usize>,
}

impl Layout {
    fn same(n: usize, p: usize) -> Layout {
        Layout { x: (0..n).collect(), theta: (0..p).collect() }
    }
}

fn laid(values: &[f64], from: &[usize]) -> Vec<f64> {
    from.iter().map(|&at| values[at]).collect()
}

fn check_oracles(file: &Value, parts: &mut [Box<dyn Bilevel<f64>>], layout: &Layout) {
    let named = |name: &str| read::<Rows>(file, &format!("/oracles/{name}"));
    let (x, theta, v) = (named("x"), named("th"), named("v"));
    for (i, part) in parts.iter_mut().enumerate() {
        let point = Point {
            x: laid(&x[i], &layout.x),
            theta: laid(&theta[i], &layout.theta),
            v: laid(&v[i], &layout.theta),
        };
        let batch = Batches::full(part.as_ref());
        let said = oracles(part.as_mut(), &point, &batch);
        for (name, oracle, order) in [
            ("grad_x_f", 2, &layout.x),
            ("grad_theta_f", 3, &layout.theta),
            ("grad_theta_g", 4, &layout.theta),
            ("hvp_g", 5, &layout.theta),
            ("jvp_g", 6, &layout.x),
        ] {
            let expected = laid(&named(name)[i], order);
            let size = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
            for (said, expected) in said[oracle].iter().zip(&expected) {
                let off = (said - expected).abs();
                assert!(off <= 1e-12 * size, "node {i}, {name}: off by {off:e} of {size:e}");
            }
        }
    }
}

#[test]
fn quadratic() {
    let file: Value = serde_json::from_str(&std::fs::read_to_string(QUADRATIC).unwrap()).unwrap();
    let text = format!("name = 'quadratic'\nfile = '{QUADRATIC}'");
    let setting = Setting {
        nodes: 3,
        scope: Scope::Personal,
        seed: 0,
        batch: None,
        data: None,
        partition: &[],
        ..Setting::default()
    };
    let mut parts = build::<f64>(&text, &setting).unwrap();
    check_oracles(&file, &mut parts, &Layout::same(3, 2));

    let options = quadratic::Options { file: Some(QUADRATIC.into()), ..Default::default() };
    let nodes = coefficients(&options, 3, 0).unwrap();
    let x: Rows = read(&file, "/exact/x");
    let theta: Rows = read(&file, "/exact/theta_star");
    let gradient: Rows = read(&file, "/exact/hypergrad_per_node");
    for (i, node) in nodes.iter().enumerate() {
        close("theta_star", &node.theta_star(&x[i]), &theta[i], 1e-12);
        close(
            "theta_star",
            &parts[i].shortcuts().unwrap().theta_star(&x[i]).unwrap(),
            &theta[i],
            1e-12,
        );
        close("grad_phi", &node.grad_phi(&x[i]), &gradient[i], 1e-12);
    }
    let x_star: Vec<f64> = read(&file, "/exact/x_star");
    close("x_star", &quadratic::x_star(&nodes).unwrap(), &x_star, 1e-12);
    let metrics = parts[0].metrics(At { x: &x_star, theta: &[0.0; 2] });
    assert!(metrics[1].0 == "x_error" && metrics[1].1 < 1e-24);
}

/// A node's samples from the file's features and labels.
fn local(inner: (Rows, Vec<u32>), outer: (Rows, Vec<u32>), classes: usize) -> Local<f64> {
    let (count, total) = (inner.0.len() as u32, (inner.0.len() + outer.0.len()) as u32);
    let data =
        Dataset::new(features(&[inner.0, outer.0].concat(), false), [inner.1, outer.1].concat());
    Local {
        train: data.samples((0..count).collect()),
        validation: data.samples((count..total).collect()),
        apart: total > count,
        test: data.samples(Vec::new()),
        holdout: data.samples(Vec::new()),
        target: Target::Classes(classes),
        units: Vec::new(),
        judged: [false; 2],
    }
}

#[test]
fn logistic() {
    let file: Value = serde_json::from_str(LOGISTIC).unwrap();
    let labelled = |which: &str, i: usize| -> (Rows, Vec<u32>) {
        let b: Vec<f64> = read(&file, &format!("/data/b_{which}/{i}"));
        let classes = b.iter().map(|&b| u32::from(b < 0.0)).collect();
        (read(&file, &format!("/data/S_{which}/{i}")), classes)
    };
    let options = hyperparameter::Options::default();
    let part = |i| {
        let local = local(labelled("train", i), labelled("val", i), 2);
        Box::new(Hyperparameter::new(local, &options, None).unwrap()) as Box<dyn Bilevel<f64>>
    };
    let mut parts: Vec<_> = (0..4).map(part).collect();
    check_oracles(&file, &mut parts, &Layout::same(3, 3));

    // The file's θ* is where Newton's method stopped, with a gradient of 1e-10.
    let x: Rows = read(&file, "/exact/x");
    let theta: Rows = read(&file, "/exact/theta_star");
    let expected: Rows = read(&file, "/exact/hypergrad_per_node");
    for (i, part) in parts.iter_mut().enumerate() {
        let (at, batch) = (At { x: &x[i], theta: &theta[i] }, Batches::full(part.as_ref()));
        let mut out = [f64::NAN; 3];
        part.grad_theta_g(at, &batch.g, &mut out);
        close("gradient at theta_star", &out, &[0.0; 3], 1e-9);
        let columns = [0, 1, 2].map(|j| {
            let axis = [0, 1, 2].map(|t| if t == j { 1.0 } else { 0.0 });
            part.hess_g(at, &batch.g, &axis, &mut out);
            out
        });
        let hessian = Cholesky::new(&Matrix::from_fn(3, 3, |t, j| columns[j][t])).unwrap();
        part.grad_theta_f(at, &batch.f, &mut out);
        let v = hessian.solve(&out);
        part.cross_g(at, &batch.g, &v, &mut out);
        close("hypergradient", &out.map(|jv| -jv), &expected[i], 1e-10);
    }
}

#[test]
fn hidden_layer() {
    let file: Value = serde_json::from_str(MLP).unwrap();
    let (d, h, k) = (4, 2, 3);
    // There: W1(h, d) then b1, W2(k, h) then b2. Here: feature-major.
    let transposed = |rows: usize, cols: usize| -> Vec<usize> {
        let weights = (0..cols).flat_map(move |q| (0..rows).map(move |unit| unit * cols + q));
        weights.chain(rows * cols..rows * cols + rows).collect()
    };
    let layout = Layout { x: transposed(h, d), theta: transposed(k, h) };
    let options = representation::Options { hidden: vec![h], ..Default::default() };
    let part = |i| {
        let (s, labels): (Rows, Vec<u32>) =
            (read(&file, &format!("/data/S/{i}")), read(&file, &format!("/data/label/{i}")));
        let local = local((s, labels), (Vec::new(), Vec::new()), k);
        Box::new(Representation::new(local, &options, None).unwrap()) as Box<dyn Bilevel<f64>>
    };
    let mut parts: Vec<_> = (0..3).map(part).collect();
    check_oracles(&file, &mut parts, &layout);
}
