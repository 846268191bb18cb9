//! The targets of fuzzing: every reader of untrusted bytes. A target is a function that must return
//! for any bytes. Where a file has checksums, one target reads the bytes unchanged, and another
//! makes a file with valid checksums from them, so that the code after the check is reached.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lopa::config::Source;
use lopa::data::partition::Partition;
use lopa::data::{Named, Needed, Origin, Unnamed, Where, new_rows};
use lopa::engine::{
    Begin, Event, Frame, FrameKind, Independent, Journal, Limits, Parcel, Peers, Place, Policy,
    Progress, Round, Settings, Signature, Transport, Wire,
};
use lopa::error::{Error, Result};
use lopa::experiment::{Experiment, Registries};
use lopa::folder::RunReader;
use lopa::folder::ledger::{Ledger, Ledgers};
use lopa::folder::model::Model;
use lopa::network::{Format, GraphFile};
use lopa::run::checkpoint::{Checkpoint, State};
use lopa::run::reserved::Reservation;
use lopa::run::{Context, Store};

/// A target: its name, and its function of bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("experiment", experiment),
    ("csv", csv),
    ("csv_new_rows", csv_new_rows),
    ("libsvm", libsvm),
    ("npy", npy),
    ("npz", npz),
    ("npz_summed", npz_summed),
    ("idx", idx),
    ("cifar", cifar),
    ("partition", partition),
    ("quadratic", quadratic),
    ("graph_toml", graph_toml),
    ("graph_edges", graph_edges),
    ("model", model),
    ("model_summed", model_summed),
    ("checkpoint", checkpoint),
    ("checkpoint_summed", checkpoint_summed),
    ("manifest", manifest),
    ("metrics", metrics),
    ("metrics_summed", metrics_summed),
    #[cfg(feature = "peers")]
    ("roster", roster),
    #[cfg(feature = "peers")]
    ("invite", invite),
    #[cfg(feature = "peers")]
    ("reply", reply),
    ("frames", frames),
    ("journal", journal),
    ("ledger", ledger),
];

thread_local! {
    static FOLDER: OnceCell<PathBuf> = const { OnceCell::new() };
    static REGISTRIES: OnceCell<Registries> = const { OnceCell::new() };
}

/// A folder of this thread, in memory where there is a place for that.
fn folder() -> PathBuf {
    let make = || {
        let memory = Path::new("/dev/shm");
        let top = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
        let folder = top.join(format!("lopa-fuzz-{}-{thread}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the files");
        folder
    };
    FOLDER.with(|folder| folder.get_or_init(make).clone())
}

fn put(name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, bytes).expect("a file");
    path
}

fn with_registries<R>(run: impl FnOnce(&Registries) -> R) -> R {
    REGISTRIES.with(|all| run(all.get_or_init(Registries::default)))
}

/// The first byte, and the rest.
fn split(bytes: &[u8]) -> (u8, &[u8]) {
    bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest))
}

/// Pieces, each preceded by its length in two bytes; the last is the rest.
fn pieces(mut bytes: &[u8], most: usize) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while pieces.len() + 1 < most && bytes.len() > 2 {
        let length = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        let (piece, rest) = bytes[2..].split_at(length.min(bytes.len() - 2));
        pieces.push(piece);
        bytes = rest;
    }
    pieces.push(bytes);
    pieces
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

// ---- files of experiments ----

/// An experiment, and after zero bytes the files `1.toml`, `2.toml`, … that it may extend.
fn experiment(bytes: &[u8]) {
    let files: Vec<String> = bytes.split(|&byte| byte == 0).map(text).collect();
    let read = |path: &Path| {
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<usize>().ok());
        let found = number.and_then(|number| files.get(number));
        found.cloned().ok_or_else(|| Error::config("config/unreadable", "there is no such file"))
    };
    let Ok(source) = Source::new("0.toml", &files[0]).extending(read) else { return };
    source.origins().ok();
    with_registries(|registries| {
        let Ok(experiment) = Experiment::read(&source, registries) else { return };
        // An experiment that is written is read back unchanged.
        let resolved = toml::to_string(&experiment.resolved()).expect("a table is TOML");
        let again = Experiment::read(&Source::new("again.toml", resolved), registries);
        let again = again.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.resolved(), experiment.resolved());
    });
}

