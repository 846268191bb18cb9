//! Malformed and missing files: each is refused with an id and a place, and none causes a panic or
//! an allocation larger than the file justifies.

use crate::files::*;
use lopa::error::Kind;
use proptest::prelude::*;

/// A section, the files in the data folder, and the error expected.
struct Case {
    name: &'static str,
    section: &'static str,
    files: Vec<File>,
    id: &'static str,
    /// A part of the error's place or message.
    place: &'static str,
}

fn case(
    name: &'static str,
    section: &'static str,
    files: Vec<File>,
    id: &'static str,
    place: &'static str,
) -> Case {
    Case { name, section, files, id, place }
}

const IMAGES: &str = "mnist/train-images-idx3-ubyte";
const LABELS: &str = "mnist/train-labels-idx1-ubyte";

fn idx_cases() -> Vec<Case> {
    let with = |name, file, bytes, id, place| {
        case(name, "name = 'mnist'", mnist_with(file, bytes), id, place)
    };
    let cut = |bytes: Vec<u8>, less: usize| bytes[..bytes.len() - less].to_vec();
    let huge = idx(&[u32::MAX, u32::MAX, u32::MAX], &[1; 12]);
    let large = idx(&[3, 30_000, 30_000], &[1; 12]);
    let packed = gzip(&idx(&[3, 2, 2], &[1; 12]));
    let mut damaged = packed.clone();
    let last = damaged.len() - 6;
    damaged[last] ^= 0xff;
    let bomb = gzip(&idx(&[3, 2, 2], &vec![0; 1 << 24]));
    let mut float = idx(&[3, 2, 2], &[1; 12]);
    float[2] = 0x0d;
    vec![
        case("nothing", "name = 'mnist'", vec![], "data/missing", "`train-labels-idx1-ubyte`"),
        case(
            "one missing",
            "name = 'mnist'",
            mnist()[..3].to_vec(),
            "data/missing",
            "lacks `t10k-labels-idx1-ubyte`",
        ),
        with("empty", IMAGES, vec![], "data/bad-magic", "train-images-idx3-ubyte, byte 0"),
        with("three bytes", IMAGES, vec![0, 0, 8], "data/bad-magic", "byte 0"),
        with("not IDX", IMAGES, b"PNG not this".to_vec(), "data/bad-magic", "byte 0"),
        with("floats", IMAGES, float, "data/unsupported", "byte 2"),
        with("labels for images", IMAGES, idx(&[3], &[1, 2, 3]), "data/bad-magic", "byte 3"),
        with(
            "images for labels",
            LABELS,
            idx(&[3, 2, 2], &[1; 12]),
            "data/bad-magic",
            "idx1-ubyte, byte 3",
        ),
        with("short header", IMAGES, vec![0, 0, 8, 3, 0, 0, 0], "data/truncated", "byte 7"),
        with("short data", IMAGES, cut(idx(&[3, 2, 2], &[1; 12]), 1), "data/truncated", "byte 27"),
        with("no data", IMAGES, idx(&[3, 2, 2], &[]), "data/truncated", "byte 16"),
        with("one byte more", IMAGES, idx(&[3, 2, 2], &[1; 13]), "data/trailing-bytes", "byte 28"),
        with("sizes that overflow", IMAGES, huge, "data/too-large", "byte 4"),
        with("sizes not there", IMAGES, large, "data/truncated", "byte 28"),
        with("no images", IMAGES, idx(&[0, 2, 2], &[]), "data/empty", "byte 4"),
        with("no pixels", IMAGES, idx(&[3, 0, 2], &[]), "data/empty", "byte 4"),
        with(
            "fewer labels",
            LABELS,
            idx(&[2], &[1, 2]),
            "data/count-mismatch",
            "idx1-ubyte, byte 4",
        ),
        with("more labels", LABELS, idx(&[4], &[1, 2, 3, 4]), "data/count-mismatch", "byte 4"),
        with(
            "other image size",
            IMAGES,
            idx(&[3, 1, 2], &[1; 6]),
            "data/shape-mismatch",
            "t10k-images",
        ),
        with("gzip cut", IMAGES, cut(packed.clone(), 12), "data/truncated", "byte"),
        with("gzip header only", IMAGES, packed[..5].to_vec(), "data/truncated", "byte 0"),
        with("gzip checksum", IMAGES, damaged, "data/bad-gzip", "byte"),
        with(
            "gzip nonsense",
            IMAGES,
            [&packed[..10], &[0xff; 30]].concat(),
            "data/bad-gzip",
            "byte",
        ),
        with("gzip bomb", IMAGES, bomb, "data/trailing-bytes", "byte 28"),
    ]
}

