//! How nodes end that are stopped, left alone or refused.

use std::process::{Child, Output};
use std::time::Duration;

use crate::program::send_signal;
use crate::trio::{NAMES, QUADRATIC, Trio, text};

/// Long enough to be stopped in the middle.
const LONG: [&str; 4] = ["--set", "run.iterations=100000", "--set", "run.evaluations=2"];

/// Starts all three, and waits until each has written checkpoints.
fn start_all(trio: &Trio, more: &[&str]) -> [Child; 3] {
    let mut nodes = NAMES.map(|name| trio.start(name, more));
    let checkpoints = |name: &str| {
        let folder = trio.run_folder(name).map(|folder| folder.join("checkpoints"));
        folder.and_then(|folder| std::fs::read_dir(folder).ok()).map_or(0, Iterator::count)
    };
    while NAMES.iter().any(|name| checkpoints(name) < 2) {
        for (name, node) in NAMES.iter().zip(&mut nodes) {
            assert!(node.try_wait().unwrap().is_none(), "{name} ended by itself");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    nodes
}

fn ends(node: Child, code: i32, says: &str) -> Output {
    let output = node.wait_with_output().unwrap();
    let said = text(&output) + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(says), "{said}");
    output
}

#[test]
fn a_stopped_node_resumes_later_and_the_others_wait() {
    let some = ["--set", "run.iterations=3000", "--set", "run.evaluations=2"];
    let trio = Trio::new(QUADRATIC);
    let want = trio.alone(&some);
    let [alice, bob, carol] = start_all(&trio, &some);
    send_signal(&bob, "-TERM");
    ends(bob, 143, "run the same command to resume");
    let bob = trio.start("bob", &some);
    for (name, node) in NAMES.iter().zip([alice, bob, carol]) {
        ends(node, 0, "");
        assert_eq!(trio.done(name), Some(want.clone()), "{name}");
    }
}

/// As if killed between writing that it is done and its exit.
#[test]
fn a_node_that_was_done_says_so_again() {
    let trio = Trio::new(QUADRATIC);
    let some = ["--set", "run.iterations=20", "--deadline", "60"];
    let first = trio.run(&some);
    assert!(first.iter().all(|output| output.status.success()), "{}", text(&first[0]));
    let output = trio.node("bob", &some).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(output.stdout, first[1].stdout);
    assert!(text(&output).contains("--resume never"), "{}", text(&output));
    assert_eq!(trio.done("bob"), trio.done("alice"));
}

#[test]
fn nodes_left_alone_end_with_6_and_can_resume() {
    let trio = Trio::new(QUADRATIC);
    let stop = [&LONG[..], &["--policy", "stop"]].concat();
    let [alice, bob, carol] = start_all(&trio, &stop);
    send_signal(&bob, "-TERM");
    ends(bob, 143, "");
    ends(alice, 6, "peers/lost");
    ends(carol, 6, "node 1");
    // A node that never starts is waited for until the deadline.
    let more = [&LONG[..], &["--deadline", "1"]].concat();
    let output = trio.node("alice", &more).output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", text(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("peers/absent"));
}

#[test]
fn different_experiments_are_reported_to_both_ends_key_by_key() {
    let drop = ["--set", "messages.drop=0.1"];
    let cases: [(&[&str], &str, &str); 5] = [
        (
            &["--set", "run.iterations=41"],
            "bob differs: experiment ",
            "`run.iterations` has another value there",
        ),
        (
            &["--set", "network.graph=complete"],
            "bob differs: graph ",
            "`network.graph.name` has another value there",
        ),
        (&["--seed", "7"], "bob differs: experiment ", "`run.seeds` has another value there"),
        (
            &["--set", "algorithm.lopa-gt.alpha=0.004"],
            "bob differs: experiment ",
            "`algorithm.lopa-gt.alpha` has another value there",
        ),
        (&drop, "bob differs: experiment ", "`messages.drop`"),
    ];
    for (more, says, which) in cases {
        let trio = Trio::new(QUADRATIC);
        let (alice, bob) = (trio.start("alice", &[]), trio.start("bob", more));
        for (node, says) in [(alice, says), (bob, "alice differs: ")] {
            let said = ends(node, 7, says);
            let said = text(&said) + &String::from_utf8_lossy(&said.stdout);
            assert!(said.contains(which), "{more:?}: {said}");
        }
    }
}

/// Lines of a node's log have a time and a level, and are JSON where results are; a node that all others
/// leave at the end sees nothing to worry about.
#[test]
fn a_log_has_times_and_levels_and_a_normal_end_reads_like_one() {
    let trio = Trio::new(QUADRATIC);
    let mut plain: Vec<Child> = Vec::new();
    for name in NAMES {
        let args = ["node", "e.toml", "--roster", "roster.toml", "--name", name];
        let mut node = trio.folder.program(&args);
        node.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        plain.push(node.spawn().unwrap());
    }
    for node in plain {
        let said = text(&ends(node, 0, ""));
        assert!(said.contains("link to"), "{said}");
        for line in said.lines() {
            let (time, rest) = line.split_once(' ').unwrap();
            assert!(time.len() == 20 && time.starts_with("20") && time.ends_with('Z'), "{said}");
            assert!(rest.starts_with("info: "), "{said}");
        }
        assert!(
            !["down", "lost", "error", "refused"].iter().any(|word| said.contains(word)),
            "{said}"
        );
    }
    for output in Trio::new(QUADRATIC).run(&[]) {
        let said = text(&output);
        for line in said.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["level"], "info", "{said}");
            assert!(line["time"].is_string() && line["text"].is_string(), "{said}");
        }
    }
    let refused = trio.node("alcie", &[]).output().unwrap();
    let line: serde_json::Value = serde_json::from_str(text(&refused).trim()).unwrap();
    assert_eq!((&line["level"], &line["id"]), (&"error".into(), &"roster/unknown-node".into()));
}

