//! Whole runs: their ends, measurements and files.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lopa::config::Source;
use lopa::data::Data;
use lopa::data::partition::Partition;
use lopa::error::Kind;
use lopa::experiment::Experiment;
use lopa::folder::model::Model;
use lopa::folder::{RunFolder, Status, model_path};
use lopa::run::trace::{Row, Stop};
use lopa::run::{Context, Listener, Outcome};
use proptest::prelude::*;

/// A small quadratic.
const QUADRATIC: &str = "
name = 'small'
problem = { name = 'quadratic', n = 3, p = 4, condition = 2, heterogeneity = 0.5, noise = 0.3, \
samples = 20 }
network = { nodes = 4, graph = 'ring', weights = 'lazy-metropolis' }
run = { seeds = [1], iterations = 100, batch = 5, evaluations = 10 }
[[algorithm]]
name = 'lopa-gt'
alpha = 0.02
beta = 0.5
lambda = 0.5";

/// A small learning problem.
const LOGISTIC: &str = "
name = 'small'
problem = { name = 'hyperparameter', start = -3 }
data = { name = 'blobs', rows = 120, features = 5, centres = 2 }
network = { nodes = 3, graph = 'path' }
run = { seeds = [1], iterations = 60, batch = 8, evaluations = 6 }
[[algorithm]]
name = 'lopa-gt'
alpha = 0.5
beta = 0.2
lambda = 0.2";

