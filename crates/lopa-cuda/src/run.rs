//! A run on the card: its arrays, its table of step sizes, and iterations that are begun but not launched.

use lopa::engine::Node;
use lopa::engine::device::{DeviceRun, Exchange};
use lopa::engine::list::{List, Step};
use lopa::error::Result;

use crate::driver::{Card, Kernel, Memory};
use crate::job::{Address, Common, Scalar};
use crate::plan::{Plan, X};
use crate::post::{Post, Posts};

/// Iterations in the table of step sizes.
pub const AHEAD: usize = 1024;

/// Iterations that are recorded as one, an even number.
pub const MANY: usize = 16;

/// How iterations are launched.
pub trait Launches: Send {
    /// Iterations that are launched at once.
    fn most(&self) -> usize {
        MANY
    }

    /// Iterations that are kept back until others follow or variables are read: the last one may not move
    /// variables ahead.
    fn kept(&self) -> usize {
        0
    }

    /// Launches some iterations; returns how many: one among several processes. There, rules that mix with their first
    /// kernel find what others have sent, and exchange what it has moved, if they can.
    fn launch<T: Scalar>(&mut self, card: &Card, state: &mut State<T>, due: Due) -> Result<usize>;
}

/// At most `ready` of the `pending` iterations, with their exchanges among several processes.
pub struct Due<'a> {
    pub ready: usize,
    pub pending: usize,
    pub among: Option<Among<'a>>,
}

/// The exchanges of an iteration, and how to do them: not while variables are read.
pub struct Among<'a> {
    posts: &'a mut Posts,
    exchange: Option<Exchange<'a>>,
}

impl Among<'_> {
    /// Does the exchange with this number.
    pub fn exchange(&mut self, card: &Card, number: usize) -> Result<()> {
        // Lists keep no iteration back.
        let exchange =
            self.exchange.as_deref_mut().expect("iterations of a list are launched at once");
        self.posts.go(card, number, exchange)
    }

    /// Launches `first`, which mixes, and `rest` while the exchange of what it has moved, to buffer `next`, is under
    /// way.
    pub fn around(
        self,
        card: &Card,
        next: usize,
        first: impl FnOnce() -> Result<()>,
        rest: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        first()?;
        let Some(exchange) = self.exchange else {
            self.posts.stale = true;
            return rest();
        };
        self.posts.start(card, next)?;
        rest()?;
        self.posts.finish(card, next, exchange)
    }
}

/// How the kernels keep arrays that are as long as x.
pub trait Layout<T>: Send {
    /// Whether it differs from the library's order.
    fn differs(&self) -> bool {
        true
    }
    /// The numbers of a node.
    fn length(&self, own: usize) -> usize;
    /// From the order of the library.
    fn pack(&self, from: &[T], to: &mut [T]);
    /// Back to it.
    fn unpack(&self, from: &[T], to: &mut [T]);
}

/// As the library keeps them.
pub struct Plain;

impl<T: Copy> Layout<T> for Plain {
    fn differs(&self) -> bool {
        false
    }

    fn length(&self, own: usize) -> usize {
        own
    }

    fn pack(&self, from: &[T], to: &mut [T]) {
        to.copy_from_slice(from);
    }

    fn unpack(&self, from: &[T], to: &mut [T]) {
        to.copy_from_slice(from);
    }
}

/// All memory of a run on the card.
pub struct State<T> {
    memory: Vec<Memory>,
    /// The buffers of each array, by number, and which of them is current.
    buffers: Vec<Vec<usize>>,
    pub now: Vec<usize>,
    /// The numbers of a node in each array.
    lengths: Vec<usize>,
    layout: Box<dyn Layout<T>>,
    /// The tables of step sizes, the clock, the largest entries, by number.
    steps: usize,
    clock: usize,
    largest: usize,
    /// The products that measured curvatures at each node so far, by number, where a rule finds steps.
    probes: Option<usize>,
    m: usize,
}

