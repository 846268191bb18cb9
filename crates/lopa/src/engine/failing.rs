//! Clocks where links and nodes fail: whom a node waits for.
//!
//! A node waits for what it uses. A link that carries nothing keeps nobody waiting, since both ends know.
//! A node that sleeps neither computes nor waits: its clock stands still. What is late is not waited for
//! until it is used: one iteration later, if the link is late again; otherwise with what is carried
//! then, because a link delivers in order.

use crate::messages::{Failures, Fate};
use crate::network::Mixing;
use crate::network::time::Timetable;
use crate::store::bytes::{Reader, Writer};

/// What becomes of messages, as far as clocks depend on it.
pub struct Failing {
    failures: Failures,
    awake: Vec<bool>,
    fates: Vec<Vec<Fate>>,     // by receiver and sender
    at: (Option<u64>, usize),  // the iteration, and the exchange in it
    late: Vec<Vec<Vec<Late>>>, // by exchange, receiver and sender, where messages may be late
}

/// What a way carried that nobody has waited for yet.
#[derive(Debug, Clone, Copy)]
struct Late {
    there: u64,     // when it is there, in nanoseconds; 0 if somebody has waited for it
    k: Option<u64>, // the last iteration in which the way carried something
}

/// In place of an iteration that never was.
const NEVER: u64 = u64::MAX;

impl Failing {
    /// Nothing was sent yet, over the links of this W, in so many exchanges an iteration.
    pub fn new(failures: Failures, mixing: &Mixing, exchanges: usize) -> Failing {
        let m = mixing.nodes();
        let near = |i: usize| mixing.row(i).iter().filter(move |(j, _)| *j != i).count();
        let nothing = Late { there: 0, k: None };
        let each = |_| (0..m).map(|i| vec![nothing; near(i)]).collect();
        let exchanges = if failures.delays() { exchanges } else { 0 };
        Failing {
            awake: vec![true; m],
            fates: (0..m).map(|i| vec![Fate::default(); near(i)]).collect(),
            at: (None, 0),
            late: (0..exchanges).map(each).collect(),
            failures,
        }
    }

    /// Moves all clocks over a round of iteration `k`: see [`Timetable::pass`].
    pub fn pass(
        &mut self,
        table: &Timetable,
        clocks: &mut [u64],
        exchange: Option<(&Mixing, u64)>,
        k: u64,
        compute: impl Fn(usize) -> u64,
        memory: (&mut [u64], &mut [u64]),
    ) {
        self.at = match self.at {
            (Some(before), e) if before == k => (Some(k), e + 1),
            _ => (Some(k), 0),
        };
        let Failing { failures, awake, fates, late, at: (_, e) } = self;
        failures.wake(k, awake);
        if let Some((mixing, _)) = exchange {
            table.each_way(mixing, |i, j, place| {
                fates[i][place] = failures.between(k, awake, (i, j));
            });
        }
        let mut late = late.get_mut(*e);
        let carries = |i: usize, place: usize| fates[i][place].up;
        let waits = |i: usize, place: usize, there: u64| match &mut late {
            None => there,
            Some(late) => late[i][place].wait(fates[i][place].late, k, there),
        };
        table.pass_where(clocks, exchange, Some(k), compute, memory, (carries, waits));
    }

    pub fn save(&self, out: &mut Writer) {
        for Late { there, k } in self.late.iter().flatten().flatten() {
            out.u64(*there);
            out.u64(k.unwrap_or(NEVER));
        }
    }

    /// Restores what was saved, between two iterations; `None` if it does not fit.
    pub fn restore(&mut self, bytes: &mut Reader) -> Option<()> {
        self.at = (None, 0);
        for late in self.late.iter_mut().flatten().flatten() {
            let (there, k) = (bytes.u64()?, bytes.u64()?);
            *late = Late { there, k: (k != NEVER).then_some(k) };
        }
        Some(())
    }
}

impl Late {
    /// When what a node uses in iteration `k` is there, if what is sent then is there at `there`.
    fn wait(&mut self, late: bool, k: u64, there: u64) -> u64 {
        let Late { there: since, k: before } = *self;
        // A link delivers in order.
        let there = there.max(since);
        *self = Late { there: if late { there } else { 0 }, k: Some(k) };
        match (late, before) {
            (false, _) => there,
            // What was carried an iteration before is used, if something was.
            (true, Some(before)) if before + 1 == k => since,
            (true, _) => 0,
        }
    }
}
