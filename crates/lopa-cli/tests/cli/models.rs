//! `lopa predict` and `lopa evaluate`.

use std::path::Path;

use serde_json::Value;

use crate::program::{Folder, QUADRATIC, blobs, blobs_folder};

/// The blobs' experiment, run.
fn trained() -> (Folder, String) {
    let folder = blobs_folder();
    folder.lopa(&["run", "e.toml"]).good();
    let run = folder.run_folder().display().to_string();
    (folder, run)
}

/// The share of predictions that match the file.
fn accuracy(predicted: &[&str]) -> f64 {
    let text = blobs();
    let truth: Vec<&str> =
        text.lines().skip(1).map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(truth.len(), predicted.len());
    let right = truth.iter().zip(predicted).filter(|(truth, predicted)| truth == predicted);
    right.count() as f64 / truth.len() as f64
}

#[test]
fn predictions_are_as_accurate_as_evaluation_says() {
    let (folder, run) = trained();
    let choice = ["--algorithm", "lopa-gt", "--node", "2", "--seed", "4", "--input", "blobs.csv"];
    let with = |command: &'static str, more: &[&'static str]| {
        folder.lopa(&[&[command, run.as_str()][..], &choice, more].concat()).good()
    };
    let printed = with("predict", &[]);
    let classes: Vec<&str> = printed.stdout.lines().collect();
    let json = with("predict", &["--format", "json"]).json();
    for (row, entry) in json.as_array().unwrap().iter().enumerate() {
        assert_eq!(entry, &serde_json::json!({ "row": row, "class": classes[row] }));
    }
    let evaluated = with("evaluate", &["--format", "json"]).json();
    assert_eq!(evaluated[0]["nodes"][0]["accuracy"].as_f64().unwrap(), accuracy(&classes));
    assert!(accuracy(&classes) > 0.6, "the blobs lie far apart: {}", accuracy(&classes));
    let text = with("evaluate", &[]).stdout;
    assert!(text.contains(&format!("accuracy {:.4}", accuracy(&classes))), "{text}");
    assert!(text.lines().any(|line| line.starts_with("green") && line.contains(" 20 ")), "{text}");

    // Without labels, under another name, in another format: the same predictions.
    let bare: String =
        blobs().lines().map(|line| line.rsplit_once(',').unwrap().0.to_string() + "\n").collect();
    folder.write("bare.tsv", bare.replace(',', "\t").as_bytes());
    let pairs = bare.lines().skip(1).map(|line| {
        let (x, y) = line.split_once(',').unwrap();
        format!("1:{x} 2:{y}\n")
    });
    folder.write("bare.svm", pairs.collect::<String>().as_bytes());
    for file in ["bare.tsv", "bare.svm"] {
        let mut args = [&["predict", run.as_str()][..], &choice].concat();
        *args.last_mut().unwrap() = file;
        assert_eq!(folder.lopa(&args).good().stdout, printed.stdout, "{file}");
    }
}

