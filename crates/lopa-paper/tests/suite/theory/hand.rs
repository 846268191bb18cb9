//! Two nodes with n = p = 1, computed by hand.
//!
//! ```text
//! node 0   g = θ² − θx        f = ½(θ − 1)² + ½x²        θ* = x/2   v* = (x/2 − 1)/2   ∇Φ_0 = 1.25x − 0.5
//! node 1   g = 2θ² − 2θx      f = ½θ² + ½x² − x          θ* = x/2   v* = x/8           ∇Φ_1 = 1.25x − 1
//! ```

use lopa_paper::theory::bound::{self, Start};
use lopa_paper::theory::conditions::conditions;
use lopa_paper::theory::measure::heterogeneity::{c_1, c_2, lemma_1};
use lopa_paper::theory::steps::admissible;
use lopa_paper::theory::{Constants, Derived, Origin, Scheme, Steps, Weights};
use lopa_study::practical::snapshot::Errors;
use serde_json::{Value, json};

use super::Quadratics;

fn data() -> Value {
    json!({
        "A": [[[2.0]], [[4.0]]], "B": [[[1.0]], [[2.0]]], "c": [[0.0], [0.0]],
        "D": [[[1.0]], [[1.0]]], "e": [[1.0], [0.0]], "R": [[[1.0]], [[1.0]]], "q": [[0.0], [1.0]]
    })
}

const SETUP: &str = "
    run = { iterations = 50 }
    algorithm = [
        { name = 'lopa-gt', alpha = 0.01, beta = 0.2, lambda = 0.3, gamma = 0.4, tau = 0.5 },
        { name = 'lopa-lg', alpha = 0.01, beta = 0.2, lambda = 0.3, gamma = 0.4, tau = 0.5 },
    ]";

const STEPS: Steps = Steps { alpha: 0.01, beta: 0.2, lambda: 0.3, gamma: 0.4, tau: 0.5 };

fn near(got: f64, want: f64) {
    assert!((got - want).abs() <= 1e-9 * want.abs().max(1e-3), "{got} is not {want}");
}

/// The constants as they are on paper; C_{f,θ}, which depends on the region, is 1.5.
fn constants() -> Constants {
    Constants {
        nodes: 2,
        rho: 0.25,
        mu_g: 2.0,
        l_f_x: 1.0,
        l_f_theta: 1.0,
        l_g_theta: 4.0,
        l_g_x_theta: 0.0,
        l_g_theta_theta: 0.0,
        c_f_theta: 1.5,
        c_g_x_theta: 2.0,
        sigma_f_x: 0.0,
        sigma_f_theta: 0.0,
        sigma_g_theta: 0.0,
        sigma_g_x_theta: 0.0,
        sigma_g_theta_theta: 0.0,
        b_f: 0.5f64.sqrt(),
        b_g: 2.0,
        b: 0.125f64.sqrt(),
    }
}

#[test]
fn constants_of_two_nodes() {
    let quadratics = Quadratics::new(2, &data(), 0.0, SETUP);
    let study = quadratics.study(50);
    let (got, want) = (study.values(), constants());
    for ((symbol, _, got), (_, _, want)) in got.entries().iter().zip(want.entries()) {
        match *symbol {
            "C_f,theta" => {
                // |x/2 − 1| at node 0, over the ball around x = 0.
                near(**got, 1.0 + study.region.radius / 2.0);
            }
            _ => assert!((**got - want).abs() < 1e-9, "{symbol}: {got} is not {want}"),
        }
    }
    assert_eq!(study.constants.mu_g.origin, Origin::Exact);
    assert_eq!(study.constants.c_f_theta.origin, Origin::Bound);
    // Φ = 0.625 x² − 0.75 x + 0.25 has its minimum at 0.6.
    near(study.phi_low.value, 0.025);
    near(study.cases[0].course.seen[0].1.grad_phi_sq(), 0.75 * 0.75);
}

