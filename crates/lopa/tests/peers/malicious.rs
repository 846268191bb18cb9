//! A malicious member: the honest engine behind a wire that tampers with all that it sends, with its own key
//! and no other. It may cost the others a refused frame, a link that is named, and in the end an error that
//! names it; never a crash, a wait beyond the deadline, a wrong number, or a checkpoint that does not
//! resume.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lopa::engine::{Frame, FrameKind, Note, Place, Refusal};
use lopa::error::Kind;
use lopa::experiment::Experiment;
use lopa::run::trace::Stop;

use super::cluster::{Fate, Setup, TestPolicy};
use super::faulty::{Faults, Tamper, sign};
use super::{PERSONAL, read, single_process};

/// On a ring of four nodes, 1 and 3 are its neighbours and 0 is not.
const MEMBER: usize = 2;
const NODES: usize = 4;
const DEADLINE: f64 = 20.0;
const SKIP: TestPolicy = TestPolicy::Skip(0.3);

type Frames = Vec<Vec<u8>>;

/// A frame that the member would send.
struct Seen<'a> {
    to: usize,
    frame: Frame<'a>,
    bytes: &'a [u8],
    /// What it has sent so far.
    before: &'a [Vec<u8>],
}

impl Seen<'_> {
    fn is(&self, kind: FrameKind) -> bool {
        self.frame.kind == kind
    }

    /// A frame of this run, signed by the member.
    fn made(&self, frame: Frame) -> Vec<u8> {
        let run = std::array::from_fn(|at| self.bytes[8 + at]);
        frame.to_bytes(&run, |bytes| sign(MEMBER, bytes))
    }

    fn with(&self, kind: FrameKind, payload: &[u8]) -> Vec<u8> {
        self.made(Frame { kind, scalar: 1, payload, ..self.frame })
    }

    /// The same message with other content.
    fn message(&self, change: impl Fn(Vec<u8>) -> Vec<u8>) -> Option<Frames> {
        self.is(FrameKind::Data).then(|| {
            let payload = change(self.frame.payload.to_vec());
            vec![self.made(Frame { payload: &payload, ..self.frame })]
        })
    }

    /// What the member broadcasts of itself, if these are numbers.
    fn numbers(&self) -> Option<Vec<f64>> {
        let (author, told) = self.frame.payload.split_first_chunk::<8>()?;
        let (_, numbers) = told.split_first_chunk::<8>()?;
        let own = self.is(FrameKind::Broadcast) && *author == (MEMBER as u64).to_le_bytes();
        let whole = told.starts_with(&((numbers.len() / 8) as u64).to_le_bytes());
        let number = |bytes: &[u8; 8]| f64::from_le_bytes(*bytes);
        (own && whole).then(|| numbers.as_chunks().0.iter().map(number).collect())
    }

    /// A broadcast of the member in place of one of numbers.
    fn told(&self, change: impl Fn(Vec<f64>) -> Vec<u8>) -> Option<Frames> {
        let content = [words(&[MEMBER as u64]), change(self.numbers()?)].concat();
        Some(vec![self.with(FrameKind::Broadcast, &content)])
    }

    /// A status in the name of the member.
    fn status(&self, [durable, yours, flags]: [u64; 3]) -> Vec<u8> {
        self.with(FrameKind::Status, &words(&[durable, yours, flags]))
    }

    /// How far a node is, signed by the member.
    fn progress(&self, node: usize, number: u64, rest: [u64; 4]) -> Vec<u8> {
        let [k, lacks, silent, since] = rest;
        let content = words(&[node as u64, 1, number, 0, k, lacks, silent, since, 0, 0]);
        let signed = [&b"lopa progress"[..], &self.bytes[8..24], &content].concat();
        let entry = [words(&[0]), content, sign(MEMBER, &signed).to_vec()].concat();
        self.with(FrameKind::Progress, &entry)
    }

    fn at(&self, place: Place, payload: &[u8]) -> Vec<u8> {
        self.made(Frame { place, payload, ..self.frame })
    }
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Vectors of numbers, as they are told.
fn vectors(of: &[&[f64]]) -> Vec<u8> {
    let one = |numbers: &&[f64]| {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        words(&[numbers.len() as u64]).into_iter().chain(bytes).collect::<Vec<u8>>()
    };
    of.iter().flat_map(one).collect()
}

