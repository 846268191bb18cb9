//! The claims about the paper's experiments, in a form that traces can decide.

use serde::Serialize;

use lopa::math::number;
use lopa::math::portable::{exp, ln, log10};
use lopa::run::trace::{more_is_better, spans_powers};
use lopa_study::sentences::in_words;
use lopa_study::statistics::Interval;

/// A panel of the paper: figure, data set, variant.
pub type Panel = (&'static str, &'static str, Option<&'static str>);

/// A statement of the paper that several claims are evidence for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// LoPA against SPDB, by Hessians.
    Spdb,
    /// LoPA against MA-DSBO, by Hessians.
    MaDsbo,
    /// LoPA against both, by time.
    Time,
    /// The effect of gradient tracking on loss and accuracy.
    Tracking,
    /// Its effect on consensus.
    Consensus,
    /// The effect of heterogeneous labels.
    Heterogeneity,
    /// Their effect on LoPA-LG in particular.
    HeterogeneityOfLocal,
    /// The effect of a sparse network.
    Connectivity,
    /// Its effect on LoPA-GT in particular.
    ConnectivityOfTracking,
    /// LoPA against a fixed regularisation.
    SingleLevel,
}

/// A claim of the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The figure it is about; `all` for claims about several.
    pub figure: &'static str,
    /// The claim in words.
    pub text: String,
    /// The statement that it supports.
    pub topic: Topic,
    /// The panels it is about; of several, each is one unit.
    pub panels: Vec<Panel>,
    /// The test that decides it.
    pub test: Test,
    /// Comparisons of one unit are nearly copies, and count once; without one, a comparison is shown, but not
    /// counted, because it is made of runs that others are about.
    pub unit: Option<String>,
    /// What of a statement it is about, where the statement is judged on several measures: "on all classes".
    pub aspect: &'static str,
}

/// A test of a claim; `better` and `worse` are as claimed.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// One algorithm ends with a better measure than another.
    Ends {
        /// What is compared.
        measure: Measure,
        /// Claimed to be better.
        better: &'static str,
        /// Claimed to be worse.
        worse: &'static str,
    },
    /// One algorithm spends less of a cost to reach the level that both reach.
    Cheaper {
        /// The cost.
        cost: &'static str,
        /// The measure that must reach the level.
        measure: Measure,
        /// Claimed to spend less.
        better: &'static str,
        /// Claimed to spend more.
        worse: &'static str,
    },
    /// An algorithm does better here than in another variant.
    Falls {
        /// What is compared.
        measure: Measure,
        /// The algorithm.
        algorithm: &'static str,
        /// The variant in which it is claimed to do worse.
        worse: Panel,
    },
    /// From here to another variant one algorithm loses more than another.
    FallsMore {
        /// What is compared.
        measure: Measure,
        /// Claimed to lose more.
        more: &'static str,
        /// Claimed to lose less.
        less: &'static str,
        /// The variant in which both are claimed to do worse.
        worse: Panel,
    },
}

/// A measure by its name; higher is better for accuracies, lower for all others.
pub type Measure = &'static str;

/// Whether a measure is compared by ratios.
pub(super) fn by_ratio(measure: Measure) -> bool {
    spans_powers(measure) || matches!(measure, "loss" | "phi")
}

/// A difference too small to matter, fixed before any run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Margin {
    /// The difference, or the logarithm of the ratio.
    pub value: f64,
    /// In words.
    pub words: &'static str,
}

impl Test {
    /// What is compared.
    fn measure(&self) -> Measure {
        match self {
            Test::Ends { measure, .. }
            | Test::Cheaper { measure, .. }
            | Test::Falls { measure, .. }
            | Test::FallsMore { measure, .. } => measure,
        }
    }

    /// Whether its differences are logarithms of ratios.
    pub fn is_ratio(&self) -> bool {
        matches!(self, Test::Cheaper { .. }) || by_ratio(self.measure())
    }

    /// The margin within which it is a tie.
    pub fn margin(&self) -> Margin {
        let factor = |factor: f64, words| Margin { value: ln(factor), words };
        match (self, self.measure()) {
            (Test::Cheaper { .. }, _) => factor(1.1, "a factor of 1.1"),
            (_, measure) if more_is_better(measure) => Margin { value: 0.005, words: "0.5 points" },
            (_, measure) if spans_powers(measure) => factor(2.0, "a factor of 2"),
            _ => factor(1.05, "a factor of 1.05"),
        }
    }