impl<T: Scalar> State<T> {
    /// The variables of all nodes; `buffers` is the number of buffers of an array.
    pub fn new(
        card: &Card,
        plan: &Plan<T>,
        nodes: &[Node<T>],
        layout: Box<dyn Layout<T>>,
        buffers: impl Fn(usize) -> usize,
    ) -> Result<State<T>> {
        let m = plan.job.m as usize;
        let mut state = State {
            memory: Vec::new(),
            buffers: Vec::new(),
            now: vec![0; plan.arrays.len()],
            lengths: Vec::new(),
            layout,
            steps: 0,
            clock: 0,
            largest: 0,
            probes: None,
            m,
        };
        for (at, array) in plan.arrays.iter().enumerate() {
            let own = plan.variables.lengths[at];
            let packs = array.wide && own > 0 && state.layout.differs();
            let length = if packs { state.layout.length(own) } else { own };
            let count = if own > 0 { buffers(at) } else { 0 };
            let mut numbers = Vec::new();
            for _ in 0..count {
                state.empty::<T>(card, plan.rows(at) * length)?;
                numbers.push(state.memory.len() - 1);
            }
            let mut packed = vec![T::zero(); length];
            plan.variables.hand_over(nodes, at, |first, values| {
                let Some(&number) = numbers.first() else { return Ok(()) };
                if !packs {
                    return card.put_at(&state.memory[number], first * own, values);
                }
                values.chunks_exact(own).enumerate().try_for_each(|(i, values)| {
                    state.layout.pack(values, &mut packed);
                    card.put_at(&state.memory[number], (first + i) * length, &packed)
                })
            })?;
            state.buffers.push(numbers);
            state.lengths.push(length);
        }
        let mut row = Vec::new();
        plan.steps(plan.k, &mut row);
        state.steps = state.numbered::<T>(card, (AHEAD + 1) * row.len())?;
        state.clock = state.numbered::<u32>(card, 2 * m)?;
        state.largest = state.numbered::<f64>(card, m * plan.arrays.len())?;
        Ok(state)
    }

    fn numbered<V: Copy>(&mut self, card: &Card, count: usize) -> Result<usize> {
        self.empty::<V>(card, count)?;
        Ok(self.memory.len() - 1)
    }

    /// Memory that holds these values.
    pub fn copy<V: Copy>(&mut self, card: &Card, values: &[V]) -> Result<Address> {
        let memory = card.copy(values)?;
        let address = memory.address;
        self.memory.push(memory);
        Ok(address)
    }

    /// Memory for `count` values, all zero.
    pub fn empty<V: Copy>(&mut self, card: &Card, count: usize) -> Result<Address> {
        let memory = card.room::<V>(count)?;
        let address = memory.address;
        self.memory.push(memory);
        Ok(address)
    }

    /// Memory that counts the products of each node that measured curvatures.
    pub fn counters(&mut self, card: &Card) -> Result<Address> {
        let number = self.numbered::<u32>(card, self.m)?;
        self.probes = Some(number);
        Ok(self.memory[number].address)
    }

    /// Where a buffer of an array is; 0 if there is none.
    pub fn address(&self, array: usize, buffer: usize) -> Address {
        let number = self.buffers[array].get(buffer);
        number.map_or(0, |&number| self.memory[number].address)
    }

    /// The numbers of a node in an array.
    pub fn length(&self, array: usize) -> usize {
        self.lengths[array]
    }

    /// The parameters that every kernel has: variables, the graph, step sizes, samples and labels.
    pub fn common(
        &mut self,
        card: &Card,
        plan: &Plan<T>,
        (links, linked, w): (&[u32], &[u32], &[T]),
        of: Common,
    ) -> Result<Common> {
        let at = |place: usize| self.address(place, 0);
        let [theta, d, v, h, s, z] = std::array::from_fn(at);
        let y = std::array::from_fn(|buffer| self.address(6, buffer));
        let x = std::array::from_fn(|buffer| self.address(7, buffer));
        let (steps, clock) = (self.memory[self.steps].address, self.memory[self.clock].address);
        let mut common = Common { theta, d, v, h, s, z, y, x, steps, clock, ..of };
        (common.links, common.linked) = (self.copy(card, links)?, self.copy(card, linked)?);
        common.w = self.copy(card, w)?;
        for side in 0..2 {
            common.own[side] = self.copy(card, &plan.own[side])?;
            if !plan.owned[side].is_empty() {
                common.owned[side] = self.copy(card, &plan.owned[side])?;
            }
        }
        common.labels = self.copy(card, &plan.labels)?;
        Ok(common)
    }

