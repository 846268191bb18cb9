//! Work lists that several parts share: nothing is lost and nothing is done twice, at whatever step a part dies.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lopa::error::{Error, Kind, Result};
use lopa::folder::work::{Beating, Ledger, Member, Merge, Next, Part, Share, Unit, walk};
use lopa::math::random::{Purpose, Stream};
use lopa_base::store::disk::{self, Verdict};

const LEASE: Duration = Duration::from_secs(10);
const WORK: &str = "test 1";

fn units(count: usize) -> Vec<Unit> {
    let unit = |i: usize| Unit {
        name: format!("trial-a/b ü-{i}"),
        shown: format!("trial {i}"),
        task: i.to_string(),
    };
    (0..count).map(unit).collect()
}

fn result_of(unit: &Unit) -> String {
    format!("{{\"of\":\"{}\",\"value\":\"{}\"}}", unit.task, "x".repeat(unit.task.len() * 40))
}

/// When a part is killed: at the n-th step on the disk, and whether that write is half done.
#[derive(Debug, Clone, Copy)]
struct Kill {
    step: usize,
    half: bool,
}

/// A part in a simulated world: its own clock, its work, its death.
struct Player {
    part: Part,
    id: String,
    steps: Rc<Cell<usize>>,
    kill: Option<Kill>,
    doing: Option<(usize, u64)>, // a unit, and how many ticks it still takes
    dead: bool,
    over: bool,
}

/// Several parts on one folder, moved by one thread in a drawn order.
struct World {
    folder: tempfile::TempDir,
    time: Arc<AtomicUsize>, // in milliseconds
    units: Vec<Unit>,
    players: Vec<Player>,
    stream: Stream,
    handed: BTreeMap<usize, usize>,
    lost: BTreeMap<usize, usize>, // units whose worker died
}

