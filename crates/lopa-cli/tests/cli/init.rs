//! `lopa init`: from a file to an experiment that runs well at once.

use crate::program::{Folder, blobs};

/// Two overlapping classes of unequal size in columns of very different scales, with a hospital and a
/// label in the middle; no random numbers.
pub fn patients(rows: usize, hospitals: bool) -> String {
    let mut text = String::from(if hospitals {
        "age,diagnosis,hospital,marker,dose\n"
    } else {
        "age,diagnosis,marker,dose\n"
    });
    for i in 0..rows {
        let off = |step: f64| (i as f64 * step).fract() - 0.5;
        let ill = i % 3 == 0;
        let shift = if ill { 1.0 } else { 0.0 };
        let age = 50.0 + 30.0 * off(0.618_034) + 12.0 * shift;
        let marker = 2000.0 * (shift + 1.2 * off(0.414_214));
        let dose = 0.001 * (off(0.732_051) - 0.4 * shift);
        let name = if ill { "ill" } else { "well" };
        let place = ["north", "south", "west"][i % 7 % 3];
        text += &match hospitals {
            true => format!("{age:.3},{name},{place},{marker:.3},{dose:.6}\n"),
            false => format!("{age:.3},{name},{marker:.3},{dose:.6}\n"),
        };
    }
    text
}

/// Checks and runs the file; the accuracy of LoPA-GT on rows that nodes hold out, the mean over seeds.
fn accuracy(folder: &Folder, file: &str) -> f64 {
    measured(folder, file, "holdout_accuracy")
}

/// Checks and runs the file; a measure of LoPA-GT, the mean over seeds.
fn measured(folder: &Folder, file: &str, measure: &str) -> f64 {
    folder.lopa(&["check", file]).good();
    let done = folder.lopa(&["run", file, "--format", "json", "--out", "runs"]).good();
    let results: serde_json::Value = done.json();
    let rows = results.as_array().unwrap_or_else(|| panic!("{results}"));
    let own: Vec<f64> = rows
        .iter()
        .filter(|row| row["algorithm"] == "lopa-gt")
        .map(|row| {
            assert_ne!(row["stop"], "diverged", "{row}");
            row[measure].as_f64().unwrap_or_else(|| panic!("{row}"))
        })
        .collect();
    assert!(!own.is_empty(), "{results}");
    own.iter().sum::<f64>() / own.len() as f64
}

