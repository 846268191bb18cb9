//! A run on the card.

use lopa::engine::Node;
use lopa::engine::device::{DeviceRun, Program};
use lopa::error::Result;

use crate::choice::{Can, Choice, choose};
use crate::driver::{Card, Graph, Kernel, THREADS};
use crate::job::{Address, Common, Job, PER_COLUMN, PER_GROUP, PER_ROW, PER_SAMPLE, Scalar};
use crate::kernels;
use crate::plan::{Evaluated, Kind, Plan, Table, X, Y, blocks, refused};
use crate::post::Post;
use crate::run::{Due, Launches, MANY, Plain, Run, State, Sums};
use crate::steps::{FINDERS, Finding, findings};
use crate::{general, layers, tensor};

/// The most shared memory, in bytes, of a block that computes a whole node with one class; every
/// card has this much.
const NEAR: usize = 48 << 10;

/// How many entries of x a thread mixes, and of how many nodes a block does: see kernels/move.cuh.
const SOME: u64 = 4;
const TEAM: u64 = 4;

/// One block computes a whole node from this many nodes on; with one class, also up to this many
/// features.
const MANY_NODES: u32 = 64;
const FEW_FEATURES: u32 = 1024;

/// How many warps of a block compute scores where a node has many blocks; the others only help to copy weights.
const WARPS: u32 = THREADS / 32;

/// Recorded iterations: one, or many at once, from either buffer on.
struct Recorded {
    one: [Graph; 2],
    many: [Graph; 2],
    /// Which arrays each iteration leaves in their other buffer, and whether it is the other one now.
    flips: Vec<bool>,
    now: usize,
}

impl Launches for Recorded {
    fn launch<T: Scalar>(&mut self, card: &Card, state: &mut State<T>, due: Due) -> Result<usize> {
        let Due { ready, .. } = due;
        let (graphs, count) = if ready >= MANY { (&self.many, MANY) } else { (&self.one, 1) };
        card.replay(&graphs[self.now])?;
        self.now = (self.now + count) % 2;
        state.flip(&self.flips, count);
        Ok(count)
    }
}

/// Iterations among several processes, one by one.
struct Divided<U: Scalar> {
    iterations: Iterations<U>,
    /// Whether the rule is a list, which has its exchanges among its steps; others mix with the first kernel.
    listed: bool,
    flips: Vec<bool>,
    now: usize,
}

impl<U: Scalar> Launches for Divided<U> {
    fn launch<T: Scalar>(&mut self, card: &Card, state: &mut State<T>, due: Due) -> Result<usize> {
        let Due { among, .. } = due;
        let (steps, now) = (&self.iterations.steps[self.now], self.now);
        let go = |steps: &[Step<U>]| steps.iter().try_for_each(|step| step.go(card, 0, now));
        match among {
            Some(mut among) if self.listed => {
                for step in steps {
                    match step {
                        Step::Post(number) => among.exchange(card, *number)?,
                        step => go(std::slice::from_ref(step))?,
                    }
                }
                self.iterations.tick(card, 1)?;
            }
            Some(among) => {
                let (first, rest) = steps.split_at(1);
                among.around(
                    card,
                    1 - now,
                    || go(first),
                    || {
                        go(rest)?;
                        self.iterations.tick(card, 1)
                    },
                )?;
            }
            None => {
                go(steps)?;
                self.iterations.tick(card, 1)?;
            }
        }
        self.now = 1 - now;
        state.flip(&self.flips, 1);
        Ok(1)
    }
}

/// Takes over a run: on tensor cores where they support it, else with plain kernels.
pub fn open<T: Scalar>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    let can = |card: &Card, plan: &Plan<T>| Can {
        layers: layers::should(plan, card.capability),
        general: general::should(plan, card.capability),
        tensor: tensor::should(plan, card.capability),
    };
    let (card, plan, choice) = choose(&program, found(&program), can)?;
    match choice {
        Choice::Tensor => tensor::take(card, plan, program.nodes),
        Choice::General => general::take(card, plan, program.nodes),
        Choice::Layers => take(card, plan, program.nodes, true),
        Choice::Plain => take(card, plan, program.nodes, false),
    }
}

