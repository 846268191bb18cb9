//! `[time]`: timetables computed by hand, draws by address, budgets, and keys that are wrong.

use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::error::Result;
use lopa::experiment::{Experiment, Registries};
use lopa::run::trace::Row;
use lopa::run::{Context, Listener, Outcome};

const LG: &str = "name = 'lopa-lg', alpha = 0.01, beta = 0.1, lambda = 0.1";

fn read(network: &str, time: &str, run: &str, algorithm: &str) -> Result<Experiment> {
    let text = format!(
        "problem = {{ name = 'quadratic', n = 2, p = 3 }}
         network = {network}
         time = {time}
         run = {run}
         algorithm = [{{ {algorithm} }}]"
    );
    Experiment::read(&Source::new("test", &text), &Registries::default())
}

/// Keeps rows.
#[derive(Default)]
struct Rows(Vec<Row>);

impl Listener for Rows {
    fn row(&mut self, _: &str, _: u64, row: &Row) {
        self.0.push(row.clone());
    }
}

fn run(experiment: &Experiment, threads: usize) -> (Vec<Outcome>, Vec<Row>) {
    let never = AtomicBool::new(false);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let pool = (threads > 1).then_some(&pool);
    let context = Context { pool, data_dir: "".into(), interrupt: &never, probe: None };
    let mut rows = Rows::default();
    let outcomes = experiment.run_with(&context, &mut (), &mut rows).unwrap();
    (outcomes, rows.0)
}

/// When the last node is done, in milliseconds, after 0, 1, … iterations.
fn timetable(network: &str, time: &str, algorithm: &str, iterations: usize) -> Vec<f64> {
    let length =
        format!("{{ iterations = {iterations}, evaluations = {iterations}, exact = 'never' }}");
    let experiment = read(network, time, &length, algorithm).unwrap();
    let (_, rows) = run(&experiment, 1);
    rows.iter().map(|row| (row.virtual_seconds.unwrap() * 1e6).round() / 1e3).collect()
}

const PATH: &str = "{ nodes = 3, graph = 'path' }";

/// LoPA-LG makes five calls at the start and in every iteration, and sends x: 2 · 8 bytes.
#[test]
fn timetables_by_hand() {
    let by_hand: [(&str, &str, &[f64]); 9] = [
        // Five calls of 1 ms each, and messages that take no time.
        (PATH, "{ compute = 0.001, links = {} }", &[5.0, 10.0, 15.0]),
        // A latency of 10 ms, 16 bytes at 1000 B/s: 5, then 26 + 5 more in every iteration.
        (
            PATH,
            "{ compute = 0.001, links = { latency = 0.01, bandwidth = 1000 } }",
            &[5.0, 36.0, 67.0],
        ),
        // Four more bytes in every message.
        (
            PATH,
            "{ compute = 0.001, links = { latency = 0.01, bandwidth = 1000, overhead = 4 } }",
            &[5.0, 40.0, 75.0],
        ),
        // Between 0 and 1 it takes 100 ms: both wait for each other, 100 + 16 + 5 each time.
        (
            PATH,
            "{ compute = 0.001, links = { latency = 0.01, bandwidth = 1000,
               table = [{ between = [1, 0], latency = 0.1 }] } }",
            &[5.0, 126.0, 247.0],
        ),
        // Node 2 takes 10 ms for its calls, and all wait for it in the end:
        //   (5, 5, 10) → (5 + 10 + 5, 10 + 10 + 5, 5 + 10 + 10) → (40, 25 + 10 + 5, 45)
        (
            PATH,
            "{ compute = 0.001, slowness = [1, 1, 2], links = { latency = 0.01 } }",
            &[10.0, 25.0, 45.0],
        ),
        // A star's hub sends three messages over one uplink: 3 · 16 ms, leaves take 16.
        //   all at 5 → hub 5 + 16 + 5 = 26, leaves 5 + 48 + 5 = 58 → hub 58 + 16 + 5 = 79,
        //   leaves max(58, 26 + 48) + 5 = 79 → hub 100, leaves 79 + 48 + 5 = 132
        (
            "{ nodes = 4, graph = 'star' }",
            "{ compute = 0.001, links = { uplink = 1000 } }",
            &[5.0, 58.0, 79.0, 132.0],
        ),
        // Always a straggler, except at the start.
        (
            PATH,
            "{ compute = 0.001, stragglers = { p = 1, factor = 3 }, links = {} }",
            &[5.0, 20.0, 35.0],
        ),
        // Three gradients, one product of each kind.
        (
            PATH,
            "{ compute = { gradient = 0.001, hessian = 0.01, jacobian = 0.1 }, links = {} }",
            &[113.0, 226.0, 339.0],
        ),
        // One neighbour a round over an uplink of its own: 16 ms, where the hypercube needs 32.
        (
            "{ nodes = 4, graph = 'one-peer-exponential' }",
            "{ compute = 0.001, links = { uplink = 1000 } }",
            &[5.0, 26.0, 47.0],
        ),
    ];
    for (network, time, want) in by_hand {
        assert_eq!(timetable(network, time, LG, want.len() - 1), want, "{network}, {time}");
    }
    let cube = timetable(
        "{ nodes = 4, graph = 'hypercube' }",
        "{ compute = 0.001, links = { uplink = 1000 } }",
        LG,
        1,
    );
    assert_eq!(cube, [5.0, 42.0]);
    // Tracking sends twice as much; a node that sends nothing does not wait.
    let gt = "name = 'lopa-gt', alpha = 0.01, beta = 0.1, lambda = 0.1";
    let links = "{ compute = 0.001, links = { latency = 0.01, bandwidth = 1000 } }";
    assert_eq!(timetable(PATH, links, gt, 1), [5.0, 52.0]);
    let local = "name = 'local', alpha = 0.01, beta = 0.1, lambda = 0.1";
    assert_eq!(timetable(PATH, links, local, 2), [5.0, 10.0, 15.0]);
}