impl World {
    fn new(count: usize, seed: u64) -> World {
        World {
            folder: tempfile::tempdir().unwrap(),
            time: Arc::default(),
            units: units(count),
            players: Vec::new(),
            stream: Stream::new(seed, Purpose::Data, 0),
            handed: BTreeMap::new(),
            lost: BTreeMap::new(),
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        (self.stream.unit() * below as f64) as u64
    }

    /// A new part; its clock has another origin and another speed than all others.
    fn join(&mut self, share: &str, kill: Option<Kill>) {
        let (time, origin) = (self.time.clone(), self.draw(1_000_000));
        let speed = 0.8 + self.stream.unit() * 0.45;
        let clock = move || {
            let now = time.load(Ordering::Relaxed) as f64 * speed;
            Duration::from_millis(origin + now as u64)
        };
        let id = format!("{share} on host {}", self.players.len());
        let host = format!("host{}", self.players.len());
        let member = Member { share: share.parse().unwrap(), host, id: id.clone(), lease: LEASE };
        let steps = Rc::new(Cell::new(0));
        let joined = killable(&steps, kill, || {
            Part::join(self.folder.path(), WORK, member, Box::new(clock))
        });
        if let Ok(part) = joined {
            let (doing, dead, over) = (None, false, false);
            self.players.push(Player { part, id, steps, kill, doing, dead, over });
        }
    }

    /// Every living part does something, in a drawn order.
    fn tick(&mut self) {
        self.time.fetch_add(1000, Ordering::Relaxed);
        let mut order: Vec<usize> = (0..self.players.len()).collect();
        for at in (1..order.len()).rev() {
            let other = self.draw(at as u64 + 1) as usize;
            order.swap(at, other);
        }
        for at in order {
            let ticks = 1 + self.draw(30);
            self.act(at, ticks);
            let busy: Vec<usize> =
                self.players.iter().filter(|p| !p.dead).filter_map(|p| Some(p.doing?.0)).collect();
            let distinct: BTreeSet<usize> = busy.iter().copied().collect();
            assert_eq!(distinct.len(), busy.len(), "two living parts are at work on one unit");
        }
    }

    fn act(&mut self, at: usize, ticks: u64) {
        let player = &mut self.players[at];
        if player.dead || player.over {
            return;
        }
        let (steps, kill) = (player.steps.clone(), player.kill);
        let units = &self.units;
        let done: Result<()> = killable(&steps, kill, || {
            match player.doing {
                Some((unit, 0)) => {
                    player.part.keep(&units[unit], &result_of(&units[unit]))?;
                    player.doing = None;
                }
                Some((unit, left)) => {
                    player.doing = Some((unit, left - 1));
                    player.part.beat()?;
                }
                None => match player.part.next(units)? {
                    Next::Do(unit) => {
                        *self.handed.entry(unit).or_default() += 1;
                        player.doing = Some((unit, ticks));
                    }
                    Next::Wait => {}
                    Next::Over => {
                        player.part.leave(None)?;
                        player.over = true;
                    }
                },
            }
            Ok(())
        });
        if done.is_err() {
            player.dead = true;
            if let Some((unit, _)) = player.doing {
                *self.lost.entry(unit).or_default() += 1;
            }
        }
    }

    /// Until every living part has ended; if none lives, another joins.
    fn finish(&mut self) {
        for _ in 0..3000 {
            if self.players.iter().all(|player| player.dead) {
                self.join("1/1", None);
            }
            if self.players.iter().all(|player| player.dead || player.over) {
                return;
            }
            self.tick();
        }
        panic!(
            "the parts do not end: {:?}",
            self.players.iter().map(|p| &p.id).collect::<Vec<_>>()
        );
    }

    /// All results are there, and every unit was done once for every worker that did not die of it.
    fn check(&self) {
        for player in self.players.iter().filter(|player| player.over) {
            for unit in &self.units {
                assert_eq!(player.part.result(unit), Some(result_of(unit)), "{}", player.id);
            }
        }
        for at in 0..self.units.len() {
            // A worker may die after its result is there, but before it says so.
            let count = |of: &BTreeMap<usize, usize>| of.get(&at).copied().unwrap_or_default();
            let (handed, lost) = (count(&self.handed), count(&self.lost));
            assert!((1..=1 + lost).contains(&handed), "unit {at}: {handed} times, {lost} died");
        }
        let mut merge = Mutex::new(Merge::open(self.folder.path(), WORK).unwrap());
        assert_eq!(merge.get_mut().unwrap().next(&self.units).unwrap(), Next::Over);
        let all = results(&merge, &self.units);
        assert_eq!(all, self.units.iter().map(result_of).collect::<Vec<_>>());
    }
}

fn results<L: Ledger>(ledger: &Mutex<L>, units: &[Unit]) -> Vec<String> {
    let never = AtomicBool::new(false);
    walk(ledger, units, (None, &never), &|_| panic!("nothing is left to do"), &|_| ()).unwrap()
}

/// Calls a function that ends at the step of the kill: this step and all later ones fail.
fn killable<R>(steps: &Rc<Cell<usize>>, kill: Option<Kill>, run: impl FnOnce() -> R) -> R {
    let steps = steps.clone();
    let watch = move |what: disk::Step| {
        let step = steps.get();
        steps.set(step + 1);
        let killed = || io::Error::other("killed");
        match kill {
            Some(kill) if step == kill.step && kill.half => Verdict::Half(killed()),
            Some(kill) if step >= kill.step => Verdict::Fail(killed()),
            // Nothing here survives a power cut, nor need it.
            _ if matches!(what, disk::Step::Sync(_) | disk::Step::SyncFolder(_)) => Verdict::Skip,
            _ => Verdict::Go,
        }
    };
    disk::watched(watch, run)
}

#[test]
fn a_part_may_be_killed_at_every_step_of_its_life() {
    let mut longest = 0;
    for half in [false, true] {
        for step in 0.. {
            let mut world = World::new(3, 7);
            world.join("1/2", Some(Kill { step, half }));
            world.join("2/2", None);
            world.finish();
            world.check();
            longest = step.max(longest);
            if world.players.iter().all(|player| !player.dead) && world.players.len() == 2 {
                break;
            }
        }
    }
    assert!(longest > 60, "a part that is never killed takes {longest} steps");
}

#[test]
fn any_number_of_parts_may_die_in_any_order() {
    for seed in 0..60 {
        let mut world = World::new(1 + seed as usize % 9, seed);
        let parts = 1 + world.draw(5);
        for number in 1..=parts {
            let kill = Kill { step: world.draw(200) as usize, half: world.draw(2) == 0 };
            let kill = (world.draw(2) == 0).then_some(kill);
            world.join(&format!("{number}/{parts}"), kill);
            (0..world.draw(20)).for_each(|_| world.tick());
        }
        world.finish();
        world.check();
    }
}

#[test]
fn without_deaths_everything_is_done_exactly_once() {
    for seed in 100..130 {
        let mut world = World::new(12, seed);
        for number in 1..=4 {
            world.join(&format!("{number}/4"), None);
        }
        world.finish();
        world.check();
        assert!(world.handed.values().all(|&count| count == 1), "{:?}", world.handed);
    }
}

#[test]
fn a_damaged_result_is_done_again() {
    for seed in 200..220 {
        let mut world = World::new(5, seed);
        world.join("1/2", None);
        world.join("2/2", None);
        for _ in 0..40 {
            world.tick();
            let entries = fs::read_dir(world.folder.path().join("results")).unwrap();
            let names: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
            if world.draw(8) == 0 && !names.is_empty() {
                let path = &names[world.draw(names.len() as u64) as usize];
                let bytes = fs::read(path).unwrap();
                let kept = world.draw(bytes.len() as u64) as usize;
                fs::write(path, &bytes[..kept]).unwrap();
            }
        }
        // Parts that know a result do not read it again; one that comes later does what is damaged.
        world.finish();
        world.join("1/1", None);
        world.finish();
        let mut merge = Merge::open(world.folder.path(), WORK).unwrap();
        assert_eq!(merge.next(&world.units).unwrap(), Next::Over, "seed {seed}");
        for unit in &world.units {
            assert_eq!(merge.result(unit), Some(result_of(unit)));
        }
    }
}

fn member(share: &str, host: &str) -> Member {
    let id = format!("{share}-{host}");
    Member { share: share.parse().unwrap(), host: host.into(), id, lease: LEASE }
}

fn join(folder: &Path, share: &str, host: &str) -> Part {
    Part::join(folder, WORK, member(share, host), Box::new(|| Duration::ZERO)).unwrap()
}

#[test]
fn a_merge_names_the_missing_part_its_host_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let units = units(3);
    let merged = || Merge::open(folder.path(), WORK).and_then(|mut merge| merge.next(&units));
    let error = merged().unwrap_err();
    assert_eq!((error.id, error.kind), ("share/missing", Kind::Storage));
    assert!(error.to_string().contains("--share 1/N"), "{error}");
    let mut first = join(folder.path(), "1/2", "n1");
    assert!(merged().unwrap_err().message.contains("no part has begun it"));
    assert_eq!(first.next(&units).unwrap(), Next::Do(0));
    let text = merged().unwrap_err().to_string();
    assert!(text.contains("3 of 3") && text.contains("part 1/2 on n1 is at work"), "{text}");
    assert!(text.contains("trial 0") && text.contains("--share 1/2"), "{text}");
    let full = Error::storage("storage/write", "the disk is full").hint("free some space");
    first.leave(Some(&full)).unwrap();
    let text = merged().unwrap_err().to_string();
    assert!(text.contains("part 1/2 on n1 failed: the disk is full"), "{text}");
    assert!(
        text.contains("free some space; then run the same command with `--share 1/2`"),
        "{text}"
    );
    // A part that has ended is taken over at once.
    let mut second = join(folder.path(), "2/2", "n2");
    for at in [1, 0, 2] {
        assert_eq!(second.next(&units).unwrap(), Next::Do(at));
        second.keep(&units[at], &result_of(&units[at])).unwrap();
    }
    assert_eq!(second.next(&units).unwrap(), Next::Over);
    assert_eq!(merged().unwrap(), Next::Over);
    let error = Merge::open(folder.path(), "other work").err().unwrap();
    assert_eq!(error.id, "share/other-work");
    let error =
        Part::join(folder.path(), "x", member("1/1", "n"), Box::new(|| Duration::ZERO)).err();
    assert_eq!(error.unwrap().id, "share/other-work");
}

