//! A run of any shape on the tensor cores.

use lopa::engine::Node;
use lopa::engine::device::DeviceRun;
use lopa::engine::list::List;
use lopa::error::Result;
use lopa::math::real::Real;

use super::ORDER;
use super::layout::{Padded, Stored, table};
use super::shape::{Launch, Shape};
use super::task::Task;
use crate::driver::{Card, Graph, Kernel, THREADS};
use crate::job::{Address, Common, Scalar};
use crate::kernels;
use crate::plan::{Evaluated, Plan, Table, X, Y, blocks};
use crate::post::Post;
use crate::run::{AHEAD, Among, Due, Launches, MANY, Run, State, Sums};
use crate::steps::{FINDERS, Finding, findings};

/// LoPA-GT.
const TRACKING: u32 = 0;

/// A kernel with its number of blocks.
struct Ready {
    kernel: Kernel,
    blocks: u32,
}

impl Ready {
    fn new(card: &Card, launch: Launch) -> Result<Ready> {
        let kernel = card.wide_kernel(&launch.name, launch.threads, launch.shared)?;
        Ok(Ready { kernel, blocks: launch.blocks as u32 })
    }

    /// The head, where `forward` does not compute it.
    fn head(card: &Card, shape: &Shape) -> Result<Option<Ready>> {
        (!shape.with_head()).then(|| Ready::new(card, shape.head())).transpose()
    }

    /// At a `Moment` of kernels/general.cu.
    fn launch(&self, card: &Card, task: &Task, at: u32) -> Result<()> {
        card.launch(&self.kernel, [self.blocks, 1], task, at)
    }
}

/// The kernels of an iteration; `Moment` of kernels/general.cu has the meaning of moved and moves.
struct Kernels {
    /// `turn`; of a list, which moves θ and v itself, `tops`.
    turn: Ready,
    /// Where z has not been moved ahead, and where it has; of a list, which moves everything itself, `given`.
    mix: [Ready; 2],
    forward: Ready,
    /// None where `forward` computes the head as well.
    head: Option<Ready>,
    outer: Ready,
    backward: Ready,
    tick: Kernel,
}

impl Kernels {
    fn new(card: &Card, shape: &Shape, listed: bool) -> Result<Kernels> {
        let ready = |launch: Launch| Ready::new(card, launch);
        let [turn, still, moved] = first(listed).map(String::from);
        let mix = |name| ready(Launch { name, ..shape.mix() });
        Ok(Kernels {
            turn: ready(Launch { name: turn, ..shape.turn() })?,
            mix: [mix(still)?, mix(moved)?],
            forward: ready(shape.forward())?,
            head: Ready::head(card, shape)?,
            outer: ready(shape.outer())?,
            backward: ready(shape.backward())?,
            tick: card.kernel("tick")?,
        })
    }

    /// The iteration that is `later` iterations after the clock, from buffer `now` on.
    fn launch(&self, card: &Card, task: &Task, now: usize, way: Way, later: u32) -> Result<()> {
        let at = way.at(now, later);
        self.mix(card, task, at, way)?;
        self.oracle(card, task, at)
    }

    /// Its first kernels, which mix.
    fn mix(&self, card: &Card, task: &Task, at: u32, way: Way) -> Result<()> {
        if !way.moved {
            self.turn.launch(card, task, at)?;
        }
        self.mix[usize::from(way.moved && task.common.scheme == TRACKING)].launch(card, task, at)
    }

    /// d, h and s at the point of this task.
    fn evaluate(&self, card: &Card, task: &Task, later: u32) -> Result<()> {
        let at = later << 3;
        self.turn.launch(card, task, at)?;
        self.mix[0].launch(card, task, at)?;
        self.oracle(card, task, at)
    }

    fn oracle(&self, card: &Card, task: &Task, at: u32) -> Result<()> {
        self.forward.launch(card, task, at)?;
        if let Some(head) = &self.head {
            head.launch(card, task, at)?;
        }
        card.beside(|| self.outer.launch(card, task, at), || self.backward.launch(card, task, at))
    }
}

