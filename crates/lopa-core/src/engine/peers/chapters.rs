//! Members that leave, and how the others agree on it.
//!
//! The members of a *chapter* are the same throughout. If one of them is silent for long, or says
//! good-bye, the members agree who is gone and from which position those that stay continue, the *cut*: the
//! last one that all of them can resume from. That begins the next chapter. If it turns out that nobody is
//! gone, the next chapter has the same members, and repeats the iterations since the cut.
//!
//! **Agreement.** It is Paxos with the members of the chapter as acceptors. Each member signs *statements*, and all
//! pass them on, again and again; the last one of each member counts. A member that waits, and judges that others
//! are gone, begins a *ballot*. All members promise to follow it and no lower one, stop where they are, and state where
//! they can resume from and what they accepted last. The owner of the ballot waits for the promises of more than half of
//! the members, and of all that are not gone in its judgement. If the promises leave it possible that an earlier ballot
//! was agreed, it proposes the same again; if not, the nodes that are gone in its judgement, and the cut. Members accept
//! a proposal if they judge alike and can continue there, or if they also see that it may have been agreed. What more
//! than half have accepted in a ballot is agreed. If nothing comes of a ballot, another member begins a higher one.
//!
//! **Safety.** At most one outcome is agreed per chapter, because any two majorities have a common member. So of two
//! halves of a network at most one goes on. A member judges by what it receives itself, not because others say so: a node
//! that lives is left out only if those that judge it gone, with the members that are silent themselves, are more than half.
//! Statements are on disk before they are sent.
//!
//! **Liveness.** Once faults cease, ballots succeed each other until one is agreed, because members wait for different
//! times. That needs more than half of the members, at least two, connected in the graph of the run. A smaller part
//! begins no ballot: it waits for the others until the deadline, and then says why.
//!
//! **The end of a run.** A member that has everything of a run keeps its checkpoints until all members have: until then one of
//! them may lack messages of a node that is gone, and all must go back. From then on each ends the run by itself, and
//! the next chapter begins with the next run at the earliest.
//!
//! A node that was left out receives the statements that say so as soon as it reaches a member.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::frame::{Frame, FrameResult, Kind as FrameKind, author, run_id};
use super::settings::{Note, Policy};
use super::status::END;
use super::{Peers, Place};
use crate::engine::refusal::Refusal;
use crate::engine::wire::Wire;
use crate::error::{Error, Kind, Result};
use crate::network::Graph;
use crate::store::bytes::{Hash, Reader, Writer, hex};

/// The most bytes of a statement.
const BYTES: usize = 1 << 14;

/// A ballot that leads to nothing is given up after this many intervals between two requests, and this many more for
/// each member before this one.
const PATIENCE: u32 = 8;
const PER_MEMBER: u32 = 4;

/// Precedes what identifies a chapter.
const CONTEXT: &[u8] = b"lopa chapter";

/// The id of the error that ends a chapter: the caller begins the next one.
pub const NEXT: &str = "peers/chapter";

/// Where a node can continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The index of a run in the experiment.
    pub job: u32,
    /// The iterations done; `None` for the start of the run.
    pub k: Option<u64>,
}

/// A part of the runs with the same members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chapter {
    /// The members, in order.
    pub members: Vec<usize>,
    /// Where it begins.
    pub from: Position,
}

impl Chapter {
    /// The index of the chapter that a run ends in, or that it is in: the last one that does not begin later.
    pub fn of(all: &[Chapter], job: u32) -> usize {
        all.iter().rposition(|chapter| chapter.from.job <= job).unwrap_or(0)
    }
}

/// A ballot: its round, and the member that began it.
type Ballot = (u64, usize);

/// How a chapter may end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    /// The nodes that are gone, in order; none if all are there.
    gone: Vec<usize>,
    /// Where the others continue.
    from: Position,
}

/// What a member accepted, and in which ballot.
type Vote = (Ballot, Outcome);

/// What a member states of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Statement {
    author: usize,
    chapter: u64,
    /// Increases from statement to statement.
    number: u64,
    /// Whether its author leaves.
    bye: bool,
    /// The ballot that it follows.
    promised: Option<Ballot>,
    /// What it had accepted last when it promised that.
    before: Option<Vote>,
    /// What it accepted last.
    accepted: Option<Vote>,
    /// What it proposes in its own ballot, if it follows that.
    proposal: Option<Outcome>,
    /// Where it can continue, in order.
    held: Vec<Position>,
}

fn write_position(Position { job, k }: Position, out: &mut Writer) {
    out.u64(u64::from(job));
    out.u64(k.map_or(0, |k| k.saturating_add(1)));
}

fn read_position(bytes: &mut Reader) -> Option<Position> {
    let job = u32::try_from(bytes.u64()?).ok()?;
    Some(Position { job, k: bytes.u64()?.checked_sub(1) })
}

