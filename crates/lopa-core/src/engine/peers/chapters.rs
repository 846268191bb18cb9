//! Members that leave, and how the others agree on it.
//!
//! The members of a *chapter* are the same throughout. If one of them is silent for long, or says
//! good-bye, the members agree who is gone and from which position those that stay continue, the *cut*: the
//! last one that all of them can resume from. That begins the next chapter. If it turns out that nobody is
//! gone, the next chapter has the same members, and repeats the iterations since the cut.
//!
//! **Agreement.** It is Paxos with the members of the chapter as acceptors. Each member signs *statements*, and all
//! pass them on; the last one of each member counts. A member that waits, and judges that others are gone,
//! begins a *ballot*. All members promise to follow it and no lower one, stop where they are, and state where they can resume from and
//! what they accepted last. With the promises of more than half of the members, the owner of the ballot
//! proposes what was accepted in the highest ballot before; if nothing was, the nodes that are gone in its judgement, once all
//! others have promised, and the cut. Members accept a proposal if they judge alike, or if one had accepted
//! it before. What more than half have accepted is agreed. If nothing comes of a ballot, another member begins a higher
//! one.
//!
//! **Safety.** At most one outcome is agreed per chapter, because any two majorities have a common member. So of two
//! halves of a network at most one goes on. A member is left out only if more than half judge that it is gone:
//! by what they receive themselves, not because others say so. Statements are on disk before they are sent.
//!
//! **Liveness.** Once faults cease and more than half of the members are connected, ballots succeed each other until one is
//! agreed, because members wait for different times.
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
    /// What it accepted last, and in which ballot.
    accepted: Option<(Ballot, Outcome)>,
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

impl Outcome {
    fn write(&self, out: &mut Writer) {
        out.u64(self.gone.len() as u64);
        self.gone.iter().for_each(|&node| out.u64(node as u64));
        write_position(self.from, out);
    }

    fn read(bytes: &mut Reader, nodes: usize) -> Option<Outcome> {
        let mut gone = Vec::new();
        for _ in 0..bytes.u64()? {
            gone.push(usize::try_from(bytes.u64()?).ok().filter(|&node| node < nodes)?);
        }
        let from = read_position(bytes)?;
        gone.is_sorted_by(|a, b| a < b).then_some(Outcome { gone, from })
    }
}

impl Statement {
    fn to_bytes(&self) -> Vec<u8> {
        let Statement { author, chapter, number, bye, promised, accepted, proposal, held } = self;
        let mut out = Writer::default();
        let flags = [*bye, promised.is_some(), accepted.is_some(), proposal.is_some()];
        let flags = flags.iter().rev().fold(0, |flags, &flag| flags << 1 | u64::from(flag));
        [*author as u64, *chapter, *number, flags].into_iter().for_each(|value| out.u64(value));
        for (round, node) in promised.iter().chain(accepted.iter().map(|(ballot, _)| ballot)) {
            out.u64(*round);
            out.u64(*node as u64);
        }
        accepted.iter().for_each(|(_, outcome)| outcome.write(&mut out));
        proposal.iter().for_each(|outcome| outcome.write(&mut out));
        out.u64(held.len() as u64);
        held.iter().for_each(|&position| write_position(position, &mut out));
        out.done()
    }

