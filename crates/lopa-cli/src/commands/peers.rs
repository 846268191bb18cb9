//! `lopa key`, `lopa invite`, `lopa join`, `lopa roster`, `lopa node`: runs among peers.

pub mod args;
#[cfg(feature = "peers")]
mod check;
#[cfg(feature = "peers")]
mod enrol;
#[cfg(feature = "peers")]
mod key;
#[cfg(not(feature = "peers"))]
mod missing;
#[cfg(feature = "peers")]
mod node;
#[cfg(feature = "peers")]
mod roster;

#[cfg(not(feature = "peers"))]
pub use missing::{invite, join, key, node, roster};
#[cfg(feature = "peers")]
pub use {enrol::invite, enrol::join, key::key, node::node, roster::roster};
