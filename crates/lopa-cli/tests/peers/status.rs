//! `lopa status` and `--metrics`: what each node knows of all.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::trio::{NAMES, QUADRATIC, Trio};

/// How long a test waits for a status before it fails.
const LIMIT: Duration = Duration::from_secs(180);

/// The status at a node, when it is as wanted: a node that is slow for a moment may be told as another state.
fn status(trio: &Trio, name: &str, wanted: &dyn Fn(&Value) -> bool) -> Value {
    told(trio, name, &["--format", "json"], &|text| {
        let found = serde_json::from_str::<Value>(text).map_or(Value::Null, |all| all[0].clone());
        wanted(&found).then_some(found)
    })
}

/// What `wanted` takes from the standard output of `lopa status`, as soon as it finds it there.
fn told<T>(trio: &Trio, name: &str, args: &[&str], wanted: &dyn Fn(&str) -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        let done = trio.folder.lopa(&[&["status", &format!("runs/{name}")], args].concat());
        if let Some(found) = wanted(&done.stdout) {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "{name}: {} {}", done.stdout, done.stderr);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The answer to a request.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn every_node_names_the_one_that_was_killed() {
    let endless = QUADRATIC.replace("iterations = 40", "iterations = 10000000");
    let trio = Trio::new(&endless);
    let start = |name: &&str| match *name {
        "alice" => trio.start(name, &["--metrics", "0"]),
        name => trio.start(name, &[]),
    };
    let mut nodes: Vec<_> = NAMES.iter().map(start).collect();
    // On the path, alice has no link to carol.
    let far = |found: &Value| found["nodes"][2]["iteration"].as_u64().is_some_and(|k| k > 20);
    let running = status(&trio, "alice", &far);
    assert_eq!(running["state"], "running", "{running}");
    assert_eq!(running["lopa"], env!("CARGO_PKG_VERSION"));
    let links: Vec<&str> =
        running["nodes"].as_array().unwrap().iter().map(|n| n["link"].as_str().unwrap()).collect();
    assert_eq!(links, ["self", "up", "none"], "{running}");
    nodes[2].kill().unwrap();
    nodes[2].wait().unwrap();
    // Until its neighbour states that it is silent, carol seems to compute.
    let waits = |found: &Value| {
        let waiting = &found["waiting"];
        waiting["name"] == "carol"
            && waiting["cause"] != "computes"
            && waiting["nodes_waiting"] == 2
    };
    for (name, by) in [("alice", ", says bob"), ("bob", "")] {
        let found = status(&trio, name, &waits);
        assert_eq!(found["waiting"]["reported_by"], "bob", "{found}");
        assert!(found["waiting"]["silent_seconds"].as_f64().unwrap() > 3.0, "{found}");
        told(&trio, name, &[], &|words| {
            let (_, after) = words.split_once(&format!("{name} waits for carol, silent for "))?;
            let (seconds, after) = after.split_once(" s")?;
            seconds.parse::<u64>().ok()?;
            let others = after.contains("; the others wait with us");
            (after.starts_with(by) && others).then_some(())
        });
    }
    let address = running["metrics"].as_str().unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let metrics = get(address, "/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    for line in ["lopa_waiting_seconds{node=\"carol\"} ", "lopa_link_up{node=\"bob\"} 1"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert!(get(address, "/").starts_with("HTTP/1.1 404"));
    // The page that follows the run shows all nodes.
    let run = trio.run_folder("alice").unwrap();
    let mut server = trio.folder.program(&["report", "--live", run.to_str().unwrap(), "-q"]);
    let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let page = line.trim().trim_start_matches("http://").trim_end_matches('/').to_string();
    let shown = get(&page, "/nodes");
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(shown.contains("alice waits for carol") && shown.contains(">bob</th>"), "{shown}");
    for mut node in nodes.into_iter().take(2) {
        node.kill().unwrap();
        node.wait().unwrap();
    }
    // All at once, from the folder of all nodes.
    let all = trio.folder.lopa(&["status", "--format", "json"]).good().json();
    assert_eq!(all.as_array().unwrap().len(), 3, "{all}");
    let none = trio.folder.lopa(&["status", "nowhere"]);
    assert_eq!(none.code, 5, "{}", none.stderr);
}

#[test]
fn a_status_says_that_a_node_is_done() {
    let trio = Trio::new(QUADRATIC);
    assert!(trio.run(&[]).iter().all(|output| output.status.success()));
    let done = status(&trio, "bob", &|found| found["state"] == "done");
    assert_eq!(done["iteration"], 40, "{done}");
    assert_eq!(done["measured"]["iteration"], 40, "{done}");
    assert!(done["measured"]["values"]["loss"].is_number(), "{done}");
    assert!(trio.folder.lopa(&["status"]).good().stdout.contains("bob is done"));
}

#[test]
fn a_status_says_that_a_node_could_not_start() {
    let trio = Trio::new(QUADRATIC);
    // An address that is not of this host.
    let failed = trio.node("bob", &["--listen", "192.0.2.1:9"]).output().unwrap();
    assert_eq!(failed.status.code(), Some(2), "{}", crate::trio::text(&failed));
    assert_eq!(status(&trio, "bob", &|found| found["state"] != "connecting")["state"], "failed");
}
