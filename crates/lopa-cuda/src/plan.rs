//! A run as plain arrays, for the card and for its emulation; refuses runs that neither supports.

use lopa::algorithms::update_rule::{UpdateRule, XUpdate};
use lopa::data::{Features, Samples, Stock};
use lopa::engine::Node;
use lopa::engine::device::Program;
use lopa::error::{Error, Result};
use lopa::math::real::{Real, cast};
use lopa::problem::form::{Form, Term};
use lopa::problem::oracle::Batches;

use crate::job::Job;

/// The most classes that the kernels support.
const CLASSES: usize = 64;

/// The most entries of a sparse matrix when zeros are filled in.
const ENTRIES: usize = 1 << 31;

/// Numbers copied at a time.
const AT_ONCE: usize = 1 << 20;

/// The scheme of DGD in the kernels.
pub const DESCENT: u32 = 4;

/// The variables in the order of the kernels; r of D-SOBA takes the place of y.
pub const PLACES: [&str; 8] = ["theta", "d", "v", "h", "s", "z", "y", "x"];

/// Features, row after row.
pub enum Table<T> {
    Bytes(Vec<u8>),
    Numbers(Vec<T>),
}

/// Which kernels compute d, h and s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Layer,
    Linear,
    Quadratic,
}

/// A run as plain arrays.
pub struct Plan<T: Real> {
    pub kind: Kind,
    pub rule: UpdateRule,
    /// Iterations done.
    pub k: u64,
    /// All scalar parameters.
    pub job: Job<T>,
    pub links: Vec<u32>,
    pub linked: Vec<u32>,
    pub w: Vec<T>,
    /// Of g and of f: where each node's samples start, and their rows; no rows where there is no
    /// table.
    pub own: [Vec<u32>; 2],
    pub owned: [Vec<u32>; 2],
    pub labels: Vec<u32>,
    pub table: Table<T>,
    pub shift: Vec<T>,
    pub weights: Vec<T>,
    pub coefficients: [Vec<T>; 12],
    /// The numbers of a node in each variable, in the order of [`PLACES`].
    pub lengths: [usize; 8],
    /// Halves of each number in products on tensor cores: 2, or 1 where less precision will do.
    pub terms: u32,
    /// The index in [`PLACES`] of each of the algorithm's variables.
    places: Vec<usize>,
}

pub fn refused(why: impl std::fmt::Display) -> Error {
    Error::config("device/refused", format!("the device cannot run this: {why}"))
        .at("run.device")
        .hint("change that, or run it on the processor: `device = \"cpu\"`")
}

/// The index in [`PLACES`].
fn place(name: &str) -> Result<usize> {
    let known = if name == "r" { "y" } else { name };
    let found = PLACES.iter().position(|place| *place == known);
    found.ok_or_else(|| refused(format!("the algorithm's variable `{name}` has no place there")))
}

impl<T: Real> Plan<T> {
    pub fn new(program: &Program<T>) -> Result<Plan<T>> {
        let Program { nodes, mixing, seed, k, rounds, .. } = *program;
        let rule = nodes[0].algorithm.update_rule().map_err(refused)?;
        let variables = nodes[0].algorithm.variables();
        let places: Vec<usize> =
            variables.iter().map(|(name, _)| place(name)).collect::<Result<_>>()?;
        let mut lengths = [0; 8];
        for (&at, (_, values)) in places.iter().zip(&variables) {
            lengths[at] = values.len();
        }
        if let XUpdate::Descent { .. } = rule.x {
            // Buffers for d, v, h and s, which it does not keep.
            let theta = lengths[0];
            lengths[1..4].fill(theta);
            lengths[4] = lengths[7];
        }
        let m = nodes.len();
        let mut links = vec![0];
        let (mut linked, mut w) = (Vec::new(), Vec::new());
        for row in mixing.rows() {
            for &(j, weight) in row {
                linked.push(j as u32);
                w.push(T::of(weight));
            }
            links.push(linked.len() as u32);
        }
        let mut plan = Plan {
            kind: Kind::Quadratic,
            rule,
            k,
            job: Job {
                m: m as u32,
                n: lengths[7] as u32,
                p: lengths[0] as u32,
                scheme: match rule.x {
                    XUpdate::Tracking => 0,
                    XUpdate::Local => 1,
                    XUpdate::Alone => 2,
                    XUpdate::Combined => 3,
                    XUpdate::Descent { .. } => DESCENT,
                },
                both: u32::from(rule.x == XUpdate::Descent { both: true }),
                seed: [seed as u32, (seed >> 32) as u32],
                ..Job::default()
            },
            links,
            linked,
            w,
            own: [Vec::new(), Vec::new()],
            owned: [Vec::new(), Vec::new()],
            labels: Vec::new(),
            table: Table::Numbers(Vec::new()),
            shift: Vec::new(),
            weights: Vec::new(),
            coefficients: Default::default(),
            lengths,
            terms: if rounds { 1 } else { 2 },
            places,
        };
        plan.draw(program)?;
        plan.take_forms(nodes)?;
        Ok(plan)
    }

