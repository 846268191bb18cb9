//! From an experiment to its results: builds everything, runs every algorithm on every seed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rayon::ThreadPool;
use sha2::{Digest, Sha256};

use crate::algorithms::{Recipe, Start, algorithms};
use crate::config::Choice;
use crate::data::partition::{self, Partition, Rows};
use crate::data::{self, Data, Where};
use crate::diagnose::diagnose;
use crate::engine::{Node, Simulation};
use crate::error::{Error, Result};
use crate::evaluate;
use crate::experiment::{AlgorithmSpec, Exactly, Experiment, Precision, Target};
use crate::network::{self, Analysis, Graph, Mixing};
use crate::oracle::Oracle;
use crate::problem::{At, Bilevel};
use crate::problems::{Setting, problems};
use crate::random::{Purpose, Stream};
use crate::real::{Real, cast};
use crate::registry::find;
use crate::trace::{Row, Stop};
use crate::watch::{self, Watch};

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
    pub models: Vec<(Vec<f64>, Vec<f64>)>,
}

/// All that the runs of one seed share.
pub struct World {
    /// The graph.
    pub graph: Graph,
    /// W.
    pub mixing: Mixing,
    /// What is known of W.
    pub analysis: Analysis,
    /// Who has which samples.
    pub partition: Partition,
}

impl Experiment {
    /// Loads the experiment's data, if it has any.
    pub fn load_data(&self, context: &Context) -> Result<Option<Data>> {
        // The hold-out set does not depend on the run's seed: every seed is tested on the same.
        let place = Where { directory: context.data_dir.clone(), seed: 0 };
        let load = |spec: &crate::experiment::DataSpec| {
            data::load(&spec.source, &spec.preparation, &place).map_err(|error| error.at("[data]"))
        };
        self.data.as_ref().map(load).transpose()
    }

    /// Draws the network and the partition of a seed.
    pub fn world(&self, data: Option<&Data>, seed: u64) -> Result<World> {
        let spec = &self.network;
        let graph_seed = spec.seed.unwrap_or(seed);
        let (graph, mixing) = network::build(&spec.graph, &spec.weights, spec.nodes, graph_seed)
            .map_err(|error| error.at("[network]"))?;
        let analysis = mixing.analyse(&graph);
        let partition = match (&self.data, data) {
            (Some(spec), Some(data)) => {
                let classes = data.classes.len();
                let rows = Rows::of(&data.train, classes, self.network.nodes, seed);
                partition::split(&spec.partition, &rows).map_err(|error| error.at("[partition]"))?
            }
            _ => Partition { nodes: Vec::new() },
        };
        Ok(World { graph, mixing, analysis, partition })
    }

    /// The nodes' parts of the problem.
    pub fn parts<T: Real>(
        &self,
        data: Option<&Data>,
        world: &World,
        seed: u64,
    ) -> Result<Vec<Box<dyn Bilevel<T>>>> {
        let setting = Setting {
            nodes: self.network.nodes,
            seed,
            batch: self.run.batch.batches().grad_g,
            data,
            partition: &world.partition.nodes,
        };
        let registry = problems::<T>();
        let kind = &find("problem", &registry, &self.problem.name)?.build;
        kind.parts(&self.problem.params, &setting).map_err(|error| error.at("[problem]"))
    }

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
        for warning in network::warnings(&self.world.analysis, recipe.facts.needs_lazy) {
            observer.warn(&format!("{}: {warning}", self.algorithm.label));
        }
        let mut clock = Clock::default();
        clock.go();
        let nodes = self.nodes(recipe)?;
        let mut simulation = Simulation::new(nodes, &self.world.mixing, context.pool);
        clock.halt();

        let mut record = Record::new(self, recipe, judges);
        let mut stop = record.measure(&simulation, &clock, context, observer, 0.0)?;
        while stop.is_none() {
            clock.go();
            simulation.iterate();
            clock.halt();
            stop = record.follow(&simulation, &clock, context, observer)?;
        }
        record.close(&simulation, &clock, context, observer, stop.expect("the loop ended"))
    }

    fn nodes<T: Real>(&self, recipe: &Recipe<T>) -> Result<Vec<Node<T>>> {
        let run = &self.experiment.run;
        let parts = self.experiment.parts::<T>(self.data, self.world, self.seed)?;
        let make = |(i, part): (usize, Box<dyn Bilevel<T>>)| {
            let x = cast(&part.start_x(&mut Stream::new(self.seed, Purpose::Start, 0)));
            let theta = cast(&part.start_theta(&mut Stream::new(self.seed, Purpose::Start, 1 + i)));
            let v = vec![T::zero(); part.dims().p];
            let batches = run.batch.batches();
            let mut oracle = Oracle::new(part, batches, run.shared_samples, self.seed, i);
            let start = Start { x, theta, v, oracle: &mut oracle };
            let algorithm = (recipe.start)(&self.algorithm.choice.params, start)?;
            Ok(Node { algorithm, oracle })
        };
        parts.into_iter().enumerate().map(make).collect()
    }
}

