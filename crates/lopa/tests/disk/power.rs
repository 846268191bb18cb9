//! The power is cut after every step of a run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use lopa::engine::{FileJournal, Journal};
use lopa_base::store::disk::{Verdict, watched};

use super::simulated::{Cut, Simulated, State, Taken};
use super::{Event, INTERVAL, Lab, quick};

/// Draws for each step.
const DRAWS: u64 = 3;

fn cuts(step: usize) -> impl Iterator<Item = Cut> {
    let drawn = (0..DRAWS).map(move |draw| Cut::Drawn(step as u64 * DRAWS + draw));
    [Cut::Lost, Cut::Kept, Cut::NamesOnly, Cut::ContentOnly, Cut::Torn].into_iter().chain(drawn)
}

/// The results that must survive a power cut.
#[derive(Debug, Default, Clone)]
struct Durable {
    checkpoints: Vec<(String, u64)>, // how many of each algorithm
    ended: usize,
}

impl Durable {
    /// Derives it from the steps of a run, as a user does from its output.
    fn after(steps: &[Taken]) -> Durable {
        let mut durable = Durable::default();
        for pair in steps.windows(2) {
            let [Taken::Rename(_, to), Taken::SyncFolder(_)] = pair else { continue };
            let name = to.file_name().unwrap().to_str().unwrap();
            if name == "results.json" {
                durable.ended += 1;
            }
            if let Some((algorithm, _)) = name
                .split_once("-seed1.")
                .filter(|_| to.parent().is_some_and(|folder| folder.ends_with("checkpoints")))
            {
                let known = durable.checkpoints.iter_mut().find(|(of, _)| of == algorithm);
                match known {
                    Some((_, count)) => *count += 1,
                    None => durable.checkpoints.push((algorithm.into(), 1)),
                }
            }
        }
        durable
    }

    /// Nothing that was durable is done again.
    fn check(&self, events: &[Event], case: &str) {
        let skipped = events.iter().filter(|event| matches!(event, Event::Skip(_))).count();
        assert!(skipped >= self.ended, "{case}: {events:?}");
        for pair in events.windows(2) {
            let [Event::Begin(algorithm), next] = pair else { continue };
            let kept = self.checkpoints.iter().find(|(of, _)| of == algorithm);
            let from = match next {
                Event::Resumed(from) => from.unwrap_or(0),
                _ => 0,
            };
            assert!(from >= kept.map_or(0, |(_, count)| count * INTERVAL), "{case}: {events:?}");
        }
    }
}

/// The steps of a run that resumes from `root`, up to this many; then the disk fails.
fn record(lab: &Lab, root: &Path, most: usize) -> Vec<Taken> {
    let steps = Rc::new(RefCell::new(Vec::new()));
    let taken = steps.clone();
    let (done, _) = lab.run(root, move |step| {
        let mut taken = taken.borrow_mut();
        if taken.len() >= most {
            return Verdict::Fail(std::io::ErrorKind::Other.into());
        }
        taken.extend(Taken::of(&step));
        quick(&step)
    });
    assert_eq!(done.is_ok(), steps.borrow().len() < most);
    steps.take()
}

/// Cuts the power after every step from some on.
fn cut_after(lab: &Lab, top: &Path, steps: &[Taken], from: usize) {
    let (_, want) = super::undisturbed(lab);
    let mut disk = Simulated::default();
    steps[..from].iter().for_each(|step| disk.take(step));
    // Most cuts leave what another one has left: it is mended once.
    let mut mended = BTreeMap::<State, Vec<Event>>::new();
    for at in from..=steps.len() {
        let durable = Durable::after(&steps[..at]);
        for cut in cuts(at) {
            let case = format!("after {at} steps, {:?}, {cut:?}", steps[..at].last());
            let events = mended.entry(disk.left(cut, top)).or_insert_with(|| {
                let root = tempfile::tempdir().unwrap();
                disk.leave(cut, top, root.path());
                let (left, events) = lab.mend(root.path());
                assert_eq!(left, want, "{case}");
                events
            });
            durable.check(events, &case);
        }
        steps.get(at).into_iter().for_each(|step| disk.take(step));
    }
    let all = Durable::after(steps);
    assert_eq!((all.ended, all.checkpoints.len()), (2, 2), "{all:?}");
}

