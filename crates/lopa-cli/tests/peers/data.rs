//! Nodes with their own data files.

use crate::program::blobs;
use crate::trio::{NAMES, Trio, results, text};

const OWN: &str = r#"schema = 1
name = "own"

[problem]
name = "hyperparameter"
start = -4.0

[data]
name = "csv"
path = "{node}.csv"
nodes = ["alice", "bob", "carol"]
classes = ["red", "green", "blue"]

[network]
nodes = 3
graph = "path"

[run]
seeds = [1, 2]
iterations = 20
batch = 4
evaluations = 2

[[algorithm]]
name = "lopa-gt"
alpha = 0.1
beta = 0.4
lambda = 0.4

[[algorithm]]
name = "lopa-lg"
alpha = 0.1
beta = 0.4
lambda = 0.4
"#;

/// The blobs split into three files; Bob's has no blue ones.
fn files() -> [String; 3] {
    let text = blobs();
    let (head, rows) = text.split_once('\n').unwrap();
    let mut files = NAMES.map(|_| format!("{head}\n"));
    for (at, row) in rows.lines().enumerate() {
        let mut node = at / 3 % 3;
        if node == 1 && row.ends_with("blue") {
            node = 2;
        }
        files[node] += &format!("{row}\n");
    }
    files
}

