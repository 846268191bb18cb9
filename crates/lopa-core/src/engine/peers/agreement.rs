//! How the members of a chapter agree on the next one. It has no wire, no clock and no disk.
//!
//! It is Paxos with the members of the chapter as acceptors. Each member signs *statements*, and all
//! pass them on, again and again; the last one of each member counts. A member that judges that others
//! are gone, or that a node asks to come back, begins a *ballot*. All members promise to follow it and no lower one, stop where
//! they are, and state where they can resume from and what they accepted last. The owner of the ballot waits for the promises of
//! more than half of the members, and of all that are not gone in its judgement. If the promises leave it possible that an earlier
//! ballot was agreed, it proposes the same again; if not, the nodes that are gone and those that come back in its judgement, and the
//! cut. Members accept a proposal if they judge alike and can continue there, or if they also see that it may have been agreed. What
//! more than half have accepted in a ballot is agreed. If nothing comes of a ballot, another member begins a higher one.
//!
//! **Safety.** At most one outcome is agreed per chapter, because any two majorities have a common member. So of two
//! halves of a network at most one goes on. A member judges by what it receives itself, not because others say so: a node
//! that lives is left out only if those that judge it gone, with the members that are silent themselves, are more than half; and
//! only a node that signed that it asks in this chapter comes back. Statements are on disk before they are sent.
//!
//! **Liveness.** Once faults cease, ballots succeed each other until one is agreed, because members wait for different
//! times. That needs more than half of the members, at least two, connected in the graph of the run. A smaller part
//! begins no ballot: it waits for the others until the deadline, and then says why. A node comes back only from a cut that is later
//! than the beginning of the chapter: however often nodes are left out and come back, the run advances.
//!
//! **Nodes that come back.** One that is no member asks by a statement without votes. It is no acceptor of this chapter; it is a
//! member of the next. There it takes over the shared part of its state from a neighbour. Until that is on disk it *lacks* its
//! state: if the chapter ends before, the next one hands the state over again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::engine::chapter::{Back, Chapter, Position};
use crate::store::bytes::{Reader, Writer};

/// A ballot: its round, and the member that began it.
pub type Ballot = (u64, usize);

/// How a chapter may end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The nodes that are gone, in order; none if all are there.
    pub gone: Vec<usize>,
    /// Those that come back, in order, with members that still lack their state.
    pub back: Vec<Back>,
    /// Where all continue.
    pub from: Position,
}

/// What a member accepted, and in which ballot.
pub type Vote = (Ballot, Outcome);

/// What a member states of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statement {
    pub author: usize,
    pub chapter: u64,
    /// Increases from statement to statement.
    pub number: u64,
    /// Whether its author leaves.
    pub bye: bool,
    /// Whether its author lacks its state: it asks to come back, or has come back and has not saved it yet.
    pub lacks: bool,
    /// The ballot that it follows.
    pub promised: Option<Ballot>,
    /// What it had accepted last when it promised that.
    pub before: Option<Vote>,
    /// What it accepted last.
    pub accepted: Option<Vote>,
    /// What it proposes in its own ballot, if it follows that.
    pub proposal: Option<Outcome>,
    /// Where it can continue, in order; the positions of its own states, if it lacks one.
    pub held: Vec<Position>,
}

/// What a member judges by what it receives itself.
#[derive(Debug, Default)]
pub struct Judgement {
    /// The members that are gone, in order.
    pub gone: Vec<usize>,
    /// Other nodes that ask to come back and are able to, in order.
    pub asking: Vec<usize>,
}

fn write_position(Position { job, k }: Position, out: &mut Writer) {
    out.u64(u64::from(job));
    out.option(k);
}

fn read_position(bytes: &mut Reader) -> Option<Position> {
    let job = u32::try_from(bytes.u64()?).ok()?;
    Some(Position { job, k: bytes.option()? })
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
        out.u64(self.back.len() as u64);
        for Back { node, own } in &self.back {
            out.u64(*node as u64);
            out.option(*own);
        }
        write_position(self.from, out);
    }

    fn read(bytes: &mut Reader, nodes: usize) -> Option<Outcome> {
        let mut gone = Vec::new();
        for _ in 0..bytes.u64()? {
            gone.push(read_node(bytes, nodes)?);
        }
        let mut back = Vec::new();
        for _ in 0..bytes.u64()? {
            let node = read_node(bytes, nodes)?;
            back.push(Back { node, own: bytes.option()? });
        }
        let from = read_position(bytes)?;
        let sorted = gone.is_sorted_by(|a, b| a < b) && back.is_sorted_by(|a, b| a.node < b.node);
        let stays = |back: &Back| !gone.contains(&back.node) && back.own <= from.k;
        (sorted && back.iter().all(stays)).then_some(Outcome { gone, back, from })
    }
}

