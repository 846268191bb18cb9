//! `virtual_seconds` where links and nodes fail, against a simulation of events: nodes that send, wait and
//! compute, and messages that arrive, each at its own time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::engine::messages::Failures;
use lopa::engine::{pieces, wire_bytes};
use lopa::experiment::{Experiment, Registries};
use lopa::math::random::{Purpose, Stream};
use lopa::run::trace::Row;
use lopa::run::{Context, Listener};

#[derive(Default)]
struct Rows(Vec<Row>);

impl Listener for Rows {
    fn row(&mut self, _: &str, _: u64, row: &Row) {
        self.0.push(row.clone());
    }
}

fn read(text: &str) -> Experiment {
    Experiment::read(&Source::new("test", text), &Registries::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// When the last node is done, in nanoseconds, after 0, 1, … iterations.
fn clocks(experiment: &Experiment) -> Vec<u64> {
    let never = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &never, probe: None };
    let mut rows = Rows::default();
    experiment.run_with(&context, &mut (), &mut rows).unwrap();
    rows.0.iter().map(|row| (row.virtual_seconds.unwrap() * 1e9).round() as u64).collect()
}

/// An event simulation of a run.
struct World {
    failures: Failures,
    /// By round: the neighbours of each node.
    rounds: Vec<Vec<Vec<usize>>>,
    /// Bytes of a message in each exchange of an iteration; 0 if nothing is exchanged.
    bytes: Vec<u64>,
    iterations: u64,
    /// Nanoseconds: latency of a message, time per byte, computing at the start and in the first
    /// exchange of an iteration.
    latency: Vec<Vec<u64>>,
    byte: u64,
    uplink: u64,
    compute: u64,
}

/// Where a node is: the iteration, and the exchange in it.
type At = (u64, usize);

/// An event: a node finishes its computation, or a message arrives.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives { to: usize, from: usize, at: At },
    Done { node: usize },
}

struct Node {
    at: At,
    waits: bool,
    /// For each neighbour, all that has arrived.
    here: BTreeMap<usize, Vec<At>>,
    /// When it was done with each iteration.
    done: Vec<u64>,
}

impl World {
    fn awake(&self, k: u64, node: usize) -> bool {
        self.failures.awake(k, node)
    }

    /// The neighbours with which a node exchanges messages, and whether these are late.
    fn up(&self, (k, e): At, node: usize) -> Vec<(usize, bool)> {
        if self.bytes[e] == 0 || !self.awake(k, node) {
            return Vec::new();
        }
        let said = self.bytes.iter().filter(|&&bytes| bytes > 0).count() as u64;
        let before = self.bytes[..e].iter().filter(|&&bytes| bytes > 0).count() as u64;
        let near = &self.rounds[(k * said + before) as usize][node];
        let awake = near.iter().copied().filter(|&other| self.awake(k, other));
        let fate = |other: usize| self.failures.fate(k, (node.min(other), node.max(other)));
        awake.filter(|&other| fate(other).up).map(|other| (other, fate(other).late)).collect()
    }

    /// The messages that a node needs before it can continue: from each neighbour, all up to the
    /// one that it uses.
    fn needs(&self, (k, e): At, node: usize) -> Vec<(usize, At)> {
        let mut needs = Vec::new();
        for (other, late) in self.up((k, e), node) {
            let carried = |k: u64| self.up((k, e), node).iter().any(|&(name, _)| name == other);
            let newest = match late {
                false => k,
                true if k > 0 && carried(k - 1) => k - 1,
                true => continue,
            };
            needs.extend((0..=newest).filter(|&k| carried(k)).map(|k| (other, (k, e))));
        }
        needs
    }

