//! Iterations per second of LoPA-GT on a device: `speed DEVICE DATA PROBLEM NODES ITERATIONS [SET…]`.
//!
//! PROBLEM is `representation` or `hyperparameter` on MNIST, which is in the folder DATA, or `quadratic`. ITERATIONS are the
//! most of each of three measurements, which also end after half a second. With `run.precision=tf32` f32 is measured first,
//! from the same nodes. With `steps=found` the algorithm finds its step sizes.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use lopa::config::Source;
use lopa::engine::device::{Company, Program};
use lopa::engine::{Alone, Node};
use lopa::error::Result;
use lopa::experiment::{Experiment, Precision, Registries};
use lopa::problem::derivative::Batches;
use lopa::problem::form::Form;
use lopa::run::Context;

const FILE: &str = r#"
network = { nodes = 8, graph = "ring" }
run = { iterations = 1, batch = 50, precision = "f32" }
[problem]
name = "representation"
[[algorithm]]
name = "lopa-gt"
"#;

const STEPS: &str = "alpha = 0.02\nbeta = 0.1\nlambda = 0.1\n";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [device, data, problem, nodes, iterations, sets @ ..] = &args[..] else {
        eprintln!("usage: speed DEVICE DATA PROBLEM NODES ITERATIONS [SET…]");
        std::process::exit(2);
    };
    let iterations: u32 = iterations.parse().expect("a number of iterations");
    let mut registries = Registries::default();
    lopa_cuda::devices().into_iter().for_each(|entry| registries.devices.add(entry));
    let (found, sets): (Vec<&String>, Vec<&String>) =
        sets.iter().partition(|set| *set == "steps=found");
    let mut source =
        Source::new("speed", if found.is_empty() { format!("{FILE}{STEPS}") } else { FILE.into() });
    source.sets.push(format!("run.device={device}"));
    source.sets.push(format!("problem.name={problem}"));
    source.sets.push(format!("network.nodes={nodes}"));
    if problem != "quadratic" {
        source.sets.push("data.name=mnist".into());
    }
    source.sets.extend(sets.into_iter().cloned());
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
    let driver = experiment.device.build.driver().expect("a device");
    let run = &experiment.run;
    let (batches, shared) = (run.batch.batches(), run.shared_samples);
    let precisions: &[(bool, &str)] = match run.precision {
        Precision::Tf32 => &[(false, "f32"), (true, "tf32")],
        _ => &[(false, "f32")],
    };
    for &(rounds, precision) in precisions {
        let mixing = &world.mixing;
        let (mut alone, nodes) = (Alone, &nodes[..]);
        let company = &Company::new(&mut alone);
        let program = Program { nodes, company, mixing, batches, shared, rounds, seed: 1, k: 0 };
        let began = Instant::now();
        let mut device = driver.open.get::<f32>()(program)?;
        let opened = began.elapsed();
        let mut go = |count: u32| -> Result<f64> {
            let began = Instant::now();
            (0..count).try_for_each(|_| device.advance(&mut |_, _| Ok(())))?;
            device.wait()?;
            Ok(f64::from(count) / began.elapsed().as_secs_f64())
        };
        let few = iterations.div_ceil(10);
        go(few)?;
        let count = iterations.min((go(few)? / 2.0) as u32).max(1);
        let mut speeds = [go(count)?, go(count)?, go(count)?];
        speeds.sort_by(f64::total_cmp);
        let finite = device.sizes()?.iter().flatten().all(|size| size.is_finite());
        println!(
            "{problem} {} nodes, {precision}: {:.1} it/s (median of three; {:.1} to {:.1}); nodes made in \
             {made:.1?}, taken over in {opened:.1?}{}{}",
            experiment.network.nodes,
            speeds[1],
            speeds[0],
            speeds[2],
            rates(nodes, batches, speeds[1]),
            if finite { "" } else { "; diverged" }
        );
    }
    Ok(())
}

/// Useful arithmetic of the two large products of `representation` with one hidden layer, and the bytes of ten arrays as large as x, which
/// LoPA-GT reads or writes, per second.
fn rates(nodes: &[Node<f32>], batches: Batches, speed: f64) -> String {
    let Batches { grad_g, hess_g, cross_g, grad_theta_f, grad_x_f } = batches;
    let sizes = [grad_g, hess_g, grad_theta_f, cross_g, grad_x_f].map(|size| size.unwrap_or(0));
    let Ok(Form::Layers { inner, units, .. }) = nodes[0].oracle.form() else {
        return String::new();
    };
    let &[units] = &units[..] else { return String::new() };
    // Two more for the minibatches that s depends on.
    let rows = sizes.iter().sum::<usize>() + sizes[3..].iter().sum::<usize>();
    let weights = ((inner.samples.cols() + 1) * units * nodes.len()) as f64;
    let (flops, bytes) = (2.0 * weights * rows as f64 * speed, 40.0 * weights * speed);
    format!("; {:.1} TFLOP/s, {:.2} TB/s", flops / 1e12, bytes / 1e12)
}
