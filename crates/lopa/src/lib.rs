//! Distributed stochastic bilevel optimisation with personal inner problems.
//!
//! m nodes, each with its own data, agree on a shared x while each keeps a personal θ_i. There is no
//! server:
//!
//! ```text
//! (1)  min_x Φ(x) = 1/m Σ_i f_i(x, θ_i*(x)),   θ_i*(x) = argmin_θ g_i(x, θ)
//! ```
//!
//! A [problem] is m parts, one per node; each computes f, g and five derivatives. An
//! [algorithm](algorithms) is one node's variables and one step: it declares the vectors it shares
//! and receives their weighted neighbour sum. An [engine] moves those vectors. A [run
//! folder](folder) keeps the results. Everything that a user chooses is chosen by name from
//! [registries](experiment::Registries), which are values: add your own.
//!
//! ```
//! use lopa::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let outcomes = Experiment::parse(
//!     "
//!     problem   = { name = 'quadratic', n = 3, p = 4 }
//!     network   = { nodes = 4, graph = 'ring' }
//!     run       = { iterations = 100 }
//!     algorithm = [{ name = 'lopa-gt', alpha = 0.05, beta = 0.5, lambda = 0.5 }]
//!     ",
//! )?
//! .run()?;
//! assert_eq!(outcomes[0].row.iteration, 100);
//! # Ok(())
//! # }
//! ```
//!
//! | paper | code | meaning |
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

// The macros refer to this crate by its name, even inside it.
extern crate self as lopa;

use lopa_base::store;
pub use lopa_base::{choices, config, error, macros, math, params};
pub use lopa_core::{algorithms, engine, network, problem, variables};
pub use lopa_data as data;

#[cfg(doctest)]
mod book;
pub mod conformance;
pub mod experiment;
pub mod folder;
pub mod run;

/// The names that programs and problems need: `use lopa::prelude::*`. Files of algorithms use [`algorithms::prelude`].
pub mod prelude {
    pub use crate::algorithms::algorithm_entry;
    pub use crate::config::{NoParams, Params, Source};
    pub use crate::data::{Features, source_entry};
    pub use crate::error::{Error, Fault, Result};
    pub use crate::experiment::{Experiment, Registries};
    pub use crate::math::random::{Purpose, Stream};
    pub use crate::math::real::{Real, axpy, dot, update};
    pub use crate::network::{Graph, graph_entry};
    pub use crate::params;
    pub use crate::problem::{At, Bilevel, Dims, Parts, Problem, Setting, problem_entry};
    pub use crate::run::trace::Row;
    pub use crate::run::{Context, Listener, Outcome};
}
