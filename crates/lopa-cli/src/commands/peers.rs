//! `lopa key`, `lopa roster`, `lopa node`: runs among peers.

pub mod args;
#[cfg(feature = "peers")]
mod key;
#[cfg(not(feature = "peers"))]
mod missing;
#[cfg(feature = "peers")]
mod node;
#[cfg(feature = "peers")]
mod roster;

#[cfg(not(feature = "peers"))]
pub use missing::{key, node, roster};
#[cfg(feature = "peers")]
pub use {key::key, node::node, roster::roster};
