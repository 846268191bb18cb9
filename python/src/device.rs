//! The device `framework`: iterations of problems in Python, where their framework has its arrays. Python receives
//! the iteration as a list once, and the minibatches and factors of several iterations in one call; numbers come back
//! only when they are asked for.

use std::any::Any;
use std::sync::Arc;

use lopa::algorithms::update_rule::{Evaluation, Factor, ListedRule, UpdateRule};
use lopa::config::Entry;
use lopa::engine::Node;
use lopa::engine::device::{Device, DeviceRun, Exchange, Program, device_entry};
use lopa::engine::list::{Arrays, List, Step};
use lopa::engine::variables::Variables;
use lopa::error::{Error, Result};
use lopa::math::real::Real;
use lopa::problem::derivative::Batches;
use lopa::problem::form::Form;
use lopa::problem::oracle::{Draw, Draws, Sampler};
use pyo3::buffer::Element;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::errors::keep;
use crate::going::asked;
use crate::part::{All, copy};
use crate::together::Slot;

/// The most iterations in one call: the watch over divergence looks at every tenth.
const AT_ONCE: usize = 16;

/// The entry of the registry.
pub fn entry() -> Entry<Device> {
    let describe = |_| Ok("the framework of the problem".into());
    let device = Device::new(open::<f32>, open::<f64>, describe);
    device_entry(
        "framework",
        "JAX or PyTorch, where it has the arrays of a problem in Python",
        device,
    )
}

fn refused(why: &str) -> Error {
    Error::config("device/refused", format!("the framework cannot run this: {why}"))
        .at("run.device")
        .hint("change that, or run it on the processor: `device = \"cpu\"`")
}

/// A minibatch that every node draws in every iteration.
struct Drawn {
    draw: Draw,
    key: (u32, usize, bool), // equal keys mean equal minibatches
    begin: usize,            // where it begins among the rows of a node
}

/// The minibatches of an iteration.
struct Minibatches {
    all: Vec<Drawn>,
    width: usize, // rows of a node
    samplers: Vec<(Sampler, (usize, usize))>,
}

impl Minibatches {
    /// Where the five minibatches of an evaluation are; those that are not wanted are empty.
    fn of(
        &mut self,
        evaluation: &Evaluation,
        draws: Draws,
        batches: Batches,
        shared: bool,
    ) -> [Slot; 5] {
        let Batches { grad_g, hess_g, cross_g, grad_theta_f, grad_x_f } = batches;
        let ([xi1, xi2, xi3], [sigma1, sigma2]) = (draws.xi, draws.sigma);
        let [d, h, s] = evaluation.into.map(|array| array.is_some());
        let (single, s) = (evaluation.single && s, s && !evaluation.single);
        [
            (d || single, xi1, grad_g, true),
            (h, xi2, hess_g, true),
            (s, xi3, cross_g, true),
            (h, sigma1, grad_theta_f, false),
            (s, sigma2, grad_x_f, false),
        ]
        .map(|(wanted, draw, size, inner)| match size {
            _ if !wanted => (0, 0),
            None => ALL,
            Some(size) => (self.begin(draw, (draw.slot(shared), size, inner)), size as i64),
        })
    }

    fn begin(&mut self, draw: Draw, key: (u32, usize, bool)) -> usize {
        if let Some(known) = self.all.iter().find(|known| known.key == key) {
            return known.begin;
        }
        let begin = self.width;
        self.width += key.1;
        self.all.push(Drawn { draw, key, begin });
        begin
    }

    /// Adds the rows of iteration `k`, of all nodes.
    fn draw(&mut self, k: u64, rows: &mut Vec<u8>) {
        for (sampler, (f, g)) in &mut self.samplers {
            sampler.begin(k);
            for Drawn { draw, key: (_, size, inner), .. } in &self.all {
                let of = if *inner { *g } else { *f };
                let batch = sampler.draw(*draw, Some(*size), of);
                rows.extend(batch.iter().flat_map(|row| row.to_le_bytes()));
            }
        }
    }

