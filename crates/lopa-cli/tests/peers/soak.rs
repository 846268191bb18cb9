//! Real nodes on a bad network: delays, loss, partitions and kills together. They end with the digest of
//! one process, and soon after each other.
//!
//! QUIC finds a direct way round a proxy where there is one, and a soak then tests nothing. Hence every node
//! is on a host of its own (a network namespace) that sees no other host, and each round asserts that what
//! left the hosts are the packets that were delayed and dropped.
//!
//! One short round by default; `LOPA_SOAK=3600` runs rounds for an hour, the first of them with half a
//! second of delay, 5 % of loss and a partition of a minute.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lopa::math::random::{Purpose, Stream};

use crate::namespaces::Hosts;
use crate::trio::{NAMES, QUADRATIC, Trio};
use crate::weather::{Way, Weather};

/// The events of a round.
#[derive(Debug, Clone)]
struct Round {
    delay: f64, // seconds, one way
    loss: f64,
    iterations: usize,
    /// When a link is cut and for how long, in seconds: 0 between alice and bob, 1 between bob and carol,
    /// 2 both.
    cuts: Vec<(f64, f64, usize)>,
    /// When a node is killed.
    kills: Vec<(f64, usize)>,
    policy: &'static [&'static str],
}

/// How it ended.
struct Ended {
    seconds: f64,
    /// Seconds from the first exit to the last.
    spread: f64,
    packets: u64,
    lost: u64,
    /// How many times each node's links came up.
    ups: [usize; 3],
    kills: usize,
}

/// What hosts and their network are called, for each test that makes some.
type Hostnames = (&'static str, &'static str);

struct Network {
    hosts: Hosts,
    name: &'static str,
    trio: Trio,
    ways: Vec<(usize, usize, Way)>,
}

impl Network {
    /// Every node is on its own host, and has proxy addresses of the others: nodes that can reach
    /// each other would discover it and connect directly.
    fn new(weather: Weather, seed: u64, (name, network): Hostnames) -> Option<Network> {
        let hosts = Hosts::apart(name, network)?;
        assert!(hosts.are_apart(), "hosts see each other: the proxies would be avoided");
        let theirs = [1, 2, 3].map(|host| format!("{network}.{host}.1"));
        let trio = Trio::at(QUADRATIC, &theirs.each_ref().map(String::as_str));
        let ours = |node: usize| format!("{network}.{}.254", node + 1);
        let roster = trio.folder.read("roster.toml");
        let table: toml::Table = roster.parse().unwrap();
        let address =
            |node: usize| table["node"][node]["addresses"][0].as_str().unwrap().to_string();
        let mut ways = Vec::new();
        for (from, name) in NAMES.iter().enumerate() {
            let mut own = roster.clone();
            for to in (0..3).filter(|&to| to != from) {
                let seed = seed * 9 + (3 * from + to) as u64;
                let (near, far) = (ours(from), ours(to));
                let way = Way::new((&near, &far), address(to).parse().unwrap(), weather, seed);
                own = own.replace(&address(to), &way.address.to_string());
                ways.push((from, to, way));
            }
            trio.folder.write(&format!("{name}.toml"), own.as_bytes());
        }
        Some(Network { hosts, name, trio, ways })
    }

