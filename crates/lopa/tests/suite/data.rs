//! Data sources and preparation: every reader on small files, and on real ones if present.

use std::path::PathBuf;
use std::sync::Arc;

use crate::files::*;
use lopa::data::{
    Dataset, Features, Method, Preparation, Raw, Samples, Table, Usual, digest, prepare, sources,
};
use lopa::math::random::{Purpose, Stream};
use proptest::prelude::*;

#[test]
fn digits_come_along() {
    let data = load_files("name = 'digits'\ntest = 0\nscaling = 'none'", &[]).unwrap();
    assert_eq!((data.train.len(), data.test.len(), data.train.features().cols()), (1797, 0, 64));
    let mut counts = [0; 10];
    data.train.labels().iter().for_each(|&label| counts[label as usize] += 1);
    assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    let rows = dense(&data.train);
    assert_eq!(rows[0][..6], [0.0, 0.0, 5.0, 13.0, 9.0, 1.0]);
    let sum: f64 = rows.iter().flatten().sum();
    assert_eq!(sum, 561_718.0);
}

#[test]
fn digits_are_divided_by_sixteen_and_a_fifth_of_each_class_is_held_out() {
    let data = load_files("name = 'digits'", &[]).unwrap();
    assert_eq!(data.train.len() + data.test.len(), 1797);
    for (class, all) in (0..10).zip([178, 182, 177, 183, 181, 182, 181, 179, 174, 180]) {
        let held = data.test.labels().iter().filter(|&&label| label == class).count();
        assert_eq!(held, (f64::from(all) * 0.2).round() as usize);
    }
    let largest = dense(&data.train).into_iter().flatten().fold(0.0, f64::max);
    assert_eq!(largest, 1.0);
    assert_eq!(data.scaling.of(0).factor, vec![1.0 / 16.0; 64]);
    assert!(data.scaling.of(0).shift.is_empty());
}

