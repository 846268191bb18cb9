//! `representation`, `hyperparameter` and `hyper-cleaning` in f32 on the tensor cores of any card (kernels/layers.cu): any number of
//! hidden layers, none in a linear model, any activation, any loss. Everything but the evaluations is as with plain kernels.

mod product;

use lopa::error::Result;
use lopa::math::real::Real;

pub use product::Product;
use product::{Form, depth};

use crate::driver::{Card, THREADS};
use crate::general::{Launch, ORDER, table};
use crate::halves::{SUBNORMAL, power_below};
use crate::job::{Address, Common, Job, PER_COLUMN, PER_GROUP, PER_ROW, PER_SAMPLE, RELU, Scalar};
use crate::plan::{Kind, Plan};
use crate::run::State;

/// Scales of activations, which are at most 1, and of x.
const ACTIVATIONS: f32 = 8192.0;
const WEIGHTS: f32 = 64.0;

/// Places of the words that each node has, then of those that each of its layers has: see kernels/layers.cu.
const HEAD_TOP: u64 = 2;
const HEAD_BY: u64 = 3;
const TARGET_TOP: u64 = 4;
const SLOPE_TOP: u64 = 5;
const SLOPE_BY: u64 = 6;
const LAYERS: u64 = 7;
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

/// Entries of θ and v that a thread of `tops` reads.
const SOME: u32 = 4;

/// Classes of a lane that splits θ and v.
const FOUR: u32 = 4;

/// Whether the kernels support this on a card of this compute capability.
pub fn can<T: Real>(plan: &Plan<T>, capability: [i32; 2]) -> bool {
    T::BYTES == 4 && plan.kind != Kind::Quadratic && capability[0] >= 8 && plan.job.features > 0
}

/// Multiprocessors of a large card.
const PROCESSORS: u32 = 132;

/// Whether the kernels are worth using. For at most two classes one block that does the whole iteration of a node takes less time,
/// unless there are few nodes with much work each. So do the plain kernels that were made for ten classes, in small minibatches of
/// bytes. The same in all processes.
pub fn should<T: Real>(plan: &Plan<T>, capability: [i32; 2]) -> bool {
    let of = &plan.evaluations[0].job;
    let work = f64::from(of.size[0] + of.size[1] + of.size[3]) * f64::from(of.features);
    let faster = if plan.has_bytes() { 2.0 } else { 1.0 };
    // Microseconds on an H200.
    let alone = 10.0 + f64::from(plan.total.div_ceil(PROCESSORS)) * work / (faster * 7e3);
    let together = 25.0 + f64::from(plan.total) * work / (faster * 450e3);
    let ten = of.classes == 10 && plan.has_bytes() && of.features <= 1024 && work < 150e3;
    let slower = of.per == PER_ROW && (of.classes <= 2 && alone < together || ten);
    can(plan, capability) && !(plan.kind == Kind::Linear && slower)
}

/// Pieces of a node's θ and v, one for a block. With hidden layers they are small, and one block splits them.
fn pieces(units: &[u32], job: &Common) -> u32 {
    let rows = TURNS * SPLITTERS / job.classes.div_ceil(FOUR).next_power_of_two();
    if units.is_empty() { job.features.div_ceil(rows) } else { 1 }
}

/// Blocks that keep a card busy, the rows of the smallest, and terms of a step.
const BUSY: u64 = 264;
const ROWS: u32 = 64;
const STEP: u32 = 64;

/// Terms of scores that a block sums up: fewer than all where there are few rows and many features. The same in all processes.
fn summed<T: Real>(plan: &Plan<T>, job: &Common) -> u32 {
    let (all, steps) = (terms_of_scores(&plan.units, job), job.features.div_ceil(STEP));
    let blocks = u64::from(plan.total) * u64::from(job.start[3].div_ceil(ROWS));
    let parts = (BUSY / blocks.max(1)).min(u64::from(steps / 2)) as u32;
    if !plan.units.is_empty() || steps < 6 || parts < 2 {
        return all;
    }
    steps.div_ceil(parts) * STEP
}

/// From a high half of a second factor to the low one.
const BEHIND: u32 = 64;

/// Bytes of a row of numbers that is a second factor only, and from a high half to the low one.
fn narrow(numbers: u32, terms: u32) -> (u32, u32) {
    let halves = (2 * numbers).next_multiple_of(16);
    match (numbers, terms) {
        (_, 1) => (halves, 0),
        (..=32, _) => (2 * halves, halves),
        _ => (row(numbers, terms), BEHIND),
    }
}

