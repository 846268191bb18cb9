//! Processes of one cluster, started by `mpirun`.

use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use mpi::{Count, Rank, Threading, request};

use super::transport::{Accepts, Messages, Parcel, Round, Transport, accepted};
use crate::error::{Error, Kind, Result};

/// The processes started by one `mpirun`. Dropping it waits for all of them.
pub struct Mpi {
    universe: Universe,
    place: usize,
}

impl Mpi {
    /// Joins the others; at most once per process.
    pub fn start() -> Result<Mpi> {
        let started = mpi::initialize_with_threading(Threading::Funneled);
        let (universe, _) = started.ok_or_else(|| {
            Error::new(Kind::Run, "engine/mpi", "MPI is already initialised in this process")
        })?;
        let world = universe.world();
        // Those that share memory are on one machine.
        let place = world.split_shared(world.rank()).rank() as usize;
        Ok(Mpi { universe, place })
    }

    /// Makes a panic in this process end all of them, since the others would wait for it forever.
    pub fn abort_on_panic(&self) {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            report(panic);
            SimpleCommunicator::world().abort(101)
        }));
    }

    /// Ends all processes at once with an exit code.
    pub fn abort(&self, code: u8) -> ! {
        self.world().abort(i32::from(code))
    }

    fn world(&self) -> SimpleCommunicator {
        self.universe.world()
    }

    /// The length and start of each process's bytes in the gathered buffer; an error if it is too
    /// large.
    fn layout(&self, ours: &[u8]) -> Result<(Vec<Count>, Vec<Count>)> {
        let mut lengths = vec![0u64; self.size()];
        self.world().all_gather_into(&(ours.len() as u64), &mut lengths[..]);
        let (mut counts, mut starts, mut start) = (Vec::new(), Vec::new(), 0u64);
        for length in lengths {
            starts.push(start as Count);
            counts.push(length as Count);
            start += length;
        }
        match Count::try_from(start) {
            Ok(_) => Ok((counts, starts)),
            Err(_) => {
                let message =
                    format!("MPI gathers at most 2 GiB at once, but this is {start} bytes");
                Err(Error::new(Kind::Run, "engine/too-large", message))
            }
        }
    }
}

/// The same bytes at a real address: an empty slice may have the dangling address 1, which is Open
/// MPI's `MPI_IN_PLACE`.
fn with_address(bytes: &[u8]) -> &[u8] {
    const NOTHING: &[u8] = &[0];
    if bytes.is_empty() { &NOTHING[..0] } else { bytes }
}

/// A buffer for all received bytes, at a real address: see [`with_address`].
fn buffer(counts: &[Count]) -> Vec<u8> {
    vec![0; counts.iter().map(|&count| count as usize).sum::<usize>().max(1)]
}

/// Splits a gathered buffer by process.
fn split(buffer: &[u8], counts: &[Count]) -> Vec<Vec<u8>> {
    let mut rest = buffer;
    let piece = |&count: &Count| {
        let (front, back) = rest.split_at(count as usize);
        rest = back;
        front.to_vec()
    };
    counts.iter().map(piece).collect()
}

impl Transport for Mpi {
    fn rank(&self) -> usize {
        self.world().rank() as usize
    }

    fn size(&self) -> usize {
        self.world().size() as usize
    }

    fn place(&self) -> usize {
        self.place
    }

    fn is_divisible(&self) -> bool {
        true
    }

    fn exchange(
        &mut self,
        _: Round,
        _: usize,
        out: &[Parcel],
        into: &mut [Parcel],
        _: Messages,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()> {
        let world = self.world();
        // MPI keeps the order of messages between two processes, so rounds need no tag.
        request::scope(|scope| {
            let mut requests = Vec::with_capacity(out.len() + into.len());
            // Empty parcels are not sent; both ends can tell which are empty.
            for Parcel { rank, bytes, .. } in
                into.iter_mut().filter(|parcel| !parcel.bytes.is_empty())
            {
                let from = world.process_at_rank(*rank as Rank);
                requests.push(Pending::Receive(from.immediate_receive_into(scope, &mut bytes[..])));
            }
            for Parcel { rank, bytes, .. } in out.iter().filter(|parcel| !parcel.bytes.is_empty()) {
                let to = world.process_at_rank(*rank as Rank);
                requests.push(Pending::Send(to.immediate_send(scope, &bytes[..])));
            }
            meanwhile();
            for request in requests {
                match request {
                    Pending::Receive(request) => drop(request.wait()),
                    Pending::Send(request) => drop(request.wait()),
                }
            }
        });
        Ok(())
    }

    fn all(&mut self, ours: &[u8], accepts: Accepts) -> Result<Vec<Vec<u8>>> {
        let (counts, starts) = self.layout(ours)?;
        let mut buffer = buffer(&counts);
        let mut parts = PartitionMut::new(&mut buffer[..], &counts[..], &starts[..]);
        self.world().all_gather_varcount_into(with_address(ours), &mut parts);
        accepted(split(&buffer, &counts), accepts)
    }

    fn gather(&mut self, ours: &[u8], accepts: Accepts) -> Result<Vec<Vec<u8>>> {
        let (counts, starts) = self.layout(ours)?;
        let world = self.world();
        let first = world.process_at_rank(0);
        if self.rank() != 0 {
            first.gather_varcount_into(with_address(ours));
            return Ok(Vec::new());
        }
        let mut buffer = buffer(&counts);
        let mut parts = PartitionMut::new(&mut buffer[..], &counts[..], &starts[..]);
        first.gather_varcount_into_root(with_address(ours), &mut parts);
        accepted(split(&buffer, &counts), accepts)
    }
}

enum Pending<R, S> {
    Receive(R),
    Send(S),
}
