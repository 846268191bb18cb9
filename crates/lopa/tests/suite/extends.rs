//! `extends`: one file on top of another, read as strictly as a single one.

use std::fs;
use std::path::Path;

use lopa::config::Source;
use lopa::error::{Error, Result};
use lopa::experiment::{Experiment, Registries, open};
use toml::Value;

const BASE: &str = r#"schema = 1
name = "base"

[problem]
name = "quadratic"
n = 3
p = 4
condition = 2.0

[network]
nodes = 4
graph = { name = "erdos-renyi", p = 0.9 }
weights = "lazy-metropolis"

[run]
seeds = [1, 2]
budget = { hessians = 40, gradients = 80 }
evaluations = 3

[[algorithm]]
name = "lopa-gt"
alpha = 0.02
beta = 0.9
lambda = 0.8

[[algorithm]]
name = "d-soba"
label = "first"
alpha = 0.01
beta = 0.5
lambda = 0.5
order = "first"

[[algorithm]]
name = "dgd"
alpha = { over_sqrt = 0.5 }
"#;

/// A source whose files have these names; the first is opened.
fn source(files: &[(&str, &str)]) -> Result<Source> {
    let read = |path: &Path| {
        let found = files.iter().find(|(name, _)| Path::new(name) == path);
        found
            .map(|(_, text)| text.to_string())
            .ok_or_else(|| Error::config("config/unreadable", "there is no such file"))
    };
    Source::new(files[0].0, files[0].1).extending(read)
}

fn read(files: &[(&str, &str)]) -> Result<Experiment> {
    Experiment::read(&source(files)?, &Registries::default())
}

/// A file on top of the base.
fn on_base(text: &str) -> Result<Experiment> {
    read(&[("e.toml", &format!("extends = 'base.toml'\n{text}")), ("base.toml", BASE)])
}

/// What a file on top of the base must equal: the base with a passage replaced.
#[track_caller]
fn assert_like(text: &str, (passage, other): (&str, &str)) {
    assert!(BASE.contains(passage), "{passage}");
    let like = read(&[("e.toml", &BASE.replace(passage, other))]).unwrap();
    assert_eq!(on_base(text).unwrap(), like, "{text}");
}

#[test]
fn a_file_on_top_of_a_whole_one_gives_only_what_differs() {
    assert_like("", ("", ""));
    assert_like("name = 'other'", ("name = \"base\"", "name = \"other\""));
    // A section key by key; the values in it as a whole.
    assert_like("[run]\nevaluations = 5", ("evaluations = 3", "evaluations = 5"));
    let budget = "budget = { hessians = 40, gradients = 80 }";
    assert_like("[run]\nbudget = { gradients = 7 }", (budget, "budget = { gradients = 7 }"));
    assert_like("[run.budget]\ngradients = 7", (budget, "budget = { gradients = 7 }"));
    let graph = "graph = { name = \"erdos-renyi\", p = 0.9 }";
    assert_like("network.graph = 'ring'", (graph, "graph = 'ring'"));
    assert_like("network.graph = 'erdos-renyi'", (graph, "graph = 'erdos-renyi'"));
    // A section that the base lacks.
    assert_like("[checkpoint]\niterations = 7", ("[run]", "[checkpoint]\niterations = 7\n[run]"));
    // A choice of the same name keeps the base's parameters; another one does not.
    assert_like("[problem]\nname = 'quadratic'\nn = 2", ("n = 3", "n = 2"));
    let quadratic = "name = \"quadratic\"\nn = 3\np = 4\ncondition = 2.0\n";
    let own = "[problem]\nname = 'hyperparameter'\n[data]\nname = 'digits'\n";
    assert_like(own, (quadratic, "name = 'hyperparameter'\n[data]\nname = 'digits'\n"));
}

