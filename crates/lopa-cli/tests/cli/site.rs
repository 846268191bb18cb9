//! `lopa report --site`: a site's own page.

use serde_json::Value;

use crate::program::Folder;

/// Rows of two features and a last column, which depends on the features and a little on the site.
fn rows(site: usize, last: impl Fn(f64, f64, usize) -> String) -> String {
    let row = |i: usize| {
        let off = |step: f64| ((60 * site + i) as f64 * step).fract() - 0.5;
        let (a, b) = (off(0.618_034), off(0.414_214));
        format!("{a:.4},{b:.4},{}\n", last(a, b, i))
    };
    format!("a,b,{}\n{}", "last", (0..60).map(row).collect::<String>())
}

fn experiment(data: &str, algorithms: &str) -> String {
    format!(
        "name = \"sites\"
problem = {{ name = \"representation\", hidden = [4] }}
network = {{ nodes = 3, graph = \"path\" }}
run = {{ iterations = 60, evaluations = 2, seeds = [1] }}
[data]
name = \"csv\"
path = \"{{node}}.csv\"
nodes = [\"north\", \"south\", \"west\"]
holdout = 0.3
test = 0.0
{data}
{algorithms}"
    )
}

fn folder(last: impl Fn(f64, f64, usize) -> String + Copy) -> Folder {
    let folder = Folder::new();
    for (site, name) in ["north", "south", "west"].iter().enumerate() {
        folder.write(&format!("{name}.csv"), rows(site, last).as_bytes());
    }
    folder
}

/// The page and what is printed about it.
fn page(folder: &Folder, more: &[&str]) -> (String, Value, String) {
    let args = ["report", "runs/sites", "--out", "site.html", "--format", "json"];
    let done = folder.lopa(&[&args[..], more].concat()).good();
    let html = std::fs::read_to_string(folder.path().join("site.html")).unwrap();
    (html, done.json(), done.stderr)
}

fn run(folder: &Folder, text: &str) -> Value {
    folder.write("e.toml", text.as_bytes());
    let done = folder.lopa(&["run", "e.toml", "--format", "json"]).good();
    let made = std::fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap();
    std::fs::rename(made.path(), folder.path().join("runs/sites")).unwrap();
    done.json()
}

const THREE: &str = "[[algorithm]]\nname = \"lopa-gt\"\n[[algorithm]]\nname = \"fedavg\"\nalpha = 0.1\n\
                     [[algorithm]]\nname = \"fedrep\"\nalpha = 0.1\nbeta = 0.1\n";

#[test]
fn a_site_sees_what_it_gained_and_what_it_gave() {
    let folder = folder(|a, b, i| if a + b > 0.0 && i % 9 > 0 { "yes" } else { "no" }.into());
    let ran = run(&folder, &experiment("classes = [\"no\", \"yes\"]", THREE));
    let (html, said, words) = page(&folder, &["--site", "south"]);
    assert_eq!((&said["site"], &said["measure"]), (&"south".into(), &"accuracy".into()), "{said}");
    assert_eq!(said["rows"], 18, "{said}");
    let names: Vec<&str> =
        said["models"].as_array().unwrap().iter().map(|m| m["model"].as_str().unwrap()).collect();
    assert_eq!(names, ["together", "alone", "mean"]);
    // The measure is the one that the run has of this site, inside its interval.
    let own = ran[0]["nodes"][1]["holdout_accuracy"].as_f64().unwrap();
    let [value, low, high] = [0, 1, 2].map(|at| said["models"][0]["value"][at].as_f64().unwrap());
    assert_eq!(value, own, "{said}");
    assert!(low <= value && value <= high && high - low > 0.05, "{said}");
    let gain = &said["models"][1]["gain"];
    let alone = said["models"][1]["value"][0].as_f64().unwrap();
    assert!((gain[0].as_f64().unwrap() - (value - alone)).abs() < 1e-12, "{said}");
    for text in [
        "On 18 rows that it held out, south has an accuracy of",
        "south sent 60 messages to each of 2 neighbours: north, west.",
        "x (the shared part of the model), y (the direction",
        "no part of the personal model leaves the site",
        "No single peer can compute the direction in which south&#39;s rows",
        "These can if they work together: north with west.",
        "No noise was added",
        "experiment (SHA-256)",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
    assert!(words.contains("On 18 rows that it held out, south"), "{words}");
    // The same run gives the same page.
    assert_eq!(page(&folder, &["--site", "1"]).0, html);
    let own = ["--site", "south", "--algorithm", "lopa-gt", "--seed", "1"];
    assert_eq!(page(&folder, &own).0, html);
    // A method that sends the whole model is not told as one that keeps a part.
    let (html, ..) = page(&folder, &["--site", "north", "-a", "fedavg"]);
    assert!(html.contains("this method sends the whole model"), "{html}");
    assert!(html.contains("was worked out for LoPA only"), "{html}");
}

#[test]
fn numbers_are_judged_by_their_errors() {
    let folder = folder(|a, b, _| format!("{:.4}", 100.0 + 20.0 * a - 5.0 * b));
    let ran =
        run(&folder, &experiment("target = \"number\"", "[[algorithm]]\nname = \"lopa-lg\"\n"));
    let (html, said, _) = page(&folder, &["--site", "west"]);
    let own = ran[0]["nodes"][2]["holdout_rmse"].as_f64().unwrap();
    let found = said["models"][0]["value"][0].as_f64().unwrap();
    assert!((found - own).abs() < 1e-9 * own, "{found} {own}");
    assert!(html.contains("an RMSE of") && html.contains("MAE"), "{html}");
    // A linear model is right here: the gain is below 0, and the page says so.
    assert!(said["models"][1]["gain"][2].as_f64().unwrap() < 0.0, "{said}");
    assert!(html.contains("training together is worse"), "{html}");
}

#[test]
fn pages_that_cannot_be_made_say_why() {
    let folder = folder(|a, _, _| if a > 0.0 { "yes" } else { "no" }.into());
    let text = experiment("classes = [\"no\", \"yes\"]", "[[algorithm]]\nname = \"lopa-gt\"\n");
    run(&folder, &text.replace("holdout = 0.3\n", ""));
    let refuse = |more: &[&str]| {
        let done = folder.lopa(&[&["report", "runs/sites"], more].concat());
        (done.code, done.stderr)
    };
    let (code, words) = refuse(&["--site", "south"]);
    assert_eq!(code, 3, "{words}");
    assert!(
        words.contains("no rows that it did not train on") && words.contains("holdout"),
        "{words}"
    );
    let (code, words) = refuse(&["--site", "sotuh"]);
    assert_eq!(code, 2, "{words}");
    assert!(words.contains("--site: there is no node `sotuh`"), "{words}");
    assert_eq!(refuse(&["runs/sites", "--site", "0"]).0, 2);
    assert_eq!(refuse(&["--algorithm", "lopa-gt"]).0, 2);
}

/// Sites do not know classes that they do not have.
#[test]
fn a_common_test_set_is_taken_for_the_classes_of_the_site() {
    let folder = Folder::new();
    let text = "name = \"sites\"
problem = { name = \"representation\", hidden = [4] }
data = \"digits\"
partition = { name = \"classes\", per_node = 2 }
network = { nodes = 5, graph = \"ring\" }
run = { iterations = 20, evaluations = 1, seeds = [1] }
[[algorithm]]
name = \"lopa-lg\"
";
    let ran = run(&folder, text);
    let (html, said, _) = page(&folder, &["--site", "3"]);
    assert_eq!(said["models"][0]["value"][0], ran[0]["nodes"][3]["own_test_accuracy"], "{said}");
    assert!(
        html.contains("of the common test set, of the classes that it has, node 3 has"),
        "{html}"
    );
}