/// Whether an iteration finds θ, v and z moved ahead, and whether it moves them ahead.
#[derive(Clone, Copy)]
struct Way {
    moved: bool,
    moves: bool,
}

impl Way {
    /// `Moment` of kernels/general.cu.
    fn at(self, now: usize, later: u32) -> u32 {
        now as u32 | u32::from(self.moved) << 1 | u32::from(self.moves) << 2 | later << 3
    }
}

/// Iterations of LoPA or D-SOBA.
struct Usual {
    task: Task,
    kernels: Kernels,
    /// None among several processes.
    many: Option<[Graph; 2]>,
    /// Whether the last iteration has moved variables ahead; false whenever they are read.
    moved: bool,
}

impl Launches for Usual {
    fn kept(&self) -> usize {
        1
    }

    fn launch<T: Scalar>(&mut self, card: &Card, state: &mut State<T>, due: Due) -> Result<usize> {
        let Due { ready, pending, among } = due;
        let (now, Usual { task, kernels, .. }) = (state.now[X], &*self);
        let way = Way { moved: self.moved, moves: pending > 1 };
        let count = match (among, &self.many) {
            (None, Some(many)) if ready >= MANY && self.moved && pending > MANY => {
                card.replay(&many[now])?;
                MANY
            }
            (among, _) => {
                let at = way.at(now, 0);
                let mix = || kernels.mix(card, task, at, way);
                let oracle = || {
                    kernels.oracle(card, task, at)?;
                    card.launch(&kernels.tick, [1, 1], task, 1)
                };
                match among {
                    Some(among) => among.around(card, 1 - now, mix, oracle)?,
                    None => mix().and_then(|()| oracle())?,
                }
                self.moved = way.moves;
                1
            }
        };
        (state.now[X], state.now[Y]) = ((now + count) % 2, (now + count) % 2);
        Ok(count)
    }
}

/// A step of an iteration of a listed rule.
enum Step {
    Sums(Sums, u32),
    Evaluate(Box<Task>),
    /// The exchange with this number.
    Post(usize),
}

/// Iterations of a listed rule.
struct Listed {
    task: Task,
    kernels: Kernels,
    update: Kernel,
    steps: [Vec<Step>; 2],
    /// None among several processes.
    many: Option<[Graph; 2]>,
    /// Which arrays each iteration leaves in their other buffer, and whether it is the other one now.
    flips: Vec<bool>,
    now: usize,
}

fn listed(
    card: &Card,
    kernels: &Kernels,
    update: &Kernel,
    steps: &[Step],
    later: u32,
    mut among: Option<Among>,
) -> Result<()> {
    for step in steps {
        match step {
            Step::Sums(sums, blocks) => {
                card.launch(update, [*blocks, 1], sums, 2 * later)?;
            }
            Step::Evaluate(task) => kernels.evaluate(card, task, later)?,
            Step::Post(number) => {
                among.as_mut().map_or(Ok(()), |among| among.exchange(card, *number))?;
            }
        }
    }
    Ok(())
}

impl Launches for Listed {
    fn launch<T: Scalar>(&mut self, card: &Card, state: &mut State<T>, due: Due) -> Result<usize> {
        let Due { ready, among, .. } = due;
        let count = match &self.many {
            Some(many) if ready >= MANY => {
                card.replay(&many[self.now])?;
                MANY
            }
            _ => {
                listed(card, &self.kernels, &self.update, &self.steps[self.now], 0, among)?;
                card.launch(&self.kernels.tick, [1, 1], &self.task, 1)?;
                1
            }
        };
        self.now = (self.now + count) % 2;
        state.flip(&self.flips, count);
        Ok(count)
    }
}

/// The kernels of a product that measures a curvature; x is that of the evaluation before.
struct Probe {
    task: Task,
    tops: Ready,
    heads: Ready,
    forward: Ready,
    head: Option<Ready>,
    outer: Ready,
}

