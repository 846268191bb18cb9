//! The kernels alone, against the peak of the processor.

use lopa::math::random::{Purpose, Stream};
use lopa::math::real::Real;
use lopa_kernels::{Csr, Level, Rows};

use crate::clock::fastest;
use crate::peak::Peak;

/// A minibatch of MNIST and a hidden layer.
const ROWS: usize = 50;
const COLS: usize = 784;
const WIDTH: usize = 28;

const BUDGET: f64 = 0.5;

/// Operations per second of the four products, also as a share of the peak.
pub fn table() {
    println!("{:<40} {:>5} {:>10} {:>8} {:>10}", "50 x 784 x 28", "", "µs", "GFLOP/s", "of peak");
    lines::<f32>("f32");
    lines::<f64>("f64");
}

fn lines<T: Real + Peak>(precision: &str) {
    let mut stream = Stream::new(1, Purpose::Data, 0);
    let mut draw = |count: usize, density: f64| -> Vec<T> {
        let entry = |_| match stream.unit() < density {
            true => T::of(stream.between(-1.0, 1.0)),
            false => T::zero(),
        };
        (0..count).map(entry).collect()
    };
    let (data, few) = (draw(ROWS * COLS, 1.0), draw(ROWS * COLS, 0.19));
    let (mut weights, mut scores) = (draw(COLS * WIDTH, 1.0), draw(ROWS * WIDTH, 1.0));
    let rows: Vec<&[T]> = data.chunks_exact(COLS).collect();
    let (level, peak) = (Level::best(), T::peak(BUDGET));
    println!("{:<40} {precision:>5} {:>10} {:>8.1} {:>10}", "peak", "", peak / 1e9, "");
    let print = |name: &str, multiplied: usize, seconds: f64| {
        let rate = (2 * multiplied * WIDTH) as f64 / seconds;
        let (micros, giga, share) = (1e6 * seconds, rate / 1e9, 100.0 * rate / peak);
        println!("{name:<40} {precision:>5} {micros:>10.2} {giga:>8.1} {share:>8.0} %");
    };
    let forward =
        fastest(BUDGET, || level.dense_product(&rows, &weights, WIDTH, false, &mut scores));
    print("dense product", ROWS * COLS, forward);
    let back = fastest(BUDGET, || level.add_dense_transposed(&rows, &scores, WIDTH, &mut weights));
    print("dense product, transposed", ROWS * COLS, back);

    let sparse = Sparse::of(&few);
    let (matrix, numbers) = (sparse.csr(), (0..ROWS as u32).collect::<Vec<u32>>());
    let rows = Rows { numbers: &numbers, of: None };
    let seconds = fastest(BUDGET, || {
        level.sparse_product(matrix, rows, &weights, WIDTH, &mut scores);
    });
    print("sparse product, 19 % nonzero", sparse.values.len(), seconds);
    let seconds = fastest(BUDGET, || {
        level.add_sparse_transposed(matrix, rows, &scores, WIDTH, &mut weights);
    });
    print("sparse product, transposed", sparse.values.len(), seconds);
}

struct Sparse<T> {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T: Real> Sparse<T> {
    fn of(dense: &[T]) -> Sparse<T> {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in dense.chunks_exact(COLS) {
            for (q, &value) in row.iter().enumerate().filter(|(_, value)| **value != T::zero()) {
                columns.push(q as u32);
                values.push(value);
            }
            starts.push(columns.len());
        }
        Sparse { starts, columns, values }
    }

    fn csr(&self) -> Csr<'_, T> {
        let Sparse { starts, columns, values } = self;
        Csr { cols: COLS, starts, columns, values }
    }
}