fn cifar_cases() -> Vec<Case> {
    let with = |name, batch: Vec<u8>, id, place| {
        let test = ("cifar10/test_batch.bin", cifar(0, 0));
        case(name, "name = 'cifar10'", vec![("cifar10/data_batch_1.bin", batch), test], id, place)
    };
    let only = vec![("cifar10/data_batch_3.bin", cifar(1, 2))];
    vec![
        case(
            "cifar: nothing",
            "name = 'cifar10'",
            vec![],
            "data/missing",
            "cifar-10-batches-bin` and in",
        ),
        case("cifar: no test", "name = 'cifar10'", only, "data/missing", "lacks `test_batch.bin`"),
        with("cifar: empty", vec![], "data/truncated", "data_batch_1.bin, byte 0"),
        with("cifar: cut", cifar(1, 2)[..3072].to_vec(), "data/truncated", "byte 3072"),
        with("cifar: one more", [cifar(1, 2), vec![1]].concat(), "data/truncated", "byte 3074"),
        with("cifar: label", [cifar(1, 2), cifar(10, 2)].concat(), "data/bad-label", "byte 3073"),
        with("cifar: gzip", gzip(&cifar(200, 2)), "data/bad-label", "byte 0"),
    ]
}

fn covtype_cases() -> Vec<Case> {
    let with = |name, text: String, id, place| {
        let files = vec![("covtype/covtype.data", text.into_bytes())];
        case(name, "name = 'covtype'", files, id, place)
    };
    let good = covtype(1, 1);
    let more = good.replacen(',', ",9,", 1);
    vec![
        case("covtype: nothing", "name = 'covtype'", vec![], "data/missing", "`covtype.data`"),
        with("covtype: empty", String::new(), "data/empty", "covtype.data"),
        with("covtype: blank", "\n\n".into(), "data/empty", "covtype.data"),
        with("covtype: label 0", good.clone() + &covtype(1, 0), "data/bad-label", "covtype.data:2"),
        with("covtype: label 8", covtype(1, 8), "data/bad-label", "covtype.data:1"),
        with("covtype: label 257", covtype(1, 257), "data/bad-label", ":1"),
        with("covtype: wide", good.clone() + "\n" + &more, "data/ragged", "covtype.data:3"),
        with("covtype: narrow", "1,2,3\n".into(), "data/ragged", ":1"),
        with("covtype: text", good.clone() + &good.replacen("2", "x", 1), "data/bad-number", ":2"),
        with("covtype: gap", good.replacen(",2,", ",,", 1), "data/bad-number", ":1"),
        with("covtype: fraction", good.replacen(",2,", ",2.5,", 1), "data/bad-number", ":1"),
        with("covtype: sign", good.replacen(",2,", ",-,", 1), "data/bad-number", ":1"),
        with("covtype: long", good.replacen(",2,", ",99999999999,", 1), "data/bad-number", ":1"),
        with("covtype: end", good.clone() + "1,2", "data/ragged", ":2"),
    ]
}

const CSV: &str = "name = 'csv'\npath = 'a.csv'";

