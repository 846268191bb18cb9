//! Peers over the internet: the keys that identify nodes, the roster of nodes and links, and a wire
//! of authenticated QUIC connections between neighbours.

mod hello;
mod key;
mod keys;
mod link;
mod log;
mod net;
mod roster;
mod wire;

pub use hello::Terms;
pub use key::{Key, PublicKey};
pub use keys::Keys;
pub use log::{Level, Log};
pub use roster::{Member, Roster};
pub use wire::{Counters, Iroh, Met, Neighbour, Place};
