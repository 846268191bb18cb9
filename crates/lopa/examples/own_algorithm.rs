//! An algorithm of one's own, outside the crate: LoPA-LG without momentum and relaxation, in the
//! order adapt-then-combine.
//!
//! ```text
//! share  x − α s
//! x⁺ = Σ_j w_ij (x_j − α s_j);   θ⁺ = θ − β d;   v⁺ = v − λ h;   d, h, s as in LoPA
//! ```
//!
//! `cargo run --release --example own_algorithm`

use lopa::algorithms::Algorithm;
use lopa::config::Source;
use lopa::engine::{Node, Simulation};
use lopa::error::Result;
use lopa::evaluate;
use lopa::experiment::Experiment;
use lopa::math::real::update;
use lopa::network::mixed::Mixed;
use lopa::problem::At;
use lopa::problem::oracle::{Batches, Oracle, SIGMA1, SIGMA2, XI1, XI2, XI3};

struct Diffusion {
    steps: [f64; 3],
    x: Vec<f64>,
    theta: Vec<f64>,
    v: Vec<f64>,
    d: Vec<f64>,
    h: Vec<f64>,
    s: Vec<f64>,
    of_theta: Vec<f64>,
    of_x: Vec<f64>,
}

impl Diffusion {
    fn estimate(&mut self, oracle: &mut Oracle<f64>) {
        let at = At { x: &self.x, theta: &self.theta };
        oracle.grad_theta_g(at, XI1, &mut self.d);
        oracle.hess_g(at, XI2, &self.v, &mut self.h);
        oracle.grad_theta_f(at, SIGMA1, &mut self.of_theta);
        update(&mut self.h, [&self.of_theta], |hess_v, [grad]| hess_v - grad);
        oracle.grad_x_f(at, SIGMA2, &mut self.s);
        oracle.cross_g(at, XI3, &self.v, &mut self.of_x);
        update(&mut self.s, [&self.of_x], |grad, [cross_v]| grad - cross_v);
    }
}

impl Algorithm<f64> for Diffusion {
    fn share(&self, _: usize, message: &mut Vec<f64>) {
        let alpha = self.steps[0];
        message.extend(self.x.iter().zip(&self.s).map(|(x, s)| x - alpha * s));
    }

    fn step(&mut self, _: usize, mixed: Mixed<f64>, oracle: &mut Oracle<f64>) {
        let mixed = mixed.whole();
        let [_, beta, lambda] = self.steps;
        self.x.copy_from_slice(mixed);
        update(&mut self.theta, [&self.d], |theta, [d]| theta - beta * d);
        update(&mut self.v, [&self.h], |v, [h]| v - lambda * h);
        self.estimate(oracle);
    }

    fn at(&self) -> At<'_, f64> {
        At { x: &self.x, theta: &self.theta }
    }

    fn variables(&self) -> Vec<(&'static str, &[f64])> {
        vec![("x", &self.x), ("theta", &self.theta), ("v", &self.v)]
    }

    fn variables_mut(&mut self) -> Vec<(&'static str, &mut [f64])> {
        vec![("x", &mut self.x), ("theta", &mut self.theta), ("v", &mut self.v)]
    }
}

const EXPERIMENT: &str = r#"
    problem   = { name = "quadratic", n = 4, p = 3, condition = 3.0, heterogeneity = 0.5 }
    network   = { nodes = 6, graph = "ring" }
    run       = { iterations = 1 }
    algorithm = [{ name = "dgd", alpha = 0.1 }]
"#;

fn main() -> Result<()> {
    let experiment = Experiment::read(&Source::new("example", EXPERIMENT))?;
    let world = experiment.world(None, 1)?;
    let mut judges = experiment.parts::<f64>(None, &world, 1)?;
    let node = |(i, part): (usize, Box<dyn lopa::problem::Bilevel<f64>>)| {
        let dims = part.dims();
        let mut oracle = Oracle::new(part, Batches::all(None), false, 1, i);
        let (of_x, of_theta) = (|| vec![0.0; dims.n], || vec![0.0; dims.p]);
        let mut algorithm = Diffusion {
            steps: [0.01, 0.5, 0.5],
            x: of_x(),
            theta: of_theta(),
            v: of_theta(),
            d: of_theta(),
            h: of_theta(),
            s: of_x(),
            of_theta: of_theta(),
            of_x: of_x(),
        };
        algorithm.estimate(&mut oracle);
        Node { algorithm: Box::new(algorithm), oracle }
    };
    let parts = experiment.parts::<f64>(None, &world, 1)?;
    let nodes = parts.into_iter().enumerate().map(node).collect();
    let mut simulation = Simulation::new(nodes, &world.mixing, None);
    for _ in 0..5 {
        (0..400).for_each(|_| simulation.iterate());
        let point = |node: &Node<f64>| {
            let At { x, theta } = node.algorithm.at();
            (x.to_vec(), theta.to_vec())
        };
        let points: Vec<_> = simulation.nodes().iter().map(point).collect();
        let values = evaluate::summarise(&evaluate::all(&mut judges, &points, true, None));
        println!(
            "{:>5}  |∇Φ(x̄)|² = {:.1e}   consensus = {:.1e}",
            simulation.k(),
            values["grad_phi_sq"],
            values["consensus"]
        );
    }
    println!("it stops at a bias of order alpha, as methods with local gradients do");
    Ok(())
}