/// Where hostile frames go.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    /// In place of the honest frame.
    Instead,
    /// Before and after it.
    Around,
    /// After it.
    After,
}

/// In which clusters an attack is tried.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Among {
    /// Those that wait and those that skip links.
    All,
    Skipping,
    /// Those whose messages are compressed so.
    Compressed(&'static str),
}

struct Attack {
    name: &'static str,
    how: How,
    among: Among,
    /// Why frames are refused; `None` if they are dropped like late ones.
    why: Option<Refusal>,
    /// Whether the member lies of its own numbers, which nobody can know.
    lies: bool,
    frames: fn(&Seen) -> Option<Frames>,
}

fn attack(
    name: &'static str,
    how: How,
    why: impl Into<Option<Refusal>>,
    frames: fn(&Seen) -> Option<Frames>,
) -> Attack {
    Attack { name, how, among: Among::All, why: why.into(), lies: false, frames }
}

impl Attack {
    fn skipping(self) -> Attack {
        Attack { among: Among::Skipping, ..self }
    }

    fn compressed(self, with: &'static str) -> Attack {
        Attack { among: Among::Compressed(with), ..self }
    }

    fn lying(self) -> Attack {
        Attack { lies: true, ..self }
    }
}

/// The number of counts that a node tells.
const COUNTS: usize = 9;

/// The length of x and a word that it is sound.
const SOUND: usize = 4;

fn broadcasts() -> Vec<Attack> {
    use FrameKind::{Broadcast, Data};
    use How::*;
    use Refusal::*;
    vec![
        attack("a broadcast without numbers", Instead, Shape, |s| s.told(|_| vectors(&[&[]]))),
        attack("a broadcast of nothing", Instead, Shape, |s| s.told(|_| Vec::new())),
        attack("a broadcast of one number", Instead, Shape, |s| s.told(|_| vectors(&[&[1.0]]))),
        attack("one number less", Instead, Shape, |s| s.told(|v| vectors(&[&v[1..]]))),
        attack("one number more", Instead, Shape, |s| {
            s.told(|v| vectors(&[&[&v[..], &[1.0]].concat()]))
        }),
        attack("three vectors for one", Instead, Shape, |s| s.told(|v| vectors(&[&v, &v, &v]))),
        attack("a count of all ones", Instead, Shape, |s| {
            s.told(|v| [words(&[u64::MAX]), vectors(&[&v])[8..].to_vec()].concat())
        }),
        attack("noise", Instead, Shape, |s| s.told(|_| vec![0xa5; 37])),
        attack("counts that are not finite", Instead, NotFinite, |s| {
            let counts = s.numbers()?.len() == COUNTS;
            s.told(|_| vectors(&[&[f64::NAN; COUNTS]])).filter(|_| counts)
        }),
        attack("counts below zero", Instead, Shape, |s| {
            let counts = s.numbers()?.len() == COUNTS;
            s.told(|_| vectors(&[&[-1.0; COUNTS]])).filter(|_| counts)
        }),
        attack("a sound x that is infinite", Instead, NotFinite, |s| {
            let sound = s.numbers()?.len() == SOUND && s.numbers()?[SOUND - 1] == 1.0;
            let x = [f64::INFINITY, 0.0, 0.0, 1.0];
            s.told(|_| vectors(&[&x])).filter(|_| sound)
        }),
        attack("one thing to one, another to others", Instead, Equivocation, |s| {
            if s.numbers()?.len() != SOUND || s.to != 3 {
                return None;
            }
            s.told(|v| vectors(&[&[v[0] + 1e-3, v[1], v[2], v[3]]]))
        })
        .lying(),
        attack("a broadcast in another's name", Around, Signature, |s| {
            s.numbers().map(|v| vec![s.with(Broadcast, &[words(&[0]), vectors(&[&v])].concat())])
        }),
        attack("a broadcast in the receiver's name", Around, Signature, |s| {
            let content = |v: Vec<f64>| [words(&[s.to as u64]), vectors(&[&v])].concat();
            s.numbers().map(|v| vec![s.with(Broadcast, &content(v))])
        }),
        attack("another's broadcast at another step", Around, Signature, |s| {
            let others = s.is(Broadcast) && s.numbers().is_none();
            let place = Place { step: s.frame.place.step + 1, ..s.frame.place };
            let signature = s.bytes[..s.bytes.len() - 4].last_chunk()?;
            let run = std::array::from_fn(|at| s.bytes[8 + at]);
            others.then(|| vec![Frame { place, ..s.frame }.to_bytes(&run, |_| *signature)])
        }),
        attack("a broadcast that is not signed", Around, Signature, |s| {
            let run = std::array::from_fn(|at| s.bytes[8 + at]);
            s.numbers().map(|_| vec![s.frame.to_bytes(&run, |_| [0; 64])])
        }),
        attack("broadcasts in every step", After, Step, |s| {
            let junk = [words(&[MEMBER as u64]), vec![7; 2000]].concat();
            let step = s.frame.place.step;
            let one = |step| {
                let place = Place { step, ..s.frame.place };
                s.made(Frame { kind: Broadcast, scalar: 1, place, payload: &junk })
            };
            s.is(Data).then(|| (step.saturating_sub(3)..step + 9).map(one).collect())
        }),
        attack("a broadcast that is too long", Around, Shape, |s| {
            s.numbers().map(|_| {
                vec![s.with(Broadcast, &[words(&[MEMBER as u64]), vec![0; 1 << 18]].concat())]
            })
        }),
        attack("no broadcasts, not even of others", Instead, None, |s| {
            s.is(Broadcast).then(Vec::new)
        }),
        attack("others' broadcasts are not passed on", Instead, None, |s| {
            let author = s.frame.payload.first().copied();
            (s.is(Broadcast) && author != Some(MEMBER as u8)).then(Vec::new)
        }),
        attack("sizes that are not finite", Instead, None, |s| {
            let sizes = s.numbers()?.len();
            let sizes = Some(sizes).filter(|&n| n != COUNTS && n != SOUND && s.frame.place.k > 5);
            sizes.and_then(|n| s.told(move |_| vectors(&[&vec![f64::NAN; n]])))
        })
        .lying(),
    ]
}

