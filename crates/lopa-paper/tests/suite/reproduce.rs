//! Resuming interrupted experiments, and judging claims by the traces in their folders.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::experiment::{Experiment, open};
use lopa::folder::{Run, RunReader, Traces, complete};
use lopa::problem::derivative::Counts;
use lopa::run::trace::Row;
use lopa::run::{Context, Listener, Outcome};
use lopa_paper::reproduce::claims::Topic;
use lopa_paper::reproduce::claims::{Claim, Judgement, Test, Verdict};
use lopa_paper::reproduce::readings::{FILES, Found, page, readings};
use lopa_paper::reproduce::{Pages, Part, entries, judge};
use lopa_study::tune::TuneSpec;
use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "small"
problem = { name = "quadratic", n = 3, p = 4, condition = 2.0, heterogeneity = 0.5 }
network = { nodes = 4, graph = "ring" }
run = { seeds = [1, 2, 3], iterations = 600, batch = "full", evaluations = 5 }

[[algorithm]]
name = "lopa-gt"
alpha = 0.02
beta = 0.9
lambda = 0.9

[[algorithm]]
name = "lopa-lg"
alpha = 0.02
beta = 0.9
lambda = 0.9
"#;

fn experiment() -> Experiment {
    Experiment::read(
        &Source::new("small.toml", EXPERIMENT),
        &lopa::experiment::Registries::default(),
    )
    .expect("a good file")
}

/// Records the runs made.
#[derive(Default)]
struct Recorder(Vec<String>);

impl Listener for Recorder {
    fn end(&mut self, outcome: &Outcome) {
        self.0.push(format!("{}, seed {}", outcome.algorithm, outcome.seed));
    }
}

/// Completes the experiment; returns its folder and the runs made for it.
fn resume(runs: &Path) -> (std::path::PathBuf, Vec<String>) {
    let interrupt = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: ".".into(), interrupt: &interrupt, probe: None };
    let mut made = Recorder::default();
    let (folder, whole) =
        complete(&experiment(), None, (runs, 1), &context, &mut made).expect("a good run");
    assert!(whole);
    (folder, made.0)
}

fn digests(folder: &Path) -> Vec<(String, u64, String)> {
    let results = RunReader::open(folder).and_then(|folder| folder.results()).expect("whole");
    let mut all: Vec<_> =
        results.into_iter().map(|run| (run.algorithm, run.seed, run.digest)).collect();
    all.sort();
    all
}

fn traces(folder: &Path) -> Traces {
    RunReader::open(folder).and_then(|folder| folder.traces()).expect("whole")
}

#[test]
fn finished_runs_are_not_repeated() {
    let runs = tempfile::tempdir().expect("a folder");
    let (folder, made) = resume(runs.path());
    assert_eq!(made.len(), 6);
    let before = digests(&folder);
    assert_eq!(resume(runs.path()), (folder.clone(), Vec::new()));
    assert_eq!(digests(&folder), before);
    assert_eq!(fs::read_dir(runs.path()).expect("there").count(), 1);
}

#[test]
fn missing_runs_are_made_and_the_rest_kept() {
    let runs = tempfile::tempdir().expect("a folder");
    let (folder, _) = resume(runs.path());
    let before = (digests(&folder), traces(&folder));
    // As if it had been killed in the fourth run: two results are missing, and a row is torn.
    let results = folder.join("results.json");
    let text = fs::read_to_string(&results).expect("written");
    let mut all: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    all.truncate(3);
    // Checksums say how many entries there are; files of earlier versions have none.
    let entries = all.iter_mut().filter_map(Value::as_object_mut);
    entries.for_each(|entry| drop(entry.remove("check")));
    fs::write(&results, serde_json::to_string(&all).expect("JSON")).expect("written");
    let metrics = folder.join("metrics.jsonl");
    let text = fs::read_to_string(&metrics).expect("written");
    fs::write(&metrics, &text[..text.len() * 2 / 3]).expect("written");
    let (again, made) = resume(runs.path());
    assert_eq!(made, ["lopa-lg, seed 2", "lopa-gt, seed 3", "lopa-lg, seed 3"]);
    assert_eq!((again.clone(), digests(&again)), (folder.clone(), before.0));
    let after = traces(&folder);
    for (run, was) in after.runs.iter().zip(&before.1.runs) {
        let values = |run: &Run| -> Vec<_> {
            run.rows.iter().map(|row| (row.iteration, row.values.clone())).collect()
        };
        assert_eq!(values(run), values(was));
    }
}

fn part(steps: &'static str) -> Part {
    let experiment = experiment();
    Part { figures: &["fig1"], dataset: "mnist", variant: None, steps, experiment }
}

