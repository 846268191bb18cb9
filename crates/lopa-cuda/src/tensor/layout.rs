//! Where the kernels keep the numbers of x: in the order of the accumulators of products with 16 features, so
//! that every lane reads and writes 16 bytes.

use lopa::math::real::Real;

use super::UNITS;
use crate::run;

/// Numbers of a group of 16 features.
const GROUP: usize = 16 * UNITS as usize;

/// Chunks of 128 features, after which come 16 more.
pub fn chunks(features: u32) -> u32 {
    features.saturating_sub(16).div_ceil(128).max(1)
}

/// x of a node, padded to whole groups of features and units.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    features: usize,
    units: usize,
    pub chunks: u32,
}

impl Layout {
    pub fn new(features: u32, units: u32) -> Layout {
        let chunks = chunks(features);
        Layout { features: features as usize, units: units as usize, chunks }
    }

    fn bias(&self) -> usize {
        (8 * self.chunks as usize + 1) * GROUP
    }

    /// The numbers of a node.
    pub fn length(&self) -> usize {
        (self.bias() + UNITS as usize).next_multiple_of(64)
    }

    /// Where the weight of feature q and unit u is; feature `features` is the bias.
    fn place(&self, q: usize, u: usize) -> usize {
        if q == self.features {
            return self.bias() + u;
        }
        let (g, c, t) = (q % 16 / 2, u / 8, u % 8 / 2);
        // The last block has four units.
        let lane = if c < 3 { g * 4 + t } else { g * 2 + t };
        q / 16 * GROUP + c * 128 + lane * 4 + q % 2 * 2 + u % 2
    }

    /// Rows of bytes with zeros after them, in whole lines of 128.
    pub fn table(&self, bytes: &[u8]) -> Vec<u8> {
        let stride = 128 * (self.chunks as usize + 1);
        let rows = bytes.chunks_exact(self.features);
        let mut table = vec![0; rows.len() * stride];
        table
            .chunks_exact_mut(stride)
            .zip(rows)
            .for_each(|(to, row)| to[..row.len()].copy_from_slice(row));
        table
    }
}

impl<T: Real> run::Layout<T> for Layout {
    fn length(&self, _: usize) -> usize {
        Layout::length(self)
    }

    fn pack(&self, from: &[T], to: &mut [T]) {
        to.fill(T::zero());
        for (q, row) in from.chunks_exact(self.units).enumerate() {
            row.iter().enumerate().for_each(|(u, &value)| to[self.place(q, u)] = value);
        }
    }

    fn unpack(&self, from: &[T], to: &mut [T]) {
        for (q, row) in to.chunks_exact_mut(self.units).enumerate() {
            row.iter_mut().enumerate().for_each(|(u, value)| *value = from[self.place(q, u)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;
    use crate::run::Layout as _;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        for (features, units) in [(784, 28), (64, 9), (130, 17), (3072, 28)] {
            let layout = Layout::new(features, units);
            let count = (features + 1) as usize * units as usize;
            let values: Vec<f32> = (0..count).map(|at| at as f32 + 1.0).collect();
            let (mut packed, mut back) = (vec![9.0; Layout::length(&layout)], vec![0.0; count]);
            layout.pack(&values, &mut packed);
            assert_eq!(packed.iter().filter(|value| **value != 0.0).count(), count);
            layout.unpack(&packed, &mut back);
            assert_eq!(back, values);
        }
        assert_eq!(Layout::length(&Layout::new(784, 28)), 22_016, "hardly more than there are");
    }
}
