//! The paper's sentences as tests, each with its place in the paper.
//!
//! Niu, Xu, Sun, Huang, Chai, *Journal of Machine Learning Research* 26(76), 2025. Equation
//! numbers are those of `algorithms/lopa.rs`.

use crate::common::bench::*;
use lopa::engine::Simulation;
use lopa::math::real::Real;
use lopa::network::outbox::{Outbox, Round};
use lopa::problem::builtin::quadratic::{self, Coefficients, coefficients};
use lopa::problem::derivative::Counts;

/// Eight heterogeneous quadratics on a ring, with all samples.
const RING: &str = "
problem = { name = 'quadratic', n = 5, p = 6, condition = 2, heterogeneity = 0.5 }
network = { nodes = 8, graph = 'ring', weights = 'lazy-metropolis' }
run = { seeds = [1], iterations = 1 }";

/// The same, with noisy minibatches.
const NOISY: &str = "
problem = { name = 'quadratic', n = 5, p = 6, condition = 2, heterogeneity = 0.5, noise = 1, \
samples = 40 }
network = { nodes = 8, graph = 'ring', weights = 'lazy-metropolis' }
run = { seeds = [1], iterations = 1, batch = 3 }";

const STEPS: &str = "alpha = 0.02, beta = 0.9, lambda = 0.9";

/// A setup with one thing changed.
fn with(setup: &str, from: &str, to: &str) -> String {
    assert!(setup.contains(from), "{from} is not in the setup");
    setup.replace(from, to)
}

fn lopa(scheme: &str, steps: &str) -> String {
    format!("name = 'lopa-{scheme}', {steps}")
}

/// The coefficients of the bench's quadratics.
fn closed_forms(bench: &Bench) -> Vec<Coefficients> {
    let options: quadratic::Options = bench.experiment.problem.typed().unwrap();
    coefficients(&options, bench.experiment.network.nodes, bench.seed()).unwrap()
}

/// ∇Φ(x).
fn grad_phi(nodes: &[Coefficients], x: &[f64]) -> Vec<f64> {
    mean(&nodes.iter().map(|node| node.grad_phi(x)).collect::<Vec<_>>())
}

/// |∇Φ(x̄)|
fn stationarity<T: Real>(bench: &Bench, simulation: &Simulation<T>) -> f64 {
    norm(&grad_phi(&closed_forms(bench), &mean(&rows(simulation, "x"))))
}

// "… by using its smoothness and the tracking property of ȳ^k for z̄^k" — section 3.3, step 1.
// Summing (12) over the nodes gives it for every W that is doubly stochastic, for any samples.
fn mean_y_is_mean_z<T: Real>() {
    let graphs = [
        "graph = 'ring', weights = 'lazy-metropolis'",
        "graph = 'star', weights = 'metropolis'",
        "graph = { name = 'erdos-renyi', p = 0.4 }, weights = 'constant'",
    ];
    for (graph, start) in graphs.iter().flat_map(|graph| [(graph, "estimate"), (graph, "zero")]) {
        let setup = with(NOISY, "graph = 'ring', weights = 'lazy-metropolis'", graph);
        let bench = Bench::new(&setup, &lopa("gt", &format!("{STEPS}, start = '{start}'")));
        let mut simulation = bench.start::<T>();
        for k in 0..=400 {
            let (y, z) = (rows(&simulation, "y"), rows(&simulation, "z"));
            let gap = largest(&minus(&mean(&y), &mean(&z)));
            let size = largest(&y.concat()).max(1.0);
            let rounding = 8.0 * T::epsilon().to_f64() * (k as f64).sqrt() * size;
            assert!(gap <= rounding, "{graph}, {start}, k = {k}: {gap:e} is over {rounding:e}");
            simulation.iterate();
        }
    }
}

#[test]
fn tracking_keeps_the_means_of_y_and_z_equal() {
    mean_y_is_mean_z::<f64>();
    mean_y_is_mean_z::<f32>();
}

