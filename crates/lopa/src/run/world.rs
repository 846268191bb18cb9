//! The parts that all runs of a seed share: the network, the partition, the problem.

use std::collections::BTreeMap;
use std::ops::Range;

use lopa_kernels::aligned_rows;
use rayon::ThreadPool;

use super::reserved::Reserved;
use super::{Context, Part, judged};
use crate::algorithms::{AnyMethod, Start};
use crate::data::partition::{self, Partition, Rows};
use crate::data::{self, Data, Where};
use crate::engine::Node;
use crate::engine::messages::Clip;
use crate::error::{Error, Result};
use crate::experiment::{AlgorithmSpec, DataSpec, Exactly, Experiment};
use crate::math::parallel;
use crate::math::random::{Purpose, Stream};
use crate::math::real::{Real, Vector, cast};
use crate::network::time::Timetable;
use crate::network::{self, Graph, Joint, Mixing, Rounds, Spectrum};
use crate::problem::oracle::Oracle;
use crate::problem::scope::Scope;
use crate::problem::{At, Bilevel, Dims, Parts, Setting};

/// The network and the partition that the runs of one seed share.
pub struct World {
    /// The graph; for a changing one, all links that are ever used.
    pub graph: Graph,
    /// W; for a changing graph, as if all its links were used in every round.
    pub mixing: Mixing,
    /// The spectrum of W; for a changing graph, that of its rounds on average.
    pub analysis: Spectrum,
    /// Which links are used in which round, if that changes.
    pub rounds: Option<Rounds>,
    /// The joint effect of these rounds.
    pub joint: Option<Joint>,
    /// The times of computing and messages, if the file has `[time]`.
    pub time: Option<Timetable>,
    /// The samples of each node.
    pub partition: Partition,
    /// The samples that each node holds out; empty if nodes hold none out.
    pub holdout: Vec<Vec<u32>>,
    /// The number of rows behind each accuracy outside training; see [`judged`].
    pub judged: BTreeMap<String, f64>,
    /// The key of `[privacy]` and what was claimed, where rows are protected.
    pub reserved: Option<Reserved>,
    /// Who takes part from which iteration on, if not all nodes do in all of them; graph and W are then those
    /// of the last members.
    pub parts: Vec<Part>,
}

impl World {
    /// The number of the node at a place of the network: they differ when nodes have left.
    pub fn node_at(&self, place: usize) -> usize {
        self.parts.last().map_or(place, |part| part.members[place])
    }

    /// The same world with another network.
    fn of_members(&self, graph: Graph, mixing: Mixing, parts: Vec<Part>) -> World {
        World {
            analysis: mixing.spectrum(),
            graph,
            mixing,
            rounds: None,
            joint: None,
            time: None,
            partition: self.partition.clone(),
            holdout: self.holdout.clone(),
            judged: self.judged.clone(),
            reserved: self.reserved,
            parts,
        }
    }

    /// The rows of some nodes, including those that they hold out.
    pub fn rows(&self, nodes: Range<usize>) -> Vec<u32> {
        let held = self.holdout.get(nodes.clone()).unwrap_or_default();
        self.partition.nodes[nodes].iter().chain(held).flatten().copied().collect()
    }
}

/// An experiment on one seed: the context of its runs.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its data.
    pub data: Option<&'a Data>,
    /// Its network and partition.
    pub world: &'a World,
    /// The seed.
    pub seed: u64,
    /// Threads to spread nodes over.
    pub pool: Option<&'a ThreadPool>,
}

/// One algorithm on one seed.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub setup: Setup<'a>,
    pub algorithm: &'a AlgorithmSpec,
    pub number: u32, // index among all jobs of the experiment
}

impl Experiment {
    /// Loads the experiment's data, if it has any.
    pub fn load_data(&self, context: &Context) -> Result<Option<Data>> {
        self.load_data_of(context, 0..self.network.nodes)
    }

