//! Members that leave, and nodes that come back.
//!
//! The members of a *chapter* are the same throughout. If one of them is silent for long, or says
//! good-bye, the members agree who is gone and from which position those that stay continue, the *cut*: the
//! last one that all of them can resume from. That begins the next chapter. If it turns out that nobody is
//! gone, the next chapter has the same members, and repeats the iterations since the cut. `agreement.rs` has how they agree.
//!
//! **The end of a run.** A member that has everything of a run keeps its checkpoints until all members have: until then one of
//! them may lack messages of a node that is gone, and all must go back. From then on each ends the run by itself, and
//! the next chapter begins with the next run at the earliest.
//!
//! **Coming back.** A node that was left out receives the statements that say so as soon as it reaches a member, chapter by chapter:
//! more than half of the members of each signed the next. Then it asks the members of the last one to come back, at intervals, by a signed
//! statement with the positions of its own states; they pass it on, and agree on a chapter with it. A member whose results of the last run
//! are on disk sends it a signed statement of that instead; once it has those of more than half, it stops waiting.

use std::collections::BTreeSet;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::agreement::{Agreement, Ballot, Judgement, Known, Outcome, Statement};
use super::ended::word as ended_word;
use super::frame::{Frame, FrameResult, Kind as FrameKind, author, run_id};
use super::settings::{Note, Policy};
use super::status::END;
use super::{Peers, Place};
use crate::engine::chapter::{Back, Chapter, Position};
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

/// A request to come back counts for this many intervals between two requests.
const ASKS: u32 = 16;

/// Statements of a node's start: those of a later start have larger numbers.
const PER_START: u64 = 1 << 20;

/// Precedes what identifies a chapter.
const CONTEXT: &[u8] = b"lopa chapter";

/// The id of the error that ends a chapter: the caller begins the next one.
pub const NEXT: &str = "peers/chapter";

/// What a peer knows of all chapters.
pub struct Chapters {
    /// All chapters so far; the first has all nodes.
    pub all: Vec<Chapter>,
    ids: Vec<[u8; 16]>,       // of their frames
    ends: Vec<Vec<Vec<u8>>>,  // the statements that ended each but the last
    pub agreement: Agreement, // on the end of the last one
    held: Option<Vec<u64>>,   // iterations of the checkpoints of this run
    lacks: bool,              // this node's state at the cut: those checkpoints are from before
    began: Duration,          // this run, or this chapter of it
    heard: Duration,          // when the last statement came
    asked: u64,               // how often this node asked to come back
    loaded: bool,             // from the journal
    leaving: bool,            // this node says good-bye
    over: BTreeSet<usize>, // members of the last one that have ended all runs, as a node without a vote knows
    graphs: Vec<Graph>,    // of all runs
}

impl Chapters {
    /// All nodes are members.
    pub fn new(nodes: usize, run: [u8; 16]) -> Chapters {
        let from = Position { job: 0, k: None };
        let first = Chapter { members: (0..nodes).collect(), from, back: Vec::new() };
        let agreement = Agreement::new(&first, u32::MAX);
        Chapters {
            all: vec![first],
            ids: vec![run],
            ends: Vec::new(),
            agreement,
            held: None,
            lacks: false,
            began: Duration::ZERO,
            heard: Duration::ZERO,
            asked: 0,
            loaded: false,
            leaving: false,
            over: BTreeSet::new(),
            graphs: Vec::new(),
        }
    }

    /// The index of the last one.
    pub fn number(&self) -> u64 {
        self.all.len() as u64 - 1
    }

    /// The last one.
    fn last(&self) -> &Chapter {
        &self.all[self.all.len() - 1]
    }

    fn add(&mut self, Outcome { gone, back, from }: &Outcome, end: Vec<Vec<u8>>) {
        let mut members = self.agreement.staying(gone);
        members.extend(back.iter().map(|back| back.node));
        members.sort_unstable();
        members.dedup();
        let chapter = Chapter { members, from: *from, back: back.clone() };
        let mut hash = Sha256::new_with_prefix(CONTEXT);
        hash.update(self.ids[self.ids.len() - 1]);
        hash.update(u64::from(chapter.from.job).to_le_bytes());
        hash.update(chapter.from.k.map_or(0, |k| k.saturating_add(1)).to_le_bytes());
        chapter.members.iter().for_each(|&node| hash.update((node as u64).to_le_bytes()));
        for Back { node, own } in &chapter.back {
            hash.update((*node as u64).to_le_bytes());
            hash.update(own.map_or(0, |k| k.saturating_add(1)).to_le_bytes());
        }
        let id: Hash = hash.finalize().into();
        self.ids.push(run_id(&id));
        self.ends.push(end);
        self.over.clear();
        self.agreement = Agreement::new(&chapter, self.agreement.runs);
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
        if std::mem::take(&mut self.lacks) {
            held.clear();
        }
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
        let known = Known { frame: frame.to_vec(), statement, came: Duration::ZERO };
        self.chapters.agreement.known.insert(known.statement.author, known);
        Some(())
    }

