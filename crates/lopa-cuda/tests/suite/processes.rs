//! Nodes in several processes, each with a device: the bits of one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use lopa::engine::device::{Device, DeviceRun, Facts, Program, device_entry};
use lopa::engine::{Accepts, Messages, Parcel, Round, Transport, block};
use lopa::error::{Error, Result};
use lopa::experiment::{Experiment, Registries};
use lopa::folder::{RunFolder, Status};
use lopa::math::real::Real;
use lopa::run::trace::Stop;
use lopa::run::{Context, Listener, Outcome};

use super::{card, experiment, hopper, images, registries, run};

/// A thread in place of a process.
struct Thread {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

/// As many as wanted.
fn threads(size: usize) -> Vec<Thread> {
    let mut all: Vec<Thread> =
        (0..size).map(|rank| Thread { rank, to: Vec::new(), from: Vec::new() }).collect();
    for from in 0..size {
        for to in 0..size {
            let (sender, receiver) = channel();
            all[from].to.push(sender);
            all[to].from.push(receiver);
        }
    }
    all
}

impl Transport for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn place(&self) -> usize {
        self.rank
    }

    fn is_divisible(&self) -> bool {
        true
    }

    fn exchange(
        &mut self,
        _: Round,
        _: usize,
        out: &[Parcel],
        into: &mut [Parcel],
        _: Messages,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()> {
        for parcel in out.iter().filter(|parcel| !parcel.bytes.is_empty()) {
            self.to[parcel.rank].send(parcel.bytes.clone()).unwrap();
        }
        meanwhile();
        for parcel in into.iter_mut().filter(|parcel| !parcel.bytes.is_empty()) {
            let bytes = self.from[parcel.rank].recv().unwrap();
            assert_eq!(bytes.len(), parcel.bytes.len(), "both ends expect the same");
            parcel.bytes = bytes;
        }
        Ok(())
    }

    fn all(&mut self, ours: &[u8], _: Accepts) -> Result<Vec<Vec<u8>>> {
        self.to.iter().for_each(|to| to.send(ours.to_vec()).unwrap());
        Ok(self.from.iter().map(|from| from.recv().unwrap()).collect())
    }

    fn gather(&mut self, ours: &[u8], accepts: Accepts) -> Result<Vec<Vec<u8>>> {
        let all = self.all(ours, accepts)?;
        Ok(if self.rank == 0 { all } else { Vec::new() })
    }
}

/// Stops a run at an iteration.
struct StopAt<'a>(u64, &'a AtomicBool);

impl Listener for StopAt<'_> {
    fn progress(&mut self, iteration: u64, _: f64) {
        self.1.store(iteration >= self.0, Ordering::Relaxed);
    }
}

/// What each process has at the end; with a folder, that of the first is written there. The last stops it at an iteration.
fn each(
    experiment: &Experiment,
    size: usize,
    (runs, until): (Option<&Path>, u64),
) -> Vec<Result<Outcome>> {
    let nodes = experiment.network.nodes;
    let part = |mut process: Thread| -> Result<Outcome> {
        let (rank, interrupt) = (process.rank, AtomicBool::new(false));
        let data_dir = images::folder();
        let context = Context { pool: None, data_dir, interrupt: &interrupt, probe: None };
        let mut listener = StopAt(if rank + 1 == size { until } else { u64::MAX }, &interrupt);
        let data = experiment.load_data_of(&context, block(nodes, size, rank))?;
        let Some(runs) = runs.filter(|_| rank == 0) else {
            let mut done =
                experiment.run_across(&mut process, data, &context, &mut (), &mut listener)?;
            return Ok(done.remove(0));
        };
        let mut folder = RunFolder::resume(runs, experiment, data.as_ref(), 1)?;
        let mut done =
            experiment.run_across(&mut process, data, &context, &mut folder, &mut listener)?;
        let stopped = done[0].stop == Stop::Interrupted;
        folder.finish(if stopped { Status::Interrupted } else { Status::Done })?;
        Ok(done.remove(0))
    };
    thread::scope(|scope| {
        let started: Vec<_> =
            threads(size).into_iter().map(|process| scope.spawn(|| part(process))).collect();
        started.into_iter().map(|process| process.join().unwrap()).collect()
    })
}

