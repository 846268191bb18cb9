//! Tuning: fair, deterministic, resumable.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lopa::config::Source;
use lopa::error::Error;
use lopa::experiment::{Experiment, Registries, open};
use lopa::run::Context;
use lopa_study::tune::{Trial, TuneSpec, Tuned, tune};

const EXPERIMENT: &str = r#"
schema = 1
name = "small"

[problem]
name = "quadratic"
n = 3
p = 4
condition = 2.0
heterogeneity = 0.5

[network]
nodes = 4
graph = "ring"

[run]
seeds = [1]
iterations = 60
batch = "full"

[[algorithm]]
name = "lopa-gt"
alpha = 0.0001
beta = 0.9
lambda = 0.9

[[algorithm]]
name = "ma-dsbo"
alpha = 0.0001
beta = 0.9
lambda = 0.9
gamma = 0.4
inner_steps = 2
hv_steps = 2

[tune]
seeds = [11, 12]
trials = 9
metric = "grad_phi_sq"
"#;

/// The experiment with another `[tune]` section.
fn with(tune: &str) -> Source {
    let start = EXPERIMENT.find("[tune]").expect("there is such a section");
    Source::new("small.toml", format!("{}{tune}", &EXPERIMENT[..start]))
}

/// A number that a trial tried.
fn number(trial: &Trial, key: &str) -> f64 {
    trial.params[key].number().expect("a number")
}

/// The outcome, and the number of trials run for it.
fn search(source: &Source, journal: &Path, threads: usize) -> Result<(Tuned, usize), Error> {
    search_beside(source, journal, None, threads)
}

/// The same, and the tuned file extends that of the source.
fn search_beside(
    source: &Source,
    journal: &Path,
    extends: Option<&str>,
    threads: usize,
) -> Result<(Tuned, usize), Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let interrupt = AtomicBool::new(false);
    let context =
        Context { pool: Some(&pool), data_dir: ".".into(), interrupt: &interrupt, probe: None };
    let ran = AtomicUsize::new(0);
    let count = |_: &Trial, _, _| {
        ran.fetch_add(1, Ordering::Relaxed);
    };
    let tuned = tune(source, &Registries::default(), journal, extends, &context, &count, &|_| ())?;
    Ok((tuned, ran.into_inner()))
}

/// The experiment with nine trials by this method, in ranges that stay.
fn nine_trials(method: &str, seeds: &str) -> Source {
    with(&format!(
        "[tune]\nseeds = {seeds}\ntrials = 9\nmetric = \"grad_phi_sq\"\nmethod = \"{method}\"\n\
         [tune.ranges.\"*\"]\nalpha = {{ low = 3e-6, high = 3e-3 }}\n\
         beta = {{ low = 0.09, high = 9.0 }}\nlambda = \"beta\"\n"
    ))
}

#[test]
fn the_outcome_does_not_depend_on_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    for method in ["random", "grid", "halving"] {
        let source = nine_trials(method, "[11, 12]");
        let outcomes = [1, 3].map(|threads| {
            let journal = folder.path().join(format!("{method}-{threads}.jsonl"));
            search(&source, &journal, threads).expect("a good search").0
        });
        assert_eq!(outcomes[0], outcomes[1], "{method}");
    }
}

#[test]
fn every_algorithm_gets_the_same_budget() {
    let folder = tempfile::tempdir().expect("a folder");
    for method in ["random", "grid", "halving"] {
        let journal = folder.path().join(format!("{method}.jsonl"));
        let (tuned, ran) =
            search(&nine_trials(method, "[11]"), &journal, 2).expect("a good search");
        let count = |label: &str| tuned.trials.iter().filter(|t| t.algorithm == label).count();
        assert_eq!(count("lopa-gt"), count("ma-dsbo"), "{method}");
        assert_eq!(tuned.trials.len(), ran);
        let first = tuned.trials.iter().filter(|t| t.algorithm == "lopa-gt" && t.rung == 0);
        assert_eq!(first.count(), 9);
        // 9 trials on a ninth of the budget, 3 on a third, 1 on all of it.
        assert_eq!(count("lopa-gt"), if method == "halving" { 13 } else { 9 }, "{method}");
    }
}