fn partition(bytes: &[u8]) {
    if let Ok(partition) = Partition::read(&put("partition.json", bytes), 12) {
        let again = Partition::read(&put("again.json", partition.to_json(12).as_bytes()), 12);
        assert_eq!(again.expect("as written").nodes, partition.nodes);
    }
}

/// A ledger of `[privacy]`: it is read or refused, and what it says it says again.
fn ledger(bytes: &[u8]) {
    let (first, rest) = split(bytes);
    let origin = Origin { name: "rows.csv".into(), sha256: "ledger".into() };
    let path = put("ledger.jsonl", rest);
    std::fs::write(path.with_extension("key"), [7; 32]).expect("a file");
    let Ok(ledger) = Ledger::open(&folder(), &origin) else { return };
    let (spent, limit) = (ledger.spent(), ledger.limit());
    drop(ledger);
    let (run, name) = ("run".to_string(), "name".to_string());
    let run = Reservation { run, name, epsilon: f64::from(first), delta: 1e-5 };
    // The lock is given back before the ledger is opened again.
    let reserved = Ledgers::reserve(&folder(), std::slice::from_ref(&origin), &run).map(drop);
    match reserved {
        Err(error) => assert_eq!(error.id, "privacy/spent"),
        Ok(()) => {
            let ledger = Ledger::open(&folder(), &origin);
            let Ok(ledger) = ledger else {
                assert_eq!(first, 0);
                return;
            };
            let (most, _) = limit.or(ledger.limit()).expect("the first run sets a limit");
            assert!(ledger.spent().0 >= spent.0);
            assert!(ledger.spent() == spent || ledger.spent().0 <= most * (1.0 + 1e-9));
        }
    }
}

fn quadratic(bytes: &[u8]) {
    let path = put("quadratic.json", bytes);
    let text = format!(
        "problem = {{ name = 'quadratic', file = '{}' }}\nnetwork = {{ nodes = 2, graph = 'path' }}\n\
         run = {{ iterations = 1 }}\nalgorithm = [{{ name = 'dgd', alpha = 0.01 }}]\n",
        path.display()
    );
    run(&text, &mut ());
}

fn graph_toml(bytes: &[u8]) {
    graph(bytes, Format::Toml);
}

fn graph_edges(bytes: &[u8]) {
    graph(bytes, Format::EdgeList);
}

fn graph(bytes: &[u8], format: Format) {
    let Ok(file) = GraphFile::parse("fuzz", &text(bytes), format) else { return };
    let again = GraphFile::parse("again", &file.to_text(format), format).expect("as written");
    assert_eq!(again, file);
    // The rest takes time that grows with the nodes.
    if file.graph.nodes() <= 40 {
        let _ = file.mixing();
    }
}

// ---- data ----

/// Reads a source with these parameters.
fn source(name: &str, params: &str) {
    let params: toml::Table = params.parse().expect("parameters");
    with_registries(|registries| {
        if let Ok(chosen) = registries.sources.choose(name, &params) {
            let _ = (chosen.build)(&Where { directory: folder(), seed: 1 });
        }
    });
}

fn csv(bytes: &[u8]) {
    let (options, rest) = split(bytes);
    let name = if options & 1 == 0 { "fuzz.csv" } else { "fuzz.csv.gz" };
    let path = put(name, rest);
    let more = ["", "label = 'first'\n", "label = 'y'\ngroup = 'g'\n", "delimiter = ';'\n"];
    let more = more[usize::from(options >> 1 & 3)];
    source("csv", &format!("path = '{}'\n{more}", path.display()));
}

/// Reads new rows for a model, with a column left out and without.
fn read_new(path: &Path, features: usize, named: Named) {
    for dropped in [vec![], vec![1]] {
        let unnamed = Unnamed { zero_based: !dropped.is_empty(), dropped, ..Unnamed::default() };
        let _ = new_rows(
            path,
            &Needed { features, outputs: 1, fills: false, columns: None, unnamed: &unnamed },
            named,
        );
    }
}

fn csv_new_rows(bytes: &[u8]) {
    let (options, rest) = split(bytes);
    let path = put("new.csv", rest);
    let label = (options & 1 == 1).then_some("y");
    let group = (options & 16 == 16).then_some("1");
    read_new(&path, usize::from(options >> 1 & 7), Named { label, group });
}