    /// Loads the data of some nodes: their own files, or everything where nodes have no files.
    pub fn load_data_of(&self, context: &Context, here: Range<usize>) -> Result<Option<Data>> {
        // The hold-out set does not depend on the run's seed: all seeds are tested on the same rows.
        let place = Where { directory: context.data_dir.clone(), seed: 0 };
        let load = |DataSpec { source, own, preparation, .. }: &DataSpec| {
            let loaded = match &preparation.nodes {
                None => data::load(&*source.build, preparation, &place),
                Some(nodes) => data::load_own(own, preparation, nodes, here, &place),
            };
            loaded.map_err(|error| error.at("[data]"))
        };
        self.data.as_ref().map(load).transpose()
    }

    /// Draws the network and the partition of a seed.
    pub fn world(&self, data: Option<&Data>, seed: u64) -> Result<World> {
        let spec = &self.network;
        let graph_seed = spec.seed.unwrap_or(seed);
        let (graph, mixing) = network::build(&spec.graph, &spec.weights, spec.nodes, graph_seed)
            .map_err(|error| error.at("[network]"))?;
        let whole = (&graph, &mixing);
        let rounds = network::rounds(&spec.graph, &spec.weights, whole, graph_seed)
            .map_err(|error| error.at("[network]"))?;
        let (rounds, joint) = rounds.unzip();
        if self.mails() {
            check_both_ways(&spec.graph.name, rounds.as_ref())?;
            self.check_radius(rounds.as_ref())?;
        }
        let analysis = match (&rounds, &joint) {
            (Some(rounds), Some(Joint { rho_round: rho, .. })) => {
                Spectrum { rho: *rho, lambda_min: rounds.lambda_min(), estimated: false }
            }
            _ => mixing.spectrum(),
        };
        let time = self.time.as_ref().map(|spec| Timetable::new(spec, &graph, graph_seed));
        let time = time.transpose().map_err(|error| error.at("[time]"))?;
        let mut partition = Partition { nodes: Vec::new() };
        let mut holdout = Vec::new();
        let mut judged = BTreeMap::new();
        if let (Some(spec), Some(data)) = (&self.data, data) {
            let rows = Rows::of(&data.train, data.strata(), self.network.nodes, seed);
            partition = partition::split(&spec.partition, &rows)
                .map_err(|error| error.at("[partition]"))?;
            if let Some(share) = spec.preparation.holdout {
                // With `[privacy]`, a label must not move other rows.
                let alike = self.noise().map(|_| vec![0; data.train.labels().len()]);
                let labels = alike.as_deref().unwrap_or(data.train.labels());
                let held = partition.hold_out(share, labels, data.train.validation(), seed);
                holdout = held.map_err(|error| error.at("[data]"))?;
            }
            judged = judged::rows(data, &partition, &holdout);
        }
        Ok(World {
            graph,
            mixing,
            analysis,
            rounds,
            joint,
            time,
            partition,
            holdout,
            judged,
            reserved: None,
            parts: Vec::new(),
        })
    }

    /// The same world with the network of the members.
    pub(super) fn among(&self, world: &World, parts: Vec<Part>) -> Result<World> {
        let members = parts.last().map_or(&[][..], |part| &part.members);
        if members.len() == world.graph.nodes() {
            let (graph, mixing) = (world.graph.clone(), world.mixing.clone());
            return Ok(world.of_members(graph, mixing, parts));
        }
        let rank = |node: usize| members.iter().position(|&member| member == node);
        let edges = world.graph.edges().filter_map(|(i, j)| Some((rank(i)?, rank(j)?)));
        let among = |error: Error| error.at("the network of the nodes that are left");
        let graph = Graph::from_edges(members.len(), edges).map_err(among)?;
        let mixing = (self.network.weights.build)(&graph).map_err(among)?;
        network::check(&graph, &mixing).map_err(among)?;
        Ok(world.of_members(graph, mixing, parts))
    }

