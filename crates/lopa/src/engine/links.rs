//! Which messages cross between processes.

use std::collections::BTreeSet;
use std::ops::Range;

use super::transport::{Parcel, block};
use crate::math::real::{Real, all_finite};
use crate::network::Mixing;
use crate::network::mixed::Row;
use crate::network::outbox::Outbox;

/// The messages that this process exchanges with others.
pub struct Links<T> {
    here: Range<usize>,
    /// Parcels to send, and the local nodes whose messages each contains. Those of this round come
    /// first.
    out: Vec<Parcel>,
    senders: Vec<Vec<usize>>,
    sends: usize,
    /// Parcels to receive, and the places of their messages. Those of this round come first.
    into: Vec<Parcel>,
    places: Vec<Vec<usize>>,
    receives: usize,
    /// Received messages.
    pub messages: Vec<Vec<T>>,
    /// Where a row of W has the message of a node.
    column: Vec<usize>,
    /// All links to each other process, where not all are used in every round.
    ways: Vec<Way>,
}

/// The links to another process.
struct Way {
    rank: usize,
    /// Nodes here, each with those there that may hear it.
    sent: Vec<(usize, Vec<usize>)>,
    /// Nodes there, each with those here that may hear it.
    received: Vec<(usize, Vec<usize>)>,
}

impl<T: Real> Links<T> {
    /// The links of process `rank` out of `size`, and the rows of W of its nodes. Columns of the rows
    /// number the local nodes first, then the received messages in their order.
    pub fn new(mixing: &Mixing, size: usize, rank: usize) -> (Links<T>, Vec<Row<T>>) {
        let m = mixing.nodes();
        let here = block(m, size, rank);
        let mut links = Links::none(here.clone(), m);
        for other in (0..size).filter(|&other| other != rank) {
            let there = block(m, size, other);
            // Both processes list the nodes of a parcel in the same order.
            let sent = neighbours(mixing, &there, &here);
            let received = neighbours(mixing, &here, &there);
            let parcel = Parcel { rank: other, ..Parcel::default() };
            if !sent.is_empty() {
                links.out.push(parcel.clone());
                links.senders.push(sent.into_iter().map(|i| i - here.start).collect());
            }
            if !received.is_empty() {
                let first = links.messages.len();
                for &j in &received {
                    links.column[j] = here.len() + links.messages.len();
                    links.messages.push(Vec::new());
                }
                links.into.push(parcel);
                links.places.push((first..links.messages.len()).collect());
            }
        }
        (links.sends, links.receives) = (links.out.len(), links.into.len());
        let mut rows = vec![Row::new(); here.len()];
        links.fill(mixing, &mut rows);
        (links, rows)
    }

    fn none(here: Range<usize>, m: usize) -> Links<T> {
        let mut column = vec![usize::MAX; m];
        here.clone().enumerate().for_each(|(at, i)| column[i] = at);
        Links {
            here,
            out: Vec::new(),
            senders: Vec::new(),
            sends: 0,
            into: Vec::new(),
            places: Vec::new(),
            receives: 0,
            messages: Vec::new(),
            column,
            ways: Vec::new(),
        }
    }

    /// Gives the nodes here their rows of W.
    fn fill(&self, mixing: &Mixing, rows: &mut [Row<T>]) {
        for (i, row) in self.here.clone().zip(rows) {
            row.clear();
            let others = mixing.row(i).iter().filter(|(j, _)| *j != i);
            row.extend(others.map(|&(j, w)| (self.column[j], T::of(w))));
        }
    }

    /// Prepares for rounds that do not use all links of `whole`.
    pub fn change(&mut self, whole: &Mixing, size: usize) {
        let m = whole.nodes();
        for rank in 0..size {
            let (here, there) = (self.here.clone(), block(m, size, rank));
            // Each with those of the other side that it shares a link with.
            let list = |from: &Range<usize>, to: &Range<usize>| -> Vec<(usize, Vec<usize>)> {
                let near = |i: usize| whole.row(i).iter().map(|&(j, _)| j);
                let ends = |i: usize| near(i).filter(|j| to.contains(j)).collect::<Vec<_>>();
                let all = from.clone().map(|i| (i, ends(i)));
                all.filter(|(_, ends)| !ends.is_empty()).collect()
            };
            if here != there {
                let (sent, received) = (list(&here, &there), list(&there, &here));
                self.ways.push(Way { rank, sent, received });
            }
        }
        self.ways.retain(|way| !way.sent.is_empty());
    }

    /// Uses the links of a round only, whose W this is.
    pub fn turn(&mut self, mixing: &Mixing, rows: &mut [Row<T>]) {
        (self.sends, self.receives) = (0, 0);
        for Way { rank, sent, received } in &self.ways {
            let senders = &mut self.senders[self.sends];
            senders.clear();
            let heard = sent.iter().filter(|(i, by)| by.iter().any(|&j| mixing.hears(j, *i)));
            senders.extend(heard.map(|(i, _)| i - self.here.start));
            if !senders.is_empty() {
                self.out[self.sends].rank = *rank;
                self.sends += 1;
            }
            let places = &mut self.places[self.receives];
            places.clear();
            let heard = received.iter().filter(|(j, by)| by.iter().any(|&i| mixing.hears(i, *j)));
            places.extend(heard.map(|(j, _)| self.column[*j] - self.here.len()));
            if !places.is_empty() {
                self.into[self.receives].rank = *rank;
                self.receives += 1;
            }
        }
        self.fill(mixing, rows);
    }

    /// Fills the parcels with the local nodes' messages, which all have the same length.
    pub fn pack(&mut self, messages: &[Outbox<T>]) -> (&[Parcel], &mut [Parcel]) {
        let (out, into) = (&mut self.out[..self.sends], &mut self.into[..self.receives]);
        for (parcel, senders) in out.iter_mut().zip(&self.senders) {
            parcel.bytes.clear();
            senders.iter().for_each(|&i| T::extend_le(messages[i].values(), &mut parcel.bytes));
            parcel.finite = senders.iter().all(|&i| all_finite(messages[i].values()));
        }
        let length = messages[0].values().len();
        for (parcel, places) in into.iter_mut().zip(&self.places) {
            parcel.bytes.resize(places.len() * length * T::BYTES, 0);
        }
        self.messages.iter_mut().for_each(|message| message.resize(length, T::zero()));
        (out, into)
    }

    /// Takes the messages out of the received parcels.
    pub fn unpack(&mut self) {
        for (parcel, places) in self.into[..self.receives].iter().zip(&self.places) {
            let bytes = parcel.bytes.chunks_exact((parcel.bytes.len() / places.len()).max(1));
            bytes.zip(places).for_each(|(bytes, &at)| T::read_le(bytes, &mut self.messages[at]));
        }
    }
}

/// The nodes `there` that are neighbours of nodes `here`.
fn neighbours(mixing: &Mixing, here: &Range<usize>, there: &Range<usize>) -> BTreeSet<usize> {
    let rows = here.clone().flat_map(|i| mixing.row(i));
    rows.map(|&(j, _)| j).filter(|j| there.contains(j)).collect()
}
