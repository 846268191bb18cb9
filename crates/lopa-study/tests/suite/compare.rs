//! Comparisons at equal budgets: on artificial traces, and on runs that reach every budget.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use lopa::algorithms::algorithms;
use lopa::config::Source;
use lopa::experiment::{Experiment, open};
use lopa::folder::{Run, Traces};
use lopa::problem::derivative::Counts;
use lopa::problem::scope::Scope;
use lopa::run::trace::{COSTS, Row};
use lopa::run::{Context, Listener};
use lopa_study::compare::{Comparison, Question, Standing, compare, cost_named};
use lopa_study::tune::TuneSpec;

/// A run with rows of (hessians, bytes, loss).
fn run(algorithm: &str, seed: u64, points: &[(f64, u64, f64)]) -> Run {
    let row = |&(hessians, bytes, loss): &(f64, u64, f64)| {
        let mut row = Row::new(&Counts::default(), 1);
        (row.hessians, row.bytes) = (hessians, bytes);
        row.values.insert("loss".into(), loss);
        row.values.insert("grad_phi_sq".into(), loss * loss);
        row
    };
    let rows = points.iter().map(row).collect();
    Run { algorithm: algorithm.into(), seed, diverged: false, rows }
}

/// `thrifty` sends little and multiplies much, `chatty` does the opposite, and `free` needs no
/// Hessians. A seed shifts all of them equally.
fn traces() -> Traces {
    let of_seed = |seed: u64| {
        let off = seed as f64 * 0.5;
        [
            run("thrifty", seed, &[(0., 0, 9. + off), (50., 10, 4. + off), (100., 20, 2. + off)]),
            run("chatty", seed, &[(0., 0, 9. + off), (10., 50, 3. + off), (90., 450, 1. + off)]),
            run("free", seed, &[(0., 0, 9. + off), (0., 100, 5. + off)]),
        ]
    };
    Traces { runs: [1, 2, 3].into_iter().flat_map(of_seed).collect() }
}

fn question() -> Question {
    Question {
        algorithms: ["thrifty", "chatty", "free"].map(String::from).to_vec(),
        seeds: vec![1, 2, 3],
        measure: "loss".into(),
        costs: COSTS.to_vec(),
        budgets: Vec::new(),
        target: None,
        rows: None,
    }
}

fn under<'a>(answer: &'a Comparison, cost: &str) -> &'a Standing {
    answer.standings.iter().find(|standing| standing.cost == cost).unwrap()
}

fn mean(standing: &Standing, algorithm: &str) -> f64 {
    standing.places.iter().find(|place| place.algorithm == algorithm).unwrap().mean.unwrap()
}

#[test]
fn the_last_row_within_the_common_budget_counts() {
    let answer = compare(&traces(), &question());
    let costs: Vec<_> = answer.standings.iter().map(|standing| standing.cost).collect();
    assert_eq!(costs, ["hessians", "bytes"], "no algorithm spends the others");
    // `chatty` reached 90 products; the last measurement of `thrifty` before that is at 50.
    let hessians = under(&answer, "hessians");
    assert_eq!(hessians.budget, Some(90.0));
    assert_eq!((mean(hessians, "thrifty"), mean(hessians, "chatty")), (5.0, 2.0));
    let bytes = under(&answer, "bytes");
    assert_eq!(bytes.budget, Some(20.0));
    assert_eq!((mean(bytes, "thrifty"), mean(bytes, "chatty")), (3.0, 10.0));
}