    /// A radius comes from the distances to the neighbours of one iteration, but applies to those
    /// of the next.
    fn check_radius(&self, rounds: Option<&Rounds>) -> Result<()> {
        let clip = self.messages.as_ref().and_then(|messages| messages.rules.clip);
        if rounds.is_none() || !matches!(clip, Some(Clip::Adaptive(_))) {
            return Ok(());
        }
        let name = &self.network.graph.name;
        let message = format!(
            "`clip = {{ median = … }}` needs neighbours that stay, and those of `{name}` change: how far \
             the last ones were says nothing of the next"
        );
        Err(Error::config("config/clip-changing", message)
            .at("[messages] clip")
            .hint("give a radius, such as `clip = 1.0`, or use a graph that stays"))
    }

    /// The context of runs on a seed, on this thread.
    pub fn setup<'a>(&'a self, data: Option<&'a Data>, world: &'a World, seed: u64) -> Setup<'a> {
        Setup { experiment: self, data, world, seed, pool: None }
    }

    /// The measures that runs take, by name, before they run; a probe may add others.
    pub fn measures(&self, data: Option<&Data>) -> Result<Vec<String>> {
        let seed = self.run.seeds.first().copied().unwrap_or_default();
        let world = self.world(data, seed)?;
        let mut part = self.setup(data, &world, seed).parts_of::<f64>(0..1)?.each.swap_remove(0);
        let (x, theta) = (vec![0.0; part.dims().n], vec![0.0; part.dims().p]);
        let metrics = part.metrics(At { x: &x, theta: &theta });
        let mut names: Vec<String> = metrics.into_iter().map(|(name, _)| name).collect();
        names.extend(["consensus", "tracking"].map(String::from));
        if self.run.exact != Exactly::Never {
            names.extend(["phi", "grad_phi_sq", "theta_error"].map(String::from));
        }
        if self.scope == Scope::Global {
            names.push("theta_consensus".into());
        }
        names.sort_unstable();
        Ok(names)
    }
}

