//! A slow network: neighbours connect once, and stay connected.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lopa::engine::Wire;

use super::{Honest, PATIENCE, honest_through};

/// Delivers packets between callers and one address, each after a delay, until it is dropped.
pub struct Slow {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Slow {
    pub fn new(to: SocketAddr, delay: Duration) -> Slow {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (address, stop) = (front.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        for socket in [&front, &back] {
            socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        }
        let stopped = stop.clone();
        std::thread::spawn(move || {
            let mut caller = None;
            let mut on_their_way = VecDeque::new();
            let mut buffer = [0; 65536];
            while !stopped.load(Ordering::Relaxed) {
                for (from_front, socket) in [(true, &front), (false, &back)] {
                    match socket.recv_from(&mut buffer) {
                        Ok((length, from)) => {
                            if from_front {
                                caller = Some(from);
                            }
                            let packet = buffer[..length].to_vec();
                            on_their_way.push_back((Instant::now() + delay, from_front, packet));
                        }
                        Err(error) => assert!(
                            [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind())
                                || error.kind() == ErrorKind::ConnectionRefused
                        ),
                    }
                }
                while on_their_way.front().is_some_and(|(due, ..)| *due <= Instant::now()) {
                    let (_, forth, packet) = on_their_way.pop_front().unwrap();
                    let _ = match (forth, caller) {
                        (true, _) => back.send_to(&packet, to),
                        (false, Some(caller)) => front.send_to(&packet, caller),
                        (false, None) => Ok(0),
                    };
                }
            }
        });
        Slow { address, stop }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn neighbours_on_a_slow_network_connect_and_stay_connected() {
    let folder = tempfile::tempdir().unwrap();
    let mut ways = Vec::new();
    let (honest, _) = honest_through(folder.path(), |address| {
        ways.push(Slow::new(address, Duration::from_millis(300)));
        ways.last().unwrap().address
    });
    let Honest { mut alice, mut bob, lines, .. } = honest;
    bob.meet(PATIENCE, None).unwrap();
    // Long enough for every call that was on its way.
    for wire in [&mut alice, &mut bob] {
        let until = wire.now() + Duration::from_secs(4);
        while wire.next(until).is_some() {}
    }
    let lines = lines.lock().unwrap();
    let ups = lines.iter().filter(|line| line.contains("link to bob is up")).count();
    assert!((1..=2).contains(&ups), "{lines:?}");
    assert!(lines.last().unwrap().contains("link to bob is up"), "{lines:?}");
}
