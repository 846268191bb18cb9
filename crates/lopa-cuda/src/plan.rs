//! A run as plain arrays, for the card and for its emulation; refuses runs that neither supports.

use lopa::algorithms::update_rule::{Evaluation, UpdateRule, UsualRule, XUpdate};
use lopa::data::{Features, Samples, Stock};
use lopa::engine::Node;
use lopa::engine::device::Program;
use lopa::error::{Error, Result};
use lopa::math::real::{Real, cast};
use lopa::problem::derivative::Batches;
use lopa::problem::form::Form;
use lopa::problem::oracle::Draws;

use crate::job::{Common, Job};
use crate::list::{Array, Arrays, List, PLACES};

/// The most classes that the kernels support.
const CLASSES: usize = 64;

/// The most entries of a sparse matrix when zeros are filled in.
const ENTRIES: usize = 1 << 31;

/// Numbers copied at a time.
const AT_ONCE: usize = 1 << 20;

/// The scheme of a listed rule in the kernels.
pub const LISTED: u32 = 4;

/// The arrays of y and x among the [places](PLACES).
pub const Y: usize = 6;
pub const X: usize = 7;

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

/// How an iteration moves.
pub enum Rule {
    Usual(UsualRule),
    Listed(List),
}

/// Derivatives at a point.
pub struct Evaluated<T: Real> {
    /// The arrays of x, θ and v, and for d, h and s.
    pub at: [usize; 3],
    pub into: [usize; 3],
    /// Whether all samples are g's.
    pub single: bool,
    /// All parameters, with the minibatches of this evaluation.
    pub job: Job<T>,
    /// Of the losses.
    pub weights: Vec<T>,
}

/// What this process and another exchange.
pub struct Border {
    pub rank: usize,
    /// Nodes here, whose rows go there.
    pub out: Vec<usize>,
    /// Where the rows of its nodes go, behind those of the nodes here.
    pub into: Vec<usize>,
}

/// A run as plain arrays.
pub struct Plan<T: Real> {
    pub kind: Kind,
    pub rule: Rule,
    /// Iterations done.
    pub k: u64,
    /// All scalar parameters, with the minibatches of the first evaluation.
    pub job: Job<T>,
    /// Rows of W; nodes are numbered as rows of arrays: those of this process first.
    pub links: Vec<u32>,
    pub linked: Vec<u32>,
    pub w: Vec<T>,
    /// Nodes of all processes.
    pub total: u32,
    /// Rows of arrays that are mixed, those of neighbours in other processes included.
    rows: usize,
    pub borders: Vec<Border>,
    /// Whether other numbers of processes must have the same bits.
    pub divisible: bool,
    /// The largest feature, over all processes; known to kernels that need it.
    pub top: f32,
    /// Of g and of f: where each node's samples start, and their rows; no rows where there is no
    /// table.
    pub own: [Vec<u32>; 2],
    pub owned: [Vec<u32>; 2],
    pub labels: Vec<u32>,
    pub table: Table<T>,
    pub shift: Vec<T>,
    /// Of the losses of the first evaluation.
    pub weights: Vec<T>,
    pub coefficients: [Vec<T>; 12],
    /// The arrays of a node, those of [`PLACES`] first, and their lengths.
    pub arrays: Vec<Array>,
    pub lengths: Vec<usize>,
    /// The evaluations of an iteration.
    pub evaluations: Vec<Evaluated<T>>,
    /// Halves of each number in products on tensor cores: 2, or 1 where less precision will do.
    pub terms: u32,
    /// c of the losses of g and f, of each node.
    scales: Vec<[f64; 2]>,
    /// The arrays of each of the algorithm's variables, and where it starts in them.
    variables: Vec<Vec<usize>>,
}

pub fn refused(why: impl std::fmt::Display) -> Error {
    Error::config("device/refused", format!("the device cannot run this: {why}"))
        .at("run.device")
        .hint("change that, or run it on the processor: `device = \"cpu\"`")
}

