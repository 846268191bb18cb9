//! A run on the tensor cores.

use lopa::engine::Node;
use lopa::engine::device::DeviceRun;
use lopa::error::Result;
use lopa::math::real::Real;

use super::ORDER;
use super::layout::Layout;
use super::work::Work;
use crate::card::{AHEAD, MANY, Rooms};
use crate::driver::{Card, Graph, Kernel, Memory};
use crate::job::Scalar;
use crate::kernels::tensor_ptx;
use crate::plan::{PLACES, Plan, Table};

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

/// The first of [`PLACES`] whose variables are laid out as x is.
const WIDE: usize = 4;

/// How iterations are launched.
enum Way {
    /// Two kernels per iteration; many iterations are recorded as one graph, starting from either
    /// buffer.
    Recorded { pair: Pair, many: [Graph; 2] },
    /// Clusters that stay on the card for all iterations.
    Resident { prepare: Kernel, cluster: Kernel },
}

/// A run on the card.
struct Run<T: Scalar> {
    plan: Plan<T>,
    work: Work,
    layout: Layout,
    /// Iterations launched, and begun but not launched.
    k: u64,
    pending: usize,
    /// Whether the last oracle has moved z (see `MOVES` of the kernels); false whenever variables
    /// are read.
    moved: bool,
    /// The row of the next iteration in the table of step sizes.
    ahead: usize,
    // Dropped in this order: recorded graphs, then memory, then the card.
    way: Way,
    sizes: Kernel,
    memory: Vec<Memory>,
    /// The buffers of x and y by number, the current ones first.
    x: [usize; 2],
    y: [usize; 3],
    steps: usize,
    clock: usize,
    largest: usize,
    card: Card,
}

