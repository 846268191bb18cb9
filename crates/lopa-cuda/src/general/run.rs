//! A run of any shape on the tensor cores.

use lopa::engine::Node;
use lopa::engine::device::DeviceRun;
use lopa::error::Result;
use lopa::math::real::Real;

use super::ORDER;
use super::layout::{Stored, pack, table, unpack};
use super::shape::{Launch, Shape};
use super::task::Task;
use crate::card::{AHEAD, MANY, Rooms};
use crate::driver::{Card, Graph, Kernel, Memory};
use crate::job::Scalar;
use crate::kernels::general_ptx;
use crate::plan::{PLACES, Plan, Table};

/// LoPA-GT.
const TRACKING: u32 = 0;

/// The first of [`PLACES`] whose variables are laid out as x is.
const WIDE: usize = 4;

/// A kernel with its number of blocks.
struct Ready {
    kernel: Kernel,
    blocks: u32,
}

/// The kernels of an iteration; `Moment` of kernels/general.cu has the meaning of moved and moves.
struct Kernels {
    turn: Ready,
    /// Where z has not been moved ahead, and where it has.
    mix: [Ready; 2],
    forward: Ready,
    /// None where `forward` computes the head as well.
    head: Option<Ready>,
    outer: Ready,
    backward: Ready,
    tick: Kernel,
}

impl Kernels {
    fn new(card: &Card, shape: &Shape) -> Result<Kernels> {
        let ready = |launch: Launch| -> Result<Ready> {
            let kernel = card.wide_kernel(&launch.name, launch.threads, launch.shared)?;
            Ok(Ready { kernel, blocks: launch.blocks as u32 })
        };
        let moved = Launch { name: "mix_moved".into(), ..shape.mix() };
        Ok(Kernels {
            turn: ready(shape.turn())?,
            mix: [ready(shape.mix())?, ready(moved)?],
            forward: ready(shape.forward())?,
            head: (!shape.with_head()).then(|| ready(shape.head())).transpose()?,
            outer: ready(shape.outer())?,
            backward: ready(shape.backward())?,
            tick: card.kernel("tick")?,
        })
    }

    /// The iteration that is `later` iterations after the clock, from buffer `now` on.
    fn launch(&self, card: &Card, task: &Task, now: usize, way: Way, later: u32) -> Result<()> {
        let at = now as u32 | u32::from(way.moved) << 1 | u32::from(way.moves) << 2 | later << 3;
        let go = |ready: &Ready| card.launch(&ready.kernel, [ready.blocks, 1], task, at);
        if !way.moved {
            go(&self.turn)?;
        }
        go(&self.mix[usize::from(way.moved && task.scheme == TRACKING)])?;
        go(&self.forward)?;
        if let Some(head) = &self.head {
            go(head)?;
        }
        card.beside(|| go(&self.outer), || go(&self.backward))
    }
}

/// Whether an iteration finds θ, v and z moved ahead, and whether it moves them ahead.
#[derive(Clone, Copy)]
struct Way {
    moved: bool,
    moves: bool,
}

/// A run on the card.
struct Run<T: Scalar> {
    plan: Plan<T>,
    task: Task,
    shape: Shape,
    /// Iterations launched, and begun but not launched.
    k: u64,
    pending: usize,
    /// Whether the last iteration has moved variables ahead; false whenever they are read.
    moved: bool,
    /// The row of the next iteration in the table of step sizes.
    ahead: usize,
    /// Which of the two buffers of x and y is current.
    now: usize,
    kernels: Kernels,
    sizes: Kernel,
    // Dropped in this order: recorded graphs, then memory, then the card.
    many: [Graph; 2],
    memory: Vec<Memory>,
    steps: usize,
    clock: usize,
    largest: usize,
    card: Card,
}

/// The kernels that a run of this shape needs.
fn names(shape: &Shape) -> Vec<String> {
    let own = [shape.forward(), shape.head(), shape.outer(), shape.backward()];
    let all = ["turn", "mix", "mix_moved", "ready", "tick", "sizes"].map(String::from);
    own.into_iter().map(|launch| launch.name).chain(all).collect()
}

