//! Peers over the internet: the keys that nodes are known by, the roster of who may talk to whom,
//! and a wire of authenticated QUIC between neighbours.

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
