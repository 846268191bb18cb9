//! `representation`, `hyperparameter` and `hyper-cleaning` in f32 on the tensor cores of any card (kernels/layers.cu): any number of
//! hidden layers, none in a linear model, any activation, any loss. Everything but the evaluations is as with plain kernels.

mod evaluation;
mod product;
mod shape;

use lopa::engine::Node;
use lopa::error::Result;
use lopa::math::real::Real;

pub use evaluation::{Wanted, cleaners, kernels, splits, turners};
pub use product::Product;
use shape::word::{self, Of};
use shape::{Places, Shape, row};

use crate::driver::Card;
use crate::general::{ORDER, table};
use crate::halves::power_below;
use crate::job::{Address, Job, PER_ROW, SQUARED, Scalar};
use crate::plan::{D, H, Kind, Plan, THETA, V};
use crate::run::State;

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

/// Whether the kernels support this on a card of this compute capability.
pub fn can<T: Real>(plan: &Plan<T>, capability: [i32; 2]) -> bool {
    T::BYTES == 4 && plan.kind != Kind::Quadratic && capability[0] >= 8 && plan.job.features > 0
}

/// Multiprocessors of a large card.
const PROCESSORS: u32 = 132;

/// Whether the kernels are worth using. For at most two classes one block that does the whole iteration of a node takes less time,
/// unless there are few nodes with much work each. The same in all processes.
pub fn should<T: Real>(plan: &Plan<T>, capability: [i32; 2]) -> bool {
    let of = &plan.evaluations[0].job;
    let work = f64::from(of.size[0] + of.size[1] + of.size[3]) * f64::from(of.features);
    let faster = if plan.has_bytes() { 2.0 } else { 1.0 };
    // One column of numbers is read once.
    let once = !plan.has_bytes() && of.classes == 1 && plan.terms == 2;
    let (start, rate) = if once { (20.0, 650e3) } else { (25.0, 450e3) };
    // Microseconds on an H200.
    let alone = 10.0 + f64::from(plan.total.div_ceil(PROCESSORS)) * work / (faster * 7e3);
    let together = start + f64::from(plan.total) * work / (faster * rate);
    let slower = of.per == PER_ROW && of.classes <= 2 && alone < together;
    can(plan, capability) && !(plan.kind == Kind::Linear && slower)
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

/// The words of each node at the start: the largest target and, for a `move` that splits, the largest of θ and v, and of d and h.
fn words<T: Real>(plan: &Plan<T>, job: &Job<T>, nodes: &[Node<T>]) -> Result<Vec<u32>> {
    let many = job.many as usize;
    let mut words = vec![0; nodes.len() * many];
    let mut see = |i: usize, at: u64, values: &mut dyn Iterator<Item = &T>| {
        let top = values.fold(0.0, |top: f32, value| top.max(Real::to_f64(value.abs()) as f32));
        let word = &mut words[i * many + at as usize];
        // Numbers that are not negative are in the order of their bits.
        *word = top.to_bits().max(*word);
    };
    let turn = word::TURN_TOP + plan.k % 3;
    let directions = word::DIRECTION_TOP;
    let all = [(THETA, turn), (D, directions), (V, turn), (H, directions)];
    for (array, at) in all.into_iter().filter(|_| splits(plan)) {
        plan.variables.hand_over(nodes, array, |first, values| {
            let own = values.chunks_exact(job.p as usize).enumerate();
            own.for_each(|(i, values)| see(first + i, at, &mut values.iter()));
            Ok(())
        })?;
    }
    let classes = job.classes as usize;
    for (own, rows) in plan.own.iter().zip(&plan.owned).filter(|_| job.loss == SQUARED) {
        for (i, ends) in own.windows(2).enumerate() {
            let rows = &rows[ends[0] as usize..ends[1] as usize];
            let mut values =
                rows.iter().flat_map(|&row| &plan.targets[row as usize * classes..][..classes]);
            see(i, word::TARGET_TOP, &mut values);
        }
    }
    Ok(words)
}

/// Gives an evaluation its memory.
pub fn place<T: Scalar>(
    card: &Card,
    state: &mut State<T>,
    plan: &Plan<T>,
    job: &mut Job<T>,
    nodes: &[Node<T>],
) -> Result<()> {
    let own = *job;
    let shape = Shape::new(plan, &own);
    job.hidden = state.empty::<u8>(card, Places::new(&shape, 0).end as usize)?;
    let places = Places::new(&shape, job.hidden);
    (job.hidden_layers, job.many) = (shape.units.len() as u32, word::many(shape.units.len()));
    (job.heads, job.tops) = (places.heads, state.copy(card, &words(plan, job, nodes)?)?);
    let layer = |l: usize| Layer {
        to: places.weights[l],
        top: job.tops + 4 * word::of_layer(l, Of::WeightTop),
        rows: shape.inputs(l),
        units: shape.units[l],
        offset: shape.offset(l),
        blocks: shape.blocks(l),
    };
    let layers: Vec<Layer> = (0..shape.units.len()).map(layer).collect();
    job.layers = state.copy(card, &layers)?;
    job.pieces = shape.pieces(shape::SPLITTERS * shape::TURNS);
    (job.head_row, job.head_behind) = (shape.heads().row, shape.heads().behind);
    job.adds = if shape.cleans() { places.adds } else { 0 };
    Ok(())
}
