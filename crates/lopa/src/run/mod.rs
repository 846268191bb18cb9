//! From an experiment to its results: builds everything, runs every algorithm on every seed.

mod agreed;
mod agreement;
pub mod checkpoint;
mod clock;
mod gather;
mod interval;
pub mod judged;
mod measured;
mod messages;
mod meter;
mod peer;
mod probe;
mod record;
pub mod solved;
pub mod trace;
mod world;

pub use probe::{Probe, Probing, Variables, variables};
pub use world::{Setup, World};

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rayon::ThreadPool;

use crate::data::Data;
use crate::engine::device::{Device, Program};
use crate::engine::{Alone, Cluster, Delivery, Node, Transport, anything, block};
use crate::error::{Error, Result};
use crate::evaluate::Point;
use crate::experiment::{AlgorithmSpec, Experiment, Precision};
use crate::math::real::Real;
use crate::messages::Tally;
use crate::network;
use crate::problem::scope::Scope;
use crate::problem::{Bilevel, Parts};
use crate::run::trace::{Row, Stop};
use crate::store::bytes::Hash;
use checkpoint::{Checkpoint, State};

use clock::Clock;
use interval::Interval;
use record::{Record, misfit};

/// The environment of a run.
pub struct Context<'a> {
    /// Threads to spread nodes over; `None` for this thread alone. Results do not depend on it.
    pub pool: Option<&'a ThreadPool>,
    /// The folder with the data sets.
    pub data_dir: PathBuf,
    /// Set to end the run early.
    pub interrupt: &'a AtomicBool,
    /// Measures beyond this crate's own.
    pub probe: Option<&'a dyn Probe>,
}

/// The flag of runs that the caller never ends early.
static NEVER: AtomicBool = AtomicBool::new(false);

impl Default for Context<'_> {
    /// This thread alone, data in the folder `data`, no early end, no further measures.
    fn default() -> Self {
        Context { pool: None, data_dir: "data".into(), interrupt: &NEVER, probe: None }
    }
}

/// Receives progress events; `()` ignores them.
pub trait Listener {
    /// A run of one algorithm on one seed begins.
    fn begin(&mut self, _algorithm: &str, _seed: u64) {}
    /// A run ended earlier and is not repeated.
    fn skip(&mut self, _algorithm: &str, _seed: u64) {}
    /// The run that began resumes an earlier one from this iteration, or from the start if no
    /// checkpoint was usable.
    fn resumed(&mut self, _from: Option<u64>) {}
    /// A note for the user.
    fn warn(&mut self, _text: &str) {}
    /// Iterations done, and the part of the budget that is used.
    fn progress(&mut self, _iteration: u64, _fraction: f64) {}
    /// A measurement is under way: how many nodes of this process are measured, and of how many;
    /// `exact` if their inner problems are solved.
    fn measuring(&mut self, _done: usize, _of: usize, _exact: bool) {}
    /// A measurement.
    fn row(&mut self, _algorithm: &str, _seed: u64, _row: &Row) {}
    /// The run ended.
    fn end(&mut self, _outcome: &Outcome) {}
}

