//! Delivery of unmodified messages.

use std::ops::Range;

use super::crossings::{Border, borders};
use super::{Carried, Delivery, Parcels, Scratch, Workers};
use crate::engine::peers::is_finite;
use crate::engine::refusal::Refusal;
use crate::engine::transport::{Parcel, block};
use crate::error::Result;
use crate::math::real::{Real, all_finite};
use crate::network::mixed::{Mixed, Row};
use crate::network::outbox::{Outbox, Round};
use crate::network::{Cursor, Mixing};

/// Delivers messages unmodified.
pub struct Direct<T> {
    here: Range<usize>,
    rows: Vec<Row<T>>, // of W; columns: nodes of this process, then senders in others
    column: Vec<usize>, // of each node
    arrows: u64,       // Σ_i neighbours of node i in this round, over all nodes
    borders: Vec<Border>,
    used: Vec<Used>,    // in this round, for each border
    heard: Vec<Vec<T>>, // from other processes
}

/// The messages across a border in a round.
#[derive(Default)]
struct Used {
    senders: Vec<usize>, // nodes here
    places: Vec<usize>,  // in `heard`
}

impl<T: Real> Direct<T> {
    /// Over the edges of W, or of those that are ever used, in process `rank` out of `size`.
    pub fn new(mixing: &Mixing, size: usize, rank: usize) -> Direct<T> {
        let here = block(mixing.nodes(), size, rank);
        let borders = borders(mixing, size, rank);
        let mut column = vec![usize::MAX; mixing.nodes()];
        let heard = borders.iter().flat_map(|border| border.into.iter().map(|(j, _)| *j));
        let columns = here.clone().chain(heard);
        columns.enumerate().for_each(|(at, i)| column[i] = at);
        let count = borders.iter().map(|border| border.into.len()).sum();
        let mut direct = Direct {
            rows: vec![Row::new(); here.len()],
            column,
            arrows: 0,
            used: borders.iter().map(|_| Used::default()).collect(),
            borders,
            heard: vec![Vec::new(); count],
            here,
        };
        direct.turn(mixing);
        direct
    }

    /// Uses the edges of this W.
    fn turn(&mut self, mixing: &Mixing) {
        let Direct { here, rows, column, arrows, borders, used, .. } = self;
        *arrows = mixing.arrows();
        for (i, row) in here.clone().zip(rows) {
            row.clear();
            let others = mixing.row(i).iter().filter(|(j, _)| *j != i);
            row.extend(others.map(|&(j, w)| (column[j], T::of(w))));
        }
        let is_heard = |sender: usize, by: &[usize]| by.iter().any(|&j| mixing.hears(j, sender));
        for (border, Used { senders, places }) in borders.iter().zip(used) {
            senders.clear();
            let out = border.out.iter().filter(|(i, by)| is_heard(*i, by));
            senders.extend(out.map(|(i, _)| i - here.start));
            places.clear();
            let into = border.into.iter().filter(|(j, by)| is_heard(*j, by));
            places.extend(into.map(|(j, _)| column[*j] - here.len()));
        }
    }
}

impl<T: Real> Delivery<T> for Direct<T> {
    fn go(&mut self, _: Round, number: u64, graph: Option<&mut Cursor>) {
        if let Some(graph) = graph
            && graph.go(number)
        {
            self.turn(graph.mixing());
        }
    }

    fn begin(
        &mut self,
        _: Round,
        messages: &[Outbox<T>],
        _: &Workers<T>,
        parcels: &mut Parcels,
    ) -> Result<()> {
        let length = messages[0].values().len();
        parcels.clear();
        for (border, Used { senders, places }) in self.borders.iter().zip(&self.used) {
            if !senders.is_empty() {
                let Parcel { bytes, finite, .. } = parcels.send(border.rank);
                senders.iter().for_each(|&i| T::extend_le(messages[i].values(), bytes));
                *finite = senders.iter().all(|&i| all_finite(messages[i].values()));
            }
            if !places.is_empty() {
                parcels.expect(border.rank, places.len() * length * T::BYTES);
            }
        }
        self.heard.iter_mut().for_each(|message| message.resize(length, T::zero()));
        Ok(())
    }

    fn accepts(&self, _: Round, _: usize, bytes: &[u8], finite: bool) -> Result<(), Refusal> {
        // Numbers that are not marked were checked when they arrived.
        if finite || !is_finite(T::BYTES, bytes) { Ok(()) } else { Err(Refusal::Finite) }
    }

    fn receive(&mut self, _: Round, _: &Workers<T>, parcels: &Parcels) -> Result<()> {
        let places = self.used.iter().map(|used| &used.places).filter(|places| !places.is_empty());
        for (parcel, places) in parcels.received().iter().zip(places) {
            let bytes = parcel.bytes.chunks_exact((parcel.bytes.len() / places.len()).max(1));
            bytes.zip(places).for_each(|(bytes, &at)| T::read_le(bytes, &mut self.heard[at]));
        }
        Ok(())
    }

    fn mixed<'a>(
        &'a self,
        _: Round,
        i: usize,
        messages: &'a [Outbox<T>],
        scratch: &'a mut Scratch<T>,
    ) -> Mixed<'a, T> {
        Mixed::new(&self.rows[i], &messages[i], (messages, &self.heard), &mut scratch.sums)
    }

    fn end(&self, _: usize, length: u64) -> Carried {
        let message = length * T::BYTES as u64;
        let (floats, bytes) = (self.arrows * length, self.arrows * message);
        Carried { floats, bytes, message, ..Carried::default() }
    }

    fn spans(&self) -> bool {
        !self.borders.is_empty()
    }

    fn waits(&self, i: usize) -> bool {
        self.rows[i].iter().any(|&(j, _)| j >= self.here.len())
    }
}