#[test]
fn entries_and_verdicts_come_from_the_folder() {
    let runs = tempfile::tempdir().expect("a folder");
    let (folder, _) = resume(runs.path());
    let traces = traces(&folder);
    let entries = entries(&part("given"), &traces);
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["algorithm"], "lopa-gt");
    assert_eq!(entries[0]["seeds"], serde_json::json!([1, 2, 3]));
    assert_eq!(entries[0]["hessians"]["mean"], 601.0);
    assert_eq!(entries[0]["test_accuracy"], Value::Null);
    assert!(entries[0]["consensus"]["mean"].as_f64() < entries[1]["consensus"]["mean"].as_f64());
    let claim = |better, worse| Claim {
        figure: "fig1",
        text: format!("{better} is better"),
        topic: Topic::Consensus,
        panels: vec![("fig1", "mnist", None)],
        test: Test::Ends { measure: "consensus", better, worse },
        unit: Some(format!("{better} {worse}")),
        aspect: "",
    };
    let all = [(part("given"), traces)];
    let pairs = [("lopa-gt", "lopa-lg"), ("lopa-lg", "lopa-gt"), ("lopa-gt", "lopa-gt")];
    let judged = judge(&pairs.map(|(better, worse)| claim(better, worse)), &all);
    let verdicts: Vec<_> = judged.iter().map(|one| (one.steps, one.verdict)).collect();
    let wanted = [Verdict::Held, Verdict::Reversed, Verdict::Tie].map(|one| ("given", one));
    assert_eq!(verdicts, wanted, "nothing was run with tuned steps");
    assert!(judged.iter().all(|one| one.units == "seeds" && one.interval.unwrap().pairs == 3));
    let [p, corrected] = [judged[0].p, judged[0].p_corrected].map(Option::unwrap);
    assert!((corrected / p - 3.0).abs() < 1e-9, "Holm among three: {p} {corrected}");
    let page = pages(&entries, &judged, false).first();
    assert!(page.contains("None of the 6 runs diverged."), "{page}");
    let said = "With gradient tracking the nodes end closer to each other. With given steps: **holds in part** (of 3 \
                comparisons 1 held, 1 reversed, 1 no difference above the margin). Reversed: \"lopa-lg is better\" (fig1, \
                given steps: × ";
    assert!(page.contains(said), "{page}");
    let row = "| lopa-gt is better | ratio of consensus at the end | a factor of 2 | held: × ";
    assert!(page.contains(row) && page.contains(", 3 seeds |"), "{page}");
    assert!(page.contains("Evidence: [Figure 1](#figure-1)."), "{page}");
    let quick = pages(&entries, &[], true).first();
    assert!(
        quick.contains("neither compared with the paper nor judged") && !quick.contains("Holds")
    );

    // The seeds that did not diverge are not a fair sample: they decide nothing.
    let [(part, mut traces)] = all;
    let lost = traces.runs.iter_mut().find(|run| run.algorithm == "lopa-lg").expect("it was run");
    lost.diverged = true;
    let entries = lopa_paper::reproduce::entries(&part, &traces);
    assert_eq!((&entries[0]["diverged"], &entries[1]["diverged"]), (&0.into(), &1.into()));
    let judged = judge(&[claim("lopa-gt", "lopa-lg")], &[(part, traces)]);
    let page = pages(&entries, &judged, false).first();
    assert!(page.contains("| lopa-lg | given | 2 of 3, the others diverged |"), "{page}");
    assert!(page.contains("1 of the 6 runs diverged: lopa-lg on 1 of 3 seeds (fig1, mnist, given"));
    // That a rival diverged is a result of its own.
    assert_eq!((judged[0].verdict, judged[0].interval), (Verdict::RivalDiverged, None));
    let said = "the rival diverged: lopa-lg diverged on 1 of 3 seeds and is not ranked";
    assert_eq!(judged[0].words(), said);
    assert!(page.contains("With given steps: **the rival diverges** (one comparison:"), "{page}");
}

