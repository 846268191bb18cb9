//! What is recorded of a run: measurements, digests, and the outcome.

mod explain;
mod gather;
pub mod probe;
pub mod solved;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rayon::ThreadPool;
use sha2::{Digest, Sha256};

use super::clock::Clock;
use super::private::{self, Account};
use super::processes::agreed::agree;
use super::processes::{Processes, check_stop, points};
use super::world::Job;
use super::{CameBack, Context, Observers, Outcome, Part, Setup, steps};
use crate::engine::{Cluster, Expect, Node};
use crate::error::{Error, Result};
use crate::experiment::{Exactly, FinalTheta};
use crate::math::parallel;
use crate::math::real::Real;
use crate::math::scratch::lent;
use crate::problem::scope::Scope;
use crate::problem::{At, Bilevel};
use crate::run::checkpoint;
use crate::run::evaluate::watch::Culprit;
use crate::run::evaluate::{self, Local, Point};
use crate::run::trace::{Row, Stop};
use crate::store::bytes::{Hash, hex};
use gather::{Tracking, Xs, own_points, packed, tracking, xs};
use probe::{Probing, variables};

/// Measures a run, and hashes its variables.
pub struct Recorder<'a> {
    job: &'a Job<'a>,
    evaluators: &'a mut [Box<dyn Bilevel<f64>>],
    context: &'a Context<'a>,
    pub observers: Observers<'a>,
    /// Seconds of creating the nodes and of measuring.
    pub measuring: f64,
    /// The account of `[privacy]`.
    pub account: Option<Account>,
    trails: Vec<Hash>, // per node here: SHA-256 of the chain so far, k and every variable
    row: Option<Row>,  // the last measurement
    sound: bool,       // whether all points were finite then
    nodes: Vec<Vec<(String, f64)>>,
    good: Vec<Vec<u8>>, // per node here: its point at the last measurement before anything grew
    solved: Option<Vec<Vec<f64>>>, // per node here: the θ that the run ends with, if it is solved for
    probing: Option<Box<dyn Probing>>,
}

impl<'a> Recorder<'a> {
    /// Nothing is recorded yet; the nodes' creation began at `begun`.
    pub fn new(
        job: &'a Job<'a>,
        evaluators: &'a mut [Box<dyn Bilevel<f64>>],
        context: &'a Context<'a>,
        observers: Observers<'a>,
        begun: Instant,
    ) -> Self {
        let probe = context.probe;
        let probing = probe.and_then(|probe| probe.begin(job.setup.experiment, job.algorithm));
        Recorder {
            job,
            trails: vec![Hash::default(); evaluators.len()],
            evaluators,
            context,
            observers,
            measuring: begun.elapsed().as_secs_f64(),
            account: None,
            row: None,
            sound: false,
            nodes: Vec::new(),
            good: Vec::new(),
            solved: None,
            probing,
        }
    }

    /// Continues the digest chains of an earlier run.
    pub fn resume<T: Real>(&mut self, trails: Vec<Hash>, cluster: &Cluster<T>) {
        self.trails = trails;
        self.good = cluster.nodes().iter().map(packed).collect();
    }

    /// The nodes here, for a checkpoint.
    pub fn nodes<T: Real>(&self, cluster: &Cluster<T>) -> Vec<Vec<u8>> {
        let held = cluster.held();
        let nodes = cluster.nodes().iter().zip(&self.trails).zip(&held);
        let save = |((node, trail), held): (_, &Vec<u8>)| checkpoint::save(node, trail, held);
        nodes.map(save).collect()
    }

    /// With `[privacy]`: the iteration at which the first node has spent its budget.
    pub fn plan_end<T: Real>(&mut self, cluster: &mut Cluster<T>) -> Result<Option<u64>> {
        let Some(account) = &mut self.account else { return Ok(None) };
        let own = vec![vec![account.iterations() as f64]; cluster.nodes().len()];
        let all = cluster.everyone(own, Expect::Numbers)?;
        account.end_at(all.into_iter().flatten().fold(f64::INFINITY, f64::min) as u64);
        match account.iterations() {
            0 => Err(private::too_small()),
            most => Ok(Some(most)),
        }
    }

