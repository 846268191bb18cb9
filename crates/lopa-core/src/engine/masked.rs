//! Sums over all processes that show no summand.
//!
//! ```text
//! process i sends   S_i + Σ_{j > i} M_ij − Σ_{j < i} M_ij,    M_ij = M_ji uniformly random, known to i and j only
//! ```
//!
//! The masks cancel in the sum, which is one of whole numbers ([`Exact`]) and hence the same as without masks. M_ij is drawn
//! from the secret that i and j share and from a number of each: the hash of its summands under its secrets. So a process that
//! repeats a round after a crash sends the same bytes, and one that comes back with other summands has other masks:
//! the difference of two of its messages shows nothing. A round needs all processes. If one is lost the round waits, and is repeated
//! with the run.

use sha2::{Digest, Sha256};

use super::refusal::Refusal;
use super::transport::Transport;
use crate::error::{Error, Kind, Result};
use crate::math::exact::{Exact, WORDS};
use crate::math::random::Stream;

/// Bytes of a masked number.
pub const BYTES: usize = 8 * WORDS;

/// The sum over all processes of each number, of which `ours` are those of this process, one list per node.
///
/// # Errors
/// If a number here is not finite, or the transport fails.
pub fn sums(transport: &mut dyn Transport, ours: &[Vec<f64>]) -> Result<Vec<f64>> {
    let length = ours.first().map_or(0, Vec::len);
    let mut own = vec![Exact::default(); length];
    for numbers in ours {
        for (sum, &number) in own.iter_mut().zip(numbers) {
            *sum = std::mem::take(sum).plus(&Exact::of(number).ok_or_else(not_finite)?);
        }
    }
    if transport.size() > 1 {
        mask(transport, &mut own)?;
        own = total(transport, &own)?;
    }
    Ok(own.iter().map(Exact::to_f64).collect())
}

/// Adds the masks of this process, if it shares secrets with the others.
fn mask(transport: &mut dyn Transport, own: &mut [Exact]) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let others = (0..size).filter(|&other| other != rank);
    let secrets: Option<Vec<[u8; 32]>> =
        others.clone().map(|other| transport.secret(other)).collect();
    let Some(secrets) = secrets else { return Ok(()) };
    let mut hash = Sha256::new_with_prefix("lopa summands");
    secrets.iter().for_each(|secret| hash.update(secret));
    own.iter().flat_map(|number| number.0).for_each(|word| hash.update(word.to_le_bytes()));
    let number: [u8; 32] = hash.finalize().into();
    let accepts = |_: usize, bytes: &[u8]| match bytes.len() {
        32 => Ok(()),
        _ => Err(Refusal::Shape),
    };
    let numbers = transport.all(&number, &accepts)?;
    for (other, secret) in others.zip(secrets) {
        let mut key = Sha256::new_with_prefix("lopa mask");
        key.update(secret);
        key.update(&numbers[rank.min(other)]);
        key.update(&numbers[rank.max(other)]);
        let mut stream = Stream::keyed(key.finalize().into());
        for number in own.iter_mut() {
            let mask = Exact(std::array::from_fn(|_| stream.bits()));
            let bare = std::mem::take(number);
            *number = if rank < other { bare.plus(&mask) } else { bare.minus(&mask) };
        }
    }
    Ok(())
}

fn total(transport: &mut dyn Transport, own: &[Exact]) -> Result<Vec<Exact>> {
    let bytes: Vec<u8> =
        own.iter().flat_map(|number| number.0).flat_map(u64::to_le_bytes).collect();
    let length = bytes.len();
    let accepts = |_: usize, bytes: &[u8]| match bytes.len() == length {
        true => Ok(()),
        false => Err(Refusal::Shape),
    };
    let mut sum = vec![Exact::default(); own.len()];
    for bytes in transport.all(&bytes, &accepts)? {
        for (sum, bytes) in sum.iter_mut().zip(bytes.chunks_exact(BYTES)) {
            let word =
                |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * at + byte]));
            *sum = std::mem::take(sum).plus(&Exact(std::array::from_fn(word)));
        }
    }
    Ok(sum)
}

fn not_finite() -> Error {
    let message = "a number to be summed over the nodes is not finite";
    Error::new(Kind::Run, "privacy/not-finite", message)
}
