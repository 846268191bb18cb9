//! Who computes where. No other file of `run` asks whether peers are independent.

pub mod agreed;
mod agreement;
mod handover;
mod peer;

use std::cmp::Ordering;
use std::ops::Range;

use super::checkpoint::{self, Checkpoint, State, misfit};
use super::world::Job;
use super::{CameBack, Observers, Outcome, Part};
use crate::engine::{
    Back, Begin, Chapter, Cluster, Delivery, Expect, Independent, Limits, Node, Transport,
    anything, block, stopped,
};
use crate::error::{Error, Kind, Result};
use crate::math::real::Real;
use crate::network::Graph;
use crate::problem::scope::Scope;
use crate::run::evaluate::Point;
use crate::store::bytes::Hash;
use agreed::agree_on_time;

/// The processes of a run, as this one sees them.
pub enum Processes<'a> {
    /// This process has all nodes.
    One,
    /// Several make the same calls in step; process 0 keeps everything.
    Lockstep,
    /// This one is an independent peer: it keeps its own checkpoints and has its own clock.
    Peers(&'a mut dyn Independent),
}

impl<'a> Processes<'a> {
    /// Those that a transport connects.
    pub fn of(transport: &'a mut dyn Transport) -> Processes<'a> {
        let one = transport.size() == 1;
        match transport.independent() {
            Some(own) => Processes::Peers(own),
            None if one => Processes::One,
            None => Processes::Lockstep,
        }
    }

    /// Those that a cluster is divided over.
    pub fn with<T: Real>(cluster: &'a mut Cluster<T>) -> Processes<'a> {
        let one = cluster.is_whole();
        match cluster.independent() {
            Some(own) => Processes::Peers(own),
            None if one => Processes::One,
            None => Processes::Lockstep,
        }
    }

    /// Whether this one is an independent peer.
    pub fn are_peers(&self) -> bool {
        matches!(self, Processes::Peers(_))
    }

    /// Whether this peer was asked to stop; other processes agree on it instead.
    pub fn stop_here(&self, interrupted: bool) -> bool {
        matches!(self, Processes::Peers(own) if interrupted || own.stopped())
    }

    /// Whether links to silent neighbours are skipped.
    pub fn skip_links(&self) -> bool {
        matches!(self, Processes::Peers(own) if own.skips())
    }

    /// Whether members that are silent for long are left out.
    pub fn leave(&self) -> bool {
        matches!(self, Processes::Peers(own) if own.leaves())
    }

    /// Whether a neighbour waits for this peer's next checkpoint.
    pub fn want_checkpoint(&self) -> bool {
        matches!(self, Processes::Peers(own) if own.wants_checkpoint())
    }
}

/// The nodes of this process, out of this many.
pub fn own_nodes(nodes: usize, transport: &mut dyn Transport) -> Range<usize> {
    let (size, rank) = (transport.size(), transport.rank());
    match Processes::of(transport) {
        Processes::Peers(own) => own.node()..own.node() + 1,
        _ => block(nodes, size, rank),
    }
}

/// The chapters of all runs; one if no node has left.
pub fn chapters(transport: &mut dyn Transport) -> Result<Vec<Chapter>> {
    match Processes::of(transport) {
        Processes::Peers(own) => own.chapters(),
        _ => Ok(Vec::new()),
    }
}

/// Who took part in a run from which iteration on, and how those who came back did; empty if all nodes took part in all of
/// them. The graph is that of the run with all nodes.
pub fn parts(chapters: &[Chapter], job: u32, graph: &Graph) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (at, chapter) in chapters.iter().enumerate() {
        let Chapter { members, from, .. } = chapter;
        let part = |from, back| Part { from, members: members.clone(), back };
        match from.job.cmp(&job) {
            Ordering::Less => parts = vec![part(0, Vec::new())],
            Ordering::Equal => {
                let k = from.k.unwrap_or(0);
                let later = parts.iter().position(|part| part.from >= k).unwrap_or(parts.len());
                let void = parts.split_off(later);
                let again = void.iter().find(|part| part.from == k);
                let mut back = came_back(chapter, graph);
                // They are there still, and have not come back again.
                let before = again.into_iter().flat_map(|part| &part.back).filter(|before| {
                    members.contains(&before.node) && chapter.back(before.node).is_none()
                });
                back.extend(before);
                back.sort_unstable_by_key(|back| back.node);
                // Where nobody had left after all, nothing changes.
                let turns = at > 0 && has_turned(&chapters[at - 1..=at]) || again.is_some();
                if turns || parts.last().is_none_or(|last| last.members != *members) {
                    parts.push(part(k, back));
                }
            }
            Ordering::Greater => {}
        }
    }
    if parts.iter().all(|part| part.members.len() == graph.nodes()) {
        parts.clear();
    }
    parts
}

/// Whether members changed between some chapters: then what refers to all nodes is made again.
pub fn has_turned(chapters: &[Chapter]) -> bool {
    chapters.windows(2).any(|two| two[0].members != two[1].members)
}

/// The nodes that come back with a chapter.
fn came_back(chapter: &Chapter, graph: &Graph) -> Vec<CameBack> {
    let came = |&Back { node, own }: &Back| {
        let whole = |by: &&usize| chapter.members.contains(by) && chapter.back(**by).is_none();
        // The first is the one with the lowest number.
        let x_of = graph.neighbours(node).iter().find(whole).copied();
        CameBack { node, own, x_of: x_of.filter(|_| chapter.from.k.is_some()) }
    };
    chapter.back.iter().map(came).collect()
}

/// Whether a run can resume from a state: one of the last chapter, or the one that it begins with.
pub fn is_usable(state: &State, chapters: &[Chapter], job: u32) -> bool {
    let k = state.progress.k;
    let last = cuts_after(state, chapters, job).next_back();
    is_valid(state, chapters, job) && last.is_none_or(|cut| cut == Some(k))
}

/// Whether a node may come back with a state of its own: it took part in the run with it.
pub fn is_own(state: &State, chapters: &[Chapter], job: u32, node: usize) -> bool {
    let (k, at) = (Some(state.progress.k), usize::try_from(state.chapter).unwrap_or(usize::MAX));
    let begins = |chapter: &&Chapter| chapter.from.job == job && chapter.from.k == k;
    let until = chapters.len().min(at.saturating_add(1));
    let mut earlier = chapters[..until].iter().rev().take_while(begins);
    let mut later = chapters[until..].iter().filter(begins);
    // One that came back with it, and was left out again from the same iteration on, did not.
    let came = earlier.any(|chapter| chapter.back(node).is_some());
    let in_vain = came && later.any(|chapter| !chapter.members.contains(&node));
    is_valid(state, chapters, job) && !in_vain
}

/// Whether a state belongs to what the run was: chapters that went back further have made others void.
fn is_valid(state: &State, chapters: &[Chapter], job: u32) -> bool {
    let k = state.progress.k;
    cuts_after(state, chapters, job).all(|cut| cut.is_some_and(|cut| k <= cut))
}

/// Where the chapters of a run after that of a state begin.
fn cuts_after(
    state: &State,
    chapters: &[Chapter],
    job: u32,
) -> impl DoubleEndedIterator<Item = Option<u64>> {
    let after = usize::try_from(state.chapter).map_or(usize::MAX, |at| at.saturating_add(1));
    let later = chapters.iter().skip(after).filter(move |chapter| chapter.from.job == job);
    later.map(|chapter| chapter.from.k)
}

/// The error of a node whose checkpoint that all agreed on is lost.
pub fn lost_cut(k: u64) -> Error {
    let message = format!(
        "the nodes agreed that this one continues from its state of iteration {k}, and that checkpoint is lost"
    );
    Error::storage("storage/checkpoint", message)
        .hint("restore the folder `checkpoints` of this run")
}

impl Job<'_> {
    /// Whether the job ended earlier, by the state of process 0 or of this peer, which then informs
    /// its neighbours.
    pub fn is_known(&self, ended: bool, transport: &mut dyn Transport) -> Result<bool> {
        let Processes::Peers(own) = Processes::of(transport) else {
            return Ok(transport.all(&[u8::from(ended)], &anything)?[0] == [1]);
        };
        if ended {
            let world = self.among_members(&own.chapters()?)?;
            let mixing = &world.as_ref().unwrap_or(self.setup.world).mixing;
            let limits = Limits::default();
            own.pass(Begin {
                job: self.number,
                mixing,
                kept: None,
                held: None,
                lacks: false,
                limits,
            })?;
        }
        Ok(ended)
    }