/// Seconds of computing: stopped while measurements are taken.
#[derive(Default)]
struct Clock {
    seconds: f64,
    since: Option<Instant>,
}

impl Clock {
    fn go(&mut self) {
        self.since = Some(Instant::now());
    }

    fn halt(&mut self) {
        self.seconds += self.since.take().map_or(0.0, |since| since.elapsed().as_secs_f64());
    }
}

/// Follows a run: measures it, hashes it, and says when it is over.
struct Record<'a, T: Real> {
    job: &'a Job<'a>,
    recipe: &'a Recipe<T>,
    judges: &'a mut [Box<dyn Bilevel<f64>>],
    hasher: Sha256,
    watch: Watch,
    measured: u64,
    row: Option<Row>,
    nodes: Vec<Vec<(&'static str, f64)>>,
    good: Vec<(Vec<f64>, Vec<f64>)>,
    culprit: Option<watch::Culprit>,
}

impl<'a, T: Real> Record<'a, T> {
    fn new(
        job: &'a Job<'a>,
        recipe: &'a Recipe<T>,
        judges: &'a mut [Box<dyn Bilevel<f64>>],
    ) -> Self {
        Record {
            job,
            recipe,
            judges,
            hasher: Sha256::new(),
            watch: Watch::default(),
            measured: 0,
            row: None,
            nodes: Vec::new(),
            good: Vec::new(),
            culprit: None,
        }
    }

    /// After an iteration: is it over, is it time to measure?
    fn follow(
        &mut self,
        simulation: &Simulation<T>,
        clock: &Clock,
        context: &Context,
        observer: &mut dyn Observer,
    ) -> Result<Option<Stop>> {
        let (used, done) = self.used(simulation, clock);
        let evaluations = self.job.experiment.run.evaluations as f64;
        if simulation.k() % watch::EVERY == 0 || done.is_some() {
            self.culprit = self.watch.look(simulation.k(), simulation.nodes());
            if self.culprit.is_some() {
                return Ok(Some(Stop::Diverged));
            }
            observer.progress(simulation.k(), used);
        }
        if context.interrupt.load(Ordering::Relaxed) {
            return Ok(Some(Stop::Interrupted));
        }
        if done.is_none() && used * evaluations >= self.measured as f64 {
            return self.measure(simulation, clock, context, observer, used);
        }
        Ok(done)
    }

    /// The used part of the budget, and how the run ends if it is used up.
    fn used(&self, simulation: &Simulation<T>, clock: &Clock) -> (f64, Option<Stop>) {
        let run = &self.job.experiment.run;
        let row = costs(simulation, clock);
        let part = |(name, limit): (&'static str, f64)| {
            let spent = match name {
                // What LoPA would have spent: one at the start and one an iteration.
                "hessians" if !self.recipe.facts.second_order => row.iteration as f64 + 1.0,
                _ => row.value(name).expect("a budget names a cost"),
            };
            (name, spent / limit)
        };
        let iterations =
            run.iterations.map(|most| ("iteration", row.iteration as f64 / most as f64));
        let parts: Vec<(&str, f64)> = run.budget.limits().map(part).chain(iterations).collect();
        // Seconds differ from run to run, so they decide where to measure only if nothing else can.
        let steady = parts.iter().filter(|(name, _)| *name != "seconds").map(|(_, part)| *part);
        let used = match parts.len() {
            1 => parts[0].1,
            _ => steady.fold(0.0, f64::max),
        };
        let done = match parts.iter().find(|(_, part)| *part >= 1.0) {
            Some(("iteration", _)) => Some(Stop::Finished),
            Some(_) => Some(Stop::Budget),
            None => None,
        };
        (used, done)
    }

    fn measure(
        &mut self,
        simulation: &Simulation<T>,
        clock: &Clock,
        context: &Context,
        observer: &mut dyn Observer,
        used: f64,
    ) -> Result<Option<Stop>> {
        let exact = self.job.experiment.run.exact == Exactly::Always;
        self.take(simulation, clock, context, observer, exact)?;
        let evaluations = self.job.experiment.run.evaluations as f64;
        self.measured = (used * evaluations).floor() as u64 + 1;
        let reached = match &self.job.experiment.run.target {
            Some(target) => self.reached(target)?,
            None => false,
        };
        Ok(reached.then_some(Stop::Target))
    }

