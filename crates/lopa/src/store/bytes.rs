//! Values in a fixed little-endian layout, for checkpoints and messages between processes. The
//! layout is not self-describing: readers know what to expect.

use crate::math::real::Real;

/// A SHA-256 digest.
pub type Hash = [u8; 32];

/// Appends values.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// An integer.
    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A number, bit for bit.
    pub fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    /// Scalars, preceded by their number.
    pub fn reals<T: Real>(&mut self, values: &[T]) {
        self.u64(values.len() as u64);
        T::extend_le(values, &mut self.0);
    }

    /// Bytes, preceded by their number.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Bytes alone: the reader knows their number.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The bytes written.
    pub fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Takes values off the front; `None` if too few bytes are left.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads these bytes.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// `length` bytes.
    pub fn raw(&mut self, length: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(front)
    }

    /// An integer.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.raw(8)?.try_into().ok()?))
    }

    /// A number, bit for bit.
    pub fn f64(&mut self) -> Option<f64> {
        self.u64().map(f64::from_bits)
    }

    /// Scalars; a length larger than the bytes left allocates nothing.
    pub fn reals<T: Real>(&mut self) -> Option<Vec<T>> {
        let length = usize::try_from(self.u64()?).ok()?;
        let bytes = self.raw(length.checked_mul(T::BYTES)?)?;
        let mut values = vec![T::zero(); length];
        T::read_le(bytes, &mut values);
        Some(values)
    }

    /// Bytes preceded by their number.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u64()?).ok()?;
        self.raw(length)
    }

    /// A SHA-256 digest.
    pub fn hash(&mut self) -> Option<Hash> {
        self.raw(32)?.try_into().ok()
    }

    /// The bytes that are left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// `None` if bytes are left.
    pub fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