#[test]
fn a_power_cut_after_any_step_loses_nothing_that_was_kept() {
    let lab = Lab::new();
    let top = tempfile::tempdir().unwrap();
    let steps = record(&lab, top.path(), usize::MAX);
    let all = Durable::after(&steps);
    assert!(all.checkpoints.iter().all(|(_, count)| *count == 3), "{all:?}");
    cut_after(&lab, top.path(), &steps, 0);
}

/// It also cuts measurements that a checkpoint does not have.
#[test]
fn a_power_cut_after_any_step_of_a_run_that_resumes_loses_nothing() {
    let lab = Lab::new();
    let (all, _) = super::undisturbed(&lab);
    let top = tempfile::tempdir().unwrap();
    let mut steps = record(&lab, top.path(), all / 2);
    let from = steps.len();
    steps.extend(record(&lab, top.path(), usize::MAX));
    assert!(steps.iter().any(|step| matches!(step, Taken::Cut(..))), "nothing was cut");
    cut_after(&lab, top.path(), &steps, from);
}

/// The simulation can fail: a run that syncs nothing loses its results.
#[test]
fn without_syncs_a_power_cut_loses_checkpoints() {
    let lab = Lab::new();
    let top = tempfile::tempdir().unwrap();
    let steps = record(&lab, top.path(), usize::MAX);
    let synced = |step: &&Taken| matches!(step, Taken::Sync(_) | Taken::SyncFolder(_));
    for only in ["content", "names"] {
        let mut disk = Simulated::default();
        let left_out = |step: &&Taken| match only {
            "content" => synced(step) && matches!(step, Taken::Sync(_)),
            _ => synced(step) && matches!(step, Taken::SyncFolder(_)),
        };
        steps.iter().filter(|step| !left_out(step)).for_each(|step| disk.take(step));
        let root = tempfile::tempdir().unwrap();
        disk.leave(Cut::Lost, top.path(), root.path());
        let folder = fs::read_dir(root.path().join("out/runs")).into_iter().flatten().flatten();
        let sound = folder.filter(|run| lopa::folder::RunReader::open(&run.path()).is_ok());
        assert_eq!(sound.count(), 0, "without syncs of {only}");
    }
}

#[test]
fn a_power_cut_after_any_step_leaves_the_journal_as_it_was_said_to_be() {
    let top = tempfile::tempdir().unwrap();
    let steps = Rc::new(RefCell::new(Vec::new()));
    let said = RefCell::new(Vec::<(usize, Vec<u8>)>::new());
    let taken = steps.clone();
    let watch = move |step: lopa_base::store::disk::Step| {
        taken.borrow_mut().extend(Taken::of(&step));
        quick(&step)
    };
    let path = top.path().join("out").join("alice").join("skipped");
    watched(watch, || {
        let mut journal = FileJournal::new(path.clone());
        let mut now = Vec::new();
        let note = |now: &Vec<u8>| said.borrow_mut().push((steps.borrow().len(), now.clone()));
        for round in 0..3 {
            for turn in 0..2 {
                let record = format!("\n{round} {turn} end\n");
                journal.append(record.as_bytes()).unwrap();
                now.extend_from_slice(record.as_bytes());
                note(&now);
            }
            journal.clear().unwrap();
            now.clear();
            note(&now);
        }
    });
    let steps = steps.take();
    let mut disk = Simulated::default();
    for at in 0..=steps.len() {
        // If the run tried nothing after a report, the disk has exactly the reported results.
        let said = said.borrow().iter().find(|(then, _)| *then == at).cloned();
        for cut in said.iter().flat_map(|_| cuts(at)) {
            let root = tempfile::tempdir().unwrap();
            disk.leave(cut, top.path(), root.path());
            let found = fs::read(root.path().join("out/alice/skipped")).unwrap_or_default();
            let want = &said.as_ref().unwrap().1;
            assert_eq!(found, *want, "after {at} steps, {cut:?}");
        }
        steps.get(at).into_iter().for_each(|step| disk.take(step));
    }
}