// Averaging (10) over the nodes: x̄^{k+1} = x̄^k − τα ȳ^k — appendix, proof of the descent lemma.
#[test]
fn the_mean_of_x_moves_by_tau_alpha_times_the_mean_of_y() {
    for scheme in ["lg", "gt"] {
        let bench = Bench::new(NOISY, &lopa(scheme, &format!("{STEPS}, tau = 0.3")));
        let mut simulation = bench.start::<f64>();
        for k in 0..300 {
            let (x, y) = (rows(&simulation, "x"), mean(&rows(&simulation, "y")));
            simulation.iterate();
            let moved = minus(&mean(&rows(&simulation, "x")), &mean(&x));
            let size = largest(&x.concat()).max(1.0);
            for (moved, y) in moved.iter().zip(&y) {
                let off = (moved + 0.3 * 0.02 * y).abs();
                assert!(off <= 8.0 * f64::EPSILON * size, "{scheme}, k = {k}: off by {off:e}");
            }
        }
    }
}

// "(Local gradient scheme) y_i^{k+1} = z_i^{k+1}" — (11).
#[test]
fn local_gradients_are_the_moving_average_itself() {
    let mut simulation = Bench::new(NOISY, &lopa("lg", STEPS)).start::<f64>();
    for _ in 0..50 {
        assert_eq!(rows(&simulation, "y"), rows(&simulation, "z"));
        simulation.iterate();
    }
}

// "LoPA enjoys a loopless structure … a computational complexity of O(1) with respect to the
// number of Hessian evaluations at each iteration k while maintaining the same complexity for
// outer- and inner-level gradient and Jacobian evaluations" — remark 1.
#[test]
fn an_iteration_costs_one_of_each_derivative() {
    for scheme in ["lg", "gt"] {
        let mut simulation = Bench::new(NOISY, &lopa(scheme, STEPS)).start::<f64>();
        for evaluations in 1..=20 {
            let once = Counts {
                grad_theta_g: evaluations,
                hess_g: evaluations,
                cross_g: evaluations,
                grad_theta_f: evaluations,
                grad_x_f: evaluations,
                grad_x_g: 0,
                samples: 5 * 3 * evaluations,
            };
            // One evaluation belongs to the start.
            simulation.nodes().iter().for_each(|node| assert_eq!(node.oracle.counts(), once));
            simulation.iterate();
        }
    }
}

// "Communicate with neighboring node j ∈ N_i" — algorithm 1, line 4: x for (10), and y for (12).
// θ_i and v_i "do not need to reach a consensus" — remark on linear speed-up.
#[test]
fn x_and_in_tracking_y_are_all_that_leaves_a_node() {
    for (scheme, vectors) in [("lg", &["x"][..]), ("gt", &["x", "y"])] {
        let mut simulation = Bench::new(NOISY, &lopa(scheme, STEPS)).start::<f64>();
        for k in 1..=20 {
            for node in simulation.nodes() {
                let mut out = Outbox::default();
                node.algorithm.share(Round { k, e: 0 }, &mut out);
                let of = |name: &&str| variable(node, name).to_vec();
                assert_eq!(out.values(), vectors.iter().flat_map(of).collect::<Vec<_>>());
            }
            simulation.iterate();
            let (degrees, n) = (2 * 8, 5);
            assert_eq!(simulation.exchanges(), k);
            assert_eq!(simulation.floats(), k * degrees * n * vectors.len() as u64);
        }
    }
}

// With W = 1, (12) telescopes to (11): both schemes are one method, and that of going alone.
#[test]
fn one_node_makes_all_schemes_equal() {
    let setup = with(NOISY, "nodes = 8, graph = 'ring'", "nodes = 1, graph = 'complete'");
    let run = |name: &str, tau: f64| {
        let params = format!("name = '{name}', {STEPS}, tau = {tau}");
        rows(&Bench::new(&setup, &params).run::<f64>(200), "x").remove(0)
    };
    for tau in [1.0, 0.4] {
        let (lg, gt, local) = (run("lopa-lg", tau), run("lopa-gt", tau), run("local", tau));
        assert!(largest(&lg) > 0.1, "nothing happened");
        assert!(distance(&lg, &gt) <= 1e-13 * norm(&lg));
        assert!(distance(&lg, &local) <= 1e-13 * norm(&lg));
        if tau == 1.0 {
            assert_eq!(lg, local);
        }
    }
}

