//! Nodes that reach each other only through a relay, or get other addresses in the middle of a run; a relay that dies and
//! comes back, delays, reorders, loses and forges packets; and nodes that forge what they pass on.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lopa::engine::{Frame, FrameKind, Note, Place, Refusal};
use lopa::experiment::Experiment;
use lopa::math::random::{Purpose, Stream};

use super::cluster::{Fate, Setup, TestPolicy};
use super::faulty::{Cut, Death, Faults, Move, Tamper, seconds, sign};
use super::hostile::summed;
use super::leave::{self, Counts, FOR_GOOD, SILENCE, check_fates};
use super::relay::Relay;
use super::skips::doubly_stochastic;
use super::{PERSONAL, drawn, drawn_connections, drawn_faults, read, seeds, single_process};

/// The links of all runs.
fn links(experiment: &Experiment) -> BTreeSet<(usize, usize)> {
    let graph = |&seed: &u64| experiment.world(None, seed).unwrap().graph;
    let graphs = experiment.run.seeds.iter().map(graph);
    graphs.flat_map(|graph| graph.edges().collect::<Vec<_>>()).collect()
}

/// Faults with a relay between some nodes, and nodes that move; both become quiet in the end.
fn drawn_paths(stream: &mut Stream, experiment: &Experiment) -> Faults {
    let nodes = experiment.network.nodes;
    let connects = stream.unit() < 0.6;
    let mut faults = match connects {
        true => drawn_connections(stream, nodes),
        false => drawn_faults(stream, nodes),
    };
    // Long enough for something to happen in the middle.
    faults.delay = faults.delay.max(stream.between(0.01, 0.06));
    if !connects || stream.unit() < 0.7 {
        let share = stream.between(0.2, 1.5);
        let pairs = links(experiment).into_iter().filter(|_| stream.unit() < share).collect();
        let some = |stream: &mut Stream, most: f64| {
            if stream.unit() < 0.5 { 0.0 } else { stream.between(0.0, most) }
        };
        let least = stream.between(0.0, 0.1);
        let delay = (least, least + some(stream, 0.6));
        let (loss, forges) = (some(stream, 0.3), some(stream, 0.6));
        let window = |stream: &mut Stream| {
            let since = stream.between(0.0, 4.0);
            (seconds(since), seconds(since + stream.between(0.1, 8.0)))
        };
        let down = (0..stream.below(3)).map(|_| window(stream)).collect();
        faults.relay = Relay { pairs, delay, loss, forges, down, trusted: false };
    }
    if connects && stream.unit() < 0.7 {
        // Where the roster has addresses, two that both have moved would not find each other.
        faults.named = stream.unit() < 0.5;
        let mover = stream.below(nodes);
        for _ in 0..1 + stream.below(3) {
            let node = if faults.named { stream.below(nodes) } else { mover };
            let since = stream.between(0.0, 3.0);
            let until = seconds(since + stream.between(0.0, 3.0));
            faults.moves.push(Move { node, since: seconds(since), until });
        }
    }
    faults
}

/// What was reached.
#[derive(Debug, Default)]
struct Reached {
    relayed: usize,
    /// Clusters that ended after a relay had come back, and after a node had moved.
    after_relay: usize,
    after_move: usize,
    unopened: usize,
    deaths: usize,
}

impl Reached {
    fn add(&mut self, faults: &Faults, fates: &[Fate]) {
        let last = fates.iter().map(|fate| fate.left).max().unwrap_or_default();
        let relay = &faults.relay;
        self.relayed += usize::from(!relay.pairs.is_empty());
        let back = relay.down.iter().any(|&(_, until)| until < last) && !relay.pairs.is_empty();
        self.after_relay += usize::from(back);
        self.after_move += usize::from(faults.moves.iter().any(|moves| moves.until < last));
        self.unopened += fates.iter().map(|fate| fate.unopened).sum::<usize>();
        self.deaths += fates.iter().map(|fate| fate.lives - 1).sum::<usize>();
    }

