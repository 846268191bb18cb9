//! Every kernel at every level that this processor has, against plain loops in f64 and against the
//! other levels to the bit.

use lopa::math::random::{Purpose, Stream};
use lopa::math::real::{Real, cast};
use lopa_kernels::{Blocks, Cells, Csr, Level, Loop, Pixels, Rows};
use proptest::prelude::*;

/// A matrix in both forms.
#[derive(Debug)]
struct Matrix<T> {
    cols: usize,
    dense: Vec<T>,
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T: Real> Matrix<T> {
    fn draw(rows: usize, cols: usize, density: f64, stream: &mut Stream) -> Matrix<T> {
        let entry = |stream: &mut Stream| match stream.unit() < density {
            true => T::of(stream.between(0.1, 1.0)),
            false => T::zero(),
        };
        Matrix::of((0..rows * cols).map(|_| entry(stream)).collect(), cols)
    }

    fn of(dense: Vec<T>, cols: usize) -> Matrix<T> {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in dense.chunks_exact(cols) {
            for (q, &value) in row.iter().enumerate().filter(|(_, value)| **value != T::zero()) {
                columns.push(q as u32);
                values.push(value);
            }
            starts.push(columns.len());
        }
        Matrix { cols, dense, starts, columns, values }
    }

    /// Puts other values in the place of those that are not zero.
    fn change(&mut self, f: impl Fn(T) -> T) {
        let zero = T::zero();
        self.dense.iter_mut().filter(|value| **value != zero).for_each(|value| *value = f(*value));
        self.values.iter_mut().for_each(|value| *value = f(*value));
    }

    fn csr(&self) -> Csr<'_, T> {
        let Matrix { cols, starts, columns, values, .. } = self;
        Csr { cols: *cols, starts, columns, values }
    }

    fn row(&self, row: usize) -> &[T] {
        &self.dense[row * self.cols..(row + 1) * self.cols]
    }
}

fn numbers<T: Real>(count: usize, stream: &mut Stream) -> Vec<T> {
    (0..count).map(|_| T::of(stream.between(-1.0, 1.0))).collect()
}

/// Runs a kernel at every level: all give the same bits, and numbers close to those wanted.
fn check<T: Real>(what: &str, want: &[f64], kernel: impl Fn(Level) -> Vec<T>) {
    // Sums of a few hundred numbers below 1, in an order of their own.
    let most = 300.0 * T::epsilon().to_f64();
    let first = kernel(Level::all()[0]);
    assert_eq!(first.len(), want.len());
    for (i, (&got, want)) in first.iter().zip(want).enumerate() {
        let gap = (got.to_f64() - want).abs();
        assert!(gap <= most, "{what}, at {i}: {got} is not {want}");
    }
    for level in Level::all() {
        assert_eq!(kernel(level), first, "{what}: {level:?} gives other bits");
    }
}

/// `before + Σ_q a[r, q] weights[q, :]` for chosen rows.
fn product<T: Real>(a: &Matrix<T>, rows: &[usize], w: &[f64], before: &[f64]) -> Vec<f64> {
    let width = w.len() / a.cols;
    let of = |r: usize, c: usize| {
        let row = a.row(rows[r]).iter().zip(w.chunks_exact(width));
        before[r * width + c] + row.map(|(&a, w)| a.to_f64() * w[c]).sum::<f64>()
    };
    (0..rows.len()).flat_map(|r| (0..width).map(move |c| (r, c))).map(|(r, c)| of(r, c)).collect()
}

/// `before + Σ_r a[r, q] delta[r, :]` for chosen rows.
fn transposed<T: Real>(a: &Matrix<T>, rows: &[usize], delta: &[f64], before: &[f64]) -> Vec<f64> {
    let width = delta.len() / rows.len();
    let mut out = before.to_vec();
    for (r, &row) in rows.iter().enumerate() {
        for (q, &a) in a.row(row).iter().enumerate() {
            for c in 0..width {
                out[q * width + c] += a.to_f64() * delta[r * width + c];
            }
        }
    }
    out
}

