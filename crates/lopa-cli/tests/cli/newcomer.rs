//! A newcomer's path: a file for each hospital, columns in other orders, a misspelt label, a column of
//! identifiers, a judgement on held-out rows. Right numbers or a clear refusal at every step.

use serde_json::Value;

use crate::program::Folder;

const HOSPITALS: [&str; 3] = ["north", "south", "west"];

/// The rows of a hospital; the west writes its columns in another order.
fn hospital(at: usize) -> String {
    let west = at == 2;
    let mut text =
        String::from(if west { "diagnosis,dose,id,age\n" } else { "id,age,dose,diagnosis\n" });
    for i in 80 * at..80 * (at + 1) {
        let off = |step: f64| (i as f64 * step).fract() - 0.5;
        let ill = i % 3 == 0;
        let shift = if ill { 1.0 } else { 0.0 };
        let (age, dose) =
            (50.0 + 20.0 * (off(0.618_034) + 1.2 * shift), 0.01 * (off(0.414_214) - shift));
        let (id, name) = (100_000 + 7919 * i % 10_007, if ill { "malignant" } else { "benign" });
        text += &match west {
            true => format!("{name},{dose:.5},{id},{age:.2}\n"),
            false => format!("{id},{age:.2},{dose:.5},{name}\n"),
        };
    }
    text
}

fn hospitals() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("sites")).unwrap();
    for (at, name) in HOSPITALS.iter().enumerate() {
        folder.write(&format!("sites/{name}.csv"), hospital(at).as_bytes());
    }
    folder
}

/// The accuracy of LoPA-GT on the rows that every hospital holds out.
fn held_out(folder: &Folder, more: &[&str]) -> (f64, String) {
    let args =
        ["run", "sites.toml", "--format", "json", "--set", "data.holdout=0.2", "--out", "runs"];
    let done = folder.lopa(&[&args[..], more].concat()).good();
    let results: Value = done.json();
    let rows = results.as_array().unwrap().iter().filter(|row| row["algorithm"] == "lopa-gt");
    let values: Vec<f64> = rows.map(|row| row["holdout_accuracy"].as_f64().unwrap()).collect();
    (values.iter().sum::<f64>() / values.len() as f64, done.stderr)
}

