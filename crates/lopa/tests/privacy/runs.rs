//! Whole runs: the budget, engines, resuming, and what is refused.

use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::error::{Error, Result};
use lopa::experiment::{Experiment, Registries};
use lopa::problem::scope::Scope;
use lopa::run::checkpoint::State;
use lopa::run::trace::{Row, Stop};
use lopa::run::{Context, Outcome, Store};

const FILE: &str = "
    problem   = { name = 'hyperparameter', validation = 0.4 }
    data      = { name = 'digits', classes = [3, 8] }
    network   = { nodes = 4, graph = 'ring' }
    run       = { iterations = 40, batch = 16, evaluations = 4, exact = 'never' }
    privacy   = { epsilon = 3.0, delta = 1e-4, clip = 0.5, seed = 5 }
    algorithm = [
        { name = 'lopa-gt', alpha = 0.05, beta = 0.3, lambda = 0.3 },
        { name = 'dgd', alpha = 0.3 },
    ]
";

fn read(sets: &[&str]) -> Result<Experiment> {
    let sets = sets.iter().map(|set| set.to_string()).collect();
    Experiment::read(&Source { sets, ..Source::new("test", FILE) }, &Registries::default())
}

/// Keeps rows and states, and starts from a state if it has one.
#[derive(Default)]
struct Keeper {
    from: Option<State>,
    states: Vec<State>,
    rows: Vec<Row>,
}

impl Store for Keeper {
    fn kept(
        &mut self,
        _: &str,
        _: u64,
        _: &dyn Fn(&State) -> bool,
        _: &mut dyn FnMut(String),
    ) -> Result<Option<State>> {
        Ok(self.from.clone())
    }

    fn keep(&mut self, _: &str, _: u64, state: State) -> Result<()> {
        self.states.push(state);
        Ok(())
    }

    fn row(&mut self, _: &str, _: u64, row: &Row) -> Result<()> {
        self.rows.push(Row { seconds: 0.0, ..row.clone() });
        Ok(())
    }
}

fn run(experiment: &Experiment, store: &mut Keeper, threads: usize) -> Result<Vec<Outcome>> {
    let never = AtomicBool::new(false);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let pool = (threads > 1).then_some(&pool);
    let context = Context { pool, data_dir: "".into(), interrupt: &never, probe: None };
    experiment.run_with(&context, store, &mut ())
}

fn refused(sets: &[&str]) -> Error {
    let ran = read(sets).and_then(|experiment| run(&experiment, &mut Keeper::default(), 1));
    ran.err().unwrap_or_else(|| panic!("{sets:?} is not refused"))
}

#[test]
fn the_budget_is_spent_at_the_end_and_not_before() {
    let experiment = read(&[]).unwrap();
    let mut store = Keeper::default();
    let outcomes = run(&experiment, &mut store, 1).unwrap();
    for rows in store.rows.chunks(5) {
        let spent: Vec<f64> = rows.iter().map(|row| row.value("epsilon").unwrap()).collect();
        assert!(spent.windows(2).all(|pair| pair[0] < pair[1]), "{spent:?}");
        assert!(spent[0] > 0.0 && spent[4] <= 3.0 && spent[4] > 2.95, "{spent:?}");
    }
    assert!(outcomes.iter().all(|outcome| outcome.stop == Stop::Finished));
    // More of a budget is less noise.
    let loud = run(&read(&["privacy.epsilon=0.1"]).unwrap(), &mut Keeper::default(), 1).unwrap();
    let length = |outcome: &Outcome| outcome.models[0].1.iter().map(|v| v * v).sum::<f64>();
    assert!(length(&loud[0]) > 4.0 * length(&outcomes[0]));
}

