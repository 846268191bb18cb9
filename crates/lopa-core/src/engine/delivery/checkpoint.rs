//! The state of messages in a checkpoint: the replicas of neighbours, and radii.

use super::lossy::Lossy;
use crate::math::real::Real;
use crate::store::bytes::{Reader, Writer};

impl<T: Real> Lossy<T> {
    /// The state of a node of this process for a checkpoint.
    pub(super) fn saved(&self, i: usize) -> Vec<u8> {
        let mut out = Writer::default();
        for buffers in &self.buffers {
            if self.remembers() {
                let known = self.edges.known(i).into_iter();
                known.for_each(|replica| out.reals(&buffers.replicas[replica].value));
            }
            out.reals(&buffers.radii[i].lock().expect("no step panics"));
        }
        out.done()
    }

    /// Restores the saved state of a node of this process; `None` if it does not fit.
    pub(super) fn put_back(&mut self, i: usize, bytes: &[u8]) -> Option<()> {
        let mut bytes = Reader::new(bytes);
        let remembers = self.remembers();
        for buffers in &mut self.buffers {
            let known = if remembers { self.edges.known(i) } else { Vec::new() };
            for replica in known {
                let kept = bytes.reals::<T>()?;
                // For replicas of a node of this process, the node's own copy is right: where an
                // edge was down, a neighbour in another process may have an older one.
                let of = self.edges.replicas[replica].of;
                let better = replica < self.edges.ours && of != self.edges.here.start + i;
                put(&kept, &mut buffers.replicas[replica].value, !better)?;
            }
            let radii = buffers.radii[i].get_mut().expect("no step panics");
            put(&bytes.reals::<T>()?, radii, true)?;
        }
        bytes.end()
    }

    /// Whether an iteration needs the messages of the previous one.
    fn remembers(&self) -> bool {
        self.delays() || (self.compressor.is_some() && self.feedback)
    }
}

/// Restores the saved state, if it is needed; `None` if it does not fit.
fn put<T: Real>(kept: &[T], place: &mut [T], wanted: bool) -> Option<()> {
    if kept.len() != place.len() {
        return None;
    }
    if wanted {
        place.copy_from_slice(kept);
    }
    Some(())
}
