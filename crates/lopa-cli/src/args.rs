//! The command line as typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Distributed stochastic bilevel optimisation with personal inner problems.
#[derive(Debug, Parser)]
#[command(name = "lopa", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "`lopa run` without a file runs the built-in quickstart.")]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub struct Global {
    /// How results are printed on standard output
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Colour: by default on terminals only; NO_COLOR switches it off
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// No progress bars
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// Nothing on standard error but errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For people, with tables in Markdown
    Md,
    /// For scripts: one JSON document
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On terminals
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an experiment: every algorithm of the file on every seed
    Run(RunArgs),
    /// Compare the algorithms of a file at equal budgets: who wins under which cost
    ///
    /// In place of a file, the folder of a run that is done may be named. What is finished in the
    /// folder of the same experiment is not run again.
    Compare(CompareArgs),
    /// Search step sizes for every algorithm of a file with the same budget, on other seeds
    Tune(TuneArgs),
    /// Run the paper's experiments again and judge its claims
    Reproduce(ReproduceArgs),
    /// Check an experiment file and print it with every default filled in
    Check(CheckArgs),
    /// List what experiment files can choose from
    List(ListArgs),
    /// Make, show and check graphs and mixing weights
    Graph {
        #[command(subcommand)]
        command: GraphCommand,
    },
    /// Make the key that a node is known by among peers, or show its public half
    #[cfg(feature = "peers")]
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Say who takes part in a run of peers: names, keys, addresses, links
    #[cfg(feature = "peers")]
    Roster {
        #[command(subcommand)]
        command: RosterCommand,
    },
    /// Run one node of an experiment, with the others as peers on hosts of their own
    #[cfg(feature = "peers")]
    Node(NodeArgs),
    /// Let a personal model of a run predict the classes of new rows
    Predict(PredictArgs),
    /// Measure the models of a run: on new rows, or once more on the run's own data
    Evaluate(EvaluateArgs),
    /// List, fetch, check and describe data sets
    Data {
        #[command(subcommand)]
        command: DataCommand,
    },
    /// List the runs in a folder
    Ls(LsArgs),
    /// Say what this machine and this build can do, and how to get what is missing
    Doctor,
    /// Make one HTML file, and figures, from run folders
    Report(ReportArgs),
    /// What the paper's theorems say of an experiment: constants, step sizes, bounds, rates
    Theory {
        #[command(subcommand)]
        command: TheoryCommand,
    },
    /// Print the JSON Schema of experiment files, for editors
    Schema,
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for every command into a folder
    Man(ManArgs),
}