#[test]
fn a_much_better_step_size_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "[tune]\nseeds = [11]\ntrials = 8\nmetric = \"grad_phi_sq\"\nmethod = \"grid\"\n\
                [tune.ranges.\"*\"]\nalpha = { low = 1e-4, high = 100.0 }\n";
    let journal = folder.path().join("journal.jsonl");
    let (tuned, _) = search(&with(text), &journal, 2).expect("a good search");
    for best in &tuned.best {
        let own = tuned.trials.iter().find(|t| t.algorithm == best.algorithm && t.trial == 0);
        let own = own.and_then(|t| t.value).expect("tiny steps do not diverge");
        assert!(best.value.expect("found") < own / 100.0, "{best:?} against {own}");
        assert!((1e-3..10.0).contains(&number(best, "alpha")), "{best:?}");
    }
    // The largest step diverges, which is the worst result of a trial.
    assert!(tuned.trials.iter().any(|t| t.value.is_none() && number(t, "alpha") > 50.0));
}

#[test]
fn the_tuned_file_is_an_experiment_with_its_provenance() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Source::new("small.toml", EXPERIMENT);
    let (tuned, _) = search(&source, &folder.path().join("j.jsonl"), 2).expect("a good search");
    let experiment =
        Experiment::read(&Source::new("tuned", &tuned.text[..]), &Registries::default())
            .expect("good");
    assert_eq!(experiment.name, "small-tuned");
    assert_eq!(experiment.run.seeds, [1]);
    for (algorithm, best) in experiment.algorithms.iter().zip(&tuned.best) {
        for (key, value) in &best.params {
            assert_eq!(algorithm.choice.params()[key].as_float(), value.number(), "{key}");
        }
        assert_eq!(best.params["lambda"], best.params["beta"]);
    }
    for part in ["lopa tune small.toml", "9 trials", "seeds [11, 12]", "grad_phi_sq"] {
        assert!(tuned.text.contains(part), "{part}");
    }
}

#[test]
fn a_tuned_file_extends_the_searched_one_and_says_the_same_as_a_whole_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small.toml");
    fs::write(&path, EXPERIMENT).expect("written");
    let of = |text: &str| {
        let tuned = folder.path().join("small-tuned.toml");
        fs::write(&tuned, text).expect("written");
        let source = open(&tuned).unwrap_or_else(|error| panic!("{error}\n{text}"));
        Experiment::read(&source, &Registries::default()).expect("good").resolved()
    };
    // Overrides that a file on top can say, and one it cannot: a key that is gone.
    let cases = [
        (&[][..], true),
        (&["run.seeds=[5]", "network.graph.name=path", "scope=global"], true),
        (&["algorithm.ma-dsbo.label=other", "algorithm.lopa-gt.gamma=0.5"], true),
        (&["run={ seeds = [1], budget = { hessians = 40 } }"], false),
    ];
    for (number, (sets, on_top)) in cases.into_iter().enumerate() {
        let mut source = open(&path).expect("a file");
        source.sets = sets.iter().map(|set| set.to_string()).collect();
        let journal = folder.path().join(format!("{number}.jsonl"));
        let texts = [None, Some("small.toml")].map(|extends| {
            search_beside(&source, &journal, extends, 2).expect("a good search").0.text
        });
        assert_eq!(texts[1].contains("extends = \"small.toml\""), on_top, "{}", texts[1]);
        assert_eq!(of(&texts[0]), of(&texts[1]), "{sets:?}");
        let values = texts[1].lines().filter(|line| !line.starts_with('#')).count();
        assert!(!on_top || values < 20, "{}", texts[1]);
    }
}

#[test]
fn a_search_resumes_from_a_journal_torn_anywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal.jsonl");
    let source = Source::new("small.toml", EXPERIMENT);
    let (whole, all) = search(&source, &journal, 1).expect("a good search");
    assert!(all >= 18);
    let bytes = fs::read(&journal).expect("the journal");
    let again = search(&source, &journal, 1).expect("all is done");
    assert_eq!(again, (whole.clone(), 0));
    for length in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        fs::write(&journal, &bytes[..length]).expect("written");
        let (tuned, ran) = search(&source, &journal, 1).expect("a resumed search");
        assert_eq!(tuned, whole, "cut at {length}");
        let lines = bytes[..length].iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(ran, all.saturating_sub(lines.saturating_sub(1)), "cut at {length}");
        assert_eq!(fs::read(&journal).expect("kept"), bytes, "cut at {length}");
    }
}

