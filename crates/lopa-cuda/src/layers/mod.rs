//! `representation` in f32 on the tensor cores of any card (kernels/layers.cu): any number of hidden layers, any
//! activation, any loss. Everything but the evaluations is as with plain kernels.

mod product;

use lopa::error::Result;
use lopa::math::real::Real;

pub use product::Product;
use product::{Form, depth};

use crate::driver::Card;
use crate::general::{Launch, ORDER, table};
use crate::halves::{SUBNORMAL, power_below};
use crate::job::{Address, Common, Job, RELU, Scalar};
use crate::plan::{Kind, Plan};
use crate::run::State;

/// Scales of activations, which are at most 1, and of x.
const ACTIVATIONS: f32 = 8192.0;
const WEIGHTS: f32 = 64.0;

/// Places of the words that each node has, then of those that each of its layers has: see kernels/layers.cu.
const HEAD_TOP: u64 = 0;
const HEAD_BY: u64 = 1;
const TARGET_TOP: u64 = 2;
const SLOPE_TOP: u64 = 3;
const SLOPE_BY: u64 = 4;
const LAYERS: u64 = 5;
const HIDDEN_TOP: u64 = 0;
const HIDDEN_BY: u64 = 1;
const ERROR_TOP: u64 = 2;
const ERROR_BY: u64 = 3;
const WEIGHT_TOP: u64 = 4;
const OF_LAYER: u64 = 5;

/// A layer, as kernels/layers.cu has it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Layer {
    to: Address,
    top: Address,
    rows: u32,
    units: u32,
    offset: u32,
    blocks: u32,
}

/// Columns that a thread of `halves` splits at once, threads of a block, turns of a thread.
const EIGHT: u32 = 8;
const SPLITTERS: u32 = 256;
const TURNS: u32 = 4;

/// Whether the kernels support this on a card of this compute capability.
pub fn can<T: Real>(plan: &Plan<T>, capability: [i32; 2]) -> bool {
    T::BYTES == 4 && plan.kind == Kind::Layers && capability[0] >= 8 && plan.job.features > 0
}

/// Bytes of a row of numbers as halves: see kernels/layers.cu.
fn row(numbers: u32, terms: u32) -> u32 {
    numbers.div_ceil(depth(terms)) * 128
}

/// Puts minibatches in the kernels' order, and sets how the kernels keep features; `stride` is in bytes.
pub fn order<T: Real>(plan: &mut Plan<T>) {
    let bytes = plan.has_bytes();
    let inputs = plan.job.features + 1;
    let stride = if bytes { inputs.next_multiple_of(16) } else { row(inputs, plan.terms) };
    let change = |job: &mut Job<T>| {
        job.common = job.common.ordered(ORDER);
        (job.stride, job.bytes) = (stride, u32::from(bytes));
    };
    change(&mut plan.job);
    for of in &mut plan.evaluations {
        change(&mut of.job);
        for own in of.weights.chunks_exact_mut(5) {
            own.copy_from_slice(&ORDER.map(|at| own[at]));
        }
    }
}

/// The scale of a table of numbers.
fn scale<T: Real>(plan: &Plan<T>) -> f32 {
    power_below(plan.top.max(1.0), 14)
}

/// Copies the features to the card, as bytes or as halves, with a 1 at the end of each row.
pub fn copy<T: Scalar>(card: &Card, state: &mut State<T>, plan: &Plan<T>) -> Result<Address> {
    let (scale, one) = if plan.has_bytes() { (1.0, 1.0) } else { (scale(plan), scale(plan)) };
    state.copy(card, &table(plan, plan.job.stride, scale, one))
}

/// Where the kernels keep what they compute: one piece of memory holds all of it.
struct Places {
    hidden: Vec<Address>,
    errors: Vec<Address>,
    weights: Vec<Address>,
    heads: Address,
    slopes: Address,
    tops: Address,
    /// Where it ends.
    end: Address,
}

