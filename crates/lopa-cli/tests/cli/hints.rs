//! Mistyped names: the nearest one is offered, before anything runs.

use crate::program::{Folder, QUADRATIC};

#[test]
fn the_nearest_name_is_offered_whatever_its_case() {
    let upper = QUADRATIC.replace("\"lopa-gt\"", "\"LoPA-GT\"");
    // A method with inner loops does not find its steps.
    let stepless = QUADRATIC.replacen("\"lopa-gt\"\nalpha = 0.01\n", "\"spdb\"\n", 1);
    let files = [("a9a.toml", QUADRATIC), ("upper.toml", &upper), ("stepless.toml", &stepless)];
    let folder = Folder::with(&files);
    folder.lopa(&["run", "a9a.toml"]).good();
    let run = folder.run_folder().display().to_string();
    for (args, code, says) in [
        (&["rn"][..], 2, "'run'"),
        (&["run", "a9a.tml"], 2, "did you mean `a9a.toml`?"),
        (&["run", "./A9A.toml"], 2, "did you mean `./a9a.toml`?"),
        (&["run", "nothing-like-it.toml"], 2, "built-in quickstart"),
        (&["run", "upper.toml"], 2, "did you mean `lopa-gt`?"),
        (&["run", "a9a.toml", "--set", "algorithm.LoPA-GT.alpha=1"], 2, "did you mean `lopa-gt`?"),
        (&["evaluate", &run, "--algorithm", "LoPA-GT"], 2, "did you mean `lopa-gt`?"),
        (&["run", "patients.csv"], 2, "`lopa init --data patients.csv` writes an experiment"),
        (&["run", "a9a.toml", "--iteration", "5"], 2, "--set run.iterations=VALUE"),
        (&["compare", "a9a.toml", "--batch=5"], 2, "--set run.batch=VALUE"),
        (&["list", "lopa-gt"], 2, "lopa list algorithms lopa-gt"),
        (&["list", "rings"], 2, "lopa list graphs ring"),
        (&["run", "stepless.toml"], 2, "for example `alpha = "),
    ] {
        let done = folder.lopa(args);
        assert_eq!(done.code, code, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(says), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn a_measure_that_nobody_takes_is_refused_before_anything_runs() {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    let done = folder.lopa(&["compare", "q.toml", "--measure", "grad_phi"]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(done.stderr.contains("did you mean `grad_phi_sq`?"), "{}", done.stderr);
    assert!(!folder.path().join("runs").exists(), "it ran");
    // Every measure of a run is known beforehand.
    folder.lopa(&["run", "q.toml"]).good();
    let results = folder.read(folder.run_folder().join("results.json"));
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    for measure in ["loss", "grad_phi_sq", "phi", "consensus", "theta_error", "x_error"] {
        assert!(results[0][measure].is_number(), "{measure}");
        folder.lopa(&["compare", "q.toml", "--measure", measure]).good();
    }
}

#[test]
fn numbers_that_are_too_large_are_told_in_plain_words() {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    for key in ["run.iterations", "network.nodes"] {
        let set = format!("{key}=99999999999999999999");
        let done = folder.lopa(&["check", "q.toml", "--set", &set]);
        assert_eq!(done.code, 2);
        assert!(!done.stderr.contains("i128"), "{}", done.stderr);
        assert!(done.stderr.contains("is too large"), "{}", done.stderr);
    }
}
