//! Clusters of peers in one process: the code that real peers run, on a simulated faulty network.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use lopa::data::Origin;
use lopa::engine::{Journal, Note, Peers, Picture, Policy, Settings, Transport};
use lopa::error::Result;
use lopa::experiment::Experiment;
use lopa::problem::private::Key;
use lopa::run::checkpoint::{Checkpoint, State};
use lopa::run::reserved::{Claim, Reservation, Reserved};
use lopa::run::{Context, Listener, Outcome, Store};

use super::faulty::{Faults, Faulty, Killed, Tamper, World, seconds};

/// The key of every owner of rows.
pub const KEY: Key = Key([5; 32]);

/// A disk that survives its machine: two checkpoints, results and a journal.
#[derive(Default)]
pub struct Disk {
    slots: [Vec<u8>; 2],
    next: usize,
    ended: Vec<Outcome>,
    /// Decisions on links since the last checkpoint.
    journal: Vec<u8>,
    /// Decisions to replay.
    replayed: Vec<u8>,
    /// All decisions on links.
    pub turns: Vec<u8>,
    /// Checkpoints written.
    pub written: usize,
    /// Bytes of the largest.
    pub largest: usize,
    /// Warnings to the user.
    pub warnings: Vec<String>,
    agreed: Option<Vec<u8>>,
    /// Claims of a run that protects rows.
    pub claims: Vec<Claim>,
}

pub type Shared<T> = Arc<Mutex<T>>;

/// Stores a node's state on its disk.
struct Keeper {
    disk: Shared<Disk>,
    world: Arc<World>,
}

impl Disk {
    /// Empty but for claims.
    pub fn claimed(claims: Vec<Claim>) -> Disk {
        Disk { claims, ..Disk::default() }
    }

    /// Empty but for decisions to replay.
    pub fn with(replayed: Vec<u8>) -> Shared<Disk> {
        Shared::new(Disk { replayed, ..Disk::default() }.into())
    }
}

impl Store for Keeper {
    fn ended(&mut self, algorithm: &str, seed: u64) -> Result<Option<Outcome>> {
        let disk = self.disk.lock().unwrap();
        let of = |outcome: &&Outcome| outcome.algorithm == algorithm && outcome.seed == seed;
        Ok(disk.ended.iter().find(of).cloned())
    }

    fn kept(
        &mut self,
        algorithm: &str,
        seed: u64,
        usable: &dyn Fn(&State) -> bool,
        _: &mut dyn FnMut(String),
    ) -> Result<Option<State>> {
        let mut disk = self.disk.lock().unwrap();
        let run = run(algorithm, seed);
        let valid = |slot: &Vec<u8>| {
            let kept = Checkpoint::from_bytes(slot).ok().filter(|kept| kept.run == run);
            kept.map(|kept| kept.state).filter(usable)
        };
        let [first, second] = [0, 1].map(|slot| valid(&disk.slots[slot]));
        let age = |state: &Option<State>| state.as_ref().map(|s| (s.progress.k, s.serial));
        let second_is_newer = age(&second) > age(&first);
        disk.next = usize::from(!second_is_newer);
        Ok(if second_is_newer { second } else { first })
    }

    fn held(
        &mut self,
        algorithm: &str,
        seed: u64,
        usable: &dyn Fn(&State) -> bool,
    ) -> Result<Vec<u64>> {
        let (disk, run) = (self.disk.lock().unwrap(), run(algorithm, seed));
        let valid = disk.slots.iter().filter_map(|slot| Checkpoint::from_bytes(slot).ok());
        let valid = valid.filter(|kept| kept.run == run && usable(&kept.state));
        Ok(valid.map(|kept| kept.state.progress.k).collect())
    }

    fn keep(&mut self, algorithm: &str, seed: u64, state: State) -> Result<()> {
        let bytes = Checkpoint { run: run(algorithm, seed), metrics: 0, state }.to_bytes();
        let mut disk = self.disk.lock().unwrap();
        let slot = disk.next;
        if self.world.tears() {
            disk.slots[slot] = bytes[..self.world.below(bytes.len())].to_vec();
            drop(disk);
            resume_unwind(Box::new(Killed));
        }
        disk.largest = disk.largest.max(bytes.len());
        disk.slots[slot] = bytes;
        disk.next = 1 - slot;
        disk.written += 1;
        Ok(())
    }

    fn agreed(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(self.disk.lock().unwrap().agreed.clone())
    }

    fn agree(&mut self, bytes: &[u8]) -> Result<()> {
        self.disk.lock().unwrap().agreed = Some(bytes.to_vec());
        Ok(())
    }

