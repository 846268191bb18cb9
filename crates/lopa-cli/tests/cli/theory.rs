//! `lopa theory`: its answers and its errors.

use serde_json::json;

use crate::init::patients;
use crate::program::{Folder, QUADRATIC, blobs_folder};

/// Four small quadratics on a ring, with both of LoPA's schemes.
fn quadratics() -> Folder {
    let both = format!(
        "{QUADRATIC}\n[[algorithm]]\nname = \"lopa-lg\"\nalpha = 0.01\nbeta = 0.05\nlambda = 0.05\n"
    );
    Folder::with(&[("e.toml", &both)])
}

#[test]
fn everything_on_one_screen() {
    let folder = quadratics();
    let screen = folder.lopa(&["theory", "show", "e.toml"]).good().stdout;
    for word in ["mu_g", "exact", "BROKEN", "theorem", "practical", "measured", "bound", "Region"] {
        assert!(screen.contains(word), "{word}\n{screen}");
    }
    assert!(screen.lines().count() <= 75, "{screen}");
    let json = folder.lopa(&["theory", "show", "e.toml", "--format", "json"]).good().json();
    assert_eq!(json["constants"]["mu_g"]["origin"], "exact");
    assert_eq!(json["constants"]["C_f,theta"]["origin"], "bound");
    let steps = &json["steps"][0];
    assert_eq!(steps["algorithm"], "lopa-gt");
    let broken = steps["conditions"].as_array().unwrap().iter().filter(|c| c["holds"] == false);
    assert!(broken.count() > 0 && steps["guaranteed"] == false);
    // With the theorem's step sizes the measured means lie below the bound.
    let curves = &json["curves"][0];
    let measured = curves["measured"]["theorem"].as_array().unwrap();
    let bounds = curves["bound"]["theorem"].as_array().unwrap();
    assert!(measured.len() == bounds.len() && measured.len() > 2);
    for (measured, bound) in measured.iter().zip(bounds) {
        assert_eq!(measured["iteration"], bound["iteration"]);
        assert!(measured["mean"].as_f64().unwrap() <= bound["total"].as_f64().unwrap());
    }
}