    /// What is compared, in words.
    pub fn words(&self) -> String {
        let how = if self.is_ratio() { "ratio" } else { "difference" };
        let measure = in_words(self.measure());
        match self {
            Test::Ends { .. } => format!("{how} of {measure} at the end"),
            Test::Cheaper { cost, .. } => {
                let cost = if *cost == "hessians" { "Hessian-vector products" } else { cost };
                format!("ratio of {cost} to the {measure} that both reach")
            }
            Test::Falls { .. } => format!("{how} of {measure} at the end, here to there"),
            Test::FallsMore { .. } => format!("{how} of what {measure} loses from here to there"),
        }
    }
}

/// The verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// There is a difference, and it is the one claimed.
    #[serde(rename = "held")]
    Held,
    /// There is a difference, and it is the opposite one.
    #[serde(rename = "reversed")]
    Reversed,
    /// The difference is shown to be smaller than the margin.
    #[serde(rename = "no difference above the margin")]
    Tie,
    /// Neither is shown.
    #[serde(rename = "cannot be told")]
    Unknown,
    /// Every accuracy is so near to 1 that no difference above the margin is possible.
    #[serde(rename = "at the ceiling")]
    Ceiling,
    /// The algorithm that is claimed to be worse diverged, the other did not.
    #[serde(rename = "the rival diverged")]
    RivalDiverged,
    /// The algorithm that is claimed to be better diverged.
    #[serde(rename = "diverged")]
    Diverged,
}

impl Verdict {
    /// All of them, in the order of a list.
    pub const ALL: [Verdict; 7] = [
        Verdict::Held,
        Verdict::Reversed,
        Verdict::Tie,
        Verdict::Unknown,
        Verdict::Ceiling,
        Verdict::RivalDiverged,
        Verdict::Diverged,
    ];

    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Held => "held",
            Verdict::Reversed => "reversed",
            Verdict::Tie => "no difference above the margin",
            Verdict::Unknown => "cannot be told",
            Verdict::Ceiling => "at the ceiling, where nothing can be seen",
            Verdict::RivalDiverged => "the rival diverged",
            Verdict::Diverged => "LoPA diverged",
        }
    }
}

/// A verdict on a claim under one kind of steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// What was judged.
    #[serde(skip)]
    pub of: Claim,
    /// The figure.
    pub figure: &'static str,
    /// The claim.
    pub claim: String,
    /// What was compared.
    pub test: String,
    /// `given` or `tuned`.
    pub steps: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// The mean difference and its 95 % interval; positive supports the claim. Of a ratio, its
    /// logarithm.
    pub interval: Option<Interval>,
    /// Whether the claim is about a ratio, whose logarithm the interval is of.
    pub ratio: bool,
    /// The unit of the count: `seeds` or `settings`.
    pub units: &'static str,
    /// The probability of so large a difference if there were none.
    pub p: Option<f64>,
    /// The same, corrected for the number of tests about the figure.
    pub p_corrected: Option<f64>,
    /// The probability of so small a difference if it were as large as the margin.
    pub p_equal: Option<f64>,
    /// The same, corrected for the number of tests about the figure.
    pub p_equal_corrected: Option<f64>,
    /// The margin of a tie.
    pub margin: Margin,
    /// The reasons why the claim is not decided by a test: diverged algorithms, different step sizes, a ceiling.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<String>,
}

impl Judgement {
    /// The verdict in words, with the reasons why it is not decided.
    pub fn words(&self) -> String {
        match self.obstacles.is_empty() {
            true => self.verdict.words().to_string(),
            false => format!("{}: {}", self.verdict.words(), self.obstacles.join("; ")),
        }
    }

    /// "5 seeds"; empty if there is no interval.
    pub fn number(&self) -> String {
        self.interval.map_or(String::new(), |by| format!("{} {}", by.pairs, self.units))
    }

    /// The difference with its interval: a factor, or a number with its sign.
    pub fn effect(&self) -> String {
        let Some(Interval { mean, low, high, .. }) = self.interval else { return String::new() };
        if self.ratio {
            let [mean, low, high] = [mean, low, high].map(|log| number(exp(log)));
            format!("× {mean} ({low} to {high})")
        } else {
            // Two significant digits of the largest number.
            let most = mean.abs().max(low.abs()).max(high.abs());
            if most == 0.0 {
                return "±0".into();
            }
            let digits = (1.0 - log10(most).floor()).clamp(4.0, 9.0) as usize;
            format!("{mean:+.digits$} ({low:+.digits$} to {high:+.digits$})")
        }
    }
}
