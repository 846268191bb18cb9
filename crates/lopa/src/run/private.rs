//! Runs with `[privacy]`: the key and the noise of each node, and what it has spent.

use std::ops::Range;

use sha2::{Digest, Sha256};

use super::processes::Processes;
use super::reserved::{Claim, Reservation, Reserved, no_ledger};
use super::{Context, Listener, Setup, Store};
use crate::algorithms::AnyMethod;
use crate::algorithms::cost::{Cost, Task};
use crate::algorithms::parts::steps::POWER;
use crate::data::{self, Origin, Where};
use crate::engine::{Node, Transport, anything, block};
use crate::error::{Error, Kind, Result};
use crate::experiment::{Experiment, PrivacySpec};
use crate::math::real::Real;
use crate::problem::derivative::Counts;
use crate::problem::private::{Key, Mechanism};
use crate::problem::{Bilevel, Dims};
use crate::store::bytes::hex;

impl Experiment {
    /// Warns that noise from a known seed protects no row.
    pub(super) fn warn_of_simulation(&self, listener: &mut dyn Listener) {
        if self.noise().is_some_and(PrivacySpec::is_simulated) {
            listener.warn(
                "`[privacy]` has a seed, with which its noise can be removed: this run shows what the budget costs, and \
                 protects no row",
            );
        }
    }

    /// Peers have rows to protect, and must not take a simulation for protection.
    pub(in crate::run) fn refuse_simulation(&self) -> Result<()> {
        match self.noise().is_some_and(PrivacySpec::is_simulated) {
            false => Ok(()),
            true => Err(Error::config(
                "privacy/simulated",
                "`[privacy]` draws its noise from a seed that all peers can read, and would protect no row of theirs",
            )
            .at("privacy.seed")
            .hint("leave `seed` out: each peer then draws a key of its own")),
        }
    }

    /// The files behind the rows of some nodes.
    pub fn origins(&self, context: &Context, here: Range<usize>) -> Result<Vec<Origin>> {
        let Some(spec) = &self.data else { return Ok(Vec::new()) };
        let place = Where { directory: context.data_dir.clone(), seed: 0 };
        let sources = match spec.own.get(here) {
            Some(own) if !own.is_empty() => own,
            _ => std::slice::from_ref(&spec.source),
        };
        let mut all = Vec::new();
        for source in sources {
            all.extend(data::origins(source, &place).map_err(|error| error.at("[data]"))?);
        }
        all.sort_by(|a, b| a.sha256.cmp(&b.sha256));
        all.dedup_by(|a, b| a.sha256 == b.sha256);
        Ok(all)
    }

    /// Reserves the budget of a run that protects rows, before anything of it is computed: the key of its noise, and what
    /// an earlier part of it has claimed. `None` if it protects none.
    pub(super) fn reserve(
        &self,
        transport: &mut dyn Transport,
        context: &Context,
        store: &mut dyn Store,
    ) -> Result<Option<Reserved>> {
        self.check_privacy()?;
        if !self.protects_rows() {
            return Ok(None);
        }
        let (size, rank) = (transport.size(), transport.rank());
        let nodes = self.network.nodes;
        match Processes::of(transport) {
            Processes::One => self.reserve_for(0..nodes, context, store).map(Some),
            Processes::Peers(_) => {
                self.reserve_for(block(nodes, size, rank), context, store).map(Some)
            }
            Processes::Lockstep => {
                // Processes of one user: the first has the ledger, and all have its key.
                let first = (rank == 0).then(|| self.reserve_for(0..nodes, context, store));
                let ours = match &first {
                    Some(Ok(reserved)) => reserved.key.0.to_vec(),
                    _ => Vec::new(),
                };
                let told = transport.all(&ours, &anything)?.swap_remove(0);
                if let Some(first) = first {
                    return first.map(Some);
                }
                let refused =
                    || Error::new(Kind::Run, "privacy/spent", "process 0 refuses the run");
                let key = <[u8; 32]>::try_from(told).map_err(|_| refused())?;
                Ok(Some(Reserved { key: Key(key), claim: Claim::default() }))
            }
        }
    }