fn check_products<T: Real>(count: usize, cols: usize, width: usize, density: f64, seed: u64) {
    let stream = &mut Stream::new(seed, Purpose::Problem, 0);
    let a = Matrix::<T>::draw(9, cols, density, stream);
    let rows: Vec<usize> = (0..count).map(|_| stream.below(9)).collect();
    let (weights, delta) =
        (numbers::<T>(cols * width, stream), numbers::<T>(count * width, stream));
    let (front, back) = (numbers::<T>(count * width, stream), numbers::<T>(cols * width, stream));
    let refs: Vec<&[T]> = rows.iter().map(|&row| a.row(row)).collect();
    let numbers: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
    let each = || Rows { numbers: &numbers, of: None };
    let zero = vec![0.0; count * width];
    let forward = product(&a, &rows, &cast(&weights), &zero);
    let added = product(&a, &rows, &cast(&weights), &cast(&front));
    let backward = transposed(&a, &rows, &cast(&delta), &cast(&back));
    // Kernels that write over what was there find something there.
    check("dense product", &forward, |level| {
        let mut out = front.clone();
        level.dense_product(&refs, &weights, width, false, &mut out);
        out
    });
    check("dense product, added", &added, |level| {
        let mut out = front.clone();
        level.dense_product(&refs, &weights, width, true, &mut out);
        out
    });
    check("dense transposed", &backward, |level| {
        let mut out = back.clone();
        level.add_dense_transposed(&refs, &delta, width, &mut out);
        out
    });
    check("sparse product", &forward, |level| {
        let mut out = front.clone();
        level.sparse_product(a.csr(), each(), &weights, width, &mut out);
        out
    });
    check("sparse transposed", &backward, |level| {
        let mut out = back.clone();
        level.add_sparse_transposed(a.csr(), each(), &delta, width, &mut out);
        out
    });
    if width > 1 {
        return;
    }
    check("dense dots", &forward, |level| {
        let mut out = front.clone();
        level.dense_dots(&refs, &weights, &mut out);
        out
    });
    check("dense sums", &backward, |level| {
        let mut out = back.clone();
        level.add_dense_sums(&refs, &delta, &mut out);
        out
    });
}

/// Sparse rows in blocks and in cells, of values that are few or many.
fn check_packed<T: Real>(count: usize, cols: usize, width: usize, values: Drawn, seed: u64) {
    let stream = &mut Stream::new(seed, Purpose::Problem, 0);
    // Of the denser ones most columns are in nearly all rows.
    let density = if stream.below(2) == 0 { 0.4 } else { 0.8 };
    let mut a = Matrix::<f64>::draw(9, cols, density, stream);
    a.change(|value| match values {
        Drawn::Any => value,
        Drawn::Multiples => (255.0 * value).ceil() * 0.004,
        Drawn::Few => (1.0 + (20.0 * value).floor()).sqrt() - 3.3,
    });
    let rows: Vec<usize> = (0..count).map(|_| stream.below(9)).collect();
    let (weights, delta) =
        (numbers::<T>(cols * width, stream), numbers::<T>(count * width, stream));
    let (front, back) = (numbers::<T>(count * width, stream), numbers::<T>(cols * width, stream));
    let places: Vec<u32> = (0..count as u32).collect();
    let of: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
    let each = || Rows { numbers: &places, of: Some(&of) };
    let forward = product(&a, &rows, &cast(&weights), &vec![0.0; count * width]);
    let backward = transposed(&a, &rows, &cast(&delta), &cast(&back));
    if let Some(cells) = Cells::new(a.csr()).map(|cells| cells.cast(T::of)) {
        check("cell product", &forward, |level| {
            let mut out = front.clone();
            level.cell_product(&cells, each(), &weights, width, &mut out);
            out
        });
        check("cells transposed", &backward, |level| {
            let mut out = back.clone();
            level.add_cell_transposed(&cells, each(), &delta, width, &mut out);
            out
        });
    } else {
        // Rows of few columns may by chance have lengths too different.
        assert!(!(120..=256).contains(&cols), "cells are made of rows of nearly one length");
    }
    let blocks = Blocks::new(a.csr()).map(|blocks| blocks.cast(T::of));
    let Some(blocks) = blocks else {
        return assert!(cols < 40 || matches!(values, Drawn::Any), "few values make blocks");
    };
    check("block product", &forward, |level| {
        let mut out = front.clone();
        level.block_product(&blocks, each(), &weights, width, &mut out);
        out
    });
    check("blocks transposed", &backward, |level| {
        let mut out = back.clone();
        level.add_block_transposed(&blocks, each(), &delta, width, &mut out);
        out
    });
    assert!(blocks.has_unit() || !matches!(values, Drawn::Multiples));
    if width > 1 || !blocks.has_unit() {
        return;
    }
    check("block dots", &forward, |level| {
        let mut out = front.clone();
        level.block_dots(&blocks, each(), &weights, &mut out);
        out
    });
    check("block sums", &backward, |level| {
        let mut out = back.clone();
        level.add_block_sums(&blocks, each(), &delta, &mut out);
        out
    });
}

