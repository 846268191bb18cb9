//! A malicious neighbour: its frames are refused, reported once per reason, and change nothing.
//!
//! On a path of three nodes, every frame from node 0 to node 1 is accompanied by hostile ones, which
//! arrive over the same authenticated link, before or after it.

use std::collections::BTreeSet;
use std::time::Duration;

use lopa::engine::{
    Begin, Event, Frame, FrameKind, Independent, Limits, Note, Peers, Place, Refusal, Settings,
    Signature, Transport, Wire,
};
use lopa::error::Kind;
use lopa::experiment::Experiment;
use lopa::math::random::{Purpose, Stream};

use super::cluster::{Fate, Setup, TestPolicy};
use super::faulty::{Faults, seconds, sign};
use super::{PERSONAL, read, single_process};

type Frames = Vec<Vec<u8>>;

/// Hostile frames made from an honest one, and why they are refused; no reason where they are
/// dropped like any late copy.
struct Attack {
    name: &'static str,
    refusals: &'static [Refusal],
    frames: fn(&[u8]) -> Frames,
    /// Whether they also arrive before the honest frame.
    first: bool,
}

fn run(bytes: &[u8]) -> [u8; 16] {
    std::array::from_fn(|at| bytes[8 + at])
}

/// A frame of the run that another belongs to, signed by node 0 where nodes pass it on.
fn signed(frame: Frame, of: &[u8]) -> Vec<u8> {
    frame.to_bytes(&run(of), |bytes| sign(0, bytes))
}

/// The frame with some bytes replaced and a correct checksum.
fn put(bytes: &[u8], at: usize, with: &[u8]) -> Frames {
    let mut changed = bytes.to_vec();
    changed[at..at + with.len()].copy_from_slice(with);
    vec![summed(changed)]
}

/// Corrects the checksum.
pub fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 4;
    let sum = crc(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// CRC-32 as in the specification, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    let byte = |sum: u32, &byte: &u8| (0..8).fold(sum ^ u32::from(byte), |sum, _| step(sum));
    !bytes.iter().fold(!0, byte)
}

fn is(bytes: &[u8], kind: FrameKind) -> bool {
    Frame::known(bytes).is_some_and(|frame| frame.kind == kind)
}

/// A frame of another kind and payload for the same place.
fn with_payload(bytes: &[u8], kind: FrameKind, scalar: u8, payload: &[u8]) -> Frames {
    let frame = Frame::known(bytes).expect("an honest frame");
    vec![signed(Frame { kind, scalar, payload, ..frame }, bytes)]
}

/// The frame with the first number of its message replaced.
fn number(bytes: &[u8], number: f64) -> Frames {
    match is(bytes, FrameKind::Data) {
        true => put(bytes, 56, &number.to_le_bytes()),
        false => Vec::new(),
    }
}

fn payload(bytes: &[u8], change: fn(Vec<u8>) -> Vec<u8>) -> Frames {
    let frame = Frame::known(bytes).expect("an honest frame");
    match frame.kind {
        FrameKind::Data => with_payload(bytes, frame.kind, 8, &change(frame.payload.to_vec())),
        _ => Vec::new(),
    }
}

