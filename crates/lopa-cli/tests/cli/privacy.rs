//! Runs that protect rows: the ledger across commands, and a first file with a budget.

use super::program::Folder;

const FILE: &str = r#"
problem   = { name = "hyperparameter", validation = 0.4, bias = true }
partition = "group"
network   = { nodes = 3, graph = "complete" }
run       = { iterations = 8, batch = 6, evaluations = 2 }
privacy   = { epsilon = 2.0, delta = 1e-3 }
algorithm = [{ name = "lopa-gt", alpha = 0.05, beta = 0.3, lambda = 0.3 }]
[data]
name = "csv"
path = "rows.csv"
label = "ill"
group = "place"
classes = ["no", "yes"]
scaling = "none"
test = 0.0
"#;

fn rows() -> String {
    let mut text = "place,a,b,ill\n".to_string();
    for row in 0..90 {
        let (place, ill) = (["x", "y", "z"][row % 3], (row / 3) % 2 == 1);
        let a = ((row * 37) % 29) as f64 / 10.0 - 1.0 + f64::from(u8::from(ill));
        let b = ((row * 53) % 31) as f64 / 10.0 - 1.5;
        text += &format!("{place},{a},{b},{}\n", if ill { "yes" } else { "no" });
    }
    text
}

#[test]
fn a_budget_holds_across_runs_until_its_owner_raises_it() {
    let folder = Folder::with(&[("e.toml", FILE), ("rows.csv", &rows())]);
    let first = folder.lopa(&["run", "e.toml", "--format", "json"]).good().json();
    let spent = first[0]["epsilon"].as_f64().unwrap();
    assert!(spent > 1.0 && spent <= 2.0 && first[0].get("loss").is_none(), "{first}");
    let listed = folder.lopa(&["ls", "--format", "json"]).good().json();
    assert_eq!(listed[0]["epsilon"].as_f64(), Some(spent));
    // Another name, another seed: other runs on the same rows. They leave no folder.
    for args in [&["--set", "name='other'"][..], &["--seed", "5"], &["--set", "run.batch=5"]] {
        let refused = folder.lopa(&[&["run", "e.toml"], args].concat());
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(refused.stderr.contains("lopa privacy allow"), "{}", refused.stderr);
    }
    assert_eq!(std::fs::read_dir(folder.path().join("runs")).unwrap().count(), 1);
    let ledger = folder.lopa(&["privacy", "ledger", "e.toml", "--format", "json"]).good().json();
    assert_eq!((&ledger[0]["epsilon"], &ledger[0]["limit"]["epsilon"]), (&2.0.into(), &2.0.into()));
    let allow = ["privacy", "allow", "e.toml", "--epsilon", "4", "--delta", "2e-3"];
    let shown = folder.lopa(&allow).good().stdout;
    assert!(shown.contains("rows.csv"), "{shown}");
    folder.lopa(&["run", "e.toml", "--set", "name='other'"]).good();
    let ledger = folder.lopa(&["privacy", "ledger", "e.toml", "--format", "json"]).good().json();
    assert_eq!(ledger[0]["epsilon"], 4.0);
    for bad in [["--epsilon", "0"], ["--epsilon", "nan"], ["--delta", "1"]] {
        let other = if bad[0] == "--epsilon" { ["--delta", "0.1"] } else { ["--epsilon", "1"] };
        let args = [&allow[..3], &bad, &other].concat();
        assert_eq!(folder.lopa(&args).code, 2, "{args:?}");
    }
}

#[test]
fn init_writes_a_file_with_a_budget_that_runs() {
    let folder = Folder::with(&[("rows.csv", &rows())]);
    let init = ["init", "--data", "rows.csv", "--label", "ill", "--nodes-from", "place"];
    folder.lopa(&[&init[..], &["--epsilon", "3"]].concat()).good();
    let text = folder.read("rows.toml");
    assert!(text.contains("[privacy]\nepsilon = 3.0") && !text.contains("90 rows"), "{text}");
    let done = folder.lopa(&["run", "rows.toml", "--format", "json"]).good().json();
    assert!(done[0]["epsilon"].as_f64().unwrap() <= 3.0);
    for bad in ["0", "-1", "nan", "1e9"] {
        let flag = format!("--epsilon={bad}");
        let refused = folder.lopa(&[&init[..], &[&flag, "--force"]].concat());
        assert_eq!(refused.code, 2, "{bad}: {}", refused.stderr);
    }
}