/// The card of this process, and the run as arrays.
fn found<T: Scalar>(program: &Program<T>) -> Result<(Card, Plan<T>)> {
    Ok((Card::of_process(program.company.place())?, Plan::new(program)?))
}

/// Takes over a run with plain kernels.
pub fn open_plain<T: Scalar>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    let (card, plan, _) = choose(&program, found(&program), |_, _| Can::default())?;
    take(card, plan, program.nodes, false)
}

/// Takes over a run with the kernels of any model on tensor cores wherever they support it.
pub fn open_layers<T: Scalar>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    let can = |card: &Card, plan: &Plan<T>| Can {
        layers: layers::can(plan, card.capability),
        ..Can::default()
    };
    match choose(&program, found(&program), can)? {
        (card, plan, Choice::Layers) => take(card, plan, program.nodes, true),
        _ => Err(refused("what tensor cores do not serve")),
    }
}

/// Takes over a run on tensor cores wherever they support it.
pub fn open_tensor<T: Scalar>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    let can = |card: &Card, plan: &Plan<T>| Can {
        tensor: tensor::can(plan) && card.capability[0] == 9,
        ..Can::default()
    };
    match choose(&program, found(&program), can)? {
        (card, plan, Choice::Tensor) => tensor::take(card, plan, program.nodes),
        _ => Err(refused("what tensor cores do not serve")),
    }
}

/// Takes over a run with the kernels of any shape wherever they support it.
pub fn open_general<T: Scalar>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    let can = |card: &Card, plan: &Plan<T>| Can {
        general: general::can(plan) && card.capability[0] == 9,
        ..Can::default()
    };
    match choose(&program, found(&program), can)? {
        (card, plan, Choice::General) => general::take(card, plan, program.nodes),
        _ => Err(refused("what tensor cores do not serve")),
    }
}

/// A launch: the kernel, its blocks and its parameters.
struct Launch<T: Scalar> {
    kernel: Kernel,
    blocks: u32,
    /// Whether it reads x after the step.
    after: bool,
    of: Parameters<T>,
}

enum Parameters<T: Scalar> {
    Job(Box<Job<T>>),
    Product(Box<layers::Product>),
    Sums(Sums),
    Finding(Box<Finding>),
}

/// A step of an iteration.
enum Step<T: Scalar> {
    Launch(Launch<T>),
    /// A launch, and the rest of an evaluation, which need not wait for it.
    Beside(Launch<T>, Vec<Step<T>>),
    /// The exchange with this number.
    Post(usize),
}

impl<T: Scalar> Step<T> {
    /// Launches its kernels, for the iteration that is `later` iterations after the clock, from buffer `now` on; exchanges are
    /// not its work.
    fn go(&self, card: &Card, later: usize, now: usize) -> Result<()> {
        match self {
            Step::Launch(launch) => launch.go(card, launch.at(later, now)),
            Step::Beside(launch, rest) => card.beside(
                || launch.go(card, launch.at(later, now)),
                || rest.iter().try_for_each(|step| step.go(card, later, now)),
            ),
            Step::Post(_) => Ok(()),
        }
    }
}

/// The steps of an iteration from either buffer on, and the kernel that ends it.
struct Iterations<T: Scalar> {
    steps: [Vec<Step<T>>; 2],
    tick: Kernel,
    shared: Job<T>,
}

impl<T: Scalar> Iterations<T> {
    fn tick(&self, card: &Card, count: u32) -> Result<()> {
        card.launch(&self.tick, [1, 1], &self.shared, count)
    }

    /// Records some of them, from a buffer on.
    fn record(&self, card: &Card, count: usize, first: usize) -> Result<Graph> {
        card.record(|| {
            for later in 0..count {
                let now = (first + later) % 2;
                self.steps[now].iter().try_for_each(|step| step.go(card, later, now))?;
            }
            self.tick(card, count as u32)
        })
    }
}