fn messages() -> Vec<Attack> {
    use FrameKind::{Broadcast, Data, Overflow};
    use How::*;
    use Refusal::*;
    const TOP: &str = "{name='top-k',share=0.5}";
    vec![
        attack("a message without numbers", Instead, Shape, |s| s.message(|_| Vec::new())),
        attack("a number less", Instead, Shape, |s| s.message(|p| p[8..].to_vec())),
        attack("a number more", Instead, Shape, |s| s.message(|p| [p, vec![0; 8]].concat())),
        attack("messages that are not finite", Instead, NotFinite, |s| {
            s.message(|p| [&f64::NAN.to_le_bytes()[..], &p[8..]].concat())
        }),
        attack("honest numbers marked as not finite", Instead, Finite, |s| {
            s.is(Data).then(|| vec![s.made(Frame { kind: Overflow, ..s.frame })])
        }),
        attack("honest numbers marked as not finite, compressed", Instead, Finite, |s| {
            s.is(Data).then(|| vec![s.made(Frame { kind: Overflow, ..s.frame })])
        })
        .compressed(TOP),
        attack("numbers that are not finite, and say so", Instead, None, |s| {
            let nan = [&f64::NAN.to_le_bytes()[..], &s.frame.payload[8..]].concat();
            s.is(Data).then(|| vec![s.made(Frame { kind: Overflow, payload: &nan, ..s.frame })])
        })
        .lying(),
        attack("numbers of another size", Instead, Shape, |s| {
            s.is(Data).then(|| vec![s.made(Frame { scalar: 4, ..s.frame })])
        }),
        attack("messages of another iteration", Instead, Shape, |s| {
            let place = Place { k: s.frame.place.k + 1, ..s.frame.place };
            s.is(Data).then(|| vec![s.at(place, s.frame.payload)])
        }),
        attack("a second message", After, Equivocation, |s| {
            s.message(|p| [&1e9f64.to_le_bytes()[..], &p[8..]].concat())
        }),
        attack("messages of steps to come", Around, Shape, |s| {
            let to_come = |ahead: u64| {
                let place = Place { step: s.frame.place.step + ahead, ..s.frame.place };
                s.at(place, &s.frame.payload[8..])
            };
            s.is(Data).then(|| (1..60).map(to_come).collect())
        }),
        attack("messages of a far future", Around, Future, |s| {
            let far = |step| s.at(Place { step, ..s.frame.place }, s.frame.payload);
            s.is(Data).then(|| vec![far(1 << 40), far(u64::MAX)])
        }),
        attack("messages where all broadcast", Around, Step, |s| {
            let data = Frame { kind: Data, scalar: 8, payload: &[0; 48], ..s.frame };
            s.is(Broadcast).then(|| vec![s.made(data)])
        }),
        attack("everything once more", After, None, |s| {
            Some(s.before.iter().rev().take(40).cloned().collect())
        }),
        attack("indices that are none", Instead, Shape, |s| s.message(|p| vec![0xff; p.len()]))
            .compressed(TOP),
        attack("indices in disorder", Instead, Shape, |s| s.message(|p| vec![0; p.len()]))
            .compressed(TOP),
        attack("compressed numbers that are not finite", Instead, NotFinite, |s| {
            s.message(|p| {
                let end = p.len() - 8;
                [&p[..end], &f64::NAN.to_le_bytes()].concat()
            })
        })
        .compressed(TOP),
        attack("a mean size that is not finite", Instead, NotFinite, |s| {
            s.message(|p| [&f64::INFINITY.to_le_bytes()[..], &p[8..]].concat())
        })
        .compressed("'sign'"),
        attack("levels that are none", Instead, Shape, |s| {
            s.message(|p| [p[..8].to_vec(), vec![0xff; p.len() - 8]].concat())
        })
        .compressed("'quantise'"),
        attack("an exponent that is none", Instead, Shape, |s| {
            s.message(|p| [&0x7fff_u16.to_le_bytes()[..], &p[2..]].concat())
        })
        .compressed("'f16'"),
        attack("replicas that overflow", Instead, None, |s| {
            s.message(|p| [&1.7e308f64.to_le_bytes()[..], &p[8..]].concat())
        })
        .compressed("'sign'")
        .lying(),
    ]
}