    fn reached(&self, Target { metric, at_least, at_most }: &Target) -> Result<bool> {
        let row = self.row.as_ref().expect("a row was measured");
        let value = row.value(metric).ok_or_else(|| {
            let known: Vec<_> = row.values.keys().map(String::as_str).collect();
            Error::config(
                "config/unknown-name",
                format!("the target's metric `{metric}` is not measured here"),
            )
            .at("[run.target]")
            .hint(format!("measured: {}", known.join(", ")))
        })?;
        Ok(at_least.is_some_and(|bound| value >= bound) || at_most.is_some_and(|b| value <= b))
    }

    /// One measurement.
    fn take(
        &mut self,
        simulation: &Simulation<T>,
        clock: &Clock,
        context: &Context,
        observer: &mut dyn Observer,
        exact: bool,
    ) -> Result<()> {
        self.hash(simulation);
        let points = points(simulation);
        let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        let sound = points.iter().all(|(x, theta)| finite(x) && finite(theta));
        let mut row = costs(simulation, clock);
        if sound {
            let locals = evaluate::all(self.judges, &points, exact, context.pool);
            row.values = evaluate::summarise(&locals);
            self.nodes = locals.into_iter().map(|local| local.values).collect();
            self.good = points;
        }
        if let Some(gap) = tracking(simulation) {
            row.values.insert("tracking".into(), gap);
        }
        row.values.retain(|_, value| value.is_finite());
        observer.row(&self.job.algorithm.label, self.job.seed, &row)?;
        self.row = Some(row);
        Ok(())
    }

    fn hash(&mut self, simulation: &Simulation<T>) {
        let mut bytes = simulation.k().to_le_bytes().to_vec();
        for node in simulation.nodes() {
            for (_, values) in node.algorithm.variables() {
                values.iter().for_each(|value| value.extend_le(&mut bytes));
            }
        }
        self.hasher.update(&bytes);
    }

    fn close(
        mut self,
        simulation: &Simulation<T>,
        clock: &Clock,
        context: &Context,
        observer: &mut dyn Observer,
        stop: Stop,
    ) -> Result<Outcome> {
        let measured_here = self.row.as_ref().is_some_and(|row| row.iteration == simulation.k());
        let run = &self.job.experiment.run;
        if !(measured_here && run.exact == Exactly::Always) {
            let exact = run.exact != Exactly::Never && stop != Stop::Diverged;
            self.take(simulation, clock, context, observer, exact)?;
        }
        observer.progress(simulation.k(), 1.0);
        let diagnosis = self.culprit.as_ref().map(|culprit| {
            let (x, theta) = &self.good[culprit.node];
            let part = &mut *self.judges[culprit.node];
            let Choice { params, .. } = &self.job.algorithm.choice;
            let why = diagnose(culprit, &self.recipe.facts, params, part, At { x, theta });
            let lambda_min = self.job.world.analysis.lambda_min;
            match self.recipe.facts.needs_lazy && lambda_min < -1e-9 {
                true => format!(
                    "{why}; or use lazy weights: the smallest eigenvalue of W is {lambda_min:.2}, \
                     and this method bears larger steps if it is not negative"
                ),
                false => why,
            }
        });
        Ok(Outcome {
            algorithm: self.job.algorithm.label.clone(),
            seed: self.job.seed,
            stop,
            diagnosis,
            row: self.row.expect("a row was measured"),
            nodes: self.nodes,
            digest: hex(&self.hasher.finalize()),
            models: points(simulation),
        })
    }
}

fn costs<T: Real>(simulation: &Simulation<T>, clock: &Clock) -> Row {
    Row {
        iteration: simulation.k(),
        exchanges: simulation.exchanges(),
        bytes: simulation.floats() * T::BYTES as u64,
        seconds: clock.seconds,
        ..Row::new(&simulation.counts(), simulation.nodes().len())
    }
}

fn points<T: Real>(simulation: &Simulation<T>) -> Vec<(Vec<f64>, Vec<f64>)> {
    let point = |node: &Node<T>| {
        let At { x, theta } = node.algorithm.at();
        (cast(x), cast(theta))
    };
    simulation.nodes().iter().map(point).collect()
}

/// ‖mean y − mean z‖: zero to rounding, or gradient tracking is broken.
fn tracking<T: Real>(simulation: &Simulation<T>) -> Option<f64> {
    let pairs: Option<Vec<_>> =
        simulation.nodes().iter().map(|node| node.algorithm.tracked()).collect();
    let gaps: Vec<Vec<f64>> = pairs?
        .into_iter()
        .map(|(y, z)| y.iter().zip(z).map(|(&y, &z)| y.to_f64() - z.to_f64()).collect())
        .collect();
    let gap = evaluate::mean(gaps.iter().map(|gap| &gap[..]));
    Some(gap.iter().map(|g| g * g).sum::<f64>().sqrt())
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
