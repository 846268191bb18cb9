//! Sizes of a model, and where the kernels keep what they compute.

use lopa::math::real::Real;

use super::product::depth;
use crate::job::{Address, Common, Job, PER_SAMPLE, SOFTMAX};
use crate::plan::Plan;

/// Columns that a thread of `halves` splits at once, threads of a block, turns of a thread.
pub const EIGHT: u32 = 8;
pub const SPLITTERS: u32 = 256;
pub const TURNS: u32 = 4;

/// Classes of a lane that splits θ and v.
const FOUR: u32 = 4;

/// Blocks that keep a card busy, the rows of the smallest, and terms of a step.
const BUSY: u64 = 264;
const ROWS: u32 = 64;
const STEP: u32 = 64;

/// From a high half of a wide row to the low one.
pub const BEHIND: u32 = 64;

/// Bytes of a row of halves, and from a high half to the low one.
#[derive(Clone, Copy)]
pub struct Halves {
    pub row: u32,
    pub behind: u32,
}

/// The sizes of an evaluation.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    pub units: &'a [u32],
    pub job: &'a Common,
    pub bias: u32,
    /// Halves of a number.
    terms: u32,
    /// Nodes of all processes.
    total: u32,
    per: u32,
    loss: u32,
}

/// How the kernel of one column of weights works: each warp has 256 `steps` of the features, `slices` warps share rows, and a minibatch
/// has `chunks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Single {
    pub steps: u32,
    pub slices: u32,
    pub chunks: u32,
}

impl<'a> Shape<'a> {
    pub fn new<T: Real>(plan: &'a Plan<T>, job: &'a Job<T>) -> Shape<'a> {
        let Plan { units, terms, total, .. } = plan;
        let (bias, per, loss) = (job.bias, job.per, job.loss);
        Shape { units, job: &job.common, bias, terms: *terms, total: *total, per, loss }
    }

    /// How a linear model with one column of weights is computed. The same in all processes.
    pub fn single(&self) -> Option<Single> {
        const WARPS: u32 = 8;
        // Blocks that share a card evenly, though some have more rows than others.
        const MANY: u32 = 4 * BUSY as u32;
        // Bytes and single halves are read twice in the same time.
        let numbers = self.job.bytes == 0 && self.terms == 2;
        let single = self.linear() && !self.cleans() && self.job.classes == 1 && numbers;
        let steps = if self.job.features <= 256 { 1 } else { 2 };
        let slices = self.job.features.div_ceil(256 * steps).next_power_of_two();
        let together = WARPS / slices.min(WARPS) * 4 / steps;
        let most = (self.job.size[1] + self.job.size[2]).div_ceil(2 * together).max(1);
        let chunks = (MANY / (2 * self.total.max(1))).clamp(1, most);
        let wanted = single && self.loss != SOFTMAX && slices <= WARPS;
        wanted.then_some(Single { steps, slices, chunks })
    }

    /// Whether there are no hidden layers.
    pub fn linear(&self) -> bool {
        self.units.is_empty()
    }

    /// Whether x has an entry for each sample.
    pub fn cleans(&self) -> bool {
        self.linear() && self.per == PER_SAMPLE
    }

    /// Inputs of a layer, with the bias.
    pub fn inputs(&self, l: usize) -> u32 {
        self.bias + if l == 0 { self.job.features } else { self.units[l - 1] }
    }

    /// Where x and s have the weights of a layer.
    pub fn offset(&self, l: usize) -> u32 {
        (0..l).map(|l| self.inputs(l) * self.units[l]).sum()
    }

    /// What scores are sums of: activations and the one that is 1, or features.
    pub fn terms_of_scores(&self) -> u32 {
        self.units.last().map_or(self.job.features, |units| units + 1)
    }

    /// Rows of the minibatches that d and h are sums over.
    pub fn front(&self) -> u32 {
        self.job.start[3]
    }

    /// Rows of those that s is a sum over.
    pub fn back(&self) -> u32 {
        self.job.size[3] + self.job.size[4]
    }

    /// Blocks that split x.
    pub fn blocks(&self, l: usize) -> u32 {
        (self.inputs(l) * self.units[l].div_ceil(EIGHT)).div_ceil(SPLITTERS * TURNS)
    }

    /// Pieces of a node's θ and v, if a block takes this many fours of classes.
    pub fn pieces(&self, fours: u32) -> u32 {
        let lanes = self.job.classes.div_ceil(FOUR).next_power_of_two();
        self.terms_of_scores().div_ceil(fours / lanes)
    }

    /// Terms of scores that a block sums up: fewer than all where there are few rows and many features. The same in all processes.
    pub fn summed(&self) -> u32 {
        let steps = self.job.features.div_ceil(STEP);
        let blocks = u64::from(self.total) * u64::from(self.front().div_ceil(ROWS));
        let parts = (BUSY / blocks.max(1)).min(u64::from(steps / 2)) as u32;
        if !self.linear() || steps < 6 || parts < 2 {
            return self.terms_of_scores();
        }
        steps.div_ceil(parts) * STEP
    }

    /// Parts of the sums of scores.
    pub fn parts(&self) -> u32 {
        self.terms_of_scores().div_ceil(self.summed().max(1))
    }

    /// Numbers of a row of scores by θ and by v.
    pub fn sums_row(&self) -> u32 {
        (2 * self.job.classes).next_multiple_of(4)
    }

    /// A row of numbers.
    pub fn wide(&self, numbers: u32) -> Halves {
        Halves { row: row(numbers, self.terms), behind: BEHIND }
    }

    /// A row of numbers that is a second factor only.
    fn narrow(&self, numbers: u32) -> Halves {
        let halves = (2 * numbers).next_multiple_of(16);
        match (numbers, self.terms) {
            (_, 1) => Halves { row: halves, behind: 0 },
            (..=32, _) => Halves { row: 2 * halves, behind: halves },
            _ => self.wide(numbers),
        }
    }

    /// Rows of θ and v.
    pub fn heads(&self) -> Halves {
        let columns = 2 * self.job.classes;
        if self.linear() { self.narrow(columns) } else { self.wide(columns) }
    }

    /// Rows of slopes, which are first factors only of products for hidden layers.
    pub fn slopes(&self) -> Halves {
        let classes = self.job.classes;
        if self.linear() { self.narrow(classes) } else { self.wide(2 * classes) }
    }

    /// Rows of a layer's activations, and of its weights and errors.
    pub fn of_hidden(&self, l: usize) -> u32 {
        self.wide(self.units[l] + 1).row
    }

    pub fn of_units(&self, l: usize) -> u32 {
        self.wide(self.units[l]).row
    }
}

