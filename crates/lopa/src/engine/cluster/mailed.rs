//! Iterations whose messages are compressed, lost, late, clipped or lies: see [`crate::messages`].

use rayon::ThreadPool;
use rayon::prelude::*;

use super::{Cluster, Step, Team};
use crate::engine::Node;
use crate::error::Result;
use crate::math::real::Real;
use crate::messages::{Mail, Tally, Traffic};
use crate::network::Cursor;
use crate::network::mixed::Mixed;
use crate::network::outbox::{Outbox, Round};
use crate::problem::{Ask, Together};

impl<T: Real> Cluster<'_, T> {
    /// One iteration of every node, with messages as `[messages]` and `[attack]` say.
    pub(super) fn advance_by_mail(&mut self) -> Result<()> {
        let Cluster {
            team, messages, rounds, progress, transport, together, timing, traffic, ..
        } = self;
        let Some(traffic) = traffic else { return Ok(()) };
        let exchanges = team.nodes[0].algorithm.exchanges();
        let k = progress.k;
        for e in 0..exchanges {
            find_round(rounds.as_mut(), traffic, (k, e), progress.exchanges);
            traffic.begin((k, e), messages, team.pool)?;
            let round = Round { k, e };
            let step = Step { round, exchanges, messages, apart: together.is_some() };
            let scalar = traffic.scalar();
            let (mail, reach, out, into) = traffic.mail(e);
            let mut near = || team.step_by(&step, &mail, reach, false);
            transport.exchange(round, scalar, out, into, &mut near)?;
            if traffic.spans() {
                traffic.unpack((k, e))?;
                let (mail, reach, ..) = traffic.mail(e);
                team.step_by(&step, &mail, reach, true);
            }
            if let Some(together) = together {
                let (mail, ..) = traffic.mail(e);
                team.answer_by(&mut **together, e, &mail)?;
                let all = team.nodes.iter_mut().zip(&mut team.next).enumerate();
                all.for_each(|(i, (node, next))| {
                    node.share_by(round, exchanges, mail.is_awake(i), next);
                });
            }
            team.check()?;
            let length = messages[0].values().len() as u64;
            let (Tally { sent, lost, late, slept }, bytes) = traffic.tally(e);
            if let Some(timing) = timing {
                timing.note(&team.nodes, Some(k), progress.exchanges, traffic.wire(e));
                if transport.size() == 1 {
                    timing.pass_own();
                }
            }
            progress.exchanges += u64::from(length > 0);
            progress.floats += sent * length;
            progress.bytes += bytes;
            let all = &mut progress.tally;
            all.sent += sent;
            all.lost += lost;
            all.late += late;
            all.slept += slept;
            std::mem::swap(messages, &mut team.next);
        }
        progress.k += 1;
        Ok(())
    }
}

/// Goes to the links of a round. Where messages may be late, a run that was resumed finds again what the
/// same exchange carried one iteration before.
fn find_round<T: Real>(
    mut rounds: Option<&mut Cursor>,
    traffic: &mut Traffic<T>,
    at: (u64, usize),
    round: u64,
) {
    let forgot = traffic.forgot(at);
    if forgot {
        if let Some(rounds) = &mut rounds {
            rounds.go(round - traffic.rounds());
            traffic.turn(rounds.mixing());
        }
        traffic.recall(at);
    }
    if let Some(rounds) = rounds
        && (rounds.go(round) || forgot)
    {
        traffic.turn(rounds.mixing());
    }
}

type Work<'w, T> = (usize, ((&'w mut Node<T>, &'w mut Outbox<T>), &'w mut Vec<T>));

impl<T: Real> Team<'_, T> {
    /// Mixing, step and next message of the nodes that have neighbours in other processes, or of those
    /// that have none. A node that sleeps only says again what it said.
    fn step_by(&mut self, step: &Step<T>, mail: &Mail<T>, reach: &mut [Vec<T>], far: bool) {
        let Team { nodes, next, scratch, pool, .. } = self;
        let (&Step { round, exchanges, messages, apart }, pool) = (step, *pool);
        let Round { k, e } = round;
        let one = |(i, ((node, next), reach)): Work<T>| {
            if mail.is_far(i) != far {
                return;
            }
            let awake = mail.is_awake(i);
            if awake {
                let thread = pool.and_then(ThreadPool::current_thread_index).unwrap_or(0);
                let desk = &mut *mail.desk(thread);
                let scratch = &mut *scratch[thread].lock().expect("a step does not panic");
                mail.moved(i, messages[i].values(), reach, desk);
                let mixed = Mixed::moved(&messages[i], &desk.moved, scratch);
                if e == 0 {
                    node.oracle.begin(k);
                }
                node.algorithm.step(e, mixed, &mut node.oracle);
            }
            if !apart {
                if let Some(wanted) = node.algorithm.asks(e).filter(|_| awake) {
                    node.oracle.answer(wanted);
                }
                node.share_by(round, exchanges, awake, next);
            }
        };
        match pool {
            None => nodes.iter_mut().zip(next).zip(reach).enumerate().for_each(one),
            Some(pool) => pool.install(|| {
                nodes.par_iter_mut().zip(next).zip(reach).enumerate().for_each(one);
            }),
        }
    }

    /// Answers all nodes that take part and ask for directions, in one call.
    fn answer_by(
        &mut self,
        together: &mut dyn Together<T>,
        e: usize,
        mail: &Mail<T>,
    ) -> Result<()> {
        let mut asks: Vec<Ask<T>> = Vec::with_capacity(self.nodes.len());
        for (i, Node { algorithm, oracle }) in self.nodes.iter_mut().enumerate() {
            if mail.is_awake(i) {
                asks.extend(algorithm.asks(e).map(|wanted| oracle.ask(i, wanted)));
            }
        }
        if asks.is_empty() { Ok(()) } else { together.directions(&mut asks) }
    }
}

impl<T: Real> Node<T> {
    /// The rest of the step of a round, if the node took part in it, and the message of the next one.
    fn share_by(&mut self, round: Round, exchanges: usize, awake: bool, message: &mut Outbox<T>) {
        if awake {
            return self.share(round, exchanges, message);
        }
        message.clear();
        self.algorithm.share(round.next(exchanges), message);
    }
}