#[test]
fn a_node_must_be_in_the_roster_with_its_own_key() {
    let trio = Trio::new(QUADRATIC);
    let lopa = |args: &[&str]| trio.folder.lopa(args);
    let node = |name: &'static str, key: &'static str| {
        ["node", "e.toml", "--roster", "roster.toml", "--name", name, "--key", key]
    };
    let wrong = lopa(&node("alice", "bob.key"));
    assert_eq!(wrong.code, 7, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("another key for alice"));
    let unknown = lopa(&node("alcie", "alice.key"));
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("did you mean `alice`?"), "{}", unknown.stderr);
    let missing = lopa(&node("alice", "none.key"));
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("lopa key new none.key"), "{}", missing.stderr);
    // Carol is removed, so the roster no longer fits the experiment.
    lopa(&["roster", "remove", "roster.toml", "carol"]).good();
    let left = lopa(&node("alice", "alice.key"));
    assert_eq!(left.code, 2);
    assert!(left.stderr.contains("3 nodes, the roster 2"), "{}", left.stderr);
}

#[test]
fn an_unknown_key_is_refused() {
    let trio = Trio::new(QUADRATIC);
    // Bob has a new key, which only his own roster lists.
    trio.folder.lopa(&["key", "new", "new.key"]).good();
    let new = trio.folder.lopa(&["key", "show", "new.key"]).good().stdout;
    let old = trio.folder.lopa(&["key", "show", "bob.key"]).good().stdout;
    let roster = trio.folder.read("roster.toml").replace(old.trim(), new.trim());
    trio.folder.write("mine.toml", roster.as_bytes());
    let alice = trio.start("alice", &[]);
    let args = ["node", "e.toml", "--roster", "mine.toml", "--name", "bob", "--key", "new.key"];
    let bob = trio.folder.program(&[&args[..], &["--deadline", "3"]].concat()).output().unwrap();
    assert_eq!(bob.status.code(), Some(7), "{}", text(&bob));
    assert!(text(&bob).contains("alice does not know our key"), "{}", text(&bob));
    send_signal(&alice, "-TERM");
    let alice = alice.wait_with_output().unwrap();
    assert_eq!(alice.status.code(), Some(143));
    let stranger = format!("{} is not a neighbour's key", new.trim());
    assert_eq!(text(&alice).matches(&stranger).count(), 1, "{}", text(&alice));
}
