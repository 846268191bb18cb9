//! `reweighting`: sources whose labels mean nothing lose their weight.

use crate::program::Folder;

/// Rows of six sources; the labels of three of them have nothing to do with their features. No random
/// numbers.
fn sources(rows: usize) -> String {
    let mut text = String::from("source,a,b,c,kind\n");
    for i in 0..rows {
        let off = |step: f64| (i as f64 * step).fract() - 0.5;
        let (a, b, c) = (off(0.618_034), off(0.414_214), off(0.732_051));
        let source = i * 7 % 6;
        let high = match source % 2 {
            0 => 2.0 * a - b + 0.2 * off(0.236_068) > 0.0,
            _ => off(0.324_718) > 0.0,
        };
        let name = ["clean1", "noise1", "clean2", "noise2", "clean3", "noise3"][source];
        text += &format!("{name},{a:.4},{b:.4},{c:.4},{}\n", if high { "high" } else { "low" });
    }
    text
}

const FILE: &str = "schema = 1
name = 'sources'
[problem]
name = 'reweighting'
trusted = ['clean1']
validation = 0.5
ridge = 0.01
[data]
name = 'csv'
path = 'sources.csv'
label = 'kind'
group = 'source'
scaling = 'standardise'
test = 0.2
[partition]
name = 'iid'
[network]
nodes = 4
graph = 'ring'
weights = 'lazy-metropolis'
[run]
seeds = [1, 2]
iterations = 3000
batch = 'full'
evaluations = 2
exact = 'end'
[[algorithm]]
name = 'lopa-gt'
alpha = 4.0
beta = 0.5
lambda = 0.5
";

#[test]
fn sources_whose_labels_mean_nothing_lose_their_weight() {
    let folder = Folder::with(&[("sources.csv", &sources(960)), ("sources.toml", FILE)]);
    let json = folder.lopa(&["run", "sources.toml", "--format", "json"]).good().json();
    for row in json.as_array().unwrap() {
        let weight = |name: &str| row[format!("weight_{name}")].as_f64().unwrap();
        let weights = ["clean1", "clean2", "clean3", "noise1", "noise2", "noise3"].map(weight);
        assert!((weights.iter().sum::<f64>() - 6.0).abs() < 1e-9, "{weights:?}");
        // How the clean sources share the rest is open: each of them suffices.
        assert!(weights[3..].iter().all(|weight| *weight < 0.1), "{weights:?}");
    }
}

/// The same sources at each of four nodes, which have files of their own.
#[test]
fn nodes_with_files_of_their_own_weigh_the_same_groups() {
    let text = sources(960);
    let mut lines = text.lines();
    let head = lines.next().unwrap();
    let mut files = vec![String::from(head) + "\n"; 4];
    lines.enumerate().for_each(|(i, line)| files[i / 240] += &format!("{line}\n"));
    let names = ["'clean1', 'clean2', 'clean3'", "'noise1', 'noise2', 'noise3'"].join(", ");
    let of = format!(
        "path = '{{node}}.csv'\nnodes = ['a', 'b', 'c', 'd']\nclasses = ['low', 'high']\n\
         group_names = [{names}]"
    );
    let text = FILE.replace("path = 'sources.csv'", &of).replace("[partition]\nname = 'iid'\n", "");
    let folder = Folder::with(&[("sources.toml", &text)]);
    for (name, rows) in ["a", "b", "c", "d"].iter().zip(&files) {
        folder.write(&format!("{name}.csv"), rows.as_bytes());
    }
    let args = ["run", "sources.toml", "--format", "json"];
    let rows = folder.lopa(&args).good().json();
    let weight = |name: &str| rows[0][format!("weight_{name}")].as_f64().unwrap();
    assert!(["noise1", "noise2", "noise3"].map(weight).iter().all(|weight| *weight < 0.1));
    folder.write("sources.toml", text.replace("'noise3'", "'nois3'").as_bytes());
    let refused = folder.lopa(&args);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("has a group `noise3`"), "{}", refused.stderr);
}

#[test]
fn groups_that_are_not_there_are_refused() {
    let folder = Folder::with(&[("sources.csv", &sources(96))]);
    for (from, to, says) in [
        ("trusted = ['clean1']", "trusted = ['claen1']", "did you mean `clean1`"),
        ("group = 'source'", "drop = ['source']", "name the column as `group`"),
        ("trusted = ['clean1']", "by = 'node'", "scope = \"global\""),
        ("trusted = ['clean1']", "by = 'class'\ntrusted = ['clean1']", "by = \"group\""),
    ] {
        let text = FILE.replace(from, to);
        assert_ne!(text, FILE);
        folder.write("sources.toml", text.as_bytes());
        let done = folder.lopa(&["run", "sources.toml", "--set", "run.iterations=5"]);
        assert!(done.code == 2 && done.stderr.contains(says), "{to}: {}", done.stderr);
    }
}