fn claims() -> Vec<Attack> {
    use FrameKind::{Ended, Forwarded, Notice, Status};
    use How::*;
    use Refusal::*;
    const NOT_ALL: fn(&Seen) -> bool = |s| s.is(FrameKind::Data) || s.is(FrameKind::Status);
    vec![
        attack("that others had saved 2^40 steps", Around, Past, |s| {
            Some(vec![s.status([0, 1 << 40, 0]), s.status([0, 1 << 40, 1])])
        }),
        attack("that others had ended", Around, Past, |s| Some(vec![s.status([0, u64::MAX, 7])])),
        attack("a later run", Around, Past, |s| {
            let later = |job| s.at(Place { job, ..s.frame.place }, s.frame.payload);
            Some(vec![later(s.frame.place.job + 1), later(u32::MAX)])
        }),
        attack("an earlier run", Around, None, |s| {
            Some(vec![s.at(Place { job: 0, ..s.frame.place }, s.frame.payload); 5])
        }),
        attack("to be at the last step", Around, None, |s| {
            let place = Place { step: u64::MAX, ..s.frame.place };
            let payload = words(&[0, 0, 1]);
            Some(vec![s.made(Frame { kind: Status, scalar: 1, place, payload: &payload })])
        }),
        attack("to have ended", Around, None, |s| {
            NOT_ALL(s).then(|| vec![s.status([u64::MAX, 0, 6])])
        }),
        attack("that the run waits for others", Around, None, |s| {
            let number = s.before.len() as u64;
            Some(vec![s.progress(MEMBER, number, [u64::MAX, 1, 1, u64::MAX]); 3])
        }),
        attack("how far others are", Around, Signature, |s| {
            Some(vec![s.progress((MEMBER + 1) % 4, u64::MAX, [7, 0, 0, 0])])
        }),
        attack("that nodes which are none are silent", Around, Shape, |s| {
            Some(vec![s.progress(MEMBER, 1, [0, 0, 99, 1]), s.progress(MEMBER, 1, [0, 99, 0, 0])])
        }),
        attack("flags that are none", Around, Shape, |s| Some(vec![s.status([0, 0, 1 << 40])])),
        attack("a status that is too short", Around, Shape, |s| Some(vec![s.with(Status, &[1])])),
        attack("no status", Instead, None, |s| s.is(Status).then(Vec::new)),
        attack("nothing after a while", Instead, None, |s| (s.before.len() > 60).then(Vec::new)),
        attack("noise", Around, Garbage, |_| Some(vec![vec![0x5a; 300]])),
        attack("a kind that is none", Around, Kind, |s| {
            let mut bytes = s.bytes.to_vec();
            bytes[6] = 77;
            Some(vec![super::hostile::summed(bytes)])
        }),
        attack("a decision of others", Around, Signature, |s| {
            let skips = words(&[0, 1, u64::MAX, 0, 60_000, 0]);
            let away = words(&[0, 3, u64::MAX, 0, 60_000, 0]);
            Some(vec![s.with(Notice, &skips), s.with(Notice, &away)])
        })
        .skipping(),
        attack("a second decision", After, Equivocation, |s| {
            if !s.is(Notice) || s.to != 3 {
                return None;
            }
            let mut payload = s.frame.payload.to_vec();
            let runs = payload.get_mut(24..)?;
            runs.chunks_exact_mut(24).for_each(|run| run[16] ^= 1);
            Some(vec![s.with(Notice, &payload)])
        })
        .skipping(),
        attack("decisions of a far future", Around, Future, |s| {
            let from = s.frame.place.step + (1 << 17);
            Some(vec![s.with(Notice, &words(&[2, 3, u64::MAX, from, from + 1, 0]))])
        })
        .skipping(),
        attack("that a link stays in use, and silence", Instead, None, |s| {
            let step = s.frame.place.step;
            let used = s.with(Notice, &words(&[2, 3, u64::MAX, step + 1, step + 500, 1]));
            match s.before.len() {
                ..60 => None,
                60 => Some(vec![used]),
                _ => Some(Vec::new()),
            }
        })
        .skipping(),
        attack("a decision on a link that is none", Around, Shape, |s| {
            Some(vec![s.with(Notice, &words(&[0, s.to as u64, 9, 0, 1])), s.with(Notice, b"none")])
        })
        .skipping(),
        attack("a forwarded message of another", Around, Signature, |s| {
            let head = words(&[0, s.to as u64, u64::MAX]);
            s.is(FrameKind::Data).then(|| vec![s.with(Forwarded, &[&head, s.bytes].concat())])
        })
        .skipping(),
        attack("a forwarded message in place of a second one", After, Equivocation, |s| {
            let head = words(&[MEMBER as u64, s.to as u64, s.frame.place.step]);
            let other = s.message(|p| [&1e9f64.to_le_bytes()[..], &p[8..]].concat())?.remove(0);
            Some(vec![s.with(Forwarded, &[head, other].concat())])
        })
        .skipping(),
        attack("forwarded requests, again and again", Around, None, |s| {
            let one = |n: u64| {
                let head = words(&[MEMBER as u64, s.to as u64, s.frame.place.step << 8 | n]);
                s.with(Forwarded, &[head, s.status([0, 0, 1])].concat())
            };
            s.is(FrameKind::Data).then(|| (0..50).map(one).collect())
        })
        .skipping(),
        attack("a forwarded frame that is none", Around, Shape, |s| {
            let head = words(&[MEMBER as u64, s.to as u64, s.frame.place.step]);
            let inner = s.with(Forwarded, &[&head, s.bytes].concat());
            let none = [words(&[2]), words(&[2, 9, 1]), words(&[2, 2, 1]), [head, inner].concat()];
            Some(none.iter().map(|payload| s.with(Forwarded, payload)).collect())
        })
        .skipping(),
        attack("a forwarded frame to one that is no neighbour", Around, Stranger, |s| {
            let head = words(&[MEMBER as u64, 0, s.frame.place.step]);
            s.is(FrameKind::Data).then(|| vec![s.with(Forwarded, &[&head, s.bytes].concat())])
        })
        .skipping(),
        attack("the end of all others", Around, Signature, |s| {
            let ends =
                (0..NODES as u64).filter(|&node| node != MEMBER as u64 && node != s.to as u64);
            Some(ends.map(|node| s.with(Ended, &words(&[node, 1]))).collect())
        })
        .skipping(),
        attack("its own end, at once", Around, None, |s| {
            NOT_ALL(s).then(|| vec![s.with(Ended, &words(&[MEMBER as u64, 1]))])
        })
        .skipping(),
        attack("an end that is none", Around, Shape, |s| {
            let none = [words(&[2]), words(&[2, 7]), words(&[9, 1]), vec![0xff]];
            Some(none.iter().map(|payload| s.with(Ended, payload)).collect())
        })
        .skipping(),
    ]
}

