//! The rule that finds step sizes, as a plan has it.

use lopa::algorithms::parts::steps::Finder;
use lopa::algorithms::parts::steps::number::{CURVATURE, SQUARE, SQUARE_THETA, SQUARE_V};
use lopa::algorithms::update_rule::Turn;

/// The numbers that a node sends, in their order.
pub const SENT: [usize; 4] = [SQUARE, SQUARE_THETA, SQUARE_V, CURVATURE];

/// The rule, with its arrays by number.
pub struct Finds {
    /// Of the first node; units are those of each node.
    pub finder: Finder,
    pub units: Vec<f64>,
    /// What it does before the updates, after the evaluation, and last.
    pub turns: [Turn; 3],
    /// The rule's numbers.
    pub rule: usize,
    /// The running mean of θ, if there is one.
    pub mean: Option<usize>,
    /// What it needs to measure curvatures.
    pub measures: Option<Measures>,
}

/// The arrays of measurements, by number.
#[derive(Clone, Copy)]
pub struct Measures {
    /// d and h of the point before.
    pub old: [usize; 2],
    /// The product with v in h.
    pub hess: usize,
    /// Where a probe goes along, and the product there.
    pub w: usize,
    pub product: usize,
    /// The evaluation of a probe.
    pub probe: usize,
}