/// Takes over a run that the kernels support.
pub fn take<T: Scalar>(
    mut card: Card,
    mut plan: Plan<T>,
    nodes: &[Node<T>],
) -> Result<Box<dyn DeviceRun<T>>> {
    let shape = Shape::new(&plan);
    card.load(&general_ptx(), &names(&shape))?;
    let job = plan.job;
    let (m, length) = (job.m as usize, shape.length());
    let rows = m * (shape.front + shape.back) as usize;
    let stored = Stored::new(&plan, &shape);
    let mut task = Task {
        ridge: Real::to_f64(job.ridge) as f32,
        unit: stored.unit,
        bias: stored.bias,
        m: job.m,
        n: length as u32,
        p: job.p,
        scheme: job.scheme,
        features: job.features,
        units: job.units,
        classes: job.classes,
        tanh: job.tanh,
        across: shape.across,
        deep: shape.deep,
        stride: shape.stride,
        terms: shape.terms,
        width: shape.width,
        tiles: shape.tiles,
        steps_in: shape.steps_in,
        steps_back: shape.steps_back,
        groups: shape.groups,
        together: shape.together(),
        size: ORDER.map(|at| job.size[at]),
        slot: ORDER.map(|at| job.slot[at]),
        full: ORDER.map(|at| job.full[at]),
        side: ORDER.map(|at| u32::from(at >= 3)),
        seed: job.seed,
        ..Task::default()
    };
    let mut end = 0;
    for batch in 0..5 {
        end += task.size[batch];
        (task.end[batch], task.block[batch]) = (end, task.blocks);
        task.blocks += task.size[batch].div_ceil(16);
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
                pack(&shape, values, &mut packed);
                card.put_at(&rooms.all[at], (first + i) * length, &packed)
            })
        })?;
    }
    [task.theta, task.d, task.v, task.h, task.s] = std::array::from_fn(|at| places[at]);
    task.z = if plan.lengths[5] > 0 { places[5] } else { 0 };
    // The second buffers of y and x follow the eight variables.
    task.y = [places[6], rooms.empty::<T>(m * length)?];
    task.x = [places[7], rooms.empty::<T>(m * length)?];
    let (links, linked, w) = plan.neighbours();
    (task.links, task.linked) = (rooms.copy(&links)?, rooms.copy(&linked)?);
    task.w = rooms.copy(&w)?;
    task.picks = rooms.empty::<u32>(rows)?;
    for side in 0..2 {
        task.own[side] = rooms.copy(&plan.own[side])?;
        task.owned[side] = rooms.copy(&plan.owned[side])?;
    }
    task.labels = rooms.copy(&plan.labels)?;
    task.table = rooms.copy(&table(&plan, &shape, stored))?;
    // The host's copy is not needed any more.
    plan.table = Table::Numbers(Vec::new());
    task.weights = rooms.copy(&weights(&plan))?;
    let factors = m * shape.tiles as usize * shape.step() as usize;
    task.factors = rooms.empty::<u8>(factors * shape.steps_in as usize)?;
    task.errors = rooms.empty::<u8>(factors * shape.steps_back as usize)?;
    // Activations are kept where `forward` does not compute the head.
    let kept = if shape.with_head() { 0 } else { rows };
    task.hidden = rooms.empty::<u32>(kept * shape.deep as usize)?;
    task.shares = rooms.empty::<f32>(m * shape.shares())?;
    task.heads = rooms.empty::<u32>(m * shape.heads() * 4)?;
    task.tops = rooms.empty::<f32>(m * shape.parts() as usize * 2)?;
    task.scales = rooms.empty::<f32>(m * 8)?;
    task.largest = rooms.empty::<f64>(m * PLACES.len())?;
    let largest = rooms.all.len() - 1;
    task.steps = rooms.empty::<T>((AHEAD + 1) * 5)?;
    let steps = rooms.all.len() - 1;
    task.clock = rooms.empty::<u32>(2)?;
    let clock = rooms.all.len() - 1;
    let memory = rooms.all;
    let sizes = card.kernel("sizes")?;
    if kept > 0 {
        let ready = shape.ready();
        let kernel = card.wide_kernel(&ready.name, ready.threads, ready.shared)?;
        card.launch(&kernel, [ready.blocks as u32, 1], &task, 0)?;
    }
    let kernels = Kernels::new(&card, &shape)?;
    let from = |first: usize| {
        card.record(|| {
            let way = Way { moved: true, moves: true };
            for later in 0..MANY {
                kernels.launch(&card, &task, (first + later) % 2, way, later as u32)?;
            }
            card.launch(&kernels.tick, [1, 1], &task, MANY as u32)
        })
    };
    let many = [from(0)?, from(1)?];
    let k = plan.k;
    Ok(Box::new(Run {
        plan,
        task,
        shape,
        k,
        pending: 0,
        moved: false,
        ahead: AHEAD,
        now: 0,
        kernels,
        sizes,
        many,
        memory,
        steps,
        clock,
        largest,
        card,
    }))
}

