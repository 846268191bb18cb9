//! Serves a node's status as OpenMetrics text to a monitoring system.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use lopa::error::{Error, Result};

use super::status::{Measured, Node, Report};
use super::watch::Watch;

/// How long a client may take for its request.
const PATIENCE: Duration = Duration::from_millis(500);

/// The most bytes of a request.
const REQUEST: usize = 4096;

impl Report {
    /// The report as OpenMetrics text.
    pub fn open_metrics(&self) -> String {
        let mut out = String::new();
        let mut family = |name: &str, help: &str, samples: Vec<(String, f64)>| {
            let (kind, suffix) = if name == "node" { ("info", "_info") } else { ("gauge", "") };
            out += &format!("# TYPE lopa_{name} {kind}\n# HELP lopa_{name} {help}\n");
            for (labels, value) in samples {
                out += &format!("lopa_{name}{suffix}{labels} {value}\n");
            }
        };
        let label = |key: &str, value: &str| format!("{{{key}=\"{}\"}}", escaped(value));
        let nodes = |of: &dyn Fn(&Node) -> Option<f64>| -> Vec<(String, f64)> {
            let sample = |node: &Node| Some((label("node", &node.name), of(node)?));
            self.nodes.iter().filter_map(sample).collect()
        };
        let iterations = nodes(&|node| node.iteration.map(|k| k as f64));
        family("iteration", "Last known iteration of a node.", iterations);
        family("silent_seconds", "Time since a node was last heard.", nodes(&|n| n.silent_seconds));
        let up = |node: &Node| match &node.link[..] {
            "up" | "skipped" => Some(1.0),
            "down" => Some(0.0),
            _ => None,
        };
        family("link_up", "Whether the link to a neighbour is up.", nodes(&up));
        let waiting = self.waiting.as_ref();
        let waiting = waiting.map(|w| (label("node", &w.name), w.silent_seconds));
        family(
            "waiting_seconds",
            "Silence of the node that the run waits for.",
            waiting.into_iter().collect(),
        );
        family(
            "budget_fraction",
            "Part of the budget that is used.",
            vec![(String::new(), self.fraction)],
        );
        family("rows", "Training rows of a node.", nodes(&|node| node.rows.map(|r| r as f64)));
        let Measured { iteration, bytes, values } = &self.measured;
        family(
            "measured_iteration",
            "Iteration of the last measurement.",
            vec![(String::new(), *iteration as f64)],
        );
        family(
            "sent_bytes",
            "Bytes sent over all links until then.",
            vec![(String::new(), *bytes as f64)],
        );
        let values = values.iter().map(|(name, value)| (label("measure", name), *value)).collect();
        family("measure", "The last measurement.", values);
        let info = format!(
            "{{node=\"{}\",experiment=\"{}\",lopa=\"{}\",state=\"{}\"}}",
            escaped(&self.name),
            escaped(&self.experiment),
            escaped(&self.lopa),
            escaped(&self.state)
        );
        family("node", "This node.", vec![(info, 1.0)]);
        out + "# EOF\n"
    }
}

/// A label's value, as OpenMetrics needs it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Watch {
    /// Serves the status as OpenMetrics text, until the process ends.
    pub fn serve(&self, address: SocketAddr) -> Result<SocketAddr> {
        let failed = |error: std::io::Error| {
            Error::config("config/port", format!("cannot serve metrics: {error}"))
                .at(address.to_string())
                .hint("choose another address with --metrics")
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let own = listener.local_addr().map_err(failed)?;
        self.report().metrics = Some(own);
        self.write();
        let watch = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that disconnects or stalls is not an error.
                let _ = watch.answer(stream);
            }
        });
        Ok(own)
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (mut request, mut some, start) = (Vec::new(), [0; 512], Instant::now());
        let is_whole = |request: &[u8]| request.windows(4).any(|end| end == b"\r\n\r\n");
        while !is_whole(&request) && request.len() < REQUEST && start.elapsed() < PATIENCE {
            let length = stream.read(&mut some)?;
            if length == 0 {
                break;
            }
            request.extend_from_slice(&some[..length]);
        }
        let (status, body) = match request.starts_with(b"GET /metrics ") {
            true => ("200 OK", self.report().open_metrics()),
            false => ("404 Not Found", "GET /metrics\n".to_string()),
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/openmetrics-text; version=1.0.0; \
             charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())
    }
}
