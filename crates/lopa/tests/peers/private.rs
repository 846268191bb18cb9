//! Peers that protect their rows: the same noise as in one process, and no iteration is sent twice without being counted.

use lopa::data::Origin;
use lopa::error::Result;
use lopa::experiment::Experiment;
use lopa::math::random::{Purpose, Stream};
use lopa::run::private::stretch;
use lopa::run::reserved::{Claim, Reservation, Reserved};
use lopa::run::{Context, Outcome, Store};

use super::cluster::{Disk, KEY, Setup, TestPolicy};
use super::faulty::{Death, Faults, seconds};
use super::read;

const FILE: &str = "
    problem   = { name = 'hyperparameter', validation = 0.4 }
    data      = { name = 'digits', classes = [3, 8], scaling = 'none', test = 0.0, samples = 90 }
    network   = { nodes = 3, graph = 'path' }
    run       = { iterations = 32, batch = 8, evaluations = 4 }
    privacy   = { epsilon = 2.0, delta = 1e-3 }
    algorithm = [{ name = 'lopa-gt', alpha = 0.01, beta = 0.002, lambda = 0.002 }]
";

const ITERATIONS: u64 = 32;

struct Fixed;

impl Store for Fixed {
    fn reserve(&mut self, _: &[Origin], _: &Reservation) -> Result<Reserved> {
        Ok(Reserved { key: KEY, claim: Claim::default() })
    }
}

fn single(experiment: &Experiment) -> Outcome {
    let done = experiment.run_with(&Context::default(), &mut Fixed, &mut ());
    done.unwrap().swap_remove(0)
}

fn faults(stream: &mut Stream, deaths: usize) -> Faults {
    let death = |_| Death {
        node: stream.below(3),
        at: seconds(stream.between(0.05, 2.0)),
        downtime: seconds(stream.between(0.1, 1.0)),
    };
    let mut deaths: Vec<Death> = (0..deaths).map(death).collect();
    deaths.sort_by_key(|death| death.at);
    Faults { deaths, ..Faults::default() }
}

#[test]
fn peers_have_the_noise_of_one_process_and_count_what_they_may_have_sent_twice() {
    let (mut ended, mut refused, mut repeats) = (0, 0, 0);
    for seed in 0..12 {
        let mut stream = Stream::new(seed, Purpose::Tuning, 0);
        let steps = ["lopa-gt", "lopa-lg"][seed as usize % 2];
        let automatic = seed % 4 == 3;
        let given = if automatic { "" } else { ", alpha = 0.01, beta = 0.002, lambda = 0.002" };
        let experiment = read(FILE, &[format!("algorithm=[{{ name = '{steps}'{given} }}]")]);
        let want = single(&experiment);
        let spent = want.row.value("epsilon").unwrap();
        assert!(spent > 1.0 && spent <= 2.0, "{spent}");
        let faults = faults(&mut stream, seed as usize % 6);
        for fate in Setup::new(&experiment, seed, faults, TestPolicy::Wait).run() {
            let disk = fate.disk.lock().unwrap();
            let claims = &disk.claims;
            // Every iteration was claimed before it was sent, and each life counts what the one before may have sent.
            assert!(claims.windows(2).all(|pair| pair[0].repeated <= pair[1].repeated));
            let repeated = claims.last().map_or(0, |claim| claim.repeated);
            assert_eq!(repeated > 0, fate.lives > 1 && repeated > 0);
            repeats += repeated;
            match fate.done {
                Ok(outcomes) => {
                    ended += 1;
                    assert_eq!(outcomes[0].digest, want.digest, "seed {seed}");
                    let spent = outcomes[0].row.value("epsilon").unwrap();
                    assert!(spent <= 2.0 && repeated <= 2 * stretch(ITERATIONS), "{spent}");
                    assert!(claims.last().unwrap().until >= ITERATIONS);
                }
                Err(error) if error.id == "privacy/spent" => refused += 1,
                // Its neighbour has used up its budget, and does not answer any more.
                Err(error) => assert_eq!(error.kind.exit_code(), 6, "{error}"),
            }
        }
    }
    assert!(ended > 18 && repeats > 0, "{ended} ended, {refused} refused, {repeats} repeated");
}

/// A run that is begun anew at a node is not a way to more answers: the ledger counts every iteration of the first.
#[test]
fn a_run_that_begins_anew_is_refused() {
    let experiment = read(FILE, &[]);
    let fates = Setup::new(&experiment, 1, Faults::default(), TestPolicy::Wait).run();
    let disks: Vec<_> = fates.iter().map(|fate| fate.disk.clone()).collect();
    for disk in &disks {
        let claims = std::mem::take(&mut disk.lock().unwrap().claims);
        *disk.lock().unwrap() = Disk::claimed(claims);
    }
    let setup = Setup::new(&experiment, 2, Faults::default(), TestPolicy::Wait);
    for fate in (Setup { disks, ..setup }).run() {
        assert_eq!(fate.done.unwrap_err().id, "privacy/spent");
    }
}