/// An experiment and what is laid over it.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// Experiment file (TOML); without one, the built-in quickstart
    pub file: Option<PathBuf>,
    /// Override a value of the file; may be given several times
    ///
    /// `--set run.batch=20`, `--set algorithm.lopa-gt.alpha=0.1`, `--set 'algorithm.*.beta=0.05'`
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Folder with the data sets
    #[arg(long, value_name = "DIR", env = "LOPA_DATA_DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ThreadArgs {
    /// Threads; results do not depend on their number [default: all cores]
    #[arg(short = 'j', long = "jobs", value_name = "N", env = "LOPA_THREADS")]
    pub jobs: Option<usize>,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub file: FileArgs,
    /// Folder that run folders are made in
    #[arg(short, long, value_name = "DIR", env = "LOPA_RUNS_DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Seeds in place of the file's; may be given several times
    #[arg(short, long = "seed", value_name = "SEED")]
    pub seeds: Vec<u64>,
    #[command(flatten)]
    pub threads: ThreadArgs,
    /// Where the nodes live
    #[arg(long, value_enum, default_value_t = Engine::Process)]
    pub engine: Engine,
    /// Whether to go on with an earlier run of the same experiment that did not come to its end
    #[arg(long, value_enum, default_value_t = Resume::Auto)]
    pub resume: Resume,
    /// Check everything, load the data, draw the networks, but do not run
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// In this process, on its threads
    Process,
    /// In the processes that `mpirun` started, a block of nodes in each
    Mpi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Resume {
    /// Go on if there is such a run, else start one
    Auto,
    /// Always start a run of its own
    Never,
    /// Go on, or fail with exit code 5
    Require,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    #[command(flatten)]
    pub file: FileArgs,
    /// What every algorithm may spend: iterations, gradients, hessians, jacobians, samples, rounds,
    /// bytes or seconds; may be given several times
    ///
    /// In place of the file's budget: every algorithm goes on until it has reached all of them. Under
    /// a cost without a budget, the largest one counts that every algorithm reached.
    #[arg(long = "budget", value_name = "COST=AMOUNT")]
    pub budgets: Vec<String>,
    /// Compare under these costs only; may be given several times
    #[arg(long = "cost", value_name = "COST")]
    pub costs: Vec<String>,
    /// What decides: grad_phi_sq, phi, loss, test_accuracy, ... [default: test accuracy on a node's
    /// own classes, else |grad Phi|^2, else the loss]
    #[arg(long)]
    pub measure: Option<String>,
    /// Also compare what it costs to bring the measure to this level
    #[arg(long, value_name = "LEVEL", allow_negative_numbers = true)]
    pub target: Option<f64>,
    /// Folder that run folders are made in
    #[arg(short, long, value_name = "DIR", env = "LOPA_RUNS_DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Seeds in place of the file's; may be given several times
    #[arg(short, long = "seed", value_name = "SEED")]
    pub seeds: Vec<u64>,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

#[derive(Debug, Args)]
pub struct TuneArgs {
    #[command(flatten)]
    pub file: FileArgs,
    /// File to write the tuned experiment to [default: FILE-tuned.toml]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// File that keeps finished trials; an interrupted search goes on from it [default:
    /// FILE-tune.jsonl]
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// Figures: fig1 to fig8, or all
    #[arg(required = true)]
    pub figures: Vec<String>,
    /// Folder with the data sets
    #[arg(long, value_name = "DIR", env = "LOPA_DATA_DIR")]
    pub data: Option<PathBuf>,
    /// A tenth of the iterations on two seeds: a minute instead of half an hour
    #[arg(long)]
    pub quick: bool,
    /// Seeds 1 to N in place of the files'
    #[arg(long, value_name = "N")]
    pub seeds: Option<usize>,
    /// Folder for runs, results and claims; what is finished in it is not run again
    #[arg(short, long, value_name = "DIR", default_value = "reproduction")]
    pub out: PathBuf,
    /// Also write the page about it here
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Folder with changed experiment files, in place of the built-in ones
    #[arg(long, value_name = "DIR")]
    pub experiments: Option<PathBuf>,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub file: FileArgs,
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// What to list
    #[arg(value_enum, default_value_t = What::All)]
    pub what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Everything
    All,
    /// Algorithms
    Algorithms,
    /// Problems
    Problems,
    /// Graphs
    Graphs,
    /// Mixing weights
    Weights,
    /// Partitions of data over nodes
    Partitions,
    /// Data sets
    Data,
}

#[derive(Debug, Subcommand)]
pub enum GraphCommand {
    /// Make a graph of a kind, or one with a given rho, and write it to a file
    Make(MakeArgs),
    /// Draw a graph's weights and say what is known of it
    Show(GraphArgs),
    /// Say whether a run could use it; exit code 4 if not
    Check(GraphArgs),
    /// Say who can rebuild whose hypergradient from what neighbours send each other anyway
    Audit(AuditArgs),
}

#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Entries of x, to say how many bytes a round takes
    #[arg(long, value_name = "N")]
    pub entries: Option<u64>,
}

/// A graph: a file, or a kind with its parameters.
#[derive(Debug, Args)]
pub struct GraphArgs {
    /// Graph file, or a kind of graph (`lopa list graphs`)
    pub graph: String,
    /// Number of nodes, for a kind of graph
    #[arg(short = 'm', long)]
    pub nodes: Option<usize>,
    /// A parameter of the kind: `--with p=0.4`
    #[arg(long = "with", value_name = "KEY=VALUE")]
    pub with: Vec<String>,
    /// Mixing weights (`lopa list weights`) [default: the file's own, else metropolis]
    #[arg(short, long)]
    pub weights: Option<String>,
    /// Seed of random graphs
    #[arg(short, long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub struct MakeArgs {
    /// A kind of graph (`lopa list graphs`); not needed with --rho
    pub graph: Option<String>,
    /// Number of nodes
    #[arg(short = 'm', long)]
    pub nodes: usize,
    /// Search for a graph with this rho = |W - 11'/m|^2
    #[arg(long, conflicts_with = "graph")]
    pub rho: Option<f64>,
    /// How near the rho must be
    #[arg(long, default_value_t = 0.005, requires = "rho")]
    pub tolerance: f64,
    /// A parameter of the kind: `--with p=0.4`
    #[arg(long = "with", value_name = "KEY=VALUE")]
    pub with: Vec<String>,
    /// Mixing weights (`lopa list weights`)
    #[arg(short, long, default_value = "metropolis")]
    pub weights: String,
    /// Seed of random graphs
    #[arg(short, long, default_value_t = 1)]
    pub seed: u64,
    /// File to write: .toml, or .csv for an edge list; without it, TOML on standard output
    #[arg(short, long)]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// List the published data sets: size, licence, and whether they are here
    List(DataArgs),
    /// Download data sets from their authors' addresses, verify and unpack them
    #[cfg(feature = "fetch")]
    Fetch(DataArgs),
    /// Say whether the files hold what their authors published; exit code 3 if not
    Check(DataArgs),
    /// Say what is in data sets: rows, features, classes
    Stats(DataArgs),
}

