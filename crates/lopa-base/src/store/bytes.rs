//! Values in a fixed little-endian layout, for checkpoints and messages between processes. The
//! layout is not self-describing: readers must expect the same fields.

use crate::math::real::Real;

/// A SHA-256 digest.
pub type Hash = [u8; 32];

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Marks packed scalars: no length has this bit.
const PACKED: u64 = 1 << 63;

/// The longest run.
const RUN: usize = u32::MAX as usize;

/// Zeros that are worth a run of their own.
const WORTH: usize = 4;

/// Whether a scalar is zero in all its bits; −0 is not.
fn is_zero<T: Real>(value: T) -> bool {
    value == T::zero() && !value.is_sign_negative()
}

/// How many scalars come before the next zeros that are worth a run.
fn until_zeros<T: Real>(values: &[T]) -> usize {
    let mut zeros = 0;
    for (at, value) in values.iter().enumerate() {
        zeros = if is_zero(*value) { zeros + 1 } else { 0 };
        if zeros == WORTH {
            return at + 1 - WORTH;
        }
    }
    values.len()
}

/// Appends values.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// An integer.
    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// An integer that may be missing: 0, or one more than it.
    pub fn option(&mut self, value: Option<u64>) {
        self.u64(value.map_or(0, |value| value.saturating_add(1)));
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

    /// The same in less space where many are zero: the number has its highest bit set, and is
    /// followed by runs of (zeros, others), 32 bits each, and the others. Scalars that are not zero
    /// are written as [`reals`](Writer::reals) would.
    pub fn packed<T: Real>(&mut self, values: &[T]) {
        let start = self.0.len();
        self.u64(values.len() as u64 | PACKED);
        let most = values.len() * T::BYTES;
        let mut rest = values;
        while !rest.is_empty() {
            let zeros = rest.iter().take_while(|value| is_zero(**value)).count().min(RUN);
            let others = &rest[zeros..];
            let others = &others[..until_zeros(others).min(RUN)];
            self.0.extend_from_slice(&(zeros as u32).to_le_bytes());
            self.0.extend_from_slice(&(others.len() as u32).to_le_bytes());
            T::extend_le(others, &mut self.0);
            rest = &rest[zeros + others.len()..];
            if self.0.len() - start > most {
                self.0.truncate(start);
                return self.reals(values);
            }
        }
    }

    /// Bytes, preceded by their number.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Bytes without their number, which the reader must have.
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

    /// An integer that may be missing.
    pub fn option(&mut self) -> Option<Option<u64>> {
        Some(self.u64()?.checked_sub(1))
    }

    /// A count. More than 2⁵³, which no run reaches, is malformed: counting on from a valid count
    /// cannot overflow.
    pub fn count(&mut self) -> Option<u64> {
        self.u64().filter(|&count| count <= 1 << 53)
    }

    /// A number, bit for bit.
    pub fn f64(&mut self) -> Option<f64> {
        self.u64().map(f64::from_bits)
    }

    /// Scalars, packed or not, of the expected number; any other number is malformed.
    pub fn packed<T: Real>(&mut self, length: usize) -> Option<Vec<T>> {
        let mut ahead = *self;
        if ahead.u64()? != length as u64 | PACKED {
            return self.reals().filter(|values| values.len() == length);
        }
        *self = ahead;
        let mut values = vec![T::zero(); length];
        let mut rest = &mut values[..];
        while !rest.is_empty() {
            let [zeros, others] = [self.u32()?, self.u32()?].map(|count| count as usize);
            if zeros + others == 0 {
                return None;
            }
            let (_, after) = rest.split_at_mut_checked(zeros)?;
            let (these, after) = after.split_at_mut_checked(others)?;
            T::read_le(self.raw(others * T::BYTES)?, these);
            rest = after;
        }
        Some(values)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.raw(4)?.try_into().ok()?))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::random::{Purpose, Stream};

    fn packed<T: Real>(values: &[T]) -> Vec<u8> {
        let mut out = Writer::default();
        out.packed(values);
        out.done()
    }

    #[test]
    fn packed_scalars_come_back_bit_for_bit() {
        let mut stream = Stream::new(1, Purpose::Start, 0);
        for round in 0..3000 {
            let (length, share) = (stream.below(60), stream.unit());
            let mut one = || match stream.unit() < share {
                true => 0.0,
                false => [-0.0, f64::NAN, f64::INFINITY, 1.5, 1e-310][stream.below(5)],
            };
            let values: Vec<f64> = (0..length).map(|_| one()).collect();
            let bytes = packed(&values);
            let found: Vec<f64> = Reader::new(&bytes).packed(length).unwrap();
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&values), "round {round}");
            assert!(bytes.len() <= 8 + 8 * length + 8, "round {round}");
            // Input that does not fit is malformed, and never causes a panic.
            assert!(Reader::new(&bytes).packed::<f64>(length + 1).is_none());
            for cut in 0..bytes.len() {
                assert!(Reader::new(&bytes[..cut]).packed::<f64>(length).is_none() || length == 0);
            }
        }
    }

    #[test]
    fn zeros_take_no_room_and_dense_scalars_are_as_before() {
        let mut sparse = vec![0f32; 1_000_000];
        sparse[7] = 1.0;
        assert!(packed(&sparse).len() < 50);
        let dense = [1.0, 0.0, 2.0, 3.0];
        let mut plain = Writer::default();
        plain.reals(&dense);
        assert_eq!(packed(&dense), plain.done());
        // Empty runs do not hang the reader.
        let mut endless = Writer::default();
        endless.u64(5 | PACKED);
        endless.u64(0);
        assert!(Reader::new(&endless.done()).packed::<f64>(5).is_none());
    }
}
