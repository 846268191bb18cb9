//! The evidence of traces for and against a claim: one difference per seed.

use lopa::folder::{Run, Traces};
use lopa::math::portable::ln;
use lopa::run::trace::more_is_better;

use super::claims::{Measure, Test, by_ratio};

fn sign(measure: Measure) -> f64 {
    if more_is_better(measure) { 1.0 } else { -1.0 }
}

impl Test {
    /// The algorithms it compares.
    pub(super) fn algorithms(&self) -> Vec<&'static str> {
        match *self {
            Test::Ends { better, worse, .. } | Test::Cheaper { better, worse, .. } => {
                vec![better, worse]
            }
            Test::Falls { algorithm, .. } => vec![algorithm],
            Test::FallsMore { more, less, .. } => vec![more, less],
        }
    }

    /// Every seed with its difference, positive where it supports the claim.
    pub(super) fn differences(&self, here: &Traces, there: &Traces) -> Vec<(u64, f64)> {
        let fall = |algorithm, measure| gains(measure, (here, algorithm), (there, algorithm));
        match *self {
            Test::Ends { measure, better, worse } => gains(measure, (here, better), (here, worse)),
            Test::Cheaper { cost, measure, better, worse } => {
                let saving = |ours: &Run, theirs: &Run| saving(ours, theirs, cost, measure);
                pairs((here, better), (here, worse), saving)
            }
            Test::Falls { measure, algorithm, .. } => fall(algorithm, measure),
            Test::FallsMore { measure, more, less, .. } => {
                let (more, less) = (fall(more, measure), fall(less, measure));
                let pair = |&(seed, more): &(u64, f64)| {
                    let (_, less) = less.iter().find(|(of, _)| *of == seed)?;
                    Some((seed, more - less))
                };
                more.iter().filter_map(pair).collect()
            }
        }
    }
}

/// The measure at the end of a run, or its logarithm; higher is better.
fn score(run: &Run, measure: Measure) -> Option<f64> {
    let value = run.last(measure)?;
    let value = if by_ratio(measure) { ln(value.max(f64::MIN_POSITIVE)) } else { value };
    Some(sign(measure) * value)
}

/// log(their cost / our cost) to the level that both reach.
fn saving(ours: &Run, theirs: &Run, cost: &str, measure: Measure) -> Option<f64> {
    let (a, b) = (ours.last(measure)?, theirs.last(measure)?);
    let more = sign(measure) > 0.0;
    let level = if more { a.min(b) } else { a.max(b) };
    let spent = |run: &Run| run.cost_to(cost, measure, level, more).filter(|cost| *cost > 0.0);
    Some(ln(spent(theirs)? / spent(ours)?))
}

/// How much better our runs end than theirs.
fn gains(measure: Measure, ours: (&Traces, &str), theirs: (&Traces, &str)) -> Vec<(u64, f64)> {
    pairs(ours, theirs, |ours, theirs| Some(score(ours, measure)? - score(theirs, measure)?))
}

/// One number per seed on which both algorithms ran and neither diverged.
fn pairs(
    (ours, a): (&Traces, &str),
    (theirs, b): (&Traces, &str),
    of: impl Fn(&Run, &Run) -> Option<f64>,
) -> Vec<(u64, f64)> {
    let (ours, theirs) = (ours.of(a), theirs.of(b));
    let pair = |run: &&Run| {
        let other = theirs.iter().find(|other| other.seed == run.seed)?;
        if run.diverged || other.diverged { None } else { Some((run.seed, of(run, other)?)) }
    };
    ours.iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lopa::problem::derivative::Counts;
    use lopa::run::trace::Row;

    fn run(algorithm: &str, seed: u64, points: &[(f64, f64)]) -> Run {
        let row = |&(hessians, loss): &(f64, f64)| {
            let mut row = Row::new(&Counts::default(), 1);
            row.hessians = hessians;
            row.values.insert("loss".into(), loss);
            row
        };
        let rows = points.iter().map(row).collect();
        Run { algorithm: algorithm.into(), seed, diverged: false, rows }
    }

    const TEST: Test = Test::Cheaper { cost: "hessians", measure: "loss", better: "a", worse: "b" };

    #[test]
    fn cost_is_compared_at_the_level_both_reach() {
        let fast = run("a", 1, &[(0.0, 4.0), (10.0, 2.0), (20.0, 1.0)]);
        let slow = run("b", 1, &[(0.0, 4.0), (40.0, 2.0)]);
        let traces = Traces { runs: vec![fast, slow] };
        let found = TEST.differences(&traces, &traces);
        assert_eq!(found.len(), 1);
        assert!((found[0].1 - ln(4.0)).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn levels_between_measurements_are_interpolated() {
        let run = run("a", 1, &[(0.0, 4.0), (10.0, 2.0)]);
        assert_eq!(run.cost_to("hessians", "loss", 3.0, false), Some(5.0));
        assert_eq!(run.cost_to("hessians", "loss", 1.0, false), None);
        assert_eq!(run.cost_to("hessians", "loss", 9.0, false), Some(0.0));
    }

    #[test]
    fn falls_are_paired_by_seed() {
        let test = Test::FallsMore { measure: "loss", more: "a", less: "b", worse: ("", "", None) };
        let here = |algorithm, seed, loss| run(algorithm, seed, &[(0.0, loss)]);
        // The fall of `a` is e¹ on seed 1 and e³ on seed 2; that of `b` is known on seed 2 only.
        let good = [here("a", 1, 1.0), here("a", 2, 1.0), here("b", 2, 1.0)];
        let e = std::f64::consts::E;
        let bad = [here("a", 1, e), here("a", 2, e.powi(3)), here("b", 2, e)];
        let [good, bad] = [good, bad].map(|runs| Traces { runs: runs.into() });
        let found = test.differences(&good, &bad);
        assert_eq!(found.len(), 1);
        assert!(found[0].0 == 2 && (found[0].1 - 2.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn a_run_that_diverged_is_no_pair() {
        let mut lost = run("b", 2, &[(0.0, 4.0)]);
        lost.diverged = true;
        let traces = Traces { runs: vec![run("a", 2, &[(0.0, 4.0)]), lost] };
        assert!(TEST.differences(&traces, &traces).is_empty());
    }
}