/// Inputs of a layer, with the bias.
fn inputs(units: &[u32], job: &Common, bias: u32, l: usize) -> u32 {
    bias + if l == 0 { job.features } else { units[l - 1] }
}

/// Rows of the minibatches that s is a sum over.
fn back(job: &Common) -> u32 {
    job.size[3] + job.size[4]
}

/// Where x and s have the weights of a layer.
fn offset(units: &[u32], job: &Common, bias: u32, l: usize) -> u32 {
    (0..l).map(|l| inputs(units, job, bias, l) * units[l]).sum()
}

/// Words per node: see [`HEAD_TOP`] and those after it.
fn many(units: &[u32]) -> u32 {
    (LAYERS + OF_LAYER * units.len() as u64) as u32
}

impl Places {
    fn new(units: &[u32], job: &Common, bias: u32, terms: u32, start: Address) -> Places {
        let Common { m, classes, drawn, .. } = *job;
        let mut end = start;
        let mut take = |rows: u32, row: u32| {
            let place = end;
            end += (u64::from(m) * u64::from(rows) * u64::from(row)).next_multiple_of(256);
            place
        };
        let mut each = |sizes: &dyn Fn(usize) -> (u32, u32)| -> Vec<Address> {
            let sizes = (0..units.len()).map(sizes);
            sizes.map(|(rows, numbers)| take(rows, row(numbers, terms))).collect()
        };
        let hidden = each(&|l| (drawn, units[l] + 1));
        let errors = each(&|l| (back(job), units[l]));
        let weights = each(&|l| (inputs(units, job, bias, l), units[l]));
        let heads = take(units.last().map_or(0, |units| units + 1), row(2 * classes, terms));
        let slopes = take(drawn, row(2 * classes, terms));
        let tops = take(many(units), 4);
        Places { hidden, errors, weights, heads, slopes, tops, end }
    }
}

/// Gives an evaluation its memory.
pub fn place<T: Scalar>(
    card: &Card,
    state: &mut State<T>,
    plan: &Plan<T>,
    job: &mut Job<T>,
) -> Result<()> {
    let units = &plan.units[..];
    let at = |start| Places::new(units, &job.common, job.bias, plan.terms, start);
    let start = state.empty::<u8>(card, at(0).end as usize)?;
    let places = at(start);
    job.hidden = start;
    (job.heads, job.tops, job.many) = (places.heads, places.tops, many(units));
    let layer = |l: usize| {
        let rows = inputs(units, job, job.bias, l);
        Layer {
            to: places.weights[l],
            top: places.tops + 4 * (LAYERS + OF_LAYER * l as u64 + WEIGHT_TOP),
            rows,
            units: units[l],
            offset: offset(units, job, job.bias, l),
            blocks: (rows * units[l].div_ceil(EIGHT)).div_ceil(SPLITTERS * TURNS),
        }
    };
    let layers: Vec<Layer> = (0..units.len()).map(layer).collect();
    job.layers = state.copy(card, &layers)?;
    job.hidden_layers = units.len() as u32;
    Ok(())
}

/// A kernel of an evaluation. Its parameters are those of a product or, without one, the job; later kernels need not wait for one
/// that is `beside` them.
pub struct Wanted {
    pub launch: Launch,
    pub product: Option<Box<Product>>,
    pub beside: bool,
}