impl<T: Scalar> Launch<T> {
    /// What the kernel is told of the iteration that is `later` iterations after the clock, from buffer `now` on.
    fn at(&self, later: usize, now: usize) -> u32 {
        (2 * later + (now + usize::from(self.after)) % 2) as u32
    }

    fn go(&self, card: &Card, at: u32) -> Result<()> {
        match &self.of {
            Parameters::Job(job) => card.launch(&self.kernel, [self.blocks, 1], &**job, at),
            Parameters::Product(of) => card.launch(&self.kernel, [self.blocks, 1], &**of, at),
            Parameters::Sums(sums) => card.launch(&self.kernel, [self.blocks, 1], sums, at),
            Parameters::Finding(of) => card.launch(&self.kernel, [self.blocks, 1], &**of, at),
        }
    }
}

/// Takes over a run with plain kernels or, if `cores`, with those of src/layers for evaluations.
fn take<T: Scalar>(
    mut card: Card,
    mut plan: Plan<T>,
    nodes: &[Node<T>],
    cores: bool,
) -> Result<Box<dyn DeviceRun<T>>> {
    if cores {
        layers::order(&mut plan);
    }
    let named = |name: &str| format!("{name}_{}", T::END);
    let [sizes, tick, update, carry, find] =
        ["sizes", "tick", "update", "carry", "find"].map(named);
    let mut names = vec![sizes.clone(), tick.clone(), carry.clone()];
    names.extend(plan.list().map(|_| update.clone()));
    names.extend(plan.finds.iter().map(|_| find.clone()));
    for evaluated in &plan.evaluations {
        let wanted = wanted(&card, &plan, &evaluated.job, (Way::of(&plan, evaluated), 0), cores);
        names.extend(wanted.into_iter().map(|wanted| wanted.name));
    }
    match cores {
        true if card.hopper() => card.load(&kernels::hopper(plan.terms))?,
        true => card.translate(&kernels::layers(plan.terms), &names)?,
        false => card.translate(&kernels::ptx(), &names)?,
    }
    let flips: Vec<bool> = (0..plan.arrays.len())
        .map(|at| plan.list().map_or(at == Y || at == X, |list| list.flips(at)))
        .collect();
    let buffers = |at: usize| if flips[at] { 2 } else { 1 };
    let mut state = State::new(&card, &plan, nodes, Box::new(Plain), buffers)?;
    let graph = (&plan.links[..], &plan.linked[..], &plan.w[..]);
    let common = state.common(&card, &plan, graph, plan.job.common)?;
    let table = match &plan.table {
        _ if cores => layers::copy(&card, &mut state, &plan)?,
        Table::Bytes(bytes) => state.copy(&card, &spaced(bytes, &plan.job, 0))?,
        Table::Numbers(values) => state.copy(&card, &spaced(values, &plan.job, T::zero()))?,
    };
    let mut shared = Job { common: Common { table, ..common }, ..plan.job };
    if plan.shift.iter().any(|&shift| shift != T::zero()) {
        shared.shift = state.copy(&card, &spaced(&plan.shift, &plan.job, T::zero()))?;
    }
    shared.targets = state.copy(&card, &plan.targets)?;
    shared.group = state.copy(&card, &plan.groups[0])?;
    shared.groups = state.copy(&card, &plan.groups[1])?;
    for (address, values) in shared.coefficients.iter_mut().zip(&plan.coefficients) {
        *address = state.copy(&card, values)?;
    }
    let m = shared.m as usize;
    shared.rest = state.empty::<T>(&card, m * shared.outputs as usize)?;
    let jobs: Vec<Job<T>> = plan
        .evaluations
        .iter()
        .map(|evaluated| {
            evaluation(&card, &mut state, &plan, &shared, evaluated, cores.then_some(nodes))
        })
        .collect::<Result<_>>()?;
    // The host's copy is not needed any more.
    plan.table = Table::Numbers(Vec::new());
    plan.coefficients = Default::default();
    // Of an evaluation that reads this buffer of x.
    let launches = |job: &Job<T>, way: Way, x: usize| -> Result<Vec<Step<T>>> {
        let wanted = wanted(&card, &plan, job, (way, x), cores);
        let launch = |wanted: Wanted| -> Result<(Launch<T>, bool)> {
            let Wanted {
                name,
                threads,
                shared,
                blocks: count,
                after,
                layer,
                product,
                beside,
                waits,
            } = wanted;
            let kernel = card.wide_kernel(&name, threads, shared)?;
            let kernel = kernel.that_waits(waits);
            let of = match product {
                Some(product) => Parameters::Product(product),
                None => Parameters::Job(Box::new(job.layer(&plan.units, layer))),
            };
            Ok((Launch { kernel, blocks: blocks(count)?, after, of }, beside))
        };
        // Of an evaluation without samples there are no blocks.
        let some = wanted.into_iter().filter(|wanted| wanted.blocks > 0);
        let all: Vec<_> = some.map(launch).collect::<Result<_>>()?;
        Ok(all.into_iter().rfold(Vec::new(), |mut rest, (launch, beside)| {
            if beside {
                return vec![Step::Beside(launch, rest)];
            }
            rest.insert(0, Step::Launch(launch));
            rest
        }))
    };
    let mut posts = state.posts(&card, &plan, &carry)?;
    let steps = match plan.list() {
        None => {
            let finding = findings(&card, &mut state, &plan, &shared.common, nodes)?;
            let iteration = |now: usize| -> Result<Vec<Step<T>>> {
                let x = 1 - now;
                let Some(turns) = finding else { return launches(&jobs[0], Way::Whole, x) };
                let launch = |finding, after| -> Result<Step<T>> {
                    let kernel = card.wide_kernel(&find, FINDERS, 0)?;
                    let of = Parameters::Finding(Box::new(finding));
                    Ok(Step::Launch(Launch { kernel, blocks: shared.m, after, of }))
                };
                let [first, seen, last] = turns;
                let mut all = vec![launch(first, false)?];
                let (mut job, probe) = (jobs[0], plan.probe());
                job.found = first.rule;
                job.hess = probe.map_or(0, |(of, _)| state.address(of.hess, 0));
                all.extend(launches(&job, Way::Whole, x)?);
                all.push(launch(seen, true)?);
                if let Some((of, evaluated)) = probe {
                    let mut job = jobs[of.probe];
                    let [_, _, v] = evaluated.at;
                    let [d, h, s] = evaluated.into;
                    let at = |array| state.address(array, 0);
                    (job.v, job.d, job.h, job.s) = (at(v), at(d), at(h), at(s));
                    job.awake = first.state;
                    all.extend(launches(&job, Way::Probe, x)?);
                }
                all.push(launch(last, true)?);
                Ok(all)
            };
            [iteration(0)?, iteration(1)?]
        }
        Some(list) => {
            let post = |arrays: &[(Address, usize)]| match &mut posts {
                Some(posts) => Ok(Some(Step::Post(posts.add(Post::new(&card, &plan, arrays)?)))),
                None => Ok(None),
            };
            let points: Vec<_> =
                plan.evaluations.iter().map(|evaluated| (evaluated.at, evaluated.into)).collect();
            let sums = |sums: Sums, entries: u64| -> Result<Step<T>> {
                let (kernel, of) = (card.kernel(&update)?, Parameters::Sums(sums));
                let blocks = blocks(entries.div_ceil(u64::from(THREADS)))?;
                Ok(Step::Launch(Launch { kernel, blocks, after: false, of }))
            };
            let evaluate = |number: usize, addresses: &[Address]| {
                let mut job = jobs[number];
                let ([x, theta, v], [d, h, s]) = points[number];
                (job.theta, job.v) = (addresses[theta], addresses[v]);
                (job.d, job.h, job.s) = (addresses[d], addresses[h], addresses[s]);
                job.x = [addresses[x]; 2];
                launches(&job, Way::Listed, 0)
            };
            state.listed(&card, list, &shared.common, sums, evaluate, post)?
        }
    };
    let iterations = Iterations { steps, tick: card.kernel(&tick)?, shared };
    // Arrays that flip an even number of times per iteration end where they began.
    let often = |at: usize| match plan.list() {
        Some(list) => list.steps.iter().filter(|step| step.flips(at)).count() % 2 == 1,
        None => flips[at],
    };
    let flips = (0..flips.len()).map(often).collect();
    if posts.is_some() {
        let listed = plan.list().is_some();
        let divided = Divided { iterations, listed, flips, now: 0 };
        return Run::start(card, plan, state, (divided, posts), &sizes);
    }
    let record = |count: usize, first: usize| iterations.record(&card, count, first);
    let one = [record(1, 0)?, record(1, 1)?];
    let many = [record(MANY, 0)?, record(MANY, 1)?];
    drop(iterations);
    Run::start(card, plan, state, (Recorded { one, many, flips, now: 0 }, None), &sizes)
}

