//! Iterations per second of LoPA-GT on a device: `speed DEVICE DATA PROBLEM NODES ITERATIONS [SET…]`.
//!
//! PROBLEM is `representation` or `hyperparameter` on MNIST, which is in the folder DATA, or `quadratic`.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use lopa::config::Source;
use lopa::engine::device::Program;
use lopa::error::Result;
use lopa::experiment::{Experiment, Registries};
use lopa::run::Context;

const FILE: &str = r#"
network = { nodes = 8, graph = "ring" }
run = { iterations = 1, batch = 50, precision = "f32" }
[problem]
name = "representation"
[[algorithm]]
name = "lopa-gt"
alpha = 0.02
beta = 0.1
lambda = 0.1
"#;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [device, data, problem, nodes, iterations, sets @ ..] = &args[..] else {
        eprintln!("usage: speed DEVICE DATA PROBLEM NODES ITERATIONS [SET…]");
        std::process::exit(2);
    };
    let iterations: u32 = iterations.parse().expect("a number of iterations");
    let mut registries = Registries::default();
    lopa_cuda::devices().into_iter().for_each(|entry| registries.devices.add(entry));
    let mut source = Source::new("speed", FILE);
    source.sets.push(format!("run.device={device}"));
    source.sets.push(format!("problem.name={problem}"));
    source.sets.push(format!("network.nodes={nodes}"));
    if problem != "quadratic" {
        source.sets.push("data.name=mnist".into());
    }
    source.sets.extend(sets.to_vec());
    let experiment = Experiment::read(&source, &registries)?;
    let never = AtomicBool::new(false);
    let data_dir = PathBuf::from(data);
    let context = Context { pool: None, data_dir, interrupt: &never, probe: None };
    let data = experiment.load_data(&context)?;
    let world = experiment.world(data.as_ref(), 1)?;
    let method = &*experiment.algorithms[0].choice.build;
    let began = Instant::now();
    let nodes = experiment.setup(data.as_ref(), &world, 1).nodes::<f32>(method)?;
    let made = began.elapsed();
    let there = experiment.device.build.device().expect("a device");
    let run = &experiment.run;
    let (batches, shared) = (run.batch.batches(), run.shared_samples);
    let program = Program { nodes: &nodes, mixing: &world.mixing, batches, shared, seed: 1, k: 0 };
    let began = Instant::now();
    let mut device = there.open.get::<f32>()(program)?;
    let opened = began.elapsed();
    let mut go = |count: u32| -> Result<f64> {
        let began = Instant::now();
        (0..count).try_for_each(|_| device.advance())?;
        device.wait()?;
        Ok(f64::from(count) / began.elapsed().as_secs_f64())
    };
    go(iterations.div_ceil(10))?;
    let mut speeds = [go(iterations)?, go(iterations)?, go(iterations)?];
    speeds.sort_by(f64::total_cmp);
    println!(
        "{problem} {} nodes: {:.1} it/s (median of three; {:.1} to {:.1}); nodes made in {made:.1?}, \
         taken over in {opened:.1?}",
        experiment.network.nodes, speeds[1], speeds[0], speeds[2]
    );
    Ok(())
}