fn across(text: &str, sets: &[&str], size: usize) -> Outcome {
    let experiment = experiment(text, sets).unwrap();
    let all = each(&experiment, size, (None, u64::MAX));
    let mut all: Vec<Outcome> = all.into_iter().map(Result::unwrap).collect();
    assert!(all.iter().all(|own| own.digest == all[0].digest));
    all.remove(0)
}

/// The same digest in one process and in several, and the same costs.
fn same(text: &str, sets: &[&str], device: &str, sizes: &[usize]) {
    let device = format!("run.device={device}");
    let sets = [sets, &[&device]].concat();
    let one = run(text, &sets).unwrap().0;
    for &size in sizes {
        let own = across(text, &sets, size);
        assert_eq!(own.digest, one.digest, "{size} processes, {sets:?} of {text}");
        assert_eq!(own.stop, one.stop);
        for cost in ["iteration", "exchanges", "bytes", "hessians", "gradients", "samples", "loss"]
        {
            assert_eq!(own.row.value(cost), one.row.value(cost), "{cost}: {size}, {sets:?}");
        }
    }
}

const QUADRATIC: &str = r#"
problem = { name = "quadratic", n = 6, p = 5, noise = 0.3, samples = 40 }
network = { nodes = 7, graph = "ring" }
run = { iterations = 35, batch = 8, evaluations = 3 }
"#;

const LINEAR: &str = r#"
problem = { name = "hyperparameter" }
data = "digits"
network = { nodes = 7, graph = "star" }
run = { iterations = 25, batch = 7, evaluations = 3 }
"#;

const LAYER: &str = r#"
problem = { name = "representation", hidden = [9] }
data = "digits"
network = { nodes = 5, graph = "ring" }
run = { iterations = 12, batch = 6, precision = "f32", evaluations = 2 }
"#;

fn with(problem: &str, method: &str) -> String {
    format!(
        "{problem}[[algorithm]]\nname = \"{method}\"\nalpha = {{ over_sqrt = 0.02 }}\nbeta = 0.1\nlambda = 0.05\n"
    )
}

/// Ring, star, path, complete and random graphs; numbers of nodes that processes cannot share evenly.
fn every_graph(device: &str) {
    for method in ["lopa-gt", "lopa-lg", "local", "d-soba"] {
        for graph in ["ring", "star", "complete", "{ name = 'erdos-renyi', p = 0.4 }"] {
            let graph = format!("network.graph={graph}");
            same(&with(QUADRATIC, method), &[&graph], device, &[1, 2, 3]);
        }
    }
    same(&with(QUADRATIC, "lopa-gt"), &["run.precision=f32"], device, &[3, 7]);
}

/// Methods that are lists of sums, with θ mixed as well.
fn lists(device: &str, problem: &str, graphs: &[&str]) {
    for method in ["lopa-gt", "d-soba", "sldbo", "zhang", "sparkle"] {
        for graph in graphs {
            let graph = format!("network.graph={graph}");
            let text = with(problem, method);
            // Directions that are evaluated one by one have plain kernels only.
            if !(method == "sparkle" && device.contains("general")) {
                same(&text, &["scope=global", &graph], device, &[2, 3]);
            }
        }
    }
}

const GRAPHS: &[&str] = &["ring", "star", "{ name = 'erdos-renyi', p = 0.5 }"];

fn data(device: &str) {
    for method in ["lopa-gt", "d-soba"] {
        same(&with(LINEAR, method), &[], device, &[2, 3]);
        same(
            &with(LINEAR, method),
            &["run.precision=f32", "data.scaling=standardise"],
            device,
            &[3],
        );
        same(&with(LAYER, method), &["data.scaling=centre"], device, &[2]);
        same(&with(LAYER, method), &["run.precision=f64"], device, &[2, 5]);
        same(&with(LAYER, method), &["problem.hidden=[7, 5]", "problem.bias=false"], device, &[3]);
        let cleaning = LINEAR.replace("hyperparameter", "hyper-cleaning");
        same(&with(&cleaning, method), &[], device, &[2, 3]);
    }
}