/// The job of an evaluation, with memory of its own; `cores`: the nodes, for the kernels of src/layers.
fn evaluation<T: Scalar>(
    card: &Card,
    state: &mut State<T>,
    plan: &Plan<T>,
    shared: &Job<T>,
    evaluated: &Evaluated<T>,
    cores: Option<&[Node<T>]>,
) -> Result<Job<T>> {
    let of = &evaluated.job;
    let rows = |each: u32| of.m as usize * each as usize;
    let mut job = *shared;
    (job.size, job.start, job.slot) = (of.size, of.start, of.slot);
    (job.full, job.block, job.side) = (of.full, of.block, of.side);
    (job.drawn, job.blocks) = (of.drawn, of.blocks);
    if evaluated.single {
        (job.own[1], job.owned[1]) = (job.own[0], job.owned[0]);
    }
    job.picks = state.empty::<u32>(card, rows(of.drawn))?;
    job.weights = state.copy(card, &evaluated.weights)?;
    if let Some(nodes) = cores {
        layers::place(card, state, plan, &mut job, nodes)?;
        return Ok(job);
    }
    let units = plan.units.iter().sum::<u32>();
    let back = of.size[4] + of.size[2];
    job.hidden = state.empty::<T>(card, rows(of.drawn * units))?;
    job.slopes = state.empty::<T>(card, rows(of.drawn * across(of.classes)))?;
    job.errors = state.empty::<T>(card, rows(back * units))?;
    Ok(job)
}

