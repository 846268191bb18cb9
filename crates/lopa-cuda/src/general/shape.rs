//! The sizes of a run as the kernels take them, and which of the kernels suit it.

use lopa::math::real::Real;

use super::ORDER;
use crate::job::Common;
use crate::plan::{Plan, Table};

/// The units of a tile that there are kernels for.
const WIDTHS: [u32; 5] = [32, 48, 64, 80, 104];

/// What a tile costs besides its units: rows are gathered once for each.
const GATHER: u32 = 32;

/// The shared memory of a block on Hopper cards, in bytes.
const ROOM: u64 = 232_448;

/// Fewer blocks of 128 rows than this leave multiprocessors idle.
const FEW_BLOCKS: u32 = 72;

/// Warps of a block of `head`, each with 16 rows.
const HEAD_WARPS: u32 = 4;

/// A kernel to launch: its name, the threads and the shared memory of a block, the blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub name: String,
    pub threads: u32,
    pub shared: u32,
    pub blocks: u64,
}

/// Sizes of a run.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    m: u32,
    /// Nodes of all processes: what sums depend on does not depend on the processes.
    total: u32,
    features: u32,
    pub units: u32,
    /// Units in x; in rows of activations and in scores with the one that is 1; in errors.
    pub across: u32,
    pub deep: u32,
    pub reach: u32,
    /// Whether features are halves instead of bytes.
    pub numbers: bool,
    /// Halves of each number: 2, or 1 where less precision will do.
    pub terms: u32,
    /// Bytes of a row of the table.
    pub stride: u32,
    /// Units of a tile, tiles.
    pub width: u32,
    pub tiles: u32,
    /// Groups of 8 classes: 2, 4 or 8.
    pub groups: u32,
    /// Rows of the first three minibatches, and of the other two.
    pub front: u32,
    pub back: u32,
    /// Steps of 16 in the features and the bias, and in the rows of the back.
    pub steps_in: u32,
    pub steps_back: u32,
    /// What is added to ξ₂ so that ς₁ begins with a tile of 16 rows, where the product with v is noted.
    pub pad: u32,
    /// Blocks of 16 samples of all minibatches.
    drawn: u32,
}

impl Shape {
    /// Of an evaluation with these parameters; `noted`: whether the product with v in h is wanted.
    pub fn new<T: Real>(plan: &Plan<T>, job: &Common, noted: bool) -> Shape {
        let Common { m, features, units, classes, mut size, .. } = *job;
        let pad =
            if noted { (size[0] + size[1]).next_multiple_of(16) - size[0] - size[1] } else { 0 };
        size[1] += pad;
        let numbers = !plan.has_bytes();
        let terms = plan.terms;
        let inputs = features + 1;
        // Whole stages of `forward`, and whole lines of 128 bytes.
        let stride = match (numbers, terms) {
            (true, 2) => inputs.div_ceil(32) * 128,
            (true, _) => inputs.div_ceil(64) * 128,
            (false, _) if inputs <= 64 => 64,
            (false, _) => inputs.next_multiple_of(128),
        };
        let cost = |width: &u32| units.div_ceil(*width) * (width + GATHER);
        let width = WIDTHS.into_iter().min_by_key(cost).unwrap_or(WIDTHS[0]);
        let of = |batches: &[usize]| batches.iter().map(|&at| size[at]).sum::<u32>();
        let (front, back) = (of(&ORDER[..3]), of(&ORDER[3..]));
        let shape = Shape {
            m,
            total: plan.total,
            features,
            units,
            across: units.next_multiple_of(8),
            deep: (units + 1).next_multiple_of(16),
            reach: units.next_multiple_of(8),
            numbers,
            terms,
            stride,
            width,
            tiles: units.div_ceil(width),
            groups: match classes {
                ..=16 => 2,
                17..=32 => 4,
                _ => 8,
            },
            front,
            back,
            steps_in: inputs.div_ceil(16),
            steps_back: back.div_ceil(16),
            pad,
            drawn: size.iter().map(|size| size.div_ceil(16)).sum(),
        };
        // The head in registers has whole tiles, and a step for the unit that is 1.
        if shape.with_head() { Shape { deep: width + 16, reach: width, ..shape } } else { shape }
    }

    /// Whether shared memory, and numbers of 32 bits, are large enough.
    pub fn fits<T: Real>(&self, plan: &Plan<T>) -> bool {
        let rows = match &plan.table {
            Table::Bytes(bytes) => bytes.len() as u64,
            Table::Numbers(values) => values.len() as u64,
        } / u64::from(self.features);
        let [forward, backward] = [self.forward(), self.backward()];
        rows * u64::from(self.stride / 16) < 1 << 32
            && u64::from(forward.shared.max(backward.shared)) <= ROOM
            && u64::from(self.features + 1) * u64::from(self.across) < 1 << 31
            && [forward, backward, self.mix()].iter().all(|launch| launch.blocks < 1 << 31)
            && u64::from(self.m) * u64::from(self.drawn) < 1 << 31
    }

    /// The numbers of a node's x.
    pub fn length(&self) -> usize {
        (self.features as usize + 1) * self.across as usize
    }

    /// Parts of 32 units, the one that is 1 included.
    pub fn parts(&self) -> u32 {
        self.units / 32 + 1
    }