    /// The rows of the minibatches.
    fn draw(&mut self, program: &Program<T>) -> Result<()> {
        let Batches { grad_g, hess_g, cross_g, grad_theta_f, grad_x_f } = program.batches;
        let UpdateRule { draws, .. } = self.rule;
        let [xi1, xi2, xi3] = draws.xi;
        let [sigma1, sigma2] = draws.sigma;
        let samples: Vec<_> = program.nodes.iter().map(|node| node.oracle.samples()).collect();
        let none = Some(0);
        let all = match self.rule.x {
            // DGD uses ∇_x g instead of ∇_x f, on the same samples as ∇_θ g.
            XUpdate::Descent { .. } => [
                (xi1, grad_g, 1),
                (xi2, none, 1),
                (xi3, none, 1),
                (sigma1, none, 1),
                (xi1, grad_g, 1),
            ],
            _ => [
                (xi1, grad_g, 1),
                (xi2, hess_g, 1),
                (xi3, cross_g, 1),
                (sigma1, grad_theta_f, 0),
                (sigma2, grad_x_f, 0),
            ],
        };
        let job = &mut self.job;
        for (at, (draw, size, of)) in all.into_iter().enumerate() {
            let count = |&(f, g): &(usize, usize)| if of == 0 { f } else { g };
            if size.is_none() && samples.iter().any(|node| count(node) != count(&samples[0])) {
                return Err(refused(
                    "`batch = \"full\"` where nodes have different numbers of samples",
                ));
            }
            job.size[at] = size.unwrap_or(count(&samples[0])) as u32;
            job.full[at] = u32::from(size.is_none());
            job.slot[at] = draw.slot(program.shared);
            (job.start[at], job.block[at]) = (job.drawn, job.blocks);
            job.drawn += job.size[at];
            job.blocks += job.size[at].div_ceil(16);
        }
        Ok(())
    }

    fn take_forms(&mut self, nodes: &[Node<T>]) -> Result<()> {
        let first = nodes[0].oracle.form().map_err(refused)?;
        match &first {
            Form::Quadratic(quadratic) => {
                self.job.outputs = quadratic.coefficients[4].len() as u32;
                self.job.samples = quadratic.samples as u32;
            }
            Form::Linear { inner, columns, .. } => {
                self.kind = Kind::Linear;
                self.job.classes = *columns as u32;
                self.take_table(inner.samples)?;
            }
            Form::Layer { inner, units, classes, tanh, ridge, .. } => {
                self.kind = Kind::Layer;
                (self.job.units, self.job.classes) = (*units as u32, *classes as u32);
                (self.job.tanh, self.job.ridge) = (u32::from(*tanh), *ridge);
                self.take_table(inner.samples)?;
            }
        }
        if self.job.classes as usize > CLASSES {
            return Err(refused(format!("more than {CLASSES} classes")));
        }
        for own in &mut self.own {
            own.push(0);
        }
        for node in nodes {
            self.take_form(node.oracle.form().map_err(refused)?, &first)?;
        }
        Ok(())
    }

    fn take_form(&mut self, form: Form<T>, first: &Form<T>) -> Result<()> {
        match (form, first) {
            (Form::Quadratic(own), _) => {
                let all = own.coefficients.into_iter().chain(own.noise);
                self.coefficients.iter_mut().zip(all).for_each(|(to, from)| to.extend(from));
                if own.noise[0].is_empty() {
                    let [n, p] = [self.job.n, self.job.p].map(|length| length as usize);
                    let none = self.coefficients.iter_mut().skip(own.coefficients.len());
                    for (to, length) in none.zip([1, 1, p, p, n]) {
                        to.resize(to.len() + own.samples * length, T::zero());
                    }
                }
                for own in &mut self.own {
                    own.push(own.last().copied().unwrap_or(0) + self.job.samples);
                }
            }
            (
                Form::Linear { inner, outer, .. } | Form::Layer { inner, outer, .. },
                Form::Linear { inner: first, .. } | Form::Layer { inner: first, .. },
            ) => {
                // DGD's losses are all g's.
                let outer = if self.job.scheme == DESCENT { &inner } else { &outer };
                self.weigh(&inner, outer);
                for (side, term) in [&inner, outer].into_iter().enumerate() {
                    if !term.samples.beside(first.samples) {
                        return Err(refused("nodes whose samples are in different tables"));
                    }
                    self.owned[side].extend(term.samples.rows());
                    self.own[side].push(self.owned[side].len() as u32);
                }
            }
            _ => return Err(refused("nodes with different problems")),
        }
        Ok(())
    }