/// Rows of features with the padding that the kernels need.
fn spaced<V: Copy>(values: &[V], job: &Common, zero: V) -> Vec<V> {
    let [features, stride] = [job.features, job.stride].map(|length| length as usize);
    let mut all = Vec::with_capacity(values.len() / features.max(1) * stride);
    for row in values.chunks_exact(features.max(1)) {
        all.extend_from_slice(row);
        all.resize(all.len() + stride - features, zero);
    }
    all
}

/// The kernel in which one block computes a whole linear classifier: where it fits, and there are
/// enough nodes or little work per node.
fn whole<T: Scalar>(card: &Card, job: &Job<T>) -> Option<Wanted> {
    let Common { m, features, classes, .. } = job.common;
    // With more classes, only f32 sums fit into registers, and two blocks should fit on a multiprocessor.
    let (most, room) = match (classes, T::BYTES) {
        (1, _) => (1, NEAR),
        (2..=16, 4) => (16, card.near / 2),
        _ => return None,
    };
    let near = shared_bytes(job).iter().sum::<u64>();
    let pays = m >= MANY_NODES || most == 1 && features <= FEW_FEATURES;
    if near > room as u64 || !pays {
        return None;
    }
    // As many threads as have enough registers: in large blocks, which finish sooner, if all of them run at once; else in small
    // ones, many of which share a multiprocessor.
    let threads = if most == 1 { 1024 } else { 512 };
    let threads = match (m, features) {
        (..=264, _) => threads,
        (528.., ..=128) => 128,
        _ => threads / 2,
    };
    let name = format!("whole{}_{most}", form(job));
    let (shared, blocks) = (near as u32, u64::from(m));
    let (after, layer, product, beside, waits) = (false, 0, None, false, false);
    Some(Wanted { name, threads, shared, blocks, after, layer, product, beside, waits })
}