fn experiment(among: Among) -> Experiment {
    let sets = ["network.nodes=4", "network.graph=ring", "problem.n=3", "problem.p=2"];
    let more = ["run.iterations=12", "run.evaluations=2", "checkpoint.iterations=5"];
    let mut sets: Vec<_> = sets.iter().chain(&more).map(|set| set.to_string()).collect();
    if let Among::Compressed(with) = among {
        sets.push(format!("messages.compress={with}"));
    }
    let mut experiment = read(PERSONAL, &sets);
    experiment.algorithms.truncate(2);
    experiment
}

/// Frames as the member sends them.
fn tamper(how: How, frames: fn(&Seen) -> Option<Frames>) -> Tamper {
    let before = Mutex::new(Vec::new());
    Box::new(move |from, to, bytes| {
        if from != MEMBER {
            return vec![(from, bytes.to_vec())];
        }
        let mut before = before.lock().unwrap();
        let frame = Frame::known(bytes).expect("an honest frame");
        let hostile = frames(&Seen { to, frame, bytes, before: &before });
        before.push(bytes.to_vec());
        let honest = vec![bytes.to_vec()];
        let sent = match (hostile, how) {
            (None, _) => honest,
            (Some(hostile), How::Instead) => hostile,
            (Some(hostile), How::After) => [honest, hostile].concat(),
            (Some(hostile), How::Around) => [hostile.clone(), honest, hostile].concat(),
        };
        sent.into_iter().map(|frame| (from, frame)).collect()
    })
}

