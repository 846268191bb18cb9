//! A run on the card.

use lopa::engine::Node;
use lopa::engine::device::{DeviceRun, Program};
use lopa::error::{Error, Result};
use lopa::math::real::Real;

use crate::driver::{Card, Graph, Kernel, Memory, THREADS};
use crate::job::{Address, Job, Scalar};
use crate::kernels::ptx;
use crate::plan::{DESCENT, Kind, PLACES, Plan, Table, refused};
use crate::{general, tensor};

/// Iterations in the table of step sizes.
pub const AHEAD: usize = 1024;

/// Iterations that are recorded as one, an even number.
pub const MANY: usize = 16;

/// The most shared memory, in bytes, of a block that computes a whole node with one class; every
/// card has this much.
const NEAR: usize = 48 << 10;

/// One block computes a whole node from this many nodes on; with one class, also up to this many
/// features.
const MANY_NODES: u32 = 64;
const FEW_FEATURES: u32 = 1024;

/// How many warps of a block compute scores where a node has many blocks; the others only help to copy weights.
const WARPS: u32 = THREADS / 32;

/// A run on the card.
struct Run<T: Scalar> {
    plan: Plan<T>,
    job: Job<T>,
    /// Iterations launched, and begun but not launched.
    k: u64,
    pending: usize,
    /// The row of the next iteration in the table of step sizes.
    ahead: usize,
    /// Which of the two buffers of x and y is current.
    now: u32,
    // Dropped in this order: recorded graphs, then memory, then the card.
    one: [Graph; 2],
    many: [Graph; 2],
    sizes: Kernel,
    memory: Vec<Memory>,
    steps: usize,
    clock: usize,
    largest: usize,
    card: Card,
}

/// Memory on the card, by number.
pub struct Rooms<'a> {
    card: &'a Card,
    pub all: Vec<Memory>,
}

impl<'a> Rooms<'a> {
    pub fn new(card: &'a Card) -> Rooms<'a> {
        Rooms { card, all: Vec::new() }
    }

    pub fn copy<V: Copy>(&mut self, values: &[V]) -> Result<Address> {
        self.keep(self.card.copy(values)?)
    }

    pub fn empty<V: Copy>(&mut self, count: usize) -> Result<Address> {
        self.keep(self.card.room::<V>(count)?)
    }

    fn keep(&mut self, memory: Memory) -> Result<Address> {
        let address = memory.address;
        self.all.push(memory);
        Ok(address)
    }
}

/// Takes over a run: on tensor cores where they support it, else with plain kernels.
pub fn open<T: Scalar>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    let card = Card::first()?;
    let plan = Plan::new(&program)?;
    if tensor::should(&plan, card.capability) {
        tensor::take(card, plan, program.nodes)
    } else if general::should(&plan, card.capability) {
        general::take(card, plan, program.nodes)
    } else {
        take(card, plan, program.nodes)
    }
}

/// Takes over a run with plain kernels.
pub fn open_plain<T: Scalar>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    take(Card::first()?, Plan::new(&program)?, program.nodes)
}

/// Takes over a run on tensor cores wherever they support it.
pub fn open_tensor<T: Scalar>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    let card = Card::first()?;
    let plan = Plan::new(&program)?;
    match tensor::can(&plan) && card.capability[0] == 9 {
        true => tensor::take(card, plan, program.nodes),
        false => Err(refused("what tensor cores do not serve")),
    }
}

/// Takes over a run with the kernels of any shape wherever they support it.
pub fn open_general<T: Scalar>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    let card = Card::first()?;
    let plan = Plan::new(&program)?;
    match general::can(&plan) && card.capability[0] == 9 {
        true => general::take(card, plan, program.nodes),
        false => Err(refused("what tensor cores do not serve")),
    }
}

