//! `lopa compare`: its tables, its document, and its refusals.

use serde_json::Value;

use crate::program::{Folder, QUADRATIC, blobs_folder};

const COMPARE: [&str; 10] = [
    "compare",
    "e.toml",
    "--seed",
    "1",
    "--seed",
    "2",
    "--budget",
    "hessians=30",
    "--budget",
    "bytes=8000",
];

fn folder() -> Folder {
    Folder::with(&[("e.toml", QUADRATIC)])
}

fn with(more: &[&'static str]) -> Vec<&'static str> {
    [&COMPARE[..], more].concat()
}

#[test]
fn scripts_get_standings_under_every_cost() {
    let done = folder().lopa(&with(&["--format", "json", "--target", "1e9"])).good();
    let answer = done.json();
    assert_eq!(answer["measure"], "grad_phi_sq");
    assert_eq!(answer["seeds"], serde_json::json!([1, 2]));
    let standings = answer["standings"].as_array().unwrap();
    let costs: Vec<&str> = standings.iter().map(|s| s["cost"].as_str().unwrap()).collect();
    let all = [
        "iteration",
        "gradients",
        "hessians",
        "jacobians",
        "samples",
        "exchanges",
        "bytes",
        "seconds",
    ];
    assert_eq!(costs, all);
    for standing in standings {
        let places = standing["places"].as_array().unwrap();
        let names: Vec<&str> = places.iter().map(|p| p["algorithm"].as_str().unwrap()).collect();
        assert_eq!(names, ["lopa-gt", "dgd"], "{standing}");
        assert!(standing["budget"].as_f64().unwrap() > 0.0, "{standing}");
    }
    let hessians = &standings[2];
    assert_eq!(hessians["budget"], 30.0);
    assert_eq!(hessians["places"][0]["used"], 1.0, "measured at the budget itself");
    assert_eq!(hessians["places"][1]["ranked"], false, "dgd has no Hessians");
    assert_eq!(hessians["lead"]["winner"], "lopa-gt");
    assert_eq!(answer["races"][0]["places"][0]["mean"], 0.0, "the target is met at the start");
    assert!(done.stderr.contains("By |∇Φ|² at equal budgets, "), "{}", done.stderr);
}

#[test]
fn a_second_look_runs_nothing_again_and_a_folder_will_do() {
    let folder = folder();
    let first = folder.lopa(&with(&["--format", "json"])).good();
    assert!(first.stderr.contains("lopa-gt, seed 2: ended after"), "{}", first.stderr);
    let second = folder.lopa(&with(&["--format", "json", "--measure", "loss"])).good();
    assert!(!second.stderr.contains("ended after"), "{}", second.stderr);
    assert_eq!(second.json()["measure"], "loss");
    let runs = folder.run_folder();
    let runs = runs.to_str().unwrap();
    let third = folder.lopa(&["compare", runs, "--format", "json"]).good().json();
    assert_eq!(third["standings"], first.json()["standings"], "its own budgets are remembered");
    let cost = ["compare", runs, "--format", "json", "--cost", "rounds"];
    let only = folder.lopa(&cost).good().json();
    assert_eq!(only["standings"].as_array().unwrap().len(), 1);
    assert_eq!(only["standings"][0]["cost"], "exchanges");
}

#[test]
fn people_get_tables_and_a_sentence() {
    let done = folder().lopa(&with(&["--target", "1e-30"])).good();
    for text in [
        "Best |∇Φ|² at each budget",
        "sent over all links",
        "7.8 KiB",
        "95 % interval",
        "over 2 seeds",
        "Cost of |∇Φ|² of at most 1.00e-30",
        "never",
    ] {
        assert!(done.stdout.contains(text), "{text}\n{}", done.stdout);
    }
    assert!(
        done.stderr.contains("No algorithm reached |∇Φ|² of 1.00e-30 on every seed"),
        "{}",
        done.stderr
    );
    let markdown = folder().lopa(&with(&["--format", "md"])).good();
    assert!(markdown.stdout.contains("| cost "), "{}", markdown.stdout);
}

#[test]
fn who_diverged_is_named_and_not_ranked() {
    let folder = folder();
    let args = with(&["--format", "json", "--set", "algorithm.lopa-gt.beta=1e6"]);
    let done = folder.lopa(&args);
    assert_eq!(done.code, 9, "{}", done.stderr);
    assert!(done.stderr.contains("lopa-gt diverged on 2 of 2 seeds"), "{}", done.stderr);
    let answer = done.json();
    let ranked = |standing: &Value| standing["places"][0]["ranked"].as_bool().unwrap();
    assert!(!answer["standings"].as_array().unwrap().iter().any(ranked));
}

#[test]
fn mistakes_are_named() {
    let folder = folder();
    for (args, id, says) in [
        (&["compare", "e.toml", "--budget", "hesians=3"][..], "config/unknown-name", "hessians"),
        (&["compare", "e.toml", "--budget", "bytes"], "config/out-of-range", "bytes=1000"),
        (&["compare", "e.toml", "--budget", "bytes=-1"], "config/out-of-range", "positive"),
        (&["compare", "e.toml", "--cost", "money"], "config/unknown-name", "money"),
        (&["compare", "e.toml", "--measure", "fun"], "config/unknown-name", "grad_phi_sq"),
        (&["compare", "."], "storage/read", "not a run folder"),
        (&["compare", ".", "--seed", "3"], "config/no-meaning", "--seed"),
    ] {
        let done = folder.lopa(args);
        assert!(done.code != 0 && done.code != 101, "{args:?}: {}", done.stderr);
        assert!(
            done.stderr.contains(id) && done.stderr.contains(says),
            "{args:?}: {}",
            done.stderr
        );
    }
}

#[test]
fn accuracies_stand_above_the_majority() {
    let folder = blobs_folder();
    let done = folder.lopa(&["compare", "e.toml", "--measure", "test_accuracy"]).good();
    let lines: Vec<&str> =
        done.stdout.lines().filter(|line| line.starts_with("majority class")).collect();
    let run = folder.run_folder().display().to_string();
    let asked = |measure: &str| {
        folder.lopa(&["compare", &run, "--format", "json", "--measure", measure]).good().json()
    };
    let majority = asked("test_accuracy")["majority"].as_f64().unwrap();
    assert!((0.3..0.4).contains(&majority), "three classes of one size: {majority}");
    assert!(!lines.is_empty(), "{}", done.stdout);
    for line in lines {
        assert!(line.contains(&format!("{majority:.3}")), "{line}");
    }
    assert_eq!(asked("loss")["majority"], Value::Null);
    let loss = folder.lopa(&["compare", &run, "--measure", "loss"]).good().stdout;
    assert!(!loss.contains("majority"), "{loss}");
}

/// The same experiment under two names.
fn two() -> Folder {
    let other = QUADRATIC.replacen("name = \"", "name = \"other-", 1);
    Folder::with(&[("e.toml", QUADRATIC), ("other.toml", &other)])
}

#[test]
fn several_files_make_one_table_with_a_row_each() {
    let folder = two();
    let costs = ["--cost", "gradients", "--cost", "rounds"];
    let words = [&COMPARE[..2], &["other.toml"], &COMPARE[2..], &costs].concat();
    let shown = folder.lopa(&[&words[..], &["--format", "md"]].concat()).good();
    let rows: Vec<&str> = shown.stdout.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows.len(), 3, "a head and two rows: {}", shown.stdout);
    assert!(rows[0].contains("gradients per node") && rows[0].contains("rounds"), "{}", rows[0]);
    assert!(rows[2].starts_with("| other-"), "{}", rows[2]);
    let documents = folder.lopa(&[&words[..], &["--format", "json"]].concat()).good().json();
    let [first, second] = &documents.as_array().unwrap()[..] else { panic!("{documents}") };
    assert_eq!(first["standings"], second["standings"], "only the names differ");
    let alone = folder.lopa(&[&with(&costs)[..], &["--format", "json"]].concat()).good().json();
    assert_eq!(*first, alone, "a file among several is compared as it is alone");
    let standing = &first["standings"][0];
    let place = &standing["places"][0];
    let [spent, used, budget] = [&place["spent"]["gradients"], &place["used"], &standing["budget"]]
        .map(|number| number.as_f64().unwrap());
    assert!((spent - used * budget).abs() < 1e-9, "{standing}");
}

#[test]
fn a_wrong_file_among_several_is_named_before_any_runs() {
    let folder = two();
    let done = folder.lopa(&["compare", "e.toml", "othr.toml"]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(
        done.stderr.contains("othr.toml") && done.stderr.contains("other.toml"),
        "{}",
        done.stderr
    );
    assert!(!folder.path().join("runs").exists());
    let parts = folder.lopa(&["compare", "e.toml", "other.toml", "--share", "1/2"]);
    assert!(parts.code != 0 && parts.stderr.contains("--share"), "{}", parts.stderr);
}
