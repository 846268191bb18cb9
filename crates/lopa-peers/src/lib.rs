//! Peers over the internet: the keys that identify nodes, the roster of nodes and links with its
//! signatures, and a wire of authenticated QUIC connections between neighbours.

mod check;
mod found;
mod hello;
mod invite;
mod key;
mod keys;
mod link;
mod log;
mod net;
mod place;
mod relay;
mod roster;
mod seal;
mod wire;

pub use check::{Checked, check};
pub use found::{Found, Reach};
pub use hello::Terms;
pub use invite::{Invite, Reply};
pub use key::{Key, PublicKey};
pub use keys::Keys;
pub use log::{Level, Log};
pub use place::{Counters, Neighbour, Place};
pub use relay::VERSION as RELAY_VERSION;
pub use roster::{Member, Roster, Seal, check_name, check_names};
pub use seal::unsigned;
pub use wire::{Iroh, Met};
