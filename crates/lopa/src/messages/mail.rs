//! Mixing: what neighbours' messages move a node by.

use std::sync::Mutex;

use super::clip::{Clipping, distance, factor, median};
use super::failures::Fate;
use super::links::Links;
use super::map::Map;
use super::slot::{Desk, pieces};
use crate::math::real::{Real, update};

/// What mixing needs of an exchange.
pub struct Mail<'a, T: Real> {
    pub(super) map: &'a Map,
    pub(super) clip: Option<Clipping<T>>,
    pub(super) links: &'a Links<T>,
    pub(super) liars: &'a [bool],
    pub(super) desks: &'a [Mutex<Desk<T>>],
    pub(super) lengths: &'a [usize],
    pub(super) length: usize,
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
        moved.resize(self.length, T::zero());
        let Some(clip) = self.clip else {
            for (weight, theirs, ours) in self.pairs(i, own) {
                update(moved, [theirs, ours], |sum, [theirs, ours]| sum + weight * (theirs - ours));
            }
            return;
        };
        for (at, piece) in pieces(self.lengths).enumerate() {
            distances.clear();
            for (weight, theirs, ours) in self.pairs(i, own) {
                let radius = |values: &[T]| values.get(self.length + at).copied();
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
