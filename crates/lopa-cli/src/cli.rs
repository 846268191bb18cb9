//! The command line: its commands and their common arguments.

use clap::{Parser, Subcommand};

use crate::commands::adapt::AdaptArgs;
use crate::commands::check::CheckArgs;
use crate::commands::compare::CompareArgs;
use crate::commands::data::DataCommand;
use crate::commands::evaluate::EvaluateArgs;
use crate::commands::export::ExportArgs;
use crate::commands::graph::GraphCommand;
use crate::commands::init::InitArgs;
use crate::commands::list::ListArgs;
use crate::commands::ls::LsArgs;
use crate::commands::paper::args::{ReproduceArgs, TheoryCommand};
use crate::commands::peers::args::{
    InviteArgs, JoinArgs, KeyCommand, NodeArgs, RosterCommand, StatusArgs,
};
use crate::commands::predict::PredictArgs;
use crate::commands::privacy::PrivacyCommand;
use crate::commands::report::ReportArgs;
use crate::commands::run::RunArgs;
use crate::commands::texts::{CompletionsArgs, ManArgs};
use crate::commands::tune::TuneArgs;
use crate::output::OutputArgs;

/// Distributed stochastic bilevel optimisation with personal inner problems.
#[derive(Debug, Parser)]
#[command(name = "lopa", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "`lopa run` without a file runs the built-in quickstart.")]
pub struct Cli {
    #[command(flatten)]
    pub output: OutputArgs,
    /// Read files of up to this many bytes where the usual limit is lower
    #[arg(long, global = true, value_name = "BYTES", env = "LOPA_MAX_BYTES")]
    pub max_bytes: Option<u64>,
    #[command(subcommand)]
    pub command: Command,
}

impl Command {
    /// Whether code that an experiment or a run folder names may run: when an experiment is run, or
    /// with `--run-code`.
    pub fn runs_code(&self) -> bool {
        match self {
            Command::Run(args) => args.runs_code(),
            Command::Compare(args) => args.runs_code(),
            Command::Check(args) => args.code.run_code,
            Command::Evaluate(args) => args.code.run_code,
            Command::Tune(_) | Command::Node(_) | Command::Theory(_) => true,
            _ => false,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Inspect your data and write a first experiment for it, with step sizes that do not diverge
    Init(InitArgs),
    /// Run every algorithm of an experiment on every seed
    Run(RunArgs),
    /// Compare the algorithms of an experiment at equal budgets: which wins under which cost
    ///
    /// Instead of a file, you can name the folder of a finished run. Runs that have ended in a folder
    /// of the same experiment are not repeated.
    Compare(CompareArgs),
    /// Search step sizes for every algorithm of an experiment: equal budgets, separate seeds
    Tune(TuneArgs),
    /// Rerun the paper's experiments and judge its claims
    Reproduce(ReproduceArgs),
    /// Check an experiment file and print it with all defaults filled in
    Check(CheckArgs),
    /// List what experiment files can choose from
    List(ListArgs),
    /// Make, show and check graphs and mixing weights
    #[command(subcommand)]
    Graph(GraphCommand),
    /// Show what a privacy budget costs in noise, and what rows have spent
    #[command(subcommand)]
    Privacy(PrivacyCommand),
    /// Invite nodes to run an experiment as peers: writes a file for each, and a signed roster
    ///
    /// Files are written to the current folder. Nothing is sent.
    Invite(InviteArgs),
    /// Join the peers of an invitation: makes a key, checks your data, writes a reply
    ///
    /// Files are written to the current folder. Nothing is sent, and the reply holds nothing about
    /// your data.
    Join(JoinArgs),
    /// Make a node's key for runs among peers, or show its public half
    #[command(subcommand)]
    Key(KeyCommand),
    /// Edit and check the list of peers: names, keys, addresses, links
    #[command(subcommand)]
    Roster(RosterCommand),
    /// Run one node of an experiment; the other nodes are peers on other hosts
    ///
    /// Run folders are made in DIR/NAME.
    Node(NodeArgs),
    /// Show how far all nodes of a run among peers are, and for which of them the others wait
    Status(StatusArgs),
    /// Predict the classes, numbers or risks of new rows with a personal model of a run
    Predict(PredictArgs),
    /// Evaluate the models of a run on new rows, or again on the run's own data
    Evaluate(EvaluateArgs),
    /// Make a personal model for a new node: x of a run, θ from the node's own rows
    ///
    /// Cross-validation compares it with a linear model trained on these rows only, and with the mean model of
    /// the run.
    Adapt(AdaptArgs),
    /// List, fetch, check and describe data sets
    #[command(subcommand)]
    Data(DataCommand),
    /// List the runs in a folder
    Ls(LsArgs),
    /// Show what this machine and this build can do, and how to install missing parts
    Doctor,
    /// Make an HTML report, and figures, from run folders
    Report(ReportArgs),
    /// Hand a run to other tools: its measurements as CSV, or a model as ONNX
    Export(ExportArgs),
    /// Apply the paper's theorems to an experiment: constants, step sizes, bounds, rates
    #[command(subcommand)]
    Theory(TheoryCommand),
    /// Print the JSON Schema of experiment files, for editors
    Schema,
    /// Print a shell completion script
    Completions(CompletionsArgs),
    /// Print the manual page, or write one per command into a folder
    Man(ManArgs),
}
