//! Under `skip-link` a link is used by both its ends or by neither.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use lopa::engine::{Frame, FrameKind, Note};
use lopa::experiment::Experiment;
use lopa::math::random::{Purpose, Stream};
use lopa::run::{Context, Listener, Outcome};

use super::cluster::{Disk, Fate, Setup, TestPolicy};
use super::faulty::{Cut, Death, Faults, Tamper, seconds, sign};
use super::{
    GLOBAL, PERSONAL, drawn, drawn_connections, drawn_faults, read, seeds, single_process,
};

const PATIENCE: f64 = 0.3;

/// Iteration, exchange and neighbour of a skip.
type Skipped = (u64, usize, usize);

/// The skips of a node.
fn skipped(fate: &Fate) -> BTreeSet<Skipped> {
    let skipped = |note: &Note| match *note {
        Note::Skipped { peer, k, e } => Some((k, e, peer)),
        Note::Refused { .. } | Note::Overflow { .. } | Note::Left { .. } | Note::Back { .. } => {
            None
        }
    };
    fate.notes.iter().filter_map(skipped).collect()
}

/// W as the nodes used it in an exchange, according to each node.
fn effective(experiment: &Experiment, fates: &[Fate], (k, e): (u64, usize)) -> Vec<Vec<f64>> {
    let mixing = experiment.world(None, experiment.run.seeds[0]).unwrap().mixing;
    let row = |(i, fate): (usize, &Fate)| {
        let mut row: Vec<f64> = (0..fates.len()).map(|j| mixing.weight(i, j)).collect();
        for (_, _, j) in skipped(fate).range((k, e, 0)..(k, e + 1, 0)) {
            row[i] += std::mem::take(&mut row[*j]);
        }
        row
    };
    fates.iter().enumerate().map(row).collect()
}

/// Whether W was symmetric, and its rows summed to one, in every exchange; and the number of skips.
pub fn doubly_stochastic(experiment: &Experiment, fates: &[Fate]) -> (bool, usize) {
    let all: BTreeSet<Skipped> = fates.iter().flat_map(skipped).collect();
    let rounds: BTreeSet<_> = all.iter().map(|&(k, e, _)| (k, e)).collect();
    let is_valid = |round: &(u64, usize)| {
        let w = effective(experiment, fates, *round);
        let symmetric = (0..w.len()).all(|i| (0..w.len()).all(|j| w[i][j] == w[j][i]));
        let stochastic = w.iter().all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        symmetric && stochastic && w.iter().flatten().all(|&w| w >= 0.0)
    };
    (rounds.iter().all(is_valid), all.len())
}