// "the effect of the heterogeneity is eliminated by gradient tracking scheme (12) in personalized
// DSBO even when the inner-level variables lack communication" — remark 3; corollary 4.
#[test]
fn tracking_reaches_a_stationary_point_and_consensus() {
    for seed in [1, 2, 3] {
        let setup = with(RING, "seeds = [1]", &format!("seeds = [{seed}]"));
        let bench = Bench::new(&setup, &lopa("gt", "alpha = 0.015, beta = 0.9, lambda = 0.9"));
        let simulation = bench.run::<f64>(6000);
        let at = stationarity(&bench, &simulation);
        assert!(at < 1e-10, "seed {seed}: |∇Φ| = {at:e}");
        let apart = spread(&rows(&simulation, "x"));
        assert!(apart < 1e-20, "seed {seed}: consensus {apart:e}");
    }
}

// "y_i^k estimates the average hypergradient ∇Φ", with (11) "the local hypergradient" — section 2.2.
// "Hv errors" and "inner-level errors" of (V) vanish — lemmas 3 and 4: v tracks v*, θ tracks θ*.
#[test]
fn every_variable_tracks_what_it_stands_for() {
    // At an x that hardly moves, so that ∇Φ is not zero.
    let steps = "alpha = 1e-16, beta = 0.9, lambda = 0.9";
    for scheme in ["lg", "gt"] {
        let bench = Bench::new(RING, &lopa(scheme, steps));
        let simulation = bench.run::<f64>(600);
        let (nodes, x) = (closed_forms(&bench), rows(&simulation, "x"));
        let common = grad_phi(&nodes, &mean(&x));
        assert!(norm(&common) > 1.0);
        for (i, node) in nodes.iter().enumerate() {
            let far = |name: &str, want: &[f64]| {
                let off = distance(&rows(&simulation, name)[i], want);
                assert!(off < 1e-11, "{scheme}, node {i}: {name} is off by {off:e}");
            };
            let own = node.grad_phi(&x[i]);
            assert!(distance(&own, &common) > 0.1, "nodes are not heterogeneous");
            far("theta", &node.theta_star(&x[i]));
            far("v", &node.v_star(&x[i]));
            far("s", &own);
            far("z", &own);
            far("y", if scheme == "gt" { &common } else { &own });
            far("d", &[0.0; 6]);
            far("h", &[0.0; 6]);
        }
    }
}

#[test]
fn at_the_end_of_a_run_v_and_theta_are_those_of_the_solution() {
    let bench = Bench::new(RING, &lopa("gt", "alpha = 0.015, beta = 0.9, lambda = 0.9"));
    let simulation = bench.run::<f64>(6000);
    let nodes = closed_forms(&bench);
    let x_star = quadratic::x_star(&nodes).unwrap();
    for (i, node) in nodes.iter().enumerate() {
        let off = |name: &str, want: &[f64]| distance(&rows(&simulation, name)[i], want);
        assert!(off("x", &x_star) < 1e-10);
        assert!(off("theta", &node.theta_star(&x_star)) < 1e-10);
        assert!(off("v", &node.v_star(&x_star)) < 1e-10);
    }
}

/// (|∇Φ(x̄)|, the root of the consensus error) where a method comes to rest.
fn rest(setup: &str, algorithm: &str, iterations: usize) -> (f64, f64) {
    let bench = Bench::new(setup, algorithm);
    let mut simulation = bench.run::<f64>(iterations);
    let before = rows(&simulation, "x");
    (0..100).for_each(|_| simulation.iterate());
    let moved = distance(&before.concat(), &rows(&simulation, "x").concat());
    assert!(moved < 1e-9, "{algorithm}: it still moves, by {moved:e} in 100 iterations");
    (stationarity(&bench, &simulation), spread(&rows(&simulation, "x")).sqrt())
}

/// Halving α halves the bias.
fn bias_is_of_order_alpha(algorithm: &dyn Fn(f64) -> String) {
    let at = |alpha: f64| rest(RING, &algorithm(alpha), 20_000);
    let ((g1, c1), (g2, c2)) = (at(0.008), at(0.004));
    assert!(g1 > 1e-3 && c1 > 1e-3, "there is no bias: {g1:e}, {c1:e}");
    for (what, ratio) in [("|∇Φ|", g1 / g2), ("consensus", c1 / c2)] {
        assert!((1.7..2.3).contains(&ratio), "{}: {what} shrinks by {ratio}", algorithm(0.0));
    }
}

// LoPA-LG: "the gradient errors are impacted by the heterogeneity" — step 4; theorem 1 has the
// term ϑ b² α² / m, which a constant α leaves there.
#[test]
fn local_gradients_stop_at_a_bias_of_order_alpha() {
    let steps = |alpha| format!("alpha = {alpha}, beta = 0.9, lambda = 0.9, gamma = 0.8, tau = 1");
    bias_is_of_order_alpha(&|alpha| lopa("lg", &steps(alpha)));
}