/// The kernels of any model, for both kinds of methods.
pub fn layers() {
    any_shape("layers");
    for method in ["lopa-gt", "d-soba", "sparkle"] {
        let sets = ["problem.hidden=[7, 5]", "problem.bias=false", "problem.activation=relu"];
        same(&with(LAYER, method), &sets, "layers", &[3]);
        let single = ["run.precision=f32", "run.iterations=5"];
        let numbers = [&single[..], &["data.scaling=standardise"]].concat();
        same(&with(LINEAR, method), &numbers, "layers", &[2, 3]);
        let cleaning = LINEAR.replace("hyperparameter", "hyper-cleaning");
        same(&with(&cleaning, method), &single, "layers", &[2]);
        // Few rows of many features: scores in parts.
        let images = LINEAR.replace("digits", "mnist");
        same(&with(&images, method), &single, "layers", &[2]);
    }
}

#[test]
fn emulated_cards_of_several_processes_have_the_bits_of_one() {
    every_graph("emulated");
    data("emulated");
}

#[test]
fn emulated_lists_in_several_processes_have_the_bits_of_one() {
    lists("emulated", QUADRATIC, GRAPHS);
    lists("emulated", LAYER, &["star"]);
    lists("emulated-general", LAYER, &["ring"]);
}

/// Bytes, shifted bytes and numbers: their scale is that of all processes.
fn any_shape(device: &str) {
    for method in ["lopa-gt", "lopa-lg", "d-soba"] {
        for scaling in ["none", "centre", "standardise"] {
            let scaling = format!("data.scaling={scaling}");
            same(&with(LAYER, method), &[&scaling], device, &[2, 3]);
        }
    }
    same(&with(LAYER, "lopa-gt"), &["run.precision=tf32"], device, &[2]);
    same(&with(LAYER, "lopa-gt"), &["network.graph=star", "network.nodes=6"], device, &[3]);
}

#[test]
fn emulated_tensor_cores_of_several_processes_have_the_bits_of_one() {
    any_shape("emulated-general");
}

#[test]
fn cards_of_several_processes_have_the_bits_of_one() {
    if !card() {
        return;
    }
    for device in ["plain", "cuda"] {
        every_graph(device);
        data(device);
        lists(device, QUADRATIC, GRAPHS);
        lists(device, LAYER, GRAPHS);
    }
    if hopper() {
        any_shape("general");
        lists("general", LAYER, GRAPHS);
        // Wide blocks where all nodes together fill a card.
        let many = ["network.nodes=40", "problem.hidden=[40]", "run.batch=20"];
        same(&with(LAYER, "lopa-gt"), &many, "general", &[2, 3]);
        // Small shapes; not in clusters, which one process has alone.
        let small = with(&LAYER.replace("digits", "mnist"), "lopa-gt");
        let small_sets = ["problem.hidden=[28]", "network.graph=star", "network.nodes=17"];
        same(&small, &small_sets, "cuda", &[1, 2, 3]);
        let own = ["problem.hidden=[28]", "run.device=cuda"];
        assert_eq!(across(&small, &own, 1).digest, across(&small, &own, 2).digest);
    }
}

/// Budgets that processes must ask each other about, targets, and a run that diverges.
#[test]
fn endings_are_those_of_one_process() {
    let text = with(QUADRATIC, "lopa-gt");
    let sizes = &[2, 3];
    same(&text, &["run.budget={ hessians = 90 }"], "emulated", sizes);
    let target = "run.target={ metric = 'loss', at_most = 1e9 }";
    same(&text, &[target], "emulated", sizes);
    same(&text, &["algorithm.lopa-gt.alpha=1e200", "run.precision=f32"], "emulated", sizes);
    let time = "time={ compute = 0.001, links = 'home', stragglers = { p = 0.2, factor = 5 } }";
    same(&text, &[time, "run.budget={ virtual_seconds = 0.4 }"], "emulated", sizes);
}