#[test]
fn a_file_becomes_an_experiment_that_beats_the_majority() {
    let folder = Folder::with(&[("my.csv", &patients(240, false))]);
    let done = folder.lopa(&["init", "--data", "my.csv", "--nodes", "3"]).good();
    assert!(done.stdout.contains("240 rows, 3 features, 2 classes, 3 nodes"), "{}", done.stdout);
    assert!(done.stdout.contains("label: column \"diagnosis\""), "{}", done.stdout);
    assert!(done.stderr.contains("lopa run my.toml"), "{}", done.stderr);
    let text = folder.read("my.toml");
    for line in [
        "label = \"diagnosis\"",
        "scaling = \"standardise\"",
        "seeds = [1, 2, 3]",
        "holdout = 0.2",
        "final_theta = \"refitted\"",
        "# ",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let reached = accuracy(&folder, "my.toml");
    assert!(reached > 0.75, "{reached}, where the larger class is 2/3");
    // An experiment is not overwritten by accident.
    let again = folder.lopa(&["init", "--data", "my.csv", "--nodes", "3"]);
    assert!(again.code != 0 && again.stderr.contains("--force"), "{}", again.stderr);
}

/// The README's words, on the file that it names.
#[test]
fn a_column_that_is_named_after_hospitals_names_the_nodes_unasked() {
    let patients = std::fs::read_to_string(crate::pages::root().join("docs/walk/patients.csv"));
    let folder = Folder::with(&[("patients.csv", &patients.unwrap())]);
    let done = folder.lopa(&["init", "--data", "patients.csv", "--seconds", "0"]).good();
    for says in ["nodes: column \"hospital\"", "label: column \"diagnosis\"", "5 nodes"] {
        assert!(done.stdout.contains(says), "{says}: {}", done.stdout);
    }
    let text = folder.read("patients.toml");
    assert!(text.contains("group = \"hospital\"") && text.contains("name = \"group\""), "{text}");
    // A column of words that may be anything is refused, with what it may be.
    let args = ["init", "--data", "patients.csv", "--force", "--nodes", "3"];
    let refused = folder.lopa(&args);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    for says in ["--nodes-from hospital", "--drop hospital"] {
        assert!(refused.stderr.contains(says), "{says}: {}", refused.stderr);
    }
}

#[test]
fn a_column_names_the_nodes() {
    let folder = Folder::with(&[("my.csv", &patients(240, true))]);
    let args = ["init", "--data", "my.csv", "--nodes-from", "hospital", "-o", "h.toml"];
    let json = folder.lopa(&[&args[..], &["--format", "json"]].concat()).good().json();
    assert_eq!((&json["nodes"], &json["features"]), (&3.into(), &3.into()), "{json}");
    let (majority, tried) = (&json["majority"], &json["accuracy"]["lopa-gt"]);
    assert!(tried.as_f64().unwrap() > majority.as_f64().unwrap() + 0.05, "{json}");
    let text = folder.read("h.toml");
    assert!(text.contains("group = \"hospital\"") && text.contains("name = \"group\""), "{text}");
    // The trial had all rows: a run says the same of them, and of the majority class.
    let run = measured(&folder, "h.toml", "holdout_majority");
    assert!((run - majority.as_f64().unwrap()).abs() < 1e-9, "{run} {majority}");
    let folder = Folder::with(&[("my.csv", &patients(240, true)), ("h.toml", &text)]);
    // The picture of the network also names them.
    folder.lopa(&["run", "h.toml", "--seed", "1", "--set", "run.iterations=5"]).good();
    let run = folder.run_folder().display().to_string();
    folder.lopa(&["report", &run, "-o", "report.html"]).good();
    let html = folder.read("report.html");
    for (node, name) in ["north", "south", "west"].iter().enumerate() {
        assert!(html.contains(&format!("<title>node {node}, {name}, own weight ")), "{name}");
        assert_eq!(
            html.matches(&format!(">{name}</text>")).count(),
            2,
            "{name}: network and labels"
        );
    }
}

/// Words that name a few kinds become features; words that name rows cannot.
#[test]
fn a_column_of_a_few_words_becomes_categories() {
    let mut text = String::from("age,colour,code,diagnosis\n");
    for i in 0..120 {
        let ill = i % 3 == 0;
        let colour = if ill { ["red", "blue"][i % 2] } else { ["green", "blue"][i % 2] };
        let age = 40.0 + (i as f64 * 0.618_034).fract() * 30.0;
        let class = if ill { "ill" } else { "well" };
        text += &format!("{age:.2},{colour},c{},{class}\n", i % 40);
    }
    let folder = Folder::with(&[("my.csv", &text)]);
    let args = ["init", "--data", "my.csv", "--nodes", "2", "--label", "diagnosis"];
    let refused = folder.lopa(&args);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("--drop code"), "{}", refused.stderr);
    let done = folder.lopa(&[&args[..], &["--drop", "code"]].concat()).good();
    assert!(done.stdout.contains("blue, green, red"), "{}", done.stdout);
    assert!(done.stdout.contains("4 features"), "{}", done.stdout);
    let toml = folder.read("my.toml");
    assert!(toml.contains("categories = { colour = [\"blue\", \"green\", \"red\"] }"), "{toml}");
    let reached = accuracy(&folder, "my.toml");
    assert!(reached > 0.76, "{reached}: colours say 5 of 6, the larger class is 2 of 3");
}

/// Between columns of numbers, words are a feature; a column with gaps is not the label.
#[test]
fn a_column_of_words_is_the_label_at_either_end_only() {
    let rows = |line: fn(f64, &str) -> String, head: &str| {
        let row = |i: usize| line(30.0 + (i as f64 * 0.618_034).fract() * 40.0, ["f", "m"][i % 2]);
        format!("{head}\n{}\n", (0..80).map(row).collect::<Vec<_>>().join("\n"))
    };
    let between = rows(|age, sex| format!("{age:.2},{sex},{:.1}", 3.0 * age), "age,sex,cost");
    let first = rows(|age, sex| format!("{sex},{age:.2},{:.1}", 3.0 * age), "sex,age,cost");
    let gaps = first.replacen("\nm,", "\n?,", 2);
    let named = first.replace("cost", "target");
    let files = [("a.csv", &between), ("b.csv", &first), ("c.csv", &gaps), ("d.csv", &named)];
    let folder = Folder::with(&files.map(|(name, text)| (name, text.as_str())));
    let labels = [
        ("\"cost\" (the last column", true),
        ("\"sex\" (the only column of words", false),
        ("\"cost\" (the last column", true),
        ("\"target\" (its name says so", true),
    ];
    for ((file, _), (label, encoded)) in files.iter().zip(labels) {
        let args = ["init", "--data", file, "--nodes", "2", "--seconds", "1"];
        let said = folder.lopa(&args).good().stdout;
        assert!(said.contains(label), "{file}: {said}");
        assert_eq!(said.contains("categories: column `sex`"), encoded, "{file}: {said}");
    }
}

