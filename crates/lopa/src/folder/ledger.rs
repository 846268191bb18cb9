//! The ledger of a file of data: which runs have reserved how much of the privacy budget of its rows.
//!
//! A ledger belongs to the content of a file, not to its name, and lies outside of all run folders. Entries are only appended, and
//! are on disk before a run computes anything. Beside it is the key from which the noise of all runs on these rows is drawn.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::machine::now;
use crate::data::Origin;
use crate::error::{Error, Result};
use crate::math::number;
use crate::problem::private::Key;
use crate::run::private::{fresh, spent};
use crate::run::reserved::{Claim, Reservation, Reserved};
use crate::store::bytes::hex;
use crate::store::disk::{self, Log};
use crate::store::files::create_private;

/// The variable that names the folder of all ledgers.
pub const VARIABLE: &str = "LOPA_PRIVACY_DIR";

/// A line of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Line {
    /// The most that all runs together may spend.
    Limit {
        /// ε.
        epsilon: f64,
        /// δ.
        delta: f64,
        /// When it was set.
        at: String,
    },
    /// A run.
    Run {
        /// Its hash.
        run: String,
        /// The experiment's name.
        name: String,
        /// ε.
        epsilon: f64,
        /// δ.
        delta: f64,
        /// When it began.
        at: String,
    },
    /// The iterations of a run that may have been sent.
    Claim {
        /// Its hash.
        run: String,
        /// All before this one.
        until: u64,
        /// How many were repeated.
        repeated: u64,
    },
}

/// A ledger, locked for this process.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    name: String, // of the file of data
    log: Log,
    lines: Vec<Line>,
}

/// The folder of all ledgers of this user.
pub fn folder() -> Result<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = named(VARIABLE).map(PathBuf::from);
    let state = || Some(PathBuf::from(named("XDG_STATE_HOME")?).join("lopa/privacy"));
    let home = || Some(PathBuf::from(named("HOME")?).join(".local/state/lopa/privacy"));
    own.or_else(state).or_else(home).ok_or_else(|| {
        let message = "there is no folder for the ledger of `[privacy]`";
        Error::storage("privacy/no-folder", message).hint(format!("name one in {VARIABLE}"))
    })
}

impl Ledger {
    /// Opens the ledger of a file of data, or begins one.
    pub fn open(folder: &Path, origin: &Origin) -> Result<Ledger> {
        let path = folder.join(format!("{}.jsonl", origin.sha256));
        let failed = |error: io::Error| cannot(&path, &error);
        disk::make_folder(folder).map_err(failed)?;
        let mut log = Log::open(&path, false).map_err(failed)?;
        if !log.lock().map_err(failed)? {
            let message = format!("another run on {} is under way", origin.name);
            return Err(Error::storage("privacy/locked", message)
                .at(path.display().to_string())
                .hint("wait until it has ended: both would spend the same budget"));
        }
        let text =
            String::from_utf8(disk::read(&path).map_err(failed)?).map_err(|_| damaged(&path, 1))?;
        // A line without an end was never confirmed.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            log.cut(whole as u64).map_err(failed)?;
        }
        let read = |(at, line): (usize, &str)| {
            let line: Line = serde_json::from_str(line).map_err(|_| damaged(&path, at + 1))?;
            if line.is_sound() { Ok(line) } else { Err(damaged(&path, at + 1)) }
        };
        let lines = text[..whole].lines().enumerate().map(read).collect::<Result<_>>()?;
        Ok(Ledger { name: origin.name.clone(), log, lines, path })
    }

    /// Its lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// ε and δ that all runs together may spend; `None` before the first run.
    pub fn limit(&self) -> Option<(f64, f64)> {
        self.lines.iter().rev().find_map(|line| match line {
            Line::Limit { epsilon, delta, .. } => Some((*epsilon, *delta)),
            _ => None,
        })
    }

    /// ε and δ of all runs: budgets add up.
    pub fn spent(&self) -> (f64, f64) {
        self.lines.iter().fold((0.0, 0.0), |(e, d), line| match line {
            Line::Run { epsilon, delta, .. } => (e + epsilon, d + delta),
            _ => (e, d),
        })
    }

    /// Sets the limit: a decision of the rows' owner.
    pub fn allow(&mut self, epsilon: f64, delta: f64) -> Result<()> {
        self.append(Line::Limit { epsilon, delta, at: now() })
    }

    /// Checks that a run is within the limit. The first run sets the limit, if the owner has not.
    fn check(&self, reservation: &Reservation) -> Result<()> {
        let Some((most, most_delta)) = self.limit() else { return Ok(()) };
        let ((epsilon, delta), new) = (self.spent(), reservation);
        let fits = |sum: f64, most: f64| sum <= most * (1.0 + 1e-9);
        let known = self.claim(&new.run).is_some();
        if known || fits(epsilon + new.epsilon, most) && fits(delta + new.delta, most_delta) {
            return Ok(());
        }
        let message = format!(
            "the rows of {} have spent epsilon = {} and delta = {} of {} and {}: this run would add {} and {}",
            self.name,
            number(epsilon),
            number(delta),
            number(most),
            number(most_delta),
            number(new.epsilon),
            number(new.delta),
        );
        Err(spent(message)
            .at(self.path.display().to_string())
            .hint("give it less, or let the owner of the rows decide: `lopa privacy allow`"))
    }

    /// Enters a run; one that was entered before is not entered again.
    fn enter(&mut self, Reservation { run, name, epsilon, delta }: &Reservation) -> Result<()> {
        if self.claim(run).is_some() {
            return Ok(());
        }
        if self.limit().is_none() {
            self.allow(*epsilon, *delta)?;
        }
        let (run, name, at) = (run.clone(), name.clone(), now());
        self.append(Line::Run { run, name, epsilon: *epsilon, delta: *delta, at })
    }

    /// The last claim of a run that was entered.
    fn claim(&self, of: &str) -> Option<Claim> {
        self.lines.iter().rev().find_map(|line| match line {
            Line::Claim { run, until, repeated } if run == of => {
                Some(Claim { until: *until, repeated: *repeated })
            }
            Line::Run { run, .. } if run == of => Some(Claim::default()),
            _ => None,
        })
    }

    fn append(&mut self, line: Line) -> Result<()> {
        let text = serde_json::to_string(&line).expect("a line is JSON") + "\n";
        let written = self.log.write(text.as_bytes()).and_then(|()| self.log.sync());
        written.map_err(|error| cannot(&self.path, &error))?;
        self.lines.push(line);
        Ok(())
    }

    /// The secret of the rows' owner: drawn when it is first needed, and readable by this user alone.
    fn key(&self) -> Result<Key> {
        let path = self.path.with_extension("key");
        let read =
            |path: &Path| fs::read(path).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        if path.exists() {
            return read(&path).map(Key).ok_or_else(|| damaged(&path, 1));
        }
        let key = fresh()?;
        create_private(&path, &key).map_err(|error| cannot(&path, &error))?;
        Ok(Key(key))
    }
}

