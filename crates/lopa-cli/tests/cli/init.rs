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

/// Checks and runs the file; the test accuracy of LoPA-GT, the mean over seeds.
fn accuracy(folder: &Folder, file: &str) -> f64 {
    folder.lopa(&["check", file]).good();
    let done = folder.lopa(&["run", file, "--format", "json", "--out", "runs"]).good();
    let results: serde_json::Value = done.json();
    let rows = results.as_array().unwrap_or_else(|| panic!("{results}"));
    let own: Vec<f64> = rows
        .iter()
        .filter(|row| row["algorithm"] == "lopa-gt")
        .map(|row| {
            assert_ne!(row["stop"], "diverged", "{row}");
            row["test_accuracy"].as_f64().unwrap_or_else(|| panic!("{row}"))
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
    for line in ["label = \"diagnosis\"", "scaling = \"standardise\"", "seeds = [1, 2, 3]", "# "] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let reached = accuracy(&folder, "my.toml");
    assert!(reached > 0.75, "{reached}, where the larger class is 2/3");
    // An experiment is not overwritten by accident.
    let again = folder.lopa(&["init", "--data", "my.csv", "--nodes", "3"]);
    assert!(again.code != 0 && again.stderr.contains("--force"), "{}", again.stderr);
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
    folder.lopa(&["check", "h.toml"]).good();
    // The picture of the network names them, too.
    folder.lopa(&["run", "h.toml", "--seed", "1", "--set", "run.iterations=5"]).good();
    let run = folder.run_folder().display().to_string();
    folder.lopa(&["report", &run, "-o", "report.html"]).good();
    let html = folder.read("report.html");
    for (node, name) in ["north", "south", "west"].iter().enumerate() {
        assert!(html.contains(&format!("<title>node {node}, {name}, own weight ")), "{name}");
        assert!(html.contains(&format!(">{name}</text>")), "{name}");
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
    let floats = (0..80).map(|i| format!("{i},{}\n", f64::from(i) * 0.37)).collect::<String>();
    let folder = Folder::with(&[
        ("blobs.csv", &blobs()),
        ("two.csv", &patients(60, true)),
        ("floats.csv", &format!("a,b\n{floats}")),
        ("notes.docx", "not data"),
    ]);
    for (args, code, hint) in [
        (&["--data", "two.csv"][..], 3, "--nodes-from"),
        (&["--data", "two.csv", "--nodes-from", "hosptal"], 3, "did you mean `hospital`"),
        (&["--data", "two.csv", "--label", "diagnoses"], 3, "did you mean `diagnosis`"),
        (&["--data", "floats.csv"], 3, "--label"),
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
