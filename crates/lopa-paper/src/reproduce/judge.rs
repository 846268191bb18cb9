//! Verdicts.
//!
//! A test gives one difference per seed, positive where the seed supports the claim. Where a claim is
//! about several settings, each counts once. It is a *tie* if two one-sided tests at 5 % show that the
//! difference is smaller than the margin; it *held* or *did not hold* if Student's t shows a difference
//! at 5 %, corrected by Holm for the number of claims about the figure; else it *cannot be told*.
//! Where an algorithm diverged, or two variants ran with different steps, the claim is not decided.

use lopa::folder::Traces;

use super::Part;
use super::claims::{Claim, Judgement, Panel, Test, Verdict};
use lopa_study::seeds::Seeds;
use lopa_study::statistics::{Paired, holm};

/// The level of every test.
const ALPHA: f64 = 0.05;

/// Judges those claims whose experiments were run, under given and under tuned steps.
pub fn judge(claims: &[Claim], all: &[(Part, Traces)]) -> Vec<Judgement> {
    let mut judged: Vec<(Judgement, Option<Paired>)> = claims
        .iter()
        .flat_map(|claim| ["given", "tuned"].map(|steps| evidence(claim, steps, all)))
        .flatten()
        .collect();
    correct(&mut judged);
    judged.into_iter().map(|(judgement, paired)| decide(judgement, paired)).collect()
}

/// Corrects the tests of each figure and kind of steps for their number.
fn correct(judged: &mut [(Judgement, Option<Paired>)]) {
    let families: Vec<_> = judged.iter().map(|(one, _)| (one.figure, one.steps)).collect();
    for (first, family) in families.iter().enumerate() {
        if families[..first].contains(family) {
            continue;
        }
        let tested = |i: &usize| families[*i] == *family && judged[*i].0.p.is_some();
        let members: Vec<usize> = (0..judged.len()).filter(tested).collect();
        let p: Vec<f64> = members.iter().filter_map(|&i| judged[i].0.p).collect();
        for (&member, p) in members.iter().zip(holm(&p)) {
            judged[member].0.p_corrected = Some(p);
        }
    }
}

fn decide(mut judgement: Judgement, paired: Option<Paired>) -> Judgement {
    let equivalent = |paired: Paired| paired.equivalent(judgement.margin.value);
    judgement.verdict = match (paired.map(equivalent), judgement.p_corrected, judgement.interval) {
        (Some(true), ..) => Verdict::Tie,
        (Some(false), Some(p), Some(by)) if p < ALPHA && by.mean > 0.0 => Verdict::Held,
        (Some(false), Some(p), Some(_)) if p < ALPHA => Verdict::DidNotHold,
        _ => Verdict::Unknown,
    };
    judgement
}

/// The evidence on a claim, not yet decided; `None` if its experiments were not run.
fn evidence(
    claim: &Claim,
    steps: &'static str,
    all: &[(Part, Traces)],
) -> Option<(Judgement, Option<Paired>)> {
    let find = |(figure, dataset, variant): Panel| {
        let is = |part: &Part| {
            part.figures.contains(&figure)
                && (part.dataset, part.variant, part.steps) == (dataset, variant, steps)
        };
        all.iter().find(|(part, _)| is(part))
    };
    let (mut settings, mut obstacles) = (Vec::new(), Vec::new());
    for &panel in &claim.panels {
        let here = find(panel)?;
        let there = match claim.test {
            Test::Falls { worse, .. } | Test::FallsMore { worse, .. } => find(worse)?,
            _ => here,
        };
        let differences = claim.test.differences(&here.1, &there.1);
        settings.push(differences.into_iter().map(|(_, difference)| difference).collect());
        let place = if claim.panels.len() > 1 { format!("{}: ", panel.1) } else { String::new() };
        for label in claim.test.algorithms() {
            obstacles
                .extend(obstacle(label, here, there).into_iter().map(|why| place.clone() + &why));
        }
    }
    obstacles.dedup();
    let paired = Paired::pooled(&settings).filter(|_| obstacles.is_empty());
    let judgement = Judgement {
        of: claim.clone(),
        figure: claim.figure,
        claim: claim.text.clone(),
        test: claim.test.words(),
        steps,
        verdict: Verdict::Unknown,
        interval: paired.map(|paired| paired.interval(0.95)),
        ratio: claim.test.is_ratio(),
        units: if settings.len() > 1 { "settings" } else { "seeds" },
        p: paired.map(|paired| paired.p()),
        p_corrected: None,
        margin: claim.test.margin(),
        obstacles,
    };
    Some((judgement, paired))
}

/// The reasons why an algorithm cannot be compared between two panels, which may be the same one.
fn obstacle(label: &str, here: &(Part, Traces), there: &(Part, Traces)) -> Vec<String> {
    let mut found = Vec::new();
    for (_, traces) in [here, there] {
        let sentence = Seeds::of(label, traces.of(label)).count().sentence(label);
        found.extend(sentence.filter(|sentence| !found.contains(sentence)));
    }
    let spec =
        |part: &Part| part.experiment.algorithms.iter().find(|spec| spec.label == label).cloned();
    if spec(&here.0) != spec(&there.0) {
        found.push(format!("{label} ran with different steps in the two settings"));
    }
    found
}