fn csv_cases() -> Vec<Case> {
    let with = |name, section, text: &[u8], id, place| {
        case(name, section, vec![("a.csv", text.to_vec())], id, place)
    };
    let named = "name = 'csv'\npath = 'a.csv'\nlabel = 'kind'";
    let fifth = "name = 'csv'\npath = 'a.csv'\nlabel = 5";
    let both = "name = 'csv'\npath = 'a.csv'\ngroup = -1";
    let grouped = "name = 'csv'\npath = 'a.csv'\ngroup = 0";
    let tested = "name = 'csv'\npath = 'a.csv'\ntest_path = 'b.csv'";
    let no = "name = 'csv'\npath = 'a.csv'\nheader = 'no'";
    let many: String = (0..10_001).map(|i| format!("1,{i}\n")).collect();
    let two = vec![("a.csv", b"1,2,a\n".to_vec()), ("b.csv", b"1,a\n".to_vec())];
    vec![
        case("csv: nothing", CSV, vec![], "data/missing", "a.csv"),
        case("csv: folder", CSV, vec![("a.csv/x", vec![])], "data/unreadable", "a.csv"),
        with("csv: empty", CSV, b"", "data/empty", "a.csv"),
        with("csv: blank lines", CSV, b"\n\r\n\n", "data/empty", "a.csv"),
        with("csv: header only", CSV, b"a,b,c\n", "data/empty", "a.csv"),
        with("csv: ragged, short", CSV, b"1,2,a\n3,b\n", "data/ragged", "a.csv:2"),
        with("csv: ragged, long", CSV, b"1,2,a\n1,2,a\n3,4,5,b\n", "data/ragged", "a.csv:3"),
        with("csv: open quote", CSV, b"1,2,a\n\"3,4,b\n5,6,a\n", "data/ragged", "a.csv:2"),
        with("csv: text", CSV, b"x,y,k\n1,2,a\n1,red,a\n", "data/bad-number", "a.csv:3"),
        with("csv: gap", CSV, b"1,2,a\n1,,a\n", "data/bad-number", "a.csv:2"),
        with("csv: comma for a point", CSV, b"1,2,a\n\"1,5\",2,a\n", "data/bad-number", "a.csv:2"),
        with("csv: nan", CSV, b"1,2,a\n1,NaN,a\n", "data/not-finite", "a.csv:2"),
        with("csv: inf", CSV, b"1,2,a\n1,-inf,a\n", "data/not-finite", "a.csv:2"),
        with("csv: too large", CSV, b"1,1e999,a\n", "data/not-finite", "a.csv:1"),
        with("csv: label gap", CSV, b"1,2,a\n1,2,\n", "data/bad-label", "a.csv:2"),
        with("csv: label nan", CSV, b"1,2,3\n1,2,nan\n", "data/bad-label", "a.csv:2"),
        with("csv: group gap", grouped, b"g,2,a\n,2,a\n", "data/bad-label", "a.csv:2"),
        with("csv: not UTF-8", CSV, b"1,2,a\n1,\xff,a\n", "data/bad-text", "a.csv:2"),
        with("csv: label not UTF-8", CSV, b"1,2,\xe9t\xe9\n", "data/bad-text", "a.csv:1"),
        with("csv: UTF-16", CSV, b"\xff\xfe1\0,\0a\0", "data/bad-text", "a.csv:1"),
        with("csv: zeros", CSV, b"\0\0\0,\0\0\n", "data/empty", "a.csv"),
        with("csv: other delimiter", CSV, b"1:2:a\n3:4:b\n", "data/no-features", "a.csv:1"),
        with("csv: labels only", CSV, b"a\nb\n", "data/no-features", "a.csv:1"),
        with("csv: no such name", named, b"x,y,sort\n1,2,a\n", "data/no-column", "a.csv:1"),
        with("csv: name twice", named, b"kind,y,kind\n1,2,a\n", "data/no-column", "a.csv:1"),
        with("csv: no such number", fifth, b"1,2,a\n", "data/no-column", "a.csv:1"),
        with("csv: label as group", both, b"1,2,a\n", "data/no-column", "a.csv:1"),
        with("csv: header denied", no, b"x,y,k\n1,2,a\n", "data/bad-number", "a.csv:1"),
        with("csv: a class a row", CSV, many.as_bytes(), "data/too-many-classes", "10001"),
        case("csv: narrower test", tested, two, "data/shape-mismatch", "b.csv:1"),
        with("csv: gzip cut", CSV, &gzip(b"1,2,a\n")[..15], "data/truncated", "a.csv, byte"),
        with(
            "csv: gzip of zeros",
            CSV,
            &gzip(&b"0,0,a\n".repeat(12 << 20)),
            "data/too-large",
            "unpack",
        ),
    ]
}

