//! Follows a run: measures it, hashes it, and decides when it ends.
//!
//! With several processes, each follows the run with the same numbers and makes the same decisions.

mod explain;

use std::sync::atomic::Ordering;
use std::time::Instant;

use rayon::ThreadPool;
use sha2::{Digest, Sha256};

use super::agreed::{Agreed, agree, agree_on_time, interrupts, own_costs};
use super::clock::Clock;
use super::gather::{Tracking, Xs, own_points, packed, points, tracking, xs};
use super::meter::{Meter, Reading};
use super::probe::{Probing, variables};
use super::solved::Solving;
use super::{Context, Job, Observers, Outcome, Scene, Setup, hex};
use crate::engine::{Cluster, Expect, Node, stopped};
use crate::error::{Error, Kind, Result};
use crate::evaluate::watch::{self, Culprit, Watch};
use crate::evaluate::{self, Local, Point};
use crate::experiment::{Exactly, FinalTheta, Target};
use crate::math::parallel;
use crate::math::real::Real;
use crate::math::scratch::lent;
use crate::problem::scope::Scope;
use crate::problem::{At, Bilevel};
use crate::run::checkpoint::{self, State};
use crate::run::trace::{Row, Stop};
use crate::store::bytes::{Hash, Reader, Writer};

/// Iterations after which an unused budget is treated as a mistake; a randomly truncated series may
/// go without products for a while.
const PATIENCE: u64 = 100;

/// Follows a run: measures it, hashes it, and decides when it ends.
pub struct Record<'a> {
    job: &'a Job<'a>,
    evaluators: &'a mut [Box<dyn Bilevel<f64>>],
    context: &'a Context<'a>,
    observers: Observers<'a>,
    trails: Vec<Hash>, // per node here: SHA-256 of the chain so far, k and every variable
    names: Vec<&'static str>,
    watch: Watch,
    meter: Meter,
    measured: u64,
    row: Option<Row>,
    nodes: Vec<Vec<(String, f64)>>,
    good: Vec<Vec<u8>>, // per node here: its point at the last measurement before anything grew
    culprit: Option<Culprit>,
    solved: Option<Vec<Vec<f64>>>, // per node here: the θ that the run ends with, if it is solved for
    probing: Option<Box<dyn Probing>>,
    measuring: f64,      // seconds
    serial: u64,         // of the next checkpoint
    last: Option<State>, // the last checkpoint of a peer
}

impl<'a> Record<'a> {
    pub fn new(
        job: &'a Job<'a>,
        evaluators: &'a mut [Box<dyn Bilevel<f64>>],
        context: &'a Context<'a>,
        observers: Observers<'a>,
    ) -> Self {
        let probe = context.probe;
        let probing = probe.and_then(|probe| probe.begin(job.experiment, job.algorithm));
        Record {
            probing,
            job,
            trails: vec![Hash::default(); evaluators.len()],
            evaluators,
            context,
            observers,
            names: Vec::new(),
            watch: Watch::default(),
            meter: Meter::new(&job.experiment.run),
            measured: 0,
            row: None,
            nodes: Vec::new(),
            good: Vec::new(),
            culprit: None,
            solved: None,
            measuring: 0.0,
            serial: 0,
            last: None,
        }
    }

    /// Counts the time since then as overhead: that of creating the nodes.
    pub fn since(mut self, begun: Instant) -> Self {
        self.measuring += begun.elapsed().as_secs_f64();
        self
    }

    /// Starts with the first measurement, or from the state of an earlier run.
    pub fn begin<T: Real>(
        &mut self,
        cluster: &mut Cluster<T>,
        clock: &Clock,
        kept: Option<(State, Vec<Hash>)>,
    ) -> Result<Option<Stop>> {
        let variables = cluster.nodes()[0].algorithm.variables();
        self.names = variables.into_iter().map(|(name, _)| name).collect();
        let Some((state, trails)) = kept else {
            let stop = self.measure(cluster, clock, 0.0)?;
            if stop.is_none() && cluster.independent().is_some() {
                self.keep(cluster, clock)?;
            }
            return Ok(stop);
        };
        self.trails = trails;
        self.restore(&state.record, cluster).ok_or_else(misfit)?;
        self.good = cluster.nodes().iter().map(packed).collect();
        self.serial = state.serial + 1;
        self.last = Some(State { links: Vec::new(), ..state });
        Ok(None)
    }

