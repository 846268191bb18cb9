//! Mistakes, one by one: each gets its exit code, its id, and a message that names the thing and
//! the place. None panics.

use lopa::config::Source;
use lopa::error::Error;
use lopa::experiment::{Experiment, Registries};
use lopa_study::tune::TuneSpec;

use crate::program::{Done, Folder, blobs, blobs_folder};

/// A valid experiment with every section.
const BASE: &str = r#"schema = 1
name = "base"

[problem]
name = "representation"
hidden = [4]
ridge = 0.1

[data]
name = "blobs"
rows = 60
test = 0.25

[partition]
name = "classes"
per_node = 2

[network]
nodes = 4
graph = { name = "erdos-renyi", p = 0.5 }
weights = "metropolis"

[run]
seeds = [1]
iterations = 5
batch = 4

[[algorithm]]
name = "lopa-gt"
alpha = 0.1
beta = 0.1
lambda = 0.1

[[algorithm]]
name = "dgd"
alpha = 0.1
"#;

/// A mistake in a file: what is replaced by what; id, a part of the message, the place.
type Edit = (&'static str, &'static str, &'static str, &'static str, &'static str);

const EDITS: &[Edit] = &[
    // The file as a whole.
    ("schema = 1", "schema 1", "config/syntax", "TOML", "e.toml:1:8"),
    ("ridge = 0.1", "ridge = ", "config/syntax", "TOML", "e.toml:7:9"),
    ("[run]", "[run", "config/syntax", "TOML", "e.toml:23:5"),
    ("hidden = [4]", "hidden = [4", "config/syntax", "TOML", "e.toml:"),
    ("\"base\"", "\"base", "config/syntax", "TOML", "e.toml:2:"),
    ("ridge = 0.1", "ridge = 0.1\nridge = 0.2", "config/syntax", "duplicate key", "e.toml:8:1"),
    ("[data]", "[problem]", "config/syntax", "duplicate", "e.toml:9:"),
    ("schema = 1", "schema = 7", "config/schema", "`schema = 7`", "e.toml:1:10"),
    (
        "schema = 1",
        "schema = \"1\"",
        "config/wrong-type",
        "`schema` must be a whole number",
        "e.toml:1:10",
    ),
    ("\"base\"", "\"../base\"", "config/out-of-range", "`name = \"../base\"`", "e.toml:2:8"),
    ("\"base\"", "\"\"", "config/out-of-range", "name", "e.toml:2:8"),
    ("\"base\"", "3", "config/wrong-type", "`name` must be a string", "e.toml:2:8"),
    ("[network]", "[netwrok]", "config/missing-key", "`[network]` is missing", "e.toml:1:1"),
    ("[network]", "[netwrok]\n[network]", "config/unknown-key", "`netwrok`", "e.toml:18:2"),
    ("schema = 1", "schema = 1\nnmae = \"x\"", "config/unknown-key", "`nmae`", "e.toml:2:1"),
    // [problem]
    (
        "\"representation\"",
        "\"representaton\"",
        "config/unknown-name",
        "problem `representaton`",
        "e.toml:5:8",
    ),
    ("name = \"representation\"\n", "", "config/missing-key", "which problem?", "e.toml:4:1"),
    (
        "hidden = [4]",
        "hidden = 4",
        "config/wrong-type",
        "`problem.hidden` must be a list",
        "e.toml:6:10",
    ),
    ("hidden = [4]", "hidden = [-4]", "config/wrong-type", "`problem.hidden`", "e.toml:6:1"),
    ("hidden = [4]", "hiden = [4]", "config/unknown-key", "`hiden` in `problem`", "e.toml:6:1"),
    ("ridge = 0.1", "ridge = nan", "config/out-of-range", "`ridge = NaN`", "e.toml:7:9"),
    ("ridge = 0.1", "ridge = -1.0", "config/out-of-range", "`ridge = -1`", "e.toml:7:9"),
    ("ridge = 0.1", "ridge = inf", "config/out-of-range", "`ridge = inf`", "e.toml:7:9"),
    ("ridge = 0.1", "activation = \"step\"", "config/unknown-value", "`step`", "e.toml:7:14"),
    ("[problem]", "[[problem]]", "config/wrong-type", "`problem` must be a table", "e.toml:4:"),
    // [data]
    ("\"blobs\"", "\"blob\"", "config/unknown-name", "data set `blob`", "e.toml:10:8"),
    ("rows = 60", "rows = 0", "config/out-of-range", "`rows = 0`", "e.toml:11:8"),
    ("rows = 60", "row = 60", "config/unknown-key", "`row` in `data`", "e.toml:11:1"),
    ("rows = 60", "rows = \"60\"", "config/wrong-type", "`data.rows`", "e.toml:11:8"),
    ("test = 0.25", "test = 1.5", "config/out-of-range", "`test = 1.5`", "e.toml:12:8"),
    ("test = 0.25", "test = nan", "config/out-of-range", "`test = NaN`", "e.toml:12:8"),
    (
        "test = 0.25",
        "test = true",
        "config/wrong-type",
        "`data.test` must be a number",
        "e.toml:12:8",
    ),
    ("test = 0.25", "scaling = \"unity\"", "config/unknown-value", "`unity`", "e.toml:12:11"),
    ("test = 0.25", "classes = []", "config/out-of-range", "classes", "e.toml:12:11"),
    ("[data]", "[dta]", "config/missing-key", "`[data]` is missing", "e.toml:4:1"),
    (
        "\"representation\"\nhidden = [4]\nridge = 0.1",
        "\"quadratic\"",
        "config/unknown-key",
        "takes no data",
        "e.toml:7:1",
    ),
    // [partition]
    ("\"classes\"", "\"class\"", "config/unknown-name", "partition `class`", "e.toml:15:8"),
    ("per_node = 2", "per_node = 0", "config/out-of-range", "`per_node = 0`", "e.toml:16:12"),
    ("per_node = 2", "per_nod = 2", "config/unknown-key", "`per_nod`", "e.toml:16:1"),
    ("per_node = 2", "per_node = 2.5", "config/wrong-type", "`partition.per_node`", "e.toml:16:12"),
    ("per_node = 2", "", "config/missing-key", "`per_node`", "e.toml:14:1"),
    // [network]
    ("nodes = 4", "nodes = 0", "config/out-of-range", "`nodes = 0`", "e.toml:19:9"),
    ("nodes = 4", "nodes = 99999999", "config/out-of-range", "`nodes = 99999999`", "e.toml:19:9"),
    ("nodes = 4", "nodes = 4.0", "config/wrong-type", "`network.nodes`", "e.toml:19:9"),
    ("nodes = 4\n", "", "config/missing-key", "`nodes` is missing", "e.toml:18:1"),
    (
        "nodes = 4",
        "node = 4\nnodes = 4",
        "config/unknown-key",
        "`node` in `network`",
        "e.toml:19:1",
    ),
    ("p = 0.5", "p = 1.5", "config/out-of-range", "`p = 1.5`", "e.toml:20:37"),
    ("p = 0.5", "p = nan", "config/out-of-range", "`p = NaN`", "e.toml:20:37"),
    ("p = 0.5", "q = 0.5", "config/unknown-key", "`q` in `network.graph`", "e.toml:20:33"),
    (
        "\"erdos-renyi\"",
        "\"erdos-reny\"",
        "config/unknown-name",
        "graph `erdos-reny`",
        "e.toml:20:18",
    ),
    (
        "graph = { name = \"erdos-renyi\", p = 0.5 }",
        "graph = 3",
        "config/wrong-type",
        "`network.graph`",
        "e.toml:20:9",
    ),
    (
        "graph = { name = \"erdos-renyi\", p = 0.5 }\n",
        "",
        "config/missing-key",
        "`[network.graph]`",
        "e.toml:18:1",
    ),
    (
        "\"metropolis\"",
        "\"metropolitan\"",
        "config/unknown-name",
        "weights `metropolitan`",
        "e.toml:21:11",
    ),
    ("\"metropolis\"", "{ lazy = true }", "config/missing-key", "which weights?", "e.toml:21:11"),
    ("nodes = 4", "nodes = 4\nseed = -1", "config/wrong-type", "`network.seed`", "e.toml:20:8"),
    // [run]
    ("seeds = [1]", "seeds = []", "config/out-of-range", "seeds", "e.toml:24:9"),
    ("seeds = [1]", "seeds = [1, 1]", "config/out-of-range", "different seeds", "e.toml:24:9"),
    ("seeds = [1]", "seeds = [-1]", "config/wrong-type", "`run.seeds`", "e.toml:24:10"),
    (
        "seeds = [1]",
        "seeds = [99999999999999999999]",
        "config/wrong-type",
        "`run.seeds`",
        "e.toml:24:10",
    ),
    ("iterations = 5\n", "", "config/out-of-range", "a run needs an end", "e.toml:23:1"),
    ("iterations = 5", "iterations = 0", "config/out-of-range", "`iterations = 0`", "e.toml:25:14"),
    (
        "iterations = 5",
        "iterations = \"five\"",
        "config/wrong-type",
        "`run.iterations`",
        "e.toml:25:14",
    ),
    (
        "iterations = 5",
        "iteration = 5",
        "config/unknown-key",
        "`iteration` in `run`",
        "e.toml:25:1",
    ),
    ("batch = 4", "batch = 0", "config/out-of-range", "`batch = 0`", "e.toml:26:9"),
    ("batch = 4", "batch = \"fulll\"", "config/wrong-type", "`run.batch`", "e.toml:26:9"),
    ("batch = 4", "batch = { grad_h = 3 }", "config/wrong-type", "`run.batch`", "e.toml:26:9"),
    ("batch = 4", "precision = \"f16\"", "config/unknown-value", "`f16`", "e.toml:26:13"),
    ("batch = 4", "evaluations = 0", "config/out-of-range", "`evaluations = 0`", "e.toml:26:15"),
    ("batch = 4", "exact = true", "config/wrong-type", "`run.exact`", "e.toml:26:9"),
    ("batch = 4", "budget = { hessians = nan }", "config/out-of-range", "budget", "e.toml:26:10"),
    (
        "batch = 4",
        "[run.budget]\nhessian = 3",
        "config/unknown-key",
        "`hessian` in `run.budget`",
        "e.toml:27:1",
    ),
    (
        "batch = 4",
        "target = { metric = \"loss\" }",
        "config/out-of-range",
        "at_least",
        "e.toml:26:10",
    ),
    (
        "batch = 4",
        "target = { at_most = 3.0 }",
        "config/missing-key",
        "`metric` is missing in `run.target`",
        "e.toml:26:10",
    ),
    (
        "batch = 4",
        "target = { metric = \"lss\", at_most = 1.0 }",
        "config/unknown-name",
        "`lss`",
        "[run.target]",
    ),
    // [[algorithm]]
    ("\"lopa-gt\"", "\"lopa-gl\"", "config/unknown-name", "algorithm `lopa-gl`", "e.toml:29:8"),
    ("name = \"lopa-gt\"\n", "", "config/missing-key", "which algorithm?", "e.toml:28:1"),
    (
        "alpha = 0.1\nbeta",
        "steps = \"fast\"\nbeta",
        "config/unknown-value",
        "`fast`",
        "e.toml:30:9",
    ),
    ("beta = 0.1", "beta = 0.0", "config/out-of-range", "`beta = 0`", "e.toml:31:8"),
    ("beta = 0.1", "beta = nan", "config/out-of-range", "`beta = NaN`", "e.toml:31:8"),
    ("beta = 0.1", "beta = \"0.1\"", "config/wrong-type", "`algorithm.beta`", "e.toml:31:8"),
    ("beta = 0.1", "beta = { over = 0.1 }", "config/wrong-type", "`algorithm.beta`", "e.toml:31:8"),
    ("beta = 0.1", "beat = 0.1", "config/unknown-key", "`beat`", "e.toml:31:1"),
    ("beta = 0.1", "beta = 0.1\ntau = 1.5", "config/out-of-range", "`tau = 1.5`", "e.toml:32:7"),
    ("beta = 0.1", "beta = 0.1\nstart = \"one\"", "config/unknown-value", "`one`", "e.toml:32:9"),
    (
        "\"dgd\"",
        "\"lopa-gt\"\nbeta = 0.1\nlambda = 0.1",
        "config/duplicate",
        "called `lopa-gt`",
        "e.toml:35:8",
    ),
    ("\"dgd\"", "\"dgd\"\nlabel = \"a b\"", "config/out-of-range", "label `a b`", "e.toml:36:9"),
];

/// A hint must name what was meant.
const MEANT: &[(&str, &str, &str)] = &[
    ("schema = 1", "schema = 1\nnmae = \"x\"", "did you mean `name`?"),
    ("\"representation\"", "\"representaton\"", "did you mean `representation`?"),
    ("hidden = [4]", "hiden = [4]", "did you mean `hidden`?"),
    ("\"blobs\"", "\"blob\"", "did you mean `blobs`?"),
    ("per_node = 2", "per_nod = 2", "did you mean `per_node`?"),
    ("nodes = 4", "nods = 4\nnodes = 4", "did you mean `nodes`?"),
    ("\"erdos-renyi\"", "\"erdosrenyi\"", "did you mean `erdos-renyi`?"),
    ("\"metropolis\"", "\"metropols\"", "did you mean `metropolis`?"),
    ("iterations = 5", "iteration = 5", "did you mean `iterations`?"),
    ("beta = 0.1", "beat = 0.1", "did you mean `beta`?"),
    ("\"lopa-gt\"", "\"lopa-gl\"", "did you mean `lopa-gt`?"),
    ("batch = 4", "precision = \"f23\"", "did you mean `f32`?"),
    ("batch = 4", "[run.budget]\nhessian = 3", "did you mean `hessians`?"),
];

/// Overrides of the valid experiment: the override, id, a part of the message.
const SETS: &[(&str, &str, &str)] = &[
    ("run.batch", "config/bad-override", "needs a `=`"),
    ("=5", "config/bad-override", "empty key"),
    ("run..batch=5", "config/bad-override", "empty key"),
    ("run.batch=", "config/wrong-type", "`run.batch`"),
    ("run.batch=-3", "config/wrong-type", "`run.batch`"),
    ("run.batch=1.5", "config/wrong-type", "`run.batch`"),
    ("run.bach=5", "config/unknown-key", "`bach` in `run`"),
    ("rn.batch=5", "config/unknown-key", "`rn`"),
    ("run=5", "config/wrong-type", "`run` must be a table"),
    ("run.batch.size=5", "config/bad-override", "`batch` is a value"),
    ("run.seeds=[1,", "config/bad-override", "`[1,` is not a valid TOML value"),
    ("run.seeds.0=4", "config/bad-override", "`seeds` is a list"),
    ("run.target={metrc=\"loss\"}", "config/unknown-key", "`metrc` in `run.target`"),
    ("name=\"a", "config/bad-override", "`\"a` is not a valid TOML value"),
    ("network.graph=rng", "config/unknown-name", "graph `rng`"),
    ("network.weights.alpha=3", "config/unknown-key", "`alpha` in `network.weights`"),
    ("algorithm.alpha=3", "config/bad-override", "`algorithm` is a list"),
    ("algorithm.lopa.alpha=3", "config/bad-override", "no entry `lopa`; it has lopa-gt, dgd"),
    ("algorithm.7.alpha=3", "config/bad-override", "no entry `7`"),
    ("algorithm.lopa-gt.alpha=x", "config/wrong-type", "`algorithm.alpha`"),
    ("algorithm.*.alpha=-1", "config/out-of-range", "`alpha = -1`"),
    ("algorithm.1.alpha=nan", "config/out-of-range", "`alpha = NaN`"),
    ("algorithm=3", "config/wrong-type", "`algorithm` must be a list"),
];

/// How a command failed, unless it failed as it should, in its document and on standard error.
fn wrong(done: &Done, code: i32, id: &str, message: &str, place: &str) -> Option<String> {
    let json = done.json();
    let error = &json["error"];
    let says = |key: &str| error[key].as_str().unwrap_or_default();
    let right = done.code == code
        && !done.stderr.contains("panicked")
        && error["id"] == id
        && says("message").contains(message)
        && says("where").starts_with(place)
        && error["retryable"] == false
        && (id == "config/usage" || done.stderr.contains(says("message")));
    (!right).then(|| format!("{} {json}\n{}", done.code, done.stderr))
}

/// The same, for one command.
fn check(name: &str, done: &Done, code: i32, id: &str, message: &str, place: &str) {
    if let Some(how) = wrong(done, code, id, message, place) {
        panic!("{name}: {how}");
    }
}

fn edited(from: &str, to: &str) -> String {
    assert!(BASE.contains(from), "{from}");
    BASE.replacen(from, to, 1)
}

#[test]
fn the_base_of_all_mistakes_is_valid() {
    let folder = Folder::with(&[("e.toml", BASE)]);
    folder.lopa(&["run", "e.toml"]).good();
}

/// What the reader of experiments says of a text, in this process: a program for each of the mistakes would say the
/// same. [`the_program_says_what_the_reader_does`] runs the program.
fn refused(text: &str, sets: &[&str]) -> Option<Error> {
    let sets = sets.iter().map(|set| set.to_string()).collect();
    let source = Source { sets, ..Source::new("e.toml", text) };
    let read = Experiment::read(&source, &Registries::default());
    let checked = read.and_then(|experiment| TuneSpec::of(&source, &experiment));
    checked.err()
}

/// The parts of an error that are not as they should be.
fn unlike(error: &Error, id: &str, message: &str, place: &str) -> Option<String> {
    let right = error.kind.exit_code() == 2
        && error.id == id
        && error.message.contains(message)
        && error.place.as_deref().unwrap_or_default().starts_with(place);
    (!right).then(|| format!("{error:?}"))
}

#[test]
fn mistakes_in_files() {
    assert!(EDITS.len() >= 60);
    let folder = Folder::new();
    let one = |(from, to, id, message, place): &Edit| {
        let text = edited(from, to);
        let how = match refused(&text, &[]) {
            Some(error) => unlike(&error, id, message, place),
            // Found when the run begins.
            None => {
                folder.write("e.toml", text.as_bytes());
                let done = folder.lopa(&["run", "e.toml", "--format", "json"]);
                wrong(&done, 2, id, message, place)
            }
        };
        how.map(|how| format!("{to}: {how}"))
    };
    let all: Vec<String> = EDITS.iter().filter_map(one).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn what_was_meant() {
    for (from, to, hint) in MEANT {
        let error = refused(&edited(from, to), &[]).expect(to);
        assert!(error.hint.as_deref().is_some_and(|said| said.contains(hint)), "{to}: {error}");
    }
}

#[test]
fn mistakes_in_overrides() {
    for (set, id, message) in SETS {
        // A valid override before it must not be blamed.
        let error = refused(BASE, &["run.batch=5", set]).expect(set);
        assert_eq!(unlike(&error, id, message, &format!("--set {set}")), None, "{set}");
    }
}

#[test]
fn the_program_says_what_the_reader_does() {
    let folder = Folder::new();
    for (from, to, id, message, place) in EDITS.iter().step_by(20) {
        folder.write("e.toml", edited(from, to).as_bytes());
        let done = folder.lopa(&["run", "e.toml", "--format", "json"]);
        check(to, &done, 2, id, message, place);
    }
    let (from, to, hint) = MEANT[0];
    folder.write("e.toml", edited(from, to).as_bytes());
    let done = folder.lopa(&["check", "e.toml"]);
    assert!(done.code == 2 && done.stderr.contains(hint) && done.stdout.is_empty());
    folder.write("e.toml", BASE.as_bytes());
    for (set, id, message) in SETS.iter().step_by(8) {
        let args = ["run", "e.toml", "--set", "run.batch=5", "--set", set, "--format", "json"];
        check(set, &folder.lopa(&args), 2, id, message, &format!("--set {set}"));
    }
}

#[test]
fn mistakes_on_the_command_line() {
    let folder = Folder::with(&[("e.toml", BASE)]);
    folder.write("latin.toml", b"name = \"caf\xe9\"\n");
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let cases: &[(&[&str], &str, &str, &str)] = &[
        (&["run", "no.toml"], "config/unreadable", "No such file", "no.toml"),
        (&["run", "folder"], "config/unreadable", "directory", "folder"),
        (&["run", "latin.toml"], "config/unreadable", "UTF-8", "latin.toml"),
        (&["run", "/dev/zero"], "config/unreadable", "regular file", "/dev/zero"),
        (&["check", "no.toml"], "config/unreadable", "No such file", "no.toml"),
        (&["run", "e.toml", "-j", "0"], "config/out-of-range", "0 threads", "--jobs"),
        (&["run", "e.toml", "-j", "9999"], "config/out-of-range", "9999 threads", "--jobs"),
        (&["run", "e.toml", "-j", "two"], "config/usage", "'two'", "the command line"),
        (&["run", "e.toml", "-s", "1", "-s", "1"], "config/out-of-range", "[1, 1]", "--seed"),
        (&["run", "e.toml", "-s", "18446744073709551615"], "config/out-of-range", "2^63", "--seed"),
        (&["run", "e.toml", "-s", "-1"], "config/usage", "'-1'", "the command line"),
        (&["run", "e.toml", "--st", "a=b"], "config/usage", "'--st'", "the command line"),
        (&["run", "e.toml", "--set"], "config/usage", "'--set", "the command line"),
        (&["ru"], "config/usage", "'ru'", "the command line"),
        (&["list", "algorithm"], "config/usage", "'algorithm'", "the command line"),
        (&["completions", "tcsh"], "config/usage", "'tcsh'", "the command line"),
        (&["graph", "make", "-m", "5"], "config/missing-key", "which graph?", "lopa graph make"),
        (&["graph", "make", "rng", "-m", "5"], "config/unknown-name", "`rng`", "rng"),
        (&["graph", "show", "ring"], "config/missing-key", "how many nodes", "--nodes"),
        (
            &["graph", "show", "ring", "-m", "5", "--with", "p=1"],
            "config/unknown-key",
            "`p`",
            "--with p=1",
        ),
        (
            &["graph", "show", "erdos-renyi", "-m", "5", "--with", "p"],
            "config/bad-override",
            "`=`",
            "--with p",
        ),
        (
            &["graph", "show", "ring", "-m", "5", "-w", "lazy"],
            "config/unknown-name",
            "`lazy`",
            "--weights lazy",
        ),
        (&["evaluate", "runs", "--node", "3"], "config/usage", "--input", "the command line"),
        (&["predict", "runs"], "config/usage", "required", "the command line"),
    ];
    for (args, id, message, place) in cases {
        let done = folder.lopa(&[args, &["--format", "json"][..]].concat());
        check(&args.join(" "), &done, 2, id, message, place);
    }
    let mut threads = folder.program(&["run", "e.toml", "--format", "json"]);
    let output = threads.env("LOPA_THREADS", "0").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn bad_data() {
    let folder = blobs_folder();
    folder.write("gap.csv", b"1,2,a\n3,,b\n");
    folder.write("one.csv", "1,2,a\n3,4,a\n".repeat(10).as_bytes());
    let cases: &[(&str, &str, &str, &str)] = &[
        ("data.path=no.csv", "data/missing", "no.csv", ""),
        ("data.path=gap.csv", "data/bad-number", "column 2 of 3", "gap.csv:2"),
        ("data.path=one.csv", "data/one-class", "1 class", "[problem]"),
        ("data.label=9", "data/no-column", "column 9", "blobs.csv:1"),
        ("data.label=kind", "data/no-column", "`kind`", "blobs.csv:1"),
        ("data.name=mnist", "data/missing", "mnist", "[data]"),
    ];
    for (set, id, message, place) in cases {
        let clear: &[&str] = match *set == "data.name=mnist" {
            true => &["--set", "data=mnist", "--data", "none"],
            false => &["--set", set],
        };
        let done = folder.lopa(&[&["run", "e.toml", "--format", "json"], clear].concat());
        check(set, &done, 3, id, message, place);
    }
    let unknown =
        ["run", "e.toml", "--set", "data.classes=[\"red\", \"pink\"]", "--format", "json"];
    check("classes", &folder.lopa(&unknown), 2, "data/unknown-class", "`pink`", "[data]");
}

#[test]
fn bad_rows_for_a_model() {
    let folder = blobs_folder();
    folder.lopa(&["run", "e.toml"]).good();
    let run = folder.run_folder().display().to_string();
    folder.write("wide.csv", b"1,2,3,4\n");
    folder.write("bare.csv", b"1,2\n");
    folder.write("rows.parquet", b"");
    std::fs::create_dir(folder.path().join("folder.csv")).unwrap();
    let cases: &[(&str, &str, &str)] = &[
        ("wide.csv", "data/shape-mismatch", "4 columns, and the model needs 2, or 3"),
        ("no.csv", "data/unreadable", "No such file"),
        ("folder.csv", "data/unreadable", "folder"),
        ("rows.parquet", "data/unknown-format", "format"),
    ];
    for command in ["predict", "evaluate"] {
        for (file, id, message) in cases {
            let args = [command, &run, "-a", "lopa-gt", "-n", "0", "-i", file, "--format", "json"];
            check(file, &folder.lopa(&args), 3, id, message, file);
        }
    }
    let labels = ["evaluate", &run, "-i", "bare.csv", "--format", "json"];
    check("labels", &folder.lopa(&labels), 3, "data/no-labels", "no labels", "bare.csv");
    let choices: &[(&[&str], &str, &str)] = &[
        (&["-a", "lopa", "-n", "0"], "config/unknown-name", "--algorithm"),
        (&["-a", "lopa-gt", "-n", "3"], "config/out-of-range", "--node"),
        (&["-a", "lopa-gt", "-n", "0", "-s", "1"], "config/unknown-name", "--seed"),
        (&["-n", "0"], "config/missing-key", "--algorithm"),
    ];
    for (choice, id, place) in choices {
        let args = [&["predict", &run, "-i", "bare.csv", "--format", "json"], *choice].concat();
        check(&choice.join(" "), &folder.lopa(&args), 2, id, "", place);
    }
}

#[test]
fn bad_graphs() {
    let folder = Folder::with(&[
        ("e.toml", BASE),
        ("apart.toml", "nodes = 4\nedges = [[0, 1], [2, 3]]\n"),
        ("loop.toml", "nodes = 2\nedges = [[0, 0]]\n"),
        ("twice.csv", "0,1\n1,0\n"),
        ("far.toml", "nodes = 2\nedges = [[0, 5]]\n"),
        ("swap.toml", "nodes = 2\nedges = [[0, 1]]\nweights = [1.0]\n"),
        ("heavy.toml", "nodes = 2\nedges = [[0, 1]]\nweights = [1.5]\n"),
        ("words.csv", "a,b\n"),
    ]);
    let cases: &[(&str, &str, &str, &str)] = &[
        ("apart.toml", "network/disconnected", "0, 1 have no way to nodes 2, 3", ""),
        ("loop.toml", "network/self-loop", "node 0", "loop.toml:2"),
        ("twice.csv", "network/duplicate-edge", "0 – 1", "twice.csv:2"),
        ("far.toml", "network/unknown-node", "5", "far.toml:2"),
        ("swap.toml", "network/never-mixes", "nodes 0 and nodes 1", ""),
        ("words.csv", "network/malformed-file", "a", "words.csv:1"),
        ("no.toml", "network/unreadable", "No such file", "no.toml"),
    ];
    for (file, id, message, place) in cases {
        let done = folder.lopa(&["graph", "check", file, "--format", "json"]);
        check(file, &done, 4, id, message, place);
    }
    assert_eq!(folder.lopa(&["graph", "check", "heavy.toml"]).code, 4);
    let sets: &[(&str, &str, &str)] = &[
        ("network.graph={name='file', path='apart.toml'}", "network/disconnected", "[network]"),
        ("network.graph={name='file', path='far.toml'}", "network/unknown-node", "far.toml:2"),
        ("network.graph={name='random-regular', degree=9}", "network/impossible-size", "[network]"),
    ];
    for (set, id, place) in sets {
        let done = folder.lopa(&["run", "e.toml", "--set", set, "--format", "json"]);
        check(set, &done, 4, id, "", place);
    }
    for (args, id) in [
        (&["graph", "make", "ring", "-m", "0"][..], "network/no-nodes"),
        (&["graph", "make", "-m", "5", "--rho", "2"], "network/bad-search"),
        (&["graph", "make", "hypercube", "-m", "5"], "network/impossible-size"),
    ] {
        let done = folder.lopa(&[args, &["--format", "json"]].concat());
        check(&args.join(" "), &done, 4, id, "", "");
    }
}

#[test]
fn bad_storage() {
    let folder = blobs_folder();
    folder.write("file", b"");
    folder.lopa(&["run", "e.toml"]).good();
    let run = folder.run_folder().display().to_string();
    let cases: &[(&[&str], &str, &str)] = &[
        (&["run", "e.toml", "--out", "file"], "storage/write", "file"),
        (&["ls", "no-folder"], "storage/read", "no-folder"),
        (&["ls", "file"], "storage/read", "file"),
        (&["evaluate", "no-folder"], "storage/read", "no-folder"),
        (&["evaluate", "runs"], "storage/read", "runs"),
        (&["man", "--out", "file"], "storage/write", "file"),
        (&["graph", "make", "ring", "-m", "3", "-o", "no/g.toml"], "storage/write", "no/g.toml"),
    ];
    for (args, id, place) in cases {
        let done = folder.lopa(&[args, &["--format", "json"][..]].concat());
        check(&args.join(" "), &done, 5, id, "", place);
    }
    let predict =
        ["predict", &run, "-a", "lopa-gt", "-n", "0", "-i", "blobs.csv", "--format", "json"];
    let model = format!("{run}/models/lopa-gt-seed3.safetensors");
    let whole = std::fs::read(folder.path().join(&model)).unwrap();
    for damage in [&whole[..whole.len() / 2], &whole[..4], b"", b"{}", blobs().as_bytes()] {
        folder.write(&model, damage);
        check("damaged model", &folder.lopa(&predict), 5, "storage/model", "", &model);
    }
    folder.write(&format!("{run}/results.json"), b"[{}]");
    check("damaged results", &folder.lopa(&predict), 5, "storage/read", "damaged", &run);
    folder.write(&format!("{run}/results.json"), b"[]");
    check("empty results", &folder.lopa(&predict), 5, "storage/read", "empty", &run);
}

#[test]
fn damaged_run_folders() {
    let folder = blobs_folder();
    folder.lopa(&["run", "e.toml"]).good();
    let run = folder.run_folder().display().to_string();
    let (manifest, metrics) = (format!("{run}/manifest.json"), format!("{run}/metrics.jsonl"));
    let lopa = |args: &[&str]| folder.lopa(&[args, &["--format", "json"]].concat());
    let mut bytes = folder.read(&metrics).into_bytes();
    let whole = bytes.clone();
    bytes[10] = 0xff;
    folder.write(&metrics, &bytes);
    for args in [&["report", run.as_str()][..], &["compare", run.as_str()]] {
        let place = format!("{metrics}:1");
        check(&args.join(" "), &lopa(args), 5, "storage/read", "damaged", &place);
    }
    // Also of a run that is to be resumed: its measurements would be lost.
    let text = folder.read(&manifest);
    folder.write(&manifest, text.replace("\"done\"", "\"running\"").as_bytes());
    check("resume", &lopa(&["run", "e.toml"]), 5, "storage/read", "damaged", &metrics);
    folder.write(&metrics, &whole);
    let text = folder.read(&manifest).replace("\"worlds\"", "\"words\"");
    folder.write(&manifest, text.as_bytes());
    for args in [
        &["run", "e.toml"][..],
        &["report", run.as_str()],
        &["compare", run.as_str()],
        &["evaluate", run.as_str()],
        &["predict", run.as_str(), "-a", "lopa-gt", "-n", "0", "-i", "blobs.csv"],
    ] {
        check(&args.join(" "), &lopa(args), 5, "storage/read", "`worlds`", &manifest);
    }
    let listed = lopa(&["ls"]).good();
    assert_eq!(listed.json(), serde_json::json!([]));
    assert!(listed.stderr.contains("not listed") && listed.stderr.contains(&manifest));
    // A new run does without the damaged one.
    lopa(&["run", "e.toml", "--resume", "never"]).good();
    assert_eq!(lopa(&["ls"]).good().json().as_array().unwrap().len(), 1);
}
