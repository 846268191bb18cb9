//! Lying nodes, for experiments: they compute like the others, but send something else.

use crate::error::Fault;
use crate::math::random::{Purpose, Stream};
use crate::math::real::Real;
use crate::network::outbox::Round;
use crate::{choices, params};

params! {
    /// Nodes that lie to their neighbours. Measures are then of the honest nodes alone.
    #[derive(PartialEq)]
    pub struct Attack {
        /// The nodes that lie, counted from 0.
        nodes: Vec<usize> = Vec::new(), required;
        /// What they send.
        kind: Lie = Lie::SignFlip, required;
        /// How much of it.
        size: f64 = 1.0;
    }
    check |attack| {
        let nodes = format!("{:?}", attack.nodes);
        let mut distinct = attack.nodes.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let sane = !distinct.is_empty() && distinct.len() == attack.nodes.len();
        Fault::unless(sane, "nodes", nodes, "a list of different nodes, at least one")?;
        Fault::unless(attack.size.is_finite(), "size", attack.size, "a finite number")
    }
}

choices! {
    /// What a node sends in place of its vectors.
    pub enum Lie {
        /// Minus `size` times the vectors.
        SignFlip,
        /// The vectors and `size` times standard normal noise.
        Noise,
        /// `size` in every entry.
        Constant,
    }
}

impl Attack {
    /// `said` ← the message that a lying node sends in a round in place of `message`.
    pub(crate) fn lie<T: Real>(
        &self,
        (seed, node): (u64, usize),
        Round { k, e }: Round,
        message: &[T],
        said: &mut Vec<T>,
    ) {
        said.clear();
        let size = T::of(self.size);
        match self.kind {
            Lie::SignFlip => said.extend(message.iter().map(|&value| -size * value)),
            Lie::Constant => said.extend(message.iter().map(|_| size)),
            Lie::Noise => {
                let mut draw = Stream::new(seed, Purpose::Attack, node);
                draw.seek(k, e as u32 & 0xfff);
                said.extend(message.iter().map(|&value| value + size * T::of(draw.normal())));
            }
        }
    }
}