// MA-DSBO is also a local gradient method: table 1.
#[test]
fn ma_dsbo_stops_at_a_bias_of_order_alpha() {
    bias_is_of_order_alpha(&|alpha| {
        let steps = format!("alpha = {alpha}, beta = 0.9, lambda = 0.9, gamma = 0.8");
        format!("name = 'ma-dsbo', {steps}, hv_steps = 5, warm = true")
    });
}

// Momentum (9) and relaxation (10) change the path, not the limit: x = W x − α ∇Φ_i(x_i) both for
// LoPA-LG and for MA-DSBO, and its mean is a zero of mean ∇Φ_i(x_i).
#[test]
fn local_gradient_methods_rest_at_one_point() {
    let base = "alpha = 0.01, beta = 0.9, lambda = 0.9";
    let ends: Vec<Vec<Vec<f64>>> = [
        lopa("lg", &format!("{base}, gamma = 0.4, tau = 0.4")),
        lopa("lg", &format!("{base}, gamma = 1, tau = 1")),
        format!("name = 'ma-dsbo', {base}, gamma = 0.5, warm = true"),
    ]
    .iter()
    .map(|algorithm| rows(&Bench::new(RING, algorithm).run::<f64>(15_000), "x"))
    .collect();
    for other in &ends[1..] {
        assert!(distance(&ends[0].concat(), &other.concat()) < 1e-9);
    }
    let nodes = closed_forms(&Bench::new(RING, &lopa("lg", base)));
    let own: Vec<_> = nodes.iter().zip(&ends[0]).map(|(node, x)| node.grad_phi(x)).collect();
    assert!(norm(&mean(&own)) < 1e-9);
}

// With b² = 0 the heterogeneity terms of theorem 1 vanish: LoPA-LG is exact.
#[test]
fn local_gradients_are_exact_where_nodes_are_equal() {
    let setup = with(RING, "heterogeneity = 0.5", "heterogeneity = 0");
    let (grad, apart) = rest(&setup, &lopa("lg", STEPS), 6000);
    assert!(grad < 1e-10 && apart < 1e-15, "|∇Φ| = {grad:e}, apart by {apart:e}");
}

// "as the network spectral gap ρ increases (i.e., a decrease in network connectivity), both …
// exhibit a degradation in performance" — section 4.2; ρ in front of b² in theorem 1.
#[test]
fn worse_networks_leave_local_gradients_further_apart() {
    let mut last = (-1.0, 0.0);
    for graph in ["complete", "hypercube", "ring", "path"] {
        let setup = with(RING, "graph = 'ring'", &format!("graph = '{graph}'"));
        let algorithm = lopa("lg", "alpha = 0.005, beta = 0.9, lambda = 0.9, tau = 1");
        let rho = Bench::new(&setup, &algorithm).world.analysis.rho;
        let (_, apart) = rest(&setup, &algorithm, 15_000);
        assert!(rho > last.0 && apart > 1.2 * last.1, "{graph}: {:?}", (rho, apart, last));
        last = (rho, apart);
    }
}

// Nodes that see the same and draw the same have nothing to agree on: they never part.
#[test]
fn equal_nodes_stay_equal_to_the_bit() {
    for algorithm in
        [lopa("gt", STEPS), lopa("lg", STEPS), format!("name = 'spdb', {STEPS}, consensus = 'gt'")]
    {
        let bench = Bench::new(NOISY, &algorithm);
        let node = |_| bench.node::<f32>(0, bench.parts().remove(0));
        let mut simulation = Simulation::new((0..8).map(node).collect(), &bench.world.mixing, None);
        for _ in 0..100 {
            simulation.iterate();
            for name in ["x", "y", "theta"] {
                let all = rows(&simulation, name);
                assert!(all.iter().all(|row| *row == all[0]), "{algorithm}: {name} differs");
            }
        }
        assert!(norm(&rows(&simulation, "x")[0]) > 0.1);
    }
}

