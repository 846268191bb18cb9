//! Which messages cross between processes.

use std::collections::BTreeSet;
use std::ops::Range;

use super::transport::{Parcel, block};
use crate::math::real::Real;
use crate::network::Mixing;
use crate::network::mixed::{Row, row};

/// The messages that this process exchanges with others.
pub struct Links<T> {
    /// Parcels to send, and the local nodes whose messages each contains.
    out: Vec<Parcel>,
    senders: Vec<Vec<usize>>,
    /// Parcels to receive, and the number of messages in each.
    into: Vec<Parcel>,
    counts: Vec<usize>,
    /// Received messages, parcel by parcel.
    pub messages: Vec<Vec<T>>,
}

impl<T: Real> Links<T> {
    /// The links of process `rank` out of `size`, and the rows of W of its nodes. Columns of the rows
    /// number the local nodes first, then the received messages in their order.
    pub fn new(mixing: &Mixing, size: usize, rank: usize) -> (Links<T>, Vec<Row<T>>) {
        let m = mixing.nodes();
        let here = block(m, size, rank);
        let others: Vec<usize> = (0..size).filter(|&other| other != rank).collect();
        let mut links = Links::none();
        let mut column = vec![usize::MAX; m];
        here.clone().for_each(|i| column[i] = i - here.start);
        for other in others {
            let there = block(m, size, other);
            // W is symmetric: both processes list the nodes of a parcel in the same order.
            let sent = neighbours(mixing, &there, &here);
            let received = neighbours(mixing, &here, &there);
            let parcel = Parcel { rank: other, bytes: Vec::new() };
            if !sent.is_empty() {
                links.out.push(parcel.clone());
                links.senders.push(sent.into_iter().map(|i| i - here.start).collect());
            }
            if !received.is_empty() {
                for &j in &received {
                    column[j] = here.len() + links.messages.len();
                    links.messages.push(Vec::new());
                }
                links.into.push(parcel);
                links.counts.push(received.len());
            }
        }
        let local = |(j, w): (usize, T)| (column[j], w);
        let rows = here.map(|i| row(i, mixing.row(i)).into_iter().map(local).collect());
        let rows = rows.collect();
        (links, rows)
    }

    fn none() -> Links<T> {
        Links {
            out: Vec::new(),
            senders: Vec::new(),
            into: Vec::new(),
            counts: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Fills the parcels with the local nodes' messages, which all have the same length.
    pub fn pack(&mut self, messages: &[Vec<T>]) -> (&[Parcel], &mut [Parcel]) {
        for (parcel, senders) in self.out.iter_mut().zip(&self.senders) {
            parcel.bytes.clear();
            senders.iter().for_each(|&i| T::extend_le(&messages[i], &mut parcel.bytes));
        }
        let length = messages[0].len();
        for (parcel, count) in self.into.iter_mut().zip(&self.counts) {
            parcel.bytes.resize(count * length * T::BYTES, 0);
        }
        self.messages.iter_mut().for_each(|message| message.resize(length, T::zero()));
        (&self.out, &mut self.into)
    }

    /// Takes the messages out of the received parcels.
    pub fn unpack(&mut self) {
        let mut messages = self.messages.iter_mut();
        for (parcel, &count) in self.into.iter().zip(&self.counts) {
            let bytes = parcel.bytes.chunks_exact((parcel.bytes.len() / count).max(1));
            bytes.zip(messages.by_ref().take(count)).for_each(|(bytes, m)| T::read_le(bytes, m));
        }
    }
}

/// The nodes `there` that are neighbours of nodes `here`.
fn neighbours(mixing: &Mixing, here: &Range<usize>, there: &Range<usize>) -> BTreeSet<usize> {
    let rows = here.clone().flat_map(|i| mixing.row(i));
    rows.map(|&(j, _)| j).filter(|j| there.contains(j)).collect()
}