    /// When the last node is done with each iteration.
    fn live(&self, m: usize) -> Vec<u64> {
        let mut nodes: Vec<Node> = (0..m)
            .map(|_| Node { at: (0, 0), waits: false, here: BTreeMap::new(), done: Vec::new() })
            .collect();
        let mut events = BinaryHeap::new();
        (0..m).for_each(|node| events.push(Reverse((self.compute, Event::Done { node }))));
        let mut started = vec![false; m];
        while let Some(Reverse((now, event))) = events.pop() {
            let node = match event {
                Event::Arrives { to, from, at } => {
                    nodes[to].here.entry(from).or_default().push(at);
                    to
                }
                Event::Done { node } => {
                    let own = &mut nodes[node];
                    if started[node] {
                        own.at = match own.at {
                            (k, e) if e + 1 < self.bytes.len() => (k, e + 1),
                            (k, _) => {
                                own.done.push(now);
                                (k + 1, 0)
                            }
                        };
                    } else {
                        started[node] = true;
                        own.done.push(now);
                    }
                    if own.at.0 == self.iterations {
                        own.waits = false;
                        continue;
                    }
                    own.waits = true;
                    let (k, e) = own.at;
                    let near = self.up((k, e), node);
                    let bytes = self.bytes[e];
                    for &(to, _) in &near {
                        let way = (bytes * self.byte).max(near.len() as u64 * bytes * self.uplink);
                        let there = now + self.latency[node][to] + way;
                        events
                            .push(Reverse((there, Event::Arrives { to, from: node, at: (k, e) })));
                    }
                    node
                }
            };
            let own = &mut nodes[node];
            let has =
                |(from, at): &(usize, At)| own.here.get(from).is_some_and(|here| here.contains(at));
            if own.waits && self.needs(own.at, node).iter().all(has) {
                own.waits = false;
                let (k, e) = own.at;
                let works = e == 0 && self.awake(k, node);
                let taken = if works { self.compute } else { 0 };
                events.push(Reverse((now + taken, Event::Done { node })));
            }
        }
        let last = |k: usize| nodes.iter().map(|node| node.done[k]).max().unwrap();
        (0..=self.iterations as usize).map(last).collect()
    }
}

const GRAPHS: [&str; 6] = [
    "'ring'",
    "'star'",
    "{ name = 'erdos-renyi', p = 0.5 }",
    "'random-matching'",
    "{ name = 'random-edges', base = 'complete', p = 0.5 }",
    "{ name = 'sequence', graphs = ['path', 'complete'], every = 2 }",
];

/// Options in random words; at least one of them.
fn drawn(stream: &mut Stream) -> String {
    let all = [
        format!("drop = {}", stream.between(0.05, 0.8)),
        format!("late = {}", stream.between(0.05, 0.9)),
        format!("active = {}", stream.between(0.3, 0.95)),
        format!("bursts = {{ begin = {}, end = 0.4 }}", stream.between(0.05, 0.6)),
        "compress = { name = 'top-k', share = 0.5 }".into(),
        "clip = 1".into(),
    ];
    let first = stream.below(4);
    let chosen = all.iter().enumerate().filter(|&(at, _)| at == first || stream.unit() < 0.4);
    chosen.map(|(_, key)| key.as_str()).collect::<Vec<_>>().join(", ")
}

/// Algorithms with one exchange per iteration, and with several of different lengths. Computing
/// takes time only with a single exchange.
const ALGORITHMS: [(&str, u64); 4] = [
    ("name = 'lopa-lg', alpha = 0.001, beta = 0.1, lambda = 0.1", 5),
    ("name = 'lopa-gt', alpha = 0.001, beta = 0.1, lambda = 0.1", 5),
    ("name = 'ma-dsbo', alpha = 0.001, beta = 0.1, lambda = 0.1, inner_steps = 2, hv_steps = 2", 0),
    ("name = 'slam', alpha = 0.001, beta = 0.1, lambda = 0.1, hv_steps = 2, inverse = 'shia'", 0),
];

