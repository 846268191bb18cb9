//! LoPA-GT on a small problem with a known answer, from an experiment in ten lines.
//!
//! `cargo run --release --example quickstart`

use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::error::Result;
use lopa::experiment::Experiment;
use lopa::run::trace::Row;
use lopa::run::{Context, Listener};

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

struct Print;

impl Listener for Print {
    fn row(&mut self, _: &str, _: u64, row: &Row) {
        let value = |name| row.value(name).unwrap_or(f64::NAN);
        println!(
            "{:>6}  |∇Φ(x̄)|² = {:.1e}   consensus = {:.1e}",
            row.iteration,
            value("grad_phi_sq"),
            value("consensus")
        );
    }
}

fn main() -> Result<()> {
    let experiment = Experiment::read(&Source::new("quickstart", EXPERIMENT))?;
    let interrupt = AtomicBool::new(false);
    let context =
        Context { pool: None, data_dir: "data".into(), interrupt: &interrupt, probe: None };
    let outcomes = experiment.run(&context, &mut (), &mut Print)?;
    println!("ended: {}, digest {}", outcomes[0].stop.name(), &outcomes[0].digest[..16]);
    Ok(())
}
