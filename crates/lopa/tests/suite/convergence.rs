//! The limits of the algorithms, and their invariants: which are exact where nodes differ, whose
//! bias shrinks with the step size, which stop short of the solution in the global scope and warn
//! of it.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use crate::common::bench::*;
use lopa::config::Source;
use lopa::engine::Simulation;
use lopa::experiment::Experiment;
use lopa::problem::builtin::quadratic::{Coefficients, coefficients};
use lopa::problem::scope::Scope;
use lopa::run::{Context, Listener};
use serde_json::Value;

/// Series that leave nothing to be desired.
const SERIES: &str = "lambda = 0.5, hv_steps = 60, inverse = 'shia'";

/// The quadratics of `golden/field_ring4.json` on their ring; with `equal_g`, every node has the
/// g of node 0, while the f_i still differ.
struct Ring {
    file: tempfile::NamedTempFile,
}

impl Ring {
    fn new(equal_g: bool) -> Ring {
        let path = format!("{}/tests/golden/field_ring4.json", env!("CARGO_MANIFEST_DIR"));
        let mut json: Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let data = &mut json["data"];
        for key in ["A", "B", "c"].iter().filter(|_| equal_g) {
            let first = data[key][0].clone();
            data[key].as_array_mut().unwrap().fill(first);
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "{}", serde_json::json!({ "data": data })).unwrap();
        Ring { file }
    }

    fn setup(&self, scope: Scope, run: &str) -> String {
        format!(
            "scope = '{}'
             problem = {{ name = 'quadratic', file = {:?} }}
             network = {{ nodes = 4, graph = 'ring', weights = 'lazy-metropolis' }}
             run = {{ iterations = 1, {run} }}",
            scope.name(),
            self.file.path()
        )
    }

    /// The largest |θ_i − θ*| after this many iterations, for the common θ* of the mean g at x⁰.
    fn inner_error(&self, algorithm: &str, iterations: usize) -> f64 {
        let bench = Bench::new(&self.setup(Scope::Global, ""), algorithm);
        let simulation = bench.run::<f64>(iterations);
        let nodes = coefficients(&bench.experiment.problem.typed().unwrap(), 4, 1).unwrap();
        let best = Coefficients::mean(&nodes).unwrap().theta_star(&rows(&simulation, "x")[0]);
        let off = rows(&simulation, "theta").into_iter().map(|theta| distance(&theta, &best));
        off.fold(0.0, f64::max)
    }

    /// |∇Φ(x̄)| after this many iterations.
    fn gradient(&self, scope: Scope, algorithm: &str, iterations: usize) -> f64 {
        let bench = Bench::new(&self.setup(scope, ""), algorithm);
        let simulation = bench.run::<f64>(iterations);
        let nodes = coefficients(&bench.experiment.problem.typed().unwrap(), 4, 1).unwrap();
        let centre = mean(&rows(&simulation, "x"));
        match scope {
            Scope::Global => norm(&Coefficients::mean(&nodes).unwrap().grad_phi(&centre)),
            Scope::Personal => {
                let grads: Vec<_> = nodes.iter().map(|node| node.grad_phi(&centre)).collect();
                norm(&mean(&grads))
            }
        }
    }
}

#[test]
fn tracking_and_duals_are_exact_where_nodes_differ() {
    let ring = Ring::new(false);
    let loopless = "alpha = 0.02, beta = 0.1, lambda = 0.1";
    let gentle = "alpha = 0.005, beta = 0.1, lambda = 0.1";
    let storm = "eta = 0.5, alpha = 0.04, beta = 0.2, gamma = 0.5";
    for scope in [Scope::Personal, Scope::Global] {
        for algorithm in [
            format!("name = 'lopa-gt', {loopless}"),
            format!("name = 'sldbo', {loopless}"),
            format!("name = 'zhang', {storm}, lambda = 0.2"),
            format!("name = 'zhang', {storm}, lambda = 0.2, order = 'alternating'"),
            format!("name = 'sparkle', {gentle}"),
            format!("name = 'sparkle', {gentle}, upper = 'extra', lower = 'extra'"),
            format!("name = 'sparkle', {gentle}, upper = 'gt', lower = 'gt'"),
            format!("name = 'sparkle', {gentle}, lower = 'gt'"),
        ] {
            let grad = ring.gradient(scope, &algorithm, 6000);
            assert!(grad < 1e-10, "{algorithm} ({}): |∇Φ| = {grad:e}", scope.name());
        }
    }
    for algorithm in [
        format!("name = 'spdb', alpha = 0.02, beta = 0.3, {SERIES}"),
        format!("name = 'spdb', alpha = 0.02, beta = 0.3, {SERIES}, consensus = 'gt'"),
        // As many products as θ has entries: the inverse is exact.
        "name = 'spdb', alpha = 0.02, beta = 0.3, lambda = 1, inverse = 'cg', hv_steps = 4".into(),
        format!("name = 'mdbo', {storm}, {SERIES}"),
        format!("name = 'vrdbo', {storm}, {SERIES}"),
        format!("name = 'interact', alpha = 0.02, beta = 0.3, {SERIES}"),
        format!("name = 'prometheus', alpha = 0.02, beta = 0.3, {SERIES}"),
    ] {
        let grad = ring.gradient(Scope::Personal, &algorithm, 6000);
        assert!(grad < 1e-8, "{algorithm}: |∇Φ| = {grad:e}");
    }
}