fn setup(experiment: &Experiment, policy: TestPolicy) -> Setup<'_> {
    Setup { deadline: DEADLINE, ..Setup::new(experiment, 1, Faults::default(), policy) }
}

fn honest(fates: &[Fate]) -> impl Iterator<Item = (usize, &Fate)> {
    fates.iter().enumerate().filter(|(node, _)| *node != MEMBER)
}

fn refused(fate: &Fate) -> impl Iterator<Item = (usize, Refusal)> {
    fate.notes.iter().filter_map(|note| match note {
        Note::Refused { peer, why } => Some((*peer, *why)),
        _ => None,
    })
}

fn digests(fate: &Fate) -> Option<Vec<String>> {
    Some(fate.done.as_ref().ok()?.iter().map(|run| run.digest.clone()).collect())
}

/// Runs an attack; what the honest nodes then have, and whether all of them ended well.
fn attacked(attack: &Attack, policy: TestPolicy) -> bool {
    let Attack { name, how, among, why, lies, frames } = *attack;
    let what = format!("{name}, {policy:?}");
    let experiment = experiment(among);
    let waits = matches!(policy, TestPolicy::Wait);
    let want: Vec<_> = single_process(&experiment).into_iter().map(|run| run.digest).collect();
    let usual = setup(&experiment, policy).run();
    let last = usual.iter().map(|fate| fate.left).max().unwrap().as_secs_f64();
    let largest = |fates: &[Fate]| {
        honest(fates).map(|(_, fate)| fate.disk.lock().unwrap().largest).max().unwrap()
    };
    let fates = Setup { tamper: Some(tamper(how, frames)), ..setup(&experiment, policy) }.run();
    let mut found = BTreeSet::new();
    for (node, fate) in honest(&fates) {
        let left = fate.left.as_secs_f64();
        assert!(left < last + 2.0 * DEADLINE, "{what}: node {node} left after {left} s");
        for (peer, why) in refused(fate) {
            assert_eq!(peer, MEMBER, "{what}: node {node} blames an honest one: {why:?}");
            found.insert(why);
        }
        match &fate.done {
            _ if lies => {}
            Ok(_) if waits => assert_eq!(digests(fate).unwrap(), want, "{what}: node {node}"),
            Ok(_) => assert_eq!(digests(fate), digests(&fates[0]), "{what}: node {node}"),
            Err(error) => {
                assert_eq!(error.kind, Kind::Peer, "{what}: node {node}: {error}");
                let near = node != 0;
                assert!(!near || error.message.contains("node 2"), "{what}: node {node}: {error}");
            }
        }
    }
    if let Some(why) = why {
        assert!(found.contains(&why), "{what}: {why:?} not among {found:?}");
    }
    assert!(
        largest(&fates) < 4 * largest(&usual),
        "{what}: checkpoints of {} bytes",
        largest(&fates)
    );
    let well = honest(&fates).all(|(_, fate)| fate.done.is_ok());
    if !lies {
        resume(&experiment, policy, fates, &what, waits.then_some(want));
    }
    well
}

