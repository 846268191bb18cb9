//! The arguments of the paper's commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::{DataArgs, FileArgs, ShareArgs, ThreadArgs};

#[derive(Debug, Subcommand)]
pub enum TheoryCommand {
    /// Everything on one screen: constants, broken conditions, what to use instead, curves
    Show(TheoryArgs),
    /// The constants of the assumptions and their origins
    Constants(TheoryArgs),
    /// Which conditions the step sizes meet, what the theorems admit, what is practical
    Steps(TheoryArgs),
    /// How much the nodes differ, and whether gradient tracking is worth its bytes
    Heterogeneity(TheoryArgs),
    /// The theorems' bound beside the measured curve, and the recursion of each lemma
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
    /// Follow the runs for at most K iterations
    #[arg(long, value_name = "K", default_value_t = 3000)]
    pub iterations: u64,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

#[derive(Debug, Args)]
pub struct RatesArgs {
    #[command(flatten)]
    pub file: FileArgs,
    /// Use seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub seeds: u64,
    /// Measure only this claim; repeatable
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

#[derive(Debug, Args)]
pub struct ReproduceArgs {
    #[command(flatten)]
    pub figures: FigureArgs,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub threads: ThreadArgs,
    #[command(flatten)]
    pub share: ShareArgs,
    /// Folder for runs, results and claims; finished runs in it are not repeated
    #[arg(short, long, value_name = "DIR", default_value = "reproduction")]
    pub out: PathBuf,
    /// Also write the page about it here, and its tables beside it
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// The machine is idle: show seconds, and judge claims about them
    #[arg(long)]
    pub times: bool,
    /// Run nothing: write the pages from finished runs in the folder, such as those of other machines
    #[arg(long)]
    pub finished: bool,
}

/// Which experiments to run, and how much of them.
#[derive(Debug, Args)]
pub struct FigureArgs {
    /// Figures: fig1 to fig8, or all; or files, such as fig5-6-mnist; or `readings`, the settings that the paper leaves open
    #[arg(required = true)]
    pub figures: Vec<String>,
    /// A tenth of the iterations on two seeds: under a minute
    #[arg(long)]
    pub quick: bool,
    /// Use seeds 1 to N instead of the files'
    #[arg(long, value_name = "N")]
    pub seeds: Option<usize>,
    /// Folder with changed experiment files, to use instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    pub experiments: Option<PathBuf>,
}