/// The ledgers of all files of a run, and the run.
#[derive(Debug)]
pub struct Ledgers {
    each: Vec<Ledger>,
    run: String,
}

impl Ledgers {
    /// Reserves the budget of a run at every file, or at none.
    pub fn reserve(
        folder: &Path,
        origins: &[Origin],
        reservation: &Reservation,
    ) -> Result<(Ledgers, Reserved)> {
        let each = origins.iter().map(|origin| Ledger::open(folder, origin));
        let mut each = each.collect::<Result<Vec<_>>>()?;
        let mut key = Key([0; 32]);
        for ledger in &each {
            key = key.and(&ledger.key()?);
        }
        // With another key, the same run has other noise: it is another run.
        let run = hex(&key.of(&reservation.run).0);
        let reservation = &Reservation { run: run.clone(), ..reservation.clone() };
        each.iter().try_for_each(|ledger| ledger.check(reservation))?;
        let mut claim = Claim::default();
        for ledger in &mut each {
            ledger.enter(reservation)?;
            let one = ledger.claim(&run).unwrap_or_default();
            claim.until = claim.until.max(one.until);
            claim.repeated = claim.repeated.max(one.repeated);
        }
        Ok((Ledgers { each, run }, Reserved { key, claim }))
    }

    /// Enters a claim of the run.
    pub fn claim(&mut self, Claim { until, repeated }: Claim) -> Result<()> {
        let run = &self.run;
        let line = || Line::Claim { run: run.clone(), until, repeated };
        self.each.iter_mut().try_for_each(|ledger| ledger.append(line()))
    }
}

impl Line {
    /// Whether its numbers may be those of a budget.
    fn is_sound(&self) -> bool {
        let budget = |epsilon: f64, delta: f64| epsilon > 0.0 && delta > 0.0 && delta < 1.0;
        match self {
            Line::Limit { epsilon, delta, .. } | Line::Run { epsilon, delta, .. } => {
                budget(*epsilon, *delta)
            }
            Line::Claim { .. } => true,
        }
    }
}

fn cannot(path: &Path, error: &io::Error) -> Error {
    let hint = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space".into(),
        _ => format!("name another folder in {VARIABLE}"),
    };
    Error::storage("privacy/ledger", format!("the ledger cannot be used: {error}"))
        .at(path.display().to_string())
        .hint(hint)
}

fn damaged(path: &Path, line: usize) -> Error {
    Error::storage("privacy/ledger", format!("the ledger is damaged in line {line}"))
        .at(path.display().to_string())
        .hint("restore it from a backup: without it, what its rows have spent is unknown")
}
