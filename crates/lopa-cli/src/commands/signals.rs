//! Ctrl-C and SIGTERM: the first requests a clean stop, the second ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lopa::error::{Error, Result};

/// The signals received so far.
#[derive(Default)]
pub struct Signals {
    either: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
}

impl Signals {
    pub fn listen() -> Result<Signals> {
        let signals = Signals::default();
        signals.register().map_err(|error| {
            Error::config("config/signals", format!("cannot listen to signals: {error}"))
        })?;
        Ok(signals)
    }

    #[cfg(not(windows))]
    fn register(&self) -> std::io::Result<()> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use signal_hook::flag;

        for (signal, code) in [(SIGINT, 130), (SIGTERM, 143)] {
            flag::register_conditional_shutdown(signal, code, self.either.clone())?;
            flag::register(signal, self.either.clone())?;
        }
        flag::register(SIGTERM, self.terminated.clone())?;
        Ok(())
    }

    /// Windows has no signals: its console says that Ctrl-C was pressed.
    #[cfg(windows)]
    fn register(&self) -> std::io::Result<()> {
        let either = self.either.clone();
        let pressed = move || {
            if either.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        };
        ctrlc::set_handler(pressed).map_err(std::io::Error::other)
    }

    /// Set once a clean stop was requested.
    pub fn interrupt(&self) -> &AtomicBool {
        &self.either
    }

    /// The same, for another thread.
    #[cfg(feature = "peers")]
    pub fn shared(&self) -> Arc<AtomicBool> {
        self.either.clone()
    }

    /// The exit code of the signal, if one was received.
    pub fn code(&self) -> Option<u8> {
        let stopped = self.either.load(Ordering::Relaxed);
        let terminated = self.terminated.load(Ordering::Relaxed);
        stopped.then_some(if terminated { 143 } else { 130 })
    }
}
