//! A search that ends in time: a second thread watches the clock and the signals during the search.

use std::process::ExitCode;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lopa::error::Result;
use lopa_study::init::{Heard, Written};

use super::End;

/// How often the clock and the signals are checked.
const LOOK: Duration = Duration::from_millis(50);

/// How often progress is reported to the user.
const WORD: Duration = Duration::from_secs(10);

/// The state that both threads share.
#[derive(Default)]
struct Known {
    draft: Option<Written>,
    over: bool,
}

/// The search: reports its steps, and passes on a draft as soon as it has one.
type Search<'a> = dyn Fn(&dyn Fn(Heard)) -> Result<Written> + 'a;

/// Runs a search, and ends this process with its best draft once the time is up or a signal arrives.
pub fn watched(end: &End, search: &Search) -> Result<ExitCode> {
    let (known, changed) = (Mutex::new(Known::default()), Condvar::new());
    let hear = |heard: Heard| match heard {
        Heard::Doing(what) => end.output.note(what),
        Heard::Draft(draft) => lock(&known).draft = Some(draft),
    };
    let found = std::thread::scope(|scope| {
        scope.spawn(|| watch(end, &known, &changed));
        let _over = Over(&known, &changed);
        search(&hear)
    });
    match (found, end.signals.code()) {
        (_, Some(code)) => Ok(ExitCode::from(interrupted(end, lock(&known).draft.take(), code)?)),
        (found, None) => {
            end.write(&found?, None)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Informs the watcher that the search is over, also when it panics. The watcher may be ending the
/// process just then: it does not give the lock back.
struct Over<'a>(&'a Mutex<Known>, &'a Condvar);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        lock(self.0).over = true;
        self.1.notify_all();
    }
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch(end: &End, known: &Mutex<Known>, changed: &Condvar) {
    let (start, mut word) = (Instant::now(), WORD);
    let mut now = lock(known);
    while !now.over {
        let passed = start.elapsed();
        if let Some(code) = end.signals.code() {
            leave(end, interrupted(end, now.draft.take(), code));
        }
        if passed.as_secs() >= end.seconds && now.draft.is_some() {
            let draft = now.draft.take();
            let why = format!("stopped after {} s", end.seconds);
            let done = draft.map_or(Ok(()), |draft| end.write(&draft, Some(&why)));
            leave(end, done.map(|()| 0));
        }
        if passed >= word {
            word += WORD;
            end.output.note(&format!("... {} s of {} s", passed.as_secs(), end.seconds));
        }
        now = changed.wait_timeout(now, LOOK).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Writes the current draft after a signal.
fn interrupted(end: &End, draft: Option<Written>, code: u8) -> Result<u8> {
    match draft {
        Some(draft) => end.write(&draft, Some("interrupted"))?,
        None => end.output.warn("interrupted: nothing was written"),
    }
    Ok(code)
}

/// Ends the process: the search may be far from a place where it could stop.
fn leave(end: &End, done: Result<u8>) -> ! {
    let code = done.unwrap_or_else(|error| {
        end.output.fail(&error);
        error.kind.exit_code()
    });
    std::process::exit(i32::from(code))
}