impl<T: Real> Plan<T> {
    pub fn new(program: &Program<T>) -> Result<Plan<T>> {
        let Program { nodes, company, mixing, seed, k, rounds, .. } = *program;
        let rule = nodes[0].algorithm.update_rule().map_err(refused)?;
        let mut arrays = Arrays::new();
        let evaluations = rule.evaluations();
        let points: Vec<_> = evaluations.iter().map(|of| arrays.point(of)).collect();
        let mut joined = Vec::new();
        let (rule, draws, scheme) = match rule {
            UpdateRule::Usual(rule) => {
                joined.push(("r", vec!["y"]));
                let scheme = match rule.x {
                    XUpdate::Tracking => 0,
                    XUpdate::Local => 1,
                    XUpdate::Alone => 2,
                    XUpdate::Combined => 3,
                };
                (Rule::Usual(rule), rule.draws, scheme)
            }
            UpdateRule::Listed(rule) => {
                let list = List::new(&rule, &mut arrays);
                joined = rule.joined;
                (Rule::Listed(list), rule.draws, LISTED)
            }
        };
        let mut variables = Vec::new();
        let mut lengths = vec![0; arrays.0.len()];
        let named = nodes[0].algorithm.variables();
        for (name, _) in &named {
            let own = vec![*name];
            let names = joined.iter().find(|(known, _)| known == name).map_or(&own, |(_, of)| of);
            let found = names.iter().map(|name| arrays.find(name)).collect::<Option<Vec<_>>>();
            // What a list does not mention stays as it is.
            let unmentioned = (scheme == LISTED).then(Vec::new);
            let Some(numbers) = found.or(unmentioned) else {
                let why = format!("the algorithm's variable `{name}` has no place there");
                return Err(refused(why));
            };
            variables.push(numbers);
        }
        let length = |name: &str| {
            named.iter().find(|(known, _)| *known == name).map_or(0, |(_, values)| values.len())
        };
        let [n, p] = [length("x"), length("theta")];
        // Listed rules also have arrays that are no variables.
        let listed = scheme == LISTED;
        for (at, array) in arrays.0.iter().enumerate() {
            let used = at >= PLACES.len() || variables.iter().flatten().any(|&of| of == at);
            let evaluated = points.iter().any(|(of, into)| of.contains(&at) || into.contains(&at));
            if used || evaluated || listed {
                lengths[at] = if array.wide { n } else { p };
            }
        }
        let m = nodes.len();
        let here = company.here(mixing.nodes());
        let mut row_of = vec![0; mixing.nodes()];
        here.clone().enumerate().for_each(|(at, i)| row_of[i] = at);
        // Nodes of other processes begin at a multiple of four: kernels mix four nodes here together.
        let (mut rows, mut borders) = (m.next_multiple_of(4), Vec::new());
        for border in company.borders(mixing) {
            let into = border.into.iter().map(|&(j, _)| {
                row_of[j] = rows;
                rows += 1;
                row_of[j]
            });
            let into = into.collect();
            let out = border.out.iter().map(|(i, _)| i - here.start).collect();
            borders.push(Border { rank: border.rank, out, into });
        }
        let mut links = vec![0];
        let (mut linked, mut w) = (Vec::new(), Vec::new());
        for i in here.clone() {
            for &(j, weight) in mixing.row(i) {
                linked.push(row_of[j] as u32);
                w.push(T::of(weight));
            }
            links.push(linked.len() as u32);
        }
        let seed = [seed as u32, (seed >> 32) as u32];
        let (m, n, p, first) = (m as u32, n as u32, p as u32, here.start as u32);
        let mut plan = Plan {
            kind: Kind::Quadratic,
            rule,
            k,
            job: Job {
                common: Common { m, n, p, scheme, seed, first, ..Common::default() },
                ..Job::default()
            },
            links,
            linked,
            w,
            total: mixing.nodes() as u32,
            rows,
            borders,
            divisible: company.is_divisible(),
            top: 0.0,
            own: [Vec::new(), Vec::new()],
            owned: [Vec::new(), Vec::new()],
            labels: Vec::new(),
            table: Table::Numbers(Vec::new()),
            shift: Vec::new(),
            weights: Vec::new(),
            coefficients: Default::default(),
            arrays: arrays.0,
            lengths,
            evaluations: Vec::new(),
            terms: if rounds { 1 } else { 2 },
            scales: Vec::new(),
            variables,
        };
        plan.take_forms(nodes)?;
        for (evaluation, (at, into)) in evaluations.iter().zip(points) {
            let job = plan.drawn(program, evaluation, draws)?;
            let (single, weights) = (evaluation.single, plan.weighed(&job, evaluation.single));
            plan.evaluations.push(Evaluated { at, into, single, job, weights });
        }
        (plan.job, plan.weights) = (plan.evaluations[0].job, plan.evaluations[0].weights.clone());
        Ok(plan)
    }

