//! Every command succeeds, for people and for scripts.

use serde_json::Value;

use crate::program::{Folder, QUADRATIC, blobs_folder};

fn strings(values: &Value, key: &str) -> Vec<String> {
    let items = values.as_array().unwrap().iter();
    items.map(|item| item[key].as_str().unwrap().to_string()).collect()
}

#[test]
fn without_a_command_it_prints_help() {
    let done = Folder::new().lopa(&[]);
    assert_eq!(done.code, 2);
    for command in
        ["run", "compare", "check", "list", "graph", "predict", "evaluate", "ls", "completions"]
    {
        assert!(done.stderr.contains(&format!("  {command} ")), "{command}");
    }
    assert!(Folder::new().lopa(&["--help"]).good().stdout.contains("Usage: lopa"));
    assert!(Folder::new().lopa(&["--version"]).good().stdout.starts_with("lopa 0."));
}

#[test]
fn list_names_everything() {
    let folder = Folder::new();
    let known = [
        ("algorithms", "lopa-gt,lopa-lg,spdb,ma-dsbo,dgd,local"),
        ("problems", "quadratic,hyperparameter,representation,meta-learning,hyper-cleaning"),
        (
            "graphs",
            "ring,path,star,complete,grid,torus,circulant,exponential,hypercube,erdos-renyi",
        ),
        ("weights", "metropolis,lazy-metropolis,max-degree,constant,laplacian,matrix"),
        ("partitions", "iid,classes,shards,dirichlet-class"),
        ("data", "digits,heart,blobs,mnist,covtype,csv,libsvm,npy,npz"),
    ];
    let all = folder.lopa(&["list", "--format", "json"]).good().json();
    for (what, names) in known {
        let json = folder.lopa(&["list", what, "--format", "json"]).good().json();
        assert_eq!(json, all[what]);
        let table = folder.lopa(&["list", what]).good().stdout;
        for name in names.split(',') {
            assert!(strings(&json, "name").iter().any(|known| known == name), "{what}: {name}");
            assert!(table.lines().any(|line| line.starts_with(name)), "{what}: {name}");
        }
        assert!(strings(&json, "about").iter().all(|about| !about.is_empty()));
        assert!(table.lines().all(|line| line.chars().count() <= 132), "{table}");
    }
}

#[test]
fn check_prints_a_file_that_means_the_same() {
    let folder = blobs_folder();
    folder.write("q.toml", QUADRATIC.as_bytes());
    for file in [
        &["e.toml"][..],
        &["q.toml"],
        &[],
        &["q.toml", "--set", "run.target={metric='loss', at_most=0.5}"],
    ] {
        let args = |rest: &[&'static str]| [&["check"], file, rest].concat();
        let first = folder.lopa(&args(&[])).good();
        folder.write("again.toml", first.stdout.as_bytes());
        let again = folder.lopa(&["check", "again.toml"]).good();
        let values = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.split(" # ").next().unwrap().trim().to_string()).collect()
        };
        assert_eq!(values(&first.stdout), values(&again.stdout));
        assert!(!again.stdout.contains("# default"), "{}", again.stdout);
        let json = folder.lopa(&args(&["--format", "json"])).good().json();
        let json_again = folder.lopa(&["check", "again.toml", "--format", "json"]).good().json();
        assert_eq!(json["experiment"], json_again["experiment"]);
    }
}

#[test]
fn check_says_where_each_value_comes_from() {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    let args =
        ["check", "q.toml", "--set", "run.batch=3", "--set", "algorithm.dgd.alpha={over_sqrt=2}"];
    let text = folder.lopa(&args).good().stdout;
    let origin = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_once("# ").unwrap().1.to_string()
    };
    assert_eq!(origin("nodes"), "q.toml:10:9");
    assert_eq!(origin("batch"), "--set run.batch=3");
    assert_eq!(origin("precision"), "default");
    assert_eq!(origin("over_sqrt"), "--set algorithm.dgd.alpha={over_sqrt=2}");
}

