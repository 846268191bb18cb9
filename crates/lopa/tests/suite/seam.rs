//! Problems outside the library: directions of all nodes in one call, and derivatives that fail.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lopa::error::Kind;
use lopa::prelude::*;
use lopa::problem::builtin::quadratic;
use lopa::problem::{Ask, Directions, Shortcuts, SingleLevel, Together};

/// How often all nodes were answered in one call.
static CALLS: AtomicUsize = AtomicUsize::new(0);

params! {
    /// The quadratic problem, answered for all nodes in one call.
    struct Joint {
        /// The call that fails; 0 for none.
        fails_at: usize = 0;
        /// The derivative of node 1 that fails; 0 for none.
        breaks_at: usize = 0;
        /// Whether nodes are answered together.
        together: bool = true;
    }
}

/// The same quadratics, called together or one by one.
fn base() -> quadratic::Options {
    toml::from_str("n = 3\np = 4\nnoise = 0.3\nsamples = 20").unwrap()
}

impl<T: Real> Problem<T> for Joint {
    fn parts(&self, setting: &Setting, nodes: Range<usize>) -> Result<Parts<T>> {
        let each: Parts<T> = base().parts(setting, nodes.clone())?;
        let twins: Parts<T> = base().parts(setting, nodes)?;
        let fragile = |(i, part)| Fragile {
            part,
            left: if i == 1 { self.breaks_at } else { 0 },
            error: None,
        };
        let mut parts: Parts<T> = each.each.into_iter().enumerate().map(fragile).collect();
        if self.together {
            parts.together =
                Some(Box::new(All { twins: twins.each, calls: 0, fails_at: self.fails_at }));
        }
        Ok(parts)
    }
}

/// Computes with parts of its own, to show that no others are called.
struct All<T: Real> {
    twins: Vec<Box<dyn Bilevel<T>>>,
    calls: usize,
    fails_at: usize,
}

impl<T: Real> Together<T> for All<T> {
    fn directions(&mut self, asks: &mut [Ask<T>]) -> Result<()> {
        CALLS.fetch_add(1, Ordering::Relaxed);
        self.calls += 1;
        if self.calls == self.fails_at {
            return Err(Error::new(Kind::Run, "test/gone", "the device is gone"));
        }
        assert_eq!(asks.len(), self.twins.len(), "all nodes ask at once");
        in_blocks(asks);
        for Ask { node, at, v, on, out } in asks {
            let Directions { d, h, s, scratch, .. } = out;
            let out = Directions { d, h, s, hess: None, scratch };
            self.twins[*node].directions(*at, v, *on, out);
        }
        Ok(())
    }
}

/// Where a vector of a node begins.
type Address<'a, T> = &'a dyn Fn(&Ask<T>) -> *const T;

/// The vectors of all nodes lie in one block each, at equal distances, aligned to 64 bytes.
fn in_blocks<T: Real>(asks: &[Ask<T>]) {
    let addresses = |vector: Address<T>| -> Vec<usize> {
        asks.iter().map(|ask| vector(ask) as usize).collect()
    };
    let vectors: [Address<T>; 3] =
        [&|ask| ask.at.x.as_ptr(), &|ask| ask.at.theta.as_ptr(), &|ask| ask.v.as_ptr()];
    for vector in vectors {
        let at = addresses(vector);
        assert!(at.iter().all(|address| address % 64 == 0), "aligned");
        let stride = at[1] - at[0];
        assert!(at.windows(2).all(|pair| pair[1] - pair[0] == stride), "at equal distances");
    }
}

/// A part whose gradients fail after a while.
struct Fragile<T: Real> {
    part: Box<dyn Bilevel<T>>,
    left: usize,
    error: Option<Error>,
}