/// Takes over a run that the kernels support.
pub fn take<T: Scalar>(
    mut card: Card,
    mut plan: Plan<T>,
    nodes: &[Node<T>],
) -> Result<Box<dyn DeviceRun<T>>> {
    let job = plan.job;
    let layout = Layout::new(job.features, job.units);
    let (m, length) = (job.m as usize, layout.length());
    let mut work = Work {
        unit: Real::to_f64(job.unit) as f32,
        ridge: Real::to_f64(job.ridge) as f32,
        m: job.m,
        n: length as u32,
        p: job.p,
        scheme: job.scheme,
        units: job.units,
        classes: job.classes,
        tanh: job.tanh,
        chunks: layout.chunks,
        size: ORDER.map(|at| job.size[at]),
        slot: ORDER.map(|at| job.slot[at]),
        full: ORDER.map(|at| job.full[at]),
        side: ORDER.map(|at| u32::from(at >= 3)),
        seed: job.seed,
        ..Work::default()
    };
    let (links, linked, w) = plan.neighbours();
    let nearest = links.windows(2).all(|pair| (pair[1] - pair[0]) as usize <= NEAR);
    let mut cluster = None;
    if job.scheme == TRACKING && nearest && layout.chunks == CLUSTER_CHUNKS && job.m <= CLUSTERS {
        card.load(&tensor_ptx(), &["prepare", "cluster", "sizes"].map(String::from))?;
        let kernel = card.wide_kernel("cluster", 320, SHARE)?;
        let fit = card.clusters(&kernel, SPREAD).unwrap_or(0);
        cluster = (job.m <= fit).then_some(kernel);
    }
    if cluster.is_none() {
        let (mix, oracle, _) = Pair::kind(&work);
        let names = [format!("{mix}_moved"), mix, format!("{oracle}_moves"), oracle];
        card.load(&tensor_ptx(), &[&names[..], &["sizes".into()]].concat())?;
    }
    let mut rooms = Rooms::new(&card);
    // The variables first, in the order of `PLACES`, so that their numbers are known.
    let mut places = [0; 8];
    let mut packed = vec![T::zero(); length];
    for (at, own) in plan.lengths.into_iter().enumerate() {
        let room = if at < WIDE || own == 0 { own } else { length };
        places[at] = rooms.empty::<T>(m * room)?;
        plan.hand_over(nodes, at, |first, values| {
            if at < WIDE {
                return card.put_at(&rooms.all[at], first * own, values);
            }
            values.chunks_exact(own).enumerate().try_for_each(|(i, values)| {
                layout.pack(values, &mut packed);
                card.put_at(&rooms.all[at], (first + i) * length, &packed)
            })
        })?;
    }
    [work.theta, work.d, work.v, work.h, work.s] = std::array::from_fn(|at| places[at]);
    work.z = if job.scheme == 3 { 0 } else { places[5] };
    // Clusters need a third y.
    let third = if cluster.is_some() { m * length } else { 0 };
    work.y = [places[6], rooms.empty::<T>(m * length)?, rooms.empty::<T>(third)?];
    work.x = [places[7], rooms.empty::<T>(m * length)?];
    (work.links, work.linked) = (rooms.copy(&links)?, rooms.copy(&linked)?);
    work.w = rooms.copy(&w)?;
    work.picks = rooms.empty::<u32>(m * 256)?;
    for side in 0..2 {
        work.own[side] = rooms.copy(&plan.own[side])?;
        work.owned[side] = rooms.copy(&plan.owned[side])?;
    }
    work.labels = rooms.copy(&plan.labels)?;
    if let Table::Bytes(bytes) = std::mem::replace(&mut plan.table, Table::Numbers(Vec::new())) {
        work.table = rooms.copy(&layout.table(&bytes))?;
    }
    let weights: Vec<T> =
        plan.weights.chunks_exact(5).flat_map(|own| ORDER.map(|at| own[at])).collect();
    work.weights = rooms.copy(&weights)?;
    work.flags = rooms.empty::<u32>(2 * m * SPREAD as usize)?;
    work.largest = rooms.empty::<f64>(m * PLACES.len())?;
    let largest = rooms.all.len() - 1;
    work.steps = rooms.empty::<T>((AHEAD + 1) * 5)?;
    let steps = rooms.all.len() - 1;
    work.clock = rooms.empty::<u32>(2 * m)?;
    let clock = rooms.all.len() - 1;
    let memory = rooms.all;
    let sizes = card.kernel("sizes")?;
    let way = match cluster {
        Some(cluster) => Way::Resident { prepare: card.wide_kernel("prepare", 256, 0)?, cluster },
        None => recorded(&card, &work)?,
    };
    let (k, ahead) = (plan.k, AHEAD);
    Ok(Box::new(Run {
        plan,
        work,
        layout,
        k,
        pending: 0,
        moved: false,
        ahead,
        way,
        sizes,
        memory,
        x: [7, 10],
        y: [6, 8, 9],
        steps,
        clock,
        largest,
        card,
    }))
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
    fn kind(work: &Work) -> (String, String, u32) {
        let nodes = if (65..FEW).contains(&work.m) { 128 } else { 64 };
        (format!("mix_{nodes}"), format!("oracle_{}", Pair::warps(work)), nodes)
    }

    /// As many as fit where there are few nodes.
    fn warps(work: &Work) -> u32 {
        if work.m < FEW && matches!(work.chunks, 2 | 4 | 6) { 16 } else { 8 }
    }

    fn new(card: &Card, work: &Work) -> Result<Pair> {
        let (mix, oracle, nodes) = Pair::kind(work);
        let warps = Pair::warps(work);
        let mix = |end: &str| card.wide_kernel(&format!("{mix}{end}"), 256, 0);
        let mix = [mix("")?, mix("_moved")?];
        let grid = [work.n / 64 + nodes / 8, work.m.div_ceil(nodes)];
        let oracle = |end: &str| {
            let room = ROOM[usize::from(warps == 16)];
            card.wide_kernel(&format!("{oracle}{end}"), 32 * warps, room)
        };
        Ok(Pair { mix, grid, oracle: [oracle("")?, oracle("_moves")?] })
    }

    /// An iteration from buffer `now` on, after and before oracles that have moved z or not.
    fn launch(&self, card: &Card, work: &Work, now: usize, moved: [bool; 2]) -> Result<()> {
        let [before, after] = moved.map(usize::from);
        card.launch(&self.mix[before], self.grid, work, now as u32)?;
        card.launch(&self.oracle[after], [work.m, 1], work, 1 - now as u32)
    }
}

fn recorded(card: &Card, work: &Work) -> Result<Way> {
    let pair = Pair::new(card, work)?;
    let moved = [work.scheme == TRACKING; 2];
    let from = |first: usize| {
        card.record(|| {
            (first..first + MANY).try_for_each(|now| pair.launch(card, work, now % 2, moved))
        })
    };
    let many = [from(0)?, from(1)?];
    Ok(Way::Recorded { pair, many })
}