fn libsvm_cases() -> Vec<Case> {
    let section = "name = 'libsvm'\npath = 'a.txt'";
    let three = "name = 'libsvm'\npath = 'a.txt'\nfeatures = 3";
    let dense = "name = 'libsvm'\npath = 'a.txt'\nfeatures = 200000000\nsparse = false\ntest = 0";
    let with = |name, section, text: &[u8], id, place| {
        case(name, section, vec![("a.txt", text.to_vec())], id, place)
    };
    let deep: String = (0..9).map(|_| "1 200000000:1\n").collect();
    vec![
        with("libsvm: empty", section, b"", "data/empty", "a.txt"),
        with("libsvm: remarks", section, b"# nothing\n#\n", "data/empty", "a.txt"),
        with("libsvm: index 0", section, b"1 1:1\n1 0:1\n", "data/bad-index", "a.txt:2"),
        with("libsvm: negative", section, b"1 -1:1\n", "data/bad-index", "a.txt:1"),
        with("libsvm: wide index", section, b"1 4294967297:1\n", "data/bad-index", "a.txt:1"),
        with("libsvm: beyond reason", section, b"1 4294967295:1\n", "data/bad-index", "a.txt:1"),
        with("libsvm: unlikely", section, b"1 268435456:1\n", "data/bad-index", "a.txt:1"),
        with("libsvm: beyond features", three, b"1 3:1\n1 4:1\n", "data/bad-index", "a.txt:2"),
        with("libsvm: unsorted", section, b"1 2:1 1:1\n", "data/index-order", "a.txt:1"),
        with("libsvm: twice", section, b"1 2:1 2:1\n", "data/index-order", "a.txt:1"),
        with("libsvm: no colon", section, b"1 2:1\n1 2\n", "data/bad-number", "a.txt:2"),
        with("libsvm: no value", section, b"1 2:\n", "data/bad-number", "a.txt:1"),
        with("libsvm: text", section, b"1 2:x\n", "data/bad-number", "a.txt:1"),
        with("libsvm: qid", section, b"1 qid:1 2:1\n", "data/bad-index", "a.txt:1"),
        with("libsvm: nan", section, b"1 2:nan\n", "data/not-finite", "a.txt:1"),
        with("libsvm: inf", section, b"1 2:inf\n", "data/not-finite", "a.txt:1"),
        with("libsvm: no label", section, b"1:1 2:1\n", "data/bad-label", "a.txt:1"),
        with("libsvm: two labels", section, b"1,2 2:1\n", "data/bad-label", "a.txt:1"),
        with("libsvm: nan label", section, b"1 2:1\nnan 2:1\n", "data/bad-label", "a.txt:2"),
        with("libsvm: not UTF-8", section, b"1 2:1\n\xff 2:1\n", "data/bad-text", "a.txt:2"),
        with("libsvm: no features", section, b"1\n2\n", "data/no-features", "a.txt"),
        with(
            "libsvm: no such feature",
            "name = 'libsvm'\npath = 'a.txt'\ndrop = [0]",
            b"a 1:1 2:1\nb 1:2\n",
            "data/no-column",
            "a.txt",
        ),
        with(
            "libsvm: all left out",
            "name = 'libsvm'\npath = 'a.txt'\ndrop = [1, 2]",
            b"a 1:1 2:1\nb 1:2\n",
            "data/no-features",
            "a.txt",
        ),
        with("libsvm: made dense", dense, deep.as_bytes(), "data/too-large", "too many"),
    ]
}

const NPY: &str = "name = 'npy'\nfeatures = 'x.npy'\nlabels = 'y.npy'";