    fn reserve_for(
        &self,
        here: Range<usize>,
        context: &Context,
        store: &mut dyn Store,
    ) -> Result<Reserved> {
        let origins = self.origins(context, here.clone())?;
        let identity = hex(&self.identity()?);
        let mut run = Sha256::new();
        run.update(format!("{identity} nodes {here:?}"));
        origins.iter().for_each(|origin| run.update(&origin.sha256));
        let spec = self.privacy.as_ref().ok_or_else(no_ledger)?;
        let reservation = Reservation {
            run: hex(&run.finalize()),
            name: self.name.clone(),
            epsilon: spec.epsilon.unwrap_or(f64::INFINITY),
            delta: spec.delta,
        };
        let reserved = store.reserve(&origins, &reservation)?;
        // The owner's key belongs to the content of the files: each run on them has a key of its own.
        Ok(Reserved { key: reserved.key.of(&identity), ..reserved })
    }

    /// Refuses rows whose labels are not listed before their number is sent to other nodes.
    pub(in crate::run) fn refuse_unlisted(&self, own: &data::Own) -> Result<()> {
        let (Some(spec), true) = (&self.data, self.protects_rows()) else { return Ok(()) };
        own.judge(&spec.preparation)
    }

    /// The mechanism of each of some nodes; none without `[privacy]`.
    pub(super) fn mechanisms<T: Real>(
        &self,
        parts: &mut [Box<dyn Bilevel<T>>],
        first: usize,
        method: &AnyMethod,
    ) -> Result<Vec<Mechanism>> {
        let Some(spec) = self.noise() else { return Ok(Vec::new()) };
        let plan = self.plan(parts, method)?;
        let mut known: Vec<((usize, usize), f64)> = Vec::new();
        let mechanism = |(i, part): (usize, &dyn Bilevel<T>)| -> Result<Mechanism> {
            let sums = part.row_sums().map_err(|why| {
                let message = format!("`[privacy]` cannot hide rows of `{}`: {why}", self.problem.name);
                Error::config("privacy/no-rows", message)
                    .at("[problem]")
                    .hint("choose a problem that is a sum over rows, such as `hyperparameter` or `representation`")
            })?;
            let rows = (part.samples_f(), part.samples_g());
            let batches = self.run.batch.batches();
            let mut mechanism = Mechanism { clip: spec.clip, sigma: 1.0, sums, batches, rows };
            let found = known.iter().find(|(known, _)| *known == rows).map(|(_, sigma)| *sigma);
            mechanism.sigma = match spec.noise.or(found) {
                Some(sigma) => sigma,
                None => calibrate(spec, &mechanism, &plan, first + i)?,
            };
            if found.is_none() {
                known.push((rows, mechanism.sigma));
            }
            Ok(mechanism)
        };
        parts.iter().map(|part| &**part).enumerate().map(mechanism).collect()
    }

    /// The derivatives that a run asks for.
    fn plan<T: Real>(&self, parts: &mut [Box<dyn Bilevel<T>>], method: &AnyMethod) -> Result<Plan> {
        let Some(part) = parts.first_mut() else { return Ok(Plan::default()) };
        let trains = part.single_level().map(|part| part.trains()).unwrap_or_default();
        let cost = method.cost(Task { scope: self.scope, trains });
        if cost.probes && !method.facts.second_order {
            let message = "with `[privacy]`, the method cannot find its step size: it takes differences of gradients over \
                           a small width, which would be noise";
            return Err(Error::config("privacy/refused", message).at("algorithm.alpha").hint(
                "give `alpha`, or choose a method with second derivatives, such as `lopa-gt`",
            ));
        }
        let iterations = self.run.iterations.unwrap_or_default();
        let repeats = if self.protects_rows() { REPEATS * stretch(iterations) } else { 0 };
        let each = Plan::of(&cost, part.dims());
        let at_start = if cost.probes { POWER as u64 } else { 0 };
        Ok(Plan { each, at_start, iterations, repeats })
    }
}