#[test]
fn graphs_are_made_shown_and_checked() {
    let folder = Folder::new();
    folder.lopa(&["graph", "make", "ring", "-m", "5", "--out", "g.toml"]).good();
    folder.lopa(&["graph", "make", "ring", "-m", "5", "--out", "g.csv"]).good();
    let printed = folder.lopa(&["graph", "make", "ring", "-m", "5"]).good().stdout;
    assert_eq!(printed, folder.read("g.toml"));
    for file in ["g.toml", "g.csv"] {
        let json = folder.lopa(&["graph", "show", file, "--format", "json"]).good().json();
        assert_eq!(json["analysis"]["nodes"], 5);
        assert_eq!(json["edges"].as_array().unwrap().len(), 5);
        let kind = ["graph", "show", "ring", "-m", "5", "--format", "json"];
        assert_eq!(json["analysis"], folder.lopa(&kind).good().json()["analysis"]);
        assert!(folder.lopa(&["graph", "show", file]).good().stdout.contains("0.333"));
        assert!(folder.lopa(&["graph", "check", file]).good().stdout.contains("lambda min"));
        let lazy = ["graph", "check", file, "-w", "lazy-metropolis", "--format", "json"];
        assert!(folder.lopa(&lazy).good().json()["lambda_min"].as_f64().unwrap() > 0.0);
    }
    let searched = ["graph", "make", "-m", "10", "--rho", "0.6", "--format", "json"];
    let rho = folder.lopa(&searched).good().json()["analysis"]["rho"].as_f64().unwrap();
    assert!((rho - 0.6).abs() <= 0.005, "{rho}");
    assert!(folder.lopa(&["graph", "show", "path", "-m", "50"]).good().stdout.contains("10 more"));
}

#[test]
fn a_privacy_plan_keeps_its_budget_and_more_rows_need_less_noise() {
    let folder = Folder::new();
    let plan = |args: &[&str]| {
        let known = ["privacy", "plan", "--rows", "200", "--batch", "20", "--iterations", "300"];
        folder.lopa(&[&known[..], args].concat())
    };
    let json = plan(&["--epsilon", "2", "--format", "json"]).good().json();
    let rows = json["rows"].as_array().unwrap();
    let number = |at: usize, name: &str| rows[at][name].as_f64().unwrap();
    for at in 0..rows.len() {
        let spent = number(at, "epsilon");
        assert!(spent <= 2.0 && spent > 1.99, "{spent}");
        assert!(number(at, "renyi") >= spent);
        assert!(at == 0 || number(at, "noise") < number(at - 1, "noise"));
    }
    assert_eq!(json["releases"], 1500);
    assert!(plan(&[]).good().stdout.contains("noise multiplier"));
    assert!(plan(&["--delta", "0.01"]).good().stderr.contains("1 / rows"));
    for (flag, value) in [
        ("--epsilon", "0"),
        ("--epsilon", "nan"),
        ("--delta", "1"),
        ("--delta", "0"),
        ("--batch", "0"),
        ("--batch", "201"),
        ("--iterations", "0"),
        ("--releases", "0"),
    ] {
        let args = ["privacy", "plan", "--rows=200", "--batch=20", "--iterations=300"];
        let changed = format!("{flag}={value}");
        let kept = args.into_iter().filter(|arg| !arg.starts_with(&format!("{flag}=")));
        let refused = folder.lopa(&kept.chain([&changed[..]]).collect::<Vec<_>>());
        assert_eq!(refused.code, 2, "{changed}: {}", refused.stderr);
        assert!(refused.stderr.contains(flag), "{changed}: {}", refused.stderr);
    }
}

