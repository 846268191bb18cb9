//! A problem made for its checks: parts, points and batches.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use toml::{Table, Value};

use super::broken;
use super::question::{Batch, Point};
use crate::config::Source;
use crate::data::{Data, Where};
use crate::error::{Error, Result};
use crate::experiment::{Experiment, Registries};
use crate::math::real::Real;
use crate::problem::scope::Scope;
use crate::problem::{Bilevel, Parts};
use crate::run::{Context, World};

/// An experiment with the problem.
pub(super) struct Made {
    experiment: Experiment,
    data: Option<Data>,
    world: World,
}

impl Made {
    /// From the text of a problem; the other required sections are added.
    pub fn read(registries: &Registries, text: &str) -> Result<Made> {
        let source = Source::new("problem", text);
        let scope: Option<Scope> = source.root()?.value("scope")?;
        let given: Table = toml::from_str(text).unwrap_or_default();
        let sections = [
            ("network", "{ nodes = 3, graph = 'path' }".to_string()),
            ("run", "{ iterations = 1, batch = 4 }".to_string()),
            ("algorithm", some_algorithm(registries, scope.unwrap_or_default())?),
        ];
        let missing = sections.iter().filter(|(section, _)| !given.contains_key(*section));
        let sets = missing.map(|(section, value)| format!("{section}={value}")).collect();
        let experiment = Experiment::read(&Source { sets, ..source }, registries)?;
        let interrupt = AtomicBool::new(false);
        let data_dir = Where::new(None, 0).directory;
        let context = Context { pool: None, data_dir, interrupt: &interrupt, probe: None };
        let data = experiment.load_data(&context)?;
        let world = experiment.world(data.as_ref(), experiment.run.seeds[0])?;
        Ok(Made { experiment, data, world })
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.experiment.network.nodes
    }

    /// The parts of some nodes.
    pub fn parts<T: Real>(&self, nodes: Range<usize>) -> Result<Parts<T>> {
        let seed = self.experiment.run.seeds[0];
        self.experiment.setup(self.data.as_ref(), &self.world, seed).parts_of(nodes)
    }

    /// A node in messages.
    pub fn label<T: Real>(&self, node: usize) -> String {
        let precision = std::any::type_name::<T>();
        format!("problem `{}` in {precision}, node {node}", self.experiment.problem.name)
    }
}

/// A file names an algorithm; here it does not matter which.
fn some_algorithm(registries: &Registries, scope: Scope) -> Result<String> {
    let algorithms = registries.algorithms.iter();
    let mut fit = algorithms.filter(|entry| entry.facts.scopes.contains(&scope));
    let found = fit.find_map(|entry| Some((entry, entry.typical.clone()?)));
    let (entry, mut table) = found.ok_or_else(|| {
        broken("conformance/no-algorithm", "no algorithm of the registry has typical parameters")
    })?;
    table.insert("name".into(), entry.name.clone().into());
    Ok(format!("[{}]", Value::Table(table)))
}

/// The parts of all nodes, with their points and batches.
pub(super) struct Subject<T: Real> {
    pub nodes: Vec<Node<T>>,
}

/// One node of a [`Subject`].
pub(super) struct Node<T: Real> {
    pub label: String,
    pub part: Box<dyn Bilevel<T>>,
    pub points: [Point<T>; 2],
    pub batches: [Batch; 2],
}

impl<T: Real> Subject<T> {
    /// The parts of all nodes.
    pub fn new(made: &Made) -> Result<Subject<T>> {
        let parts = made.parts(0..made.nodes())?.each;
        let node = |(i, part): (usize, Box<dyn Bilevel<T>>)| {
            let points = [1, 2].map(|number| Point::near(&*part, number));
            let batches = Batch::both(&*part);
            Node { label: made.label::<T>(i), part, points, batches }
        };
        Ok(Subject { nodes: parts.into_iter().enumerate().map(node).collect() })
    }

    /// Calls a check with every node's part, its points and its batches.
    pub fn each_part(
        &mut self,
        mut check: impl FnMut(&mut dyn Bilevel<T>, &[Point<T>; 2], &[Batch; 2]) -> Result<()>,
    ) -> Result<()> {
        for Node { label, part, points, batches } in &mut self.nodes {
            check(&mut **part, points, batches).map_err(|error: Error| error.at(&*label))?;
        }
        Ok(())
    }

    /// The same, with every point and batch separately.
    pub fn each(
        &mut self,
        mut check: impl FnMut(&mut dyn Bilevel<T>, &Point<T>, &Batch) -> Result<()>,
    ) -> Result<()> {
        for Node { label, part, points, batches } in &mut self.nodes {
            for batch in &*batches {
                for point in &*points {
                    let place = || format!("{label}, {}", batch.name);
                    check(&mut **part, point, batch).map_err(|error| error.at(place()))?;
                }
            }
        }
        Ok(())
    }
}