// g has curvatures between 1/2 and 1: beta = 1.9 is stable, a quarter more is not. It is faster than
// the file's own value, and must not win.
#[test]
fn winners_survive_further_seeds_with_room_above_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let search_with = |confirm: usize| {
        let mut source = with(&format!(
            "[tune]\nseeds = [11]\ntrials = 2\nmetric = \"theta_error\"\nmethod = \"grid\"\n\
             confirm = {confirm}\n[tune.ranges.lopa-gt]\nbeta = [1.9]\nlambda = \"beta\"\n\
             [tune.ranges.ma-dsbo]\nalpha = [0.0002]\n"
        ));
        let sets = ["run.iterations=200", "algorithm.lopa-gt.beta=0.02"];
        source.sets.extend(sets.map(String::from));
        source.sets.push("algorithm.lopa-gt.lambda=0.02".into());
        let journal = folder.path().join(format!("{confirm}.jsonl"));
        let (tuned, _) = search(&source, &journal, 2).expect("a good search");
        let again = search(&source, &journal, 2).expect("all is done");
        assert_eq!(again, (tuned.clone(), 0), "tests are resumed as trials are");
        (tuned, fs::read_to_string(journal).expect("the journal"))
    };
    let (untested, _) = search_with(0);
    assert!(untested.tests.is_empty() && number(&untested.best[0], "beta") == 1.9, "{untested:?}");
    let (tuned, journal) = search_with(3);
    assert_eq!(number(&tuned.best[0], "beta"), 0.02, "{:?}", tuned.tests);
    let stands: Vec<_> =
        tuned.tests.iter().map(|test| (&test.algorithm[..], test.stands)).collect();
    assert_eq!(stands, [("lopa-gt", false), ("lopa-gt", true), ("ma-dsbo", true)]);
    for test in &tuned.tests {
        assert_eq!(test.seeds, [12, 13, 14], "neither those of trials nor those of the run");
    }
    assert_eq!(journal.matches("\"confirms\"").count(), 3);
    for part in [
        "trial 1 on the edge",
        "trial 0 survives seeds 12, 13, 14",
        "beta: the smallest value tried",
    ] {
        assert!(tuned.text.contains(part), "{part}\n{}", tuned.text);
    }
}

#[test]
fn a_journal_of_another_search_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal.jsonl");
    search(&Source::new("small.toml", EXPERIMENT), &journal, 1).expect("a good search");
    let other = with("[tune]\nseeds = [13]\ntrials = 9\nmetric = \"grad_phi_sq\"\n");
    assert_eq!(search(&other, &journal, 1).expect_err("other seeds").id, "tune/other-search");
    let text = fs::read_to_string(&journal).expect("kept");
    let damaged = text.replacen("\"rung\":0", "\"rung\":x", 1);
    fs::write(&journal, damaged).expect("written");
    let source = Source::new("small.toml", EXPERIMENT);
    assert_eq!(search(&source, &journal, 1).expect_err("damaged").id, "tune/damaged-journal");
}

#[test]
fn unfair_or_invalid_sections_are_refused() {
    let cases = [
        ("seeds = [1, 2]", "tune/seeds-overlap"),
        ("seeds = []", "config/out-of-range"),
        ("trials = 3", "config/missing-key"),
        ("seeds = [11]\nmetric = \"test_accuracy\"", "config/out-of-range"),
        ("seeds = [11]\nmetric = \"own_test_accuracy\"", "config/out-of-range"),
        ("seeds = [11]\ntrials = 0", "config/out-of-range"),
        ("seeds = [11]\nshare = 0.0", "config/out-of-range"),
        ("seeds = [11]\nconfirm = 1001", "config/out-of-range"),
        ("seeds = [11]\nshares = 0.5", "config/unknown-key"),
        ("seeds = [11]\nmethod = \"gird\"", "config/unknown-value"),
        ("seeds = [11]\nranges.dgd.alpha = [1.0]", "config/unknown-name"),
        ("seeds = [11]\nranges.lopa-gt.alpha = []", "config/out-of-range"),
        ("seeds = [11]\nranges.lopa-gt.alpha = { low = 2.0, high = 1.0 }", "config/out-of-range"),
        ("seeds = [11]\nranges.lopa-gt.alpha = { low = 0.0, high = 1.0 }", "config/out-of-range"),
    ];
    for (section, id) in cases {
        let source = with(&format!("[tune]\n{section}\n"));
        let experiment = Experiment::read(&source, &Registries::default()).expect(section);
        let error = TuneSpec::of(&source, &experiment).expect_err(section);
        assert_eq!(error.id, id, "{section}: {error}");
        assert!(error.place.is_some(), "{section}");
    }
}

