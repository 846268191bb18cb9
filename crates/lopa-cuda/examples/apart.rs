//! How far a device is from the processor: `apart DEVICE DATA NODES ITERATIONS [SET…]`.
//!
//! LoPA-GT on `representation` and MNIST, which is in the folder DATA. Prints the largest difference of each variable
//! over its largest entry; fails if one is above 10⁻⁴, or if the device does not repeat itself to the bit.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::engine::device::{Company, Program};
use lopa::engine::{Alone, Node, Simulation};
use lopa::error::Result;
use lopa::experiment::{Experiment, Precision, Registries};
use lopa::run::Context;

const FILE: &str = r#"
data = "mnist"
network = { nodes = 8, graph = "ring" }
run = { iterations = 1, batch = 50, precision = "f32" }
problem = { name = "representation" }
[[algorithm]]
name = "lopa-gt"
alpha = 0.02
beta = 0.1
lambda = 0.1
"#;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [device, data, nodes, iterations, sets @ ..] = &args[..] else {
        eprintln!("usage: apart DEVICE DATA NODES ITERATIONS [SET…]");
        std::process::exit(2);
    };
    let iterations: u32 = iterations.parse().expect("a number of iterations");
    let mut registries = Registries::default();
    lopa_cuda::devices().into_iter().for_each(|entry| registries.devices.add(entry));
    let mut source = Source::new("apart", FILE);
    source.sets.push(format!("run.device={device}"));
    source.sets.push(format!("network.nodes={nodes}"));
    source.sets.extend(sets.to_vec());
    let experiment = Experiment::read(&source, &registries)?;
    let never = AtomicBool::new(false);
    let data_dir = PathBuf::from(data);
    let context = Context { pool: None, data_dir, interrupt: &never, probe: None };
    let data = experiment.load_data(&context)?;
    let world = experiment.world(data.as_ref(), 1)?;
    let method = &*experiment.algorithms[0].choice.build;
    let make = || experiment.setup(data.as_ref(), &world, 1).nodes::<f32>(method);
    let driver = experiment.device.build.driver().expect("a device");
    let run = &experiment.run;
    let (batches, shared) = (run.batch.batches(), run.shared_samples);
    let rounds = run.precision == Precision::Tf32;
    let go = || -> Result<Vec<Node<f32>>> {
        let mut nodes = make()?;
        let mixing = &world.mixing;
        let mut alone = Alone;
        let company = &Company::new(&mut alone);
        let program =
            Program { nodes: &nodes, company, mixing, batches, shared, rounds, seed: 1, k: 0 };
        let mut device = driver.open.get::<f32>()(program)?;
        (0..iterations).try_for_each(|_| device.advance(&mut |_, _| Ok(())))?;
        device.fetch(&mut nodes)?;
        Ok(nodes)
    };
    let (first, second) = (go()?, go()?);
    let pool = rayon::ThreadPoolBuilder::new().build().expect("threads");
    let mut here = Simulation::new(make()?, &world.mixing, Some(&pool));
    (0..iterations).for_each(|_| here.iterate());
    let (mut line, mut good) = (String::new(), true);
    for (at, (name, _)) in first[0].algorithm.variables().iter().enumerate() {
        let of = |nodes: &[Node<f32>]| -> Vec<f32> {
            nodes.iter().flat_map(|node| node.algorithm.variables()[at].1.to_vec()).collect()
        };
        let [ours, again, theirs] = [of(&first), of(&second), of(here.nodes())];
        let size = theirs.iter().fold(1e-30, |most: f32, value| most.max(value.abs()));
        let gap = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs());
        let gap =
            gap.fold(0.0, |most: f32, gap| if gap > most || gap.is_nan() { gap } else { most });
        let same = ours.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits());
        good &= same && gap / size < 1e-4;
        line += &format!(" {name} {:.1e}{}", gap / size, if same { "" } else { " (not repeated)" });
    }
    println!("{device} {nodes} nodes {sets:?}, after {iterations} iterations:{line}");
    if !good {
        eprintln!("too far apart, or not repeated");
        std::process::exit(1);
    }
    Ok(())
}