impl Statement {
    pub fn to_bytes(&self) -> Vec<u8> {
        let Statement { promised, before, accepted, proposal, held, .. } = self;
        let mut out = Writer::default();
        let votes = [before, accepted];
        let flags = [self.bye, promised.is_some(), before.is_some(), accepted.is_some()];
        let flags = flags.into_iter().chain([proposal.is_some(), self.lacks]).rev();
        let flags = flags.fold(0, |flags, flag| flags << 1 | u64::from(flag));
        let head = [self.author as u64, self.chapter, self.number, flags];
        head.into_iter().for_each(|value| out.u64(value));
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
    pub fn read(payload: &[u8], nodes: usize) -> Option<Statement> {
        let mut bytes = Reader::new(payload);
        let author = read_node(&mut bytes, nodes)?;
        let (chapter, number, flags) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        let [bye, promises, voted, votes, proposes, lacks] =
            [1, 2, 4, 8, 16, 32].map(|flag| flags & flag != 0);
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
        let said = Statement {
            author,
            chapter,
            number,
            bye,
            lacks,
            promised,
            before,
            accepted,
            proposal,
            held,
        };
        (flags < 64 && said.is_sound()).then_some(said)
    }

    /// Whether an honest author could have made it: an author proposes in its own ballot only, and accepts in the
    /// ballot that it follows.
    fn is_sound(&self) -> bool {
        let Statement { author, promised, before, accepted, proposal, held, .. } = self;
        let own = proposal.is_none() || promised.is_some_and(|(_, owner)| owner == *author);
        let ballot = |vote: &Option<Vote>| vote.as_ref().map(|(ballot, _)| *ballot);
        let earlier = before.is_none() || ballot(before) < *promised;
        let now = accepted == before || accepted.is_some() && ballot(accepted) == *promised;
        own && earlier && now && held.is_sorted_by(|a, b| a < b)
    }

    /// Whether it asks to come back and nothing else, as only a node that is no member does.
    pub fn only_asks(&self) -> bool {
        self.lacks && !self.bye && self.promised.is_none() && self.accepted.is_none()
    }

    /// Promises to follow a ballot.
    pub fn follow(&mut self, ballot: Option<Ballot>) {
        if self.promised != ballot {
            (self.promised, self.proposal) = (ballot, None);
            self.before = self.accepted.clone();
        }
    }

    /// Whether it contradicts an earlier statement of the same author: it goes back, or says another thing in the
    /// same ballot.
    pub fn contradicts(&self, earlier: &Statement) -> bool {
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
pub struct Known {
    pub statement: Statement,
    pub frame: Vec<u8>,
    /// When it came.
    pub came: Duration,
}

/// The statements of a chapter.
#[derive(Debug)]
pub struct Agreement {
    /// The members of the chapter, in order.
    pub members: Vec<usize>,
    from: Position, // where the chapter begins
    /// The number of runs: no node comes back after the last.
    pub runs: u32,
    /// Those of members.
    pub known: BTreeMap<usize, Known>,
    /// Those of other nodes, which ask to come back.
    pub asks: BTreeMap<usize, Known>,
    /// When statements are sent again.
    pub next: Duration,
    /// When the last one was made or came.
    pub since: Duration,
    /// Why this node begins no ballot, though nodes are silent.
    pub obstacle: Option<String>,
}

impl Agreement {
    /// None yet, in this chapter of an experiment with this many runs.
    pub fn new(chapter: &Chapter, runs: u32) -> Agreement {
        Agreement {
            members: chapter.members.clone(),
            from: chapter.from,
            runs,
            known: BTreeMap::new(),
            asks: BTreeMap::new(),
            next: Duration::ZERO,
            since: Duration::ZERO,
            obstacle: None,
        }
    }

    fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.known.values().map(|known| &known.statement)
    }

    pub fn of(&self, node: usize) -> Option<&Statement> {
        self.known.get(&node).map(|known| &known.statement)
    }

    /// The members that stay.
    pub fn staying(&self, gone: &[usize]) -> Vec<usize> {
        self.members.iter().copied().filter(|node| !gone.contains(node)).collect()
    }

    pub fn is_majority(&self, count: usize) -> bool {
        2 * count > self.members.len()
    }

    /// The highest ballot, if there is one.
    pub fn ballot(&self) -> Option<Ballot> {
        self.statements().filter_map(|said| said.promised).max()
    }

    /// What the members have agreed on.
    pub fn agreed(&self) -> Option<&Outcome> {
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

    /// The members that stay and lack their states.
    pub fn lacking(&self, gone: &[usize]) -> Vec<usize> {
        let lacks = |node: &usize| self.of(*node).is_some_and(|said| said.lacks);
        self.staying(gone).into_iter().filter(lacks).collect()
    }

    /// Whether nodes may come back from a position: it is later than the beginning of the chapter, so that the run
    /// advances, and not the end of the last run.
    fn admits(&self, from: Position) -> bool {
        from.iterations() > self.from.iterations() && from.job < self.runs
    }

    /// The last own state of a node that it can come back with at a position, as it states.
    fn own(&self, node: usize, from: Position) -> Option<u64> {
        let said = self.known.get(&node).or_else(|| self.asks.get(&node))?;
        let own = said.statement.held.iter().filter(|held| held.job == from.job);
        own.filter_map(|held| held.k).filter(|&k| Some(k) <= from.k).max()
    }

    /// What the owner of a ballot proposes by its judgement.
    fn proposal(&self, ballot: Ballot, judged: &Judgement) -> Option<Outcome> {
        let Judgement { gone, asking } = judged;
        let promises = self.promises(ballot, gone)?;
        if let Some(outcome) = self.perhaps_agreed(&promises) {
            return Some(outcome.clone());
        }
        let mut back = self.lacking(gone);
        let mut whole = self.staying(gone);
        whole.retain(|node| !back.contains(node));
        let mut from = self.common(&whole)?;
        back.extend(asking.iter().filter(|_| self.admits(from)));
        back.sort_unstable();
        if !back.is_empty() && from.k == Some(0) {
            // Nothing has been computed that a node would have to take over.
            from.k = None;
        }
        let back = back.into_iter().map(|node| Back { node, own: self.own(node, from) }).collect();
        Some(Outcome { gone: gone.clone(), back, from })
    }

    /// Whether a node may come back as an outcome says.
    fn may_come(&self, Back { node, own }: Back, from: Position, judged: &Judgement) -> bool {
        let may = match self.members.contains(&node) {
            true => self.of(node).is_some_and(|said| said.lacks),
            false => judged.asking.contains(&node) && self.admits(from),
        };
        may && own == self.own(node, from)
    }

    /// Whether a member accepts a proposal: it judges alike and can continue there, or it must assume that the
    /// others have agreed on it.
    fn accepts(
        &self,
        own: &Statement,
        ballot: Ballot,
        outcome: &Outcome,
        judged: &Judgement,
    ) -> bool {
        let Outcome { gone, back, from } = outcome;
        let alike = gone.iter().all(|node| judged.gone.contains(node))
            && back.iter().all(|&back| self.may_come(back, *from, judged));
        let continues = match own.lacks {
            true => back.iter().any(|back| back.node == own.author),
            false => own.held.contains(from),
        };
        let can = gone.contains(&own.author) || continues;
        let promises = self.promises(ballot, &judged.gone);
        let agreed = promises.and_then(|promises| self.perhaps_agreed(&promises));
        alike && can || agreed == Some(outcome)
    }

    /// Proposes in a member's own ballot, and accepts what is proposed in the one that it follows, if the others
    /// can go on.
    pub fn vote(
        &self,
        own: &mut Statement,
        judged: &Judgement,
        can_go_on: impl Fn(&[usize]) -> bool,
    ) {
        let Some(ballot) = own.promised else { return };
        let is_own = ballot.1 == own.author;
        if is_own && own.proposal.is_none() && can_go_on(&judged.gone) {
            own.proposal = self.proposal(ballot, judged);
        }
        let proposed = if is_own { own.proposal.as_ref() } else { self.proposed(ballot) };
        let last = own.accepted.as_ref().map(|(ballot, _)| *ballot);
        let accepts = |outcome: &&Outcome| {
            can_go_on(&outcome.gone) && self.accepts(own, ballot, outcome, judged)
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

    pub fn frames(&self) -> Vec<Vec<u8>> {
        self.known.values().map(|known| known.frame.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::random::{Purpose, Stream};

    const START: Position = Position { job: 0, k: None };

    const LATER: Position = Position { job: 0, k: Some(20) };

    fn without(gone: &[usize]) -> Outcome {
        Outcome { gone: gone.to_vec(), back: Vec::new(), from: START }
    }

    fn member(author: usize) -> Statement {
        Statement { author, held: vec![START], ..Statement::default() }
    }

    fn gone(gone: &[usize]) -> Judgement {
        Judgement { gone: gone.to_vec(), asking: Vec::new() }
    }

    fn among(nodes: usize) -> Agreement {
        let members = (0..nodes).collect();
        Agreement::new(&Chapter { members, from: START, back: Vec::new() }, 1)
    }

    impl Agreement {
        fn hear(&mut self, statement: &Statement) {
            let known = self.of(statement.author);
            if known.is_none_or(|known| known.number < statement.number) {
                let (statement, came) = (statement.clone(), Duration::ZERO);
                let (author, known) =
                    (statement.author, Known { statement, frame: Vec::new(), came });
                match self.members.contains(&author) {
                    true => self.known.insert(author, known),
                    false => self.asks.insert(author, known),
                };
            }
        }
    }

    /// A node that is no member and asks, with states of its own.
    fn asks(author: usize, held: &[u64]) -> Statement {
        let held = held.iter().map(|&k| Position { job: 0, k: Some(k) }).collect();
        Statement { author, lacks: true, held, ..Statement::default() }
    }

    fn drawn_outcome(stream: &mut Stream, nodes: usize) -> Outcome {
        let gone: Vec<usize> = (0..nodes).filter(|_| stream.unit() < 0.3).collect();
        let k = (stream.unit() < 0.5).then_some(stream.below(1 << 20) as u64);
        let comes = |node: &usize| !gone.contains(node) && stream.unit() < 0.3;
        let back: Vec<usize> = (0..nodes).filter(comes).collect();
        let own = |node| Back { node, own: k.filter(|_| stream.unit() < 0.5) };
        let back = back.into_iter().map(own).collect();
        Outcome { gone, back, from: Position { job: stream.below(4) as u32, k } }
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
                lacks: seed % 5 == 0,
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
        let mut agreement = among(5);
        let follower = |author| Statement { promised: Some(ballot), number: 1, ..member(author) };
        (0..5).for_each(|author| agreement.hear(&follower(author)));
        let claimed = without(&[0]);
        let claims = |author, number| Statement {
            number,
            before: Some(((1, 4), claimed.clone())),
            ..follower(author)
        };
        agreement.hear(&claims(4, 2));
        assert_eq!(agreement.proposal(ballot, &gone(&[])), Some(without(&[])));
        assert!(!agreement.accepts(&follower(2), ballot, &claimed, &gone(&[])));
        // Two that judge so and one that is gone may have agreed on it.
        agreement.hear(&claims(3, 2));
        agreement.known.remove(&2);
        let alone = agreement.proposal(ballot, &gone(&[]));
        assert_eq!(alone, None, "a member that lives has not promised");
        assert_eq!(agreement.proposal(ballot, &gone(&[2])), Some(claimed.clone()));
        assert!(agreement.accepts(&follower(1), ballot, &claimed, &gone(&[2])));
    }

    #[test]
    fn a_node_comes_back_only_if_it_asks_and_only_from_a_later_position() {
        let ballot = (1, 0);
        let follower = |author, held: &[Position]| Statement {
            promised: Some(ballot),
            number: 1,
            held: held.to_vec(),
            ..member(author)
        };
        let mut agreement = among(3);
        (0..3).for_each(|author| agreement.hear(&follower(author, &[START])));
        agreement.hear(&asks(3, &[10, 30]));
        let asking = Judgement { gone: Vec::new(), asking: vec![3] };
        // The members have nothing later than the beginning of the chapter.
        assert_eq!(agreement.proposal(ballot, &asking), Some(without(&[])));
        let both = |author| Statement { number: 2, ..follower(author, &[START, LATER]) };
        (0..3).for_each(|author| agreement.hear(&both(author)));
        let back = vec![Back { node: 3, own: Some(10) }];
        let outcome = Outcome { gone: Vec::new(), back, from: LATER };
        assert_eq!(agreement.proposal(ballot, &asking), Some(outcome.clone()));
        assert!(agreement.accepts(&both(1), ballot, &outcome, &asking));
        assert!(!agreement.accepts(&both(1), ballot, &outcome, &gone(&[])), "it does not ask");
        let back = vec![Back { node: 3, own: Some(20) }];
        let other = Outcome { back, ..outcome.clone() };
        assert!(!agreement.accepts(&both(1), ballot, &other, &asking), "it has no such state");
        agreement.runs = 0;
        assert!(!agreement.accepts(&both(1), ballot, &outcome, &asking), "no run is left");
        // A member that lacks its state receives it again, whatever its position.
        let mut agreement = among(3);
        let zero = Position { k: Some(0), ..START };
        (0..3).for_each(|author| agreement.hear(&follower(author, &[START, zero])));
        agreement.hear(&asks(3, &[0]));
        // Nothing has been computed.
        let all_there = Outcome { from: zero, ..without(&[]) };
        assert_eq!(agreement.proposal(ballot, &asking), Some(all_there));
        let mut agreement = among(3);
        (0..2).for_each(|author| agreement.hear(&follower(author, &[START])));
        let lacks = Statement { lacks: true, ..follower(2, &[]) };
        agreement.hear(&lacks);
        let back = vec![Back { node: 2, own: None }];
        let outcome = Outcome { gone: Vec::new(), back, from: START };
        assert_eq!(agreement.proposal(ballot, &gone(&[])), Some(outcome.clone()));
        assert!(agreement.accepts(&lacks, ballot, &outcome, &gone(&[])));
        assert!(!agreement.accepts(&lacks, ballot, &without(&[]), &gone(&[])));
    }

    /// What members agree on when each acts at random times on what has reached it, and judges at random.
    fn agreed_by_chance(seed: u64) -> Vec<Outcome> {
        let mut stream = Stream::new(seed, Purpose::Tuning, 4);
        let nodes = 3 + stream.below(3);
        let all: Vec<usize> = (0..nodes).collect();
        let mut views: Vec<Agreement> = all.iter().map(|_| among(nodes)).collect();
        let held = [vec![START, LATER], vec![START]];
        let mut member = |author| {
            let few = usize::from(stream.unit() < 0.1);
            Statement { held: held[few].clone(), ..member(author) }
        };
        let mut said: Vec<Statement> = all.iter().map(|&author| member(author)).collect();
        views.iter_mut().for_each(|view| view.hear(&asks(nodes, &[10])));
        let mut votes: Vec<(Vote, BTreeSet<usize>)> = Vec::new();
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
            let asking = (stream.unit() < 0.7).then_some(nodes).into_iter().collect();
            let judged = Judgement { gone, asking };
            let view = &views[me];
            let mut own = said[me].clone();
            let highest = view.ballot();
            own.follow(match stream.unit() < 0.1 {
                true => Some((highest.map_or(0, |(round, _)| round) + 1, me)),
                false => highest.max(own.promised),
            });
            let most = |gone: &[usize]| view.is_majority(nodes - gone.len());
            view.vote(&mut own, &judged, most);
            assert!(!own.contradicts(&said[me]), "seed {seed}: {own:?}");
            if let Some(vote) = &own.accepted {
                let known = votes.iter().position(|(known, _)| known == vote);
                let at = known.unwrap_or_else(|| {
                    votes.push((vote.clone(), BTreeSet::new()));
                    votes.len() - 1
                });
                votes[at].1.insert(me);
            }
            own.number += 1;
            said[me] = own;
        }
        let majority = |(_, voters): &(_, BTreeSet<usize>)| 2 * voters.len() > nodes;
        votes.into_iter().filter(majority).map(|((_, outcome), _)| outcome).collect()
    }

    #[test]
    fn members_never_agree_on_two_outcomes() {
        let (mut some, mut left, mut back) = (0, 0, 0);
        for seed in 0..3000 {
            let agreed = agreed_by_chance(seed);
            assert!(agreed.windows(2).all(|two| two[0] == two[1]), "seed {seed}: {agreed:?}");
            some += usize::from(!agreed.is_empty());
            left += usize::from(agreed.first().is_some_and(|outcome| !outcome.gone.is_empty()));
            back += usize::from(agreed.first().is_some_and(|outcome| !outcome.back.is_empty()));
        }
        assert!(some > 1000 && left > 300 && back > 100, "{some} {left} {back}");
    }
}
