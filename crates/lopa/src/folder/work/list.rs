//! A list of independent units, and the workers that walk it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rayon::ThreadPool;

use crate::error::{Error, Kind, Result};
use crate::math::parallel;

/// How long a worker sleeps before it asks for a unit again.
const PAUSE: Duration = Duration::from_millis(500);

/// A unit of work: it depends on no other unit of its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its name, which is the same in every process.
    pub name: String,
    /// Its name in messages.
    pub shown: String,
    /// All that another process needs to do it, beside the experiment.
    pub task: String,
}

/// What a worker does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The unit with this index.
    Do(usize),
    /// Nothing yet: other parts are at work on the rest, and one of them may die.
    Wait,
    /// Nothing more: the other workers of this process do the rest.
    Over,
}

/// Hands out the units of a list, and keeps their results.
pub trait Ledger: Send {
    /// The next unit for a worker of this process.
    fn next(&mut self, units: &[Unit]) -> Result<Next>;
    /// Keeps the result of a unit.
    fn keep(&mut self, unit: &Unit, result: &str) -> Result<()>;
    /// The result of a unit, if it is known.
    fn result(&self, unit: &Unit) -> Option<String>;
    /// A worker did not finish a unit.
    fn give_up(&mut self, _unit: &Unit) {}
    /// Progress over all parts, for a user who waits; `None` where this process works alone.
    fn progress(&mut self, _units: &[Unit]) -> Option<String> {
        None
    }
}

/// The error of work that was interrupted.
pub fn interrupted() -> Error {
    Error::new(Kind::Run, "run/interrupted", "interrupted")
        .hint("what is done is kept: the same command resumes")
}

/// Does the units of a list on the threads of a pool; returns all results in the order of the units, those of other
/// parts included. `progress` receives that of all parts, after every unit and while this part waits.
pub fn walk<L: Ledger + ?Sized>(
    ledger: &Mutex<L>,
    units: &[Unit],
    (pool, interrupt): (Option<&ThreadPool>, &AtomicBool),
    one: &(dyn Fn(&Unit) -> Result<String> + Sync),
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Vec<String>> {
    let stop = AtomicBool::new(false);
    let workers = pool.map_or(1, ThreadPool::current_num_threads).min(units.len());
    let ended = parallel::map(pool, 0..workers, |_| {
        let stopped = || interrupt.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
        let done = work(ledger, units, &stopped, &mut |unit| one(unit), progress);
        stop.fetch_or(done.is_err(), Ordering::Relaxed);
        done
    });
    // The error of the first unit, so that it does not depend on the number of threads.
    let failed = ended.into_iter().filter_map(Result::err).min_by_key(|(at, _)| *at);
    finish(ledger, units, failed.map_or(Ok(()), |(_, error)| Err(error)), interrupt)
}

/// The same on this thread.
pub fn walk_alone<L: Ledger + ?Sized>(
    ledger: &Mutex<L>,
    units: &[Unit],
    interrupt: &AtomicBool,
    one: &mut dyn FnMut(&Unit) -> Result<String>,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Vec<String>> {
    let stopped = || interrupt.load(Ordering::Relaxed);
    let done = work(ledger, units, &stopped, one, progress).map_err(|(_, error)| error);
    finish(ledger, units, done, interrupt)
}

/// Does units somewhere else in any order, and passes on the result of each with its index.
pub type Sender<'a> =
    dyn Fn(&[Unit], &mut dyn FnMut(usize, String) -> Result<()>) -> Result<()> + Sync + 'a;

/// The same where a function does the units somewhere else.
pub fn walk_sent<L: Ledger + ?Sized>(
    ledger: &Mutex<L>,
    units: &[Unit],
    interrupt: &AtomicBool,
    send: &Sender,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Vec<String>> {
    let free = || ledger.lock().expect("no worker panics");
    while !interrupt.load(Ordering::Relaxed) {
        let mut taken: Vec<Unit> = Vec::new();
        let next = loop {
            match free().next(units)? {
                Next::Do(at) => taken.push(units[at].clone()),
                next => break next,
            }
        };
        if !taken.is_empty() {
            send(&taken, &mut |at, result| match taken.get(at) {
                Some(unit) => free().keep(unit, &result),
                None => Err(Error::config("config/out-of-range", format!("there is no unit {at}"))),
            })?;
        } else if next == Next::Over {
            break;
        } else {
            pause(ledger, units, progress);
        }
    }
    finish(ledger, units, Ok(()), interrupt)
}

/// Waits for other parts.
fn pause<L: Ledger + ?Sized>(ledger: &Mutex<L>, units: &[Unit], progress: &dyn Fn(&str)) {
    let line = ledger.lock().expect("no worker panics").progress(units);
    line.iter().for_each(|line| progress(&format!("waiting for other parts: {line}")));
    std::thread::sleep(PAUSE);
}

fn finish<L: Ledger + ?Sized>(
    ledger: &Mutex<L>,
    units: &[Unit],
    done: Result<()>,
    interrupt: &AtomicBool,
) -> Result<Vec<String>> {
    done?;
    let ledger = ledger.lock().expect("no worker panics");
    match units.iter().map(|unit| ledger.result(unit)).collect() {
        Some(all) => Ok(all),
        None if interrupt.load(Ordering::Relaxed) => Err(interrupted()),
        None => Err(Error::new(Kind::Run, "share/missing", "a result was lost while it was read")
            .hint("run the same command again")),
    }
}

/// One worker: does units until nothing is left. The error has the index of its unit.
fn work<L: Ledger + ?Sized>(
    ledger: &Mutex<L>,
    units: &[Unit],
    stopped: &dyn Fn() -> bool,
    one: &mut dyn FnMut(&Unit) -> Result<String>,
    progress: &dyn Fn(&str),
) -> Result<(), (usize, Error)> {
    let free = || ledger.lock().expect("no worker panics");
    while !stopped() {
        let next = free().next(units).map_err(|error| (units.len(), error))?;
        let at = match next {
            Next::Do(at) => at,
            Next::Over => break,
            Next::Wait => {
                pause(ledger, units, progress);
                continue;
            }
        };
        let unit = &units[at];
        let done = one(unit).and_then(|result| free().keep(unit, &result));
        done.map_err(|error| {
            free().give_up(unit);
            (at, error)
        })?;
        let line = free().progress(units);
        line.iter().for_each(|line| progress(line));
    }
    Ok(())
}