// "let us consider the case where we exclude the recursion (9), i.e., γ = 1" — section 3.4; and
// τ = 1 is (10) without relaxation.
#[test]
fn momentum_and_relaxation_can_be_switched_off() {
    let bench = Bench::new(RING, &lopa("gt", &format!("{STEPS}, gamma = 1, tau = 1")));
    let w = dense(&bench.world.mixing);
    let mut simulation = bench.start::<f64>();
    for _ in 0..2500 {
        let [x, y, s] = ["x", "y", "s"].map(|name| rows(&simulation, name));
        simulation.iterate();
        assert_eq!(rows(&simulation, "z"), s, "z is the last s");
        for (i, x_new) in rows(&simulation, "x").iter().enumerate() {
            let mixed: Vec<f64> =
                (0..5).map(|j| (0..8).map(|l| w[i][l] * x[l][j]).sum::<f64>()).collect();
            let want: Vec<f64> = mixed.iter().zip(&y[i]).map(|(wx, y)| wx - 0.02 * y).collect();
            assert!(distance(x_new, &want) < 1e-12);
        }
    }
    let at = stationarity(&bench, &simulation);
    assert!(at < 1e-10, "|∇Φ| = {at:e}");
}

/// Nodes at θ*(x), v*(x) that hardly move, so that s and z contain only noise; returns the mean of
/// |z̄ − ∇Φ(x)|² over the iterations.
fn noise_of_z(nodes: usize, gamma: f64) -> f64 {
    let setup =
        with(NOISY, "nodes = 8, graph = 'ring'", &format!("nodes = {nodes}, graph = 'complete'"));
    let steps = format!("alpha = 1e-12, beta = 1e-12, lambda = 1e-12, gamma = {gamma}");
    let bench = Bench::new(&setup, &lopa("lg", &steps));
    let exact = closed_forms(&bench).remove(0);
    let x = vec![0.0; 5];
    let at = [x.clone(), exact.theta_star(&x), exact.v_star(&x)];
    // The same data at every node, but samples of their own.
    let node = |i| bench.node_from(i, bench.parts().remove(0), at.clone(), &[]);
    let nodes = (0..nodes).map(node).collect();
    let mut simulation = Simulation::<f64>::new(nodes, &bench.world.mixing, None);
    let (iterations, want) = (3000, exact.grad_phi(&x));
    let mut sum = 0.0;
    for _ in 0..iterations {
        simulation.iterate();
        sum += distance(&mean(&rows(&simulation, "z")), &want).powi(2);
    }
    sum / iterations as f64
}

// "The gradient momentum step helps control the order of the sampling variance by maintaining a
// moving average of the past approximated hypergradients" — section 2.2: by γ / (2 − γ).
#[test]
fn momentum_lowers_the_variance() {
    let ratio = noise_of_z(1, 0.2) / noise_of_z(1, 1.0);
    assert!((0.6..1.5).contains(&(ratio / (0.2 / 1.8))), "{ratio}");
}

// "the term σ_c induced by the stochastic gradients with respect to the out-level variable x
// decays at order O(1/√(mK))": variance 1/m — remark on linear speed-up.
#[test]
fn nodes_share_the_noise_of_x() {
    let ratio = noise_of_z(1, 0.4) / noise_of_z(16, 0.4);
    assert!((11.0..23.0).contains(&ratio), "{ratio}");
}

// Theorems 1 and 2: the part of |∇Φ|² due to noise is of order α, if β, λ and γ are O(α).
#[test]
fn the_floor_of_the_noise_falls_with_the_step_sizes() {
    let floor = |scheme: &str, scale: f64| {
        let (alpha, beta, gamma) = (0.02 * scale, 0.4 * scale, 0.4 * scale);
        let steps = format!("alpha = {alpha}, beta = {beta}, lambda = {beta}, gamma = {gamma}");
        let bench = Bench::new(NOISY, &lopa(scheme, &steps));
        let mut simulation = bench.run::<f64>((3000.0 / scale) as usize);
        let nodes = closed_forms(&bench);
        let measure = |_| {
            (0..20).for_each(|_| simulation.iterate());
            norm(&grad_phi(&nodes, &mean(&rows(&simulation, "x")))).powi(2)
        };
        (0..300).map(measure).sum::<f64>() / 300.0
    };
    for scheme in ["gt", "lg"] {
        let ratio = floor(scheme, 1.0) / floor(scheme, 0.25);
        assert!(ratio > 2.0, "{scheme}: a quarter of the steps lowers the floor by {ratio}");
    }
}