#[test]
fn a_run_with_given_noise_ends_where_its_budget_is_spent() {
    let sets = [
        "privacy.noise=6",
        "algorithm.dgd.alpha=0.1",
        "run.iterations=100000",
        "run.evaluations=2",
    ];
    let experiment = read(&[&sets[..], &["privacy.epsilon=1"]].concat()).unwrap();
    let mut store = Keeper::default();
    for outcome in run(&experiment, &mut store, 1).unwrap() {
        assert_eq!(outcome.stop, Stop::Budget);
        let (k, spent) = (outcome.row.iteration, outcome.row.value("epsilon").unwrap());
        assert!(k > 5 && k < 100_000 && spent <= 1.0 && spent > 0.9, "{k} {spent}");
    }
    let error = refused(&["privacy.noise=0.01", "privacy.epsilon=0.01"]);
    assert_eq!(error.id, "privacy/budget");
}

#[test]
fn threads_and_resuming_change_no_bit() {
    let set = |clip| read(&["checkpoint.iterations=7", "run.precision=f32", clip]).unwrap();
    let experiment = set("privacy.clip=0.5");
    let one = |label: &str, clip| {
        let mut one = set(clip);
        one.algorithms.retain(|spec| spec.label == label);
        one
    };
    for (label, clip) in [
        ("lopa-gt", "privacy.clip=0.5"),
        ("lopa-gt", "privacy.clip=auto"),
        ("dgd", "privacy.clip=0.5"),
        ("dgd", "privacy.clip=auto"),
    ] {
        let experiment = one(label, clip);
        let mut straight = Keeper::default();
        let want = run(&experiment, &mut straight, 1).unwrap();
        let threads = run(&experiment, &mut Keeper::default(), 3).unwrap();
        assert_eq!(want[0].digest, threads[0].digest);
        assert!(straight.states.len() >= 5);
        // A planted mistake is seen: a run that skips the noise of one iteration, or draws one again.
        for off in [-1, 1] {
            let mut state = straight.states[2].clone();
            state.progress.k = state.progress.k.checked_add_signed(off).unwrap();
            let again = &mut Keeper { from: Some(state), ..Keeper::default() };
            let wrong = run(&experiment, again, 1).map(|got| got[0].models.clone());
            assert!(wrong.is_err() || wrong.is_ok_and(|models| models != want[0].models));
        }
        for state in straight.states {
            let mut again = Keeper { from: Some(state), ..Keeper::default() };
            let got = run(&experiment, &mut again, 1).unwrap();
            assert_eq!(want[0].digest, got[0].digest);
            assert_eq!(want[0].models, got[0].models);
            assert_eq!(straight.rows.last(), again.rows.last());
        }
    }
    // Another seed of the noise is another run.
    let other = read(&["privacy.seed=6", "run.precision=f32"]).unwrap();
    let digest = |experiment: &Experiment| {
        run(experiment, &mut Keeper::default(), 1).unwrap()[0].digest.clone()
    };
    assert_ne!(digest(&other), digest(&experiment));
}

#[test]
fn the_iteration_at_which_a_run_ends_is_resumed_and_not_computed_anew() {
    let sets = [
        "privacy.noise=6",
        "privacy.epsilon=1",
        "run.iterations=100000",
        "checkpoint.iterations=5",
    ];
    let mut experiment = read(&sets).unwrap();
    experiment.algorithms.truncate(1);
    let mut straight = Keeper::default();
    let want = run(&experiment, &mut straight, 1).unwrap();
    let from = straight.states.last().cloned();
    let got = run(&experiment, &mut Keeper { from, ..Keeper::default() }, 1).unwrap();
    assert_eq!((want[0].stop, want[0].row.iteration), (got[0].stop, got[0].row.iteration));
    assert_eq!(want[0].digest, got[0].digest);
}

