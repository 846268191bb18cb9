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

    /// What a reader of the verdict must know.
    fn remark(self) -> &'static str {
        match self {
            Topic::Heterogeneity | Topic::HeterogeneityOfLocal => {
                " On all classes this is a matter of construction: a model cannot name a class that its node never \
                 saw, so that nodes with 8 and 7 of 10 classes reach 0.8 and 0.7 at most."
            }
            Topic::SingleLevel => {
                " DGD's regularisation is the paper's, with tuned steps too; where it is searched as well, DGD is \
                 `dgd-mu` in the table. Personal models are for a node's own distribution: on the global mix they \
                 are asked for what they were not trained for."
            }
            _ => "",
        }
    }

    /// The statement with its verdicts, given and tuned steps apart.
    fn sentence(self, judged: &[Judgement], link: impl Fn(&str) -> Link) -> String {
        let statement = self.statement();
        let own: Vec<&Judgement> = judged.iter().filter(|one| one.of.topic == self).collect();
        if own.is_empty() {
            return format!("**Not judged**: {statement}.");
        }
        let mut text = format!("{}{}.", statement[..1].to_uppercase(), &statement[1..]);
        let mut aspects: Vec<&str> = Vec::new();
        for one in &own {
            if !aspects.contains(&one.of.aspect) {
                aspects.push(one.of.aspect);
            }
        }
        for steps in ["given", "tuned"] {
            for aspect in &aspects {
                let is = |one: &&&Judgement| one.steps == steps && one.of.aspect == *aspect;
                let units = units(own.iter().filter(is).copied());
                if !units.is_empty() {
                    let aspect =
                        if aspect.is_empty() { String::new() } else { format!(" {aspect}") };
                    let (word, counts) = (word(&units), counts(&units));
                    let _ = write!(text, " With {steps} steps{aspect}: **{word}** ({counts}).");
                }
            }
        }
        text += &reversals(&own);
        text += self.remark();
        let mut evidence: Vec<Link> = Vec::new();
        for one in own {
            let link = link(one.figure);
            if !evidence.contains(&link) {
                evidence.push(link);
            }
        }
        let evidence = evidence.iter().map(|(name, address)| format!("[{name}]({address})"));
        let evidence = evidence.collect::<Vec<_>>().join(", ");
        format!("{text} Evidence: {evidence}.")
    }
}

/// The verdict of each unit; `None` where its comparisons differ.
fn units<'a>(judged: impl Iterator<Item = &'a Judgement>) -> Vec<Option<Verdict>> {
    let mut units: Vec<(&str, Option<Verdict>)> = Vec::new();
    for one in judged {
        let Some(unit) = &one.of.unit else { continue };
        match units.iter_mut().find(|(known, _)| known == unit) {
            None => units.push((unit, Some(one.verdict))),
            Some((_, verdict)) if *verdict != Some(one.verdict) => *verdict = None,
            Some(_) => {}
        }
    }
    units.into_iter().map(|(_, verdict)| verdict).collect()
}

/// The verdict on a statement. Where an algorithm diverged or accuracy is at its ceiling, nothing was compared.
fn word(units: &[Option<Verdict>]) -> &'static str {
    let apart = [Verdict::Ceiling, Verdict::RivalDiverged, Verdict::Diverged];
    let compared = |one: &&Option<Verdict>| one.is_none_or(|one| !apart.contains(&one));
    let all = units.iter().filter(compared).count();
    let of = |verdict| units.iter().filter(|one| **one == Some(verdict)).count();
    let kinds = [Verdict::Held, Verdict::Reversed, Verdict::Tie, Verdict::Unknown];
    match kinds.map(of) {
        _ if all == 0 && of(Verdict::RivalDiverged) > 0 => "the rival diverges",
        _ if all == 0 => "nothing can be seen",
        [held, ..] if held == all => "holds",
        [_, reversed, ..] if reversed == all => "is reversed",
        [_, _, tie, _] if tie == all => "no difference above the margin",
        [held, ..] if 2 * held > all => "holds mostly",
        [_, reversed, ..] if 2 * reversed > all => "is mostly reversed",
        [_, _, tie, _] if 2 * tie > all => "mostly no difference above the margin",
        [.., unknown] if 2 * unknown > all => "cannot be told",
        [held, ..] if held > 0 => "holds in part",
        _ => "does not hold",
    }
}

/// "of 4 comparisons 3 held, 1 reversed".
fn counts(units: &[Option<Verdict>]) -> String {
    let kinds = Verdict::ALL.into_iter().map(|verdict| (Some(verdict), verdict.words()));
    let split = [(None, "differ between LoPA-GT and LoPA-LG")];
    let mut listed = Vec::new();
    for (verdict, words) in kinds.chain(split) {
        match units.iter().filter(|one| **one == verdict).count() {
            0 => {}
            _ if units.len() == 1 => listed.push(words.to_string()),
            count => listed.push(format!("{count} {words}")),
        }
    }
    match units.len() {
        1 => format!("one comparison: {}", listed.join(", ")),
        all => format!("of {all} comparisons {}", listed.join(", ")),
    }
}

/// Where the opposite was found, one comparison of each unit.
fn reversals(judged: &[&Judgement]) -> String {
    let mut seen: Vec<(&Option<String>, &str)> = Vec::new();
    let mut found = Vec::new();
    for one in judged.iter().filter(|one| one.verdict == Verdict::Reversed) {
        let key = (&one.of.unit, one.steps);
        if one.of.unit.is_none() || !seen.contains(&key) {
            seen.push(key);
            let (claim, effect, steps) = (&one.claim, one.effect(), one.steps);
            found.push(format!("\"{claim}\" ({}, {steps} steps: {effect})", one.figure));
        }
    }
    match found.is_empty() {
        true => String::new(),
        false => format!(" Reversed: {}.", found.join("; ")),
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
