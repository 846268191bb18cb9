//! The parameters of products on tensor cores: `Product` of kernels/layers.cu, field by field.

use crate::general::Launch;
use crate::job::Address;

/// See kernels/layers.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Product {
    pub left: Address,
    pub right: Address,
    pub picks: Address,
    pub to: [Address; 3],
    pub with: [Address; 3],
    pub left_by: Address,
    pub right_by: Address,
    pub to_by: Address,
    pub with_by: Address,
    pub samples: Address,
    pub labels: Address,
    pub targets: Address,
    pub weights: Address,
    pub target_top: Address,
    pub left_top: Address,
    pub right_top: Address,
    pub to_top: Address,
    pub awake: Address,
    pub right_node: u64,
    pub to_node: u64,
    pub with_node: u64,
    pub right_first: [u64; 3],
    pub parts: u32,
    pub down: u32,
    pub across: u32,
    pub deep: [u32; 3],
    pub each: u32,
    pub first: [u32; 3],
    pub left_row: u32,
    pub right_row: u32,
    pub to_row: u32,
    pub with_row: u32,
    pub even: u32,
    pub stages: u32,
    pub start: [u32; 5],
    pub loss: u32,
    pub activation: u32,
    pub bias: u32,
    pub many: u32,
    pub unit: f32,
    pub ridge: f32,
    pub left_is: f32,
    pub right_is: f32,
    pub left_most: f32,
    pub delta: f32,
}

/// Kinds of products: see kernels/layers.cu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Forward { bytes: bool },
    Head,
    Outer,
    Errors,
    Backward { bytes: bool },
}

/// Terms of a slab.
const SLAB: u32 = 32;

/// Terms per stage: 32 with two halves each, or 64 with one.
pub fn depth(terms: u32) -> u32 {
    2 * SLAB / terms
}

/// A block has `warps` warps; each computes 32 rows and `width` columns of results.
#[derive(Debug, Clone, Copy)]
struct Tile {
    warps: u32,
    width: u32,
}

/// Large tiles read less, small ones keep more of a card busy.
const TILES: [Tile; 9] = [
    Tile { warps: 4, width: 128 },
    Tile { warps: 4, width: 104 },
    Tile { warps: 4, width: 64 },
    Tile { warps: 4, width: 32 },
    Tile { warps: 4, width: 16 },
    Tile { warps: 2, width: 128 },
    Tile { warps: 2, width: 64 },
    Tile { warps: 2, width: 32 },
    Tile { warps: 2, width: 16 },
];

/// Multiprocessors of a large card, and the shared memory of each.
const PROCESSORS: u64 = 132;
const SHARED: u32 = 227 << 10;

/// Cycles, as measured: before the first terms have arrived; for a stage to arrive; twice those of a warp for one product of 32
/// terms and a column; for the results of a column, and for those that read other numbers.
const START: u64 = 4000;
const STAGE: u64 = 2600;
const PRODUCT: u64 = 2;
const RESULTS: u64 = 16;
const WITH: u64 = 32;

impl Tile {
    /// How many blocks a multiprocessor has registers for.
    fn blocks(self) -> u32 {
        let of_four = match self.width {
            16 | 32 => 4,
            64 => 3,
            _ => 2,
        };
        of_four * 4 / self.warps
    }

    /// Bytes of a stage, and of results.
    fn bytes(self, form: Form, terms: u32) -> [u32; 2] {
        let (rows, width) = (32 * self.warps, self.width);
        let beside = |numbers: u32| if numbers == 104 { 208 } else { 2 * numbers + 16 };
        let (bytes, left) = match form {
            Form::Forward { bytes: true } => (true, rows * 48),
            Form::Backward { bytes: true } => (true, SLAB * (rows + 16)),
            Form::Forward { .. } | Form::Head | Form::Errors => (false, rows * beside(SLAB)),
            Form::Outer | Form::Backward { .. } => (false, SLAB * beside(rows)),
        };
        let right = match form {
            Form::Errors => width * beside(SLAB),
            _ => SLAB * beside(width),
        };
        let sums = rows * if width % 32 == 8 { width } else { width + 8 } * 4;
        // Bytes are one half.
        [2 * right + if bytes && terms == 2 { left } else { 2 * left }, sums]
    }
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Forward { bytes: true } => "forward_bytes",
            Form::Forward { bytes: false } => "forward",
            Form::Head => "head",
            Form::Outer => "outer",
            Form::Errors => "errors",
            Form::Backward { bytes: true } => "backward_bytes",
            Form::Backward { bytes: false } => "backward",
        }
    }

    /// Whether there is a kernel with this tile; a block of the head has all columns.
    fn has(self, Tile { width, .. }: Tile, across: u32) -> bool {
        match self {
            Form::Head => width != 104 && width >= across,
            Form::Outer => width <= 64,
            _ => width <= 104,
        }
    }
}

