//! A problem of one's own: each node fits a constant to its numbers, and all agree on how strongly
//! to pull the constants towards a common centre.
//!
//! ```text
//! g_i(x, θ) = mean_j (θ − a_ij)² / 2 + (θ − x)² / 2      θ_i*(x) = (ā_i + x) / 2
//! f_i(x, θ) = mean_j (θ − b_ij)² / 2
//! ```
//!
//! `cargo run --release --example own_problem`

use lopa::algorithms::{Start, algorithms};
use lopa::config::Source;
use lopa::config::registry::find;
use lopa::engine::{Node, Simulation};
use lopa::error::Result;
use lopa::network::Mixing;
use lopa::problem::oracle::{Batches, Oracle};
use lopa::problem::scope::Scope;
use lopa::problem::{At, Bilevel, Dims};

struct Centre {
    a: Vec<f64>,
    b: Vec<f64>,
}

fn mean_off(theta: f64, values: &[f64], batch: &[u32]) -> f64 {
    batch.iter().map(|&j| theta - values[j as usize]).sum::<f64>() / batch.len() as f64
}

fn mean_square(theta: f64, values: &[f64], batch: &[u32]) -> f64 {
    let square = |&j: &u32| (theta - values[j as usize]).powi(2) / 2.0;
    batch.iter().map(square).sum::<f64>() / batch.len() as f64
}

impl Bilevel<f64> for Centre {
    fn dims(&self) -> Dims {
        Dims { n: 1, p: 1 }
    }
    fn samples_f(&self) -> usize {
        self.b.len()
    }
    fn samples_g(&self) -> usize {
        self.a.len()
    }
    fn f(&mut self, at: At<f64>, batch: &[u32]) -> f64 {
        mean_square(at.theta[0], &self.b, batch)
    }
    fn g(&mut self, at: At<f64>, batch: &[u32]) -> f64 {
        mean_square(at.theta[0], &self.a, batch) + (at.theta[0] - at.x[0]).powi(2) / 2.0
    }
    fn grad_x_f(&mut self, _: At<f64>, _: &[u32], out: &mut [f64]) {
        out[0] = 0.0;
    }
    fn grad_theta_f(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
        out[0] = mean_off(at.theta[0], &self.b, batch);
    }
    fn grad_theta_g(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
        out[0] = mean_off(at.theta[0], &self.a, batch) + at.theta[0] - at.x[0];
    }
    fn hess_g(&mut self, _: At<f64>, _: &[u32], v: &[f64], out: &mut [f64]) {
        out[0] = 2.0 * v[0];
    }
    fn cross_g(&mut self, _: At<f64>, _: &[u32], v: &[f64], out: &mut [f64]) {
        out[0] = -v[0];
    }
    fn grad_x_g(&mut self, at: At<f64>, _: &[u32], out: &mut [f64]) {
        out[0] = at.x[0] - at.theta[0];
    }
    fn metrics(&mut self, at: At<f64>) -> Vec<(&'static str, f64)> {
        let all: Vec<u32> = (0..self.b.len() as u32).collect();
        vec![("loss", self.f(at, &all))]
    }
}

fn main() -> Result<()> {
    let parts =
        [(vec![1.0, 3.0], vec![5.0]), (vec![0.0, 2.0], vec![4.0, 6.0]), (vec![4.0], vec![3.0])];
    let solution = parts.iter().map(|(a, b)| 2.0 * mean(b) - mean(a)).sum::<f64>() / 3.0;

    let source = Source::new("example", "a = { alpha = 0.2, beta = 0.3, lambda = 0.3 }");
    let registry = algorithms::<f64>();
    let entry = find("algorithm", &registry, "lopa-gt")?;
    let params = entry.resolve(source.root()?.required("a")?)?;
    let node = |(i, (a, b)): (usize, (Vec<f64>, Vec<f64>))| {
        let mut oracle = Oracle::new(Box::new(Centre { a, b }), Batches::all(None), false, 1, i);
        let [x, theta, v] = [(); 3].map(|()| vec![0.0]);
        let start = Start { x, theta, v, scope: Scope::Personal, oracle: &mut oracle };
        Ok(Node { algorithm: (entry.build.start)(&params, start)?, oracle })
    };
    let nodes = parts.into_iter().enumerate().map(node).collect::<Result<_>>()?;
    let path = Mixing::from_matrix(vec![
        vec![2.0 / 3.0, 1.0 / 3.0, 0.0],
        vec![1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0],
        vec![0.0, 1.0 / 3.0, 2.0 / 3.0],
    ])?;
    let mut simulation = Simulation::new(nodes, &path, None);
    (0..3000).for_each(|_| simulation.iterate());
    for (i, node) in simulation.nodes().iter().enumerate() {
        let At { x, theta } = node.algorithm.at();
        println!("node {i}: x = {:.9}, theta = {:.9}", x[0], theta[0]);
        assert!((x[0] - solution).abs() < 1e-9, "every node finds the solution {solution}");
    }
    Ok(())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
