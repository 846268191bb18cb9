//! Products of rows in every form, and back.

use lopa_kernels::{Blocks, Cells, Columns, Pixels, Rows};
use proptest::prelude::*;

use crate::draw::{Matrix, Scalar, Stream, check, most, wide};

/// Dense and sparse rows.
fn check_products<T: Scalar>(count: usize, cols: usize, width: usize, density: f64, seed: u64) {
    let stream = &mut Stream::new(seed);
    let a = Matrix::<T>::draw(9, cols, density, stream);
    let rows: Vec<usize> = (0..count).map(|_| stream.below(9)).collect();
    let (weights, delta) = (stream.numbers::<T>(cols * width), stream.numbers::<T>(count * width));
    let (front, back) = (stream.numbers::<T>(count * width), stream.numbers::<T>(cols * width));
    let refs: Vec<&[T]> = rows.iter().map(|&row| a.row(row)).collect();
    let numbers: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
    let each = || Rows { numbers: &numbers, of: None };
    let zero = vec![0.0; count * width];
    let forward = a.product(&rows, &wide(&weights), &zero);
    let added = a.product(&rows, &wide(&weights), &wide(&front));
    let backward = a.transposed(&rows, &wide(&delta), &wide(&back));
    // Kernels that overwrite `out` start from arbitrary numbers there.
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

/// Sparse rows in blocks and in cells, with few or many distinct values.
fn check_packed<T: Scalar>(count: usize, cols: usize, width: usize, values: Drawn, seed: u64) {
    let stream = &mut Stream::new(seed);
    // If dense, nearly all rows have most columns.
    let density = if stream.below(2) == 0 { 0.4 } else { 0.8 };
    let mut a = Matrix::<f64>::draw(9, cols, density, stream);
    a.change(|value| match values {
        Drawn::Any => value,
        Drawn::Multiples => (255.0 * value).ceil() * 0.004,
        Drawn::Few => (1.0 + (20.0 * value).floor()).sqrt() - 3.3,
    });
    let rows: Vec<usize> = (0..count).map(|_| stream.below(9)).collect();
    let (weights, delta) = (stream.numbers::<T>(cols * width), stream.numbers::<T>(count * width));
    let (front, back) = (stream.numbers::<T>(count * width), stream.numbers::<T>(cols * width));
    let places: Vec<u32> = (0..count as u32).collect();
    let of: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
    let each = || Rows { numbers: &places, of: Some(&of) };
    let forward = a.product(&rows, &wide(&weights), &vec![0.0; count * width]);
    let backward = a.transposed(&rows, &wide(&delta), &wide(&back));
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
        // With few columns, the lengths of rows may by chance differ too much.
        assert!(!(120..=256).contains(&cols), "rows of nearly equal lengths make cells");
    }
    let blocks = Blocks::new(a.csr()).map(|blocks| blocks.cast(T::of));
    let Some(blocks) = blocks else {
        return assert!(cols < 40 || matches!(values, Drawn::Any), "few values make blocks");
    };
    // One to three matrices, with columns as they are or shifted and scaled.
    let all: Vec<Vec<T>> = (0..1 + stream.below(3)).map(|_| stream.numbers(cols * width)).collect();
    let deltas: Vec<Vec<T>> = all.iter().map(|_| stream.numbers(count * width)).collect();
    let (factors, shifts) = (stream.numbers::<T>(cols), stream.numbers::<T>(cols));
    let columns = (stream.below(2) == 0).then_some(Columns { factors: &factors, shifts: &shifts });
    let stands_for = |(e, &a): (usize, &f64)| match columns {
        Some(_) => factors[e % cols].to_f64() * (a - shifts[e % cols].to_f64()),
        None => a,
    };
    let meant = Matrix::of(a.dense.iter().enumerate().map(stands_for).collect(), cols);
    let each_of = |of: &[Vec<T>], product: &dyn Fn(&[f64]) -> Vec<f64>| -> Vec<f64> {
        of.iter().flat_map(|of| product(&wide(of))).collect()
    };
    let nothing = vec![0.0; count * width];
    let forwards = each_of(&all, &|weights| meant.product(&rows, weights, &nothing));
    let backwards = each_of(&deltas, &|delta| meant.transposed(&rows, delta, &wide(&back)));
    let on = |start: &Vec<T>, kernel: &dyn Fn(&mut [&mut [T]])| -> Vec<T> {
        let mut outs = vec![start.clone(); all.len()];
        kernel(&mut outs.iter_mut().map(|out| &mut out[..]).collect::<Vec<_>>());
        outs.concat()
    };
    let (of_all, of_deltas): (Vec<&[T]>, Vec<&[T]>) =
        (all.iter().map(|of| &of[..]).collect(), deltas.iter().map(|of| &of[..]).collect());
    check("block product", &forwards, |level| {
        on(&front, &|outs| level.block_product(&blocks, each(), columns, &of_all, width, outs))
    });
    check("blocks transposed", &backwards, |level| {
        on(&back, &|outs| {
            level.add_block_transposed(&blocks, each(), columns, &of_deltas, width, outs);
        })
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

/// Rows made of runs, one empty, one full: products with one column sort rows by length.
fn check_runs<T: Scalar>(count: usize, cols: usize, seed: u64) {
    let stream = &mut Stream::new(seed);
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
    let (weights, delta) = (stream.numbers::<T>(cols), stream.numbers::<T>(count));
    let (front, back) = (stream.numbers::<T>(count), stream.numbers::<T>(cols));
    let numbers: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
    let each = Rows { numbers: &numbers, of: None };
    check("block dots", &a.product(&rows, &wide(&weights), &vec![0.0; count]), |level| {
        let mut out = front.clone();
        level.block_dots(&blocks, each, &weights, &mut out);
        out
    });
    check("block sums", &a.transposed(&rows, &wide(&delta), &wide(&back)), |level| {
        let mut out = back.clone();
        level.add_block_sums(&blocks, each, &delta, &mut out);
        out
    });
}

/// Rows without a value are packed, and their products are zero.
#[test]
fn rows_without_values() {
    let a = Matrix::of(vec![0.0; 9], 1);
    let blocks = Blocks::new(a.csr()).expect("no value is one too many");
    assert!(blocks.has_unit());
    let each = || Rows { numbers: &[0, 8, 3], of: None };
    check("block dots", &[0.0; 3], |level| {
        let mut out = vec![7.0; 3];
        level.block_dots(&blocks, each(), &[2.0], &mut out);
        out
    });
    check("block sums", &[5.0], |level| {
        let mut out = vec![5.0];
        level.add_block_sums(&blocks, each(), &[1.0, 2.0, 3.0], &mut out);
        out
    });
}

/// The values of a matrix: all different, multiples of one number, or few.
#[derive(Debug, Clone, Copy)]
enum Drawn {
    Any,
    Multiples,
    Few,
}

/// Dense rows of bytes less a shift.
fn check_pixels<T: Scalar>(count: usize, cols: usize, width: usize, seed: u64) {
    let stream = &mut Stream::new(seed);
    let bytes: Vec<u8> = (0..9 * cols).map(|_| stream.below(256) as u8).collect();
    let shift: Vec<T> = (0..cols).map(|_| T::of(stream.between(0.0, 255.0))).collect();
    let unit = T::of(0.004);
    let value =
        |(at, &byte): (usize, &u8)| unit.to_f64() * (f64::from(byte) - shift[at % cols].to_f64());
    let dense: Vec<f64> = bytes.iter().enumerate().map(value).collect();
    let a = Matrix { cols, dense, starts: vec![], columns: vec![], values: vec![] };
    let rows: Vec<usize> = (0..count).map(|_| stream.below(9)).collect();
    let (weights, delta) = (stream.numbers::<T>(cols * width), stream.numbers::<T>(count * width));
    let (front, back) = (stream.numbers::<T>(count * width), stream.numbers::<T>(cols * width));
    let of: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
    let pixels = Pixels { bytes: &bytes, unit, shift: &shift };
    let each = || Rows { numbers: &of, of: None };
    let forward = a.product(&rows, &wide(&weights), &vec![0.0; count * width]);
    check("pixel product", &forward, |level| {
        let mut out = front.clone();
        level.pixel_product(&pixels, each(), &weights, width, &mut out);
        out
    });
    let backward = a.transposed(&rows, &wide(&delta), &wide(&back));
    check("pixels transposed", &backward, |level| {
        let mut out = back.clone();
        level.add_pixel_transposed(&pixels, each(), &delta, width, &mut out);
        out
    });
}

proptest! {
    #[test]
    fn products(
        count in 1..most(70, 20),
        cols in 1..most(150, 40),
        width in prop_oneof![Just(1usize), 2..most(70, 20)],
        density in prop_oneof![Just(0.0), Just(0.2), Just(1.0)],
        seed: u64,
    ) {
        check_products::<f32>(count, cols, width, density, seed);
        check_products::<f64>(count, cols, width, density, seed);
    }

    #[test]
    fn packed_rows(
        count in 1..most(150, 12),
        cols in 1..most(600, 140),
        width in prop_oneof![Just(1usize), 2..most(70, 12)],
        values in prop_oneof![Just(Drawn::Any), Just(Drawn::Multiples), Just(Drawn::Few)],
        seed: u64,
    ) {
        check_packed::<f32>(count, cols, width, values, seed);
        check_packed::<f64>(count, cols, width, values, seed);
    }

    #[test]
    fn rows_of_runs(
        count in 1..most(300, 20),
        cols in prop_oneof![12..most(100, 40), most(700, 120)..=most(1024, 140)],
        seed: u64,
    ) {
        check_runs::<f32>(count, cols, seed);
        check_runs::<f64>(count, cols, seed);
    }

    #[test]
    fn rows_of_bytes(
        count in 1..most(70, 20),
        cols in 1..most(300, 40),
        width in 1..most(70, 20),
        seed: u64,
    ) {
        check_pixels::<f32>(count, cols, width, seed);
        check_pixels::<f64>(count, cols, width, seed);
    }

}

/// Weights that are multiplied in parts.
#[test]
#[cfg_attr(miri, ignore)]
fn large_weights() {
    check_products::<f32>(9, 701, 390, 1.0, 1);
    check_products::<f64>(5, 701, 195, 1.0, 2);
}

/// At the edges of panels, strips and batches; a few of them under Miri.
#[test]
fn rows_of_bytes_of_odd_shapes() {
    const COLS: [usize; 11] = [1, 7, 8, 15, 16, 17, 63, 64, 65, 130, 200];
    const COUNTS: [usize; 11] = [1, 7, 8, 14, 15, 16, 31, 46, 48, 49, 97];
    const WIDTHS: [usize; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 17, 33];
    for at in (0..WIDTHS.len() * COUNTS.len()).step_by(most(1, 25)) {
        let (i, j) = (at / COUNTS.len(), at % COUNTS.len());
        let (cols, seed) = (COLS[(i + j) % COLS.len()], (100 * i + j) as u64);
        check_pixels::<f32>(COUNTS[j], cols, WIDTHS[i], seed);
        check_pixels::<f64>(COUNTS[j], cols, WIDTHS[i], seed);
    }
}
