//! The raw exchange of the same bytes, to compare engines with: TCP on loopback, each process with
//! its two neighbours on a ring.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

/// Entries of x in a round, and how many rounds are timed.
pub const SIZES: [(usize, usize); 2] = [(784, 2000), (21_980, 500)];

/// The median of the measurements, in milliseconds.
pub fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    1e3 * seconds[seconds.len() / 2]
}

/// A process's streams to its next and previous neighbour on a ring.
pub struct Raw {
    next: TcpStream,
    before: TcpStream,
}

impl Raw {
    /// Joins the ring; `addresses` has the address of each process at its index.
    pub fn join(listener: &TcpListener, addresses: &[SocketAddr], rank: usize) -> Raw {
        let next = TcpStream::connect(addresses[(rank + 1) % addresses.len()]).unwrap();
        let (before, _) = listener.accept().unwrap();
        [&next, &before].into_iter().for_each(|stream| stream.set_nodelay(true).unwrap());
        Raw { next, before }
    }

    /// Rounds of sending to both neighbours and receiving from both; returns the seconds of each.
    pub fn rounds(&mut self, entries: usize, rounds: usize) -> Vec<f64> {
        let out = vec![1u8; 8 * entries];
        let mut into = vec![0u8; 8 * entries];
        let mut round = || {
            let start = Instant::now();
            // A stream's buffers may be smaller than a message: both ends would wait for ever.
            let (mut next, mut before) =
                (self.next.try_clone().unwrap(), self.before.try_clone().unwrap());
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    next.write_all(&out).unwrap();
                    before.write_all(&out).unwrap();
                });
                self.before.read_exact(&mut into).unwrap();
                self.next.read_exact(&mut into).unwrap();
            });
            start.elapsed().as_secs_f64()
        };
        (0..rounds).map(|_| round()).collect()
    }
}
