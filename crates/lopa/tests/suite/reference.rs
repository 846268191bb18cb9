//! A second implementation of LoPA: whole matrices in place of nodes.
//!
//! Nothing here is shared with the library but the numbers that go in: row i of X is x_i, W is
//! dense, and the derivatives of
//!
//! ```text
//! g_i = ½ θᵀA θ − θᵀ(B x + c),   f_i = ½ |D θ − e|² + ½ xᵀR x − xᵀq
//! ```
//!
//! stand here in closed form.

use std::io::Write;

use crate::common::bench::{Bench, rows};
use lopa::engine::Simulation;
use lopa::network::Mixing;

type Matrix = Vec<Vec<f64>>;

fn product(a: &[Vec<f64>], b: &[Vec<f64>]) -> Matrix {
    let entry = |row: &[f64], j: usize| (0..b.len()).map(|k| row[k] * b[k][j]).sum();
    a.iter().map(|row| (0..b[0].len()).map(|j| entry(row, j)).collect()).collect()
}

fn transposed(a: &[Vec<f64>]) -> Matrix {
    (0..a[0].len()).map(|j| a.iter().map(|row| row[j]).collect()).collect()
}

fn apply(a: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    a.iter().map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
}

/// a A + b B.
fn combine(a: f64, left: &[Vec<f64>], b: f64, right: &[Vec<f64>]) -> Matrix {
    let row = |(l, r): (&Vec<f64>, &Vec<f64>)| {
        l.iter().zip(r).map(|(l, r)| a * l + b * r).collect::<Vec<f64>>()
    };
    left.iter().zip(right).map(row).collect()
}

/// The coefficients of a node.
#[derive(Clone)]
struct Part {
    a: Matrix,
    b: Matrix,
    c: Vec<f64>,
    d: Matrix,
    e: Vec<f64>,
    r: Matrix,
    q: Vec<f64>,
}

impl Part {
    fn grad_theta_g(&self, x: &[f64], theta: &[f64]) -> Vec<f64> {
        let (a_theta, bx) = (apply(&self.a, theta), apply(&self.b, x));
        (0..theta.len()).map(|j| a_theta[j] - bx[j] - self.c[j]).collect()
    }

    fn grad_theta_f(&self, theta: &[f64]) -> Vec<f64> {
        let d_theta = apply(&self.d, theta);
        let residual: Vec<f64> = d_theta.iter().zip(&self.e).map(|(d, e)| d - e).collect();
        apply(&transposed(&self.d), &residual)
    }

    fn grad_x_f(&self, x: &[f64]) -> Vec<f64> {
        apply(&self.r, x).iter().zip(&self.q).map(|(r, q)| r - q).collect()
    }

    /// ∇²_xθ g v = −Bᵀv.
    fn cross(&self, v: &[f64]) -> Vec<f64> {
        apply(&transposed(&self.b), v).iter().map(|b| -b).collect()
    }
}

/// Heterogeneous coefficients without any structure; A and R are made positive definite.
fn parts(m: usize, n: usize, p: usize) -> Vec<Part> {
    let mut phase = 0.0;
    let mut number = || {
        phase += 1.0;
        f64::sin(phase * phase * 0.7 + 0.3)
    };
    let mut matrix = |rows: usize, cols: usize| -> Matrix {
        (0..rows).map(|_| (0..cols).map(|_| number()).collect()).collect()
    };
    let square = |a: Matrix| {
        let mut square = product(&transposed(&a), &a);
        (0..a.len()).for_each(|j| square[j][j] += 0.5);
        square
    };
    let mut part = || Part {
        a: square(matrix(p, p)),
        b: matrix(p, n),
        c: matrix(1, p).remove(0),
        d: matrix(p + 1, p),
        e: matrix(1, p + 1).remove(0),
        r: square(matrix(n, n)),
        q: matrix(1, n).remove(0),
    };
    (0..m).map(|_| part()).collect()
}

/// A path with a chord, with weights that are as uneven as they may be.
fn uneven(m: usize) -> Matrix {
    let mut w = vec![vec![0.0; m]; m];
    let chord = (0, m - 2);
    for (t, (i, j)) in (1..m).map(|i| (i - 1, i)).chain([chord]).enumerate() {
        let weight = 0.12 + 0.05 * t as f64;
        (w[i][j], w[j][i]) = (weight, weight);
    }
    (0..m).for_each(|i| w[i][i] = 1.0 - w[i].iter().sum::<f64>());
    w
}

#[derive(Clone, Copy, PartialEq)]
enum Scheme {
    Lg,
    Gt,
    Local,
}

/// All variables of all nodes, a row a node.
struct Stacked {
    parts: Vec<Part>,
    w: Matrix,
    x: Matrix,
    theta: Matrix,
    v: Matrix,
    d: Matrix,
    h: Matrix,
    s: Matrix,
    z: Matrix,
    y: Matrix,
}

