//! Processes of one cluster, started by `mpirun`.

use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use mpi::{Count, Rank, Threading, request};

use super::transport::{Parcel, Round, Transport};
use crate::error::{Error, Kind, Result};

/// The processes that one `mpirun` started. Dropping it waits for all of them.
pub struct Mpi {
    universe: Universe,
}

impl Mpi {
    /// Joins the others; once in a process.
    pub fn start() -> Result<Mpi> {
        let started = mpi::initialize_with_threading(Threading::Funneled);
        let (universe, _) = started.ok_or_else(|| {
            Error::new(Kind::Run, "engine/mpi", "MPI was started in this process before")
        })?;
        Ok(Mpi { universe })
    }

    /// From here on a panic in this process ends all of them: the others would wait for it for ever.
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

    /// How long what each process says is, and where it begins; an error if it is too much.
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
                let message = format!("MPI brings at most 2 GiB together, and this is {start} B");
                Err(Error::new(Kind::Run, "engine/too-large", message))
            }
        }
    }
}

/// These bytes at an address of theirs: an empty slice may lie at address 1, which is what Open MPI
/// calls `MPI_IN_PLACE`.
fn somewhere(bytes: &[u8]) -> &[u8] {
    const NOTHING: &[u8] = &[0];
    if bytes.is_empty() { &NOTHING[..0] } else { bytes }
}

/// Room for all that comes in, at an address of its own: see [`somewhere`].
fn room(counts: &[Count]) -> Vec<u8> {
    vec![0; counts.iter().map(|&count| count as usize).sum::<usize>().max(1)]
}

/// The pieces of what came in one after the other.
fn pieces(buffer: &[u8], counts: &[Count]) -> Vec<Vec<u8>> {
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

    fn exchange(
        &mut self,
        _: Round,
        out: &[Parcel],
        into: &mut [Parcel],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()> {
        let world = self.world();
        // Between two processes messages keep their order, so rounds need no mark.
        request::scope(|scope| {
            let mut requests = Vec::with_capacity(out.len() + into.len());
            // What holds nothing is not sent; both ends know it.
            for Parcel { rank, bytes } in into.iter_mut().filter(|parcel| !parcel.bytes.is_empty())
            {
                let from = world.process_at_rank(*rank as Rank);
                requests.push(Either::In(from.immediate_receive_into(scope, &mut bytes[..])));
            }
            for Parcel { rank, bytes } in out.iter().filter(|parcel| !parcel.bytes.is_empty()) {
                let to = world.process_at_rank(*rank as Rank);
                requests.push(Either::Out(to.immediate_send(scope, &bytes[..])));
            }
            meanwhile();
            for request in requests {
                match request {
                    Either::In(request) => drop(request.wait()),
                    Either::Out(request) => drop(request.wait()),
                }
            }
        });
        Ok(())
    }

    fn all(&mut self, ours: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (counts, starts) = self.layout(ours)?;
        let mut buffer = room(&counts);
        let mut parts = PartitionMut::new(&mut buffer[..], &counts[..], &starts[..]);
        self.world().all_gather_varcount_into(somewhere(ours), &mut parts);
        Ok(pieces(&buffer, &counts))
    }

    fn gather(&mut self, ours: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (counts, starts) = self.layout(ours)?;
        let world = self.world();
        let first = world.process_at_rank(0);
        if self.rank() != 0 {
            first.gather_varcount_into(somewhere(ours));
            return Ok(Vec::new());
        }
        let mut buffer = room(&counts);
        let mut parts = PartitionMut::new(&mut buffer[..], &counts[..], &starts[..]);
        first.gather_varcount_into_root(somewhere(ours), &mut parts);
        Ok(pieces(&buffer, &counts))
    }
}

enum Either<I, O> {
    In(I),
    Out(O),
}
