//! Messages as networks are: compressed, lost, late, clipped, or lies. All of it happens between
//! `share` and `step`, so that no algorithm knows of it.
//!
//! Every link adds w (v_j − v_i) at one end and w (v_i − v_j) at the other, where v is what *both* ends
//! hold of a node: its message, or a replica of it that grows by what is sent. Whatever is lost, what
//! one end gains the other loses:
//!
//! ```text
//! q_i  = C(message_i − x̂_i)                          what is sent; everybody then adds it to x̂_i
//! mix  = message_i + γ Σ_j w_ij clip(x̂_j − x̂_i)      over the links that are up
//! ```
//!
//! Hence mixing never moves the mean over the nodes: mean(x) moves by −τα mean(y) alone, and
//! mean(y) = mean(z) in tracking methods.

mod attack;
mod clip;
pub mod compress;
mod failures;
mod kept;
mod links;
mod mail;
mod map;
mod slot;
mod spec;
mod traffic;

use crate::algorithms::Algorithm;
use crate::math::real::Real;
use crate::network::outbox::{Outbox, Round};

pub use attack::{Attack, Lie};
pub use compress::{AnyCompressor, Compressor, compressor_entry, compressors};
pub use failures::{Failures, Fate};
pub use mail::Mail;
pub use slot::Desk;
pub use spec::{Adaptive, Bursts, Clip, Compress, Messages, Rules};
pub use traffic::{Opened, Site, Tally, Traffic, check_replicas, wire_bytes};

/// The lengths of the vectors that a node sends in each exchange of an iteration.
pub fn lengths<T: Real>(algorithm: &dyn Algorithm<T>) -> Vec<Vec<usize>> {
    let of = |e| {
        let mut out = Outbox::default();
        algorithm.share(Round { k: 0, e }, &mut out);
        let lengths = out.vectors().iter().map(|&(_, length)| length);
        lengths.filter(|&length| length > 0).collect()
    };
    (0..algorithm.exchanges()).map(of).collect()
}
