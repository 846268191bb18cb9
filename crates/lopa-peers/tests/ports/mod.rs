//! Free ports for tests.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU32, Ordering};

/// A free port, unique among the tests of a program. It is below the system's ephemeral range, from which other programs get
/// theirs.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let next = 31 * std::process::id() + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (next % 12_000) as u16;
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