/// Rows of runs, some with none, some full, as bytes: products with one column sort them by length.
fn check_runs<T: Real>(count: usize, cols: usize, seed: u64) {
    let stream = &mut Stream::new(seed, Purpose::Problem, 0);
    let mut dense = vec![0.0; 20 * cols];
    for (r, row) in dense.chunks_exact_mut(cols).enumerate() {
        let runs = match r {
            0 => vec![],
            1 => vec![(0, cols)],
            2 => vec![(cols - 1, 1)],
            _ => (0..stream.below(20)).map(|_| (stream.below(cols), 3 + stream.below(9))).collect(),
        };
        for (start, length) in runs {
            let run = start..cols.min(start + length);
            row[run].fill_with(|| (1 + stream.below(255)) as f64 / 255.0);
        }
    }
    let a = Matrix::of(dense, cols);
    let blocks = Blocks::new(a.csr()).expect("runs fill blocks").cast(T::of);
    let rows: Vec<usize> = (0..count).map(|_| stream.below(20)).collect();
    let (weights, delta) = (numbers::<T>(cols, stream), numbers::<T>(count, stream));
    let (front, back) = (numbers::<T>(count, stream), numbers::<T>(cols, stream));
    let numbers: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
    let each = Rows { numbers: &numbers, of: None };
    check("block dots", &product(&a, &rows, &cast(&weights), &vec![0.0; count]), |level| {
        let mut out = front.clone();
        level.block_dots(&blocks, each, &weights, &mut out);
        out
    });
    check("block sums", &transposed(&a, &rows, &cast(&delta), &cast(&back)), |level| {
        let mut out = back.clone();
        level.add_block_sums(&blocks, each, &delta, &mut out);
        out
    });
}

#[derive(Debug, Clone, Copy)]
enum Drawn {
    Any,
    Multiples,
    Few,
}

/// Dense rows of bytes less a shift.
fn check_pixels<T: Real>(count: usize, cols: usize, width: usize, seed: u64) {
    let stream = &mut Stream::new(seed, Purpose::Problem, 0);
    let bytes: Vec<u8> = (0..9 * cols).map(|_| stream.below(256) as u8).collect();
    let shift: Vec<T> = (0..cols).map(|_| T::of(stream.between(0.0, 255.0))).collect();
    let unit = T::of(0.004);
    let value =
        |(at, &byte): (usize, &u8)| unit.to_f64() * (f64::from(byte) - shift[at % cols].to_f64());
    let dense: Vec<f64> = bytes.iter().enumerate().map(value).collect();
    let a = Matrix { cols, dense, starts: vec![], columns: vec![], values: vec![] };
    let rows: Vec<usize> = (0..count).map(|_| stream.below(9)).collect();
    let (weights, delta) =
        (numbers::<T>(cols * width, stream), numbers::<T>(count * width, stream));
    let (front, back) = (numbers::<T>(count * width, stream), numbers::<T>(cols * width, stream));
    let of: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
    let pixels = Pixels { bytes: &bytes, unit, shift: &shift };
    let each = || Rows { numbers: &of, of: None };
    let forward = product(&a, &rows, &cast(&weights), &vec![0.0; count * width]);
    check("pixel product", &forward, |level| {
        let mut out = front.clone();
        level.pixel_product(&pixels, each(), &weights, width, &mut out);
        out
    });
    let backward = transposed(&a, &rows, &cast(&delta), &cast(&back));
    check("pixels transposed", &backward, |level| {
        let mut out = back.clone();
        level.add_pixel_transposed(&pixels, each(), &delta, width, &mut out);
        out
    });
}

