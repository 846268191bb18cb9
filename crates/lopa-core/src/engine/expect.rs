//! The messages that another process may send about its nodes. All processes send messages of the
//! same form, so each derives the form of the others' from its own.

use super::refusal::Refusal;
use crate::store::bytes::Reader;

/// The form of each node's message in a gathering, besides its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Numbers of any value: those of a run that diverges are not finite.
    Numbers,
    /// Numbers that were counted: finite, and none below 0.
    Counts,
    /// A vector and whether the node is sound, 1 or 0: if it is, the vector is finite.
    Sound,
    /// Bytes.
    Bytes,
    /// Text of any length, in one line.
    Text,
}

impl Expect {
    /// Whether these bytes may be the messages of this many nodes, each of `length` numbers or
    /// bytes.
    pub fn check(self, bytes: &[u8], nodes: usize, length: usize) -> Result<(), Refusal> {
        let mut bytes = Reader::new(bytes);
        for _ in 0..nodes {
            match self {
                Expect::Bytes | Expect::Text => {
                    let told = bytes.bytes().ok_or(Refusal::Shape)?;
                    self.check_bytes(told, length)?;
                }
                Expect::Numbers | Expect::Counts | Expect::Sound => {
                    let told: Vec<f64> = bytes.reals().ok_or(Refusal::Shape)?;
                    self.check_numbers(&told, length)?;
                }
            }
        }
        bytes.end().ok_or(Refusal::Shape)
    }

    fn check_bytes(self, told: &[u8], length: usize) -> Result<(), Refusal> {
        let fits = match self {
            Expect::Text => {
                std::str::from_utf8(told).is_ok_and(|text| !text.contains(char::is_control))
            }
            _ => told.len() == length,
        };
        fits.then_some(()).ok_or(Refusal::Shape)
    }

    fn check_numbers(self, told: &[f64], length: usize) -> Result<(), Refusal> {
        if told.len() != length {
            return Err(Refusal::Shape);
        }
        let must_be_finite = match (self, told.last()) {
            (Expect::Counts, _) => true,
            (Expect::Sound, Some(&sound)) if sound == 0.0 || sound == 1.0 => sound == 1.0,
            (Expect::Sound, _) => return Err(Refusal::Shape),
            _ => false,
        };
        if must_be_finite && told.iter().any(|number| !number.is_finite()) {
            return Err(Refusal::NotFinite);
        }
        let below = self == Expect::Counts && told.iter().any(|&number| number < 0.0);
        if below { Err(Refusal::Shape) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::bytes::Writer;

    fn numbers(of: &[&[f64]]) -> Vec<u8> {
        let mut out = Writer::default();
        of.iter().for_each(|numbers| out.reals(numbers));
        out.done()
    }

    fn bytes(of: &[&[u8]]) -> Vec<u8> {
        let mut out = Writer::default();
        of.iter().for_each(|bytes| out.bytes(bytes));
        out.done()
    }

    #[test]
    fn only_what_this_node_would_tell_is_accepted() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        use Expect::*;
        use Refusal::{NotFinite, Shape};
        for (expect, told, want) in [
            (Numbers, numbers(&[&[1.0, nan]]), Ok(())),
            (Numbers, numbers(&[&[]]), Err(Shape)),
            (Numbers, numbers(&[&[1.0]]), Err(Shape)),
            (Numbers, numbers(&[&[1.0; 3]]), Err(Shape)),
            (Numbers, numbers(&[&[1.0; 2][..]; 3]), Err(Shape)),
            (Numbers, numbers(&[]), Err(Shape)),
            (Numbers, vec![0xff; 24], Err(Shape)),
            (Counts, numbers(&[&[1.0, 0.0]]), Ok(())),
            (Counts, numbers(&[&[1.0, nan]]), Err(NotFinite)),
            (Counts, numbers(&[&[inf, 1.0]]), Err(NotFinite)),
            (Counts, numbers(&[&[-1.0, 1.0]]), Err(Shape)),
            (Sound, numbers(&[&[nan, 0.0]]), Ok(())),
            (Sound, numbers(&[&[2.0, 1.0]]), Ok(())),
            (Sound, numbers(&[&[nan, 1.0]]), Err(NotFinite)),
            (Sound, numbers(&[&[1.0, nan]]), Err(Shape)),
            (Bytes, bytes(&[b"ab"]), Ok(())),
            (Bytes, bytes(&[b"abc"]), Err(Shape)),
            (Bytes, bytes(&[b"ab", b"ab"]), Err(Shape)),
            (Text, bytes(&["θ grew first".as_bytes()]), Ok(())),
            (Text, bytes(&[b""]), Ok(())),
            (Text, bytes(&[b"\x1b[2J"]), Err(Shape)),
            (Text, bytes(&[b"\xff"]), Err(Shape)),
        ] {
            assert_eq!(expect.check(&told, 1, 2), want, "{expect:?}: {told:?}");
        }
        assert_eq!(Numbers.check(&numbers(&[&[1.0; 2][..]; 3]), 3, 2), Ok(()), "three nodes");
    }
}