#[derive(Debug, Args)]
pub struct DataArgs {
    /// Names of data sets; without any, all of them
    pub names: Vec<String>,
    /// Folder with the data sets
    #[arg(long, value_name = "DIR", env = "LOPA_DATA_DIR")]
    pub data: Option<PathBuf>,
}

/// Which trained models.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// Run folder
    pub run: PathBuf,
    /// Algorithm (its label in the experiment)
    #[arg(short, long)]
    pub algorithm: Option<String>,
    /// Seed [default: the first of the run; all of them where its own data is measured again]
    #[arg(short, long)]
    pub seed: Option<u64>,
}

#[derive(Debug, Args)]
pub struct PredictArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Node whose personal model is used
    #[arg(short, long)]
    pub node: usize,
    /// Data file: .csv, .tsv, .data, .libsvm, .svm, .txt, .npy or .npz, with features as before
    /// scaling
    #[arg(short, long, value_name = "FILE")]
    pub input: PathBuf,
    /// Column of the labels, if there is one column more than features: a name or a number from 0;
    /// in an .npz file, their array [default: the last column, or `y`]
    #[arg(long)]
    pub label: Option<String>,
}

#[derive(Debug, Args)]
pub struct EvaluateArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Data file with labels, as for `lopa predict`; without it, the run's own data is measured
    /// again and compared with its results
    #[arg(short, long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Node whose personal model is used [default: all]
    #[arg(short, long, requires = "input")]
    pub node: Option<usize>,
    /// Column of the labels: a name or a number from 0; in an .npz file, their array
    /// [default: the last column, or `y`]
    #[arg(long, requires = "input")]
    pub label: Option<String>,
    /// Folder with the data sets
    #[arg(long, value_name = "DIR", env = "LOPA_DATA_DIR")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