    /// Refuses to continue where the budget of `[privacy]` does not cover what was computed.
    pub fn check_account<T: Real>(&self, cluster: &Cluster<T>) -> Result<()> {
        let Some(account) = &self.account else { return Ok(()) };
        account.check(cluster.progress().k, cluster.nodes(), &self.job.algorithm.label)
    }

    /// Whether a peer must claim more iterations before it continues.
    pub fn wants_claim<T: Real>(&self, cluster: &Cluster<T>) -> bool {
        self.account.as_ref().is_some_and(|account| account.wants_claim(cluster.progress().k))
    }

    /// Counts what a peer may have to send again.
    pub fn resume_account<T: Real>(&mut self, cluster: &Cluster<T>) -> Result<()> {
        self.account.iter_mut().try_for_each(|account| account.resume(cluster.progress().k))
    }

    /// Claims the next iterations of a peer in the ledger of its rows.
    pub fn claim<T: Real>(&mut self, cluster: &Cluster<T>) -> Result<()> {
        let k = cluster.progress().k;
        let claim = self.account.as_mut().and_then(|account| account.claim(k));
        claim.map_or(Ok(()), |claim| self.observers.store.claim(claim))
    }

    /// ε so far: the largest of all nodes, with what this process has repeated.
    fn spent<T: Real>(&self, cluster: &mut Cluster<T>) -> Result<Option<f64>> {
        let Some(account) = &self.account else { return Ok(None) };
        let (k, here) = (cluster.progress().k, cluster.nodes().len());
        let each = account.epsilon(k);
        let own = account.spent(k, each);
        let all = cluster.everyone(vec![vec![each]; here], Expect::Numbers)?;
        Ok(Some(all.into_iter().flatten().fold(own, f64::max)))
    }

    /// Whether the user asked for the end of the run.
    pub fn is_interrupted(&self) -> bool {
        self.context.interrupt.load(Ordering::Relaxed)
    }

    /// Takes a measurement; `calm` if nothing has begun to grow.
    pub fn measure<T: Real>(
        &mut self,
        cluster: &mut Cluster<T>,
        clock: &Clock,
        calm: bool,
    ) -> Result<&Row> {
        let exact = self.job.setup.experiment.run.exact == Exactly::Always;
        self.take(cluster, clock, exact)?;
        // A point that has begun to grow cannot be used to judge step sizes.
        if calm && self.sound {
            self.good = cluster.nodes().iter().map(packed).collect();
        }
        Ok(self.row.as_ref().expect("a row was measured"))
    }

