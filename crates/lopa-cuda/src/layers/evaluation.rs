//! The kernels of an evaluation, in order: a product each, as kernels/layers.cu says.

use lopa::math::real::Real;

use super::product::{Form, Product};
use super::scale;
use super::shape::word::{self, Of};
use super::shape::{BEHIND, Places, SPLITTERS, Shape, Single, TURNS};
use crate::driver::THREADS;
use crate::general::Launch;
use crate::halves::SUBNORMAL;
use crate::job::{Address, Job, PER_COLUMN, PER_GROUP, PER_ROW, PER_SAMPLE, RELU};
use crate::plan::Plan;

/// Scales of activations, which are at most 1, and of x.
const ACTIVATIONS: f32 = 8192.0;
const WEIGHTS: f32 = 64.0;

/// Entries of θ and v that a thread of `tops` reads.
const SOME: u32 = 4;

/// A kernel of an evaluation. Its parameters are those of a product or, without one, the job; later kernels need not wait for one
/// that is `beside` them.
#[derive(Clone)]
pub struct Wanted {
    pub launch: Launch,
    pub product: Option<Box<Product>>,
    pub beside: bool,
}

/// The kernels of an evaluation, in order. `moved`: the buffer of x that `move` has written just before, if it has, and whether it has
/// split. Of a product alone there is no s. `on`: the most shared memory of a block, and whether the card is a Hopper card.
pub fn kernels<T: Real>(
    plan: &Plan<T>,
    job: &Job<T>,
    (moved, with_s): (Option<(usize, bool)>, bool),
    on: (usize, bool),
) -> Vec<Wanted> {
    let shape = Shape::new(plan, job);
    let places = Places::new(&shape, job.hidden);
    let of = Evaluation { plan, job, places, shape, moved, with_s, on };
    let mut all = of.halves();
    all.extend((0..shape.units.len()).map(|l| of.forward(l)));
    if shape.linear() {
        all.extend(of.crossed());
        if let Some(single) = shape.single() {
            all.extend(of.single(single));
            return all;
        }
        all.extend(of.head());
        all.push(of.outer());
        all.extend(of.cleaned());
        return all;
    }
    all.extend(of.head());
    all.push(of.outer());
    if with_s {
        for l in (0..shape.units.len()).rev() {
            all.push(of.errors(l));
            all.push(of.backward(l));
        }
    }
    all
}

struct Evaluation<'a, T: Real> {
    plan: &'a Plan<T>,
    job: &'a Job<T>,
    shape: Shape<'a>,
    places: Places,
    moved: Option<(usize, bool)>,
    with_s: bool,
    on: (usize, bool),
}

/// Bytes of a node.
fn node(rows: u32, row: u32) -> u64 {
    u64::from(rows) * u64::from(row)
}

fn number<T: Real>(value: T) -> f32 {
    Real::to_f64(value) as f32
}

/// Whether all are multiples of four.
fn even(numbers: &[u32]) -> u32 {
    u32::from(numbers.iter().all(|number| number % 4 == 0))
}

/// Blocks of `cleaned`; see kernels/crossed.cuh.
pub fn cleaners<T: Real>(job: &Job<T>) -> u64 {
    const EACH: u32 = 4;
    u64::from(job.m) * u64::from(job.n.div_ceil(THREADS * EACH))
}

/// Whether `move` splits θ, v and x. Where they are large, one kernel takes longer to write numbers and halves than two do (measured on
/// an H200). The same in all processes.
pub fn splits<T: Real>(plan: &Plan<T>) -> bool {
    let all = |numbers: u32| u64::from(plan.total) * u64::from(numbers);
    let of_x = if plan.units.is_empty() { 0 } else { all(plan.job.n) };
    all(plan.job.p) <= 500_000 && of_x <= 4_000_000
}

/// Blocks of a `move` that splits: those that move θ and v, and whether they move all of x as well; see kernels/layers.cu.
pub fn turners<T: Real>(plan: &Plan<T>, job: &Job<T>) -> (u64, bool) {
    let shape = Shape::new(plan, job);
    let blocks = u64::from(job.m) * u64::from(shape.pieces(THREADS));
    (blocks, shape.linear() && job.per == PER_ROW)
}

/// A kernel whose parameters are the job.
fn alone(name: &str, threads: u32, blocks: u64) -> Wanted {
    let launch = Launch { name: name.into(), threads, shared: 0, blocks };
    Wanted { launch, product: None, beside: false }
}

