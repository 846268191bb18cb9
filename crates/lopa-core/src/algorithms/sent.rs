//! The messages of an algorithm per iteration, found by calling its `share` on a small node.

use super::cost::{Count, Task, n, p};
use super::{AnyMethod, Start};
use crate::error::Result;
use crate::math::real::Vector;
use crate::network::outbox::{Outbox, Round};
use crate::problem::derivative::Batches;
use crate::problem::oracle::Oracle;
use crate::problem::scope::Scope;
use crate::problem::{At, Bilevel, Dims, SingleLevel, Trains};

/// The messages of a node to each neighbour per iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// The vectors, and how often each is sent.
    pub vectors: Vec<(&'static str, usize)>,
    /// Scalars.
    pub floats: Count,
    /// Exchanges in which something is sent.
    pub rounds: usize,
}

impl AnyMethod {
    /// The messages of a node per iteration.
    pub fn sent(&self, task: Task) -> Result<Sent> {
        let first = self.probe(task, 1, 1)?;
        let mut vectors: Vec<(&'static str, usize)> = Vec::new();
        let sent = first.iter().flat_map(Outbox::vectors).filter(|(_, length)| *length > 0);
        for &(name, _) in sent {
            match vectors.iter_mut().find(|(known, _)| *known == name) {
                Some((_, times)) => *times += 1,
                None => vectors.push((name, 1)),
            }
        }
        let rounds = first.iter().filter(|out| !out.values().is_empty()).count();
        Ok(Sent { vectors, floats: self.floats(task)?, rounds })
    }

    /// The vectors that are sent, in words; those that the global scope adds in brackets.
    pub fn sends(&self) -> Result<String> {
        let of = |scope| self.sent(Task { scope, ..Task::default() });
        let vectors = match self.facts.scopes {
            [scope] => of(*scope)?.vectors,
            _ => of(Scope::Personal)?.vectors,
        };
        let more = match self.facts.scopes {
            [_] => Vec::new(),
            _ => of(Scope::Global)?.vectors,
        };
        let more: Vec<_> = more.into_iter().filter(|sent| !vectors.contains(sent)).collect();
        Ok(match (vectors.is_empty(), more.is_empty()) {
            (true, true) => "nothing".into(),
            (_, true) => words(&vectors),
            _ => format!("{} (+ {})", words(&vectors), words(&more)),
        })
    }

    /// The outboxes of an iteration of a node with these dimensions.
    fn probe(&self, task: Task, n: usize, p: usize) -> Result<Vec<Outbox<f64>>> {
        let part = Box::new(Blank { dims: Dims { n, p }, trains: task.trains });
        let mut oracle = Oracle::new(part, Batches::all(None), false, 0, 0);
        let zeros = |length| Vector::from(vec![0.0; length]);
        let start = Start {
            x: zeros(n),
            theta: zeros(p),
            v: zeros(p),
            rows: None,
            scope: task.scope,
            oracle: &mut oracle,
        };
        let node = self.start::<f64>(start)?;
        let share = |e| {
            let mut out = Outbox::default();
            node.share(Round { k: 0, e }, &mut out);
            out
        };
        Ok((0..node.exchanges()).map(share).collect())
    }

    /// The scalars of an iteration, a polynomial of degree 2 in n and p: from its values at six points.
    fn floats(&self, task: Task) -> Result<Count> {
        let at = |n, p| -> Result<f64> {
            Ok(self.probe(task, n, p)?.iter().map(|out| out.values().len() as f64).sum())
        };
        let ([one, n2, n3], [p2, p3]) = ([at(1, 1)?, at(2, 1)?, at(3, 1)?], [at(1, 2)?, at(1, 3)?]);
        let np = at(2, 2)? - n2 - p2 + one;
        let (nn, pp) = ((n3 - 2.0 * n2 + one) / 2.0, (p3 - 2.0 * p2 + one) / 2.0);
        let (of_n, of_p) = (n2 - one - 3.0 * nn - np, p2 - one - 3.0 * pp - np);
        let rest = one - of_n - of_p - nn - np - pp;
        let squares = n() * n() * nn + n() * p() * np + p() * p() * pp;
        Ok(n() * of_n + p() * of_p + squares + rest.into())
    }
}

/// A number counts each vector from there on: `x, 5θ, v`.
fn words(vectors: &[(&'static str, usize)]) -> String {
    let mut before = 1;
    let word = |&(name, times): &(&str, usize)| {
        let name = name.replace("theta", "θ").replace('_', "");
        match std::mem::replace(&mut before, times) == times {
            true => name,
            false => format!("{times}{name}"),
        }
    };
    vectors.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// A part with f = g = 0.
struct Blank {
    dims: Dims,
    trains: Trains,
}

impl Bilevel<f64> for Blank {
    fn dims(&self) -> Dims {
        self.dims
    }

    fn samples_f(&self) -> usize {
        1
    }

    fn samples_g(&self) -> usize {
        1
    }

    fn f(&mut self, _: At<f64>, _: &[u32]) -> f64 {
        0.0
    }

    fn g(&mut self, _: At<f64>, _: &[u32]) -> f64 {
        0.0
    }

    fn grad_x_f(&mut self, _: At<f64>, _: &[u32], out: &mut [f64]) {
        out.fill(0.0);
    }

    fn grad_theta_f(&mut self, _: At<f64>, _: &[u32], out: &mut [f64]) {
        out.fill(0.0);
    }

    fn grad_theta_g(&mut self, _: At<f64>, _: &[u32], out: &mut [f64]) {
        out.fill(0.0);
    }

    fn hess_g(&mut self, _: At<f64>, _: &[u32], _: &[f64], out: &mut [f64]) {
        out.fill(0.0);
    }

    fn cross_g(&mut self, _: At<f64>, _: &[u32], _: &[f64], out: &mut [f64]) {
        out.fill(0.0);
    }

    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<f64>> {
        Some(self)
    }
}

impl SingleLevel<f64> for Blank {
    fn grad_x_g(&mut self, _: At<f64>, _: &[u32], out: &mut [f64]) {
        out.fill(0.0);
    }

    fn trains(&self) -> Trains {
        self.trains
    }
}
