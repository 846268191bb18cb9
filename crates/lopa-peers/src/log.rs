//! The log: one line per change of state, and one per stranger.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

/// Subjects of a kind remembered by [`Log::once`]; later ones are not logged.
const REMEMBERED: usize = 1000;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// It is as it should be.
    Info,
    /// An operator may have to act.
    Warning,
}

type Say = Arc<dyn Fn(Level, &str) + Send + Sync>;

/// Receives lines about links.
#[derive(Clone)]
pub struct Log {
    say: Say,
    seen: Arc<Mutex<HashMap<String, HashSet<String>>>>,
}

impl Log {
    /// Passes lines to `say`.
    pub fn new(say: impl Fn(Level, &str) + Send + Sync + 'static) -> Log {
        Log { say: Arc::new(say), seen: Arc::default() }
    }

    /// Logs a line.
    pub fn say(&self, level: Level, text: &str) {
        (self.say)(level, text);
    }

    /// Logs a warning, unless there was one about this subject before. Each kind has its own limit,
    /// so that any number of strangers leaves room for lines about neighbours.
    pub fn once(&self, kind: &str, subject: &str, text: &str) {
        let mut seen = self.seen.lock().expect("no thread panics while holding it");
        let seen = seen.entry(kind.to_string()).or_default();
        if seen.len() < REMEMBERED && seen.insert(subject.to_string()) {
            (self.say)(Level::Warning, text);
            if seen.len() == REMEMBERED {
                let text = format!("{kind}: {REMEMBERED} lines so far, and no more from here on");
                (self.say)(Level::Warning, &text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_do_not_silence_what_is_said_of_neighbours() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let to = lines.clone();
        let log = Log::new(move |_, line| to.lock().unwrap().push(line.to_string()));
        for stranger in 0..3000 {
            log.once("strangers", &stranger.to_string(), "a stranger");
        }
        log.once("bob", "terms", "refused bob: another experiment");
        log.once("bob", "terms", "refused bob: another experiment");
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), REMEMBERED + 2);
        assert!(lines[REMEMBERED].contains("no more"));
        assert!(lines[REMEMBERED + 1].contains("another experiment"));
    }
}
