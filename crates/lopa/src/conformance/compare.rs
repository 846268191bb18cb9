//! Vectors that should agree, and a guess at the mistake where they do not.

use super::broken;
use crate::error::Result;

/// Two vectors that should agree.
pub(super) struct Comparison<'a> {
    /// The id of the check.
    pub id: &'static str,
    /// The fault if they do not: "cross_g disagrees with differences".
    pub what: String,
    /// One vector.
    pub said: &'a [f64],
    /// The other, with its origin: "differences give".
    pub want: (&'a str, &'a [f64]),
    /// The largest difference of two entries.
    pub tolerance: f64,
    /// Samples of the batch.
    pub batch: usize,
    /// The usual cause, where the numbers suggest no other.
    pub cause: &'a str,
}

impl Comparison<'_> {
    /// An error that names the first entry that differs.
    pub fn check(self) -> Result<()> {
        let Comparison { id, ref what, said, want: (source, want), tolerance, .. } = self;
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance;
        let Some(j) = said.iter().zip(want).position(|pair| !near(pair)) else { return Ok(()) };
        let entry = if said.len() > 1 { format!("entry {j}") } else { "it".into() };
        let (a, b) = (said[j], want[j]);
        let numbers = format!("{entry} is {} where {source} {}", short(a), short(b));
        Err(broken(id, format!("{what}: {numbers}: {}", self.guess(a, b))))
    }

    fn guess(&self, a: f64, b: f64) -> String {
        let ratio = a / b;
        let is = |factor: f64| (ratio / factor - 1.0).abs() < 1e-3;
        let size = self.batch as f64;
        if is(-1.0) {
            "a sign?".into()
        } else if is(2.0) || is(0.5) {
            "a factor of 2?".into()
        } else if self.batch > 1 && (is(size) || is(size.recip())) {
            format!("a factor of {size}, the size of the batch?")
        } else {
            self.cause.into()
        }
    }
}

/// A number in few digits.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || (1e-3..1e6).contains(&size) => {
            let digits = format!("{value:.6}");
            digits.trim_end_matches('0').trim_end_matches('.').to_string()
        }
        _ => format!("{value:.5e}"),
    }
}

/// The largest absolute value.
pub(super) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, value| value.abs().max(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(said: f64, want: f64, batch: usize) -> String {
        let (said, want) = (&[1.0, said][..], ("differences give", &[1.0, want][..]));
        let (id, what, cause) =
            ("conformance/test", "they disagree".to_string(), "a term left out?");
        let check = Comparison { id, what, said, want, tolerance: 1e-6, batch, cause };
        check.check().unwrap_err().message
    }

    #[test]
    fn mistakes_are_guessed_from_the_numbers() {
        let expected = "they disagree: entry 1 is 0.12 where differences give -0.12: a sign?";
        assert_eq!(message(0.12, -0.12, 4), expected);
        assert!(message(3.0, 0.75, 4).ends_with(": a factor of 4, the size of the batch?"));
        assert!(message(1.5, 0.75, 4).ends_with(": a factor of 2?"));
        assert!(message(1.4, 0.75, 4).ends_with(": a term left out?"));
        assert!(message(f64::NAN, 0.75, 4).contains("is NaN where"));
        assert!(message(1e-7, 12.0, 4).contains("is 1.00000e-7 where differences give 12:"));
    }
}