impl<T: Scalar> Run<T> {
    /// Iterations that are launched at once.
    fn most(&self) -> usize {
        match self.way {
            Way::Recorded { .. } => MANY,
            Way::Resident { .. } => AHEAD,
        }
    }

    /// Which of the two buffers of x is current; y has the same, where iterations are recorded.
    fn now(&self) -> usize {
        usize::from(self.x[0] != 7)
    }

    /// Launches all iterations that were begun, except for the last `rest`.
    fn launch(&mut self, rest: usize) -> Result<()> {
        let tracking = self.work.scheme == TRACKING;
        while self.pending > rest {
            if self.ahead == AHEAD {
                // One more, because z may be moved ahead.
                let rows = (self.k..).take(AHEAD + 1);
                let steps: Vec<T> = rows.flat_map(|k| self.plan.steps(k)).collect();
                self.card.put(&self.memory[self.steps], &steps)?;
                let clock = [self.k as u32, 0].repeat(self.work.m as usize);
                self.card.put(&self.memory[self.clock], &clock)?;
                self.ahead = 0;
            }
            let mut count = (self.pending - rest).min(AHEAD - self.ahead);
            match &self.way {
                Way::Recorded { many, .. }
                    if count >= MANY && self.moved == tracking && self.pending > MANY =>
                {
                    count = MANY;
                    self.card.replay(&many[self.now()])?;
                }
                Way::Recorded { pair, .. } => {
                    count = 1;
                    let moves = tracking && self.pending > 1;
                    pair.launch(&self.card, &self.work, self.now(), [self.moved, moves])?;
                    self.moved = moves;
                    self.x.rotate_left(1);
                    self.y[..2].rotate_left(1);
                }
                Way::Resident { prepare, cluster } => {
                    let work = self.work_now();
                    self.card.launch(prepare, [work.n.div_ceil(256), work.m], &work, 0)?;
                    self.card.launch(cluster, [SPREAD * work.m, 1], &work, count as u32)?;
                    self.x.rotate_left(count % 2);
                    self.y.rotate_left(count % 3);
                }
            }
            (self.pending, self.ahead) = (self.pending - count, self.ahead + count);
            self.k += count as u64;
        }
        Ok(())
    }

    /// With the current buffers first.
    fn work_now(&self) -> Work {
        let of = |at: usize| self.memory[at].address;
        Work { x: self.x.map(of), y: self.y.map(of), ..self.work }
    }
}

impl<T: Scalar> DeviceRun<T> for Run<T> {
    fn advance(&mut self) -> Result<()> {
        self.pending += 1;
        if self.pending <= self.most() {
            return Ok(());
        }
        self.card.bind()?;
        self.launch(1)
    }

    fn wait(&mut self) -> Result<()> {
        self.card.bind()?;
        self.launch(0)?;
        self.card.wait()
    }

    fn fetch(&mut self, nodes: &mut [Node<T>]) -> Result<()> {
        self.card.bind()?;
        self.launch(0)?;
        let Run { plan, memory, card, layout, x, y, work, .. } = self;
        let length = layout.length();
        let mut packed = vec![T::zero(); length];
        plan.give_back(nodes, |place, to| {
            let number = match place {
                6 => y[0],
                7 => x[0],
                _ => place,
            };
            if place < WIDE {
                return card.get_at(&memory[number], 0, to);
            }
            let own = to.len() / work.m as usize;
            for (i, to) in to.chunks_exact_mut(own).enumerate() {
                card.get_at(&memory[number], i * length, &mut packed)?;
                layout.unpack(&packed, to);
            }
            Ok(())
        })
    }

    fn sizes(&mut self) -> Result<Vec<Vec<f64>>> {
        self.card.bind()?;
        self.launch(0)?;
        let mut largest = vec![0.0; self.work.m as usize * PLACES.len()];
        let work = self.work_now();
        self.card.launch(&self.sizes, [largest.len() as u32, 1], &work, 0)?;
        self.card.get_at(&self.memory[self.largest], 0, &mut largest)?;
        Ok(self.plan.sorted(&largest))
    }
}
