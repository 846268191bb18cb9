//! One rule for seeds that diverged, in every command.

use serde_json::Value;

use crate::program::{BLOBS, Folder, blobs};

/// Of lopa-lg, only seed 2 does not diverge.
const WILD: &str = r#"schema = 1
name = "wild"
problem = { name = "quadratic", n = 2, p = 3, noise = 0 }
network = { nodes = 4, graph = "ring", weights = "lazy-metropolis" }
run = { seeds = [1, 2, 3], iterations = 600, evaluations = 4, batch = "full" }

[[algorithm]]
name = "lopa-gt"
alpha = 0.0001
beta = 0.5
lambda = 0.5

[[algorithm]]
name = "lopa-lg"
alpha = 0.02
beta = 0.5
lambda = 0.5
"#;

const SENTENCE: &str = "lopa-lg diverged on 2 of 3 seeds and is not ranked.";

/// The line of lopa-lg in a table.
#[track_caller]
fn line(table: &str) -> &str {
    table.lines().find(|line| line.starts_with("lopa-lg")).expect("a line of lopa-lg")
}

#[test]
fn run_compare_report_and_ls_agree_on_who_diverged() {
    let folder = Folder::with(&[("wild.toml", WILD)]);
    let done = folder.lopa(&["run", "wild.toml"]);
    assert_eq!(done.code, 9, "{}", done.stderr);
    assert!(line(&done.stdout).starts_with("lopa-lg (1 of 3 seeds) "), "{}", done.stdout);
    assert!(!line(&done.stdout).contains('±'), "one value has no spread: {}", done.stdout);
    let closing = done.stderr.lines().find(|line| line.starts_with("With at most")).unwrap();
    assert!(closing.contains("lopa-gt ends with") && closing.ends_with(SENTENCE), "{closing}");
    assert!(!closing.contains("within the spread"), "{closing}");

    let run = folder.run_folder().display().to_string();
    let compared = folder.lopa(&["compare", &run]);
    assert_eq!(compared.code, 9);
    assert!(compared.stderr.contains(SENTENCE), "{}", compared.stderr);
    assert!(compared.stdout.contains(", 1 of 3 seeds)"), "{}", compared.stdout);
    let answer = folder.lopa(&["compare", &run, "--format", "json"]).json();
    let place = &answer["standings"][0]["places"][1];
    assert_eq!((&place["diverged"], &place["ranked"]), (&2.into(), &false.into()));
    assert_eq!(place["sd"], Value::Null);

    let html = folder.lopa(&["report", &run, "-o", "report.html"]);
    assert_eq!(html.code, 0, "{}", html.stderr);
    let html = folder.read("report.html");
    assert!(html.contains("</span>lopa-lg (1 of 3 seeds)</th>"));
    assert!(!html.contains("class=\"best\""), "one algorithm alone is not the best");

    assert!(folder.lopa(&["ls"]).good().stdout.contains("done (2 of 6 diverged)"));
    let listed = folder.lopa(&["ls", "--format", "json"]).good().json();
    assert_eq!((&listed[0]["ended"], &listed[0]["diverged"]), (&6.into(), &2.into()));
}

#[test]
fn models_that_diverged_are_used_only_if_told() {
    let text = BLOBS.replace("beta = 0.4\nlambda = 0.4\n\n", "beta = 1e200\nlambda = 0.4\n\n");
    let folder = Folder::with(&[("e.toml", &text), ("blobs.csv", &blobs())]);
    assert_eq!(folder.lopa(&["run", "e.toml"]).code, 9);
    let run = folder.run_folder().display().to_string();
    let with = |command: &'static str, more: &[&'static str]| {
        let args = [command, &run, "--input", "blobs.csv", "--node", "0"];
        folder.lopa(&[&args[..], more].concat())
    };
    for command in ["predict", "evaluate"] {
        let refused = with(command, &["-a", "lopa-gt"]);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(refused.stderr.contains("error[run/diverged]"), "{}", refused.stderr);
        assert!(refused.stderr.contains("--allow-diverged"), "{}", refused.stderr);
        assert!(refused.stderr.contains("`-a decaying -s 3`"), "{}", refused.stderr);
        // Peers are not blamed for values that are not finite.
        let told = with(command, &["-a", "lopa-gt", "--allow-diverged"]);
        assert!(!told.stderr.contains("peer"), "{}", told.stderr);
        assert!(told.stderr.contains("not finite"), "{}", told.stderr);
    }
    let others = with("evaluate", &[]);
    assert_eq!(others.code, 0, "{}", others.stderr);
    let left = "left out, because the runs diverged: lopa-gt with seed 3, lopa-gt with seed 4";
    assert!(others.stderr.contains(left), "{}", others.stderr);
    assert!(!others.stdout.contains("lopa-gt"), "{}", others.stdout);
}

#[test]
fn scripts_see_which_models_diverged() {
    // θ grows, but stays a number; then not even that, which is no fault of peers.
    for (alpha, beta) in [("1e-300", "300.0"), ("0.1", "1e200")] {
        let lopa_gt = "alpha = 0.1\nbeta = 0.4\nlambda = 0.4\n\n";
        let wild = format!("alpha = {alpha}\nbeta = {beta}\nlambda = 0.4\n\n");
        let text = BLOBS.replace(lopa_gt, &wild);
        let folder = Folder::with(&[("e.toml", &text), ("blobs.csv", &blobs())]);
        assert_eq!(folder.lopa(&["run", "e.toml"]).code, 9);
        let run = folder.run_folder().display().to_string();
        let allow = ["evaluate", &run, "--allow-diverged", "--format", "json"];
        let marked = |more: &[&str]| -> Vec<(String, bool)> {
            let answer = folder.lopa(&[&allow[..], more].concat()).good().json();
            let name = |entry: &Value| entry["algorithm"].as_str().unwrap().to_string();
            let mark = |entry: &Value| (name(entry), entry["diverged"].as_bool().unwrap());
            answer.as_array().unwrap().iter().map(mark).collect()
        };
        let both = [("lopa-gt".to_string(), true), ("decaying".to_string(), false)];
        assert_eq!(marked(&["--seed", "4"]), both);
        if alpha == "1e-300" {
            assert_eq!(marked(&["--input", "blobs.csv"]), both);
        }
    }
}