    /// 16 bytes each: the second factors of a node's head.
    pub fn heads(&self) -> usize {
        let [deep, reach, groups] = [self.deep, self.reach, self.groups].map(|all| all as usize);
        2 * 32 * (deep / 16 * groups + reach / 8 * (groups / 2))
    }

    /// Bytes of a step of 16 of second factors.
    pub fn step(&self) -> u32 {
        self.terms * self.width * 32
    }

    fn kind(&self) -> &'static str {
        if self.numbers { "numbers" } else { "bytes" }
    }

    /// Rows of the front and of the back, each padded to 16.
    fn rows(&self) -> u32 {
        self.front.next_multiple_of(16) + self.steps_back * 16
    }

    /// Whether `forward` computes the head as well.
    pub fn with_head(&self) -> bool {
        self.tiles == 1 && self.groups == 2 && self.width <= 64
    }

    pub fn turn(&self) -> Launch {
        let blocks = u64::from(self.m) * u64::from(self.parts());
        Launch { name: "turn".into(), threads: 128, shared: 0, blocks }
    }

    pub fn mix(&self) -> Launch {
        // A warp for 32 items, four nodes in a block.
        let chunks = (u64::from(self.steps_in) * u64::from(self.across)).div_ceil(32);
        let blocks = self.heads_alone().blocks + u64::from(self.m).div_ceil(4) * chunks;
        Launch { name: "mix".into(), threads: 128, shared: 0, blocks }
    }

    /// The first blocks of `mix`, which draw and make the second factors of the head.
    pub fn heads_alone(&self) -> Launch {
        let [m, drawn, parts] = [self.m, self.drawn, self.parts()].map(u64::from);
        let blocks = (m * drawn).div_ceil(128) + m * parts;
        Launch { name: "given".into(), threads: 128, shared: 0, blocks }
    }

    /// Warpgroups of a block of `forward`, each with 64 rows.
    fn warpgroups(&self) -> u32 {
        let blocks = self.rows().div_ceil(128);
        // 128 rows where such blocks fill the card and hardly any rows are padding.
        let full = self.total * blocks * self.tiles >= FEW_BLOCKS;
        if self.width > 32 && full && blocks * 128 * 8 <= self.rows() * 9 { 2 } else { 1 }
    }

    /// Rows of a block of the head.
    pub fn together(&self) -> u32 {
        if self.with_head() { 64 * self.warpgroups() } else { 16 * HEAD_WARPS }
    }

    /// Shares of a node: of d and h, and of the product with v.
    pub fn shares(&self, noted: bool) -> usize {
        let blocks = self.front.next_multiple_of(16).div_ceil(self.together());
        let sides = if noted { 3 } else { 2 };
        blocks as usize * self.deep as usize * 8 * sides * self.groups as usize
    }

    pub fn forward(&self) -> Launch {
        let Shape { m, width, tiles, terms, numbers, .. } = *self;
        let groups = self.warpgroups();
        let stages = if groups == 2 && width >= 80 { 3 } else { 4 };
        let (pitch, steps) = match (numbers, terms) {
            (true, 2) => (160, 2),
            (true, _) => (160, 4),
            (false, _) => (80, 4),
        };
        let head = u32::from(self.with_head());
        let rows = groups * 64;
        let mut stage = rows * pitch + steps * self.step();
        if self.with_head() {
            // Second factors of the head; activations and slopes, in two stages.
            let [heads, slopes] = [self.heads() as u32 * 16, self.slopes(groups * 4)];
            stage = stage.max(heads).max((rows * width * 4 + slopes) / 2);
        }
        Launch {
            name: format!("forward_{}_{terms}_{width}_{groups}_{head}", self.kind()),
            threads: 128 * groups,
            shared: stage * stages,
            blocks: u64::from(m) * u64::from(self.rows().div_ceil(rows)) * u64::from(tiles),
        }
    }

    /// Bytes of the slopes of a block of the head.
    fn slopes(&self, warps: u32) -> u32 {
        warps * 2 * self.groups * 512
    }

    pub fn head(&self) -> Launch {
        let warps = HEAD_WARPS;
        let blocks = u64::from(self.m) * u64::from(self.rows().div_ceil(16 * warps));
        let (threads, shared) = (32 * warps, self.slopes(warps));
        Launch { name: format!("head_{}_{}", self.groups, self.terms), threads, shared, blocks }
    }

    pub fn outer(&self) -> Launch {
        let blocks = u64::from(self.m) * u64::from(self.parts());
        Launch { name: "outer".into(), threads: 256, shared: 0, blocks }
    }

    pub fn backward(&self) -> Launch {
        let Shape { m, features, width, tiles, terms, numbers, .. } = *self;
        let (each, segment) = match (numbers, terms) {
            (true, 2) => (64, 256),
            (true, _) => (64, 128),
            (false, _) => (128, 128),
        };
        let rows = (self.steps_back * 16 + 16) * 4;
        Launch {
            name: format!("backward_{}_{terms}_{width}", self.kind()),
            threads: 128,
            shared: (32 * (segment + 32) + 2 * self.step()) * 4 + rows,
            blocks: u64::from(m) * u64::from((features + 1).div_ceil(each)) * u64::from(tiles),
        }
    }

    pub fn ready(&self) -> Launch {
        let rows = u64::from(self.m) * u64::from(self.front + self.back);
        Launch { name: "ready".into(), threads: 128, shared: 0, blocks: rows.div_ceil(128) }
    }
}
