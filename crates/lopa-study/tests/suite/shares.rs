//! A search that several parts share ends like that of one process.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lopa::config::Source;
use lopa::error::Result;
use lopa::experiment::Registries;
use lopa::folder::work::{Member, Unit};
use lopa::run::Context;
use lopa_study::tune::{Note, Trials, Tuned, tune, work};

const EXPERIMENT: &str = r#"
schema = 1
name = "small"
problem = { name = "quadratic", n = 3, p = 4, condition = 2.0 }
network = { nodes = 3, graph = "ring" }
run = { seeds = [1], iterations = 30, batch = "full" }
tune = { seeds = [11], trials = 9, metric = "grad_phi_sq", method = "METHOD", confirm = 2 }

[[algorithm]]
name = "lopa-gt"

[[algorithm]]
name = "ma-dsbo"
alpha = 0.001
beta = 0.5
lambda = 0.5
gamma = 0.4
inner_steps = 2
hv_steps = 2
"#;

static NEVER: AtomicBool = AtomicBool::new(false);

fn source(method: &str) -> Source {
    Source::new("small.toml", EXPERIMENT.replace("METHOD", method))
}

/// The outcome, and how many trials and tests ran for it.
fn search(source: &Source, trials: Trials) -> (Result<Tuned>, usize) {
    let context = Context { pool: None, data_dir: "".into(), interrupt: &NEVER, probe: None };
    let ran = AtomicUsize::new(0);
    let count = || ran.fetch_add(1, Ordering::Relaxed);
    let tuned = tune(
        source,
        &Registries::default(),
        trials,
        None,
        &context,
        &|_, _, _| _ = count(),
        &|note| {
            if let Note::Test(_) = note {
                count();
            }
        },
    );
    (tuned, ran.into_inner())
}

fn member(number: usize, of: usize, lease: Duration) -> Member {
    let share = format!("{number}/{of}").parse().unwrap();
    Member { lease, ..Member::here(share, lease) }
}

fn part(source: &Source, folder: &Path, (number, of): (usize, usize)) -> (Result<Tuned>, usize) {
    let member = member(number, of, Duration::from_secs(600));
    search(source, Trials::Part { folder, member, progress: &|_| () })
}

#[test]
fn the_parts_of_a_search_end_like_one_process() {
    for method in ["random", "grid", "halving"] {
        let (source, folder) = (source(method), tempfile::tempdir().unwrap());
        let at = |name: &str| folder.path().join(name);
        let (alone, ran) = search(&source, Trials::Here(&at("alone.jsonl")));
        let alone = alone.unwrap();
        let together: Vec<(Result<Tuned>, usize)> = std::thread::scope(|scope| {
            let parts: Vec<_> = (1..=3)
                .map(|number| {
                    scope.spawn({
                        let (source, folder) = (&source, at("parts"));
                        move || part(source, &folder, (number, 3))
                    })
                })
                .collect();
            parts.into_iter().map(|part| part.join().unwrap()).collect()
        });
        let total: usize = together.iter().map(|(_, ran)| ran).sum();
        assert_eq!(total, ran, "{method}: nothing is done twice");
        for (tuned, _) in together {
            assert_eq!(tuned.unwrap(), alone, "{method}");
        }
        let (folder, journal) = (&at("parts"), &at("merged.jsonl"));
        let (merged, ran) = search(&source, Trials::Merge { folder, journal });
        assert_eq!((merged.unwrap(), ran), (alone.clone(), 0), "{method}");
        // The journal is that of one process, to the byte, and resumes.
        assert_eq!(fs::read(journal).unwrap(), fs::read(at("alone.jsonl")).unwrap(), "{method}");
        let (again, ran) = search(&source, Trials::Here(journal));
        assert_eq!((again.unwrap(), ran), (alone, 0), "{method}");
    }
}

#[test]
fn a_merge_before_the_end_names_what_is_missing() {
    let (source, folder) = (source("random"), tempfile::tempdir().unwrap());
    let (parts, journal) = (folder.path().join("parts"), folder.path().join("j"));
    let merge = || search(&source, Trials::Merge { folder: &parts, journal: &journal }).0;
    assert_eq!(merge().unwrap_err().id, "share/missing");
    part(&source, &parts, (1, 2)).0.unwrap();
    fs::remove_file(parts.join("results/trial-ma-dsbo-0-4")).unwrap();
    let text = merge().unwrap_err().to_string();
    for words in ["1 of 18 results are missing", "ma-dsbo, trial 4", "part 1/2 on", "--share 1/2"] {
        assert!(text.contains(words), "{text}");
    }
    // Another part does what is left, and nothing else.
    let (tuned, ran) = part(&source, &parts, (2, 2));
    assert_eq!((tuned.unwrap(), ran), (merge().unwrap(), 1));
    // Another search is refused.
    let mut other = source.clone();
    other.sets.push("run.iterations=31".into());
    assert_eq!(part(&other, &parts, (1, 1)).0.unwrap_err().id, "share/other-work");
}

#[test]
fn trials_may_be_sent_elsewhere() {
    let (source, folder) = (source("halving"), tempfile::tempdir().unwrap());
    let at = |name: &str| folder.path().join(name);
    let alone = search(&source, Trials::Here(&at("alone.jsonl"))).0.unwrap();
    let sent: Mutex<Vec<String>> = Mutex::default();
    // In the opposite order, by text alone.
    let send = |units: &[Unit], keep: &mut dyn FnMut(usize, String) -> Result<()>| {
        for (at, unit) in units.iter().enumerate().rev() {
            sent.lock().unwrap().push(unit.name.clone());
            let context = Context { data_dir: "".into(), ..Context::default() };
            keep(at, work(&source, &Registries::default(), &unit.task, &context)?)?;
        }
        Ok(())
    };
    let journal = &at("sent.jsonl");
    let (tuned, _) = search(&source, Trials::Sent { journal, send: &send });
    assert_eq!(tuned.unwrap(), alone);
    let first = sent.lock().unwrap().len();
    let (again, ran) = search(&source, Trials::Sent { journal, send: &send });
    assert_eq!((again.unwrap(), ran), (alone, 0));
    assert_eq!(sent.lock().unwrap().len(), first, "nothing is sent twice");
    let context = Context::default();
    let error = |task: &str| work(&source, &Registries::default(), task, &context).unwrap_err();
    for task in ["", "{}", r#"{"trial":{"index":7,"rung":0,"trial":0,"params":{},"share":1.0}}"#] {
        assert_eq!(error(task).id, "tune/other-search", "{task}");
    }
}
