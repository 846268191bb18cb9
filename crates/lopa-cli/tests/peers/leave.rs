//! `--policy leave`: one of three is killed, for good or not, the others finish, with it or without, and every file says so.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::send_signal;
use crate::trio::{NAMES, QUADRATIC, Trio, text};

const LEAVE: [&str; 4] = ["--policy", "leave", "--silence", "6"];

/// Long enough to kill a node in the middle.
fn long() -> String {
    let long = QUADRATIC.replace("iterations = 40", "iterations = 8000");
    long.replace("graph = \"path\"", "graph = \"ring\"")
}

fn wait_for(trio: &Trio, name: &str, wanted: impl Fn(&Value) -> bool) {
    let start = Instant::now();
    loop {
        let done = trio.folder.lopa(&["status", &format!("runs/{name}"), "--format", "json"]);
        if done.code == 0 && wanted(&done.json()[0]) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{}{}", done.stdout, done.stderr);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The patients of three hospitals, as the program has them.
const HOSPITALS: [&str; 3] = [
    include_str!("../../../lopa-data/assets/heart/processed.cleveland.data"),
    include_str!("../../../lopa-data/assets/heart/processed.hungarian.data"),
    include_str!("../../../lopa-data/assets/heart/processed.va.data"),
];

const HEART: &str = r#"schema = 1
name = "hearts"

[problem]
name = "representation"
hidden = [8]
activation = "tanh"
ridge = 0.02

[data]
name = "csv"
path = "{node}.csv"
nodes = ["alice", "bob", "carol"]
label = "disease"
classes = ["healthy", "ill"]
missing = "mean"
scaling = "standardise"
holdout = 0.33

[network]
nodes = 3
graph = "complete"

[run]
iterations = 5000
batch = 8
evaluations = 5
exact = "never"

[checkpoint]
iterations = 10

[[algorithm]]
name = "lopa-gt"
"#;

/// Three hospitals with a file each.
fn hospitals() -> Trio {
    let trio = Trio::new(HEART);
    for (name, rows) in NAMES.iter().zip(HOSPITALS) {
        let mut table = String::from(
            "age,sex,cp,trestbps,chol,fbs,restecg,thalach,exang,oldpeak,slope,ca,thal,disease\n",
        );
        for row in rows.lines() {
            let (values, grade) = row.rsplit_once(',').unwrap();
            let disease = if grade == "0" { "healthy" } else { "ill" };
            table += &format!("{values},{disease}\n");
        }
        std::fs::write(trio.folder.path().join(format!("{name}.csv")), table).unwrap();
    }
    trio
}

/// What a node's folder says about a run that carol left.
fn check_folder(trio: &Trio, name: &str) {
    let folder = trio.run_folder(name).unwrap();
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    assert!(read("manifest.json").contains("\"left\""), "{name}");
    assert!(read("results.json").contains("\"chapters\""), "{name}");
    assert!(read("metrics.jsonl").lines().last().unwrap().contains("\"members\":2"), "{name}");
    let page = folder.join("report.html");
    let args = ["report", folder.to_str().unwrap(), "--out", page.to_str().unwrap()];
    trio.folder.lopa(&args).good();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("not all nodes took part: from iteration 0 on alice, bob, carol"));
    let status = trio.folder.lopa(&["status", &format!("runs/{name}")]).good().stdout;
    let carol = status.lines().find(|line| line.contains("carol")).unwrap();
    assert!(carol.contains("left"), "{status}");
    let model = folder.join("models/lopa-gt-seed1.safetensors");
    let model = std::fs::read(model).unwrap();
    assert!(String::from_utf8_lossy(&model).contains("chapters"), "{name}");
}

#[test]
fn two_of_three_hospitals_finish_after_the_third_is_killed_for_good() {
    let trio = hospitals();
    let mut nodes = NAMES.map(|name| trio.start(name, &LEAVE));
    wait_for(&trio, "alice", |status| status["iteration"].as_u64().is_some_and(|k| k > 20));
    nodes[2].kill().unwrap();
    nodes[2].wait().unwrap();
    let [alice, bob, _] = nodes;
    let outputs = [alice, bob].map(|node| node.wait_with_output().unwrap());
    let mut digests = Vec::new();
    for (name, output) in NAMES.iter().zip(&outputs) {
        assert!(output.status.success(), "{name}: {}", text(output));
        let said = text(output);
        assert!(said.contains("carol left: the others go on without it, from iteration"), "{said}");
        assert!(said.contains("not all nodes took part"), "{said}");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let parts = found[0]["chapters"].as_array().unwrap();
        assert_eq!(parts.len(), 2, "{found}");
        assert_eq!(parts[0]["members"], serde_json::json!([0, 1, 2]), "{found}");
        assert_eq!(parts[1]["members"], serde_json::json!([0, 1]), "{found}");
        assert!(parts[1]["from"].as_u64().unwrap() >= 10, "{found}");
        assert_eq!(found[0]["iteration"], 5000, "{found}");
        digests.push(found[0]["digest"].clone());
        check_folder(&trio, name);
    }
    assert_eq!(digests[0], digests[1]);
    let alone = trio.alone(&[]);
    assert_ne!(digests[0], alone[0][3], "it looks as if nobody had left");
    // Too late, it is told so, and keeps what it has; or finds nobody any more.
    let late = trio.node("carol", &[&LEAVE[..], &["--deadline", "8"]].concat()).output().unwrap();
    assert_eq!(late.status.code(), Some(6), "{}", text(&late));
}

/// What a node's folder says about a run that carol left and came back to.
fn check_return(trio: &Trio, name: &str) {
    let folder = trio.run_folder(name).unwrap();
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let manifest: Value = serde_json::from_str(&read("manifest.json")).unwrap();
    let parts = &manifest["left"]["lopa-gt-seed1"];
    assert_eq!(parts.as_array().map(Vec::len), Some(3), "{name}: {parts}");
    assert_eq!(parts[2]["back"][0]["node"], 2, "{name}: {parts}");
    assert_eq!(parts[2]["back"][0]["x_of"], 0, "{name}: {parts}");
    assert!(read("metrics.jsonl").lines().last().unwrap().contains("\"members\":3"), "{name}");
    let page = folder.join("report.html");
    let args = ["report", folder.to_str().unwrap(), "--out", page.to_str().unwrap()];
    trio.folder.lopa(&args).good();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("came back with the x of"), "{name}");
    let status = trio.folder.lopa(&["status", &format!("runs/{name}")]).good().stdout;
    let carol = status.lines().find(|line| line.contains("carol ") && !line.contains("is done"));
    assert!(carol.is_some_and(|line| !line.contains("left")), "{status}");
    let model = std::fs::read(folder.join("models/lopa-gt-seed1.safetensors")).unwrap();
    assert!(String::from_utf8_lossy(&model).contains("x_of"), "{name}");
}

