//! The scope of the inner problem: one per node, or one for all.
//!
//! ```text
//! personal   min_x 1/m Σ_i f_i(x, θ_i*(x)),   θ_i*(x) = argmin_θ g_i(x, θ)
//! global     min_x 1/m Σ_i f_i(x, θ*(x)),     θ*(x)   = argmin_θ 1/m Σ_i g_i(x, θ)
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose inner problem it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Each node has its own θ_i*(x).
    #[default]
    Personal,
    /// All nodes have one θ*(x).
    Global,
}

impl Scope {
    /// Both.
    pub const BOTH: &'static [Scope] = &[Scope::Personal, Scope::Global];

    /// Its word in files.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Personal => "personal",
            Scope::Global => "global",
        }
    }
}
