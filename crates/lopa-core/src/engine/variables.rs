//! The variables of an algorithm as arrays of all nodes, for a device that holds them.

use super::Node;
use super::list::Arrays;
use crate::algorithms::parts::steps::RULE;
use crate::error::Result;
use crate::math::real::Real;

/// Numbers copied at a time.
const AT_ONCE: usize = 1 << 20;

/// Where the variables of an algorithm are in the arrays of a device.
pub struct Variables {
    /// The numbers of a node in each array; 0 where it is not used.
    pub lengths: Vec<usize>,
    of: Vec<Vec<usize>>, // the arrays that each variable is, one after the other
    watched: Vec<bool>,  // whether the growth of each means divergence
}

impl Variables {
    /// The variables of an algorithm; some (`joined`) are several arrays. The arrays of a rule that is a list are
    /// all used, and a variable that it does not mention stays as it is; other rules must mention all.
    ///
    /// # Errors
    /// The name of a variable without an array.
    pub fn new<T: Real>(
        node: &Node<T>,
        arrays: &Arrays,
        joined: &[(&'static str, Vec<&'static str>)],
        listed: bool,
    ) -> Result<Variables, &'static str> {
        let named = node.algorithm.variables();
        let mut of = Vec::new();
        for &(name, _) in &named {
            let own = vec![name];
            let names = joined.iter().find(|(known, _)| *known == name).map_or(&own, |(_, of)| of);
            let found = names.iter().map(|name| arrays.find(name)).collect::<Option<Vec<_>>>();
            of.push(found.or(listed.then(Vec::new)).ok_or(name)?);
        }
        let length = |name: &str| {
            named.iter().find(|(known, _)| *known == name).map_or(0, |(_, values)| values.len())
        };
        let [n, p] = [length("x"), length("theta")];
        let used = |at: usize| listed || of.iter().any(|arrays| arrays.contains(&at));
        let lengths = arrays.0.iter().enumerate().map(|(at, array)| match used(at) {
            true if array.name == RULE => length(RULE),
            true if array.wide => n,
            true => p,
            false => 0,
        });
        let watched = named.iter().map(|(name, _)| node.watched().any(|(of, _)| of == *name));
        Ok(Variables { lengths: lengths.collect(), watched: watched.collect(), of })
    }

    /// Passes the variable that this array is, or is a part of, to `put`, for several nodes at a time, with
    /// the number of the first node.
    pub fn hand_over<T: Real>(
        &self,
        nodes: &[Node<T>],
        at: usize,
        mut put: impl FnMut(usize, &[T]) -> Result<()>,
    ) -> Result<()> {
        let Some(which) = self.of.iter().position(|arrays| arrays.contains(&at)) else {
            return Ok(());
        };
        let before = self.of[which].iter().take_while(|&&array| array != at);
        let first = before.map(|&array| self.lengths[array]).sum::<usize>();
        let own = first..first + self.lengths[at];
        let together = (AT_ONCE / self.lengths[at].max(1)).max(1);
        let mut values = Vec::with_capacity(together.min(nodes.len()) * self.lengths[at]);
        for (some, nodes) in nodes.chunks(together).enumerate() {
            values.clear();
            nodes.iter().for_each(|node| {
                values.extend_from_slice(&node.algorithm.variables()[which].1[own.clone()]);
            });
            put(some * together, &values)?;
        }
        Ok(())
    }

    /// Copies the variables back to all nodes; `fetch` reads each array by its number.
    pub fn give_back<T: Real>(
        &self,
        nodes: &mut [Node<T>],
        mut fetch: impl FnMut(usize, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        let mut all = Vec::new();
        for (which, arrays) in self.of.iter().enumerate() {
            let mut first = 0;
            for &array in arrays {
                let length = self.lengths[array];
                all.resize(nodes.len() * length, T::zero());
                fetch(array, &mut all)?;
                for (i, node) in nodes.iter_mut().enumerate() {
                    let to = node.algorithm.variables_mut().swap_remove(which).1;
                    let own = &all[i * length..(i + 1) * length];
                    to[first..first + length].copy_from_slice(own);
                }
                first += length;
            }
        }
        Ok(())
    }

    /// Each node's sizes in the order of the algorithm's variables that are watched, from those of all arrays.
    pub fn sorted(&self, largest: &[f64]) -> Vec<Vec<f64>> {
        let worse = |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) };
        let one = |sizes: &[f64]| {
            let of = |arrays: &Vec<usize>| arrays.iter().map(|&at| sizes[at]).fold(0.0, worse);
            let all = self.of.iter().zip(&self.watched);
            all.filter(|(_, watched)| **watched).map(|(arrays, _)| of(arrays)).collect()
        };
        largest.chunks_exact(self.lengths.len()).map(one).collect()
    }
}