/// The distance between the slopes of one row and the next.
fn across(classes: u32) -> u32 {
    if classes == 1 { 1 } else { classes.next_multiple_of(4) }
}

/// Bytes of θ and v of a node, class after class, and of the slopes and the numbers of its rows.
fn shared_bytes<T: Scalar>(job: &Job<T>) -> [u64; 2] {
    let Common { stride, drawn, classes, .. } = job.common;
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
    /// The hidden layer that it computes.
    layer: usize,
    /// Its parameters, if they are not those of that layer.
    product: Option<Box<layers::Product>>,
    /// Whether the later kernels of the evaluation need not wait for it.
    beside: bool,
    /// Whether the kernel itself waits for the one before it.
    waits: bool,
}

/// The kernels of a linear model where a node has many blocks.
fn linear<T: Scalar>(card: &Card, job: &Job<T>, with_s: bool) -> Vec<Wanted> {
    let Common { m, n, features, classes, size: [xi1, xi2, xi3, sigma1, _], .. } = job.common;
    let crossed = if job.per == PER_SAMPLE { xi3 } else { 0 };
    let form = form(job);
    // Data that all threads of a block read are in shared memory if they fit.
    let fitting = |bytes: u64, room: usize| if bytes <= room as u64 { bytes as u32 } else { 0 };
    let [weights, slopes] = shared_bytes(job);
    let weights = if (2..=16).contains(&classes) { fitting(weights, card.near) } else { 0 };
    let slopes = fitting(slopes, NEAR);
    // The kernels for this number of classes, and the number of rows that a warp processes at once.
    let (most, together) = match classes {
        0 | 1 => (1, 1),
        2..=16 => (16, 4),
        _ => (64, 1),
    };
    let threads = if weights > 0 { 2 * THREADS } else { THREADS };
    let blocks = |count: u32, each: u32| u64::from(job.m) * u64::from(count.div_ceil(each));
    let wanted = |name: String, threads: u32, shared: u32, blocks: u64| Wanted {
        name,
        threads,
        shared,
        blocks,
        after: true,
        layer: 0,
        product: None,
        beside: false,
        waits: false,
    };
    let rows = xi1 + xi2 + crossed + sigma1;
    let mut all = vec![
        wanted(format!("scores{form}_{most}"), threads, weights, blocks(rows, WARPS * together)),
        wanted(format!("linear{form}_{most}"), THREADS, slopes, blocks(3 * features, THREADS)),
    ];
    // One thread for an entry of x, or a warp.
    let entries = u64::from(m) * u64::from(n);
    let flat = |threads: u64| threads.div_ceil(u64::from(THREADS));
    match job.per {
        _ if !with_s => {}
        PER_GROUP | PER_COLUMN => {
            all.push(wanted("crossed".into(), THREADS, 0, flat(entries * 32)));
        }
        PER_SAMPLE => all.push(wanted("cleaned".into(), THREADS, 0, layers::cleaners(job))),
        _ => {}
    }
    all
}

/// What kernels are for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// An iteration of LoPA or D-SOBA.
    Whole,
    /// An evaluation of a listed rule.
    Listed,
    /// A product that measures a curvature, at the point that an iteration of LoPA or D-SOBA has reached.
    Probe,
}

impl Way {
    fn of<T: Scalar>(plan: &Plan<T>, evaluated: &Evaluated<T>) -> Way {
        match plan.list() {
            Some(_) => Way::Listed,
            None if evaluated.probe => Way::Probe,
            None => Way::Whole,
        }
    }
}