fn check_rows<T: Real>(count: usize, width: usize, seed: u64) {
    let stream = &mut Stream::new(seed, Purpose::Problem, 0);
    let (a, b) = (numbers::<T>(count * width, stream), numbers::<T>(count * width, stream));
    let factors = numbers::<T>(count, stream);
    let scaled: Vec<f64> =
        (0..count * width).map(|i| factors[i / width].to_f64() * a[i].to_f64()).collect();
    let pairs = a.chunks_exact(width).zip(b.chunks_exact(width));
    let dot = |(a, b): (&[T], &[T])| a.iter().zip(b).map(|(&a, &b)| a.to_f64() * b.to_f64()).sum();
    let dots: Vec<f64> = pairs.map(dot).collect();
    let z: Vec<T> = a.iter().map(|&a| T::of(20.0) * a).collect();
    let exps: Vec<f64> = z.iter().map(|&z| z.to_f64().exp()).collect();
    let softmax: Vec<f64> = exps
        .chunks_exact(width)
        .flat_map(|row| row.iter().map(|e| e / row.iter().sum::<f64>()))
        .collect();
    let sigmoid: Vec<f64> = exps.iter().map(|e| e / (1.0 + e)).collect();
    check("scaled rows", &scaled, |level| {
        let mut out = b.clone();
        level.scale_rows(&factors, &a, width, &mut out);
        out
    });
    check("row dots", &dots, |level| {
        let mut out = factors.clone();
        level.row_dots(&a, &b, width, &mut out);
        out
    });
    let first: Vec<f64> = cast(&b[..width]);
    let added: Vec<f64> = (0..a.len()).map(|i| a[i].to_f64() + first[i % width]).collect();
    check("a row added to each", &added, |level| {
        let mut out = a.clone();
        level.add_to_each_row(&b[..width], &mut out);
        out
    });
    let column = |c: usize| a.iter().skip(c).step_by(width).map(|&a| a.to_f64()).sum::<f64>();
    let summed: Vec<f64> = (0..width).map(|c| first[c] + column(c)).collect();
    check("sum of rows", &summed, |level| {
        let mut out = b[..width].to_vec();
        level.add_row_sum(&a, &mut out);
        out
    });
    check("softmax", &softmax, |level| {
        let mut out = z.clone();
        level.softmax(&mut out, width);
        out
    });
    check("sigmoid", &sigmoid, |level| {
        let mut out = z.clone();
        level.sigmoid(&mut out);
        out
    });
}

proptest! {
    #[test]
    fn products(
        count in 1usize..70,
        cols in 1usize..150,
        width in prop_oneof![Just(1usize), 2usize..70],
        density in prop_oneof![Just(0.0), Just(0.2), Just(1.0)],
        seed: u64,
    ) {
        check_products::<f32>(count, cols, width, density, seed);
        check_products::<f64>(count, cols, width, density, seed);
    }

    #[test]
    fn packed_rows(
        count in 1usize..150,
        cols in 1usize..600,
        width in prop_oneof![Just(1usize), 2usize..70],
        values in prop_oneof![Just(Drawn::Any), Just(Drawn::Multiples), Just(Drawn::Few)],
        seed: u64,
    ) {
        check_packed::<f32>(count, cols, width, values, seed);
        check_packed::<f64>(count, cols, width, values, seed);
    }

    #[test]
    fn rows_of_runs(
        count in 1usize..300,
        cols in prop_oneof![12usize..100, 700usize..=1024],
        seed: u64,
    ) {
        check_runs::<f32>(count, cols, seed);
        check_runs::<f64>(count, cols, seed);
    }

    #[test]
    fn rows_of_bytes(count in 1usize..70, cols in 1usize..300, width in 1usize..70, seed: u64) {
        check_pixels::<f32>(count, cols, width, seed);
        check_pixels::<f64>(count, cols, width, seed);
    }

    #[test]
    fn rows(count in 1usize..40, width in 1usize..40, seed: u64) {
        check_rows::<f32>(count, width, seed);
        check_rows::<f64>(count, width, seed);
    }
}

/// At the edges of what is taken at a time: classes, rows of a strip and of a batch, columns.
#[test]
fn rows_of_bytes_of_odd_shapes() {
    const COLS: [usize; 11] = [1, 7, 8, 15, 16, 17, 63, 64, 65, 130, 200];
    for (i, width) in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 17, 33].into_iter().enumerate() {
        for (j, count) in [1, 7, 8, 14, 15, 16, 31, 46, 48, 49, 97].into_iter().enumerate() {
            let (cols, seed) = (COLS[(i + j) % COLS.len()], (100 * i + j) as u64);
            check_pixels::<f32>(count, cols, width, seed);
            check_pixels::<f64>(count, cols, width, seed);
        }
    }
}