    fn check(&self, count: usize) {
        eprintln!("{self:?}");
        assert!(self.relayed > count / 2 && self.unopened > count, "{self:?}");
        assert!(self.after_relay > count / 5 && self.after_move > count / 5, "{self:?}");
        assert!(self.deaths > count / 2, "{self:?}");
    }
}

/// Nodes whose frames a node refused.
fn blamed(fate: &Fate) -> BTreeSet<(usize, Refusal)> {
    let refused = |note: &Note| match note {
        Note::Refused { peer, why } => Some((*peer, *why)),
        _ => None,
    };
    fate.notes.iter().filter_map(refused).collect()
}

fn digests(fate: &Fate, what: &str) -> Vec<String> {
    match &fate.done {
        Ok(done) => done.iter().map(|run| run.digest.clone()).collect(),
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Nodes that wait have the digest of one process; nodes that skip links skip them at both ends, and have one digest.
fn check(experiment: &Experiment, fates: &[Fate], skips: bool, what: &str) {
    let want: Vec<String> = single_process(experiment).into_iter().map(|run| run.digest).collect();
    if !skips {
        for (node, fate) in fates.iter().enumerate() {
            assert_eq!(digests(fate, what), want, "{what}, node {node}");
        }
        return;
    }
    let (sound, count) = doubly_stochastic(experiment, fates);
    assert!(sound, "{what}: W was not the same at both ends of a link");
    let all: BTreeSet<Vec<String>> = fates.iter().map(|fate| digests(fate, what)).collect();
    assert_eq!(all.len(), 1, "{what}: nodes disagree");
    assert!(count > 0 || all.contains(&want), "{what}");
}

/// A small random experiment; one that can skip links, if asked for.
fn drawn_for(stream: &mut Stream, skips: bool) -> Experiment {
    let mut experiment = drawn(stream);
    if skips {
        experiment.algorithms.truncate(1);
        experiment.run.seeds.truncate(1);
        experiment.messages.iter_mut().for_each(|messages| messages.compress = None);
    }
    experiment
}

#[test]
fn relays_and_other_addresses_change_no_number() {
    let seeds = seeds("LOPA_PATHS", 0..400);
    let count = seeds.clone().count();
    let mut reached = Reached::default();
    for seed in seeds {
        let mut stream = Stream::new(seed, Purpose::Tuning, 9);
        let skips = stream.unit() < 0.4;
        let experiment = drawn_for(&mut stream, skips);
        let faults = drawn_paths(&mut stream, &experiment);
        let patience = 0.3 + 5.0 * (faults.delay + faults.relay.delay.1);
        let policy = if skips { TestPolicy::Skip(patience) } else { TestPolicy::Wait };
        let fates = Setup::new(&experiment, seed, faults.clone(), policy).run();
        let what = format!("seed {seed}, {policy:?}");
        check(&experiment, &fates, skips, &what);
        // What a relay forges never reaches a node: frames that a direct path damaged are refused, and those of nodes
        // that are far ahead.
        let ahead = |fate: &Fate| blamed(fate).iter().all(|(_, why)| *why == Refusal::Future);
        let sound = faults.damage > 0.0 || fates.iter().all(ahead);
        assert!(sound, "{what}: {:?}", fates.iter().map(blamed).collect::<Vec<_>>());
        reached.add(&faults, &fates);
    }
    reached.check(count);
}

#[test]
fn those_that_stay_agree_through_relays_and_under_other_addresses() {
    let seeds = seeds("LOPA_PATHS", 0..150);
    let count = seeds.clone().count();
    let (mut all, mut reached) = (Counts::default(), Reached::default());
    for seed in seeds {
        let mut stream = Stream::new(seed, Purpose::Tuning, 10);
        let experiment = leave::drawn(&mut stream);
        let nodes = experiment.network.nodes;
        let mut faults = drawn_paths(&mut stream, &experiment);
        let dead = (stream.unit() < 0.4).then(|| stream.below(nodes));
        if let Some(node) = dead {
            let at = seconds(stream.between(0.05, 2.0));
            faults.deaths.retain(|death| death.node != node || death.at < at);
            faults.deaths.push(Death { node, at, downtime: seconds(FOR_GOOD) });
            faults.deaths.sort_by_key(|death| death.at);
        }
        let setup = Setup::new(&experiment, seed, faults.clone(), TestPolicy::Leave(SILENCE));
        let fates = setup.run();
        all += check_fates(&experiment, seed, dead, &fates);
        reached.add(&faults, &fates);
    }
    eprintln!("{all:?}");
    reached.check(count);
    let Counts { left, finished, .. } = all;
    assert!(left >= count / 8 && finished >= 2 * count, "{left} {finished}");
}

/// Three nodes, all of whose packets pass through a relay that forges many.
fn forged(seed: u64, trusted: bool) -> (Vec<String>, Vec<Fate>) {
    let sets = ["network.nodes=3", "network.graph=ring", "problem.n=3", "problem.p=2"];
    let more = ["run.iterations=12", "run.evaluations=2", "checkpoint.iterations=5"];
    let sets: Vec<String> = sets.iter().chain(&more).map(|set| set.to_string()).collect();
    let mut experiment = read(PERSONAL, &sets);
    experiment.algorithms.truncate(1);
    let pairs = links(&experiment);
    let relay = Relay { pairs, delay: (0.0, 0.1), forges: 0.7, trusted, ..Relay::default() };
    let faults = Faults { relay, calm: seconds(1e6), ..Faults::default() };
    let setup = Setup::new(&experiment, seed, faults, TestPolicy::Wait);
    let fates = Setup { deadline: 30.0, ..setup }.run();
    (single_process(&experiment).into_iter().map(|run| run.digest).collect(), fates)
}

/// The check can fail: were packets not sealed, a relay could change numbers, and nobody would notice.
#[test]
fn a_relay_that_forges_is_noticed_and_changes_nothing() {
    let (mut changed, mut in_silence) = (0, 0);
    for seed in 0..20 {
        let (want, fates) = forged(seed, false);
        for fate in &fates {
            assert_eq!(digests(fate, &format!("seed {seed}")), want, "seed {seed}");
            assert!(fate.unopened > 10, "seed {seed}: {} packets", fate.unopened);
            assert!(fate.notes.is_empty(), "seed {seed}: {:?}", fate.notes);
        }
        let (want, fates) = forged(seed, true);
        let wrong = |fate: &&Fate| fate.done.as_ref().is_ok_and(|runs| runs[0].digest != want[0]);
        changed += usize::from(fates.iter().any(|fate| wrong(&fate)));
        let silent = |fate: &Fate| wrong(&fate) && blamed(fate).is_empty();
        in_silence += usize::from(fates.iter().any(silent));
    }
    eprintln!("without seals: {changed} of 20 wrong, {in_silence} in silence");
    assert!(changed > 0, "no forgery reached a number without seals");
}

/// What a node forges of a frame of another that it passes on.
fn forgery(forger: usize, bytes: &[u8], stream: &mut Stream) -> Option<Vec<u8>> {
    use FrameKind::{Broadcast, Ended, Forwarded, Notice, Statement};
    let frame = Frame::known(bytes)?;
    let passed = [Broadcast, Ended, Forwarded, Notice, Statement].contains(&frame.kind);
    let own = frame.payload.starts_with(&(forger as u64).to_le_bytes());
    if !passed || own || frame.payload.len() < 9 {
        return None;
    }
    let run = std::array::from_fn(|at| bytes[8 + at]);
    let signature = *bytes[..bytes.len() - 4].last_chunk()?;
    let mut payload = frame.payload.to_vec();
    let at = 8 + stream.below(payload.len() - 8);
    payload[at] ^= 1 << stream.below(8);
    let other = Frame { payload: &payload, ..frame };
    let place = Place { step: frame.place.step + 1, ..frame.place };
    Some(match stream.below(4) {
        0 => other.to_bytes(&run, |bytes| sign(forger, bytes)),
        1 => other.to_bytes(&run, |_| signature),
        2 => Frame { place, ..frame }.to_bytes(&run, |_| signature),
        _ => {
            let mut bytes = bytes.to_vec();
            let at = bytes.len() - 5 - stream.below(64);
            bytes[at] ^= 1;
            summed(bytes)
        }
    })
}

/// How many frames a node forges before it tires.
const MOST: usize = 200;

#[test]
fn nodes_that_forge_what_they_pass_on_are_named_and_change_nothing() {
    let (mut forging, mut named, mut left) = (0, 0, 0);
    // In the last two, nodes that were left out kept each other waiting for ever.
    for seed in seeds("LOPA_FORGERS", 0..200).chain([1536, 1777]) {
        let mut stream = Stream::new(seed, Purpose::Tuning, 11);
        let how = stream.below(3);
        let experiment = match how {
            2 => leave::drawn(&mut stream),
            how => drawn_for(&mut stream, how == 1),
        };
        let nodes = experiment.network.nodes;
        let policy = [TestPolicy::Wait, TestPolicy::Skip(0.5), TestPolicy::Leave(SILENCE)][how];
        let mut faults = Faults { delay: 0.02, ..Faults::default() };
        faults.deaths.push(Death {
            node: stream.below(nodes),
            at: seconds(stream.between(0.1, 1.5)),
            downtime: seconds(stream.between(0.0, if how == 2 { 2.5 * SILENCE } else { 2.0 })),
        });
        let all: Vec<(usize, usize)> = links(&experiment).into_iter().collect();
        let (a, b) = all[stream.below(all.len())];
        // Over other nodes, while the link is cut.
        let until = seconds(if how == 0 { 3.0 } else { 8.0 });
        for (from, to) in [(a, b), (b, a)] {
            faults.cuts.push(Cut { from, to, since: seconds(0.5), until });
        }
        let (forger, chance) = (stream.below(nodes), stream.between(0.1, 0.9));
        let forged = Arc::new(AtomicUsize::new(0));
        let (counted, stream) = (forged.clone(), Mutex::new(stream));
        let tamper: Tamper = Box::new(move |from, _, bytes| {
            let mut stream = stream.lock().unwrap();
            let tires = counted.load(Ordering::Relaxed) >= MOST;
            if from != forger || tires || stream.unit() > chance {
                return vec![(from, bytes.to_vec())];
            }
            let forged = forgery(forger, bytes, &mut stream);
            counted.fetch_add(usize::from(forged.is_some()), Ordering::Relaxed);
            vec![(from, forged.unwrap_or_else(|| bytes.to_vec()))]
        });
        let setup = Setup::new(&experiment, seed, faults, policy);
        let fates = Setup { tamper: Some(tamper), ..setup }.run();
        let what = format!("seed {seed}, {policy:?}, {forger} forges");
        match how {
            2 => left += check_fates(&experiment, seed, None, &fates).left,
            _ => check(&experiment, &fates, how == 1, &what),
        }
        let honest = || fates.iter().enumerate().filter(|(node, _)| *node != forger);
        for (node, fate) in honest() {
            let blamed = blamed(fate);
            // Others may be far ahead of a node that starts again.
            let ahead = |why: &Refusal| *why == Refusal::Future;
            let just = blamed.iter().all(|(peer, why)| *peer == forger || ahead(why));
            assert!(just, "{what}: node {node} blames an honest one: {blamed:?}");
        }
        if forged.load(Ordering::Relaxed) > 20 {
            forging += 1;
            let names = |fate: &Fate| blamed(fate).contains(&(forger, Refusal::Signature));
            named += usize::from(honest().any(|(_, fate)| names(fate)));
        }
    }
    eprintln!("{forging} nodes forged, {named} were named; {left} runs lost a node");
    assert!(forging > 30 && 10 * named > 9 * forging, "{forging} {named}");
}
