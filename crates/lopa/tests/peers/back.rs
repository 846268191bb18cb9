//! Under `leave`, nodes that were left out come back, and all compute what one process computes for the chapters; nobody is
//! believed who lies about them.

use std::ops::Range;
use std::sync::Mutex;

use lopa::engine::{Frame, FrameKind, Note, Picture, Place, Refusal};
use lopa::error::Kind;
use lopa::experiment::Experiment;
use lopa::math::random::{Purpose, Stream};
use lopa::run::CameBack;

use super::cluster::{Fate, Habits, Setup, TestPolicy};
use super::faulty::{Death, Faults, Tamper, seconds, sign};
use super::leave::{Counts, FOR_GOOD, SILENCE, check_fates, check_run, drawn_with, errors};
use super::{PERSONAL, drawn_connections, drawn_faults, read, seeds, single_process};

/// A run that is long enough to leave and to come back.
fn long(sets: &[&str]) -> Experiment {
    let usual = [
        "network.nodes=3",
        "network.graph=complete",
        "problem.n=2",
        "problem.p=2",
        "run.seeds=[1]",
        "run.iterations=1200",
        "run.evaluations=4",
        "run.exact=never",
        "checkpoint.iterations=10",
    ];
    let sets: Vec<String> = usual.iter().chain(sets).map(|set| set.to_string()).collect();
    let mut experiment = read(PERSONAL, &sets);
    experiment.algorithms.truncate(1);
    experiment
}

#[test]
fn a_node_that_was_away_for_long_is_left_out_and_comes_back() {
    let experiment = long(&[]);
    // It is away for twice the silence, and comes back while the others run.
    let deaths = vec![Death { node: 1, at: seconds(2.0), downtime: seconds(2.5 * SILENCE) }];
    let faults = Faults { deaths, delay: 0.02, ..Faults::default() };
    let fates = Setup::new(&experiment, 1, faults, TestPolicy::Leave(SILENCE)).run();
    let counts = check_fates(&experiment, 1, None, &fates);
    assert_eq!((counts.finished, counts.handed), (3, 1), "{counts:?} {:?}", errors(&fates));
    let run = &fates[1].done.as_ref().unwrap()[0];
    let members: Vec<&[usize]> = run.chapters.iter().map(|part| &part.members[..]).collect();
    assert_eq!(members, [&[0, 1, 2][..], &[0, 2], &[0, 1, 2]]);
    let CameBack { node, own, x_of } = run.chapters[2].back[0];
    assert_eq!((node, x_of), (1, Some(0)));
    assert!(own.is_some_and(|own| own > 0 && own <= run.chapters[1].from), "{:?}", run.chapters);
    for fate in &fates {
        let came = |note: &&Note| matches!(note, Note::Back { nodes, .. } if *nodes == [1]);
        assert!(fate.notes.iter().any(|note| came(&note)), "{:?}", fate.notes);
        // While it was away, the others said so, and then no longer.
        let left = |picture: &Picture| picture.nodes[1].left;
        assert!(fate.pictures.iter().any(left), "the pictures say that it had left");
        assert!(!fate.pictures.last().is_some_and(left), "it is back");
    }
}

/// A random experiment that is long enough to leave and to come back.
fn drawn(stream: &mut Stream) -> Experiment {
    drawn_with(stream, 0.2, |stream| {
        let several = stream.unit() < 0.3;
        [
            format!("run.seeds={}", if several { "[3,4]" } else { "[1]" }),
            format!("run.iterations={}", 150 + stream.below(if several { 100 } else { 300 })),
            format!("run.evaluations={}", 1 + stream.below(5)),
        ]
    })
}