    /// The parameters of the steps of a list that compute sums, for iterations from each of the two states
    /// of the buffers; between them `evaluate` is called with the number of an evaluation and the
    /// addresses of all arrays, and before sums that mix `post` with those of the mixed ones.
    pub fn listed<L>(
        &mut self,
        card: &Card,
        list: &List,
        common: &Common,
        mut sums: impl FnMut(Sums, u64) -> Result<L>,
        mut evaluate: impl FnMut(usize, &[Address]) -> Result<Vec<L>>,
        mut post: impl FnMut(&[(Address, usize)]) -> Result<Option<L>>,
    ) -> Result<[Vec<L>; 2]> {
        // An array that flips an even number of times per iteration starts from the same buffer in all of them.
        let flips = |at: usize| list.steps.iter().filter(|step| step.flips(at)).count();
        let all: Vec<usize> = (0..self.buffers.len()).collect();
        let odd: Vec<usize> = all.iter().copied().filter(|&at| flips(at) % 2 == 1).collect();
        let mut both = [Vec::new(), Vec::new()];
        for (parity, steps) in both.iter_mut().enumerate() {
            let mut now: Vec<usize> =
                all.iter().map(|at| if odd.contains(at) { parity } else { 0 }).collect();
            for step in &list.steps {
                match step {
                    Step::Evaluate(number) => {
                        let addresses: Vec<Address> =
                            all.iter().map(|&at| self.address(at, now[at])).collect();
                        steps.extend(evaluate(*number, &addresses)?);
                    }
                    Step::Sums { wide, sums: lines } => {
                        let each = self.length(if *wide { 7 } else { 0 });
                        let mixed: Vec<_> = step
                            .mixed()
                            .iter()
                            .map(|&at| (self.address(at, now[at]), each))
                            .collect();
                        if !mixed.is_empty() {
                            steps.extend(post(&mixed)?);
                        }
                        let (mut all_sums, mut parts) = (Vec::new(), Vec::new());
                        for line in lines {
                            let first = parts.len() as u32;
                            parts.extend(line.parts.iter().map(|part| {
                                let buffer = now[part.from] ^ usize::from(part.new);
                                let address = self.address(part.from, buffer);
                                let numbers = [u32::from(part.mixed), part.factor as u32];
                                Entry { address, numbers }
                            }));
                            let buffer = now[line.to] ^ usize::from(line.flips);
                            let address = self.address(line.to, buffer);
                            all_sums.push(Entry { address, numbers: [first, parts.len() as u32] });
                        }
                        let job = Sums {
                            sums: self.copy(card, &all_sums)?,
                            parts: self.copy(card, &parts)?,
                            links: common.links,
                            linked: common.linked,
                            w: common.w,
                            factors: self.memory[self.steps].address,
                            clock: common.clock,
                            m: common.m,
                            each: each as u32,
                            count: lines.len() as u32,
                            row: list.factors.len() as u32,
                        };
                        steps.push(sums(job, (self.m * each) as u64)?);
                        for (at, now) in now.iter_mut().enumerate() {
                            *now ^= usize::from(step.flips(at));
                        }
                    }
                }
            }
        }
        Ok(both)
    }

    /// The exchanges of a run: of a rule that mixes once, by the buffer of x that is current; of a list none yet.
    pub fn posts(&self, card: &Card, plan: &Plan<T>, carry: &str) -> Result<Option<Posts>> {
        if !plan.exchanges() {
            return Ok(None);
        }
        let post = |buffer: usize| {
            let array = |&at: &usize| (self.address(at, buffer), self.length(at));
            Post::new(card, plan, &plan.mixed().iter().map(array).collect::<Vec<_>>())
        };
        let listed = plan.list().is_some();
        let all = if listed { Vec::new() } else { vec![post(0)?, post(1)?] };
        Posts::new(card, carry, all, !listed).map(Some)
    }

    /// After some iterations of a list.
    pub fn flip(&mut self, list: &[bool], count: usize) {
        for (now, &flips) in self.now.iter_mut().zip(list) {
            *now ^= usize::from(flips && count % 2 == 1);
        }
    }
}

/// `Sum` or `Part` of kernels/common.cuh.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    address: Address,
    numbers: [u32; 2],
}

/// `Sums` of kernels/common.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Sums {
    sums: Address,
    parts: Address,
    links: Address,
    linked: Address,
    w: Address,
    factors: Address,
    clock: Address,
    m: u32,
    each: u32,
    count: u32,
    row: u32,
}

/// `Sizes` of kernels/common.cuh.
#[repr(C)]
struct Sizes {
    values: Address,
    largest: Address,
    length: u32,
    apart: u32,
}

/// A run on the card.
pub struct Run<T: Scalar, L: Launches> {
    plan: Plan<T>,
    /// Iterations launched, and begun but not launched.
    k: u64,
    pending: usize,
    /// The row of the next iteration in the table of step sizes.
    ahead: usize,
    sizes: Kernel,
    /// The products that the nodes have counted.
    counted: Vec<u32>,
    // Dropped in this order: recorded graphs, then memory, then the card.
    launches: L,
    posts: Option<Posts>,
    state: State<T>,
    card: Card,
}