/// The kernels of an evaluation, in order; of a product alone there is no s. `on`: the most shared memory of a block, and whether
/// the card is a Hopper card.
pub fn kernels<T: Real>(
    plan: &Plan<T>,
    job: &Job<T>,
    with_s: bool,
    on: (usize, bool),
) -> Vec<Wanted> {
    let (units, terms, bias) = (&plan.units[..], plan.terms, job.bias);
    let Common { m, n, p, stride, classes, drawn, size, start, bytes, .. } = job.common;
    let (front, back) = (start[3], back(job));
    let bytes = bytes == 1;
    let last = units.len() - 1;
    let number = |value: T| Real::to_f64(value) as f32;
    let inputs = |l: usize| inputs(units, job, bias, l);
    let offset = |l: usize| offset(units, job, bias, l);
    let places = Places::new(units, job, bias, terms, job.hidden);
    let known = |at: u64| job.tops + 4 * at;
    let of_layer = |l: usize, at: u64| known(LAYERS + OF_LAYER * l as u64 + at);
    let node = |rows: u32, row: u32| u64::from(rows) * u64::from(row);
    let slopes = row(2 * classes, terms);
    let of_hidden = |l: usize| row(units[l] + 1, terms);
    let of_units = |l: usize| row(units[l], terms);
    // Sigmoids and tanh are at most 1; the largest ReLU is measured.
    let relu = job.tanh == RELU;
    let if_relu = |address: Address| if relu { address } else { 0 };
    let all_fours = |numbers: &[u32]| u32::from(numbers.iter().all(|number| number % 4 == 0));
    let shared = Product {
        awake: job.awake,
        parts: 1,
        many: job.many,
        unit: 1.0,
        activation: job.tanh,
        left_is: ACTIVATIONS,
        right_is: WEIGHTS,
        left_most: 1.0,
        ..Product::default()
    };
    let ready = |mut product: Product, form: Form| {
        let launch = product.launch(m, form, terms, on);
        // Nothing needs d, h and s before the next iteration; the last kernel has nothing beside it.
        let beside = match form {
            Form::Outer => with_s,
            Form::Backward { .. } => product.to[0] != job.s,
            _ => false,
        };
        Wanted { launch, product: Some(Box::new(product)), beside }
    };
    // The rows of a layer's inputs, as first factors.
    let rows = |l: usize| match l {
        0 if bytes => Product {
            left: job.table,
            picks: job.picks,
            each: drawn,
            left_row: stride,
            left_is: 1.0 / SUBNORMAL,
            left_most: (255.0 * number(job.unit)).max(1.0),
            ..shared
        },
        0 => Product {
            left: job.table,
            picks: job.picks,
            each: drawn,
            left_row: stride,
            left_is: scale(plan),
            left_most: plan.top.max(1.0),
            ..shared
        },
        _ => Product {
            left: places.hidden[l - 1],
            left_by: if_relu(of_layer(l - 1, HIDDEN_BY)),
            left_top: if_relu(of_layer(l - 1, HIDDEN_TOP)),
            each: drawn,
            left_row: of_hidden(l - 1),
            ..shared
        },
    };
    // The weights of a layer, as second factors.
    let weights = |l: usize, product: Product| Product {
        right: places.weights[l],
        right_top: of_layer(l, WEIGHT_TOP),
        right_node: node(inputs(l), of_units(l)),
        right_row: of_units(l),
        ..product
    };
    let heads = |product: Product| Product {
        right: places.heads,
        right_by: known(HEAD_BY),
        right_top: known(HEAD_TOP),
        right_node: node(units[last] + 1, slopes),
        right_row: slopes,
        ..product
    };
    let layer = |l: usize| u64::from(inputs(l) * units[l].div_ceil(EIGHT));
    let of_x = (0..=last).map(|l| layer(l).div_ceil(u64::from(SPLITTERS * TURNS))).sum::<u64>();
    let launch = Launch {
        name: "halves".into(),
        threads: SPLITTERS,
        shared: 0,
        blocks: u64::from(m) * (1 + of_x),
    };
    let mut all = vec![Wanted { launch, product: None, beside: false }];
    for l in 0..=last {
        let bytes = l == 0 && bytes;
        let product = Product {
            down: drawn,
            across: units[l],
            deep: [if bytes { inputs(l) - bias } else { inputs(l) }; 3],
            to: [places.hidden[l]; 3],
            to_by: of_layer(l, HIDDEN_BY),
            to_top: if_relu(of_layer(l, HIDDEN_TOP)),
            to_node: node(drawn, of_hidden(l)),
            to_row: of_hidden(l),
            bias: u32::from(bytes) * bias,
            unit: if bytes { number(job.unit) } else { 1.0 },
            ..weights(l, rows(l))
        };
        all.push(ready(product, Form::Forward { bytes }));
    }
    let activations = rows(last + 1);
    let product = Product {
        down: drawn,
        across: 2 * classes,
        deep: [units[last] + 1; 3],
        to: [places.slopes; 3],
        to_by: known(SLOPE_BY),
        to_top: known(SLOPE_TOP),
        to_node: node(drawn, slopes),
        to_row: slopes,
        samples: job.picks,
        labels: job.labels,
        targets: job.targets,
        weights: job.weights,
        target_top: known(TARGET_TOP),
        start,
        loss: job.loss,
        delta: number(job.delta),
        ..heads(activations)
    };
    all.push(ready(product, Form::Head));
    // d, h and, where it is wanted, the product with v in h.
    let product = Product {
        right: places.slopes,
        right_by: known(SLOPE_BY),
        right_node: node(drawn, slopes),
        right_row: slopes,
        right_first: [0, node(start[1], slopes), node(start[1], slopes)],
        parts: if job.hess == 0 { 2 } else { 3 },
        first: [0, start[1], start[1]],
        deep: [size[0], size[1] + size[2], size[1]],
        down: units[last] + 1,
        across: classes,
        to: [job.d, job.h, job.hess],
        to_node: 4 * u64::from(p),
        to_row: 4 * classes,
        with: [job.theta, job.v, job.v],
        with_node: 4 * u64::from(p),
        with_row: 4 * classes,
        even: all_fours(&[p, classes]),
        ridge: number(job.ridge),
        ..activations
    };
    all.push(ready(product, Form::Outer));
    if !with_s {
        return all;
    }
    // Errors of layer l from those above it.
    let errors = |l: usize, product: Product| Product {
        down: back,
        across: units[l],
        to: [places.errors[l]; 3],
        to_by: of_layer(l, ERROR_BY),
        to_top: of_layer(l, ERROR_TOP),
        to_node: node(back, of_units(l)),
        to_row: of_units(l),
        with: [places.hidden[l] + node(front, of_hidden(l)); 3],
        with_by: if_relu(of_layer(l, HIDDEN_BY)),
        with_node: node(drawn, of_hidden(l)),
        with_row: of_hidden(l),
        ..product
    };
    let above = Product {
        left: places.slopes,
        left_by: known(SLOPE_BY),
        left_top: known(SLOPE_TOP),
        each: drawn,
        first: [front; 3],
        left_row: slopes,
        deep: [2 * classes; 3],
        ..shared
    };
    all.push(ready(errors(last, heads(above)), Form::Errors));
    for l in (0..=last).rev() {
        let bytes = l == 0 && bytes;
        let product = Product {
            first: [front; 3],
            right: places.errors[l],
            right_by: of_layer(l, ERROR_BY),
            right_node: node(back, of_units(l)),
            right_row: of_units(l),
            deep: [back; 3],
            down: inputs(l),
            across: units[l],
            to: [job.s + 4 * u64::from(offset(l)); 3],
            to_node: 4 * u64::from(n),
            to_row: 4 * units[l],
            even: all_fours(&[n, units[l], offset(l)]),
            bias,
            unit: if bytes { number(job.unit) } else { 1.0 },
            ..rows(l)
        };
        all.push(ready(product, Form::Backward { bytes }));
        if l > 0 {
            let above = Product {
                left: places.errors[l],
                left_by: of_layer(l, ERROR_BY),
                left_top: of_layer(l, ERROR_TOP),
                each: back,
                left_row: of_units(l),
                deep: [units[l]; 3],
                ..shared
            };
            all.push(ready(errors(l - 1, weights(l, above)), Form::Errors));
        }
    }
    all
}