fn read(text: &str, sets: &[&str]) -> Experiment {
    let sets = sets.iter().map(|set| set.to_string()).collect();
    let source = Source { sets, ..Source::new("test", text) };
    Experiment::read(&source, &lopa::experiment::Registries::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Writes down everything that happens.
#[derive(Default)]
struct Recording {
    rows: Vec<(String, u64, Row)>,
    begun: Vec<(String, u64)>,
    warnings: Vec<String>,
    progress: Vec<(u64, f64)>,
    measuring: Vec<(usize, usize, bool)>,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Listener for Recording {
    fn begin(&mut self, algorithm: &str, seed: u64) {
        self.begun.push((algorithm.into(), seed));
    }

    fn warn(&mut self, text: &str) {
        self.warnings.push(text.into());
    }

    fn progress(&mut self, iteration: u64, fraction: f64) {
        self.progress.push((iteration, fraction));
    }

    fn measuring(&mut self, done: usize, of: usize, exact: bool) {
        self.measuring.push((done, of, exact));
    }

    fn row(&mut self, algorithm: &str, seed: u64, row: &Row) {
        self.rows.push((algorithm.into(), seed, row.clone()));
    }
}

impl Recording {
    fn rows(&self) -> Vec<&Row> {
        self.rows.iter().map(|(_, _, row)| row).collect()
    }
}

fn run_in(experiment: &Experiment, data_dir: &Path, threads: usize) -> (Vec<Outcome>, Recording) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build().unwrap();
    let pool = (threads > 0).then_some(&pool);
    let context = Context { pool, data_dir: data_dir.into(), interrupt: &NEVER, probe: None };
    let mut recording = Recording::default();
    let outcomes = experiment.run_with(&context, &mut (), &mut recording).unwrap();
    (outcomes, recording)
}

fn run(text: &str, sets: &[&str]) -> (Outcome, Recording) {
    let (mut outcomes, recording) = run_in(&read(text, sets), Path::new(""), 0);
    assert_eq!(outcomes.len(), 1);
    (outcomes.remove(0), recording)
}

// ---- rows that nodes hold out ----

/// Two nodes with one class in nine rows of ten: on their own rows they do not beat a model that
/// always names that class, and on the mix of both nodes such a model is right half of the time.
#[test]
fn own_rows_are_judged_beside_the_common_mix() {
    let sets = [
        "data.rows=400",
        "data.holdout=0.25",
        "network.nodes=2",
        "partition={ name = 'label-proportion', first = 0.9, second = 0.1, spread = 0 }",
    ];
    let (outcome, recording) = run(LOGISTIC, &sets);
    let value = |name: &str| outcome.row.value(name).unwrap();
    assert!((value("holdout_majority") - 0.9).abs() < 0.03, "{}", value("holdout_majority"));
    assert!((value("test_majority") - 0.5).abs() < 0.05, "{}", value("test_majority"));
    assert!(value("holdout_accuracy") > 0.8);
    assert_eq!(value("holdout_majority"), recording.rows()[0].value("holdout_majority").unwrap());
    // The rows are those of the world, and no node trains on them.
    let experiment = read(LOGISTIC, &sets);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &NEVER, probe: None };
    let data = experiment.load_data(&context).unwrap().unwrap();
    let world = experiment.world(Some(&data), 1).unwrap();
    for (kept, out) in world.partition.nodes.iter().zip(&world.holdout) {
        assert!(out.len() > 30 && out.iter().all(|row| !kept.contains(row)));
        assert!((out.len() as f64 / (kept.len() + out.len()) as f64 - 0.25).abs() < 0.01);
    }
    let parts = experiment.setup(Some(&data), &world, 1).parts::<f64>().unwrap();
    for (part, kept) in parts.iter().zip(&world.partition.nodes) {
        assert_eq!(part.samples_f() + part.samples_g(), kept.len());
    }
    // Without it nothing changes: neither the rows nor the measures.
    let (plain, _) = run(LOGISTIC, &[]);
    assert_eq!(plain.row.value("holdout_accuracy"), None);
}

// ---- the theta that runs end with ----

/// θ of the models solves the inner problem on all rows that a node trains on; the iterations, and with
/// them the digest, are the same as without.
#[test]
fn theta_is_solved_for_at_the_end() {
    for (text, scope) in [(LOGISTIC, "scope='personal'"), (LOGISTIC, "scope='global'")] {
        let sets = |more: &'static str| {
            vec![scope, "data.holdout=0.25", "run.exact='end'", "algorithm.0.alpha=0.05", more]
        };
        let (last, plain) = run(text, &sets("run.final_theta='last'"));
        let (solved, rows) = run(text, &sets("run.final_theta='solved'"));
        let (refitted, _) = run(text, &sets("run.final_theta='refitted'"));
        assert_eq!((&last.digest, &last.digest), (&solved.digest, &refitted.digest));
        assert_eq!(rows.rows().len(), plain.rows().len() + 1, "one more measurement");
        let theta = |outcome: &Outcome| -> Vec<Vec<f64>> {
            outcome.models.iter().map(|(_, theta)| theta.clone()).collect()
        };
        let x = |outcome: &Outcome| -> Vec<Vec<f64>> {
            outcome.models.iter().map(|(x, _)| x.clone()).collect()
        };
        assert!(x(&last) == x(&solved) && x(&last) == x(&refitted), "x stays");
        assert!(theta(&last) != theta(&solved) && theta(&solved) != theta(&refitted));
        // Both are judged with the θ that has not seen the held-out rows.
        assert_eq!(solved.row.values, refitted.row.values);
        // From another guess, the same θ.
        let experiment = read(text, &sets("run.final_theta='solved'"));
        let context = Context { pool: None, data_dir: "".into(), interrupt: &NEVER, probe: None };
        let data = experiment.load_data(&context).unwrap();
        let world = experiment.world(data.as_ref(), 1).unwrap();
        let setup = experiment.setup(data.as_ref(), &world, 1);
        for (refit, wanted) in [(false, &solved), (true, &refitted)] {
            let found = setup.exact_theta(0..3, &last.models, refit, &mut Ok).unwrap();
            assert_eq!(found.unsolved, 0);
            for (found, wanted) in found.theta.iter().zip(theta(wanted)) {
                for (a, b) in found.iter().zip(wanted) {
                    assert!((a - b).abs() < 1e-7 * (1.0 + b.abs()), "{a} {b}");
                }
            }
        }
    }
}

#[test]
fn only_rows_that_were_held_out_are_used_again() {
    let refused = |sets: &[&str]| {
        let sets = sets.iter().map(|set| set.to_string()).collect();
        let source = Source { sets, ..Source::new("test", LOGISTIC) };
        Experiment::read(&source, &lopa::experiment::Registries::default()).unwrap_err()
    };
    let error = refused(&["run.final_theta='refitted'"]);
    assert!(error.hint.as_ref().is_some_and(|hint| hint.contains("holdout = 0.2")), "{error}");
    let sets = ["run.final_theta='refitted'", "data.holdout=0.2", "problem='hyper-cleaning'"];
    assert!(refused(&sets).message.contains("belongs to the rows"), "{}", refused(&sets));
    let error = refused(&["run.final_theta='exact'"]);
    assert!(error.to_string().contains("final_theta"), "{error}");
}

