//! Refused arguments: slices of the wrong length, rows and columns out of range.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lopa_kernels::{Blocks, Cells, Columns, Csr, Level, Pixels, Rows};

/// Calls a kernel at every level; all must panic with this message.
fn refused(message: &str, call: impl Fn(Level)) {
    for level in Level::all() {
        let error = catch_unwind(AssertUnwindSafe(|| call(level))).expect_err(message);
        let text = error.downcast_ref::<String>().map(String::as_str);
        let text = text.or(error.downcast_ref::<&str>().copied()).unwrap_or_default();
        assert!(text.contains(message), "{level:?}: {text} instead of {message}");
    }
}

/// 2 · WRAPS = 2 in 64 bits: only a checked product detects that it is too wide.
const WRAPS: usize = usize::MAX / 2 + 2;

/// Three full rows of two columns.
const CSR: Csr<f64> = Csr {
    cols: 2,
    starts: &[0, 2, 4, 6],
    columns: &[0, 1, 0, 1, 0, 1],
    values: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
};
const TWO_ROWS: Rows = Rows { numbers: &[0, 2], of: None };
const FOURTH_ROW: Rows = Rows { numbers: &[0, 3], of: None };

#[test]
fn dense_rows_of_other_shapes() {
    let rows: [&[f64]; 2] = [&[1.0, 2.0], &[3.0, 4.0]];
    let uneven: [&[f64]; 2] = [&[1.0, 2.0], &[3.0]];
    refused("`weights`", |level| level.dense_product(&rows, &[1.0; 5], 3, false, &mut [0.0; 6]));
    refused("`out`", |level| level.dense_product(&rows, &[1.0; 6], 3, false, &mut [0.0; 7]));
    refused("`weights`", |level| level.dense_product(&rows, &[1.; 2], WRAPS, false, &mut [0.; 2]));
    refused("rows differ", |level| level.dense_product(&uneven, &[1.; 2], 1, false, &mut [0.; 2]));
    refused("`out`", |level| level.add_dense_transposed(&rows, &[1.0; 6], 3, &mut [0.0; 5]));
    refused("`delta`", |level| level.add_dense_transposed(&rows, &[1.0; 4], 3, &mut [0.0; 6]));
    refused("`weights`", |level| level.dense_dots(&rows, &[1.0; 3], &mut [0.0; 2]));
    refused("`out`", |level| level.dense_dots(&rows, &[1.0; 2], &mut [0.0; 1]));
    refused("`out`", |level| level.add_dense_sums(&rows, &[1.0; 2], &mut [0.0; 1]));
    refused("`delta`", |level| level.add_dense_sums(&rows, &[1.0; 3], &mut [0.0; 2]));
}

/// The checks that all products with stored rows have, given a product and a transposed product of
/// rows, an operand, a width and a result, for a matrix of two columns.
fn stored_rows(
    product: impl Fn(Level, Rows, &[f64], usize, &mut [f64]),
    transposed: impl Fn(Level, Rows, &[f64], usize, &mut [f64]),
) {
    refused("`weights`", |level| product(level, TWO_ROWS, &[1.0; 5], 3, &mut [0.0; 6]));
    refused("`out`", |level| product(level, TWO_ROWS, &[1.0; 6], 3, &mut [0.0; 5]));
    refused("`weights`", |level| product(level, TWO_ROWS, &[1.0; 2], WRAPS, &mut [0.0; 2]));
    refused("out of", |level| product(level, FOURTH_ROW, &[1.0; 6], 3, &mut [0.0; 6]));
    refused("`delta`", |level| transposed(level, TWO_ROWS, &[1.0; 5], 3, &mut [0.0; 6]));
    refused("`out`", |level| transposed(level, TWO_ROWS, &[1.0; 6], 3, &mut [0.0; 5]));
    refused("`out`", |level| transposed(level, TWO_ROWS, &[1.0; 2], WRAPS, &mut [0.0; 2]));
    refused("out of", |level| transposed(level, FOURTH_ROW, &[1.0; 6], 3, &mut [0.0; 6]));
    let beyond_the_list = Rows { numbers: &[0, 1], of: Some(&[0]) };
    refused("out of", |level| product(level, beyond_the_list, &[1.0; 6], 3, &mut [0.0; 6]));
}

#[test]
fn sparse_rows_of_other_shapes() {
    stored_rows(
        |level, rows, weights, width, out| level.sparse_product(CSR, rows, weights, width, out),
        |level, rows, delta, width, out| level.add_sparse_transposed(CSR, rows, delta, width, out),
    );
}

#[test]
fn cells_of_other_shapes() {
    let cells = Cells::new(CSR).expect("full rows");
    stored_rows(
        |level, rows, weights, width, out| level.cell_product(&cells, rows, weights, width, out),
        |level, rows, delta, width, out| level.add_cell_transposed(&cells, rows, delta, width, out),
    );
}