/// The outcome of every node.
fn outcomes(fates: &[Fate], seed: u64) -> Vec<&Outcome> {
    let mut all = Vec::new();
    for fate in fates {
        match &fate.done {
            Ok(done) => all.push(&done[0]),
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    all
}

/// Runs it without faults, repeating the skips.
fn replay(experiment: &Experiment, fates: &[Fate]) -> Vec<Fate> {
    // Without a last record, a link that was skipped to the end would be skipped to the next
    // checkpoint.
    let disk = |fate: &Fate| {
        let mut turns = fate.disk.lock().unwrap().turns.clone();
        for line in String::from_utf8(turns.clone()).unwrap().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            if let [job, _, peer, ..] = words[..] {
                turns.extend(format!("\n{job} {} {peer} use end\n", u64::MAX / 2).bytes());
            }
        }
        Disk::with(turns)
    };
    let disks = fates.iter().map(disk).collect();
    let policy = TestPolicy::Skip(100.0);
    Setup { disks, ..Setup::new(experiment, 1, Faults::default(), policy) }.run()
}

#[test]
fn both_ends_skip_or_neither_and_skips_replay() {
    both_ends_agree(seeds("LOPA_SKIPS", 0..1500), false);
}

#[test]
fn both_ends_skip_or_neither_where_they_must_connect() {
    both_ends_agree(seeds("LOPA_SKIPS", 0..500), true);
}

fn both_ends_agree(seeds: Range<u64>, connects: bool) {
    let (mut skips, mut lives) = (0, 0);
    for seed in seeds {
        let mut stream = Stream::new(seed, Purpose::Tuning, 2);
        let mut experiment = drawn(&mut stream);
        experiment.algorithms.truncate(1);
        experiment.run.seeds.truncate(1);
        // Compressed messages build on those before, and are refused where links may be skipped.
        experiment.messages.iter_mut().for_each(|messages| messages.compress = None);
        let drawn_faults = if connects { drawn_connections } else { drawn_faults };
        let faults = drawn_faults(&mut stream, experiment.network.nodes);
        let patience = PATIENCE + 5.0 * faults.delay;
        let fates = Setup::new(&experiment, seed, faults, TestPolicy::Skip(patience)).run();
        let (sound, count) = doubly_stochastic(&experiment, &fates);
        assert!(sound, "seed {seed}: W was not the same at both ends of a link");
        let digests: BTreeSet<_> = outcomes(&fates, seed).iter().map(|run| &run.digest).collect();
        assert_eq!(digests.len(), 1, "seed {seed}: nodes disagree");
        let replayed = replay(&experiment, &fates);
        assert_eq!(doubly_stochastic(&experiment, &replayed).1, count, "seed {seed}");
        assert!(digests.contains(&outcomes(&replayed, seed)[0].digest), "seed {seed}: replay");
        if count == 0 {
            assert!(digests.contains(&single_process(&experiment)[0].digest), "seed {seed}");
        }
        skips += count;
        lives += fates.iter().map(|fate| fate.lives).sum::<usize>();
    }
    assert!(skips > lives, "{skips} skipped in {lives} lives: too few");
}

/// LoPA with gradient tracking on a ring of five, deterministic.
fn tracking(iterations: usize) -> Experiment {
    tracking_on(5, iterations, 50)
}

fn tracking_on(nodes: usize, iterations: usize, every: usize) -> Experiment {
    tracking_of(2, nodes, iterations, every)
}

/// With an x of length `n`.
fn tracking_of(n: usize, nodes: usize, iterations: usize, every: usize) -> Experiment {
    let sets = [
        format!("network.nodes={nodes}"),
        format!("problem.n={n}"),
        "problem.p=2".into(),
        "algorithm.lopa-gt.alpha=0.1".into(),
        format!("run.iterations={iterations}"),
        "run.evaluations=4".into(),
        "run.exact=end".into(),
        format!("checkpoint.iterations={every}"),
    ];
    let mut experiment = read(PERSONAL, &sets);
    experiment.algorithms.truncate(1);
    experiment
}

fn lossy() -> Faults {
    let cut = |from, to| Cut { from, to, since: seconds(1.0), until: seconds(60.0) };
    Faults { loss: 0.05, calm: seconds(1e9), cuts: vec![cut(1, 2), cut(2, 1)], ..Faults::default() }
}

fn grad_phi_sq(fates: &[Fate]) -> f64 {
    outcomes(fates, 0)[0].row.values["grad_phi_sq"]
}

/// While the link is cut, the ring is a path, on which the same iterations reach 1e-10 and not 1e-24. A silent link
/// is skipped without waiting, so hundreds of iterations pass in the minute of the cut.
#[test]
fn gradient_tracking_finds_the_right_point_when_links_fail() {
    let experiment = tracking(1000);
    assert!(single_process(&experiment)[0].row.values["grad_phi_sq"] < 1e-18);
    let fates = Setup::new(&experiment, 1, lossy(), TestPolicy::Skip(PATIENCE)).run();
    let (sound, count) = doubly_stochastic(&experiment, &fates);
    assert!(sound && count > 100, "{count} skipped");
    assert!(grad_phi_sq(&fates) < 1e-18, "{:e}", grad_phi_sq(&fates));
    assert!(fates.iter().all(|fate| fate.disk.lock().unwrap().warnings.is_empty()));
}

/// A link that is cut from a time on, for good.
fn cut_for_good((a, b): (usize, usize), since: f64) -> Vec<Cut> {
    let cut = |from, to| Cut { from, to, since: seconds(since), until: seconds(1e9) };
    vec![cut(a, b), cut(b, a)]
}

/// A ring of three, one of whose links is cut after a second, for good.
fn ring_with_a_cut(
    link: (usize, usize),
    iterations: usize,
    deaths: Vec<Death>,
) -> (Experiment, Vec<Fate>) {
    let experiment = tracking_on(3, iterations, 500);
    let cuts = cut_for_good(link, 1.0);
    let faults = Faults { cuts, deaths, connects: true, ..Faults::default() };
    let fates = Setup::new(&experiment, 1, faults, TestPolicy::Skip(PATIENCE)).run();
    (experiment, fates)
}

/// Notices must not grow with the cut: the network refuses frames above the limit.
#[test]
fn a_link_that_stays_cut_delays_nobody() {
    let Range { end: iterations, .. } = seeds("LOPA_CUT", 0..5000);
    let (experiment, fates) = ring_with_a_cut((1, 2), iterations as usize, Vec::new());
    let (sound, count) = doubly_stochastic(&experiment, &fates);
    assert!(sound && count as u64 > iterations * 9 / 10, "{count} skipped");
    assert!(grad_phi_sq(&fates) < 1e-18, "{:e}", grad_phi_sq(&fates));
}

/// Both ends of the link restart while it is cut: they continue without it.
#[test]
fn nodes_start_again_while_a_link_is_cut() {
    let death = |node, at| Death { node, at: seconds(at), downtime: seconds(2.0) };
    let (experiment, fates) = ring_with_a_cut((1, 2), 800, vec![death(1, 4.0), death(2, 8.0)]);
    let (sound, count) = doubly_stochastic(&experiment, &fates);
    assert!(sound && count > 200, "{count} skipped");
    assert!(fates[1].lives == 2 && fates[2].lives == 2);
    outcomes(&fates, 0);
}

/// Nodes that die one after the other, from a time on.
fn one_after_the_other(order: &[usize], first: f64, every: f64) -> Vec<Death> {
    let time = |at: usize| seconds(first + every * at as f64);
    let death = |(at, &node)| Death { node, at: time(at), downtime: seconds(0.5) };
    order.iter().enumerate().map(death).collect()
}

/// The decider of the cut link, its follower and the node that relays between them start again in any
/// order: what they said in an earlier life must not hide what they say in this one.
#[test]
fn nodes_start_again_in_any_order_while_a_link_is_cut() {
    let orders = (0..27).map(|n| vec![n / 9, n / 3 % 3, n % 3]);
    for order in orders.chain([vec![0, 1, 2, 0, 1], vec![2, 1, 0, 2, 1, 0]]) {
        let deaths = one_after_the_other(&order, 4.0, 3.0);
        let (experiment, fates) = ring_with_a_cut((0, 1), 900, deaths);
        let ended = |fate: &Fate| fate.done.as_ref().err().map(ToString::to_string);
        let stalled: Vec<_> = fates.iter().filter_map(ended).collect();
        assert!(stalled.is_empty(), "{order:?}: {stalled:?}");
        let lives: usize = fates.iter().map(|fate| fate.lives - 1).sum();
        assert_eq!(lives, order.len(), "{order:?}: all die before they are done");
        assert!(doubly_stochastic(&experiment, &fates).0, "{order:?}");
    }
}

/// Nodes that die just when the link is cut start again from a checkpoint that is older than the cut: they need
/// messages that only the other end of the link has, and get them over the third node.
#[test]
fn nodes_start_again_from_before_the_cut() {
    let dropped = || -> Tamper {
        Box::new(|from, _, bytes| {
            let frame = Frame::known(bytes).expect("a frame");
            match frame.kind {
                FrameKind::Forwarded => Vec::new(),
                _ => vec![(from, bytes.to_vec())],
            }
        })
    };
    let orders = (0..27).map(|n| vec![n / 9, n / 3 % 3, n % 3]);
    let orders: Vec<_> = orders.chain([vec![0], vec![1], vec![0, 1], vec![1, 0]]).collect();
    let experiment = tracking_on(3, 200, 150);
    // Its messages are shorter than a request.
    let short = tracking_of(1, 3, 200, 150);
    let mut stalled = 0;
    for (first, every) in [(1.0, 0.1), (1.2, 0.7)] {
        for order in &orders {
            let run = |experiment: &Experiment, tamper| {
                let deaths = one_after_the_other(order, first, every);
                let cuts = cut_for_good((0, 1), 1.0);
                let faults = Faults { cuts, deaths, connects: true, ..Faults::default() };
                let setup = Setup::new(experiment, 1, faults, TestPolicy::Skip(PATIENCE));
                Setup { tamper, deadline: 60.0, ..setup }.run()
            };
            let fates = run(&experiment, None);
            let ended = |fate: &Fate| fate.done.as_ref().err().map(ToString::to_string);
            let lost: Vec<_> = fates.iter().filter_map(ended).collect();
            assert!(lost.is_empty(), "{order:?} from {first}: {lost:?}");
            let (sound, count) = doubly_stochastic(&experiment, &fates);
            assert!(sound && count > 20, "{order:?} from {first}: {count} skipped");
            if order.len() < 3 {
                let fates = run(&experiment, Some(dropped()));
                stalled += fates.iter().filter(|fate| fate.done.is_err()).count();
                let lost: Vec<_> = run(&short, None).iter().filter_map(ended).collect();
                assert!(lost.is_empty(), "short messages, {order:?} from {first}: {lost:?}");
            }
        }
    }
    assert!(stalled > 0, "no run needed the third node");
}

/// The same on networks, cuts and restarts that are drawn, some of them with losses.
#[test]
fn nodes_start_again_at_any_time_while_a_link_is_cut() {
    let (mut lives, mut skips) = (0, 0);
    for seed in seeds("LOPA_RESTARTS", 0..200) {
        let mut stream = Stream::new(seed, Purpose::Tuning, 3);
        let nodes = 3 + stream.below(3);
        let every = [5, 50, 500][stream.below(3)];
        let mut experiment = tracking_on(nodes, 300 + stream.below(300), every);
        if stream.unit() < 0.3 {
            let sets = [format!("network.nodes={nodes}"), "network.graph=complete".into()];
            experiment.network = read(PERSONAL, &sets).network;
        }
        let link = stream.below(nodes);
        let link = (link, (link + 1) % nodes);
        let since = [0.0, 1.0][stream.below(2)];
        let deaths = (0..2 + stream.below(6)).map(|_| Death {
            node: stream.below(nodes),
            at: seconds(since + stream.between(0.0, 16.0)),
            downtime: seconds(stream.between(0.0, 3.0)),
        });
        let mut deaths: Vec<Death> = deaths.collect();
        deaths.sort_by_key(|death| death.at);
        let loss = [0.0, 0.0, 0.05][stream.below(3)];
        let cuts = cut_for_good(link, since);
        let calm = seconds(1e9);
        let faults = Faults { cuts, deaths, loss, calm, connects: true, ..Faults::default() };
        let fates = Setup::new(&experiment, seed, faults, TestPolicy::Skip(PATIENCE)).run();
        outcomes(&fates, seed);
        let (sound, count) = doubly_stochastic(&experiment, &fates);
        assert!(sound, "seed {seed}: W was not the same at both ends of a link");
        lives += fates.iter().map(|fate| fate.lives - 1).sum::<usize>();
        skips += count;
    }
    assert!(lives > 300 && skips > 10_000, "{lives} restarts, {skips} skipped: too few");
}

/// The bug that the protocol prevents: the follower of a skipped link uses it.
fn one_way() -> Tamper {
    Box::new(|from, _, bytes| {
        let frame = Frame::known(bytes).expect("a frame");
        if frame.kind != FrameKind::Notice {
            return vec![(from, bytes.to_vec())];
        }
        let mut payload = frame.payload.to_vec();
        payload[24..].chunks_exact_mut(24).for_each(|decided| decided[16] = 1);
        let run = std::array::from_fn(|at| bytes[8 + at]);
        let decider = usize::from(payload[0]);
        let frame = Frame { payload: &payload, ..frame };
        vec![(from, frame.to_bytes(&run, |bytes| sign(decider, bytes)))]
    })
}

#[test]
fn one_way_skipping_is_caught() {
    let experiment = tracking(800);
    let setup = Setup::new(
        &experiment,
        1,
        Faults { cuts: Vec::new(), ..lossy() },
        TestPolicy::Skip(PATIENCE),
    );
    let fates = Setup { tamper: Some(one_way()), ..setup }.run();
    assert!(!doubly_stochastic(&experiment, &fates).0, "the two ends' accounts must differ");
    assert!(grad_phi_sq(&fates) > 1e-6, "{:e}", grad_phi_sq(&fates));
    for fate in &fates {
        let warnings = &fate.disk.lock().unwrap().warnings;
        assert!(warnings.iter().any(|text| text.contains("wrong point")), "{warnings:?}");
    }
}

/// Collects warnings.
#[derive(Default)]
struct Warnings(Vec<String>);

impl Listener for Warnings {
    fn warn(&mut self, text: &str) {
        self.0.push(text.into());
    }
}

#[test]
fn no_warning_without_cause() {
    for text in [PERSONAL, GLOBAL] {
        for precision in ["f32", "f64"] {
            let sets = [format!("run.precision={precision}"), "run.iterations=400".into()];
            let never = AtomicBool::new(false);
            let context =
                Context { pool: None, data_dir: "".into(), interrupt: &never, probe: None };
            let mut warnings = Warnings::default();
            read(text, &sets).run_with(&context, &mut (), &mut warnings).unwrap();
            warnings.0.retain(|text| text.contains("wrong point"));
            assert_eq!(warnings.0, [""; 0]);
        }
    }
}

/// A replica never recovers a skipped message: compressed messages are refused by name.
#[test]
fn compressed_messages_cannot_be_skipped() {
    let read = |sets: &[&str]| {
        let mut sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        sets.extend(["network.nodes=3".into(), "run.iterations=3".into()]);
        crate::read(PERSONAL, &sets)
    };
    let run = |experiment: &Experiment| {
        Setup::new(experiment, 1, Faults::default(), TestPolicy::Skip(PATIENCE)).run()
    };
    for fate in run(&read(&["messages.compress='bf16'"])) {
        assert_eq!(fate.done.unwrap_err().id, "config/messages-skipped");
    }
    for fate in run(&read(&["messages.compress={name='bf16',feedback=false}"])) {
        fate.done.unwrap_or_else(|error| panic!("{error}"));
    }
}