/// Clusters in which nodes are away for longer than the silence, or say good-bye, and start again, while others die.
fn clusters(seeds: Range<u64>, connects: bool) -> Counts {
    let mut all = Counts::default();
    for seed in seeds {
        let mut stream = Stream::new(seed, Purpose::Tuning, 7);
        let experiment = drawn(&mut stream);
        let nodes = experiment.network.nodes;
        let mut faults = match connects {
            true => drawn_connections(&mut stream, nodes),
            false => drawn_faults(&mut stream, nodes),
        };
        faults.delay = faults.delay.max(stream.between(0.0, 0.04));
        let mut habits = Habits::default();
        for _ in 0..1 + stream.below(2) {
            let (node, at) = (stream.below(nodes), seconds(stream.between(0.3, 6.0)));
            let mut away = SILENCE * stream.between(1.0, 3.0);
            if stream.unit() < 0.3 {
                habits.byes.push((node, away));
                away = stream.between(0.0, 1.0);
            }
            faults.deaths.push(Death { node, at, downtime: seconds(away) });
        }
        faults.deaths.sort_by_key(|death| death.at);
        if stream.unit() < 0.3 {
            habits.intervals = (0..nodes).map(|_| 1 + stream.below(40) as u64).collect();
        }
        let setup = Setup::new(&experiment, seed, faults, TestPolicy::Leave(SILENCE));
        // Without one that says good-bye, the others may be too few or not connected: then all wait in vain.
        let leaver = habits.byes.first().map(|&(node, _)| node);
        all += check_fates(&experiment, seed, leaver, &Setup { habits, ..setup }.run());
    }
    all
}

#[test]
fn nodes_that_come_back_end_with_the_digest_of_the_others() {
    let seeds = seeds("LOPA_RETURNS", 0..300);
    let count = seeds.clone().count();
    let counts = clusters(seeds, false);
    eprintln!("{counts:?}");
    let Counts { left, back, handed, finished, .. } = counts;
    assert!(
        left >= count / 4 && back >= count / 8 && handed >= count / 10,
        "{left} {back} {handed}"
    );
    assert!(finished >= 2 * count, "{finished}");
}

#[test]
fn the_same_over_connections_that_machines_must_make() {
    let seeds = seeds("LOPA_RETURNS", 0..60);
    let count = seeds.clone().count();
    let counts = clusters(seeds, true);
    eprintln!("{counts:?}");
    assert!(counts.back >= count / 10 && counts.finished >= 2 * count, "{counts:?}");
}

/// One death of node 1 that is longer than the silence.
fn away() -> Faults {
    let deaths = vec![Death { node: 1, at: seconds(2.0), downtime: seconds(2.5 * SILENCE) }];
    Faults { deaths, delay: 0.02, ..Faults::default() }
}

#[test]
fn a_node_that_lost_its_disk_comes_back_with_start_values() {
    let experiment = long(&[]);
    let habits = Habits { wiped: vec![1], ..Habits::default() };
    let setup = Setup::new(&experiment, 1, away(), TestPolicy::Leave(SILENCE));
    let fates = Setup { habits, ..setup }.run();
    let counts = check_fates(&experiment, 1, None, &fates);
    assert_eq!((counts.finished, counts.handed), (3, 1), "{counts:?} {:?}", errors(&fates));
    let run = &fates[1].done.as_ref().unwrap()[0];
    assert_eq!(run.chapters[2].back, [CameBack { node: 1, own: None, x_of: Some(0) }]);
}

#[test]
fn a_node_misses_the_runs_that_end_without_it_and_takes_part_in_the_next() {
    let experiment = long(&["run.seeds=[1,2,3]", "run.iterations=120"]);
    let fates = Setup::new(&experiment, 1, away(), TestPolicy::Leave(SILENCE)).run();
    let counts = check_fates(&experiment, 1, None, &fates);
    assert_eq!(counts.finished, 3, "{counts:?} {:?}", errors(&fates));
    let seeds = |node: usize| -> Vec<u64> {
        fates[node].done.as_ref().unwrap().iter().map(|run| run.seed).collect()
    };
    assert_eq!(seeds(0), [1, 2, 3]);
    assert!(seeds(1).len() < 3 && seeds(1).contains(&3), "{:?}", seeds(1));
    let warnings = &fates[1].disk.lock().unwrap().warnings;
    assert!(
        warnings.iter().any(|line| line.contains("ended it without this node")),
        "{warnings:?}"
    );
}

/// When the others left, and how a node ended that asked to come back.
fn late(away: f64, every: u64, tamper: Option<Tamper>) -> (f64, Fate) {
    let every = format!("checkpoint.iterations={every}");
    let experiment = long(&["run.iterations=300", &every]);
    let deaths = vec![Death { node: 1, at: seconds(2.0), downtime: seconds(away) }];
    let faults = Faults { deaths, delay: 0.02, ..Faults::default() };
    let setup = Setup::new(&experiment, 1, faults, TestPolicy::Leave(SILENCE));
    let mut fates = Setup { tamper, ..setup }.run();
    check_fates(&experiment, 1, None, &fates);
    let others = fates[0].left.max(fates[2].left).as_secs_f64();
    (others, fates.swap_remove(1))
}