#[test]
fn a_packed_file_is_looked_at_as_any_other() {
    // A quoted name with a comma in it is one name.
    let text = patients(240, false).replacen("marker", "\"marker, mg\"", 1);
    let folder = Folder::with(&[("my.csv", &text), ("plain.csv", &text)]);
    let mut gzip = std::process::Command::new("gzip");
    assert!(gzip.arg("my.csv").current_dir(folder.path()).status().unwrap().success());
    let init = |data: &str, out: &str| {
        folder.lopa(&["init", "--data", data, "--nodes", "3", "-o", out]).good().stdout
    };
    let said = init("my.csv.gz", "packed.toml");
    assert!(said.contains("240 rows, 3 features, 2 classes, 3 nodes"), "{said}");
    assert!(said.contains("label: column \"diagnosis\" (the only column of words"), "{said}");
    init("plain.csv", "plain.toml");
    let alike = |text: String| text.replace("my.csv.gz", "F").replace("plain.csv", "F");
    let unnamed = |text: String| text.replace("\"my\"", "N").replace("\"plain\"", "N");
    let [packed, plain] = ["packed.toml", "plain.toml"].map(|name| folder.read(name));
    let body = |text: String| unnamed(alike(text)).lines().skip(2).collect::<Vec<_>>().join("\n");
    assert_eq!(body(packed), body(plain));
    folder.lopa(&["check", "packed.toml"]).good();
}

#[test]
fn a_folder_has_a_file_for_each_node() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("sites")).unwrap();
    for name in ["north", "south", "west"] {
        folder.write(&format!("sites/{name}.csv"), blobs().as_bytes());
    }
    let done = folder.lopa(&["init", "--data", "sites"]).good();
    // A feature is called `y` here, but words are never features.
    assert!(done.stdout.contains("label: column \"colour\""), "{}", done.stdout);
    let text = folder.read("sites.toml");
    for line in [
        "scaling = \"standardise\"",
        "sites/{node}.csv",
        "nodes = [\"north\", \"south\", \"west\"]",
        "\"blue\"",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let reached = accuracy(&folder, "sites.toml");
    assert!(reached > 0.9, "{reached}");
    // Rows of a class that the file does not list are refused.
    folder.write("sites/west.csv", (blobs() + "1,1,violet\n").as_bytes());
    let done = folder.lopa(&["run", "sites.toml", "--set", "run.iterations=5"]);
    let said = "1 row of `west` has a label that `classes` does not list: \"violet\" (1 row)";
    assert!(done.code == 3 && done.stderr.contains(said), "{}", done.stderr);
}

#[test]
fn what_cannot_be_guessed_is_asked_for() {
    let names: String = (0..40).map(|row| format!("{row},name {row}\n")).collect();
    let folder = Folder::with(&[
        ("blobs.csv", &blobs()),
        ("two.csv", &patients(60, true)),
        ("names.csv", &format!("a,b\n{names}")),
        ("notes.docx", "not data"),
    ]);
    for (args, code, hint) in [
        (&["--data", "two.csv", "--nodes", "2"][..], 3, "--nodes-from hospital"),
        (&["--data", "two.csv", "--nodes-from", "hosptal"], 3, "did you mean `hospital`"),
        (&["--data", "two.csv", "--label", "diagnoses"], 3, "did you mean `diagnosis`"),
        (&["--data", "names.csv"], 3, "--label"),
        (&["--data", "notes.docx"], 3, ".csv"),
        (&["--data", "missing.csv"], 3, "missing.csv"),
        (&["--data", "blobs.csv", "--problem", "represntation"], 2, "representation"),
        (&["--data", "blobs.csv", "--nodes", "0"], 2, "2 or more"),
    ] {
        let done = folder.lopa(&[&["init"], args].concat());
        assert_eq!(done.code, code, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(hint), "{args:?}: {}", done.stderr);
    }
}