// ---- how runs end ----

#[test]
fn iterations_end_a_run() {
    let (outcome, recording) = run(QUADRATIC, &["run.iterations=37"]);
    assert_eq!((outcome.stop, outcome.row.iteration), (Stop::Finished, 37));
    assert_eq!(recording.rows().last().unwrap(), &&outcome.row);
    assert_eq!(outcome.diagnosis, None);
}

/// A run that may spend so much ends at the first iteration that has spent it.
fn budget_ends(name: &str, limit: u64, each: f64, at_start: f64) {
    let iterations = ((limit as f64 - at_start) / each).ceil() as u64;
    let mut experiment = read(QUADRATIC, &[&format!("run.budget.{name}={limit}")]);
    experiment.run.iterations = None;
    let (outcomes, _) = run_in(&experiment, Path::new(""), 0);
    let row = &outcomes[0].row;
    assert_eq!((outcomes[0].stop, row.iteration), (Stop::Budget, iterations), "{name}");
    let spent = row.value(name).unwrap();
    assert_eq!(spent, at_start + each * iterations as f64, "{name}");
    assert!(spent >= limit as f64 && spent - each < limit as f64, "{name}");
}

#[test]
fn every_budget_ends_a_run() {
    // LoPA: one of each derivative at the start and in every iteration, batches of 5; it sends
    // two vectors of 3 to 2 neighbours of each of 4 nodes.
    budget_ends("hessians", 30, 1.0, 1.0);
    budget_ends("jacobians", 30, 1.0, 1.0);
    budget_ends("gradients", 100, 3.0, 3.0);
    budget_ends("samples", 1001, 25.0, 25.0);
    budget_ends("exchanges", 17, 1.0, 0.0);
    budget_ends("bytes", 10_000, 8.0 * 2.0 * 3.0 * 8.0, 0.0);
}

#[test]
fn seconds_end_a_run() {
    // Even the fastest machine needs more than 0.02 s for so many iterations.
    let sets = ["run.budget.seconds=0.02", "run.iterations=4000000000", "run.exact=never"];
    let (outcome, _) = run(QUADRATIC, &sets);
    assert_eq!(outcome.stop, Stop::Budget);
    assert!(outcome.row.seconds >= 0.02 && outcome.row.iteration > 0);
    let (outcome, _) = run(QUADRATIC, &["run.budget.seconds=1000"]);
    assert_eq!((outcome.stop, outcome.row.iteration), (Stop::Finished, 100));
}

#[test]
fn seconds_end_a_run_that_spends_nothing_else_of_its_budget() {
    let text = QUADRATIC.replace("lopa-gt", "local").replace("alpha = 0.02", "alpha = 0.001");
    let sets = ["run.budget.seconds=0.02", "run.budget.bytes=1000", "run.exact=never"];
    let mut experiment = read(&text, &sets);
    experiment.run.iterations = None;
    let (outcomes, _) = run_in(&experiment, Path::new(""), 0);
    assert_eq!((outcomes[0].stop, outcomes[0].row.bytes), (Stop::Budget, 0));

    experiment.run.budget.seconds = None;
    let context = Context { pool: None, data_dir: "".into(), interrupt: &NEVER, probe: None };
    let error = experiment.run_with(&context, &mut (), &mut ()).unwrap_err();
    assert_eq!(error.id, "config/endless", "{error}");
}

#[test]
fn the_first_limit_counts() {
    let sets = ["run.budget.hessians=80", "run.budget.exchanges=40", "run.budget.samples=100000"];
    let (outcome, _) = run(QUADRATIC, &sets);
    assert_eq!((outcome.stop, outcome.row.iteration), (Stop::Budget, 40));
}

#[test]
fn without_hessians_a_method_gets_the_iterations_of_lopa() {
    let dgd = QUADRATIC.replace("lopa-gt", "dgd").replace("beta = 0.5\nlambda = 0.5", "");
    let ends = [QUADRATIC, &dgd].map(|text| run(text, &["run.budget.hessians=50"]).0);
    assert_eq!(ends.clone().map(|end| (end.stop, end.row.iteration)), [(Stop::Budget, 49); 2]);
    assert_eq!(ends.map(|end| end.row.hessians), [50.0, 0.0]);
}

