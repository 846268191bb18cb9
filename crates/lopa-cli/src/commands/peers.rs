//! `lopa key`, `lopa invite`, `lopa join`, `lopa roster`, `lopa node`, `lopa status`: runs among peers.

#[cfg(feature = "peers")]
mod agreed;
pub mod args;
#[cfg(feature = "peers")]
mod check;
#[cfg(feature = "peers")]
mod enrol;
#[cfg(feature = "peers")]
mod key;
#[cfg(feature = "peers")]
mod metrics;
#[cfg(not(feature = "peers"))]
mod missing;
#[cfg(feature = "peers")]
mod node;
#[cfg(feature = "peers")]
mod roster;
#[cfg(feature = "peers")]
mod status;
#[cfg(feature = "peers")]
mod watch;

#[cfg(not(feature = "peers"))]
pub use missing::{invite, join, key, node, nodes, roster, status};
#[cfg(feature = "peers")]
pub use {
    enrol::invite, enrol::join, key::key, node::node, roster::roster, status::nodes, status::status,
};