#[test]
fn biases_shrink_with_the_step() {
    let ring = Ring::new(false);
    let cases = [
        ("lopa-lg", Scope::Personal, "beta = 0.3, lambda = 0.3"),
        ("d-soba", Scope::Personal, "beta = 0.3, lambda = 0.3"),
        ("ma-dsbo", Scope::Personal, "gamma = 0.4, beta = 0.3, lambda = 0.3, warm = true"),
        ("gossip-dsbo", Scope::Personal, "gamma = 0.4, beta = 0.3, lambda = 0.5, hv_steps = 40"),
        ("lopa-lg", Scope::Global, ""),
        ("d-soba", Scope::Global, "gamma = 0.5"),
        ("ma-dsbo", Scope::Global, "gamma = 0.4, lambda = 0.3, hv_steps = 60"),
        ("gossip-dsbo", Scope::Global, "lambda = 0.5, hv_steps = 40"),
    ];
    for (name, scope, fixed) in cases {
        // In the global scope θ and v are biased by their own steps, which shrink with alpha.
        let algorithm = |alpha: f64| {
            let step = 10.0 * alpha;
            let inner = match (scope, name) {
                (Scope::Personal, _) => String::new(),
                (Scope::Global, "ma-dsbo") => format!("beta = {step}, "),
                (Scope::Global, "gossip-dsbo") => format!("beta = {step}, gamma = {step}, "),
                (Scope::Global, _) => format!("beta = {step}, lambda = {step}, "),
            };
            format!("name = '{name}', alpha = {alpha}, {inner}{fixed}")
        };
        let coarse = ring.gradient(scope, &algorithm(0.01), 3000);
        let fine = ring.gradient(scope, &algorithm(0.0025), 12000);
        let what = format!("{name} ({}): |∇Φ| = {coarse:e}, then {fine:e}", scope.name());
        assert!(coarse > 0.05, "{what}: it has no bias");
        assert!(coarse > 3.0 * fine, "{what}: it does not shrink with the step");
        assert!(fine > 1e-3, "{what}: a bias does not vanish");
    }
}

// y is off θ* by about 1/σ, and so is the limit.
#[test]
fn a_penalty_stops_at_a_distance_of_the_order_of_its_inverse() {
    let ring = Ring::new(false);
    for scope in [Scope::Personal, Scope::Global] {
        let at = |penalty: f64| {
            let steps = "alpha = 0.01, beta = 0.1, inner_steps = 10";
            let algorithm = format!("name = 'c2dfb', {steps}, penalty = {penalty}");
            ring.gradient(scope, &algorithm, 6000)
        };
        let [coarse, fine, finer] = [50.0, 100.0, 200.0].map(at);
        for (before, after) in [(coarse, fine), (fine, finer)] {
            let times = before / after;
            assert!((1.8..2.2).contains(&times), "{}: {before:e}, {after:e}", scope.name());
        }
        assert!(finer > 1e-4, "{}: |∇Φ| = {finer:e} without a bias", scope.name());
    }
}

#[test]
fn local_hessians_stop_short_of_the_global_solution_unless_the_g_agree() {
    let (different, equal) = (Ring::new(false), Ring::new(true));
    let storm = "eta = 0.5, alpha = 0.04, beta = 0.4, gamma = 0.5";
    for algorithm in [
        format!("name = 'slam', alpha = 0.02, beta = 0.2, {SERIES}"),
        format!("name = 'mdbo', {storm}, {SERIES}"),
        format!("name = 'vrdbo', {storm}, {SERIES}"),
    ] {
        let far = different.gradient(Scope::Global, &algorithm, 8000);
        assert!(far > 0.01, "{algorithm}: |∇Φ| = {far:e}");
        let near = equal.gradient(Scope::Global, &algorithm, 8000);
        assert!(near < 1e-8, "{algorithm}, equal g: |∇Φ| = {near:e}");
    }
}

