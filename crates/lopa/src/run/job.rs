//! One algorithm on one seed, from its nodes to its outcome.

use std::time::Instant;

use super::checkpoint::{Interval, State, misfit};
use super::clock::Clock;
use super::ending::{Ending, Verdict};
use super::private::Account;
use super::processes::{
    Keeper, Processes, chapters, has_turned, is_own, is_usable, lost_cut, own_nodes, parts, restore,
};
use super::recorder::Recorder;
use super::trace::Stop;
use super::world::{Job, Setup, World};
use super::{Context, Observers, Outcome};
use crate::algorithms::regroup;
use crate::engine::device::{Company, DeviceRun, Program};
use crate::engine::{Chapter, Cluster, NEXT_CHAPTER, Node, Transport};
use crate::error::{Error, Result};
use crate::experiment::Precision;
use crate::math::real::Real;
use crate::network;
use crate::problem::saga;
use crate::problem::scope::Scope;
use crate::problem::{Bilevel, Parts};
use crate::store::bytes::{Hash, Reader, Writer};
use toml::Value;

impl Job<'_> {
    /// Runs it to its end, from an earlier state if there is one. When nodes leave or come back, it goes back to the state
    /// that the members agreed on and continues with those that are left. A peer that was left out asks to come back; it
    /// has no outcome if the run ended without it.
    pub fn run<T: Real>(
        &self,
        evaluators: &mut [Box<dyn Bilevel<f64>>],
        transport: &mut dyn Transport,
        context: &Context,
        observers: &mut Observers,
    ) -> Result<Option<Outcome>> {
        loop {
            let chapters = chapters(transport)?;
            match self.place(&chapters, transport) {
                Standing::Member => {}
                Standing::LeftOut => {
                    match self.ask_to_come_back(&chapters, transport, observers)? {
                        true => continue,
                        false => return Ok(None),
                    }
                }
                Standing::Missed => return Ok(None),
            }
            let world = self.among_members(&chapters)?;
            let world = world.as_ref().unwrap_or(self.setup.world);
            let job = Job { setup: Setup { world, ..self.setup }, ..*self };
            match job.run_chapter::<T>(&chapters, evaluators, transport, context, observers) {
                Err(error) if error.id == NEXT_CHAPTER => continue,
                done => return done.map(Some),
            }
        }
    }

    /// Whether this process takes part in it.
    fn place(&self, chapters: &[Chapter], transport: &mut dyn Transport) -> Standing {
        let here = own_nodes(self.setup.experiment.network.nodes, transport);
        let at = Chapter::of(chapters, self.number);
        match chapters.get(at) {
            Some(chapter) if !chapter.members.contains(&here.start) => {
                match at + 1 < chapters.len() {
                    true => Standing::Missed,
                    false => Standing::LeftOut,
                }
            }
            _ => Standing::Member,
        }
    }

    /// Waits until this peer is a member again; false if the others have ended all runs.
    fn ask_to_come_back(
        &self,
        chapters: &[Chapter],
        transport: &mut dyn Transport,
        observers: &mut Observers,
    ) -> Result<bool> {
        let me = own_nodes(self.setup.experiment.network.nodes, transport).start;
        let own = |state: &State| is_own(state, chapters, self.number, me);
        let held = observers.store.held(&self.algorithm.label, self.setup.seed, &own)?;
        observers.listener.warn("the others went on without this node: it asks to come back");
        match Processes::of(transport) {
            Processes::Peers(own) => own.come_back(self.number, &held),
            _ => Ok(true),
        }
    }

    /// The world of the members, if nodes have left.
    pub fn among_members(&self, chapters: &[Chapter]) -> Result<Option<World>> {
        let Setup { experiment, world, .. } = self.setup;
        let parts = parts(chapters, self.number, &world.graph);
        (!parts.is_empty()).then(|| experiment.among(world, parts)).transpose()
    }

    /// Runs it to its end, or until nodes leave.
    fn run_chapter<T: Real>(
        &self,
        chapters: &[Chapter],
        evaluators: &mut [Box<dyn Bilevel<f64>>],
        transport: &mut dyn Transport,
        context: &Context,
        observers: &mut Observers,
    ) -> Result<Outcome> {
        let method = &*self.algorithm.choice.build;
        self.warn(observers);
        let begun = Instant::now();
        let Setup { experiment, world, pool, .. } = self.setup;
        let here = own_nodes(experiment.network.nodes, transport);
        let Parts { each, together } = self.setup.parts_of::<T>(here.clone())?;
        self.say_tables(&each, observers);
        let mut nodes = self.setup.nodes_of(each, here.start, method)?;
        let chapter = Chapter::of(chapters, self.number) as u64;
        let Kept { kept, held, lacks } = self.kept(chapters, transport, observers)?;
        let kept = self.begin(kept, chapter, (&held, lacks), &nodes[0], transport)?;
        let kept = self.hand_over(kept, chapters, &mut nodes[0], transport)?;
        let mut delivery = self.delivery(&nodes[0], transport)?;
        let put_back = |state| restore(state, here, transport, &mut nodes, &mut *delivery);
        let trails = kept.as_ref().map(put_back).transpose()?;
        let turned = self.turn(kept.as_ref(), chapters, &mut nodes, lacks)?;
        let k = kept.as_ref().map_or(0, |state| state.progress.k);
        let device = self.device(&nodes, k, transport)?;
        let mixing = &world.mixing;
        let mut cluster = Cluster::new(nodes, mixing, delivery, pool, transport)
            .over(world.rounds.as_ref())
            .timed(world.time.as_ref(), (mixing, world.rounds.as_ref()))
            .answered_by(together)
            .done_by(device, experiment.run.limits_calls());
        if let Some(state) = &kept {
            cluster = cluster.from(state.progress);
        }
        let claim = world.reserved.map(|reserved| reserved.claim);
        let claim = claim.filter(|_| Processes::with(&mut cluster).are_peers());
        let account = Account::new(experiment, method, evaluators, cluster.nodes(), claim)?;
        let mut recorder = Recorder::new(self, evaluators, context, observers.reborrow(), begun);
        recorder.account = account;
        let ending = Ending::new(self, &cluster.nodes()[0]);
        let mut ongoing = Ongoing {
            job: self,
            clock: Clock::default(),
            ending,
            recorder,
            keeper: Keeper::new(chapter),
            turned,
            every: None,
        };
        let done = ongoing.follow(&mut cluster, kept.zip(trails));
        ongoing.keeper.leave(self, &mut cluster, done, &mut ongoing.recorder.observers)
    }

    /// The last state kept that it can continue from in its chapter; where nodes may be left out, also the
    /// iterations of all such states. A peer that comes back and has no state of the chapter yet has its own last one.
    fn kept(
        &self,
        chapters: &[Chapter],
        transport: &mut dyn Transport,
        observers: &mut Observers,
    ) -> Result<Kept> {
        let (label, seed, number) = (&self.algorithm.label, self.setup.seed, self.number);
        let at = Chapter::of(chapters, number);
        let chapter = chapters.get(at).filter(|chapter| chapter.from.job == number);
        let me = own_nodes(self.setup.experiment.network.nodes, transport).start;
        let back = chapter.and_then(|chapter| chapter.back(me));
        let own = |state: &State| is_own(state, chapters, number, me);
        let last = |state: &State| {
            let last = back.and_then(|back| back.own);
            last == Some(state.progress.k) && own(state)
        };
        let usable = |state: &State| is_usable(state, chapters, number);
        let kept = observers.kept(label, seed, &|state| usable(state) || last(state))?;
        let cut = chapter.and_then(|chapter| chapter.from.k);
        let whole = kept.as_ref().is_some_and(usable);
        let lacks = back.is_some() && cut.is_some() && !whole;
        let needed = if lacks { back.and_then(|back| back.own) } else { cut };
        if let (None, Some(k)) = (&kept, needed) {
            return Err(lost_cut(k));
        }
        let held = match Processes::of(transport).leave() {
            true if lacks => observers.store.held(label, seed, &own)?,
            true => observers.store.held(label, seed, &usable)?,
            false => Vec::new(),
        };
        Ok(Kept { kept, held, lacks })
    }

    /// Restores what must hold over all nodes, if a chapter with other members begins with this state; returns the
    /// chapter that begins, and the places of its members in the one before. One that lacked its state has it as of this
    /// chapter.
    fn turn<T: Real>(
        &self,
        kept: Option<&State>,
        chapters: &[Chapter],
        nodes: &mut [Node<T>],
        lacked: bool,
    ) -> Result<Option<(u64, Vec<usize>)>> {
        let at = Chapter::of(chapters, self.number);
        let Some(before) = kept.and_then(|state| usize::try_from(state.chapter).ok()) else {
            return Ok(None);
        };
        let Some(since) = chapters.get(before..=at).filter(|since| since.len() > 1) else {
            return Ok(None);
        };
        if has_turned(since) || lacked {
            for node in nodes {
                regroup(&mut *node.algorithm)
                    .map_err(|why| cannot_leave(&self.algorithm.label, why))?;
            }
        }
        let before = if lacked { at } else { before };
        Ok(Some((at as u64, self.places(&chapters[before], &chapters[at]))))
    }

    /// Warns the user about a method that may not suit the network, the scope or the messages.
    fn warn(&self, observers: &mut Observers) {
        let method = &*self.algorithm.choice.build;
        let Setup { experiment, world, .. } = self.setup;
        let mut warnings = self.misgivings();
        warnings.extend(network::warnings(world.analysis.lambda_min, method.facts.needs_lazy));
        if let (Scope::Global, Some(warning)) = (experiment.scope, method.facts.warning) {
            warnings.push(warning.into());
        }
        for warning in warnings {
            observers.listener.warn(&format!("{}: {warning}", self.algorithm.label));
        }
        self.warn_of_messages(observers);
    }

    /// Says how much memory SAGA's tables will take, if there are any.
    fn say_tables<T: Real>(&self, parts: &[Box<dyn Bilevel<T>>], observers: &mut Observers) {
        let estimate = self.algorithm.choice.params().get("estimate").and_then(Value::as_str);
        if estimate != Some("saga") {
            return;
        }
        let batches = self.setup.experiment.run.batch.batches();
        let bytes: Vec<u64> = parts.iter().map(|part| saga::bytes(&**part, batches)).collect();
        let most = bytes.iter().max().copied().unwrap_or(0) as f64;
        let text = format!(
            "{}: SAGA's tables take {:.1} MB of memory in all, {:.1} MB at the largest node, and as \
             much in every checkpoint",
            self.algorithm.label,
            bytes.iter().sum::<u64>() as f64 / 1e6,
            most / 1e6,
        );
        observers.listener.warn(&text);
    }

    /// Warns about algorithms without a convergence result on changing graphs.
    fn misgivings(&self) -> Vec<String> {
        let (facts, rounds) = (&self.algorithm.choice.build.facts, &self.setup.world.rounds);
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
    ) -> Result<Option<Box<dyn DeviceRun<T>>>> {
        let place = &self.setup.experiment.device;
        let Some(driver) = place.build.driver() else { return Ok(None) };
        if Processes::of(transport).are_peers() {
            let message = format!("peers cannot use the device `{}`", place.name);
            return Err(Error::config("device/peers", message).at("run.device").hint(
                "leave `device` out, or use `lopa run`, in one process or with `--engine mpi`",
            ));
        }
        if self.setup.world.rounds.is_some() {
            let name = &self.setup.experiment.network.graph.name;
            let message =
                format!("the device mixes with one W; `{name}` changes it in every round");
            return Err(Error::config("device/refused", message)
                .at("run.device")
                .hint("run on the processor: `device = \"cpu\"`"));
        }
        let run = &self.setup.experiment.run;
        let mixing = &self.setup.world.mixing;
        let (batches, shared) = (run.batch.batches(), run.shared_samples);
        let (rounds, seed) = (run.precision == Precision::Tf32, self.setup.seed);
        let company = Company::new(transport);
        let program =
            Program { nodes, company: &company, mixing, batches, shared, rounds, seed, k };
        company.all_open(driver.open.get::<T>()(program)).map(Some)
    }
}

