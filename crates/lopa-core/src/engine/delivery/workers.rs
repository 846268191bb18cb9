//! The threads of this process, each with scratch memory.

use std::sync::Mutex;

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::math::real::Real;

/// Scratch memory of a thread.
#[derive(Debug, Default)]
pub struct Scratch<T> {
    pub(super) sums: Vec<T>,       // weighted sums
    pub(super) moved: Vec<T>,      // Σ_j w_ij (v_j − v_i) of a node
    pub(super) difference: Vec<T>, // between two vectors
    pub(super) order: Vec<u32>,    // of entries, for compressors
    pub(super) distances: Vec<T>,  // to the neighbours of a node
}

/// The threads of this process.
pub struct Workers<'a, T> {
    pool: Option<&'a ThreadPool>,
    scratch: Vec<Mutex<Scratch<T>>>, // one per thread
}

impl<'a, T: Real> Workers<'a, T> {
    /// Those of a pool; without one, this thread alone.
    pub fn new(pool: Option<&'a ThreadPool>) -> Workers<'a, T> {
        let threads = pool.map_or(1, ThreadPool::current_num_threads);
        Workers { pool, scratch: (0..threads).map(|_| Mutex::default()).collect() }
    }

    /// Calls `f` with the scratch memory of the first thread.
    pub fn with_scratch<V>(&self, f: impl FnOnce(&mut Scratch<T>) -> V) -> V {
        f(&mut self.scratch[0].lock().expect("no step panics"))
    }

    /// Calls `f` with each item's index, the item and the scratch memory of a thread.
    pub fn each<A: Send>(
        &self,
        items: &mut [A],
        f: impl Fn(usize, &mut A, &mut Scratch<T>) + Sync,
    ) {
        let mut nothing = vec![(); items.len()];
        self.each_pair(items, &mut nothing, |i, item, (), scratch| f(i, item, scratch));
    }

    /// The same with the items of two lists.
    pub fn each_pair<A: Send, B: Send>(
        &self,
        first: &mut [A],
        second: &mut [B],
        f: impl Fn(usize, &mut A, &mut B, &mut Scratch<T>) + Sync,
    ) {
        let one = |(i, (a, b)): (usize, (&mut A, &mut B))| {
            let thread = self.pool.and_then(ThreadPool::current_thread_index).unwrap_or(0);
            f(i, a, b, &mut self.scratch[thread].lock().expect("no step panics"));
        };
        match self.pool {
            None => first.iter_mut().zip(second).enumerate().for_each(one),
            Some(pool) => pool.install(|| {
                first.par_iter_mut().zip(second).enumerate().for_each(one);
            }),
        }
    }
}
