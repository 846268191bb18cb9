//! One of several processes that share a work list.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::list::{Ledger, Next, Unit};
use super::notes::{Folder, Note, file_name};
use super::share::Share;
use crate::error::{Error, Result};

/// How many times a part raises its counter within the lease.
const BEATS: u32 = 8;

/// Who takes part: a share, on a host, in a process.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its share.
    pub share: Share,
    /// Its host.
    pub host: String,
    /// Differs from that of every other process, also of earlier ones.
    pub id: String,
    /// How long the counter of another part must stand still before its units are taken over.
    pub lease: Duration,
}

impl Member {
    /// This process.
    pub fn here(share: Share, lease: Duration) -> Member {
        let host = host();
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanos = since.map_or(0, |since| since.as_nanos());
        let id = format!("{}-of-{}-{host}-{}-{nanos}", share.number, share.of, std::process::id());
        Member { share, host, id, lease }
    }
}

/// The name of this machine: Slurm's, or the system's.
fn host() -> String {
    let of = |name: &str| std::env::var(name).ok().filter(|name| !name.trim().is_empty());
    let file = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = of("SLURMD_NODENAME")
        .or_else(file)
        .or_else(|| of("HOSTNAME"))
        .or_else(|| of("COMPUTERNAME"));
    name.map_or("this machine".into(), |name| name.trim().to_string())
}

/// The time since any moment, by this machine's own clock.
pub type Clock = Box<dyn Fn() -> Duration + Send>;

/// One of several processes that share a work list.
pub struct Part {
    folder: Folder,
    member: Member,
    clock: Clock,
    note: Note,
    results: BTreeMap<String, String>,
    doing: BTreeSet<String>,
    /// What was last seen of the holder of a unit, and when that changed.
    seen: BTreeMap<String, (Sight, Duration)>,
    /// The counter of every other part, and when it changed.
    beats: BTreeMap<String, (u64, Duration)>,
}

/// The n-th claim to a unit, its holder, and the holder's counter if it says that it is at work on the unit.
type Sight = (u64, String, Option<u64>);

impl Part {
    /// Joins the parts that share some work in a folder; `work` identifies it.
    pub fn join(folder: &Path, work: &str, member: Member, clock: Clock) -> Result<Part> {
        let folder = Folder::new(folder);
        folder.make(work, &member.id)?;
        let note = Note {
            part: member.share.to_string(),
            host: member.host.clone(),
            beat: 0,
            doing: Vec::new(),
            done: 0,
            ended: false,
            error: None,
        };
        let (results, doing) = (BTreeMap::new(), BTreeSet::new());
        let (seen, beats) = (BTreeMap::new(), BTreeMap::new());
        let mut part = Part { folder, member, clock, note, results, doing, seen, beats };
        part.beat()?;
        Ok(part)
    }

    /// The units that this part has done.
    pub fn done(&self) -> usize {
        self.note.done
    }

    /// Raises the counter.
    pub fn beat(&mut self) -> Result<()> {
        self.note.beat += 1;
        self.note.doing = self.doing.iter().cloned().collect();
        self.folder.say(&self.member.id, &self.note)
    }

    /// Ends this part: other parts may do its units at once.
    pub fn leave(&mut self, error: Option<&Error>) -> Result<()> {
        self.doing.clear();
        self.note.ended = true;
        self.note.error = error.map(|error| (error.message.clone(), error.hint.clone()));
        self.beat()
    }

    /// Reads the results that other parts have kept since.
    fn learn(&mut self, units: &[Unit]) -> Result<()> {
        let there: BTreeSet<String> = self.folder.results()?.into_iter().collect();
        for unit in units.iter().filter(|unit| there.contains(&file_name(&unit.name))) {
            self.learn_one(unit);
        }
        Ok(())
    }

    /// Whether the result of a unit is known now.
    fn learn_one(&mut self, unit: &Unit) -> bool {
        if !self.results.contains_key(&unit.name) {
            // A damaged result counts as none: the unit is done again.
            let Some(result) = self.folder.result(unit) else { return false };
            self.results.insert(unit.name.clone(), result);
        }
        true
    }

    /// Whether the n-th claim to a unit is void: its holder has ended, or has shown no sign of work on it for the
    /// lease.
    fn is_void(&mut self, unit: &Unit, n: u64, now: Duration) -> bool {
        let holder = self.folder.holder(unit, n);
        if holder == self.member.id {
            return true;
        }
        let note = self.folder.note(&holder);
        if note.as_ref().is_some_and(|note| note.ended) {
            return true;
        }
        let beat = note.filter(|note| note.doing.contains(&unit.name)).map(|note| note.beat);
        let sight = (n, holder, beat);
        match self.seen.get(&unit.name) {
            Some((known, since)) if *known == sight => {
                now.saturating_sub(*since) >= self.member.lease
            }
            _ => {
                self.seen.insert(unit.name.clone(), (sight, now));
                false
            }
        }
    }
}