/// Whether a peer takes part in a run.
enum Standing {
    /// It does.
    Member,
    /// The others go on without it.
    LeftOut,
    /// They ended the run without it.
    Missed,
}

/// The state that a run continues from.
struct Kept {
    kept: Option<State>,
    held: Vec<u64>,
    lacks: bool,
}

/// The error for an algorithm that cannot go on without a node.
pub fn cannot_leave(label: &str, why: &str) -> Error {
    let message = format!("`{label}` cannot go on without a node: {why}");
    Error::config("config/leave", message)
        .at("[[algorithm]]")
        .hint("let nodes wait for each other: `--policy wait`")
}

/// Refuses algorithms that no device supports before the first run; `node` is one of this process.
pub fn check_device(setup: Setup, node: usize) -> Result<()> {
    if setup.experiment.device.build.driver().is_none() {
        return Ok(());
    }
    for algorithm in &setup.experiment.algorithms {
        let part = setup.parts_of::<f64>(node..node + 1)?.each;
        let nodes = setup.nodes_of(part, node, &algorithm.choice.build)?;
        nodes[0].algorithm.update_rule().map_err(|why| {
            let message = format!("the device cannot run `{}`: {why}", algorithm.label);
            let hint = "leave it out, or run on the processor: `device = \"cpu\"`";
            Error::config("device/refused", message).at("run.device").hint(hint)
        })?;
    }
    Ok(())
}