    /// Warns the user of a peer about another node whose variables have outgrown their early sizes,
    /// before it waits for that node's diagnosis.
    pub fn name<T: Real>(
        &mut self,
        Culprit { node, k, grown }: &Culprit,
        cluster: &mut Cluster<T>,
    ) {
        if cluster.here().contains(node) || !Processes::with(cluster).are_peers() {
            return;
        }
        let variable = grown.first().map_or("state", |grown| grown.variable);
        let text = format!(
            "{}: at iteration {k} node {} says that its {variable} has grown without bound: the run \
             ends",
            self.job.algorithm.label,
            self.job.setup.world.node_at(*node)
        );
        self.observers.listener.warn(&text);
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
        let (scope, pool) = (self.job.setup.experiment.scope, self.job.setup.pool);
        // A personal θ is not sent: it may be far larger than x.
        let Xs { all, sound } = xs(cluster)?;
        let mut row = agree(cluster, clock, false)?.costs;
        if sound && self.job.setup.experiment.protects_rows() {
            // Measures of rows have no noise. Every node has all x_i.
            row.values.insert("consensus".into(), evaluate::consensus(&self.honest(&all)));
        } else if sound {
            let mean = evaluate::mean(self.honest(&all).iter().map(|x| &x[..]));
            let ours = self.locals(cluster, &mean, exact && scope == Scope::Personal)?;
            let locals = match self.job.setup.experiment.masks() {
                true => {
                    row.values = self.summed(cluster, &ours)?;
                    Vec::new()
                }
                false => {
                    let locals = gathered(cluster, ours)?;
                    row.values = evaluate::summarise(&self.honest(&locals));
                    locals
                }
            };
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
                let nodes: Vec<_> = cluster.nodes().iter().map(variables).collect();
                row.values.extend(probing.measure(&self.job.setup, &nodes, self.evaluators));
            }
            if let Some(error) = self.evaluators.iter_mut().find_map(|part| part.error()) {
                return Err(error);
            }
            self.nodes = locals.into_iter().map(|local| local.values).collect();
            self.nodes.iter_mut().for_each(steps::forget);
        }
        self.sound = sound;
        if let Some(Tracking { gap, rounding }) = tracking(cluster)? {
            row.values.insert("tracking".into(), gap);
            if sound && gap > rounding {
                self.observers.listener.warn(&self.untrue(cluster.progress().k, gap));
            }
        }
        if let Some(part) = self.job.setup.world.parts.last() {
            row.values.insert("members".into(), part.members.len() as f64);
        }
        if let Some(epsilon) = self.spent(cluster)? {
            row.values.insert("epsilon".into(), epsilon);
        }
        row.values.retain(|_, value| value.is_finite());
        self.observers.row(&self.job.algorithm.label, self.job.setup.seed, &row)?;
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
        let Some(attack) = &self.job.setup.experiment.attack else { return of.into() };
        let honest = of.iter().enumerate().filter(|(i, _)| !attack.nodes.contains(i));
        honest.map(|(_, one)| one.clone()).collect::<Vec<_>>().into()
    }

    /// The measures, from sums over all nodes that show no node's numbers.
    fn summed<T: Real>(
        &self,
        cluster: &mut Cluster<T>,
        ours: &[Local],
    ) -> Result<BTreeMap<String, f64>> {
        let names: Vec<_> = ours[0].values.iter().map(|(name, _)| name.clone()).collect();
        let nodes = self.job.setup.experiment.network.nodes as f64;
        // After the numbers comes a flag for each: 1 if the node has no samples for it, and more than there are nodes if
        // it is not finite, because the mean is then not a number.
        let masked = |local: &Local| -> Vec<f64> {
            let numbers = local.to_numbers();
            let lacks = |at: usize| names.get(at).is_some_and(|name| evaluate::may_lack(name));
            let flag = |(at, number): (usize, &f64)| match number.is_finite() {
                true => 0.0,
                false if number.is_nan() && lacks(at) => 1.0,
                false => nodes + 1.0,
            };
            let finite =
                numbers.iter().map(|&number| if number.is_finite() { number } else { 0.0 });
            finite.chain(numbers.iter().enumerate().map(flag)).collect()
        };
        let ours: Vec<Vec<f64>> = ours.iter().map(masked).collect();
        let mut sums = cluster.sums(&ours)?;
        let none = sums.split_off(sums.len() / 2);
        let mean =
            |(sum, none): (f64, f64)| if none < nodes { sum / (nodes - none) } else { f64::NAN };
        let means: Vec<f64> = sums.into_iter().zip(none).map(mean).collect();
        let solved = means.get(names.len() + 3).copied();
        let local = Local::from_numbers(&names, &means).ok_or_else(unlike)?;
        let mut values = evaluate::summarise(&[local]);
        values.remove("unsolved_nodes");
        if let Some(solved) = solved.filter(|&solved| solved < 1.0) {
            values.insert("unsolved_nodes".into(), ((1.0 - solved) * nodes).round());
        }
        Ok(values)
    }

    /// The contributions of the nodes here to a measurement, with x̄.
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
        let pool = self.job.setup.pool;
        let threads = pool.map_or(1, ThreadPool::current_num_threads);
        let some = if exact { here.div_ceil(20).max(2 * threads) } else { here };
        let nodes = cluster.nodes_mut().chunks_mut(some);
        for (parts, nodes) in self.evaluators.chunks_mut(some).zip(nodes) {
            self.observers.listener.measuring(ours.len(), here, exact);
            let solved = |at: usize| self.solved.as_ref().map(|all| &all[at][..]);
            let all = (ours.len()..).map(solved).zip(parts.iter_mut().zip(nodes));
            let averaged = self.job.setup.experiment.run.final_theta != FinalTheta::Last;
            let measured = |(theta, (part, node)): (Option<&[f64]>, _)| {
                one(part, (node, averaged, theta), mean, exact)
            };
            ours.extend(parallel::map(pool, all, measured));
        }
        let names: Vec<_> = ours[0].values.iter().map(|(name, _)| name.clone()).collect();
        let alike = |local: &Local| local.values.iter().map(|(name, _)| name).eq(&names);
        if !ours.iter().all(alike) {
            return Err(unlike());
        }
        Ok(ours)
    }

    fn hash<T: Real>(&mut self, cluster: &mut Cluster<T>) {
        let k = cluster.progress().k;
        let nodes = cluster.nodes_mut().iter_mut().zip(&mut self.trails);
        parallel::map(self.job.setup.pool, nodes, |(node, trail)| {
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
        culprit: Option<Culprit>,
    ) -> Result<Outcome> {
        check_stop(cluster, stop == Stop::Interrupted)?;
        let k = cluster.progress().k;
        let measured_here = self.row.as_ref().is_some_and(|row| row.iteration == k);
        let run = &self.job.setup.experiment.run;
        let exact = run.exact != Exactly::Never && stop != Stop::Diverged;
        let solves =
            run.final_theta.is_solved() && !matches!(stop, Stop::Diverged | Stop::Interrupted);
        if !(measured_here && run.exact == Exactly::Always) {
            self.take(cluster, clock, exact && !solves)?;
        }
        if solves {
            // A measurement of its own: the digest above is that of the iterations.
            self.solved = Some(self.solve(cluster, false)?);
            self.take(cluster, clock, exact)?;
        }
        self.observers.listener.progress(k, 1.0);
        let diagnosis = culprit.map(|culprit| self.diagnosis(culprit, cluster)).transpose()?;
        self.good = Vec::new();
        if solves && run.final_theta == FinalTheta::Refitted {
            self.solved = Some(self.solve(cluster, true)?);
        }
        let trails = self.trails.iter().map(|trail| trail.to_vec()).collect();
        let trails = cluster.everyone_bytes(trails, Expect::Bytes)?;
        let own = self.ends(cluster);
        let mut models = points(cluster, self.job.setup.experiment.scope, own)?;
        let parts = &self.job.setup.world.parts;
        let mut digest = Sha256::new_with_prefix(trails.concat());
        for Part { from, members, back } in parts {
            digest.update(from.to_le_bytes());
            members.iter().for_each(|&node| digest.update((node as u64).to_le_bytes()));
            // 0 is none.
            let number = |of: Option<u64>| of.map_or(0, |of| of.saturating_add(1)).to_le_bytes();
            for CameBack { node, own, x_of } in back {
                let x_of = x_of.map(|node| node as u64);
                let all = [Some(*node as u64), *own, x_of];
                all.into_iter().for_each(|of| digest.update(number(of)));
            }
        }
        if !parts.is_empty() {
            self.fill(&mut models);
        }
        Ok(Outcome {
            algorithm: self.job.algorithm.label.clone(),
            seed: self.job.setup.seed,
            digest: hex(&digest.finalize()),
            stop,
            row: self.row.take().expect("a row was measured"),
            measuring: self.measuring,
            diagnosis,
            chapters: parts.clone(),
            messages: self.job.mails().then_some(cluster.progress().tally),
            nodes: std::mem::take(&mut self.nodes),
            spread: BTreeMap::new(),
            models,
        })
    }

    /// Puts models and metrics at the places of their nodes; those of nodes that have left are not numbers.
    fn fill(&mut self, models: &mut Vec<Point>) {
        let Setup { world, experiment, .. } = self.job.setup;
        let none = |values: &[f64]| vec![f64::NAN; values.len()];
        let absent =
            models.first().map_or_else(Default::default, |(x, theta)| (none(x), none(theta)));
        let metrics = self.nodes.first().cloned().unwrap_or_default();
        let metrics = metrics.into_iter().map(|(name, _)| (name, f64::NAN)).collect::<Vec<_>>();
        let mut filled = vec![absent; experiment.network.nodes];
        let mut nodes = vec![metrics; experiment.network.nodes];
        for (place, model) in models.drain(..).enumerate() {
            filled[world.node_at(place)] = model;
        }
        if !self.nodes.is_empty() {
            for (place, metrics) in self.nodes.drain(..).enumerate() {
                nodes[world.node_at(place)] = metrics;
            }
            self.nodes = nodes;
        }
        *models = filled;
    }

    /// The numbers of the nodes of this process.
    fn numbers<T: Real>(&self, cluster: &Cluster<T>) -> std::ops::Range<usize> {
        let here = cluster.here();
        let first = self.job.setup.world.node_at(here.start);
        first..first + here.len()
    }

    /// The points of the nodes of this process, with the solved θ if there is one.
    fn ends<T: Real>(&self, cluster: &Cluster<T>) -> Vec<Point> {
        let averaged = self.job.setup.experiment.run.final_theta != FinalTheta::Last;
        let mut own = own_points(cluster, averaged);
        for ((_, theta), solved) in own.iter_mut().zip(self.solved.iter().flatten()) {
            theta.clone_from(solved);
        }
        own
    }

    /// The exact θ of the nodes of this process, with or without the rows that they hold out; timed
    /// as measuring.
    fn solve<T: Real>(&mut self, cluster: &mut Cluster<T>, refit: bool) -> Result<Vec<Vec<f64>>> {
        let begun = Instant::now();
        let (here, points) = (self.numbers(cluster), self.ends(cluster));
        self.observers.listener.measuring(0, here.len(), true);
        let everyone = &mut |ours| cluster.everyone(ours, Expect::Numbers);
        let found = self.job.setup.exact_theta(here, &points, refit, everyone)?;
        if found.unsolved > 0 {
            let text = format!(
                "{}, seed {}: theta is not exact at {} of {} nodes: the inner problem could not be \
                 solved to the tolerance",
                self.job.algorithm.label,
                self.job.setup.seed,
                found.unsolved,
                points.len()
            );
            self.observers.listener.warn(&text);
        }
        self.measuring += begun.elapsed().as_secs_f64();
        Ok(found.theta)
    }
}

/// The contributions of all nodes, from those here.
fn gathered<T: Real>(cluster: &mut Cluster<T>, ours: Vec<Local>) -> Result<Vec<Local>> {
    if cluster.is_whole() {
        return Ok(ours);
    }
    let names: Vec<_> = ours[0].values.iter().map(|(name, _)| name.clone()).collect();
    let ours = ours.iter().map(Local::to_numbers).collect();
    let all = cluster.everyone(ours, Expect::Numbers)?;
    let locals = all.iter().map(|numbers| Local::from_numbers(&names, numbers));
    locals.collect::<Option<_>>().ok_or_else(unlike)
}

/// The contribution of one node to a measurement, from a copy of its point in double precision,
/// with the running mean of θ, or with another θ if one is given; and its steps, if it finds them.
fn one<T: Real>(
    part: &mut Box<dyn Bilevel<f64>>,
    (node, averaged, theta): (&mut Node<T>, bool, Option<&[f64]>),
    mean: &[f64],
    exact: bool,
) -> Local {
    #[derive(Default)]
    struct Copied([Vec<f64>; 3]);
    let at = node.algorithm.at();
    let average = node.algorithm.mean_theta().filter(|_| averaged);
    let mut found = None;
    lent(|Copied(copies): &mut Copied| {
        for (copy, values) in copies.iter_mut().zip([at.x, at.theta, average.unwrap_or(&[])]) {
            copy.clear();
            copy.extend(values.iter().map(|&value| value.to_f64()));
        }
        let [x, last, average_theta] = &*copies;
        let reported = if average.is_some() { average_theta } else { last };
        let mut local =
            evaluate::local(&mut **part, At { x, theta: theta.unwrap_or(reported) }, mean, exact);
        if average.is_some() {
            let loss =
                part.metrics(At { x, theta: last }).into_iter().find(|(name, _)| name == "loss");
            local.values.extend(loss.map(|(_, loss)| ("last_loss".to_string(), loss)));
        }
        local.values.extend(steps::told(node));
        found = Some(local);
    });
    found.expect("it was lent memory")
}

/// The error for metrics that cannot be averaged over nodes.
fn unlike() -> Error {
    Error::config("problem/malformed", "nodes have different metrics: a measure is their mean")
        .at("[problem]")
        .hint("give every node the same metrics in the same order")
}
