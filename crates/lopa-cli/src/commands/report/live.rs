//! `lopa report --live`: a page on this machine that follows runs under way.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lopa::error::{Error, Result};
use lopa_report::live::{Answer, Live};
use serde_json::json;

use crate::commands::signals::Signals;
use crate::output::Output;

/// How often to look for a visitor, or a signal.
const PAUSE: Duration = Duration::from_millis(50);
/// Pauses between two looks at the folders.
const PAUSES: u32 = 20;
/// How long a visitor may take to ask or to listen, and how much it may say.
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST: usize = 16 << 10;

/// Serves the report until Ctrl-C.
pub fn serve(live: &Live, port: u16, output: &Output) -> Result<ExitCode> {
    let signals = Signals::listen()?;
    let failed = |error: std::io::Error| {
        Error::config("config/port", format!("cannot serve the report: {error}"))
            .at(format!("127.0.0.1:{port}"))
            .hint("choose another port with --port, or leave it out")
    };
    // This machine only: a report shows what the data are.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let own = listener.local_addr().map_err(failed)?.to_string();
    let address = format!("http://{own}/");
    match output.json() {
        true => output.document(&json!({ "address": address })),
        false => output.text(&address),
    }
    let mut over = live.is_over()?;
    output.note(match over {
        true => "the run has ended already: the page will not change; Ctrl-C ends it",
        false => "open this address in a browser on this machine; Ctrl-C ends it",
    });
    let mut pauses = 0;
    while !signals.interrupt().load(Ordering::Relaxed) {
        match listener.accept() {
            // A visitor that leaves or stalls is no failure.
            Ok((stream, _)) => drop(converse(stream, live, &own)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(PAUSE);
                pauses += 1;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(failed(error)),
        }
        if pauses >= PAUSES {
            pauses = 0;
            let now = live.is_over()?;
            if now && !over {
                output.note("the run has ended; the page stays until Ctrl-C");
            }
            over = now;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads one request and answers it.
fn converse(mut stream: TcpStream, live: &Live, own: &str) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < LONGEST {
        match stream.read(&mut part)? {
            0 => return Ok(()),
            n => head.extend(&part[..n]),
        }
    }
    let Answer { status, kind, body } = live.answer(&String::from_utf8_lossy(&head), own);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}
