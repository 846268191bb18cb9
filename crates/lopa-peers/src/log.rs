//! One line for each change of state, and one for each stranger.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// Strangers that are remembered; of those that come after them, it is only known how many.
const REMEMBERED: usize = 1000;

/// Where lines about links go.
#[derive(Clone)]
pub struct Log {
    say: Arc<dyn Fn(&str) + Send + Sync>,
    told: Arc<Mutex<HashSet<String>>>,
}

impl Log {
    /// Lines go to `say`.
    pub fn new(say: impl Fn(&str) + Send + Sync + 'static) -> Log {
        Log { say: Arc::new(say), told: Arc::default() }
    }

    /// Says it.
    pub fn say(&self, text: &str) {
        (self.say)(text);
    }

    /// Says it, if nothing was said of `what` before.
    pub fn once(&self, what: &str, text: &str) {
        let mut told = self.told.lock().expect("nobody panics with it");
        if told.len() < REMEMBERED && told.insert(what.to_string()) {
            (self.say)(text);
        }
    }
}