#[test]
fn a_node_that_asks_too_late_is_told_that_all_is_over() {
    let (mut told, mut came) = (0, 0);
    // From the second checkpoint on a node can come back, and there may be only one.
    let cases =
        (0..80).map(|step| (SILENCE + 0.25 * f64::from(step), [100, 200][step as usize % 2]));
    for (away, every) in cases {
        let (others, fate) = late(away, every, None);
        // Where nobody is there any more, nobody can tell it.
        if 2.0 + away + 1.0 > others {
            continue;
        }
        match &fate.done {
            Ok(_) => came += 1,
            Err(error) => {
                told += 1;
                assert_eq!((error.id, error.kind), ("peers/missed", Kind::Left), "{away}: {error}");
                let left = fate.left.as_secs_f64();
                assert!(left < others + 1.0, "{away}: it left at {left}, the others at {others}");
            }
        }
    }
    assert!(told > 5 && came > 5, "{told} were told, {came} came back");
}

/// One of two members says that both have ended, as soon as there are only two.
#[test]
fn one_member_alone_cannot_say_that_all_is_over() {
    let chapters = Mutex::new(Vec::<[u8; 16]>::new());
    let tamper: Tamper = Box::new(move |from, to, bytes| {
        let mut chapters = chapters.lock().unwrap();
        let run = std::array::from_fn(|at| bytes[8 + at]);
        let known = Frame::known(bytes).filter(|frame| from == 0 && frame.kind == FrameKind::Data);
        if known.is_some() && chapters.last() != Some(&run) {
            chapters.push(run);
        }
        let mut frames = vec![(from, bytes.to_vec())];
        if let ([_, .., run], 0, 1) = (&chapters[..], from, to) {
            for author in [0_u64, 2] {
                let payload = [author, 1].map(u64::to_le_bytes).concat();
                let place = Place::default();
                let word = Frame { kind: FrameKind::Ended, scalar: 1, place, payload: &payload };
                frames.push((from, word.to_bytes(run, |bytes| sign(0, bytes))));
            }
        }
        frames
    });
    let away = 2.5 * SILENCE;
    let (others, fate) = late(away, 200, Some(tamper));
    let left = fate.left.as_secs_f64();
    assert!(left > others - 1.0, "it left at {left}, the others at {others}");
    let why = Refusal::Signature;
    assert!(fate.notes.contains(&Note::Refused { peer: 0, why }), "{:?}", fate.notes);
}

#[test]
fn nodes_with_different_intervals_have_a_checkpoint_in_common() {
    let experiment = long(&["run.iterations=300"]);
    let deaths = vec![Death { node: 1, at: seconds(6.0), downtime: seconds(FOR_GOOD) }];
    let faults = Faults { deaths, delay: 0.02, ..Faults::default() };
    let habits = Habits { intervals: vec![10, 25, 40], ..Habits::default() };
    let setup = Setup::new(&experiment, 1, faults, TestPolicy::Leave(SILENCE));
    let fates = Setup { habits, ..setup }.run();
    let counts = check_fates(&experiment, 1, Some(1), &fates);
    assert_eq!(counts.left, 1, "{counts:?} {:?}", errors(&fates));
    let from = fates[0].done.as_ref().unwrap()[0].chapters[1].from;
    assert!(from >= 40 && from.is_multiple_of(40), "{from}");
}

/// The node that lies: the helper of node 1 where all are neighbours.
const LIAR: usize = 0;

/// Four nodes, of which the one that comes back and another may lie about it.
fn among_liars(tamper: Tamper) -> (Experiment, Vec<Fate>) {
    let experiment = long(&["network.nodes=4", "run.iterations=600"]);
    let setup = Setup::new(&experiment, 1, away(), TestPolicy::Leave(SILENCE));
    let fates = Setup { tamper: Some(tamper), deadline: 40.0, ..setup }.run();
    (experiment, fates)
}

/// Whether nodes other than the liar have named it.
fn named(fates: &[Fate], liar: usize, why: Refusal) -> bool {
    let names = |note: &Note| *note == Note::Refused { peer: liar, why };
    (0..fates.len()).any(|node| node != liar && fates[node].notes.iter().any(names))
}

