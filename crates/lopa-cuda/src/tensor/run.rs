//! A run on the tensor cores.

use lopa::engine::Node;
use lopa::engine::device::DeviceRun;
use lopa::error::Result;
use lopa::math::real::Real;

use super::ORDER;
use super::layout::Layout;
use super::work::Work;
use crate::driver::{Card, Graph, Kernel};
use crate::job::{Common, Scalar};
use crate::kernels;
use crate::plan::{Plan, Table, X, Y};
use crate::run::{AHEAD, Due, Launches, MANY, Run, State};

/// The blocks of a cluster, and the most neighbours of its node.
const SPREAD: u32 = 8;
const NEAR: usize = 2;
/// The number of chunks of features that a cluster supports, and the most clusters that any card has room for.
const CLUSTER_CHUNKS: u32 = 6;
const CLUSTERS: u32 = 16;

/// Shared memory of a block of the oracle with 8 and with 16 warps, and of a cluster: `Room` and `Share` of the
/// kernels.
const ROOM: [u32; 2] = [111_616, 204_288];
const SHARE: u32 = 210_784;

/// Below this many nodes, blocks mix more nodes and have more warps.
const FEW: u32 = 512;

/// LoPA-GT.
const TRACKING: u32 = 0;

/// How iterations are launched.
enum Way {
    /// Two kernels per iteration; many iterations are recorded as one graph, starting from either
    /// buffer, unless there are several processes.
    Recorded { pair: Pair, many: Option<[Graph; 2]> },
    /// Clusters that stay on the card for all iterations.
    Resident { prepare: Kernel, cluster: Kernel },
}

/// Iterations on tensor cores.
struct Iterations {
    work: Work,
    way: Way,
    /// Whether the last oracle has moved z (see `MOVES` of the kernels); false whenever variables
    /// are read.
    moved: bool,
}

/// Takes over a run that the kernels support.
pub fn take<T: Scalar>(
    mut card: Card,
    mut plan: Plan<T>,
    nodes: &[Node<T>],
) -> Result<Box<dyn DeviceRun<T>>> {
    let job = plan.job;
    let layout = Layout::new(job.features, job.units);
    let m = job.m as usize;
    let (links, linked, w) = plan.neighbours();
    let nearest = links.windows(2).all(|pair| (pair[1] - pair[0]) as usize <= NEAR);
    let mut cluster = None;
    // Clusters have sums in another order, and all nodes.
    let small = layout.chunks == CLUSTER_CHUNKS && job.m <= CLUSTERS && !plan.divisible;
    card.load(&kernels::tensor())?;
    if job.scheme == TRACKING && nearest && small {
        let kernel = card.wide_kernel("cluster", 320, SHARE)?;
        let fit = card.clusters(&kernel, SPREAD).unwrap_or(0);
        cluster = (job.m <= fit).then_some(kernel);
    }
    let buffers = |at: usize| match at {
        X => 2,
        // Clusters need a third y.
        Y => 2 + usize::from(cluster.is_some()),
        _ => 1,
    };
    let mut state = State::new(&card, &plan, nodes, Box::new(layout), buffers)?;
    let ordered = job.common.ordered(ORDER);
    let common = state.common(&card, &plan, (&links, &linked, &w), ordered)?;
    let mut work = Work {
        common: Common { n: layout.length() as u32, ..common },
        unit: Real::to_f64(job.unit) as f32,
        ridge: Real::to_f64(job.ridge) as f32,
        chunks: layout.chunks,
        ..Work::default()
    };
    work.common.picks = state.empty::<u32>(&card, m * 256)?;
    if let Table::Bytes(bytes) = std::mem::replace(&mut plan.table, Table::Numbers(Vec::new())) {
        work.common.table = state.copy(&card, &layout.table(&bytes))?;
    }
    let weights: Vec<T> =
        plan.weights.chunks_exact(5).flat_map(|own| ORDER.map(|at| own[at])).collect();
    work.common.weights = state.copy(&card, &weights)?;
    work.flags = state.empty::<u32>(&card, 2 * m * SPREAD as usize)?;
    let posts = match cluster {
        Some(_) => None,
        None => state.posts(&card, &plan, "carry")?,
    };
    let way = match cluster {
        Some(cluster) => Way::Resident { prepare: card.wide_kernel("prepare", 256, 0)?, cluster },
        None => recorded(&card, &work, plan.total, posts.is_some())?,
    };
    Run::start(card, plan, state, (Iterations { work, way, moved: false }, posts), "sizes")
}

/// The two kernels of an iteration.
struct Pair {
    /// After an oracle that has not moved z, and after one that has.
    mix: [Kernel; 2],
    grid: [u32; 2],
    /// Without and with moving z.
    oracle: [Kernel; 2],
}