fn npy_cases() -> Vec<Case> {
    let with = |name, x: Vec<u8>, id, place| {
        let y = npy(&header("|u1", "(2,)"), &[0, 1]);
        case(name, NPY, vec![("x.npy", x), ("y.npy", y)], id, place)
    };
    let labelled = |name, y: Vec<u8>, id, place| {
        let x = doubles("(2, 1)", &[1.0, 2.0]);
        case(name, NPY, vec![("x.npy", x), ("y.npy", y)], id, place)
    };
    let good = doubles("(2, 1)", &[1.0, 2.0]);
    let of = |descr: &str| npy(&header(descr, "(2, 1)"), &[0; 16]);
    let mut later = good.clone();
    later[6] = 9;
    let bomb = [b"\x93NUMPY\x02\x00\xff\xff\xff\xff".as_slice(), b"{'descr'"].concat();
    let overflow = doubles("(4294967296, 4294967296, 4294967296)", &[1.0]);
    let record = "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }";
    let broken_text = npy(&header("<U1", "(2,)"), &[0xff; 8]);
    vec![
        with("npy: empty", vec![], "data/bad-magic", "x.npy, byte 0"),
        with("npy: nonsense", b"nonsense".to_vec(), "data/bad-magic", "byte 0"),
        with("npy: magic only", b"\x93NUMPY".to_vec(), "data/truncated", "byte 6"),
        with("npy: later version", later, "data/unsupported", "byte 6"),
        with("npy: header cut", good[..30].to_vec(), "data/truncated", "byte 30"),
        with("npy: header bomb", bomb, "data/truncated", "byte 20"),
        with("npy: no dictionary", npy("[1, 2]", &[]), "data/bad-header", "byte 10"),
        with(
            "npy: no shape",
            npy("{'descr': '<f8', 'fortran_order': False}", &[]),
            "data/bad-header",
            "byte 10",
        ),
        with("npy: other key", npy("{'x': 1}", &[]), "data/bad-header", "byte 10"),
        with(
            "npy: negative size",
            npy(&header("<f8", "(-1, 2)"), &[]),
            "data/bad-header",
            "byte 10",
        ),
        with(
            "npy: shape without end",
            npy(&header("<f8", "(1, 2"), &[]),
            "data/bad-header",
            "byte 10",
        ),
        with("npy: objects", of("|O"), "data/unsupported", "byte 10"),
        with("npy: big-endian", of(">f8"), "data/unsupported", "byte 10"),
        with("npy: complex", of("<c16"), "data/unsupported", "byte 10"),
        with("npy: half", of("<f2"), "data/unsupported", "byte 10"),
        with("npy: record", npy(record, &[0; 16]), "data/unsupported", "byte 10"),
        with("npy: long text", of("<U99999999999999999999"), "data/unsupported", "byte 10"),
        with(
            "npy: text features",
            npy(&header("<U1", "(2, 1)"), &[0; 8]),
            "data/unsupported",
            "x.npy",
        ),
        with("npy: one number", doubles("()", &[1.0]), "data/empty", "byte 0"),
        with("npy: no rows", doubles("(0, 3)", &[]), "data/empty", "byte 0"),
        with("npy: no columns", doubles("(2, 0)", &[]), "data/empty", "byte 0"),
        with("npy: short", doubles("(2, 2)", &[1.0; 3]), "data/truncated", "byte"),
        with("npy: long", doubles("(2, 1)", &[1.0; 3]), "data/trailing-bytes", "byte"),
        with("npy: overflow", overflow, "data/truncated", "byte"),
        with(
            "npy: nan",
            doubles("(2, 2)", &[1.0, 2.0, 3.0, f64::NAN]),
            "data/not-finite",
            "row 1, column 1",
        ),
        with("npy: three rows", doubles("(3, 1)", &[1.0; 3]), "data/count-mismatch", "y.npy"),
        labelled("npy: wide labels", doubles("(2, 2)", &[1.0; 4]), "data/many-labels", "2 labels"),
        labelled(
            "npy: nan label",
            doubles("(2,)", &[1.0, f64::NAN]),
            "data/bad-label",
            "y.npy, row 1",
        ),
        labelled(
            "npy: empty label",
            npy(&header("<U1", "(2,)"), &[0; 8]),
            "data/bad-label",
            "row 0",
        ),
        labelled("npy: broken text", broken_text, "data/bad-text", "y.npy, byte"),
    ]
}