    /// Decodes a statement; `None` if it is malformed.
    fn read(payload: &[u8], nodes: usize) -> Option<Statement> {
        let mut bytes = Reader::new(payload);
        let node = |word: u64| usize::try_from(word).ok().filter(|&node| node < nodes);
        let author = node(bytes.u64()?)?;
        let (chapter, number, flags) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        let [bye, promised, accepted, proposes] = [1, 2, 4, 8].map(|flag| flags & flag != 0);
        let mut ballots: Vec<Ballot> = Vec::new();
        for _ in 0..u8::from(promised) + u8::from(accepted) {
            ballots.push((bytes.u64()?, node(bytes.u64()?)?));
        }
        let promised = if promised { Some(ballots.remove(0)) } else { None };
        let accepted = match ballots.pop() {
            Some(ballot) => Some((ballot, Outcome::read(&mut bytes, nodes)?)),
            None => None,
        };
        let proposal = if proposes { Some(Outcome::read(&mut bytes, nodes)?) } else { None };
        let mut held = Vec::new();
        for _ in 0..bytes.u64()? {
            held.push(read_position(&mut bytes)?);
        }
        bytes.end()?;
        let own = proposal.is_none() || promised.is_some_and(|(_, owner)| owner == author);
        let follows = accepted.as_ref().is_none_or(|(ballot, _)| promised >= Some(*ballot));
        let sorted = held.is_sorted_by(|a, b| a < b);
        let said = Statement { author, chapter, number, bye, promised, accepted, proposal, held };
        (flags < 16 && own && follows && sorted).then_some(said)
    }

