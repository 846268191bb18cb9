//! What a checkpoint needs of messages: what neighbours hold of each other, and radii.

use super::traffic::Traffic;
use crate::math::real::Real;
use crate::store::bytes::{Reader, Writer};

impl<T: Real> Traffic<T> {
    /// What a checkpoint needs of a node here.
    pub fn save(&self, i: usize) -> Vec<u8> {
        let mut out = Writer::default();
        for slot in &self.slots {
            if self.remembers() {
                self.map.known(i).into_iter().for_each(|way| out.reals(&slot.values[way]));
            }
            out.reals(&slot.reach[i]);
        }
        out.done()
    }

    /// Restores what was saved of a node here; `None` if it does not fit.
    pub fn restore(&mut self, i: usize, bytes: &[u8]) -> Option<()> {
        let mut bytes = Reader::new(bytes);
        let remembers = self.remembers();
        for slot in &mut self.slots {
            let known = if remembers { self.map.known(i) } else { Vec::new() };
            for way in known {
                let kept = bytes.reals::<T>()?;
                // What is held of a node here it knows best itself: of a link that was down, a
                // neighbour in another process may have held something older.
                let whose = self.map.ways[way].from;
                let better = way < self.map.ours && whose != self.map.here.start + i;
                put(&kept, &mut slot.values[way], !better)?;
            }
            put(&bytes.reals::<T>()?, &mut slot.reach[i], true)?;
        }
        bytes.end()
    }

    /// Whether an iteration needs what was said in the one before.
    fn remembers(&self) -> bool {
        self.delays || (self.compressor.is_some() && self.feedback)
    }
}

/// Puts back what was kept, if it is wanted; `None` if it does not fit.
fn put<T: Real>(kept: &[T], place: &mut [T], wanted: bool) -> Option<()> {
    if kept.len() != place.len() {
        return None;
    }
    if wanted {
        place.copy_from_slice(kept);
    }
    Some(())
}
