//! Runs in several processes under `mpirun`: the same results as in one, bit for bit.

mod hosts;
#[path = "../cli/namespaces.rs"]
mod namespaces;
#[path = "../cli/program.rs"]
#[allow(dead_code)]
mod program;
mod stops;

use std::process::{Command, Output, Stdio};

use program::Folder;
use serde_json::Value;

const PERSONAL: &str = include_str!("../../../../experiments/quadratic.toml");
const GLOBAL: &str = include_str!("../../../../experiments/quadratic-global.toml");

/// `mpirun` with `size` processes, still without a program; allows more processes than cores, and
/// root.
fn launcher(folder: &Folder, size: usize) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", &size.to_string()]);
    // Waiting processes yield the core to those that compute.
    command.args(["--mca", "mpi_yield_when_idle", "1"]);
    // A separate folder for Open MPI's session files: launchers that share one race when they create
    // and remove it.
    command.current_dir(folder.path()).env("TMPDIR", folder.path()).stdin(Stdio::null());
    command.env("LOPA_PRIVACY_DIR", folder.path().join("ledgers"));
    command
}

/// `mpirun` with `size` processes of lopa, not yet started.
fn mpirun(folder: &Folder, size: usize, args: &[&str]) -> Command {
    let mut command = launcher(folder, size);
    command.arg(folder.program(&[]).get_program());
    command.args(args).args(["--engine", "mpi", "--format", "json"]);
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Everything that must not depend on the distribution of nodes: all but the time.
fn timeless(bytes: &[u8]) -> Value {
    let mut runs: Value = serde_json::from_slice(bytes).unwrap();
    let timed = |key: &String| ["seconds", "measuring", "check"].contains(&key.as_str());
    let strip = |run: &mut Value| run.as_object_mut().unwrap().retain(|key, _| !timed(key));
    runs.as_array_mut().unwrap().iter_mut().for_each(strip);
    runs
}

/// Runs it in each number of processes, and in one without MPI; the results must be the same.
fn same(file: &str, sets: &[&str], sizes: &[usize]) {
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
    let args = [&["run", "e.toml"], &sets[..]].concat();
    let folder = Folder::with(&[("e.toml", file)]);
    let alone = folder.program(&[&args[..], &["--format", "json"]].concat()).output().unwrap();
    let want = timeless(&alone.stdout);
    assert!(!want.as_array().unwrap().is_empty());
    for &size in sizes {
        let output = mpirun(&folder, size, &args).output().unwrap();
        assert_eq!(output.status.code(), alone.status.code(), "{size}: {}", text(&output));
        assert_eq!(timeless(&output.stdout), want, "{size} processes, {sets:?}");
        // One folder, with everything that a run in one process leaves.
        let runs = std::fs::read_dir(folder.path().join("runs")).unwrap();
        let mut paths: Vec<_> = runs.map(|run| run.unwrap().path()).collect();
        paths.sort();
        let metrics = |path: &std::path::Path| {
            let text = std::fs::read_to_string(path.join("metrics.jsonl")).unwrap();
            timeless(format!("[{}]", text.trim().replace('\n', ",")).as_bytes())
        };
        let [first, .., last] = &paths[..] else { panic!("{paths:?}") };
        assert_eq!(metrics(first), metrics(last), "{size} processes, {sets:?}");
        std::fs::remove_dir_all(last).unwrap();
    }
}

/// Noise, minibatches, and few iterations.
const NOISY: [&str; 5] = [
    "problem.noise=0.5",
    "problem.samples=20",
    "run.batch=4",
    "run.iterations=25",
    "run.evaluations=3",
];

#[test]
fn every_algorithm_gives_the_same_results_in_any_number_of_processes() {
    same(PERSONAL, &NOISY, &[1, 2, 3, 4]);
    same(GLOBAL, &NOISY, &[1, 2, 3, 4]);
    let single = [&NOISY[..], &["run.precision=f32"]].concat();
    same(PERSONAL, &single, &[3]);
    same(GLOBAL, &single, &[4]);
}

/// Rows that are protected: the first process has the ledger, and all have its key.
#[test]
fn private_runs_give_the_same_results() {
    let digits = r#"
        problem   = { name = "hyperparameter", validation = 0.4 }
        data      = { name = "digits", classes = [3, 8], scaling = "none", test = 0.0, samples = 160 }
        network   = { nodes = 4, graph = "ring" }
        run       = { iterations = 20, batch = 8, evaluations = 3 }
        privacy   = { epsilon = 2.0, delta = 1e-3 }
        algorithm = [{ name = "lopa-gt", alpha = 0.01, beta = 0.002, lambda = 0.002 }]
    "#;
    same(digits, &[], &[2, 3]);
    same(digits, &["privacy.seed=4", "algorithm=[{ name = 'lopa-gt' }]"], &[3]);
}

/// Every compressor, failures, clipping and attacks, in every algorithm.
#[test]
fn messages_give_the_same_results() {
    let cases = [
        &["messages.compress={name='top-k',share=0.4}"][..],
        &["messages.compress={name='random-k',share=0.4}", "messages.drop=0.2"],
        &["messages.compress={name='quantise',bits=4}", "messages.active=0.8", "messages.late=0.2"],
        &["messages.compress='sign'", "messages.clip={median=2.0}"],
        &["messages.bursts={begin=0.2,end=0.5}", "messages.late=0.3", "messages.clip=1.0"],
        &["messages.compress='f16'", "attack={nodes=[1,6],kind='noise'}"],
        &["messages.compress={name='top-k',share=0.4}", TIME],
    ];
    for case in cases {
        same(PERSONAL, &[&NOISY[..], case].concat(), &[2, 3]);
    }
    same(GLOBAL, &[&NOISY[..], cases[1], &["run.precision=f32"]].concat(), &[3]);
}

/// Messages, a graph that changes and the clock in one file: replicas belong to links, of which a round
/// uses some, and some of those fail.
#[test]
fn messages_on_changing_graphs_give_the_same_results() {
    let cases = [
        &[
            "network.graph=one-peer-exponential",
            "messages.compress={name='top-k',share=0.4}",
            "messages.drop=0.2",
        ][..],
        &[
            "network.graph=random-matching",
            "messages.compress={name='quantise',bits=4}",
            "messages.active=0.8",
            "messages.late=0.3",
        ],
        &[
            "network.graph={ name = 'random-edges', base = 'complete', p = 0.4 }",
            "messages.bursts={begin=0.2,end=0.5}",
            "messages.late=0.3",
            "messages.clip=2.0",
        ],
        &[
            "network.graph={ name = 'sequence', graphs = ['path', 'star'], every = 4 }",
            "messages.compress='sign'",
            "attack={nodes=[1,6],kind='noise'}",
        ],
    ];
    for case in cases {
        same(PERSONAL, &[&NOISY[..], case, &[TIME]].concat(), &[2, 3, 8]);
    }
    same(GLOBAL, &[&NOISY[..], cases[1], &[TIME, "run.precision=f32"]].concat(), &[3]);
}

#[test]
fn every_graph_gives_the_same_results() {
    let graphs = ["star", "complete", "path", "{ name = 'erdos-renyi', p = 0.4 }"];
    for graph in graphs {
        let graph = format!("network.graph={graph}");
        same(PERSONAL, &[&NOISY[..], &[&graph, "network.nodes=7"]].concat(), &[3]);
    }
}

const TIME: &str = "time={ compute = 0.001, links = 'home', stragglers = { p = 0.2, factor = 5 } }";

/// Which links a round uses is the same in every process; some processes have none in a round.
#[test]
fn changing_graphs_give_the_same_results() {
    let graphs = [
        "one-peer-exponential",
        "random-matching",
        "{ name = 'random-edges', base = 'ring', p = 0.5 }",
        "{ name = 'sequence', graphs = ['path', 'star'], every = 4 }",
    ];
    for graph in graphs {
        let graph = format!("network.graph={graph}");
        same(PERSONAL, &[&NOISY[..], &[&graph, "network.nodes=7", TIME]].concat(), &[3, 7]);
    }
    let budget = "run.budget={ virtual_seconds = 0.4 }";
    same(
        GLOBAL,
        &[&NOISY[..], &["network.graph=one-peer-exponential", TIME, budget]].concat(),
        &[2],
    );
}

/// Three classes of blobs, split unevenly.
const BLOBS: &str = "
name = 'blobs'
problem = { name = 'hyperparameter', start = -3 }
data = { name = 'blobs', rows = 300, features = 6, centres = 3 }
partition = { name = 'dirichlet-class', alpha = 0.8 }
network = { nodes = 5, graph = 'ring', weights = 'lazy-metropolis' }
run = { seeds = [1, 2], iterations = 30, batch = 8, evaluations = 3 }
algorithm = [{ name = 'lopa-gt', alpha = 0.5, beta = 0.2, lambda = 0.2 }]
";

#[test]
fn nodes_with_data_give_the_same_results() {
    same(BLOBS, &[], &[2, 5]);
    same(BLOBS, &["run.precision=f32", "data.sparse=true"], &[3]);
    same(BLOBS, &["data.holdout=0.3"], &[2, 5]);
    same(BLOBS, &["problem={ name = 'hyper-cleaning' }"], &[3]);
    same(BLOBS, &["problem={ name = 'representation', hidden = [4] }"], &[3]);
}

#[test]
fn budgets_targets_and_divergence_end_all_processes_alike() {
    let neumann = ["algorithm.spdb.inverse=neumann", "run.budget={ hessians = 60 }"];
    same(PERSONAL, &[&NOISY[..], &neumann].concat(), &[3]);
    let target = "run.target={ metric = 'grad_phi_sq', at_most = 5.0 }";
    same(PERSONAL, &[&NOISY[..], &[target, "run.iterations=300"]].concat(), &[2]);
    let wild = ["algorithm.lopa-gt.beta=3.0", "run.iterations=400"];
    same(PERSONAL, &[&NOISY[..], &wild].concat(), &[3]);
}

#[test]
fn mistakes_are_reported_once() {
    let folder = Folder::with(&[("e.toml", BLOBS)]);
    let cases: [(&[&str], usize, i32, &str); 4] = [
        (&["run", "e.toml"], 6, 2, "config/too-many-processes"),
        (&["run", "e.toml", "--set", "run.batsh=3"], 2, 2, "config/unknown-key"),
        (&["run", "e.toml", "--out", "e.toml"], 3, 5, "storage/write"),
        (&["run", "e.toml", "--device", "cuda"], 2, 2, "config/not-built-in"),
    ];
    for (args, size, code, id) in cases {
        if cfg!(feature = "cuda") && args.contains(&"cuda") {
            continue; // There may be a card.
        }
        let output = mpirun(&folder, size, args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output));
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(stdout.matches(id).count(), 1, "{stdout}");
    }
}