#[test]
fn mnist_reads_plain_and_packed_files_alike() {
    let plain = load_files("name = 'mnist'", &mnist()).unwrap();
    let packed: Vec<File> = mnist()
        .into_iter()
        .map(|(name, bytes)| (format!("{name}.gz").leak() as &str, gzip(&bytes)))
        .collect();
    assert_eq!(digest(&plain), digest(&load_files("name = 'mnist'", &packed).unwrap()));
    assert_eq!(plain.classes, ["1", "7"]);
    assert_eq!(plain.train.labels(), [1, 0, 1]);
    assert_eq!(plain.test.labels(), [0, 1]);
    let first = dense(&plain.train)[0].clone();
    let expected = [0.0, 1.0, 0.2, 0.0];
    assert!(first.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{first:?}");
}

#[test]
fn classes_are_kept_in_the_order_given() {
    let data = load_files("name = 'mnist'\nclasses = [7, 1]\nscaling = 'none'", &mnist()).unwrap();
    assert_eq!(data.classes, ["7", "1"]);
    assert_eq!(data.train.labels(), [0, 1, 0]);
    let data = load_files("name = 'mnist'\nclasses = ['1']", &mnist()).unwrap();
    assert_eq!((data.train.len(), data.test.len()), (1, 1));
}

#[test]
fn cifar_classes_go_by_number_or_name() {
    let files = [
        ("cifar10/data_batch_1.bin", [cifar(5, 10), cifar(7, 20)].concat()),
        ("cifar10/data_batch_2.bin", cifar(0, 30)),
        ("cifar10/test_batch.bin", cifar(7, 40)),
    ];
    let named = load_files("name = 'cifar10'\nclasses = ['dog', 'horse']", &files).unwrap();
    let numbered = load_files("name = 'cifar10'\nclasses = [5, 7]", &files).unwrap();
    assert_eq!(named.classes, ["dog", "horse"]);
    assert_eq!(digest(&named), digest(&numbered));
    // The mean image of the two is 15.
    assert_eq!(named.scaling.of(0).shift, vec![15.0; 3072]);
    assert!((dense(&named.test)[0][3071] - 25.0 / 255.0).abs() < 1e-15);
    let whole = load_files("name = 'cifar10'", &files).unwrap();
    assert_eq!(whole.classes, ["airplane", "dog", "horse"]);
    assert_eq!(whole.train.labels(), [1, 2, 0]);
}

#[test]
fn covtype_standardises_its_ten_numeric_columns() {
    let text = [covtype(-3, 2), covtype(5, 3), covtype(7, 2)].concat();
    let files = [("covtype/covtype.data", text.into_bytes())];
    let data = load_files("name = 'covtype'\ntest = 0", &files).unwrap();
    assert_eq!(data.classes, ["lodgepole-pine", "ponderosa-pine"]);
    let rows = dense(&data.train);
    for j in 0..10 {
        let column: Vec<f64> = rows.iter().map(|row| row[j]).collect();
        assert!(column.iter().sum::<f64>().abs() < 1e-12);
        assert!((column.iter().map(|v| v * v).sum::<f64>() / 3.0 - 1.0).abs() < 1e-12);
    }
    assert_eq!(rows[0][10..], (7..51).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn csv_finds_header_label_and_group() {
    let text =
        b"\xef\xbb\xbfhospital; age ;kind;dose\nB;\"31\";ill;0.5\r\n\nA;40;well;-1e2\nB;50;ill;2";
    let files = [("a.csv", text.to_vec())];
    let section =
        "name = 'csv'\npath = 'a.csv'\ndelimiter = ';'\nlabel = 'kind'\ngroup = 0\ntest = 0";
    let data = load_files(section, &files).unwrap();
    assert_eq!(data.classes, ["ill", "well"]);
    assert_eq!(data.train.labels(), [0, 1, 0]);
    assert_eq!(dense(&data.train), [[31.0, 0.5], [40.0, -100.0], [50.0, 2.0]]);
    let groups = data.train.groups().unwrap();
    assert_eq!(
        (&groups.of[..], &groups.names[..]),
        (&[1, 0, 1][..], &["A".into(), "B".into()][..])
    );
}

#[test]
fn csv_without_header_takes_the_last_column_and_one_name_for_one_number() {
    let files =
        [("a.csv", b"1,2,10\n3,4,+9\n5,6,9.0\n0,0,2\n".to_vec()), ("b.csv", b"7,8,2\n".to_vec())];
    let section = "name = 'csv'\npath = 'a.csv'\ntest_path = 'b.csv'";
    let data = load_files(section, &files).unwrap();
    assert_eq!(data.classes, ["2", "9", "10"]);
    assert_eq!((data.train.labels(), data.test.labels()), (&[2, 1, 1, 0][..], &[0][..]));
    assert_eq!(dense(&data.test), [[7.0, 8.0]]);
    // With `header = yes` the first row is not data.
    let section = "name = 'csv'\npath = 'a.csv'\nheader = 'yes'\ntest = 0";
    let data = load_files(section, &files).unwrap();
    assert_eq!(data.train.len(), 3);
}

#[test]
fn libsvm_stays_sparse() {
    let files = [
        ("a.txt", b"+1 1:0.5 300000:2 # a remark\n\n-1 7:0 9:-1\r\n1\n".to_vec()),
        ("b.txt", gzip(b"-1 300001:1")),
    ];
    let data = load_files("name = 'libsvm'\npath = 'a.txt'\ntest_path = 'b.txt'", &files).unwrap();
    assert_eq!(data.classes, ["-1", "1"]);
    assert_eq!(data.train.labels(), [1, 0, 1]);
    let expected = Features::Sparse {
        cols: 300_001,
        starts: vec![0, 2, 3, 3],
        columns: vec![0, 299_999, 8],
        values: vec![0.5, 2.0, -1.0],
    };
    assert_eq!(data.train.features(), &expected);
    let from_zero = "name = 'libsvm'\npath = 'z.txt'\nzero_based = true\nfeatures = 4\ntest = 0";
    let data = load_files(from_zero, &[("z.txt", b"a 0:1\nb 3:2".to_vec())]).unwrap();
    assert_eq!(dense(&data.train), [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]]);
}

/// Each type holds 1, 2 and 3, or −3 if it is signed; booleans hold 1, 0, 1.
#[test]
fn npy_reads_every_type() {
    let cases: [(&str, Vec<u8>); 11] = [
        ("|u1", vec![1, 2, 3]),
        ("|i1", vec![1, 2, 0xfd]),
        ("|b1", vec![1, 0, 1]),
        ("<u2", [1u16, 2, 3].iter().flat_map(|v| v.to_le_bytes()).collect()),
        ("<i2", [1i16, 2, -3].iter().flat_map(|v| v.to_le_bytes()).collect()),
        ("<u4", [1u32, 2, 3].iter().flat_map(|v| v.to_le_bytes()).collect()),
        ("<i4", [1i32, 2, -3].iter().flat_map(|v| v.to_le_bytes()).collect()),
        ("<u8", [1u64, 2, 3].iter().flat_map(|v| v.to_le_bytes()).collect()),
        ("<i8", [1i64, 2, -3].iter().flat_map(|v| v.to_le_bytes()).collect()),
        ("<f4", [1f32, 2.0, -3.0].iter().flat_map(|v| v.to_le_bytes()).collect()),
        ("<f8", [1f64, 2.0, -3.0].iter().flat_map(|v| v.to_le_bytes()).collect()),
    ];
    for (descr, data) in cases {
        let labels =
            "ab  é   c   ".chars().flat_map(|c| (c as u32 * u32::from(c != ' ')).to_le_bytes());
        let files = [
            ("x.npy", npy(&header(descr, "(3, 1)"), &data)),
            ("y.npy", npy(&header("<U4", "(3,)"), &labels.collect::<Vec<u8>>())),
        ];
        let section = "name = 'npy'\nfeatures = 'x.npy'\nlabels = 'y.npy'\ntest = 0";
        let loaded = load_files(section, &files).unwrap();
        let signed = !descr.contains(['u', 'b']);
        let expected = match descr {
            "|b1" => [[1.0], [0.0], [1.0]],
            _ => [[1.0], [2.0], [if signed { -3.0 } else { 3.0 }]],
        };
        assert_eq!(dense(&loaded.train), expected, "{descr}");
        assert_eq!(loaded.classes, ["ab", "c", "é"], "{descr}");
        assert_eq!(loaded.train.labels(), [0, 2, 1], "{descr}");
    }
}

#[test]
fn npy_reads_columns_first_and_later_versions() {
    // The array [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]], in column-major order.
    let order = [0.0, 6.0, 3.0, 9.0, 1.0, 7.0, 4.0, 10.0, 2.0, 8.0, 5.0, 11.0f64];
    let data: Vec<u8> = order.iter().flat_map(|value| value.to_le_bytes()).collect();
    let header = "{'fortran_order': True, \"descr\": '<f8', 'shape': (2, 2, 3)}";
    for version in [2, 3] {
        let mut x = b"\x93NUMPY".to_vec();
        x.extend([version, 0]);
        x.extend((header.len() as u32).to_le_bytes());
        x.extend(header.as_bytes());
        x.extend(&data);
        let files = [("x.npy", x), ("y.npy", npy(&crate::files::header("|u1", "(2, 1)"), &[1, 2]))];
        let section = "name = 'npy'\nfeatures = 'x.npy'\nlabels = 'y.npy'\ntest = 0";
        let rows = dense(&load_files(section, &files).unwrap().train);
        assert_eq!(rows.concat(), (0..12).map(f64::from).collect::<Vec<_>>());
    }
}

#[test]
fn npz_reads_stored_and_deflated_arrays() {
    let x = doubles("(3, 2)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = npy(&header("|i1", "(3,)"), &[1, 0xff, 1]);
    for method in [0, 8] {
        let archive = zip(&[("X.npy", x.clone(), method), ("y.npy", y.clone(), method)]);
        let section = "name = 'npz'\npath = 'a.npz'\ntest_features = 'X'\ntest_labels = 'y'";
        let data = load_files(section, &[("a.npz", archive)]).unwrap();
        assert_eq!(data.classes, ["-1", "1"]);
        assert_eq!(data.train.labels(), [1, 0, 1]);
        assert_eq!(dense(&data.train), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
        assert_eq!(data.test.len(), 3);
    }
}

/// The second of three features, left out of every format.
#[test]
fn features_are_left_out_by_number_in_every_format() {
    let x = doubles("(4, 3)", &[1., 9., 2., 3., 9., 4., 5., 8., 6., 7., 8., 8.]);
    let y = doubles("(4,)", &[0., 1., 0., 1.]);
    let bytes = npy(&header("|u1", "(4, 3)"), &[1, 9, 2, 3, 9, 4, 5, 8, 6, 7, 8, 8]);
    let text = b"0 1:1 2:9 3:2\n1 1:3 2:9 3:4\n0 1:5 2:8 3:6\n1 1:7 2:8 3:8\n";
    let zero = b"0 0:1 1:9 2:2\n1 0:3 1:9 2:4\n0 0:5 1:8 2:6\n1 0:7 1:8 2:8\n";
    let table = b"0,1,9,2\n1,3,9,4\n0,5,8,6\n1,7,8,8\n";
    let cases: [(&str, &str, Vec<File>); 7] = [
        ("name = 'csv'\npath = 'a.csv'\nlabel = 0", "[2]", vec![("a.csv", table.to_vec())]),
        ("name = 'libsvm'\npath = 'a.txt'", "[2]", vec![("a.txt", text.to_vec())]),
        (
            "name = 'libsvm'\npath = 'a.txt'\nzero_based = true",
            "[1]",
            vec![("a.txt", zero.to_vec())],
        ),
        ("name = 'libsvm'\npath = 'a.txt'\nfeatures = 3", "[2, 2]", vec![("a.txt", text.to_vec())]),
        (
            "name = 'npy'\nfeatures = 'x.npy'\nlabels = 'y.npy'",
            "[1]",
            vec![("x.npy", x.clone()), ("y.npy", y.clone())],
        ),
        (
            "name = 'npy'\nfeatures = 'x.npy'\nlabels = 'y.npy'",
            "[1]",
            vec![("x.npy", bytes), ("y.npy", y.clone())],
        ),
        (
            "name = 'npz'\npath = 'a.npz'",
            "[1]",
            vec![("a.npz", zip(&[("X.npy", x, 0), ("y.npy", y, 8)]))],
        ),
    ];
    for (section, drop, files) in cases {
        let section = format!("{section}\ndrop = {drop}\ntest = 0\nscaling = 'none'");
        let data =
            load_files(&section, &files).unwrap_or_else(|error| panic!("{section}: {error}"));
        assert_eq!(dense(&data.train), [[1., 2.], [3., 4.], [5., 6.], [7., 8.]], "{section}");
        assert_eq!(data.unnamed.dropped, [1], "{section}");
    }
}

#[test]
fn made_up_data_is_as_ordered() {
    let section = "name = 'blobs'\nrows = 4000\nfeatures = 3\ncentres = 4\nspread = 0.5\ntest = 0";
    let data = load_files(section, &[]).unwrap();
    assert_eq!((data.train.len(), data.train.features().cols()), (4000, 3));
    let rows = dense(&data.train);
    for class in 0..4 {
        let own: Vec<f64> = (0..4000).filter(|i| i % 4 == class).map(|i| rows[i][0]).collect();
        let mean = own.iter().sum::<f64>() / 1000.0;
        let variance = own.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 1000.0;
        assert!((variance - 0.25).abs() < 0.06, "variance {variance}");
    }
    let sparse = load_files(&format!("{section}\nsparsity = 0.9"), &[]).unwrap();
    let share = sparse.train.features().stored() as f64 / 12_000.0;
    assert!((share - 0.1).abs() < 0.02, "{share} stored");
    // The entries left in the sparse table equal those of the dense one.
    sparse.train.features().each(5, |j, value| assert_eq!(value, rows[5][j]));
}

#[test]
fn logistic_groups_have_growing_variance() {
    let section =
        "name = 'logistic'\nrows = 400\nfeatures = 5\ngroups = 3\nheterogeneity = 0.5\ntest = 0";
    let data = load_files(section, &[]).unwrap();
    let (rows, groups) = (dense(&data.train), data.train.groups().unwrap());
    for group in 0..3u32 {
        let own = (0..1200).filter(|&i| groups.of[i] == group).flat_map(|i| rows[i].clone());
        let own: Vec<f64> = own.collect();
        let deviation = (own.iter().map(|v| v * v).sum::<f64>() / own.len() as f64).sqrt();
        let expected = 0.5 * f64::from(group + 1);
        assert!((deviation / expected - 1.0).abs() < 0.1, "{deviation} in group {group}");
    }
    let zeros = data.train.labels().iter().filter(|&&label| label == 0).count();
    assert!((450..750).contains(&zeros), "{zeros} of 1200");
}

#[test]
fn the_rows_held_out_depend_neither_on_the_seed_nor_on_other_classes() {
    let raw = || {
        let digits = sources().choose("digits", &toml::Table::new()).unwrap();
        (digits.build)(&lopa::data::Where::new(None, 0)).unwrap()
    };
    let whole = prepare(raw(), &Preparation::default(), 1).unwrap();
    let again = prepare(raw(), &Preparation::default(), 2).unwrap();
    assert_eq!(digest(&whole), digest(&again));
    let some = Preparation { classes: Some(vec![class(3), class(8)]), ..Preparation::default() };
    let some = prepare(raw(), &some, 5).unwrap();
    let (all, rows) = (dense(&whole.test), dense(&some.test));
    let threes: Vec<_> = (0..all.len()).filter(|&i| whole.test.labels()[i] == 3).collect();
    let own: Vec<_> = (0..rows.len()).filter(|&i| some.test.labels()[i] == 0).collect();
    assert_eq!(threes.len(), own.len());
    assert!(threes.iter().zip(&own).all(|(&a, &b)| all[a] == rows[b]));
}

#[test]
fn classes_that_are_not_listed_become_one() {
    let digits = |keys: &str| load_files(&format!("name = 'digits'\n{keys}"), &[]);
    let whole = digits("").unwrap();
    let two = digits("classes = [3]\nothers = 'rest'").unwrap();
    assert_eq!(two.classes, ["3", "rest"]);
    let count = |data: &lopa::data::Data, label: u32| {
        let labels = data.train.labels().iter().chain(data.test.labels());
        labels.filter(|&&own| own == label).count()
    };
    let all = whole.train.len() + whole.test.len();
    assert_eq!((count(&two, 0), count(&two, 1)), (count(&whole, 3), all - count(&whole, 3)));
    let refused = |keys: &str| digits(keys).unwrap_err().to_string();
    assert!(refused("others = 'rest'").contains("go with `classes`"));
    assert!(refused("classes = [3]\nothers = '3'").contains("a new name"));
    assert!(refused("classes = [3]\nothers = '4'").contains("has a class `4` of its own"));
}

fn class(number: i64) -> lopa::data::ClassName {
    lopa::data::ClassName::Number(number)
}

#[test]
fn samples_are_drawn_by_the_seed_without_replacement() {
    let load = |seed| {
        let source = lopa::config::Source::new("x", "name = 'blobs'\ntest = 0\nsamples = 100");
        let (choice, preparation) = lopa::data::read(source.root().unwrap(), &sources()).unwrap();
        let place = lopa::data::Where { directory: PathBuf::new(), seed };
        lopa::data::load(&*choice.build, &preparation, &place).unwrap()
    };
    let (one, two) = (load(1), load(2));
    assert_eq!((one.train.len(), two.train.len()), (100, 100));
    assert_eq!(digest(&one), digest(&load(1)));
    assert_ne!(digest(&one), digest(&two));
    let mut rows = dense(&one.train);
    rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
    rows.dedup();
    assert_eq!(rows.len(), 100, "a row was drawn twice");
}

#[test]
fn dense_and_sparse_have_the_same_values_and_digest() {
    for scaling in ["none", "unit"] {
        let section = format!("name = 'digits'\nscaling = '{scaling}'");
        let full = load_files(&section, &[]).unwrap();
        let sparse = load_files(&format!("{section}\nsparse = true"), &[]).unwrap();
        assert!(matches!(sparse.train.features(), Features::Sparse { .. }));
        assert!(sparse.train.features().stored() < full.train.features().stored() * 6 / 10);
        assert_eq!(dense(&full.train), dense(&sparse.train));
        assert_eq!(digest(&full), digest(&sparse));
    }
    // Standardised columns are stored in full, the others stay sparse.
    let section = "name = 'digits'\nscaling = 'standardise'\ncolumns = [0, 20, 21]";
    let full = load_files(section, &[]).unwrap();
    let sparse = load_files(&format!("{section}\nsparse = true"), &[]).unwrap();
    assert_eq!(digest(&full), digest(&sparse));
    assert_eq!(full.scaling, sparse.scaling);
    let column = |j: usize| dense(&sparse.train).iter().map(|row| row[j]).sum::<f64>();
    assert!(column(20).abs() < 1e-9 && column(22) > 1.0);
}

/// The product of some samples with three columns, and the transposed product of the result.
fn products(set: &Dataset, rows: &[u32]) -> Vec<f64> {
    let samples = set.samples::<f64>(rows.to_vec());
    let weights: Vec<f64> = (0..3 * set.cols()).map(|i| (i as f64 * 0.7).sin()).collect();
    let mut there = vec![0.0; 3 * rows.len()];
    samples.whole_product(&weights, 3, &mut there);
    let mut back = vec![0.0; weights.len()];
    samples.add_whole_transposed_product(&there, 3, &mut back);
    [there, back].concat()
}

/// Products with two matrices have the bits of single ones.
fn at_once(samples: &Samples<f64>) {
    let (batch, width, size) = ([2, 0, 1], 3, samples.cols() * 3);
    let stream = &mut Stream::new(5, Purpose::Data, 0);
    let [a, b] = [(); 2].map(|()| (0..size).map(|_| stream.normal()).collect::<Vec<f64>>());
    let [mut one, mut two] = [(); 2].map(|()| [vec![0.0; 9], vec![0.0; 9]]);
    samples.product(&batch, &a, width, &mut one[0]);
    samples.product(&batch, &b, width, &mut one[1]);
    samples.products(&batch, [&a, &b], width, two.each_mut().map(|out| &mut out[..]));
    assert_eq!(one, two);
    let [mut back, mut both] = [(); 2].map(|()| [a.clone(), b.clone()]);
    samples.add_transposed_product(&batch, &one[0], width, &mut back[0]);
    samples.add_transposed_product(&batch, &one[1], width, &mut back[1]);
    let outs = both.each_mut().map(|out| &mut out[..]);
    samples.add_transposed_products(&batch, one.each_ref().map(|one| &one[..]), width, outs);
    assert_eq!(back, both);
}

#[test]
fn bytes_are_the_same_features_as_numbers() {
    let stream = &mut Stream::new(3, Purpose::Data, 0);
    // The number of columns is not a multiple of four; zeros come in runs.
    let (rows, cols) = (60, 93);
    let pixel = |i: usize| if (i / 8).is_multiple_of(3) { 1 + stream.below(255) as u8 } else { 0 };
    let bytes: Vec<u8> = (0..rows * cols).map(pixel).collect();
    let numbers = Features::Dense { cols, values: bytes.iter().map(|&b| f64::from(b)).collect() };
    let labels: Vec<u8> = (0..rows).map(|row| (row % 2) as u8).collect();
    let some: Vec<u32> = [7, 3, 40, 3].to_vec();
    let dense = [("unit", false), ("centre", false), ("standardise", false)];
    // The zeros of bytes are also skipped where scaled entries are not zero.
    let skipping = [("unit", true), ("none", true), ("centre", true), ("standardise", true)];
    for (scaling, sparse) in dense.into_iter().chain(skipping) {
        let data = |table: Table| {
            let stays = ["unit", "none"].contains(&scaling) || matches!(table, Table::Bytes { .. });
            let usual = Usual { method: Method::None, maximum: Some(255.0), columns: None };
            let raw = Raw::coded((table, labels.clone()), None, |code| code.to_string(), usual);
            let method = serde_json::from_value(scaling.into()).unwrap();
            let preparation = Preparation {
                scaling: Some(method),
                sparse: Some(sparse && stays),
                test: Some(0.0),
                ..Preparation::default()
            };
            prepare(raw, &preparation, 1).unwrap()
        };
        let mut ours = data(Table::Bytes { cols, values: Arc::new(bytes.clone()) });
        let theirs = data(Table::Numbers(numbers.clone()));
        assert_eq!(digest(&ours), digest(&theirs), "{scaling}");
        assert_eq!(ours.train.features(), theirs.train.features(), "{scaling}");
        let found = products(&ours.train, &some);
        for (a, b) in found.iter().zip(products(&theirs.train, &some)) {
            assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{scaling} {sparse}: {a} and {b}");
        }
        at_once(&ours.train.samples(some.clone()));
        ours.train.hold(&[40, 7, 3]);
        assert_eq!(found, products(&ours.train, &some), "{scaling} {sparse}");
        assert_eq!(ours.train.features(), &theirs.train.features().select(&[40, 7, 3]));
    }
}

#[test]
fn a_saved_scaling_applied_to_raw_features_gives_the_prepared_ones() {
    for scaling in ["none", "unit", "standardise", "centre"] {
        let raw = load_files("name = 'digits'\nscaling = 'none'", &[]).unwrap();
        let made = load_files(&format!("name = 'digits'\nscaling = '{scaling}'"), &[]).unwrap();
        let applied = made.scaling.of(0).apply(raw.test.features().clone());
        assert_eq!(&applied, made.test.features(), "{scaling}");
        let text = serde_json::to_string(made.scaling.of(0)).unwrap();
        assert_eq!(
            serde_json::from_str::<lopa::data::Scaling>(&text).unwrap(),
            *made.scaling.of(0)
        );
    }
}

#[test]
fn standardising_a_constant_column_leaves_no_nan() {
    let files = [("a.csv", b"1,5,a\n2,5,b\n3,5,a\n".to_vec())];
    let section = "name = 'csv'\npath = 'a.csv'\ntest = 0\nscaling = 'standardise'";
    let rows = dense(&load_files(section, &files).unwrap().train);
    assert!(rows.iter().all(|row| row[1] == 0.0 && row[0].is_finite()), "{rows:?}");
    assert_eq!(rows[1][0], 0.0);
}

#[test]
fn zeros_that_are_not_stored_count_in_means_and_deviations() {
    let files = [
        ("a.csv", b"0,5,a\n4,0,b\n8,0,a\n".to_vec()),
        ("a.txt", b"a 2:5\nb 1:4\na 1:8\n".to_vec()),
    ];
    let common = "test = 0\nscaling = 'standardise'\ncolumns = [0]";
    let full = load_files(&format!("name = 'csv'\npath = 'a.csv'\n{common}"), &files).unwrap();
    let sparse = load_files(&format!("name = 'libsvm'\npath = 'a.txt'\n{common}"), &files).unwrap();
    assert_eq!(full.scaling.of(0).shift, [4.0, 0.0]);
    assert!((full.scaling.of(0).factor[0] - (3.0f64 / 32.0).sqrt()).abs() < 1e-15);
    assert_eq!(full.scaling, sparse.scaling);
    assert_eq!(digest(&full), digest(&sparse));
    assert_eq!(sparse.train.features().stored(), 4);
}

#[test]
fn digests_tell_data_apart() {
    let with = |text: &str| {
        let files = [("a.csv", text.as_bytes().to_vec())];
        digest(&load_files("name = 'csv'\npath = 'a.csv'\ntest = 0", &files).unwrap())
    };
    let one = with("1,2,a\n3,4,b\n");
    assert_eq!(one.len(), 64);
    assert_eq!(one, with("1.0,2,a\n3,4e0,b"));
    for other in ["1,2,a\n3,5,b\n", "1,2,b\n3,4,a\n", "1,2,a\n3,4,c\n", "3,4,b\n1,2,a\n"] {
        assert_ne!(one, with(other), "{other}");
    }
}

/// Rows are hashed in blocks, and their columns as bits or as numbers.
#[test]
fn digests_of_many_rows_tell_data_apart() {
    let one = |rows: &[Vec<usize>]| {
        let cell =
            |row: &[usize], j| if row.contains(&j) { (j + 1).to_string() } else { "0".into() };
        let class = |row: &[usize]| if row.len() > 20 { "b" } else { "a" };
        let full = |row: &Vec<usize>| {
            let cells: Vec<String> = (0..70).map(|j| cell(row, j)).collect();
            format!("{},{}\n", cells.join(","), class(row))
        };
        let few = |row: &Vec<usize>| {
            let cells: Vec<String> = row.iter().map(|j| format!("{}:{}", j + 1, j + 1)).collect();
            format!("{} {}\n", class(row), cells.join(" "))
        };
        let files = [
            ("a.csv", rows.iter().map(full).collect::<String>().into_bytes()),
            ("a.txt", rows.iter().map(few).collect::<String>().into_bytes()),
        ];
        let of = |name, path| {
            let section = format!("name = '{name}'\npath = '{path}'\ntest = 0");
            digest(&load_files(&section, &files).unwrap())
        };
        let (dense, sparse) = (of("csv", "a.csv"), of("libsvm", "a.txt"));
        assert_eq!(dense, sparse);
        dense
    };
    let row = |r: usize| (0..70).filter(|j| (r * r + j * 7) % 70 < r % 30 || *j == 69).collect();
    let mut rows: Vec<Vec<usize>> = (0..600).map(row).collect();
    let before = one(&rows);
    for (a, b) in [(3, 300), (255, 256), (511, 599)] {
        rows.swap(a, b);
        assert_ne!(one(&rows), before, "rows {a} and {b}");
        rows.swap(a, b);
    }
    assert_eq!(one(&rows), before);
    rows[400].remove(0);
    assert_ne!(one(&rows), before);
}

#[test]
fn every_source_has_a_schema_and_a_line_about_it() {
    let mut names = Vec::new();
    let mut generator = schemars::SchemaGenerator::default();
    for entry in sources().iter() {
        assert!(!entry.about.is_empty() && !entry.about.ends_with('.'), "{}", entry.name);
        assert!(entry.schema(&mut generator).as_object().is_some(), "{}", entry.name);
        names.push(entry.name.clone());
    }
    let known = [
        "digits",
        "heart",
        "blobs",
        "logistic",
        "mnist",
        "fashion-mnist",
        "covtype",
        "cifar10",
        "csv",
        "libsvm",
        "npy",
        "npz",
    ];
    assert_eq!(names, known);
}

#[test]
fn the_scaling_is_the_usual_one_unless_told() {
    let of = |section: &str| load_files(section, &mnist()).unwrap().scaling.of(0).factor.clone();
    assert_eq!(of("name = 'mnist'"), vec![1.0 / 255.0; 4]);
    assert!(of("name = 'mnist'\nscaling = 'none'").is_empty());
    // Blobs have no known maximum: unit divides by the largest value.
    let data = load_files("name = 'blobs'\nscaling = 'unit'", &[]).unwrap();
    let largest = dense(&data.train).concat().into_iter().fold(0.0f64, |m, v| m.max(v.abs()));
    assert!((largest - 1.0).abs() < 1e-12);
    assert_eq!(serde_json::to_string(&Method::Standardise).unwrap(), "\"standardise\"");
}

/// The folder of the real data sets, or a message that the test is skipped.
fn real(set: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("LOPA_DATA_DIR").map(PathBuf::from);
    let found = folder.filter(|folder| folder.join(set).exists());
    if found.is_none() {
        println!("skipped: LOPA_DATA_DIR names no folder with {set}");
    }
    found
}

fn counts(set: &lopa::data::Dataset, classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    set.labels().iter().for_each(|&label| counts[label as usize] += 1);
    counts
}

#[test]
fn real_mnist() {
    let Some(folder) = real("mnist") else { return };
    let data = load_from("name = 'mnist'", &folder).unwrap();
    assert_eq!(
        (data.train.len(), data.test.len(), data.train.features().cols()),
        (60_000, 10_000, 784)
    );
    let train = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949];
    assert_eq!(counts(&data.train, 10), train);
    assert_eq!(counts(&data.test, 10), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
    let pair = load_from("name = 'mnist'\nclasses = [0, 1]\nsamples = 12000", &folder).unwrap();
    assert_eq!((pair.train.len(), pair.test.len()), (12_000, 2115));
}

#[test]
fn real_covtype() {
    let Some(folder) = real("covtype") else { return };
    let data = load_from("name = 'covtype'\ntest = 0", &folder).unwrap();
    assert_eq!((data.train.len(), data.train.features().cols()), (581_012, 54));
    let expected = [211_840, 283_301, 35_754, 2747, 9493, 17_367, 20_510];
    assert_eq!(counts(&data.train, 7), expected);
    let pair = load_from("name = 'covtype'\nclasses = [4, 5]\nsamples = 30000", &folder).unwrap();
    assert_eq!(pair.classes, ["cottonwood-willow", "aspen"]);
    assert_eq!(pair.train.len() + pair.test.len(), 12_240);
}

#[test]
fn real_cifar10() {
    let Some(folder) = real("cifar10") else { return };
    let section = "name = 'cifar10'\nclasses = ['airplane', 'automobile', 'dog', 'horse']";
    let data = load_from(section, &folder).unwrap();
    assert_eq!(data.train.features().cols(), 3072);
    assert_eq!(counts(&data.train, 4), [5000; 4]);
    assert_eq!(counts(&data.test, 4), [1000; 4]);
    let mean: f64 = dense(&data.train).iter().map(|row| row[1000]).sum::<f64>() / 20_000.0;
    assert!(mean.abs() < 1e-12);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A table written as CSV, LIBSVM, NPY and NPZ is read back the same from all four.
    #[test]
    fn formats_agree(
        rows in prop::collection::vec((prop::collection::vec(-1e6..1e6f64, 3), 0..4u8), 1..20),
        zero in 0..3usize,
    ) {
        let (mut csv, mut libsvm, mut values, mut labels) = (String::new(), String::new(), vec![], vec![]);
        for (mut row, label) in rows {
            row[zero] = 0.0;
            csv += &format!("{},{},{},{label}\n", row[0], row[1], row[2]);
            libsvm += &format!("{label} 1:{} 2:{} 3:{}\n", row[0], row[1], row[2]);
            values.extend(row);
            labels.push(label);
        }
        let shape = format!("({}, 3)", labels.len());
        let (x, y) = (doubles(&shape, &values), npy(&header("|u1", &format!("({},)", labels.len())), &labels));
        let files = [
            ("a.csv", csv.into_bytes()),
            ("a.txt", libsvm.into_bytes()),
            ("a.npz", zip(&[("X.npy", x.clone(), 8), ("y.npy", y.clone(), 0)])),
            ("x.npy", x),
            ("y.npy", y),
        ];
        let sections = [
            "name = 'csv'\npath = 'a.csv'\nheader = 'no'",
            "name = 'libsvm'\npath = 'a.txt'",
            "name = 'npy'\nfeatures = 'x.npy'\nlabels = 'y.npy'",
            "name = 'npz'\npath = 'a.npz'",
        ];
        let digests = sections.map(|section| digest(&load_files(section, &files).unwrap()));
        prop_assert!(digests.iter().all(|digest| *digest == digests[0]), "{:?}", digests);
    }
}

#[test]
fn test_rows_are_matched_by_the_names_of_their_columns() {
    let train: File = ("a.csv", b"x,y,kind\n1,2,a\n3,4,b\n".to_vec());
    let section =
        "name = 'csv'\npath = 'a.csv'\ntest_path = 'b.csv'\nlabel = 'kind'\nscaling = 'none'";
    let with =
        |test: &str| load_files(section, &[train.clone(), ("b.csv", test.as_bytes().to_vec())]);
    let data = with("kind,y,x\nb,6,5\n").unwrap();
    assert_eq!(dense(&data.test), [[5.0, 6.0]]);
    assert_eq!(data.columns.unwrap().features, ["x", "y"]);
    let error = with("kind,w,x\nb,6,5\n").unwrap_err();
    assert_eq!(error.id, "data/other-columns");
    assert!(error.to_string().contains("`y` is missing, and the column `w` is unknown"), "{error}");
}

/// A table with one feature and these labels.
fn labelled(labels: impl Iterator<Item = String>) -> Vec<u8> {
    labels.enumerate().map(|(x, label)| format!("{x},{label}\n")).collect::<String>().into_bytes()
}

#[test]
fn labels_that_are_no_classes_are_refused() {
    let csv = |labels: &mut dyn Iterator<Item = String>| ("a.csv", labelled(labels));
    let section = "name = 'csv'\npath = 'a.csv'\ntest = 0";
    let real = |rows: usize, values: usize| {
        csv(&mut (0..rows).map(|row| format!("{}", (row % values) as f64 + 0.25)))
    };
    let whole =
        |rows: usize, values: usize| csv(&mut (0..rows).map(|row| (row % values).to_string()));
    for file in [real(400, 80), real(500, 21), real(8, 5), whole(500, 51), whole(100, 100)] {
        let error = load_files(section, std::slice::from_ref(&file)).unwrap_err();
        assert_eq!(error.id, "data/too-many-classes", "{error}");
        assert!(error.to_string().contains("list the `classes`"), "{error}");
    }
    let error = load_files(section, &[real(400, 80)]).unwrap_err().to_string();
    assert!(
        error.contains("400 labels have 80 different real numbers: this looks like a regression")
    );
    for file in [real(400, 20), real(3, 3), real(10, 5), whole(510, 51), whole(60, 50)] {
        load_files(section, &[file]).unwrap();
    }
    // Labels that `classes` lists are accepted.
    let listed = format!("{section}\nclasses = {:?}", (0..100).collect::<Vec<_>>());
    assert_eq!(load_files(&listed, &[whole(100, 100)]).unwrap().classes.len(), 100);
}

#[test]
fn test_rows_of_a_class_without_training_rows_are_refused() {
    let files: [File; 2] = [
        ("a.csv", b"1,yes\n2,no\n3,yes\n4,rare\n".to_vec()),
        ("b.csv", b"1,yes\n2,maybe\n3,maybe\n".to_vec()),
    ];
    let section = "name = 'csv'\npath = 'a.csv'\ntest_path = 'b.csv'";
    let error = load_files(section, &files).unwrap_err();
    assert_eq!((error.id, error.place.as_deref()), ("data/untrained-class", Some("b.csv, row 2")));
    assert!(error.message.contains("the class `maybe`, but test rows have it: 2"), "{error}");
    let chosen = format!("{section}\nclasses = ['yes', 'no']\nunknown_labels = 'drop'");
    let chosen = load_files(&chosen, &files).unwrap();
    assert_eq!((chosen.test.len(), chosen.classes.len()), (1, 2));
}