    /// The state of an earlier run: that of process 0, or this peer's own. `held` are the iterations of the peer's states,
    /// and whether it lacks the one that the chapter begins with.
    pub fn begin<T: Real>(
        &self,
        kept: Option<State>,
        chapter: u64,
        (held, lacks): (&[u64], bool),
        node: &Node<T>,
        transport: &mut dyn Transport,
    ) -> Result<Option<State>> {
        match Processes::of(transport) {
            Processes::One => return Ok(kept),
            Processes::Lockstep => return told_by_first(kept, transport),
            Processes::Peers(own) => {
                // The links of an earlier chapter are of no use in this one.
                let kept = kept.as_ref().filter(|state| state.chapter == chapter);
                let kept = kept.map(|state| &state.links[..]);
                let (mixing, limits) = (&self.setup.world.mixing, self.setup.limits(node));
                let (job, held) = (self.number, Some(held));
                own.begin(Begin { job, mixing, kept, held, lacks, limits })?;
            }
        }
        Ok(kept)
    }
}

/// The state of an earlier run, as process 0 has it.
fn told_by_first(kept: Option<State>, transport: &mut dyn Transport) -> Result<Option<State>> {
    let bytes = |state| Checkpoint { run: Hash::default(), metrics: 0, state }.to_bytes();
    let ours = kept.filter(|_| transport.rank() == 0).map(bytes).unwrap_or_default();
    let told = transport.all(&ours, &anything)?.swap_remove(0);
    if told.is_empty() {
        return Ok(None);
    }
    let checkpoint = Checkpoint::from_bytes(&told).map_err(|_| misfit())?;
    Ok(Some(checkpoint.state))
}

