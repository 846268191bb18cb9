//! Nodes with devices in the processes of one `mpirun`: the bits of one process. This program starts itself there.

#[path = "../suite/experiment.rs"]
mod experiment;
#[path = "../suite/images.rs"]
mod images;

use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use lopa::engine::{Alone, Mpi, Transport, block};
use lopa::run::Context;

/// Overrides of the file, one in a line, for a process of `mpirun`.
const SETS: &str = "LOPA_TEST_SETS";

const FILE: &str = r#"
problem = { name = "representation", hidden = [9] }
data = "digits"
network = { nodes = 5, graph = "ring" }
run = { iterations = 12, batch = 6, precision = "f32", evaluations = 2 }
[[algorithm]]
name = "lopa-gt"
alpha = 0.02
beta = 0.1
lambda = 0.1
"#;

fn digest(sets: &str, transport: &mut dyn Transport) -> String {
    let lines: Vec<&str> = sets.lines().collect();
    let experiment = experiment::experiment(FILE, &lines).unwrap();
    let never = AtomicBool::new(false);
    let data_dir = if sets.contains("mnist") { images::folder() } else { "".into() };
    let context = Context { pool: None, data_dir, interrupt: &never, probe: None };
    let here = block(experiment.network.nodes, transport.size(), transport.rank());
    let data = experiment.load_data_of(&context, here).unwrap();
    let done = experiment.run_across(transport, data, &context, &mut (), &mut ()).unwrap();
    format!("digest {:?}", done[0].digest)
}

/// A process of `mpirun`.
#[test]
#[ignore = "the other tests start it"]
fn process() {
    let Ok(sets) = std::env::var(SETS) else { return };
    let mut mpi = Mpi::start().unwrap();
    mpi.abort_on_panic();
    let digest = digest(&sets, &mut mpi);
    if mpi.rank() == 0 {
        println!("{digest}");
    }
}

fn under_mpirun(sets: &str, size: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", &size.to_string()]);
    command.args(["--mca", "mpi_yield_when_idle", "1"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "process", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(SETS, sets).env("TMPDIR", folder.path()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let (out, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{size}, {sets}: {out}{errors}");
    // The line may follow what the test's own harness writes.
    let at = out.find("digest ").unwrap_or_else(|| panic!("{size}, {sets}: {out}{errors}"));
    out[at..].lines().next().unwrap_or_default().to_string()
}

/// The same digest in one process and in several.
fn same(device: &str, sets: &[&str]) {
    let sets = [&[&format!("run.device={device}")[..]], sets].concat().join("\n");
    let one = digest(&sets, &mut Alone);
    for size in [1, 2, 3] {
        assert_eq!(under_mpirun(&sets, size), one, "{size} processes: {sets}");
    }
}

#[test]
fn emulated_cards_under_mpirun_have_the_bits_of_one() {
    same("emulated", &[]);
    same("emulated-general", &["network.graph=star", "data.scaling=standardise"]);
    same("emulated", &["scope=global", "network.graph={ name = 'erdos-renyi', p = 0.5 }"]);
}

#[test]
fn cards_under_mpirun_have_the_bits_of_one() {
    if let Err(error) = lopa_cuda::describe(0) {
        eprintln!("skipped: {}", error.message);
        return;
    }
    for device in ["cuda", "plain"] {
        same(device, &[]);
        same(device, &["algorithm.lopa-gt.name=d-soba", "network.graph=star"]);
        same(device, &["scope=global", "network.graph={ name = 'erdos-renyi', p = 0.5 }"]);
        same(device, &["data.name=mnist", "problem.hidden=[28]", "network.nodes=20"]);
    }
}