    /// The minibatches of an evaluation: of d ξ₁, of h ξ₂ and ς₁, of s ξ₃ and ς₂.
    fn drawn(&self, program: &Program<T>, evaluation: &Evaluation, draws: Draws) -> Result<Job<T>> {
        let Batches { grad_g, hess_g, cross_g, grad_theta_f, grad_x_f } = program.batches;
        let [xi1, xi2, xi3] = draws.xi;
        let [sigma1, sigma2] = draws.sigma;
        let samples: Vec<_> = program.nodes.iter().map(|node| node.oracle.samples()).collect();
        let [d, h, s] = evaluation.into.map(|array| array.is_some());
        // ∇_x g in place of ∇_x f, on the same samples as ∇_θ g.
        let of_x = if evaluation.single { (xi1, grad_g, 1) } else { (sigma2, grad_x_f, 0) };
        let all = [
            (d, (xi1, grad_g, 1)),
            (h, (xi2, hess_g, 1)),
            (s && !evaluation.single, (xi3, cross_g, 1)),
            (h, (sigma1, grad_theta_f, 0)),
            (s, of_x),
        ];
        let mut job = self.job;
        for (at, (wanted, (draw, size, of))) in all.into_iter().enumerate() {
            let size = if wanted { size } else { Some(0) };
            let count = |&(f, g): &(usize, usize)| if of == 0 { f } else { g };
            if size.is_none() && samples.iter().any(|node| count(node) != count(&samples[0])) {
                return Err(refused(
                    "`batch = \"full\"` where nodes have different numbers of samples",
                ));
            }
            job.size[at] = size.unwrap_or(count(&samples[0])) as u32;
            job.full[at] = u32::from(size.is_none());
            job.slot[at] = draw.slot(program.shared);
            job.side[at] = u32::from(at >= 3);
        }
        job.common = job.common.ordered([0, 1, 2, 3, 4]);
        Ok(job)
    }