/// Rows of θ and v, and of slopes: only without hidden layers they are never first factors.
fn second_factors(units: &[u32], classes: u32, terms: u32) -> [(u32, u32); 2] {
    let wide = (row(2 * classes, terms), BEHIND);
    if units.is_empty() { [narrow(2 * classes, terms), narrow(classes, terms)] } else { [wide; 2] }
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
    let least = if plan.units.is_empty() { 0.0 } else { 1.0 };
    power_below(plan.extent.top.max(least), 14)
}

/// Copies the features to the card, as bytes or as halves, with a 1 at the end of each row.
pub fn copy<T: Scalar>(card: &Card, state: &mut State<T>, plan: &Plan<T>) -> Result<Address> {
    let scale = if plan.has_bytes() { 1.0 } else { scale(plan) };
    // A linear model has its bias among the features.
    let one = if plan.units.is_empty() { 0.0 } else { scale };
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
    sums: Address,
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

/// What scores are sums of: activations and the one that is 1, or features.
fn terms_of_scores(units: &[u32], job: &Common) -> u32 {
    units.last().map_or(job.features, |units| units + 1)
}

/// Numbers of a row of scores by θ and by v.
fn sums_row(classes: u32) -> u32 {
    (2 * classes).next_multiple_of(4)
}

/// Words per node: see [`HEAD_TOP`] and those after it.
fn many(units: &[u32]) -> u32 {
    (LAYERS + OF_LAYER * units.len() as u64) as u32
}

impl Places {
    fn new<T: Real>(plan: &Plan<T>, job: &Common, bias: u32, start: Address) -> Places {
        let (units, terms) = (&plan.units[..], plan.terms);
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
        let [(of_heads, _), (of_slopes, _)] = second_factors(units, classes, terms);
        let heads = take(terms_of_scores(units, job), of_heads);
        let slopes = take(drawn, of_slopes);
        let tops = take(many(units), 4);
        let parts = terms_of_scores(units, job).div_ceil(summed(plan, job).max(1));
        let sums = take(if parts > 1 { parts * drawn } else { 0 }, 4 * sums_row(classes));
        Places { hidden, errors, weights, heads, slopes, tops, sums, end }
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
    let at = |start| Places::new(plan, &job.common, job.bias, start);
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
    job.pieces = pieces(units, job);
    [(job.head_row, job.head_behind), _] = second_factors(units, job.classes, plan.terms);
    if job.per == PER_SAMPLE && units.is_empty() {
        job.adds = state.empty::<f32>(card, (job.m * job.drawn) as usize)?;
    }
    Ok(())
}

/// A kernel of an evaluation. Its parameters are those of a product or, without one, the job; later kernels need not wait for one
/// that is `beside` them.
#[derive(Clone)]
pub struct Wanted {
    pub launch: Launch,
    pub product: Option<Box<Product>>,
    pub beside: bool,
}

/// The kernels of an evaluation, in order. `moves`: the kernel before them has moved θ and v. Of a product alone there is no s. `on`:
/// the most shared memory of a block, and whether the card is a Hopper card.
pub fn kernels<T: Real>(
    plan: &Plan<T>,
    job: &Job<T>,
    [moves, with_s]: [bool; 2],
    on: (usize, bool),
) -> Vec<Wanted> {
    let (units, terms, bias) = (&plan.units[..], plan.terms, job.bias);
    let Common { m, n, p, stride, classes, drawn, size, start, bytes, .. } = job.common;
    let (front, back) = (start[3], back(job));
    let bytes = bytes == 1;
    let depth = units.len();
    let number = |value: T| Real::to_f64(value) as f32;
    let inputs = |l: usize| inputs(units, job, bias, l);
    let offset = |l: usize| offset(units, job, bias, l);
    let places = Places::new(plan, job, bias, job.hidden);
    let known = |at: u64| job.tops + 4 * at;
    let of_layer = |l: usize, at: u64| known(LAYERS + OF_LAYER * l as u64 + at);
    let node = |rows: u32, row: u32| u64::from(rows) * u64::from(row);
    let [(head_row, head_behind), (slopes, slopes_behind)] = second_factors(units, classes, terms);
    let terms_of_scores = terms_of_scores(units, job);
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
        right_behind: BEHIND,
        to_behind: BEHIND,
        ..Product::default()
    };
    let ready = |mut product: Product, form: Form| {
        let launch = product.launch(m, form, terms, on);
        // Nothing needs d, h and s before the next iteration; the last kernel has nothing beside it.
        let beside = match form {
            Form::Outer { .. } => with_s && (depth > 0 || job.per == PER_SAMPLE),
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
            left_most: plan.extent.top.max(1.0),
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
        right_node: node(terms_of_scores, head_row),
        right_row: head_row,
        right_behind: head_behind,
        ..product
    };
    let alone = |name: &str, threads: u32, blocks: u64| {
        let launch = Launch { name: name.into(), threads, shared: 0, blocks };
        Wanted { launch, product: None, beside: false }
    };
    let layer = |l: usize| u64::from(inputs(l) * units[l].div_ceil(EIGHT));
    let of_x = (0..depth).map(|l| layer(l).div_ceil(u64::from(SPLITTERS * TURNS))).sum::<u64>();
    let [m_, pieces] = [m, pieces(units, job)].map(u64::from);
    let mut all = Vec::new();
    if pieces > 1 && !moves {
        all.push(alone("tops", SPLITTERS, m_ * u64::from(p.div_ceil(SPLITTERS * SOME))));
    }
    all.push(alone("halves", SPLITTERS, m_ * (pieces + of_x)));
    for l in 0..depth {
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
    // Of a linear model, s is no sum over samples, unless x has an entry for each.
    let linear = depth == 0;
    let cleans = linear && job.per == PER_SAMPLE;
    let entries = m_ * u64::from(n);
    let s = match job.per {
        PER_SAMPLE => Some(alone("cleaned", THREADS, entries.div_ceil(THREADS.into()))),
        PER_GROUP | PER_COLUMN => {
            Some(alone("crossed", THREADS, (entries * 32).div_ceil(THREADS.into())))
        }
        _ => None,
    };
    let s = s.filter(|_| linear && with_s);
    if !cleans {
        all.extend(s.clone().map(|s| Wanted { beside: true, ..s }));
    }
    let of_bytes = linear && bytes;
    let unit = if of_bytes { number(job.unit) } else { 1.0 };
    let inputs_of_head = rows(depth);
    let of_part = summed(plan, job);
    let product = Product {
        down: if linear && !cleans { front } else { drawn },
        across: 2 * classes,
        deep: [terms_of_scores, of_part, of_part],
        parts: terms_of_scores.div_ceil(of_part.max(1)),
        sums: places.sums,
        sums_row: sums_row(classes),
        to: [places.slopes; 3],
        to_by: known(SLOPE_BY),
        to_top: known(SLOPE_TOP),
        to_node: node(drawn, slopes),
        to_row: slopes,
        to_behind: slopes_behind,
        samples: job.picks,
        labels: job.labels,
        targets: job.targets,
        weights: job.weights,
        target_top: known(TARGET_TOP),
        start,
        loss: job.loss,
        delta: number(job.delta),
        adds: job.adds,
        x: if cleans { job.x } else { [0; 2] },
        n,
        offset: job.offset,
        unit,
        ..heads(inputs_of_head)
    };
    // Times the largest entry of θ and v, a bound of scores.
    let most = terms_of_scores as f32;
    let left_most = if linear { plan.extent.norm * most.sqrt() } else { most };
    let product = Product { left_most, ..product };
    all.push(ready(product, Form::Head { bytes: of_bytes }));
    if product.parts > 1 {
        let launch = product.of_parts(m);
        all.push(Wanted { launch, product: Some(Box::new(product)), beside: false });
    }
    // d, h and, where it is wanted, the product with v in h.
    let product = Product {
        right: places.slopes,
        right_by: known(SLOPE_BY),
        right_node: node(drawn, slopes),
        right_row: slopes,
        right_behind: slopes_behind,
        right_first: [0, node(start[1], slopes), node(start[1], slopes)],
        parts: if job.hess == 0 { 2 } else { 3 },
        first: [0, start[1], start[1]],
        deep: [size[0], size[1] + size[2], size[1]],
        down: terms_of_scores,
        across: classes,
        to: [job.d, job.h, job.hess],
        to_node: 4 * u64::from(p),
        to_row: 4 * classes,
        with: [job.theta, job.v, job.v],
        with_node: 4 * u64::from(p),
        with_row: 4 * classes,
        even: all_fours(&[p, classes]),
        ridge: number(if linear { job.ridge + job.ridge } else { job.ridge }),
        x: if linear && !cleans { job.x } else { [0; 2] },
        group: job.group,
        per: job.per,
        n,
        unit,
        ..inputs_of_head
    };
    all.push(ready(product, Form::Outer { bytes: of_bytes }));
    if cleans {
        all.extend(s);
    }
    if linear || !with_s {
        return all;
    }
    let last = depth - 1;
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