#[test]
fn a_target_ends_a_run() {
    let sets = ["run.batch=full", "run.iterations=5000", "run.evaluations=100"];
    let target = "run.target={ metric = 'grad_phi_sq', at_most = 1e-6 }";
    let (outcome, recording) = run(QUADRATIC, &[&sets[..], &[target]].concat());
    assert_eq!(outcome.stop, Stop::Target);
    let reached = |row: &Row| row.value("grad_phi_sq").unwrap() <= 1e-6;
    let (last, before) = recording.rows.split_last().unwrap();
    assert!(reached(&last.2) && !before.iter().any(|(_, _, row)| reached(row)));
    assert!(last.2.iteration < 5000);

    let target = "run.target={ metric = 'train_accuracy', at_least = 0.0 }";
    let (outcome, _) = run(LOGISTIC, &[target]);
    assert_eq!((outcome.stop, outcome.row.iteration), (Stop::Target, 0));
}

#[test]
fn a_target_that_is_not_measured_is_refused() {
    let experiment = read(QUADRATIC, &["run.target={ metric = 'accuracy', at_least = 0.5 }"]);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &NEVER, probe: None };
    let error = experiment.run_with(&context, &mut (), &mut ()).unwrap_err();
    assert_eq!(error.kind, Kind::Config);
    assert!(error.message.contains("`accuracy`"), "{error}");
    assert!(error.hint.unwrap().contains("grad_phi_sq"));
}

/// Requests a stop at the row of this iteration.
struct Interrupting<'a>(u64, &'a AtomicBool, Vec<(String, u64)>);

impl Listener for Interrupting<'_> {
    fn begin(&mut self, algorithm: &str, seed: u64) {
        self.2.push((algorithm.into(), seed));
    }

    fn row(&mut self, _: &str, _: u64, row: &Row) {
        self.1.fetch_or(row.iteration >= self.0, Ordering::Relaxed);
    }
}

#[test]
fn an_interrupt_ends_everything() {
    let flag = AtomicBool::new(false);
    let mut listener = Interrupting(30, &flag, Vec::new());
    let context = Context { pool: None, data_dir: "".into(), interrupt: &flag, probe: None };
    let experiment = read(QUADRATIC, &["run.seeds=[1, 2]"]);
    let outcomes = experiment.run_with(&context, &mut (), &mut listener).unwrap();
    let [outcome] = &outcomes[..] else { panic!("{} outcomes", outcomes.len()) };
    assert_eq!((outcome.stop, outcome.row.iteration), (Stop::Interrupted, 31));
    assert_eq!(listener.2, [("lopa-gt".to_string(), 1)]);
    assert!(outcome.models.iter().all(|(x, _)| x.iter().any(|x| *x != 0.0)));
}

// ---- measurements ----

fn check_rows(rows: &[&Row], iterations: u64, evaluations: u64) {
    // The j-th measurement is due when j of `evaluations` parts are done.
    let due = |k: u64| k * evaluations / iterations;
    let want: Vec<u64> =
        (0..=iterations).filter(|&k| k == 0 || k == iterations || due(k) > due(k - 1)).collect();
    let got: Vec<u64> = rows.iter().map(|row| row.iteration).collect();
    assert_eq!(got, want, "{iterations} iterations, {evaluations} evaluations");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn measurements_are_evenly_spaced(iterations in 1u64..200, evaluations in 1u64..200) {
        let sets = [
            &format!("run.iterations={iterations}"),
            &format!("run.evaluations={evaluations}"),
            "run.exact=never",
        ];
        let (_, recording) = run(QUADRATIC, &sets);
        check_rows(&recording.rows(), iterations, evaluations);
    }
}

#[test]
fn every_iteration_can_be_measured() {
    let (_, recording) =
        run(QUADRATIC, &["run.iterations=49", "run.evaluations=49", "run.exact=never"]);
    check_rows(&recording.rows(), 49, 49);
}

#[test]
fn costs_only_grow_and_values_are_finite() {
    for text in [QUADRATIC, LOGISTIC] {
        let (outcome, recording) = run(text, &[]);
        let rows = recording.rows();
        for pair in rows.windows(2) {
            for cost in ["iteration", "hessians", "jacobians", "gradients", "samples", "bytes"] {
                assert!(pair[0].value(cost) < pair[1].value(cost), "{cost}");
            }
            assert!(pair[0].seconds <= pair[1].seconds);
        }
        for row in rows {
            for name in ["loss", "phi", "grad_phi_sq", "consensus", "theta_error", "tracking"] {
                assert!(row.value(name).unwrap().is_finite(), "{name}");
            }
            assert!(row.values.values().all(|value| value.is_finite()));
        }
        assert!(outcome.row.value("grad_phi_sq") < recording.rows()[0].value("grad_phi_sq"));
        assert_eq!(recording.progress.last().unwrap().1, 1.0);
        assert_eq!(outcome.nodes.len(), outcome.models.len());
    }
}

