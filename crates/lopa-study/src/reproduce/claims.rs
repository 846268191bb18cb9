//! The claims about the paper's experiments, in a form that traces can decide.
//!
//! A test gives one difference per seed, positive where the seed supports the claim. The claim held
//! if the 95 % confidence interval of their mean lies above zero, did not hold if it lies below,
//! and is a tie otherwise. Where one of its algorithms diverged, the claim is not decided.

use serde::Serialize;

use super::Part;
use crate::seeds::Seeds;
use crate::statistics::{Interval, interval};
use lopa::folder::{Run, Traces};
use lopa::run::trace::{more_is_better, spans_powers};

/// A panel of the paper: figure, data set, variant.
pub type Panel = (&'static str, &'static str, Option<&'static str>);

/// A claim of the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The figure it is about; `all` for claims about several.
    pub figure: &'static str,
    /// The claim in words.
    pub text: String,
    /// The panels it is about; the seeds of all are pooled.
    pub panels: Vec<Panel>,
    /// The test that decides it.
    pub test: Test,
}

/// A test of a claim; `better` and `worse` are as the claim has them.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// One algorithm ends with a better measure than another.
    Ends {
        /// What is compared.
        measure: Measure,
        /// Said to be better.
        better: &'static str,
        /// Said to be worse.
        worse: &'static str,
    },
    /// One algorithm spends less of a cost to reach the level that both reach.
    Cheaper {
        /// What is spent.
        cost: &'static str,
        /// The measure that has to reach the level.
        measure: Measure,
        /// Said to spend less.
        better: &'static str,
        /// Said to spend more.
        worse: &'static str,
    },
    /// An algorithm does better here than in another variant.
    Falls {
        /// What is compared.
        measure: Measure,
        /// The algorithm.
        algorithm: &'static str,
        /// Where it is said to do worse.
        worse: Panel,
    },
    /// From here to another variant one algorithm loses more than another.
    FallsMore {
        /// What is compared.
        measure: Measure,
        /// Said to lose more.
        more: &'static str,
        /// Said to lose less.
        less: &'static str,
        /// Where both are said to do worse.
        worse: Panel,
    },
}

/// A measure by its name; higher is better for accuracies, lower for all others.
pub type Measure = &'static str;

fn sign(measure: Measure) -> f64 {
    if more_is_better(measure) { 1.0 } else { -1.0 }
}

/// The verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// The interval lies on the claimed side.
    #[serde(rename = "held")]
    Held,
    /// It lies on the other side.
    #[serde(rename = "did not hold")]
    DidNotHold,
    /// It contains zero.
    #[serde(rename = "tie")]
    Tie,
    /// A run diverged, or there are fewer than two pairs.
    #[serde(rename = "not known")]
    Unknown,
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Held => "held",
            Verdict::DidNotHold => "did not hold",
            Verdict::Tie => "tie",
            Verdict::Unknown => "not known",
        }
    }
}

/// A verdict on a claim under one kind of steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// The figure.
    pub figure: &'static str,
    /// The claim.
    pub claim: String,
    /// What was compared.
    pub test: String,
    /// `paper` or `tuned`.
    pub steps: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// The mean difference and its interval; positive supports the claim.
    pub interval: Option<Interval>,
    /// One sentence per algorithm that diverged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diverged: Vec<String>,
}

impl Judgement {
    /// The verdict in words, with who diverged.
    pub fn words(&self) -> String {
        match self.diverged.is_empty() {
            true => self.verdict.words().to_string(),
            false => format!("{}: {}", self.verdict.words(), self.diverged.join("; ")),
        }
    }
}

/// Judges a claim under one kind of steps; `None` if its experiments were not run.
pub fn judge(claim: &Claim, steps: &'static str, all: &[(Part, Traces)]) -> Option<Judgement> {
    let find = |(figure, dataset, variant): Panel| {
        let is = |part: &Part| {
            part.figures.contains(&figure)
                && (part.dataset, part.variant, part.steps) == (dataset, variant, steps)
        };
        all.iter().find(|(part, _)| is(part)).map(|(_, traces)| traces)
    };
    let (mut differences, mut diverged) = (Vec::new(), Vec::new());
    for &panel in &claim.panels {
        let here = find(panel)?;
        let there = match claim.test {
            Test::Falls { worse, .. } | Test::FallsMore { worse, .. } => find(worse)?,
            _ => here,
        };
        differences.extend(claim.test.differences(here, there));
        for (label, traces) in
            claim.test.algorithms().into_iter().flat_map(|a| [(a, here), (a, there)])
        {
            let count = Seeds::of(label, traces.of(label)).count();
            let sentence = count.sentence(label).filter(|sentence| !diverged.contains(sentence));
            diverged.extend(sentence);
        }
    }
    let interval = interval(&differences).filter(|_| diverged.is_empty());
    let verdict = match interval {
        None => Verdict::Unknown,
        Some(Interval { low, .. }) if low > 0.0 => Verdict::Held,
        Some(Interval { high, .. }) if high < 0.0 => Verdict::DidNotHold,
        Some(_) => Verdict::Tie,
    };
    let (claim, test, figure) = (claim.text.clone(), claim.test.words(), claim.figure);
    Some(Judgement { figure, claim, test, steps, verdict, interval, diverged })
}