#[test]
fn a_newcomer_gets_right_numbers_or_a_clear_refusal() {
    let folder = hospitals();
    // The south writes some labels in its own way: `init` names both spellings.
    let good = hospital(1);
    let bad = good.replacen("malignant", "Malignant", 25);
    folder.write("sites/south.csv", bad.as_bytes());
    let refused = folder.lopa(&["init", "--data", "sites"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    for says in ["\"Malignant\" (25 rows) and \"malignant\"", "--classes"] {
        assert!(refused.stderr.contains(says), "{says}: {}", refused.stderr);
    }
    assert!(!folder.path().join("sites.toml").exists());

    // Corrected, it finds the label in any order of columns, and leaves the identifier out.
    folder.write("sites/south.csv", good.as_bytes());
    let done = folder.lopa(&["init", "--data", "sites"]).good();
    for says in ["label: column \"diagnosis\"", "left out: column `id` (1 of 4), an identifier"] {
        assert!(done.stdout.contains(says), "{says}: {}", done.stdout);
    }
    let text = folder.read("sites.toml");
    for line in ["drop = [\"id\"]", "classes = [\"benign\", \"malignant\"]"] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let (accuracy, _) = held_out(&folder, &[]);
    assert!(accuracy > 0.85, "{accuracy}");

    // New rows with the identifier in them, in whatever order, are judged by the hospital's own model.
    let run = folder.run_folder().display().to_string();
    for (node, name) in HOSPITALS.iter().enumerate() {
        let (node, input) = (node.to_string(), format!("sites/{name}.csv"));
        let args = ["evaluate", &run, "-a", "lopa-gt", "--node", &node, "--input", &input];
        folder.lopa(&args).good();
    }

    // The report's map of labels has the names of hospitals and classes.
    let report = folder.lopa(&["report", &run, "-o", "-"]).good().stdout;
    for name in HOSPITALS.iter().chain(&["benign", "malignant"]) {
        assert!(report.contains(&format!(">{name}</text>")), "no {name} in the report");
    }

    // One table of all hospitals' new rows: the column that says whose they are must be named.
    let of = |at: usize| hospital(at).lines().skip(1).map(str::to_string).collect::<Vec<_>>();
    let mut table = String::from("site,id,age,dose,diagnosis\n");
    for (at, name) in HOSPITALS.iter().enumerate().take(2) {
        of(at).iter().for_each(|row| table += &format!("{name},{row}\n"));
    }
    folder.write("new.csv", table.as_bytes());
    let refused = folder.lopa(&["evaluate", &run, "-a", "lopa-gt", "--input", "new.csv"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    for says in ["column `site` is unknown", "--nodes-from site"] {
        assert!(refused.stderr.contains(says), "{says}: {}", refused.stderr);
    }
    let args = ["evaluate", &run, "-a", "lopa-gt", "--input", "new.csv", "--nodes-from", "site"];
    let said = folder.lopa(&args).good().stderr;
    assert!(said.contains("each judged by the model of its node"), "{said}");

    // A label that the file does not list is refused, with the one it should be.
    folder.write("sites/south.csv", bad.as_bytes());
    let refused = folder.lopa(&["run", "sites.toml", "--out", "again"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    for says in [
        "25 rows of `south`",
        "\"Malignant\" (25 rows, did you mean `malignant`?)",
        "unknown_labels",
    ] {
        assert!(refused.stderr.contains(says), "{says}: {}", refused.stderr);
    }
    let drop = ["--set", "data.unknown_labels=\"drop\"", "--set", "run.iterations=5"];
    let (_, said) = held_out(&folder, &drop);
    assert!(said.contains("left out: 25 rows of `south`"), "{said}");
}

#[test]
fn a_slip_of_the_pen_is_found_without_a_list() {
    let folder = hospitals();
    folder.write("one.csv", hospital(0).replacen("benign", "bengin", 1).as_bytes());
    for args in [&["init", "--data", "one.csv"][..], &["data", "stats", "one.csv"]] {
        let done = folder.lopa(args);
        let said = done.stdout + &done.stderr;
        assert!(said.contains("\"bengin\" (1 row) and \"benign\" (52 rows)"), "{args:?}: {said}");
    }
    // If they are two classes, the user says so.
    let args =
        ["init", "--data", "one.csv", "--classes", "benign,bengin,malignant", "--seconds", "0"];
    folder.lopa(&args).good();
    assert!(folder.read("one.toml").contains("classes = [\"benign\", \"bengin\", \"malignant\"]"));
}

#[test]
fn doubtful_columns_are_named_and_left_out() {
    let mut text = String::from("nr,age,ward,age,dose,code,ill\n");
    for i in 0..60 {
        let ill = i % 2;
        let age = if i % 10 == 3 { -999 } else { 30 + 7 * i % 40 + 10 * ill };
        text += &format!(
            "{},{age},5,{},{:.3},P{i:03},{}\n",
            i + 1,
            i % 7,
            0.1 * f64::from(i % 9),
            ["no", "yes"][ill as usize]
        );
    }
    let folder = Folder::with(&[("my.csv", &text)]);
    let stats = folder.lopa(&["data", "stats", "my.csv"]).good().stdout;
    for says in [
        "column `nr`, column `code` are identifiers: leave out with `drop = [\"nr\", \"code\"]`",
        "column `ward` is the same in all rows: leave out with `drop = [\"ward\"]`",
        "column `age` has 6 cells that are -999",
        "several columns are named `age`",
    ] {
        assert!(stats.contains(says), "{says}: {stats}");
    }
    let said =
        folder.lopa(&["init", "--data", "my.csv", "--nodes", "2", "--seconds", "0"]).good().stdout;
    for says in [
        "left out: column `nr` (1 of 7), an identifier",
        "left out: column `ward` (3 of 7), the same in all rows",
        "left out: column `code` (6 of 7), an identifier",
        "column `age` (2 of 7): 6 cells are -999",
        "several columns are named `age`",
    ] {
        assert!(said.contains(says), "{says}: {said}");
    }
    assert!(folder.read("my.toml").contains("drop = [\"nr\", \"ward\", \"code\"]"));
    folder.lopa(&["run", "my.toml", "--set", "run.iterations=5", "--seed", "1"]).good();
}

/// Rows of a LIBSVM file whose largest index is `width`.
fn libsvm(rows: usize, width: usize) -> String {
    let row = |i: usize| {
        let (class, other) = (i % 2, 2 + i % (width - 2));
        format!("{} {}:1 {other}:0.5 {width}:0.25\n", class, 1 + class).replace("2:1 2:0.5", "2:1")
    };
    (0..rows).map(row).collect()
}

#[test]
fn libsvm_files_of_different_widths_have_the_features_of_the_widest() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("sites")).unwrap();
    for (name, width) in [("a", 12), ("b", 14), ("c", 13)] {
        folder.write(&format!("sites/{name}.libsvm"), libsvm(40, width).as_bytes());
    }
    let init = |more: &[&str]| {
        let args = ["init", "--data", "sites", "--force", "--seconds", "0"];
        folder.lopa(&[&args[..], more].concat()).good();
        folder.read("sites.toml")
    };
    assert!(init(&["--features", "20"]).contains("features = 20"));
    let text = init(&[]);
    assert!(text.contains("features = 14"), "{text}");
    folder.lopa(&["run", "sites.toml", "--set", "run.iterations=5", "--seed", "1"]).good();
    let line = text.lines().find(|line| line.starts_with("features")).unwrap();
    folder.write("bare.toml", text.replacen(line, "", 1).as_bytes());
    let refused = folder.lopa(&["run", "bare.toml"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("`features = 14` in [data]"), "{}", refused.stderr);
}

/// Rows as scikit-learn writes them: features are numbered from 0, the last one is an identifier.
#[test]
fn libsvm_files_that_count_from_zero_are_read_so_in_every_command() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("sites")).unwrap();
    let row = |i: usize| format!("{} {}:1 2:{} 3:{}\n", i % 2, i % 2, 1 + i % 3, 1000 + i);
    for (at, name) in ["a", "b"].iter().enumerate() {
        let rows: String = (60 * at..60 * (at + 1)).map(row).collect();
        folder.write(&format!("sites/{name}.libsvm"), rows.as_bytes());
    }
    let args = ["init", "--data", "sites", "--drop", "3", "--seconds", "0"];
    let done = folder.lopa(&args).good();
    assert!(done.stdout.contains("features are numbered from 0"), "{}", done.stdout);
    let text = folder.read("sites.toml");
    for line in ["zero_based = true", "drop = [3]"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let wrong = ["init", "--data", "sites", "--force", "--seconds", "0", "--drop"];
    for (index, code, says) in [("9", 3, "numbers 0 to 3"), ("age", 2, "index of a feature")] {
        let refused = folder.lopa(&[&wrong[..], &[index]].concat());
        assert_eq!(refused.code, code, "{}", refused.stderr);
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
    folder.lopa(&["run", "sites.toml", "--seed", "1", "--set", "run.iterations=50"]).good();
    let run = folder.run_folder().display().to_string();
    // No row has feature 0: they are not shifted.
    let ones: String = (0..20).map(|i| row(2 * i + 1)).collect();
    folder.write("ones.libsvm", ones.as_bytes());
    for input in ["sites/{node}.libsvm", "ones.libsvm"] {
        let args = ["evaluate", &run, "-a", "lopa-gt", "-i", input, "--format", "json"];
        let json = folder.lopa(&args).good().json();
        assert_eq!(json[0]["accuracy"], 1.0, "{input}: {json}");
    }
}

#[test]
fn a_search_without_time_still_writes_a_file() {
    let folder = Folder::with(&[("one.csv", &hospital(0))]);
    let args = ["init", "--data", "one.csv", "--nodes", "2", "--seconds", "0", "--format", "json"];
    let done = folder.lopa(&args).good();
    assert_eq!(done.json()["rows"], 80);
    folder.lopa(&["check", "one.toml"]).good();
}

/// Wide sparse rows of five classes: a search takes a while.
fn wide() -> String {
    let row = |i: usize| {
        let words = (0..20).map(|j| (i * 7919 + j * 104_729) % 3000);
        let words: std::collections::BTreeSet<usize> = words.chain([i % 5]).collect();
        let words: Vec<String> = words.iter().map(|j| format!("{}:1", j + 1)).collect();
        format!("{} {}\n", i % 5, words.join(" "))
    };
    (0..600).map(row).collect()
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_search_and_leaves_a_file() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = Folder::with(&[("wide.libsvm", &wide())]);
        let mut program = folder.program(&["init", "--data", "wide.libsvm", "--seconds", "600"]);
        let mut child = program.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        said.by_ref().map(Result::unwrap).find(|line| line.contains("trying it")).unwrap();
        crate::program::send_signal(&child, signal);
        let rest: Vec<String> = said.map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{rest:?}");
        assert!(rest.iter().any(|line| line.contains("interrupted: ")), "{rest:?}");
        folder.lopa(&["check", "wide.toml"]).good();
    }
}
