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
    pub x: [Address; 2],
    pub group: Address,
    pub adds: Address,
    pub sums: Address,
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
    pub sums_row: u32,
    pub right_behind: u32,
    pub to_behind: u32,
    pub even: u32,
    pub stages: u32,
    pub start: [u32; 5],
    pub loss: u32,
    pub activation: u32,
    pub bias: u32,
    pub many: u32,
    pub fresh: u32,
    pub chunks: u32,
    pub per: u32,
    pub n: u32,
    pub offset: u32,
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
    Head { bytes: bool },
    Outer { bytes: bool },
    Errors,
    Backward { bytes: bool },
}

/// Terms of a slab.
const SLAB: u32 = 32;

/// Terms per stage: 32 with two halves each, or 64 with one.
pub fn depth(terms: u32) -> u32 {
    2 * SLAB / terms
}

/// A block has `warps` warps; each computes 32 rows and `width` columns of results, or 16 rows of more than 128 columns.
#[derive(Debug, Clone, Copy)]
struct Tile {
    warps: u32,
    width: u32,
}

/// Large tiles read less, small ones keep more of a card busy. The first two are for Hopper cards.
const TILES: [Tile; 11] = [
    Tile { warps: 8, width: 256 },
    Tile { warps: 8, width: 208 },
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

/// Measured cycles: until the first terms arrive; until a stage arrives; for the results of a column.
const START: u64 = 4000;
const STAGE: u64 = 2600;
const RESULTS: u64 = 48;

/// Bytes per cycle that a multiprocessor reads from the second-level cache, when all of them read and when few do.
const BYTES: u64 = 26;
const MOST_BYTES: u64 = 50;

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

    /// Whether four warps multiply together, on Hopper cards.
    fn together(self) -> bool {
        self.warps.is_multiple_of(4)
    }

    /// Cycles of a product of 32 terms.
    fn cycles(self, hopper: bool) -> u64 {
        if hopper && self.together() {
            return u64::from(self.rows() * self.width / 64);
        }
        u64::from(self.warps * (self.width + 16) * 5 / 4)
    }

    /// Whether products run while the next terms are read.
    fn ahead(self) -> bool {
        self.width > 128
    }

    /// Rows of results.
    fn rows(self) -> u32 {
        self.warps * if self.width > 128 { 16 } else { 32 }
    }

    /// Bytes of a stage, and of results.
    fn bytes(self, form: Form, hopper: bool) -> [u32; 2] {
        let (rows, width) = (self.rows(), self.width);
        let beside = |numbers: u32| if numbers == 104 { 208 } else { 2 * numbers + 16 };
        let left = match form {
            Form::Forward { bytes: true } | Form::Head { bytes: true } => rows * 80,
            Form::Backward { bytes: true } | Form::Outer { bytes: true } => 2 * SLAB * (rows + 16),
            Form::Forward { .. } | Form::Head { .. } | Form::Errors => rows * 144,
            Form::Outer { .. } | Form::Backward { .. } => 2 * SLAB * (2 * rows + 16),
        };
        let together = hopper && self.together();
        let right = match form {
            Form::Errors if together => 2 * SLAB * width,
            _ if together => width.div_ceil(32) * SLAB * 64,
            Form::Errors => width * beside(SLAB),
            _ => SLAB * beside(width),
        };
        let apart = if width % 32 == 8 { width } else { width + 8 };
        [left + 2 * right, rows * apart * 4]
    }
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Forward { bytes: true } => "forward_bytes",
            Form::Forward { bytes: false } => "forward",
            Form::Head { bytes: true } => "head_bytes",
            Form::Head { bytes: false } => "head",
            Form::Outer { bytes: true } => "outer_bytes",
            Form::Outer { bytes: false } => "outer",
            Form::Errors => "errors",
            Form::Backward { bytes: true } => "backward_bytes",
            Form::Backward { bytes: false } => "backward",
        }
    }

    /// Whether the first factor is bytes.
    fn of_bytes(self) -> bool {
        match self {
            Form::Errors => false,
            Form::Forward { bytes }
            | Form::Head { bytes }
            | Form::Outer { bytes }
            | Form::Backward { bytes } => bytes,
        }
    }

    /// Whether there is a kernel with this tile; a block of the head has all columns.
    fn has(self, Tile { warps, width }: Tile, across: u32, hopper: bool) -> bool {
        match self {
            Form::Head { .. } => warps <= 4 && width <= 128 && width != 104 && width >= across,
            Form::Outer { .. } => width <= 64,
            Form::Forward { bytes: true } | Form::Backward { bytes: true } if width > 128 => false,
            _ if hopper => width != 128 || warps >= 4,
            _ => width <= 104,
        }
    }
}

impl Product {
    /// The kernel that adds the parts of sums of the head.
    pub fn of_parts(&self, m: u32) -> Launch {
        let width = self.across.next_power_of_two().max(16);
        let blocks = u64::from(m) * u64::from(self.down.div_ceil(8));
        let shared = 8 * (width + 8) * 4;
        Launch { name: format!("slopes_{width}"), threads: 128, shared, blocks }
    }