impl Probe {
    fn new(card: &Card, shape: &Shape, task: Task) -> Result<Probe> {
        let ready = |launch: Launch| Ready::new(card, launch);
        Ok(Probe {
            task,
            tops: ready(Launch { name: "tops".into(), ..shape.turn() })?,
            heads: ready(shape.heads_alone())?,
            forward: ready(shape.forward())?,
            head: Ready::head(card, shape)?,
            outer: ready(shape.outer())?,
        })
    }

    fn launch(&self, card: &Card, later: u32) -> Result<()> {
        let all = [&self.tops, &self.heads, &self.forward].into_iter().chain(&self.head);
        for ready in all.chain([&self.outer]) {
            ready.launch(card, &self.task, later << 3)?;
        }
        Ok(())
    }
}

/// Iterations of LoPA or D-SOBA whose steps are found.
struct Found {
    task: Task,
    kernels: Kernels,
    find: Kernel,
    turns: [Finding; 3],
    probe: Option<Probe>,
}

impl Found {
    fn iterate(&self, card: &Card, now: usize, later: u32) -> Result<()> {
        let [first, seen, last] = &self.turns;
        let find = |finding: &Finding, now: usize| {
            card.launch(&self.find, [self.task.common.m, 1], finding, 2 * later + now as u32)
        };
        find(first, now)?;
        let way = Way { moved: false, moves: false };
        self.kernels.launch(card, &self.task, now, way, later)?;
        find(seen, 1 - now)?;
        if let Some(probe) = &self.probe {
            probe.launch(card, later)?;
        }
        find(last, 1 - now)
    }
}

/// The same, recorded.
struct Finders {
    found: Found,
    many: [Graph; 2],
}

impl Launches for Finders {
    fn launch<T: Scalar>(&mut self, card: &Card, state: &mut State<T>, due: Due) -> Result<usize> {
        let Due { ready, .. } = due;
        let now = state.now[X];
        let count = if ready >= MANY {
            card.replay(&self.many[now])?;
            MANY
        } else {
            self.found.iterate(card, now, 0)?;
            card.launch(&self.found.kernels.tick, [1, 1], &self.found.task, 1)?;
            1
        };
        (state.now[X], state.now[Y]) = ((now + count) % 2, (now + count) % 2);
        Ok(count)
    }
}

/// What an iteration, or an evaluation of a list, begins with.
fn first(listed: bool) -> [&'static str; 3] {
    if listed { ["tops", "given", "given"] } else { ["turn", "mix", "mix_moved"] }
}

