//! Downloads one address to one file, resuming earlier attempts.

use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;

use ureq::Agent;
use ureq::http::header::{CONTENT_RANGE, RANGE};

use super::unwritable;
use crate::error::Result;
use crate::store::disk;

/// Maximum number of attempts, as long as each makes progress.
const ATTEMPTS: usize = 20;

/// Whether an earlier download was resumed, or why the address failed.
pub type Downloaded = std::result::Result<bool, String>;

/// How one attempt ended.
enum Attempt {
    Complete,
    Interrupted(String),
    Failed(String),
}

/// Downloads to `path`, resuming a partial file; `about`, the approximate size, bounds the size
/// accepted.
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
            Attempt::Complete => return Ok(Ok(before > 0)),
            Attempt::Failed(why) => return Ok(Err(why)),
            Attempt::Interrupted(why) => last = why,
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
        // A stalled body is abandoned after a while; the next attempt resumes it.
        .timeout_recv_body(Some(Duration::from_secs(900)))
        .http_status_as_error(false)
        .user_agent(concat!("lopa/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

fn attempt(
    agent: &Agent,
    address: &str,
    path: &Path,
    limit: u64,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<Attempt> {
    let present = length(path);
    let mut request = agent.get(address);
    if present > 0 {
        request = request.header(RANGE, format!("bytes={present}-"));
    }
    let mut response = match request.call() {
        Ok(response) => response,
        Err(error) => return Ok(Attempt::Failed(error.to_string())),
    };
    let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    let mut done = match response.status().as_u16() {
        206 if range.is_some_and(|range| range.starts_with(&format!("bytes {present}-"))) => {
            present
        }
        // The server restarts from the beginning, or has nothing beyond what is present.
        200 => 0,
        416 if present > 0 => return Ok(Attempt::Complete),
        status => return Ok(Attempt::Failed(format!("the server answers {status}"))),
    };
    let mut file = disk::open(path, done == 0).map_err(|error| unwritable(path, &error))?;
    let total = response.body().content_length().map(|rest| done + rest);
    let mut body = response.body_mut().with_config().limit(limit).reader();
    let mut buffer = vec![0; 1 << 16];
    loop {
        progress(done, total);
        let read = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => {
                file.sync_all().map_err(|error| unwritable(path, &error))?;
                return Ok(Attempt::Interrupted(format!(
                    "interrupted after {done} bytes: {error}"
                )));
            }
        };
        file.write_all(&buffer[..read]).map_err(|error| unwritable(path, &error))?;
        done += read as u64;
    }
    file.sync_all().map_err(|error| unwritable(path, &error))?;
    Ok(match total {
        Some(total) if done < total => {
            Attempt::Interrupted(format!("interrupted after {done} of {total} bytes"))
        }
        _ => Attempt::Complete,
    })
}