fn write_ballot((round, owner): Ballot, out: &mut Writer) {
    out.u64(round);
    out.u64(owner as u64);
}

fn read_node(bytes: &mut Reader, nodes: usize) -> Option<usize> {
    usize::try_from(bytes.u64()?).ok().filter(|&node| node < nodes)
}

fn read_ballot(bytes: &mut Reader, nodes: usize) -> Option<Ballot> {
    Some((bytes.u64()?, read_node(bytes, nodes)?))
}

fn read_vote(bytes: &mut Reader, nodes: usize) -> Option<Vote> {
    Some((read_ballot(bytes, nodes)?, Outcome::read(bytes, nodes)?))
}

/// Reads a part that may be missing; `None` if it is malformed.
fn optional<T>(is_there: bool, read: impl FnOnce() -> Option<T>) -> Option<Option<T>> {
    if is_there { read().map(Some) } else { Some(None) }
}

impl Outcome {
    fn write(&self, out: &mut Writer) {
        out.u64(self.gone.len() as u64);
        self.gone.iter().for_each(|&node| out.u64(node as u64));
        write_position(self.from, out);
    }

    fn read(bytes: &mut Reader, nodes: usize) -> Option<Outcome> {
        let mut gone = Vec::new();
        for _ in 0..bytes.u64()? {
            gone.push(read_node(bytes, nodes)?);
        }
        let from = read_position(bytes)?;
        gone.is_sorted_by(|a, b| a < b).then_some(Outcome { gone, from })
    }
}

impl Statement {
    fn to_bytes(&self) -> Vec<u8> {
        let Statement { author, chapter, number, bye, promised, before, accepted, proposal, held } =
            self;
        let mut out = Writer::default();
        let votes = [before, accepted];
        let flags = [*bye, promised.is_some(), before.is_some(), accepted.is_some()];
        let flags = flags.into_iter().chain([proposal.is_some()]).rev();
        let flags = flags.fold(0, |flags, flag| flags << 1 | u64::from(flag));
        [*author as u64, *chapter, *number, flags].into_iter().for_each(|value| out.u64(value));
        promised.iter().for_each(|&ballot| write_ballot(ballot, &mut out));
        for (ballot, outcome) in votes.into_iter().flatten() {
            write_ballot(*ballot, &mut out);
            outcome.write(&mut out);
        }
        proposal.iter().for_each(|outcome| outcome.write(&mut out));
        out.u64(held.len() as u64);
        held.iter().for_each(|&position| write_position(position, &mut out));
        out.done()
    }

    /// Decodes a statement; `None` if it is malformed.
    fn read(payload: &[u8], nodes: usize) -> Option<Statement> {
        let mut bytes = Reader::new(payload);
        let author = read_node(&mut bytes, nodes)?;
        let (chapter, number, flags) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        let [bye, promises, voted, votes, proposes] =
            [1, 2, 4, 8, 16].map(|flag| flags & flag != 0);
        let bytes = &mut bytes;
        let promised = optional(promises, || read_ballot(bytes, nodes))?;
        let before = optional(voted, || read_vote(bytes, nodes))?;
        let accepted = optional(votes, || read_vote(bytes, nodes))?;
        let proposal = optional(proposes, || Outcome::read(bytes, nodes))?;
        let mut held = Vec::new();
        for _ in 0..bytes.u64()? {
            held.push(read_position(bytes)?);
        }
        bytes.end()?;
        let said =
            Statement { author, chapter, number, bye, promised, before, accepted, proposal, held };
        (flags < 32 && said.is_sound()).then_some(said)
    }

    /// Whether its author can have come to it: it proposes in its own ballot only, and accepts in the one that it
    /// follows.
    fn is_sound(&self) -> bool {
        let Statement { author, promised, before, accepted, proposal, held, .. } = self;
        let own = proposal.is_none() || promised.is_some_and(|(_, owner)| owner == *author);
        let ballot = |vote: &Option<Vote>| vote.as_ref().map(|(ballot, _)| *ballot);
        let earlier = before.is_none() || ballot(before) < *promised;
        let now = accepted == before || accepted.is_some() && ballot(accepted) == *promised;
        own && earlier && now && held.is_sorted_by(|a, b| a < b)
    }

    /// Promises to follow a ballot.
    fn follow(&mut self, ballot: Option<Ballot>) {
        if self.promised != ballot {
            (self.promised, self.proposal) = (ballot, None);
            self.before = self.accepted.clone();
        }
    }

    /// Whether it contradicts an earlier statement of the same author: it goes back, or says another thing in the
    /// same ballot.
    fn contradicts(&self, earlier: &Statement) -> bool {
        let lost = |now: &Option<Vote>, then: &Option<Vote>| match (now, then) {
            (Some(now), Some(then)) => now.0 < then.0 || now.0 == then.0 && now.1 != then.1,
            (now, then) => now.is_none() && then.is_some(),
        };
        let turns = match self.promised == earlier.promised {
            true => {
                let proposes = earlier.proposal.is_some() && self.proposal != earlier.proposal;
                proposes || self.before != earlier.before
            }
            false => self.promised < earlier.promised || lost(&self.before, &earlier.accepted),
        };
        turns || lost(&self.accepted, &earlier.accepted) || earlier.bye && !self.bye
    }
}

