//! Neighbours find each other, and stay together, however slow and faulty the network is.

use std::time::Duration;

use lopa::engine::dial::{BACK_OFF, Dialling, Role};
use lopa::math::random::{Purpose, Stream};

use super::connections::{Addresses, Air, Change, Connections, Mistake};
use super::faulty::seconds;
use super::seeds;

/// A network between two machines, faulty up to some time and slow for ever.
struct Slow {
    stream: Stream,
    delay: f64,
    loss: f64,
    cuts: Vec<(usize, f64, f64)>, // from a machine, since, until
    calm: Duration,
}

impl Air for Slow {
    fn arrival(&mut self, now: Duration, from: usize, _: usize) -> Option<Duration> {
        let cut = |&(machine, since, until): &(usize, f64, f64)| {
            machine == from && seconds(since) <= now && now < seconds(until)
        };
        if now < self.calm && (self.cuts.iter().any(cut) || self.stream.unit() < self.loss) {
            return None;
        }
        Some(now + seconds(self.delay * self.stream.between(1.0, 1.2)))
    }

    fn unit(&mut self) -> f64 {
        self.stream.unit()
    }
}

/// Two machines: whether they are connected in the end and have been for a while, and how often a
/// link came up.
fn settles(seed: u64, delay: f64, faulty: bool, mistakes: &[Mistake]) -> (bool, usize) {
    let mut stream = Stream::new(seed, Purpose::Tuning, 4);
    let calm = if faulty { stream.between(10.0, 100.0) } else { 0.0 };
    let mut draw = |max: f64| stream.between(0.0, max);
    let loss = draw(0.2);
    let mut cuts = Vec::new();
    for _ in 0..draw(5.0) as usize {
        let (since, length) = (draw(calm), draw(60.0));
        let from = draw(2.0) as usize;
        cuts.push((from, since, since + length));
        if draw(1.0) < 0.7 {
            cuts.push((1 - from, since, since + length));
        }
    }
    let mut deaths: Vec<(f64, usize)> =
        (0..draw(4.0) as usize).map(|_| (draw(calm), draw(2.0) as usize)).collect();
    deaths.sort_by(|a, b| a.0.total_cmp(&b.0));
    if !faulty {
        deaths.clear();
    }
    let faults = cuts.len() + deaths.len();
    let mut air = Slow { stream, delay, loss, cuts, calm: seconds(calm) };
    let mut all = Connections::new(&[(0, 1)], mistakes);
    for (at, node) in deaths {
        all.advance(seconds(at), &mut air);
        all.kill(node);
        let up = seconds(at + 5.0 * air.unit());
        all.advance(up, &mut air);
        all.start(node, up);
    }
    // Long enough for a link that is lost unnoticed, the longest call and the longest pause.
    let settled = all_quiet(&mut all, &mut air, calm + 60.0);
    let ups = all.changes.iter().filter(|change| change.3 == Change::Up).count();
    // Every fault may cost a link at both ends, and a crossing of calls another.
    (settled, ups / (4 + 4 * faults))
}

fn all_quiet(all: &mut Connections, air: &mut Slow, from: f64) -> bool {
    all.advance(seconds(from), air);
    let connected = all.carries(0, 1);
    let changes = all.changes.len();
    all.advance(seconds(from + 60.0), air);
    connected && all.carries(0, 1) && all.changes.len() == changes
}

#[test]
fn when_faults_stop_neighbours_stay_connected() {
    for seed in seeds("LOPA_DIALS", 0..5000) {
        let mut stream = Stream::new(seed, Purpose::Tuning, 5);
        // One-way delays, from a local network to slower than a satellite.
        let delay = 10f64.powf(stream.between(-3.5, 0.2));
        let (settled, flaps) = settles(seed, delay, true, &[]);
        assert!(settled, "seed {seed}: {delay} s one way");
        assert!(flaps < 4, "seed {seed}: the link comes and goes at {delay} s one way");
    }
}

#[test]
fn a_slow_network_costs_no_second_link() {
    for seed in 0..200 {
        for delay in [0.001, 0.05, 0.2] {
            assert_eq!(settles(seed, delay, false, &[]), (true, 0), "seed {seed}, {delay} s");
        }
        let (settled, flaps) = settles(seed, 0.5, false, &[]);
        assert!(settled && flaps == 0, "seed {seed}");
    }
}

