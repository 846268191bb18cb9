//! A run as plain arrays, for the card and for its emulation; refuses runs that neither supports.

use lopa::algorithms::parts::steps::RULE;
use lopa::algorithms::update_rule::{Evaluation, Turn, UpdateRule, UsualRule, XUpdate};
use lopa::data::{Features, Samples, Stock};
use lopa::engine::Node;
use lopa::engine::device::Program;
use lopa::engine::list::{Array, Arrays, List};
use lopa::engine::variables::Variables;
use lopa::error::{Error, Result};
use lopa::math::real::{Real, cast};
use lopa::problem::builtin::activation::Activation;
use lopa::problem::builtin::goal::Goals;
use lopa::problem::builtin::loss::Loss;
use lopa::problem::derivative::Batches;
use lopa::problem::form::{Form, Per, Term};
use lopa::problem::oracle::{Draws, PROBE};

use crate::finds::{Finds, Measures};
use crate::job::{
    Common, HUBER, Job, LOGISTIC, PER_COLUMN, PER_GROUP, PER_ROW, PER_SAMPLE, RELU, SOFTMAX,
    SQUARED, TANH,
};

/// The most classes that the kernels support.
const CLASSES: usize = 64;

/// The most entries of a sparse matrix when zeros are filled in.
const ENTRIES: usize = 1 << 31;

/// The variables in the order of the kernels; r of D-SOBA takes the place of y.
pub const PLACES: [&str; 8] = ["theta", "d", "v", "h", "s", "z", "y", "x"];

/// The numbers of some of them.
pub const THETA: usize = 0;
pub const D: usize = 1;
pub const V: usize = 2;
pub const H: usize = 3;
pub const Y: usize = 6;
pub const X: usize = 7;

/// The running mean of θ among the variables of a node.
const MEAN: &str = "mean_theta";

/// The scheme of a listed rule in the kernels.
pub const LISTED: u32 = 4;

/// Features, row after row.
pub enum Table<T> {
    Bytes(Vec<u8>),
    Numbers(Vec<T>),
}

/// Which kernels compute d, h and s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Layers,
    Linear,
    Quadratic,
}

/// How an iteration moves.
pub enum Rule {
    Usual(Box<UsualRule>),
    Listed(List),
}

/// Derivatives at a point.
pub struct Evaluated<T: Real> {
    /// The arrays of x, θ and v, and for d, h and s.
    pub at: [usize; 3],
    pub into: [usize; 3],
    /// Whether all samples are g's.
    pub single: bool,
    /// Whether it measures curvatures, at the nodes that need it.
    pub probe: bool,
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

/// How large features are, over all processes: the largest number (0 for bytes), and a bound of the norms of rows; and whether the
/// columns are of similar size, as kernels of linear models need that split features.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extent {
    pub top: f32,
    pub norm: f32,
    pub even: bool,
}

/// Split features have the precision of f32 as long as no column is smaller than the largest by more than this.
const UNEVEN: f32 = 4096.0;

impl Extent {
    /// From the largest number of each column.
    pub fn new(norm: f32, tops: &[f32]) -> Extent {
        let top = tops.iter().copied().fold(0.0, f32::max);
        let even = tops.iter().all(|&own| own == 0.0 || own * UNEVEN >= top);
        Extent { top, norm, even }
    }
}

/// A run as plain arrays.
pub struct Plan<T: Real> {
    pub kind: Kind,
    pub rule: Rule,
    /// The rule that finds step sizes, if there is one.
    pub finds: Option<Finds>,
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
    /// How large features are.
    pub extent: Extent,
    /// Of g and of f: where each node's samples start, and their rows; no rows where there is no
    /// table.
    pub own: [Vec<u32>; 2],
    pub owned: [Vec<u32>; 2],
    /// Of each row of the table: its class, or the numbers to predict.
    pub labels: Vec<u32>,
    pub targets: Vec<T>,
    pub table: Table<T>,
    pub shift: Vec<T>,
    /// Of the losses of the first evaluation.
    pub weights: Vec<T>,
    pub coefficients: [Vec<T>; 12],
    /// Units of each hidden layer.
    pub units: Vec<u32>,
    /// The group of each row of θ, and where each group starts.
    pub groups: [Vec<u32>; 2],
    /// The arrays of a node, those of [`PLACES`] first, and the variables in them.
    pub arrays: Vec<Array>,
    pub variables: Variables,
    /// The evaluations of an iteration.
    pub evaluations: Vec<Evaluated<T>>,
    /// Halves of each number in products on tensor cores: 2, or 1 where less precision will do.
    pub terms: u32,
    /// c of the losses of g and f, of each node.
    scales: Vec<[f64; 2]>,
}

