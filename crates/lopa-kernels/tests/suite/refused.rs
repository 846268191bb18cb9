//! Refused arguments: slices of the wrong length, rows and columns out of range.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lopa_kernels::{Blocks, Cells, Csr, Level, Pixels, Rows};

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
    let blocks = blocks.expect("full rows of multiples of 1");
    let rows = Rows { numbers: &[0, 1], of: None };
    let third = Rows { numbers: &[0, 2], of: None };
    refused("`weights`", |level| level.block_product(&blocks, rows, &[1.0; 9], 2, &mut [0.0; 4]));
    refused("`out`", |level| level.block_product(&blocks, rows, &[1.0; 8], 2, &mut [0.0; 3]));
    refused("out of", |level| level.block_product(&blocks, third, &[1.0; 8], 2, &mut [0.0; 4]));
    refused("`out`", |level| level.add_block_transposed(&blocks, rows, &[1.; 4], 2, &mut [0.; 7]));
    refused("`delta`", |level| level.add_block_transposed(&blocks, rows, &[1.], 2, &mut [0.; 8]));
    refused("out of", |level| {
        level.add_block_transposed(&blocks, third, &[1.; 4], 2, &mut [0.; 8])
    });
    refused("`weights`", |level| level.block_dots(&blocks, rows, &[1.0; 3], &mut [0.0; 2]));
    refused("`out`", |level| level.block_dots(&blocks, rows, &[1.0; 4], &mut [0.0; 1]));
    refused("out of", |level| level.block_dots(&blocks, third, &[1.0; 4], &mut [0.0; 2]));
    refused("`out`", |level| level.add_block_sums(&blocks, rows, &[1.0; 2], &mut [0.0; 3]));
    refused("`delta`", |level| level.add_block_sums(&blocks, rows, &[1.0; 1], &mut [0.0; 4]));
    refused("out of", |level| level.add_block_sums(&blocks, third, &[1.0; 2], &mut [0.0; 4]));
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
    let two = &[1.0f64; 2];
    for (what, rows, stride, out, total) in [
        ("`rows`", 5, 3, 6, 3),
        ("`out`", 6, 3, 5, 3),
        ("`out`", 6, 2, 6, 3),
        ("`out`", 6, WRAPS, 6, 3),
    ] {
        refused(what, |level| {
            let (rows, mut out, mut total) = (vec![1.0; rows], vec![0.0; out], vec![0.0; total]);
            level.scale_shifted_rows(two, two, &rows, stride, &mut out, &mut total);
        });
        let what = if what == "`out`" { "`rows`" } else { "`out`" };
        refused(what, |level| {
            let (mut rows, out, total) = (vec![0.0; rows], vec![1.0; out], vec![1.0; total]);
            level.add_scaled_rows(two, two, &out, stride, &total, &mut rows);
        });
    }
    refused("`shifts`", |level| {
        level.scale_shifted_rows(two, &[1.0; 3], &[1.0; 6], 3, &mut [0.0; 6], &mut [0.0; 3]);
    });
    refused("`shifts`", |level| {
        level.add_scaled_rows(two, &[1.0; 1], &[1.0; 6], 3, &[1.0; 3], &mut [0.0; 6]);
    });
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
