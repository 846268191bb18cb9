//! Nodes whose runs have ended leave soon after each other, although their last messages may be
//! lost.

use lopa::math::random::{Purpose, Stream};

use super::cluster::{Setup, TestPolicy};
use super::faulty::{Cut, Faults, seconds};
use super::{PERSONAL, read, single_process};

/// A little more than the longest time that a node stays for a silent one when all others are done.
const GRACE: f64 = 125.0;

#[test]
fn nodes_leave_soon_after_each_other() {
    let sets = ["network.nodes=3", "network.graph=path", "problem.n=1", "problem.p=2"];
    let more = ["run.iterations=3", "run.evaluations=1", "run.exact=never"];
    let sets: Vec<String> = sets.iter().chain(&more).map(|set| set.to_string()).collect();
    let mut experiment = read(PERSONAL, &sets);
    experiment.algorithms.truncate(1);
    let want = single_process(&experiment).remove(0).digest;
    let mut late = 0;
    for seed in 0..300 {
        let mut stream = Stream::new(seed, Purpose::Tuning, 8);
        let delay = stream.between(0.0, 0.5);
        // For ever, and a partition about when the runs end.
        let mut faults = Faults { loss: 0.3, delay, calm: seconds(1e6), ..Faults::default() };
        let since = seconds(stream.between(0.0, 20.0));
        let until = since + seconds(stream.between(0.0, 60.0));
        for (from, to) in [(0, 1), (1, 0)] {
            faults.cuts.push(Cut { from, to, since, until });
        }
        let policy = if seed % 3 == 0 { TestPolicy::Skip(5.0) } else { TestPolicy::Wait };
        let setup = Setup::new(&experiment, seed, faults, policy);
        let fates = Setup { deadline: 5000.0, ..setup }.run();
        let left: Vec<f64> = fates.iter().map(|fate| fate.left.as_secs_f64()).collect();
        let spread = left.iter().fold(0.0, |most: f64, &at| most.max(at))
            - left.iter().fold(f64::MAX, |least, &at| least.min(at));
        assert!(spread < GRACE, "seed {seed}, {policy:?}: {left:?}");
        late += usize::from(spread > 30.0);
        for fate in fates {
            let done = fate.done.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert!(done[0].digest == want || matches!(policy, TestPolicy::Skip(_)), "seed {seed}");
        }
    }
    // A node that misses the last message of another stays a while.
    assert!(late < 150, "{late} of 300");
}