/// H⁻¹b of a node by SPDB's loop, at the start: (v, H, b).
fn inverse(
    inverse: &str,
    q: usize,
    truncation: Option<usize>,
) -> (Vec<f64>, [[f64; 6]; 6], Vec<f64>) {
    let algorithm = format!(
        "name = 'spdb', alpha = 0.1, beta = 0.1, lambda = 1, consensus = 'gt', hv_steps = {q}, \
         inverse = '{inverse}'"
    );
    let bench = Bench::new(RING, &algorithm);
    let (mut part, all) = (bench.parts::<f64>().remove(0), [0]);
    let (x, theta) = ([0.0; 5], [0.0; 6]);
    let at = lopa::problem::At { x: &x, theta: &theta };
    let mut b = vec![0.0; 6];
    part.grad_theta_f(at, &all, &mut b);
    let hessian = std::array::from_fn(|j| {
        let mut column = [0.0; 6];
        let axis: [f64; 6] = std::array::from_fn(|i| if i == j { 1.0 } else { 0.0 });
        part.hess_g(at, &all, &axis, &mut column);
        column
    });
    let start = [x.to_vec(), theta.to_vec(), theta.to_vec()];
    let scripted: Vec<usize> = truncation.into_iter().collect();
    let node = bench.node_from(0, part, start, &scripted);
    (variable(&node, "v").to_vec(), hessian, b)
}

fn times(h: &[[f64; 6]; 6], v: &[f64]) -> Vec<f64> {
    h.iter().map(|row| row.iter().zip(v).map(|(h, v)| h * v).sum()).collect()
}

/// (I − H)^q b, with λ = 1 = 1/L.
fn power(h: &[[f64; 6]; 6], b: &[f64], q: usize) -> Vec<f64> {
    (0..q).fold(b.to_vec(), |r, _| minus(&r, &times(h, &r)))
}

/// H⁻¹b, by a series long enough.
fn solution(h: &[[f64; 6]; 6], b: &[f64]) -> Vec<f64> {
    (0..200).fold(vec![0.0; 6], |v, _| minus(&v, &minus(&times(h, &v), b)))
}

// An erratum of remark 1, (13): "Qλ Π_{t=0}^{Q} (I − λ∇²g) ≈ [∇²g]⁻¹" tends to zero. The series
// needs a random length: its mean is then the sum of the first Q terms.
#[test]
fn the_neumann_series_needs_its_random_length() {
    let q = 8;
    let each: Vec<Vec<f64>> = (0..q).map(|t| inverse("neumann", q, Some(t)).0).collect();
    let (_, h, b) = inverse("neumann", q, Some(0));
    let terms: Vec<Vec<f64>> = (0..q).map(|t| power(&h, &b, t)).collect();
    let partial: Vec<f64> = mean(&terms).iter().map(|t| t * q as f64).collect();
    assert!(distance(&mean(&each), &partial) < 1e-13 * norm(&partial));

    let exact = solution(&h, &b);
    let printed =
        |q: usize| -> Vec<f64> { power(&h, &b, q + 1).iter().map(|r| q as f64 * r).collect() };
    assert!(norm(&printed(30)) < 1e-6 * norm(&exact), "as printed, it would be an inverse");
    assert!(distance(&partial, &exact) < 0.02 * norm(&exact));
}

#[test]
fn the_random_length_is_uniform() {
    let bench = Bench::new(RING, &format!("name = 'spdb', {STEPS}"));
    let mut oracle = bench.nodes::<f64>().remove(3).oracle;
    let (q, draws) = (10, 20_000);
    let mut seen = vec![0.0f64; q];
    for k in 0..draws {
        oracle.begin(k);
        seen[oracle.truncation(q)] += 1.0;
    }
    let expected = draws as f64 / q as f64;
    let chi_square: f64 = seen.iter().map(|n| (n - expected).powi(2) / expected).sum();
    // Nine degrees of freedom: 33 is passed once in ten thousand times.
    assert!(chi_square < 33.0, "{seen:?}");
}

