//! `lopa run`: its documents, its digests, its folder.

use serde_json::Value;

use crate::program::{Folder, QUADRATIC, blobs_folder};

fn digests(json: &Value) -> Vec<String> {
    let runs = json.as_array().unwrap().iter();
    runs.map(|run| run["digest"].as_str().unwrap().to_string()).collect()
}

#[test]
fn scripts_get_one_object_per_algorithm_and_seed() {
    let folder = blobs_folder();
    let runs = folder.lopa(&["run", "e.toml", "--format", "json"]).good().json();
    let named = |run: &Value| {
        (run["algorithm"].as_str().unwrap().to_string(), run["seed"].as_u64().unwrap())
    };
    let names: Vec<_> = runs.as_array().unwrap().iter().map(named).collect();
    let expected = [("lopa-gt", 3), ("decaying", 3), ("lopa-gt", 4), ("decaying", 4)];
    assert_eq!(names, expected.map(|(name, seed)| (name.to_string(), seed)));
    let numbers = [
        "loss",
        "train_accuracy",
        "test_accuracy",
        "phi",
        "grad_phi_sq",
        "consensus",
        "hessians",
        "jacobians",
        "gradients",
        "bytes",
        "seconds",
    ];
    for run in runs.as_array().unwrap() {
        for key in numbers {
            assert!(run[key].is_number(), "{key}: {run}");
        }
        assert_eq!(run["digest"].as_str().unwrap().len(), 64);
        assert_eq!(run["stop"], "finished");
        assert_eq!(run["iteration"], 20);
        assert_eq!(run["nodes"].as_array().unwrap().len(), 3);
    }
    // One Hessian-vector product an iteration, and one at the start.
    assert_eq!(runs[0]["hessians"], 21.0);
}

#[test]
fn people_get_a_table_that_fits_and_a_sentence() {
    let folder = blobs_folder();
    let done = folder.lopa(&["run", "e.toml"]).good();
    assert!(done.stdout.lines().all(|line| line.chars().count() <= 120), "{}", done.stdout);
    let row = done.stdout.lines().find(|line| line.starts_with("decaying")).unwrap();
    assert!(row.contains('±'));
    assert!(done.stderr.contains("With at most 20 iterations"), "{}", done.stderr);
    assert!(done.stderr.contains("trajectory digest "));
    let table = folder.lopa(&["run", "e.toml", "--format", "md"]).good().stdout;
    assert!(table.starts_with("| algorithm "), "{table}");
}

#[test]
fn digests_do_not_depend_on_threads_but_on_seeds() {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    let run = |more: &[&str]| {
        let args = [&["run", "q.toml", "--format", "json"], more].concat();
        digests(&folder.lopa(&args).good().json())
    };
    let one = run(&["-j", "1"]);
    assert_eq!(one, run(&["-j", "2"]));
    assert_eq!(one, run(&["-j", "3"]));
    assert_eq!(one, run(&["--seed", "1"]));
    let other = run(&["--seed", "2"]);
    assert!(one.iter().zip(&other).all(|(one, other)| one != other));
    let mut by_environment = folder.program(&["run", "q.toml", "--format", "json"]);
    let output = by_environment.env("LOPA_THREADS", "3").output().unwrap();
    assert_eq!(one, digests(&serde_json::from_slice(&output.stdout).unwrap()));
}

#[test]
fn the_run_folder_has_everything() {
    let folder = blobs_folder();
    let printed = folder.lopa(&["run", "e.toml", "--format", "json"]).good().json();
    let run = folder.run_folder();
    assert!(run.file_name().unwrap().to_str().unwrap().starts_with("blobs-"));
    let manifest: Value = serde_json::from_str(&folder.read(run.join("manifest.json"))).unwrap();
    assert_eq!(manifest["status"], "done");
    assert_eq!(manifest["seeds"], serde_json::json!([3, 4]));
    for key in ["lopa", "experiment_digest", "data_digest", "started", "ended"] {
        assert!(manifest[key].is_string(), "{key}");
    }
    assert!(manifest["machine"]["simd"].is_array());
    assert!(manifest["worlds"][0]["graph_digest"].is_string());
    let mut results: Value = serde_json::from_str(&folder.read(run.join("results.json"))).unwrap();
    for entry in results.as_array_mut().unwrap() {
        assert!(entry.as_object_mut().unwrap().remove("check").is_some());
    }
    assert_eq!(results, printed);
    let metrics = folder.read(run.join("metrics.jsonl"));
    let rows: Vec<Value> =
        metrics.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // A measurement at the start and two along the way, for two algorithms on two seeds.
    assert_eq!(rows.len(), 12);
    assert_eq!(rows[0]["iteration"], 0);
    let resolved = run.join("resolved.toml");
    let again = folder.lopa(&["run", resolved.to_str().unwrap(), "--format", "json"]).good().json();
    assert_eq!(digests(&again), digests(&printed));
    for name in ["lopa-gt-seed3", "decaying-seed4"] {
        assert!(
            folder.path().join(&run).join("models").join(format!("{name}.safetensors")).exists()
        );
    }
}

#[test]
fn ls_lists_runs_however_they_ended() {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    folder.lopa(&["run", "q.toml"]).good();
    let wrong = "run.target={metric='los', at_most=1.0}";
    assert_eq!(folder.lopa(&["run", "q.toml", "--set", wrong]).code, 2);
    std::fs::create_dir(folder.path().join("runs/other")).unwrap();
    let json = folder.lopa(&["ls", "--format", "json"]).good().json();
    let mut status: Vec<_> =
        json.as_array().unwrap().iter().map(|run| run["status"].as_str().unwrap()).collect();
    status.sort_unstable();
    assert_eq!(status, ["done", "failed"]);
    let text = folder.lopa(&["ls", "runs"]).good().stdout;
    assert!(text.contains("lopa-gt, dgd"), "{text}");
    let elsewhere = folder.lopa(&["run", "q.toml", "--out", "elsewhere"]);
    assert!(elsewhere.good().stderr.contains("results in elsewhere/tiny-"));
}

#[test]
fn a_diverging_run_says_why_and_tells_by_its_code() {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    let long = ["run", "q.toml", "--set", "run.iterations=3000", "--format", "json"];
    let some = folder.lopa(&[&long[..], &["--set", "algorithm.lopa-gt.beta=50.0"]].concat());
    assert_eq!(some.code, 9, "{}", some.stderr);
    let runs = some.json();
    assert_eq!((&runs[0]["stop"], &runs[1]["stop"]), (&"diverged".into(), &"finished".into()));
    assert!(runs[0]["diagnosis"].as_str().unwrap().contains("beta"), "{}", runs[0]["diagnosis"]);
    assert!(some.stderr.contains("diverged at iteration"));
    let sets = ["--set", "algorithm.lopa-gt.beta=50.0", "--set", "algorithm.dgd.alpha=50.0"];
    assert_eq!(folder.lopa(&[&long[..], &sets].concat()).code, 1);
}
