//! Runs an experiment and prints its measurements.

use lopa::prelude::*;

/// Prints a line per measurement.
struct Print;

impl Listener for Print {
    fn row(&mut self, algorithm: &str, _: u64, row: &Row) {
        let value = |name| row.value(name).unwrap_or(f64::NAN);
        println!(
            "{algorithm} {:>6}  |∇Φ(x̄)|² = {:.1e}   consensus = {:.1e}",
            row.iteration,
            value("grad_phi_sq"),
            value("consensus")
        );
    }
}

/// Runs the experiment of a text.
pub fn run(text: &str, registries: &Registries) -> Result<()> {
    let experiment = Experiment::read(&Source::new("example", text), registries)?;
    for outcome in experiment.run_with(&Context::default(), &mut (), &mut Print)? {
        let (algorithm, digest) = (&outcome.algorithm, &outcome.digest[..16]);
        println!("{algorithm} ended: {}, digest {digest}", outcome.stop.name());
    }
    Ok(())
}