/// Keeps the results of runs, and returns those of earlier runs. `()` keeps nothing.
pub trait Store {
    /// Keeps the network and partition of a seed.
    fn world(&mut self, _seed: u64, _world: &World) -> Result<()> {
        Ok(())
    }
    /// The outcome of a run that ended earlier.
    fn ended(&mut self, _algorithm: &str, _seed: u64) -> Result<Option<Outcome>> {
        Ok(None)
    }
    /// The last state kept of an earlier run that did not end. `refuse` receives the checkpoints
    /// that are not usable, and why.
    fn kept(
        &mut self,
        _algorithm: &str,
        _seed: u64,
        _refuse: &mut dyn FnMut(String),
    ) -> Result<Option<State>> {
        Ok(None)
    }
    /// Keeps the state of a run.
    fn keep(&mut self, _algorithm: &str, _seed: u64, _state: State) -> Result<()> {
        Ok(())
    }
    /// This peer's saved state of the agreement before the runs.
    fn agreed(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
    /// Keeps it.
    fn agree(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
    /// The data now has the columns and the scaling that all nodes agreed on.
    fn settled(&mut self, _data: &Data) {}
    /// Keeps a measurement.
    fn row(&mut self, _algorithm: &str, _seed: u64, _row: &Row) -> Result<()> {
        Ok(())
    }
    /// Keeps the outcome of a run.
    fn end(&mut self, _outcome: &Outcome) -> Result<()> {
        Ok(())
    }
    /// Whether it keeps models: outcomes then come back without them.
    fn keeps_models(&self) -> bool {
        false
    }
}

impl Listener for () {}

impl Store for () {}

/// The listener and the store of a run.
struct Observers<'a> {
    store: &'a mut dyn Store,
    listener: &'a mut dyn Listener,
}

impl Observers<'_> {
    /// The outcome without its models, if the store has them: they are the larger part of memory.
    fn light(&self, outcome: Outcome) -> Outcome {
        let models = if self.store.keeps_models() { Vec::new() } else { outcome.models };
        Outcome { models, ..outcome }
    }

    fn reborrow(&mut self) -> Observers<'_> {
        Observers { store: &mut *self.store, listener: &mut *self.listener }
    }

    /// The last state kept of an earlier run; the listener receives the event.
    fn kept(&mut self, algorithm: &str, seed: u64) -> Result<Option<State>> {
        let mut refused = false;
        let mut refuse = |text: String| {
            refused = true;
            self.listener.warn(&text);
        };
        let state = self.store.kept(algorithm, seed, &mut refuse)?;
        if state.is_some() || refused {
            self.listener.resumed(state.as_ref().map(|state| state.progress.k));
        }
        Ok(state)
    }

    fn row(&mut self, algorithm: &str, seed: u64, row: &Row) -> Result<()> {
        self.store.row(algorithm, seed, row)?;
        self.listener.row(algorithm, seed, row);
        Ok(())
    }

    fn end(&mut self, outcome: &Outcome) -> Result<()> {
        self.listener.end(outcome);
        self.store.end(outcome)
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
    /// Seconds of creating the nodes and of measuring, which are not part of the iterations; over
    /// all parts of a resumed run.
    pub measuring: f64,
    /// Counts of messages, if the file has `[messages]` or `[attack]`.
    pub messages: Option<Tally>,
    /// The problem's metrics of every node, at the end.
    pub nodes: Vec<Vec<(String, f64)>>,
    /// SHA-256 of every variable at every measurement, to the bit.
    pub digest: String,
    /// (x_i, θ_i) of every node at the end; empty where the store keeps them.
    pub models: Vec<Point>,
}

/// Warns about rows that are left out, at any node.
fn warn_of_left_out(data: Option<&Data>, listener: &mut dyn Listener) {
    data.iter().flat_map(|data| &data.left_out).for_each(|text| listener.warn(text));
}

impl Experiment {
    /// Runs every algorithm on every seed, on this thread, with data from the folder `data`; keeps nothing on disk.
    pub fn run(&self) -> Result<Vec<Outcome>> {
        self.run_with(&Context::default(), &mut (), &mut ())
    }

    /// Loads the data and runs every algorithm on every seed.
    pub fn run_with(
        &self,
        context: &Context,
        store: &mut dyn Store,
        listener: &mut dyn Listener,
    ) -> Result<Vec<Outcome>> {
        self.run_on(self.load_data(context)?.as_ref(), context, store, listener)
    }

