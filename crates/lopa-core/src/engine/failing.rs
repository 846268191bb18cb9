//! Clocks where links and nodes fail.
//!
//! A node waits only for the messages that it uses. A link that carries nothing causes no waiting,
//! because both ends compute its failure. An inactive node neither computes nor waits: its clock
//! stands still. A late message is not waited for until it is used: one iteration later, if the
//! link is late again; otherwise it arrives with the next message, because a link delivers in
//! order.

use crate::engine::messages::{Failures, Fate};
use crate::network::Mixing;
use crate::network::time::Timetable;
use crate::store::bytes::{Reader, Writer};

/// The failures of messages that affect the clocks.
pub struct Failing {
    failures: Failures,
    awake: Vec<bool>,
    fates: Vec<Vec<Fate>>,     // by receiver and sender
    at: (Option<u64>, usize),  // the iteration, and the exchange in it
    late: Vec<Vec<Vec<Late>>>, // by exchange, receiver and sender, where messages may be late
}

/// A late message that no receiver has waited for yet.
#[derive(Debug, Clone, Copy)]
struct Late {
    there: u64,     // when it arrives, in nanoseconds; 0 if its receiver has waited for it
    k: Option<u64>, // the last iteration in which the edge carried a message
}

/// Stands for no iteration.
const NEVER: u64 = u64::MAX;

impl Failing {
    /// No messages yet, over the links of this W, with this many exchanges per iteration.
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

    /// Advances all clocks by a round of iteration `k`: see [`Timetable::pass`].
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

    /// Restores the saved state, between two iterations; `None` if it does not fit.
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
    /// When the message that a node uses in iteration `k` arrives, if the one sent then arrives at
    /// `there`.
    fn wait(&mut self, late: bool, k: u64, there: u64) -> u64 {
        let Late { there: since, k: before } = *self;
        // A link delivers in order.
        let there = there.max(since);
        *self = Late { there: if late { there } else { 0 }, k: Some(k) };
        match (late, before) {
            (false, _) => there,
            // The message of the previous iteration is used, if there was one.
            (true, Some(before)) if before + 1 == k => since,
            (true, _) => 0,
        }
    }
}