/// Bytes of a row of numbers as halves: see kernels/layers.cu.
pub fn row(numbers: u32, terms: u32) -> u32 {
    numbers.div_ceil(depth(terms)) * 128
}

/// The words that each node has, then those that each of its layers has: see kernels/layers.cu.
pub mod word {
    pub const HEAD_TOP: u64 = 0;
    pub const HEAD_BY: u64 = 1;
    pub const TURN_TOP: u64 = 2;
    pub const DIRECTION_TOP: u64 = 5;
    pub const TARGET_TOP: u64 = 7;
    pub const SLOPE_TOP: u64 = 8;
    pub const SLOPE_BY: u64 = 9;
    const LAYERS: u64 = 10;

    /// Those of a layer.
    #[derive(Clone, Copy)]
    pub enum Of {
        HiddenTop,
        HiddenBy,
        ErrorTop,
        ErrorBy,
        WeightTop,
        /// For the second buffer of x.
        OtherWeightTop,
    }

    const OF_LAYER: u64 = 6;

    pub fn of_layer(l: usize, of: Of) -> u64 {
        LAYERS + OF_LAYER * l as u64 + of as u64
    }

    /// Words of a node.
    pub fn many(layers: usize) -> u32 {
        of_layer(layers, Of::HiddenTop) as u32
    }
}

/// Where the kernels keep what they compute: one piece of memory holds all of it.
pub struct Places {
    pub hidden: Vec<Address>,
    pub errors: Vec<Address>,
    pub weights: Vec<Address>,
    pub heads: Address,
    pub slopes: Address,
    pub sums: Address,
    pub adds: Address,
    /// Where it ends.
    pub end: Address,
}

impl Places {
    pub fn new(shape: &Shape, start: Address) -> Places {
        let drawn = shape.job.drawn;
        let mut end = start;
        let mut take = |rows: u32, row: u32| {
            let place = end;
            end +=
                (u64::from(shape.job.m) * u64::from(rows) * u64::from(row)).next_multiple_of(256);
            place
        };
        let layers = 0..shape.units.len();
        let hidden = layers.clone().map(|l| take(drawn, shape.of_hidden(l))).collect();
        let errors = layers.clone().map(|l| take(shape.back(), shape.of_units(l))).collect();
        let weights = layers.map(|l| take(shape.inputs(l), shape.of_units(l))).collect();
        let heads = take(shape.terms_of_scores(), shape.heads().row);
        let slopes = take(drawn, shape.slopes().row);
        let parts = if shape.parts() > 1 { shape.parts() } else { 0 };
        let sums = match shape.single() {
            Some(single) => take(3 * single.chunks, 4 * shape.job.features),
            None => take(parts * drawn, 4 * shape.sums_row()),
        };
        let adds = take(if shape.cleans() { drawn } else { 0 }, 4);
        Places { hidden, errors, weights, heads, slopes, sums, adds, end }
    }
}