#[test]
fn exact_solves_happen_when_they_are_asked_for() {
    let exact = |when: &str| -> Vec<bool> {
        let (_, recording) = run(QUADRATIC, &[&format!("run.exact={when}")]);
        recording.rows().iter().map(|row| row.value("phi").is_some()).collect()
    };
    assert!(exact("always").iter().all(|there| *there));
    assert!(!exact("never").iter().any(|there| *there));
    let (last, before) = exact("end").split_last().map(|(l, b)| (*l, b.to_vec())).unwrap();
    assert!(last && !before.contains(&true));
}

#[test]
fn single_precision_is_close_to_double() {
    for text in [QUADRATIC, LOGISTIC] {
        let [(double, _), (single, _)] =
            ["f64", "f32"].map(|precision| run(text, &[&format!("run.precision={precision}")]));
        assert_ne!(double.digest, single.digest);
        assert_eq!(double.row.bytes, 2 * single.row.bytes);
        for ((x, theta), (x_single, theta_single)) in double.models.iter().zip(&single.models) {
            for (d, s) in x.iter().chain(theta).zip(x_single.iter().chain(theta_single)) {
                assert!((d - s).abs() <= 1e-4 * (1.0 + d.abs()), "{d} and {s}");
            }
        }
    }
}

#[test]
fn a_digest_depends_on_what_is_computed_alone() {
    let elsewhere = tempfile::tempdir().unwrap();
    for text in [QUADRATIC, LOGISTIC] {
        let experiment = read(text, &[]);
        let digest = |data_dir: &Path, threads: usize| {
            run_in(&experiment, data_dir, threads).0.remove(0).digest
        };
        let first = digest(Path::new(""), 0);
        assert_eq!(first.len(), 64);
        for threads in [1, 2, 3] {
            assert_eq!(digest(elsewhere.path(), threads), first);
        }
        let other = run(text, &["algorithm.lopa-gt.alpha=0.0200001"]).0.digest;
        assert_ne!(other, first);
        let renamed = run(text, &["algorithm.lopa-gt.label=mine"]).0.digest;
        assert_eq!(renamed, first);
    }
}

#[test]
fn seeds_and_algorithms_run_in_order() {
    let text = format!("{QUADRATIC}\n[[algorithm]]\nname = 'dgd'\nalpha = 0.1");
    let (outcomes, recording) = run_in(&read(&text, &["run.seeds=[3, 1]"]), Path::new(""), 2);
    let want: Vec<(String, u64)> = [("lopa-gt", 3), ("dgd", 3), ("lopa-gt", 1), ("dgd", 1)]
        .map(|(name, seed)| (name.to_string(), seed))
        .to_vec();
    assert_eq!(recording.begun, want);
    let got: Vec<_> = outcomes.iter().map(|o| (o.algorithm.clone(), o.seed)).collect();
    assert_eq!(got, want);
}

#[test]
fn tracking_on_a_network_that_may_swing_warns() {
    let (_, recording) = run(QUADRATIC, &[]);
    assert_eq!(recording.warnings, Vec::<String>::new());
    let matrix = "network.weights={ name = 'matrix', rows = [[0.02, 0.49, 0.0, 0.49], \
                  [0.49, 0.02, 0.49, 0.0], [0.0, 0.49, 0.02, 0.49], [0.49, 0.0, 0.49, 0.02]] }";
    let (_, recording) = run(QUADRATIC, &[matrix, "run.iterations=5"]);
    let [warning] = &recording.warnings[..] else { panic!("{:?}", recording.warnings) };
    assert!(warning.starts_with("lopa-gt: ") && warning.contains("lazy"), "{warning}");
}

// ---- divergence ----

fn diverged(text: &str, sets: &[&str]) -> (String, Recording) {
    let (outcome, recording) = run(text, &[sets, &["run.iterations=20000"]].concat());
    assert_eq!(outcome.stop, Stop::Diverged, "{sets:?}: {:?}", outcome.row);
    assert!(outcome.row.iteration < 20_000);
    for row in recording.rows() {
        assert!(row.values.values().all(|value| value.is_finite()), "{row:?}");
    }
    (outcome.diagnosis.expect("a diagnosis"), recording)
}