#[test]
fn of_two_parts_that_race_for_a_unit_one_gets_it() {
    let folder = tempfile::tempdir().unwrap();
    let units = units(40);
    let done: Mutex<Vec<String>> = Mutex::default();
    std::thread::scope(|scope| {
        for number in 1..=4 {
            let (folder, units, done) = (folder.path(), &units, &done);
            scope.spawn(move || {
                // All begin at the same units.
                let never = AtomicBool::new(false);
                let lease = Duration::from_secs(600);
                let member = Member { lease, ..member("1/1", &format!("host{number}")) };
                let beating = Beating::join(folder, WORK, member).unwrap();
                let one = |unit: &Unit| {
                    done.lock().unwrap().push(unit.name.clone());
                    Ok(result_of(unit))
                };
                let all = walk(beating.part(), units, (None, &never), &one, &|_| ());
                beating.leave(&all);
                assert_eq!(all.unwrap(), units.iter().map(result_of).collect::<Vec<_>>());
            });
        }
    });
    let done = done.into_inner().unwrap();
    assert_eq!((done.len(), done.iter().collect::<BTreeSet<_>>().len()), (40, 40));
}

#[test]
fn the_share_of_a_job_is_read_from_its_environment() {
    let of = |set: &[(&str, &str)]| {
        let set: BTreeMap<String, String> =
            set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Share::of_job(&|name| set.get(name).cloned()).map(|share| share.to_string())
    };
    let array = |id, min, count, step| {
        let names = ["ID", "MIN", "COUNT", "STEP"].map(|name| format!("SLURM_ARRAY_TASK_{name}"));
        let values = [id, min, count, step];
        let set: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(values).collect();
        of(&set).unwrap()
    };
    assert_eq!(array("3", "1", "16", "1"), "3/16");
    assert_eq!(array("0", "0", "4", "1"), "1/4");
    assert_eq!(array("14", "10", "3", "2"), "3/3");
    // A list with gaps still gives a valid share.
    assert_eq!(array("40", "1", "3", "1"), "1/3");
    assert_eq!(of(&[("SLURM_PROCID", "2"), ("SLURM_NTASKS", "8")]).unwrap(), "3/8");
    let both = [
        ("SLURM_ARRAY_TASK_ID", "2"),
        ("SLURM_ARRAY_TASK_MIN", "1"),
        ("SLURM_ARRAY_TASK_COUNT", "4"),
        ("SLURM_PROCID", "1"),
        ("SLURM_NTASKS", "2"),
    ];
    assert_eq!(of(&both).unwrap(), "4/8");
    assert_eq!(of(&[("JOB_COMPLETION_INDEX", "0"), ("LOPA_PARTS", "5")]).unwrap(), "1/5");
    for (set, hint) in [
        (&[][..], "--share 3/16"),
        (&[("JOB_COMPLETION_INDEX", "0")], "LOPA_PARTS"),
        (&[("SLURM_ARRAY_TASK_ID", "x")], "--share 3/16"),
        (&[("JOB_COMPLETION_INDEX", "7"), ("LOPA_PARTS", "5")], "--share 3/16"),
    ] {
        let error = of(set).unwrap_err();
        assert_eq!(error.kind, Kind::Config);
        assert!(error.to_string().contains(hint), "{error}");
    }
    for text in ["", "3", "0/4", "5/4", "1/0", "-1/4", "a/b", "1/2/3", "1/99999999999"] {
        let error = text.parse::<Share>().unwrap_err();
        assert_eq!(error.id, "config/out-of-range", "{text}");
    }
}

#[test]
fn progress_names_parts_at_work_and_silent_ones() {
    let folder = tempfile::tempdir().unwrap();
    let units = units(4);
    let time = Arc::new(AtomicUsize::new(0));
    let clock = time.clone();
    let clock = move || Duration::from_secs(clock.load(Ordering::Relaxed) as u64);
    let mut watcher =
        Part::join(folder.path(), WORK, member("2/2", "n2"), Box::new(clock)).unwrap();
    let mut other = join(folder.path(), "1/2", "n1");
    assert_eq!(other.next(&units).unwrap(), Next::Do(0));
    let mut line = || watcher.progress(&units).unwrap();
    assert_eq!(line(), "0 of 4 done; at work: part 1/2 on n1");
    time.store(7, Ordering::Relaxed);
    assert_eq!(line(), "0 of 4 done; silent: part 1/2 on n1 for 7 s");
    other.keep(&units[0], &result_of(&units[0])).unwrap();
    other.leave(None).unwrap();
    assert_eq!(line(), "0 of 4 done");
    assert_eq!(watcher.next(&units).unwrap(), Next::Do(1));
    assert_eq!(watcher.progress(&units).unwrap(), "1 of 4 done; at work: part 2/2 on n2");
}