impl Product {
    /// The kernel with the best tile for `m` nodes whose blocks fit into `near` bytes of shared memory. Sets the number of stages.
    /// Results depend on neither.
    pub fn launch(&mut self, m: u32, form: Form, terms: u32, near: usize) -> Launch {
        let blocks = |tile: Tile| {
            let tiles = self.down.div_ceil(32 * tile.warps) * self.across.div_ceil(tile.width);
            u64::from(m) * u64::from(self.parts) * u64::from(tiles)
        };
        let deepest =
            u64::from(self.deep.iter().max().map_or(0, |deep| deep.div_ceil(depth(terms))));
        let choices =
            TILES.into_iter().filter(|&tile| form.has(tile, self.across)).flat_map(|tile| {
                [3, 6].map(|stages| {
                    let [stage, sums] = tile.bytes(form, terms);
                    (tile, stages, (stages * stage).max(sums))
                })
            });
        let products = match (form, terms) {
            (_, 1) => 2,
            (Form::Forward { bytes: true } | Form::Backward { bytes: true }, _) => 2,
            _ => 3,
        };
        let results = if form == Form::Errors { WITH } else { RESULTS };
        let each = |tile: Tile, shared: u32| -> u64 {
            tile.blocks().min(SHARED / (shared + 1024)).max(1).into()
        };
        let cost = |&(tile, stages, shared): &(Tile, u32, u32)| {
            let each = each(tile, shared);
            let at_once = each.min(blocks(tile).div_ceil(PROCESSORS)).max(1);
            let rounds = blocks(tile).div_ceil(PROCESSORS * each);
            let columns = at_once * u64::from(tile.warps * (tile.width + 16));
            let step = (columns * (products * PRODUCT + 1) / 2).max(STAGE / u64::from(stages - 1));
            rounds * (START + deepest * step + columns * results)
        };
        // More stages pay where there are few blocks and many terms.
        let fitting = choices.filter(|&(tile, stages, shared)| {
            let few = blocks(tile) <= PROCESSORS * each(tile, shared) && deepest > 4;
            shared as usize <= near && (stages == 3 || few)
        });
        let (tile, stages, shared) =
            fitting.min_by_key(cost).expect("small blocks fit on every card with tensor cores");
        self.stages = stages;
        let Tile { warps, width } = tile;
        let name = format!("{}_{warps}_{width}", form.name());
        Launch { name, threads: 32 * warps, shared, blocks: blocks(tile) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Product};
    use crate::kernels::layers;

    /// The kernels' parameters have the same size.
    #[test]
    fn it_is_as_large_as_the_kernels_take_it_for() {
        let parameter = format!(".b8 head_4_64_f32_param_0[{}]", size_of::<Product>());
        assert!(layers(2).contains(&parameter), "{parameter}");
    }

    /// Every kernel that can be chosen is there, and fits on small cards as well.
    #[test]
    fn kernels_that_are_chosen_are_there() {
        let all = layers(1);
        let forms = [false, true]
            .map(|bytes| [Form::Forward { bytes }, Form::Backward { bytes }])
            .into_iter()
            .flatten()
            .chain([Form::Head, Form::Outer, Form::Errors]);
        for form in forms {
            for (down, across, deep, m) in
                [(1, 1, 1, 1), (640, 128, 785, 8), (1280, 200, 785, 100), (65, 10, 256, 1000)]
            {
                if form == Form::Head && across > 128 {
                    continue;
                }
                for near in [99 << 10, 163 << 10, 227 << 10] {
                    for terms in [1, 2] {
                        let parts = 1;
                        let mut product =
                            Product { down, across, deep: [deep; 3], parts, ..Product::default() };
                        let launch = product.launch(m, form, terms, near);
                        assert!(
                            all.contains(&format!(".entry {}_f32(", launch.name)),
                            "{launch:?}"
                        );
                        assert!(launch.shared as usize <= near && launch.blocks > 0, "{launch:?}");
                        assert!([3, 6].contains(&product.stages));
                    }
                }
            }
        }
    }
}