// A short calibration prefers the largest alpha, with which full runs diverge.
#[test]
fn practical_step_sizes_survive_full_runs() {
    let file = "name = 'steps'
        problem = { name = 'hyperparameter', start = -4.0 }
        data = { name = 'csv', path = 'my.csv', label = 'diagnosis', scaling = 'standardise' }
        network = { nodes = 3, graph = 'complete' }
        run = { seeds = [1, 2], iterations = 1500, batch = 8, evaluations = 2, exact = 'never' }
        algorithm = [{ name = 'lopa-gt', alpha = 0.1, beta = 0.4, lambda = 0.4 }]";
    let folder = Folder::with(&[("my.csv", &patients(240, false)), ("e.toml", file)]);
    let json = folder.lopa(&["theory", "steps", "e.toml", "--format", "json"]).good().json();
    let practical = &json["algorithms"][0]["practical"];
    let (steps, confirmed) = (&practical["steps"], &practical["confirmed"]);
    assert!(confirmed["lost"].as_array().is_some_and(|lost| !lost.is_empty()), "{practical}");
    // Neither the file's seeds nor those that confirm have a part in the judgement.
    assert_eq!(confirmed["seeds"].to_string(), "[3,4,5,6]");
    assert_eq!((&confirmed["iterations"], &confirmed["room"]), (&json!(1500), &json!(1.5)));
    let judged = &practical["judged"];
    assert_eq!(*judged, json!({ "seeds": [7, 8, 9, 10, 11, 12], "failed": [] }));
    let mut args = vec!["run".to_string(), "e.toml".into()];
    args.extend(["--set".into(), "run.seeds=[1, 2, 7, 8, 9, 10, 11, 12]".into()]);
    for key in ["alpha", "beta", "lambda"] {
        args.extend(["--set".into(), format!("algorithm.lopa-gt.{key}={}", steps[key])]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = folder.lopa(&args).good();
    let said = done.stderr + &done.stdout;
    assert!(!said.contains("diverged"), "{said}");
    let screen = folder.lopa(&["theory", "show", "e.toml"]).good().stdout;
    let says = "survives 1500 iterations on seeds 3, 4, 5, 6 with 1.5 times these, and alpha";
    assert!(screen.contains(says), "{screen}");
    assert!(screen.contains("none of 6 runs on other seeds fails; no guarantee"), "{screen}");
    assert!(!screen.contains("factor of –") && !screen.contains("– BROKEN"), "{screen}");
}

#[test]
fn every_part_for_people_and_for_scripts() {
    let folder = quadratics();
    for (part, key, word) in [
        ("constants", "derived", "L_theta*"),
        ("steps", "algorithms", "lambda < 2/L"),
        ("heterogeneity", "lemma_1", "C_1"),
        ("bound", "algorithms", "respected"),
    ] {
        let json = folder.lopa(&["theory", part, "e.toml", "--format", "json"]).good().json();
        assert!(!json[key].is_null() && json["experiment"] == "tiny", "{part}: {json}");
        let table = folder.lopa(&["theory", part, "e.toml", "-j", "1"]).good().stdout;
        assert!(table.contains(word), "{part}\n{table}");
        let page = folder.lopa(&["theory", part, "e.toml", "--format", "md"]).good().stdout;
        assert!(page.contains("## ") && page.contains("|--"), "{page}");
    }
}

#[test]
fn problems_with_data_are_bounded_or_estimated() {
    let folder = blobs_folder();
    let json = folder.lopa(&["theory", "constants", "e.toml", "--format", "json"]).good().json();
    assert_eq!(json["constants"]["L_g,theta"]["origin"], "bound");
    assert_eq!(json["constants"]["b"]["origin"], "estimate");
    assert!(json["remarks"][0].as_str().unwrap().contains("decaying"), "{}", json["remarks"]);
}

#[test]
fn rates_are_written_and_drawn() {
    let folder = Folder::new();
    let args = ["theory", "rates", "--quick", "--only", "gt-deterministic", "--page", "rates.md"];
    let done = folder.lopa(&args).good();
    assert!(done.stdout.contains("gt-deterministic"), "{}", done.stdout);
    let page = folder.read("rates.md");
    assert!(page.contains("](rates/gt-deterministic.svg)"));
    assert!(page.contains("## What holds") && page.contains("](#gt-deterministic): "), "{page}");
    assert!(folder.read("rates/gt-deterministic.svg").starts_with("<svg"));
    let json = folder.lopa(&[&args[..5], &["--format", "json"]].concat()).good().json();
    let fitted = json["rates"][0]["fitted"]["mean"].as_f64().unwrap();
    assert!((fitted + 1.0).abs() < 0.15, "{fitted}");
}

#[test]
fn what_the_theorems_do_not_cover_is_said() {
    let folder = quadratics();
    for (args, id) in [
        (&["theory", "show", "e.toml", "--set", "scope='global'"][..], "theory/global-scope"),
        (&["theory", "rates", "--only", "gt-determinstic"], "config/unknown-name"),
        (&["theory", "rates", "--seeds", "1"], "config/out-of-range"),
        (&["theory", "bound", "e.toml", "--iterations", "0"], "config/out-of-range"),
    ] {
        let done = folder.lopa(args);
        assert_eq!(done.code, 2, "{}", done.stderr);
        assert!(done.stderr.contains(id), "{}", done.stderr);
    }
    let dgd =
        QUADRATIC.replace("lopa-gt", "dgd").replacen("name = \"dgd\"", "name = \"gt-sgd\"", 1);
    let dgd = dgd.replace("beta = 0.05\nlambda = 0.05\n", "");
    let folder = Folder::with(&[("dgd.toml", &dgd)]);
    let done = folder.lopa(&["theory", "show", "dgd.toml"]);
    assert!(done.code == 2 && done.stderr.contains("theory/no-lopa"), "{}", done.stderr);
    let folder = blobs_folder();
    let done = folder.lopa(&["theory", "rates", "e.toml"]);
    assert!(done.code == 2 && done.stderr.contains("theory/not-quadratic"), "{}", done.stderr);
}

#[test]
fn the_terms_of_v_are_recorded_and_drawn() {
    let folder = quadratics();
    folder.lopa(&["run", "e.toml", "--set", "run.lyapunov=true"]).good();
    let run = folder.run_folder();
    let rows = folder.read(run.join("metrics.jsonl"));
    let row: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    let terms = ["objective", "hv", "inner", "average", "variance", "consensus", "gradient"];
    let sum: f64 = terms.map(|t| row[format!("lyapunov_{t}")].as_f64().unwrap()).iter().sum();
    assert!((sum - row["lyapunov"].as_f64().unwrap()).abs() <= 1e-9 * sum.abs());
    let dgd = rows.lines().find(|line| line.contains("\"dgd\"")).unwrap();
    assert!(!dgd.contains("lyapunov"));
    folder.lopa(&["report", run.to_str().unwrap()]).good();
    let html = folder.read("report.html");
    assert!(html.contains("Lyapunov function</h3>") && html.contains("d2 inner"));
}