impl<T: Real> Bilevel<T> for Fragile<T> {
    fn dims(&self) -> Dims {
        self.part.dims()
    }
    fn samples_f(&self) -> usize {
        self.part.samples_f()
    }
    fn samples_g(&self) -> usize {
        self.part.samples_g()
    }
    fn f(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        self.part.f(at, batch)
    }
    fn g(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        self.part.g(at, batch)
    }
    fn grad_x_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.part.grad_x_f(at, batch, out);
    }
    fn grad_theta_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.part.grad_theta_f(at, batch, out);
    }
    fn grad_theta_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.part.grad_theta_g(at, batch, out);
        if self.left == 1 {
            out.fill(T::nan());
            self.error = Some(Error::new(Kind::Run, "test/broken", "the user's function failed"));
        }
        self.left = self.left.saturating_sub(1);
    }
    fn hess_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        self.part.hess_g(at, batch, v, out);
    }
    fn cross_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        self.part.cross_g(at, batch, v, out);
    }
    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<T>> {
        self.part.single_level()
    }
    fn shortcuts(&mut self) -> Option<&mut dyn Shortcuts<T>> {
        self.part.shortcuts()
    }
    fn error(&mut self) -> Option<Error> {
        self.error.take()
    }
}

fn run(problem: &str, algorithm: &str, more: &str) -> Result<Vec<Outcome>> {
    let mut registries = Registries::default();
    registries.problems.add(problem_entry::<Joint>("joint", "answered together"));
    let text = format!(
        "problem = {{ name = 'joint', {problem} }}
         network = {{ nodes = 5, graph = 'ring' }}
         run = {{ iterations = 30, batch = 4, {more} }}
         algorithm = [{{ {algorithm} }}]"
    );
    let experiment = Experiment::read(&Source::new("test", text), &registries)?;
    let interrupt = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &interrupt, probe: None };
    experiment.run_with(&context, &mut (), &mut ())
}

const LOOPLESS: [&str; 4] = [
    "name = 'lopa-gt', alpha = 0.01, beta = 0.3, lambda = 0.3",
    "name = 'lopa-lg', alpha = 0.01, beta = 0.3, lambda = 0.3",
    "name = 'd-soba', alpha = 0.01, beta = 0.3, lambda = 0.3",
    "name = 'sldbo', alpha = 0.01, beta = 0.3, lambda = 0.3",
];

#[test]
fn all_nodes_in_one_call_give_the_same_bits() {
    for algorithm in LOOPLESS {
        for precision in ["f32", "f64"] {
            let precision = format!("precision = '{precision}'");
            let alone = run("together = false", algorithm, &precision).unwrap();
            let before = CALLS.load(Ordering::Relaxed);
            let joint = run("together = true", algorithm, &precision).unwrap();
            let calls = CALLS.load(Ordering::Relaxed) - before;
            assert!(calls >= 30, "{algorithm}: {calls} calls in 30 iterations");
            assert_eq!(joint[0].digest, alone[0].digest, "{algorithm}");
            assert_eq!(joint[0].row.hessians, alone[0].row.hessians, "{algorithm}: counted alike");
        }
    }
}

#[test]
fn algorithms_with_loops_ask_node_by_node() {
    let spdb = "name = 'spdb', alpha = 0.01, beta = 0.3, lambda = 0.3";
    let one = run("together = false", spdb, "").unwrap();
    let other = run("together = true", spdb, "").unwrap();
    assert_eq!(one[0].digest, other[0].digest);
}

#[test]
fn differences_of_gradients_are_taken_node_by_node() {
    let one = run("together = false", LOOPLESS[0], "finite_differences = 0.01").unwrap();
    let other = run("together = true", LOOPLESS[0], "finite_differences = 0.01").unwrap();
    assert_eq!(one[0].digest, other[0].digest);
}

#[test]
fn a_call_that_fails_ends_the_run_with_its_error() {
    let error = run("fails_at = 7", LOOPLESS[0], "").unwrap_err();
    assert_eq!((error.id, error.message.as_str()), ("test/gone", "the device is gone"));
}

#[test]
fn a_derivative_that_fails_ends_the_run_with_its_error() {
    for at in [1, 2, 20] {
        let problem = format!("together = false, breaks_at = {at}");
        for algorithm in [LOOPLESS[0], "name = 'dgd', alpha = 0.1"] {
            let error = run(&problem, algorithm, "").unwrap_err();
            assert_eq!(error.id, "test/broken", "{algorithm}, call {at}");
        }
    }
}