/// From any number of processes to any other.
fn resumed(text: &str, sets: &[&str], device: &str) {
    let device = format!("run.device={device}");
    let experiment = experiment(text, &[sets, &[&device]].concat()).unwrap();
    let go = |runs: &Path, size: usize, until: u64| {
        each(&experiment, size, (Some(runs), until)).remove(0).unwrap()
    };
    let whole = tempfile::tempdir().unwrap();
    let straight = go(whole.path(), 1, u64::MAX);
    for (first, second, third) in [(1, 2, 3), (3, 1, 2), (2, 2, 1)] {
        let cut = tempfile::tempdir().unwrap();
        assert_eq!(go(cut.path(), first, 10).stop, Stop::Interrupted);
        assert_eq!(go(cut.path(), second, 50).stop, Stop::Interrupted);
        let ended = go(cut.path(), third, u64::MAX);
        assert_eq!((ended.stop, ended.row.iteration), (Stop::Finished, 120));
        assert_eq!(ended.digest, straight.digest, "{first}, {second}, {third}: {sets:?}");
    }
}

#[test]
fn a_run_resumes_in_another_number_of_processes() {
    let sets = ["run.iterations=120", "run.evaluations=4"];
    for method in ["lopa-gt", "d-soba"] {
        resumed(&with(QUADRATIC, method), &sets, "emulated");
        resumed(&with(QUADRATIC, method), &[&sets[..], &["scope=global"]].concat(), "emulated");
    }
    resumed(&with(LAYER, "lopa-gt"), &sets, "emulated-general");
    if card() {
        for method in ["lopa-gt", "d-soba"] {
            resumed(&with(QUADRATIC, method), &sets, "cuda");
            resumed(&with(LAYER, method), &sets, "cuda");
            resumed(&with(LAYER, method), &[&sets[..], &["scope=global"]].concat(), "cuda");
        }
    }
}

/// Opens the emulation, unless `before` has an error.
fn opens<T: Real>(
    program: Program<T>,
    registries: &Registries,
    before: impl Fn(&Program<T>) -> Result<()>,
) -> Result<Box<dyn DeviceRun<T>>> {
    before(&program)?;
    let emulated = registries.devices.choose("emulated", &toml::Table::new())?;
    emulated.build.driver().unwrap().open.get::<T>()(program)
}

/// A device that works in all processes but the second.
fn failing(failure: fn(usize) -> Result<()>) -> Experiment {
    let known = Arc::new(registries());
    let again = known.clone();
    let device = Device::new(
        move |program: Program<f32>| opens(program, &known, |of| failure(of.company.place())),
        move |program: Program<f64>| opens(program, &again, |of| failure(of.company.place())),
        |_| Ok("a card".into()),
    );
    with_device(device)
}

fn with_device(device: Device) -> Experiment {
    let mut registries = registries();
    registries.devices.add(device_entry("failing", "for tests", device));
    let text = with(QUADRATIC, "lopa-gt").replace("batch = 8", "batch = 8, device = \"failing\"");
    let source = lopa::config::Source::new("test", text);
    Experiment::read(&source, &registries).unwrap()
}

#[test]
fn an_error_of_one_process_ends_all() {
    let experiment = failing(|place| match place {
        1 => Err(Error::config("device/no-card", "there is no graphics card").hint("check it")),
        _ => Ok(()),
    });
    let errors = each(&experiment, 3, (None, u64::MAX)).into_iter().map(Result::unwrap_err);
    let errors: Vec<Error> = errors.collect();
    assert_eq!(
        errors.iter().map(|error| error.id).collect::<Vec<_>>(),
        ["device/processes", "device/no-card", "device/processes"]
    );
    for error in &errors {
        assert!(error.message.contains("there is no graphics card"), "{error}");
        assert_eq!((error.kind.exit_code(), error.hint.as_deref()), (2, Some("check it")));
    }
    assert!(errors[0].message.contains("process 1"), "{}", errors[0]);
}

#[test]
fn another_build_is_refused() {
    fn other<T: Real>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
        let same = format!("build {}", program.company.place() / 2);
        program.company.agree(Ok(&Facts { same, own: vec![0.0; 3] }))?;
        Err(Error::config("device/refused", "not reached"))
    }
    let device = Device::new(other::<f32>, other::<f64>, |_| Ok("a card".into()));
    for error in each(&with_device(device), 3, (None, u64::MAX)) {
        let error = error.unwrap_err();
        assert_eq!(error.id, "device/processes", "{error}");
        assert!(error.message.contains("build 0; build 1"), "{error}");
        assert!(error.hint.unwrap().contains("same build"));
    }
}