#[test]
fn files_of_each_nodes_own_are_scaled_alike_in_any_number_of_processes() {
    let text = program::blobs();
    let (head, rows) = text.split_once('\n').unwrap();
    for moments in ["own", "agreed"] {
        let file = format!(
            "name = 'own'\nproblem = {{ name = 'hyperparameter', start = -3 }}\n\
             network = {{ nodes = 4, graph = 'ring' }}\n\
             run = {{ iterations = 10, batch = 4, evaluations = 2, seeds = [1, 2] }}\n\
             algorithm = [{{ name = 'lopa-gt', alpha = 0.1, beta = 0.3, lambda = 0.3 }}]\n\
             [data]\nname = 'csv'\npath = '{{node}}.csv'\nnodes = ['a', 'b', 'c', 'd']\n\
             classes = ['red', 'green', 'blue']\nlabel = 'colour'\nscaling = 'standardise'\n\
             moments = '{moments}'\n"
        );
        let folder = Folder::with(&[("e.toml", &file)]);
        for (node, name) in ["a", "b", "c", "d"].iter().enumerate() {
            // The last file has its columns in another order.
            let order = |line: &str| match node {
                3 => line.rsplit(',').collect::<Vec<_>>().join(","),
                _ => line.to_string(),
            };
            let own = rows.lines().enumerate().filter(|(row, _)| row / 3 % 4 == node);
            let own: String = own.map(|(_, line)| order(line) + "\n").collect();
            folder.write(&format!("{name}.csv"), format!("{}\n{own}", order(head)).as_bytes());
        }
        let alone = folder.program(&["run", "e.toml", "--format", "json"]).output().unwrap();
        let want = timeless(&alone.stdout);
        for size in [2, 3] {
            let output = mpirun(&folder, size, &["run", "e.toml"]).output().unwrap();
            assert!(output.status.success(), "{size}: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(timeless(&output.stdout), want, "{size} processes, {moments}");
        }
    }
}

/// Numbers overflow between two looks at the variables, in plain messages and in compressed ones.
#[test]
fn a_run_that_diverges_ends_as_in_one_process() {
    let wild = ["algorithm.lopa-gt.alpha=1e200", "run.iterations=25", "run.evaluations=2"];
    for more in ["run.precision='f32'", "messages.compress='quantise'", "messages.late=0.3"] {
        same(PERSONAL, &[&wild[..], &[more]].concat(), &[2, 3]);
    }
}