fn libsvm(bytes: &[u8]) {
    let path = put("fuzz.libsvm", bytes);
    source("libsvm", &format!("path = '{}'", path.display()));
    read_new(&path, 3, Named::default());
}

fn npy(bytes: &[u8]) {
    let parts = pieces(bytes, 2);
    let features = put("x.npy", parts[0]);
    let labels = put("y.npy", parts.get(1).copied().unwrap_or_default());
    let (features, labels) = (features.display(), labels.display());
    source("npy", &format!("features = '{features}'\nlabels = '{labels}'"));
    read_new(&folder().join("x.npy"), 2, Named::default());
}

fn npz(bytes: &[u8]) {
    let path = put("fuzz.npz", bytes);
    source("npz", &format!("path = '{}'", path.display()));
    read_new(&path, 2, Named::default());
}

/// An archive with the arrays `X` and `y`, whose checksums are right.
fn npz_summed(bytes: &[u8]) {
    let parts = pieces(bytes, 2);
    let entries = ["X.npy", "y.npy"].into_iter().zip(parts);
    let (mut archive, mut directory, mut count) = (Vec::new(), Vec::new(), 0u16);
    for (name, content) in entries {
        let at = archive.len() as u32;
        let mut head = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        head.extend(crc(content).to_le_bytes());
        head.extend([content.len() as u32, content.len() as u32].map(u32::to_le_bytes).concat());
        head.extend((name.len() as u16).to_le_bytes());
        head.extend([0, 0]);
        archive.extend(b"PK\x03\x04");
        archive.extend(&head);
        archive.extend(name.as_bytes());
        archive.extend(content);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&head);
        directory.extend([0; 10]);
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
        count += 1;
    }
    let at = archive.len() as u32;
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend([count, count].map(u16::to_le_bytes).concat());
    archive.extend([directory.len() as u32, at].map(u32::to_le_bytes).concat());
    archive.extend([0, 0]);
    npz(&archive);
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn idx(bytes: &[u8]) {
    let names = ["train-images", "train-labels", "t10k-images", "t10k-labels"];
    let ends = ["-idx3-ubyte", "-idx1-ubyte"];
    std::fs::create_dir_all(folder().join("mnist")).expect("a folder");
    let parts = pieces(bytes, 4);
    for (at, name) in names.iter().enumerate() {
        let content = parts.get(at).copied().unwrap_or_default();
        put(&format!("mnist/{name}{}", ends[at % 2]), content);
    }
    source("mnist", "");
}

fn cifar(bytes: &[u8]) {
    let top = folder().join("cifar10/cifar-10-batches-bin");
    std::fs::create_dir_all(&top).expect("a folder");
    let (_, rest) = split(bytes);
    // A row is three thousand bytes: repeated, so that short input reaches whole rows.
    let mut rows = rest.to_vec();
    if !rest.is_empty() {
        rows = rest.iter().copied().cycle().take(3073 * usize::from(bytes[0] % 4)).collect();
        rows.extend(&rest[..rest.len() % 3]);
    }
    put("cifar10/cifar-10-batches-bin/data_batch_1.bin", &rows);
    put("cifar10/cifar-10-batches-bin/test_batch.bin", rest);
    source("cifar10", "");
}

// ---- run folders ----

fn model(bytes: &[u8]) {
    let path = put("fuzz.safetensors", bytes);
    if let Ok(model) = Model::load(&path) {
        use_model(&model);
    }
}

/// A model file with right checksums: metadata as JSON, then numbers.
fn model_summed(bytes: &[u8]) {
    let parts = pieces(bytes, 5);
    let Ok(about) = serde_json::from_slice(parts[0]) else { return };
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    // Numbers of one byte each; only a few of their values matter.
    let number = |&byte: &u8| match byte {
        255 => f64::NAN,
        254 => f64::INFINITY,
        253 => 1e300,
        byte => f64::from(byte) / 16.0 - 4.0,
    };
    let numbers = |bytes: &[u8]| -> Vec<f64> { bytes.iter().map(number).collect() };
    let rows = |bytes: &[u8]| -> Vec<Vec<f64>> {
        let (width, rest) = split(bytes);
        rest.chunks_exact(usize::from(width.max(1))).map(numbers).collect()
    };
    let (shift, factor) = (numbers(part(3)), numbers(part(4)));
    let scaling = lopa::data::Scaling { shift, factor, ..lopa::data::Scaling::default() };
    let (x, theta) = (rows(part(1)), rows(part(2)));
    let model = Model { about, x, theta, scaling: lopa::data::Scalings::all(scaling) };
    let path = folder().join("summed.safetensors");
    if model.save(&path).is_ok()
        && let Ok(model) = Model::load(&path)
    {
        use_model(&model);
    }
}