impl Setup<'_> {
    /// What a node's random numbers are drawn from.
    pub(super) fn key(&self, node: usize) -> Result<Key> {
        let Setup { experiment, world, seed, .. } = *self;
        let key = match (experiment.privacy.as_ref().and_then(|spec| spec.seed), world.reserved) {
            (Some(own), _) => Key([0; 32]).of(&format!("privacy seed {own}, seed {seed}")),
            (None, Some(reserved)) => reserved.key,
            // Nothing of these nodes is kept or sent: a command looks at their sizes.
            (None, None) => Key(fresh()?),
        };
        Ok(key.of(&format!("node {node}")))
    }
}

/// Random bytes of the operating system.
pub fn fresh() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("the system has no random numbers: {error}");
        Error::storage("privacy/no-randomness", message)
    })?;
    Ok(bytes)
}

/// How many times a peer may crash between two of its checkpoints, each time at the worst moment.
const REPEATS: u64 = 2;

/// The iterations that a peer claims at a time: as many as it may have to repeat after a crash.
pub fn stretch(iterations: u64) -> u64 {
    iterations.div_ceil(16).max(1)
}

/// The calls of each derivative in an iteration, and the number of iterations.
#[derive(Debug, Clone, Copy, Default)]
struct Plan {
    each: Counts,
    at_start: u64, // products that only measure the curvature
    iterations: u64,
    repeats: u64, // iterations that may be repeated with other messages
}

impl Plan {
    fn of(cost: &Cost, dims: Dims) -> Counts {
        let Cost { grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, probes } = cost;
        let each = [grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g];
        let [grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g] =
            each.map(|count| count.at(dims).ceil() as u64);
        // At most one product per iteration measures the curvature.
        let hess_g = hess_g + u64::from(*probes);
        Counts { grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, samples: 0 }
    }

    /// The most calls in `k` iterations, with those at the start.
    fn after(&self, k: u64) -> Counts {
        let each = self.each.to_array().map(|each| each.saturating_mul(k.saturating_add(1)));
        let mut counts = Counts::from_array(each);
        counts.hess_g = counts.hess_g.saturating_add(self.at_start);
        counts
    }
}

/// The smallest σ with which all planned calls stay within the budget.
fn calibrate(spec: &PrivacySpec, mechanism: &Mechanism, plan: &Plan, node: usize) -> Result<f64> {
    let epsilon = spec.epsilon.unwrap_or(f64::INFINITY);
    let each = mechanism.releases(&plan.after(plan.iterations + plan.repeats));
    let found = each.iter().map(|releases| lopa_privacy::calibrate(epsilon, spec.delta, releases));
    let found: Option<Vec<f64>> = found.collect();
    let largest = |all: Vec<f64>| all.into_iter().fold(lopa_privacy::SIGMA.start, f64::max);
    found.map(largest).ok_or_else(|| {
        let message = format!(
            "no noise is enough for {} iterations at node {node} within `epsilon = {epsilon}`",
            plan.iterations
        );
        Error::config("privacy/budget", message)
            .at("privacy.epsilon")
            .hint("take fewer iterations, smaller minibatches or a larger `epsilon`")
    })
}

/// What the nodes of this process have spent.
pub struct Account {
    delta: f64,
    plan: Plan,
    each: Vec<Mechanism>, // one per number of rows
    claim: Option<Claim>, // of a peer that protects its rows
}

impl Account {
    /// Of these nodes; `None` without `[privacy]`.
    pub fn new<T: Real>(
        experiment: &Experiment,
        method: &AnyMethod,
        parts: &mut [Box<dyn Bilevel<f64>>],
        nodes: &[Node<T>],
        claim: Option<Claim>,
    ) -> Result<Option<Account>> {
        let Some(spec) = experiment.noise() else { return Ok(None) };
        let mut each: Vec<Mechanism> = Vec::new();
        for mechanism in nodes.iter().filter_map(|node| node.oracle.mechanism()) {
            if !each.contains(mechanism) {
                each.push(*mechanism);
            }
        }
        let plan = experiment.plan(parts, method)?;
        let mut account = Account { delta: spec.delta, plan, each, claim };
        if let (Some(epsilon), Some(_)) = (spec.epsilon, spec.noise) {
            account.plan.iterations = account.longest(epsilon);
        }
        Ok(Some(account))
    }