/// Of each node: the weights of its minibatches over the largest, and the largest.
fn weights<T: Real>(plan: &Plan<T>) -> Vec<f32> {
    plan.weights.chunks_exact(5).flat_map(of_node).collect()
}

/// The same of one node.
pub fn of_node<T: Real>(own: &[T]) -> [f32; 6] {
    let own = ORDER.map(|at| Real::to_f64(own[at]) as f32);
    let most = own.iter().fold(0.0, |most: f32, weight| most.max(weight.abs()));
    let most = if most > 0.0 { most } else { 1.0 };
    std::array::from_fn(|at| own.get(at).map_or(most, |weight| weight / most))
}

impl<T: Scalar> Run<T> {
    /// Launches all iterations that were begun, except for the last `rest`.
    fn launch(&mut self, rest: usize) -> Result<()> {
        while self.pending > rest {
            if self.ahead == AHEAD {
                // One more, because variables may be moved ahead.
                let rows = (self.k..).take(AHEAD + 1);
                let steps: Vec<T> = rows.flat_map(|k| self.plan.steps(k)).collect();
                self.card.put(&self.memory[self.steps], &steps)?;
                self.card.put(&self.memory[self.clock], &[self.k as u32, 0])?;
                self.ahead = 0;
            }
            let room = (self.pending - rest).min(AHEAD - self.ahead);
            let count = if room >= MANY && self.moved && self.pending > MANY {
                self.card.replay(&self.many[self.now])?;
                MANY
            } else {
                let way = Way { moved: self.moved, moves: self.pending > 1 };
                self.kernels.launch(&self.card, &self.task, self.now, way, 0)?;
                self.card.launch(&self.kernels.tick, [1, 1], &self.task, 1)?;
                self.moved = way.moves;
                1
            };
            self.now = (self.now + count) % 2;
            (self.pending, self.ahead) = (self.pending - count, self.ahead + count);
            self.k += count as u64;
        }
        Ok(())
    }
}

impl<T: Scalar> DeviceRun<T> for Run<T> {
    fn advance(&mut self) -> Result<()> {
        self.pending += 1;
        if self.pending <= MANY {
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
        let Run { plan, memory, card, shape, now, task, .. } = self;
        let length = shape.length();
        let mut packed = vec![T::zero(); length];
        plan.give_back(nodes, |place, to| {
            let number = match (place, *now) {
                (6 | 7, 1) => place + 2,
                _ => place,
            };
            if place < WIDE {
                return card.get_at(&memory[number], 0, to);
            }
            let own = to.len() / task.m as usize;
            for (i, to) in to.chunks_exact_mut(own).enumerate() {
                card.get_at(&memory[number], i * length, &mut packed)?;
                unpack(shape, &packed, to);
            }
            Ok(())
        })
    }

    fn sizes(&mut self) -> Result<Vec<Vec<f64>>> {
        self.card.bind()?;
        self.launch(0)?;
        let mut largest = vec![0.0; self.task.m as usize * PLACES.len()];
        self.card.launch(&self.sizes, [largest.len() as u32, 1], &self.task, self.now as u32)?;
        self.card.get_at(&self.memory[self.largest], 0, &mut largest)?;
        Ok(self.plan.sorted(&largest))
    }
}