fn use_model(model: &Model) {
    with_registries(|registries| {
        let cols = model.about.features.min(100);
        let row = lopa::data::Features::Dense { cols, values: vec![0.5; 2 * cols] };
        for node in 0..model.x.len().min(3) {
            let _ = model.predictions(node, &row, &registries.problems);
            let _ = model.predictor(node, &registries.problems);
        }
        let _ = model.node(Some("a"));
    });
}

fn checkpoint(bytes: &[u8]) {
    if let Ok(checkpoint) = Checkpoint::from_bytes(bytes) {
        assert_eq!(checkpoint.to_bytes(), bytes);
    }
}

/// Three nodes on quadratics.
const RUN: &str = "problem = { name = 'quadratic', n = 1, p = 2 }\n\
    network = { nodes = 3, graph = 'path' }\nrun = { iterations = 4, evaluations = 1 }\n\
    algorithm = [{ name = 'lopa-gt', alpha = 0.01, beta = 0.1, lambda = 0.1 }]\n";

/// A run resumes from a state with valid checksums.
fn checkpoint_summed(bytes: &[u8]) {
    /// Gives a state of the run, some of it replaced.
    struct Kept<'a>(Vec<&'a [u8]>, Option<State>);
    impl Store for Kept<'_> {
        fn kept(
            &mut self,
            _: &str,
            _: u64,
            _: &dyn Fn(&State) -> bool,
            _: &mut dyn FnMut(String),
        ) -> Result<Option<State>> {
            let Some(mut state) = self.1.clone() else { return Ok(None) };
            let replaced = |kept: &mut Vec<u8>, piece: &[u8]| {
                kept.iter_mut().zip(piece).for_each(|(kept, byte)| *kept ^= byte);
                kept.truncate(kept.len().min(piece.len().max(1) * 64));
            };
            for (at, piece) in self.0.iter().enumerate() {
                match at {
                    0 => replaced(&mut state.record, piece),
                    at if at <= state.nodes.len() => replaced(&mut state.nodes[at - 1], piece),
                    _ => {
                        let Progress { k, exchanges, floats, bytes, .. } = &mut state.progress;
                        for (count, word) in
                            [k, exchanges, floats, bytes].into_iter().zip(piece.chunks(7))
                        {
                            let mut by = [0; 8];
                            by[..word.len()].copy_from_slice(word);
                            *count = (*count ^ u64::from_le_bytes(by)).min(1 << 53); // see `Reader::count`
                        }
                    }
                }
            }
            let checkpoint = Checkpoint { run: [1; 32], metrics: 0, state };
            let read = Checkpoint::from_bytes(&checkpoint.to_bytes()).expect("as written");
            assert_eq!(read, checkpoint);
            Ok(Some(read.state))
        }
        fn keep(&mut self, _: &str, _: u64, state: State) -> Result<()> {
            self.1.get_or_insert(state);
            Ok(())
        }
    }
    thread_local! {
        static STATE: OnceCell<Option<State>> = const { OnceCell::new() };
    }
    let text = format!("{RUN}checkpoint = {{ iterations = 2 }}\n");
    let make = || {
        let mut kept = Kept(Vec::new(), None);
        run(&text, &mut kept);
        kept.1
    };
    let state = STATE.with(|state| state.get_or_init(make).clone());
    run(&text, &mut Kept(pieces(bytes, 5), state));
}

fn run(text: &str, store: &mut dyn Store) {
    let never = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &never, probe: None };
    with_registries(|registries| {
        let experiment = Experiment::read(&Source::new("fuzz.toml", text), registries);
        let experiment = experiment.unwrap_or_else(|error| panic!("{error}"));
        let _ = experiment.run_with(&context, store, &mut ());
    });
}

