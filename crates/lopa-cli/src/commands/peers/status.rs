//! `lopa status`: how far all nodes of a run among peers are, from the `status.json` of a node.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use lopa::error::{Error, Result};
use lopa_base::store::limits::read_text;
use lopa_report::live::Nodes;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::args::StatusArgs;
use crate::output::number;
use crate::program::Program;

/// The file, in DIR/NAME.
pub const FILE: &str = "status.json";

/// The most bytes of it.
const MOST: u64 = 16 << 20;

/// A node that has not written its file for this many seconds may have ended.
const STALE: f64 = 10.0;

/// The state of a run among peers, as one node sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The node's clock when it was written, in seconds since 1970.
    pub time: f64,
    /// The node.
    pub name: String,
    /// Its version of lopa, which all peers share.
    pub lopa: String,
    /// The experiment.
    pub experiment: String,
    /// `connecting`, `running`, or how it ended: `done`, `stopped`, `left`, `failed`.
    pub state: String,
    /// The algorithm and the seed under way.
    pub algorithm: String,
    pub seed: u64,
    /// Iterations done, and the part of the budget that is used.
    pub iteration: u64,
    pub fraction: f64,
    /// The node for which the run waits, if it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// All nodes, in their order.
    pub nodes: Vec<Node>,
    /// The last measurement.
    pub measured: Measured,
    /// Where it is served as OpenMetrics text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
}

/// A node for which the run waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// Its name.
    pub name: String,
    /// How long it has been silent.
    pub silent_seconds: f64,
    /// Why the run waits for it.
    pub cause: WaitCause,
    /// The node that states it.
    pub reported_by: String,
    /// How many nodes wait, of those that are live.
    pub nodes_waiting: usize,
    /// How many nodes are live.
    pub nodes_live: usize,
}

/// Why a run waits for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// It is silent, and its neighbour has no connection to it.
    Lost,
    /// It is silent, and its connection is open.
    Silent,
    /// It is live, but a neighbour receives nothing from it.
    LinkCut,
    /// It is live, and computes.
    Computes,
}

impl Waiting {
    /// The wait of a node, in words.
    fn words(&self, own: &str) -> String {
        let Waiting { name, silent_seconds, cause, reported_by, .. } = self;
        let by = if reported_by == own { String::new() } else { format!(", says {reported_by}") };
        let cause = match cause {
            WaitCause::Lost => format!("silent for {silent_seconds:.0} s{by}"),
            WaitCause::Silent => format!(
                "silent for {silent_seconds:.0} s{by}, though its connection is open: it computes, or hangs"
            ),
            WaitCause::LinkCut => format!(
                "whose link to {reported_by} is cut: nothing came over it for {silent_seconds:.0} s"
            ),
            WaitCause::Computes => "which computes".into(),
        };
        // A node that computes is live, and does not wait.
        let (count, live) = (self.nodes_waiting, self.nodes_live);
        let idle = live.saturating_sub(usize::from(self.cause == WaitCause::Computes));
        let others = match count {
            0 | 1 => String::new(),
            count if count >= idle => "; the others wait with us".into(),
            count => format!("; {count} of {live} live nodes wait"),
        };
        format!("{own} waits for {name}, {cause}{others}")
    }
}

/// A node, as another one sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its last known iteration.
    pub iteration: Option<u64>,
    /// How long ago it was last heard.
    pub silent_seconds: Option<f64>,
    /// `up`, `skipped`, `down`, `none` for nodes that are no neighbours, `self`.
    pub link: String,
    /// Its training rows, if it has a file of its own.
    pub rows: Option<u64>,
    /// Whether its results are on disk.
    pub done: bool,
    /// Whether it has left: the others go on without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
}

/// A measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// When it was taken.
    pub iteration: u64,
    /// Bytes sent over all links until then.
    pub bytes: u64,
    /// The measures by name; those that are not finite are left out.
    pub values: BTreeMap<String, f64>,
}

/// This host's clock, in seconds since 1970.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

