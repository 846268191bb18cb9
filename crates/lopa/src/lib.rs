//! Distributed stochastic bilevel optimisation with personal inner problems.
//!
//! m nodes, each with its own data, together find a shared x, while each keeps a personal θ_i,
//! with no server in the middle:
//!
//! ```text
//! (1)  min_x Φ(x) = 1/m Σ_i f_i(x, θ_i*(x)),   θ_i*(x) = argmin_θ g_i(x, θ)
//! ```
//!
//! A [problem] is m parts, one a node, each giving five derivatives. An
//! [algorithm](algorithms) is one node's variables and one step; it says which vectors it shares
//! and is handed their weighted neighbour sum. An [engine] moves those vectors. A
//! [trace] is what came out. Everything a user picks is picked by name from a
//! [registry].
//!
//! | paper | code | what |
//! |---|---|---|
//! | m, i, j | `nodes`, `i`, `j` | nodes, counted from 0 |
//! | n, p | `n`, `p` | lengths of x and θ |
//! | x_i, θ_i | `x`, `theta` | shared and personal variable |
//! | v_i | `v` | tracks \[∇²_θθ g\]⁻¹ ∇_θ f |
//! | d_i, h_i | `d`, `h` | directions of θ and v, (6) and (7) |
//! | s_i, z_i, y_i | `s`, `z`, `y` | estimate of ∇Φ_i, its moving average, direction of x |
//! | α, β, λ | `alpha`, `beta`, `lambda` | step sizes of x, θ, v |
//! | γ, τ | `gamma`, `tau` | momentum weight, relaxation |
//! | W, ρ | `Mixing`, `rho` | mixing matrix, ‖W − 11ᵀ/m‖² (squared) |
//! | N, Q | `inner_steps`, `hv_steps` | loop lengths of the baselines |
//! | ξ, ς | `XI1` …, `SIGMA1` … | minibatches of g and of f |

#![forbid(unsafe_code)]

pub mod algorithms;
#[cfg(doctest)]
mod book;
pub mod config;
pub mod data;
pub mod engine;
pub mod error;
pub mod evaluate;
pub mod experiment;
pub mod folder;
pub mod math;
pub mod network;
pub mod problem;
pub mod problems;
pub mod run;
pub mod store;