/// A message takes the time of the bytes that are sent, not of those that are shared.
#[test]
fn compressed_messages_take_less_time() {
    let time = "{ compute = 0.001, links = { latency = 0.01, bandwidth = 1000 } }";
    let by_hand: [(&str, &[f64]); 4] = [
        // As they are: 2 entries of 8 bytes.
        ("clip = 1", &[5.0, 36.0, 67.0]),
        // 2 bytes for each entry.
        ("compress = 'bf16'", &[5.0, 24.0, 43.0]),
        // One entry, and 2 bytes for its index.
        ("compress = { name = 'top-k', share = 0.5 }", &[5.0, 30.0, 55.0]),
        // The radius, 8 bytes.
        ("clip = { median = 1 }", &[5.0, 44.0, 83.0]),
    ];
    for (messages, want) in by_hand {
        let time = format!("{time}\n messages = {{ {messages} }}");
        assert_eq!(timetable(PATH, &time, LG, want.len() - 1), want, "{messages}");
    }
}

const DRAWN: &str = "{ compute = { gradient = 0.001, sample = 0.0001 },
    slowness = { from = 1, to = 4 }, stragglers = { p = 0.3, factor = 10 },
    links = { latency = { from = 0.01, to = 0.05 }, uplink = { from = 1000, to = 5000 } } }";

/// Draws depend only on the seed: threads and earlier algorithms change nothing.
#[test]
fn draws_have_addresses() {
    let network = "{ nodes = 6, graph = { name = 'random-matching', base = 'complete' } }";
    let of = |seeds: &str, threads: usize, algorithm: &str| {
        let length =
            format!("{{ iterations = 30, evaluations = 3, exact = 'never', seeds = {seeds} }}");
        let outcomes = run(&read(network, DRAWN, &length, algorithm).unwrap(), threads).0;
        outcomes.last().unwrap().row.virtual_seconds.unwrap()
    };
    let both = format!("name = 'lopa-gt', alpha = 0.01, beta = 0.1, lambda = 0.1 }}, {{ {LG}");
    assert_eq!(of("[1]", 1, LG), of("[1]", 3, LG));
    assert_eq!(of("[1]", 1, LG), of("[1]", 1, &both));
    assert_eq!(of("[2, 1]", 1, LG), of("[1]", 1, LG));
    assert_ne!(of("[2]", 1, LG), of("[1]", 1, LG));
}