/// The largest error of eˣ in units of the relative spacing of numbers, over a range.
fn worst<T: Real>(level: Level, low: f64, high: f64) -> f64 {
    let stream = &mut Stream::new(3, Purpose::Problem, 0);
    let x: Vec<T> = (0..50_000).map(|_| T::of(stream.between(low, high))).collect();
    let exp = |level: Level| {
        let mut e = x.clone();
        level.exp(&mut e);
        e
    };
    let e = exp(level);
    assert_eq!(e, exp(Level::best()), "{level:?} gives other bits");
    let error = |(&x, &e): (&T, &T)| {
        let want = x.to_f64().exp();
        (e.to_f64() / want - 1.0).abs() / T::epsilon().to_f64()
    };
    x.iter().zip(&e).map(error).fold(0.0, f64::max)
}

#[test]
fn exp_is_right_to_two_units_in_the_last_place() {
    for level in Level::all() {
        let (single, double) =
            (worst::<f32>(level, -86.0, 88.7), worst::<f64>(level, -707.0, 709.7));
        assert!(single <= 1.0 && double <= 2.0, "{level:?}: {single}, {double}");
    }
}

#[test]
fn exp_at_the_ends() {
    for level in Level::all() {
        let mut single = [f32::NAN, 0.0, 89.5, f32::INFINITY, -200.0, f32::NEG_INFINITY];
        level.exp(&mut single);
        assert!(single[0].is_nan() && single[1] == 1.0 && single[2] == f32::INFINITY);
        assert!(single[3] == f32::INFINITY && single[4] < 1e-37 && single[5] < 1e-37);
        let mut double = [f64::NAN, 0.0, 710.0, f64::INFINITY, -800.0];
        level.exp(&mut double);
        assert!(double[0].is_nan() && double[1] == 1.0 && double[2] == f64::INFINITY);
        assert!(double[3] == f64::INFINITY && double[4] < 1e-307);
    }
}

#[test]
fn softmax_of_large_scores_is_finite() {
    for level in Level::all() {
        let mut z = [1e30f32, -1e30, 0.0, 5.0, 5.0, -1000.0];
        level.softmax(&mut z, 3);
        assert_eq!(z[0], 1.0);
        assert!(z[1] < 1e-30 && (z[3] - 0.5).abs() < 1e-6 && (z[4] - 0.5).abs() < 1e-6);
    }
}

#[test]
#[should_panic(expected = "a column beyond the matrix")]
fn a_column_beyond_the_matrix_is_refused() {
    let matrix = Csr { cols: 200, starts: &[0, 1], columns: &[200], values: &[1.0f64] };
    let rows = Rows { numbers: &[0], of: None };
    Level::best().sparse_product(matrix, rows, &[1.0; 400], 2, &mut [0.0; 2]);
}

/// `x ← x · a + 0.1`, which must not be rounded once only.
struct Step<'a>(&'a mut [f32], &'a [f32]);

impl Loop for Step<'_> {
    #[inline(always)]
    fn run(self) {
        self.0.iter_mut().zip(self.1).for_each(|(x, a)| *x = *x * a + 0.1);
    }
}

#[test]
fn loops_have_the_same_bits_at_every_level() {
    let stream = &mut Stream::new(5, Purpose::Problem, 0);
    let (x, a) = (numbers::<f32>(1003, stream), numbers::<f32>(1003, stream));
    let run = |level: Level| {
        let mut x = x.clone();
        level.run(Step(&mut x, &a));
        x
    };
    let plain: Vec<f32> = x.iter().zip(&a).map(|(x, a)| x * a + 0.1).collect();
    Level::all().into_iter().for_each(|level| assert_eq!(run(level), plain, "{level:?}"));
}

#[test]
#[should_panic(expected = "a column beyond the matrix")]
fn blocks_refuse_a_column_beyond_the_matrix() {
    Blocks::new(Csr { cols: 20, starts: &[0, 1], columns: &[20], values: &[1.0] });
}

#[test]
#[should_panic(expected = "a column beyond the matrix")]
fn cells_refuse_a_column_beyond_the_matrix() {
    let columns = [0, 1, 2, 20];
    Cells::new(Csr { cols: 20, starts: &[0, 4], columns: &columns, values: &[1.0; 4] });
}
