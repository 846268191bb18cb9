//! What every part of lopa stands on: [errors](error) with their place, [numbers](math) and random
//! streams, [parameters](config) and registries, and [files](store) that are written whole.

#![forbid(unsafe_code)]

// The macros refer to `lopa`, which hands on the names of this crate.
extern crate self as lopa;

pub mod config;
pub mod error;
pub mod math;
pub mod store;

/// Names that the macros of this crate expand to.
#[doc(hidden)]
pub mod macros {
    pub use schemars::{self, JsonSchema};
    pub use serde::{self, Deserialize, Serialize};

    use crate::config::Params;
    use crate::error::Fault;

    /// Calls a check of parameters.
    pub fn check<P: Params>(
        params: &P,
        check: impl Fn(&P) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        check(params)
    }

    /// Marks the required keys in a schema.
    pub fn require<P: Params>(schema: &mut schemars::Schema) {
        for key in P::required() {
            let of = schema.get_mut("properties").and_then(|all| all.get_mut(key));
            of.and_then(|key| key.as_object_mut()).map(|key| key.remove("default"));
        }
        if !P::required().is_empty() {
            schema.insert("required".into(), P::required().into());
        }
    }
}