    /// Its state, for a checkpoint.
    fn save<T: Real>(&self, cluster: &Cluster<T>) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(self.measured);
        self.meter.save(&mut out);
        self.watch.save(&self.names, &mut out);
        if let Some(timing) = cluster.timing() {
            timing.save(&mut out);
        }
        out.f64(self.measuring);
        out.done()
    }

    fn restore<T: Real>(&mut self, bytes: &[u8], cluster: &mut Cluster<T>) -> Option<()> {
        let mut bytes = Reader::new(bytes);
        self.measured = bytes.u64()?;
        self.meter.restore(&mut bytes)?;
        self.watch = Watch::restore(&mut bytes, &self.names)?;
        if let (Some(timing), nodes) = cluster.timing_mut() {
            timing.restore(nodes, &mut bytes)?;
        }
        // Checkpoints of earlier builds end here.
        self.measuring += bytes.f64().unwrap_or(0.0);
        bytes.end()
    }

    /// Passes the state of the run to the store.
    pub fn keep<T: Real>(&mut self, cluster: &mut Cluster<T>, clock: &Clock) -> Result<()> {
        cluster.fetch()?;
        let held = cluster.held();
        let nodes = cluster.nodes().iter().zip(&self.trails).zip(&held);
        let save = |((node, trail), held): (_, &Vec<u8>)| checkpoint::save(node, trail, held);
        let ours: Vec<_> = nodes.map(save).collect();
        if cluster.independent().is_none() {
            agree_on_time(cluster)?;
        }
        let (progress, seconds, record) = (cluster.progress(), clock.seconds(), self.save(cluster));
        let serial = self.serial;
        let state = |nodes, links| State { progress, serial, seconds, record, nodes, links };
        let Some(own) = cluster.independent() else {
            let nodes = cluster.gather(ours)?;
            return match cluster.is_first() {
                true => self.hand_over(state(nodes, Vec::new())),
                false => Ok(()),
            };
        };
        own.mark();
        let state = state(ours, Vec::new());
        self.last = Some(state.clone());
        let state = State { links: own.save(false), ..state };
        self.hand_over(state)?;
        own.kept()
    }

    fn hand_over(&mut self, state: State) -> Result<()> {
        self.serial += 1;
        self.observers.store.keep(&self.job.algorithm.label, self.job.scene.seed, state)
    }

    /// Ends the run, with or without an error. A peer that ended, or that lost another, saves its
    /// last checkpoint once more with everything received since, so that it can reach the same
    /// point again without help; at the end it waits until its neighbours have done the same.
    pub fn leave<T: Real>(
        &mut self,
        cluster: &mut Cluster<T>,
        done: Result<Outcome>,
    ) -> Result<Outcome> {
        let Some(own) = cluster.independent() else { return done };
        let lacks = |error: &Error| error.kind == Kind::Peer;
        if done.as_ref().err().is_none_or(lacks)
            && let Some(last) = self.last.take()
        {
            let (serial, links) = (self.serial, own.save(done.is_ok()));
            self.hand_over(State { serial, links, ..last })?;
        }
        if done.is_ok() {
            own.end()?;
        }
        done
    }

    /// Whether the variables will be read after this iteration: then the clock must run until a
    /// device has finished it.
    pub fn expects<T: Real>(&mut self, cluster: &mut Cluster<T>, clock: &Clock) -> Result<bool> {
        let second_order = self.job.algorithm.choice.build.facts.second_order;
        let costs = agree(cluster, clock, false)?.costs;
        let Reading { due, done, brink } = self.meter.read(&costs, second_order);
        let looks = cluster.progress().k.is_multiple_of(watch::EVERY);
        Ok(looks || done.is_some() || brink || due >= self.measured as f64)
    }

    /// After an iteration: measures if one is due; returns how the run ends, if it does.
    pub fn follow<T: Real>(
        &mut self,
        cluster: &mut Cluster<T>,
        clock: &Clock,
    ) -> Result<Option<Stop>> {
        let (run, k) = (&self.job.experiment.run, cluster.progress().k);
        let looks = k.is_multiple_of(watch::EVERY);
        // Communicate with other processes only where necessary: it costs a round trip.
        let asks = cluster.is_whole() || looks || self.meter.is_shared();
        let interrupted = self.context.interrupt.load(Ordering::Relaxed);
        let Agreed { costs, interrupted } = match asks {
            true => agree(cluster, clock, interrupted)?,
            false => {
                Agreed { costs: own_costs(cluster), interrupted: interrupts(cluster, interrupted) }
            }
        };
        let second_order = self.job.algorithm.choice.build.facts.second_order;
        let Reading { due, done, brink } = self.meter.read(&costs, second_order);
        if looks || done.is_some() {
            let sizes = cluster.sizes()?;
            let sizes = cluster.everyone(sizes, Expect::Numbers)?;
            self.culprit = self.watch.look(k, done.is_some(), &self.names, &sizes);
            if self.culprit.is_some() {
                self.name_culprit(cluster);
                return Ok(Some(Stop::Diverged));
            }
            self.observers.listener.progress(k, due / run.evaluations as f64);
        }
        if due == 0.0 && k >= PATIENCE {
            return Err(self.endless());
        }
        let stop = match done {
            None if brink || due >= self.measured as f64 => self.measure(cluster, clock, due)?,
            _ => done,
        };
        // Last, so that a run resumed here has done everything that belongs to this iteration.
        Ok(stop.or(interrupted.then_some(Stop::Interrupted)))
    }

    /// Warns the user of a peer about another node whose variables have outgrown their early sizes,
    /// before it waits for that node's diagnosis.
    fn name_culprit<T: Real>(&mut self, cluster: &mut Cluster<T>) {
        let elsewhere = |culprit: &&Culprit| !cluster.here().contains(&culprit.node);
        let Some(Culprit { node, k, grown }) = self.culprit.as_ref().filter(elsewhere) else {
            return;
        };
        let variable = grown.first().map_or("state", |grown| grown.variable);
        let text = format!(
            "{}: at iteration {k} node {node} says that its {variable} has grown without bound: the run \
             ends",
            self.job.algorithm.label
        );
        if cluster.independent().is_some() {
            self.observers.listener.warn(&text);
        }
    }

    fn endless(&self) -> Error {
        let label = &self.job.algorithm.label;
        let message =
            format!("the budget limits nothing that `{label}` spends: it would never end");
        Error::config("config/endless", message)
            .at("run.budget")
            .hint("add `iterations`, or a limit on something it does spend")
    }

    /// Takes a measurement; returns whether the target is reached.
    fn measure<T: Real>(
        &mut self,
        cluster: &mut Cluster<T>,
        clock: &Clock,
        due: f64,
    ) -> Result<Option<Stop>> {
        let exact = self.job.experiment.run.exact == Exactly::Always;
        self.take(cluster, clock, exact)?;
        self.measured = due.floor() as u64 + 1;
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

    /// One measurement, timed.
    fn take<T: Real>(
        &mut self,
        cluster: &mut Cluster<T>,
        clock: &Clock,
        exact: bool,
    ) -> Result<()> {
        let begun = Instant::now();
        cluster.fetch()?;
        if self.solved.is_none() {
            self.hash(cluster);
        }
        let taken = self.take_now(cluster, clock, exact);
        self.measuring += begun.elapsed().as_secs_f64();
        taken
    }

    /// One measurement.
    fn take_now<T: Real>(
        &mut self,
        cluster: &mut Cluster<T>,
        clock: &Clock,
        exact: bool,
    ) -> Result<()> {
        let (scope, pool) = (self.job.experiment.scope, self.context.pool);
        // A personal θ is not sent: it may be far larger than x.
        let Xs { all, sound } = xs(cluster)?;
        let mut row = agree(cluster, clock, false)?.costs;
        if sound {
            let mean = evaluate::mean(self.honest(&all).iter().map(|x| &x[..]));
            let locals = self.locals(cluster, &mean, exact && scope == Scope::Personal)?;
            row.values = evaluate::summarise(&self.honest(&locals));
            if scope == Scope::Global {
                let own = self.ends(cluster);
                let points = points(cluster, scope, own)?;
                self.observers.listener.measuring(0, points.len(), exact);
                let everyone = &mut |ours| cluster.everyone(ours, Expect::Numbers);
                row.values.extend(evaluate::common(
                    self.evaluators,
                    &points,
                    exact,
                    pool,
                    everyone,
                )?);
            }
            // A probe needs the variables of all nodes, which only a single process has.
            let whole = cluster.nodes().len() == all.len();
            if let Some(probing) = self.probing.as_mut().filter(|_| whole) {
                let Scene { data, world, seed, .. } = self.job.scene;
                let setup = Setup { experiment: self.job.experiment, data, world, seed, pool };
                let nodes: Vec<_> = cluster.nodes().iter().map(variables).collect();
                row.values.extend(probing.measure(&setup, &nodes, self.evaluators));
            }
            if let Some(error) = self.evaluators.iter_mut().find_map(|part| part.error()) {
                return Err(error);
            }
            self.nodes = locals.into_iter().map(|local| local.values).collect();
            // A point that has begun to grow cannot be used to judge step sizes.
            if self.watch.is_calm() {
                self.good = cluster.nodes().iter().map(packed).collect();
            }
        }
        if let Some(Tracking { gap, rounding }) = tracking(cluster)? {
            row.values.insert("tracking".into(), gap);
            if sound && gap > rounding {
                self.observers.listener.warn(&self.untrue(cluster.progress().k, gap));
            }
        }
        row.values.retain(|_, value| value.is_finite());
        self.observers.row(&self.job.algorithm.label, self.job.scene.seed, &row)?;
        self.row = Some(row);
        Ok(())
    }

    /// The warning that gradient tracking is broken.
    fn untrue(&self, k: u64, gap: f64) -> String {
        format!(
            "{}: at iteration {k} the trackers' mean is off the gradients' by {gap:.1e}: the run goes \
             to a wrong point. Messages were changed or used by one end of a link only, or numbers \
             are too large for their precision",
            self.job.algorithm.label
        )
    }

    /// The entries of the honest nodes.
    fn honest<'n, V: Clone>(&self, of: &'n [V]) -> std::borrow::Cow<'n, [V]> {
        let Some(attack) = &self.job.experiment.attack else { return of.into() };
        let honest = of.iter().enumerate().filter(|(i, _)| !attack.nodes.contains(i));
        honest.map(|(_, one)| one.clone()).collect::<Vec<_>>().into()
    }

    /// The contributions of all nodes to a measurement, with x̄.
    fn locals<T: Real>(
        &mut self,
        cluster: &mut Cluster<T>,
        mean: &[f64],
        exact: bool,
    ) -> Result<Vec<Local>> {
        let here = cluster.here().len();
        let mut ours = Vec::with_capacity(here);
        // A few nodes at a time where it may take long, so that progress is reported; enough for
        // all threads.
        let pool = self.context.pool;
        let threads = pool.map_or(1, ThreadPool::current_num_threads);
        let some = if exact { here.div_ceil(20).max(2 * threads) } else { here };
        let nodes = cluster.nodes_mut().chunks_mut(some);
        for (parts, nodes) in self.evaluators.chunks_mut(some).zip(nodes) {
            self.observers.listener.measuring(ours.len(), here, exact);
            let solved = |at: usize| self.solved.as_ref().map(|all| &all[at][..]);
            let all = (ours.len()..).map(solved).zip(parts.iter_mut().zip(nodes));
            let measured =
                |(theta, (part, node)): (Option<&[f64]>, _)| one(part, (node, theta), mean, exact);
            ours.extend(parallel::map(pool, all, measured));
        }
        let names: Vec<_> = ours[0].values.iter().map(|(name, _)| name.clone()).collect();
        let alike = |local: &Local| local.values.iter().map(|(name, _)| name).eq(&names);
        if !ours.iter().all(alike) {
            return Err(unlike());
        }
        if cluster.is_whole() {
            return Ok(ours);
        }
        let ours = ours.iter().map(Local::to_numbers).collect();
        let all = cluster.everyone(ours, Expect::Numbers)?;
        let locals = all.iter().map(|numbers| Local::from_numbers(&names, numbers));
        locals.collect::<Option<_>>().ok_or_else(unlike)
    }

    fn hash<T: Real>(&mut self, cluster: &mut Cluster<T>) {
        let k = cluster.progress().k;
        let nodes = cluster.nodes_mut().iter_mut().zip(&mut self.trails);
        parallel::map(self.context.pool, nodes, |(node, trail)| {
            lent(|bytes: &mut Vec<u8>| {
                bytes.clear();
                bytes.extend_from_slice(trail);
                bytes.extend_from_slice(&k.to_le_bytes());
                for (_, values) in node.algorithm.variables() {
                    T::extend_le(values, bytes);
                }
                *trail = Sha256::digest(&bytes[..]).into();
            });
        });
    }

    /// The last measurement, and the outcome.
    pub fn close<T: Real>(
        &mut self,
        cluster: &mut Cluster<T>,
        clock: &Clock,
        stop: Stop,
    ) -> Result<Outcome> {
        if stop == Stop::Interrupted && cluster.independent().is_some() {
            // A last measurement would need the other peers, which carry on.
            return Err(stopped());
        }
        let k = cluster.progress().k;
        let measured_here = self.row.as_ref().is_some_and(|row| row.iteration == k);
        let run = &self.job.experiment.run;
        let exact = run.exact != Exactly::Never && stop != Stop::Diverged;
        let solves =
            !run.final_theta.is_last() && !matches!(stop, Stop::Diverged | Stop::Interrupted);
        if !(measured_here && run.exact == Exactly::Always) {
            self.take(cluster, clock, exact && !solves)?;
        }
        if solves {
            // A measurement of its own: the digest above is that of the iterations.
            self.solved = Some(self.solve(cluster, false)?);
            self.take(cluster, clock, exact)?;
        }
        self.observers.listener.progress(k, 1.0);
        let diagnosis = self.diagnosis(cluster)?;
        self.good = Vec::new();
        if solves && run.final_theta == FinalTheta::Refitted {
            self.solved = Some(self.solve(cluster, true)?);
        }
        let trails = self.trails.iter().map(|trail| trail.to_vec()).collect();
        let trails = cluster.everyone_bytes(trails, Expect::Bytes)?;
        let own = self.ends(cluster);
        let models = points(cluster, self.job.experiment.scope, own)?;
        Ok(Outcome {
            algorithm: self.job.algorithm.label.clone(),
            seed: self.job.scene.seed,
            stop,
            diagnosis,
            row: self.row.take().expect("a row was measured"),
            measuring: self.measuring,
            messages: self.job.mails().then_some(cluster.progress().tally),
            nodes: std::mem::take(&mut self.nodes),
            digest: hex(&Sha256::digest(trails.concat())),
            models,
        })
    }

    /// The points of the nodes of this process, with the solved θ if there is one.
    fn ends<T: Real>(&self, cluster: &Cluster<T>) -> Vec<Point> {
        let mut own = own_points(cluster);
        for ((_, theta), solved) in own.iter_mut().zip(self.solved.iter().flatten()) {
            theta.clone_from(solved);
        }
        own
    }

    /// The exact θ of the nodes of this process, with or without the rows that they hold out; timed
    /// as measuring.
    fn solve<T: Real>(&mut self, cluster: &mut Cluster<T>, refit: bool) -> Result<Vec<Vec<f64>>> {
        let begun = Instant::now();
        let Scene { data, world, seed, .. } = self.job.scene;
        let (experiment, pool) = (self.job.experiment, self.context.pool);
        let solving = Solving { experiment, data, world, seed, pool };
        let (here, points) = (cluster.here(), self.ends(cluster));
        self.observers.listener.measuring(0, here.len(), true);
        let everyone = &mut |ours| cluster.everyone(ours, Expect::Numbers);
        let found = solving.theta(here, &points, refit, everyone)?;
        if found.unsolved > 0 {
            let text = format!(
                "{}, seed {seed}: theta is not exact at {} of {} nodes: the inner problem could not be \
                 solved to the tolerance",
                self.job.algorithm.label,
                found.unsolved,
                points.len()
            );
            self.observers.listener.warn(&text);
        }
        self.measuring += begun.elapsed().as_secs_f64();
        Ok(found.theta)
    }
}