#[test]
fn every_node_is_evaluated_unless_one_is_named() {
    let (folder, run) = trained();
    let args = ["evaluate", run.as_str(), "--input", "blobs.csv"];
    let json = folder.lopa(&[&args[..], &["--format", "json"]].concat()).good().json();
    assert_eq!(json.as_array().unwrap().len(), 2);
    for entry in json.as_array().unwrap() {
        assert_eq!((&entry["seed"], &entry["rows"]), (&3.into(), &60.into()));
        let nodes: Vec<f64> = entry["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n["accuracy"].as_f64().unwrap())
            .collect();
        assert_eq!(nodes.len(), 3);
        let mean = nodes.iter().sum::<f64>() / 3.0;
        assert!((entry["accuracy"].as_f64().unwrap() - mean).abs() < 1e-12);
        assert_eq!(
            entry["accuracy_max"].as_f64().unwrap(),
            nodes.iter().copied().fold(0.0, f64::max)
        );
        for node in entry["nodes"].as_array().unwrap() {
            let classes = node["classes"].as_array().unwrap().iter();
            let right: u64 = classes.map(|class| class["right"].as_u64().unwrap()).sum();
            let confusions = node["confusions"].as_array().unwrap().iter();
            let wrong: u64 = confusions.map(|mistake| mistake["rows"].as_u64().unwrap()).sum();
            assert_eq!(right + wrong, 60);
            assert_eq!(node["accuracy"].as_f64().unwrap(), right as f64 / 60.0);
        }
    }
    let text = folder.lopa(&args).good().stdout;
    let first: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(first[0], "node");
    assert_eq!(&first[2..8], ["0", "1", "2", "mean", "min", "max"]);
    assert!(text.contains("calibration error") && text.contains("AUC"), "{text}");
    assert!(text.ends_with("always naming the most frequent class, `blue`: 0.3333\n"), "{text}");
}

#[test]
fn unknown_classes_are_wrong_and_named() {
    let (folder, run) = trained();
    folder.write("other.csv", blobs().replace("green", "grün").as_bytes());
    let args =
        ["evaluate", run.as_str(), "--input", "other.csv", "--node", "0", "--format", "json"];
    let done = folder.lopa(&args).good();
    assert!(done.stderr.contains("20 rows count as wrong"), "{}", done.stderr);
    assert!(done.stderr.contains("`grün`"));
    let json = done.json();
    assert_eq!(json[0]["unknown_labels"], serde_json::json!(["grün"]));
    assert!(json[0]["accuracy"].as_f64().unwrap() <= 40.0 / 60.0);
}

#[test]
fn measured_again_a_run_is_as_it_was() {
    let (folder, run) = trained();
    let results: Value =
        serde_json::from_str(&folder.read(Path::new(&run).join("results.json"))).unwrap();
    let again = folder.lopa(&["evaluate", &run, "--format", "json", "-j", "2"]).good().json();
    for (then, now) in results.as_array().unwrap().iter().zip(again.as_array().unwrap()) {
        for key in
            ["algorithm", "seed", "loss", "train_accuracy", "test_accuracy", "phi", "consensus"]
        {
            assert_eq!(then[key], now[key], "{key}");
        }
        assert_eq!(now["agrees"], true);
    }
    let one = folder.lopa(&["evaluate", &run, "-a", "lopa-gt", "-s", "4", "--format", "json"]);
    assert_eq!(one.good().json(), Value::Array(vec![again[2].clone()]));
    assert!(folder.lopa(&["evaluate", &run]).good().stderr.contains("as the run recorded them"));
}

#[test]
fn what_was_tampered_with_is_found_out() {
    let (folder, run) = trained();
    let path = Path::new(&run).join("results.json");
    let mut results: Value = serde_json::from_str(&folder.read(&path)).unwrap();
    let loss = results[1]["loss"].as_f64().unwrap();
    results[1]["loss"] = (loss * (1.0 + 1e-7)).into();
    folder.write(path.to_str().unwrap(), results.to_string().as_bytes());
    let done = folder.lopa(&["evaluate", &run]);
    assert_eq!(done.code, 5);
    assert!(done.stderr.contains("entry 2 of 4 does not match its checksum"), "{}", done.stderr);
    // Whoever knows of checksums leaves them out; the models still tell.
    for entry in results.as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("check");
    }
    folder.write(path.to_str().unwrap(), results.to_string().as_bytes());
    let done = folder.lopa(&["evaluate", &run, "--format", "json"]);
    assert_eq!(done.code, 8);
    assert!(done.stderr.contains("error[results/mismatch]"), "{}", done.stderr);
    assert!(done.stderr.contains("decaying with seed 3"), "{}", done.stderr);
    let agrees: Vec<_> =
        done.json().as_array().unwrap().iter().map(|run| run["agrees"].clone()).collect();
    assert_eq!(agrees, [true, false, true, true]);
}

#[test]
fn other_data_is_noticed() {
    let (folder, run) = trained();
    folder.write("blobs.csv", blobs().replace("red", "crimson").replace("blue", "red").as_bytes());
    let done = folder.lopa(&["evaluate", &run]);
    assert!(done.stderr.contains("the data is not the data of the run"), "{}", done.stderr);
    assert_eq!(done.code, 8);
}

#[test]
fn quadratics_are_measured_again_too() {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    folder.lopa(&["run", "q.toml", "--seed", "1", "--seed", "2"]).good();
    let run = folder.run_folder().display().to_string();
    let text = folder.lopa(&["evaluate", &run]).good().stdout;
    assert_eq!(text.lines().filter(|line| line.ends_with("yes")).count(), 4, "{text}");
}

