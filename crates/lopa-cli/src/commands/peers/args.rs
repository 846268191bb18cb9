//! The arguments of the commands for peers, which every build has.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::args::{ExperimentArgs, ResumeArgs};

#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Draw a key and write it to a new file with mode 0600; prints the public half
    New(KeyArgs),
    /// Print the public half of a key
    Show(KeyArgs),
}

#[derive(Debug, Args)]
pub struct KeyArgs {
    /// File of the secret key, which never leaves this host
    #[arg(env = "LOPA_KEY_FILE")]
    pub file: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum RosterCommand {
    /// Add a node with its public key and addresses
    Add(RosterAddArgs),
    /// Remove a node: holders of the new roster reject it
    Remove(RosterRemoveArgs),
    /// Check that a run can use the roster, alone or with an experiment
    Check(RosterCheckArgs),
    /// List the nodes
    Show(RosterArgs),
}

#[derive(Debug, Args)]
pub struct RosterArgs {
    /// Roster file (TOML)
    pub roster: PathBuf,
}

#[derive(Debug, Args)]
pub struct RosterAddArgs {
    #[command(flatten)]
    pub roster: RosterArgs,
    /// Name of the node
    pub name: String,
    /// Its public key, as printed by its owner's `lopa key show`
    pub key: String,
    /// Its addresses, `host:port`; none if it can only call others
    pub addresses: Vec<String>,
    /// Name of a neighbour; repeatable [default: the neighbours in the experiment's graph]
    #[arg(long = "neighbour", value_name = "NAME")]
    pub neighbours: Vec<String>,
}

#[derive(Debug, Args)]
pub struct RosterRemoveArgs {
    #[command(flatten)]
    pub roster: RosterArgs,
    /// Name of the node
    pub name: String,
}

#[derive(Debug, Args)]
pub struct RosterCheckArgs {
    #[command(flatten)]
    pub roster: RosterArgs,
    /// Experiment file to check it with
    pub file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct NodeArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    #[command(flatten)]
    pub resume: ResumeArgs,
    /// Roster file (TOML): see `lopa roster`
    #[arg(long, value_name = "FILE")]
    pub roster: PathBuf,
    /// Name of this node in the roster
    #[arg(long)]
    pub name: String,
    /// File of the secret key [default: NAME.key]
    #[arg(long, value_name = "FILE", env = "LOPA_KEY_FILE")]
    pub key: Option<PathBuf>,
    /// Address to listen at, `IP:port` [default: the node's first address in the roster]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// What to do about a silent neighbour
    #[arg(long, value_enum, default_value_t = Lost::Wait)]
    pub policy: Lost,
    /// Longest wait for a peer; then the node ends with exit code 6
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    pub deadline: f64,
    /// With `skip-link`: how long to wait before leaving a link out of a round
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    pub patience: f64,
}

/// What to do about a silent neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Lost {
    /// Wait for it until the deadline
    Wait,
    /// Stop as soon as the connection is lost
    Stop,
    /// Leave the link out of the round, at both ends
    SkipLink,
}
