//! Follows a node, and writes its status to a file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use lopa::engine::{Cause, Connection, Picture, Waits};
use lopa::run::trace::Row;
use lopa::run::{Listener, Outcome};

use super::status::{FILE, Measured, Node, Report, WaitCause, Waiting, now};

/// The status of this node.
#[derive(Clone)]
pub struct Watch {
    report: Arc<Mutex<Report>>,
    file: PathBuf,
}

impl Watch {
    /// Of a node that connects to its neighbours; the file is in `folder`.
    pub fn new(folder: &Path, report: Report) -> Watch {
        let watch = Watch { report: Arc::new(Mutex::new(report)), file: folder.join(FILE) };
        watch.write();
        watch
    }

    /// The present status.
    pub fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().expect("no thread panics while holding it")
    }

    /// Takes over what the node knows of all nodes.
    pub fn see(&self, picture: &Picture) {
        {
            let mut report = self.report();
            let names: Vec<String> = report.nodes.iter().map(|node| node.name.clone()).collect();
            report.state = "running".into();
            report.iteration = report.iteration.max(picture.k);
            report.waiting = picture.waits.map(|waits| waiting(&names, waits));
            for (node, sight) in report.nodes.iter_mut().zip(&picture.nodes) {
                node.iteration = sight.k;
                node.silent_seconds = sight.silent.map(|silent| silent.as_secs_f64());
                (node.rows, node.done, node.left) = (sight.rows, sight.done, sight.left);
                if node.link != "self" {
                    let link = match sight.link {
                        Connection::Up => "up",
                        Connection::Skipped => "skipped",
                        Connection::Down => "down",
                        Connection::None => "none",
                    };
                    node.link = link.into();
                }
            }
        }
        self.write();
    }

    /// Records how the node ended.
    pub fn end(&self, state: &str) {
        {
            let mut report = self.report();
            (report.state, report.waiting) = (state.into(), None);
            let name = report.name.clone();
            let own = report.nodes.iter_mut().find(|node| node.name == name);
            own.into_iter().for_each(|own| own.done |= state == "done");
        }
        self.write();
    }

    /// Replaces the file. The status is a courtesy: if it cannot be written, the run goes on.
    pub fn write(&self) {
        let text = {
            let mut report = self.report();
            report.time = now();
            serde_json::to_string(&*report).unwrap_or_default()
        };
        let partial = self.file.with_extension("json.partial");
        let _ = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, &self.file));
    }
}

fn waiting(names: &[String], waits: Waits) -> Waiting {
    Waiting {
        name: names[waits.peer].clone(),
        silent_seconds: waits.silent.as_secs_f64(),
        cause: match waits.cause {
            Cause::Lost => WaitCause::Lost,
            Cause::Silent => WaitCause::Silent,
            Cause::Cut => WaitCause::LinkCut,
            Cause::Computes => WaitCause::Computes,
        },
        reported_by: names[waits.reporter].clone(),
        nodes_waiting: waits.waiting,
        nodes_live: waits.live,
    }
}

/// The report of a node that has just started.
pub fn started(name: &str, names: &[String], experiment: &str, rows: Option<u64>) -> Report {
    let node = |of: &String| match of == name {
        true => Node { name: of.clone(), link: "self".into(), rows, ..Node::default() },
        false => Node { name: of.clone(), link: "none".into(), ..Node::default() },
    };
    Report {
        name: name.into(),
        lopa: env!("CARGO_PKG_VERSION").into(),
        experiment: experiment.into(),
        state: "connecting".into(),
        nodes: names.iter().map(node).collect(),
        ..Report::default()
    }
}

/// Passes progress on, and keeps the last measurement for the status.
pub struct Followed<'a> {
    pub to: &'a mut dyn Listener,
    pub watch: Watch,
}

impl Listener for Followed<'_> {
    fn begin(&mut self, algorithm: &str, seed: u64) {
        {
            let mut report = self.watch.report();
            (report.algorithm, report.seed) = (algorithm.into(), seed);
            (report.iteration, report.fraction) = (0, 0.0);
            report.measured = Measured::default();
        }
        self.to.begin(algorithm, seed);
    }

    fn skip(&mut self, algorithm: &str, seed: u64) {
        self.to.skip(algorithm, seed);
    }

    fn resumed(&mut self, from: Option<u64>) {
        self.to.resumed(from);
    }

    fn warn(&mut self, text: &str) {
        self.to.warn(text);
    }

    fn progress(&mut self, iteration: u64, fraction: f64) {
        {
            let mut report = self.watch.report();
            (report.iteration, report.fraction) = (iteration, fraction);
        }
        self.to.progress(iteration, fraction);
    }

    fn measuring(&mut self, done: usize, of: usize, exact: bool) {
        self.to.measuring(done, of, exact);
    }

    fn row(&mut self, algorithm: &str, seed: u64, row: &Row) {
        let finite = row.values.iter().filter(|(_, value)| value.is_finite());
        self.watch.report().measured = Measured {
            iteration: row.iteration,
            bytes: row.bytes,
            values: finite.map(|(name, value)| (name.clone(), *value)).collect(),
        };
        self.to.row(algorithm, seed, row);
    }

    fn end(&mut self, outcome: &Outcome) {
        self.to.end(outcome);
    }
}