/// The byte that represents 1 in this unit.
fn byte_of_one(unit: f64) -> Option<u8> {
    let near = (1.0 / unit).round();
    ((1.0..=255.0).contains(&near) && (near * unit - 1.0).abs() < 1e-15).then_some(near as u8)
}

pub fn refused(why: impl std::fmt::Display) -> Error {
    Error::config("device/refused", format!("the device cannot run this: {why}"))
        .at("run.device")
        .hint("change that, or run it on the processor: `device = \"cpu\"`")
}

/// The number of blocks of a launch; an error if there are too many.
pub fn blocks(count: u64) -> Result<u32> {
    match u32::try_from(count) {
        Ok(count) if count < 1 << 31 => Ok(count),
        _ => Err(refused("too many nodes for one launch")),
    }
}

impl<T: Real> Plan<T> {
    pub fn new(program: &Program<T>) -> Result<Plan<T>> {
        let Program { nodes, company, mixing, seed, k, rounds, .. } = *program;
        let rule = nodes[0].algorithm.update_rule().map_err(refused)?;
        let array = |(at, name): (usize, &&'static str)| Array { name, wide: at >= 4 };
        let mut arrays = Arrays(PLACES.iter().enumerate().map(array).collect());
        let mut evaluations = rule.evaluations();
        let finder = rule.finder();
        if finder.is_some() && nodes.len() < mixing.nodes() {
            return Err(refused("step sizes that are found, in several processes"));
        }
        let measures = finder.filter(|finder| finder.given.measures()).map(|_| {
            let mut number = |name| arrays.number(name, false);
            let old = ["old_d", "old_h"].map(&mut number);
            let [hess, w, product] = ["hess", "probe", "product"].map(number);
            evaluations.push(Evaluation::probe("probe", "product"));
            Measures { old, hess, w, product, probe: evaluations.len() - 1 }
        });
        let points: Vec<_> = evaluations.iter().map(|of| arrays.point(of)).collect();
        let mut joined = Vec::new();
        let mut turns = [Turn::default(); 3];
        let (rule, draws, scheme) = match rule {
            UpdateRule::Usual(rule) => {
                joined.push(("r", vec!["y"]));
                turns = rule.x.turns();
                let scheme = match rule.x {
                    XUpdate::Tracking => 0,
                    XUpdate::Local => 1,
                    XUpdate::Alone => 2,
                    XUpdate::Combined => 3,
                };
                let draws = rule.draws;
                (Rule::Usual(rule), draws, scheme)
            }
            UpdateRule::Listed(rule) => {
                let list = List::new(&rule, &mut arrays);
                joined = rule.joined;
                (Rule::Listed(list), rule.draws, LISTED)
            }
        };
        let has = |name| nodes[0].algorithm.variables().iter().any(|(known, _)| *known == name);
        let finds = finder.map(|finder| -> Result<Finds> {
            let of = |node: &Node<T>| node.algorithm.update_rule().map(|rule| rule.finder());
            let units = nodes.iter().map(|node| Ok(of(node)?.map_or(1.0, |finder| finder.unit)));
            let units = units.collect::<Result<_, _>>().map_err(|why: &str| refused(why))?;
            let rule = arrays.number(RULE, false);
            let mean = has(MEAN).then(|| arrays.number(MEAN, false));
            Ok(Finds { finder, units, turns, rule, mean, measures })
        });
        let finds = finds.transpose()?;
        let variables = Variables::new(&nodes[0], &arrays, &joined, scheme == LISTED);
        let mut variables = variables.map_err(|name| {
            refused(format!("the algorithm's variable `{name}` has no place there"))
        })?;
        let [p, n] = [THETA, X].map(|at| variables.lengths[at]);
        if finds.is_some() {
            // Arrays that are no variables.
            let own = variables.lengths.iter_mut().zip(&arrays.0).skip(PLACES.len());
            for (length, array) in own.filter(|(length, _)| **length == 0) {
                *length = if array.wide { n } else { p };
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
            finds,
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
            extent: Extent::default(),
            own: [Vec::new(), Vec::new()],
            owned: [Vec::new(), Vec::new()],
            labels: Vec::new(),
            targets: Vec::new(),
            table: Table::Numbers(Vec::new()),
            shift: Vec::new(),
            weights: Vec::new(),
            coefficients: Default::default(),
            units: Vec::new(),
            groups: Default::default(),
            arrays: arrays.0,
            variables,
            evaluations: Vec::new(),
            terms: if rounds { 1 } else { 2 },
            scales: Vec::new(),
        };
        plan.take_forms(nodes)?;
        for (evaluation, (at, into)) in evaluations.iter().zip(points) {
            let job = plan.drawn(program, evaluation, draws)?;
            let Evaluation { single, probe, .. } = *evaluation;
            let weights = plan.weighed(&job, single);
            plan.evaluations.push(Evaluated { at, into, single, probe, job, weights });
        }
        (plan.job, plan.weights) = (plan.evaluations[0].job, plan.evaluations[0].weights.clone());
        Ok(plan)
    }

    /// The minibatches of an evaluation: of d ξ₁, of h ξ₂ and ς₁, of s ξ₃ and ς₂.
    fn drawn(&self, program: &Program<T>, evaluation: &Evaluation, draws: Draws) -> Result<Job<T>> {
        let Batches { grad_g, hess_g, cross_g, grad_theta_f, grad_x_f } = program.batches;
        let [xi1, xi2, xi3] = draws.xi;
        let xi2 = if evaluation.probe { PROBE } else { xi2 };
        let [sigma1, sigma2] = draws.sigma;
        let samples: Vec<_> = program.nodes.iter().map(|node| node.oracle.samples()).collect();
        let [d, h, s] = evaluation.into.map(|array| array.is_some());
        // ∇_x g in place of ∇_x f, on the same samples as ∇_θ g.
        let of_x = if evaluation.single { (xi1, grad_g, 1) } else { (sigma2, grad_x_f, 0) };
        let all = [
            (d, (xi1, grad_g, 1)),
            (h, (xi2, hess_g, 1)),
            (s && !evaluation.single, (xi3, cross_g, 1)),
            (h && !evaluation.probe, (sigma1, grad_theta_f, 0)),
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
            std::array::from_fn::<T, 5, _>(|at| match job.size[at] {
                0 => T::zero(),
                size => T::of(c[at] / f64::from(size)),
            })
        };
        self.scales.iter().flat_map(of_node).collect()
    }

    fn take_forms(&mut self, nodes: &[Node<T>]) -> Result<()> {
        let first = nodes[0].oracle.form().map_err(refused)?;
        match &first {
            Form::Code(_) => {
                return Err(refused("a problem in Python")
                    .hint("run it where its framework has its arrays: `device = \"framework\"`"));
            }
            Form::Quadratic(quadratic) => {
                self.job.outputs = quadratic.coefficients[4].len() as u32;
                self.job.samples = quadratic.samples as u32;
            }
            Form::Linear { inner, loss, columns, bias, per, .. } => {
                self.kind = Kind::Linear;
                self.take_loss(*loss, *columns)?;
                self.take_table(inner.samples, *bias)?;
                self.job.per = match *per {
                    Per::Row => PER_ROW,
                    Per::Group(of) => {
                        let starts = (0..of.len()).filter(|&q| q == 0 || of[q] != of[q - 1]);
                        let starts = starts.chain([of.len()]).map(|q| q as u32).collect();
                        self.groups = [of.to_vec(), starts];
                        PER_GROUP
                    }
                    Per::Column => PER_COLUMN,
                    Per::Sample { first, ridge } => {
                        (self.job.offset, self.job.ridge) = (first as u32, ridge);
                        PER_SAMPLE
                    }
                };
            }
            Form::Layers { inner, loss, columns, units, bias, activation, ridge, .. } => {
                self.kind = Kind::Layers;
                self.take_loss(*loss, *columns)?;
                self.take_table(inner.samples, false)?;
                self.units = units.iter().map(|&units| units as u32).collect();
                self.job.units = self.units.last().copied().unwrap_or(0);
                (self.job.bias, self.job.ridge) = (u32::from(*bias), *ridge);
                self.job.tanh = match activation {
                    Activation::Sigmoid => 0,
                    Activation::Tanh => TANH,
                    Activation::Relu => RELU,
                };
            }
        }
        for own in &mut self.own {
            own.push(0);
        }
        let mut goals = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
        for node in nodes {
            self.take_form(node.oracle.form().map_err(refused)?, &first, &mut goals)?;
        }
        self.take_goals(goals);
        Ok(())
    }

    fn take_loss(&mut self, loss: Loss, columns: usize) -> Result<()> {
        if columns > CLASSES {
            return Err(refused(format!("more than {CLASSES} classes, or numbers to predict")));
        }
        self.job.classes = columns as u32;
        self.job.loss = match loss {
            Loss::Softmax => SOFTMAX,
            Loss::Logistic => LOGISTIC,
            Loss::Squared => SQUARED,
            Loss::Huber(delta) => {
                self.job.delta = T::of(delta);
                HUBER
            }
            Loss::Cox => return Err(refused("the loss `cox`, which is of all rows together")),
        };
        Ok(())
    }

    /// What the samples of g and of f are trained on goes to their rows. Where x has an entry for each training sample, and
    /// each may have a label of its own, a row of the table becomes a sample: those of g first.
    fn take_goals(&mut self, goals: [(Vec<u32>, Vec<T>); 2]) {
        if self.kind == Kind::Quadratic {
            return;
        }
        if self.job.per == PER_SAMPLE {
            let rows = self.owned.concat();
            let features = self.job.features as usize;
            let row = |row: &u32| *row as usize * features..(*row as usize + 1) * features;
            match &mut self.table {
                Table::Bytes(all) => {
                    *all = rows.iter().flat_map(|of| &all[row(of)]).copied().collect();
                }
                Table::Numbers(all) => {
                    *all = rows.iter().flat_map(|of| &all[row(of)]).copied().collect();
                }
            }
            let mut numbers = 0..;
            for owned in &mut self.owned {
                owned.iter_mut().zip(&mut numbers).for_each(|(row, number)| *row = number);
            }
        }
        let rows = match &self.table {
            Table::Bytes(all) => all.len(),
            Table::Numbers(all) => all.len(),
        } / self.job.features.max(1) as usize;
        let columns = self.job.classes as usize;
        for (owned, (labels, targets)) in self.owned.iter().zip(goals) {
            if !labels.is_empty() {
                self.labels.resize(rows, 0);
                owned
                    .iter()
                    .zip(labels)
                    .for_each(|(&row, label)| self.labels[row as usize] = label);
            }
            if !targets.is_empty() {
                self.targets.resize(rows * columns, T::zero());
                for (&row, own) in owned.iter().zip(targets.chunks_exact(columns)) {
                    self.targets[row as usize * columns..][..columns].copy_from_slice(own);
                }
            }
        }
    }

    fn take_form(
        &mut self,
        form: Form<T>,
        first: &Form<T>,
        goals: &mut [(Vec<u32>, Vec<T>); 2],
    ) -> Result<()> {
        if let Form::Linear { per: Per::Sample { first, .. }, .. } = form
            && first != (self.job.offset + self.own[0].last().copied().unwrap_or(0)) as usize
        {
            return Err(refused("nodes whose samples are not one after the other in x"));
        }
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
                Form::Linear { inner, outer, .. } | Form::Layers { inner, outer, .. },
                Form::Linear { inner: first, .. } | Form::Layers { inner: first, .. },
            ) => {
                self.scales.push([inner.c, outer.c]);
                for (side, term) in [&inner, &outer].into_iter().enumerate() {
                    let Term { goals: own, .. } = term;
                    match own {
                        Goals::Classes(classes) => goals[side].0.extend(classes),
                        Goals::Numbers { values, .. } => goals[side].1.extend(values),
                    }
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

    /// The features; with `bias`, one more that is 1.
    fn take_table(&mut self, samples: &Samples<T>, bias: bool) -> Result<()> {
        let features = samples.cols();
        let all = features + usize::from(bias);
        self.job.features = all as u32;
        self.job.stride = all.next_multiple_of(4) as u32;
        self.job.unit = T::one();
        match samples.table() {
            Stock::Bytes { bytes, unit, shift } if !bias => {
                self.table = Table::Bytes(bytes.to_vec());
                (self.job.bytes, self.job.unit, self.shift) = (1, T::of(unit), cast(shift));
            }
            Stock::Bytes { bytes, unit, shift } => match byte_of_one(unit) {
                Some(one) => {
                    let rows = bytes.chunks_exact(features.max(1));
                    self.table = Table::Bytes(
                        rows.flat_map(|row| row.iter().copied().chain([one])).collect(),
                    );
                    (self.job.bytes, self.job.unit, self.shift) = (1, T::of(unit), cast(shift));
                    self.shift.push(T::zero());
                }
                None => {
                    let value = |q: usize, byte: u8| T::of(unit * (f64::from(byte) - shift[q]));
                    let row = |row: &[u8]| {
                        let own = row.iter().enumerate().map(|(q, &byte)| value(q, byte));
                        own.chain([T::one()]).collect::<Vec<T>>()
                    };
                    let rows = bytes.chunks_exact(features.max(1));
                    self.table = Table::Numbers(rows.flat_map(row).collect());
                }
            },
            Stock::Numbers(Features::Dense { values, .. }) if !bias => {
                self.table = Table::Numbers(cast(values));
            }
            Stock::Numbers(stored) => {
                if stored.rows().saturating_mul(all) > ENTRIES {
                    return Err(refused(
                        "sparse features that are too many once zeros are filled in",
                    ));
                }
                let mut table = vec![T::zero(); stored.rows() * all];
                for (row, to) in table.chunks_exact_mut(all).enumerate() {
                    stored.each(row, |q, value| to[q] = T::of(value));
                    if bias {
                        to[features] = T::one();
                    }
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
            Rule::Usual(rule) => {
                let UsualRule { alpha, beta, lambda, gamma, tau, .. } = **rule;
                // In place of those that are found, zeros.
                let given = [alpha, beta, lambda].map(|step| step.map_or(0.0, |step| step.at(k)));
                to.extend(given.into_iter().chain([gamma.at(k), tau.at(k)]).map(T::of));
            }
            Rule::Listed(list) => to.extend(list.factors.iter().map(|factor| T::of(factor(k)))),
        }
    }

    /// Whether it is one hidden layer with biases, of sigmoids or tanh, and a softmax: what tensor cores compute.
    pub fn is_classifier(&self) -> bool {
        let job = &self.job;
        self.kind == Kind::Layers
            && self.units.len() == 1
            && job.bias == 1
            && job.tanh != RELU
            && job.loss == SOFTMAX
    }

    /// The arrays that an iteration of LoPA or D-SOBA mixes.
    pub fn mixed(&self) -> &'static [usize] {
        match &self.rule {
            Rule::Listed(_) => &[],
            Rule::Usual(rule) => match rule.x {
                XUpdate::Alone => &[],
                XUpdate::Local => &[X],
                XUpdate::Tracking | XUpdate::Combined => &[X, Y],
            },
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

    /// Whether features stay bytes.
    pub fn has_bytes(&self) -> bool {
        matches!(self.table, Table::Bytes(_)) && self.shift.iter().all(|&shift| shift == T::zero())
    }

    /// The list of a listed rule.
    pub fn list(&self) -> Option<&List> {
        match &self.rule {
            Rule::Usual(_) => None,
            Rule::Listed(list) => Some(list),
        }
    }

    /// The arrays of probes and their evaluation, if curvatures are measured.
    pub fn probe(&self) -> Option<(Measures, &Evaluated<T>)> {
        let measures = self.finds.as_ref().and_then(|finds| finds.measures)?;
        Some((measures, &self.evaluations[measures.probe]))
    }
}

#[cfg(test)]
mod tests {
    use super::Extent;

    /// Columns without features, and all bytes, are no reason for plain kernels.
    #[test]
    fn columns_of_very_different_sizes_are_uneven() {
        let even = |tops: &[f32]| Extent::new(1.0, tops).even;
        assert!(even(&[]) && even(&[3.0, 0.0, 0.001]));
        assert!(!even(&[1e4, 1.0]) && !even(&[1e-6, 0.0, 1.0]));
        assert_eq!(Extent::new(2.0, &[3.0, 7.0]).top, 7.0);
    }
}
