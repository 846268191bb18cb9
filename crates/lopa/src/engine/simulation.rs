//! All nodes in this process, on any number of threads, with the same bits on each.

use std::sync::Mutex;

use rayon::ThreadPool;
use rayon::prelude::*;

use super::{Node, Row, mix, row};
use crate::network::Mixing;
use crate::oracle::Counts;
use crate::real::Real;

/// All nodes of a run.
pub struct Simulation<'p, T: Real> {
    nodes: Vec<Node<T>>,
    rows: Vec<Row<T>>,
    messages: Vec<Vec<T>>,
    next: Vec<Vec<T>>,
    mixed: Vec<Mutex<Vec<T>>>, // one a thread: it is done with when the node's step is
    k: u64,
    exchanges: u64,
    floats: u64,
    pool: Option<&'p ThreadPool>,
}

impl<'p, T: Real> Simulation<'p, T> {
    /// Nodes on a network; without a pool, on this thread alone.
    pub fn new(nodes: Vec<Node<T>>, mixing: &Mixing, pool: Option<&'p ThreadPool>) -> Self {
        let m = nodes.len();
        assert_eq!(mixing.nodes(), m, "one row of W for each node");
        let rows = (0..m).map(|i| row(i, mixing.row(i))).collect();
        let mut messages = vec![Vec::new(); m];
        for (node, message) in nodes.iter().zip(&mut messages) {
            node.algorithm.share(0, message);
        }
        let next = messages.clone();
        let threads = pool.map_or(1, ThreadPool::current_num_threads);
        let mixed = (0..threads).map(|_| Mutex::new(messages[0].clone())).collect();
        Simulation { nodes, rows, messages, next, mixed, k: 0, exchanges: 0, floats: 0, pool }
    }

    /// One iteration of every node.
    #[inline(never)] // its instructions are counted by this name: bench/instructions
    pub fn iterate(&mut self) {
        let exchanges = self.nodes[0].algorithm.exchanges();
        for e in 0..exchanges {
            let (k, rows, messages, mixed) = (self.k, &self.rows, &self.messages, &self.mixed);
            let pool = self.pool;
            let work = |(i, (node, next)): Work<T>| {
                let thread = pool.and_then(ThreadPool::current_thread_index).unwrap_or(0);
                let mixed = &mut *mixed[thread].lock().expect("a step does not panic");
                mix(&rows[i], &messages[i], |j| &messages[j], mixed);
                if e == 0 {
                    node.oracle.begin(k);
                }
                node.algorithm.step(e, mixed, &mut node.oracle);
                next.clear();
                node.algorithm.share((e + 1) % exchanges, next);
            };
            match self.pool {
                None => self.nodes.iter_mut().zip(&mut self.next).enumerate().for_each(work),
                Some(pool) => pool.install(|| {
                    self.nodes.par_iter_mut().zip(&mut self.next).enumerate().for_each(work);
                }),
            }
            self.exchanges += u64::from(!self.messages[0].is_empty());
            let sent = |(row, message): (&Row<T>, &Vec<T>)| (row.len() * message.len()) as u64;
            self.floats += self.rows.iter().zip(&self.messages).map(sent).sum::<u64>();
            std::mem::swap(&mut self.messages, &mut self.next);
        }
        self.k += 1;
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node<T>] {
        &self.nodes
    }

    /// The nodes, to be looked at more closely.
    pub fn nodes_mut(&mut self) -> &mut [Node<T>] {
        &mut self.nodes
    }

    /// Iterations done.
    pub fn k(&self) -> u64 {
        self.k
    }

    /// Rounds of communication done.
    pub fn exchanges(&self) -> u64 {
        self.exchanges
    }

    /// Scalars sent over all links so far.
    pub fn floats(&self) -> u64 {
        self.floats
    }

    /// What all nodes asked of their oracles so far.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.nodes.iter().for_each(|node| sum += node.oracle.counts());
        sum
    }
}

type Work<'a, T> = (usize, (&'a mut Node<T>, &'a mut Vec<T>));