impl Setup<'_> {
    /// The nodes' parts of the problem.
    pub fn parts<T: Real>(&self) -> Result<Vec<Box<dyn Bilevel<T>>>> {
        Ok(self.parts_of(0..self.experiment.network.nodes)?.each)
    }

    /// Some nodes' parts of the problem.
    pub fn parts_of<T: Real>(&self, nodes: Range<usize>) -> Result<Parts<T>> {
        let (problem, count) = (&self.experiment.problem, nodes.len());
        let parts = problem.build.get::<T>().parts(&self.setting(), nodes);
        let parts = parts.and_then(|parts| check(parts, count, &problem.name));
        parts.map_err(|error| error.at("[problem]"))
    }

    /// What the problem is made from.
    pub(super) fn setting(&self) -> Setting<'_> {
        let Setup { experiment, data, world, seed, pool } = *self;
        Setting {
            nodes: experiment.network.nodes,
            seed,
            scope: experiment.scope,
            batch: experiment.run.batch.batches().grad_g,
            data,
            partition: &world.partition.nodes,
            holdout: &world.holdout,
            pool,
            ..Setting::default()
        }
    }

    /// The nodes of an algorithm at their start.
    pub fn nodes<T: Real>(&self, method: &AnyMethod) -> Result<Vec<Node<T>>> {
        self.nodes_of(self.parts()?, 0, method)
    }

    /// The same, from given parts, the first of which belongs to node `first`.
    pub fn nodes_of<T: Real>(
        &self,
        parts: Vec<Box<dyn Bilevel<T>>>,
        first: usize,
        method: &AnyMethod,
    ) -> Result<Vec<Node<T>>> {
        self.nodes_at(parts, first, method, None)
    }

    /// The same; they start at `given` (x, θ, v), if it is given.
    pub fn nodes_at<T: Real>(
        &self,
        mut parts: Vec<Box<dyn Bilevel<T>>>,
        first: usize,
        method: &AnyMethod,
        given: Option<[&[T]; 3]>,
    ) -> Result<Vec<Node<T>>> {
        let Setup { experiment, seed, pool, .. } = *self;
        let Some(Dims { n, p }) = parts.first().map(|part| part.dims()) else {
            return Ok(Vec::new());
        };
        let mechanisms = experiment.mechanisms(&mut parts, first, method)?;
        // In blocks, one row per node: a problem that computes for all nodes receives matrices.
        let mut blocks =
            [n, p, p, p, p, n].map(|length| aligned_rows(parts.len(), length).into_iter());
        let mut rows = || blocks.each_mut().map(|block| block.next().expect("a row for each part"));
        let make = |(i, part, rows): (usize, Box<dyn Bilevel<T>>, [Vector<T>; 6])| {
            let x = part.start_x(&mut Stream::new(seed, Purpose::Start, 0));
            let theta = part.start_theta(&mut Stream::new(seed, Purpose::Start, 1 + i));
            if (x.len(), theta.len()) != (n, p) {
                let (x, theta) = (x.len(), theta.len());
                let message = format!(
                    "node {i} starts with {x} entries of x and {theta} of θ, and has {n} and {p}"
                );
                return Err(Error::config("problem/malformed", message).at("[problem]"));
            }
            let [mut own_x, mut own_theta, mut v, d, h, s] = rows;
            own_x.copy_from_slice(&cast(&x));
            own_theta.copy_from_slice(&cast(&theta));
            if let Some(given) = given {
                let own = [&mut own_x, &mut own_theta, &mut v];
                own.into_iter().zip(given).for_each(|(own, given)| own.copy_from_slice(given));
            }
            let batches = experiment.run.batch.batches();
            let mut oracle = Oracle::new(part, batches, experiment.run.shared_samples, seed, i);
            if experiment.run.epochs {
                oracle.take_epochs();
            }
            if let Some(delta) = experiment.run.finite_differences {
                oracle.take_differences(delta)?;
            }
            if let Some(mechanism) = mechanisms.get(i - first) {
                oracle.protect(*mechanism, self.key(i)?);
            }
            let start = Start {
                x: own_x,
                theta: own_theta,
                v,
                rows: Some([d, h, s]),
                scope: experiment.scope,
                oracle: &mut oracle,
            };
            let algorithm = method.start(start)?;
            match oracle.error() {
                Some(error) => Err(error),
                None => Ok(Node { algorithm, oracle }),
            }
        };
        let each = (first..).zip(parts).map(|(i, part)| (i, part, rows()));
        parallel::map(pool, each, make).into_iter().collect()
    }
}

/// Checks that the parts fit together: the problem may be a user's own.
fn check<T: Real>(parts: Parts<T>, count: usize, problem: &str) -> Result<Parts<T>> {
    let malformed = |what: String| {
        Err(Error::config("problem/malformed", format!("the problem `{problem}` {what}")))
    };
    if parts.each.len() != count {
        return malformed(format!("made {} parts for {count} nodes", parts.each.len()));
    }
    let dims = parts.each[0].dims();
    for (i, part) in parts.each.iter().enumerate() {
        if part.dims() != dims {
            return malformed(format!("has other dimensions at the {}th node than before", i + 1));
        }
        if part.samples_f() == 0 || part.samples_g() == 0 {
            return malformed(format!("has no samples at the {}th node", i + 1));
        }
    }
    match dims {
        Dims { n: 0, .. } | Dims { p: 0, .. } => malformed("has an empty x or θ".into()),
        _ => Ok(parts),
    }
}

/// Both ends of a link use its messages, or neither does; hence it must work in both directions.
fn check_both_ways(name: &str, rounds: Option<&Rounds>) -> Result<()> {
    if rounds.is_none_or(Rounds::is_symmetric) {
        return Ok(());
    }
    let message = format!(
        "`[messages]` and `[attack]` need links that work in both directions, and with this number of \
         nodes those of `{name}` work in one"
    );
    Err(Error::config("config/messages-one-way", message)
        .at("[network] graph")
        .hint("take a power of two for `nodes`, or a graph of pairs: \"random-matching\""))
}
