//! Nodes in checkpoints.

use crate::engine::Node;
use crate::math::real::Real;
use crate::problem::derivative::Counts;
use crate::problem::private::RowClip;
use crate::store::bytes::{Hash, Reader, Writer};

/// Encodes a node: its trail of digests, its counters, its clips, its variables by name; then the state of its
/// messages (see [`Delivery::save`](crate::engine::Delivery::save)).
pub fn save<T: Real>(node: &Node<T>, trail: &Hash, messages: &[u8]) -> Vec<u8> {
    let mut out = Writer::default();
    out.raw(trail);
    node.oracle.counts().to_array().into_iter().for_each(|count| out.u64(count));
    node.oracle.clips().iter().for_each(|&clip| out.f64(clip));
    for (name, values) in node.algorithm.variables() {
        out.bytes(name.as_bytes());
        out.packed(values);
    }
    out.raw(messages);
    out.done()
}

/// Restores a node, and returns its trail and the state of its messages; `None` if the saved
/// variables do not fit it.
pub fn restore<'b, T: Real>(node: &mut Node<T>, bytes: &'b [u8]) -> Option<(Hash, &'b [u8])> {
    let mut bytes = Reader::new(bytes);
    let trail = bytes.hash()?;
    let mut counts = Counts::default().to_array();
    for count in &mut counts {
        *count = bytes.count()?;
    }
    for clip in node.oracle.clips_mut() {
        *clip = Some(bytes.f64()?).filter(|clip| RowClip::RANGE.contains(clip))?;
    }
    for (name, values) in node.algorithm.variables_mut() {
        if bytes.bytes()? != name.as_bytes() {
            return None;
        }
        values.copy_from_slice(&bytes.packed(values.len())?);
    }
    node.oracle.count_from(Counts::from_array(counts));
    Some((trail, bytes.rest()))
}
