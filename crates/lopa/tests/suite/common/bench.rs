//! Experiments in few words, run step by step.

use lopa::algorithms::{AnyMethod, Start};
use lopa::config::{Choice, Source};
use lopa::data::Data;
use lopa::engine::{Node, Simulation};
use lopa::experiment::Experiment;
use lopa::math::random::{Purpose, Stream};
use lopa::math::real::{Real, cast};
use lopa::network::Mixing;
use lopa::problem::Bilevel;
use lopa::problem::oracle::Oracle;
use lopa::run::{Context, World};

/// An experiment with one algorithm and all parts of its run.
pub struct Bench {
    pub experiment: Experiment,
    pub data: Option<Data>,
    pub world: World,
}

impl Bench {
    /// From the text of a file and its only algorithm: `name = 'lopa-gt', alpha = 0.1, …`.
    pub fn new(setup: &str, algorithm: &str) -> Bench {
        let text = format!("algorithm = [{{ {algorithm} }}]\n{setup}");
        let read =
            Experiment::read(&Source::new("test", &text), &lopa::experiment::Registries::default());
        Bench::of(read.unwrap_or_else(|error| panic!("{error}\n{text}")))
    }

    pub fn of(experiment: Experiment) -> Bench {
        Bench::on(experiment, "".into())
    }

    pub fn on(experiment: Experiment, data_dir: std::path::PathBuf) -> Bench {
        let interrupt = Default::default();
        let context = Context { pool: None, data_dir, interrupt: &interrupt, probe: None };
        let data = experiment.load_data(&context).unwrap();
        let world = experiment.world(data.as_ref(), experiment.run.seeds[0]).unwrap();
        Bench { experiment, data, world }
    }

    pub fn seed(&self) -> u64 {
        self.experiment.run.seeds[0]
    }

    pub fn choice(&self) -> &Choice<AnyMethod> {
        &self.experiment.algorithms[0].choice
    }

    pub fn parts<T: Real>(&self) -> Vec<Box<dyn Bilevel<T>>> {
        self.experiment.setup(self.data.as_ref(), &self.world, self.seed()).parts().unwrap()
    }

    /// A node that draws from the streams of node `number`, from the problem's own start.
    pub fn node<T: Real>(&self, number: usize, part: Box<dyn Bilevel<T>>) -> Node<T> {
        let x = cast(&part.start_x(&mut Stream::new(self.seed(), Purpose::Start, 0)));
        let own = &mut Stream::new(self.seed(), Purpose::Start, 1 + number);
        let theta = cast(&part.start_theta(own));
        let v = vec![T::zero(); theta.len()];
        self.node_from(number, part, [x, theta, v], &[])
    }

    /// A node that starts at a given (x, θ, v), and takes its first truncations from a list.
    pub fn node_from<T: Real>(
        &self,
        number: usize,
        part: Box<dyn Bilevel<T>>,
        [x, theta, v]: [Vec<T>; 3],
        truncations: &[usize],
    ) -> Node<T> {
        let run = &self.experiment.run;
        let batches = run.batch.batches();
        let mut oracle = Oracle::new(part, batches, run.shared_samples, self.seed(), number);
        if run.epochs {
            oracle.take_epochs();
        }
        if let Some(delta) = run.finite_differences {
            oracle.take_differences(delta).unwrap();
        }
        if !truncations.is_empty() {
            oracle.script_truncations(truncations.to_vec());
        }
        let scope = self.experiment.scope;
        let [x, theta, v] = [x, theta, v].map(Into::into);
        let start = Start { x, theta, v, rows: None, scope, oracle: &mut oracle };
        let algorithm = self.choice().build.start(start).unwrap();
        Node { algorithm, oracle }
    }

    pub fn nodes<T: Real>(&self) -> Vec<Node<T>> {
        self.parts().into_iter().enumerate().map(|(i, part)| self.node(i, part)).collect()
    }

    /// All nodes at their start, as a run has them.
    pub fn start<T: Real>(&self) -> Simulation<'static, T> {
        assert!(self.world.rounds.is_none(), "on a graph that changes: `begin`");
        self.mailed(Simulation::new(self.nodes(), &self.world.mixing, None))
    }

    /// The same on a graph that may change.
    pub fn begin<T: Real>(&self) -> Simulation<'_, T> {
        self.begin_with(self.nodes())
    }

    /// The same with nodes that start elsewhere.
    pub fn begin_with<T: Real>(&self, nodes: Vec<Node<T>>) -> Simulation<'_, T> {
        let World { mixing, rounds, .. } = &self.world;
        self.mailed(Simulation::new(nodes, mixing, None).over(rounds.as_ref()))
    }

    fn mailed<'s, T: Real>(&self, simulation: Simulation<'s, T>) -> Simulation<'s, T> {
        let Experiment { messages, attack, .. } = &self.experiment;
        if messages.is_none() && attack.is_none() {
            return simulation;
        }
        let messages = messages.clone().unwrap_or_default();
        let on = (&self.world.mixing, self.seed());
        simulation.with_messages(&messages, attack.as_ref(), on).unwrap()
    }

    /// All nodes after this many iterations.
    pub fn run<T: Real>(&self, iterations: usize) -> Simulation<'static, T> {
        let mut simulation = self.start();
        (0..iterations).for_each(|_| simulation.iterate());
        simulation
    }
}

/// W as a dense matrix.
pub fn dense(mixing: &Mixing) -> Vec<Vec<f64>> {
    let m = mixing.nodes();
    (0..m).map(|i| (0..m).map(|j| mixing.weight(i, j)).collect()).collect()
}

/// A variable of every node.
pub fn rows<T: Real>(simulation: &Simulation<T>, name: &str) -> Vec<Vec<f64>> {
    simulation.nodes().iter().map(|node| cast(variable(node, name))).collect()
}

/// A variable of a node.
pub fn variable<'a, T: Real>(node: &'a Node<T>, name: &str) -> &'a [T] {
    let variables = node.algorithm.variables();
    variables.into_iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("{name}")).1
}

/// Every bit of every variable of every node.
pub fn bits<T: Real>(simulation: &Simulation<T>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for node in simulation.nodes() {
        for (_, values) in node.algorithm.variables() {
            T::extend_le(values, &mut bytes);
        }
    }
    bytes
}

pub fn mean(rows: &[Vec<f64>]) -> Vec<f64> {
    let sum = |j: usize| rows.iter().map(|row| row[j]).sum::<f64>();
    (0..rows[0].len()).map(|j| sum(j) / rows.len() as f64).collect()
}

pub fn norm(a: &[f64]) -> f64 {
    a.iter().map(|a| a * a).sum::<f64>().sqrt()
}

pub fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    norm(&minus(a, b))
}

/// The mean of ‖x_i − x̄‖².
pub fn spread(rows: &[Vec<f64>]) -> f64 {
    let centre = mean(rows);
    rows.iter().map(|row| distance(row, &centre).powi(2)).sum::<f64>() / rows.len() as f64
}

pub fn largest(a: &[f64]) -> f64 {
    a.iter().fold(0.0, |most, a| a.abs().max(most))
}