#[track_caller]
fn says(diagnosis: &str, variables: &[&str], suspect: &str) {
    let first = diagnosis.split(' ').next().unwrap();
    assert!(variables.contains(&first), "{diagnosis}");
    assert!(diagnosis.contains(&format!("the suspect is {suspect} = ")), "{diagnosis}");
}

const QUIET: [&str; 2] = ["run.batch=full", "problem.noise=0"];

#[test]
fn a_diverging_quadratic_is_explained() {
    for precision in ["run.precision=f64", "run.precision=f32"] {
        let case = |set: &str| diverged(QUADRATIC, &[&QUIET[..], &[precision, set]].concat()).0;
        says(&case("algorithm.lopa-gt.beta=2.5"), &["theta", "d"], "beta");
        says(&case("algorithm.lopa-gt.beta=1e6"), &["theta", "d"], "beta");
        says(&case("algorithm.lopa-gt.lambda=2.5"), &["v", "h"], "lambda");
        let anything = ["x", "y", "z", "s", "theta", "d", "v", "h"];
        for alpha in ["0.3", "1", "1000"] {
            let diagnosis = case(&format!("algorithm.lopa-gt.alpha={alpha}"));
            says(&diagnosis, &anything, "alpha");
        }
    }
}

#[test]
fn other_methods_are_explained_too() {
    let anything = ["x", "y", "z", "s", "theta", "d", "v", "h", "u", "r", "M"];
    for name in ["lopa-lg", "local", "spdb", "ma-dsbo"] {
        let text = QUADRATIC.replace("lopa-gt", name);
        for (key, value) in [("alpha", 0.9), ("beta", 25.0), ("lambda", 25.0)] {
            let set = format!("algorithm.{name}.{key}={value}");
            let (diagnosis, _) = diverged(&text, &[&QUIET[..], &[&set]].concat());
            says(&diagnosis, &anything, key);
        }
    }
    let dgd = QUADRATIC.replace("lopa-gt", "dgd").replace("beta = 0.5\nlambda = 0.5", "");
    let (diagnosis, _) = diverged(&dgd, &[&QUIET[..], &["algorithm.dgd.alpha=3"]].concat());
    says(&diagnosis, &["theta"], "alpha");
}

#[test]
fn the_coordinate_that_makes_a_logistic_problem_too_steep_is_named() {
    // β (2 eˣ + L) ≥ 2 from the start on: at x = 2, 2e² is 14.8.
    let sets = ["problem.start=2", "algorithm.lopa-gt.beta=0.3", "run.batch=full"];
    let (diagnosis, _) = diverged(LOGISTIC, &sets);
    says(&diagnosis, &["theta", "d"], "beta");
    assert!(diagnosis.contains("x[") && diagnosis.contains("2 e^x"), "{diagnosis}");
    let (diagnosis, _) = diverged(LOGISTIC, &["algorithm.lopa-gt.beta=1000"]);
    says(&diagnosis, &["theta", "d"], "beta");
}

/// Whether all numbers of a text are short enough to read.
fn readable(text: &str) -> bool {
    let digit = |letter: char| letter.is_ascii_digit() || letter == '.';
    text.split(|letter| !digit(letter)).all(|number| number.len() <= 9)
}

#[test]
fn limits_are_those_before_anything_exploded_and_numbers_stay_short() {
    // α throws x far out; there, e^x is beyond all bounds.
    let sets = ["algorithm.lopa-gt.alpha=1e4", "run.evaluations=20", "run.batch=full"];
    for seed in ["run.seeds=[1]", "run.seeds=[2]", "run.seeds=[3]"] {
        let (diagnosis, _) = diverged(LOGISTIC, &[&sets[..], &[seed]].concat());
        assert!(diagnosis.contains("the suspect is alpha = 10000"), "{diagnosis}");
        assert!(readable(&diagnosis), "{diagnosis}");
    }
}