impl Ledger for Part {
    fn next(&mut self, units: &[Unit]) -> Result<Next> {
        self.learn(units)?;
        let mut left: Vec<usize> =
            (0..units.len()).filter(|&at| !self.results.contains_key(&units[at].name)).collect();
        left.retain(|&at| !self.doing.contains(&units[at].name));
        if left.is_empty() {
            return Ok(Next::Over);
        }
        left.sort_by_key(|&at| self.member.share.place(at));
        let claims = self.folder.claims()?;
        let now = (self.clock)();
        for at in left {
            let unit = &units[at];
            let n = match claims.get(&file_name(&unit.name)) {
                None => 1,
                Some(&n) if self.is_void(unit, n, now) => n + 1,
                Some(_) => continue,
            };
            if !self.folder.claim(unit, n, &self.member.id)? {
                continue;
            }
            // The holder before may have finished just now.
            if self.learn_one(unit) {
                continue;
            }
            self.doing.insert(unit.name.clone());
            self.beat()?;
            return Ok(Next::Do(at));
        }
        Ok(Next::Wait)
    }

    fn keep(&mut self, unit: &Unit, result: &str) -> Result<()> {
        self.folder.keep(unit, result, (&self.member.id, &self.note))?;
        self.results.insert(unit.name.clone(), result.to_string());
        self.doing.remove(&unit.name);
        self.note.done += 1;
        self.beat()
    }

    fn result(&self, unit: &Unit) -> Option<String> {
        self.results.get(&unit.name).cloned()
    }

    fn give_up(&mut self, unit: &Unit) {
        self.doing.remove(&unit.name);
    }

    /// `12 of 21 done; at work: part 1/4 on n1, part 2/4 on n1; silent: part 3/4 on n2`
    fn progress(&mut self, units: &[Unit]) -> Option<String> {
        let now = (self.clock)();
        let done = units.iter().filter(|unit| self.results.contains_key(&unit.name)).count();
        let (mut working, mut silent) = (Vec::new(), Vec::new());
        for (id, note) in self.folder.notes().ok()? {
            let own = id == file_name(&self.member.id);
            if note.ended || own && self.doing.is_empty() {
                continue;
            }
            let (known, since) = self.beats.entry(id).or_insert((note.beat, now));
            if *known != note.beat {
                (*known, *since) = (note.beat, now);
            }
            let quiet = now.saturating_sub(*since);
            if !own && quiet > self.member.lease / 2 {
                silent.push(format!("{} for {} s", note.name(), quiet.as_secs()));
            } else if !note.doing.is_empty() {
                working.push(note.name());
            }
        }
        let mut line = format!("{done} of {} done", units.len());
        for (what, parts) in [("at work", working), ("silent", silent)] {
            if !parts.is_empty() {
                line += &format!("; {what}: {}", parts.join(", "));
            }
        }
        Some(line)
    }
}

/// A part whose counter is raised in the background, until it is dropped.
pub struct Beating {
    part: Arc<Mutex<Part>>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Beating {
    /// [Joins](Part::join) the parts in a folder.
    pub fn join(folder: &Path, work: &str, member: Member) -> Result<Beating> {
        let begun = Instant::now();
        let period = member.lease / BEATS;
        let part = Part::join(folder, work, member, Box::new(move || begun.elapsed()))?;
        let part = Arc::new(Mutex::new(part));
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let thread = std::thread::spawn({
            let (part, stop) = (part.clone(), stop.clone());
            move || {
                let (stopped, bell) = &*stop;
                let mut stopped = stopped.lock().expect("nothing panics");
                while !*stopped {
                    stopped = bell.wait_timeout(stopped, period).expect("nothing panics").0;
                    if let (false, Ok(mut part)) = (*stopped, part.lock()) {
                        // A folder that is away for a while comes back, or the work itself fails.
                        let _ = part.beat();
                    }
                }
            }
        });
        Ok(Beating { part, stop, thread: Some(thread) })
    }

    /// The part.
    pub fn part(&self) -> &Mutex<Part> {
        &self.part
    }

    /// Ends this part; `done` is how its work went. Returns the units that it has done.
    pub fn leave<R>(self, done: &Result<R>) -> usize {
        let mut part = self.part.lock().expect("no worker panics");
        // If this fails, the lease ends it.
        let failed = done.as_ref().err().filter(|error| !error.id.ends_with("/interrupted"));
        let _ = part.leave(failed);
        part.done()
    }
}

impl Drop for Beating {
    fn drop(&mut self) {
        let (stopped, bell) = &*self.stop;
        if let Ok(mut stopped) = stopped.lock() {
            *stopped = true;
        }
        bell.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
