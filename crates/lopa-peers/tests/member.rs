//! A malicious member on real connections: the honest engine behind a wire that tampers with what it sends, with
//! its own key. Its neighbours refuse such frames and name it; they reach the digest of one process, or end
//! with an error that names it, and never crash.

mod ports;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lopa::engine::{
    Event, Frame, FrameKind, Note, Peers, Place as Where, Refusal, Settings, Signature, Wire,
};
use lopa::error::{Kind, Result};
use lopa::experiment::Experiment;
use lopa::run::{Context, Outcome};
use lopa_peers::{Iroh, Key, Keys, Log, Neighbour, Place, Terms};
use ports::free_port;

const NODES: usize = 3;
const MEMBER: usize = 2;
const PATIENCE: Duration = Duration::from_secs(60);
/// Where the member sends nothing that can be used.
const DEADLINE: Duration = Duration::from_secs(5);

const EXPERIMENT: &str = "
    problem   = { name = 'quadratic', n = 3, p = 4 }
    network   = { nodes = 3, graph = 'ring' }
    run       = { iterations = 20, evaluations = 2 }
    algorithm = [{ name = 'lopa-gt', alpha = 0.05, beta = 0.5, lambda = 0.5 }]
";

/// A frame that the member would send, and its key.
struct Seen<'a> {
    key: &'a Key,
    to: usize,
    frame: Frame<'a>,
    bytes: &'a [u8],
}

impl Seen<'_> {
    fn made(&self, frame: Frame) -> Vec<u8> {
        let run = std::array::from_fn(|at| self.bytes[8 + at]);
        frame.to_bytes(&run, |bytes| self.key.sign(bytes))
    }

    fn with(&self, kind: FrameKind, payload: &[u8]) -> Vec<u8> {
        self.made(Frame { kind, scalar: 1, payload, ..self.frame })
    }

    fn is(&self, kind: FrameKind) -> bool {
        self.frame.kind == kind
    }
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

struct Attack {
    name: &'static str,
    why: Refusal,
    /// Whether hostile frames replace the honest one, or come before and after it.
    instead: bool,
    frames: fn(&Seen) -> Option<Vec<u8>>,
}

fn attacks() -> [Attack; 7] {
    use FrameKind::{Broadcast, Data, Overflow, Status};
    [
        Attack {
            name: "a broadcast without numbers",
            why: Refusal::Shape,
            instead: true,
            frames: |s| {
                let own = s.is(Broadcast) && s.frame.payload.starts_with(&words(&[MEMBER as u64]));
                own.then(|| s.with(Broadcast, &words(&[MEMBER as u64, 0])))
            },
        },
        Attack {
            name: "honest numbers marked as not finite",
            why: Refusal::Finite,
            instead: true,
            frames: |s| s.is(Data).then(|| s.made(Frame { kind: Overflow, ..s.frame })),
        },
        Attack {
            name: "a message that is not finite",
            why: Refusal::NotFinite,
            instead: true,
            frames: |s| {
                let nan = [&f64::NAN.to_le_bytes()[..], s.frame.payload.get(8..)?].concat();
                s.is(Data).then(|| s.made(Frame { payload: &nan, ..s.frame }))
            },
        },
        Attack {
            name: "noise",
            why: Refusal::Garbage,
            instead: false,
            frames: |_| Some(vec![0x5a; 300]),
        },
        Attack {
            name: "that others had saved more",
            why: Refusal::Past,
            instead: false,
            frames: |s| Some(s.with(Status, &words(&[0, 1 << 40, 1]))),
        },
        Attack {
            name: "a later run",
            why: Refusal::Past,
            instead: false,
            frames: |s| {
                let place = Where { job: s.frame.place.job + 1, ..s.frame.place };
                Some(s.made(Frame { place, ..s.frame }))
            },
        },
        Attack {
            name: "a broadcast in the receiver's name",
            why: Refusal::Signature,
            instead: false,
            frames: |s| {
                let content = s.frame.payload.get(8..)?;
                let forged = [&words(&[s.to as u64])[..], content].concat();
                s.is(Broadcast).then(|| s.with(Broadcast, &forged))
            },
        },
    ]
}

/// A wire that tampers with what it sends, if it is the member's.
struct Tampering<'a> {
    wire: Iroh,
    key: Key,
    attack: Option<&'a Attack>,
}