/// On every seed `a` is ahead by .03; 100 test rows do not show such a difference, 10 000 do.
#[test]
fn a_lead_within_the_error_of_the_test_rows_is_not_significant() {
    let of = |algorithm: &str, seed: u64, accuracy: f64| {
        let mut run = run(algorithm, seed, &[(10.0, 10, 1.0)]);
        run.rows[0].values.insert("holdout_accuracy".into(), accuracy);
        run
    };
    let runs = (1..=3).flat_map(|seed| {
        let off = 0.001 * seed as f64;
        [of("a", seed, 0.956 + off), of("b", seed, 0.926 + 1.1 * off)]
    });
    let traces = Traces { runs: runs.collect() };
    let asked = |rows| Question {
        algorithms: vec!["a".into(), "b".into()],
        measure: "holdout_accuracy".into(),
        costs: vec!["bytes"],
        rows,
        ..question()
    };
    let lead = |rows| {
        let answer = compare(&traces, &asked(rows));
        (answer.standings[0].lead.clone().unwrap(), answer.warnings)
    };
    let (few, _) = lead(Some(100.0));
    assert!(!few.significant && few.on_a_par == ["b"]);
    let by = few.by.unwrap();
    let (p, q) = (0.958, 0.9282);
    let rows: f64 = 1.959964 * ((p * (1.0 - p) + q * (1.0 - q)) / 100.0f64).sqrt();
    assert!(by.high - by.mean > rows && by.high - by.mean < rows + 1e-4, "{by:?} {rows}");
    assert!(lead(Some(10_000.0)).0.significant);
    // Where nobody knows how many rows there are, it is said.
    let (seeds, warnings) = lead(None);
    assert!(seeds.significant && warnings.iter().any(|text| text.contains("sampling error")));
}

#[test]
fn the_winner_depends_on_the_cost_and_pairs_decide() {
    let answer = compare(&traces(), &question());
    let leads: Vec<_> = answer.standings.iter().map(|s| s.lead.clone().unwrap()).collect();
    assert_eq!([&leads[0].winner, &leads[1].winner], ["chatty", "thrifty"]);
    // Seeds spread the losses by ±0.5, but equally: paired differences have no spread.
    assert!(leads.iter().all(|lead| lead.significant && lead.on_a_par.is_empty()));
    assert_eq!(leads[0].by.unwrap().mean, 3.0);
    // One seed contradicts the others.
    let mut traces = traces();
    traces.runs[3].rows[1].values.insert("loss".into(), 0.5);
    let lead = under(&compare(&traces, &question()), "hessians").lead.clone().unwrap();
    assert!(!lead.significant, "{lead:?}");
    assert_eq!((&lead.winner[..], lead.on_a_par), ("chatty", vec!["thrifty".to_string()]));
}

#[test]
fn a_lead_over_the_next_is_not_one_over_all() {
    // The twin is always behind by 0.1, the other by 0.5 in the mean but not on every seed.
    let of_seed = |seed: u64| {
        let loss = 1.0 + seed as f64 * 0.5;
        let other = loss + if seed == 3 { -0.3 } else { 0.9 };
        [("first", loss), ("twin", loss + 0.1), ("other", other)]
            .map(|(name, loss)| run(name, seed, &[(0., 0, 9.), (90., 0, loss)]))
    };
    let traces = Traces { runs: [1, 2, 3].into_iter().flat_map(of_seed).collect() };
    let algorithms = ["first", "twin", "other"].map(String::from).to_vec();
    let answer = compare(&traces, &Question { algorithms, ..question() });
    let lead = under(&answer, "hessians").lead.clone().unwrap();
    assert_eq!((&lead.winner[..], lead.runner_up.as_deref()), ("first", Some("twin")));
    assert!(lead.significant, "{lead:?}");
    assert_eq!(lead.on_a_par, ["other"]);
}

#[test]
fn algorithms_that_spend_nothing_of_a_cost_are_shown_but_not_ranked() {
    let mut traces = traces();
    for run in traces.runs.iter_mut().filter(|run| run.algorithm == "free") {
        run.rows[1].values.insert("loss".into(), 0.0);
    }
    let answer = compare(&traces, &question());
    let hessians = under(&answer, "hessians");
    let free = &hessians.places[2];
    assert_eq!((free.mean, free.ranked, free.used), (Some(0.0), false, None));
    assert_eq!(hessians.lead.as_ref().unwrap().winner, "chatty");
}

#[test]
fn given_budgets_and_targets() {
    let budgets = vec![("hessians", 10.0)];
    let answer = compare(&traces(), &Question { budgets, target: Some(4.5), ..question() });
    let hessians = under(&answer, "hessians");
    assert_eq!(hessians.budget, Some(10.0));
    assert_eq!((mean(hessians, "thrifty"), mean(hessians, "chatty")), (10.0, 4.0));
    // `thrifty` reaches a loss of 4.5 after 50 products on the first seed, after 100 on the others.
    let race = answer.races.iter().find(|race| race.cost == "hessians").unwrap();
    let values = |at: usize| -> Vec<f64> {
        race.places[at].values.iter().map(|&(_, value)| value).collect()
    };
    assert_eq!((values(0), values(1)), (vec![50.0, 100.0, 100.0], vec![10.0; 3]));
    assert_eq!(race.places[2].mean, None, "never");
    assert_eq!(race.lead.as_ref().unwrap().winner, "chatty");
}