/// Replaces the payload of a frame of a node, and signs it as that node.
fn altered(node: usize, bytes: &[u8], payload: &[u8]) -> Vec<u8> {
    let run = std::array::from_fn(|at| bytes[8 + at]);
    let frame = Frame::known(bytes).unwrap();
    Frame { payload, ..frame }.to_bytes(&run, |bytes| sign(node, bytes))
}

/// Whether a frame is what the liar tells a node that comes back; `chapter` is that of the first frames.
fn hands_over(from: usize, bytes: &[u8], first: &[u8]) -> bool {
    let Some(frame) = Frame::known(bytes) else { return false };
    let own = frame.payload.starts_with(&(LIAR as u64).to_le_bytes()) && frame.payload.len() > 8;
    let later = bytes[8..24] != *first;
    from == LIAR && frame.kind == FrameKind::Broadcast && frame.place.step == 0 && own && later
}

#[test]
fn a_false_handover_is_refused_and_its_author_named() {
    let identity = long(&["network.nodes=4", "run.iterations=600"]).identity().unwrap();
    let nan = |payload: &[u8]| {
        let end = payload.len() - 8;
        // x, and no θ: it is personal.
        [&payload[..end - 8], &f64::NAN.to_le_bytes(), &payload[end..]].concat()
    };
    let longer = |payload: &[u8]| [payload, &[0; 8]].concat();
    let shorter = |payload: &[u8]| payload[..payload.len() - 8].to_vec();
    // The author, the length of the common part, the iteration, and the rounds so far.
    let rounds = |payload: &[u8]| {
        let mut payload = payload.to_vec();
        payload[24] ^= 1;
        payload
    };
    let nothing = |_: &[u8]| (LIAR as u64).to_le_bytes().to_vec();
    type Change = fn(&[u8]) -> Vec<u8>;
    let lies: [(Change, Refusal); 5] = [
        (nan, Refusal::NotFinite),
        (longer, Refusal::Shape),
        (shorter, Refusal::Shape),
        (rounds, Refusal::Differs),
        (nothing, Refusal::Shape),
    ];
    for (change, why) in lies {
        let first = identity[..16].to_vec();
        let (experiment, fates) = among_liars(Box::new(move |from, _, bytes| {
            let frame = match hands_over(from, bytes, &first) {
                true => altered(LIAR, bytes, &change(Frame::known(bytes).unwrap().payload)),
                false => bytes.to_vec(),
            };
            vec![(from, frame)]
        }));
        assert!(named(&fates, LIAR, why), "{why:?}: {:?}", errors(&fates));
        // It does not come back with a false state. Where it sees that others disagree it ends, and they go on without it.
        let error = fates[1].done.as_ref().unwrap_err();
        assert!(matches!(error.kind, Kind::Peer | Kind::Left), "{why:?}: {error}");
        let alone = single_process(&experiment).remove(0);
        for fate in &fates[2..] {
            match &fate.done {
                Ok(runs) => check_run(&experiment, 1, &runs[0], &alone, &mut Counts::default()),
                Err(error) => assert_eq!(error.kind, Kind::Peer, "{why:?}: {error}"),
            }
        }
    }
}

#[test]
fn a_relay_that_alters_what_it_hands_on_is_named_and_changes_nothing() {
    let identity = long(&["network.nodes=4", "run.iterations=600"]).identity().unwrap();
    let first = identity[..16].to_vec();
    // Node 2 passes on the helper's frame and the request to come back, both changed.
    let (experiment, fates) = among_liars(Box::new(move |from, _, bytes| {
        let known = Frame::known(bytes).filter(|_| from == 2);
        let Some(frame) = known else { return vec![(from, bytes.to_vec())] };
        let statement = frame.kind == FrameKind::Statement;
        let others = !frame.payload.starts_with(&2u64.to_le_bytes());
        let broadcast = hands_over(LIAR, bytes, &first);
        if !others || !(statement || broadcast) {
            return vec![(from, bytes.to_vec())];
        }
        let mut payload = frame.payload.to_vec();
        let at = payload.len() - 8;
        payload[at] ^= 1;
        vec![(from, altered(2, bytes, &payload))]
    }));
    assert!(named(&fates, 2, Refusal::Signature), "{:?}", errors(&fates));
    let counts = check_fates(&experiment, 1, None, &fates);
    assert_eq!((counts.finished, counts.handed), (4, 1), "{:?}", errors(&fates));
}

