//! Constants derived from those of the assumptions: Propositions 1 and 2, and the proofs' symbols.

use serde::Serialize;

use super::Constants;

/// The constants in which the theorems are stated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Derived {
    /// κ = max{L_{f,x}, L_{f,θ}, L_{g,θ}, L_{g,xθ}, L_{g,θθ}} / μ_g, below (15).
    pub kappa: f64,
    /// L_θ* = C_{g,xθ} / μ_g, (15).
    pub l_theta_star: f64,
    /// L_v = L_{f,θ} / μ_g + C_{f,θ} L_{g,θθ} / μ_g², (15).
    pub l_v: f64,
    /// L_v* = L_v (1 + L_θ*), (15).
    pub l_v_star: f64,
    /// L_f = L_{f,x} + C_{g,xθ} L_v + C_{f,θ} L_{g,xθ} / μ_g, (15).
    pub l_f: f64,
    /// L = L_f (1 + L_θ*), the smoothness of Φ, (15).
    pub l: f64,
    /// M = C_{f,θ} / μ_g ≥ ‖v_i*‖, (16).
    pub m: f64,
    /// L_{fg,x} = 2 L_{f,x}² + 4 M² L_{g,xθ}², (28).
    pub l_fg_x: f64,
    /// L_{fg,θ} = 2 L_{f,θ}² + 4 M² L_{g,θθ}², (30).
    pub l_fg_theta: f64,
    /// ω_θ = μ_g L_{g,θ} / (2 (μ_g + L_{g,θ})), (32).
    pub omega_theta: f64,
    /// a = L_{fg,x} + 32 C_{g,xθ}² L_{fg,θ} / μ_g², the first factor of φ.
    pub a: f64,
    /// φ = a (1 + 4 max{L_{g,θ}, C_{g,xθ}}² / ω_θ²), (54).
    ///
    /// The paper has L_{g,θ} alone, but the proof of (32) varies x in ∇_θ g, which C_{g,xθ} bounds.
    pub phi: f64,
}

impl Derived {
    /// Propositions 1 and 2, (54).
    pub fn of(c: &Constants) -> Derived {
        let mu = c.mu_g;
        let lipschitz = [c.l_f_x, c.l_f_theta, c.l_g_theta, c.l_g_x_theta, c.l_g_theta_theta];
        let l_theta_star = c.c_g_x_theta / mu;
        let l_v = c.l_f_theta / mu + c.c_f_theta * c.l_g_theta_theta / mu.powi(2);
        let l_f = c.l_f_x + c.c_g_x_theta * l_v + c.c_f_theta * c.l_g_x_theta / mu;
        let m = c.c_f_theta / mu;
        let l_fg_x = 2.0 * c.l_f_x.powi(2) + 4.0 * (m * c.l_g_x_theta).powi(2);
        let l_fg_theta = 2.0 * c.l_f_theta.powi(2) + 4.0 * (m * c.l_g_theta_theta).powi(2);
        let omega_theta = mu * c.l_g_theta / (2.0 * (mu + c.l_g_theta));
        let a = l_fg_x + 32.0 * c.c_g_x_theta.powi(2) * l_fg_theta / mu.powi(2);
        Derived {
            kappa: lipschitz.into_iter().fold(0.0, f64::max) / mu,
            l_theta_star,
            l_v,
            l_v_star: l_v * (1.0 + l_theta_star),
            l_f,
            l: l_f * (1.0 + l_theta_star),
            m,
            l_fg_x,
            l_fg_theta,
            omega_theta,
            a,
            phi: a * (1.0 + 4.0 * (x_slope(c) / omega_theta).powi(2)),
        }
    }

    /// Every constant with its symbol and formula.
    pub fn entries(&self) -> Vec<(&'static str, &'static str, f64)> {
        vec![
            ("kappa", "max of the Lipschitz constants / mu_g", self.kappa),
            ("L_theta*", "C_g,xtheta / mu_g, (15)", self.l_theta_star),
            ("L_v", "L_f,theta / mu_g + C_f,theta L_g,thetatheta / mu_g^2, (15)", self.l_v),
            ("L_v*", "L_v (1 + L_theta*), (15)", self.l_v_star),
            ("L_f", "L_f,x + C_g,xtheta L_v + C_f,theta L_g,xtheta / mu_g, (15)", self.l_f),
            ("L", "L_f (1 + L_theta*), smoothness of Phi, (15)", self.l),
            ("M", "C_f,theta / mu_g, size of v_i*, (16)", self.m),
            ("L_fg,x", "2 L_f,x^2 + 4 M^2 L_g,xtheta^2, (28)", self.l_fg_x),
            ("L_fg,theta", "2 L_f,theta^2 + 4 M^2 L_g,thetatheta^2, (30)", self.l_fg_theta),
            ("omega_theta", "mu_g L_g,theta / (2 (mu_g + L_g,theta)), (32)", self.omega_theta),
            (
                "phi",
                "(L_fg,x + 32 C_g,xtheta^2 L_fg,theta / mu_g^2)(1 + 4 max(L_g,theta, C_g,xtheta)^2 / omega_theta^2), (54)",
                self.phi,
            ),
        ]
    }
}

/// The Lipschitz constant of ∇_θ g in (32): C_{g,xθ} in x and L_{g,θ} in θ; the paper has only
/// L_{g,θ}.
pub(super) fn x_slope(c: &Constants) -> f64 {
    c.l_g_theta.max(c.c_g_x_theta)
}
