//! The one rule for runs that diverged.
//!
//! A diverged run contributes no number, whatever it measured before. An algorithm with such a run
//! is shown by its other seeds and their count, and is not ranked: the remaining seeds are not a
//! fair sample. Every table, figure and sentence about several seeds goes through [`Seeds`].

use lopa::folder::Run;
use lopa::run::Outcome;
use lopa::run::trace::Stop;

use crate::statistics::Summary;

/// The properties of a finished run that the rule needs.
pub trait Ended {
    /// The label of its algorithm.
    fn algorithm(&self) -> &str;
    /// Its seed.
    fn seed(&self) -> u64;
    /// Whether it diverged.
    fn diverged(&self) -> bool;
    /// A cost or a measure at its end.
    fn last(&self, quantity: &str) -> Option<f64>;
}

impl Ended for Outcome {
    fn algorithm(&self) -> &str {
        &self.algorithm
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn diverged(&self) -> bool {
        self.stop == Stop::Diverged
    }

    fn last(&self, quantity: &str) -> Option<f64> {
        self.row.value(quantity)
    }
}

impl Ended for Run {
    fn algorithm(&self) -> &str {
        &self.algorithm
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn diverged(&self) -> bool {
        self.diverged
    }

    fn last(&self, quantity: &str) -> Option<f64> {
        self.rows.last()?.value(quantity)
    }
}

/// The runs of one algorithm, one per seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Seeds<'a, R> {
    runs: Vec<&'a R>,
}

impl<'a, R: Ended> Seeds<'a, R> {
    /// The runs of this algorithm among the given ones.
    pub fn of(algorithm: &str, runs: impl IntoIterator<Item = &'a R>) -> Seeds<'a, R> {
        let own = runs.into_iter().filter(|run| run.algorithm() == algorithm);
        Seeds { runs: own.collect() }
    }

    /// All runs.
    pub fn all(&self) -> &[&'a R] {
        &self.runs
    }

    /// The runs that count: those that did not diverge.
    pub fn sound(&self) -> impl Iterator<Item = &'a R> {
        self.runs.iter().copied().filter(|run| !run.diverged())
    }

    /// The seeds as counts.
    pub fn count(&self) -> Count {
        Count { sound: self.sound().count(), of: self.runs.len() }
    }

    /// Whether the algorithm can be compared with others: it ran, and diverged on no seed.
    pub fn ranked(&self) -> bool {
        self.count().ranked()
    }

    /// A quantity at the end of each run that counts, with its seed; `None` if some lack it.
    pub fn lasts(&self, quantity: &str) -> Option<Vec<(u64, f64)>> {
        self.sound().map(|run| Some((run.seed(), run.last(quantity)?))).collect()
    }

    /// A quantity at the end; `None` if no sound run has it, or only some have.
    pub fn last(&self, quantity: &str) -> Option<Summary> {
        Summary::of(self.lasts(quantity)?.into_iter().map(|(_, value)| value))
    }
}

/// How many seeds there are, and how many of them did not diverge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Those that did not diverge.
    pub sound: usize,
    /// All.
    pub of: usize,
}

impl Count {
    /// Those that diverged.
    pub fn diverged(self) -> usize {
        self.of - self.sound
    }

    /// Whether the algorithm can be compared with others.
    pub fn ranked(self) -> bool {
        self.of > 0 && self.sound == self.of
    }

    /// "1 of 3 seeds", if some diverged.
    pub fn share(self) -> Option<String> {
        let Count { sound, of } = self;
        let plural = if of == 1 { "" } else { "s" };
        (sound < of).then(|| format!("{sound} of {of} seed{plural}"))
    }

    /// An algorithm's label, with the count of seeds behind its numbers.
    pub fn named(self, label: &str) -> String {
        self.share().map_or(label.to_string(), |share| format!("{label} ({share})"))
    }

    /// The sentence about an algorithm that diverged.
    pub fn sentence(self, label: &str) -> Option<String> {
        let Count { of, .. } = self;
        let plural = if of == 1 { "" } else { "s" };
        let sentence =
            |n: usize| format!("{label} diverged on {n} of {of} seed{plural} and is not ranked");
        Some(self.diverged()).filter(|&n| n > 0).map(sentence)
    }
}

#[cfg(test)]
mod tests {
    use lopa::problem::derivative::Counts;
    use lopa::run::trace::Row;

    use super::*;

    fn run(algorithm: &str, seed: u64, loss: f64, diverged: bool) -> Run {
        let mut row = Row::new(&Counts::default(), 1);
        row.values.insert("loss".into(), loss);
        Run { algorithm: algorithm.into(), seed, diverged, rows: vec![row] }
    }

    #[test]
    fn what_diverged_gives_no_number_and_no_rank() {
        let runs = [
            run("a", 1, 0.5, false),
            run("a", 2, 2.8e144, true),
            run("a", 3, 0.0, true),
            run("b", 1, 1.0, false),
            run("b", 2, 3.0, false),
            run("c", 1, 5e21, true),
        ];
        let a = Seeds::of("a", &runs);
        let loss = a.last("loss").unwrap();
        assert_eq!((loss.mean, loss.sd, loss.high), (0.5, None, 0.5));
        assert!(!a.ranked());
        assert_eq!(a.count().named("a"), "a (1 of 3 seeds)");
        assert_eq!(
            a.count().sentence("a").unwrap(),
            "a diverged on 2 of 3 seeds and is not ranked"
        );
        let b = Seeds::of("b", &runs);
        assert!(b.ranked());
        assert_eq!(b.last("loss").unwrap().sd, Some(2f64.sqrt()));
        assert_eq!((b.count().share(), b.count().sentence("b")), (None, None));
        let c = Seeds::of("c", &runs);
        assert_eq!((c.ranked(), c.last("loss")), (false, None));
        assert_eq!(c.count().sentence("c").unwrap(), "c diverged on 1 of 1 seed and is not ranked");
        assert!(!Seeds::of("nobody", &runs).ranked());
    }
}