#[test]
fn columns_in_another_order_are_matched_by_name() {
    let (folder, run) = trained();
    let reversed = |line: &str| line.rsplit(',').collect::<Vec<_>>().join(",") + "\n";
    folder.write("reversed.csv", blobs().lines().map(reversed).collect::<String>().as_bytes());
    folder.write("renamed.csv", blobs().replacen("x,", "X,", 1).as_bytes());
    let evaluate =
        |file: &str| folder.lopa(&["evaluate", run.as_str(), "--input", file, "--format", "json"]);
    assert_eq!(evaluate("reversed.csv").good().json(), evaluate("blobs.csv").good().json());
    let renamed = evaluate("renamed.csv");
    assert_eq!(renamed.code, 3, "{}", renamed.stderr);
    assert!(renamed.stderr.contains("did you mean `x` by `X`?"), "{}", renamed.stderr);
}

// ---- probabilities and scores ----

#[test]
fn probabilities_are_written_as_csv_and_json() {
    let (folder, run) = trained();
    let choice = ["predict", run.as_str(), "-a", "lopa-gt", "-n", "1", "-i", "blobs.csv"];
    let with = |more: &[&'static str]| folder.lopa(&[&choice[..], more].concat()).good();
    let plain = with(&[]).stdout;
    let csv = with(&["--probabilities"]).stdout;
    let json = with(&["--probabilities", "--format", "json"]).json();
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(head[0], "class");
    for ((line, class), entry) in lines.zip(plain.lines()).zip(json.as_array().unwrap()) {
        let cells: Vec<&str> = line.split(',').collect();
        let p: Vec<f64> = cells[1..].iter().map(|cell| cell.parse().unwrap()).collect();
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{line}");
        let most = (0..3).max_by(|&a, &b| p[a].total_cmp(&p[b])).unwrap();
        assert_eq!((cells[0], head[1 + most]), (class, class));
        assert_eq!(entry["probabilities"][head[1]].as_f64().unwrap(), p[0]);
    }
    for (file, expected) in [("p.csv", csv), ("p.json", format!("{json:#}\n"))] {
        let done = with(&["--probabilities", "-o", file]);
        assert_eq!((done.stdout.as_str(), folder.read(file)), ("", expected), "{file}");
    }
    with(&["-o", "c.csv"]);
    assert_eq!(folder.read("c.csv"), format!("class\n{plain}"));
    let refused = folder.lopa(&[&choice[..], &["-o", "p.xls"]].concat());
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

#[test]
fn one_algorithm_is_scored_by_all_measures() {
    let (folder, run) = trained();
    let args = ["evaluate", run.as_str(), "-a", "lopa-gt", "-i", "blobs.csv"];
    let json = folder.lopa(&[&args[..], &["--format", "json"]].concat()).good().json();
    let measures = ["accuracy", "auc", "log_loss", "calibration_error"];
    for measure in measures {
        let nodes: Vec<f64> =
            (0..3).map(|node| json[0]["nodes"][node][measure].as_f64().unwrap()).collect();
        let mean = nodes.iter().sum::<f64>() / 3.0;
        assert!((json[0][measure].as_f64().unwrap() - mean).abs() < 1e-12, "{measure}");
    }
    assert!(json[0]["auc"].as_f64().unwrap() > 0.8);
    assert_eq!(json[0]["majority"]["accuracy"].as_f64().unwrap(), 1.0 / 3.0);
    let text = folder.lopa(&args).good().stdout;
    assert!(text.starts_with("node"), "{text}");
    // The confusion matrix of three nodes together: 60 rows each.
    let matrix = text.split("\n\n").nth(1).unwrap().lines().skip(2);
    let sum: usize = matrix
        .flat_map(|line| line.split_whitespace().skip(1).map(|cell| cell.parse::<usize>().unwrap()))
        .sum();
    assert_eq!(sum, 180, "{text}");
}

/// The blobs with a column that says which of three hospitals a row is from.
fn hospitals() -> String {
    let line = |(at, line): (usize, &str)| match at {
        0 => format!("hospital,{line}\n"),
        _ => format!("{},{line}\n", ["north", "east", "west"][at % 3]),
    };
    blobs().lines().enumerate().map(line).collect()
}

#[test]
fn nodes_are_named_by_their_groups() {
    let folder = blobs_folder();
    folder.write("blobs.csv", hospitals().as_bytes());
    let group = ["run", "e.toml", "--seed", "3", "--set", "data.group=hospital"];
    folder
        .lopa(&[&group[..], &["--set", "partition=group", "--set", "data.holdout=0.25"]].concat());
    let run = folder.run_folder().display().to_string();
    let predict = |node: &str| {
        folder.lopa(&["predict", &run, "-a", "lopa-gt", "-n", node, "-i", "blobs.csv"])
    };
    assert_eq!(predict("west").good().stdout, predict("2").good().stdout);
    assert_ne!(predict("west").good().stdout, predict("north").good().stdout);
    assert!(predict("west").stderr.contains("node west"), "{}", predict("west").stderr);
    let refused = predict("wets");
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("did you mean `west`?"), "{}", refused.stderr);
    // Without a node, each row is predicted by the model of its own.
    let each = folder.lopa(&["predict", &run, "-a", "lopa-gt", "-i", "blobs.csv"]).good();
    let said = |node: &str| predict(node).stdout.lines().map(str::to_string).collect::<Vec<_>>();
    let by = ["east", "north", "west"].map(said);
    for (row, line) in each.stdout.lines().enumerate() {
        let own = ["north", "east", "west"][(row + 1) % 3];
        let at = ["east", "north", "west"].iter().position(|name| *name == own).unwrap();
        assert_eq!(line, by[at][row], "row {row}");
    }
    folder.write("plain.csv", blobs().as_bytes());
    let none = folder.lopa(&["predict", &run, "-a", "lopa-gt", "-i", "plain.csv"]);
    assert!(none.stderr.contains("east, north, west"), "{}", none.stderr);
    let json =
        folder.lopa(&["evaluate", &run, "-a", "lopa-gt", "-i", "blobs.csv", "--format", "json"]);
    assert_eq!(json.good().json()[0]["nodes"][1]["name"], "north");
}

// ---- whose rows they are ----

/// Each hospital has rows of one colour: its own model is right, and those of the others are right about one of
/// the two colours that they have never seen.
#[test]
fn rows_are_judged_by_the_model_of_their_node() {
    let folder = blobs_folder();
    folder.write("blobs.csv", hospitals().as_bytes());
    let sets = ["data.group=hospital", "partition=group", "data.holdout=0.25", "run.seeds=[3]"];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    folder.lopa(&[&["run", "e.toml"][..], &sets].concat()).good();
    let run = folder.run_folder().display().to_string();
    let evaluate = |more: &[&str]| {
        let args = ["evaluate", run.as_str(), "-a", "lopa-gt", "--format", "json"];
        folder.lopa(&[&args[..], more].concat())
    };
    let own = evaluate(&["-i", "blobs.csv"]).good().json();
    assert_eq!((&own[0]["accuracy"], &own[0]["own_rows"]), (&1.0.into(), &true.into()), "{own}");
    assert_eq!((&own[0]["rows"], &own[0]["nodes"][0]["rows"]), (&60.into(), &20.into()));
    assert_eq!(own[0]["majority"]["accuracy"], 1.0, "each node has one class");
    let all = evaluate(&["-i", "blobs.csv", "--all-nodes"]).good().json();
    assert_eq!(all[0]["own_rows"], false);
    assert!((all[0]["accuracy"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9, "{all}");
    assert_eq!(all[0]["nodes"][0]["rows"], 60);
    // A file for each node says the same.
    for name in ["north", "east", "west"] {
        let keep = |line: &&str| line.starts_with("hospital") || line.starts_with(name);
        let bare = |line: &str| line.split_once(',').unwrap().1.to_string() + "\n";
        let rows: String = hospitals().lines().filter(keep).map(bare).collect();
        folder.write(&format!("{name}-test.csv"), rows.as_bytes());
    }
    assert_eq!(evaluate(&["-i", "{node}-test.csv"]).good().json(), own);
    let one = evaluate(&["-i", "{node}-test.csv", "-n", "west"]).good().json();
    assert_eq!((&one[0]["rows"], &one[0]["accuracy"]), (&20.into(), &1.0.into()));
    let table = folder.lopa(&["evaluate", &run, "-i", "blobs.csv"]).good();
    assert!(table.stdout.contains("all rows"), "{}", table.stdout);
    assert!(table.stderr.contains("each judged by the model of its node"), "{}", table.stderr);
    // Another name for the column; a node that is not there; a file that is not there.
    folder.write("renamed.csv", hospitals().replacen("hospital", "site", 1).as_bytes());
    assert_eq!(evaluate(&["-i", "renamed.csv", "--nodes-from", "site"]).good().json(), own);
    folder.write("new.csv", hospitals().replace("west,", "wset,").as_bytes());
    let refused = evaluate(&["-i", "new.csv"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    for said in ["20 rows belong to no node", "`wset`", "did you mean `west`?"] {
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    let missing = evaluate(&["-i", "{node}-nothing.csv"]);
    assert!(missing.code == 3 && missing.stderr.contains("east-nothing.csv"), "{}", missing.stderr);
}

/// More groups than nodes: two of them share a node.
#[test]
fn groups_that_share_a_node_find_it() {
    let folder = blobs_folder();
    folder.write("blobs.csv", hospitals().as_bytes());
    let sets = ["data.group=hospital", "partition=group", "network.nodes=2", "run.seeds=[3]"];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    folder.lopa(&[&["run", "e.toml"][..], &sets].concat()).good();
    let run = folder.run_folder().display().to_string();
    let args = ["evaluate", run.as_str(), "-a", "lopa-gt", "-i", "blobs.csv", "--format", "json"];
    let json = folder.lopa(&args).good().json();
    let rows: Vec<u64> =
        [0, 1].map(|node| json[0]["nodes"][node]["rows"].as_u64().unwrap()).to_vec();
    assert!(rows == [20, 40] || rows == [40, 20], "{json}");
    assert!(json[0]["accuracy_of_all_rows"].as_f64().unwrap() > 0.9, "{json}");
}

// ---- rows that nodes hold out, and the majority class ----

#[test]
fn the_summary_ends_with_the_majority_class() {
    let folder = blobs_folder();
    let done = folder.lopa(&["run", "e.toml", "--set", "data.holdout=0.25"]).good();
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(lines[0].contains("own classes") && lines[0].contains("own rows"), "{}", done.stdout);
    let last = lines.iter().find(|line| line.starts_with("majority class"));
    let last = last.unwrap_or_else(|| panic!("{}", done.stdout));
    assert!(last.contains("0.333"), "{last}");
    let run = folder.run_folder().display().to_string();
    assert!(folder.lopa(&["evaluate", &run]).good().stdout.contains("own rows"));
}

// ---- a node that was not there ----

#[test]
fn a_newcomer_gets_a_model_that_predicts() {
    let (folder, run) = trained();
    let rows = blobs();
    let new: Vec<&str> = rows.lines().take(46).collect();
    folder.write("clinic.csv", (new.join("\n") + "\n").as_bytes());
    let args = ["adapt", run.as_str(), "-a", "lopa-gt", "-i", "clinic.csv", "-o", "m.safetensors"];
    let json = folder.lopa(&[&args[..], &["--format", "json"]].concat()).good().json();
    assert_eq!((&json["rows"], &json["folds"]), (&45.into(), &5.into()));
    for who in ["adapted", "alone", "mean"] {
        assert!(json[who]["accuracy"].as_f64().unwrap() > 0.5, "{json}");
        let classes = json[who]["classes"].as_array().unwrap().iter();
        assert_eq!(classes.map(|class| class["rows"].as_u64().unwrap()).sum::<u64>(), 45);
    }
    assert_eq!(json["solved"], true);
    // The same again, to the bit.
    let first = std::fs::read(folder.path().join("m.safetensors")).unwrap();
    let done = folder.lopa(&args).good();
    assert_eq!(first, std::fs::read(folder.path().join("m.safetensors")).unwrap());
    assert!(done.stdout.contains("alone: a linear model"), "{}", done.stdout);
    assert!(done.stderr.contains("next: lopa predict m.safetensors"), "{}", done.stderr);
    // It is a model of one node, which is named after its file.
    let predicted = folder.lopa(&["predict", "m.safetensors", "-i", "blobs.csv"]).good();
    assert!(predicted.stderr.contains("node clinic"), "{}", predicted.stderr);
    let classes: Vec<&str> = predicted.stdout.lines().collect();
    let evaluated = folder.lopa(&["evaluate", "m.safetensors", "-i", "blobs.csv"]).good();
    let expected = format!("accuracy {:.4}", accuracy(&classes));
    assert!(evaluated.stdout.contains(&expected), "{}", evaluated.stdout);
    folder.lopa(&["export", "m.safetensors", "--to", "onnx", "-o", "m.onnx"]).good();
    assert!(folder.path().join("m.onnx").is_file());
}

#[test]
fn newcomers_that_cannot_be_served_are_refused() {
    let (folder, run) = trained();
    folder.write("other.csv", blobs().replace("green", "grün").as_bytes());
    folder.write("few.csv", blobs().lines().take(4).collect::<Vec<_>>().join("\n").as_bytes());
    for (file, id) in [("other.csv", "data/unknown-class"), ("few.csv", "data/too-few-samples")] {
        let done = folder.lopa(&["adapt", &run, "-a", "lopa-gt", "-i", file]);
        assert!(done.code == 3 && done.stderr.contains(id), "{} {}", done.code, done.stderr);
    }
    let several = folder.lopa(&["adapt", &run, "-i", "blobs.csv"]);
    assert!(several.stderr.contains("--algorithm"), "{}", several.stderr);
}

#[test]
fn a_last_column_that_holds_no_classes_is_not_taken_for_labels() {
    let (folder, run) = trained();
    let line = |(at, line): (usize, &str)| match line.rsplit_once(',') {
        Some((features, _)) => format!("{at},{features}\n"),
        None => unreachable!("every line has a comma"),
    };
    let rows: String = blobs().lines().enumerate().skip(1).map(line).collect();
    folder.write("numbered.csv", rows.as_bytes());
    folder.write("named.csv", format!("x,y,weight\n{rows}").as_bytes());
    let known: String = blobs().lines().skip(1).map(|line| line.to_string() + "\n").collect();
    folder.write("known.csv", known.as_bytes());
    let on = |command: &str, input: &str, more: &[&str]| {
        let args = [command, &run, "-a", "lopa-gt", "-n", "0", "-i", input];
        folder.lopa(&[&args[..], more].concat())
    };
    let predict = |input: &str, more: &[&str]| on("predict", input, more);
    let refused = ["numbered.csv", "named.csv"]
        .iter()
        .flat_map(|input| ["predict", "evaluate"].map(|command| on(command, input, &[])));
    for refused in refused {
        assert_eq!(refused.code, 3, "{}{}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains("error[data/no-labels]"), "{}", refused.stderr);
        assert!(refused.stderr.contains("--label"), "{}", refused.stderr);
        assert!(refused.stderr.contains("row 1"), "{}", refused.stderr);
    }
    // A column of labels that the user names is not a feature.
    let said = predict("numbered.csv", &["--label", "0"]).good().stdout;
    assert_eq!(predict("known.csv", &[]).good().stdout, said);
    // A plausible guess is reported.
    let guessed = on("evaluate", "known.csv", &[]).good();
    assert!(guessed.stderr.contains("labels: the last column"), "{}", guessed.stderr);
    let told = on("evaluate", "known.csv", &["--label", "-1"]).good();
    assert!(told.stdout == guessed.stdout && !told.stderr.contains("labels:"), "{}", told.stderr);
}

#[test]
fn measured_again_accuracies_stand_above_the_majority() {
    let (folder, run) = trained();
    let text = folder.lopa(&["evaluate", &run]).good().stdout;
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("majority")).collect();
    assert_eq!(lines.len(), 2, "one for each seed: {text}");
    assert!(lines[0].contains(" 3 ") && lines[1].contains(" 4 "), "{text}");
    let again = folder.lopa(&["evaluate", &run, "--format", "json"]).good().json();
    let results: Value =
        serde_json::from_str(&folder.read(Path::new(&run).join("results.json"))).unwrap();
    for (then, now) in results.as_array().unwrap().iter().zip(again.as_array().unwrap()) {
        assert!(now["test_majority"].is_f64() && now["test_majority"] == then["test_majority"]);
        assert_eq!(now["diverged"], false);
    }
}
