//! Verdicts.
//!
//! A test gives one difference per seed, positive where the seed supports the claim. Where a claim is
//! about several settings, each counts once. There is *no difference above the margin* if two one-sided
//! tests show that it is smaller; a claim *held* or is *reversed* if Student's t shows a difference; else it
//! *cannot be told*. All tests, of either kind, are at 5 %, corrected by Holm for the number of claims about the
//! figure under the same steps. Where an algorithm diverged, which is a result of its own, where every accuracy
//! is at its ceiling, or where two variants ran with different given steps, no test decides.

use lopa::folder::Traces;
use lopa::run::trace::more_is_better;

use super::Part;
use super::claims::{Claim, Judgement, Panel, Test, Verdict};
use lopa_study::seeds::Seeds;
use lopa_study::statistics::{Paired, holm_of};

/// The level of every test.
const ALPHA: f64 = 0.05;

/// Judges those claims whose experiments were run, under given and under tuned steps.
pub fn judge(claims: &[Claim], all: &[(Part, Traces)]) -> Vec<Judgement> {
    let mut judged: Vec<Judgement> = claims
        .iter()
        .flat_map(|claim| ["given", "tuned"].map(|steps| evidence(claim, steps, all)))
        .flatten()
        .collect();
    correct(&mut judged);
    judged.iter_mut().for_each(decide);
    judged
}

/// Corrects the tests of each figure and kind of steps, those of a difference and those of equality, for their
/// number.
fn correct(judged: &mut [Judgement]) {
    let families: Vec<_> = judged.iter().map(|one| (one.figure, one.steps)).collect();
    for (first, family) in families.iter().enumerate() {
        if families[..first].contains(family) {
            continue;
        }
        let members: Vec<usize> = (0..judged.len()).filter(|&i| families[i] == *family).collect();
        let both = |i: &usize| [judged[*i].p, judged[*i].p_equal];
        let p: Vec<f64> = members.iter().flat_map(both).flatten().collect();
        // A difference cannot be both zero and as large as the margin: one of a claim's two hypotheses is false.
        let claims = members.iter().filter(|&&i| judged[i].p.is_some()).count();
        let mut corrected = holm_of(&p, claims).into_iter();
        for member in members {
            let one = &mut judged[member];
            one.p_corrected = one.p.and_then(|_| corrected.next());
            one.p_equal_corrected = one.p_equal.and_then(|_| corrected.next());
        }
    }
}

fn decide(judgement: &mut Judgement) {
    let shown = |p: Option<f64>| p.is_some_and(|p| p < ALPHA);
    let Some(by) = judgement.interval else { return };
    judgement.verdict = match (shown(judgement.p_equal_corrected), shown(judgement.p_corrected)) {
        (true, _) => Verdict::Tie,
        (false, true) if by.mean > 0.0 => Verdict::Held,
        (false, true) => Verdict::Reversed,
        (false, false) => Verdict::Unknown,
    };
}

