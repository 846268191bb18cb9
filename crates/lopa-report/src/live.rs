//! A report that follows runs under way: the answers of a small server on this machine. Every page
//! is made from the current state of the folders; a script in it polls for changes and then reloads
//! the page.

use std::path::{Path, PathBuf};

use lopa::error::Result;
use lopa::folder::{RunReader, Status};

use crate::html::Report;
use crate::html::tables::table;
use crate::saved::Saved;
use crate::svg::escape;

/// A report of folders that may still grow.
pub struct Live {
    /// The run folders.
    pub folders: Vec<PathBuf>,
    /// The report; its runs are read again for every page.
    pub report: Report,
    /// How far all nodes are, where a run folder is of one node among peers.
    pub nodes: fn(&Path) -> Option<Nodes>,
}

/// How far all nodes of a run among peers are, as one of them sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    /// In words.
    pub words: String,
    /// The titles of the columns.
    pub titles: Vec<&'static str>,
    /// A row of cells for each node.
    pub rows: Vec<Vec<String>>,
}

/// An answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status line's code and words.
    pub status: &'static str,
    /// The type of the body.
    pub kind: &'static str,
    /// The body.
    pub body: String,
}

impl Live {
    /// Answers a request, given its head. `own` is the server's address, such as `127.0.0.1:8000`:
    /// pages of other sites must not reach the runs under a name of their own.
    pub fn answer(&self, head: &str, own: &str) -> Answer {
        let text = |status, body: &str| Answer {
            status,
            kind: "text/plain; charset=utf-8",
            body: body.to_string(),
        };
        let mut lines = head.lines();
        let mut request = lines.next().unwrap_or_default().split(' ');
        let (method, path) = (request.next().unwrap_or_default(), request.next());
        let host = lines.filter_map(|line| line.split_once(':'));
        let host = { host }.find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let port = own.rsplit(':').next().unwrap_or_default();
        let known = [own.to_string(), format!("localhost:{port}")];
        if !host.is_some_and(|(_, name)| known.iter().any(|known| known == name.trim())) {
            return text("403 Forbidden", "this server answers under its own address only\n");
        }
        match (method, path) {
            ("GET", Some("/")) => match self.page() {
                Ok(body) => Answer { status: "200 OK", kind: "text/html; charset=utf-8", body },
                Err(error) => text("500 Internal Server Error", &format!("{error}\n")),
            },
            ("GET", Some("/nodes")) => {
                Answer { kind: "text/html; charset=utf-8", ..text("200 OK", &self.nodes()) }
            }
            ("GET", Some("/version")) => text("200 OK", &self.version()),
            ("GET", _) => text("404 Not Found", "there is only one page: /\n"),
            _ => text("405 Method Not Allowed", "only GET is answered\n"),
        }
    }

    /// Whether no run is under way.
    pub fn is_over(&self) -> Result<bool> {
        let over = |path: &PathBuf| Ok(RunReader::open(path)?.manifest().status != Status::Running);
        self.folders.iter().map(over).try_fold(true, |all, over| Ok(all && over?))
    }

    /// A text that changes whenever a run has written something.
    fn version(&self) -> String {
        let size = |folder: &Path, file: &str| {
            std::fs::metadata(folder.join(file)).map_or(0, |file| file.len()).to_string()
        };
        let files = ["manifest.json", "metrics.jsonl", "results.json"];
        let of = |folder: &PathBuf| files.map(|file| size(folder, file)).join("-");
        self.folders.iter().map(of).collect::<Vec<_>>().join("_")
    }

    /// The nodes of the runs among peers, which the script in the page fetches again.
    fn nodes(&self) -> String {
        let shown = |Nodes { words, titles, rows }: Nodes| {
            let cells = |row: Vec<String>| {
                let cell = |(at, text): (usize, String)| match at {
                    0 => format!("<th scope=\"row\">{}</th>", escape(&text)),
                    _ => format!("<td>{}</td>", escape(&text)),
                };
                row.into_iter().enumerate().map(cell).collect()
            };
            let rows = rows.into_iter().map(cells).collect();
            format!("<p>{}</p>\n{}", escape(&words), table("nodes", "All nodes", &titles, rows))
        };
        self.folders.iter().filter_map(|folder| (self.nodes)(folder)).map(shown).collect()
    }

    fn page(&self) -> Result<String> {
        // Read the version first, so that a write during rendering is noticed.
        let version = self.version();
        let over = self.is_over()?;
        let runs = self.folders.iter().map(|folder| Saved::read(folder)).collect::<Result<_>>()?;
        let words = match over {
            true => "The run has ended: this is the whole report.",
            false => "Live: this page follows the run.",
        };
        let class = if over { "live over" } else { "live" };
        let note = format!(
            "<p class=\"{class}\" role=\"status\" data-version=\"{}\">{words}</p>\n",
            escape(&version)
        );
        let note = match &self.nodes()[..] {
            "" => note,
            nodes => format!("{note}<div id=\"nodes\" aria-live=\"polite\">{nodes}</div>\n"),
        };
        Ok(Report { runs, ..self.report.clone() }.following(&note))
    }
}