    fn start(&self, name: &str, more: &[&str]) -> Child {
        let roster = format!("{name}.toml");
        let args = ["node", "e.toml", "--roster", &roster, "--name", name, "--deadline", "600"];
        let log = self.trio.folder.path().join(format!("{name}.log"));
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let node = self.trio.folder.program(&[&args[..], more].concat());
        let host = 1 + NAMES.iter().position(|known| *known == name).unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{}{host}", self.name)]);
        command.arg(node.get_program()).args(node.get_args()).current_dir(self.trio.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    /// Asserts that the run's packets went through the proxies, and returns their number and that of those
    /// that were lost.
    fn carried(&self) -> (u64, u64) {
        let sum = |of: fn(&Way) -> u64| self.ways.iter().map(|(.., way)| of(way)).sum::<u64>();
        let packets = sum(|way| way.packets.load(Ordering::Relaxed));
        // The rest is how hosts find addresses, and says that no program listens.
        let sent = self.hosts.sent();
        assert!(10 * packets >= 9 * sent, "{packets} of {sent} packets went through the proxies");
        (packets, sum(|way| way.lost.load(Ordering::Relaxed)))
    }

    /// Cuts or restores links according to the plan after this many seconds.
    fn cut(&self, cuts: &[(f64, f64, usize)], after: f64) {
        for (from, to, way) in &self.ways {
            let link = from + to; // 1: alice and bob; 3: bob and carol
            let is = |&(since, length, which): &(f64, f64, usize)| {
                let of = which == 2 || link == 1 + 2 * which;
                of && since <= after && after < since + length
            };
            way.cut(cuts.iter().any(is));
        }
    }

    fn log(&self, name: &str) -> String {
        self.trio.folder.read(format!("{name}.log"))
    }
}

/// Runs a round, where hosts can be made.
fn run(round: &Round, seed: u64, hosts: Hostnames) -> Option<Ended> {
    let weather = Weather { delay: Duration::from_secs_f64(round.delay), loss: round.loss };
    let network = Network::new(weather, seed, hosts)?;
    let iterations = format!("run.iterations={}", round.iterations);
    let more = [&["--set", &iterations, "--set", "run.evaluations=2"][..], round.policy].concat();
    let want = network.trio.alone(&more[..4]);
    let begin = Instant::now();
    let mut nodes: Vec<Option<Child>> =
        NAMES.iter().map(|name| Some(network.start(name, &more))).collect();
    let mut kills = round.kills.clone();
    let mut exits = Vec::new();
    while nodes.iter().any(Option::is_some) {
        std::thread::sleep(Duration::from_millis(20));
        let after = begin.elapsed().as_secs_f64();
        assert!(after < 1800.0, "{round:?}: still running");
        network.cut(&round.cuts, after);
        for (name, slot) in NAMES.iter().zip(&mut nodes) {
            let Some(node) = slot else { continue };
            if let Some(status) = node.try_wait().unwrap() {
                assert!(status.success(), "{round:?}, {name}: {status}\n{}", network.log(name));
                exits.push(after);
                *slot = None;
            }
        }
        while let Some(at) = kills.iter().position(|(due, _)| *due <= after) {
            let (_, who) = kills.remove(at);
            if let Some(mut node) = nodes[who].take() {
                node.kill().unwrap();
                node.wait().unwrap();
                // Also one that was done: it must report this again.
                nodes[who] = Some(network.start(NAMES[who], &more));
            }
        }
    }
    if round.policy.is_empty() {
        for name in NAMES {
            let done = network.trio.done(name);
            assert_eq!(done, Some(want.clone()), "{round:?}, {name}: {}", network.log(name));
        }
    } else {
        // Links were skipped: no digest is the right one, but all agree on when it ended.
        let stop = |name: &str| network.trio.done(name).map(|runs| runs[0][2].clone());
        let first = stop(NAMES[0]);
        assert!(first.is_some() && NAMES.iter().all(|name| stop(name) == first), "{round:?}");
    }
    let (seconds, least) = (begin.elapsed().as_secs_f64(), round.iterations as f64 * round.delay);
    // Every iteration waits for a message, unless links are skipped.
    assert!(!round.policy.is_empty() || seconds > least, "{round:?}: {seconds} s is too fast");
    let (packets, lost) = network.carried();
    assert!(round.loss == 0.0 || lost > 0, "{round:?}: no packet was lost");
    Some(Ended {
        seconds,
        spread: exits[exits.len() - 1] - exits[0],
        packets,
        lost,
        ups: NAMES.map(|name| network.log(name).matches(" is up").count()),
        kills: round.kills.len() - kills.len(),
    })
}

const HOSTS: Hostnames = ("lopas", "10.79");

/// Half a second of delay, 5 % of loss, a partition of a minute.
fn minute() -> Round {
    let cuts = vec![(15.0, 60.0, 2)];
    Round { delay: 0.5, loss: 0.05, iterations: 40, cuts, kills: Vec::new(), policy: &[] }
}

fn drawn(random: &mut Stream) -> Round {
    let delay = [0.0, 0.02, 0.1, 0.3, 0.5][random.below(5)];
    let iterations = if delay < 0.1 { 400 } else { 60 };
    // About how long it takes without cuts.
    let length = 10.0 + iterations as f64 * (delay + 0.01) * 1.5;
    let mut cut = || (random.between(0.0, length), random.between(0.5, 60.0), random.below(3));
    let cuts = [cut(), cut(), cut()][random.below(4)..].to_vec();
    let mut kill = |_| (random.between(0.0, length), random.below(3));
    let kills = (0..8).map(&mut kill).collect::<Vec<_>>()[random.below(9)..].to_vec();
    let skips: &[&str] = &["--policy", "skip-link", "--patience", "5"];
    let policy = if random.unit() < 0.25 { skips } else { &[] };
    Round { delay, loss: random.between(0.0, 0.05), iterations, cuts, kills, policy }
}

/// Calls that cross on a slow network leave one link, which stays.
#[test]
fn neighbours_on_a_slow_network_connect_and_stay_connected() {
    let (cuts, kills) = (Vec::new(), Vec::new());
    let round = Round { delay: 0.3, loss: 0.0, iterations: 12, cuts, kills, policy: &[] };
    let Some(ended) = run(&round, 0, ("lopaw", "10.80")) else { return };
    let [alice, bob, carol] = ended.ups;
    // Of two calls that cross, one may come up before the other takes its place.
    assert!((1..=2).contains(&alice) && (2..=4).contains(&bob) && (1..=2).contains(&carol));
}

#[test]
fn nodes_on_a_bad_network_end_with_the_digest_of_one_process() {
    let seconds: Option<f64> = std::env::var("LOPA_SOAK").ok().map(|text| text.parse().unwrap());
    let Some(seconds) = seconds else {
        let (cuts, kills) = (vec![(1.0, 2.0, 2)], vec![(1.5, 1)]);
        run(&Round { delay: 0.02, loss: 0.05, iterations: 60, cuts, kills, policy: &[] }, 0, HOSTS);
        return;
    };
    let mut random = Stream::new(17, Purpose::Data, 1);
    let begin = Instant::now();
    for number in 0.. {
        let round = if number == 0 { minute() } else { drawn(&mut random) };
        let Some(ended) = run(&round, number, HOSTS) else { return };
        let Ended { seconds: took, spread, packets, lost, kills, .. } = ended;
        println!(
            "round {number}: {took:.0} s, exits within {spread:.1} s, {lost} of {packets} packets lost, \
             {kills} kills: {round:?}"
        );
        if begin.elapsed().as_secs_f64() > seconds {
            return;
        }
    }
}
