//! A relay between machines that have no direct path, and what the two ends make of its packets.
//!
//! Ends seal their packets as QUIC does: a packet has a number and a tag that only the two ends can make, an end opens
//! each number once, and drops everything else. Whatever the relay forges, the nodes see it as loss.

use std::collections::BTreeSet;
use std::time::Duration;

use lopa::engine::{Frame, FrameKind};
use lopa::math::random::Stream;
use sha2::{Digest, Sha256};

use super::hostile::summed;

/// A relay; numbers are probabilities.
#[derive(Debug, Clone, Default)]
pub struct Relay {
    /// Pairs of machines without a direct path, the smaller first.
    pub pairs: BTreeSet<(usize, usize)>,
    /// The time that a packet takes more, in seconds: at least, and at most. It may arrive before one that was sent earlier.
    pub delay: (f64, f64),
    /// A packet is lost.
    pub loss: f64,
    /// A forged packet takes the place of one, or goes with it.
    pub forges: f64,
    /// When it is down: since, until.
    pub down: Vec<(Duration, Duration)>,
    /// A planted mistake: the ends open whatever comes, as if packets were not sealed.
    pub trusted: bool,
}

/// Bytes before the frame of a packet: sender, receiver, number.
const HEAD: usize = 10;
/// Bytes after it: the tag.
const TAG: usize = 32;
/// How many packets the relay remembers.
const REMEMBERED: usize = 40;

/// The tag of a packet, by a secret of both ends.
fn tag(from: u8, to: u8, sealed: &[u8]) -> [u8; TAG] {
    let secret = [b'p', from.min(to), from.max(to)];
    Sha256::new_with_prefix(secret).chain_update(sealed).finalize().into()
}

/// Seals a frame.
pub fn seal(from: usize, to: usize, number: u64, frame: &[u8]) -> Vec<u8> {
    let (from, to) = (from as u8, to as u8);
    let sealed = [&[from, to][..], &number.to_le_bytes(), frame].concat();
    let tag = tag(from, to, &sealed);
    [sealed, tag.to_vec()].concat()
}

/// One end of all its relayed links.
#[derive(Debug, Default)]
pub struct Ends {
    opened: BTreeSet<u64>,
    /// Packets that it did not open.
    pub refused: usize,
    trusts: bool, // it opens whatever comes
}

impl Ends {
    /// An end that has opened nothing yet; one that opens whatever comes, if it `trusts` the relay.
    pub fn new(trusts: bool) -> Ends {
        Ends { trusts, ..Ends::default() }
    }

    /// The sender and the frame of a packet for a machine, if it is as its sender sealed it, and comes for the first
    /// time.
    pub fn open(&mut self, me: usize, packet: &[u8]) -> Option<(usize, Vec<u8>)> {
        let opened = packet.split_last_chunk::<TAG>().and_then(|(sealed, found)| {
            let (head, frame) = sealed.split_first_chunk::<HEAD>()?;
            let [from, to, number @ ..] = *head;
            let is_new = !self.opened.contains(&u64::from_le_bytes(number));
            let sound = usize::from(to) == me && tag(from, to, sealed) == *found && is_new;
            let known = usize::from(from) != me;
            (sound || self.trusts && known).then(|| {
                self.opened.insert(u64::from_le_bytes(number));
                (usize::from(from), frame.to_vec())
            })
        });
        self.refused += usize::from(opened.is_none());
        opened
    }
}

/// What a relay that forges does to the packets that pass.
#[derive(Debug, Default)]
pub struct Forger {
    seen: Vec<Vec<u8>>,
}

impl Forger {
    /// The packets that it sends on for one, each with its receiver.
    pub fn pass(
        &mut self,
        to: usize,
        packet: Vec<u8>,
        forges: f64,
        stream: &mut Stream,
    ) -> Vec<(usize, Vec<u8>)> {
        match self.seen.len() < REMEMBERED {
            true => self.seen.push(packet.clone()),
            false => self.seen[stream.below(REMEMBERED)].clone_from(&packet),
        }
        if stream.unit() >= forges {
            return vec![(to, packet)];
        }
        let from = usize::from(packet[0]);
        let forged = match stream.below(7) {
            0 => (to, flipped(packet.clone(), stream)),
            // The most that a forger can hope for: another number in a frame that is sound.
            1 => (to, other_number(&packet)),
            // An earlier one once more, perhaps one for another receiver.
            2 => (to, self.seen[stream.below(self.seen.len())].clone()),
            // Back to its sender, as it is or in the receiver's name.
            3 => (from, packet.clone()),
            4 => {
                let mut other = packet.clone();
                other.swap(0, 1);
                (from, other)
            }
            5 => (to, packet[..stream.below(packet.len())].to_vec()),
            _ => (to, (0..stream.below(200)).map(|_| stream.word() as u8).collect()),
        };
        match stream.below(3) {
            0 => vec![forged],
            1 => vec![forged, (to, packet)],
            _ => vec![(to, packet), forged],
        }
    }
}

/// The packet with one bit flipped.
pub fn flipped(mut packet: Vec<u8>, stream: &mut Stream) -> Vec<u8> {
    let (at, bit) = (stream.below(packet.len()), stream.below(8));
    packet[at] ^= 1 << bit;
    packet
}

/// The packet with another last number in its message; all checksums are right.
fn other_number(packet: &[u8]) -> Vec<u8> {
    let end = packet.len() - TAG;
    let mut frame = packet[HEAD..end].to_vec();
    let numbers = Frame::known(&frame).is_some_and(|frame| frame.kind == FrameKind::Data);
    let at = frame.len() - if numbers { 5 } else { 6 };
    frame[at] ^= 1;
    [&packet[..HEAD], &summed(frame), &packet[end..]].concat()
}