impl Pair {
    /// The names of both, nodes of a block of `mix`.
    fn kind(m: u32, chunks: u32) -> (String, String, u32) {
        let nodes = if (65..FEW).contains(&m) { 128 } else { 64 };
        (format!("mix_{nodes}"), format!("oracle_{}", Pair::warps(m, chunks)), nodes)
    }

    /// As many as fit where there are few nodes.
    fn warps(m: u32, chunks: u32) -> u32 {
        if m < FEW && matches!(chunks, 2 | 4 | 6) { 16 } else { 8 }
    }

    /// Of so many nodes in all processes: the kernels, and hence the sums, do not depend on the processes.
    fn new(card: &Card, work: &Work, total: u32) -> Result<Pair> {
        let Common { m, n, .. } = work.common;
        let (mix, oracle, nodes) = Pair::kind(total, work.chunks);
        let warps = Pair::warps(total, work.chunks);
        let mix = |end: &str| card.wide_kernel(&format!("{mix}{end}"), 256, 0);
        let mix = [mix("")?, mix("_moved")?];
        let grid = [n / 64 + nodes / 8, m.div_ceil(nodes)];
        let oracle = |end: &str| {
            let room = ROOM[usize::from(warps == 16)];
            card.wide_kernel(&format!("{oracle}{end}"), 32 * warps, room)
        };
        Ok(Pair { mix, grid, oracle: [oracle("")?, oracle("_moves")?] })
    }

    /// An iteration from buffer `now` on, after and before oracles that have moved z or not.
    fn launch(&self, card: &Card, work: &Work, now: usize, moved: [bool; 2]) -> Result<()> {
        self.mix(card, work, now, moved[0])?;
        self.oracle(card, work, now, moved[1])
    }

    fn mix(&self, card: &Card, work: &Work, now: usize, moved: bool) -> Result<()> {
        card.launch(&self.mix[usize::from(moved)], self.grid, work, now as u32)
    }

    fn oracle(&self, card: &Card, work: &Work, now: usize, moves: bool) -> Result<()> {
        let kernel = &self.oracle[usize::from(moves)];
        card.launch(kernel, [work.common.m, 1], work, 1 - now as u32)
    }
}

fn recorded(card: &Card, work: &Work, total: u32, among: bool) -> Result<Way> {
    let pair = Pair::new(card, work, total)?;
    let moved = [work.common.scheme == TRACKING; 2];
    let from = |first: usize| {
        card.record(|| {
            (first..first + MANY).try_for_each(|now| pair.launch(card, work, now % 2, moved))
        })
    };
    let many = if among { None } else { Some([from(0)?, from(1)?]) };
    Ok(Way::Recorded { pair, many })
}

impl Launches for Iterations {
    fn most(&self) -> usize {
        match self.way {
            Way::Recorded { .. } => MANY,
            Way::Resident { .. } => AHEAD,
        }
    }

    fn kept(&self) -> usize {
        1
    }

    fn launch<T: Scalar>(&mut self, card: &Card, state: &mut State<T>, due: Due) -> Result<usize> {
        let Due { ready, pending, among } = due;
        let tracking = self.work.common.scheme == TRACKING;
        let now = state.now[X];
        match &self.way {
            Way::Recorded { many: Some(many), .. }
                if ready >= MANY && self.moved == tracking && pending > MANY =>
            {
                card.replay(&many[now])?;
                Ok(MANY)
            }
            Way::Recorded { pair, .. } => {
                let moves = tracking && pending > 1;
                let mix = || pair.mix(card, &self.work, now, self.moved);
                let oracle = || pair.oracle(card, &self.work, now, moves);
                match among {
                    Some(among) => among.around(card, 1 - now, mix, oracle)?,
                    None => mix().and_then(|()| oracle())?,
                }
                self.moved = moves;
                (state.now[X], state.now[Y]) = (1 - now, 1 - now);
                Ok(1)
            }
            Way::Resident { prepare, cluster } => {
                // With the current buffers first.
                let mut work = self.work;
                work.common.x = std::array::from_fn(|at| state.address(X, (now + at) % 2));
                work.common.y = std::array::from_fn(|at| state.address(Y, (state.now[Y] + at) % 3));
                let Common { m, n, .. } = work.common;
                card.launch(prepare, [n.div_ceil(256), m], &work, 0)?;
                card.launch(cluster, [SPREAD * m, 1], &work, ready as u32)?;
                state.now[X] = (now + ready) % 2;
                state.now[Y] = (state.now[Y] + ready) % 3;
                Ok(ready)
            }
        }
    }
}