#[test]
fn each_node_needs_its_own_file_only() {
    let trio = Trio::new(OWN);
    let write = |folder: &str| {
        let path = trio.folder.path().join(folder);
        std::fs::create_dir(&path).unwrap();
        NAMES.iter().zip(files()).for_each(|(name, text)| {
            std::fs::write(path.join(format!("{name}.csv")), text).unwrap();
        });
    };
    write("all");
    let want = trio.alone(&["--data", "all"]);
    assert_eq!(want.len(), 4);
    // One folder per node, which contains only its file.
    let start = |(name, text): (&&str, String)| {
        let path = trio.folder.path().join(format!("data-{name}"));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join(format!("{name}.csv")), text).unwrap();
        trio.start(name, &["--data", &format!("data-{name}")])
    };
    let nodes: Vec<_> = NAMES.iter().zip(files()).map(start).collect();
    for (name, node) in NAMES.iter().zip(nodes) {
        let output = node.wait_with_output().unwrap();
        assert!(output.status.success(), "{name}: {}", text(&output));
        assert_eq!(results(&serde_json::from_slice(&output.stdout).unwrap()), want, "{name}");
    }
    // Each node has its own model only.
    let folder = trio.run_folder("bob").unwrap();
    let folder = folder.to_str().unwrap();
    let predict = |node: &str| {
        trio.folder.lopa(&[
            "predict",
            folder,
            "--algorithm",
            "lopa-gt",
            "--node",
            node,
            "--input",
            "all/bob.csv",
        ])
    };
    predict("1").good();
    // And makes its own page of its own file.
    let report = ["report", folder, "--site", "bob", "--data", "data-bob", "--format", "json"];
    let page = trio.folder.lopa(&report).good();
    assert!(!page.stderr.contains("digest differs"), "{}", page.stderr);
    let results =
        std::fs::read_to_string(std::path::Path::new(folder).join("results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    let own = &results[0]["nodes"][1]["test_accuracy"];
    assert_eq!(&page.json()["models"][0]["value"][0], own, "{}", page.stdout);
    assert_eq!(page.json()["models"].as_array().unwrap().len(), 2, "{}", page.stdout);
    let other = predict("0");
    assert_eq!(other.code, 2, "{}", other.stdout);
    assert!(other.stderr.contains("config/not-here"), "{}", other.stderr);
}

#[test]
fn peers_scale_by_whichever_moments_as_one_process_does() {
    let scalings = [
        "scaling = \"standardise\"\nmoments = \"agreed\"",
        "scaling = \"standardise\"\nmoments = \"own\"",
        "scaling = \"tf-idf\"\nmoments = \"agreed\"",
        "scaling = \"standardise\"\nmoments = \"agreed\"\n\n[privacy]\nmasked = true",
    ];
    let mut seen = Vec::new();
    for scaling in scalings {
        let trio = Trio::new(&OWN.replace("[network]", &format!("{scaling}\n\n[network]")));
        for (name, text) in NAMES.iter().zip(files()) {
            trio.folder.write(&format!("{name}.csv"), text.as_bytes());
        }
        let want = trio.alone(&[]);
        for output in trio.run(&[]) {
            assert!(output.status.success(), "{}", text(&output));
            let found = results(&serde_json::from_slice(&output.stdout).unwrap());
            assert_eq!(found, want, "{scaling}");
        }
        // A peer's model scales new rows as the same model of one process does.
        let predict = |run: &std::path::Path| {
            let run = run.to_str().unwrap().to_string();
            let args = ["predict", &run, "-a", "lopa-gt", "--node", "1", "--input", "bob.csv"];
            trio.folder.lopa(&args).good().stdout
        };
        let alone = std::fs::read_dir(trio.folder.path().join("alone")).unwrap();
        let alone = alone.flatten().map(|entry| entry.path()).find(|path| path.is_dir()).unwrap();
        assert_eq!(predict(&trio.run_folder("bob").unwrap()), predict(&alone), "{scaling}");
        seen.push(want);
    }
    assert!(seen[0] != seen[1] && seen[0] != seen[2]);
}

#[test]
fn a_node_killed_while_the_nodes_agree_resumes() {
    let scaling = "scaling = \"standardise\"\nmoments = \"agreed\"\n\n[network]";
    let experiment = OWN.replace("[network]", scaling);
    // Before it has received all messages, or after.
    for seen in ["manifest.json", "agreed"] {
        let trio = Trio::new(&experiment);
        for (name, text) in NAMES.iter().zip(files()) {
            trio.folder.write(&format!("{name}.csv"), text.as_bytes());
        }
        let want = trio.alone(&[]);
        let mut nodes = NAMES.map(|name| trio.start(name, &[]));
        while !trio.run_folder("bob").is_some_and(|folder| folder.join(seen).exists()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        nodes[1].kill().unwrap();
        nodes[1].wait().unwrap();
        if trio.done("bob").is_none() {
            nodes[1] = trio.start("bob", &[]);
        }
        for (name, node) in NAMES.iter().zip(nodes) {
            let output = node.wait_with_output().unwrap();
            assert_eq!(trio.done(name).as_ref(), Some(&want), "{name}, {seen}: {}", text(&output));
        }
    }
}

#[test]
fn a_file_with_other_columns_is_reported_before_the_first_round() {
    let trio = Trio::new(OWN);
    for (name, text) in NAMES.iter().zip(files()) {
        // Bob's file has one more column.
        let widen = |line: &str| match line.starts_with('x') {
            true => format!("w,{line}\n"),
            false => format!("1,{line}\n"),
        };
        let text = if *name == "bob" { text.lines().map(widen).collect() } else { text };
        trio.folder.write(&format!("{name}.csv"), text.as_bytes());
    }
    let (alice, bob) = (trio.start("alice", &[]), trio.start("bob", &[]));
    for node in [alice, bob] {
        let output = node.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{}", text(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("entries of x"));
    }
    let whole = trio.folder.lopa(&["run", "e.toml"]);
    assert_eq!(whole.code, 3);
    assert!(whole.stderr.contains("data/shape-mismatch"), "{}", whole.stderr);
}

/// Starts all three with Bob's labels changed.
fn with_labels_of_bob(trio: &Trio, change: &dyn Fn(&str) -> String) -> Vec<std::process::Output> {
    for (name, text) in NAMES.iter().zip(files()) {
        let text = if *name == "bob" { change(&text) } else { text };
        trio.folder.write(&format!("{name}.csv"), text.as_bytes());
    }
    trio.run(&[])
}

#[test]
fn labels_that_are_not_listed_are_refused_at_every_node() {
    let trio = Trio::new(OWN);
    let some = |text: &str| text.replacen("red", "Red", 2);
    let all = |text: &str| text.replace("red", "Red").replace("green", "GREEN");
    for change in [&some as &dyn Fn(&str) -> String, &all] {
        for (name, output) in NAMES.iter().zip(with_labels_of_bob(&trio, change)) {
            let said = text(&output);
            assert_eq!(output.status.code(), Some(3), "{name}: {said}");
            for says in ["data/unknown-label", "rows of `bob` have labels", "`red`"] {
                assert!(said.contains(says), "{name}: {says}: {said}");
            }
            // Its labels are nobody else's business.
            assert_eq!(said.contains("did you mean"), *name == "bob", "{name}: {said}");
        }
    }
    // Nothing of that is kept: with the labels corrected, the same command runs.
    let done = with_labels_of_bob(&trio, &str::to_string);
    let want = trio.alone(&[]);
    for output in done {
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(results(&serde_json::from_slice(&output.stdout).unwrap()), want);
    }
}

#[test]
fn rows_that_are_left_out_are_told_at_every_node() {
    let drop = "unknown_labels = \"drop\"\n\n[network]";
    let trio = Trio::new(&OWN.replace("[network]", drop));
    for (name, output) in
        NAMES.iter().zip(with_labels_of_bob(&trio, &|text| text.replacen("red", "Red", 2)))
    {
        let said = text(&output);
        assert!(output.status.success(), "{name}: {said}");
        assert!(said.contains("left out: 2 rows of `bob`"), "{name}: {said}");
    }
}

/// A table with its columns in the opposite order.
fn reversed(table: &str) -> String {
    let line = |line: &str| line.rsplit(',').collect::<Vec<_>>().join(",") + "\n";
    table.lines().map(line).collect()
}

#[test]
fn files_with_columns_in_another_order_are_matched_by_name() {
    let experiment = OWN.replace("[network]", "label = \"colour\"\n\n[network]");
    let run = |third: &dyn Fn(&str) -> String| {
        let trio = crate::program::Folder::with(&[("e.toml", &experiment)]);
        for (name, text) in NAMES.iter().zip(files()) {
            let text = if *name == "carol" { third(&text) } else { text };
            trio.write(&format!("{name}.csv"), text.as_bytes());
        }
        trio.lopa(&["run", "e.toml", "--format", "json"])
    };
    let want = results(&run(&str::to_string).good().json());
    assert_eq!(results(&run(&reversed).good().json()), want);
    // Also peers, which have no other file.
    let trio = Trio::new(&experiment);
    for (name, text) in NAMES.iter().zip(files()) {
        let text = if *name == "carol" { reversed(&text) } else { text };
        trio.folder.write(&format!("{name}.csv"), text.as_bytes());
    }
    for output in trio.run(&[]) {
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(results(&serde_json::from_slice(&output.stdout).unwrap()), want);
    }
    let renamed = run(&|text| text.replacen("x,", "w,", 1));
    assert_eq!(renamed.code, 3, "{}", renamed.stderr);
    assert!(
        renamed.stderr.contains("the file of `carol` differs from that of `alice`"),
        "{}",
        renamed.stderr
    );
    assert!(renamed.stderr.contains("`x` is missing"), "{}", renamed.stderr);
}

#[test]
fn mistakes_about_own_files_are_reported() {
    let cases = [
        ("path = \"{node}.csv\"", "path = \"all.csv\"", "no path of it depends on the node"),
        ("nodes = [\"alice\", \"bob\", \"carol\"]\n", "", "does not say which nodes"),
        ("\"bob\", \"carol\"]", "\"bob\"]", "names 2 nodes, and the network has 3"),
        ("\"bob\", \"carol\"]", "\"bob\", \"bob\"]", "bob"),
        ("\"bob\", \"carol\"]", "\"bob\", \"../x\"]", "../x"),
        ("classes = [\"red\", \"green\", \"blue\"]\n", "", "classes"),
        ("[network]", "moments = \"agreed\"\n[network]", "go with a `scaling`"),
        ("[network]", "[partition]\nname = \"iid\"\n\n[network]", "does not fit the data"),
    ];
    for (from, to, says) in cases {
        let trio = crate::program::Folder::with(&[("e.toml", &OWN.replacen(from, to, 1))]);
        let done = trio.lopa(&["check", "e.toml"]);
        assert_eq!(done.code, 2, "{to}: {}", done.stderr);
        assert!(done.stderr.contains(says), "{to}: {}", done.stderr);
    }
}
