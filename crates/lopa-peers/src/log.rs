//! The log: one line per change of state, and one per stranger.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// Subjects remembered by [`Log::once`]; later ones are not logged.
const REMEMBERED: usize = 1000;

/// Receives lines about links.
#[derive(Clone)]
pub struct Log {
    say: Arc<dyn Fn(&str) + Send + Sync>,
    seen: Arc<Mutex<HashSet<String>>>,
}

impl Log {
    /// Passes lines to `say`.
    pub fn new(say: impl Fn(&str) + Send + Sync + 'static) -> Log {
        Log { say: Arc::new(say), seen: Arc::default() }
    }

    /// Logs a line.
    pub fn say(&self, text: &str) {
        (self.say)(text);
    }

    /// Logs a line, unless there was one about this subject before.
    pub fn once(&self, subject: &str, text: &str) {
        let mut seen = self.seen.lock().expect("no thread panics while holding it");
        if seen.len() < REMEMBERED && seen.insert(subject.to_string()) {
            (self.say)(text);
        }
    }
}