fn npz_cases() -> Vec<Case> {
    let with = |name, bytes: Vec<u8>, id, place| {
        case(name, "name = 'npz'\npath = 'a.npz'", vec![("a.npz", bytes)], id, place)
    };
    let x = doubles("(2, 1)", &[1.0, 2.0]);
    let y = npy(&header("|u1", "(2,)"), &[0, 1]);
    let good = zip(&[("X.npy", x.clone(), 8), ("y.npy", y.clone(), 0)]);
    let change = |from: &[u8], offset: usize, to: &[u8]| {
        let mut bytes = good.clone();
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap() + offset;
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    };
    let listed = b"PK\x01\x02";
    vec![
        with("npz: empty", vec![], "data/bad-zip", "a.npz, byte 0"),
        with("npz: no zip", b"nothing of a zip file at all".to_vec(), "data/bad-zip", "byte 0"),
        with("npz: cut", good[..good.len() - 30].to_vec(), "data/bad-zip", "byte 0"),
        with("npz: end cut", good[..good.len() - 8].to_vec(), "data/bad-zip", "byte"),
        with("npz: no such array", zip(&[("x.npy", x, 0)]), "data/no-array", "a.npz"),
        with("npz: list gone", change(listed, 0, b"XX"), "data/bad-zip", "byte"),
        with("npz: count too large", change(b"PK\x05\x06", 10, &[9, 9]), "data/bad-zip", "byte"),
        with(
            "npz: contents",
            change(b"PK\x03\x04", 38, &[0xff; 8]),
            "data/bad-zip",
            "a.npz, byte 0",
        ),
        with("npz: checksum", change(listed, 16, &[1, 2, 3, 4]), "data/bad-zip", "byte 0"),
        with(
            "npz: smaller than listed",
            change(listed, 24, &[0xff, 0xff, 0xff, 0]),
            "data/bad-zip",
            "byte 0",
        ),
        with(
            "npz: larger than listed",
            change(listed, 24, &[1, 0, 0, 0]),
            "data/bad-zip",
            "byte 0",
        ),
        with("npz: 4 GiB", change(listed, 24, &[0xff; 4]), "data/too-large", "byte 0"),
        with("npz: offset", change(listed, 42, &[1, 0, 0, 0x7f]), "data/bad-zip", "byte"),
        with("npz: packed size", change(listed, 20, &[0, 0, 0, 0x7f]), "data/bad-zip", "byte 0"),
        with("npz: method", change(listed, 10, &[12, 0]), "data/unsupported", "byte 0"),
        with("npz: encrypted", change(listed, 8, &[1, 0]), "data/unsupported", "byte 0"),
        with(
            "npz: array inside",
            zip(&[("X.npy", b"nonsense".to_vec(), 8), ("y.npy", y, 0)]),
            "data/bad-magic",
            "array `X`, byte 0",
        ),
    ]
}

fn preparation_cases() -> Vec<Case> {
    let with = |name, section, id, place| case(name, section, mnist(), id, place);
    vec![
        with("class unknown", "name = 'mnist'\nclasses = [1, 8]", "data/unknown-class", "`8`"),
        with("class twice", "name = 'mnist'\nclasses = [1, '1']", "data/unknown-class", "twice"),
        with("no class", "name = 'mnist'\nclasses = []", "config/out-of-range", "toml:2:11"),
        with("no samples", "name = 'mnist'\nsamples = 0", "config/out-of-range", "toml:2:11"),
        with("negative samples", "name = 'mnist'\nsamples = -1", "config/wrong-type", "toml:2:11"),
        with("whole test", "name = 'blobs'\ntest = 1.0", "config/out-of-range", "toml:2:8"),
        with("test nan", "name = 'blobs'\ntest = nan", "config/out-of-range", "toml:2:8"),
        with("scaling", "name = 'blobs'\nscaling = 'unti'", "config/unknown-value", "toml:2:11"),
        with(
            "column",
            "name = 'blobs'\nscaling = 'standardise'\ncolumns = [10]",
            "data/no-column",
            "column 10",
        ),
        with(
            "sparse centre",
            "name = 'blobs'\nscaling = 'centre'\nsparse = true",
            "data/would-be-dense",
            "subtracts",
        ),
        with(
            "sparse standardise",
            "name = 'blobs'\nscaling = 'standardise'\nsparse = true",
            "data/would-be-dense",
            "subtracts",
        ),
        with("unknown source", "name = 'minst'", "config/unknown-name", "toml:1:8"),
        with(
            "unknown key",
            "name = 'csv'\npath = 'a'\nlabels = 1",
            "config/unknown-key",
            "toml:3:1",
        ),
        with(
            "delimiter",
            "name = 'csv'\npath = 'a'\ndelimiter = 'ab'",
            "config/out-of-range",
            "toml:3:13",
        ),
        with(
            "blobs too large",
            "name = 'blobs'\nrows = 1000000\nfeatures = 1000000",
            "config/out-of-range",
            "toml:3:12",
        ),
        with("blobs spread", "name = 'blobs'\nspread = inf", "config/out-of-range", "toml:2:10"),
        case(
            "npy: one of two",
            "name = 'npy'\nfeatures = 'x.npy'\nlabels = 'y.npy'\ntest_labels = 'y.npy'",
            vec![],
            "config/missing-key",
            "go together",
        ),
    ]
}

