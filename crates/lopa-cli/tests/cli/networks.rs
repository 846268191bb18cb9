//! Changing graphs and virtual seconds, as a user meets them.

use crate::program::{Folder, QUADRATIC};

const CHANGING: &str = "
name = 'changing'
problem = { name = 'quadratic', n = 3, p = 2 }
network = { nodes = 8, graph = 'one-peer-exponential' }
time = { compute = 'measured', links = 'home' }
run = { iterations = 40, evaluations = 4, seeds = [1, 2] }
algorithm = [
  { name = 'lopa-gt', alpha = 0.05, beta = 0.2, lambda = 0.2 },
  { name = 'spdb', alpha = 0.05, beta = 0.2, lambda = 0.2 },
]
";

#[test]
fn commands_say_what_rounds_do() {
    let folder = Folder::with(&[("c.toml", CHANGING)]);
    let args = ["graph", "show", "one-peer-exponential", "-m", "8"];
    let shown = folder.lopa(&args).good();
    assert!(shown.stdout.contains("rho per round"), "{}", shown.stdout);
    assert!(shown.stderr.contains("a window of 3 rounds"), "{}", shown.stderr);
    let json = folder.lopa(&[&args[..], &["--format", "json"]].concat()).good().json();
    assert_eq!((&json["rounds"]["window"], &json["rounds"]["messages"]), (&3.into(), &1.0.into()));
    assert_eq!(json["analysis"]["degree_max"], 3);
    let directed = folder.lopa(&["graph", "check", "one-peer-exponential", "-m", "7"]).good();
    assert!(directed.stderr.contains("one direction"), "{}", directed.stderr);
    let edges = ["graph", "check", "random-edges", "-m", "9", "--with", "base=\"ring\""];
    assert!(folder.lopa(&edges).good().stdout.contains("rho of a window"));
    let check = folder.lopa(&["check", "c.toml"]).good();
    assert!(check.stderr.contains("over windows of 3 rounds"), "{}", check.stderr);
    let dry = folder.lopa(&["run", "c.toml", "--dry-run"]).good();
    assert!(dry.stderr.contains("over windows of 3"), "{}", dry.stderr);
    for (args, id) in [
        (&["graph", "make", "random-matching", "-m", "6"][..], "network/changing"),
        (&["graph", "audit", "random-matching", "-m", "6"], "network/changing"),
        (&["theory", "constants", "c.toml", "--set", "time.compute=0"], "theory/changing-graph"),
    ] {
        let done = folder.lopa(&[args, &["--format", "json"]].concat());
        assert!(done.code != 0 && done.stderr.contains(id), "{args:?}: {}", done.stderr);
    }
}

/// Measured once, written down, resumed with; a column of tables, an axis of the report.
#[test]
fn virtual_seconds_are_everywhere() {
    let folder = Folder::with(&[("c.toml", CHANGING)]);
    let done = folder.lopa(&["run", "c.toml"]).good();
    assert!(done.stdout.contains("virtual s"), "{}", done.stdout);
    assert!(done.stderr.contains("measured on this machine"), "{}", done.stderr);
    assert!(done.stderr.contains("spdb: it is known to converge"), "{}", done.stderr);
    let run = folder.run_folder();
    let resolved = folder.read(run.join("resolved.toml"));
    assert!(resolved.contains("gradient = ") && !resolved.contains("measured"), "{resolved}");
    let rows = folder.read(run.join("metrics.jsonl"));
    let times: Vec<f64> = rows
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|row| row["virtual_seconds"].as_f64().unwrap())
        .collect();
    // Forty rounds of at least 10 ms.
    assert!(times.iter().any(|&seconds| seconds > 0.4), "{times:?}");
    let path = run.to_str().unwrap();
    let compared = folder.lopa(&["compare", path]).good();
    assert!(compared.stdout.contains("virtual_seconds"), "{}", compared.stdout);
    folder.lopa(&["report", path, "-o", "r.html"]).good();
    assert!(folder.read("r.html").contains("Virtual seconds"));
    assert!(folder.read("r.html").contains("over 3 rounds"));
}

#[test]
fn graph_commands_take_the_network_of_an_experiment() {
    let folder = Folder::with(&[("e.toml", QUADRATIC)]);
    for command in ["show", "check", "audit"] {
        let json = ["--format", "json"];
        let kind = ["graph", command, "ring", "-m", "4", "-w", "lazy-metropolis"];
        let same = folder.lopa(&[&kind[..], &json].concat()).good().stdout;
        let found = folder.lopa(&[&["graph", command, "e.toml"][..], &json].concat()).good().stdout;
        assert_eq!(found, same, "{command}");
        let other = ["graph", command, "e.toml", "-w", "metropolis"];
        let kind = ["graph", command, "ring", "-m", "4"];
        let same = folder.lopa(&[&kind[..], &json].concat()).good().stdout;
        assert_eq!(folder.lopa(&[&other[..], &json].concat()).good().stdout, same, "{command}");
    }
    // Random graphs are those of the experiment's first seed.
    let random = QUADRATIC
        .replace("graph = \"ring\"", "graph = { name = \"erdos-renyi\", p = 0.7 }")
        .replace("iterations = 6", "iterations = 6\nseeds = [5, 6]");
    folder.write("random.toml", random.as_bytes());
    let found = folder.lopa(&["graph", "show", "random.toml"]).good().stdout;
    let kind = "graph show erdos-renyi -m 4 --with p=0.7 -w lazy-metropolis --seed 5";
    let kind: Vec<&str> = kind.split(' ').collect();
    assert_eq!(found, folder.lopa(&kind).good().stdout);
    // A file that is neither is refused as before.
    folder.write("no.toml", b"network = 3");
    assert_eq!(folder.lopa(&["graph", "show", "no.toml"]).code, 2);
}
