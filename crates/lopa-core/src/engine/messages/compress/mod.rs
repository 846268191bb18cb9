//! Compressors: encode a vector in fewer bytes, and decode them.
//!
//! To add one, copy `sign.rs` and add a line to [`compressors`].

mod half;
mod packed;
mod quantise;
mod random_k;
mod sign;
mod top_k;

use std::sync::Arc;

use crate::config::{Entry, Params, Registry};
use crate::math::portable::{log10, powf};
use crate::math::random::Stream;
use crate::math::real::{Both, Family, Real};

/// Encodes vectors as bytes, and decodes these to nearby vectors.
///
/// A compressor has no memory: its error stays in the difference between a vector and the
/// neighbours' replica, and is sent later. For that it must be a contraction, at least in the mean:
/// the error is shorter than the vector.
pub trait Compressor<T: Real>: Send + Sync + 'static {
    /// The number of bytes for a vector of this length; it must not depend on the entries, because
    /// a receiver computes it as well.
    fn bytes(&self, length: usize) -> usize;

    /// Appends that many bytes. The receiver's `draw` is at the same address.
    fn encode(&self, vector: &[T], draw: &mut Stream, order: &mut Vec<u32>, wire: &mut Vec<u8>);

    /// Adds the decoded vector to `replica`; `None` if the bytes are malformed. `draw` is at the
    /// address of the encoder's.
    fn add(
        &self,
        wire: &[u8],
        draw: &mut Stream,
        order: &mut Vec<u32>,
        replica: &mut [T],
    ) -> Option<()>;

    /// The default consensus step size, above 0 and at most 1: the larger the error, the smaller.
    /// The eigenvalues of W lie between 1 − `spread` and 1.
    fn consensus_step(&self, spread: f64) -> f64;
}

/// A compressor with its parameters, in both precisions.
pub struct AnyCompressor {
    both: Both<Compressors>,
}

struct Compressors;

impl Family for Compressors {
    type Of<T: Real> = Arc<dyn Compressor<T>>;
}

impl AnyCompressor {
    /// From a compressor for both precisions.
    pub fn new<C: Compressor<f32> + Compressor<f64>>(compressor: C) -> AnyCompressor {
        let double = Arc::new(compressor);
        let single: Arc<dyn Compressor<f32>> = double.clone();
        AnyCompressor { both: Both::new(single, double as Arc<dyn Compressor<f64>>) }
    }

    /// The default consensus step size on a W whose eigenvalues lie between 1 − `spread` and 1.
    pub fn consensus_step(&self, spread: f64) -> f64 {
        self.get::<f64>().consensus_step(spread)
    }

    /// The one in precision `T`.
    pub fn get<T: Real>(&self) -> Arc<dyn Compressor<T>> {
        self.both.get::<T>().clone()
    }
}

/// An entry of the registry: the struct of parameters is the compressor.
pub fn compressor_entry<C: Params + Compressor<f32> + Compressor<f64>>(
    name: impl Into<String>,
    about: impl Into<String>,
) -> Entry<AnyCompressor> {
    Entry::new(name, about, |params: C| Arc::new(AnyCompressor::new(params)))
}

/// The compressors that come with the library.
pub fn compressors() -> Registry<AnyCompressor> {
    let entries = vec![
        compressor_entry::<top_k::TopK>("top-k", "the largest entries of each vector"),
        compressor_entry::<random_k::RandomK>(
            "random-k",
            "entries drawn at random; both ends draw the same, so that no indices are sent",
        ),
        compressor_entry::<quantise::Quantise>(
            "quantise",
            "few bits per entry, between minus and plus the largest, rounded at random",
        ),
        compressor_entry::<half::Bf16>("bf16", "16 bits per entry: 8 of them significant"),
        compressor_entry::<half::F16>(
            "f16",
            "16 bits per entry: 11 of them significant, after scaling by a power of two",
        ),
        compressor_entry::<sign::Sign>("sign", "one bit per entry and the mean size of all"),
    ];
    Registry::new("compressor", entries)
}

/// The number of entries in a share of a vector.
fn entries(share: f64, length: usize) -> usize {
    ((share * length as f64).ceil() as usize).clamp(usize::from(length > 0), length)
}

/// The largest step γ ≤ 1 with γ · `spread` ≤ `most`, in two digits, so that it does not depend on how an
/// eigenvalue was rounded.
fn limited(most: f64, spread: f64) -> f64 {
    if spread <= most {
        return 1.0;
    }
    let step = most / spread;
    let unit = powf(10.0, 1.0 - log10(step).floor());
    // A value with two digits must not lose one to rounding.
    (step * unit + 1e-6).floor() / unit
}

/// The number in some bytes.
fn number<T: Real>(bytes: &[u8]) -> T {
    let mut number = [T::zero()];
    T::read_le(bytes, &mut number);
    number[0]
}