/// Without the tampering, all nodes resume on their disks and end alike.
fn resume(
    experiment: &Experiment,
    policy: TestPolicy,
    fates: Vec<Fate>,
    what: &str,
    want: Option<Vec<String>>,
) {
    let disks = fates.into_iter().map(|fate| fate.disk).collect();
    let fates = Setup { disks, ..setup(experiment, policy) }.run();
    for (node, fate) in fates.iter().enumerate() {
        if let Err(error) = &fate.done {
            panic!("{what}: node {node} does not resume: {error}");
        }
        let want = want.clone().or_else(|| digests(&fates[0]));
        assert_eq!(digests(fate), want, "{what}: node {node} resumed");
    }
}

/// Tries some attacks; those that add frames to honest ones change nothing.
fn try_all(attacks: Vec<Attack>) {
    for attack in attacks {
        let policies: &[TestPolicy] = match attack.among {
            Among::All => &[TestPolicy::Wait, SKIP],
            Among::Skipping => &[SKIP],
            Among::Compressed(_) => &[TestPolicy::Wait],
        };
        for &policy in policies {
            let well = attacked(&attack, policy);
            // A member that says it has ended is sent nothing any more.
            let leaves = ["to have ended", "its own end, at once"].contains(&attack.name);
            let harmless = attack.how != How::Instead && !leaves;
            assert!(well || !harmless, "{}, {policy:?}: an honest node failed", attack.name);
        }
    }
}

#[test]
fn hostile_broadcasts_end_nobody() {
    try_all(broadcasts());
}

#[test]
fn hostile_messages_end_nobody() {
    try_all(messages());
}

#[test]
fn false_claims_end_nobody() {
    try_all(claims());
    assert!(broadcasts().len() + messages().len() + claims().len() > 50);
}

/// A member may make a run diverge, but not in silence: its neighbours name it before any other node, all
/// nodes end with the same outcome, `diverged`, and go on with the next algorithm.
#[test]
fn a_member_that_overflows_is_named_and_the_run_diverges_everywhere() {
    let all = messages();
    let says = |attack: &&Attack| attack.name == "numbers that are not finite, and say so";
    let attack = all.iter().find(says).unwrap();
    let experiment = experiment(Among::All);
    let tampered = tamper(attack.how, attack.frames);
    let fates = Setup { tamper: Some(tampered), ..setup(&experiment, TestPolicy::Wait) }.run();
    for (node, fate) in honest(&fates) {
        let done = fate.done.as_ref().unwrap_or_else(|error| panic!("node {node}: {error}"));
        assert_eq!(done.len(), experiment.algorithms.len(), "node {node}");
        assert!(done.iter().all(|run| run.stop == Stop::Diverged), "node {node}");
        let overflow = |note: &Note| match note {
            Note::Overflow { peer, k } => Some((*k, *peer)),
            _ => None,
        };
        let first = fate.notes.iter().find_map(overflow);
        assert!(node == 0 || first == Some((0, MEMBER)), "node {node}: {first:?}");
    }
}

/// Frames that the member is sent while it asks for everything, again and again.
fn answers(asks: usize) -> usize {
    let experiment = experiment(Among::All);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let tamper: Tamper = Box::new(move |from, to, bytes| {
        counted.fetch_add(usize::from(to == MEMBER), Ordering::Relaxed);
        let mut sent = vec![(from, bytes.to_vec())];
        if from == MEMBER {
            let frame = Frame::known(bytes).expect("an honest frame");
            let seen = Seen { to, frame, bytes, before: &[] };
            let ask = |step: usize| {
                let place = Place { step: step as u64, ..frame.place };
                let payload = words(&[0, 0, 1]);
                seen.made(Frame { kind: FrameKind::Status, scalar: 1, place, payload: &payload })
            };
            sent.extend((0..asks).map(|step| (from, ask(step % 7))));
        }
        sent
    });
    let fates = Setup { tamper: Some(tamper), ..setup(&experiment, TestPolicy::Wait) }.run();
    assert!(fates.iter().all(|fate| fate.done.is_ok()));
    count.load(Ordering::Relaxed)
}

#[test]
fn requests_are_answered_at_a_bounded_rate() {
    let (usual, flooded) = (answers(0), answers(200));
    assert!(flooded < 10 * usual, "{usual} frames became {flooded}");
}
