//! Checkpoints: after any interruption or damage, a run ends with the same digest.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::engine::Progress;
use lopa::error::{Kind, Result};
use lopa::experiment::{Experiment, Registries};
use lopa::math::random::{Purpose, Stream};
use lopa::run::checkpoint::{Checkpoint, State, Store};
use lopa::run::evaluate;
use lopa::run::trace::{Row, Stop};
use lopa::run::{self, Context, Outcome};
use lopa_base::store::disk::{Step, Verdict, watched};
use lopa_base::store::files::replace;

const PERSONAL: &str = include_str!("../../../../experiments/quadratic.toml");
const GLOBAL: &str = include_str!("../../../../experiments/quadratic-global.toml");

/// Noise, minibatches, a series of random length; a checkpoint every seven iterations.
const NOISY: [&str; 6] = [
    "problem.noise=0.5",
    "problem.samples=30",
    "run.batch=4",
    "run.iterations=40",
    "run.evaluations=4",
    "checkpoint.iterations=7",
];

fn read(text: &str, sets: &[&str]) -> Experiment {
    let sets = NOISY.iter().chain(sets).map(|set| set.to_string()).collect();
    let source = Source { sets, ..Source::new("test", text) };
    Experiment::read(&source, &Registries::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Keeps every state and row of every run; starts runs from states, if it has any.
#[derive(Default)]
struct Keeper {
    from: Vec<(String, State)>,
    states: Vec<(String, State)>,
    rows: Vec<(String, Row)>,
}

impl run::Store for Keeper {
    fn kept(
        &mut self,
        algorithm: &str,
        _: u64,
        _: &dyn Fn(&State) -> bool,
        _: &mut dyn FnMut(String),
    ) -> Result<Option<State>> {
        let from = self.from.iter().find(|(name, _)| name == algorithm);
        Ok(from.map(|(_, state)| state.clone()))
    }

    fn keep(&mut self, algorithm: &str, _: u64, state: State) -> Result<()> {
        self.states.push((algorithm.into(), state));
        Ok(())
    }

    fn row(&mut self, algorithm: &str, _: u64, row: &Row) -> Result<()> {
        self.rows.push((algorithm.into(), Row { seconds: 0.0, ..row.clone() }));
        Ok(())
    }
}

fn run(experiment: &Experiment, store: &mut dyn run::Store) -> Vec<Outcome> {
    try_run(experiment, store).unwrap()
}

fn try_run(experiment: &Experiment, store: &mut dyn run::Store) -> Result<Vec<Outcome>> {
    let never = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &never, probe: None };
    experiment.run_with(&context, store, &mut ())
}

/// The part of an outcome that must not depend on where a run was interrupted.
fn fate(outcome: &Outcome) -> (&str, &str, Stop, Row, &[evaluate::Point]) {
    let row = Row { seconds: 0.0, ..outcome.row.clone() };
    (&outcome.algorithm, &outcome.digest, outcome.stop, row, &outcome.models)
}

/// Runs it straight, then again from the n-th state of each algorithm for some n.
fn check_cuts(experiment: &Experiment) {
    let mut straight = Keeper::default();
    let want = run(experiment, &mut straight);
    for n in [0, 1, 4] {
        let nth = |outcome: &Outcome| {
            let mut own = straight.states.iter().filter(|(name, _)| *name == outcome.algorithm);
            own.nth(n).cloned()
        };
        let from: Vec<_> = want.iter().filter_map(nth).collect();
        let mut resumed = Keeper { from: from.clone(), ..Keeper::default() };
        let got = run(experiment, &mut resumed);
        for (want, got) in want.iter().zip(&got) {
            assert_eq!(fate(want), fate(got), "from checkpoint {n}");
        }
        let later = |(name, row): &&(String, Row)| {
            let from = from.iter().find(|(of, _)| of == name);
            from.is_none_or(|(_, state)| row.iteration > state.progress.k)
        };
        let later: Vec<_> = straight.rows.iter().filter(later).cloned().collect();
        assert_eq!(resumed.rows, later);
    }
}

/// Replicas are part of the state.
#[test]
fn messages_go_on_where_they_were() {
    let sets = [
        &["messages.compress={name='top-k',share=0.5}"][..],
        &["messages.compress={name='quantise',bits=3}", "messages.drop=0.3", "messages.late=0.3"],
        &["messages.late=0.4", "messages.bursts={begin=0.3,end=0.4}", "messages.active=0.7"],
        &["messages.clip={median=1.0}", "messages.compress='sign'"],
        &["messages.clip={median=1.0}", "attack={nodes=[1],kind='noise'}"],
        &["messages.compress='f16'", "time={compute=0.001,links='home'}"],
        &[
            "network.graph=random-matching",
            "messages.compress={name='top-k',share=0.5}",
            "messages.late=0.4",
            "messages.active=0.8",
            "time={compute=0.001,links='home'}",
        ],
        &[
            "network.graph={name='random-edges',base='complete',p=0.5}",
            "messages.late=0.5",
            "messages.drop=0.3",
            "time={compute=0.001,links='home',stragglers={p=0.3,factor=4}}",
        ],
    ];
    for more in sets {
        for precision in ["run.precision=f64", "run.precision=f32"] {
            check_cuts(&read(PERSONAL, &[&[precision], more].concat()));
        }
    }
    check_cuts(&read(GLOBAL, sets[1]));
    check_cuts(&read(GLOBAL, sets[7]));
}

#[test]
fn every_algorithm_goes_on_to_the_same_digest() {
    for text in [PERSONAL, GLOBAL] {
        for precision in ["run.precision=f64", "run.precision=f32"] {
            check_cuts(&read(text, &[precision]));
        }
    }
}

/// Tables of SAGA, and the place in an epoch.
#[test]
fn epochs_and_estimates_go_on_where_they_were() {
    let epochs = "run.epochs=true";
    for text in [PERSONAL, GLOBAL] {
        let kept = read(text, &[epochs]).algorithms.into_iter().map(|choice| choice.label);
        let saga = |label: String| {
            let set = format!("algorithm.{label}.estimate=saga");
            let source = Source { sets: vec![set.clone()], ..Source::new("test", text) };
            Experiment::read(&source, &Registries::default()).is_ok().then_some(set)
        };
        let saga: Vec<String> = kept.filter_map(saga).collect();
        assert!(saga.len() >= 4, "{saga:?}");
        let saga: Vec<&str> = saga.iter().map(String::as_str).collect();
        for precision in ["run.precision=f64", "run.precision=f32"] {
            check_cuts(&read(text, &[&[precision, epochs], &saga[..]].concat()));
        }
    }
}

#[test]
fn budgets_targets_and_divergence_come_as_they_would() {
    let neumann = "algorithm.spdb.inverse=neumann";
    check_cuts(&read(PERSONAL, &[neumann, "run.budget={ hessians = 60, samples = 900 }"]));
    check_cuts(&read(PERSONAL, &["run.target={ metric = 'grad_phi_sq', at_most = 0.5 }"]));
    let wild = read(PERSONAL, &["algorithm.lopa-gt.beta=3.0", "run.iterations=400"]);
    check_cuts(&wild);
    let outcomes = run(&wild, &mut Keeper::default());
    assert_eq!(outcomes[0].stop, Stop::Diverged);
}

/// A checkpoint ends its record with the seconds of measuring so far; earlier builds had none there.
#[test]
fn the_time_of_measuring_goes_on() {
    let mut experiment = read(PERSONAL, &[]);
    experiment.algorithms.truncate(1);
    let mut straight = Keeper::default();
    let want = run(&experiment, &mut straight);
    let (name, state) = straight.states[1].clone();
    let resumed = |record: Vec<u8>| {
        let from = vec![(name.clone(), State { record, ..state.clone() })];
        run(&experiment, &mut Keeper { from, ..Keeper::default() }).remove(0)
    };
    let (before, time) = state.record.split_at(state.record.len() - 8);
    assert!(f64::from_le_bytes(time.try_into().unwrap()) > 0.0, "something was measured");
    let long = resumed([before, &1e6_f64.to_le_bytes()].concat());
    assert!(long.measuring > 1e6, "{}", long.measuring);
    let old = resumed(before.to_vec());
    assert!(old.measuring < 1e6, "{}", old.measuring);
    assert_eq!([fate(&long), fate(&old)], [fate(&want[0]), fate(&want[0])]);
}

/// Rounds follow from the seed, and recorded times are saved.
#[test]
fn changing_graphs_and_clocks_go_on_as_they_would() {
    let time = "time={ compute = 0.001, links = 'home', stragglers = { p = 0.3, factor = 4 } }";
    for graph in ["one-peer-exponential", "random-matching"] {
        let graph = format!("network.graph={graph}");
        check_cuts(&read(PERSONAL, &[time, &graph, "network.nodes=5"]));
        check_cuts(&read(GLOBAL, &[time, &graph, "run.budget={ virtual_seconds = 0.6 }"]));
    }
}

// ---- files ----

/// A small run of one algorithm.
fn small_run() -> Experiment {
    let sets = ["network.nodes=2", "problem.n=1", "problem.p=2", "network.graph=path"];
    let mut experiment = read(PERSONAL, &sets);
    experiment.algorithms.truncate(1);
    experiment
}

/// Its last checkpoint.
fn small() -> Checkpoint {
    let mut keeper = Keeper::default();
    run(&small_run(), &mut keeper);
    Checkpoint { run: [7; 32], metrics: 0, state: keeper.states.pop().unwrap().1 }
}

#[test]
fn a_checkpoint_comes_back_as_it_was() {
    let checkpoint = small();
    assert_eq!(Checkpoint::from_bytes(&checkpoint.to_bytes()), Ok(checkpoint));
}

#[test]
fn a_checkpoint_cut_at_any_byte_is_refused() {
    let bytes = small().to_bytes();
    for length in 0..bytes.len() {
        assert!(Checkpoint::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    for more in [1, 8, 48] {
        let longer = [&bytes[..], &vec![0; more]].concat();
        assert!(Checkpoint::from_bytes(&longer).is_err(), "{more} bytes more");
    }
}

#[test]
fn a_checkpoint_with_any_bit_flipped_is_refused() {
    let bytes = small().to_bytes();
    let mut stream = Stream::new(1, Purpose::Data, 0);
    for _ in 0..2000 {
        let (at, bit) = (stream.below(bytes.len()), stream.below(8));
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << bit;
        assert!(Checkpoint::from_bytes(&flipped).is_err(), "bit {bit} of byte {at}");
    }
}

#[test]
fn sections_that_changed_places_are_refused() {
    let checkpoint = small();
    let bytes = checkpoint.to_bytes();
    let length = 8 + checkpoint.state.nodes[0].len() + 32;
    let links = 8 + 32; // of one process there are none
    let (rest, nodes) = bytes.split_at(bytes.len() - links - 2 * length);
    let (one, two) = nodes.split_at(length);
    let (two, links) = two.split_at(length);
    assert!(Checkpoint::from_bytes(&[rest, one, two, links].concat()).is_ok());
    assert!(Checkpoint::from_bytes(&[rest, two, one, links].concat()).is_err());
}

#[test]
fn counts_that_no_run_reaches_are_refused() {
    let header = Checkpoint::from_bytes(&at(u64::MAX).to_bytes());
    assert_eq!(header, Err("its header is malformed"));
    // The first count of each node comes after the 32 bytes of its trail.
    let Checkpoint { mut state, .. } = small();
    state.nodes.iter_mut().for_each(|node| node[32..40].fill(0xff));
    let from = vec![(small_run().algorithms[0].label.clone(), state)];
    let refused = try_run(&small_run(), &mut Keeper { from, ..Keeper::default() });
    assert_eq!(refused.unwrap_err().id, "storage/checkpoint");
}

/// The same checkpoint, later.
fn at(k: u64) -> Checkpoint {
    let mut checkpoint = small();
    checkpoint.state.progress = Progress { k, ..checkpoint.state.progress };
    checkpoint
}

/// The iteration of the newest sound checkpoint, and how many were refused.
fn newest(folder: &Path) -> (Option<u64>, usize) {
    let mut refused = Vec::new();
    let checkpoint = Store::new(folder, "run")
        .newest(&[7; 32], 0..=0, &|_| true, &mut |text| refused.push(text));
    (checkpoint.map(|checkpoint| checkpoint.state.progress.k), refused.len())
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::new(folder.path(), "run");
    assert_eq!(newest(folder.path()), (None, 0));
    (1..=3).for_each(|k| store.write(&at(k)).unwrap());
    assert_eq!(newest(folder.path()), (Some(3), 0));
    let path = folder.path().join("run.0");
    let sound = std::fs::read(&path).unwrap();
    for length in [0, 10, sound.len() / 2, sound.len() - 1] {
        std::fs::write(&path, &sound[..length]).unwrap();
        assert_eq!(newest(folder.path()), (Some(2), 1));
    }
    // The damaged file is overwritten first.
    let mut store = Store::new(folder.path(), "run");
    store.newest(&[7; 32], 0..=0, &|_| true, &mut |_| ()).unwrap();
    store.write(&at(4)).unwrap();
    assert_eq!(newest(folder.path()), (Some(4), 0));
    std::fs::write(folder.path().join("run.0"), b"lopa checkpoint\n").unwrap();
    std::fs::write(folder.path().join("run.1"), b"").unwrap();
    assert_eq!(newest(folder.path()), (None, 2));
}

#[test]
fn a_checkpoint_of_another_run_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::new(folder.path(), "run");
    store.write(&Checkpoint { run: [8; 32], ..at(1) }).unwrap();
    store.write(&Checkpoint { metrics: 100, ..at(2) }).unwrap();
    assert_eq!(newest(folder.path()), (None, 2));
}

/// Opened, written, synced, renamed; the folder synced.
const STEPS: usize = 5;

/// The step at which a file has its new name.
const RENAMED: usize = 4;

/// A step of writing a file fails.
fn failing(nth: usize, kind: io::ErrorKind) -> impl FnMut(Step) -> Verdict {
    let mut steps = 0;
    move |_| {
        steps += 1;
        if steps == nth + 1 { Verdict::Half(kind.into()) } else { Verdict::Go }
    }
}

#[test]
fn an_error_at_any_step_leaves_a_sound_checkpoint() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::ReadOnlyFilesystem] {
        for step in 0..STEPS {
            let folder = tempfile::tempdir().unwrap();
            let mut store = Store::new(folder.path(), "run");
            (1..=2).for_each(|k| store.write(&at(k)).unwrap());
            let error = watched(failing(step, kind), || store.write(&at(3)).unwrap_err());
            assert_eq!((error.kind, error.id), (Kind::Storage, "storage/write"));
            let k = if step == RENAMED { 3 } else { 2 };
            assert_eq!(newest(folder.path()), (Some(k), 0), "step {step}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "step {step}");
            store.write(&at(4)).unwrap();
            assert_eq!(newest(folder.path()), (Some(4), 0), "step {step}");
        }
    }
}

#[test]
fn a_file_is_replaced_or_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.json");
    std::fs::write(&path, "old").unwrap();
    for step in 0..STEPS {
        watched(failing(step, io::ErrorKind::Other), || replace(&path, b"new").unwrap_err());
        let content = std::fs::read_to_string(&path).unwrap();
        assert_eq!(content, if step == RENAMED { "new" } else { "old" }, "step {step}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

// ---- processes that die while they write ----

/// Writes checkpoints to a folder, and dies before a step of the n-th, or after the last.
struct Mortal {
    store: Store,
    dies: Option<(usize, usize)>,
    written: usize,
}

impl Mortal {
    fn new(folder: &Path, dies: Option<(usize, usize)>) -> Mortal {
        Mortal { store: Store::new(folder, "run"), dies, written: 0 }
    }
}

impl run::Store for Mortal {
    fn kept(
        &mut self,
        _: &str,
        _: u64,
        usable: &dyn Fn(&State) -> bool,
        _: &mut dyn FnMut(String),
    ) -> Result<Option<State>> {
        let checkpoint =
            self.store.newest(&[7; 32], 0..=0, usable, &mut |refused| panic!("{refused}"));
        Ok(checkpoint.map(|checkpoint| checkpoint.state))
    }

    fn keep(&mut self, _: &str, _: u64, state: State) -> Result<()> {
        self.written += 1;
        let here = self.dies.filter(|(nth, _)| *nth == self.written).map(|(_, step)| step);
        let mut steps = 0;
        // Without unwinding or flushing: as if killed.
        let watch = move |_: Step| {
            if Some(steps) == here {
                std::process::abort()
            }
            steps += 1;
            Verdict::Go
        };
        let checkpoint = Checkpoint { run: [7; 32], metrics: 0, state };
        let written = watched(watch, || self.store.write(&checkpoint));
        if here == Some(STEPS) {
            std::process::abort()
        }
        written
    }
}

fn mortal() -> Experiment {
    let mut experiment = read(PERSONAL, &[]);
    experiment.algorithms.retain(|algorithm| algorithm.label == "vrdbo");
    experiment
}

const FOLDER: &str = "LOPA_TEST_MORTAL_FOLDER";

/// A process of its own, started below.
#[test]
fn child_that_dies() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<usize>().unwrap();
    let dies = (number("LOPA_TEST_NTH"), number("LOPA_TEST_STEP"));
    run(&mortal(), &mut Mortal::new(&PathBuf::from(folder), Some(dies)));
}

#[test]
fn a_run_that_dies_at_any_step_of_the_writer_goes_on_to_the_same_digest() {
    let want = run(&mortal(), &mut Keeper::default()).remove(0).digest;
    for step in 0..=STEPS {
        for nth in 1..=3 {
            let folder = tempfile::tempdir().unwrap();
            let died = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "checkpoint::child_that_dies"])
                .env(FOLDER, folder.path())
                .env("LOPA_TEST_NTH", nth.to_string())
                .env("LOPA_TEST_STEP", step.to_string())
                .output()
                .unwrap();
            assert!(!died.status.success(), "it was to die");
            let mut resumed = Mortal::new(folder.path(), None);
            assert_eq!(run(&mortal(), &mut resumed).remove(0).digest, want);
            // Five checkpoints in a run of forty iterations: it did not start over.
            let before = nth - usize::from(step < RENAMED);
            assert_eq!(resumed.written, 5 - before, "{nth}, step {step}");
        }
    }
}