/// Restores the nodes of this process, and returns their digest chains.
pub fn restore<T: Real>(
    state: &State,
    here: Range<usize>,
    transport: &mut dyn Transport,
    nodes: &mut [Node<T>],
    delivery: &mut dyn Delivery<T>,
) -> Result<Vec<Hash>> {
    // A peer's checkpoint holds its own nodes only.
    let here = if Processes::of(transport).are_peers() { 0..here.len() } else { here };
    let kept = state.nodes.get(here).ok_or_else(misfit)?;
    let put_back = |(i, (node, bytes)): (usize, (&mut Node<T>, &Vec<u8>))| {
        let (trail, held) = checkpoint::restore(node, bytes)?;
        delivery.restore(i, held)?;
        Some(trail)
    };
    nodes.iter_mut().zip(kept).enumerate().map(put_back).collect::<Option<_>>().ok_or_else(misfit)
}

/// Hands the states of a run to the store: those of all nodes from process 0, or of a peer's own.
#[derive(Default)]
pub struct Keeper {
    /// The chapter of the run.
    pub chapter: u64,
    serial: u64,         // of the next state
    last: Option<State>, // a peer's last, without its links
}

impl Keeper {
    /// Nothing kept yet in a chapter.
    pub fn new(chapter: u64) -> Keeper {
        Keeper { chapter, ..Keeper::default() }
    }

    /// Continues after the state of an earlier run.
    pub fn after(kept: Option<State>) -> Keeper {
        let serial = kept.as_ref().map_or(0, |state| state.serial + 1);
        let chapter = kept.as_ref().map_or(0, |state| state.chapter);
        Keeper { chapter, serial, last: kept.map(|state| State { links: Vec::new(), ..state }) }
    }

