//! The cost of an iteration against batch, features, hidden units and degree.

use crate::bench::Bench;
use crate::clock::fastest;

const NODES: usize = 32;

/// The sizes of the representation problem on dense data; one at a time is varied.
#[derive(Clone, Copy)]
struct Size {
    batch: usize,
    features: usize,
    hidden: usize,
    degree: usize,
}

const MIDDLE: Size = Size { batch: 64, features: 256, hidden: 32, degree: 4 };

/// One line per size; each quantity is doubled four times while the others stay.
pub fn table() {
    let Size { batch, features, hidden, degree } = MIDDLE;
    println!(
        "representation, LoPA-GT, f32, m = {NODES}; where not varied: batch {batch}, \
         {features} features, {hidden} units, degree {degree}\n"
    );
    println!("{:>10} {:>8} {:>16} {:>12}", "varied", "value", "µs per node, it.", "÷ value");
    let doubled = |from: usize| (0..5).map(move |k| from << k);
    doubled(16).for_each(|batch| line("batch", batch, Size { batch, ..MIDDLE }));
    doubled(64).for_each(|features| line("features", features, Size { features, ..MIDDLE }));
    doubled(8).for_each(|hidden| line("hidden", hidden, Size { hidden, ..MIDDLE }));
    doubled(1)
        .map(|half| 2 * half)
        .filter(|&degree| degree < NODES)
        .for_each(|degree| line("degree", degree, Size { degree, ..MIDDLE }));
}

fn line(what: &str, value: usize, Size { batch, features, hidden, degree }: Size) {
    let network =
        format!("nodes = {NODES}, graph = {{ name = 'random-regular', degree = {degree} }}");
    let setup = format!(
        "problem = {{ name = 'representation', hidden = [{hidden}] }}
         data = {{ name = 'blobs', rows = 3200, features = {features}, centres = 10 }}
         network = {{ {network}, weights = 'lazy-metropolis' }}
         run = {{ iterations = 1, batch = {batch} }}"
    );
    let bench = Bench::new(&setup, ALGORITHM);
    let mut simulation = bench.run::<f32>(3);
    let cost = 1e6 * fastest(0.5, || simulation.iterate()) / NODES as f64;
    println!("{what:>10} {value:>8} {cost:>16.1} {:>12.3}", cost / value as f64);
}

const ALGORITHM: &str = "name = 'lopa-gt', alpha = 0.1, beta = 0.1, lambda = 0.1";