    /// The kernel with the best tile for `m` nodes whose blocks fit into `near` bytes of shared memory. Sets the number of stages.
    /// Results depend on neither.
    pub fn launch(
        &mut self,
        m: u32,
        form: Form,
        terms: u32,
        (near, hopper): (usize, bool),
    ) -> Launch {
        let blocks = |tile: Tile| {
            let tiles = self.down.div_ceil(tile.rows()) * self.across.div_ceil(tile.width);
            u64::from(m) * u64::from(self.parts) * u64::from(tiles)
        };
        let deep = match form {
            Form::Head { .. } => self.deep[1],
            _ => self.deep.into_iter().max().unwrap_or(0),
        };
        let deepest = u64::from(deep.div_ceil(depth(terms)));
        let choices = TILES
            .into_iter()
            .filter(|&tile| form.has(tile, self.across, hopper))
            .flat_map(|tile| {
                let numbers: &[u32] = if tile.ahead() { &[4] } else { &[3, 6] };
                numbers.iter().map(move |&stages| {
                    let [stage, sums] = tile.bytes(form, hopper);
                    let used = stages.min(deepest as u32).max(1);
                    (tile, stages, (used * stage).max(sums))
                })
            });
        // Errors read activations; wide tiles wait for them with little beside.
        let column = |tile: Tile| match form {
            Form::Errors => 64 + u64::from(tile.width).min(104),
            _ => RESULTS,
        };
        let of_bytes = form.of_bytes();
        // Bytes that a block reads for a stage.
        let stage_bytes = |tile: Tile| {
            let left = match (of_bytes, terms) {
                (true, 2) => 32,
                (true, _) => 64,
                (false, _) => 128,
            };
            u64::from(tile.rows() * left + tile.width.next_multiple_of(32) * 128)
        };
        let products = if terms == 1 || of_bytes { 2 } else { 3 };
        let each = |tile: Tile, shared: u32| -> u64 {
            tile.blocks().min(SHARED / (shared + 1024)).max(1).into()
        };
        let cost = |&(tile, stages, shared): &(Tile, u32, u32)| {
            let each = each(tile, shared);
            let at_once = each.min(blocks(tile).div_ceil(PROCESSORS)).max(1);
            let rounds = blocks(tile).div_ceil(PROCESSORS * each);
            let busy = blocks(tile).min(PROCESSORS);
            let bytes = stage_bytes(tile);
            let read = (bytes * busy / (PROCESSORS * BYTES)).max(bytes / MOST_BYTES);
            let multiply = products * tile.cycles(hopper);
            let (alone, stages) = if tile.ahead() { (0, stages - 1) } else { (multiply, stages) };
            let step = (at_once * multiply.max(read)).max(alone + STAGE / u64::from(stages - 1));
            // Warps work on results at the same time, but wait for each other in part.
            let of_warp =
                u64::from((tile.width + 16) * tile.rows() / tile.warps / 32) * column(tile);
            let results = of_warp * (3 + at_once * u64::from(tile.warps) / 4) / 4;
            // In later rounds a block starts while others multiply, if there are enough of them.
            let start = if rounds > 2 && each > 2 { START / 4 } else { START };
            rounds * (start + deepest * step + results)
        };
        // More stages pay where there are few blocks and many terms.
        let fitting = choices.filter(|&(tile, stages, shared)| {
            let few = blocks(tile) <= PROCESSORS * each(tile, shared) && deepest > 4;
            shared as usize <= near && (stages < 6 || few)
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
    use crate::kernels::tests::hopper_ptx;

    /// The kernels' parameters have the same size.
    #[test]
    fn it_is_as_large_as_the_kernels_take_it_for() {
        let parameter = format!(".b8 head_4_64_f32_param_0[{}]", size_of::<Product>());
        assert!(layers(2).contains(&parameter), "{parameter}");
    }

    /// Every kernel that can be chosen is there, and fits on small cards as well.
    #[test]
    fn kernels_that_are_chosen_are_there() {
        for hopper in [false, true] {
            let all = if hopper { hopper_ptx(1) } else { layers(1) };
            let forms = [false, true]
                .map(|bytes| {
                    let inputs = [Form::Forward { bytes }, Form::Backward { bytes }];
                    [&inputs[..], &[Form::Head { bytes }, Form::Outer { bytes }]].concat()
                })
                .concat();
            let forms = forms.into_iter().chain([Form::Errors]);
            for form in forms {
                for (down, across, deep, m) in
                    [(1, 1, 1, 1), (640, 128, 785, 8), (1280, 200, 785, 100), (65, 10, 256, 1000)]
                {
                    if matches!(form, Form::Head { .. }) && across > 128 {
                        continue;
                    }
                    for near in [99 << 10, 163 << 10, 227 << 10] {
                        for terms in [1, 2] {
                            let parts = 1;
                            let mut product = Product {
                                down,
                                across,
                                deep: [deep; 3],
                                parts,
                                ..Product::default()
                            };
                            let launch = product.launch(m, form, terms, (near, hopper));
                            assert!(
                                all.contains(&format!(".entry {}_f32(", launch.name)),
                                "{launch:?}"
                            );
                            assert!(
                                launch.shared as usize <= near && launch.blocks > 0,
                                "{launch:?}"
                            );
                            assert!([3, 4, 6].contains(&product.stages));
                        }
                    }
                }
            }
        }
    }
}