/// The contribution of one node to a measurement, from a copy of its point in double precision,
/// with another θ if one is given.
fn one<T: Real>(
    part: &mut Box<dyn Bilevel<f64>>,
    (node, theta): (&mut Node<T>, Option<&[f64]>),
    mean: &[f64],
    exact: bool,
) -> Local {
    #[derive(Default)]
    struct Copied([Vec<f64>; 2]);
    let at = node.algorithm.at();
    let mut found = None;
    lent(|Copied(copies): &mut Copied| {
        for (copy, values) in copies.iter_mut().zip([at.x, at.theta]) {
            copy.clear();
            copy.extend(values.iter().map(|&value| value.to_f64()));
        }
        let [x, last] = &*copies;
        let theta = theta.unwrap_or(last);
        found = Some(evaluate::local(&mut **part, At { x, theta }, mean, exact));
    });
    found.expect("it was lent memory")
}

/// The error for metrics that cannot be averaged over nodes.
fn unlike() -> Error {
    Error::config("problem/malformed", "nodes have different metrics: a measure is their mean")
        .at("[problem]")
        .hint("give every node the same metrics in the same order")
}

/// The error for an intact checkpoint that belongs to a different run.
pub fn misfit() -> Error {
    let message = "the checkpoint does not fit the run: its variables differ";
    Error::storage("storage/checkpoint", message)
        .hint("start a run of its own with `--resume never`")
}