impl<T: Real> Evaluation<'_, T> {
    fn known(&self, at: u64) -> Address {
        self.job.tops + 4 * at
    }

    fn of_layer(&self, l: usize, of: Of) -> Address {
        self.known(word::of_layer(l, of))
    }

    /// The same with ReLU, whose largest activation is measured; sigmoids and tanh are at most 1.
    fn if_relu(&self, l: usize, of: Of) -> Address {
        if self.job.tanh == RELU { self.of_layer(l, of) } else { 0 }
    }

    /// Whether the inputs of a layer are bytes, and what sums of them are multiplied by.
    fn bytes(&self, l: usize) -> (bool, f32) {
        let bytes = l == 0 && self.job.bytes == 1;
        (bytes, if bytes { number(self.job.unit) } else { 1.0 })
    }

    /// What all products have.
    fn shared(&self) -> Product {
        Product {
            awake: self.job.awake,
            parts: 1,
            many: self.job.many,
            unit: 1.0,
            activation: self.job.tanh,
            left_is: ACTIVATIONS,
            right_is: WEIGHTS,
            left_most: 1.0,
            right_behind: BEHIND,
            to_behind: BEHIND,
            ..Product::default()
        }
    }

    /// The rows of a layer's inputs, as first factors; after the last layer, of the head's.
    fn rows(&self, l: usize) -> Product {
        let Evaluation { plan, job, shape, places, .. } = self;
        let shared = Product { each: job.drawn, ..self.shared() };
        if l > 0 {
            return Product {
                left: places.hidden[l - 1],
                left_by: self.if_relu(l - 1, Of::HiddenBy),
                left_top: self.if_relu(l - 1, Of::HiddenTop),
                left_row: shape.of_hidden(l - 1),
                ..shared
            };
        }
        let (left_is, left_most) = match self.bytes(0) {
            (true, unit) => (1.0 / SUBNORMAL, 255.0 * unit),
            (false, _) => (scale(plan), plan.extent.top),
        };
        let left_most = left_most.max(1.0);
        let (left, picks, left_row) = (job.table, job.picks, job.stride);
        Product { left, picks, left_row, left_is, left_most, ..shared }
    }

    /// The weights of a layer, as second factors.
    fn weights(&self, l: usize, product: Product) -> Product {
        let other = matches!(self.moved, Some((1, _)));
        let top = if other { Of::OtherWeightTop } else { Of::WeightTop };
        Product {
            right: self.places.weights[l],
            right_top: self.of_layer(l, top),
            right_node: node(self.shape.inputs(l), self.shape.of_units(l)),
            right_row: self.shape.of_units(l),
            ..product
        }
    }

    /// θ and v, as second factors.
    fn heads(&self, product: Product) -> Product {
        let halves = self.shape.heads();
        Product {
            right: self.places.heads,
            right_by: self.known(word::HEAD_BY),
            right_top: self.known(word::HEAD_TOP),
            right_node: node(self.shape.terms_of_scores(), halves.row),
            right_row: halves.row,
            right_behind: halves.behind,
            ..product
        }
    }

    fn ready(&self, mut product: Product, form: Form) -> Wanted {
        let first = matches!(form, Form::Forward { .. }) && product.left == self.job.table
            || matches!(form, Form::Head { .. }) && self.shape.linear();
        product.fresh = u32::from(first && self.split().is_some());
        let launch = product.launch(self.job.m, form, self.plan.terms, self.on);
        // Nothing needs d, h and s before the next iteration; the last kernel has nothing beside it.
        let beside = match form {
            Form::Outer { .. } => self.with_s && (!self.shape.linear() || self.shape.cleans()),
            Form::Backward { .. } => product.to[0] != self.job.s,
            _ => false,
        };
        Wanted { launch, product: Some(Box::new(product)), beside }
    }

    /// θ, v and x as halves, unless `move` has left them.
    fn halves(&self) -> Vec<Wanted> {
        let Evaluation { job, shape, .. } = self;
        let m = u64::from(job.m);
        let of_x = (0..shape.units.len()).map(|l| u64::from(shape.blocks(l))).sum::<u64>();
        let pieces = u64::from(shape.pieces(SPLITTERS * TURNS));
        let tops = || alone("tops", SPLITTERS, m * u64::from(job.p.div_ceil(SPLITTERS * SOME)));
        let halves = || alone("halves", SPLITTERS, m * (pieces + of_x));
        match self.moved {
            Some((_, true)) => Vec::new(),
            Some((_, false)) => vec![halves()],
            None => vec![tops(), halves()],
        }
    }

    /// The buffer of x that `move` has split just before, if it has.
    fn split(&self) -> Option<usize> {
        self.moved.and_then(|(x, split)| split.then_some(x))
    }

    /// Activations of a layer.
    fn forward(&self, l: usize) -> Wanted {
        let Evaluation { job, shape, places, .. } = self;
        let (bytes, unit) = self.bytes(l);
        let inputs = shape.inputs(l);
        let product = Product {
            down: job.drawn,
            across: shape.units[l],
            deep: [if bytes { inputs - shape.bias } else { inputs }; 3],
            to: [places.hidden[l]; 3],
            to_by: self.of_layer(l, Of::HiddenBy),
            to_top: self.if_relu(l, Of::HiddenTop),
            to_node: node(job.drawn, shape.of_hidden(l)),
            to_row: shape.of_hidden(l),
            bias: u32::from(bytes) * shape.bias,
            unit,
            ..self.weights(l, self.rows(l))
        };
        self.ready(product, Form::Forward { bytes })
    }

    /// Scores and, from these, slopes of the losses.
    fn head(&self) -> Vec<Wanted> {
        let Evaluation { plan, job, shape, places, .. } = self;
        let (bytes, unit) = self.bytes(shape.units.len());
        let (terms, slopes) = (shape.terms_of_scores(), shape.slopes());
        // Times the largest entry of θ and v, a bound of scores.
        let most = terms as f32;
        let left_most = if shape.linear() { plan.extent.norm * most.sqrt() } else { most };
        let product = Product {
            down: if shape.linear() && !shape.cleans() { shape.front() } else { job.drawn },
            across: 2 * job.classes,
            deep: [terms, shape.summed(), shape.summed()],
            parts: shape.parts(),
            sums: places.sums,
            sums_row: shape.sums_row(),
            to: [places.slopes; 3],
            to_by: self.known(word::SLOPE_BY),
            to_top: self.known(word::SLOPE_TOP),
            to_node: node(job.drawn, slopes.row),
            to_row: slopes.row,
            to_behind: slopes.behind,
            samples: job.picks,
            labels: job.labels,
            targets: job.targets,
            weights: job.weights,
            target_top: self.known(word::TARGET_TOP),
            start: job.start,
            loss: job.loss,
            delta: number(job.delta),
            adds: job.adds,
            x: if shape.cleans() { job.x } else { [0; 2] },
            n: job.n,
            offset: job.offset,
            unit,
            ..self.heads(self.rows(shape.units.len()))
        };
        let product = Product { left_most, ..product };
        let mut all = vec![self.ready(product, Form::Head { bytes })];
        if product.parts > 1 {
            let launch = product.of_parts(job.m);
            all.push(Wanted { launch, product: Some(Box::new(product)), beside: false });
        }
        all
    }

    /// d, h and, where it is wanted, the product with v in h.
    fn outer(&self) -> Wanted {
        let (bytes, _) = self.bytes(self.shape.units.len());
        self.ready(self.directions(), Form::Outer { bytes })
    }

    /// The same of a linear model with one column of weights, each row of which is read once.
    fn single(&self, Single { steps, slices, chunks }: Single) -> Vec<Wanted> {
        let Evaluation { job, places, .. } = self;
        let product = Product {
            across: slices,
            chunks,
            labels: job.labels,
            targets: job.targets,
            weights: job.weights,
            start: job.start,
            loss: job.loss,
            delta: number(job.delta),
            sums: places.sums,
            ..self.directions()
        };
        let of = u64::from(job.m) * u64::from(product.parts);
        let wanted = |name: String, threads: u32, each: u32| {
            let launch = Launch { name, threads, shared: 0, blocks: of * u64::from(each) };
            Wanted { launch, product: Some(Box::new(product)), beside: false }
        };
        let mut all = vec![wanted(format!("single_{steps}"), 256, chunks)];
        if chunks > 1 {
            all.push(wanted("chunks".into(), THREADS, product.down.div_ceil(THREADS)));
        }
        all
    }

    /// The products that give d, h and, where it is wanted, the product with v in h.
    fn directions(&self) -> Product {
        let Evaluation { job, shape, places, .. } = self;
        let (_, unit) = self.bytes(shape.units.len());
        let [xi1, xi2, sigma1, ..] = job.size;
        let (second, slopes) = (job.start[1], shape.slopes());
        Product {
            right: places.slopes,
            right_by: self.known(word::SLOPE_BY),
            right_node: node(job.drawn, slopes.row),
            right_row: slopes.row,
            right_behind: slopes.behind,
            right_first: [0, node(second, slopes.row), node(second, slopes.row)],
            parts: if job.hess == 0 { 2 } else { 3 },
            first: [0, second, second],
            deep: [xi1, xi2 + sigma1, xi2],
            down: shape.terms_of_scores(),
            across: job.classes,
            to: [job.d, job.h, job.hess],
            to_top: self.split().map_or(0, |x| self.known(word::DIRECTION_TOP + x as u64)),
            to_node: 4 * u64::from(job.p),
            to_row: 4 * job.classes,
            with: [job.theta, job.v, job.v],
            with_node: 4 * u64::from(job.p),
            with_row: 4 * job.classes,
            even: even(&[job.p, job.classes]),
            ridge: number(if shape.linear() { job.ridge + job.ridge } else { job.ridge }),
            x: if shape.linear() && !shape.cleans() { job.x } else { [0; 2] },
            group: job.group,
            per: job.per,
            n: job.n,
            unit,
            ..self.rows(shape.units.len())
        }
    }

    /// s of a linear model where x has entries for groups or classes; `move` and `halves` compute those of features.
    fn crossed(&self) -> Option<Wanted> {
        let threads = u64::from(self.job.m) * u64::from(self.job.n) * 32;
        let wanted = self.with_s && matches!(self.job.per, PER_GROUP | PER_COLUMN);
        let crossed = || alone("crossed", THREADS, threads.div_ceil(THREADS.into()));
        wanted.then(|| Wanted { beside: true, ..crossed() })
    }

    /// s where x has an entry for each sample.
    fn cleaned(&self) -> Option<Wanted> {
        let wanted = self.with_s && self.job.per == PER_SAMPLE;
        wanted.then(|| alone("cleaned", THREADS, cleaners(self.job)))
    }

    /// Errors of a layer, from the slopes or from those of the layer above.
    fn errors(&self, l: usize) -> Wanted {
        let Evaluation { job, shape, places, .. } = self;
        let (front, back) = (shape.front(), shape.back());
        let above = if l + 1 == shape.units.len() {
            self.heads(Product {
                left: places.slopes,
                left_by: self.known(word::SLOPE_BY),
                left_top: self.known(word::SLOPE_TOP),
                each: job.drawn,
                first: [front; 3],
                left_row: shape.slopes().row,
                deep: [2 * job.classes; 3],
                ..self.shared()
            })
        } else {
            let above = Product {
                left: places.errors[l + 1],
                left_by: self.of_layer(l + 1, Of::ErrorBy),
                left_top: self.of_layer(l + 1, Of::ErrorTop),
                each: back,
                left_row: shape.of_units(l + 1),
                deep: [shape.units[l + 1]; 3],
                ..self.shared()
            };
            self.weights(l + 1, above)
        };
        let product = Product {
            down: back,
            across: shape.units[l],
            to: [places.errors[l]; 3],
            to_by: self.of_layer(l, Of::ErrorBy),
            to_top: self.of_layer(l, Of::ErrorTop),
            to_node: node(back, shape.of_units(l)),
            to_row: shape.of_units(l),
            with: [places.hidden[l] + node(front, shape.of_hidden(l)); 3],
            with_by: self.if_relu(l, Of::HiddenBy),
            with_node: node(job.drawn, shape.of_hidden(l)),
            with_row: shape.of_hidden(l),
            ..above
        };
        self.ready(product, Form::Errors)
    }

    /// s of a layer.
    fn backward(&self, l: usize) -> Wanted {
        let Evaluation { job, shape, places, .. } = self;
        let (bytes, unit) = self.bytes(l);
        let (back, units, offset) = (shape.back(), shape.units[l], shape.offset(l));
        let product = Product {
            first: [shape.front(); 3],
            right: places.errors[l],
            right_by: self.of_layer(l, Of::ErrorBy),
            right_node: node(back, shape.of_units(l)),
            right_row: shape.of_units(l),
            deep: [back; 3],
            down: shape.inputs(l),
            across: units,
            to: [job.s + 4 * u64::from(offset); 3],
            to_node: 4 * u64::from(job.n),
            to_row: 4 * units,
            even: even(&[job.n, units, offset]),
            bias: shape.bias,
            unit,
            ..self.rows(l)
        };
        self.ready(product, Form::Backward { bytes })
    }
}