impl Report {
    fn read(file: &Path) -> Result<Report> {
        let damaged = |why: String| {
            Error::storage("storage/status", format!("the status cannot be read: {why}"))
                .at(file.display().to_string())
                .hint("a node that runs writes it again within a second")
        };
        let text = read_text(file, MOST).map_err(|error| damaged(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))
    }

    /// Whether the others go on without this node.
    fn is_out(&self) -> bool {
        self.nodes.iter().any(|node| node.name == self.name && node.left)
    }

    /// How it goes, in words.
    pub fn words(&self, now: f64) -> String {
        let Report { name, algorithm, seed, iteration, fraction, .. } = self;
        let age = now - self.time;
        let percent = 100.0 * fraction;
        let far = match algorithm.is_empty() {
            true => "before the first iteration".to_string(),
            false => format!(
                "{algorithm}, seed {seed}: iteration {iteration}, {percent:.0} % of the budget"
            ),
        };
        match &self.state[..] {
            "connecting" => format!("{name} looks for its neighbours, since {age:.0} s"),
            "running" if age >= STALE => format!(
                "{name} has not reported for {age:.0} s: it computes, hangs or was killed ({far})"
            ),
            "running" if self.is_out() => {
                format!("{name} was left out, and asks the others to come back ({far})")
            }
            "running" => match &self.waiting {
                Some(waiting) => format!("{} ({far})", waiting.words(name)),
                None => format!("{name} is running: {far}"),
            },
            state => format!("{name} is {state}: {far}"),
        }
    }
}

pub fn status(args: &StatusArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let found = reports(&args.folder)?;
    if found.is_empty() {
        let message = "no node has written its status here";
        return Err(Error::storage("storage/no-status", message)
            .at(args.folder.display().to_string())
            .hint("name the folder given to `lopa node --out` (default: `runs`)"));
    }
    if output.json() {
        output.document(&json!(found));
        return Ok(ExitCode::SUCCESS);
    }
    for report in &found {
        output.text(&report.words(now()));
        output.text(&output.list(&TITLES, report.nodes.iter().map(Node::cells).collect()));
        let Measured { iteration, values, .. } = &report.measured;
        if !values.is_empty() {
            let values: Vec<String> =
                values.iter().map(|(name, value)| format!("{name} {}", number(*value))).collect();
            output.text(&format!("measured at iteration {iteration}: {}", values.join(", ")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The titles of a table of nodes.
const TITLES: [&str; 6] = ["node", "iteration", "last heard", "link", "rows", ""];

impl Node {
    /// Its row of such a table.
    fn cells(&self) -> Vec<String> {
        let Node { name, iteration, silent_seconds, link, rows, done, left } = self;
        let iteration = iteration.map_or("–".into(), |k| k.to_string());
        let heard = match (&link[..], silent_seconds) {
            ("self", _) | (_, None) => "–".into(),
            (_, Some(silent)) => format!("{silent:.0} s ago"),
        };
        let rows = rows.map_or("–".into(), |rows| rows.to_string());
        let state = match (left, done) {
            (true, _) => "left",
            (false, true) => "done",
            (false, false) => "",
        };
        vec![name.clone(), iteration, heard, link.clone(), rows, state.into()]
    }
}

/// How far all nodes are, if the run folder is that of a node which has written its status.
pub fn nodes(run: &Path) -> Option<Nodes> {
    let report = Report::read(&run.parent()?.join(FILE)).ok()?;
    let rows = report.nodes.iter().map(Node::cells).collect();
    Some(Nodes { words: report.words(now()), titles: TITLES.to_vec(), rows })
}

/// The reports in a folder and in the folders in it, in the order of their names.
fn reports(folder: &Path) -> Result<Vec<Report>> {
    let mut files = vec![folder.join(FILE)];
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.extend(entries.map(|entry| entry.path().join(FILE)));
    files.sort();
    files.iter().filter(|file| file.exists()).map(|file| Report::read(file)).collect()
}