impl Wire for Tampering<'_> {
    fn send(&mut self, to: usize, bytes: &[u8]) {
        let hostile = self.attack.and_then(|attack| {
            let frame = Frame::known(bytes).expect("an honest frame");
            let frame = (attack.frames)(&Seen { key: &self.key, to, frame, bytes })?;
            Some((frame, attack.instead))
        });
        let sent = match hostile {
            None => vec![bytes.to_vec()],
            Some((hostile, true)) => vec![hostile],
            Some((hostile, false)) => vec![hostile.clone(), bytes.to_vec(), hostile],
        };
        sent.iter().for_each(|frame| self.wire.send(to, frame));
    }

    fn next(&mut self, until: Duration) -> Option<Event> {
        self.wire.next(until)
    }

    fn now(&self) -> Duration {
        self.wire.now()
    }

    fn sign(&self, bytes: &[u8]) -> Signature {
        self.wire.sign(bytes)
    }

    fn secret(&self, node: usize) -> Option<[u8; 32]> {
        self.wire.secret(node)
    }

    fn verify(&self, node: usize, bytes: &[u8], signature: &Signature) -> bool {
        self.wire.verify(node, bytes, signature)
    }
}

/// The places of three neighbours on this host.
fn places(folder: &Path, experiment: &Experiment) -> Vec<Place> {
    let keys: Vec<Key> =
        (0..NODES).map(|node| Key::create(&folder.join(node.to_string())).unwrap()).collect();
    let free = |_| SocketAddr::from(([127, 0, 0, 1], free_port()));
    let addresses: Vec<SocketAddr> = (0..NODES).map(free).collect();
    let neighbour = |node: usize| Neighbour {
        node,
        name: format!("node {node}"),
        key: keys[node].public(),
        addresses: vec![addresses[node].to_string()],
    };
    let place = |node: usize| Place {
        key: keys[node].clone(),
        node,
        members: keys.iter().map(Key::public).collect(),
        listen: addresses[node],
        callable: true,
        relays: Vec::new(),
        neighbours: (0..NODES).filter(|&other| other != node).map(neighbour).collect(),
        terms: Terms {
            experiment: [1; 32],
            graph: [2; 32],
            roster: [3; 32],
            version: 1,
            entries: 7,
        },
        keys: Keys::default(),
        most: experiment.sizes(None, 0).unwrap().1,
    };
    (0..NODES).map(place).collect()
}

type Fate = (Result<Vec<Outcome>>, Vec<Note>);

fn node(experiment: &Experiment, place: Place, attack: &Attack) -> Fate {
    let (me, key) = (place.node, place.key.clone());
    let stop = Arc::new(AtomicBool::new(false));
    let mut wire = Iroh::start(place, Log::new(|_, _| {}), stop).unwrap();
    wire.meet(PATIENCE, None).unwrap();
    let wire = Tampering { wire, key, attack: (me == MEMBER).then_some(attack) };
    let notes = Arc::new(Mutex::new(Vec::new()));
    let sink = notes.clone();
    let notify = Box::new(move |note| sink.lock().unwrap().push(note));
    let deadline = if attack.instead { DEADLINE } else { PATIENCE };
    let settings = Settings { deadline, ..Settings::default() };
    let identity = experiment.identity().unwrap();
    let mut peers = Peers::new(wire, (me, NODES), &identity, settings, notify);
    let never = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &never, probe: None };
    let done = experiment.run_peer(&mut peers, None, &context, &mut (), &mut ());
    drop(peers);
    let notes = notes.lock().unwrap().clone();
    (done, notes)
}

#[test]
fn a_malicious_member_is_refused_and_named_on_real_connections() {
    let experiment = Experiment::parse(EXPERIMENT).unwrap();
    let want = experiment.run().unwrap().remove(0).digest;
    for attack in attacks() {
        let (name, attack, experiment) = (attack.name, &attack, &experiment);
        let folder = tempfile::tempdir().unwrap();
        let places = places(folder.path(), experiment);
        let fates: Vec<Fate> = std::thread::scope(|scope| {
            let start = |place| scope.spawn(move || node(experiment, place, attack));
            let threads: Vec<_> = places.into_iter().map(start).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (node, (done, notes)) in fates.iter().enumerate().filter(|(node, _)| *node != MEMBER) {
            let refused: BTreeSet<(usize, Refusal)> = notes
                .iter()
                .filter_map(|note| match note {
                    Note::Refused { peer, why } => Some((*peer, *why)),
                    _ => None,
                })
                .collect();
            assert!(refused.contains(&(MEMBER, attack.why)), "{name}, node {node}: {refused:?}");
            assert!(refused.iter().all(|(peer, _)| *peer == MEMBER), "{name}: {refused:?}");
            match done {
                Ok(done) => assert!(!attack.instead && done[0].digest == want, "{name}"),
                Err(error) => {
                    assert!(attack.instead, "{name}, node {node}: {error}");
                    assert_eq!(error.kind, Kind::Peer, "{name}, node {node}: {error}");
                    let named = error.message.contains("node 2");
                    assert!(named, "{name}, node {node}: {error}");
                }
            }
        }
    }
}