#[test]
fn unfairness_causes_warnings() {
    let mut traces = traces();
    traces.runs[0].diverged = true;
    traces.runs.pop();
    let answer = compare(&traces, &question());
    let warned = |what: &str| answer.warnings.iter().any(|warning| warning.contains(what));
    assert_eq!(answer.diverged, ["thrifty diverged on 1 of 3 seeds and is not ranked"]);
    assert!(warned("free did not run on seed 3"), "{:?}", answer.warnings);
    let [hessians, bytes] = ["hessians", "bytes"].map(|cost| under(&answer, cost));
    assert!(!hessians.places[0].ranked && !bytes.places[2].ranked);
    assert_eq!((hessians.places[0].diverged, hessians.places[0].values.len()), (1, 2));
    // `chatty` alone sets the common budget now.
    assert_eq!((hessians.budget, bytes.budget), (Some(90.0), Some(450.0)));
    let whole = compare(&self::traces(), &question());
    let unequal = whole.warnings.iter().find(|w| w.contains("budgets of hessians")).unwrap();
    assert!(unequal.contains("thrifty at 56 %"), "{unequal}");
}

#[test]
fn squares_are_compared_by_their_logarithm() {
    let answer = compare(&traces(), &Question { measure: "grad_phi_sq".into(), ..question() });
    let thrifty = &under(&answer, "bytes").places[0];
    let product: f64 = [2.5f64, 3.0, 3.5].iter().map(|loss| loss * loss).product();
    assert!((thrifty.geometric.unwrap().0 - product.cbrt()).abs() < 1e-12);
    let lead = under(&answer, "bytes").lead.clone().unwrap();
    let ratios = [9.5f64 / 2.5, 10.0 / 3.0, 10.5 / 3.5].map(|ratio| 2.0 * ratio.ln());
    assert!((lead.by.unwrap().mean - ratios.iter().sum::<f64>() / 3.0).abs() < 1e-12);
}

#[test]
fn costs_have_synonyms() {
    assert_eq!(cost_named("rounds"), Some("exchanges"));
    assert_eq!(cost_named("iterations"), Some("iteration"));
    assert_eq!(cost_named("bytes"), Some("bytes"));
    assert_eq!(cost_named("loss"), None);
}

#[derive(Default)]
struct Rows(Vec<(String, Row)>);

impl Listener for Rows {
    fn row(&mut self, algorithm: &str, _: u64, row: &Row) {
        self.0.push((algorithm.to_string(), row.clone()));
    }
}

fn rows(until: &str) -> Vec<(String, Row)> {
    let text = format!(
        "problem = {{ name = 'quadratic', n = 2, p = 3 }}
         network = {{ nodes = 4, graph = 'ring', weights = 'lazy-metropolis' }}
         run = {{ budget = {{ hessians = 40, gradients = 70, bytes = 9000 }}, {until} }}
         algorithm = [
             {{ name = 'lopa-gt', alpha = 0.01, beta = 0.1, lambda = 0.1 }},
             {{ name = 'spdb', alpha = 0.01, beta = 0.1, lambda = 0.1, hv_steps = 7 }},
             {{ name = 'dgd', alpha = 0.1 }},
             {{ name = 'local', alpha = 0.01, beta = 0.1, lambda = 0.1 }},
         ]"
    );
    let experiment =
        Experiment::read(&Source::new("test", text), &lopa::experiment::Registries::default())
            .unwrap();
    let interrupt = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &interrupt, probe: None };
    let mut rows = Rows::default();
    experiment.run_with(&context, &mut (), &mut rows).unwrap();
    rows.0
}

