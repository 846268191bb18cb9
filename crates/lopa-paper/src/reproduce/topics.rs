//! The paper's statements in ten sentences, and the verdict on each.

use std::fmt::Write as _;

use super::claims::{Judgement, Topic, Verdict};

/// The name and the address of a section.
pub type Link = (&'static str, &'static str);

impl Topic {
    /// All ten.
    pub const ALL: [Topic; 10] = [
        Topic::Spdb,
        Topic::MaDsbo,
        Topic::Time,
        Topic::Tracking,
        Topic::Consensus,
        Topic::Heterogeneity,
        Topic::HeterogeneityOfLocal,
        Topic::Connectivity,
        Topic::ConnectivityOfTracking,
        Topic::SingleLevel,
    ];

    /// The statement.
    fn statement(self) -> &'static str {
        match self {
            Topic::Spdb => "LoPA needs fewer Hessian-vector products than SPDB for the same result",
            Topic::MaDsbo => {
                "LoPA needs fewer Hessian-vector products than MA-DSBO for the same result"
            }
            Topic::Time => "LoPA needs less time than SPDB and MA-DSBO for the same loss",
            Topic::Tracking => "with gradient tracking LoPA ends with a better loss and accuracy",
            Topic::Consensus => "with gradient tracking the nodes end closer to each other",
            Topic::Heterogeneity => "the more the labels differ, the less accurate it is",
            Topic::HeterogeneityOfLocal => {
                "without gradient tracking it suffers more from labels that differ"
            }
            Topic::Connectivity => "the sparser the network, the worse it ends",
            Topic::ConnectivityOfTracking => {
                "with gradient tracking it suffers more from a sparse network"
            }
            Topic::SingleLevel => {
                "tuning the regularisation is more accurate than DGD with a fixed one"
            }
        }
    }

    /// The statement with its verdict, in one sentence.
    fn sentence(self, judged: &[Judgement], link: impl Fn(&str) -> Link) -> String {
        let statement = self.statement();
        let own: Vec<&Judgement> = judged.iter().filter(|one| one.of.topic == self).collect();
        if own.is_empty() {
            return format!("**Not judged**: {statement}.");
        }
        let of = |verdict| own.iter().filter(|one| one.verdict == verdict).count();
        let all = own.len();
        let word = match [Verdict::Held, Verdict::DidNotHold, Verdict::Unknown].map(of) {
            [held, ..] if held == all => "Holds",
            [0, _, unknown] if 2 * unknown > all => "Cannot be told",
            [0, ..] => "Does not hold",
            [held, ..] if 2 * held > all => "Holds mostly",
            [_, not, _] if 2 * not > all => "Mostly does not hold",
            _ => "Holds in part",
        };
        let kinds = ["given", "tuned"].into_iter().filter_map(|steps| counts(&own, steps));
        let kinds = kinds.collect::<Vec<_>>().join("; ");
        let mut evidence: Vec<Link> = Vec::new();
        for one in own {
            let link = link(one.figure);
            if !evidence.contains(&link) {
                evidence.push(link);
            }
        }
        let evidence = evidence.iter().map(|(name, address)| format!("[{name}]({address})"));
        let evidence = evidence.collect::<Vec<_>>().join(", ");
        format!("**{word}**: {statement} ({kinds}). Evidence: {evidence}.")
    }
}

/// "of 4 comparisons with given steps 3 held, 1 tie".
fn counts(judged: &[&Judgement], steps: &str) -> Option<String> {
    let own: Vec<_> = judged.iter().filter(|one| one.steps == steps).collect();
    let mut text = String::new();
    for verdict in [Verdict::Held, Verdict::DidNotHold, Verdict::Tie, Verdict::Unknown] {
        let count = own.iter().filter(|one| one.verdict == verdict).count();
        if count > 0 {
            let comma = if text.is_empty() { "" } else { ", " };
            let _ = match own.len() {
                1 => write!(text, "{}", verdict.words()),
                _ => write!(text, "{comma}{count} {}", verdict.words()),
            };
        }
    }
    match own.len() {
        0 => None,
        1 => Some(format!("in one comparison with {steps} steps {text}")),
        n => Some(format!("of {n} comparisons with {steps} steps {text}")),
    }
}

/// The ten sentences, as a list; `link` gives the section of a figure.
pub fn ten(judged: &[Judgement], link: impl Fn(&str) -> Link) -> String {
    let mut text = String::new();
    for (number, topic) in Topic::ALL.into_iter().enumerate() {
        let _ = writeln!(text, "{}. {}", number + 1, topic.sentence(judged, &link));
    }
    text
}
