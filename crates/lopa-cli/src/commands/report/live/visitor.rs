//! A client of the live report: one request, one answer, without blocking on either.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use lopa_report::live::{Answer, Live};

/// The longest time to send a request, and the longest pause in reading the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The size limit of a request.
const LONGEST: usize = 16 << 10;

pub struct Visitor {
    stream: TcpStream,
    asked: Vec<u8>,
    answer: Option<Vec<u8>>,
    sent: usize,
    heard: Instant, // when it connected, sent a request, or read a part of its answer
}

impl Visitor {
    pub fn new(stream: TcpStream) -> Result<Visitor> {
        stream.set_nonblocking(true)?;
        let (asked, answer, heard) = (Vec::new(), None, Instant::now());
        Ok(Visitor { stream, asked, answer, sent: 0, heard })
    }

    /// Makes all progress possible without waiting; false if the connection is to be closed.
    pub fn serve(&mut self, live: &Live, own: &str) -> bool {
        match self.advance(live, own) {
            Ok(stays) => stays,
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.heard.elapsed() < PATIENCE,
            Err(_) => false,
        }
    }

    fn advance(&mut self, live: &Live, own: &str) -> Result<bool> {
        while self.answer.is_none() {
            let mut part = [0; 1024];
            match self.stream.read(&mut part)? {
                0 => return Ok(false),
                n => self.asked.extend(&part[..n]),
            }
            let whole = self.asked.windows(4).any(|end| end == b"\r\n\r\n");
            if whole || self.asked.len() >= LONGEST {
                self.answer = Some(answer(live, &self.asked, own));
                self.heard = Instant::now();
            }
        }
        let answer = self.answer.as_deref().unwrap_or_default();
        while self.sent < answer.len() {
            match self.stream.write(&answer[self.sent..])? {
                0 => return Ok(false),
                n => self.sent += n,
            }
            self.heard = Instant::now();
        }
        Ok(false)
    }
}

fn answer(live: &Live, asked: &[u8], own: &str) -> Vec<u8> {
    let Answer { status, kind, body } = live.answer(&String::from_utf8_lossy(asked), own);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    );
    (head + &body).into_bytes()
}