#[test]
fn until_all_reaches_every_budget_and_measures_at_each() {
    let limits = [("hessians", 40.0), ("gradients", 70.0), ("bytes", 9000.0)];
    let all = rows("until = 'all'");
    for algorithm in ["lopa-gt", "spdb", "dgd", "local"] {
        let own: Vec<&Row> =
            all.iter().filter(|(of, _)| of == algorithm).map(|(_, row)| row).collect();
        let last = own.last().unwrap();
        for (cost, limit) in limits {
            let spent = |row: &Row| row.value(cost).unwrap();
            if spent(last) == 0.0 {
                continue;
            }
            assert!(spent(last) >= limit, "{algorithm} ends at {} {cost}", spent(last));
            // One more iteration would have exceeded the budget.
            let within = own.iter().rfind(|row| spent(row) <= limit).unwrap();
            let next = own.iter().find(|row| row.iteration > within.iteration);
            let beyond = next.is_none_or(|next| next.iteration == within.iteration + 1);
            let dear = spent(within) + spent(last) / last.iteration as f64 > limit;
            assert!(beyond || dear, "{algorithm}: {cost} measured at {}", spent(within));
        }
    }
    // A cost that is not spent is no limit: `local` sends nothing, and still ends.
    let first = rows("until = 'first'");
    let ends = |rows: &[(String, Row)], name: &str| {
        rows.iter().rfind(|(of, _)| of == name).unwrap().1.iteration
    };
    assert!(ends(&first, "lopa-gt") < ends(&all, "lopa-gt"));
}

/// Experiment files: the name, the experiment, and whether steps are searched on three seeds.
fn experiments(files: impl IntoIterator<Item = PathBuf>) -> Vec<(String, Experiment, bool)> {
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let source = open(&path).unwrap();
        let experiment = Experiment::read(&source, &lopa::experiment::Registries::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let tune = TuneSpec::of(&source, &experiment).unwrap();
        (name, experiment, tune.is_some_and(|tune| tune.seeds.len() >= 3))
    };
    files.into_iter().map(read).collect()
}

/// Asserts that a file has every algorithm of a field that supports its scope and can run on its
/// problem, and no other of the field.
fn assert_complete(field: &[&str], name: &str, experiment: &Experiment) {
    // MNIST has p = 784, but gossip-dsbo allows at most 500.
    let on_mnist = experiment.data.as_ref().is_some_and(|data| data.source.name == "mnist");
    let registry = algorithms();
    let serves = |name: &str| registry.find(name).unwrap().facts.scopes.contains(&experiment.scope);
    let able: BTreeSet<&str> = field
        .iter()
        .copied()
        .filter(|name| serves(name) && !(on_mnist && *name == "gossip-dsbo"))
        .collect();
    let there: BTreeSet<&str> = experiment
        .algorithms
        .iter()
        .map(|algorithm| algorithm.choice.name.as_str())
        .filter(|name| field.contains(name))
        .collect();
    assert_eq!(there, able, "{name}");
}

#[test]
fn comparison_files_have_every_algorithm_and_a_search_on_other_seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/compare");
    let paths = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let files = experiments(paths.filter(|path| path.extension().is_some_and(|e| e == "toml")));
    let problems = [
        "quadratic",
        "libsvm",
        "home",
        "bursts",
        "mnist",
        "covtype",
        "representation",
        "hyper-cleaning",
    ];
    // What one file compares, all of its scope do.
    let names = |experiment: &Experiment| -> Vec<String> {
        experiment.algorithms.iter().map(|algorithm| algorithm.choice.name.clone()).collect()
    };
    let field: BTreeSet<String> = files.iter().flat_map(|(_, file, _)| names(file)).collect();
    let field: Vec<&str> = field.iter().map(String::as_str).collect();
    assert!(field.len() > 20, "{field:?}");
    for problem in problems {
        for scope in Scope::BOTH {
            let expected = format!("{problem}-{}", scope.name());
            let (name, experiment, searched) =
                files.iter().find(|(name, ..)| *name == expected).expect(&expected);
            assert_eq!((experiment.scope, &experiment.name[8..]), (*scope, name.as_str()));
            assert_complete(&field, name, experiment);
            assert!(searched, "{name}: steps are searched on at least three seeds");
        }
    }
    // These compare the variants of some algorithms.
    let variants = ["variants-global", "variants-compressed"];
    for variant in variants {
        let (_, _, searched) = files.iter().find(|(name, ..)| name == variant).expect(variant);
        assert!(searched, "{variant}: steps are searched on at least three seeds");
    }
    assert_eq!(files.len(), 2 * problems.len() + variants.len());
}