#[test]
fn clocks_are_those_of_a_simulation_of_events() {
    const ITERATIONS: u64 = 12;
    let (mut slept, mut late, mut several) = (0, 0, 0);
    for seed in 0..250 {
        let mut stream = Stream::new(seed, Purpose::Tuning, 7);
        let m = 3 + stream.below(4);
        let (algorithm, calls) = ALGORITHMS[stream.below(ALGORITHMS.len())];
        let scope = if calls == 0 { "global" } else { "personal" };
        let (graph, messages) = (GRAPHS[stream.below(GRAPHS.len())], drawn(&mut stream));
        let slow = stream.below(30) as u64; // milliseconds more on every link of node 0
        let compute = if calls > 0 { 1 + stream.below(4) as u64 } else { 0 };
        let (byte, uplink) = (stream.below(2) as u64 * 1000, stream.below(2) as u64 * 500);
        let rate = |nanoseconds: u64| match nanoseconds {
            0 => String::new(),
            each => format!("{:e}", 1e9 / each as f64),
        };
        let mut links = vec!["latency = 0.01".to_string()];
        for (key, each) in [("bandwidth", byte), ("uplink", uplink)] {
            if each > 0 {
                links.push(format!("{key} = {}", rate(each)));
            }
        }
        let world = |more: &str| {
            read(&format!(
                "scope = '{scope}'
                 problem = {{ name = 'quadratic', n = 3, p = 2 }}
                 network = {{ nodes = {m}, graph = {graph} }}
                 time = {{ compute = {}, links = {{ {}{more} }} }}
                 messages = {{ {messages} }}
                 run = {{ iterations = {ITERATIONS}, evaluations = {ITERATIONS}, exact = 'never', seeds = [{seed}] }}
                 algorithm = [{{ {algorithm} }}]",
                compute as f64 / 1e3,
                links.join(", ")
            ))
        };
        let graph_of = world("").world(None, seed).unwrap();
        let near = graph_of.graph.neighbours(0).iter();
        let special = |other: &usize| {
            format!("{{ between = [0, {other}], latency = {} }}", (10 + slow) as f64 / 1e3)
        };
        let table: Vec<String> = near.map(special).collect();
        let experiment = world(&format!(", table = [{}]", table.join(", ")));
        let setup = crate::common::bench::Bench::of(experiment.clone());
        let exchanges = pieces(&*setup.nodes::<f64>()[0].algorithm);
        let rules = experiment.messages.as_ref().unwrap();
        let bytes: Vec<u64> = exchanges
            .iter()
            .map(|lengths| {
                wire_bytes::<f64>(rules, lengths) as u64 * u64::from(!lengths.is_empty())
            })
            .collect();
        let count = ITERATIONS * bytes.iter().filter(|&&bytes| bytes > 0).count() as u64;
        let round = |round: u64| -> Vec<Vec<usize>> {
            let others = |mixing: &lopa::network::Mixing| {
                let near =
                    |i: usize| mixing.row(i).iter().map(|&(j, _)| j).filter(|&j| j != i).collect();
                (0..m).map(near).collect()
            };
            match &graph_of.rounds {
                None => others(&graph_of.mixing),
                Some(rounds) => {
                    let mut cursor = rounds.cursor();
                    cursor.go(round);
                    others(cursor.mixing())
                }
            }
        };
        let way = |i: usize, j: usize| (10 + if i == 0 || j == 0 { slow } else { 0 }) * 1_000_000;
        let by_events = World {
            failures: Failures::new(&rules.rules, seed, m),
            rounds: (0..count).map(round).collect(),
            bytes,
            iterations: ITERATIONS,
            latency: (0..m).map(|i| (0..m).map(|j| way(i, j)).collect()).collect(),
            byte,
            uplink,
            compute: calls * compute * 1_000_000,
        };
        assert_eq!(
            clocks(&experiment),
            by_events.live(m),
            "seed {seed}, {graph}, {messages}, {algorithm}"
        );
        slept += u32::from(rules.rules.active < 1.0);
        late += u32::from(rules.rules.late > 0.0);
        several += u32::from(by_events.bytes.len() > 1);
    }
    assert!(slept > 50 && late > 50 && several > 50, "{slept}, {late}, {several}");
}

/// By hand: a path of three, 5 ms of computing, a latency of 10 ms. Failures follow from the seed,
/// at the same addresses; a link that is down, or an inactive node, causes no waiting.
#[test]
fn nobody_waits_for_what_does_not_come() {
    let text = |messages: &str| {
        format!(
            "problem = {{ name = 'quadratic', n = 2, p = 3 }}
             network = {{ nodes = 2, graph = 'path', weights = 'lazy-metropolis' }}
             time = {{ compute = 0.001, links = {{ latency = 0.01 }} }}
             messages = {{ {messages} }}
             run = {{ iterations = 40, evaluations = 40, exact = 'never' }}
             algorithm = [{{ name = 'lopa-lg', alpha = 0.01, beta = 0.1, lambda = 0.1 }}]"
        )
    };
    let moved = |experiment: &Experiment| {
        let clocks = clocks(experiment);
        clocks.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000).collect::<Vec<_>>()
    };
    let experiment = read(&text("drop = 0.4"));
    let failures = Failures::new(&experiment.messages.as_ref().unwrap().rules, 1, 2);
    let want: Vec<u64> =
        (0..40).map(|k| if failures.fate(k, (0, 1)).up { 15 } else { 5 }).collect();
    assert!(want.contains(&5) && want.contains(&15));
    assert_eq!(moved(&experiment), want);
    // Two nodes that are never late, and two that are: these wait for the message of the previous
    // iteration, if at all. Both nodes are equal, and have computed for 5 ms while it was in
    // transit.
    let experiment = read(&text("late = 0.4"));
    let failures = Failures::new(&experiment.messages.as_ref().unwrap().rules, 1, 2);
    let late = |k: u64| failures.fate(k, (0, 1)).late;
    let mut pending = 0; // milliseconds from the start of this iteration to the late message
    let want: Vec<u64> = (0..40)
        .map(|k| {
            let wait = match (late(k), k > 0) {
                (false, _) => 10,
                (true, true) => pending,
                (true, false) => 0,
            };
            pending = if late(k) { 10 - wait.min(10) - 5 } else { 0 };
            wait + 5
        })
        .collect();
    assert!((0..39).any(|k| late(k) && late(k + 1)));
    assert_eq!(moved(&experiment), want);
}