#[derive(Debug, Args)]
pub struct LsArgs {
    /// Folder with run folders
    #[arg(env = "LOPA_RUNS_DIR", default_value = "runs")]
    pub folder: PathBuf,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Run folders
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The report: one HTML file that needs no network
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub out: PathBuf,
    /// Also write the figures into this folder
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// Format of the figures; may be given several times [default: all that this build can write]
    #[arg(long, value_name = "FORMAT", value_enum, requires = "figures")]
    pub figure_format: Vec<FigureFormat>,
    /// The report's heading
    #[arg(long)]
    pub title: Option<String>,
    /// Cost along the horizontal axis: hessians, iteration, seconds, bytes, ...
    #[arg(long, value_name = "COST")]
    pub x: Option<String>,
    /// Measure to draw, such as loss or test_accuracy; may be given several times
    #[arg(long, value_name = "MEASURE")]
    pub y: Vec<String>,
    /// File of claims; without it, `claims.json` in, beside or above the run folders
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FigureFormat {
    /// SVG
    Svg,
    /// PNG; needs a build with the feature `png`
    Png,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write `lopa.1` and a page for every command into this folder
    #[arg(short, long)]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum TheoryCommand {
    /// Everything on one screen: constants, broken conditions, what to use instead, curves
    Show(TheoryArgs),
    /// The constants of the assumptions, each with where it comes from
    Constants(TheoryArgs),
    /// Which conditions the step sizes meet, what the theorems admit, what is practical
    Steps(TheoryArgs),
    /// How far the nodes differ, and whether gradient tracking is worth its bytes
    Heterogeneity(TheoryArgs),
    /// The theorems' bound beside the measured curve, and each lemma's recursion
    Bound(TheoryArgs),
    /// Measure the exponents of the corollaries on quadratics
    Rates(RatesArgs),
}

#[derive(Debug, Args)]
pub struct TheoryArgs {
    #[command(flatten)]
    pub file: FileArgs,
    /// Seed [default: the first of the file]
    #[arg(short, long)]
    pub seed: Option<u64>,
    /// Watch the runs for at most so many iterations
    #[arg(long, value_name = "K", default_value_t = 3000)]
    pub iterations: u64,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

#[derive(Debug, Args)]
pub struct RatesArgs {
    #[command(flatten)]
    pub file: FileArgs,
    /// Seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub seeds: u64,
    /// Measure only this claim; may be given several times
    #[arg(long = "only", value_name = "CLAIM")]
    pub only: Vec<String>,
    /// A tenth of the iterations on two seeds
    #[arg(long)]
    pub quick: bool,
    /// Write the page about it here
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Write the figures as SVG into this folder [default: beside the page, named after it]
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

#[cfg(feature = "peers")]
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Draw a key and write it to a new file, mode 0600; prints the public half
    New(KeyArgs),
    /// Print the public half of a key
    Show(KeyArgs),
}

#[cfg(feature = "peers")]
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// The file of the secret key: it never leaves this host
    #[arg(env = "LOPA_KEY_FILE")]
    pub file: PathBuf,
}

#[cfg(feature = "peers")]
#[derive(Debug, Subcommand)]
pub enum RosterCommand {
    /// Add a node, with its public key and where it is found
    Add(RosterAddArgs),
    /// Remove a node: whoever has the new roster does not talk to it
    Remove(RosterRemoveArgs),
    /// Say whether a run could use it, alone or with an experiment
    Check(RosterCheckArgs),
    /// List the nodes
    Show(RosterArgs),
}

#[cfg(feature = "peers")]
#[derive(Debug, Args)]
pub struct RosterArgs {
    /// The roster (TOML)
    pub roster: PathBuf,
}

#[cfg(feature = "peers")]
#[derive(Debug, Args)]
pub struct RosterAddArgs {
    #[command(flatten)]
    pub roster: RosterArgs,
    /// The node's name
    pub name: String,
    /// Its public key, as its owner's `lopa key show` prints it
    pub key: String,
    /// Where others find it, `host:port`; none if it can only call others
    pub addresses: Vec<String>,
    /// A neighbour of it; may be given several times [default: as the experiment's graph says]
    #[arg(long = "neighbour", value_name = "NAME")]
    pub neighbours: Vec<String>,
}

#[cfg(feature = "peers")]
#[derive(Debug, Args)]
pub struct RosterRemoveArgs {
    #[command(flatten)]
    pub roster: RosterArgs,
    /// The node's name
    pub name: String,
}

#[cfg(feature = "peers")]
#[derive(Debug, Args)]
pub struct RosterCheckArgs {
    #[command(flatten)]
    pub roster: RosterArgs,
    /// Experiment file that it is for
    pub file: Option<PathBuf>,
}

#[cfg(feature = "peers")]
#[derive(Debug, Args)]
pub struct NodeArgs {
    #[command(flatten)]
    pub file: FileArgs,
    /// Who takes part (TOML): see `lopa roster`
    #[arg(long, value_name = "FILE")]
    pub roster: PathBuf,
    /// Which of them this node is
    #[arg(long)]
    pub name: String,
    /// File of the secret key [default: NAME.key]
    #[arg(long, value_name = "FILE", env = "LOPA_KEY_FILE")]
    pub key: Option<PathBuf>,
    /// Where to listen, `IP:port` [default: the node's first address in the roster]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<std::net::SocketAddr>,
    /// What to do about a neighbour that is silent
    #[arg(long, value_enum, default_value_t = Lost::Wait)]
    pub policy: Lost,
    /// No wait for a peer is longer; exit code 6 after it
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    pub deadline: f64,
    /// With `skip-link`: how long to wait before a link is left out of a round
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    pub patience: f64,
    /// Folder in which the node has a folder of its own for its run folders
    #[arg(short, long, value_name = "DIR", env = "LOPA_RUNS_DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Seeds in place of the file's; may be given several times
    #[arg(short, long = "seed", value_name = "SEED")]
    pub seeds: Vec<u64>,
    /// Whether to go on with an earlier run of the same node that did not come to its end
    #[arg(long, value_enum, default_value_t = Resume::Auto)]
    pub resume: Resume,
}

/// What to do about a neighbour that is silent.
#[cfg(feature = "peers")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Lost {
    /// Wait for it, until the deadline
    Wait,
    /// Stop as soon as the way to it is gone
    Stop,
    /// Leave the link out of the round, at both ends
    SkipLink,
}