    /// Runs every algorithm on every seed, on data that were loaded before.
    pub fn run_on(
        &self,
        data: Option<&Data>,
        context: &Context,
        store: &mut dyn Store,
        listener: &mut dyn Listener,
    ) -> Result<Vec<Outcome>> {
        let mut observers = Observers { store, listener };
        warn_of_left_out(data, observers.listener);
        let mut outcomes = Vec::new();
        for &seed in &self.run.seeds {
            let world = self.world(data, seed)?;
            let scene = Scene { data, world: &world, seed, turn: 0 };
            outcomes.extend(self.run_seed(scene, &mut Alone, context, &mut observers)?);
            if context.interrupt.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(outcomes)
    }

    /// The same in several processes, each with the data of its own nodes only. All processes make
    /// the same call; only the `store` of process 0 is used.
    pub fn run_across(
        &self,
        transport: &mut dyn Transport,
        mut data: Option<Data>,
        context: &Context,
        store: &mut dyn Store,
        listener: &mut dyn Listener,
    ) -> Result<Vec<Outcome>> {
        let mut observers = Observers { store, listener };
        let here = block(self.network.nodes, transport.size(), transport.rank());
        let agreement = self.agree(transport, data.as_ref(), observers.store)?;
        self.settle(data.as_mut(), agreement.as_ref())?;
        warn_of_left_out(data.as_ref(), observers.listener);
        if let Some(data) = data.as_ref().filter(|_| transport.independent().is_some()) {
            observers.store.settled(data);
        }
        let mut outcomes: Vec<Outcome> = Vec::new();
        for (turn, &seed) in self.run.seeds.iter().enumerate() {
            if turn > 0 {
                // Another seed has another partition, which needs other rows.
                data = self.load_data_of(context, here.clone())?;
                self.settle(data.as_mut(), agreement.as_ref())?;
            }
            let world = self.world(data.as_ref(), seed)?;
            if let Some(data) = data.as_mut().filter(|_| transport.size() > 1) {
                data.train.hold(&world.rows(here.clone()));
            }
            let scene = Scene { data: data.as_ref(), world: &world, seed, turn };
            outcomes.extend(self.run_seed(scene, transport, context, &mut observers)?);
            if outcomes.last().is_some_and(|last| last.stop == Stop::Interrupted) {
                break;
            }
        }
        Ok(outcomes)
    }

    /// Runs every algorithm on one seed.
    fn run_seed(
        &self,
        scene: Scene,
        transport: &mut dyn Transport,
        context: &Context,
        observers: &mut Observers,
    ) -> Result<Vec<Outcome>> {
        observers.store.world(scene.seed, scene.world)?;
        let one_thread = self.problem.build.get::<f64>().one_thread();
        let &Context { pool, ref data_dir, interrupt, probe } = context;
        let pool = pool.filter(|_| !one_thread);
        let context = &Context { pool, data_dir: data_dir.clone(), interrupt, probe };
        let here = block(self.network.nodes, transport.size(), transport.rank());
        if transport.size() == 1 && transport.independent().is_none() {
            self.check_device(scene)?;
        }
        let Scene { data, world, seed, .. } = scene;
        let mut evaluators = self.parts_on::<f64>(data, world, seed, here, pool)?.each;
        let mut outcomes = Vec::new();
        for (at, algorithm) in self.algorithms.iter().enumerate() {
            let ended = observers.store.ended(&algorithm.label, scene.seed)?;
            // The agreement before the runs has number 0 where there is one.
            let number = scene.turn * self.algorithms.len() + at + usize::from(self.agrees());
            let number = number as u32;
            let job = Job { experiment: self, scene, algorithm, number };
            if job.is_known(ended.is_some(), transport)? {
                observers.listener.skip(&algorithm.label, scene.seed);
                outcomes.extend(ended.map(|ended| observers.light(ended)));
                continue;
            }
            observers.listener.begin(&algorithm.label, scene.seed);
            let outcome = match self.run.precision {
                Precision::F32 => job.run::<f32>(&mut evaluators, transport, context, observers)?,
                Precision::F64 => job.run::<f64>(&mut evaluators, transport, context, observers)?,
            };
            observers.end(&outcome)?;
            let interrupted = outcome.stop == Stop::Interrupted;
            outcomes.push(observers.light(outcome));
            if interrupted {
                break;
            }
        }
        Ok(outcomes)
    }

    /// Refuses algorithms that no device supports before the first run.
    fn check_device(&self, scene: Scene) -> Result<()> {
        if self.device.build.device().is_none() {
            return Ok(());
        }
        let Scene { data, world, seed, .. } = scene;
        for algorithm in &self.algorithms {
            let part = self.parts_of::<f64>(data, world, seed, 0..1)?.each;
            let nodes = self.nodes_of(part, 0, seed, &algorithm.choice.build, None)?;
            nodes[0].algorithm.update_rule().map_err(|why| {
                let message = format!("the device cannot run `{}`: {why}", algorithm.label);
                let hint = "leave it out, or run on the processor: `device = \"cpu\"`";
                Error::config("device/refused", message).at("run.device").hint(hint)
            })?;
        }
        Ok(())
    }
}

/// The environment of all algorithms of a seed.
#[derive(Clone, Copy)]
struct Scene<'a> {
    data: Option<&'a Data>,
    world: &'a World,
    seed: u64,
    turn: usize, // index of the seed
}