    fn reserve(&mut self, _: &[Origin], _: &Reservation) -> Result<Reserved> {
        let claim = self.disk.lock().unwrap().claims.last().copied().unwrap_or_default();
        Ok(Reserved { key: KEY, claim })
    }

    fn claim(&mut self, claim: Claim) -> Result<()> {
        self.disk.lock().unwrap().claims.push(claim);
        Ok(())
    }

    fn end(&mut self, outcome: &Outcome) -> Result<()> {
        let mut disk = self.disk.lock().unwrap();
        disk.slots = Default::default();
        disk.ended.push(outcome.clone());
        Ok(())
    }
}

/// Writes warnings on a node's disk.
struct Warnings(Shared<Disk>);

impl Listener for Warnings {
    fn warn(&mut self, text: &str) {
        self.0.lock().unwrap().warnings.push(text.into());
    }
}

fn run(algorithm: &str, seed: u64) -> [u8; 32] {
    let mut run = [seed as u8; 32];
    run.iter_mut().zip(algorithm.bytes()).for_each(|(place, byte)| *place ^= byte);
    run
}

/// The journal of a disk; it always contains the decisions to replay.
struct DiskJournal(Shared<Disk>);

impl Journal for DiskJournal {
    fn read(&mut self) -> Result<Vec<u8>> {
        let disk = self.0.lock().unwrap();
        Ok([&disk.replayed[..], &disk.journal].concat())
    }

    fn append(&mut self, record: &[u8]) -> Result<()> {
        let mut disk = self.0.lock().unwrap();
        disk.journal.extend_from_slice(record);
        disk.turns.extend_from_slice(record);
        Ok(())
    }

    fn clear(&mut self) -> Result<()> {
        self.0.lock().unwrap().journal.clear();
        Ok(())
    }
}

/// A policy, with its patience in seconds if it has one.
#[derive(Debug, Clone, Copy)]
pub enum TestPolicy {
    Wait,
    Stop,
    Skip(f64),
    Leave(f64),
}

/// How a node ended.
pub struct Fate {
    pub done: Result<Vec<Outcome>>,
    pub notes: Vec<Note>,
    pub lives: usize,
    /// When it left.
    pub left: std::time::Duration,
    /// Packets of a relay that it did not open.
    pub unopened: usize,
    pub disk: Shared<Disk>,
    /// What it knew of all nodes, at intervals.
    pub pictures: Vec<Picture>,
}

/// A cluster to run.
pub struct Setup<'a> {
    pub experiment: &'a Experiment,
    pub seed: u64,
    pub faults: Faults,
    pub policy: TestPolicy,
    pub tamper: Option<Tamper>,
    /// Disks of an earlier run to resume.
    pub disks: Vec<Shared<Disk>>,
    /// The longest wait, in seconds.
    pub deadline: f64,
    /// Nodes to stop, and when.
    pub stops: Vec<(usize, f64)>,
    /// Whether nodes state how far they are.
    pub watches: bool,
    /// What only some nodes do.
    pub habits: Habits,
}

/// What only some nodes do, where nodes may be left out.
#[derive(Debug, Clone, Default)]
pub struct Habits {
    /// Nodes that say good-bye when they start after their first death, and start once more some seconds later.
    pub byes: Vec<(usize, f64)>,
    /// Nodes whose disks are lost when they die first.
    pub wiped: Vec<usize>,
    /// Iterations between two checkpoints of each node, in place of those of the experiment.
    pub intervals: Vec<u64>,
}

