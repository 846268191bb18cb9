//! From an experiment to its results: builds everything, runs every algorithm on every seed.
//!
//! A `Job` is one algorithm on one seed. Three things follow it: `processes` know who computes where,
//! the `recorder` takes measurements and digests, and the `ending` decides when the run is measured
//! and when it is over.

pub mod checkpoint;
mod clock;
mod ending;
mod job;
pub mod judged;
mod messages;
pub mod private;
mod processes;
mod recorder;
pub mod reserved;
pub mod steps;
mod timed_calls;
pub mod trace;
mod world;

pub use lopa_core::evaluate;
pub use recorder::probe::{Probe, Probing, Variables, variables};
pub use recorder::solved::Solved;
pub use world::{Setup, World};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::ThreadPool;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::data::{Data, Origin};
use crate::engine::messages::Tally;
use crate::engine::{Alone, Transport};
use crate::error::Result;
use crate::experiment::{Experiment, Precision};
use crate::run::evaluate::{Point, Quartiles};
use crate::run::trace::{Row, Stop};
use crate::store::bytes::hex;
use checkpoint::State;
use processes::{Processes, own_nodes};
use reserved::{Claim, Reservation, Reserved, no_ledger};
use world::Job;

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
    /// The last state kept of an earlier run that did not end, of those that are `usable`. `refuse`
    /// receives the checkpoints that are damaged or of another run, and why.
    fn kept(
        &mut self,
        _algorithm: &str,
        _seed: u64,
        _usable: &dyn Fn(&State) -> bool,
        _refuse: &mut dyn FnMut(String),
    ) -> Result<Option<State>> {
        Ok(None)
    }
    /// The iterations of all states kept of a run that are `usable`.
    fn held(
        &mut self,
        _algorithm: &str,
        _seed: u64,
        _usable: &dyn Fn(&State) -> bool,
    ) -> Result<Vec<u64>> {
        Ok(Vec::new())
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
    /// Reserves the budget of a run in the ledgers of its files, before anything is computed; without ledgers, it refuses.
    fn reserve(&mut self, _origins: &[Origin], _run: &Reservation) -> Result<Reserved> {
        Err(no_ledger())
    }
    /// Enters a claim of the run that was reserved.
    fn claim(&mut self, _claim: Claim) -> Result<()> {
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
    /// The others ended a run without this node: it has no outcome.
    fn miss(&mut self, _algorithm: &str, _seed: u64) -> Result<()> {
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

    /// The last usable state kept of an earlier run; the listener receives the event.
    fn kept(
        &mut self,
        algorithm: &str,
        seed: u64,
        usable: &dyn Fn(&State) -> bool,
    ) -> Result<Option<State>> {
        let mut refused = false;
        let mut refuse = |text: String| {
            refused = true;
            self.listener.warn(&text);
        };
        let state = self.store.kept(algorithm, seed, usable, &mut refuse)?;
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

/// How one algorithm ended on one seed: an entry of `results.json`, with its models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The algorithm's label.
    pub algorithm: String,
    /// The seed.
    pub seed: u64,
    /// SHA-256 of every variable at every measurement, to the bit.
    pub digest: String,
    /// How it ended.
    pub stop: Stop,
    /// The last measurement.
    #[serde(flatten)]
    pub row: Row,
    /// Seconds of creating the nodes and of measuring, which are not part of the iterations; over
    /// all parts of a resumed run. Left out if they were not measured.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub measuring: f64,
    /// Why it diverged, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<String>,
    /// Who took part from which iteration on, if not all nodes took part in all iterations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chapters: Vec<Part>,
    /// Counts of messages, if the file has `[messages]` or `[attack]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Tally>,
    /// The problem's metrics of every node, at the end; NaN for one that was not finite. Empty where
    /// `spread` stands for them.
    #[serde(default, with = "trace::nodes")]
    pub nodes: Vec<Vec<(String, f64)>>,
    /// How the metrics spread over the nodes of a large network, where a file does not list them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spread: BTreeMap<String, Quartiles>,
    /// (x_i, θ_i) of every node at the end; empty where the store keeps them.
    #[serde(skip)]
    pub models: Vec<Point>,
}

/// Iterations with the same members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The iteration that it begins after.
    pub from: u64,
    /// The nodes that take part, by number.
    pub members: Vec<usize>,
    /// Those that came back when it began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub back: Vec<CameBack>,
}

/// A node that came back. It starts anew at the x of a neighbour, with its own θ and v.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CameBack {
    /// The node.
    pub node: usize,
    /// The iteration of its own last state, from which θ and v are; `None` if it had none, and they are start values.
    pub own: Option<u64>,
    /// The neighbour whose x it took over; `None` at the start of the run.
    pub x_of: Option<usize>,
}

impl Outcome {
    /// Whether it is the outcome of this algorithm on this seed.
    pub fn is_of(&self, algorithm: &str, seed: u64) -> bool {
        self.algorithm == algorithm && self.seed == seed
    }

    /// Who took part in which iterations, in words, if not all nodes did in all of them.
    pub fn took_part(&self, names: &[String]) -> Option<String> {
        let name = |node: &usize| names.get(*node).cloned().unwrap_or(format!("node {node}"));
        let came = |CameBack { node, own, x_of }: &CameBack| {
            let x = x_of.map_or(String::new(), |by| format!(" with the x of {}", name(&by)));
            let own = own.map_or(String::new(), |k| format!(" and its own state of iteration {k}"));
            format!(" ({} came back{x}{own})", name(node))
        };
        let part = |Part { from, members, back }: &Part| {
            let members: Vec<String> = members.iter().map(name).collect();
            let back: String = back.iter().map(came).collect();
            format!("from iteration {from} on {}{back}", members.join(", "))
        };
        let parts: Vec<String> = self.chapters.iter().map(part).collect();
        let Outcome { algorithm, seed, .. } = self;
        let said =
            || format!("{algorithm}, seed {seed}: not all nodes took part: {}", parts.join("; "));
        (!parts.is_empty()).then(said)
    }

    /// The outcome as a file lists it: without models, and with the spread of the metrics in place of
    /// those of more than `most` nodes.
    pub fn listed(&self, most: usize) -> Outcome {
        let mut listed = Outcome { models: Vec::new(), ..self.clone() };
        if listed.nodes.len() > most {
            listed.spread = Quartiles::of_nodes(&std::mem::take(&mut listed.nodes));
        }
        listed
    }
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
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
        self.warn_of_simulation(observers.listener);
        let reserved = self.reserve(&mut Alone, context, observers.store)?;
        let mut outcomes = Vec::new();
        for &seed in &self.run.seeds {
            let world = World { reserved, ..self.world(data, seed)? };
            let setup = Setup { pool: self.pool(context), ..self.setup(data, &world, seed) };
            outcomes.extend(setup.run(0, &mut Alone, context, &mut observers)?);
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
        if let Processes::Peers(_) = Processes::of(transport) {
            self.refuse_simulation()?;
        }
        self.warn_of_simulation(observers.listener);
        let reserved = self.reserve(transport, context, observers.store)?;
        let here = own_nodes(self.network.nodes, transport);
        let agreement = self.agree(transport, data.as_ref(), observers.store)?;
        self.settle(data.as_mut(), agreement.as_ref())?;
        warn_of_left_out(data.as_ref(), observers.listener);
        if let (Processes::Peers(_), Some(data)) = (Processes::of(transport), &data) {
            observers.store.settled(data);
        }
        let mut outcomes: Vec<Outcome> = Vec::new();
        for (turn, &seed) in self.run.seeds.iter().enumerate() {
            if turn > 0 {
                // Another seed has another partition, which needs other rows.
                data = self.load_data_of(context, here.clone())?;
                self.settle(data.as_mut(), agreement.as_ref())?;
            }
            let world = World { reserved, ..self.world(data.as_ref(), seed)? };
            if let Some(data) = data.as_mut().filter(|_| transport.size() > 1) {
                data.train.hold(&world.rows(here.clone()));
            }
            let setup = self.setup(data.as_ref(), &world, seed);
            let setup = Setup { pool: self.pool(context), ..setup };
            outcomes.extend(setup.run(turn, transport, context, &mut observers)?);
            if outcomes.last().is_some_and(|last| last.stop == Stop::Interrupted) {
                break;
            }
        }
        Ok(outcomes)
    }

    /// The threads to spread nodes over, unless the problem must stay on one.
    fn pool<'a>(&self, context: &Context<'a>) -> Option<&'a ThreadPool> {
        let one_thread = self.problem.build.get::<f64>().one_thread();
        context.pool.filter(|_| !one_thread)
    }
}