    /// Keeps the state of the run; `record` is that of its recorder.
    pub fn keep<T: Real>(
        &mut self,
        job: &Job,
        cluster: &mut Cluster<T>,
        nodes: Vec<Vec<u8>>,
        (seconds, record): (f64, impl FnOnce(&Cluster<T>) -> Vec<u8>),
        observers: &mut Observers,
    ) -> Result<()> {
        let peers = Processes::with(cluster).are_peers();
        if !peers {
            agree_on_time(cluster)?;
        }
        let (progress, record, serial) = (cluster.progress(), record(cluster), self.serial);
        let chapter = self.chapter;
        let state =
            |nodes, links| State { progress, serial, seconds, record, nodes, links, chapter };
        let Processes::Peers(own) = Processes::with(cluster) else {
            let nodes = cluster.gather(nodes)?;
            return match cluster.is_first() {
                true => self.hand_over(job, state(nodes, Vec::new()), observers),
                false => Ok(()),
            };
        };
        own.mark();
        let state = state(nodes, Vec::new());
        self.last = Some(state.clone());
        self.hand_over(job, State { links: own.save(false), ..state }, observers)?;
        own.kept()?;
        own.note_checkpoint(progress.k);
        Ok(())
    }

    fn hand_over(&mut self, job: &Job, state: State, observers: &mut Observers) -> Result<()> {
        self.serial += 1;
        observers.store.keep(&job.algorithm.label, job.setup.seed, state)
    }

    /// Ends the run, with or without an error. A peer that ended, or that lost another, saves its
    /// last state once more with everything received since, so that it can reach the same point again
    /// without help; at the end it waits until its neighbours have done the same.
    pub fn leave<T: Real>(
        &mut self,
        job: &Job,
        cluster: &mut Cluster<T>,
        done: Result<Outcome>,
        observers: &mut Observers,
    ) -> Result<Outcome> {
        let Processes::Peers(own) = Processes::with(cluster) else { return done };
        // Where nodes may be left out, the last two states of a run that has not ended must stay.
        let lacks = |error: &Error| error.kind == Kind::Peer && !own.leaves();
        if done.as_ref().err().is_none_or(lacks)
            && let Some(last) = self.last.take()
        {
            let (serial, links, k) = (self.serial, own.save(done.is_ok()), last.progress.k);
            self.hand_over(job, State { serial, links, ..last }, observers)?;
            own.note_checkpoint(k);
        }
        if done.is_ok() {
            own.end()?;
        }
        done
    }
}

/// Refuses the end of a peer that was asked to stop: a last measurement would need the other peers,
/// which carry on.
pub fn check_stop<T: Real>(cluster: &mut Cluster<T>, interrupted: bool) -> Result<()> {
    match interrupted && Processes::with(cluster).are_peers() {
        true => Err(stopped()),
        false => Ok(()),
    }
}

/// The points of all nodes, from those here. A personal θ_i never leaves its peer: other peers have
/// NaN in its place.
pub fn points<T: Real>(
    cluster: &mut Cluster<T>,
    scope: Scope,
    own: Vec<Point>,
) -> Result<Vec<Point>> {
    let peers = Processes::with(cluster).are_peers();
    if scope == Scope::Personal && peers {
        let xs = own.iter().map(|(x, _)| x.clone()).collect();
        let all = cluster.everyone(xs, Expect::Numbers)?;
        let unknown = vec![f64::NAN; own[0].1.len()];
        let mut all: Vec<Point> = all.into_iter().map(|x| (x, unknown.clone())).collect();
        all.splice(cluster.here(), own);
        return Ok(all);
    }
    if cluster.is_whole() {
        return Ok(own);
    }
    let n = own[0].0.len();
    let own = own.into_iter().map(|(x, theta)| [x, theta].concat()).collect();
    let all = cluster.everyone(own, Expect::Numbers)?;
    let point = |mut x: Vec<f64>| {
        let theta = x.split_off(n);
        (x, theta)
    };
    Ok(all.into_iter().map(point).collect())
}
