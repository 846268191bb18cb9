//! Who listens to whom across processes.

use std::collections::BTreeSet;
use std::ops::Range;

use super::transport::{Parcel, block};
use crate::math::real::Real;
use crate::network::Mixing;
use crate::network::mixed::{Row, row};

/// What the nodes here tell other processes, and what they hear from them.
pub struct Links<T> {
    /// Parcels to send, and which nodes here each holds the messages of.
    out: Vec<Parcel>,
    told: Vec<Vec<usize>>,
    /// Parcels to receive, and how many messages each holds.
    into: Vec<Parcel>,
    heard: Vec<usize>,
    /// Messages that came in, parcel by parcel.
    pub messages: Vec<Vec<T>>,
}

impl<T: Real> Links<T> {
    /// The links of process `rank` of `size`, and the rows of W of its nodes: j < nodes here is
    /// the j-th of them, the others are the messages that come in, in their order.
    pub fn new(mixing: &Mixing, size: usize, rank: usize) -> (Links<T>, Vec<Row<T>>) {
        let m = mixing.nodes();
        let here = block(m, size, rank);
        let others: Vec<usize> = (0..size).filter(|&other| other != rank).collect();
        let mut links = Links::none();
        let mut place = vec![usize::MAX; m];
        here.clone().for_each(|i| place[i] = i - here.start);
        for other in others {
            let there = block(m, size, other);
            // W has the same links both ways: what is told here is heard there, in this order.
            let told = listened(mixing, &there, &here);
            let heard = listened(mixing, &here, &there);
            let parcel = Parcel { rank: other, bytes: Vec::new() };
            if !told.is_empty() {
                links.out.push(parcel.clone());
                links.told.push(told.into_iter().map(|i| i - here.start).collect());
            }
            if !heard.is_empty() {
                for &j in &heard {
                    place[j] = here.len() + links.messages.len();
                    links.messages.push(Vec::new());
                }
                links.into.push(parcel);
                links.heard.push(heard.len());
            }
        }
        let placed = |(j, w): (usize, T)| (place[j], w);
        let rows = here.map(|i| row(i, mixing.row(i)).into_iter().map(placed).collect());
        let rows = rows.collect();
        (links, rows)
    }

    fn none() -> Links<T> {
        Links {
            out: Vec::new(),
            told: Vec::new(),
            into: Vec::new(),
            heard: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Makes parcels of the messages of the nodes here, which all have one length.
    pub fn pack(&mut self, messages: &[Vec<T>]) -> (&[Parcel], &mut [Parcel]) {
        for (parcel, told) in self.out.iter_mut().zip(&self.told) {
            parcel.bytes.clear();
            told.iter().for_each(|&i| T::extend_le(&messages[i], &mut parcel.bytes));
        }
        let length = messages[0].len();
        for (parcel, heard) in self.into.iter_mut().zip(&self.heard) {
            parcel.bytes.resize(heard * length * T::BYTES, 0);
        }
        self.messages.iter_mut().for_each(|message| message.resize(length, T::zero()));
        (&self.out, &mut self.into)
    }

    /// Takes the messages out of the parcels that came in.
    pub fn unpack(&mut self) {
        let mut places = self.messages.iter_mut();
        for (parcel, &heard) in self.into.iter().zip(&self.heard) {
            let bytes = parcel.bytes.chunks_exact((parcel.bytes.len() / heard).max(1));
            bytes.zip(places.by_ref().take(heard)).for_each(|(bytes, m)| T::read_le(bytes, m));
        }
    }
}

/// The nodes `there` that nodes `here` listen to.
fn listened(mixing: &Mixing, here: &Range<usize>, there: &Range<usize>) -> BTreeSet<usize> {
    let rows = here.clone().flat_map(|i| mixing.row(i));
    rows.map(|&(j, _)| j).filter(|j| there.contains(j)).collect()
}