    /// The bytes of an iteration's rows.
    fn bytes(&self) -> usize {
        4 * self.width * self.samplers.len()
    }
}

/// All samples of a node, in order.
const ALL: Slot = (0, -1);

/// A run in the framework.
struct Framework<T> {
    run: Py<PyAny>,
    variables: Variables,
    factors: Vec<Factor>,
    minibatches: Minibatches,
    k: u64,         // iterations handed to Python
    pending: usize, // begun since
    rows: Vec<u8>,  // of the next iterations, as far as they are drawn
    drawn: usize,
    scalar: std::marker::PhantomData<T>,
}

fn open<T: Real + Element>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    let nodes = program.nodes;
    if nodes.len() < program.mixing.nodes() {
        return Err(refused("nodes in several processes"));
    }
    let all = known(&nodes[0])?;
    let rule = nodes[0].algorithm.update_rule().and_then(UpdateRule::listed);
    let rule = rule.map_err(refused)?;
    let mut samplers = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        known(node)?;
        let (f, g) = node.oracle.samples();
        samplers.push((Sampler::new(f.max(g), program.shared, program.seed, i), (f, g)));
    }
    let mut minibatches = Minibatches { all: Vec::new(), width: 0, samplers };
    let mut arrays = Arrays::default();
    let evaluations = rule.evaluations();
    let points: Vec<_> = evaluations.iter().map(|of| arrays.point(of)).collect();
    let list = List::new(&rule, &mut arrays);
    let variables = Variables::new(&nodes[0], &arrays, &rule.joined, true)
        .map_err(|name| refused(&format!("it has no array for `{name}`")))?;
    let run = asked(|py| {
        let mut made = || -> PyResult<Py<PyAny>> {
            let steps =
                told(py, (&list, &rule, &evaluations), &points, &mut minibatches, &program)?;
            let lengths = PyTuple::new(py, &variables.lengths)?;
            let width = minibatches.width;
            let links = program.mixing.rows().to_vec();
            let asked = (lengths, steps, links, AT_ONCE, width, list.factors.len());
            Ok(all.parts.bind(py).call_method1("iterations", asked)?.unbind())
        };
        made().map_err(|error| keep(py, error))
    })?;
    let framework = Framework {
        run,
        variables,
        factors: list.factors,
        minibatches,
        k: program.k,
        pending: 0,
        rows: Vec::new(),
        drawn: 0,
        scalar: std::marker::PhantomData,
    };
    framework.put(nodes)?;
    Ok(Box::new(framework))
}

/// The parts in Python of a node's problem.
fn known<T: Real>(node: &Node<T>) -> Result<Arc<All>> {
    let Form::Code(code) = node.oracle.form().map_err(refused)? else {
        return Err(refused("the problem is not one in Python"));
    };
    let found: Option<&Arc<All>> = (code as &dyn Any).downcast_ref();
    found.cloned().ok_or_else(|| refused("the problem is not one in Python"))
}

/// The steps of an iteration for Python: `(sums,)`, each `(to, ((from, mixed, factor), …))`, or `(at, into, single,
/// slots)` of an evaluation.
fn told<'py, T: Real>(
    py: Python<'py>,
    (list, rule, evaluations): (&List, &ListedRule, &[Evaluation]),
    points: &[([usize; 3], [usize; 3])],
    minibatches: &mut Minibatches,
    program: &Program<T>,
) -> PyResult<Bound<'py, PyTuple>> {
    let mut steps: Vec<Bound<PyTuple>> = Vec::new();
    for step in &list.steps {
        steps.push(match step {
            Step::Sums { sums, .. } => {
                let mut lines = Vec::new();
                for line in sums {
                    let parts = line.parts.iter().map(|part| (part.from, part.mixed, part.factor));
                    lines.push((line.to, PyTuple::new(py, parts.collect::<Vec<_>>())?));
                }
                (PyTuple::new(py, lines)?,).into_pyobject(py)?
            }
            &Step::Evaluate(number) => {
                let (evaluation, (at, into)) = (&evaluations[number], points[number]);
                let slots = minibatches.of(evaluation, rule.draws, program.batches, program.shared);
                let wanted = evaluation.into.map(|array| array.is_some());
                let into: [_; 3] = std::array::from_fn(|i| wanted[i].then_some(into[i]));
                let slots = PyTuple::new(py, slots)?;
                let (at, into) = (PyTuple::new(py, at)?, PyTuple::new(py, into)?);
                (at, into, evaluation.single, slots).into_pyobject(py)?
            }
        });
    }
    PyTuple::new(py, steps)
}