#[test]
fn a_node_that_was_killed_and_left_out_comes_back_and_all_finish_alike() {
    let trio = Trio::new(&long());
    let mut nodes = NAMES.map(|name| trio.start(name, &LEAVE));
    wait_for(&trio, "alice", |status| status["iteration"].as_u64().is_some_and(|k| k > 20));
    nodes[2].kill().unwrap();
    nodes[2].wait().unwrap();
    let left = |status: &Value| {
        let nodes = status["nodes"].as_array().unwrap();
        nodes.iter().any(|node| node["name"] == "carol" && node["left"] == true)
    };
    wait_for(&trio, "alice", left);
    let [alice, bob, _] = nodes;
    // Bob sleeps until carol has asked: else the two could be done before.
    send_signal(&bob, "-STOP");
    let log = trio.folder.path().join("carol.log");
    let log_file = std::fs::File::create(&log).unwrap();
    let mut carol = trio.node("carol", &LEAVE).stderr(log_file).spawn().unwrap();
    while !std::fs::read_to_string(&log).unwrap().contains("it asks to come back") {
        let ended = carol.try_wait().unwrap();
        assert!(ended.is_none(), "{}", std::fs::read_to_string(&log).unwrap());
        std::thread::sleep(Duration::from_millis(20));
    }
    send_signal(&bob, "-CONT");
    let mut outputs = [alice, bob, carol].map(|node| node.wait_with_output().unwrap());
    outputs[2].stderr = std::fs::read(&log).unwrap();
    let mut digests = Vec::new();
    for (name, output) in NAMES.iter().zip(&outputs) {
        let said = text(output);
        assert!(output.status.success(), "{name}: {said}");
        assert!(said.contains("carol came back: all go on with it, from iteration"), "{said}");
        assert!(said.contains("not all nodes took part"), "{said}");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let parts = found[0]["chapters"].as_array().unwrap();
        let members: Vec<&Value> = parts.iter().map(|part| &part["members"]).collect();
        let all = serde_json::json!([0, 1, 2]);
        assert_eq!(members, [&all, &serde_json::json!([0, 1]), &all], "{found}");
        let own = parts[2]["back"][0]["own"].as_u64().unwrap();
        assert!(own >= 10 && own <= parts[1]["from"].as_u64().unwrap(), "{found}");
        assert!(parts[2]["from"].as_u64() > parts[1]["from"].as_u64(), "{found}");
        assert_eq!(found[0]["iteration"], 8000, "{found}");
        digests.push(found[0]["digest"].clone());
        check_return(&trio, name);
    }
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    assert_ne!(digests[0], trio.alone(&[])[0][3], "it looks as if nobody had left");
}

#[test]
fn with_nobody_lost_the_digest_is_that_of_one_process() {
    let trio = Trio::new(QUADRATIC);
    let outputs = trio.run(&LEAVE);
    let alone = trio.alone(&[]);
    for output in outputs {
        assert!(output.status.success(), "{}", text(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(crate::trio::results(&found), alone);
        assert!(found[0].get("chapters").is_none(), "{found}");
    }
    let wrong = trio.node("alice", &["--policy", "leave", "--silence", "700"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
}

#[test]
fn a_node_that_says_good_bye_leaves_at_once() {
    let trio = Trio::new(&long());
    let mut nodes = NAMES.map(|name| trio.start(name, &["--policy", "leave", "--silence", "50"]));
    wait_for(&trio, "alice", |status| status["iteration"].as_u64().is_some_and(|k| k > 20));
    nodes[2].kill().unwrap();
    nodes[2].wait().unwrap();
    let left = trio.node("carol", &["--leave", "--silence", "50"]).output().unwrap();
    assert_eq!(left.status.code(), Some(0), "{}", text(&left));
    assert!(text(&left).contains("this node has left"), "{}", text(&left));
    let [alice, bob, _] = nodes;
    for node in [alice, bob] {
        let output = node.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found[0]["chapters"][1]["members"], serde_json::json!([0, 1]), "{found}");
    }
}
