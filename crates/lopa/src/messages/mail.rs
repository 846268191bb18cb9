//! Mixing: what neighbours' messages move a node by.

use std::sync::Mutex;

use super::clip::{Clipping, distance, factor, median};
use super::failures::Fate;
use super::links::Links;
use super::map::Map;
use super::slot::{Desk, Opener, pieces};
use crate::engine::Refusal;
use crate::math::real::{Real, update};

/// What mixing needs of an exchange.
pub struct Mail<'a, T: Real> {
    pub(super) map: &'a Map,
    pub(super) clip: Option<Clipping<T>>,
    pub(super) links: &'a Links<T>,
    pub(super) liars: &'a [bool],
    pub(super) desks: &'a [Mutex<Desk<T>>],
    pub(super) opener: Opener<'a, T>,
    pub(super) wire: usize,
    pub(super) values: &'a [Vec<T>],
    pub(super) old: &'a [Vec<T>],
}

impl<T: Real> Mail<'_, T> {
    /// Whether a node here takes part in this iteration.
    pub fn is_awake(&self, i: usize) -> bool {
        self.links.awake[self.map.here.start + i]
    }

    /// Whether a node here has neighbours in other processes.
    pub fn is_far(&self, i: usize) -> bool {
        self.map.is_far(i)
    }

    /// Memory for a thread.
    pub fn desk(&self, thread: usize) -> std::sync::MutexGuard<'_, Desk<T>> {
        self.desks[thread].lock().expect("nothing panics with a desk")
    }

    /// Whether a parcel of another process is one that it can have sent: all its messages can be read, what
    /// is then held of their senders is finite, unless the parcel need not be, and no radius is below 0.
    pub fn accepts(&self, rank: usize, bytes: &[u8], finite: bool) -> Result<(), Refusal> {
        let border = self.map.borders.iter().find(|border| border.rank == rank);
        let ways = border.into_iter().flat_map(|border| &border.into);
        let ways = ways.filter(|(_, edges)| edges.iter().any(|&edge| self.links.fates[edge].up));
        let Desk { trial, order, .. } = &mut *self.desk(0);
        for (&(way, _), bytes) in ways.zip(bytes.chunks_exact(self.wire.max(1))) {
            trial.clear();
            trial.extend_from_slice(&self.values[way]);
            let opened = self.opener.open(self.map.ways[way], bytes, trial, order);
            opened.ok_or(Refusal::Shape)?;
            if finite && !trial.iter().all(|value| value.is_finite()) {
                return Err(Refusal::NotFinite);
            }
            if trial[self.opener.length..].iter().any(|&radius| radius < T::zero()) {
                return Err(Refusal::Shape);
            }
        }
        Ok(())
    }

    /// What is held of a node here and of its neighbour, over each link that counts.
    fn pairs<'m>(&'m self, i: usize, own: &'m [T]) -> impl Iterator<Item = (T, &'m [T], &'m [T])> {
        self.map.links[i].iter().filter_map(move |link| {
            let values = match self.links.fates[link.edge] {
                Fate { up: false, .. } => return None,
                Fate { late: true, .. } if !self.links.before[link.edge] => return None,
                Fate { late: true, .. } => self.old,
                Fate { late: false, .. } => self.values,
            };
            // A liar knows better than to believe what it said.
            let ours = if self.liars[i] { own } else { &values[link.out][..] };
            Some((self.links.weights[link.edge], &values[link.into][..], ours))
        })
    }

    /// `desk.moved` ← Σ_j w_ij (what is held of j − what is held of i), times the consensus step;
    /// `reach` is the node's radii, which are renewed where they adapt.
    pub fn moved(&self, i: usize, own: &[T], reach: &mut [T], desk: &mut Desk<T>) {
        let Desk { moved, difference, distances, .. } = desk;
        moved.clear();
        moved.resize(self.opener.length, T::zero());
        let Some(clip) = self.clip else {
            for (weight, theirs, ours) in self.pairs(i, own) {
                update(moved, [theirs, ours], |sum, [theirs, ours]| sum + weight * (theirs - ours));
            }
            return;
        };
        for (at, piece) in pieces(self.opener.lengths).enumerate() {
            distances.clear();
            for (weight, theirs, ours) in self.pairs(i, own) {
                let radius = |values: &[T]| values.get(self.opener.length + at).copied();
                let radius = match clip {
                    Clipping::Radius(radius) => radius,
                    // A liar tells no radius to itself: the neighbour's counts.
                    Clipping::Median(_) => {
                        let theirs = radius(theirs).unwrap_or(T::zero());
                        radius(ours).map_or(theirs, |ours| ours.min(theirs))
                    }
                };
                let (theirs, ours) = (&theirs[piece.clone()], &ours[piece.clone()]);
                let length = distance(theirs, ours, &mut difference[..piece.len()]);
                distances.push(length);
                let weight = weight * factor(length, radius);
                update(&mut moved[piece.clone()], [theirs, ours], |sum, [theirs, ours]| {
                    sum + weight * (theirs - ours)
                });
            }
            if let (Clipping::Median(times), Some(median)) = (clip, median(distances)) {
                reach[at] = times * median;
            }
        }
    }
}
