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
    count: u32, // bits held
}

impl<'a> Packer<'a> {
    pub fn new(wire: &'a mut Vec<u8>, bits: u32) -> Packer<'a> {
        Packer { wire, bits, held: 0, count: 0 }
    }

    pub fn push(&mut self, number: u64) {
        self.held |= number << self.count;
        self.count += self.bits;
        while self.count >= 8 {
            self.wire.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    /// Appends the remaining bits.
    pub fn end(self) {
        if self.count > 0 {
            self.wire.push(self.held as u8);
        }
    }
}

/// The numbers in some bytes, `bits` bits each.
pub fn unpack(wire: &[u8], bits: u32) -> impl Iterator<Item = u64> {
    let (mut bytes, mut held, mut count) = (wire.iter(), 0u64, 0u32);
    std::iter::from_fn(move || {
        while count < bits {
            held |= u64::from(*bytes.next()?) << count;
            count += 8;
        }
        let number = held & ((1 << bits) - 1);
        held >>= bits;
        count -= bits;
        Some(number)
    })
}