#[test]
fn variants_with_different_steps_are_not_compared() {
    let runs = tempfile::tempdir().expect("a folder");
    let (folder, _) = resume(runs.path());
    let here = Part { variant: Some("here"), ..part("given") };
    let mut there = Part { variant: Some("there"), ..part("given") };
    let claim = Claim {
        figure: "fig1",
        text: String::new(),
        topic: Topic::Connectivity,
        panels: vec![("fig1", "mnist", Some("here"))],
        test: Test::Falls {
            measure: "consensus",
            algorithm: "lopa-gt",
            worse: ("fig1", "mnist", Some("there")),
        },
        unit: None,
        aspect: "",
    };
    let judge = |there: &Part| {
        let here = Part { steps: there.steps, ..here.clone() };
        let all = [(here, traces(&folder)), (there.clone(), traces(&folder))];
        judge(std::slice::from_ref(&claim), &all).pop().expect("it was run")
    };
    assert_eq!(judge(&there).verdict, Verdict::Tie);
    let other = EXPERIMENT.replacen("alpha = 0.02", "alpha = 0.01", 1);
    let registries = lopa::experiment::Registries::default();
    there.experiment = Experiment::read(&Source::new("other.toml", other), &registries).unwrap();
    let judged = judge(&there);
    let said = "cannot be told: lopa-gt ran with different steps in the two settings";
    assert_eq!((judged.words().as_str(), judged.interval), (said, None));
    // Tuned steps are those of each setting.
    there.steps = "tuned";
    assert_eq!(judge(&there).verdict, Verdict::Tie);
}

// ---- planted verdicts ----

/// One algorithm's accuracies, by seed; a run without one diverged.
fn planted(algorithm: &str, accuracies: &[Option<f64>]) -> Vec<Run> {
    let run = |(seed, accuracy): (u64, &Option<f64>)| {
        let mut row = Row::new(&Counts::default(), 1);
        row.values.insert("test_accuracy".into(), accuracy.unwrap_or(0.1));
        let diverged = accuracy.is_none();
        Run { algorithm: algorithm.into(), seed, diverged, rows: vec![row] }
    };
    (1..).zip(accuracies).map(run).collect()
}

/// The verdict on "lopa-gt is more accurate than lopa-lg", and on its reverse.
fn verdicts(gt: &[Option<f64>], lg: &[Option<f64>]) -> [Judgement; 2] {
    let claim = |better, worse| Claim {
        figure: "fig1",
        text: format!("{better} is more accurate"),
        topic: Topic::Tracking,
        panels: vec![("fig1", "mnist", None)],
        test: Test::Ends { measure: "test_accuracy", better, worse },
        unit: Some("one".into()),
        aspect: "",
    };
    let runs = [planted("lopa-gt", gt), planted("lopa-lg", lg)].concat();
    let all = [(part("given"), Traces { runs })];
    let claims = [claim("lopa-gt", "lopa-lg"), claim("lopa-lg", "lopa-gt")];
    judge(&claims, &all).try_into().expect("two verdicts")
}

#[test]
fn planted_differences_get_their_verdicts() {
    let of = |values: [f64; 5]| values.map(Some);
    let words = |gt: &[Option<f64>], lg: &[Option<f64>]| verdicts(gt, lg).map(|one| one.verdict);
    let low = of([0.80, 0.81, 0.79, 0.80, 0.82]);
    let high = of([0.85, 0.86, 0.84, 0.86, 0.87]);
    assert_eq!(words(&high, &low), [Verdict::Held, Verdict::Reversed]);
    // A thousandth is below the margin of half a point, however sure it is.
    let near = low.map(|value| value.map(|value| value + 0.001));
    assert_eq!(words(&near, &low), [Verdict::Tie, Verdict::Tie]);
    let wide = of([0.70, 0.90, 0.75, 0.88, 0.80]);
    assert_eq!(words(&wide, &low), [Verdict::Unknown, Verdict::Unknown]);
    // Above 0.995 no difference above the margin is possible.
    let [a, b] = [of([0.999, 0.998, 0.997, 0.999, 0.998]), of([0.996; 5])];
    assert_eq!(words(&a, &b), [Verdict::Ceiling, Verdict::Ceiling]);
    assert!(verdicts(&a, &b)[0].words().contains("no mean accuracy is below 0.9960"));
    let lost = [Some(0.8), Some(0.8), None, Some(0.8), Some(0.8)];
    assert_eq!(words(&high, &lost), [Verdict::RivalDiverged, Verdict::Diverged]);
}

#[test]
fn equality_is_corrected_like_a_difference() {
    // Each of the two claims has two tests: the p of an equality that is shown alone is multiplied.
    let low = [0.80, 0.81, 0.79, 0.80, 0.82].map(Some);
    let mut near = low;
    for (value, off) in near.iter_mut().zip([0.00242, 0.00495, -0.00176, 0.00341, -0.00286]) {
        *value = value.map(|value| value + off);
    }
    let [one, _] = verdicts(&near, &low);
    let [p, corrected] = [one.p_equal, one.p_equal_corrected].map(Option::unwrap);
    assert!(p < 0.05 && corrected > 0.05, "{p} {corrected}");
    assert_eq!(one.verdict, Verdict::Unknown);
}