/// The kernels of an iteration or of an evaluation, in order; it reads this buffer of x.
fn wanted<T: Scalar>(
    card: &Card,
    plan: &Plan<T>,
    job: &Job<T>,
    (way, x): (Way, usize),
    cores: bool,
) -> Vec<Wanted> {
    let [m, n, p, drawn] = [job.m, job.n, job.p, job.drawn].map(u64::from);
    let [outputs, blocks] = [job.outputs, job.blocks].map(u64::from);
    let threads = u64::from(THREADS);
    let flat = |count: u64| count.div_ceil(threads);
    let form = form(job);
    // Weights of the head are kept in shared memory where they fit.
    let at_hand = if T::BYTES == 4 && job.classes <= 16 && job.units <= 256 { "_16" } else { "" };
    let plain = |name: &str, blocks: u64| {
        let (name, after) = (name.to_string(), true);
        let (threads, shared, layer, product) = (THREADS, 0, 0, None);
        let (beside, waits) = (false, false);
        Wanted { name, threads, shared, blocks, after, layer, product, beside, waits }
    };
    let moves = way == Way::Whole;
    let splits = cores && layers::splits(plan);
    let whole = match plan.kind {
        Kind::Linear if moves && job.per == PER_ROW && !cores => whole(card, job),
        _ => None,
    };
    let alone = whole.is_some();
    let mut all = match whole {
        Some(whole) => vec![whole],
        None if !moves => vec![plain("draw", flat(m * blocks))],
        None => {
            let mixers = m.div_ceil(TEAM) * n.div_ceil(threads / TEAM * SOME);
            let (name, turners, mixers) = match splits.then(|| layers::turners(plan, job)) {
                None => ("move", m * p.div_ceil(threads * SOME), mixers),
                Some((turners, mix)) => ("move_split", turners, if mix { 0 } else { mixers }),
            };
            vec![Wanted { after: false, ..plain(name, flat(m * blocks) + turners + mixers) }]
        }
    };
    match plan.kind {
        _ if alone => {}
        _ if cores => {
            let ways = (moves.then_some((x, splits)), way != Way::Probe);
            let of = layers::kernels(plan, job, ways, (card.near, card.hopper()));
            all.extend(of.into_iter().map(|layers::Wanted { launch, product, beside }| {
                let general::Launch { name, threads, shared, blocks } = launch;
                let (after, layer, waits) = (true, 0, card.hopper());
                Wanted { name, threads, shared, blocks, after, layer, product, beside, waits }
            }));
        }
        Kind::Layers => {
            let of = |layer: usize, name: &str, blocks: &dyn Fn(u64, u64) -> u64| {
                let Common { features, units, .. } = job.layer(&plan.units, layer).common;
                let blocks = m * blocks(u64::from(features), u64::from(units));
                Wanted { layer, ..plain(name, blocks) }
            };
            let from = |layer: usize| if layer == 0 { form } else { "_below" };
            let (last, back) = (plan.units.len().saturating_sub(1), job.size[4] + job.size[2]);
            for layer in 0..=last {
                all.push(of(layer, &format!("forward{}", from(layer)), &|_, units| {
                    drawn.div_ceil(64) * units.div_ceil(32)
                }));
            }
            all.push(of(last, &format!("heads{at_hand}"), &|_, _| flat(drawn)));
            all.push(Wanted { layer: last, ..plain("rows", flat(m * p)) });
            // Of a product alone there is no s.
            for layer in (0..=last).rev().filter(|_| way != Way::Probe) {
                all.push(of(layer, &format!("backward{}", from(layer)), &|inputs, units| {
                    (inputs + u64::from(job.bias)).div_ceil(64) * units.div_ceil(32)
                }));
                if layer > 0 {
                    all.push(of(layer, "pull", &|inputs, _| {
                        u64::from(back).div_ceil(32) * inputs.div_ceil(32)
                    }));
                }
            }
        }
        Kind::Linear => all.extend(linear(card, job, way != Way::Probe)),
        Kind::Quadratic => all.extend([
            plain("residual", flat(m * outputs)),
            plain("quadratic", flat(m * (2 * p + n))),
        ]),
    }
    for wanted in &mut all {
        wanted.after &= way != Way::Listed;
        wanted.name += &format!("_{}", T::END);
    }
    all
}