/// α, β, λ, γ, τ at an iteration.
type Steps = [f64; 5];

impl Stacked {
    fn new(parts: Vec<Part>, w: Matrix, [x, theta, v]: [Matrix; 3], zero: bool) -> Stacked {
        let none = Vec::new;
        let (d, h, s, z, y) = (none(), none(), none(), none(), none());
        let mut stacked = Stacked { parts, w, x, theta, v, d, h, s, z, y };
        stacked.estimate();
        stacked.z = combine(if zero { 0.0 } else { 1.0 }, &stacked.s, 0.0, &stacked.s);
        stacked.y = stacked.z.clone();
        stacked
    }

    /// (6) to (8), without noise.
    fn estimate(&mut self) {
        let each = |f: &dyn Fn(usize, &Part) -> Vec<f64>| -> Matrix {
            self.parts.iter().enumerate().map(|(i, part)| f(i, part)).collect()
        };
        let (x, theta, v) = (&self.x, &self.theta, &self.v);
        let hessian = each(&|i, part| apply(&part.a, &v[i]));
        let jacobian = each(&|i, part| part.cross(&v[i]));
        let d = each(&|i, part| part.grad_theta_g(&x[i], &theta[i]));
        let h = combine(1.0, &hessian, -1.0, &each(&|i, part| part.grad_theta_f(&theta[i])));
        let s = combine(1.0, &each(&|i, part| part.grad_x_f(&x[i])), -1.0, &jacobian);
        (self.d, self.h, self.s) = (d, h, s);
    }

    /// Appendix, in the order of Algorithm 1; 𝒲 acts on the rows.
    fn step(&mut self, scheme: Scheme, [alpha, beta, lambda, gamma, tau]: Steps) {
        let theta = combine(1.0, &self.theta, -beta, &self.d);
        let v = combine(1.0, &self.v, -lambda, &self.h);
        let wx = product(&self.w, &self.x);
        let moved = combine(1.0, &wx, -alpha, &self.y);
        let x = combine(1.0 - tau, &self.x, tau, &moved);
        let z = combine(gamma, &self.s, 1.0 - gamma, &self.z);
        let y = match scheme {
            Scheme::Gt => {
                let change = combine(1.0, &z, -1.0, &self.z);
                combine(1.0, &product(&self.w, &self.y), 1.0, &change)
            }
            _ => z.clone(),
        };
        (self.theta, self.v, self.x, self.z, self.y) = (theta, v, x, z, y);
        self.estimate();
    }