impl<T: Scalar, L: Launches + 'static> Run<T, L> {
    /// With the kernel `sizes`.
    pub fn start(
        card: Card,
        plan: Plan<T>,
        state: State<T>,
        (launches, posts): (L, Option<Posts>),
        sizes: &str,
    ) -> Result<Box<dyn DeviceRun<T>>> {
        let (sizes, k, counted) = (card.kernel(sizes)?, plan.k, vec![0; state.m]);
        let (pending, ahead) = (0, AHEAD);
        Ok(Box::new(Run { plan, k, pending, ahead, sizes, counted, launches, posts, state, card }))
    }

    /// Launches all iterations that were begun, except for the last `rest`.
    fn launch(&mut self, rest: usize, mut exchange: Option<Exchange>) -> Result<()> {
        while self.pending > rest {
            if self.ahead == AHEAD {
                // One more, because variables may be moved ahead.
                let mut steps = Vec::new();
                (self.k..).take(AHEAD + 1).for_each(|k| self.plan.steps(k, &mut steps));
                self.card.put(&self.state.memory[self.state.steps], &steps)?;
                let clock = [self.k as u32, 0].repeat(self.state.m);
                self.card.put(&self.state.memory[self.state.clock], &clock)?;
                self.ahead = 0;
            }
            let ready = (self.pending - rest).min(AHEAD - self.ahead);
            let Run { card, state, launches, pending, .. } = self;
            let exchange = exchange.as_mut().map(|exchange| &mut **exchange as Exchange);
            let among = self.posts.as_mut().map(|posts| Among { posts, exchange });
            let count = launches.launch(card, state, Due { ready, pending: *pending, among })?;
            (self.pending, self.ahead) = (self.pending - count, self.ahead + count);
            self.k += count as u64;
        }
        Ok(())
    }
}

impl<T: Scalar, L: Launches + 'static> DeviceRun<T> for Run<T, L> {
    fn advance(&mut self, exchange: Exchange) -> Result<()> {
        self.pending += 1;
        if let Some(posts) = &mut self.posts {
            self.card.bind()?;
            if std::mem::take(&mut posts.stale) {
                posts.go(&self.card, self.state.now[X], &mut *exchange)?;
            }
            return self.launch(self.launches.kept(), Some(exchange));
        }
        if self.pending < self.launches.most() + self.launches.kept() {
            return Ok(());
        }
        self.card.bind()?;
        self.launch(self.launches.kept(), None)
    }

    fn wait(&mut self) -> Result<()> {
        self.card.bind()?;
        self.launch(0, None)?;
        self.card.wait()
    }

    fn count(&mut self, nodes: &mut [Node<T>]) -> Result<()> {
        let Some(number) = self.state.probes else { return Ok(()) };
        self.card.bind()?;
        self.launch(0, None)?;
        let mut now = vec![0u32; self.state.m];
        self.card.get(&self.state.memory[number], &mut now)?;
        for (node, (now, counted)) in nodes.iter_mut().zip(now.iter().zip(&self.counted)) {
            node.oracle.count_products(u64::from(now.wrapping_sub(*counted)));
        }
        self.counted = now;
        Ok(())
    }

    fn fetch(&mut self, nodes: &mut [Node<T>]) -> Result<()> {
        self.count(nodes)?;
        self.card.bind()?;
        self.launch(0, None)?;
        let Run { plan, state, card, .. } = self;
        plan.variables.give_back(nodes, |at, to| {
            let memory = &state.memory[state.buffers[at][state.now[at]]];
            let length = state.lengths[at];
            if !plan.arrays[at].wide || !state.layout.differs() {
                return card.get_at(memory, 0, to);
            }
            let mut packed = vec![T::zero(); length];
            let own = to.len() / state.m;
            to.chunks_exact_mut(own).enumerate().try_for_each(|(i, to)| {
                card.get_at(memory, i * length, &mut packed)?;
                state.layout.unpack(&packed, to);
                Ok(())
            })
        })
    }

    fn sizes(&mut self) -> Result<Vec<Vec<f64>>> {
        self.card.bind()?;
        self.launch(0, None)?;
        let State { memory, buffers, now, lengths, largest, m, .. } = &self.state;
        let all = lengths.len();
        let mut found = vec![0.0; m * all];
        for at in (0..all).filter(|&at| lengths[at] > 0) {
            let job = Sizes {
                values: memory[buffers[at][now[at]]].address,
                largest: memory[*largest].address + 8 * at as Address,
                length: lengths[at] as u32,
                apart: all as u32,
            };
            self.card.launch(&self.sizes, [*m as u32, 1], &job, 0)?;
        }
        self.card.get(&memory[*largest], &mut found)?;
        Ok(self.plan.variables.sorted(&found))
    }
}