impl Setup<'_> {
    /// Runs every algorithm on the seed with this index.
    fn run(
        self,
        turn: usize,
        transport: &mut dyn Transport,
        context: &Context,
        observers: &mut Observers,
    ) -> Result<Vec<Outcome>> {
        let Setup { experiment, world, seed, .. } = self;
        observers.store.world(seed, world)?;
        let here = own_nodes(experiment.network.nodes, transport);
        if !Processes::of(transport).are_peers() {
            job::check_device(self, here.start)?;
        }
        let mut evaluators = self.parts_of::<f64>(here)?.each;
        let mut outcomes = Vec::new();
        for (at, algorithm) in experiment.algorithms.iter().enumerate() {
            let ended = observers.store.ended(&algorithm.label, seed)?;
            // The agreement before the runs has number 0 where there is one.
            let number = turn * experiment.algorithms.len() + at + usize::from(experiment.agrees());
            let job = Job { setup: self, algorithm, number: number as u32 };
            if job.is_known(ended.is_some(), transport)? {
                observers.listener.skip(&algorithm.label, seed);
                outcomes.extend(ended.map(|ended| observers.light(ended)));
                continue;
            }
            observers.listener.begin(&algorithm.label, seed);
            let outcome = match experiment.run.precision {
                Precision::F32 | Precision::Tf32 => {
                    job.run::<f32>(&mut evaluators, transport, context, observers)?
                }
                Precision::F64 => job.run::<f64>(&mut evaluators, transport, context, observers)?,
            };
            let Some(outcome) = outcome else {
                let text = format!(
                    "{}, seed {seed}: the others ended it without this node",
                    algorithm.label
                );
                observers.listener.warn(&text);
                observers.store.miss(&algorithm.label, seed)?;
                continue;
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
}

/// One digest of several runs.
pub fn trajectory_digest(outcomes: &[Outcome]) -> String {
    let mut hasher = Sha256::new();
    for Outcome { algorithm, seed, digest, .. } in outcomes {
        hasher.update(algorithm);
        hasher.update(seed.to_le_bytes());
        hasher.update(digest);
    }
    hex(&hasher.finalize()[..8])
}