/// A statement that was checked.
#[derive(Debug)]
struct Known {
    statement: Statement,
    frame: Vec<u8>,
}

/// The statements of a chapter.
#[derive(Debug, Default)]
pub struct Agreement {
    members: Vec<usize>,
    known: BTreeMap<usize, Known>,
    next: Duration,  // when statements are sent again
    since: Duration, // when the last one was made or came
    /// Why this node begins no ballot, though nodes are silent.
    pub obstacle: Option<String>,
}

impl Agreement {
    /// None yet, of these members.
    fn new(members: Vec<usize>) -> Agreement {
        Agreement { members, ..Agreement::default() }
    }

    fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.known.values().map(|known| &known.statement)
    }

    fn of(&self, node: usize) -> Option<&Statement> {
        self.known.get(&node).map(|known| &known.statement)
    }

    /// The members that stay.
    fn staying(&self, gone: &[usize]) -> Vec<usize> {
        self.members.iter().copied().filter(|node| !gone.contains(node)).collect()
    }

    fn is_majority(&self, count: usize) -> bool {
        2 * count > self.members.len()
    }

    /// The highest ballot, if there is one.
    fn ballot(&self) -> Option<Ballot> {
        self.statements().filter_map(|said| said.promised).max()
    }

    /// What the members have agreed on.
    fn agreed(&self) -> Option<&Outcome> {
        let all = || self.statements().filter_map(|said| said.accepted.as_ref());
        let count = |one: &Vote| all().filter(|other| *other == one).count();
        all().find(|one| self.is_majority(count(one))).map(|(_, outcome)| outcome)
    }

    /// The last position that all of some nodes can resume from.
    fn common(&self, nodes: &[usize]) -> Option<Position> {
        let mut all: Option<BTreeSet<Position>> = None;
        for &node in nodes {
            let held: BTreeSet<Position> = self.of(node)?.held.iter().copied().collect();
            all = Some(match all {
                Some(all) => all.intersection(&held).copied().collect(),
                None => held,
            });
        }
        all?.last().copied()
    }

    /// The members that follow a ballot, once they are more than half and none is missing but nodes that are
    /// gone.
    fn promises(&self, ballot: Ballot, gone: &[usize]) -> Option<Vec<&Statement>> {
        let follows = |said: &&Statement| said.promised == Some(ballot);
        let promises: Vec<&Statement> = self.statements().filter(follows).collect();
        let follows = |node: &usize| promises.iter().any(|said| said.author == *node);
        let all = self.staying(gone).iter().all(follows);
        (all && self.is_majority(promises.len())).then_some(promises)
    }

    /// What may have been agreed in an earlier ballot, as far as the promises of this one show: those who accepted
    /// it and those who did not promise would be more than half.
    fn perhaps_agreed<'a>(&self, promises: &[&'a Statement]) -> Option<&'a Outcome> {
        let accepted = || promises.iter().filter_map(|said| said.before.as_ref());
        let (_, last) = accepted().max_by_key(|(ballot, _)| *ballot)?;
        let count = accepted().filter(|(_, outcome)| outcome == last).count();
        self.is_majority(count + self.members.len() - promises.len()).then_some(last)
    }

    /// What the owner of a ballot proposes, with the nodes that are gone in its judgement.
    fn proposal(&self, ballot: Ballot, gone: &[usize]) -> Option<Outcome> {
        let promises = self.promises(ballot, gone)?;
        if let Some(outcome) = self.perhaps_agreed(&promises) {
            return Some(outcome.clone());
        }
        let from = self.common(&self.staying(gone))?;
        Some(Outcome { gone: gone.to_vec(), from })
    }

    /// Whether a member accepts a proposal: it judges alike and can continue there, or it must assume that the
    /// others have agreed on it.
    fn accepts(&self, own: &Statement, ballot: Ballot, outcome: &Outcome, gone: &[usize]) -> bool {
        let alike = outcome.gone.iter().all(|node| gone.contains(node));
        let can = outcome.gone.contains(&own.author) || own.held.contains(&outcome.from);
        let promises = self.promises(ballot, gone);
        let agreed = promises.and_then(|promises| self.perhaps_agreed(&promises));
        alike && can || agreed == Some(outcome)
    }

    /// Proposes in a member's own ballot, and accepts what is proposed in the one that it follows, if the others
    /// can go on.
    fn vote(&self, own: &mut Statement, gone: &[usize], can_go_on: impl Fn(&[usize]) -> bool) {
        let Some(ballot) = own.promised else { return };
        let is_own = ballot.1 == own.author;
        if is_own && own.proposal.is_none() && can_go_on(gone) {
            own.proposal = self.proposal(ballot, gone);
        }
        let proposed = if is_own { own.proposal.as_ref() } else { self.proposed(ballot) };
        let last = own.accepted.as_ref().map(|(ballot, _)| *ballot);
        let accepts = |outcome: &&Outcome| {
            can_go_on(&outcome.gone) && self.accepts(own, ballot, outcome, gone)
        };
        let accepted = proposed.filter(|_| last < Some(ballot)).filter(accepts);
        if let Some(outcome) = accepted.cloned() {
            own.accepted = Some((ballot, outcome));
        }
    }

    /// What is proposed in a ballot, if anything is.
    fn proposed(&self, ballot: Ballot) -> Option<&Outcome> {
        let owner = self.of(ballot.1).filter(|said| said.promised == Some(ballot))?;
        owner.proposal.as_ref()
    }

    fn frames(&self) -> Vec<Vec<u8>> {
        self.known.values().map(|known| known.frame.clone()).collect()
    }
}