    /// Sets the graphs of all runs, in each of which those that stay must be connected, and the number of runs.
    pub fn set_runs(&mut self, graphs: Vec<Graph>, runs: u32) {
        (self.chapters.graphs, self.chapters.agreement.runs) = (graphs, runs);
    }

    /// Begins a run, with the iterations of its checkpoints, if it has any; where it `lacks` the state that a chapter
    /// begins with, with those of its own earlier states.
    pub(super) fn begin_chapter(&mut self, held: Option<&[u64]>, lacks: bool) {
        self.chapters.held = held.map(<[u64]>::to_vec);
        self.chapters.lacks = lacks;
        self.chapters.held.iter_mut().for_each(|held| held.sort_unstable());
        self.chapters.began = self.wire.now();
    }

    /// Where this node can continue: from its checkpoints, and, once everything of the run is on disk, also from the
    /// start of the next one.
    fn positions(&self) -> Vec<Position> {
        let at = |k| Position { job: self.job, k };
        let mut all = Vec::new();
        if let Some(held) = self.chapters.held.as_ref().filter(|_| !self.done) {
            all.extend((!self.chapters.lacks).then(|| at(None)));
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
        self.leaves() && !self.done && (open || self.chapters.leaving && self.has_met())
    }

    /// The node for which this one waits while it must stay: the owner of the ballot.
    pub(super) fn awaited(&self) -> usize {
        let ballot = self.chapters.agreement.ballot();
        ballot.map_or(self.me, |(_, owner)| owner)
    }

    /// This node's judgement: members are gone that were silent for long, or after their good-bye; other nodes come back
    /// that ask for it and have a neighbour who can hand its state over.
    fn judged(&self) -> Judgement {
        let Policy::Leave { silence, .. } = self.settings.policy else {
            return Judgement::default();
        };
        let (now, began) = (self.wire.now(), self.chapters.began);
        let gone = |node: &usize| {
            let said = self.chapters.agreement.of(*node);
            let age = self.age(*node, now).unwrap_or(now.saturating_sub(began));
            said.is_some_and(|said| said.bye) || *node != self.me && age >= silence
        };
        let agreement = &self.chapters.agreement;
        let mut gone: Vec<usize> = agreement.members.iter().copied().filter(gone).collect();
        let lacking = agreement.lacking(&gone);
        if lacking.is_empty() && agreement.asks.is_empty() {
            return Judgement { gone, asking: Vec::new() };
        }
        let mut whole = agreement.staying(&gone);
        whole.retain(|node| !lacking.contains(node));
        let can_be_helped = |node: usize| {
            let near = |graph: &Graph| graph.neighbours(node).iter().any(|by| whole.contains(by));
            self.chapters.graphs.iter().all(near)
        };
        // One that lost all who could help asks again.
        gone.extend(lacking.into_iter().filter(|&node| !can_be_helped(node)));
        gone.sort_unstable();
        let asking = self.askers().into_iter().filter(|&node| can_be_helped(node)).collect();
        Judgement { gone, asking }
    }

    /// Whether a chapter that begins by now begins later than this one: this node has two checkpoints since, so that the
    /// others have at least one, or the run is another.
    fn has_advanced(&self) -> bool {
        let (job, k) = self.chapters.last().from.iterations();
        let since = |held: &Vec<u64>| held.len().checked_sub(2).is_some_and(|at| held[at] > k);
        let held = self.chapters.held.as_ref().filter(|_| !self.chapters.lacks);
        held.is_some_and(|held| self.job > job || since(held))
    }

    /// Whether all members have met: then one of them can be left out.
    fn has_met(&self) -> bool {
        let later = self.job > 0 || self.chapters.number() > 0;
        let held = self.chapters.held.as_ref();
        self.durable == END || held.is_some_and(|held| later || !held.is_empty())
    }

    /// Whether this node may begin an agreement: all members have met, and the run is not over.
    fn may_begin(&self) -> bool {
        self.has_met() && !self.done
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
        // A node that was left out has no vote.
        let votes = self.is_member();
        if votes {
            self.state_position(waits)?;
        }
        if let Some(outcome) = self.chapters.agreement.agreed().cloned() {
            return self.follow_outcome(&outcome);
        }
        let now = self.wire.now();
        let agreement = &self.chapters.agreement;
        if votes && now >= agreement.next && !agreement.known.is_empty() {
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
        let judged = self.judged();
        self.chapters.agreement.obstacle = self.obstacle(&judged.gone);
        let before = self.chapters.agreement.of(self.me).cloned();
        let before = before.unwrap_or(Statement { author: self.me, ..Statement::default() });
        let mut own = Statement { held: self.positions(), ..before.clone() };
        own.bye |= self.chapters.leaving;
        own.lacks = self.chapters.lacks;
        own.follow(self.ballot_of(&own, &judged, waits));
        self.chapters.agreement.vote(&mut own, &judged, |gone| self.obstacle(gone).is_none());
        // A statement that says no more than how far the peer is does not go out.
        let silent = own.promised.is_none() && !own.bye;
        match own == before || silent {
            true => Ok(()),
            false => self.state_own(own),
        }
    }

    /// The ballot that this node follows: the highest, or one that it begins.
    fn ballot_of(&self, own: &Statement, judged: &Judgement, waits: bool) -> Option<Ballot> {
        let agreement = &self.chapters.agreement;
        let highest = agreement.ballot();
        let begins = match highest {
            None => {
                let asked = !judged.asking.is_empty() && self.has_advanced();
                waits && !judged.gone.is_empty() || asked
            }
            // Nothing came of the ballot: its owner may be gone, or others judge otherwise.
            Some(ballot) => own.promised == Some(ballot) && self.is_stale(),
        };
        match begins && agreement.obstacle.is_none() && self.may_begin() {
            true => Some((highest.map_or(0, |(round, _)| round).saturating_add(1), self.me)),
            false => highest,
        }
    }

    /// Whether the ballot has stood still for too long. Each member waits longer than the one before it.
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
        let came = self.wire.now();
        self.chapters.agreement.known.insert(self.me, Known { statement, frame, came });
        self.chapters.agreement.since = came;
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
        self.record("agreed", &content.done())?;
        for frame in &end {
            self.relay(None, frame);
        }
        // All may have ended by the time these nodes ask again.
        let late = if outcome.from.job >= self.chapters.agreement.runs {
            self.askers()
        } else {
            Vec::new()
        };
        for node in late {
            end.iter().for_each(|frame| self.wire.send(node, frame));
        }
        let Outcome { gone, back, from } = outcome;
        // A member whose state is handed over once more has not just come back.
        let back = back.iter().map(|back| back.node);
        let back: Vec<usize> =
            back.filter(|node| !self.chapters.agreement.members.contains(node)).collect();
        let (job, k) = (from.job, from.k);
        if !gone.is_empty() {
            (self.notify)(Note::Left { nodes: gone.clone(), job, k });
        }
        if !back.is_empty() {
            (self.notify)(Note::Back { nodes: back, job, k });
        }
        self.chapters.add(outcome, end);
        self.progress.forget();
        match self.chapters.leaving && !self.is_member() {
            true => Err(left()),
            false => Err(next_chapter()),
        }
    }

    /// Whether this node is a member of the last chapter.
    pub(super) fn is_member(&self) -> bool {
        self.chapters.last().members.contains(&self.me)
    }

    /// Asks the members of the last chapter to come back, until they have agreed on it; `held` are the iterations of
    /// this node's own states of the run. False if they have ended all runs without it.
    pub(super) fn ask_to_come_back(&mut self, job: u32, held: &[u64]) -> Result<bool> {
        self.load_chapters()?;
        // Its links are those of an earlier chapter.
        self.links.clear();
        self.job = job;
        self.note_waiting(None);
        let held = held.iter().map(|&k| Position { job, k: Some(k) });
        let held: BTreeSet<Position> = held.collect();
        self.chapters.heard = self.wire.now();
        while !self.is_member() {
            if self.chapters.leaving {
                return Err(left());
            }
            if self.stopped {
                return Err(super::stopped());
            }
            if self.is_over() {
                return Ok(false);
            }
            self.members.clone_from(&self.chapters.last().members);
            let now = self.wire.now();
            let deadline = self.chapters.heard.saturating_add(self.settings.deadline);
            if now >= deadline {
                return Err(left_out(self.me));
            }
            self.send_progress();
            if now >= self.chapters.agreement.next {
                self.chapters.agreement.next = now.saturating_add(self.settings.resend);
                self.ask(held.iter().copied().collect());
            }
            if let Some(event) = self.wire.next(self.chapters.agreement.next.min(deadline)) {
                self.receive(event);
            }
            match self.attend(false) {
                Err(error) if error.id != NEXT => return Err(error),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Whether the members have ended all runs, as a node without a vote knows: they agreed on it, or more than half say so.
    fn is_over(&self) -> bool {
        let Chapters { agreement, over, .. } = &self.chapters;
        self.chapters.last().from.job >= agreement.runs || agreement.is_majority(over.len())
    }

    /// The nodes that lately asked to come back.
    fn askers(&self) -> Vec<usize> {
        let (now, recent) = (self.wire.now(), self.settings.resend.saturating_mul(ASKS));
        let asks = self.chapters.agreement.asks.iter();
        let asks = asks.filter(|(_, known)| now <= known.came.saturating_add(recent));
        asks.map(|(&node, _)| node).collect()
    }

    /// Whether this node has ended the last run.
    fn has_ended_all(&self) -> bool {
        self.done && self.job.saturating_add(1) == self.chapters.agreement.runs
    }

    /// Informs the nodes that lately asked to come back who has ended the last run: it is too late.
    pub(super) fn tell_askers(&mut self) {
        if self.has_ended_all() {
            self.askers().into_iter().for_each(|node| self.send_ended(node));
        }
    }

    /// Handles the word of a member that it has ended, at a node that is none. False if the frame is another.
    pub(super) fn on_over(&mut self, bytes: &[u8]) -> FrameResult<bool> {
        if self.is_member() {
            return Ok(false);
        }
        let last = self.chapters.ids[self.chapters.ids.len() - 1];
        let frame = Frame::read(bytes, &last).ok();
        let Some(frame) = frame.filter(|frame| frame.kind == FrameKind::Ended) else {
            return Ok(false);
        };
        let (node, done) = ended_word(frame.payload, self.nodes).ok_or(Refusal::Shape)?;
        if !self.chapters.last().members.contains(&node) {
            return Err(Refusal::Shape);
        }
        let last_run = frame.place.job.saturating_add(1) == self.chapters.agreement.runs;
        if done && last_run && !self.chapters.over.contains(&node) {
            self.check_author(node, bytes)?;
            self.chapters.over.insert(node);
        }
        Ok(true)
    }

    /// Asks the neighbours once.
    fn ask(&mut self, held: Vec<Position>) {
        self.chapters.asked += 1;
        let number =
            self.start_number().saturating_mul(PER_START).saturating_add(self.chapters.asked);
        let (author, chapter) = (self.me, self.chapters.number());
        let asks = Statement { author, chapter, number, lacks: true, held, ..Statement::default() };
        let frame = self.statement_frame(&asks.to_bytes());
        let near = self.chapters.graphs.iter().flat_map(|graph| graph.neighbours(self.me));
        let near: BTreeSet<usize> = near.copied().collect();
        near.into_iter().for_each(|node| self.wire.send(node, &frame));
    }

    /// Handles the statement of a node that asks to come back, and passes it on if it is new.
    fn on_ask(&mut self, peer: usize, said: Statement, bytes: &[u8]) -> FrameResult {
        if !said.only_asks() || said.author == self.me {
            return Err(Refusal::Shape);
        }
        let (now, soon) = (self.wire.now(), self.settings.resend / 2);
        let known = self.chapters.agreement.asks.get(&said.author);
        // A node that asks again and again is heard no more often than others.
        let is_new = known.is_none_or(|known| {
            known.statement.number < said.number && now >= known.came.saturating_add(soon)
        });
        if !is_new {
            return Ok(());
        }
        self.check_author(said.author, bytes)?;
        if peer == said.author {
            // It hears that this node lives.
            self.wire.send(peer, bytes);
        }
        let author = said.author;
        let known = Known { statement: said, frame: bytes.to_vec(), came: now };
        self.chapters.agreement.asks.insert(author, known);
        let but = self.link_to(peer);
        self.relay(but, bytes);
        self.tell_askers();
        Ok(())
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
        // Two nodes that were left out are no reason for each other to wait.
        if self.chapters.last().members.contains(&peer) {
            self.chapters.heard = self.wire.now();
        }
        if said.chapter < self.chapters.number() {
            self.send_end(peer, said.chapter);
            return Ok(());
        }
        let agreement = &self.chapters.agreement;
        let is_member = agreement.members.contains(&said.author);
        if said.lacks
            && !is_member
            && said.chapter == self.chapters.number()
            && said.author != self.me
        {
            return self.on_ask(peer, said, bytes);
        }
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
        if !is_member {
            return Err(Refusal::Shape);
        }
        self.check_author(said.author, bytes)?;
        if known.is_some_and(|known| said.contradicts(&known.statement)) {
            self.report(said.author, Refusal::Equivocation);
            return Ok(());
        }
        let (node, came) = (said.author, self.wire.now());
        let known = Known { statement: said, frame: bytes.to_vec(), came };
        self.chapters.agreement.known.insert(node, known);
        self.chapters.agreement.since = came;
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
    Error::new(Kind::Peer, NEXT, "the members have changed: they go on from an earlier checkpoint")
        .hint("the same command resumes from there")
}

/// The error of a node that the others have left out, and that could not come back.
fn left_out(me: usize) -> Error {
    let message = format!(
        "the others agreed that node {me} was gone, and went on without it; it asked to come back, and heard nothing \
         until the deadline"
    );
    Error::new(Kind::Left, "peers/left-out", message).hint(
        "if they still run, the same command asks again; its last checkpoint and models stay in the run folder",
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