/// Takes over a run that the kernels support.
pub fn take<T: Scalar>(
    mut card: Card,
    mut plan: Plan<T>,
    nodes: &[Node<T>],
) -> Result<Box<dyn DeviceRun<T>>> {
    let noted = plan.probe().is_some();
    let shape = Shape::new(&plan, &plan.job, noted);
    let probing = plan.probe().map(|(_, evaluated)| Shape::new(&plan, &evaluated.job, false));
    card.load(&kernels::general())?;
    let job = plan.job;
    let m = job.m as usize;
    let rows = m * (shape.front + shape.back) as usize;
    let stored = Stored::new(&plan, &shape);
    let flips: Vec<bool> = (0..plan.arrays.len())
        .map(|at| plan.list().map_or(at == Y || at == X, |list| list.flips(at)))
        .collect();
    let buffers = |at: usize| if flips[at] { 2 } else { 1 };
    let mut state = State::new(&card, &plan, nodes, Box::new(Padded(shape)), buffers)?;
    let (links, linked, w) = plan.neighbours();
    let ordered = padded(job.common, shape.pad);
    let common = state.common(&card, &plan, (&links, &linked, &w), ordered)?;
    let mut task = Task {
        common: Common { n: shape.length() as u32, stride: shape.stride, ..common },
        ridge: Real::to_f64(job.ridge) as f32,
        unit: stored.unit,
        bias: stored.bias,
        across: shape.across,
        deep: shape.deep,
        reach: shape.reach,
        terms: shape.terms,
        width: shape.width,
        tiles: shape.tiles,
        steps_in: shape.steps_in,
        groups: shape.groups,
        ..Task::default()
    };
    prepare(&mut task, &card, &mut state, (&shape, noted), &plan.weights)?;
    task.common.table = state.copy(&card, &table(&plan, shape.stride, stored.scale, stored.one))?;
    // The host's copy is not needed any more.
    plan.table = Table::Numbers(Vec::new());
    let factors = m * shape.tiles as usize * shape.step() as usize;
    task.factors = state.empty::<u8>(&card, factors * shape.steps_in as usize)?;
    task.errors = state.empty::<u8>(&card, factors * shape.steps_back as usize)?;
    // Activations are kept where `forward` does not compute the head.
    let kept = if shape.with_head() { 0 } else { rows };
    let halves = kept * (shape.deep * shape.terms) as usize;
    task.hidden = state.empty::<u16>(&card, halves)?;
    if kept > 0 {
        Ready::new(&card, shape.ready())?.launch(&card, &task, 0)?;
    }
    let kernels = Kernels::new(&card, &shape, plan.list().is_some())?;
    if plan.list().is_some() {
        return take_listed(card, plan, state, task, kernels);
    }
    if let Some(turns) = findings(&card, &mut state, &plan, &task.common, nodes)? {
        task.common.found = turns[0].rule;
        let probe = match (plan.probe(), probing) {
            (Some((of, evaluated)), Some(shape)) => {
                task.common.hess = state.address(of.hess, 0);
                let task = probe_task(&card, &mut state, (&task, &shape), evaluated, &turns[0])?;
                Some(Probe::new(&card, &shape, task)?)
            }
            _ => None,
        };
        let find = card.wide_kernel("find", FINDERS, 0)?;
        let found = Found { task, kernels, find, turns, probe };
        let from = |first: usize| {
            card.record(|| {
                for later in 0..MANY {
                    found.iterate(&card, (first + later) % 2, later as u32)?;
                }
                card.launch(&found.kernels.tick, [1, 1], &found.task, MANY as u32)
            })
        };
        let many = [from(0)?, from(1)?];
        return Run::start(card, plan, state, (Finders { found, many }, None), "sizes");
    }
    let from = |first: usize| {
        card.record(|| {
            let way = Way { moved: true, moves: true };
            for later in 0..MANY {
                kernels.launch(&card, &task, (first + later) % 2, way, later as u32)?;
            }
            card.launch(&kernels.tick, [1, 1], &task, MANY as u32)
        })
    };
    let posts = state.posts(&card, &plan, "carry")?;
    let many = if posts.is_some() { None } else { Some([from(0)?, from(1)?]) };
    let usual = Usual { task, kernels, many, moved: false };
    Run::start(card, plan, state, (usual, posts), "sizes")
}

fn take_listed<T: Scalar>(
    card: Card,
    plan: Plan<T>,
    mut state: State<T>,
    mut task: Task,
    kernels: Kernels,
) -> Result<Box<dyn DeviceRun<T>>> {
    let none = List::default();
    let list = plan.list().unwrap_or(&none);
    // Kernels that could also step read a table of step sizes; the list's factors are another.
    task.common.steps = state.empty::<f32>(&card, (AHEAD + 1 + MANY) * 5)?;
    let sums = |sums: Sums, entries: u64| -> Result<Step> {
        Ok(Step::Sums(sums, blocks(entries.div_ceil(u64::from(THREADS)))?))
    };
    let mut posts = state.posts(&card, &plan, "carry")?;
    let post = |arrays: &[(Address, usize)]| match &mut posts {
        Some(posts) => Ok(Some(Step::Post(posts.add(Post::new(&card, &plan, arrays)?)))),
        None => Ok(None),
    };
    let evaluate = |number: usize, addresses: &[Address]| {
        let mut task = Box::new(task);
        let evaluated = &plan.evaluations[number];
        let ([x, theta, v], [d, h, s]) = (evaluated.at, evaluated.into);
        let common = &mut task.common;
        (common.theta, common.v) = (addresses[theta], addresses[v]);
        (common.d, common.h, common.s) = (addresses[d], addresses[h], addresses[s]);
        common.x = [addresses[x]; 2];
        Ok(vec![Step::Evaluate(task)])
    };
    let steps = state.listed(&card, list, &task.common, sums, evaluate, post)?;
    let update = card.kernel("update")?;
    let from = |first: usize| {
        card.record(|| {
            for later in 0..MANY {
                let steps = &steps[(first + later) % 2];
                listed(&card, &kernels, &update, steps, later as u32, None)?;
            }
            card.launch(&kernels.tick, [1, 1], &task, MANY as u32)
        })
    };
    let many = if posts.is_some() { None } else { Some([from(0)?, from(1)?]) };
    let often = |at: usize| list.steps.iter().filter(|step| step.flips(at)).count() % 2 == 1;
    let flips = (0..plan.arrays.len()).map(often).collect();
    let launches = Listed { task, kernels, update, steps, many, flips, now: 0 };
    Run::start(card, plan, state, (launches, posts), "sizes")
}