#[test]
fn raw_features_are_named_as_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let row = |i: usize| {
        let (a, b) = (900.0 + 7.0 * (i % 13) as f64, 0.1 * (i % 7) as f64);
        format!("{a},{b},{}\n", ["sick", "well"][i % 2])
    };
    let text: String = (0..60).map(row).collect();
    std::fs::write(folder.path().join("raw.csv"), format!("area,texture,state\n{text}")).unwrap();
    let path = folder.path().join("raw.csv").display().to_string();
    let raw = LOGISTIC.replace(
        "data = { name = 'blobs', rows = 120, features = 5, centres = 2 }",
        &format!("data = {{ name = 'csv', path = '{path}', scaling = 'none' }}"),
    );
    for seed in ["run.seeds=[1]", "run.seeds=[2]", "run.seeds=[3]"] {
        let (diagnosis, _) = diverged(&raw, &[seed]);
        says(&diagnosis, &["theta", "d"], "beta");
        for words in
            ["the features make", "root mean square of feature 0", "scaling = \"standardise\""]
        {
            assert!(diagnosis.contains(words), "{diagnosis}");
        }
        assert!(readable(&diagnosis), "{diagnosis}");
    }
    let (outcome, _) = run(&raw.replace("'none'", "'standardise'"), &[]);
    assert_eq!(outcome.stop, Stop::Finished);
}

#[test]
fn measurements_are_announced_node_by_node() {
    let (outcome, recording) = run(QUADRATIC, &["run.exact=end", "run.evaluations=2"]);
    let plain = (0, 4, false);
    // Two nodes at a time on one thread; exact solves at the end only.
    assert_eq!(recording.measuring, [plain, plain, (0, 4, true), (2, 4, true)]);
    assert!(outcome.measuring > 0.0 && outcome.measuring.is_finite());
}

#[test]
fn a_run_that_ends_while_it_explodes_has_diverged() {
    let sets = [&QUIET[..], &["algorithm.lopa-gt.beta=2.5"]].concat();
    let grown = |iterations: &str| {
        let (outcome, _) = run(QUADRATIC, &[&sets[..], &[iterations]].concat());
        (outcome.stop, outcome.row.values.get("loss").copied().unwrap_or(f64::INFINITY))
    };
    let (stop, loss) = grown("run.iterations=60");
    assert_eq!(stop, Stop::Diverged, "{loss}");
    assert_eq!(grown("run.iterations=3").0, Stop::Finished);
}

#[test]
fn a_run_that_blows_up_in_its_last_iterations_is_caught() {
    let sets = [&QUIET[..], &["algorithm.lopa-gt.beta=1e200", "run.iterations=3"]].concat();
    let (outcome, recording) = run(QUADRATIC, &sets);
    assert_eq!(outcome.stop, Stop::Diverged);
    assert!(recording.rows().iter().all(|row| row.values.values().all(|v| v.is_finite())));
}

// ---- files and models ----

/// A run that was kept in a folder.
struct Kept {
    experiment: Experiment,
    data: Option<Data>,
    outcomes: Vec<Outcome>,
    recording: Recording,
    folder: RunFolder,
}

