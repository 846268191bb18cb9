//! A node's place in the network.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use iroh::PublicKey;
use lopa::error::{Error, Kind};

use crate::hello::Terms;
use crate::key::Key;
use crate::keys::Keys;

/// A node's place in the network.
pub struct Place {
    /// Its key.
    pub key: Key,
    /// Its number.
    pub node: usize,
    /// The public keys of all nodes, in their order.
    pub members: Vec<PublicKey>,
    /// The address it listens at.
    pub listen: SocketAddr,
    /// Whether its neighbours have an address at which to call it.
    pub callable: bool,
    /// URLs of relays.
    pub relays: Vec<String>,
    /// Its neighbours.
    pub neighbours: Vec<Neighbour>,
    /// The terms on which all must agree.
    pub terms: Terms,
    /// The keys of the experiment, to name those that differ.
    pub keys: Keys,
    /// Size limit of a frame, in bytes.
    pub most: usize,
}

/// A neighbour of a node.
#[derive(Debug, Clone)]
pub struct Neighbour {
    /// Its number.
    pub node: usize,
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: PublicKey,
    /// Its addresses.
    pub addresses: Vec<String>,
}

/// Refused connections so far.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections whose key is not a neighbour's.
    pub strangers: AtomicU64,
    /// Connections that did not complete the handshake, or were too many at a time.
    pub dropped: AtomicU64,
    /// Connections of neighbours that violated the protocol or have other terms.
    pub broken: AtomicU64,
}

/// The error for a host without network.
pub(crate) fn no_runtime(error: &dyn std::error::Error) -> Error {
    Error::new(Kind::Run, "peers/runtime", format!("cannot use the network: {error}"))
}

/// For each neighbour without a link, the reason if known.
pub(crate) type Reasons = Mutex<Vec<Option<String>>>;