#[test]
fn algorithms_take_what_they_lack_from_the_entry_of_their_label() {
    let algorithms = &BASE[BASE.find("[[algorithm]]").unwrap()..];
    let like = |text: &str, other: &str| assert_like(text, (algorithms, other));
    let gt = "[[algorithm]]\nname='lopa-gt'\nalpha=0.02\nbeta=0.9\nlambda=0.8\n";
    let first = "[[algorithm]]\nname='d-soba'\nlabel='first'\nalpha=0.01\nbeta=0.5\nlambda=0.5\norder='first'\n";
    let dgd = "[[algorithm]]\nname='dgd'\nalpha={over_sqrt=0.5}\n";
    // The list is the file's, in its order.
    like("algorithm = ['dgd', 'lopa-gt']", &format!("{dgd}{gt}"));
    like("algorithm = ['first']", first);
    like(
        "[[algorithm]]\nname = 'lopa-gt'\nalpha = 0.5\n[[algorithm]]\nlabel = 'first'\nbeta = 0.25",
        &format!("{gt}{first}").replace("0.02", "0.5").replace("beta=0.5", "beta=0.25"),
    );
    like("algorithm = [{ name = 'dgd', alpha = 0.1 }]", &dgd.replace("{over_sqrt=0.5}", "0.1"));
    // A label that the base lacks, or one that is now another algorithm, begins anew.
    let new = "[[algorithm]]\nname = 'lopa-gt'\nlabel = 'new'\nalpha=1.0\nbeta=0.1\nlambda=0.1\n";
    like(new, new);
    let another = "[[algorithm]]\nname='lopa-lg'\nlabel='first'\nalpha=1.0\nbeta=0.1\nlambda=0.1\n";
    like(another, another);
}

#[test]
fn a_file_may_extend_one_that_extends_another() {
    let files = [
        ("a/b/top.toml", "extends = '../middle.toml'\nname = 'top'\n[run]\nevaluations = 9"),
        ("a/b/../middle.toml", "extends = '../base.toml'\nname = 'middle'\n[run]\nseeds = [5]"),
        ("a/b/../../base.toml", BASE),
    ];
    let like = BASE
        .replace("name = \"base\"", "name = 'top'")
        .replace("[1, 2]", "[5]")
        .replace("evaluations = 3", "evaluations = 9");
    assert_eq!(read(&files).unwrap(), read(&[("e.toml", &like)]).unwrap());
    let origins = source(&files).unwrap().origins().unwrap();
    let places = [
        ("name", "a/b/top.toml:2:8"),
        ("run.evaluations", "a/b/top.toml:4:15"),
        ("run.seeds", "a/b/../middle.toml:4:9"),
        ("problem.n", "a/b/../../base.toml:6:5"),
        ("algorithm.0.beta", "a/b/../../base.toml:23:8"),
    ];
    for (key, place) in places {
        assert_eq!(origins[key], place, "{key}");
    }
    assert!(!origins.contains_key("extends"));
    let mut source = source(&files).unwrap();
    source.sets = vec!["run.seeds=[6]".into()];
    assert_eq!(source.origins().unwrap()["run.seeds"], "--set run.seeds=[6]");
}

#[test]
fn mistakes_have_the_place_of_the_file_they_stand_in() {
    let base = |passage: &str, other: &str| {
        let text = BASE.replace(passage, other);
        let files = [("e.toml", "extends = 'base.toml'\n[run]\nseeds = [3]"), ("base.toml", &text)];
        read(&files).unwrap_err()
    };
    let cases = [
        (base("n = 3", "nn = 3"), "config/unknown-key", "base.toml:6:1"),
        (base("n = 3", "n = 'x'"), "config/wrong-type", "base.toml:6:5"),
        (base("condition = 2.0", "condition = -2.0"), "config/out-of-range", "base.toml:8:13"),
        (base("[run]", "[run"), "config/syntax", "base.toml:15:5"),
        (base("[run]", "[runs]"), "config/out-of-range", "e.toml:2:1"),
        (base("name = \"base\"", "nome = \"base\""), "config/unknown-key", "base.toml:2:1"),
        (base("[network]\nnodes", "[other]\nnodes"), "config/missing-key", "e.toml:1:1"),
        (on_base("[problem]\nm = 3").unwrap_err(), "config/unknown-key", "e.toml:3:1"),
        (on_base("extend = 'x'").unwrap_err(), "config/unknown-key", "e.toml:2:1"),
    ];
    for (error, id, place) in cases {
        assert_eq!((error.id, error.place.as_deref()), (id, Some(place)), "{error}");
    }
}