impl<'a> Setup<'a> {
    pub fn new(
        experiment: &'a Experiment,
        seed: u64,
        faults: Faults,
        policy: TestPolicy,
    ) -> Setup<'a> {
        let (disks, stops) = (Vec::new(), Vec::new());
        let deadline = 200.0;
        let (tamper, watches) = (None, matches!(policy, TestPolicy::Leave(_)));
        let habits = Habits::default();
        Setup { experiment, seed, faults, policy, tamper, disks, deadline, stops, watches, habits }
    }

    /// Runs every node to its end.
    pub fn run(self) -> Vec<Fate> {
        let nodes = self.experiment.network.nodes;
        let identity = self.experiment.identity().unwrap();
        let seeds = self.experiment.run.seeds.iter();
        let graphs = seeds.map(|&seed| self.experiment.world(None, seed).unwrap().graph);
        let links: BTreeSet<_> =
            graphs.flat_map(|graph| graph.edges().collect::<Vec<_>>()).collect();
        let links: Vec<_> = links.into_iter().collect();
        let data = self.experiment.load_data_of(&Context::default(), 0..1).unwrap();
        let limit = self.experiment.sizes(data.as_ref(), 0).unwrap().1;
        let size = (nodes, &links[..], limit);
        let world = World::new(size, self.seed, self.faults, self.tamper);
        self.stops.iter().for_each(|&(node, at)| world.stop(node, seconds(at)));
        std::thread::scope(|scope| {
            let one = |node: usize| {
                let disk = self.disks.get(node).cloned().unwrap_or_default();
                let world = world.clone();
                let (experiment, policy, deadline) = (self.experiment, self.policy, self.deadline);
                let place = (node, self.watches);
                let habits = self.habits.clone();
                let run = move || {
                    let waits = (policy, deadline);
                    run_node(experiment, identity, world, place, waits, (disk, habits))
                };
                std::thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, run).unwrap()
            };
            let threads: Vec<_> = (0..nodes).map(one).collect();
            let fates = threads.into_iter().map(|thread| thread.join());
            fates.map(|fate| fate.unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }
}

/// Runs one node to its end, restarting it whenever it is killed.
fn run_node(
    experiment: &Experiment,
    identity: [u8; 32],
    world: Arc<World>,
    (node, watches): (usize, bool),
    (policy, deadline): (TestPolicy, f64),
    (disk, habits): (Shared<Disk>, Habits),
) -> Fate {
    let mut experiment = experiment.clone();
    if let Some(&every) = habits.intervals.get(node) {
        experiment.checkpoint.iterations = Some(every);
    }
    let experiment = &experiment;
    let bye = habits.byes.iter().find(|(of, _)| *of == node).map(|&(_, away)| away);
    let notes = Shared::<Vec<Note>>::default();
    let pictures = Shared::<Vec<Picture>>::default();
    world.begin(node);
    for lives in 1.. {
        let policy = match policy {
            TestPolicy::Wait => Policy::Wait,
            TestPolicy::Stop => Policy::Stop,
            TestPolicy::Skip(patience) => {
                let journal = Box::new(DiskJournal(disk.clone()));
                Policy::SkipLink { patience: seconds(patience), journal }
            }
            TestPolicy::Leave(silence) => {
                let journal = Box::new(DiskJournal(disk.clone()));
                Policy::Leave { silence: seconds(silence), journal }
            }
        };
        let settings = Settings { policy, deadline: seconds(deadline), resend: seconds(0.25) };
        let sink = notes.clone();
        let notify = Box::new(move |note| sink.lock().unwrap().push(note));
        let place = (node, experiment.network.nodes);
        let mut peers = Peers::new(world.wire(node), place, &identity, settings, notify);
        if watches {
            let sink = pictures.clone();
            let rows = Some(100 + node as u64);
            let keep = Box::new(move |picture| sink.lock().unwrap().push(picture));
            peers.watch(lives as u64, rows, keep);
        }
        if bye.is_some() && lives == 2 {
            peers.say_good_bye();
        }
        let life = catch_unwind(AssertUnwindSafe(|| {
            let mut keeper = Keeper { disk: disk.clone(), world: world.clone() };
            run_once(experiment, &mut peers, &mut keeper)
        }));
        match life {
            Ok(Err(error)) if error.id == "peers/left" => {
                world.stay_down(node, seconds(bye.unwrap_or_default()));
            }
            Ok(done) => {
                let (left, unopened) = (world.now(), world.refused(node));
                world.leave(node);
                let notes = notes.lock().unwrap().clone();
                let pictures = pictures.lock().unwrap().clone();
                return Fate { done, notes, lives, left, unopened, disk, pictures };
            }
            Err(panic) if panic.is::<Killed>() => {
                if habits.wiped.contains(&node) && lives == 1 {
                    *disk.lock().unwrap() = Disk::default();
                }
                world.stay_down(node, world.downtime(node));
            }
            Err(panic) => {
                world.leave(node);
                resume_unwind(panic);
            }
        }
    }
    unreachable!("a node has a last life")
}

fn run_once(
    experiment: &Experiment,
    peers: &mut Peers<Faulty>,
    keeper: &mut Keeper,
) -> Result<Vec<Outcome>> {
    let never = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &never, probe: None };
    let warnings = &mut Warnings(keeper.disk.clone());
    let me = peers.rank();
    let data = experiment.load_data_of(&context, me..me + 1)?;
    experiment.run_peer(peers, data, &context, keeper, warnings)
}
