//! Exact solves against golden values, closed forms and finite differences.

use crate::common::bench::{distance, norm};
use crate::common::golden::{Golden, matrix};
use crate::common::recorder::recorder;
use crate::problems::cases::{CASES, Case, Point, all, close};
use lopa::math::real::axpy;
use lopa::problem::builtin::quadratic::{Options, coefficients};
use lopa::problem::scope::Scope;
use lopa::problem::{At, Bilevel, Setting};
use lopa::run::evaluate::exact::{TOLERANCE, conjugate_gradients, largest_curvature, solve};

#[test]
fn golden_solutions() {
    for (file, tolerance) in [("quadratic_path3", 1e-10), ("logistic_ring4_mean", 1e-8)] {
        let golden = Golden::read(file);
        let exact = &golden.json()["exact"];
        let [x, theta, grad] =
            ["x", "theta_star", "hypergrad_per_node"].map(|key| matrix(&exact[key]));
        for (i, part) in golden.parts().iter_mut().enumerate() {
            let found = solve(part.as_mut(), &x[i], &vec![0.0; theta[i].len()]);
            assert!(found.converged, "{file}");
            close("theta_star", &found.theta, &theta[i], tolerance);
            close("hypergradient", &found.grad, &grad[i], tolerance);
        }
    }
}

/// A quadratic whose closed form is hidden, so that Newton's method has to find θ*.
fn hidden(part: Box<dyn Bilevel<f64>>) -> Box<dyn Bilevel<f64>> {
    let (mut part, _) = recorder(part);
    assert!(part.shortcuts().and_then(|known| known.theta_star(&[0.0; 4])).is_none());
    part
}

#[test]
fn closed_forms_of_the_quadratic() {
    for condition in [2.0, 100.0] {
        let text = format!("name = 'quadratic'\nn = 4\np = 7\ncondition = {condition}");
        let setting = Setting {
            nodes: 3,
            scope: Scope::Personal,
            seed: 5,
            batch: None,
            data: None,
            partition: &[],
            ..Setting::default()
        };
        let options = Options { n: 4, p: 7, condition, ..Options::default() };
        let nodes = coefficients(&options, 3, 5).unwrap();
        let x = [0.3, -1.2, 0.7, 2.0];
        for hide in [false, true] {
            let parts = crate::problems::cases::build::<f64>(&text, &setting).unwrap();
            for (node, part) in nodes.iter().zip(parts) {
                let mut part = if hide { hidden(part) } else { part };
                let found = solve(part.as_mut(), &x, &[1.0; 7]);
                assert!(found.converged);
                let tolerance = 20.0 * condition * condition * TOLERANCE;
                close("theta", &found.theta, &node.theta_star(&x), tolerance);
                close("v", &found.v, &node.v_star(&x), tolerance);
                close("phi", &[found.phi], &[node.phi(&x)], tolerance);
                close("grad", &found.grad, &node.grad_phi(&x), tolerance);
            }
        }
    }
}

fn learning() -> impl Iterator<Item = (&'static Case, bool)> {
    let cases = CASES.iter().filter(|case| case.classes > 0);
    cases.flat_map(|case| [(case, false), (case, true)])
}

#[test]
fn the_hypergradient_is_the_derivative_of_phi() {
    for (case, sparse) in learning() {
        for (i, part) in case.parts::<f64>(sparse).iter_mut().enumerate() {
            let Point { x, theta, .. } = Point::new(part.as_ref(), i);
            let found = solve(part.as_mut(), &x, &theta);
            assert!(found.converged, "{}", case.text);
            let mut phi = |direction: &[f64], step: f64| {
                let mut x = x.clone();
                axpy(step, direction, &mut x);
                solve(part.as_mut(), &x, &found.theta).phi
            };
            let axis = |j: usize| -> Vec<f64> {
                (0..x.len()).map(|t| if t == j { 1.0 } else { 0.0 }).collect()
            };
            let bent = (0..x.len()).map(|t| ((3 * t + 1) as f64).sin()).collect();
            for direction in [axis(0), axis(x.len() - 1), bent] {
                let h = 1e-4;
                let slope = (phi(&direction, h) - phi(&direction, -h)) / (2.0 * h);
                let want: f64 = found.grad.iter().zip(&direction).map(|(g, d)| g * d).sum();
                let off = (slope - want).abs();
                let size = 1e-2 + norm(&found.grad) * norm(&direction);
                assert!(off <= 1e-5 * size, "{}: {slope} is not {want}", case.text);
            }
        }
    }
}