// A schedule must not lead elsewhere: every gradient counts with the step of its own iteration.
#[test]
fn schedules_lead_where_constant_steps_lead() {
    let ring = Ring::new(false);
    let over = |key: &str, c: f64| format!("{key} = {{ over_sqrt = {c} }}");
    let stages = |c: f64| format!("alpha = {{ start = {c}, factor = 0.7, every = 900 }}");
    let (alpha, beta, lambda) = (over("alpha", 0.1), over("beta", 0.4), over("lambda", 0.4));
    let storm = format!("eta = 0.5, {}, {}, gamma = 0.5", over("alpha", 0.2), over("beta", 0.8));
    let both = [Scope::Personal, Scope::Global];
    let cases: [(String, &[Scope]); 12] = [
        (
            format!("name = 'sparkle', {alpha}, {beta}, {lambda}, gamma = 0.8, upper = 'extra'"),
            &both,
        ),
        (format!("name = 'sparkle', {alpha}, {beta}, {lambda}, gamma = 0.8, upper = 'gt'"), &both),
        (format!("name = 'lopa-gt', {alpha}, {beta}, {lambda}"), &both),
        (format!("name = 'sldbo', {alpha}, {beta}, {lambda}"), &both),
        (format!("name = 'zhang', {storm}, lambda = 0.4"), &both),
        (format!("name = 'zhang', {storm}, lambda = 0.4, order = 'alternating'"), &both),
        (format!("name = 'spdb', {alpha}, {beta}, {SERIES}"), &both[..1]),
        (format!("name = 'spdb', {alpha}, {beta}, {SERIES}, consensus = 'gt'"), &both[..1]),
        (format!("name = 'mdbo', {storm}, {SERIES}"), &both[..1]),
        (format!("name = 'vrdbo', {storm}, {SERIES}"), &both[..1]),
        (format!("name = 'interact', {alpha}, {beta}, {SERIES}"), &both[..1]),
        (format!("name = 'prometheus', {alpha}, {beta}, {SERIES}"), &both[..1]),
    ];
    for (algorithm, scopes) in cases {
        for &scope in scopes {
            // It falls below any bound, as slowly as the steps sum up.
            let [early, late] = [1500, 6000].map(|k| ring.gradient(scope, &algorithm, k));
            let falls = late < 1e-3 || late < early / 3.0;
            assert!(falls, "{algorithm} ({}): |∇Φ| = {early:e}, then {late:e}", scope.name());
        }
    }
    // Methods with local Hessians are exact where the g_i agree.
    let slam = format!("name = 'slam', {alpha}, {beta}, {SERIES}");
    let grad = Ring::new(true).gradient(Scope::Global, &slam, 6000);
    assert!(grad < 1e-3, "{slam}: |∇Φ| = {grad:e}");

    for name in ["gt-sgd", "extra", "exact-diffusion"] {
        for alpha in [over("alpha", 0.3), stages(0.3)] {
            let off = ring.inner_error(&format!("name = '{name}', {alpha}"), 6000);
            assert!(off < 1e-4, "{name}, {alpha}: |θ − θ*| = {off:e}");
        }
    }
    // Those with a bias of the order of their step lose it.
    for name in ["lopa-lg", "d-soba"] {
        let [constant, lowered] = ["alpha = 0.01", &alpha[..]].map(|alpha| {
            let algorithm = format!("name = '{name}', {alpha}, beta = 0.3, lambda = 0.3");
            ring.gradient(Scope::Personal, &algorithm, 12000)
        });
        assert!(lowered < constant / 4.0, "{name}: |∇Φ| = {constant:e}, then {lowered:e}");
    }
    let [constant, lowered] = ["alpha = 0.1", &alpha[..]]
        .map(|alpha| ring.inner_error(&format!("name = 'dgd', {alpha}"), 12000));
    assert!(lowered < constant / 20.0, "dgd: {constant:e}, then {lowered:e}");
}

#[derive(Default)]
struct Warnings(Vec<String>);

