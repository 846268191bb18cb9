//! Runs that protect rows: the ledger, what is measured, and what is refused.

use std::path::{Path, PathBuf};

use lopa::config::Source;
use lopa::data::Origin;
use lopa::error::{Error, Result};
use lopa::experiment::{Experiment, Registries};
use lopa::folder::ledger::{Ledger, Ledgers};
use lopa::math::random::{Purpose, Stream};
use lopa::problem::private::Key;
use lopa::run::reserved::{Claim, Reservation, Reserved};
use lopa::run::trace::Row;
use lopa::run::{Context, Outcome, Store};

const FILE: &str = "
    problem   = { name = 'hyperparameter', validation = 0.4, bias = true }
    partition = 'group'
    network   = { nodes = 3, graph = 'complete' }
    run       = { iterations = 12, batch = 6, evaluations = 3 }
    privacy   = { epsilon = 2.0, delta = 1e-3 }
    algorithm = [{ name = 'lopa-gt', alpha = 0.05, beta = 0.3, lambda = 0.3 }]
    [data]
    name = 'csv'
    path = 'rows.csv'
    label = 'ill'
    group = 'place'
    classes = ['no', 'yes']
    scaling = 'none'
    test = 0.0
";

/// A folder with a table and its ledgers.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        std::fs::write(place.0.path().join("rows.csv"), table(7)).unwrap();
        place
    }

    fn ledgers(&self) -> PathBuf {
        self.0.path().join("ledgers")
    }

    fn read(&self, sets: &[&str]) -> Result<Experiment> {
        let sets = sets.iter().map(|set| set.to_string()).collect();
        Experiment::read(&Source { sets, ..Source::new("test", FILE) }, &Registries::default())
    }

    /// Runs the file with other settings, from the folder `data`.
    fn run_in(&self, data: &Path, sets: &[&str]) -> Result<(Outcome, Vec<Row>)> {
        let experiment = self.read(sets)?;
        let context = Context { data_dir: data.to_path_buf(), ..Context::default() };
        let mut store = Keeper { folder: self.ledgers(), ledgers: None, rows: Vec::new() };
        let mut outcomes = experiment.run_with(&context, &mut store, &mut ())?;
        Ok((outcomes.swap_remove(0), store.rows))
    }

    fn run(&self, sets: &[&str]) -> Result<(Outcome, Vec<Row>)> {
        self.run_in(self.0.path(), sets)
    }

    fn ledger(&self) -> Ledger {
        let context = Context { data_dir: self.0.path().to_path_buf(), ..Context::default() };
        let origins = self.read(&[]).unwrap().origins(&context, 0..3).unwrap();
        assert_eq!(origins.len(), 1);
        Ledger::open(&self.ledgers(), &origins[0]).unwrap()
    }
}

fn table(seed: u64) -> String {
    let mut stream = Stream::new(seed, Purpose::Data, 0);
    let mut text = "place,a,b,ill\n".to_string();
    for row in 0..60 {
        let ill = stream.unit() < 0.5;
        let [a, b] = [(); 2].map(|()| stream.normal() + f64::from(u8::from(ill)));
        let (place, ill) = (["x", "y", "z"][row % 3], if ill { "yes" } else { "no" });
        text += &format!("{place},{a},{b},{ill}\n");
    }
    text
}

struct Keeper {
    folder: PathBuf,
    ledgers: Option<Ledgers>,
    rows: Vec<Row>,
}

impl Store for Keeper {
    fn reserve(&mut self, origins: &[Origin], run: &Reservation) -> Result<Reserved> {
        let (ledgers, reserved) = Ledgers::reserve(&self.folder, origins, run)?;
        self.ledgers = Some(ledgers);
        Ok(reserved)
    }

    fn claim(&mut self, claim: Claim) -> Result<()> {
        self.ledgers.iter_mut().try_for_each(|ledgers| ledgers.claim(claim))
    }

    fn row(&mut self, _: &str, _: u64, row: &Row) -> Result<()> {
        self.rows.push(row.clone());
        Ok(())
    }
}