/// Without `[time]` nothing is different; with it, only the cost is.
#[test]
fn a_clock_changes_no_result() {
    let network = "{ nodes = 4, graph = 'ring' }";
    let length = "{ iterations = 20, evaluations = 2, exact = 'never' }";
    let timed = read(network, DRAWN, length, LG).unwrap();
    let mut plain = timed.clone();
    plain.time = None;
    let (timed, plain) = (run(&timed, 1).0, run(&plain, 1).0);
    assert_eq!(timed[0].digest, plain[0].digest);
    assert_eq!(plain[0].row.virtual_seconds, None);
    let shown = serde_json::to_value(&plain[0].row).unwrap();
    assert!(shown.get("virtual_seconds").is_none());
    let row = serde_json::to_value(&timed[0].row).unwrap();
    let again: Row = serde_json::from_value(row).unwrap();
    assert_eq!(again.virtual_seconds, timed[0].row.virtual_seconds);
}

/// A run ends with the first iteration that reaches its budget.
#[test]
fn virtual_seconds_are_a_budget() {
    let links = "{ compute = 0.001, links = { latency = 0.01, bandwidth = 1000 } }";
    let length = "{ budget = { virtual_seconds = 0.3 }, evaluations = 5, exact = 'never' }";
    let (outcomes, rows) = run(&read(PATH, links, length, LG).unwrap(), 1);
    // 5 + 31 k ≥ 300 at k = 10.
    assert_eq!(outcomes[0].row.iteration, 10);
    assert_eq!(rows.last().unwrap().virtual_seconds, Some(0.315));
}

#[test]
fn calls_can_be_measured() {
    let length = "{ iterations = 3, exact = 'never' }";
    let time = "{ compute = 'measured', links = 'data-centre' }";
    let experiment = read(PATH, time, length, LG).unwrap();
    assert_eq!(experiment.world(None, 1).err().unwrap().id, "time/unmeasured");
    let measured = experiment.measured(None).unwrap();
    let calls = measured.time.as_ref().unwrap().compute.calls().unwrap();
    assert!(calls.gradient > 0.0 && calls.hessian > 0.0 && calls.jacobian > 0.0, "{calls:?}");
    // The resolved file has the numbers, and reads as the same experiment.
    let text = toml::to_string(&measured.resolved()).unwrap();
    let again = Experiment::read(&Source::new("test", &text), &Registries::default()).unwrap();
    assert_eq!(again, measured);
    assert!(run(&again, 1).0[0].row.virtual_seconds.unwrap() > 0.0);
}

