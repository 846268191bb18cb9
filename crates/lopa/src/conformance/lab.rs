//! The setting in which algorithms are checked.

use std::sync::Arc;

use rayon::ThreadPool;
use toml::{Table, Value};

use crate::algorithms::AnyMethod;
use crate::config::Source;
use crate::engine::{Node, Simulation};
use crate::error::Result;
use crate::experiment::{BatchSpec, Experiment, Registries};
use crate::math::real::Real;
use crate::problem::scope::Scope;
use crate::run::World;

/// A small noisy quadratic on a path, and an algorithm with its parameters.
pub(super) struct Lab<'a> {
    registries: &'a Registries,
    name: &'a str,
    params: &'a Table,
    pub method: Arc<AnyMethod>,
    pub experiment: Experiment,
    world: World,
}

impl<'a> Lab<'a> {
    /// With this many nodes, in a scope.
    pub fn new(
        registries: &'a Registries,
        (name, params): (&'a str, &'a Table),
        scope: Scope,
        nodes: usize,
    ) -> Result<Lab<'a>> {
        let text = format!(
            "scope = '{}'
             problem = {{ name = 'quadratic', n = 5, p = 6, condition = 2, heterogeneity = 0.5, \
                          noise = 0.5, samples = 30 }}
             network = {{ nodes = {nodes}, graph = 'path', weights = 'lazy-metropolis' }}
             run = {{ iterations = 1, batch = 4 }}
             algorithm = [{{ name = 'dgd', alpha = 0.1 }}] # another takes its place",
            scope.name()
        );
        let source = Source::new("conformance", text);
        let experiment = Experiment::read(&source, &Registries::default())?;
        let world = experiment.world(None, experiment.run.seeds[0])?;
        let method = registries.algorithms.choose(name, params)?.build;
        Ok(Lab { registries, name, params, method, experiment, world })
    }

    fn nodes<T: Real>(&self, method: &AnyMethod) -> Result<Vec<Node<T>>> {
        self.experiment.setup(None, &self.world, self.experiment.run.seeds[0]).nodes(method)
    }

    /// All nodes at their start.
    pub fn start<'p, T: Real>(
        &self,
        method: &AnyMethod,
        pool: Option<&'p ThreadPool>,
    ) -> Result<Run<'p, T>> {
        Ok(Simulation::new(self.nodes(method)?, &self.world.mixing, pool))
    }

    /// All nodes after some iterations.
    pub fn run<T: Real>(&self, iterations: u64) -> Result<Run<'static, T>> {
        let mut simulation = self.start(&self.method, None)?;
        iterate(&mut simulation, iterations)?;
        Ok(simulation)
    }

    /// Fresh nodes with the variables and counters of others.
    pub fn resumed<T: Real>(&self, method: &AnyMethod, from: &Run<T>) -> Result<Run<'static, T>> {
        let mut nodes = self.nodes(method)?;
        for (from, into) in from.nodes().iter().zip(&mut nodes) {
            let variables = from.algorithm.variables().into_iter();
            for ((_, theirs), (_, ours)) in variables.zip(into.algorithm.variables_mut()) {
                ours.copy_from_slice(theirs);
            }
            into.oracle.count_from(from.oracle.counts());
        }
        Ok(Simulation::new(nodes, &self.world.mixing, None).from(from.progress()))
    }

    /// The names of the variables.
    pub fn variables(&self) -> Result<Vec<&'static str>> {
        let nodes = self.nodes::<f64>(&self.method)?;
        Ok(nodes[0].algorithm.variables().into_iter().map(|(name, _)| name).collect())
    }

    /// Pairs of a node and a neighbour.
    pub fn links(&self) -> u64 {
        2 * (self.experiment.network.nodes as u64 - 1)
    }

    /// The parameters that are schedules.
    pub fn schedules(&self) -> Vec<String> {
        let keys = self.params.keys().cloned();
        keys.filter(|key| self.staged(std::slice::from_ref(key)).is_some()).collect()
    }

    /// The algorithm with some step sizes halved every five iterations; `None` where one of these
    /// parameters is not a schedule.
    pub fn staged(&self, keys: &[String]) -> Option<Arc<AnyMethod>> {
        self.with(keys, |start| {
            let mut stages = Table::new();
            stages.insert("start".into(), start.into());
            stages.insert("factor".into(), 0.5.into());
            stages.insert("every".into(), 5.into());
            Value::Table(stages)
        })
    }

    /// The algorithm with other step sizes in place of constant ones; `None` where one of these
    /// parameters is not a number, or the algorithm does not take the others.
    pub fn with(&self, keys: &[String], step: impl Fn(f64) -> Value) -> Option<Arc<AnyMethod>> {
        let mut params = self.params.clone();
        for key in keys {
            let value = self.params.get(key)?;
            let start = value.as_float().or(value.as_integer().map(|whole| whole as f64))?;
            params.insert(key.clone(), step(start));
        }
        self.registries.algorithms.choose(self.name, &params).ok().map(|choice| choice.build)
    }

    /// The same without noise: every derivative on all samples.
    pub fn on_all_samples(mut self) -> Lab<'a> {
        self.experiment.run.batch = BatchSpec::default();
        self
    }
}

/// A run of an algorithm.
pub(super) type Run<'p, T> = Simulation<'p, T>;

/// Runs some iterations; returns the error if one fails.
pub(super) fn iterate<T: Real>(simulation: &mut Run<T>, iterations: u64) -> Result<()> {
    (0..iterations).try_for_each(|_| simulation.try_iterate())
}

/// The first of some variables that differs between two runs.
pub(super) fn difference<T: Real>(
    one: &Run<T>,
    other: &Run<T>,
    among: impl Fn(&str) -> bool,
) -> Option<String> {
    let nodes = one.nodes().iter().zip(other.nodes()).enumerate();
    nodes.into_iter().find_map(|(i, (one, other))| {
        let pairs = one.algorithm.variables().into_iter().zip(other.algorithm.variables());
        pairs.filter(|((name, _), _)| among(name)).find_map(|((name, a), (_, b))| {
            let bits = |&value: &T| value.to_f64().to_bits();
            let j = a.iter().zip(b).position(|(a, b)| bits(a) != bits(b))?;
            Some(format!("`{name}` of node {i} differs: entry {j} is {} and {}", a[j], b[j]))
        })
    })
}
