//! Counter-based random numbers: a draw depends only on its address, never on earlier draws.
//!
//! The address is (seed, purpose, node, iteration, slot). Hence a node's samples do not depend on
//! the engine, threads, other nodes or restarts, and a method that needs the same minibatch at two
//! points uses the same address twice.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng as _, SeedableRng};

use super::portable::{cos, ln};

/// The purpose of random numbers. Streams of different purposes are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Minibatches and other draws of an algorithm.
    Sampling = 1,
    /// Drawing a graph.
    Graph = 2,
    /// Splitting data: hold-out, partition, corruption.
    Data = 3,
    /// Starting values.
    Start = 4,
    /// Making a synthetic problem.
    Problem = 5,
    /// Choosing the trials of a search.
    Tuning = 6,
    /// Which links a round uses, on a graph that changes.
    Rounds = 11,
    /// Times drawn for a `[time]` section.
    Time = 12,
    /// Failures of links and nodes.
    Failures = 20,
    /// Draws of compressors.
    Compression = 21,
    /// Draws of lying nodes.
    Attack = 22,
}

/// A stream of random numbers that can seek to any address.
#[derive(Debug)]
pub struct Stream(ChaCha8Rng);

impl Clone for Stream {
    fn clone(&self) -> Stream {
        let Stream(rng) = self;
        let mut same = ChaCha8Rng::from_seed(rng.get_seed());
        same.set_stream(rng.get_stream());
        same.set_word_pos(rng.get_word_pos());
        Stream(same)
    }
}

impl Stream {
    /// The stream of a node (use 0 where the draw is common to all) for a purpose.
    pub fn new(seed: u64, purpose: Purpose, node: usize) -> Stream {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&(purpose as u64).to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(node as u64);
        Stream(rng)
    }

    /// The stream of a key, for draws that others must not be able to repeat.
    pub fn keyed(key: [u8; 32]) -> Stream {
        Stream(ChaCha8Rng::from_seed(key))
    }

    /// Seeks to the draws of slot `slot` of iteration `k`: 2²⁴ words for each of 2¹² slots.
    pub fn seek(&mut self, k: u64, slot: u32) {
        assert!(slot < 1 << 12, "an iteration has at most 4096 draws");
        self.0.set_word_pos(u128::from(k & 0xffff_ffff) << 36 | u128::from(slot) << 24);
    }

    /// A random word.
    #[inline]
    pub fn word(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..below`; the bias is at most `below` / 2⁶⁴.
    pub fn below(&mut self, below: usize) -> usize {
        ((u128::from(self.bits()) * below as u128) >> 64) as usize
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (f64::EPSILON / 2.0)
    }

    /// Uniform in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Standard normal (Box–Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * ln(1.0 - self.unit())).sqrt();
        radius * cos(std::f64::consts::TAU * self.unit())
    }

    /// Shuffles in place (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}
