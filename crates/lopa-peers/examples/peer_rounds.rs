//! Time per round of three peers, compared with a raw exchange of the same bytes over TCP.
//!
//! `cargo run --release -p lopa-peers --example peer_rounds`

#[path = "../../lopa/examples/raw/mod.rs"]
mod raw;

use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use lopa::engine::{Begin, Limits, Parcel, Peers, Round, Settings, Transport, anything};
use lopa::network::{Graph, Mixing};
use lopa_peers::{Iroh, Key, Keys, Log, Neighbour, Place, Terms};
use raw::{Raw, SIZES, median};

const NODES: usize = 3;

/// Rounds of one node with its two neighbours; returns the seconds of each.
fn rounds(place: Place, mixing: &Mixing, entries: usize, rounds: usize) -> Vec<f64> {
    let me = place.node;
    let others: Vec<usize> = place.neighbours.iter().map(|neighbour| neighbour.node).collect();
    let mut wire =
        Iroh::start(place, Log::new(|_, _| {}), Arc::new(AtomicBool::new(false))).unwrap();
    wire.meet(Duration::from_secs(60), None).unwrap();
    let mut peers = Peers::new(wire, (me, NODES), &[0; 32], Settings::default(), Box::new(|_| {}));
    let limits = Limits { message: 8 * entries, broadcast: 1000 };
    let own = peers.independent().expect("peers are independent");
    own.begin(Begin { job: 0, mixing, kept: None, held: None, lacks: false, limits }).unwrap();
    let parcel = |rank| Parcel { rank, bytes: vec![0; 8 * entries], finite: true };
    let out: Vec<Parcel> = others.into_iter().map(parcel).collect();
    let mut into = out.clone();
    let mut times = Vec::new();
    for k in 0..rounds as u64 {
        let start = Instant::now();
        let round = Round { k, e: 0 };
        peers.exchange(round, 8, &out, &mut into, &|_, _, _| Ok(()), &mut || {}).unwrap();
        if k % 100 == 99 {
            // As after a checkpoint: neighbours drop the frames before it.
            let own = peers.independent().expect("peers are independent");
            own.mark();
            own.kept().unwrap();
        }
        times.push(start.elapsed().as_secs_f64());
    }
    peers.all(b"done", &anything).unwrap();
    times
}

fn main() {
    let folder = std::env::temp_dir().join(format!("lopa-rounds-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let graph = Graph::from_edges(NODES, [(0, 1), (0, 2), (1, 2)]).unwrap();
    let thirds = vec![vec![1.0 / 3.0; NODES]; NODES];
    let mixing = Mixing::from_matrix(thirds).unwrap();
    for (entries, count) in SIZES {
        let key = |i: usize| Key::create(&folder.join(format!("{entries}-{i}"))).unwrap();
        let keys: Vec<Key> = (0..NODES).map(key).collect();
        let sockets: Vec<_> = (0..NODES).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let at: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
        drop(sockets);
        let neighbour = |&node: &usize| Neighbour {
            node,
            name: node.to_string(),
            key: keys[node].public(),
            addresses: vec![at[node].to_string()],
        };
        let place = |node: usize| Place {
            key: keys[node].clone(),
            node,
            members: keys.iter().map(Key::public).collect(),
            listen: at[node],
            callable: true,
            relays: Vec::new(),
            neighbours: graph.neighbours(node).iter().map(neighbour).collect(),
            terms: Terms {
                experiment: [0; 32],
                graph: [0; 32],
                roster: [0; 32],
                version: 0,
                entries: 0,
            },
            keys: Keys::default(),
            most: 8 * entries + 1000,
        };
        let ours = together(|node| rounds(place(node), &mixing, entries, count));
        let listeners: Vec<_> =
            (0..NODES).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let at: Vec<_> = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
        let raw = together(|node| Raw::join(&listeners[node], &at, node).rounds(entries, count));
        let (ours, raw) = (median(ours), median(raw));
        println!("{entries} f64: peers {ours:.3} ms, raw TCP {raw:.3} ms, ratio {:.2}", ours / raw);
    }
    let _ = std::fs::remove_dir_all(&folder);
}

/// Runs all nodes at once; returns the result of node 0.
fn together(run: impl Fn(usize) -> Vec<f64> + Sync) -> Vec<f64> {
    std::thread::scope(|scope| {
        let nodes: Vec<_> = (0..NODES)
            .map(|node| {
                scope.spawn({
                    let run = &run;
                    move || run(node)
                })
            })
            .collect();
        let mut times: Vec<_> = nodes.into_iter().map(|node| node.join().unwrap()).collect();
        times.swap_remove(0)
    })
}
