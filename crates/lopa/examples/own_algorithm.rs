//! An algorithm of your own, outside the library: LoPA-LG without momentum and relaxation, adapt
//! then combine. It is registered under a name and run from an experiment file like any other.
//!
//! ```text
//! send  x − α s
//! x⁺ = Σ_j w_ij (x_j − α s_j)
//! θ⁺ = θ − β d
//! v⁺ = v − λ h
//! d, h, s as in LoPA, (6) to (8), at the new point
//! ```
//!
//! `cargo run --release --example own_algorithm`

mod common;

use lopa::algorithms::prelude::*;
use lopa::prelude::*;

params! {
    /// Step sizes of `diffusion`.
    struct Diffusion {
        /// Step size of x.
        alpha: Schedule = 0.01, step;
        /// Step size of θ.
        beta: Schedule = 0.5, step;
        /// Step size of v.
        lambda: Schedule = 0.5, step;
    }
}

const FACTS: Facts = Facts {
    source: "an example",
    scopes: &[Scope::Personal],
    steps: &[("beta", &["theta"]), ("lambda", &["v"]), ("alpha", &["x"])],
    ..Facts::LOOPLESS
};

impl Method for Diffusion {
    fn start<T: Real>(&self, mut start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let now = start.directions(FIVE);
        let Start { x, theta, v, .. } = start;
        Ok(Box::new(Node { params: self.clone(), x, theta, v, now }))
    }
}

struct Node<T> {
    params: Diffusion,
    x: Vector<T>,
    theta: Vector<T>,
    v: Vector<T>,
    now: DirectionBuffers<T>, // d, h, s at (x, θ, v)
}

impl<T: Real> Algorithm<T> for Node<T> {
    fn share(&self, round: Round, out: &mut Outbox<T>) {
        let alpha = T::of(self.params.alpha.at(round.k));
        out.formed("x", [&self.x, &self.now.s], |[x, s]| x - alpha * s);
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let Diffusion { beta, lambda, .. } = &self.params;
        let k = oracle.k();
        let [wx] = mixed.vectors();
        self.x.copy_from_slice(wx);
        axpy(-T::of(beta.at(k)), &self.now.d, &mut self.theta);
        axpy(-T::of(lambda.at(k)), &self.now.h, &mut self.v);
    }

    fn asks(&mut self, _: usize) -> Option<DirectionRequest<'_, T>> {
        Some(self.now.at(At { x: &self.x, theta: &self.theta }, &self.v))
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { Node { x, theta, v, now, .. } =>
        "theta": theta, "d": now.d, "v": v, "h": now.h, "s": now.s, "x": x,
    }
}

const EXPERIMENT: &str = r#"
    problem   = { name = "quadratic", n = 4, p = 3, condition = 3.0, heterogeneity = 0.5 }
    network   = { nodes = 6, graph = "ring" }
    run       = { iterations = 2000, evaluations = 5 }
    algorithm = ["diffusion", { name = "lopa-gt", alpha = 0.02, beta = 0.5, lambda = 0.5 }]
"#;

/// The registries of the library, and `diffusion`. A test of it is one line:
/// `lopa::conformance::algorithm(&registries(), "diffusion").unwrap()`
pub fn registries() -> Registries {
    let mut registries = Registries::default();
    registries.algorithms.add(algorithm_entry(
        "diffusion",
        "adapt then combine with local hypergradients",
        FACTS,
        |params: Diffusion| params,
    ));
    registries
}

fn main() -> Result<()> {
    common::run(EXPERIMENT, &registries())?;
    println!("diffusion stops at a bias of order alpha, as methods with local gradients do");
    Ok(())
}
