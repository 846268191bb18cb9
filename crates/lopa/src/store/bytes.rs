//! Values in a fixed little-endian layout: what checkpoints and messages between processes are
//! made of. Whoever reads knows what to expect; what is not there is not read.

use crate::math::real::Real;

/// A SHA-256.
pub type Hash = [u8; 32];

/// Appends values.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// A whole number.
    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A number, to the bit.
    pub fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    /// Scalars, and how many they are.
    pub fn reals<T: Real>(&mut self, values: &[T]) {
        self.u64(values.len() as u64);
        T::extend_le(values, &mut self.0);
    }

    /// Bytes, and how many they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Bytes of a length that the reader knows.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// All that was written.
    pub fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Takes values off the front; `None` where there is no such value.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Of these bytes.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// So many bytes.
    pub fn raw(&mut self, length: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(front)
    }

    /// A whole number.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.raw(8)?.try_into().ok()?))
    }

    /// A number, to the bit.
    pub fn f64(&mut self) -> Option<f64> {
        self.u64().map(f64::from_bits)
    }

    /// Scalars; a length that is not backed by bytes costs no memory.
    pub fn reals<T: Real>(&mut self) -> Option<Vec<T>> {
        let length = usize::try_from(self.u64()?).ok()?;
        let bytes = self.raw(length.checked_mul(T::BYTES)?)?;
        let mut values = vec![T::zero(); length];
        T::read_le(bytes, &mut values);
        Some(values)
    }

    /// Bytes with their length in front.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u64()?).ok()?;
        self.raw(length)
    }

    /// A SHA-256.
    pub fn hash(&mut self) -> Option<Hash> {
        self.raw(32)?.try_into().ok()
    }

    /// Nothing may be left.
    pub fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