/// Minibatches in the order of the kernels, with `pad` more samples of ξ₂.
fn padded(mut common: Common, pad: u32) -> Common {
    common.size[1] += pad;
    common.ordered(ORDER)
}

/// Sets what differs between evaluations: where minibatches end, their weights, and the memory for their results.
/// `noted`: whether the product with v in h is wanted.
fn prepare<T: Scalar>(
    task: &mut Task,
    card: &Card,
    state: &mut State<T>,
    (shape, noted): (&Shape, bool),
    by: &[T],
) -> Result<()> {
    let Common { start, size, drawn, m, .. } = task.common;
    let m = m as usize;
    task.end = std::array::from_fn(|batch| start[batch] + size[batch]);
    task.live = task.end[1] - shape.pad;
    task.steps_back = shape.steps_back;
    task.together = shape.together();
    task.common.picks = state.empty::<u32>(card, m * drawn as usize)?;
    task.common.weights = state.copy(card, &weights(by))?;
    task.shares = state.empty::<f32>(card, m * shape.shares(noted))?;
    task.heads = state.empty::<u32>(card, m * shape.heads() * 4)?;
    task.tops = state.empty::<f32>(card, m * shape.parts() as usize * 2)?;
    task.scales = state.empty::<f32>(card, m * 8)?;
    Ok(())
}

/// The task of a product that measures a curvature, with memory of its own; x is that of the task before.
fn probe_task<T: Scalar>(
    card: &Card,
    state: &mut State<T>,
    (before, shape): (&Task, &Shape),
    evaluated: &Evaluated<T>,
    finding: &Finding,
) -> Result<Task> {
    let of = padded(evaluated.job.common, 0);
    let mut task = *before;
    let common = &mut task.common;
    (common.size, common.start, common.slot) = (of.size, of.start, of.slot);
    (common.full, common.block, common.side) = (of.full, of.block, of.side);
    (common.drawn, common.blocks) = (of.drawn, of.blocks);
    let [_, _, v] = evaluated.at;
    let [d, h, _] = evaluated.into;
    (common.v, common.d) = (state.address(v, 0), state.address(d, 0));
    (common.h, common.hess) = (state.address(h, 0), 0);
    (common.found, common.awake) = (0, finding.state);
    prepare(&mut task, card, state, (shape, false), &evaluated.weights)?;
    Ok(task)
}

/// Of each node: the weights of its minibatches over the largest, and the largest.
fn weights<T: Real>(of: &[T]) -> Vec<f32> {
    of.chunks_exact(5).flat_map(of_node).collect()
}

/// The same of one node.
pub fn of_node<T: Real>(own: &[T]) -> [f32; 6] {
    let own = ORDER.map(|at| Real::to_f64(own[at]) as f32);
    let most = own.iter().fold(0.0, |most: f32, weight| most.max(weight.abs()));
    let most = if most > 0.0 { most } else { 1.0 };
    std::array::from_fn(|at| own.get(at).map_or(most, |weight| weight / most))
}