fn id(result: Result<(Outcome, Vec<Row>)>) -> &'static str {
    result.err().map_or("it ran", |error: Error| error.id)
}

#[test]
fn the_budget_of_rows_is_not_reset_by_names_seeds_settings_or_copies() {
    let place = Place::new();
    let (first, _) = place.run(&[]).unwrap();
    assert!(first.row.value("epsilon").unwrap() <= 2.0);
    for sets in [
        &["name='other'"][..],
        &["run.seeds=[2]"],
        &["run.batch=5"],
        &["run.iterations=1"],
        &["privacy.epsilon=0.001"],
        &["privacy.delta=1e-6", "privacy.epsilon=0.1"],
        &["privacy.clip=2.0"],
        &["algorithm=[{ name = 'local', alpha = 0.05, beta = 0.3, lambda = 0.3 }]"],
        &["data.scaling='row'"],
        &["data.samples=50"],
        &["network.graph='path'"],
    ] {
        assert_eq!(id(place.run(sets)), "privacy/spent", "{sets:?}");
    }
    // A copy of the file under another name, in another folder.
    let other = tempfile::tempdir().unwrap();
    std::fs::copy(place.0.path().join("rows.csv"), other.path().join("copy.csv")).unwrap();
    assert_eq!(id(place.run_in(other.path(), &["data.path='copy.csv'"])), "privacy/spent");
    // The same run asks the same questions, and gets the same answers: nothing new is said.
    let (again, _) = place.run(&[]).unwrap();
    assert_eq!((first.digest, first.models), (again.digest, again.models));
    let ledger = place.ledger();
    assert_eq!((ledger.spent(), ledger.limit()), ((2.0, 1e-3), Some((2.0, 1e-3))));
    drop(ledger);
    // Only the owner raises the limit; budgets then add up.
    place.ledger().allow(3.0, 2e-3).unwrap();
    assert_eq!(id(place.run(&["name='other'", "privacy.epsilon=1.1"])), "privacy/spent");
    place.run(&["name='other'", "privacy.epsilon=1.0"]).unwrap();
    assert_eq!(place.ledger().spent(), (3.0, 2e-3));
    // Other rows have a ledger of their own.
    std::fs::write(place.0.path().join("rows.csv"), table(8)).unwrap();
    place.run(&[]).unwrap();
}

