//! Ranges that move: where the best trial of an algorithm is at the edge of a range around a value, better values may
//! lie beyond, and a second round of trials searches around it.

use serde::Serialize;

use super::space::Space;
use super::spec::Between;
use super::trial::Trial;
use super::{Note, Search};

/// How often ranges move at most.
pub(super) const MOST: usize = 3;

/// A range that moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// The label of the algorithm.
    pub algorithm: String,
    /// The parameter.
    pub parameter: String,
    /// The range from now on; the best value so far is in its middle.
    pub range: Between,
    /// How many trials came before.
    pub after: usize,
    /// Whether any of them survived; if none did, the range moved down.
    pub survived: bool,
}

impl Moved {
    /// The move in words.
    pub fn says(&self) -> String {
        let Moved { parameter, range: Between { low, high, .. }, after, .. } = self;
        let why = match self.survived {
            true => "the best was at the edge of its range",
            false => "none survived",
        };
        format!("{parameter}: of {after} trials {why}, which moved to {low:.3e} ... {high:.3e}")
    }
}

impl Search<'_> {
    /// Moves the ranges at whose edges the best trials are, after this many trials of each algorithm.
    pub(super) fn follow(
        &self,
        spaces: &mut [Space],
        trials: &[Trial],
        after: usize,
    ) -> Vec<Moved> {
        let mut all = Vec::new();
        for (index, space) in spaces.iter_mut().enumerate() {
            let ranked = self.ranked(trials, index);
            for (parameter, range) in space.follow(ranked[0], &ranked) {
                let algorithm = ranked[0].algorithm.clone();
                let survived = ranked[0].value.is_some();
                let moved = Moved { algorithm, parameter, range, after, survived };
                (self.note)(Note::Moved(&moved));
                all.push(moved);
            }
        }
        all
    }
}