fn pages<'a>(entries: &'a [Value], judged: &'a [Judgement], quick: bool) -> Pages<'a> {
    let (command, appendix) = ("lopa reproduce", "tables.md");
    Pages { command, entries, judged, pictures: &[], appendix, search: None, quick, times: false }
}

#[test]
fn every_tuned_file_was_searched_alike() {
    let registries = lopa::experiment::Registries::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let read = |name: &str| {
        let source = open(&folder.join(name)).expect("a file");
        let experiment = Experiment::read(&source, &registries).expect("a good file");
        (source, experiment)
    };
    let names = fs::read_dir(&folder).expect("a folder").filter_map(|entry| {
        let name = entry.expect("an entry").file_name().into_string().expect("plain");
        Some(format!("{}.toml", name.strip_suffix("-tuned.toml")?))
    });
    let mut specs: Vec<TuneSpec> = Vec::new();
    for name in names {
        let (source, experiment) = read(&name);
        let (tuned_source, tuned) = read(&name.replace(".toml", "-tuned.toml"));
        let spec = TuneSpec::of(&source, &experiment).expect("a good section").expect("a section");
        let TuneSpec { trials, seeds, metric, share, .. } = &spec;
        let head = format!(
            "# Search: random, {trials} trials per algorithm, seeds {seeds:?}, by {metric} after {share} of the budget.\n"
        );
        assert!(tuned_source.text.contains(&head), "{name}: its search is another one");
        for algorithm in &experiment.algorithms {
            let line = format!("\n#   {}: trial ", algorithm.label);
            assert!(tuned_source.text.contains(&line), "{name}: {}", algorithm.label);
        }
        // The two differ only in their steps.
        let setting = |experiment: &Experiment| {
            let mut all = experiment.resolved();
            all.retain(|key, _| key != "name" && key != "algorithm");
            all
        };
        assert_eq!(setting(&experiment), setting(&tuned), "{name}");
        specs.push(TuneSpec { ranges: Default::default(), ..spec });
    }
    assert_eq!(specs.len(), 19);
    assert!(specs.iter().all(|spec| *spec == specs[0]), "budgets differ");
}

// ---- settings that the paper leaves open ----

#[test]
fn every_reading_is_an_experiment_with_three_steps_of_x() {
    let registries = lopa::experiment::Registries::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let all = readings();
    for reading in &all {
        let source = open(&folder.join(format!("{}.toml", reading.file))).unwrap();
        let all = reading.experiments(&source, 2, &registries).unwrap();
        let [low, usual, high] = [0, 1, 2].map(|at| all[at].0);
        assert!((low / usual - 0.1).abs() < 1e-12 && (high / usual - 3.0).abs() < 1e-12);
        for (alpha, experiment) in &all {
            assert_eq!((experiment.run.seeds.len(), experiment.algorithms.len()), (2, 1));
            let choice = &experiment.algorithms[0].choice;
            let params = choice.params();
            assert_eq!((&choice.name[..], params["alpha"].as_float()), ("lopa-gt", Some(*alpha)));
        }
    }
    for (file, ..) in FILES {
        let first = all.iter().find(|reading| reading.file == file).expect("a reading");
        assert!(first.reading.is_empty(), "{file} begins with the file itself");
    }
}

#[test]
fn readings_near_the_paper_are_named_unless_they_diverged() {
    let one = |reading, accuracy, diverged| Found {
        file: "fig5-6-covtype",
        reading,
        alpha: 3.0,
        seeds: 2,
        diverged,
        loss: None,
        accuracy: lopa_study::statistics::Summary::of([accuracy]),
        majority: Some(0.5),
        paper: 0.69,
    };
    let found = [one("as in the file", 0.96, 0), one("near", 0.695, 0), one("lucky", 0.69, 1)];
    let text = page(&found);
    assert!(text.contains("3 readings were tried, with 3 step sizes each; 1 end within"), "{text}");
    assert!(
        text.contains(
            "The paper has 0.690, the file 0.960. Of 3 readings, within 0.01 of the paper's: *near* (0.695).\n"
        ),
        "{text}"
    );
    let row = "| lucky | 0.690 | 0.690 | +0.000 | 0.500 | – | 3 | 2, 1 diverged |";
    assert!(text.contains(row), "{text}");
    let text = page(&[found[0].clone(), one("off", 0.71, 0)]);
    assert!(
        text.contains("none comes within 0.01 of the paper's; nearest is *off* (0.710)."),
        "{text}"
    );
}