#[test]
fn unknown_parameters_and_metrics_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = with("[tune]\nseeds = [11]\nranges.lopa-gt.speed = [1.0]\n");
    let error = search(&source, &folder.path().join("j"), 1).expect_err("no such parameter");
    assert_eq!(error.id, "tune/unknown-parameter");
    let source = with("[tune]\nseeds = [11]\ntrials = 2\nmetric = \"speed\"\n");
    let error = search(&source, &folder.path().join("k"), 1).expect_err("no such metric");
    assert_eq!(error.id, "config/unknown-name");
}

/// Where the file leaves steps out, the search is around those that the algorithm finds.
#[test]
fn steps_that_are_left_out_are_the_middle_of_the_search() {
    let text = EXPERIMENT.replacen("alpha = 0.0001\nbeta = 0.9\nlambda = 0.9\n", "", 1);
    let folder = tempfile::tempdir().unwrap();
    let never = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &never, probe: None };
    let source = Source::new("small.toml", text);
    let journal = folder.path().join("journal");
    let registries = Registries::default();
    let tuned =
        tune(&source, &registries, &journal, None, &context, &|_, _, _| (), &|_| ()).unwrap();
    let own: Vec<&Trial> =
        tuned.trials.iter().filter(|trial| trial.algorithm == "lopa-gt").collect();
    assert!(own[0].params.is_empty() && own[0].value.is_some(), "{own:?}");
    assert!(own[1..].iter().all(|trial| trial.params.len() == 3), "{own:?}");
    let range = |key: &str| {
        let all = own[1..].iter().map(|trial| number(trial, key));
        all.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), step| {
            (low.min(step), high.max(step))
        })
    };
    // The curvature of g is 1 at most, and c is 1.4.
    let (low, high) = range("beta");
    assert!(low > 0.1 && low < 1.4 && high < 14.0 * 2.1, "{low} {high}");
    let (low, high) = range("alpha");
    assert!(high / low > 10.0 && high / low <= 900.0 * 1.01, "{low} {high}");
    Experiment::read(&Source::new("tuned.toml", tuned.text), &registries).unwrap();
}

/// Far too small steps: the range moves until the best is inside, every algorithm gets as many trials, and the
/// outcome is the same on any number of threads, and from a journal torn anywhere.
#[test]
fn ranges_move_where_the_best_is_at_their_edge() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut source =
        with("[tune]\nseeds = [16]\ntrials = 8\nmetric = \"grad_phi_sq\"\nconfirm = 0\n");
    source.sets = vec!["algorithm.lopa-gt.alpha=1e-6".into()];
    let journal = folder.path().join("one.jsonl");
    let (tuned, ran) = search(&source, &journal, 1).expect("a good search");
    let of = |label: &str| tuned.trials.iter().filter(|t| t.algorithm == label).count();
    assert_eq!((of("lopa-gt"), of("ma-dsbo")), (ran / 2, ran / 2));
    let alpha = |label: &str| {
        let moves = tuned.moves.iter().filter(|moved| moved.algorithm == label);
        moves.filter(|moved| moved.parameter == "alpha").collect::<Vec<_>>()
    };
    let moved = alpha("lopa-gt");
    assert!(!moved.is_empty() && moved.iter().all(|moved| moved.survived), "{:?}", tuned.moves);
    assert_eq!(moved[0].after, 8);
    let (low, high) = (moved[0].range.low, moved[0].range.high);
    assert!((high / low / 900.0 - 1.0).abs() < 1e-9, "{low} {high}");
    // The first range ends at 3e-5.
    assert!(low < 3e-5 && high > 3e-5, "{low} {high}");
    let own = || tuned.trials.iter().filter(|t| t.algorithm == "lopa-gt");
    let least = |trials: &mut dyn Iterator<Item = &Trial>| {
        trials.filter_map(|trial| trial.value).fold(f64::INFINITY, f64::min)
    };
    let first = least(&mut own().filter(|trial| trial.trial < 8));
    assert!(least(&mut own()) < first, "beyond the first range is a better one");
    let of_second = |trial: &&Trial| (8..12).contains(&trial.trial);
    for trial in own().filter(of_second) {
        let alpha = number(trial, "alpha");
        assert!((low * 0.999..=high * 1.001).contains(&alpha), "{trial:?}");
    }
    assert!(
        tuned.text.contains("of 8 trials the best was at the edge of its range"),
        "{}",
        tuned.text
    );
    let many = search(&source, &folder.path().join("three.jsonl"), 3).expect("a good search");
    assert_eq!(many, (tuned.clone(), ran));
    let bytes = fs::read(&journal).expect("the journal");
    for length in (0..bytes.len()).step_by(331) {
        fs::write(&journal, &bytes[..length]).expect("written");
        assert_eq!(search(&source, &journal, 1).expect("a resumed search").0, tuned, "{length}");
    }
}