    /// c/b of each minibatch, of each node.
    fn weighed(&self, job: &Job<T>, single: bool) -> Vec<T> {
        let of_node = |&[g, f]: &[f64; 2]| {
            let f = if single { g } else { f };
            let c = [g, g, g, f, f];
            std::array::from_fn::<T, 5, _>(|at| T::of(c[at] / f64::from(job.size[at])))
        };
        self.scales.iter().flat_map(of_node).collect()
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
                self.scales.push([inner.c, outer.c]);
                for (side, term) in [&inner, &outer].into_iter().enumerate() {
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

    /// alpha, beta, lambda, gamma and tau of an iteration; or the factors of a list.
    pub fn steps(&self, k: u64, to: &mut Vec<T>) {
        match &self.rule {
            Rule::Usual(UsualRule { alpha, beta, lambda, gamma, tau, .. }) => {
                to.extend([alpha, beta, lambda, gamma, tau].map(|step| T::of(step.at(k))));
            }
            Rule::Listed(list) => to.extend(list.factors.iter().map(|factor| T::of(factor(k)))),
        }
    }

    /// The arrays that an iteration of LoPA or D-SOBA mixes.
    pub fn mixed(&self) -> &'static [usize] {
        match &self.rule {
            Rule::Listed(_) => &[],
            Rule::Usual(UsualRule { x: XUpdate::Alone, .. }) => &[],
            Rule::Usual(UsualRule { x: XUpdate::Local, .. }) => &[X],
            Rule::Usual(UsualRule { x: XUpdate::Tracking | XUpdate::Combined, .. }) => &[X, Y],
        }
    }

    /// The rows of an array: the nodes here, and the neighbours in other processes where it is mixed.
    pub fn rows(&self, array: usize) -> usize {
        let mixed = match &self.rule {
            Rule::Usual(_) => self.mixed().contains(&array),
            Rule::Listed(list) => list.steps.iter().any(|step| step.mixed().contains(&array)),
        };
        if mixed && !self.borders.is_empty() { self.rows } else { self.job.m as usize }
    }

    /// Whether iterations need other processes.
    pub fn exchanges(&self) -> bool {
        let mixes = |list: &List| list.steps.iter().any(|step| !step.mixed().is_empty());
        !self.borders.is_empty() && self.list().map_or(!self.mixed().is_empty(), mixes)
    }

    /// The list of a listed rule.
    pub fn list(&self) -> Option<&List> {
        match &self.rule {
            Rule::Usual(_) => None,
            Rule::Listed(list) => Some(list),
        }
    }

    /// Passes the variable that this array is, or is a part of, to `put`, for several nodes at a time, with
    /// the number of the first node.
    pub fn hand_over(
        &self,
        nodes: &[Node<T>],
        at: usize,
        mut put: impl FnMut(usize, &[T]) -> Result<()>,
    ) -> Result<()> {
        let Some(which) = self.variables.iter().position(|arrays| arrays.contains(&at)) else {
            return Ok(());
        };
        let before = self.variables[which].iter().take_while(|&&array| array != at);
        let first = before.map(|&array| self.lengths[array]).sum::<usize>();
        let own = first..first + self.lengths[at];
        let together = (AT_ONCE / self.lengths[at].max(1)).max(1);
        let mut values = Vec::with_capacity(together.min(nodes.len()) * self.lengths[at]);
        for (some, nodes) in nodes.chunks(together).enumerate() {
            values.clear();
            nodes.iter().for_each(|node| {
                values.extend_from_slice(&node.algorithm.variables()[which].1[own.clone()]);
            });
            put(some * together, &values)?;
        }
        Ok(())
    }

    /// Copies the variables back to all nodes; `fetch` reads each array by its number.
    pub fn give_back(
        &self,
        nodes: &mut [Node<T>],
        mut fetch: impl FnMut(usize, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        let mut all = Vec::new();
        for (which, arrays) in self.variables.iter().enumerate() {
            let mut first = 0;
            for &array in arrays {
                let length = self.lengths[array];
                all.resize(nodes.len() * length, T::zero());
                fetch(array, &mut all)?;
                for (i, node) in nodes.iter_mut().enumerate() {
                    let to = node.algorithm.variables_mut().swap_remove(which).1;
                    let own = &all[i * length..(i + 1) * length];
                    to[first..first + length].copy_from_slice(own);
                }
                first += length;
            }
        }
        Ok(())
    }

    /// Each node's sizes in the order of the algorithm's variables, from those of all arrays.
    pub fn sorted(&self, largest: &[f64]) -> Vec<Vec<f64>> {
        let worse = |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) };
        let one = |sizes: &[f64]| {
            let of = |arrays: &Vec<usize>| arrays.iter().map(|&at| sizes[at]).fold(0.0, worse);
            self.variables.iter().map(of).collect()
        };
        largest.chunks_exact(self.arrays.len()).map(one).collect()
    }
}
