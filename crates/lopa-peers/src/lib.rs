//! Peers over the internet: the keys that identify nodes, the roster of nodes and links, and a wire
//! of authenticated QUIC connections between neighbours.

mod hello;
mod key;
mod link;
mod log;
mod net;
mod roster;
mod wire;

pub use hello::Terms;
pub use key::{Key, PublicKey};
pub use log::Log;
pub use roster::{Member, Roster};
pub use wire::{Counters, Iroh, Met, Neighbour, Place};