/// The frame at another step.
fn moved(bytes: &[u8], step: fn(u64) -> u64) -> Frames {
    let frame = Frame::known(bytes).expect("an honest frame");
    let place = Place { step: step(frame.place.step), ..frame.place };
    match frame.kind {
        FrameKind::Data | FrameKind::Broadcast => {
            vec![signed(Frame { place, ..frame }, bytes)]
        }
        _ => Vec::new(),
    }
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn garbage(length: usize, front: &[u8]) -> Frames {
    let mut stream = Stream::new(length as u64, Purpose::Data, 0);
    let mut bytes: Vec<u8> = (0..length).map(|_| stream.word() as u8).collect();
    bytes[..front.len()].copy_from_slice(front);
    vec![bytes]
}

macro_rules! attack {
    ($name:literal, $refusals:expr, $frames:expr) => {
        Attack { name: $name, refusals: &$refusals, frames: $frames, first: true }
    };
}

macro_rules! contradiction {
    ($name:literal, $frames:expr) => {
        Attack { name: $name, refusals: &[Refusal::Equivocation], frames: $frames, first: false }
    };
}

fn attacks() -> Vec<Attack> {
    use FrameKind::{Broadcast, Data, Ended, Notice, Progress, Status};
    use Refusal::*;
    vec![
        attack!("nothing", [Garbage], |_| vec![Vec::new()]),
        attack!("one byte", [Garbage], |_| vec![vec![b'l']]),
        attack!("cut at every byte", [Garbage, Length], |b| (0..b.len())
            .map(|end| b[..end].to_vec())
            .collect()),
        attack!("a byte more", [Length], |b| vec![[b, &[0]].concat()]),
        attack!("two frames in one", [Length], |b| vec![[b, b].concat()]),
        attack!("garbage", [Garbage], |_| garbage(100, b"")),
        attack!("garbage that begins well", [Version], |_| garbage(100, b"lopa")),
        attack!("much garbage", [Garbage], |_| garbage(1 << 16, b"")),
        attack!("plain text", [Garbage], |_| vec![b"GET / HTTP/1.1\r\n\r\n".repeat(9)]),
        attack!("another magic", [Garbage], |b| put(b, 0, b"LOPA")),
        attack!("version 0", [Version], |b| put(b, 4, &[0, 0])),
        attack!("version 1", [Version], |b| put(b, 4, &[1, 0])),
        attack!("version 3", [Version], |b| put(b, 4, &[3, 0])),
        attack!("version 65535", [Version], |b| put(b, 4, &[255, 255])),
        attack!("length 0", [Length], |b| put(b, 48, &0u64.to_le_bytes())),
        attack!("length 2^31", [Length], |b| put(b, 48, &(1u64 << 31).to_le_bytes())),
        attack!("length 2^63", [Length], |b| put(b, 48, &(1u64 << 63).to_le_bytes())),
        attack!("length 2^64 - 1", [Length], |b| put(b, 48, &u64::MAX.to_le_bytes())),
        attack!("every bit of the head flipped", [Checksum, Garbage, Version, Length], |b| {
            let flip = |bit: usize| {
                let mut bytes = b.to_vec();
                bytes[bit / 8] ^= 1 << (bit % 8);
                bytes
            };
            (0..56 * 8).map(flip).collect()
        }),
        attack!("every byte of the rest flipped", [Checksum], |b| {
            let flip = |at: usize| {
                let mut bytes = b.to_vec();
                bytes[at] ^= 0xff;
                bytes
            };
            (56..b.len()).map(flip).collect()
        }),
        attack!("another run", [OtherRun], |b| put(b, 8, &[7; 16])),
        attack!("kind 0", [Kind], |b| put(b, 6, &[0])),
        attack!("kind 255", [Kind], |b| put(b, 6, &[255])),
        attack!("an earlier run of the experiment", [], |b| match is(b, Status) {
            true => Vec::new(),
            false => put(b, 24, &0u32.to_le_bytes()),
        }),
        attack!("a copy", [], |b| vec![b.to_vec(); 3]),
        attack!("a step of the past", [], |b| moved(b, |_| 0)),
        attack!("a step of the future", [Future], |b| moved(b, |step| step + 1000)),
        attack!("the largest step", [Future], |b| moved(b, |_| u64::MAX)),
        attack!("another iteration", [Shape], |b| match is(b, Data) {
            true => put(b, 32, &77u64.to_le_bytes()),
            false => Vec::new(),
        }),
        attack!("another exchange", [Shape], |b| match is(b, Data) {
            true => put(b, 28, &7u32.to_le_bytes()),
            false => Vec::new(),
        }),
        attack!("no numbers", [Shape], |b| payload(b, |_| Vec::new())),
        attack!("one number less", [Shape], |b| payload(b, |p| p[8..].to_vec())),
        attack!("one number more", [Shape], |b| payload(b, |p| [p, vec![0; 8]].concat())),
        attack!("half a number", [Shape], |b| payload(b, |p| p[4..].to_vec())),
        attack!("ten thousand numbers", [Shape], |b| payload(b, |_| vec![0; 80_000])),
        attack!("numbers of another size", [Shape], |b| match is(b, Data) {
            true => put(b, 7, &[4]),
            false => Vec::new(),
        }),
        attack!("numbers of no bytes", [Shape], |b| match is(b, Data) {
            true => put(b, 7, &[0]),
            false => Vec::new(),
        }),
        attack!("not a number", [NotFinite], |b| number(b, f64::NAN)),
        attack!("infinity", [NotFinite], |b| number(b, f64::INFINITY)),
        attack!("minus infinity", [NotFinite], |b| number(b, f64::NEG_INFINITY)),
        contradiction!("other content", |b| number(b, 1e308)),
        contradiction!("a subnormal number", |b| number(b, 5e-324)),
        contradiction!("another broadcast", |b| {
            let frame = Frame::known(b).expect("an honest frame");
            let own = frame.kind == Broadcast && frame.payload.starts_with(&[0; 8]);
            let payload = [&frame.payload[..frame.payload.len() - 1], &[1]].concat();
            if own { with_payload(b, Broadcast, 1, &payload) } else { Vec::new() }
        }),
        attack!("a broadcast that was changed", [Signature], |b| match is(b, Broadcast) {
            true => put(b, 72, &[1, 2, 3]),
            false => Vec::new(),
        }),
        attack!("a broadcast of an unknown node", [Shape], |b| with_payload(
            b,
            Broadcast,
            1,
            &words(&[3, 0])
        )),
        attack!("a broadcast without a sender", [Shape], |b| with_payload(b, Broadcast, 1, b"abc")),
        attack!("a broadcast that is too long", [Shape], |b| with_payload(
            b,
            Broadcast,
            1,
            &[0; 70_000]
        )),
        attack!("no status", [Shape], |b| with_payload(b, Status, 1, b"")),
        attack!("a status that is too long", [Shape], |b| with_payload(
            b,
            Status,
            1,
            &words(&[0; 4])
        )),
        attack!("unknown flags", [Shape], |b| with_payload(b, Status, 1, &words(&[0, 0, 99]))),
        attack!("decisions without skip-link", [Shape], |b| {
            let step = Frame::known(b).map_or(0, |frame| frame.place.step);
            with_payload(b, Notice, 1, &words(&[0, 1, u64::MAX, step, step + 1, 0]))
        }),
        attack!("no progress", [Shape], |b| with_payload(b, Progress, 1, &[0; 151])),
        attack!("progress of a node that is none", [Shape], |b| with_payload(
            b,
            Progress,
            1,
            &words(&[3; 19])
        )),
        attack!("an end without skip-link", [Shape], |b| with_payload(b, Ended, 1, &[0xff])),
        attack!("a stranger", [], |_| Vec::new()), // see below
    ]
}

fn experiment() -> Experiment {
    let sets = ["network.nodes=3", "network.graph=path", "problem.n=3", "problem.p=2"];
    let more = ["run.iterations=12", "run.evaluations=2", "checkpoint.iterations=5"];
    let sets: Vec<_> = sets.iter().chain(&more).map(|set| set.to_string()).collect();
    let mut experiment = read(PERSONAL, &sets);
    experiment.algorithms.truncate(2);
    experiment
}

/// The refusals that node 1 reports, and how all nodes ended.
fn attacked(experiment: &Experiment, attack: Attack) -> (Vec<(usize, Refusal)>, Vec<Fate>) {
    let Attack { name, frames, first, .. } = attack;
    let setup = Setup::new(experiment, 1, Faults::default(), TestPolicy::Wait);
    let tamper = Box::new(move |from: usize, to: usize, bytes: &[u8]| {
        let honest = vec![(from, bytes.to_vec())];
        if (from, to) != (0, 1) {
            return honest;
        }
        let stranger = name == "a stranger";
        let frames = if stranger { vec![bytes.to_vec()] } else { frames(bytes) };
        let who = if stranger { 9 } else { from };
        let hostile: Vec<_> = frames.into_iter().map(|frame| (who, frame)).collect();
        match first {
            true => [hostile.clone(), honest, hostile].concat(),
            false => [honest, hostile].concat(),
        }
    });
    let fates = Setup { tamper: Some(tamper), ..setup }.run();
    let refused = |note: &Note| match note {
        Note::Refused { peer, why } => Some((*peer, *why)),
        Note::Skipped { .. } | Note::Overflow { .. } | Note::Left { .. } | Note::Back { .. } => {
            None
        }
    };
    (fates[1].notes.iter().filter_map(refused).collect(), fates)
}

#[test]
fn hostile_frames_change_nothing() {
    let experiment = experiment();
    let want: Vec<_> = single_process(&experiment).into_iter().map(|run| run.digest).collect();
    let attacks = attacks();
    assert!(attacks.len() >= 40);
    for attack in attacks {
        let (name, refusals) = (attack.name, attack.refusals);
        let (refused, fates) = attacked(&experiment, attack);
        for fate in fates {
            let done = fate.done.unwrap_or_else(|error| panic!("{name}: {error}"));
            let digests: Vec<_> = done.into_iter().map(|run| run.digest).collect();
            assert_eq!(digests, want, "{name}");
        }
        let reasons: BTreeSet<_> = refused.iter().map(|(_, why)| *why).collect();
        assert_eq!(reasons.len(), refused.len(), "{name}: each reported once: {refused:?}");
        match name {
            "a stranger" => assert_eq!(refused, [(9, Refusal::Stranger)]),
            _ => assert!(refused.iter().all(|(peer, _)| *peer == 0), "{name}: {refused:?}"),
        }
        for why in refusals {
            assert!(reasons.contains(why), "{name}: {why:?} not among {refused:?}");
        }
    }
}

// ---- a single peer, and the incoming frames that it keeps ----

/// Delivers a list of events, then nothing.
struct Script {
    events: std::vec::IntoIter<Event>,
    now: Duration,
}

impl Wire for Script {
    fn send(&mut self, _: usize, _: &[u8]) {}

    fn next(&mut self, until: Duration) -> Option<Event> {
        let event = self.events.next();
        if event.is_none() {
            self.now = until;
        }
        event
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn sign(&self, bytes: &[u8]) -> Signature {
        sign(1, bytes)
    }

    fn secret(&self, _: usize) -> Option<[u8; 32]> {
        None
    }

    fn verify(&self, node: usize, bytes: &[u8], signature: &Signature) -> bool {
        sign(node, bytes) == *signature
    }
}

/// Node 1 of three receives these events, then waits in vain: its error, its notes and the bytes it
/// kept.
fn alone(events: Vec<Event>) -> (&'static str, Vec<Note>, usize) {
    let notes = super::cluster::Shared::<Vec<Note>>::default();
    let sink = notes.clone();
    let notify = Box::new(move |note| sink.lock().unwrap().push(note));
    let script = Script { events: events.into_iter(), now: Duration::ZERO };
    let settings = Settings { deadline: seconds(10.0), ..Settings::default() };
    let mut peers = Peers::new(script, (1, 3), &[5; 32], settings, notify);
    let mixing = experiment().world(None, 1).unwrap().mixing;
    let limits = Limits { message: 800, broadcast: 1000 };
    peers
        .begin(Begin { job: 1, mixing: &mixing, kept: None, held: None, lacks: false, limits })
        .unwrap();
    let error = peers.all(b"hello", &|_, _| Ok(())).unwrap_err();
    assert_eq!(error.kind, Kind::Peer);
    let notes = notes.lock().unwrap().clone();
    (error.id, notes, peers.bytes())
}

fn from(peer: usize, kind: FrameKind, step: u64, payload: &[u8]) -> Event {
    let place = Place { job: 1, step, k: 0, e: 0 };
    let scalar = if kind == FrameKind::Data { 8 } else { 1 };
    let frame = Frame { kind, scalar, place, payload };
    let author = usize::from(payload[0]);
    Event::Frame(peer, frame.to_bytes(&[5; 16], |bytes| sign(author, bytes)))
}

#[test]
fn early_frames_are_bounded() {
    let mut events = Vec::new();
    // No frame is of step 0, where the peer is.
    for step in 1..10_000 {
        events.push(from(0, FrameKind::Data, step, &[1; 800]));
        for origin in 0..3 {
            let content = [&words(&[origin])[..], &[step as u8; 900]].concat();
            events.push(from(2, FrameKind::Broadcast, step, &content));
        }
    }
    let (id, notes, bytes) = alone(events);
    assert_eq!(id, "peers/lost");
    assert_eq!(notes.len(), 2, "one per reason: {notes:?}");
    assert!(bytes < 64 * 900 + 5 * 3 * 1000, "{bytes} bytes");
}

/// A neighbour's word alone ends nothing: the error comes when the peer has waited in vain.
#[test]
fn lost_checkpoints_are_an_error() {
    let status = |durable: u64, yours: u64| words(&[durable, yours, 0]);
    let past = |peer| Note::Refused { peer, why: Refusal::Past };
    let (id, notes, _) = alone(vec![from(0, FrameKind::Status, 50, &status(40, 40))]);
    assert_eq!(id, "peers/gone", "node 0 knows that this node was durable");
    assert_eq!(notes, [past(0)]);
    let place = Place { job: 2, ..Place::default() };
    let later = Frame { kind: FrameKind::Status, scalar: 1, place, payload: &status(0, 0) };
    let later = later.to_bytes(&[5; 16], |bytes| sign(2, bytes));
    let (id, notes, _) = alone(vec![Event::Frame(2, later)]);
    assert_eq!(id, "peers/gone", "node 2 is in a later run");
    assert_eq!(notes, [past(2)]);
}