    /// Whether it contradicts an earlier statement of the same author: it goes back, or says another thing in the
    /// same ballot.
    fn contradicts(&self, earlier: &Statement) -> bool {
        let same = |a: &(Ballot, Outcome), b: &(Ballot, Outcome)| a.0 != b.0 || a.1 == b.1;
        let accepted = match (&self.accepted, &earlier.accepted) {
            (Some(now), Some(before)) => now.0 < before.0 || !same(now, before),
            (None, Some(_)) => true,
            _ => false,
        };
        let proposes = self.promised == earlier.promised
            && earlier.proposal.is_some()
            && self.proposal != earlier.proposal;
        accepted || proposes || self.promised < earlier.promised || earlier.bye && !self.bye
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
        let count = |one: &(Ballot, Outcome)| all().filter(|other| *other == one).count();
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

    /// What the owner of a ballot proposes, with the nodes that are gone in its judgement.
    fn proposal(&self, ballot: Ballot, gone: &[usize]) -> Option<Outcome> {
        let follows =
            |node: &usize| self.of(*node).is_some_and(|said| said.promised == Some(ballot));
        let promises: Vec<usize> = self.members.iter().copied().filter(follows).collect();
        if !self.is_majority(promises.len()) {
            return None;
        }
        let accepted = promises.iter().filter_map(|&node| self.of(node)?.accepted.as_ref());
        if let Some((_, outcome)) = accepted.max_by_key(|(ballot, _)| *ballot) {
            return Some(outcome.clone());
        }
        let staying = self.staying(gone);
        let all = staying.iter().all(|node| promises.contains(node));
        let from = self.common(&staying).filter(|_| all)?;
        Some(Outcome { gone: gone.to_vec(), from })
    }

    /// What is proposed in a ballot, if anything is.
    fn proposed(&self, ballot: Ballot) -> Option<&Outcome> {
        let owner = self.of(ballot.1).filter(|said| said.promised == Some(ballot))?;
        owner.proposal.as_ref()
    }

    /// Whether a member has accepted this before.
    fn was_accepted(&self, outcome: &Outcome) -> bool {
        let accepted = |said: &Statement| {
            said.accepted.as_ref().is_some_and(|(_, accepted)| accepted == outcome)
        };
        self.statements().any(accepted)
    }

    /// Whether a member has ended the run with this index: then the others also can.
    fn is_ended(&self, job: u32) -> bool {
        self.statements().any(|said| said.held.iter().any(|held| held.job > job))
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
    graph: Vec<Vec<usize>>,   // neighbours of all members in this run
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

    /// Notes a checkpoint: the last two are on disk.
    pub fn keep(&mut self, k: u64) {
        let held = self.held.get_or_insert_default();
        if !held.contains(&k) {
            held.push(k);
            held.drain(..held.len().saturating_sub(2));
        }
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
        self.set_chapter();
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

    fn set_chapter(&mut self) {
        let at = self.chapters.all.len() - 1;
        self.run = self.chapters.ids[at];
    }

    /// Begins a run among the members, with its graph and the iterations of its checkpoints, if it has any.
    pub(super) fn begin_chapter(&mut self, held: Option<&[u64]>, graph: Vec<Vec<usize>>) {
        self.chapters.held = held.map(<[u64]>::to_vec);
        self.chapters.began = self.wire.now();
        self.chapters.graph = graph;
    }

    /// Where this node can continue.
    fn positions(&self) -> Vec<Position> {
        let at = |k| Position { job: self.job, k };
        match &self.chapters.held {
            _ if self.durable == END => vec![Position { job: self.job + 1, k: None }],
            None => Vec::new(),
            Some(held) => {
                let mut all: Vec<Position> = held.iter().map(|&k| at(Some(k))).collect();
                all.push(at(None));
                all.sort_unstable();
                all.dedup();
                all
            }
        }
    }

    /// Whether this node must stay where it is, because the members are about to agree.
    pub(super) fn is_bound(&self) -> bool {
        let open = self.chapters.agreement.ballot().is_some() && !self.is_over_elsewhere();
        self.leaves() && !self.done && (self.chapters.leaving || open)
    }

    /// A node that this one judges to be gone, or for which all wait.
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
        let held = self.chapters.held.as_ref();
        let met = self.durable == END || held.is_some_and(|held| self.job > 0 || !held.is_empty());
        met && !self.done && !self.is_over_elsewhere()
    }

    /// Whether another member has ended the run that this one is in.
    fn is_over_elsewhere(&self) -> bool {
        self.durable != END && self.chapters.agreement.is_ended(self.job)
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
        let mut reached: BTreeSet<usize> = [self.me].into();
        let mut next = vec![self.me];
        while let Some(node) = next.pop() {
            let near = self.chapters.graph.get(node).into_iter().flatten();
            next.extend(near.filter(|other| staying.contains(other) && reached.insert(**other)));
        }
        (reached.len() < staying.len()).then(|| {
            "the nodes that are left are not connected in the experiment's graph".to_string()
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
        let obstacle = self.obstacle(&gone);
        let agreement = &mut self.chapters.agreement;
        let blocked = obstacle.is_some();
        agreement.obstacle = obstacle;
        let agreement = &self.chapters.agreement;
        let before = agreement.of(self.me).cloned().unwrap_or_default();
        let mut own = Statement { held: self.positions(), ..before.clone() };
        own.bye |= self.chapters.leaving;
        let now = self.wire.now();
        let highest = agreement.ballot();
        let rank = agreement.members.iter().position(|&node| node == self.me).unwrap_or(0) as u32;
        let patience = self.settings.resend.saturating_mul(PATIENCE + PER_MEMBER * rank);
        let stale = now >= agreement.since.saturating_add(patience);
        let begins = match highest {
            None => waits && !gone.is_empty(),
            // Nothing came of the ballot: its owner may be gone, or others judge otherwise.
            Some(ballot) => own.promised == Some(ballot) && stale,
        };
        if begins && !blocked && self.may_begin() {
            let round = highest.map_or(0, |(round, _)| round).saturating_add(1);
            own.promised = Some((round, self.me));
        } else if highest > own.promised {
            own.promised = highest;
        }
        if own.promised != before.promised {
            own.proposal = None;
        }
        if let Some(ballot) = own.promised.filter(|&ballot| Some(ballot) >= highest) {
            if ballot.1 == self.me && own.proposal.is_none() && !blocked {
                own.proposal = agreement.proposal(ballot, &gone);
            }
            let proposed = if ballot.1 == self.me {
                own.proposal.as_ref()
            } else {
                agreement.proposed(ballot)
            };
            let last = own.accepted.as_ref().map(|(ballot, _)| *ballot);
            let judged = |outcome: &&Outcome| {
                outcome.gone.iter().all(|node| gone.contains(node))
                    || agreement.was_accepted(outcome)
            };
            if let Some(outcome) = proposed.filter(judged).filter(|_| last < Some(ballot)) {
                own.accepted = Some((ballot, outcome.clone()));
            }
        }
        // The position alone is no reason to state anything.
        let silent = own.promised.is_none() && !own.bye;
        match own == before || silent {
            true => Ok(()),
            false => self.state_own(own),
        }
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
        self.set_chapter();
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