/// Every key with a wrong type, range or combination.
#[test]
fn bad_keys_are_refused() {
    let links = "links = 'home'";
    let compute = "compute = 0.001";
    let cases = [
        (format!("{{ {links} }}"), "config/missing-key"),
        (format!("{{ {compute} }}"), "config/missing-key"),
        (format!("{{ {links}, {compute}, speed = 1 }}"), "config/unknown-key"),
        (format!("{{ {links}, compute = 'guessed' }}"), "config/wrong-type"),
        (format!("{{ {links}, compute = -1 }}"), "config/out-of-range"),
        (format!("{{ {links}, compute = 1e7 }}"), "config/out-of-range"),
        (format!("{{ {links}, compute = nan }}"), "config/out-of-range"),
        (format!("{{ {links}, compute = {{ gradient = -1 }} }}"), "config/out-of-range"),
        (format!("{{ {links}, compute = {{ hessian = -1 }} }}"), "config/out-of-range"),
        (format!("{{ {links}, compute = {{ jacobian = inf }} }}"), "config/out-of-range"),
        (format!("{{ {links}, compute = {{ sample = -1 }} }}"), "config/out-of-range"),
        (format!("{{ {links}, compute = {{ samples = 1 }} }}"), "config/wrong-type"),
        (format!("{{ {links}, {compute}, slowness = 0 }}"), "config/out-of-range"),
        (format!("{{ {links}, {compute}, slowness = 'slow' }}"), "config/wrong-type"),
        (format!("{{ {links}, {compute}, slowness = [1, -1, 1] }}"), "config/out-of-range"),
        (format!("{{ {links}, {compute}, slowness = [1, 1] }}"), "time/nodes"),
        (
            format!("{{ {links}, {compute}, slowness = {{ from = 2, to = 1 }} }}"),
            "config/out-of-range",
        ),
        (format!("{{ {links}, {compute}, slowness = {{ from = 1 }} }}"), "config/wrong-type"),
        (
            format!("{{ {links}, {compute}, stragglers = {{ p = 2, factor = 2 }} }}"),
            "config/out-of-range",
        ),
        (
            format!("{{ {links}, {compute}, stragglers = {{ p = 0.5, factor = 0 }} }}"),
            "config/out-of-range",
        ),
        (format!("{{ {links}, {compute}, stragglers = {{ p = 0.5 }} }}"), "config/missing-key"),
        (format!("{{ {links}, {compute}, stragglers = 0.5 }}"), "config/wrong-type"),
        (format!("{{ {compute}, links = 'moon' }}"), "config/wrong-type"),
        (format!("{{ {compute}, links = 3 }}"), "config/wrong-type"),
        (format!("{{ {compute}, links = {{ latency = -1 }} }}"), "config/out-of-range"),
        (
            format!("{{ {compute}, links = {{ latency = {{ from = 1, to = 0 }} }} }}"),
            "config/out-of-range",
        ),
        (format!("{{ {compute}, links = {{ latency = 'short' }} }}"), "config/wrong-type"),
        (format!("{{ {compute}, links = {{ bandwidth = 0 }} }}"), "config/out-of-range"),
        (format!("{{ {compute}, links = {{ bandwidth = 1e13 }} }}"), "config/out-of-range"),
        (format!("{{ {compute}, links = {{ uplink = 0.5 }} }}"), "config/out-of-range"),
        (format!("{{ {compute}, links = {{ overhead = 2000000 }} }}"), "config/out-of-range"),
        (format!("{{ {compute}, links = {{ overhead = -1 }} }}"), "config/wrong-type"),
        (format!("{{ {compute}, links = {{ speed = 1 }} }}"), "config/wrong-type"),
        (
            format!("{{ {compute}, links = {{ table = [{{ between = [0, 0] }}] }} }}"),
            "config/out-of-range",
        ),
        (
            format!("{{ {compute}, links = {{ table = [{{ between = [0, 2] }}] }} }}"),
            "time/unknown-link",
        ),
        (
            format!("{{ {compute}, links = {{ table = [{{ between = [0, 9] }}] }} }}"),
            "time/unknown-link",
        ),
        (
            format!("{{ {compute}, links = {{ table = [{{ between = [0] }}] }} }}"),
            "config/wrong-type",
        ),
        (
            format!(
                "{{ {compute}, links = {{ table = [{{ between = [0, 1], latency = -1 }}] }} }}"
            ),
            "config/out-of-range",
        ),
    ];
    for (time, id) in cases {
        let read = read(PATH, &time, "{ iterations = 1 }", LG);
        let error = read.and_then(|experiment| experiment.world(None, 1).map(|_| ())).unwrap_err();
        assert_eq!(error.id, id, "{time}: {error}");
        assert!(error.place.is_some(), "{time}: {error}");
    }
    let text = format!(
        "problem = {{ name = 'quadratic' }}
         network = {PATH}
         run = {{ budget = {{ virtual_seconds = 1 }} }}
         algorithm = [{{ {LG} }}]"
    );
    let error = Experiment::read(&Source::new("test", &text), &Registries::default()).unwrap_err();
    assert_eq!(error.id, "config/missing-key");
    assert!(error.message.contains("[time]"), "{error}");
}
