//! Nodes that are killed and restarted: nothing is lost, and no other node rolls back.

use std::process::{Child, Stdio};
use std::time::Duration;

use lopa::math::random::{Purpose, Stream};

use crate::trio::{NAMES, QUADRATIC, Trio};

/// Long enough to be killed many times.
const LONG: [&str; 4] = ["--set", "run.iterations=1500", "--set", "run.evaluations=5"];
const KILLS: usize = 100;

/// Starts a node; its standard error is appended to a file.
fn start(trio: &Trio, name: &str) -> Child {
    let log = trio.folder.path().join(format!("{name}.log"));
    let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
    trio.node(name, &LONG).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

/// Whether a node has finished; it must not fail.
fn ended(trio: &Trio, name: &str, node: &mut Child) -> bool {
    match node.try_wait().unwrap() {
        None => false,
        Some(status) => {
            let log = trio.folder.read(format!("{name}.log"));
            assert!(status.success(), "{name}: {status}\n{log}");
            true
        }
    }
}

/// Kills nodes of one run at random instants and restarts them; returns the number of kills.
fn one_run(random: &mut Stream, max: usize) -> usize {
    let trio = Trio::new(QUADRATIC);
    let want = trio.alone(&LONG);
    let mut nodes = NAMES.map(|name| start(&trio, name));
    let mut kills = 0;
    while kills < max {
        std::thread::sleep(Duration::from_millis(random.below(250) as u64));
        let who = random.below(3);
        if (0..3).all(|i| ended(&trio, NAMES[i], &mut nodes[i])) {
            break;
        }
        if ended(&trio, NAMES[who], &mut nodes[who]) {
            continue;
        }
        nodes[who].kill().unwrap();
        nodes[who].wait().unwrap();
        kills += 1;
        // A node killed after its results were written has nothing more to do.
        if trio.done(NAMES[who]).is_none() {
            nodes[who] = start(&trio, NAMES[who]);
        }
    }
    for (name, node) in NAMES.iter().zip(&mut nodes) {
        node.wait().unwrap();
        let log = || trio.folder.read(format!("{name}.log"));
        assert_eq!(trio.done(name), Some(want.clone()), "{name}: {}", log());
    }
    kills
}

#[test]
fn a_hundred_kills_at_random_instants_change_nothing() {
    let mut random = Stream::new(6, Purpose::Data, 0);
    let mut kills = 0;
    while kills < KILLS {
        kills += one_run(&mut random, 40.min(KILLS - kills));
    }
}
