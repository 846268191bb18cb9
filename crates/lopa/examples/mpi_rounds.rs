//! How long a round under MPI takes, beside the raw exchange of the same bytes.
//!
//! `mpirun -n 3 target/release/examples/mpi_rounds`

mod raw;

use std::net::{SocketAddr, TcpListener};
use std::time::Instant;

use lopa::engine::{Mpi, Parcel, Round, Transport, anything};
use raw::{Raw, SIZES, median};

fn main() {
    let mut mpi = Mpi::start().expect("started by mpirun");
    let (rank, size) = (mpi.rank(), mpi.size());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let ports = mpi.all(&port.to_le_bytes(), &anything).unwrap();
    let address =
        |port: &Vec<u8>| SocketAddr::from(([127, 0, 0, 1], u16::from_le_bytes([port[0], port[1]])));
    let addresses: Vec<SocketAddr> = ports.iter().map(address).collect();
    let mut raw = Raw::join(&listener, &addresses, rank);
    for (entries, rounds) in SIZES {
        let both = [(rank + 1) % size, (rank + size - 1) % size];
        let parcels = both.map(|rank| Parcel { rank, bytes: vec![1; 8 * entries], finite: true });
        let mut into = parcels.clone();
        let mut times = Vec::new();
        for k in 0..rounds as u64 {
            let start = Instant::now();
            let round = Round { k, e: 0 };
            mpi.exchange(round, 8, &parcels, &mut into, &|_, _, _| Ok(()), &mut || {}).unwrap();
            times.push(start.elapsed().as_secs_f64());
        }
        let (ours, raw) = (median(times), median(raw.rounds(entries, rounds)));
        if rank == 0 {
            let ratio = ours / raw;
            println!("{entries} f64: MPI {ours:.3} ms, raw TCP {raw:.3} ms, ratio {ratio:.2}");
        }
    }
}