    /// c/b of each minibatch.
    fn weigh(&mut self, inner: &Term<T>, outer: &Term<T>) {
        let c = [inner.c, inner.c, inner.c, outer.c, outer.c];
        let weight = |at: usize| T::of(c[at] / f64::from(self.job.size[at]));
        self.weights.extend((0..5).map(weight));
    }

    fn take_table(&mut self, samples: &Samples<T>) -> Result<()> {
        let features = samples.cols();
        self.job.features = features as u32;
        self.job.stride = features.next_multiple_of(4) as u32;
        self.job.unit = T::one();
        self.labels = samples.labels().to_vec();
        match samples.table() {
            Stock::Bytes { bytes, unit, shift } => {
                self.table = Table::Bytes(bytes.to_vec());
                (self.job.bytes, self.job.unit, self.shift) = (1, T::of(unit), cast(shift));
            }
            Stock::Numbers(Features::Dense { values, .. }) => {
                self.table = Table::Numbers(cast(values));
            }
            Stock::Numbers(sparse) => {
                if sparse.rows().saturating_mul(features) > ENTRIES {
                    return Err(refused(
                        "sparse features that are too many once zeros are filled in",
                    ));
                }
                let mut table = vec![T::zero(); sparse.rows() * features];
                for (row, to) in table.chunks_exact_mut(features).enumerate() {
                    sparse.each(row, |q, value| to[q] = T::of(value));
                }
                self.table = Table::Numbers(table);
            }
        }
        Ok(())
    }

    /// The other nodes in each row of W, and their weights.
    pub fn neighbours(&self) -> (Vec<u32>, Vec<u32>, Vec<T>) {
        let (mut links, mut linked, mut w) = (vec![0], Vec::new(), Vec::new());
        for (i, pair) in self.links.windows(2).enumerate() {
            for at in pair[0] as usize..pair[1] as usize {
                if self.linked[at] as usize != i {
                    linked.push(self.linked[at]);
                    w.push(self.w[at]);
                }
            }
            links.push(linked.len() as u32);
        }
        (links, linked, w)
    }

    /// alpha, beta, lambda, gamma and tau of an iteration.
    pub fn steps(&self, k: u64) -> [T; 5] {
        let UpdateRule { alpha, beta, lambda, gamma, tau, .. } = self.rule;
        [alpha, beta, lambda, gamma, tau].map(|step| T::of(step.at(k)))
    }

    /// Passes the variable at this index of [`PLACES`] to `put`, for several nodes at a time, with
    /// the number of the first node.
    pub fn hand_over(
        &self,
        nodes: &[Node<T>],
        at: usize,
        mut put: impl FnMut(usize, &[T]) -> Result<()>,
    ) -> Result<()> {
        let Some(which) = self.places.iter().position(|&place| place == at) else {
            return Ok(());
        };
        let together = (AT_ONCE / self.lengths[at].max(1)).max(1);
        let mut values = Vec::with_capacity(together.min(nodes.len()) * self.lengths[at]);
        for (some, nodes) in nodes.chunks(together).enumerate() {
            values.clear();
            nodes
                .iter()
                .for_each(|node| values.extend_from_slice(node.algorithm.variables()[which].1));
            put(some * together, &values)?;
        }
        Ok(())
    }

    /// Copies the variables back to all nodes; `fetch` reads each by its index in [`PLACES`].
    pub fn give_back(
        &self,
        nodes: &mut [Node<T>],
        mut fetch: impl FnMut(usize, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        let mut all = Vec::new();
        for (at, &place) in self.places.iter().enumerate() {
            let length = self.lengths[place];
            all.resize(nodes.len() * length, T::zero());
            fetch(place, &mut all)?;
            for (i, node) in nodes.iter_mut().enumerate() {
                let to = node.algorithm.variables_mut().swap_remove(at).1;
                to.copy_from_slice(&all[i * length..(i + 1) * length]);
            }
        }
        Ok(())
    }

    /// Each node's sizes in the order of the algorithm's variables, from those in the order of
    /// [`PLACES`].
    pub fn sorted(&self, largest: &[f64]) -> Vec<Vec<f64>> {
        let one = |sizes: &[f64]| self.places.iter().map(|&at| sizes[at]).collect();
        largest.chunks_exact(PLACES.len()).map(one).collect()
    }
}