/// One algorithm on one seed.
struct Job<'a> {
    experiment: &'a Experiment,
    scene: Scene<'a>,
    algorithm: &'a AlgorithmSpec,
    number: u32, // index among all jobs of the experiment
}

impl Job<'_> {
    fn run<T: Real>(
        &self,
        evaluators: &mut [Box<dyn Bilevel<f64>>],
        transport: &mut dyn Transport,
        context: &Context,
        observers: &mut Observers,
    ) -> Result<Outcome> {
        let method = &*self.algorithm.choice.build;
        let lambda_min = self.scene.world.analysis.lambda_min;
        for warning in self.misgivings() {
            observers.listener.warn(&format!("{}: {warning}", self.algorithm.label));
        }
        for warning in network::warnings(lambda_min, method.facts.needs_lazy) {
            observers.listener.warn(&format!("{}: {warning}", self.algorithm.label));
        }
        if let (Scope::Global, Some(warning)) = (self.experiment.scope, method.facts.warning) {
            observers.listener.warn(&format!("{}: {warning}", self.algorithm.label));
        }
        self.warn_of_messages(observers);
        let begun = Instant::now();
        let here = block(self.experiment.network.nodes, transport.size(), transport.rank());
        let Scene { data, world, seed, .. } = self.scene;
        let Parts { each, together } =
            self.experiment.parts_on::<T>(data, world, seed, here.clone(), context.pool)?;
        let mut nodes = self.experiment.nodes_of(each, here.start, seed, method, context.pool)?;
        let kept = observers.kept(&self.algorithm.label, self.scene.seed)?;
        let kept = self.begin(kept, &nodes[0], transport)?;
        let own = transport.independent().is_some();
        let mut delivery = self.delivery(&nodes[0], transport)?;
        let put_back = |state| restore(state, here, own, &mut nodes, &mut *delivery);
        let trails = kept.as_ref().map(put_back).transpose()?;
        let mixing = &self.scene.world.mixing;
        let k = kept.as_ref().map_or(0, |state| state.progress.k);
        let device = self.device(&nodes, k, transport)?;
        let mut cluster = Cluster::new(nodes, mixing, delivery, context.pool, transport)
            .over(self.scene.world.rounds.as_ref())
            .timed(world.time.as_ref(), (mixing, world.rounds.as_ref()))
            .answered_by(together)
            .done_by(device);
        let mut clock = Clock::default();
        if let Some(state) = &kept {
            cluster = cluster.from(state.progress);
            clock.from(state.seconds);
        }
        let mut record = Record::new(self, evaluators, context, observers.reborrow()).since(begun);
        let done = self.follow(&mut cluster, &mut clock, &mut record, kept.zip(trails));
        record.leave(&mut cluster, done)
    }

    /// Warns about algorithms without a convergence result on changing graphs.
    fn misgivings(&self) -> Vec<String> {
        let (facts, rounds) = (&self.algorithm.choice.build.facts, &self.scene.world.rounds);
        let fixed = rounds.is_some() && facts.fixed_graph;
        let text = "it is known to converge where W is fixed and symmetric; on a graph that changes it \
                    may end at a wrong point or diverge: prefer a method that tracks gradients";
        fixed.then(|| text.into()).into_iter().collect()
    }

    /// The device of the experiment with the nodes' variables; `None` for the processor.
    fn device<T: Real>(
        &self,
        nodes: &[Node<T>],
        k: u64,
        transport: &mut dyn Transport,
    ) -> Result<Option<Box<dyn Device<T>>>> {
        let place = &self.experiment.device;
        let Some(there) = place.build.device() else { return Ok(None) };
        if transport.size() > 1 || transport.independent().is_some() {
            let message = format!("`{}` holds all nodes in one process", place.name);
            return Err(Error::config("device/processes", message)
                .at("run.device")
                .hint("use `--engine process`, or leave `device` out"));
        }
        if self.scene.world.rounds.is_some() {
            let name = &self.experiment.network.graph.name;
            let message =
                format!("the device mixes with one W; `{name}` changes it in every round");
            return Err(Error::config("device/refused", message)
                .at("run.device")
                .hint("run on the processor: `device = \"cpu\"`"));
        }
        let run = &self.experiment.run;
        let mixing = &self.scene.world.mixing;
        let (batches, shared) = (run.batch.batches(), run.shared_samples);
        let program = Program { nodes, mixing, batches, shared, seed: self.scene.seed, k };
        there.open.get::<T>()(program).map(Some)
    }

    /// Runs the job to its end.
    fn follow<T: Real>(
        &self,
        cluster: &mut Cluster<T>,
        clock: &mut Clock,
        record: &mut Record,
        kept: Option<(State, Vec<Hash>)>,
    ) -> Result<Outcome> {
        let mut stop = record.begin(cluster, clock, kept)?;
        let mut interval = Interval::new(&self.experiment.checkpoint);
        while stop.is_none() {
            clock.go();
            cluster.advance()?;
            if cluster.is_away() && record.expects(cluster, clock)? {
                cluster.wait()?;
            }
            clock.halt();
            stop = record.follow(cluster, clock)?;
            let wanted = cluster.independent().is_some_and(|own| own.wants_checkpoint());
            let due = stop.is_none() && (interval.due(cluster)? || wanted);
            if due || stop == Some(Stop::Interrupted) {
                clock.go();
                cluster.wait()?;
                clock.halt();
                interval.time(|| record.keep(cluster, clock))?;
            }
        }
        record.close(cluster, clock, stop.expect("the loop ended"))
    }
}