// "‖∇Φ − ∇̃Φ‖² ≤ … (1 − μ_g / L_g)^Q" — section 3.4: the error of SHIA is (I − H/L)^Q H⁻¹b. As
// printed in remark 1, its products start one too late: then H⁻¹b − λb is what it tends to.
#[test]
fn the_summed_series_leaves_a_bias_that_falls_geometrically() {
    for q in [1, 2, 5, 10, 30] {
        let (v, h, b) = inverse("shia", q, None);
        let exact = solution(&h, &b);
        let left = minus(&exact, &v);
        assert!(distance(&left, &power(&h, &exact, q)) < 1e-13 * norm(&exact), "Q = {q}");
        // μ = 1/2 and L = 1 here.
        assert!(norm(&left) <= 0.5f64.powi(q as i32) * norm(&exact) + 1e-13);
        let printed: Vec<f64> = mean(&(1..=200).map(|t| power(&h, &b, t)).collect::<Vec<_>>());
        let printed: Vec<f64> = printed.iter().map(|t| t * 200.0).collect();
        assert!(distance(&minus(&exact, &printed), &b) < 1e-12 * norm(&b));
    }
}

fn spdb(consensus: &str, rest: &str) -> String {
    format!(
        "name = 'spdb', alpha = 0.05, beta = 0.9, lambda = 1, consensus = '{consensus}', {rest}"
    )
}

// M is a multiplier of W x = x, hence orthogonal to consensus; and eliminating it gives
// x^{k+2} = 2 W x^{k+1} − W x^k − α (u^{k+1} − u^k).
#[test]
fn the_dual_of_spdb_sums_to_zero_and_can_be_eliminated() {
    let bench = Bench::new(NOISY, &spdb("al", "hv_steps = 4"));
    let w = dense(&bench.world.mixing);
    let mix =
        |x: &[Vec<f64>], i: usize, j: usize| -> f64 { (0..8).map(|l| w[i][l] * x[l][j]).sum() };
    let mut simulation = bench.start::<f64>();
    let (mut x, mut u) = (vec![rows(&simulation, "x")], Vec::new());
    for k in 0..100usize {
        simulation.iterate();
        x.push(rows(&simulation, "x"));
        u.push(rows(&simulation, "u"));
        let dual = rows(&simulation, "M");
        assert!(k == 0 || largest(&dual.concat()) > 1e-3);
        assert!(largest(&mean(&dual)) < 1e-13 * largest(&dual.concat()).max(1.0));
        let Some(before) = k.checked_sub(1) else { continue };
        for (i, j) in (0..8).flat_map(|i| (0..5).map(move |j| (i, j))) {
            let mixed = 2.0 * mix(&x[k], i, j) - mix(&x[before], i, j);
            let want = mixed - 0.05 * (u[k][i][j] - u[before][i][j]);
            assert!((x[k + 1][i][j] - want).abs() < 1e-12, "k = {k}, x[{i}][{j}]");
        }
    }
}

#[test]
fn spdb_is_exact_but_for_its_series() {
    for consensus in ["al", "gt"] {
        let algorithm = spdb(consensus, "inverse = 'shia', hv_steps = 30");
        let (grad, apart) = rest(RING, &algorithm, 4000);
        assert!((1e-12..1e-7).contains(&grad), "{consensus}: |∇Φ| = {grad:e}");
        assert!(apart < 1e-10, "{consensus}: apart by {apart:e}");
    }
}

// Lian et al., 2017: DGD finds one θ for all nodes, up to a bias of order α.
#[test]
fn dgd_comes_near_the_common_theta() {
    let bench = Bench::new(RING, "name = 'dgd', alpha = 0.1");
    // Σ_i ∇_θ g_i(0, θ) = 0 by gradient descent on the sum.
    let mut parts = bench.parts::<f64>();
    let mut common = vec![0.0; 6];
    for _ in 0..2000 {
        let gradient = |part: &mut Box<dyn lopa::problem::Bilevel<f64>>| {
            let mut out = vec![0.0; 6];
            part.grad_theta_g(lopa::problem::At { x: &[0.0; 5], theta: &common }, &[0], &mut out);
            out
        };
        let gradients: Vec<_> = parts.iter_mut().map(gradient).collect();
        common = minus(&common, &mean(&gradients));
    }
    let away = |alpha: f64| {
        let bench = Bench::new(RING, &format!("name = 'dgd', alpha = {alpha}"));
        let theta = rows(&bench.run::<f64>(8000), "theta");
        (distance(&mean(&theta), &common), spread(&theta).sqrt())
    };
    let ((m1, c1), (m2, c2)) = (away(0.02), away(0.01));
    assert!(c1 < 0.5 && m1 < 0.1 * norm(&common), "{m1} and {c1} are not near");
    assert!((1.7..2.3).contains(&(m1 / m2)) && (1.7..2.3).contains(&(c1 / c2)));
}