/// With plain kernels.
fn take<T: Scalar>(
    mut card: Card,
    mut plan: Plan<T>,
    nodes: &[Node<T>],
) -> Result<Box<dyn DeviceRun<T>>> {
    let wanted = kernels(&card, plan.kind, &plan.job)?;
    let [sizes, tick] = ["sizes", "tick"].map(|name| format!("{name}_{}", T::END));
    let mut names = vec![sizes.clone(), tick.clone()];
    names.extend(wanted.iter().map(|wanted| wanted.name.clone()));
    card.load(&ptx(), &names)?;
    let mut rooms = Rooms::new(&card);
    let mut job = plan.job;
    let m = job.m as usize;
    let of = |length: u32| m * length as usize;
    // The variables first, in the order of `PLACES`, so that their numbers are known.
    let mut places = [0; 8];
    for (at, length) in plan.lengths.into_iter().enumerate() {
        places[at] = rooms.empty::<T>(m * length)?;
        plan.hand_over(nodes, at, |i, values| card.put_at(&rooms.all[at], i * length, values))?;
    }
    let there = |at: usize| plan.lengths[at] > 0;
    [job.theta, job.d, job.v, job.h, job.s] = std::array::from_fn(|at| places[at]);
    job.z = if there(5) { places[5] } else { 0 };
    let other_y = rooms.empty::<T>(m * plan.lengths[6])?;
    job.y = if there(6) { [places[6], other_y] } else { [0; 2] };
    job.x = [places[7], rooms.empty::<T>(m * plan.lengths[7])?];
    (job.links, job.linked) = (rooms.copy(&plan.links)?, rooms.copy(&plan.linked)?);
    job.w = rooms.copy(&plan.w)?;
    job.picks = rooms.empty::<u32>(of(job.drawn))?;
    for side in 0..2 {
        job.own[side] = rooms.copy(&plan.own[side])?;
        if !plan.owned[side].is_empty() {
            job.owned[side] = rooms.copy(&plan.owned[side])?;
        }
    }
    job.labels = rooms.copy(&plan.labels)?;
    job.table = match &plan.table {
        Table::Bytes(bytes) => rooms.copy(&spaced(bytes, &job, 0))?,
        Table::Numbers(values) => rooms.copy(&spaced(values, &job, T::zero()))?,
    };
    if plan.shift.iter().any(|&shift| shift != T::zero()) {
        job.shift = rooms.copy(&spaced(&plan.shift, &job, T::zero()))?;
    }
    job.weights = rooms.copy(&plan.weights)?;
    job.hidden = rooms.empty::<T>(of(job.drawn * job.units))?;
    job.slopes = rooms.empty::<T>(of(job.drawn * across(job.classes)))?;
    job.errors = rooms.empty::<T>(of((job.size[4] + job.size[2]) * job.units))?;
    for (address, values) in job.coefficients.iter_mut().zip(&plan.coefficients) {
        *address = rooms.copy(values)?;
    }
    job.rest = rooms.empty::<T>(of(job.outputs))?;
    job.largest = rooms.empty::<f64>(m * PLACES.len())?;
    let largest = rooms.all.len() - 1;
    job.steps = rooms.empty::<T>(AHEAD * 5)?;
    let steps = rooms.all.len() - 1;
    job.clock = rooms.empty::<u32>(2)?;
    let clock = rooms.all.len() - 1;
    let memory = rooms.all;
    // The host's copy is not needed any more.
    plan.table = Table::Numbers(Vec::new());
    plan.coefficients = Default::default();
    let (sizes, tick) = (card.kernel(&sizes)?, card.kernel(&tick)?);
    let launch = |wanted: Wanted| -> Result<Launch> {
        let kernel = card.wide_kernel(&wanted.name, wanted.threads, wanted.shared)?;
        Ok(Launch { kernel, blocks: wanted.blocks as u32, after: wanted.after })
    };
    let kernels: Vec<Launch> = wanted.into_iter().map(launch).collect::<Result<_>>()?;
    let record = |count: u32, first: u32| {
        card.record(|| {
            for k in 0..count {
                for launch in &kernels {
                    let at = 2 * k + (first + k + u32::from(launch.after)) % 2;
                    card.launch(&launch.kernel, [launch.blocks, 1], &job, at)?;
                }
            }
            card.launch(&tick, [1, 1], &job, count)
        })
    };
    let one = [record(1, 0)?, record(1, 1)?];
    let many = [record(MANY as u32, 0)?, record(MANY as u32, 1)?];
    let (k, ahead, now) = (plan.k, AHEAD, 0);
    Ok(Box::new(Run {
        plan,
        job,
        k,
        pending: 0,
        ahead,
        now,
        one,
        many,
        sizes,
        memory,
        steps,
        clock,
        largest,
        card,
    }))
}

/// Rows of features with the padding that the kernels need.
fn spaced<T: Real, V: Copy>(values: &[V], job: &Job<T>, zero: V) -> Vec<V> {
    let [features, stride] = [job.features, job.stride].map(|length| length as usize);
    let mut all = Vec::with_capacity(values.len() / features.max(1) * stride);
    for row in values.chunks_exact(features.max(1)) {
        all.extend_from_slice(row);
        all.resize(all.len() + stride - features, zero);
    }
    all
}

