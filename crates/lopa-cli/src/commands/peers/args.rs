//! The arguments of the commands for peers, which every build has.

use std::net::{Ipv4Addr, SocketAddr};
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

#[derive(Debug, Args)]
pub struct InviteArgs {
    /// Names of the nodes to invite
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Experiment file (TOML)
    #[arg(long, value_name = "FILE", default_value = "experiment.toml")]
    pub experiment: PathBuf,
    #[command(flatten)]
    pub member: MemberArgs,
    /// Name of this node [default: the only node of the experiment that is not invited]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// URL of a relay, for nodes that others cannot call; repeatable
    #[arg(long = "relay", value_name = "URL")]
    pub relays: Vec<String>,
}

#[derive(Debug, Args)]
pub struct JoinArgs {
    /// The invitation
    pub invite: PathBuf,
    #[command(flatten)]
    pub member: MemberArgs,
}

/// What a node brings to a roster.
#[derive(Debug, Args)]
pub struct MemberArgs {
    /// File with this node's rows, or the folder of the data sets; nothing of them is sent
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Address at which others can call this node, `host:port`; repeatable [default: it only calls]
    #[arg(long = "address", value_name = "ADDRESS")]
    pub addresses: Vec<String>,
    /// File of the secret key, made if it is missing [default: NAME.key]
    #[arg(long, value_name = "FILE", env = "LOPA_KEY_FILE")]
    pub key: Option<PathBuf>,
    /// Roster file (TOML)
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum RosterCommand {
    /// Accept replies of invited nodes, as the organiser; or a newer roster, as a member
    Accept(RosterAcceptArgs),
    /// Add a node with its public key and addresses
    Add(RosterAddArgs),
    /// Remove a node: holders of the new roster reject it
    Remove(RosterRemoveArgs),
    /// Check that a run can use the roster, alone or with an experiment
    Check(RosterCheckArgs),
    /// List the nodes
    Show(RosterArgs),
    /// Print the configuration of a relay that serves the members only, for the program iroh-relay
    Relay(RosterRelayArgs),
}

#[derive(Debug, Args)]
pub struct RosterArgs {
    /// Roster file (TOML)
    pub roster: PathBuf,
}

#[derive(Debug, Args)]
pub struct RosterAcceptArgs {
    /// Replies that `lopa join` wrote, or one roster
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Roster file (TOML) to change
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
    /// File of the organiser's secret key [default: NAME.key beside the roster]
    #[arg(long, value_name = "FILE", env = "LOPA_KEY_FILE")]
    pub key: Option<PathBuf>,
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
    /// File of the organiser's secret key, for a signed roster [default: NAME.key beside the roster]
    #[arg(long, value_name = "FILE", env = "LOPA_KEY_FILE")]
    pub key: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct RosterRelayArgs {
    #[command(flatten)]
    pub roster: RosterArgs,
    /// URL of the relay [default: the only one in the roster]
    #[arg(long, value_name = "URL")]
    pub relay: Option<String>,
    /// E-mail address for Let's Encrypt, which then issues the certificate of an https relay
    ///
    /// Without it, the relay reads `default.crt` and `default.key` in its folder.
    #[arg(long, value_name = "EMAIL")]
    pub contact: Option<String>,
}

#[derive(Debug, Args)]
pub struct RosterCheckArgs {
    #[command(flatten)]
    pub roster: RosterArgs,
    /// Experiment file to check it with
    pub file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(mut_arg("file", |arg| {
    arg.help("Experiment file (TOML) [default: experiment.toml beside the roster]")
}))]
pub struct NodeArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    #[command(flatten)]
    pub resume: ResumeArgs,
    /// Roster file (TOML): see `lopa invite` and `lopa roster`
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
    /// Name of this node in the roster [default: the one whose NAME.key is in the current folder]
    #[arg(long)]
    pub name: Option<String>,
    /// File of the secret key [default: NAME.key]
    #[arg(long, value_name = "FILE", env = "LOPA_KEY_FILE")]
    pub key: Option<PathBuf>,
    /// Address to listen at, `IP:port` [default: the node's first address in the roster]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// What to do about a silent neighbour
    #[arg(long, value_enum, default_value_t = Lost::Wait)]
    pub policy: Lost,
    /// Check the link to every neighbour, and run nothing: direct, relayed or blocked, round-trip time,
    /// clock, version, experiment
    #[arg(long)]
    pub check: bool,
    /// Longest wait for a peer; then the node ends with exit code 6 [default: 600, with --check 30]
    #[arg(long, value_name = "SECONDS")]
    pub deadline: Option<f64>,
    /// Serve the status of all nodes as OpenMetrics text at http://ADDRESS/metrics: a port of this host, or `host:port`
    #[arg(long, value_name = "ADDRESS", value_parser = served)]
    pub metrics: Option<SocketAddr>,
    /// With `leave`: how long a node must be silent, to all others, before they agree to go on without it;
    /// longer than any iteration or measurement
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0)]
    pub silence: f64,
    /// Say good-bye: the others, which run with `--policy leave`, go on without this node; started without this
    /// flag, it comes back
    #[arg(long)]
    pub leave: bool,
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
    /// Wait for it; after `--silence`, the others agree to go on without it from their last common
    /// checkpoint; started again, it asks to come back
    Leave,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Folder of the node's runs: DIR of `lopa node --out DIR`, or DIR/NAME
    #[arg(env = "LOPA_RUNS_DIR", default_value = "runs")]
    pub folder: PathBuf,
}

/// An address, or a port of loopback.
fn served(text: &str) -> Result<SocketAddr, String> {
    let loopback = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let port = text.parse().map(loopback);
    port.or_else(|_| text.parse())
        .map_err(|_| "give a port, or an address such as 10.0.0.5:9464".into())
}
