//! Nodes that lie, for experiments: they live as the others do, but send something else.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Params;
use crate::error::Fault;
use crate::math::random::{Purpose, Stream};
use crate::math::real::Real;

/// Nodes that lie to their neighbours. Measures are then of the honest nodes alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    /// The nodes that lie, counted from 0.
    pub nodes: Vec<usize>,
    /// What they send.
    pub kind: Lie,
    /// How much of it.
    #[serde(default = "one")]
    pub size: f64,
}

/// What a node sends in place of its vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lie {
    /// Minus `size` times the vectors.
    SignFlip,
    /// The vectors and `size` times standard normal noise.
    Noise,
    /// `size` in every entry.
    Constant,
}

fn one() -> f64 {
    1.0
}

impl Params for Attack {
    fn check(&self) -> Result<(), Fault> {
        let nodes = format!("{:?}", self.nodes);
        let mut distinct = self.nodes.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let sane = !distinct.is_empty() && distinct.len() == self.nodes.len();
        Fault::unless(sane, "nodes", nodes, "a list of different nodes, at least one")?;
        Fault::unless(self.size.is_finite(), "size", self.size, "a finite number")
    }
}

impl Attack {
    /// `said` ← what a lying node sends in exchange `e` of iteration `k` in place of `message`.
    pub(super) fn lie<T: Real>(
        &self,
        (seed, node): (u64, usize),
        (k, e): (u64, usize),
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