#[test]
fn what_the_accounting_does_not_cover_is_refused_by_name() {
    for (set, name) in [
        ("run.shared_samples=true", "shared_samples"),
        ("run.finite_differences=0.001", "finite_differences"),
        ("run.target={ metric = 'loss', at_most = 0.1 }", "target"),
        ("run.final_theta=solved", "final_theta"),
        ("run.until=all", "until"),
        ("algorithm=[{ name = 'dgd' }]", "step size"),
    ] {
        let error = refused(&[set]);
        assert_eq!(error.id, "privacy/refused", "{set}: {error}");
        assert!(error.message.contains(name) && error.hint.is_some(), "{set}: {error}");
    }
    for problem in ["{ name = 'meta-learning', tasks = 2 }", "{ name = 'hyper-cleaning' }"] {
        let error = refused(&[&format!("problem={problem}")]);
        assert_eq!(error.id, "privacy/no-rows", "{problem}: {error}");
    }
    let quadratic = "
        problem   = { name = 'quadratic' }
        network   = { nodes = 2, graph = 'ring' }
        run       = { iterations = 5 }
        privacy   = { epsilon = 1.0, seed = 1 }
        algorithm = [{ name = 'lopa-gt', alpha = 0.1, beta = 0.1, lambda = 0.1 }]
    ";
    let error = Experiment::parse(quadratic).unwrap().run().unwrap_err();
    assert_eq!(error.id, "privacy/no-rows", "{error}");
}

#[test]
fn peers_do_not_take_a_simulation_for_protection() {
    let error = read(&[]).unwrap().sizes(None, 0).unwrap_err();
    assert_eq!(error.id, "privacy/simulated", "{error}");
}

/// The plan of a run is what its method says that it costs: a method that asks for more is stopped.
#[test]
fn every_algorithm_is_counted_or_refused() {
    let registries = Registries::default();
    let (mut counted, mut all) = (0, 0);
    for entry in registries.algorithms.iter() {
        let mut table = entry.typical.clone().unwrap();
        table.insert("name".into(), entry.name.clone().into());
        if ["dgd", "gt-sgd", "extra", "exact-diffusion"].contains(&entry.name.as_str()) {
            table.insert("alpha".into(), 0.1.into());
        }
        let set = format!("algorithm=[{}]", toml::Value::Table(table));
        let personal = entry.facts.scopes.contains(&Scope::Personal);
        let scope = if personal { "scope=personal" } else { "scope=global" };
        let experiment = read(&[&set, "run.iterations=6", scope]);
        let experiment = experiment.unwrap_or_else(|error| panic!("{set}: {error}"));
        all += 1;
        match run(&experiment, &mut Keeper::default(), 1) {
            Ok(outcomes) => {
                let spent = outcomes[0].row.value("epsilon").unwrap();
                assert!(spent > 0.0 && spent <= 3.0, "{}: {spent}", entry.name);
                counted += 1;
            }
            // First-order methods without step sizes, and loops whose lengths are drawn.
            Err(error) => {
                assert!(["privacy/spent", "privacy/refused"].contains(&error.id), "{error}");
            }
        }
    }
    assert!(2 * counted > all, "{counted} of {all}");
}

#[test]
fn bad_numbers_are_refused_and_odd_ones_are_not() {
    for set in [
        "privacy.epsilon=0",
        "privacy.epsilon=-1",
        "privacy.epsilon=nan",
        "privacy.epsilon=inf",
        "privacy.delta=0",
        "privacy.delta=1",
        "privacy.delta=1e-300",
        "privacy.clip=0",
        "privacy.clip=nan",
        "privacy.noise=0",
        "privacy.noise=1e300",
        "privacy.seed=-1",
        "privacy.epsilom=1",
        "privacy={ seed = 1 }",
        "privacy.clip=1e300",
        "privacy.clip=-1",
        "privacy.clip=automatic",
        "privacy.clip={ median = 1 }",
    ] {
        let error = read(&[set]).err().unwrap_or_else(|| panic!("{set} is not refused"));
        assert!(error.id.starts_with("config/"), "{set}: {error}");
    }
    // A minibatch of more rows than there are is all rows; a single row per function is enough.
    let few = ["data.samples=8", "data.test=0", "run.batch=100", "run.iterations=3"];
    let outcomes = run(&read(&few).unwrap(), &mut Keeper::default(), 1).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.row.value("epsilon").unwrap() <= 3.0));
}