    /// The most iterations within a budget.
    fn longest(&self, epsilon: f64) -> u64 {
        let Plan { iterations: most, repeats, .. } = self.plan;
        self.each.iter().fold(most, |most, mechanism| {
            let lists = mechanism.releases(&self.plan.after(most)).len();
            (0..lists).fold(most, |most, list| {
                let of = |k| mechanism.releases(&self.plan.after(k + repeats)).swap_remove(list);
                lopa_privacy::longest(epsilon, self.delta, most, of)
            })
        })
    }

    /// Ends at this iteration at the latest.
    pub fn end_at(&mut self, iterations: u64) {
        self.plan.iterations = self.plan.iterations.min(iterations);
    }

    /// The iterations that the budget is enough for.
    pub fn iterations(&self) -> u64 {
        self.plan.iterations
    }

    /// ε after `k` iterations, of which `each` is the part that does not depend on crashes, with those that were
    /// repeated here.
    pub fn spent(&self, k: u64, each: f64) -> f64 {
        match self.claim.map_or(0, |claim| claim.repeated) {
            0 => each,
            repeated => self.epsilon(k.saturating_add(repeated)),
        }
    }

    /// ε of `k` iterations: the largest of these nodes. It does not depend on crashes, so that a peer may send it twice.
    pub fn epsilon(&self, k: u64) -> f64 {
        let counts = self.plan.after(k);
        self.each.iter().map(|one| one.epsilon(&counts, self.delta)).fold(0.0, f64::max)
    }

    /// Whether a peer has done all iterations that it has claimed: it must keep its state, and claim more.
    pub fn wants_claim(&self, k: u64) -> bool {
        self.claim.is_some_and(|claim| k >= claim.until)
    }

    /// Continues a peer at iteration `k`, from which on it may ask other questions than before a crash.
    pub fn resume(&mut self, k: u64) -> Result<()> {
        let Some(claim) = &mut self.claim else { return Ok(()) };
        claim.repeated = claim.repeated.saturating_add(claim.until.saturating_sub(k));
        claim.until = k;
        if claim.repeated <= self.plan.repeats {
            return Ok(());
        }
        let message = format!(
            "this run has been resumed or started again so often that {} iterations may have been sent twice, and its noise is \
             made for {}",
            claim.repeated, self.plan.repeats
        );
        Err(spent(message))
    }

    /// Claims the next iterations of a peer that has kept its state at iteration `k`.
    pub fn claim(&mut self, k: u64) -> Option<Claim> {
        let until = k.saturating_add(stretch(self.plan.iterations));
        self.claim = self.claim.map(|claim| Claim { until, ..claim });
        self.claim
    }

    /// Refuses to continue a run that asked for more than was planned for: before anything of it is sent.
    pub fn check<T: Real>(&self, k: u64, nodes: &[Node<T>], algorithm: &str) -> Result<()> {
        let most = self.plan.after(k).to_array();
        let more = |node: &Node<T>| {
            let counts = node.oracle.counts().to_array();
            // Samples are not calls.
            counts[..6].iter().zip(most).any(|(count, most)| *count > most)
        };
        if k <= self.plan.iterations && !nodes.iter().any(more) {
            return Ok(());
        }
        Err(spent(format!(
            "`{algorithm}` asks for more derivatives by iteration {k} than its noise is made for: the budget of \
             `[privacy]` does not cover them"
        ))
        .hint("choose a method without inner loops, such as `lopa-gt`, `lopa-lg` or `dgd`"))
    }
}

/// The error of a budget that is used up.
pub fn spent(message: String) -> Error {
    Error::new(Kind::Run, "privacy/spent", message)
}

/// The error of a budget that is smaller than the noise allows for.
pub fn too_small() -> Error {
    let message = "one iteration spends more than `epsilon` with this `noise`";
    Error::config("privacy/budget", message)
        .at("[privacy]")
        .hint("leave `noise` out: it then follows from `epsilon`")
}