impl Listener for Warnings {
    fn warn(&mut self, text: &str) {
        self.0.push(text.to_string());
    }
}

#[test]
fn a_method_that_stops_short_says_so_in_the_global_scope_alone() {
    let ring = Ring::new(false);
    let interrupt = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &interrupt, probe: None };
    for (scope, warned) in [(Scope::Personal, 0), (Scope::Global, 1)] {
        let mdbo = format!("eta = 0.5, alpha = 0.1, beta = 0.1, gamma = 0.5, {SERIES}");
        let d_soba = "alpha = 0.1, beta = 0.1, lambda = 0.1";
        let text = format!(
            "algorithm = [{{ name = 'mdbo', {mdbo} }}, {{ name = 'd-soba', {d_soba} }}]\n{}",
            ring.setup(scope, "")
        );
        let experiment =
            Experiment::read(&Source::new("test", text), &lopa::experiment::Registries::default())
                .unwrap();
        let mut warnings = Warnings::default();
        experiment.run_with(&context, &mut (), &mut warnings).unwrap();
        let own = warnings.0.iter().filter(|text| text.contains("inverts its own Hessian"));
        let own: Vec<_> = own.collect();
        assert_eq!(own.len(), warned, "{:?}", warnings.0);
        assert!(own.iter().all(|text| text.starts_with("mdbo: ")), "{own:?}");
    }
}

// ---- invariants ----

/// A noisy run of the random quadratics on a path, on minibatches.
fn noisy(scope: Scope, algorithm: &str) -> Simulation<'static, f64> {
    let setup = format!(
        "scope = '{}'
         problem = {{ name = 'quadratic', n = 3, p = 4, condition = 2, noise = 0.5, samples = 20 }}
         network = {{ nodes = 5, graph = 'path', weights = 'lazy-metropolis' }}
         run = {{ iterations = 1, batch = 3 }}",
        scope.name()
    );
    let simulation = Bench::new(&setup, algorithm).run(60);
    assert!(largest(&rows(&simulation, "x").concat()) < 100.0, "{algorithm} diverges");
    simulation
}

#[test]
fn trackers_have_the_means_of_what_they_track() {
    let storm = "eta = 0.5, alpha = 0.04, beta = 0.2, gamma = 0.5";
    let loopless = "alpha = 0.02, beta = 0.1, lambda = 0.1";
    let levels = [("Zu", "u"), ("Ze", "e"), ("Zc", "c")];
    let sparkle = "name = 'sparkle', upper = 'gt', lower = 'gt'";
    let trackers = [("memory_x", "r"), ("memory_theta", "last_theta"), ("memory_v", "last_v")];
    let c2dfb = "name = 'c2dfb', alpha = 0.02, beta = 0.1, tau = 0.7";
    let cases: [(String, &[(&str, &str)]); 8] = [
        (format!("{sparkle}, {loopless}"), &trackers),
        (c2dfb.into(), &[("t", "u"), ("t_y", "q"), ("t_theta", "d")]),
        (format!("name = 'lopa-gt', {loopless}"), &[("y", "z"), ("y_theta", "d"), ("y_v", "h")]),
        (format!("name = 'sldbo', {loopless}"), &[("tx", "s"), ("t_theta", "d"), ("tv", "h")]),
        (format!("name = 'zhang', {storm}, lambda = 0.2"), &levels),
        (format!("name = 'zhang', {storm}, lambda = 0.2, order = 'alternating'"), &levels),
        (format!("name = 'mdbo', {storm}, {SERIES}"), &[("Zf", "u"), ("Zg", "e")]),
        (format!("name = 'vrdbo', {storm}, {SERIES}"), &[("Zf", "u"), ("Zg", "e")]),
    ];
    for (algorithm, pairs) in cases {
        let simulation = noisy(Scope::Global, &algorithm);
        for (tracker, tracked) in pairs {
            let [y, z] = [tracker, tracked].map(|name| rows(&simulation, name));
            let gap = distance(&mean(&y), &mean(&z));
            assert!(gap < 1e-12 * norm(&mean(&z)).max(1.0), "{algorithm}: {tracker} off {gap:e}");
            assert!(spread(&minus_all(&y, &z)) > 1e-6, "{algorithm}: {tracker} is {tracked}");
        }
    }
}

fn minus_all(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    a.iter().zip(b).map(|(a, b)| minus(a, b)).collect()
}