#[test]
fn every_bad_file_is_refused_with_its_id_and_place() {
    let cases = [
        idx_cases(),
        cifar_cases(),
        covtype_cases(),
        csv_cases(),
        libsvm_cases(),
        npy_cases(),
        npz_cases(),
    ];
    let cases: Vec<Case> = cases.into_iter().flatten().collect();
    assert!(cases.len() > 140, "{} cases", cases.len());
    refused(cases, Kind::Data);
}

#[test]
fn every_bad_choice_is_refused_with_its_id_and_place() {
    refused(preparation_cases(), Kind::Config);
}

fn refused(cases: Vec<Case>, kind: Kind) {
    let mut wrong = Vec::new();
    for Case { name, section, files, id, place } in cases {
        match load_files(section, &files) {
            Ok(_) => wrong.push(format!("{name}: was accepted")),
            Err(error) => {
                let found = error.place.clone().unwrap_or_default() + " " + &error.message;
                if error.id != id || !found.contains(place) || error.kind != kind {
                    wrong.push(format!("{name}: {error:?}, not {id} at {place}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn missing_data_sets_say_how_to_get_them() {
    for set in ["mnist", "fashion-mnist", "covtype", "cifar10"] {
        let error = load_files(&format!("name = '{set}'"), &[]).unwrap_err();
        assert_eq!((error.kind, error.id), (Kind::Data, "data/missing"));
        assert!(error.hint.unwrap().contains(&format!("`lopa data fetch {set}`")), "{set}");
    }
}

/// A section and files for every reader, all with these bytes.
fn everywhere(bytes: &[u8]) -> Vec<(&'static str, Vec<File>)> {
    let all = |names: &[&'static str]| names.iter().map(|&name| (name, bytes.to_vec())).collect();
    vec![
        ("name = 'mnist'", mnist_with(IMAGES, bytes.to_vec())),
        ("name = 'mnist'", mnist_with(LABELS, bytes.to_vec())),
        ("name = 'covtype'", all(&["covtype/covtype.data"])),
        ("name = 'cifar10'", all(&["cifar10/data_batch_1.bin", "cifar10/test_batch.bin"])),
        ("name = 'csv'\npath = 'a'\ngroup = 0", all(&["a"])),
        ("name = 'csv'\npath = 'a'\ntest_path = 'a'\ndelimiter = ' '", all(&["a"])),
        ("name = 'libsvm'\npath = 'a'\ntest_path = 'a'", all(&["a"])),
        ("name = 'npy'\nfeatures = 'a'\nlabels = 'a'", all(&["a"])),
        ("name = 'npz'\npath = 'a'\nlabels = 'X'", all(&["a"])),
    ]
}

fn feed(bytes: &[u8]) {
    for (section, files) in everywhere(bytes) {
        if let Err(error) = load_files(section, &files) {
            assert_eq!(error.kind, Kind::Data, "{section}: {error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any bytes: data or an error, never a panic.
    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        feed(&bytes);
    }

    /// Text of the characters that the text formats use.
    #[test]
    fn random_text(text in "[0-9a,:;.e+\\-# \"\n\r]{0,200}") {
        feed(text.as_bytes());
    }

    /// Valid files with some bytes changed, perhaps truncated, perhaps gzipped.
    #[test]
    fn good_files_spoilt(
        which in 0..6usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        pack in any::<bool>(),
    ) {
        let x = doubles("(2, 1)", &[1.0, 2.0]);
        let mut bytes = match which {
            0 => idx(&[3, 2, 2], &[1; 12]),
            1 => x,
            2 => zip(&[("X.npy", x.clone(), 8), ("y.npy", x, 0)]),
            3 => b"x,y,k\n1,2,a\n3,4,b\n".to_vec(),
            4 => b"1 1:2 3:4\n-1 2:1\n".to_vec(),
            _ => [covtype(1, 2), covtype(3, 4)].concat().into_bytes(),
        };
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        feed(&if pack { gzip(&bytes) } else { bytes });
    }
}