/// Ranges that are given stay, and the file says that the best is at their end. Where nothing survives, default
/// ranges move down.
#[test]
fn given_ranges_stay_and_ranges_without_survivors_move_down() {
    let folder = tempfile::tempdir().expect("a folder");
    let given = "[tune]\nseeds = [11]\ntrials = 6\nmetric = \"grad_phi_sq\"\nconfirm = 0\n\
                 [tune.ranges.\"*\"]\nalpha = { low = 1e-5, high = 1e-3 }\n";
    let (tuned, ran) =
        search(&with(given), &folder.path().join("given.jsonl"), 1).expect("a good search");
    assert!(tuned.moves.is_empty() && ran == 12, "{:?}", tuned.moves);
    assert!(tuned.text.contains("alpha: the largest value tried"), "{}", tuned.text);
    let mut source =
        with("[tune]\nseeds = [11]\ntrials = 4\nmetric = \"grad_phi_sq\"\nconfirm = 0\n");
    source.sets = ["alpha=1e6", "beta=1e4", "lambda=1e4"]
        .map(|set| format!("algorithm.lopa-gt.{set}"))
        .to_vec();
    let (tuned, _) = search(&source, &folder.path().join("large.jsonl"), 1).expect("a search");
    let down = |moved: &&lopa_study::tune::Moved| {
        moved.algorithm == "lopa-gt" && moved.parameter == "beta" && !moved.survived
    };
    let first = tuned.moves.iter().find(down).expect("nothing survives such steps");
    assert!(first.range.high <= 1e4 * 1.001 && tuned.text.contains("none survived"), "{first:?}");
}

/// Loops and choices by name are searched beside steps that move; the tuned file has them.
#[test]
fn names_and_loops_are_searched_and_ranges_around_a_value_move() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut source = with(
        "[tune]\nseeds = [11]\ntrials = 12\nmetric = \"grad_phi_sq\"\nconfirm = 1\n\
         [tune.ranges.\"*\"]\nalpha = { around = 3 }\nbeta = { around = 1.5 }\nlambda = \"beta\"\n\
         hv_steps = [1, 2, 5]\ninverse = [\"neumann\", \"shia\"]\n",
    );
    source.text =
        source.text.replace("name = \"ma-dsbo\"", "name = \"spdb\"").replace("gamma = 0.4\n", "");
    let (tuned, _) = search(&source, &folder.path().join("j.jsonl"), 2).expect("a good search");
    // Both alphas of the file are far too small.
    for label in ["lopa-gt", "spdb"] {
        let moved = tuned.moves.iter().any(|m| m.algorithm == label && m.parameter == "alpha");
        assert!(moved, "{label}: {:?}", tuned.moves);
    }
    let tried = |label: &str, key: &str| -> std::collections::BTreeSet<String> {
        let own = tuned.trials.iter().filter(|trial| trial.algorithm == label);
        own.filter_map(|trial| trial.params.get(key)).map(ToString::to_string).collect()
    };
    assert_eq!(tried("spdb", "inverse").into_iter().collect::<Vec<_>>(), ["neumann", "shia"]);
    assert_eq!(tried("spdb", "hv_steps").into_iter().collect::<Vec<_>>(), ["1", "2", "5"]);
    assert!(tried("lopa-gt", "inverse").is_empty(), "LoPA has no such parameter");
    let best = tuned.best.iter().find(|best| best.algorithm == "spdb").expect("a winner");
    let read = Experiment::read(&Source::new("t.toml", tuned.text.clone()), &Registries::default())
        .expect("the tuned file is an experiment");
    let spdb = read.algorithms.iter().find(|one| one.label == "spdb").expect("it is there");
    assert_eq!(
        spdb.choice.params()["inverse"].as_str(),
        Some(&best.params["inverse"].to_string()[..])
    );
    let steps = spdb.choice.params()["hv_steps"].as_integer().map(|whole| whole as f64);
    assert_eq!(steps, best.params["hv_steps"].number());
    assert!(tuned.text.contains("which moved to"), "{}", tuned.text);
}