#[test]
fn duals_sum_to_zero() {
    let steps = "alpha = 0.02, beta = 0.2";
    let slam = format!("name = 'slam', {steps}, {SERIES}");
    let extra =
        format!("name = 'sparkle', {steps}, lambda = 0.2, upper = 'extra', lower = 'extra'");
    let levels = ["memory_x", "memory_theta", "memory_v"];
    for (algorithm, duals) in [(slam, &["M_x", "M_theta"][..]), (extra, &levels)] {
        let simulation = noisy(Scope::Global, &algorithm);
        for name in duals {
            let dual = rows(&simulation, name);
            assert!(norm(&mean(&dual)) < 1e-13, "{name}: {:?}", mean(&dual));
            assert!(spread(&dual) > 1e-6, "{name} does nothing");
        }
    }
}

#[test]
fn v_stays_in_its_ball() {
    let steps = "alpha = 0.02, beta = 0.3, lambda = 0.3";
    for scope in [Scope::Personal, Scope::Global] {
        let free = noisy(scope, &format!("name = 'sldbo', {steps}"));
        assert!(rows(&free, "v").iter().all(|v| norm(v) > 0.3), "the ball would do nothing");
        let held = noisy(scope, &format!("name = 'sldbo', {steps}, radius = 0.25"));
        for v in rows(&held, "v") {
            assert!(norm(&v) <= 0.25 + 1e-12, "|v| = {}", norm(&v));
        }
    }
}

#[test]
fn the_proximal_step_keeps_bounds_and_makes_zeros() {
    let ring = Ring::new(false);
    let steps = format!("alpha = 0.02, beta = 0.3, {SERIES}");
    let run = |more: &str| {
        let algorithm = format!("name = 'prometheus', {steps}, {more}");
        rows(&Bench::new(&ring.setup(Scope::Personal, ""), &algorithm).run::<f64>(4000), "x")
    };
    let free = run("l1 = 0.0");
    let bound = 0.5 * largest(&free.concat());
    let held = run(&format!("low = {}, high = {bound}", -bound));
    assert!((largest(&held.concat()) - bound).abs() < 1e-6, "the bound is active: {held:?}");
    let sparse = run("l1 = 1000.0");
    assert!(largest(&sparse.concat()) < 1e-6, "{sparse:?}");
}

// ---- differences of gradients ----

#[test]
fn finite_differences_serve_under_any_algorithm() {
    let ring = Ring::new(false);
    for algorithm in [
        "name = 'lopa-gt', alpha = 0.02, beta = 0.1, lambda = 0.1".to_string(),
        format!("name = 'spdb', alpha = 0.02, beta = 0.3, {SERIES}"),
        format!("name = 'vrdbo', eta = 0.5, alpha = 0.1, beta = 0.4, gamma = 0.5, {SERIES}"),
    ] {
        let run =
            |how: &str| Bench::new(&ring.setup(Scope::Personal, how), &algorithm).run::<f64>(30);
        let (products, differences) = (run(""), run("finite_differences = 0.01"));
        // Gradients of quadratics are linear: differences are products up to rounding.
        let off = distance(&rows(&products, "x").concat(), &rows(&differences, "x").concat());
        assert!(off < 1e-10, "{algorithm}: {off:e}");
        let (exact, counts) = (products.counts(), differences.counts());
        assert_eq!((counts.hess_g, counts.cross_g), (0, 0), "{algorithm}");
        assert_eq!(counts.grad_x_g, 2 * exact.cross_g, "{algorithm}");
        assert_eq!(counts.grad_theta_g, exact.grad_theta_g + 2 * exact.hess_g, "{algorithm}");
    }
}

#[test]
fn matrices_are_refused_where_they_would_be_large() {
    let setup = "problem = { name = 'quadratic', n = 2, p = 501 }
        network = { nodes = 2, graph = 'path' }
        run = { iterations = 1 }";
    let text = format!(
        "algorithm = [{{ name = 'gossip-dsbo', alpha = 0.1, beta = 0.1, gamma = 0.1, lambda = 1 }}]
         {setup}"
    );
    let experiment =
        Experiment::read(&Source::new("test", text), &lopa::experiment::Registries::default())
            .unwrap();
    let interrupt = AtomicBool::new(false);
    let context = Context { pool: None, data_dir: "".into(), interrupt: &interrupt, probe: None };
    let error = experiment.run_with(&context, &mut (), &mut ()).unwrap_err();
    assert_eq!(error.id, "config/too-large");
    assert!(error.to_string().contains("501") && error.to_string().contains("500"), "{error}");
}
