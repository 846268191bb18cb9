//! A run for other tools, and a page that follows a run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::program::{Folder, QUADRATIC, send_signal};

fn run() -> (Folder, String) {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    folder.lopa(&["run", "q.toml", "-q"]).good();
    let run = folder.run_folder().to_str().unwrap().to_string();
    (folder, run)
}

#[test]
fn a_run_is_exported_to_other_tools() {
    let (folder, run) = run();
    let name = run.rsplit('/').next().unwrap();
    let rows = folder.read(format!("{run}/metrics.jsonl")).lines().count();
    let export = |to: &str, more: &[&str]| {
        let args = [&["export", &run, "--to", to, "--format", "json"], more].concat();
        folder.lopa(&args).good().json()
    };
    let done = export("csv", &[]);
    assert_eq!(
        (done["export"].as_str(), done["rows"].as_u64()),
        (Some(&*format!("{name}.csv")), Some(rows as u64))
    );
    let csv = folder.read(format!("{name}.csv"));
    assert!(csv.starts_with("algorithm,seed,iteration,"), "{csv}");
    assert!(csv.lines().next().unwrap().ends_with(",stop"));
    assert_eq!(csv.lines().count(), rows + 1);
    assert!(csv.lines().nth(1).unwrap().starts_with("lopa-gt,1,0,"));
    assert!(csv.lines().skip(1).all(|line| line.ends_with(",finished")), "{csv}");
    // Exporting again replaces; people read where it is.
    let done = folder.lopa(&["export", &run, "--to", "csv", "-o", "rows.csv"]).good();
    assert_eq!((done.stdout.as_str(), folder.read("rows.csv")), ("rows.csv\n", csv));
}

#[test]
fn an_export_that_cannot_be_written_says_where() {
    let (folder, run) = run();
    let done = folder.lopa(&["export", &run, "--to", "csv", "-o", "q.toml/below"]);
    assert_eq!(done.code, 5, "{}", done.stderr);
    assert!(done.stderr.contains("storage/write") && done.stderr.contains("--out"));
    assert_eq!(folder.lopa(&["export", "q.toml", "--to", "csv"]).code, 5);
    assert_eq!(folder.lopa(&["export", &run]).code, 2);
    assert_eq!(folder.lopa(&["export", &run, "--to", "parquet"]).code, 2);
}

#[test]
fn the_report_has_the_sentence_that_the_run_ended_with() {
    let folder = Folder::with(&[("q.toml", QUADRATIC)]);
    let said = folder.lopa(&["run", "q.toml"]).good().stderr;
    let sentence = said.lines().find(|line| line.starts_with("With at most 6 iterations, "));
    folder.lopa(&["report", folder.run_folder().to_str().unwrap()]).good();
    assert!(folder.read("report.html").contains(sentence.unwrap()), "{said}");
}

/// The answer to a request, with its head.
fn get(address: &str, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Ends with its test, however that ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

#[cfg(unix)]
#[test]
fn a_live_report_follows_a_run_until_it_is_stopped() {
    let (folder, run) = run();
    // As it was before the last measurement.
    let [manifest, rows] =
        ["manifest.json", "metrics.jsonl"].map(|file| folder.read(format!("{run}/{file}")));
    let write = |file: &str, text: &str| folder.write(&format!("{run}/{file}"), text.as_bytes());
    let last = rows.lines().last().unwrap();
    let seconds = serde_json::from_str::<Value>(last).unwrap()["seconds"].to_string();
    write("manifest.json", &manifest.replace("\"done\"", "\"running\""));
    write("metrics.jsonl", rows.strip_suffix(&format!("{last}\n")).unwrap());
    let mut server = folder.program(&["report", "--live", &run, "-q"]);
    let mut server = Server(server.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let own = line.trim().strip_prefix("http://").unwrap().trim_end_matches('/');
    assert!(own.starts_with("127.0.0.1:"), "{own}");

    let page = get(own, "/", own);
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("this page follows the run") && page.contains("connect-src 'self'"));
    let before = get(own, "/version", own);
    assert_eq!(before, get(own, "/version", own), "nothing was written");

    // The run measures something, and ends.
    assert!(!page.contains(&seconds));
    write("metrics.jsonl", &rows);
    let after = get(own, "/version", own);
    assert_ne!(before, after);
    assert!(get(own, "/", own).contains(&seconds));
    write("manifest.json", &manifest);
    assert_ne!(get(own, "/version", own), after);
    assert!(get(own, "/", own).contains("The run has ended"));

    // Visitors that say nothing keep no one waiting, not even when they are many.
    let silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(own).unwrap()).collect();
    assert!(get(own, "/", own).contains("The run has ended"));
    drop(silent);

    // Other pages, and pages of other sites.
    assert!(get(own, "/etc/passwd", own).starts_with("HTTP/1.1 404 "));
    assert!(get(own, "/", "evil.example").starts_with("HTTP/1.1 403 "));

    send_signal(&server.0, "-INT");
    assert_eq!(server.0.wait().unwrap().code(), Some(0), "Ctrl-C is how it ends");
}
