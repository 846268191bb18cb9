//! Writes a case to files, for other implementations.

use std::fs;
use std::path::Path;

use lopa::math::random::{Purpose, Stream};
use lopa::problem::Setting;
use lopa::problem::builtin::Local;
use lopa::problem::scope::Scope;

use crate::bench::{Bench, dense, rows};
use crate::cases::Case;

/// Iterations on full batches that other implementations repeat.
const ITERATIONS: usize = 5;

/// Samples per node for that, few enough to be quick.
const SAMPLES_PER_NODE: usize = 200;

/// Writes the case for other implementations: `all` its data to measure on, and `few` samples with
/// the result of some iterations on full batches.
pub fn case(case: &Case, dir: &str) {
    let dir = Path::new(dir).join(case.name);
    write(case, &case.bench(None), &dir.join("all"));
    let few = case.bench(Some(SAMPLES_PER_NODE * case.nodes));
    write(case, &few, &dir.join("few"));
    let simulation = few.run::<f64>(ITERATIONS);
    for name in ["x", "theta", "v"] {
        save(
            &dir.join("few").join(name),
            rows(&simulation, name).concat().iter().map(|v| v.to_le_bytes()),
        );
    }
}

fn write(case: &Case, bench: &Bench, dir: &Path) {
    fs::create_dir_all(dir).expect("a folder");
    let data = bench.data.as_ref().expect("every case has data");
    let features = data.train.features();
    let mut table = vec![0f32; features.rows() * features.cols()];
    for row in 0..features.rows() {
        features.each(row, |q, value| table[row * features.cols() + q] = value as f32);
    }
    save(&dir.join("features"), table.iter().map(|v| v.to_le_bytes()));
    save(&dir.join("labels"), data.train.labels().iter().map(|v| v.to_le_bytes()));
    save(&dir.join("mixing"), dense(&bench.world.mixing).concat().iter().map(|v| v.to_le_bytes()));
    let params = bench.experiment.problem.params();
    let validation = params["validation"].as_float().expect("a share");
    let setting = Setting {
        nodes: case.nodes,
        seed: bench.seed(),
        scope: Scope::Personal,
        batch: None,
        data: Some(data),
        partition: &bench.world.partition.nodes,
        ..Setting::default()
    };
    let locals = Local::<f64>::split(case.name, validation, &setting, 0..case.nodes);
    let locals = locals.expect("enough samples");
    // Nodes may differ by one sample, but a matrix has rows of one length.
    let smallest = |of: fn(&Local<f64>) -> &[u32]| locals.iter().map(|l| of(l).len()).min();
    for (name, of) in [
        ("train", (|l| l.train.rows()) as fn(&Local<f64>) -> &[u32]),
        ("validation", |l| l.validation.rows()),
    ] {
        let count = smallest(of).expect("a node");
        let numbers = locals.iter().flat_map(|l| of(l)[..count].to_vec());
        save(&dir.join(name), numbers.map(u32::to_le_bytes));
    }
    let part = &bench.parts::<f64>()[0];
    let x = part.start_x(&mut Stream::new(bench.seed(), Purpose::Start, 0));
    save(&dir.join("start"), x.iter().map(|v| v.to_le_bytes()));
    let step = |name: &str| bench.choice().params()[name].as_float().expect("a step size");
    let about = serde_json::json!({
        "problem": bench.experiment.problem.name,
        "nodes": case.nodes, "batch": case.batch, "iterations": ITERATIONS,
        "cols": features.cols(), "classes": data.classes.len(),
        "n": part.dims().n, "p": part.dims().p, "ridge": params.get("ridge"),
        "alpha": step("alpha"), "beta": step("beta"), "lambda": step("lambda"), "gamma": 0.4, "tau": 0.4,
    });
    fs::write(dir.join("about.json"), about.to_string()).expect("a writable file");
}

fn save<const N: usize>(path: &Path, numbers: impl Iterator<Item = [u8; N]>) {
    fs::write(path, numbers.flatten().collect::<Vec<u8>>()).expect("a writable file");
}