#[test]
fn derived_constants() {
    let d = Derived::of(&constants());
    near(d.kappa, 2.0);
    near(d.l_theta_star, 1.0);
    near(d.l_v, 0.5);
    near(d.l_v_star, 1.0);
    near(d.l_f, 2.0);
    near(d.l, 4.0);
    near(d.m, 0.75);
    near(d.l_fg_x, 2.0);
    near(d.l_fg_theta, 2.0);
    near(d.omega_theta, 2.0 / 3.0);
    near(d.a, 66.0);
    near(d.phi, 9570.0);
    // With curvature that varies: L_v = 1/2 + 1.5 · 3/4, L_fg,θ = 2 + 4 · 0.5625 · 9.
    let bent = Derived::of(&Constants { l_g_theta_theta: 3.0, l_g_x_theta: 2.0, ..constants() });
    near(bent.l_v, 1.625);
    near(bent.l_f, 1.0 + 2.0 * 1.625 + 1.5);
    near(bent.l_fg_theta, 2.0 + 20.25);
    near(bent.l_fg_x, 2.0 + 9.0);
    // If the Jacobian is larger than the Hessian, it enters φ.
    let wide = Derived::of(&Constants { c_g_x_theta: 8.0, ..constants() });
    near(wide.phi, (2.0 + 32.0 * 64.0 * 2.0 / 4.0) * (1.0 + 4.0 * 64.0 / (4.0 / 9.0)));
}

#[test]
fn weights_of_both_schemes() {
    let (c, d) = (constants(), Derived::of(&constants()));
    let lg = Weights::of(Scheme::LocalGradient, &c, &d, &STEPS);
    for (got, want) in
        lg.list().into_iter().zip([1.0, 0.16 / 0.6, 2.475, 0.00625, 0.5104, 510.4, 0.0])
    {
        near(got, want);
    }
    let gt = Weights::of(Scheme::GradientTracking, &c, &d, &STEPS);
    near(gt.d4, 64.0 * 9570.0 * 0.5 * 1e-6 * 0.4 / 0.75f64.powi(4));
    near(gt.d5, 510.4);
    near(gt.d6, 16.0 * 9570.0 * 0.5 * 1e-6 / 0.75f64.powi(3));
}

#[test]
fn admissible_steps() {
    let (c, d) = (constants(), Derived::of(&constants()));
    let lg = admissible(Scheme::LocalGradient, &c, &d, 0.5);
    near(lg.u1, 0.25);
    near(lg.u2, 0.75 / (12.0 * 9570.0f64.sqrt()));
    near(lg.lambda.slope, 24.0);
    near(lg.lambda.high, 1.0 / 3.0);
    near(lg.beta.slope, 4.5 * 66.0f64.sqrt());
    near(lg.gamma.slope, 8.0);
    near(lg.gamma.high, 1.0);
    near(lg.u3, (1.0 / 3.0) / (9.0 * 66.0f64.sqrt()));
    assert_eq!((lg.u, lg.active), (lg.u2, "u2"));
    let gt = admissible(Scheme::GradientTracking, &c, &d, 0.5);
    near(gt.gamma_alpha, 0.5625 / (24.0 * 9570.0f64.sqrt()));
    near(gt.u2, (0.5625 / (24.0 * 9570.0f64.sqrt()) / 16.0).sqrt());
    // Noise lowers the upper ends: λ ≤ μ/(24 σ_g,θθ²), γ ≤ C²/σ_g,xθ².
    let noisy = Constants { sigma_g_theta_theta: 2.0, sigma_g_x_theta: 4.0, ..c };
    let lg = admissible(Scheme::LocalGradient, &noisy, &d, 0.5);
    near(lg.lambda.high, 2.0 / 96.0);
    near(lg.gamma.high, 0.25);
    // The file's α = 0.01 is above u and violates these conditions.
    let broken: Vec<_> = conditions(Scheme::LocalGradient, &c, &d, &STEPS)
        .into_iter()
        .filter(|condition| !condition.holds())
        .map(|condition| condition.name)
        .collect();
    // 24 · 9570 · 1e-4 / 0.5625 = 40.8 > 1/4; 4 C² and L_fg,x times 2 γ d_4 = 0.408 are above
    // d_1 μ_g λ / 2 = 0.08 and d_2 ω_θ β = 0.33, but not above d_5 τ (1 − ρ) / 4 = 47.9.
    assert_eq!(broken, ["gradient", "Hv errors", "inner errors"]);
}

