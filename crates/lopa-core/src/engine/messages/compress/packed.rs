//! Small whole numbers, a few bits each, the lowest bits first.

/// The bytes of `count` numbers of `bits` bits.
pub fn bytes(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// Appends numbers of `bits` bits, at most 16.
pub struct Packer<'a> {
    wire: &'a mut Vec<u8>,
    bits: u32,
    held: u64,
    count: u32, // bits held, fewer than 32
}

impl<'a> Packer<'a> {
    pub fn new(wire: &'a mut Vec<u8>, bits: u32) -> Packer<'a> {
        Packer { wire, bits, held: 0, count: 0 }
    }

    pub fn push(&mut self, number: u64) {
        self.held |= number << self.count;
        self.count += self.bits;
        if self.count >= 32 {
            self.wire.extend_from_slice(&(self.held as u32).to_le_bytes());
            self.held >>= 32;
            self.count -= 32;
        }
    }

    /// Appends the remaining bits.
    pub fn end(self) {
        let rest = self.count.div_ceil(8) as usize;
        self.wire.extend_from_slice(&self.held.to_le_bytes()[..rest]);
    }
}

/// The numbers in some bytes, `bits` bits each.
pub fn unpack(wire: &[u8], bits: u32) -> impl Iterator<Item = u64> {
    let all = wire.len() * 8 / bits as usize;
    (0..all).map(move |i| {
        // A number is within four bytes: at most 16 bits, after at most 7 others.
        let first = i * bits as usize;
        let (from, after) = (&wire[first / 8..], first % 8);
        let four = match from.first_chunk() {
            Some(four) => u32::from_le_bytes(*four),
            None => from.iter().rev().fold(0, |held, &byte| held << 8 | u32::from(byte)),
        };
        u64::from(four >> after) & ((1 << bits) - 1)
    })
}