/// What a user of one hospital sees comes first, under a name that says so, and no lead is called clear that
/// the held-out rows cannot show.
#[test]
fn nodes_are_judged_on_their_own_rows_first() {
    let folder = Folder::with(&[("my.csv", &patients(240, true))]);
    folder.lopa(&["init", "--data", "my.csv", "--nodes-from", "hospital", "-o", "h.toml"]).good();
    let done = folder.lopa(&["run", "h.toml"]).good();
    let head: Vec<&str> = done.stdout.lines().next().unwrap().split("  ").collect();
    let second = head.iter().filter(|cell| !cell.trim().is_empty()).nth(1).unwrap();
    assert_eq!(second.trim(), "accuracy, own rows", "{}", done.stdout);
    let words = "accuracy on each node's own held-out rows";
    assert!(done.stderr.contains(words), "{}", done.stderr);
    let run = folder.run_folder().display().to_string();
    let answer = folder.lopa(&["compare", &run, "--format", "json"]).good().json();
    assert_eq!(answer["measure"], "holdout_accuracy");
    let rows = answer["rows"].as_f64().unwrap();
    assert!((40.0..56.0).contains(&rows), "a fifth of 240 rows: {rows}");
    // What is reached within some seconds differs from machine to machine.
    let standings = answer["standings"].as_array().unwrap();
    for standing in standings.iter().filter(|standing| standing["cost"] != "seconds") {
        let lead = &standing["lead"];
        // No lead where all are equal.
        let by = |end: &str| lead["by"][end].as_f64();
        let Some((low, high)) = by("low").zip(by("high")) else { continue };
        assert!(high - low > 0.05, "48 rows show no less: {standing}");
        assert_eq!(lead["significant"], low > 0.0, "{standing}");
    }
    let text = folder.lopa(&["compare", &run]).good();
    assert!(text.stdout.starts_with(&format!("Best {words} at each budget")), "{}", text.stdout);
    // The saved models have seen the held-out rows; the measures are those of models that have not.
    folder.lopa(&["evaluate", &run]).good();
    folder.lopa(&["report", &run, "-o", "report.html"]).good();
    assert!(folder.read("report.html").contains("Accuracy on own held-out rows"));
}

/// x of `hyper-cleaning` belongs to the training rows: its models cannot use others.
#[test]
fn models_that_fit_no_other_rows_are_not_refitted() {
    let folder = Folder::with(&[("my.csv", &patients(120, true))]);
    let args = ["init", "--data", "my.csv", "--nodes-from", "hospital", "-o", "h.toml"];
    folder.lopa(&[&args[..], &["--problem", "hyper-cleaning"]].concat()).good();
    assert!(folder.read("h.toml").contains("final_theta = \"solved\""));
}

/// A node with a single row cannot hold one out.
#[test]
fn a_node_with_one_row_is_no_hindrance() {
    let folder =
        Folder::with(&[("my.csv", &(patients(240, true) + "50,ill,lonely,1900,0.0001\n"))]);
    let args = ["init", "--data", "my.csv", "--nodes-from", "hospital", "-o", "h.toml"];
    let done = folder.lopa(&args).good();
    assert!(done.stdout.contains("since some node has a single row"), "{}", done.stdout);
    assert!(!folder.read("h.toml").contains("holdout ="));
    folder.lopa(&["run", "h.toml", "--set", "run.iterations=5"]).good();
}

/// Two problems are tried, and the one that is better on held-out rows is written.
#[test]
fn the_better_problem_is_written() {
    // The label is whether two numbers have the same sign: no linear classifier can tell.
    let mut text = String::from("a,b,y\n");
    for i in 0..400 {
        let off = |step: f64| (f64::from(i) * step).fract() - 0.5;
        let (a, b) = (off(0.618_034), off(0.414_214));
        text += &format!("{a:.4},{b:.4},{}\n", if a * b > 0.0 { "same" } else { "other" });
    }
    let folder = Folder::with(&[("signs.csv", &text)]);
    let done = folder.lopa(&["init", "--data", "signs.csv", "--nodes", "4"]).good();
    let said = done.stderr + &done.stdout;
    let (_, rest) = said.split_once("held-out rows (representation ").expect("both were tried");
    let number = |text: &str| text[..5].parse::<f64>().expect("an accuracy");
    let (_, second) = rest.split_once("hyperparameter ").expect("both were tried");
    assert!(number(rest) > number(second) + 0.1, "{said}");
    assert!(folder.read("signs.toml").contains("name = \"representation\""), "{said}");
    let args = ["init", "--data", "signs.csv", "--problem", "hyperparameter", "-o", "h.toml"];
    let done = folder.lopa(&args).good();
    assert!(!(done.stderr + &done.stdout).contains("the better one"));
    assert!(folder.read("h.toml").contains("name = \"hyperparameter\""));
}
