//! The constants of Assumptions 1 to 5 and their origins.

use serde::Serialize;

/// How far a constant can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The smallest constant that the assumption allows, up to rounding.
    Exact,
    /// Satisfies the assumption over the stated region; may be larger than needed.
    Bound,
    /// The largest value seen at sampled points: a lower estimate.
    Estimate,
}

impl Origin {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Exact => "exact",
            Origin::Bound => "bound",
            Origin::Estimate => "estimate",
        }
    }
}

/// A constant and its origin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Known {
    /// Its value.
    pub value: f64,
    /// How far it can be trusted.
    pub origin: Origin,
    /// How it was found.
    pub how: String,
}

impl Known {
    /// An exact constant.
    pub fn exact(value: f64, how: impl Into<String>) -> Known {
        Known { value, origin: Origin::Exact, how: how.into() }
    }

    /// A bound on the constant.
    pub fn bound(value: f64, how: impl Into<String>) -> Known {
        Known { value, origin: Origin::Bound, how: how.into() }
    }

    /// An estimate from sampled points.
    pub fn estimate(value: f64, how: impl Into<String>) -> Known {
        Known { value, origin: Origin::Estimate, how: how.into() }
    }
}

macro_rules! constants {
    ($($(#[$doc:meta])* $field:ident: $symbol:literal, $about:literal;)*) => {
        /// The constants of Assumptions 1 to 5: numbers, or (`Constants<Known>`) with origins.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize)]
        pub struct Constants<V = f64> {
            /// m, the number of nodes.
            pub nodes: usize,
            $($(#[$doc])* pub $field: V,)*
        }

        impl<V> Constants<V> {
            /// Every constant with its symbol and meaning.
            pub fn entries(&self) -> Vec<(&'static str, &'static str, &V)> {
                vec![$(($symbol, $about, &self.$field),)*]
            }

            /// Combines pairs of constants by `f`; keeps the nodes of `self`.
            pub fn zip<U>(&self, other: &Constants<V>, f: impl Fn(&V, &V) -> U) -> Constants<U> {
                Constants { nodes: self.nodes, $($field: f(&self.$field, &other.$field),)* }
            }

            /// Applies `f` to every constant.
            pub fn map<U>(&self, f: impl Fn(&V) -> U) -> Constants<U> {
                Constants { nodes: self.nodes, $($field: f(&self.$field),)* }
            }
        }
    };
}

constants! {
    /// ρ = ‖W − 11ᵀ/m‖² (Assumption 1).
    rho: "rho", "|W - 11'/m|^2, Assumption 1";
    /// μ_g: g_i(x, ·) is strongly convex (Assumption 3 i).
    mu_g: "mu_g", "strong convexity of g_i in theta, Assumption 3";
    /// L_{f,x}: ∇_x f_i is Lipschitz in (x, θ) (Assumption 2 ii).
    l_f_x: "L_f,x", "Lipschitz constant of grad_x f_i, Assumption 2";
    /// L_{f,θ}: ∇_θ f_i is Lipschitz in (x, θ) (Assumption 2 ii).
    l_f_theta: "L_f,theta", "Lipschitz constant of grad_theta f_i, Assumption 2";
    /// L_{g,θ}: ∇_θ g_i is Lipschitz in θ (Assumption 3 ii).
    l_g_theta: "L_g,theta", "largest curvature of g_i in theta, Assumption 3";
    /// L_{g,xθ}: ∇²_xθ g_i is Lipschitz in (x, θ) (Assumption 3 ii).
    l_g_x_theta: "L_g,xtheta", "Lipschitz constant of the Jacobian of g_i, Assumption 3";
    /// L_{g,θθ}: ∇²_θθ g_i is Lipschitz in (x, θ) (Assumption 3 ii).
    l_g_theta_theta: "L_g,thetatheta", "Lipschitz constant of the Hessian of g_i, Assumption 3";
    /// C_{f,θ} ≥ ‖∇_θ f_i(x, θ_i*(x))‖ (Assumption 2 iii).
    c_f_theta: "C_f,theta", "size of grad_theta f_i at theta_i*(x), Assumption 2";
    /// C_{g,xθ} ≥ ‖∇²_xθ g_i‖ (Assumption 3 iii).
    c_g_x_theta: "C_g,xtheta", "size of the Jacobian of g_i, Assumption 3";
    /// σ_{f,x} of a minibatch (Assumption 5).
    sigma_f_x: "sigma_f,x", "sampling error of grad_x f_i, Assumption 5";
    /// σ_{f,θ} of a minibatch (Assumption 5).
    sigma_f_theta: "sigma_f,theta", "sampling error of grad_theta f_i, Assumption 5";
    /// σ_{g,θ} of a minibatch (Assumption 5).
    sigma_g_theta: "sigma_g,theta", "sampling error of grad_theta g_i, Assumption 5";
    /// σ_{g,xθ} of a minibatch (Assumption 5).
    sigma_g_x_theta: "sigma_g,xtheta", "sampling error of the Jacobian of g_i, Assumption 5";
    /// σ_{g,θθ} of a minibatch (Assumption 5).
    sigma_g_theta_theta: "sigma_g,thetatheta", "sampling error of the Hessian of g_i, Assumption 5";
    /// b_f (Assumption 4 i).
    b_f: "b_f", "how far the outer gradients of the nodes differ, Assumption 4";
    /// b_g (Assumption 4 ii and iii).
    b_g: "b_g", "how far the inner derivatives of the nodes differ, Assumption 4";
    /// b with Σ_i ‖∇Φ_i − ∇Φ‖² ≤ b², measured directly, not through Lemma 1.
    b: "b", "(sum_i |grad Phi_i - grad Phi|^2)^1/2, what Lemma 1 bounds";
}

impl Constants<Known> {
    /// The numbers alone.
    pub fn values(&self) -> Constants {
        self.map(|known| known.value)
    }

    /// The least trustworthy origin among them.
    pub fn weakest(&self) -> Origin {
        self.entries().iter().map(|(_, _, known)| known.origin).max().unwrap_or(Origin::Exact)
    }
}

impl Constants {
    /// Whether every derivative is evaluated without sampling error.
    pub fn deterministic(&self) -> bool {
        let Constants { sigma_f_x, sigma_f_theta, sigma_g_theta, .. } = *self;
        let Constants { sigma_g_x_theta, sigma_g_theta_theta, .. } = *self;
        [sigma_f_x, sigma_f_theta, sigma_g_theta, sigma_g_x_theta, sigma_g_theta_theta] == [0.0; 5]
    }

    /// The spectral gap 1 − ρ.
    pub fn gap(&self) -> f64 {
        1.0 - self.rho
    }
}
