//! What the nodes of this process need of others before they mix: packed on the card, moved by the run's transport,
//! and unpacked behind the nodes' own rows.

use lopa::engine::Parcel;
use lopa::engine::device::Exchange;
use lopa::error::Result;

use crate::driver::{Card, Ferry, Kernel, Memory, THREADS};
use crate::job::{Address, Scalar};
use crate::plan::{Plan, blocks};

/// `Span` of kernels/common.cuh.
#[repr(C)]
#[derive(Clone, Copy)]
struct Span {
    at: Address,
    start: u64,
    length: u32,
    none: u32,
}

/// `Spans` of kernels/common.cuh.
#[repr(C)]
#[derive(Clone, Copy)]
struct Spans {
    rows: Address,
    packed: Address,
    chunks: u32,
    none: u32,
}

/// Packs, or unpacks: the parameters, the number of blocks, and the rows.
struct Carry {
    job: Spans,
    blocks: u32,
    _rows: Memory,
}

impl Carry {
    fn new(card: &Card, rows: &[Span], packed: Address) -> Result<Carry> {
        let most = rows.iter().map(|row| row.length).max().unwrap_or(0);
        let chunks = most.div_ceil(THREADS);
        let memory = card.copy(rows)?;
        let job = Spans { rows: memory.address, packed, chunks, none: 0 };
        let blocks = blocks(rows.len() as u64 * u64::from(chunks))?;
        Ok(Carry { job, blocks, _rows: memory })
    }
}

/// An exchange of some arrays.
pub struct Post {
    out: Carry,
    into: Carry,
    sent: Vec<Parcel>,
    received: Vec<Parcel>,
    ferry: Ferry,
}

impl Post {
    /// Of arrays that start here and have as many numbers of each node.
    pub fn new<T: Scalar>(
        card: &Card,
        plan: &Plan<T>,
        arrays: &[(Address, usize)],
    ) -> Result<Post> {
        let (mut out, mut into) = (Packing::<T>::new(arrays), Packing::<T>::new(arrays));
        for border in &plan.borders {
            out.add(border.rank, &border.out);
            into.add(border.rank, &border.into);
        }
        let ferry = card.ferry(out.bytes(), into.bytes())?;
        let [packed, unpacked] = ferry.addresses();
        Ok(Post {
            out: Carry::new(card, &out.rows, packed)?,
            into: Carry::new(card, &into.rows, unpacked)?,
            sent: out.parcels,
            received: into.parcels,
            ferry,
        })
    }

    /// Packs what others need, after all launches so far, and moves it to the host; later launches do not wait.
    pub fn start(&mut self, card: &Card, carry: &Kernel) -> Result<()> {
        if self.out.blocks > 0 {
            card.launch(carry, [self.out.blocks, 1], &self.out.job, 0)?;
        }
        self.ferry.send(card)
    }

    /// Exchanges it; later launches find what others have sent.
    pub fn finish(&mut self, card: &Card, carry: &Kernel, exchange: Exchange) -> Result<()> {
        let Post { into, sent, received, ferry, .. } = self;
        let mut bytes = ferry.sent()?;
        for parcel in &mut *sent {
            let (own, rest) = bytes.split_at(parcel.bytes.len());
            parcel.bytes.copy_from_slice(own);
            bytes = rest;
        }
        exchange(sent, received)?;
        let mut rest = ferry.inbox()?;
        for parcel in &*received {
            let (own, after) = rest.split_at_mut(parcel.bytes.len());
            own.copy_from_slice(&parcel.bytes);
            rest = after;
        }
        ferry.receive()?;
        if into.blocks > 0 {
            ferry.launch(card, carry, into.blocks, &into.job, 1)?;
        }
        ferry.join(card)
    }
}

/// Spans one after the other, process by process.
struct Packing<'a, T> {
    arrays: &'a [(Address, usize)],
    rows: Vec<Span>,
    start: u64,
    parcels: Vec<Parcel>,
    scalar: std::marker::PhantomData<T>,
}

impl<'a, T: Scalar> Packing<'a, T> {
    fn new(arrays: &'a [(Address, usize)]) -> Packing<'a, T> {
        let scalar = std::marker::PhantomData;
        Packing { arrays, rows: Vec::new(), start: 0, parcels: Vec::new(), scalar }
    }

    fn add(&mut self, rank: usize, nodes: &[usize]) {
        let before = self.start;
        for &node in nodes {
            for &(address, length) in self.arrays {
                let at = address + (node * length * T::BYTES) as Address;
                self.rows.push(Span { at, start: self.start, length: length as u32, none: 0 });
                self.start += length as u64;
            }
        }
        let bytes = vec![0; (self.start - before) as usize * T::BYTES];
        self.parcels.push(Parcel { rank, bytes, finite: false });
    }

    fn bytes(&self) -> usize {
        self.start as usize * T::BYTES
    }
}

/// The exchanges of an iteration.
pub struct Posts {
    carry: Kernel,
    all: Vec<Post>,
    /// Whether the nodes have moved since the last exchange of a rule that mixes once, with the first kernel.
    pub stale: bool,
}

impl Posts {
    /// With the kernel of this name; `stale` at first, or never.
    pub fn new(card: &Card, carry: &str, all: Vec<Post>, stale: bool) -> Result<Posts> {
        Ok(Posts { carry: card.kernel(carry)?, all, stale })
    }

    /// Adds an exchange; returns its number.
    pub fn add(&mut self, post: Post) -> usize {
        self.all.push(post);
        self.all.len() - 1
    }

    /// Begins the exchange with this number.
    pub fn start(&mut self, card: &Card, number: usize) -> Result<()> {
        self.all[number].start(card, &self.carry)
    }

    /// Ends it.
    pub fn finish(&mut self, card: &Card, number: usize, exchange: Exchange) -> Result<()> {
        self.all[number].finish(card, &self.carry, exchange)
    }

    /// All of it.
    pub fn go(&mut self, card: &Card, number: usize, exchange: Exchange) -> Result<()> {
        self.start(card, number)?;
        self.finish(card, number, exchange)
    }
}