fn manifest(bytes: &[u8]) {
    let parts = pieces(bytes, 2);
    put("manifest.json", parts[0]);
    put("results.json", parts.get(1).copied().unwrap_or_default());
    if let Ok(reader) = RunReader::open(&folder()) {
        let _ = reader.results();
    }
}

/// A manifest that is sound.
const MANIFEST: &str = r#"{"lopa":"0.1.0","name":"a","started":"now","status":"running",
"experiment_digest":"","data_digest":null,"algorithms":[],"seeds":[],"worlds":[],"threads":1,
"machine":{"os":"","arch":"","simd":"","cpu":"","host":""}}"#;

fn metrics(bytes: &[u8]) {
    put("manifest.json", MANIFEST.as_bytes());
    put("metrics.jsonl", bytes);
    if let Ok(reader) = RunReader::open(&folder()) {
        let _ = reader.rows();
        let _ = reader.traces();
    }
}

/// Lines whose checksums are right.
fn metrics_summed(bytes: &[u8]) {
    let mut file = Vec::new();
    for (number, line) in (0u64..).zip(bytes.split(|&byte| byte == b'\n')) {
        let row = line.strip_suffix(b"}").unwrap_or(line);
        let sum = crc(&[row, &number.to_le_bytes()].concat());
        file.extend(row);
        file.extend(format!(",\"check\":\"{number}-{sum:08x}\"}}\n").into_bytes());
    }
    metrics(&file);
}

// ---- peers ----

#[cfg(feature = "peers")]
fn roster(bytes: &[u8]) {
    let source = Source::new("roster.toml", text(bytes));
    let Ok(roster) = lopa_peers::Roster::parse(&source) else { return };
    let _ = roster.check();
    let path = folder().join("roster.toml");
    roster.write(&path).expect("a file");
    let again = lopa_peers::Roster::read(&path).expect("as written");
    assert_eq!(again.members.len(), roster.members.len());
}

#[cfg(feature = "peers")]
fn invite(bytes: &[u8]) {
    let read = |text: String| lopa_peers::Invite::parse(&Source::new("an.invite", text));
    let Ok(invite) = read(text(bytes)) else { return };
    let _ = invite.node();
    assert_eq!(read(invite.to_text()).expect("as written"), invite);
}

#[cfg(feature = "peers")]
fn reply(bytes: &[u8]) {
    let read = |text: String| lopa_peers::Reply::parse(&Source::new("a.reply", text));
    let Ok(reply) = read(text(bytes)) else { return };
    reply.fingerprint();
    assert_eq!(read(reply.to_text()).expect("as written"), reply);
}

/// Delivers a list of events, then nothing.
struct Script {
    events: std::vec::IntoIter<Event>,
    now: Duration,
}

impl Wire for Script {
    fn send(&mut self, _: usize, _: &[u8]) {}