impl Test {
    /// The algorithms it compares.
    fn algorithms(&self) -> Vec<&'static str> {
        match *self {
            Test::Ends { better, worse, .. } | Test::Cheaper { better, worse, .. } => {
                vec![better, worse]
            }
            Test::Falls { algorithm, .. } => vec![algorithm],
            Test::FallsMore { more, less, .. } => vec![more, less],
        }
    }

    /// One difference per seed, positive where it supports the claim.
    fn differences(&self, here: &Traces, there: &Traces) -> Vec<f64> {
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
                more.iter().zip(&less).map(|(more, less)| more - less).collect()
            }
        }
    }

    fn words(&self) -> String {
        match self {
            Test::Ends { measure, .. } if spans_powers(measure) => {
                format!("log ratio of {measure} at the end")
            }
            Test::Ends { measure, .. } => format!("difference of {measure} at the end"),
            Test::Cheaper { cost, measure, .. } => {
                format!("log ratio of {cost} to the {measure} that both reach")
            }
            Test::Falls { measure, .. } => format!("change of {measure} at the end"),
            Test::FallsMore { measure, .. } => format!("difference of the changes of {measure}"),
        }
    }
}

/// The measure at the end of a run, or its logarithm; higher is better.
fn score(run: &Run, measure: Measure) -> Option<f64> {
    let value = run.last(measure)?;
    let value = if spans_powers(measure) { value.max(f64::MIN_POSITIVE).ln() } else { value };
    Some(sign(measure) * value)
}

/// log(their cost / our cost) to the level that both reach.
fn saving(ours: &Run, theirs: &Run, cost: &str, measure: Measure) -> Option<f64> {
    let (a, b) = (ours.last(measure)?, theirs.last(measure)?);
    let more = sign(measure) > 0.0;
    let level = if more { a.min(b) } else { a.max(b) };
    let spent = |run: &Run| run.cost_to(cost, measure, level, more).filter(|cost| *cost > 0.0);
    Some((spent(theirs)? / spent(ours)?).ln())
}

/// How much better our runs end than theirs.
fn gains(measure: Measure, ours: (&Traces, &str), theirs: (&Traces, &str)) -> Vec<f64> {
    pairs(ours, theirs, |ours, theirs| Some(score(ours, measure)? - score(theirs, measure)?))
}

/// One number per seed on which both algorithms ran and neither diverged.
fn pairs(
    (ours, a): (&Traces, &str),
    (theirs, b): (&Traces, &str),
    of: impl Fn(&Run, &Run) -> Option<f64>,
) -> Vec<f64> {
    let (ours, theirs) = (ours.of(a), theirs.of(b));
    let pair = |run: &&Run| {
        let other = theirs.iter().find(|other| other.seed == run.seed)?;
        if run.diverged || other.diverged { None } else { of(run, other) }
    };
    ours.iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lopa::problem::oracle::Counts;
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
        assert!((found[0] - 4f64.ln()).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn levels_between_measurements_are_interpolated() {
        let run = run("a", 1, &[(0.0, 4.0), (10.0, 2.0)]);
        assert_eq!(run.cost_to("hessians", "loss", 3.0, false), Some(5.0));
        assert_eq!(run.cost_to("hessians", "loss", 1.0, false), None);
        assert_eq!(run.cost_to("hessians", "loss", 9.0, false), Some(0.0));
    }

    #[test]
    fn a_run_that_diverged_is_no_pair() {
        let mut lost = run("b", 2, &[(0.0, 4.0)]);
        lost.diverged = true;
        let traces = Traces { runs: vec![run("a", 2, &[(0.0, 4.0)]), lost] };
        assert!(TEST.differences(&traces, &traces).is_empty());
    }
}