fn in_folder(text: &str, runs: &Path) -> Kept {
    let experiment = read(text, &["run.seeds=[1, 2]"]);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &NEVER, probe: None };
    let data = experiment.load_data(&context).unwrap();
    let mut folder = RunFolder::create(runs, &experiment, data.as_ref(), 1).unwrap();
    let mut recording = Recording::default();
    let outcomes = experiment.run_on(data.as_ref(), &context, &mut folder, &mut recording).unwrap();
    folder.finish(Status::Done).unwrap();
    Kept { experiment, data, outcomes, recording, folder }
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_run_folder_tells_everything() {
    let runs = tempfile::tempdir().unwrap();
    for text in [QUADRATIC, LOGISTIC] {
        let Kept { experiment, data, outcomes, recording, folder } = in_folder(text, runs.path());
        let path = folder.path();

        let resolved = std::fs::read_to_string(path.join("resolved.toml")).unwrap();
        assert_eq!(
            Experiment::read(
                &Source::new("resolved.toml", resolved),
                &lopa::experiment::Registries::default()
            )
            .unwrap(),
            experiment
        );

        let manifest = json(&path.join("manifest.json"));
        assert_eq!(manifest["status"], "done");
        assert_eq!(manifest["seeds"], serde_json::json!([1, 2]));
        assert_eq!(manifest["worlds"].as_array().unwrap().len(), 2);
        assert_eq!(manifest["data_digest"].is_string(), data.is_some());
        assert_eq!(manifest["worlds"][0]["partition_digest"].is_string(), data.is_some());
        for world in manifest["worlds"].as_array().unwrap() {
            assert_eq!(world["weights"].as_array().unwrap().len(), experiment.network.nodes);
            let partition = path.join(format!("partition-seed{}.json", world["seed"]));
            assert_eq!(partition.exists(), data.is_some());
            if let Some(data) = &data {
                let partition = Partition::read(&partition, data.train.len()).unwrap();
                let counts = partition.counts(data.train.labels(), data.classes.len());
                assert_eq!(world["class_counts"], serde_json::json!(counts));
                assert_eq!(world["partition_digest"], partition.digest());
            }
        }

        let metrics = std::fs::read_to_string(path.join("metrics.jsonl")).unwrap();
        assert_eq!(metrics.lines().count(), recording.rows.len());
        for (line, (algorithm, seed, row)) in metrics.lines().zip(&recording.rows) {
            let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
            let entry = line.as_object_mut().unwrap();
            assert_eq!(entry.remove("algorithm").unwrap(), **algorithm);
            assert_eq!(entry.remove("seed").unwrap(), *seed);
            assert_eq!(serde_json::from_value::<Row>(line).unwrap(), *row);
        }

        let mut results = json(&path.join("results.json"));
        for entry in results.as_array_mut().unwrap() {
            assert!(entry.as_object_mut().unwrap().remove("check").is_some());
        }
        let entries: Vec<Outcome> = outcomes.iter().map(|run| run.listed(usize::MAX)).collect();
        assert_eq!(results, serde_json::json!(entries));
        // The folder has the models; a store that keeps nothing returns them.
        assert!(outcomes.iter().all(|outcome| outcome.models.is_empty()));
        let context = Context { pool: None, data_dir: "".into(), interrupt: &NEVER, probe: None };
        let outcomes = experiment.run_on(data.as_ref(), &context, &mut (), &mut ()).unwrap();
        for outcome in &outcomes {
            let model = Model::load(&model_path(path, "lopa-gt", outcome.seed)).unwrap();
            let (x, theta): (Vec<_>, Vec<_>) = outcome.models.iter().cloned().unzip();
            assert_eq!((model.x, model.theta), (x, theta));
            assert_eq!(
                (model.about.seed, &model.about.problem),
                (outcome.seed, &experiment.problem.name)
            );
        }
        assert!(
            std::fs::read_dir(path)
                .unwrap()
                .all(|f| { !f.unwrap().file_name().to_string_lossy().ends_with("partial") })
        );
    }
}

#[test]
fn a_folder_that_is_there_is_left_alone() {
    let runs = tempfile::tempdir().unwrap();
    let paths = [0, 1].map(|_| in_folder(QUADRATIC, runs.path()).folder.path().to_path_buf());
    assert_ne!(paths[0], paths[1]);
    let read = |path: &Path| std::fs::read(model_path(path, "lopa-gt", 1)).unwrap();
    assert_eq!(read(&paths[0]), read(&paths[1]), "the same run leaves the same bytes");
}

#[test]
fn a_damaged_model_is_refused() {
    let runs = tempfile::tempdir().unwrap();
    let whole = model_path(in_folder(LOGISTIC, runs.path()).folder.path(), "lopa-gt", 1);
    let bytes = std::fs::read(&whole).unwrap();
    let model = Model::load(&whole).unwrap();
    let copy = runs.path().join("copy.safetensors");
    model.save(&copy).unwrap();
    assert_eq!(Model::load(&copy).unwrap(), model);
    assert_eq!(std::fs::read(&copy).unwrap(), bytes);

    let refused = |bytes: &[u8], what: &str| {
        std::fs::write(&copy, bytes).unwrap();
        let error = Model::load(&copy).err().unwrap_or_else(|| panic!("{what}: it was accepted"));
        assert_eq!((error.kind, error.id), (Kind::Storage, "storage/model"), "{what}");
        assert!(error.place.unwrap().contains("copy.safetensors"));
    };
    for length in (0..bytes.len()).step_by(7) {
        refused(&bytes[..length], &format!("cut to {length} bytes"));
    }
    refused(&[&bytes[..], &[0]].concat(), "with a byte too many");
    for at in (0..bytes.len()).step_by(3) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        refused(&flipped, &format!("with a bit of byte {at} flipped"));
    }
    assert!(Model::load(&runs.path().join("nowhere")).is_err());
}
