//! LoPA-GT on a small problem with a known answer, from an experiment in ten lines.
//!
//! `cargo run --release --example quickstart`

mod common;

use lopa::prelude::*;

const EXPERIMENT: &str = r#"
    problem = { name = "quadratic", n = 5, p = 6, condition = 2.0, heterogeneity = 0.5 }
    network = { nodes = 8, graph = "ring", weights = "lazy-metropolis" }
    run     = { iterations = 3000, evaluations = 8 }

    [[algorithm]]
    name = "lopa-gt"
    alpha = 0.02
    beta = 0.9
    lambda = 0.9
"#;

fn main() -> Result<()> {
    common::run(EXPERIMENT, &Registries::default())
}