/// What a peer knows of all chapters.
#[derive(Default)]
pub struct Chapters {
    /// All chapters so far; the first has all nodes.
    pub all: Vec<Chapter>,
    ids: Vec<[u8; 16]>,       // of their frames
    ends: Vec<Vec<Vec<u8>>>,  // the statements that ended each but the last
    pub agreement: Agreement, // on the end of the last one
    held: Option<Vec<u64>>,   // iterations of the checkpoints of this run
    began: Duration,          // this run, or this chapter of it
    loaded: bool,             // from the journal
    leaving: bool,            // this node says good-bye
    graphs: Vec<Graph>,       // of all runs
}

impl Chapters {
    /// All nodes are members.
    pub fn new(nodes: usize, run: [u8; 16]) -> Chapters {
        let members: Vec<usize> = (0..nodes).collect();
        let first = Chapter { members: members.clone(), from: Position { job: 0, k: None } };
        let agreement = Agreement::new(members);
        Chapters { all: vec![first], ids: vec![run], agreement, ..Chapters::default() }
    }

    /// The index of the last one.
    pub fn number(&self) -> u64 {
        self.all.len() as u64 - 1
    }

    fn add(&mut self, Outcome { gone, from }: &Outcome, end: Vec<Vec<u8>>) {
        let chapter = Chapter { members: self.agreement.staying(gone), from: *from };
        let mut hash = Sha256::new_with_prefix(CONTEXT);
        hash.update(self.ids[self.ids.len() - 1]);
        hash.update(u64::from(chapter.from.job).to_le_bytes());
        hash.update(chapter.from.k.map_or(0, |k| k.saturating_add(1)).to_le_bytes());
        chapter.members.iter().for_each(|&node| hash.update((node as u64).to_le_bytes()));
        let id: Hash = hash.finalize().into();
        self.ids.push(run_id(&id));
        self.ends.push(end);
        self.agreement = Agreement::new(chapter.members.clone());
        self.all.push(chapter);
    }

    /// The chapter that a run ends in, or that it is in.
    pub fn of(&self, job: u32) -> (&Chapter, [u8; 16]) {
        let at = Chapter::of(&self.all, job);
        (&self.all[at], self.ids[at])
    }

    /// Whether the members have agreed that a run is over: the last chapter begins with a later one.
    pub fn is_over(&self, job: u32) -> bool {
        self.all.last().is_some_and(|last| last.from.job > job)
    }

    /// Notes a checkpoint: the last two are on disk.
    pub fn keep(&mut self, k: u64) {
        let held = self.held.get_or_insert_default();
        held.push(k);
        held.drain(..held.len().saturating_sub(2));
    }
}

impl<W: Wire> Peers<W> {
    /// The identity of the frames of the first chapter, and of all statements.
    pub(super) fn first_run(&self) -> [u8; 16] {
        self.chapters.ids[0]
    }

    /// Whether members that are silent for long are left out.
    pub(super) fn leaves(&self) -> bool {
        matches!(self.settings.policy, Policy::Leave { .. })
    }

    /// Says good-bye: the others go on without this node, which ends when they have agreed.
    pub fn say_good_bye(&mut self) {
        self.chapters.leaving = true;
    }