#[test]
fn the_inner_problem_and_the_linear_system_are_solved() {
    for (case, sparse) in learning() {
        for part in &mut case.parts::<f64>(sparse) {
            let Point { x, .. } = Point::new(part.as_ref(), 1);
            let p = part.dims().p;
            let found = solve(part.as_mut(), &x, &vec![0.0; p]);
            let (g, f) = (all(part.samples_g()), all(part.samples_f()));
            let (mut grad, mut hv, mut b) = (vec![0.0; p], vec![0.0; p], vec![0.0; p]);
            part.grad_theta_g(At { x: &x, theta: &vec![0.0; p] }, &g, &mut b);
            let size = norm(&b);
            let at = At { x: &x, theta: &found.theta };
            part.grad_theta_g(at, &g, &mut grad);
            assert!(norm(&grad) <= TOLERANCE * size, "{}: {:e}", case.text, norm(&grad));
            part.hess_g(at, &g, &found.v, &mut hv);
            part.grad_theta_f(at, &f, &mut b);
            // Where the right-hand side is tiny, the absolute tolerance 1e-14 applies.
            let (off, most) = (distance(&hv, &b), (2.0 * TOLERANCE * norm(&b)).max(1e-14));
            assert!(off <= most, "{}: {off:e} of {:e}", case.text, norm(&b));
            assert_eq!(found.phi, part.f(at, &f));
        }
    }
}

#[test]
fn the_guess_does_not_matter_nor_does_the_layout() {
    for case in CASES.iter().filter(|case| case.classes > 0) {
        let (mut dense, mut sparse) = (case.parts::<f64>(false), case.parts::<f64>(true));
        for (dense, sparse) in dense.iter_mut().zip(&mut sparse) {
            let Point { x, theta, .. } = Point::new(dense.as_ref(), 2);
            let far: Vec<f64> = theta.iter().map(|theta| 20.0 * theta).collect();
            let one = solve(dense.as_mut(), &x, &vec![0.0; theta.len()]);
            for other in [solve(dense.as_mut(), &x, &far), solve(sparse.as_mut(), &x, &theta)] {
                assert!(other.converged, "{}", case.text);
                close(case.text, &other.theta, &one.theta, 1e-6);
                close(case.text, &other.grad, &one.grad, 1e-6);
                close(case.text, &[other.phi], &[one.phi], 1e-6);
            }
        }
    }
}

#[test]
fn a_saddle_is_not_called_solved() {
    let golden = Golden::read("quadratic_path3");
    /// The same part with −g: it has no minimum.
    struct Upside(Box<dyn Bilevel<f64>>);
    fn turn(out: &mut [f64]) {
        out.iter_mut().for_each(|out| *out = -*out);
    }
    impl Bilevel<f64> for Upside {
        fn dims(&self) -> lopa::problem::Dims {
            self.0.dims()
        }
        fn samples_f(&self) -> usize {
            self.0.samples_f()
        }
        fn samples_g(&self) -> usize {
            self.0.samples_g()
        }
        fn f(&mut self, at: At<f64>, batch: &[u32]) -> f64 {
            self.0.f(at, batch)
        }
        fn g(&mut self, at: At<f64>, batch: &[u32]) -> f64 {
            -self.0.g(at, batch)
        }
        fn grad_x_f(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
            self.0.grad_x_f(at, batch, out);
        }
        fn grad_theta_f(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
            self.0.grad_theta_f(at, batch, out);
        }
        fn grad_theta_g(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
            self.0.grad_theta_g(at, batch, out);
            turn(out);
        }
        fn hess_g(&mut self, at: At<f64>, batch: &[u32], v: &[f64], out: &mut [f64]) {
            self.0.hess_g(at, batch, v, out);
            turn(out);
        }
        fn cross_g(&mut self, at: At<f64>, batch: &[u32], v: &[f64], out: &mut [f64]) {
            self.0.cross_g(at, batch, v, out);
            turn(out);
        }
        fn metrics(&mut self, at: At<f64>) -> Vec<(String, f64)> {
            self.0.metrics(at)
        }
    }
    let mut part = Upside(golden.parts().remove(0));
    assert!(!solve(&mut part, &[0.1; 3], &[0.5; 2]).converged);
}

#[test]
fn conjugate_gradients_end_in_as_many_steps_as_there_are_unknowns() {
    let diagonal: Vec<f64> = (1..=30).map(f64::from).collect();
    let mut products = 0;
    let (v, converged) = conjugate_gradients(
        |v, out| {
            products += 1;
            out.iter_mut().zip(v).zip(&diagonal).for_each(|((out, v), d)| *out = d * v);
        },
        &vec![1.0; 30],
        1e-12,
    );
    assert!(converged && products <= 32, "{products} products");
    let want: Vec<f64> = diagonal.iter().map(|d| 1.0 / d).collect();
    close("v", &v, &want, 1e-12);
    let (zero, converged) = conjugate_gradients(|_, _| unreachable!(), &[0.0; 5], 1e-12);
    assert!(converged && zero == [0.0; 5]);
}

#[test]
fn the_largest_curvature_is_found() {
    // The eigenvalues of a made quadratic end at 1.
    let setting = Setting {
        nodes: 2,
        scope: Scope::Personal,
        seed: 1,
        batch: None,
        data: None,
        partition: &[],
        ..Setting::default()
    };
    let text = "name = 'quadratic'\nn = 3\np = 5\ncondition = 50";
    for part in &mut crate::problems::cases::build::<f64>(text, &setting).unwrap() {
        let found = largest_curvature(part.as_mut(), At { x: &[0.0; 3], theta: &[0.0; 5] });
        assert!((0.999..=1.0 + 1e-12).contains(&found), "{found}");
    }
}
