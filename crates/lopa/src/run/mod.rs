//! From an experiment to its results: builds everything, runs every algorithm on every seed.

mod meter;
mod record;
mod world;

pub use world::World;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::ThreadPool;

use crate::algorithms::algorithms;
use crate::data::Data;
use crate::engine::Simulation;
use crate::error::Result;
use crate::evaluate::Point;
use crate::experiment::{AlgorithmSpec, Experiment, Precision};
use crate::network;
use crate::problem::Bilevel;
use crate::real::Real;
use crate::registry::find;
use crate::scope::Scope;
use crate::trace::{Row, Stop};

use record::{Clock, Record};

/// What a run is given from outside.
pub struct Context<'a> {
    /// Threads to share nodes over; none for this thread alone. Results do not depend on it.
    pub pool: Option<&'a ThreadPool>,
    /// Where data sets lie.
    pub data_dir: PathBuf,
    /// Set from outside to end the run early.
    pub interrupt: &'a AtomicBool,
}

/// Who listens to a run as it goes.
pub trait Observer {
    /// The network and partition of a seed were drawn.
    fn world(&mut self, _seed: u64, _world: &World) -> Result<()> {
        Ok(())
    }
    /// A run of one algorithm on one seed begins.
    fn begin(&mut self, _algorithm: &str, _seed: u64) {}
    /// Something the user should know.
    fn warn(&mut self, _text: &str) {}
    /// How far the run under way has come: iterations, and the used part of its budget.
    fn progress(&mut self, _iteration: u64, _fraction: f64) {}
    /// A measurement.
    fn row(&mut self, _algorithm: &str, _seed: u64, _row: &Row) -> Result<()> {
        Ok(())
    }
    /// The run ended.
    fn end(&mut self, _outcome: &Outcome) -> Result<()> {
        Ok(())
    }
}

/// One algorithm on one seed, done.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its label.
    pub algorithm: String,
    /// The seed.
    pub seed: u64,
    /// How it ended.
    pub stop: Stop,
    /// Why it diverged, if it did.
    pub diagnosis: Option<String>,
    /// The last measurement.
    pub row: Row,
    /// The problem's metrics of every node, at the end.
    pub nodes: Vec<Vec<(&'static str, f64)>>,
    /// SHA-256 of every variable at every measurement, to the bit.
    pub digest: String,
    /// (x_i, θ_i) of every node at the end.
    pub models: Vec<Point>,
}

impl Experiment {
    /// Loads the data and runs every algorithm on every seed.
    pub fn run(&self, context: &Context, observer: &mut dyn Observer) -> Result<Vec<Outcome>> {
        self.run_on(self.load_data(context)?.as_ref(), context, observer)
    }

    /// Runs every algorithm on every seed, on data that were loaded before.
    pub fn run_on(
        &self,
        data: Option<&Data>,
        context: &Context,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for &seed in &self.run.seeds {
            let world = self.world(data, seed)?;
            observer.world(seed, &world)?;
            let mut judges = self.parts::<f64>(data, &world, seed)?;
            for algorithm in &self.algorithms {
                observer.begin(&algorithm.label, seed);
                let job = Job { experiment: self, data, world: &world, seed, algorithm };
                let outcome = match self.run.precision {
                    Precision::F32 => job.run::<f32>(&mut judges, context, observer)?,
                    Precision::F64 => job.run::<f64>(&mut judges, context, observer)?,
                };
                observer.end(&outcome)?;
                outcomes.push(outcome);
                if context.interrupt.load(Ordering::Relaxed) {
                    return Ok(outcomes);
                }
            }
        }
        Ok(outcomes)
    }
}

/// One algorithm on one seed.
struct Job<'a> {
    experiment: &'a Experiment,
    data: Option<&'a Data>,
    world: &'a World,
    seed: u64,
    algorithm: &'a AlgorithmSpec,
}

impl Job<'_> {
    fn run<T: Real>(
        &self,
        judges: &mut [Box<dyn Bilevel<f64>>],
        context: &Context,
        observer: &mut dyn Observer,
    ) -> Result<Outcome> {
        let registry = algorithms::<T>();
        let recipe = &find("algorithm", &registry, &self.algorithm.choice.name)?.build;
        for warning in network::warnings(self.world.analysis.lambda_min, recipe.facts.needs_lazy) {
            observer.warn(&format!("{}: {warning}", self.algorithm.label));
        }
        if let (Scope::Global, Some(warning)) = (self.experiment.scope, recipe.facts.warning) {
            observer.warn(&format!("{}: {warning}", self.algorithm.label));
        }
        let mut clock = Clock::default();
        clock.go();
        let Job { experiment, data, world, seed, algorithm } = *self;
        let nodes = experiment.nodes(data, world, seed, &algorithm.choice)?;
        let mut simulation = Simulation::new(nodes, &self.world.mixing, context.pool);
        clock.halt();

        let mut record = Record::new(self, recipe, judges, context, observer);
        let mut stop = record.measure(&simulation, &clock, 0.0)?;
        while stop.is_none() {
            clock.go();
            simulation.iterate();
            clock.halt();
            stop = record.follow(&simulation, &clock)?;
        }
        record.close(&simulation, &clock, stop.expect("the loop ended"))
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