/// A job under way.
struct Ongoing<'a> {
    job: &'a Job<'a>,
    clock: Clock,
    ending: Ending<'a>,
    recorder: Recorder<'a>,
    keeper: Keeper,
    every: Option<u64>, // iterations between two checkpoints of all nodes, if they are the same
    turned: Option<(u64, Vec<usize>)>, // the chapter that begins here, and its members' places before
}

impl Ongoing<'_> {
    /// Iterates until the ending says so; measures and keeps the state on the way.
    fn follow<T: Real>(
        &mut self,
        cluster: &mut Cluster<T>,
        kept: Option<(State, Vec<Hash>)>,
    ) -> Result<Outcome> {
        let mut stop = self.begin(cluster, kept)?;
        let mut interval = Interval::new(&self.job.setup.experiment.checkpoint, self.every);
        while stop.is_none() {
            self.clock.go();
            cluster.advance()?;
            if cluster.is_away() && self.ending.reads(cluster, &self.clock)? {
                cluster.wait()?;
            }
            self.clock.halt();
            stop = self.judge(cluster)?;
            let due =
                stop.is_none() && (interval.due(cluster)? | self.recorder.wants_claim(cluster));
            if due || stop == Some(Stop::Interrupted) {
                self.clock.go();
                cluster.wait()?;
                self.clock.halt();
                interval.time(|| self.keep(cluster))?;
            }
        }
        let (stop, culprit) = (stop.expect("the loop ended"), self.ending.culprit.take());
        self.recorder.close(cluster, &self.clock, stop, culprit)
    }

    /// Starts with the first measurement, or from the state of an earlier run.
    fn begin<T: Real>(
        &mut self,
        cluster: &mut Cluster<T>,
        kept: Option<(State, Vec<Hash>)>,
    ) -> Result<Option<Stop>> {
        self.recorder.check_account(cluster)?;
        let Some((state, trails)) = kept else {
            if let Some(most) = self.recorder.plan_end(cluster)? {
                self.ending.end_at(most);
            }
            self.recorder.resume_account(cluster)?;
            self.every = Interval::agreed(&self.job.setup.experiment.checkpoint, cluster)?;
            let stop = self.measure(cluster, 0.0)?;
            if stop.is_none() && Processes::with(cluster).are_peers() {
                self.keep(cluster)?;
            }
            return Ok(stop);
        };
        self.clock.from(state.seconds);
        self.restore(&state.record, cluster).ok_or_else(misfit)?;
        self.recorder.resume(trails, cluster);
        self.keeper = Keeper::after(Some(state));
        self.recorder.resume_account(cluster)?;
        self.recorder.claim(cluster)?;
        if let Some((chapter, places)) = self.turned.take() {
            self.keeper.chapter = chapter;
            self.ending.regroup(&places);
            self.keep(cluster)?;
        }
        Ok(None)
    }

    /// After an iteration: measures if one is due; returns how the run ends, if it does.
    fn judge<T: Real>(&mut self, cluster: &mut Cluster<T>) -> Result<Option<Stop>> {
        self.recorder.check_account(cluster)?;
        let interrupted = self.recorder.is_interrupted();
        let Verdict { due, progress, measure, stop, interrupted } =
            self.ending.judge(cluster, &self.clock, interrupted)?;
        if let Some(culprit) = &self.ending.culprit {
            self.recorder.name(culprit, cluster);
        } else if let Some(fraction) = progress {
            self.recorder.observers.listener.progress(cluster.progress().k, fraction);
        }
        let stop = if measure { self.measure(cluster, due)? } else { stop };
        // Last, so that a run resumed here has done everything that belongs to this iteration.
        Ok(stop.or(interrupted.then_some(Stop::Interrupted)))
    }

    /// Takes a measurement; returns whether the target is reached.
    fn measure<T: Real>(&mut self, cluster: &mut Cluster<T>, due: f64) -> Result<Option<Stop>> {
        let row = self.recorder.measure(cluster, &self.clock, self.ending.is_calm())?;
        self.ending.measured(due, row)
    }

    /// Passes the state of the run to the store.
    fn keep<T: Real>(&mut self, cluster: &mut Cluster<T>) -> Result<()> {
        cluster.fetch()?;
        let nodes = self.recorder.nodes(cluster);
        let Ongoing { job, clock, ending, recorder, keeper, every, .. } = self;
        let measuring = recorder.measuring;
        let end = recorder.account.as_ref().map(Account::iterations);
        let record = |cluster: &Cluster<T>| {
            let mut out = Writer::default();
            ending.save(&mut out);
            if let Some(timing) = cluster.timing() {
                timing.save(&mut out);
            }
            out.f64(measuring);
            end.into_iter().chain(*every).for_each(|value| out.u64(value));
            out.done()
        };
        keeper.keep(job, cluster, nodes, (clock.seconds(), record), &mut recorder.observers)?;
        recorder.claim(cluster)
    }

    /// Restores the state that [`keep`](Ongoing::keep) saved beside the nodes.
    fn restore<T: Real>(&mut self, bytes: &[u8], cluster: &mut Cluster<T>) -> Option<()> {
        let mut bytes = Reader::new(bytes);
        self.ending.restore(&mut bytes)?;
        if let (Some(timing), nodes) = cluster.timing_mut() {
            timing.restore(nodes, &mut bytes)?;
        }
        // Checkpoints of earlier builds end here.
        self.recorder.measuring += bytes.f64().unwrap_or(0.0);
        if let Some(account) = &mut self.recorder.account {
            account.end_at(bytes.u64()?);
            self.ending.end_at(account.iterations());
        }
        if Processes::with(cluster).leave() {
            self.every = bytes.u64();
        }
        bytes.end()
    }
}