#[test]
fn what_cannot_be_extended_is_refused_with_a_remedy() {
    let of = |files: &[(&str, &str)]| read(files).unwrap_err();
    let cases = [
        (of(&[("e.toml", "extends = 'e.toml'")]), "extends itself"),
        (of(&[("e.toml", "extends = './x/../e.toml'")]), "extends itself"),
        (of(&[("a.toml", "extends = 'b.toml'"), ("b.toml", "extends = 'a.toml'")]), "itself"),
        (of(&[("e.toml", "extends = 'gone.toml'")]), "no such file"),
        (of(&[("e.toml", "extends = ''")]), "does not name a file"),
        (of(&[("e.toml", "extends = '..'")]), "does not name a file"),
        (of(&[("e.toml", "extends = ['a.toml', 'b.toml']")]), "one file"),
    ];
    for (error, part) in cases {
        assert!(error.message.contains(part) && error.hint.is_some(), "{error}");
        assert!(
            error.place.as_deref().is_some_and(|place| place.contains(".toml:1:11")),
            "{error}"
        );
    }
    // Text that is no file, and overrides, choose no file.
    let registries = Registries::default();
    let text = Source::new("text", format!("extends = 'base.toml'\n{BASE}"));
    let set = Source { sets: vec!["extends=base.toml".into()], ..Source::new("text", BASE) };
    for source in [text, set] {
        let error = Experiment::read(&source, &registries).unwrap_err();
        assert!(error.id == "config/extends" && error.hint.is_some(), "{error}");
    }
}

#[test]
fn at_most_eight_files_are_extended() {
    let chain = |length: usize| {
        let mut files: Vec<(String, String)> = (0..length)
            .map(|i| (format!("{i}.toml"), format!("extends = '{}.toml'", i + 1)))
            .collect();
        files.push((format!("{length}.toml"), BASE.to_string()));
        let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&a[..], &b[..])).collect();
        read(&files)
    };
    assert_eq!(chain(8).unwrap().name, "base");
    let error = chain(9).unwrap_err();
    assert!(error.message.contains("more than 8 files"), "{error}");
}

#[test]
fn files_on_disk_are_found_from_the_folder_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("inner")).unwrap();
    fs::write(folder.path().join("base.toml"), BASE).unwrap();
    let file = folder.path().join("inner/e.toml");
    fs::write(&file, "extends = '../base.toml'\nname = 'inner'").unwrap();
    let read = |path: &Path| Experiment::read(&open(path)?, &Registries::default());
    assert_eq!(read(&file).unwrap().name, "inner");
    let absolute =
        format!("extends = {}", Value::from(folder.path().join("base.toml").to_str().unwrap()));
    fs::write(&file, absolute).unwrap();
    assert_eq!(read(&file).unwrap().name, "base");
    fs::write(&file, "extends = '../bass.toml'").unwrap();
    let error = read(&file).unwrap_err();
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("base.toml`?")), "{error}");
    fs::write(folder.path().join("base.toml"), b"name = '\xff'").unwrap();
    fs::write(&file, "extends = '../base.toml'").unwrap();
    let error = read(&file).unwrap_err();
    assert!(error.message.contains("UTF-8") && error.id == "config/extends", "{error}");
}

#[test]
fn a_base_is_as_if_its_text_stood_in_the_file() {
    // Every line of the base left out, once in a single file and once in a base.
    for out in 0..BASE.lines().count() {
        let kept = BASE.lines().enumerate().filter(|(i, _)| *i != out);
        let text: String = kept.map(|(_, line)| format!("{line}\n")).collect();
        let alone = read(&[("base.toml", &text)]);
        let under = read(&[("e.toml", "extends = 'base.toml'"), ("base.toml", &text)]);
        match (alone, under) {
            (Err(alone), Err(under)) => assert_eq!(alone.id, under.id, "line {out}"),
            (alone, under) => assert_eq!(alone, under, "line {out}"),
        }
    }
}