/// The state of an earlier run, as process 0 has it.
fn told_by_first(kept: Option<State>, transport: &mut dyn Transport) -> Result<Option<State>> {
    if transport.size() == 1 {
        return Ok(kept);
    }
    let bytes = |state| Checkpoint { run: Hash::default(), metrics: 0, state }.to_bytes();
    let ours = kept.filter(|_| transport.rank() == 0).map(bytes).unwrap_or_default();
    let told = transport.all(&ours, &anything)?.swap_remove(0);
    if told.is_empty() {
        return Ok(None);
    }
    let checkpoint = Checkpoint::from_bytes(&told).map_err(|_| misfit())?;
    Ok(Some(checkpoint.state))
}

/// Restores the nodes of this process, and returns their digest chains.
fn restore<T: Real>(
    state: &State,
    here: Range<usize>,
    own: bool,
    nodes: &mut [Node<T>],
    delivery: &mut dyn Delivery<T>,
) -> Result<Vec<Hash>> {
    // A peer's checkpoint holds its own nodes only.
    let here = if own { 0..here.len() } else { here };
    let kept = state.nodes.get(here).ok_or_else(misfit)?;
    let put_back = |(i, (node, bytes)): (usize, (&mut Node<T>, &Vec<u8>))| {
        let (trail, held) = checkpoint::restore(node, bytes)?;
        delivery.restore(i, held)?;
        Some(trail)
    };
    nodes.iter_mut().zip(kept).enumerate().map(put_back).collect::<Option<_>>().ok_or_else(misfit)
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
