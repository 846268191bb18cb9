//! A network on this machine that delays and loses packets, and whose links can be cut.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lopa::math::random::{Purpose, Stream};

/// The delay and loss of packets, one way.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    pub delay: Duration,
    pub loss: f64,
}

/// Packets that one node sends to another, and the answers, until it is dropped.
pub struct Way {
    pub address: SocketAddr,
    cut: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    pub packets: Arc<AtomicU64>,
    pub lost: Arc<AtomicU64>,
}

impl Way {
    /// From callers of `near` to an address that is called from `far`, both on this host.
    pub fn new((near, far): (&str, &str), to: SocketAddr, weather: Weather, seed: u64) -> Way {
        let front = UdpSocket::bind((near, 0)).unwrap();
        let back = UdpSocket::bind((far, 0)).unwrap();
        for socket in [&front, &back] {
            socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        }
        let address = front.local_addr().unwrap();
        let way = Way {
            address,
            cut: Arc::default(),
            stop: Arc::default(),
            packets: Arc::default(),
            lost: Arc::default(),
        };
        let (cut, stop) = (way.cut.clone(), way.stop.clone());
        let (packets, lost) = (way.packets.clone(), way.lost.clone());
        let mut stream = Stream::new(seed, Purpose::Tuning, 9);
        std::thread::spawn(move || {
            let mut caller = None;
            let mut travelling: VecDeque<(Instant, bool, Vec<u8>)> = VecDeque::new();
            let mut buffer = [0; 65536];
            while !stop.load(Ordering::Relaxed) {
                for (forth, socket) in [(true, &front), (false, &back)] {
                    // No address, or no listener.
                    let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                    caller = if forth { Some(from) } else { caller };
                    packets.fetch_add(1, Ordering::Relaxed);
                    if cut.load(Ordering::Relaxed) || stream.unit() < weather.loss {
                        lost.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let due = Instant::now() + weather.delay;
                    travelling.push_back((due, forth, buffer[..length].to_vec()));
                }
                while travelling.front().is_some_and(|(due, ..)| *due <= Instant::now()) {
                    let Some((_, forth, packet)) = travelling.pop_front() else { break };
                    let _ = match (forth, caller) {
                        (true, _) => back.send_to(&packet, to),
                        (false, Some(caller)) => front.send_to(&packet, caller),
                        (false, None) => Ok(0),
                    };
                }
            }
        });
        way
    }

    pub fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