/// The evidence on a claim, not yet decided unless something stands in the way of a test; `None` if its
/// experiments were not run.
fn evidence(claim: &Claim, steps: &'static str, all: &[(Part, Traces)]) -> Option<Judgement> {
    let find = |(figure, dataset, variant): Panel| {
        let is = |part: &Part| {
            part.figures.contains(&figure)
                && (part.dataset, part.variant, part.steps) == (dataset, variant, steps)
        };
        all.iter().find(|(part, _)| is(part))
    };
    let (mut settings, mut obstacles, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for &panel in &claim.panels {
        let here = find(panel)?;
        let there = match claim.test {
            Test::Falls { worse, .. } | Test::FallsMore { worse, .. } => find(worse)?,
            _ => here,
        };
        let differences = claim.test.differences(&here.1, &there.1);
        settings.push(differences.into_iter().map(|(_, difference)| difference).collect());
        let place = if claim.panels.len() > 1 { format!("{}: ", panel.1) } else { String::new() };
        let found = obstacle(&claim.test, here, there);
        open.extend(found.as_ref().map(|(verdict, _)| *verdict));
        let reasons = found.into_iter().flat_map(|(_, reasons)| reasons);
        obstacles.extend(reasons.map(|why| place.clone() + &why));
    }
    obstacles.dedup();
    let paired = Paired::pooled(&settings).filter(|_| obstacles.is_empty());
    let margin = claim.test.margin();
    // Several settings have one verdict only if all have the same obstacle.
    let same = open
        .first()
        .filter(|first| open.len() == claim.panels.len() && open.iter().all(|one| one == *first));
    Some(Judgement {
        of: claim.clone(),
        figure: claim.figure,
        claim: claim.text.clone(),
        test: claim.test.words(),
        steps,
        verdict: same.copied().unwrap_or(Verdict::Unknown),
        interval: paired.map(|paired| paired.interval(0.95)),
        ratio: claim.test.is_ratio(),
        units: if settings.len() > 1 { "settings" } else { "seeds" },
        p: paired.map(|paired| paired.p()),
        p_corrected: None,
        p_equal: paired.map(|paired| paired.p_equal(margin.value)),
        p_equal_corrected: None,
        margin,
        obstacles,
    })
}

/// What stands in the way of a test between two panels, which may be the same one: the verdict instead, and the
/// reasons.
fn obstacle(
    test: &Test,
    here: &(Part, Traces),
    there: &(Part, Traces),
) -> Option<(Verdict, Vec<String>)> {
    let (labels, mut reasons) = (test.algorithms(), Vec::new());
    for label in &labels {
        for (_, traces) in [here, there] {
            let sentence = Seeds::of(label, traces.of(label)).count().sentence(label);
            reasons.extend(sentence.filter(|sentence| !reasons.contains(sentence)));
        }
    }
    if !reasons.is_empty() {
        let sound = |label: &str| Seeds::of(label, here.1.of(label)).ranked();
        let verdict = match test {
            Test::Ends { better, .. } | Test::Cheaper { better, .. } if sound(better) => {
                Verdict::RivalDiverged
            }
            Test::Ends { .. } | Test::Cheaper { .. } => Verdict::Diverged,
            Test::Falls { .. } | Test::FallsMore { .. } => Verdict::Unknown,
        };
        return Some((verdict, reasons));
    }
    // Tuned steps are those of each setting: what is compared is what each can reach.
    let changed = |label: &&&str| {
        let spec = |part: &Part| {
            part.experiment.algorithms.iter().find(|spec| spec.label == **label).cloned()
        };
        here.0.steps == "given" && spec(&here.0) != spec(&there.0)
    };
    let told = |label: &&str| format!("{label} ran with different steps in the two settings");
    let changed: Vec<String> = labels.iter().filter(changed).map(told).collect();
    if !changed.is_empty() {
        return Some((Verdict::Unknown, changed));
    }
    let lowest = ceiling(test, &labels, [&here.1, &there.1])?;
    let told = format!("no mean accuracy is below {lowest:.4}");
    Some((Verdict::Ceiling, vec![told]))
}

/// The lowest mean accuracy, if all are so high that they cannot differ by more than the margin.
fn ceiling(test: &Test, labels: &[&str], traces: [&Traces; 2]) -> Option<f64> {
    let measure = match test {
        Test::Cheaper { .. } => return None,
        Test::Ends { measure, .. }
        | Test::Falls { measure, .. }
        | Test::FallsMore { measure, .. } => *measure,
    };
    if !more_is_better(measure) {
        return None;
    }
    let means = labels.iter().flat_map(|label| {
        traces.map(|traces| Seeds::of(label, traces.of(label)).last(measure).map(|all| all.mean))
    });
    let means: Option<Vec<f64>> = means.collect();
    let lowest = means?.into_iter().fold(f64::INFINITY, f64::min);
    (1.0 - lowest <= test.margin().value).then_some(lowest)
}