    fn next(&mut self, until: Duration) -> Option<Event> {
        let event = self.events.next();
        if event.is_none() {
            self.now = until;
        }
        event
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn sign(&self, _: &[u8]) -> Signature {
        SIGNATURE
    }

    fn secret(&self, _: usize) -> Option<[u8; 32]> {
        None
    }

    fn verify(&self, _: usize, _: &[u8], signature: &Signature) -> bool {
        *signature == SIGNATURE
    }
}

/// All nodes sign alike, so that frames get as far as they can.
const SIGNATURE: Signature = [7; 64];

struct Memory(Vec<u8>);

impl Journal for Memory {
    fn read(&mut self) -> Result<Vec<u8>> {
        Ok(self.0.clone())
    }
    fn append(&mut self, record: &[u8]) -> Result<()> {
        self.0.extend(record);
        Ok(())
    }
    fn clear(&mut self) -> Result<()> {
        self.0.clear();
        Ok(())
    }
}

/// A second, and a journal with this content.
fn recorded(bytes: &[u8]) -> (Duration, Box<Memory>) {
    (Duration::from_secs(1), Box::new(Memory(bytes.into())))
}

fn skip_link(bytes: &[u8]) -> Policy {
    let (patience, journal) = recorded(bytes);
    Policy::SkipLink { patience, journal }
}

fn leave(bytes: &[u8]) -> Policy {
    let (silence, journal) = recorded(bytes);
    Policy::Leave { silence, journal }
}

fn peers(events: Vec<Event>, policy: Policy) -> Peers<Script> {
    let script = Script { events: events.into_iter(), now: Duration::ZERO };
    let second = Duration::from_secs(1);
    let settings = Settings { policy, deadline: 10 * second, ..Settings::default() };
    Peers::new(script, (1, 3), &[5; 32], settings, Box::new(|_| ()))
}

/// The weights of a path of three nodes.
fn with_mixing<R>(run: impl FnOnce(&lopa::network::Mixing) -> R) -> R {
    let file = GraphFile::parse("path", "0 1 0.25\n1 2 0.25\n", Format::EdgeList).expect("a graph");
    run(&file.mixing().expect("weights").expect("some"))
}

const LIMITS: Limits = Limits { message: 16, broadcast: 64 };

/// Frames from two neighbours, with valid or unchanged checksums: a piece each.
fn frames(bytes: &[u8]) {
    let (options, rest) = split(bytes);
    let kinds = [
        FrameKind::Status,
        FrameKind::Data,
        FrameKind::Broadcast,
        FrameKind::Notice,
        FrameKind::Ended,
        FrameKind::Overflow,
        FrameKind::Progress,
        FrameKind::Statement,
    ];
    let frame = |piece: &&[u8]| {
        let (head, payload) = piece.split_at(piece.len().min(4));
        let [kind, step, e, k] = [0, 1, 2, 3].map(|at| head.get(at).copied().unwrap_or(0));
        let from = if kind & 0x80 == 0 { 0 } else { 2 };
        if kind & 0x40 != 0 {
            return Event::Frame(from, payload.to_vec());
        }
        let place = Place {
            job: u32::from(kind >> 4 & 1),
            step: u64::from(step),
            k: u64::from(k),
            e: u32::from(e),
        };
        let kind = kinds[usize::from(kind & 7)];
        let numbers = matches!(kind, FrameKind::Data | FrameKind::Overflow);
        let scalar = if numbers { 8 } else { 1 };
        Event::Frame(from, Frame { kind, scalar, place, payload }.to_bytes(&[5; 16], |_| SIGNATURE))
    };
    let events = pieces(rest, 40).iter().map(frame).collect();
    let mut peers = peers(
        events,
        match options & 3 {
            0 => Policy::Wait,
            2 => leave(&[]),
            _ => skip_link(&[]),
        },
    );
    with_mixing(|mixing| {
        let begin =
            Begin { job: 0, mixing, kept: None, held: Some(&[2]), lacks: false, limits: LIMITS };
        peers.begin(begin).expect("a start without a past");
        let parcel = |rank| Parcel { rank, bytes: vec![0; 16], finite: true };
        for k in 0..4 {
            let round = Round { k, e: 0 };
            let mut into = [parcel(0), parcel(2)];
            let (out, any) = ([parcel(0), parcel(2)], &|_: usize, _: &[u8], _: bool| Ok(()));
            let sent = peers.exchange(round, 8, &out, &mut into, any, &mut || ());
            if sent.is_err() || peers.all(b"x", &|_, _| Ok(())).is_err() {
                break;
            }
        }
        let _ = peers.end();
        let _ = peers.linger();
    });
}

/// A peer resumes from a checkpoint and a journal.
fn journal(bytes: &[u8]) {
    let parts = pieces(bytes, 2);
    with_mixing(|mixing| {
        let begin = |kept| Begin { job: 0, mixing, kept, held: None, lacks: false, limits: LIMITS };
        let mut first = peers(Vec::new(), skip_link(&[]));
        first.begin(begin(None)).expect("a start without a past");
        first.mark();
        let mut kept = first.save(false);
        let changes = parts.get(1).copied().unwrap_or_default();
        kept.iter_mut().zip(changes).for_each(|(kept, byte)| *kept ^= byte);
        for policy in [skip_link(parts[0]), leave(parts[0])] {
            let mut again = peers(Vec::new(), policy);
            if again.begin(begin(Some(&kept))).is_ok() {
                let _ = again.all(b"x", &|_, _| Ok(()));
            }
        }
    });
}