#[test]
fn a_dry_run_runs_nothing() {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    let args = ["run", "q.toml", "--dry-run", "--seed", "5", "--seed", "9"];
    assert!(folder.lopa(&args).good().stdout.contains("rho"));
    let json = folder.lopa(&[&args[..], &["--format", "json"]].concat()).good().json();
    assert_eq!((&json[0]["seed"], &json[1]["seed"]), (&5.into(), &9.into()));
    assert_eq!(
        (&json[0]["nodes"], &json[0]["x"], &json[0]["theta"]),
        (&4.into(), &2.into(), &3.into())
    );
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn schema_completions_and_manual_are_texts_and_documents() {
    let folder = Folder::new();
    let schema = folder.lopa(&["schema"]).good().json();
    assert!(schema["properties"]["run"].is_object());
    assert_eq!(folder.lopa(&["schema", "--format", "json"]).good().json(), schema);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.lopa(&["completions", shell]).good().stdout;
        assert!(script.contains("evaluate"), "{shell}");
        let json = folder.lopa(&["completions", shell, "--format", "json"]).good().json();
        assert_eq!(json["script"].as_str().unwrap().trim(), script.trim());
    }
    let page = folder.lopa(&["man"]).good().stdout;
    assert!(page.contains(".TH lopa 1"));
    let json = folder.lopa(&["man", "--format", "json"]).good().json();
    assert_eq!(json["page"].as_str().unwrap().trim(), page.trim());
    let written = folder.lopa(&["man", "--out", "pages", "--format", "json"]).good().json();
    assert!(written["pages"].as_array().unwrap().len() > 10);
    assert!(folder.read("pages/lopa-graph-make.1").contains("rho"));
}

#[test]
fn colour_and_quiet_are_obeyed() {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    let bad = ["run", "no.toml"];
    assert!(!folder.lopa(&bad).stderr.contains('\x1b'));
    assert!(folder.lopa(&["run", "no.toml", "--color", "always"]).stderr.contains("\x1b[31;1m"));
    let mut forced = folder.program(&bad);
    let forced = forced.env("CLICOLOR_FORCE", "1").output().unwrap().stderr;
    assert!(forced.contains(&0x1b));
    let mut plain = folder.program(&bad);
    let plain = plain.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap().stderr;
    assert!(!plain.contains(&0x1b));
    let done = folder.lopa(&["run", "q.toml", "--quiet"]).good();
    assert_eq!(done.stderr, "");
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_failure() {
    use std::process::Stdio;
    let folder = Folder::new();
    let mut child = folder.program(&["schema"]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_file_on_top_of_another_is_checked_run_and_shown_as_one() {
    let top = "extends = 'base.toml'\nname = 'top'\n[run]\nevaluations = 2\n";
    let whole =
        QUADRATIC.replace("\"tiny\"", "\"top\"").replace("evaluations = 3", "evaluations = 2");
    let folder = Folder::with(&[("base.toml", QUADRATIC), ("e.toml", top), ("whole.toml", &whole)]);
    let checked = folder.lopa(&["check", "e.toml", "--format", "json"]).good().json();
    assert_eq!(checked["extends"], serde_json::json!(["base.toml"]));
    let origins = &checked["origins"];
    assert_eq!(
        (&origins["name"], &origins["run.evaluations"]),
        (&"e.toml:2:8".into(), &"e.toml:4:15".into())
    );
    assert_eq!(origins["problem.n"], "base.toml:6:5");
    let text = folder.lopa(&["check", "e.toml"]).good().stdout;
    assert!(text.contains("# base.toml:6:5") && text.contains("# e.toml:4:15"), "{text}");
    folder.lopa(&["graph", "show", "e.toml"]).good();
    // The resolved experiment counts: digests are those of the whole file.
    let digests = |file: &str| {
        let done = folder.lopa(&["run", file, "--format", "json", "--resume", "never"]).good();
        done.json().as_array().unwrap().iter().map(|one| one["digest"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(digests("e.toml"), digests("whole.toml"));
}