#[test]
fn blocks_of_other_shapes() {
    let columns = [0, 1, 2, 3, 0, 1, 2, 3];
    let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let starts = [0, 4, 8];
    let blocks = Blocks::new(Csr { cols: 4, starts: &starts, columns: &columns, values: &values });
    let blocks = &blocks.expect("full rows of multiples of 1");
    let rows = Rows { numbers: &[0, 1], of: None };
    let third = Rows { numbers: &[0, 2], of: None };
    let product = |rows, weights: usize, out: usize| {
        move |level: Level| {
            let (weights, mut out) = (vec![1.0; weights], vec![0.0; out]);
            level.block_product(blocks, rows, None, &[&weights], 2, &mut [&mut out]);
        }
    };
    let transposed = |rows, delta: usize, out: usize| {
        move |level: Level| {
            let (delta, mut out) = (vec![1.0; delta], vec![0.0; out]);
            level.add_block_transposed(blocks, rows, None, &[&delta], 2, &mut [&mut out]);
        }
    };
    refused("`weights`", product(rows, 9, 4));
    refused("`out`", product(rows, 8, 3));
    refused("out of", product(third, 8, 4));
    refused("`out`", transposed(rows, 4, 7));
    refused("`delta`", transposed(rows, 1, 8));
    refused("out of", transposed(third, 4, 8));
    let (four, five) = (&[1.0; 4][..], &[1.0; 5][..]);
    refused("in number", |level| {
        level.block_product(blocks, rows, None, &[four, four], 1, &mut [&mut [0.0; 2]]);
    });
    refused("in number", |level| {
        level.add_block_transposed(blocks, rows, None, &[], 1, &mut [&mut [0.0; 4]]);
    });
    for (what, factors, shifts) in [("`factors`", five, four), ("`shifts`", four, five)] {
        let columns = Some(Columns { factors, shifts });
        refused(what, |level| {
            level.block_product(blocks, rows, columns, &[four], 1, &mut [&mut [0.0; 2]]);
        });
        refused(what, |level| {
            let (delta, mut out) = ([1.0; 2], [0.0; 4]);
            level.add_block_transposed(blocks, rows, columns, &[&delta], 1, &mut [&mut out]);
        });
    }
    refused("`weights`", |level| level.block_dots(blocks, rows, &[1.0; 3], &mut [0.0; 2]));
    refused("`out`", |level| level.block_dots(blocks, rows, &[1.0; 4], &mut [0.0; 1]));
    refused("out of", |level| level.block_dots(blocks, third, &[1.0; 4], &mut [0.0; 2]));
    refused("`out`", |level| level.add_block_sums(blocks, rows, &[1.0; 2], &mut [0.0; 3]));
    refused("`delta`", |level| level.add_block_sums(blocks, rows, &[1.0; 1], &mut [0.0; 4]));
    refused("out of", |level| level.add_block_sums(blocks, third, &[1.0; 2], &mut [0.0; 4]));
}

#[test]
fn blocks_without_a_unit_have_no_product_with_one_column() {
    let values = [1.0, -2.0, 3.0, 4.5];
    let matrix = Csr { cols: 4, starts: &[0, 4], columns: &[0, 1, 2, 3], values: &values };
    let blocks = Blocks::new(matrix).expect("a full row");
    let rows = Rows { numbers: &[0], of: None };
    refused("multiples", |level| level.block_dots(&blocks, rows, &[1.0; 4], &mut [0.0]));
    refused("multiples", |level| level.add_block_sums(&blocks, rows, &[1.0], &mut [0.0; 4]));
}

#[test]
fn pixels_of_other_shapes() {
    let pixels = Pixels { bytes: &[1, 2, 3, 4, 5, 6], unit: 1.0, shift: &[0.5, 1.5] };
    stored_rows(
        |level, rows, weights, width, out| level.pixel_product(&pixels, rows, weights, width, out),
        |level, rows, delta, width, out| {
            level.add_pixel_transposed(&pixels, rows, delta, width, out)
        },
    );
}

#[test]
fn short_rows_of_other_shapes() {
    refused("rows are empty", |level| level.softmax(&mut [1.0f64; 4], 0));
    refused("`rows`", |level| level.scale_rows(&[1.0f64; 2], &[1.0; 5], 3, &mut [0.0; 6]));
    refused("`out`", |level| level.scale_rows(&[1.0f64; 2], &[1.0; 6], 3, &mut [0.0; 5]));
    refused("`rows`", |level| level.scale_rows(&[1.0f64; 2], &[1.0; 2], WRAPS, &mut [0.0; 2]));
    refused("not whole", |level| level.add_to_each_row(&[1.0f64; 2], &mut [0.0; 5]));
    refused("not whole", |level| level.add_to_each_row(&[] as &[f64], &mut [0.0; 5]));
    refused("not whole", |level| level.add_row_sum(&[1.0f64; 5], &mut [0.0; 2]));
    refused("not whole", |level| level.add_row_sum(&[1.0f64; 5], &mut []));
    refused("`a`", |level| level.row_dots(&[1.0f64; 5], &[1.0; 6], 3, &mut [0.0; 2]));
    refused("`b`", |level| level.row_dots(&[1.0f64; 6], &[1.0; 5], 3, &mut [0.0; 2]));
    refused("`a`", |level| level.row_dots(&[1.0f64; 2], &[1.0; 2], WRAPS, &mut [0.0; 2]));
}

#[test]
#[should_panic(expected = "column out of range")]
fn a_column_beyond_the_matrix_is_refused() {
    let matrix = Csr { cols: 200, starts: &[0, 1], columns: &[200], values: &[1.0f64] };
    let rows = Rows { numbers: &[0], of: None };
    Level::best().sparse_product(matrix, rows, &[1.0; 400], 2, &mut [0.0; 2]);
}

#[test]
#[should_panic(expected = "column out of range")]
fn blocks_refuse_a_column_beyond_the_matrix() {
    Blocks::new(Csr { cols: 20, starts: &[0, 1], columns: &[20], values: &[1.0] });
}

#[test]
#[should_panic(expected = "column out of range")]
fn cells_refuse_a_column_beyond_the_matrix() {
    let columns = [0, 1, 2, 20];
    Cells::new(Csr { cols: 20, starts: &[0, 4], columns: &columns, values: &[1.0; 4] });
}