impl<T: Real + Element> Framework<T> {
    /// Calls Python.
    fn call<R>(&self, call: impl FnOnce(&Bound<PyAny>) -> PyResult<R>) -> Result<R> {
        asked(|py| call(self.run.bind(py)).map_err(|error| keep(py, error)))
    }

    /// The variables of all nodes.
    fn put(&self, nodes: &[Node<T>]) -> Result<()> {
        for at in 0..self.variables.lengths.len() {
            let mut bytes = Vec::new();
            self.variables.hand_over(nodes, at, |_, values| {
                T::extend_le(values, &mut bytes);
                Ok(())
            })?;
            if !bytes.is_empty() {
                self.call(|run| {
                    run.call_method1("put", (at, PyBytes::new(run.py(), &bytes))).map(drop)
                })?;
            }
        }
        Ok(())
    }

    /// Draws the rows of the next iterations, as many as one call may have.
    fn draw(&mut self, count: usize) {
        while self.drawn < count {
            self.minibatches.draw(self.k + self.drawn as u64, &mut self.rows);
            self.drawn += 1;
        }
    }

    /// Hands all iterations that were begun to Python.
    fn launch(&mut self) -> Result<()> {
        if self.pending == 0 {
            return Ok(());
        }
        let count = std::mem::take(&mut self.pending);
        self.draw(count);
        let mut factors = Vec::new();
        for k in self.k..self.k + count as u64 {
            let row: Vec<T> = self.factors.iter().map(|factor| T::of(factor(k))).collect();
            T::extend_le(&row, &mut factors);
        }
        let rows = count * self.minibatches.bytes();
        self.call(|run| {
            let py = run.py();
            let (rows, factors) =
                (PyBytes::new(py, &self.rows[..rows]), PyBytes::new(py, &factors));
            run.call_method1("launch", (count, rows, factors)).map(drop)
        })?;
        self.rows.drain(..rows);
        (self.k, self.drawn) = (self.k + count as u64, self.drawn - count);
        // While the framework computes.
        self.draw(AT_ONCE);
        Ok(())
    }
}

impl<T: Real + Element> DeviceRun<T> for Framework<T> {
    fn advance(&mut self, _: Exchange) -> Result<()> {
        self.pending += 1;
        if self.pending < AT_ONCE { Ok(()) } else { self.launch() }
    }

    fn wait(&mut self) -> Result<()> {
        self.launch()?;
        self.call(|run| run.call_method0("wait").map(drop))
    }

    fn fetch(&mut self, nodes: &mut [Node<T>]) -> Result<()> {
        self.launch()?;
        let get =
            |at: usize, to: &mut [T]| self.call(|run| copy(&run.call_method1("get", (at,))?, to));
        self.variables.give_back(nodes, get)
    }

    fn sizes(&mut self) -> Result<Vec<Vec<f64>>> {
        self.launch()?;
        let nodes = self.minibatches.samplers.len();
        let mut largest = vec![0.0; nodes * self.variables.lengths.len()];
        self.call(|run| copy(&run.call_method0("sizes")?, &mut largest))?;
        Ok(self.variables.sorted(&largest))
    }
}
