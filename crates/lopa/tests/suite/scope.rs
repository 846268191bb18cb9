//! One inner problem for all nodes: exact evaluation against closed forms, and refusals.

use crate::common::bench::*;
use lopa::config::Source;
use lopa::experiment::Experiment;
use lopa::problem::Bilevel;
use lopa::problem::builtin::quadratic::{Coefficients, coefficients, x_star};
use lopa::problem::scope::Scope;
use lopa::run::evaluate;
use lopa::run::evaluate::exact;
use lopa::run::evaluate::mean::Mean;

const SETUP: &str = "scope = 'global'
    problem = { name = 'quadratic', n = 3, p = 4, heterogeneity = 0.7 }
    network = { nodes = 5, graph = 'path' }
    run = { iterations = 1 }";

const DGD: &str = "name = 'dgd', alpha = 0.1";

fn node_coefficients(bench: &Bench) -> Vec<Coefficients> {
    let nodes = bench.experiment.network.nodes;
    coefficients(&bench.experiment.problem.typed().unwrap(), nodes, bench.seed()).unwrap()
}

fn close(got: &[f64], want: &[f64], tolerance: f64) {
    assert!(distance(got, want) <= tolerance * norm(want).max(1.0), "{got:?} is not {want:?}");
}

#[test]
fn the_global_hypergradient_is_that_of_the_mean_problem() {
    let bench = Bench::new(SETUP, DGD);
    let (nodes, x) = (node_coefficients(&bench), [0.3, -1.2, 0.8]);
    let mut parts = bench.parts::<f64>();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let alone = exact::solve(&mut Mean::new(&mut parts, None, &mut Ok), &x, &[0.0; 4]);
    let shared = exact::solve(&mut Mean::new(&mut parts, Some(&pool), &mut Ok), &x, &[0.0; 4]);
    assert!(alone.converged);
    assert_eq!((&alone.theta, &alone.grad), (&shared.theta, &shared.grad), "threads matter");

    let mean = Coefficients::mean(&nodes).unwrap();
    close(&alone.theta, &mean.theta_star(&x), 1e-9);
    close(&alone.v, &mean.v_star(&x), 1e-9);
    close(&alone.grad, &mean.grad_phi(&x), 1e-9);
    assert!((alone.phi - mean.phi(&x)).abs() < 1e-9);

    // It is the gradient of the global Φ, and not the mean of the personal ones.
    let local: Vec<_> = nodes.iter().map(|node| node.grad_phi(&x)).collect();
    assert!(distance(&crate::common::bench::mean(&local), &alone.grad) > 0.1);
    for j in 0..3 {
        let phi = |step: f64| {
            let mut there = x;
            there[j] += step;
            mean.phi(&there)
        };
        let slope = (phi(1e-5) - phi(-1e-5)) / 2e-5;
        assert!((slope - alone.grad[j]).abs() < 1e-7, "{slope} is not {}", alone.grad[j]);
    }
}

#[test]
fn the_mean_has_the_means_of_all_values_and_derivatives() {
    let setup = "problem = { name = 'hyperparameter' }
        data = { name = 'blobs', rows = 90, features = 4 }
        network = { nodes = 3, graph = 'path' }
        run = { iterations = 1 }";
    let bench = Bench::new(setup, DGD);
    let mut parts = bench.parts::<f64>();
    let dims = parts[0].dims();
    let x: Vec<f64> = (0..dims.n).map(|j| -0.5 - 0.1 * j as f64).collect();
    let solution = exact::solve(&mut Mean::new(&mut parts, None, &mut Ok), &x, &vec![0.0; dims.p]);
    assert!(solution.converged);
    let phi = |parts: &mut [Box<dyn Bilevel<f64>>], j: usize, step: f64| {
        let mut there = x.clone();
        there[j] += step;
        exact::solve(&mut Mean::new(parts, None, &mut Ok), &there, &solution.theta).phi
    };
    for j in 0..dims.n {
        let slope = (phi(&mut parts, j, 1e-4) - phi(&mut parts, j, -1e-4)) / 2e-4;
        assert!((slope - solution.grad[j]).abs() < 1e-6, "{slope} is not {}", solution.grad[j]);
    }
}