#[test]
fn two_runs_at_once_and_damaged_ledgers_are_refused() {
    let place = Place::new();
    let ledger = place.ledger();
    assert_eq!(id(place.run(&[])), "privacy/locked");
    let path = ledger.path().to_path_buf();
    drop(ledger);
    place.run(&[]).unwrap();
    let sound = std::fs::read_to_string(&path).unwrap();
    // A line that a power cut has cut off was never confirmed.
    std::fs::write(&path, sound.clone() + "{\"run\":{\"run\":\"ab").unwrap();
    assert_eq!(id(place.run(&["name='other'"])), "privacy/spent");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), sound);
    for bad in [
        sound.replacen("2.0", "-2.0", 1),
        sound.replacen("epsilon", "epsilom", 1),
        sound.replacen("limit", "limits", 1),
        sound.clone() + "no line\n",
    ] {
        std::fs::write(&path, &bad).unwrap();
        assert_eq!(id(place.run(&[])), "privacy/ledger", "{bad}");
    }
    // Without its key, the noise of earlier runs cannot be drawn again: the same run is another one.
    std::fs::write(&path, &sound).unwrap();
    std::fs::write(path.with_extension("key"), "short").unwrap();
    assert_eq!(id(place.run(&[])), "privacy/ledger");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::remove_file(path.with_extension("key")).unwrap();
        assert_eq!(id(place.run(&[])), "privacy/spent");
        let mode = std::fs::metadata(path.with_extension("key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn keys_differ_between_runs_and_rows() {
    let (one, other) = (Place::new(), Place::new());
    let digest = |place: &Place| place.run(&[]).unwrap().0.digest;
    assert_ne!(digest(&one), digest(&other), "each owner has a key of its own");
    let key = Key([3; 32]);
    assert_ne!(key.of("a"), key.of("b"));
    assert_ne!(key.and(&key.of("a")), key.of("a").and(&key));
}

#[test]
fn nothing_is_measured_on_rows() {
    let place = Place::new();
    let (outcome, rows) = place.run(&["data.holdout=0.2"]).unwrap();
    assert_eq!(rows.len(), 4);
    for row in &rows {
        let names: Vec<&str> = row.values.keys().map(String::as_str).collect();
        assert_eq!(names, ["consensus", "epsilon", "tracking"]);
    }
    assert!(outcome.nodes.is_empty() && outcome.diagnosis.is_none());
    // Nor where the run diverges.
    let place = Place::new();
    let sets = ["algorithm.lopa-gt.beta=1e200", "run.iterations=40"];
    let (outcome, _) = place.run(&sets).unwrap();
    assert!(outcome.diagnosis.unwrap().contains("grew without bound"));
}

#[test]
fn settings_that_depend_on_rows_are_refused_by_name() {
    let place = Place::new();
    for (sets, key) in [
        (&["data.scaling='standardise'"][..], "data.scaling"),
        (&["data.test=0.2"], "data.test"),
        (&["data.unknown_labels='drop'"], "data.unknown_labels"),
        (&["partition={ name = 'classes', per_node = 1 }"], "partition"),
        (&["run.seeds=[1, 2]"], "run.seeds"),
        (&["run.lyapunov=true"], "run.lyapunov"),
        (&["run.precision='f32'"], "run.precision"),
        (&["privacy={ noise = 3.0 }"], "privacy.epsilon"),
        (&["algorithm=[{ name = 'lopa-gt' }, { name = 'lopa-lg' }]"], "algorithm"),
    ] {
        let error = place.read(sets).err().unwrap_or_else(|| panic!("{sets:?} is not refused"));
        assert_eq!((error.id, error.place.as_deref()), ("privacy/refused", Some(key)), "{error}");
        assert!(error.hint.is_some());
    }
    // `--seed` comes after the file was read.
    let mut experiment = place.read(&[]).unwrap();
    experiment.run.seeds = vec![1, 2];
    let context = Context { data_dir: place.0.path().to_path_buf(), ..Context::default() };
    let error = experiment.run_with(&context, &mut (), &mut ()).unwrap_err();
    assert_eq!(error.id, "privacy/refused", "{error}");
    // Without a ledger nothing runs.
    let error = place.read(&[]).unwrap().run_with(&context, &mut (), &mut ()).unwrap_err();
    assert_eq!(error.id, "privacy/no-ledger", "{error}");
    // Given moments are those of no row.
    let given =
        ["data.scaling='standardise'", "data.moments={ mean = [0.5, 0.5], deviation = [1, 1] }"];
    place.run(&given).unwrap();
}

#[test]
fn a_row_with_a_label_that_is_not_listed_ends_the_run_before_anything_is_sent() {
    let place = Place::new();
    let text = table(7).replacen("yes", "maybe", 1);
    std::fs::write(place.0.path().join("rows.csv"), text).unwrap();
    assert_eq!(id(place.run(&[])), "data/unknown-label");
    assert!(place.ledger().lines().is_empty(), "nothing was spent");
}

#[test]
fn one_row_per_function_and_equal_rows_run() {
    let place = Place::new();
    let mut text = "place,a,b,ill\n".to_string();
    for row in ["x,1,2,no", "x,1,2,yes", "y,1,2,no", "y,1,2,no", "z,1,2,yes", "z,1,2,no"] {
        text += &format!("{row}\n");
    }
    std::fs::write(place.0.path().join("rows.csv"), text).unwrap();
    let (outcome, _) = place.run(&["run.batch='full'"]).unwrap();
    let spent = outcome.row.value("epsilon").unwrap();
    assert!(spent > 0.0 && spent <= 2.0);
    assert!(outcome.models.iter().flat_map(|(x, _)| x).all(|value| value.is_finite()));
}
