//! `lopa report --live`: a page on this machine that follows runs under way.

mod visitor;

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lopa::error::{Error, Result};
use lopa_report::live::Live;
use serde_json::json;

use self::visitor::Visitor;
use crate::commands::signals::Signals;
use crate::output::Output;

/// How often to check for a request or a signal.
const PAUSE: Duration = Duration::from_millis(20);
/// The time between two looks at the folders.
const LOOK: Duration = Duration::from_secs(1);
/// The most visitors at a time; for one more, the first leaves.
const VISITORS: usize = 256;

/// Serves the report until Ctrl-C.
pub fn serve(live: &Live, port: u16, output: &Output) -> Result<ExitCode> {
    let signals = Signals::listen()?;
    let failed = |error: std::io::Error| {
        Error::config("config/port", format!("cannot serve the report: {error}"))
            .at(format!("127.0.0.1:{port}"))
            .hint("choose another port with --port, or leave it out")
    };
    // This machine only: a report reveals properties of the data.
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
    let (mut visitors, mut looked) = (Vec::<Visitor>::new(), Instant::now());
    while !signals.interrupt().load(Ordering::Relaxed) {
        let next = accept(&listener).map_err(failed)?;
        let alone = next.is_none();
        if let Some(stream) = next {
            if visitors.len() == VISITORS {
                visitors.remove(0);
            }
            // A client that disconnects or stalls is not an error.
            visitors.extend(Visitor::new(stream));
        }
        visitors.retain_mut(|visitor| visitor.serve(live, &own));
        if alone {
            std::thread::sleep(PAUSE);
        }
        if looked.elapsed() > LOOK {
            looked = Instant::now();
            let now = live.is_over()?;
            if now && !over {
                output.note("the run has ended; the page stays until Ctrl-C");
            }
            over = now;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The next visitor, if one is waiting.
fn accept(listener: &TcpListener) -> std::io::Result<Option<TcpStream>> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Ok(Some(stream)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error),
        }
    }
}