#[test]
fn the_bound_of_both_theorems() {
    let c = Constants {
        sigma_f_x: 0.1,
        sigma_f_theta: 0.2,
        sigma_g_theta: 0.3,
        sigma_g_x_theta: 0.4,
        sigma_g_theta_theta: 0.5,
        ..constants()
    };
    let d = Derived::of(&c);
    let errors = Errors {
        objective: 0.5,
        hv: 2.0,
        inner: 3.0,
        average: 4.0,
        variance: 5.0,
        consensus: 0.0,
        gradient: 7.0,
    };
    let start = Start { errors, b_sq: 0.125, reused: false };
    let lg = bound::bound(Scheme::LocalGradient, &c, &d, &STEPS, &start, 99);
    let v0 = 0.5 + 2.0 * 0.16 / 0.6 + 3.0 * 2.475 + 4.0 * 0.00625 + 5.0 * 0.5104;
    near(lg.transient, 4.0 * v0 / (0.005 * 100.0));
    near(lg.heterogeneity, 4.0 * 24.0 * 9570.0 / 0.5625 * 1e-4 * 0.125 / 2.0);
    let outer = (0.00625 / 2.0 + 0.5104) / 0.5 * 1600.0 * (0.01 + 2.0 * 0.5625 * 0.16);
    let hv = 2.0 * (0.16 / 0.6) / 0.5 * 900.0 * (0.04 + 2.0 * 0.5625 * 0.25);
    let inner = 2.0 * 2.475 / 0.5 * 400.0 * 0.09;
    near(lg.variance, 0.04 * (outer + hv + inner));
    let gt = bound::bound(Scheme::GradientTracking, &c, &d, &STEPS, &start, 99);
    assert_eq!(gt.heterogeneity, 0.0);
    let w = Weights::of(Scheme::GradientTracking, &c, &d, &STEPS);
    let v0 = 0.5 + 2.0 * w.d1 + 3.0 * w.d2 + 4.0 * w.d3 + 5.0 * w.d4 + 7.0 * w.d6;
    near(gt.transient, 2.0 * v0 / 0.5);
    // σ_p and σ_c of (72): square roots of the same parts.
    let p = bound::sigma_p(Scheme::LocalGradient, &c, &d, &STEPS);
    let by_hand = (0.16 / 0.6f64 / 0.5).sqrt() * (0.2 + 2.0 * 0.75 * 0.5) * 30.0
        + (2.475f64 / 0.5).sqrt() * 0.3 * 20.0;
    near(p, by_hand);
    let sigma_c = bound::sigma_c(Scheme::LocalGradient, &c, &d, &STEPS);
    near(sigma_c, 0.0125f64.sqrt() * (0.1 + 2.0 * 0.75 * 0.4) * 40.0);
    // A start that reuses its first sample has a larger V⁰.
    let again = Start { reused: true, ..start };
    let more = again.v0(Scheme::LocalGradient, &c, &d, &STEPS);
    near(more - start.v0(Scheme::LocalGradient, &c, &d, &STEPS), 0.8 * (0.025 + 5.0 * 0.5104));
}

#[test]
fn lemma_1_of_two_nodes() {
    let c = constants();
    near(c_1(&c), 8.0);
    near(c_2(&c), 4.0 * (4.0 * 2.25 * 4.0 / 16.0 + 4.0 * 2.25 / 4.0 + 0.25 + 4.0 / 16.0));
    near(lemma_1(&c), 8.0 * 0.5 + c_2(&c) * 4.0);
    assert!(c.b.powi(2) <= lemma_1(&c));
}