    fn variables(&self) -> [(&'static str, &Matrix); 8] {
        [
            ("x", &self.x),
            ("theta", &self.theta),
            ("v", &self.v),
            ("d", &self.d),
            ("h", &self.h),
            ("s", &self.s),
            ("z", &self.z),
            ("y", &self.y),
        ]
    }
}

const M: usize = 6;
const N: usize = 4;
const P: usize = 3;

/// The same problem as a file that the library reads.
fn file(parts: &[Part]) -> tempfile::NamedTempFile {
    let all = |f: &dyn Fn(&Part) -> serde_json::Value| -> Vec<serde_json::Value> {
        parts.iter().map(f).collect()
    };
    let data = serde_json::json!({ "data": {
        "A": all(&|part| part.a.clone().into()),
        "B": all(&|part| part.b.clone().into()),
        "c": all(&|part| part.c.clone().into()),
        "D": all(&|part| part.d.clone().into()),
        "e": all(&|part| part.e.clone().into()),
        "R": all(&|part| part.r.clone().into()),
        "q": all(&|part| part.q.clone().into()),
    }});
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(data.to_string().as_bytes()).unwrap();
    file
}

/// Starts that differ between nodes, also in x.
fn starts() -> [Matrix; 3] {
    let row = |i: usize, length: usize, shift: f64| {
        (0..length).map(|j| f64::cos(shift + (i * length + j) as f64)).collect()
    };
    [(N, 0.1), (P, 0.5), (P, 0.9)].map(|(l, s)| (0..M).map(|i| row(i, l, s)).collect())
}

fn compare(name: &str, params: &str, scheme: Scheme, zero: bool, steps: impl Fn(u64) -> Steps) {
    let parts = parts(M, N, P);
    let file = file(&parts);
    let setup = format!(
        "problem = {{ name = 'quadratic', file = '{}' }}\n\
         network = {{ nodes = {M}, graph = 'path' }}\n\
         run = {{ iterations = 50 }}",
        file.path().display()
    );
    let z = if zero { "zero" } else { "estimate" };
    let bench = Bench::new(&setup, &format!("name = '{name}', start = '{z}', {params}"));
    let w = uneven(M);
    let [x, theta, v] = starts();
    let node =
        |(i, part)| bench.node_from(i, part, [x[i].clone(), theta[i].clone(), v[i].clone()], &[]);
    let nodes = bench.parts().into_iter().enumerate().map(node).collect();
    let mixing = Mixing::from_matrix(w.clone()).unwrap();
    let mut simulation: Simulation<f64> = Simulation::new(nodes, &mixing, None);

    let identity: Matrix =
        (0..M).map(|i| (0..M).map(|j| if i == j { 1.0 } else { 0.0 }).collect()).collect();
    let w = if scheme == Scheme::Local { identity } else { w };
    let mut stacked = Stacked::new(parts, w, starts(), zero);
    for k in 0..=50 {
        for (variable, want) in stacked.variables() {
            let got = rows(&simulation, variable);
            let size = want.iter().flatten().fold(1e-3, |size: f64, w| size.max(w.abs()));
            assert!(size < 1e3, "{name}: {variable} is out of hand at k = {k}: {size}");
            for (got, want) in got.iter().flatten().zip(want.iter().flatten()) {
                let off = (got - want).abs();
                assert!(off <= 1e-10 * size, "{name}: {variable} at k = {k} is off by {off:e}");
            }
        }
        stacked.step(scheme, steps(k));
        simulation.iterate();
    }
}

const SCHEMES: [(&str, Scheme); 3] =
    [("lopa-lg", Scheme::Lg), ("lopa-gt", Scheme::Gt), ("local", Scheme::Local)];

#[test]
fn constant_steps() {
    for (name, scheme) in SCHEMES {
        for zero in [false, true] {
            let params = "alpha = 0.03, beta = 0.2, lambda = 0.15, gamma = 0.3, tau = 0.6";
            compare(name, params, scheme, zero, |_| [0.03, 0.2, 0.15, 0.3, 0.6]);
        }
    }
}

#[test]
fn default_weights_are_two_fifths() {
    for (name, scheme) in SCHEMES {
        let params = "alpha = 0.03, beta = 0.2, lambda = 0.15";
        compare(name, params, scheme, false, |_| [0.03, 0.2, 0.15, 0.4, 0.4]);
    }
}

#[test]
fn steps_over_the_square_root() {
    for (name, scheme) in SCHEMES {
        let params = "alpha = { over_sqrt = 0.05 }, beta = { over_sqrt = 0.3 }, \
                      lambda = { over_sqrt = 0.2 }, gamma = { over_sqrt = 1 }, tau = 0.5";
        compare(name, params, scheme, false, |k| {
            let root = ((k + 1) as f64).sqrt();
            [0.05 / root, 0.3 / root, 0.2 / root, 1.0 / root, 0.5]
        });
    }
}

#[test]
fn steps_in_stages() {
    for (name, scheme) in SCHEMES {
        let params = "alpha = { start = 0.04, factor = 0.5, every = 10 }, beta = 0.2, \
                      lambda = { start = 0.2, factor = 0.9, every = 7 }, gamma = 1, \
                      tau = { start = 1, factor = 0.8, every = 20 }";
        compare(name, params, scheme, false, |k| {
            let stage = |every: u64, factor: f64| (0..k / every).map(|_| factor).product::<f64>();
            [0.04 * stage(10, 0.5), 0.2, 0.2 * stage(7, 0.9), 1.0, stage(20, 0.8)]
        });
    }
}

#[test]
fn the_stacked_form_agrees_with_the_golden_trajectories() {
    let golden = crate::common::golden::Golden::read("quadratic_path3");
    let json = golden.json();
    let data = &json["data"];
    let of = |key: &str, i: usize| crate::common::golden::matrix(&data[key][i]);
    let flat = |key: &str, i: usize| crate::common::golden::vector(&data[key][i]);
    let part = |i: usize| Part {
        a: of("A", i),
        b: of("B", i),
        c: flat("c", i),
        d: of("D", i),
        e: flat("e", i),
        r: of("R", i),
        q: flat("q", i),
    };
    let start = |key: &str| crate::common::golden::matrix(&json["init"][key]);
    let w = crate::common::golden::matrix(&json["graph"]["W"]);
    let cases = [
        ("lopa_lg_z0_s", Scheme::Lg, false),
        ("lopa_lg_z0_zero", Scheme::Lg, true),
        ("lopa_gt_z0_s", Scheme::Gt, false),
        ("lopa_gt_z0_zero", Scheme::Gt, true),
    ];
    for (name, scheme, zero) in cases {
        let starts = [start("x"), start("th"), start("v")];
        let mut stacked = Stacked::new((0..3).map(part).collect(), w.clone(), starts, zero);
        for state in golden.states(name) {
            for (variable, got) in stacked.variables() {
                let want = &state[variable];
                for (got, want) in got.iter().flatten().zip(want.iter().flatten()) {
                    assert!((got - want).abs() <= 1e-12 * (1.0 + want.abs()), "{name} {variable}");
                }
            }
            stacked.step(scheme, [0.01, 0.1, 0.08, 0.4, 0.4]);
        }
    }
}