/// A kernel of an iteration.
struct Launch {
    kernel: Kernel,
    blocks: u32,
    /// Whether it reads x after the step.
    after: bool,
}

/// The kernel in which one block computes a whole linear classifier: where it fits, and there are
/// enough nodes or little work per node.
fn whole<T: Scalar>(card: &Card, job: &Job<T>) -> Option<Wanted> {
    let Job { m, features, classes, scheme, .. } = *job;
    // With more classes, only f32 sums fit into registers, and two blocks should fit on a multiprocessor.
    let (most, room) = match (classes, T::BYTES) {
        (1, _) => (1, NEAR),
        (10, 4) => (10, card.near / 2),
        (2..=16, 4) => (16, card.near / 2),
        _ => return None,
    };
    let near = shared_bytes(job).iter().sum::<u64>();
    let pays = m >= MANY_NODES || most == 1 && features <= FEW_FEATURES;
    if scheme == DESCENT || near > room as u64 || !pays {
        return None;
    }
    // As many threads as have enough registers: in small blocks where many can share a
    // multiprocessor, else in large ones, which finish sooner.
    let threads = match most {
        1 => 1024,
        10 => 640,
        _ => 512,
    };
    let threads = match (m, features) {
        (..512, _) => threads,
        (_, ..=128) => 128,
        _ => threads / 2,
    };
    let name = format!("whole{}_{most}", form(job));
    Some(Wanted { name, threads, shared: near as u32, blocks: u64::from(m), after: false })
}

/// The distance between the slopes of one row and the next.
fn across(classes: u32) -> u32 {
    if classes == 1 { 1 } else { classes.next_multiple_of(4) }
}

/// Bytes of θ and v of a node, class after class, and of the slopes and the numbers of its rows.
fn shared_bytes<T: Scalar>(job: &Job<T>) -> [u64; 2] {
    let Job { stride, drawn, classes, .. } = *job;
    // The distance between the weights of one class and the next, as in kernels/linear.cuh.
    let apart = if classes == 1 { stride } else { (stride + 27) / 32 * 32 + 4 };
    let [apart, drawn, classes, across] = [apart, drawn, classes, across(classes)].map(u64::from);
    let size = T::BYTES as u64;
    [2 * classes * apart * size, drawn * (across * size + 4)]
}

/// The part of a kernel's name that depends on whether features are bytes.
fn form<T: Scalar>(job: &Job<T>) -> &'static str {
    if job.bytes == 1 { "_bytes" } else { "" }
}

/// A kernel to launch: its name, the threads and shared memory of a block, the blocks.
struct Wanted {
    name: String,
    threads: u32,
    shared: u32,
    blocks: u64,
    /// Whether it reads x after the step.
    after: bool,
}

/// The kernels of a linear classifier where a node has many blocks.
fn linear<T: Scalar>(card: &Card, job: &Job<T>) -> [Wanted; 2] {
    let Job { features, classes, size: [xi1, xi2, _, sigma1, _], .. } = *job;
    let form = form(job);
    // Data that all threads of a block read are in shared memory if they fit.
    let fitting = |bytes: u64, room: usize| if bytes <= room as u64 { bytes as u32 } else { 0 };
    let [weights, slopes] = shared_bytes(job);
    let weights = if (2..=16).contains(&classes) { fitting(weights, card.near) } else { 0 };
    let slopes = fitting(slopes, NEAR);
    // The kernels for this number of classes, and the number of rows that a warp processes at once.
    let (most, together) = match classes {
        0 | 1 => (1, 1),
        10 if weights > 0 && slopes > 0 && T::BYTES == 4 => (10, 4),
        2..=16 => (16, 4),
        _ => (64, 1),
    };
    let threads = if weights > 0 { 2 * THREADS } else { THREADS };
    let blocks = |count: u32, each: u32| u64::from(job.m) * u64::from(count.div_ceil(each));
    [
        Wanted {
            name: format!("scores{form}_{most}"),
            threads,
            shared: weights,
            blocks: blocks(xi1 + xi2 + sigma1, WARPS * together),
            after: true,
        },
        Wanted {
            name: format!("linear{form}_{most}"),
            threads: THREADS,
            shared: slopes,
            blocks: blocks(3 * features, THREADS),
            after: true,
        },
    ]
}