#[test]
fn nodes_that_agree_have_the_same_solution_in_both_scopes() {
    let setup = SETUP.replace("0.7", "0.0");
    let nodes = node_coefficients(&Bench::new(&setup, DGD));
    let mean = Coefficients::mean(&nodes).unwrap();
    let x = [1.0, 2.0, -1.0];
    close(&mean.grad_phi(&x), &nodes[0].grad_phi(&x), 1e-12);
    close(&x_star(&[mean]).unwrap(), &x_star(&nodes).unwrap(), 1e-10);
}

#[test]
fn a_row_of_a_global_run_is_measured_against_the_common_solution() {
    let bench = Bench::new(SETUP, DGD);
    let mean = Coefficients::mean(&node_coefficients(&bench)).unwrap();
    let x = x_star(std::slice::from_ref(&mean)).unwrap();
    let theta = mean.theta_star(&x);
    let mut parts = bench.parts::<f64>();
    let at = |shift: f64| (x.clone(), theta.iter().map(|t| t + shift).collect::<Vec<_>>());
    let points = [at(0.0), at(1.0), at(-1.0), at(2.0), at(-2.0)];
    let values = evaluate::common(&mut parts, &points, true, None, &mut Ok).unwrap();
    assert!(values["grad_phi_sq"] < 1e-16, "{values:?}");
    // p (0 + 1 + 1 + 4 + 4) / 5, and the mean of the θ_i is θ* itself.
    assert!((values["theta_error"] - 8.0).abs() < 1e-6, "{values:?}");
    assert!((values["theta_consensus"] - 8.0).abs() < 1e-6, "{values:?}");
    assert_eq!(evaluate::common(&mut parts, &points, false, None, &mut Ok).unwrap().len(), 1);
    let metrics = parts[0].metrics(lopa::problem::At { x: &x, theta: &theta });
    let x_error = metrics.iter().find(|(name, _)| *name == "x_error").unwrap().1;
    assert!(x_error < 1e-20, "x_error is measured from the personal solution: {x_error}");
}

#[test]
fn an_algorithm_of_the_other_scope_is_refused() {
    let text = format!("algorithm = ['spdb']\n{SETUP}")
        .replace("['spdb']", "[{ name = 'spdb', alpha = 0.1, beta = 0.1, lambda = 0.1 }]");
    let error =
        Experiment::read(&Source::new("file.toml", text), &lopa::experiment::Registries::default())
            .unwrap_err();
    assert_eq!(error.id, "config/wrong-scope");
    assert!(error.message.contains("`spdb`") && error.message.contains("global"), "{error}");
    assert!(error.to_string().contains("file.toml:1:"), "{error}");
    assert!(error.to_string().contains("dgd"), "those that do serve it are listed: {error}");
}

#[test]
fn the_scope_is_personal_unless_a_file_says_otherwise_and_survives_a_round_trip() {
    let read = |text: &str| {
        Experiment::read(&Source::new("test", text), &lopa::experiment::Registries::default())
            .unwrap()
    };
    let global = format!("algorithm = [{{ {DGD} }}]\n{SETUP}");
    let personal = global.replace("scope = 'global'", "");
    assert_eq!(read(&personal).scope, Scope::Personal);
    let experiment = read(&global);
    assert_eq!(experiment.scope, Scope::Global);
    let resolved = toml::to_string(&experiment.resolved()).unwrap();
    assert_eq!(read(&resolved), experiment);
    let wrong = global.replace("'global'", "'globl'");
    let error =
        Experiment::read(&Source::new("test", wrong), &lopa::experiment::Registries::default())
            .unwrap_err();
    assert_eq!(error.id, "config/unknown-value");
}