    /// Reads the chapters and this node's own statement from the journal, once.
    pub(super) fn load_chapters(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.chapters.loaded, true) {
            return Ok(());
        }
        let Policy::Leave { journal, .. } = &mut self.settings.policy else { return Ok(()) };
        let records = journal.read()?;
        for record in String::from_utf8_lossy(&records).lines() {
            let words: Vec<&str> = record.split(' ').collect();
            // No node acted on a truncated record.
            let [what, content, "end"] = words[..] else { continue };
            let damaged = || {
                Error::storage("storage/members", "the record of the run's members is damaged")
                    .hint("restore the file `members` of the run folder, or start all nodes with `--resume never`")
            };
            let content = unhex(content).ok_or_else(damaged)?;
            match what {
                "said" => self.take_own(&content),
                "agreed" => {
                    let mut frames = Reader::new(&content);
                    let mut end = Vec::new();
                    while let Some(frame) = frames.bytes() {
                        self.take_own(frame).ok_or_else(damaged)?;
                        end.push(frame.to_vec());
                    }
                    let outcome = self.chapters.agreement.agreed().cloned();
                    outcome.map(|outcome| self.chapters.add(&outcome, end))
                }
                _ => None,
            }
            .ok_or_else(damaged)?;
        }
        Ok(())
    }

    /// Takes a statement of the last chapter from the journal.
    fn take_own(&mut self, frame: &[u8]) -> Option<()> {
        let read = Frame::read(frame, &self.chapters.ids[0]).ok()?;
        let statement = Statement::read(read.payload, self.nodes)?;
        let known = Known { frame: frame.to_vec(), statement };
        self.chapters.agreement.known.insert(known.statement.author, known);
        Some(())
    }

    /// Sets the graphs of all runs: those that stay must be connected in each.
    pub fn set_graphs(&mut self, graphs: Vec<Graph>) {
        self.chapters.graphs = graphs;
    }

    /// Begins a run, with the iterations of its checkpoints, if it has any.
    pub(super) fn begin_chapter(&mut self, held: Option<&[u64]>) {
        self.chapters.held = held.map(<[u64]>::to_vec);
        self.chapters.held.iter_mut().for_each(|held| held.sort_unstable());
        self.chapters.began = self.wire.now();
    }

    /// Where this node can continue: from its checkpoints, and, once everything of the run is on disk, also from the
    /// start of the next one.
    fn positions(&self) -> Vec<Position> {
        let at = |k| Position { job: self.job, k };
        let mut all = Vec::new();
        if let Some(held) = self.chapters.held.as_ref().filter(|_| !self.done) {
            all.push(at(None));
            all.extend(held.iter().map(|&k| at(Some(k))));
        }
        if self.durable == END {
            all.push(Position { job: self.job + 1, k: None });
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether this node must stay where it is, because the members are about to agree.
    pub(super) fn is_bound(&self) -> bool {
        let open = self.chapters.agreement.ballot().is_some();
        self.leaves() && !self.done && (self.chapters.leaving || open)
    }

    /// The node for which this one waits while it must stay: the owner of the ballot.
    pub(super) fn awaited(&self) -> usize {
        let ballot = self.chapters.agreement.ballot();
        ballot.map_or(self.me, |(_, owner)| owner)
    }

    /// The members that are gone in this node's judgement: silent for long, or after their good-bye.
    fn judged_gone(&self) -> Vec<usize> {
        let Policy::Leave { silence, .. } = self.settings.policy else { return Vec::new() };
        let (now, began) = (self.wire.now(), self.chapters.began);
        let gone = |node: &usize| {
            let said = self.chapters.agreement.of(*node);
            let age = self.age(*node, now).unwrap_or(now.saturating_sub(began));
            said.is_some_and(|said| said.bye) || *node != self.me && age >= silence
        };
        self.chapters.agreement.members.iter().copied().filter(gone).collect()
    }

    /// Whether this node may begin an agreement: all members have met, and the run is not over.
    fn may_begin(&self) -> bool {
        let later = self.job > 0 || self.chapters.number() > 0;
        let held = self.chapters.held.as_ref();
        let met = self.durable == END || held.is_some_and(|held| later || !held.is_empty());
        met && !self.done
    }

    /// Why the others cannot go on without some nodes, if they cannot.
    fn obstacle(&self, gone: &[usize]) -> Option<String> {
        let agreement = &self.chapters.agreement;
        let staying = agreement.staying(gone);
        let all = agreement.members.len();
        if gone.is_empty() {
            return None;
        }
        if !agreement.is_majority(staying.len()) || staying.len() < 2 {
            let left = staying.len();
            return Some(format!(
                "{left} of {all} nodes are left, and only more than half of them, and at least two, go on"
            ));
        }
        let connected = |graph: &Graph| reaches_all(graph, &staying);
        (!self.chapters.graphs.iter().all(connected)).then(|| {
            "the nodes that are left are not connected in a graph of the experiment".to_string()
        })
    }

    /// Takes part in an agreement, and ends the chapter when the members have agreed; `waits` if this node lacks a
    /// frame.
    pub(super) fn attend(&mut self, waits: bool) -> Result<()> {
        if !self.leaves() {
            return Ok(());
        }
        self.state_position(waits)?;
        if let Some(outcome) = self.chapters.agreement.agreed().cloned() {
            return self.follow_outcome(&outcome);
        }
        let now = self.wire.now();
        if now >= self.chapters.agreement.next && !self.chapters.agreement.known.is_empty() {
            self.send_statements();
        }
        Ok(())
    }

    fn send_statements(&mut self) {
        self.chapters.agreement.next = self.wire.now().saturating_add(self.settings.resend);
        for frame in self.chapters.agreement.frames() {
            self.relay(None, &frame);
        }
    }

    /// Begins a ballot, follows one, proposes or accepts, whatever is due.
    fn state_position(&mut self, waits: bool) -> Result<()> {
        let gone = self.judged_gone();
        self.chapters.agreement.obstacle = self.obstacle(&gone);
        let before = self.chapters.agreement.of(self.me).cloned();
        let before = before.unwrap_or(Statement { author: self.me, ..Statement::default() });
        let mut own = Statement { held: self.positions(), ..before.clone() };
        own.bye |= self.chapters.leaving;
        own.follow(self.ballot_of(&own, &gone, waits));
        self.chapters.agreement.vote(&mut own, &gone, |gone| self.obstacle(gone).is_none());
        // The position alone is no reason to state anything.
        let silent = own.promised.is_none() && !own.bye;
        match own == before || silent {
            true => Ok(()),
            false => self.state_own(own),
        }
    }

    /// The ballot that this node follows: the highest, or one that it begins.
    fn ballot_of(&self, own: &Statement, gone: &[usize], waits: bool) -> Option<Ballot> {
        let agreement = &self.chapters.agreement;
        let highest = agreement.ballot();
        let begins = match highest {
            None => waits && !gone.is_empty(),
            // Nothing came of the ballot: its owner may be gone, or others judge otherwise.
            Some(ballot) => own.promised == Some(ballot) && self.is_stale(),
        };
        match begins && agreement.obstacle.is_none() && self.may_begin() {
            true => Some((highest.map_or(0, |(round, _)| round).saturating_add(1), self.me)),
            false => highest,
        }
    }

    /// Whether nothing has come of the ballot for long: longer for each member than for the one before it.
    fn is_stale(&self) -> bool {
        let rank = self.chapters.agreement.members.iter().position(|&node| node == self.me);
        let intervals = PATIENCE + PER_MEMBER * rank.unwrap_or(0) as u32;
        let patience = self.settings.resend.saturating_mul(intervals);
        self.wire.now() >= self.chapters.agreement.since.saturating_add(patience)
    }

    /// Makes this node's next statement.
    fn state_own(&mut self, own: Statement) -> Result<()> {
        let (author, chapter) = (self.me, self.chapters.number());
        let statement = Statement { author, chapter, number: own.number + 1, ..own };
        let payload = statement.to_bytes();
        if payload.len() > BYTES {
            return Ok(());
        }
        let frame = self.statement_frame(&payload);
        self.record("said", &frame)?;
        self.chapters.agreement.known.insert(self.me, Known { statement, frame });
        self.chapters.agreement.since = self.wire.now();
        self.send_statements();
        Ok(())
    }

    fn statement_frame(&self, payload: &[u8]) -> Vec<u8> {
        let place = Place::default();
        let frame = Frame { kind: FrameKind::Statement, scalar: 1, place, payload };
        frame.to_bytes(&self.chapters.ids[0], |bytes| self.wire.sign(bytes))
    }

    /// Writes a record before any node acts on it.
    fn record(&mut self, what: &str, content: &[u8]) -> Result<()> {
        let record = format!("\n{what} {} end\n", hex(content));
        match &mut self.settings.policy {
            Policy::Leave { journal, .. } => journal.append(record.as_bytes()),
            _ => Ok(()),
        }
    }

    /// Ends the chapter.
    fn follow_outcome(&mut self, outcome: &Outcome) -> Result<()> {
        let end = self.chapters.agreement.frames();
        let mut content = Writer::default();
        end.iter().for_each(|frame| content.bytes(frame));
        let out = outcome.gone.contains(&self.me);
        if !out {
            self.record("agreed", &content.done())?;
        }
        for frame in &end {
            self.relay(None, frame);
        }
        match out {
            true if self.chapters.leaving => return Err(left()),
            true => return Err(left_out(self.me)),
            false => {}
        }
        let Outcome { gone, from } = outcome;
        if !gone.is_empty() {
            (self.notify)(Note::Left { nodes: gone.clone(), job: from.job, k: from.k });
        }
        self.chapters.add(outcome, end);
        self.progress.forget();
        Err(next_chapter())
    }

    /// Handles a statement, whatever chapter this node is in, and passes it on if it is new.
    pub(super) fn on_statement(
        &mut self,
        peer: usize,
        payload: &[u8],
        bytes: &[u8],
    ) -> FrameResult {
        let said = author(payload, self.nodes).filter(|_| payload.len() <= BYTES && self.leaves());
        let said = said.and_then(|_| Statement::read(payload, self.nodes)).ok_or(Refusal::Shape)?;
        if said.chapter < self.chapters.number() {
            self.send_end(peer, said.chapter);
            return Ok(());
        }
        let agreement = &self.chapters.agreement;
        let known = agreement.known.get(&said.author);
        if let Some(known) = known {
            // The peer may lack statements that this one has.
            if known.statement.number >= said.number || said.author == self.me {
                if known.statement.number > said.number {
                    self.send_statements_to(peer);
                }
                return Ok(());
            }
        }
        if said.chapter > self.chapters.number() || said.author == self.me {
            return Ok(());
        }
        if !agreement.members.contains(&said.author) {
            return Err(Refusal::Shape);
        }
        self.check_author(said.author, bytes)?;
        if known.is_some_and(|known| said.contradicts(&known.statement)) {
            self.report(said.author, Refusal::Equivocation);
            return Ok(());
        }
        let node = said.author;
        let known = Known { statement: said, frame: bytes.to_vec() };
        self.chapters.agreement.known.insert(node, known);
        self.chapters.agreement.since = self.wire.now();
        let but = self.link_to(peer);
        self.relay(but, bytes);
        self.send_statements_to(peer);
        Ok(())
    }

    /// Sends a peer the statements of this chapter, not more often than it may be answered.
    fn send_statements_to(&mut self, peer: usize) {
        if self.may_answer((peer, true), 0) {
            for frame in self.chapters.agreement.frames() {
                self.wire.send(peer, &frame);
            }
        }
    }

    /// Handles a frame of another chapter: its sender may not have received how that ended.
    pub(super) fn on_other_chapter(&mut self, peer: usize, run: &[u8]) {
        if let Some(chapter) = self.chapters.ids.iter().position(|id| id == run) {
            if let Some(at) = self.link_to(peer) {
                self.links[at].heard = self.wire.now();
            }
            self.send_end(peer, chapter as u64);
        }
    }

    fn send_end(&mut self, peer: usize, chapter: u64) {
        let end = usize::try_from(chapter).ok().and_then(|at| self.chapters.ends.get(at)).cloned();
        if let Some(end) = end.filter(|_| peer < self.nodes)
            && self.may_answer((peer, true), 0)
        {
            end.iter().for_each(|frame| self.wire.send(peer, frame));
        }
    }
}

/// Whether some nodes of a graph are connected among themselves.
fn reaches_all(graph: &Graph, nodes: &[usize]) -> bool {
    let mut reached: BTreeSet<usize> = nodes.first().copied().into_iter().collect();
    let mut next: Vec<usize> = reached.iter().copied().collect();
    while let Some(node) = next.pop() {
        let near = graph.neighbours(node).iter();
        next.extend(near.filter(|other| nodes.contains(other) && reached.insert(**other)));
    }
    reached.len() == nodes.len()
}

/// The error that ends a chapter: the caller goes back to the cut.
fn next_chapter() -> Error {
    Error::new(Kind::Peer, NEXT, "a node has left: the others go on from an earlier checkpoint")
        .hint("the same command resumes from there")
}

/// The error of a node that the others have left out.
fn left_out(me: usize) -> Error {
    let message = format!("the others have agreed that node {me} is gone, and go on without it");
    Error::new(Kind::Left, "peers/left-out", message).hint(
        "its last checkpoint and models stay in the run folder; to take part again, all nodes start a new run",
    )
}

/// The end of a node that said good-bye.
fn left() -> Error {
    Error::new(Kind::Left, "peers/left", "this node has left, and the others go on without it")
        .hint("its last checkpoint stays in the run folder")
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    digits.chunks_exact(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::random::{Purpose, Stream};

    const START: Position = Position { job: 0, k: None };

    fn without(gone: &[usize]) -> Outcome {
        Outcome { gone: gone.to_vec(), from: START }
    }

    fn member(author: usize) -> Statement {
        Statement { author, held: vec![START], ..Statement::default() }
    }

    impl Agreement {
        fn hear(&mut self, statement: &Statement) {
            let known = self.of(statement.author);
            if known.is_none_or(|known| known.number < statement.number) {
                let known = Known { statement: statement.clone(), frame: Vec::new() };
                self.known.insert(statement.author, known);
            }
        }
    }

    fn drawn_outcome(stream: &mut Stream, nodes: usize) -> Outcome {
        let gone = (0..nodes).filter(|_| stream.unit() < 0.3).collect();
        let k = (stream.unit() < 0.5).then_some(stream.below(1 << 20) as u64);
        Outcome { gone, from: Position { job: stream.below(4) as u32, k } }
    }

    #[test]
    fn statements_are_read_as_they_were_written_and_others_are_refused() {
        let mut refused = 0;
        for seed in 0..300 {
            let mut stream = Stream::new(seed, Purpose::Tuning, 3);
            let nodes = 2 + stream.below(5);
            let author = stream.below(nodes);
            let mut drawn = || {
                let outcome = drawn_outcome(&mut stream, nodes);
                (stream.unit() < 0.5).then_some(outcome)
            };
            let promised = (3, author);
            let (before, proposal) = (drawn().map(|of| ((2, 0), of)), drawn());
            let accepted = drawn().map(|of| (promised, of)).or(before.clone());
            let promised = Some(promised);
            let held = vec![START, Position { job: 0, k: Some(seed) }];
            let (chapter, number, bye) = (seed % 3, seed % 7, seed % 2 == 0);
            let statement = Statement {
                author,
                chapter,
                number,
                bye,
                promised,
                before,
                accepted,
                proposal,
                held,
            };
            let mut bytes = statement.to_bytes();
            assert_eq!(Statement::read(&bytes, nodes), Some(statement.clone()));
            assert!(Statement::read(&bytes[1..], nodes).is_none());
            let (at, bit) = (stream.below(bytes.len()), stream.below(8));
            bytes[at] ^= 1 << bit;
            match Statement::read(&bytes, nodes) {
                None => refused += 1,
                Some(other) => assert_ne!(other, statement, "seed {seed}"),
            }
        }
        assert!(refused > 30, "{refused}");
    }

    #[test]
    fn one_member_alone_cannot_leave_another_out() {
        let ballot = (2, 1);
        let mut agreement = Agreement::new((0..5).collect());
        let follower = |author| Statement { promised: Some(ballot), number: 1, ..member(author) };
        (0..5).for_each(|author| agreement.hear(&follower(author)));
        let claimed = without(&[0]);
        let claims = |author, number| Statement {
            number,
            before: Some(((1, 4), claimed.clone())),
            ..follower(author)
        };
        agreement.hear(&claims(4, 2));
        assert_eq!(agreement.proposal(ballot, &[]), Some(without(&[])));
        assert!(!agreement.accepts(&follower(2), ballot, &claimed, &[]));
        // Two that judge so and one that is gone may have agreed on it.
        agreement.hear(&claims(3, 2));
        agreement.known.remove(&2);
        assert_eq!(agreement.proposal(ballot, &[]), None, "a member that lives has not promised");
        assert_eq!(agreement.proposal(ballot, &[2]), Some(claimed.clone()));
        assert!(agreement.accepts(&follower(1), ballot, &claimed, &[2]));
    }

    /// What members agree on when each acts at random times on what has reached it, and judges at random.
    fn agreed_by_chance(seed: u64) -> Vec<Outcome> {
        let mut stream = Stream::new(seed, Purpose::Tuning, 4);
        let nodes = 3 + stream.below(3);
        let all: Vec<usize> = (0..nodes).collect();
        let mut views: Vec<Agreement> = all.iter().map(|_| Agreement::new(all.clone())).collect();
        let mut said: Vec<Statement> = all.iter().map(|&author| member(author)).collect();
        let mut votes: BTreeMap<(Ballot, Vec<usize>), BTreeSet<usize>> = BTreeMap::new();
        let (arrival, judges) = (stream.between(0.2, 1.0), stream.between(0.0, 0.5));
        for _ in 0..150 {
            let me = stream.below(nodes);
            for statement in &said {
                if statement.author == me || stream.unit() < arrival {
                    views[me].hear(statement);
                }
            }
            let gone = |node: &usize| *node != me && stream.unit() < judges;
            let gone: Vec<usize> = all.iter().copied().filter(gone).collect();
            let view = &views[me];
            let mut own = said[me].clone();
            let highest = view.ballot();
            own.follow(match stream.unit() < 0.1 {
                true => Some((highest.map_or(0, |(round, _)| round) + 1, me)),
                false => highest.max(own.promised),
            });
            let most = |gone: &[usize]| view.is_majority(nodes - gone.len());
            view.vote(&mut own, &gone, most);
            assert!(!own.contradicts(&said[me]), "seed {seed}: {own:?}");
            if let Some((ballot, outcome)) = &own.accepted {
                votes.entry((*ballot, outcome.gone.clone())).or_default().insert(me);
            }
            own.number += 1;
            said[me] = own;
        }
        let majority = |(_, voters): &(_, BTreeSet<usize>)| 2 * voters.len() > nodes;
        let agreed = votes.into_iter().filter(majority).map(|((_, gone), _)| without(&gone));
        agreed.collect()
    }

    #[test]
    fn members_never_agree_on_two_outcomes() {
        let (mut some, mut left) = (0, 0);
        for seed in 0..3000 {
            let agreed = agreed_by_chance(seed);
            assert!(agreed.windows(2).all(|two| two[0] == two[1]), "seed {seed}: {agreed:?}");
            some += usize::from(!agreed.is_empty());
            left += usize::from(agreed.first().is_some_and(|outcome| !outcome.gone.is_empty()));
        }
        assert!(some > 1000 && left > 300, "{some} {left}");
    }
}