/// The kernels of an iteration, in order.
fn kernels<T: Scalar>(card: &Card, kind: Kind, job: &Job<T>) -> Result<Vec<Wanted>> {
    let [m, n, p, drawn] = [job.m, job.n, job.p, job.drawn].map(u64::from);
    let [units, features, outputs, blocks] =
        [job.units, job.features, job.outputs, job.blocks].map(u64::from);
    let threads = u64::from(THREADS);
    let flat = |count: u64| count.div_ceil(threads);
    let form = form(job);
    // Weights of the head are kept in shared memory where they fit.
    let at_hand = if T::BYTES == 4 && job.classes <= 16 && job.units <= 256 { "_16" } else { "" };
    let plain = |name: &str, blocks: u64| {
        let (name, after) = (name.to_string(), name != "move");
        Wanted { name, threads: THREADS, shared: 0, blocks, after }
    };
    let whole = if kind == Kind::Linear { whole(card, job) } else { None };
    let alone = whole.is_some();
    let mut all = match whole {
        Some(whole) => vec![whole],
        None => vec![plain("move", flat(m * blocks) + flat(m * p) + m * flat(n))],
    };
    match kind {
        _ if alone => {}
        Kind::Layer => all.extend([
            plain(&format!("forward{form}"), m * drawn.div_ceil(64) * units.div_ceil(32)),
            plain(&format!("heads{at_hand}"), m * flat(drawn)),
            plain("rows", flat(m * p)),
            plain(&format!("backward{form}"), m * (features + 1).div_ceil(64) * units.div_ceil(32)),
        ]),
        Kind::Linear => all.extend(linear(card, job)),
        Kind::Quadratic => all.extend([
            plain("residual", flat(m * outputs)),
            plain("quadratic", flat(m * (2 * p + n))),
        ]),
    }
    if job.scheme == DESCENT {
        all.extend([plain("descend", flat(m * (p + n))), plain("settle", flat(m * p))]);
    }
    for wanted in &mut all {
        wanted.after &= job.scheme != DESCENT;
        wanted.name += &format!("_{}", T::END);
        if wanted.blocks >= 1 << 31 {
            return Err(Error::config(
                "device/refused",
                "the device cannot run this: too many nodes",
            )
            .at("run.device")
            .hint("use fewer nodes, or run it on the processor: `device = \"cpu\"`"));
        }
    }
    Ok(all)
}

impl<T: Scalar> Run<T> {
    /// Launches all iterations that were begun.
    fn launch(&mut self) -> Result<()> {
        while self.pending > 0 {
            if self.ahead == AHEAD {
                let steps: Vec<T> =
                    (self.k..).take(AHEAD).flat_map(|k| self.plan.steps(k)).collect();
                self.card.put(&self.memory[self.steps], &steps)?;
                self.card.put(&self.memory[self.clock], &[self.k as u32, 0])?;
                self.ahead = 0;
            }
            let whole = self.pending.min(AHEAD - self.ahead) >= MANY;
            let (graphs, count) = if whole { (&self.many, MANY) } else { (&self.one, 1) };
            self.card.replay(&graphs[self.now as usize])?;
            self.now = (self.now + count as u32) % 2;
            (self.pending, self.ahead) = (self.pending - count, self.ahead + count);
            self.k += count as u64;
        }
        Ok(())
    }
}

impl<T: Scalar> DeviceRun<T> for Run<T> {
    fn advance(&mut self) -> Result<()> {
        self.pending += 1;
        if self.pending < MANY {
            return Ok(());
        }
        self.card.bind()?;
        self.launch()
    }

    fn wait(&mut self) -> Result<()> {
        self.card.bind()?;
        self.launch()?;
        self.card.wait()
    }

    fn fetch(&mut self, nodes: &mut [Node<T>]) -> Result<()> {
        self.card.bind()?;
        self.launch()?;
        let Run { plan, memory, card, now, .. } = self;
        // The second buffers of y and x follow the eight variables.
        let number = |place: usize| match (place, *now) {
            (6 | 7, 1) => place + 2,
            _ => place,
        };
        plan.give_back(nodes, |place, to| card.get(&memory[number(place)], to))
    }

    fn sizes(&mut self) -> Result<Vec<Vec<f64>>> {
        self.card.bind()?;
        self.launch()?;
        let mut largest = vec![0.0; self.job.m as usize * PLACES.len()];
        self.card.launch(&self.sizes, [largest.len() as u32, 1], &self.job, self.now)?;
        self.card.get(&self.memory[self.largest], &mut largest)?;
        Ok(self.plan.sorted(&largest))
    }
}
