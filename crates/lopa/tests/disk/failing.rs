//! Every step fails in turn: once, from then on, or in the middle of a write.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::Path;

use lopa::error::Kind;
use lopa::folder::model_path;
use lopa_base::store::disk::{Step, Verdict};

use super::{Lab, Left, left, quick, steps, undisturbed};

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Once,
    FromThen,
    Half,
}

/// The n-th step fails.
fn failing(nth: usize, how: How) -> impl FnMut(Step) -> Verdict {
    let mut steps = 0;
    move |step| {
        steps += 1;
        let error = |kind: ErrorKind| Error::from(kind);
        match how {
            How::Once if steps == nth + 1 => Verdict::Fail(error(ErrorKind::Other)),
            How::Half if steps == nth + 1 => Verdict::Half(error(ErrorKind::StorageFull)),
            How::FromThen if steps > nth => Verdict::Fail(error(ErrorKind::ReadOnlyFilesystem)),
            _ => quick(&step),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => copy(&path, &to.join(entry.file_name())),
            path => drop(fs::copy(path, to.join(entry.file_name())).unwrap()),
        }
    }
}

/// Makes every step of the run that resumes from `start` fail in turn, and checks the outcome.
fn every_step(lab: &Lab, start: &Path, want: &Left) {
    let counted = tempfile::tempdir().unwrap();
    copy(start, counted.path());
    let mut harmless = 0;
    let steps = steps(lab, counted.path());
    for nth in 0..steps {
        for how in [How::Once, How::FromThen, How::Half] {
            let root = tempfile::tempdir().unwrap();
            copy(start, root.path());
            let (first, _) = lab.run(root.path(), failing(nth, how));
            let case = format!("step {nth}, {how:?}");
            match first {
                // Nothing that matters: the file is removed later, or was not needed.
                Ok(folder) => {
                    assert_eq!(left(&folder).digests, want.digests, "{case}");
                    harmless += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind, Kind::Storage, "{case}: {error}");
                    assert!(
                        ["storage/write", "storage/read"].contains(&error.id),
                        "{case}: {error}"
                    );
                    let place = error.place.clone().unwrap_or_default();
                    let below = root.path().display().to_string();
                    assert!(place.starts_with(&below) && error.hint.is_some(), "{case}: {error}");
                }
            }
            let (mended, _) = lab.mend(root.path());
            assert_eq!(mended, *want, "{case}");
        }
    }
    assert!(harmless < steps, "{harmless} of {} failures made no difference", 3 * steps);
}

#[test]
fn whichever_step_fails_the_run_can_be_ended() {
    let lab = Lab::new();
    let (steps, want) = undisturbed(&lab);
    assert!(steps > 100, "{steps} steps");
    every_step(&lab, tempfile::tempdir().unwrap().path(), &want);
}

#[test]
fn whichever_step_fails_of_a_run_that_is_resumed_it_can_be_ended() {
    let lab = Lab::new();
    let (steps, want) = undisturbed(&lab);
    let start = tempfile::tempdir().unwrap();
    lab.run(start.path(), failing(steps / 2, How::FromThen)).0.unwrap_err();
    every_step(&lab, start.path(), &want);
}

/// A run that ended is made again if its model is lost; that is a change of several files.
#[test]
fn whichever_step_fails_of_a_run_that_is_made_again_it_can_be_ended() {
    let lab = Lab::new();
    let start = tempfile::tempdir().unwrap();
    let (mut want, _) = lab.mend(start.path());
    let folder = fs::read_dir(start.path().join("out/runs")).unwrap().next().unwrap().unwrap();
    fs::write(model_path(&folder.path(), "lopa-gt", 1), "damaged").unwrap();
    // Its rows and its result now come last.
    want.digests.rotate_left(1);
    want.models.rotate_left(1);
    want.rows.rotate_left(5);
    every_step(&lab, start.path(), &want);
}