/// How often each of two machines calls on a network that loses nothing.
fn calls(delay: f64, mistakes: &[Mistake]) -> [usize; 2] {
    let stream = Stream::new(1, Purpose::Tuning, 4);
    let mut air = Slow { stream, delay, loss: 0.0, cuts: Vec::new(), calm: Duration::ZERO };
    let mut all = Connections::new(&[(0, 1)], mistakes);
    all.advance(seconds(60.0), &mut air);
    [0, 1].map(|node| all.calls(node))
}

#[test]
fn one_end_calls_once_and_the_other_never() {
    for delay in [0.001, 0.05, 0.2] {
        assert_eq!(calls(delay, &[]), [1, 0], "{delay} s");
        assert_eq!(calls(delay, &[Mistake::BothCall]), [1, 1], "{delay} s");
    }
}

/// How long it takes until two machines are connected again after one has got another address, in seconds.
fn found_again(mover: usize, addresses: Addresses) -> f64 {
    let moved = 30.0;
    let addresses = Addresses { moves: vec![(seconds(moved), mover)], ..addresses };
    let stream = Stream::new(1, Purpose::Tuning, 4);
    let mut air = Slow { stream, delay: 0.05, loss: 0.0, cuts: Vec::new(), calm: Duration::ZERO };
    let mut all = Connections::new(&[(0, 1)], &[]).at(addresses);
    all.advance(seconds(moved - 0.1), &mut air);
    assert!(all.carries(1, 0) && all.carries(0, 1));
    let found = (0..1000).map(|step| 0.1 * f64::from(step)).find(|after| {
        all.advance(seconds(moved + after), &mut air);
        all.carries(1, 0) && all.carries(0, 1)
    });
    found.expect("they find each other again")
}

#[test]
fn a_machine_with_another_address_is_found_again() {
    let named = Addresses { named: true, ..Addresses::default() };
    let relayed = Addresses { relayed: [(0, 1)].into(), ..Addresses::default() };
    // A connection follows the machine that called.
    assert!(found_again(0, Addresses::default()) < 3.0);
    // The other is lost first, and called under its name, or calls itself.
    assert!((8.0..12.0).contains(&found_again(1, named)));
    assert!((12.0..16.0).contains(&found_again(1, Addresses::default())));
    assert_eq!(found_again(1, relayed), 0.0);
}

/// Pauses between the loss of a link and the next call, for links that last this many seconds each.
fn pauses(lasting: f64, jitter: f64) -> Vec<f64> {
    let mut now = Duration::ZERO;
    let mut dialling = Dialling::new(Role::Caller, now);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        now = dialling.due().unwrap();
        dialling.called();
        now += seconds(0.1);
        dialling.up(now);
        dialling.answered(now, jitter);
        assert_eq!(dialling.due(), None, "there is a link");
        now += seconds(lasting);
        dialling.down(now, jitter);
        pauses.push((dialling.due().unwrap() - now).as_secs_f64());
    }
    pauses
}

/// Changes of a link must not undo the pauses that it earned; lasting does.
#[test]
fn a_link_that_comes_and_goes_is_called_less_and_less() {
    let (first, longest) = (BACK_OFF.0.as_secs_f64(), BACK_OFF.1.as_secs_f64());
    for jitter in [0.0, 0.3, 1.0] {
        let share = 0.5 + 0.5 * jitter;
        let pauses = pauses(1.0, jitter);
        assert!(pauses.is_sorted(), "{pauses:?}");
        assert!((pauses[11] - longest * share).abs() < 1e-6, "{pauses:?}");
        assert!(self::pauses(30.0, jitter).iter().all(|pause| *pause <= first * share + 1e-6));
    }
}

/// An earlier bug: both ends called, and each dropped the call that the other had chosen.
#[test]
fn planted_mistakes_in_dialling_are_noticed() {
    let bad = |mistakes: &[Mistake]| {
        let bad = |seed: &u64| {
            let (settled, flaps) = settles(*seed, 0.3, false, mistakes);
            !settled || flaps > 0
        };
        (0..50).filter(bad).count()
    };
    let all = [Mistake::BothCall, Mistake::GivesUp, Mistake::Forgets];
    assert!(bad(&all) > 25, "{} of 50", bad(&all));
    // With either the one caller or the call that is not dropped, all is well.
    assert_eq!(bad(&[Mistake::BothCall, Mistake::Forgets]), 0);
}
