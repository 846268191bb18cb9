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
    assert_eq!(&first[2..], ["0", "1", "2", "mean", "min", "max"]);
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
