//! One address to one file, going on where an earlier attempt stopped.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;

use ureq::Agent;
use ureq::http::header::{CONTENT_RANGE, RANGE};

use super::unwritable;
use crate::error::Result;

/// How often a broken download is taken up again, as long as each attempt brings something.
const ATTEMPTS: usize = 20;

/// Whether anything had been there before, or why the address did not work.
pub type Downloaded = std::result::Result<bool, String>;

/// How one attempt ended.
enum Attempt {
    Whole,
    Broken(String),
    Refused(String),
}

/// Downloads into `path`, and says whether it went on from an earlier attempt; `about` bounds how
/// much is accepted.
pub fn download(
    address: &str,
    path: &Path,
    about: u64,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<Downloaded> {
    let agent = agent();
    let before = length(path);
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let start = length(path);
        match attempt(&agent, address, path, 2 * about + (1 << 20), progress)? {
            Attempt::Whole => return Ok(Ok(before > 0)),
            Attempt::Refused(why) => return Ok(Err(why)),
            Attempt::Broken(why) => last = why,
        }
        if length(path) <= start {
            break;
        }
    }
    Ok(Err(last))
}

fn agent() -> Agent {
    Agent::config_builder()
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        // A body that stalls is given up after a while; the next attempt goes on from there.
        .timeout_recv_body(Some(Duration::from_secs(900)))
        .http_status_as_error(false)
        .user_agent(concat!("lopa/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |about| about.len())
}

fn attempt(
    agent: &Agent,
    address: &str,
    path: &Path,
    most: u64,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<Attempt> {
    let there = length(path);
    let mut request = agent.get(address);
    if there > 0 {
        request = request.header(RANGE, format!("bytes={there}-"));
    }
    let mut response = match request.call() {
        Ok(response) => response,
        Err(error) => return Ok(Attempt::Refused(error.to_string())),
    };
    let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    let mut done = match response.status().as_u16() {
        206 if range.is_some_and(|range| range.starts_with(&format!("bytes {there}-"))) => there,
        // The server starts from the beginning, or has nothing beyond what is there.
        200 => 0,
        416 if there > 0 => return Ok(Attempt::Whole),
        status => return Ok(Attempt::Refused(format!("the server answers {status}"))),
    };
    let mut file = open(path, done > 0).map_err(|error| unwritable(path, &error))?;
    let total = response.body().content_length().map(|rest| done + rest);
    let mut body = response.body_mut().with_config().limit(most).reader();
    let mut buffer = vec![0; 1 << 16];
    loop {
        progress(done, total);
        let read = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => {
                file.sync_all().map_err(|error| unwritable(path, &error))?;
                return Ok(Attempt::Broken(format!("broke off after {done} bytes: {error}")));
            }
        };
        file.write_all(&buffer[..read]).map_err(|error| unwritable(path, &error))?;
        done += read as u64;
    }
    file.sync_all().map_err(|error| unwritable(path, &error))?;
    Ok(match total {
        Some(total) if done < total => {
            Attempt::Broken(format!("broke off after {done} of {total} bytes"))
        }
        _ => Attempt::Whole,
    })
}

fn open(path: &Path, append: bool) -> std::io::Result<File> {
    OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(path)
}