#[test]
fn a_node_that_was_left_out_has_no_vote() {
    // Node 1 asks and votes, in its own name and in that of others.
    let (experiment, fates) = among_liars(Box::new(|from, _, bytes| {
        let known = Frame::known(bytes).filter(|frame| frame.kind == FrameKind::Statement);
        let Some(frame) = known.filter(|frame| from == 1 && frame.payload.len() >= 40) else {
            return vec![(from, bytes.to_vec())];
        };
        let asks = frame.payload[24] == 32;
        let mut frames = vec![(from, bytes.to_vec())];
        if asks {
            let word = |value: u64| value.to_le_bytes().to_vec();
            // It follows a high ballot of its own, and accepts in it that all others are gone.
            let vote =
                [word(1), word(3), word(0), word(2), word(3), word(0), word(0), word(0)].concat();
            let head = |author: u64| [word(author), frame.payload[8..24].to_vec()].concat();
            let rest =
                [word(2 | 8 | 32), word(1 << 40), word(1), word(1 << 40), vote, word(0)].concat();
            for author in [1, 2] {
                let payload = [head(author), rest.clone()].concat();
                frames.push((from, altered(1, bytes, &payload)));
            }
        }
        frames
    }));
    assert!(named(&fates, 1, Refusal::Shape), "{:?}", errors(&fates));
    let counts = check_fates(&experiment, 1, None, &fates);
    assert_eq!((counts.finished, counts.handed), (4, 1), "{:?}", errors(&fates));
}

#[test]
fn altered_votes_never_lead_to_two_outcomes() {
    let (mut finished, mut refused) = (0, 0);
    for seed in seeds("LOPA_LIARS", 0..100) {
        let mut stream = Stream::new(seed, Purpose::Tuning, 8);
        let liar = [0, 2, 3, 1][stream.below(4)];
        let (chance, equivocates) = (stream.between(0.05, 1.0), stream.unit() < 0.5);
        let stream = Mutex::new(stream);
        let (experiment, fates) = among_liars(Box::new(move |from, _, bytes| {
            let known = Frame::known(bytes).filter(|_| from == liar);
            let own = known.filter(|frame| {
                frame.kind == FrameKind::Statement
                    && frame.payload.starts_with(&(liar as u64).to_le_bytes())
            });
            let Some(frame) = own else { return vec![(from, bytes.to_vec())] };
            let mut stream = stream.lock().unwrap();
            if stream.unit() > chance {
                return vec![(from, bytes.to_vec())];
            }
            // Some words of it are others: numbers, flags, ballots, nodes, positions.
            let mut payload = frame.payload.to_vec();
            for _ in 0..1 + stream.below(3) {
                let words = payload.len() / 8;
                let at = if equivocates {
                    2 + stream.below(words - 2)
                } else {
                    3 + stream.below(words - 3)
                };
                let value = stream.below(64) as u64;
                payload[8 * at..8 * at + 8].copy_from_slice(&value.to_le_bytes());
            }
            vec![(from, altered(liar, bytes, &payload))]
        }));
        let honest: Vec<&Fate> =
            (0..4).filter(|&node| node != liar).map(|node| &fates[node]).collect();
        let done = honest.iter().filter_map(|fate| fate.done.as_ref().ok()).map(|runs| &runs[0]);
        let done: Vec<_> = done.collect();
        finished += done.len();
        refused += usize::from(honest.iter().any(|fate| !fate.notes.is_empty()));
        let alone = single_process(&experiment).remove(0);
        for run in &done {
            assert_eq!(run.chapters, done[0].chapters, "seed {seed}, {liar} lies");
            assert_eq!(run.digest, done[0].digest, "seed {seed}, {liar} lies");
            // Nobody can know a false position of its own state.
            if liar != 1 {
                check_run(&experiment, seed, run, &alone, &mut Counts::default());
            }
        }
        for fate in honest {
            if let Err(error) = &fate.done {
                assert!(matches!(error.kind, Kind::Peer | Kind::Left), "seed {seed}: {error}");
            }
        }
    }
    eprintln!("{finished} honest nodes finished, {refused} clusters had something to say");
    assert!(finished > 100, "{finished}");
}
