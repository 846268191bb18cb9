//! Bad input gets an explanation.

use lopa::data::{Data, Dataset, Features};
use lopa::error::{Error, Kind};
use lopa::problem::Setting;
use lopa::problem::scope::Scope;
use serde_json::{Value, json};

use super::cases::*;

fn refused(text: &str, data: Option<&Data>, partition: &[Vec<u32>]) -> Error {
    let setting = Setting {
        nodes: partition.len(),
        scope: Scope::Personal,
        seed: 0,
        batch: None,
        data,
        partition,
        ..Setting::default()
    };
    match build::<f64>(text, &setting) {
        Ok(_) => panic!("{text:?} was taken"),
        Err(error) => error,
    }
}

#[test]
fn data_that_a_problem_cannot_be_made_of() {
    let (full, rows) = (data(3, false), partition());
    for case in CASES.iter().filter(|case| case.classes > 0) {
        let missing = refused(case.text, None, &rows);
        assert_eq!((missing.kind, missing.id), (Kind::Data, "data/missing"));
        assert!(missing.message.contains(&choice(case.text).unwrap().name));
        let empty = refused(case.text, Some(&full), &[vec![0, 1, 2, 3, 4, 5, 6, 7], vec![]]);
        assert_eq!(empty.id, "data/empty-node");
        assert!(empty.message.contains("node 1") && empty.hint.is_some());
        if choice(case.text).unwrap().params()["validation"].as_float() != Some(0.0) {
            let few = refused(case.text, Some(&full), &[vec![0, 1, 2, 3, 4, 5, 6, 7], vec![9]]);
            assert_eq!(few.id, "data/too-few-samples");
            assert!(few.message.contains("node 1"));
        }
        let values = vec![0.5; 10];
        let train = Dataset::new(Features::Dense { cols: 2, values }, vec![0; 5]);
        let one = Data { train, classes: vec!["only".into()], ..data(2, false) };
        assert_eq!(refused(case.text, Some(&one), &[vec![0, 1, 2]]).id, "data/one-class");
    }
    let few = refused("name = 'meta-learning'\ntasks = 6", Some(&full), &rows);
    assert!(few.hint.unwrap().contains("tasks"));
}

#[test]
fn parameters_out_of_range() {
    for (text, key) in [
        ("name = 'quadratic'\nn = 0", "n"),
        ("name = 'quadratic'\np = 100000", "p"),
        ("name = 'quadratic'\ncondition = 0.5", "condition"),
        ("name = 'quadratic'\ncondition = nan", "condition"),
        ("name = 'quadratic'\nheterogeneity = -1", "heterogeneity"),
        ("name = 'quadratic'\nnoise = -0.1", "noise"),
        ("name = 'quadratic'\nnoise = 1\nsamples = 1", "samples"),
        ("name = 'hyperparameter'\nvalidation = 0", "validation"),
        ("name = 'hyperparameter'\nvalidation = 1.0", "validation"),
        ("name = 'hyperparameter'\nstart = inf", "start"),
        ("name = 'representation'\nhidden = []", "hidden"),
        ("name = 'representation'\nhidden = [0]", "hidden"),
        ("name = 'representation'\nhidden = [10000000000]", "hidden"),
        ("name = 'representation'\nridge = 0", "ridge"),
        ("name = 'meta-learning'\ntasks = 0", "tasks"),
        ("name = 'meta-learning'\nnu = -1", "nu"),
        ("name = 'hyper-cleaning'\ncorruption = 1.5", "corruption"),
        ("name = 'hyper-cleaning'\nstart = nan", "start"),
        ("name = 'hyperparameter'\nspread = -1", "spread"),
        ("name = 'hyperparameter'\ngroups = []", "groups"),
        ("name = 'hyperparameter'\ngroups = [2, 0]", "groups"),
        ("name = 'hyperparameter'\ngroups = [2]\nstrength = 'class'", "groups"),
        ("name = 'hyper-cleaning'\nridge = inf", "ridge"),
    ] {
        let error = choice(text).unwrap_err();
        assert_eq!((error.kind, error.id), (Kind::Config, "config/out-of-range"), "{text}");
        assert!(error.message.contains(&format!("`{key} = ")), "{text}: {}", error.message);
    }
    let error = choice("name = 'hyperparameter'\nscale = 'batchsum'").unwrap_err();
    assert!(error.hint.unwrap().contains("batch-sum"));
}

#[test]
fn bad_files_of_a_quadratic() {
    let golden = include_str!("../../golden/quadratic_path3.json");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quadratic.json");
    let refuse = |text: &str, nodes: usize| {
        std::fs::write(&path, text).unwrap();
        let problem = format!("name = 'quadratic'\nfile = '{}'", path.display());
        let error = refused(&problem, None, &vec![Vec::new(); nodes]);
        assert_eq!(error.kind, Kind::Data);
        assert!(error.place.as_ref().unwrap().contains("quadratic.json"));
        error
    };
    let changed = |pointer: &str, value: Value| {
        let mut file: Value = serde_json::from_str(golden).unwrap();
        *file.pointer_mut(pointer).unwrap() = value;
        file.to_string()
    };
    for (text, id, says) in [
        ("{".to_string(), "data/bad-json", ""),
        ("{\"data\": 3}".to_string(), "data/bad-json", ""),
        (changed("/data/A", json!("many")), "data/bad-json", ""),
        (golden.replacen("\"B\"", "\"b\"", 1), "data/bad-json", "`b`"),
        (changed("/data/c/1", json!([1.0])), "data/bad-shape", "data.c[1]"),
        (changed("/data/c", json!([])), "data/wrong-nodes", "data.c"),
        (changed("/data/q/0", json!([])), "data/bad-shape", "data.q[0]"),
        (changed("/data/A/2", json!([[1.0, 0.0]])), "data/bad-shape", "data.A[2]"),
        (changed("/data/B/0/1", json!([1.0])), "data/bad-shape", "data.B[0]"),
        (changed("/data/D/0", json!([])), "data/bad-shape", "data.D[0]"),
        (changed("/data/e", json!([[1.0]])), "data/wrong-nodes", "data.e"),
        (changed("/data/A/0/0/1", json!(9.0)), "data/not-symmetric", "data.A[0]"),
        (changed("/data/R/1/0/1", json!(9.0)), "data/not-symmetric", "data.R[1]"),
        (changed("/data/A/1/0/0", json!(-1.0)), "data/not-positive-definite", "data.A[1]"),
    ] {
        let error = refuse(&text, 3);
        assert_eq!(error.id, id, "{error}");
        assert!(error.message.contains(says), "{error}");
    }
    let error = refuse(golden, 4);
    assert!(error.id == "data/wrong-nodes" && error.message.contains("3 node(s), the run has 4"));
    std::fs::remove_file(&path).unwrap();
    let problem = format!("name = 'quadratic'\nfile = '{}'", path.display());
    assert_eq!(refused(&problem, None, &[Vec::new()]).id, "data/unreadable");
}
