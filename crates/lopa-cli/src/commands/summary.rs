//! The results of an experiment, as a table and a few sentences.

use lopa::experiment::{Exactly, Experiment, RunSpec};
use lopa::run::trace::more_is_better;
use lopa::run::{Outcome, hex};
use lopa_study::compare::DECISIVE;
use lopa_study::seeds::Seeds;
use lopa_study::statistics::Summary;
use sha2::{Digest, Sha256};

use super::bars;
use crate::output::{Output, bytes, number};

/// The experiment in one line, printed before it runs.
pub fn heading(experiment: &Experiment) -> String {
    let Experiment { name, problem, data, network, run, algorithms, .. } = experiment;
    let data = data.as_ref().map(|spec| format!(" on {}", spec.source.name)).unwrap_or_default();
    let (seeds, count) = (run.seeds.len(), algorithms.len());
    format!(
        "{name}: {}{data}, {} nodes ({}, {} weights), {count} algorithm{} × {seeds} seed{}, {}",
        problem.name,
        network.nodes,
        network.graph.name,
        network.weights.name,
        plural(count),
        plural(seeds),
        limits(experiment)
    )
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn limits(experiment: &Experiment) -> String {
    let run = &experiment.run;
    let named = |(name, limit): (&str, f64)| match name {
        "hessians" => format!("{limit} Hessian-vector products per node"),
        "jacobians" => format!("{limit} Jacobian-vector products per node"),
        "gradients" | "samples" => format!("{limit} {name} per node"),
        "exchanges" => format!("{limit} rounds"),
        "bytes" => format!("{} sent", bytes(limit)),
        _ => format!("{limit} {name}"),
    };
    let iterations = run.iterations.map(|limit| format!("{limit} iterations"));
    let all: Vec<_> = run.budget.limits().map(named).chain(iterations).collect();
    format!("at most {}", all.join(", "))
}

/// Columns: name in rows, head, format of mean and spread. Only what fits a terminal; scripts get
/// everything.
const COLUMNS: [(&str, &str, Style); 10] = [
    ("test_accuracy", "test accuracy", Style::Share),
    ("own_test_accuracy", "own classes", Style::Share),
    ("loss", "loss", Style::Spread),
    ("grad_phi_sq", "|∇Φ|²", Style::Mean),
    ("consensus", "consensus", Style::Mean),
    ("x_error", "|x−x*|²", Style::Mean),
    ("hessians", "Hess·v", Style::Count),
    ("gradients", "gradients", Style::Count),
    ("bytes", "sent", Style::Bytes),
    ("seconds", "seconds", Style::Seconds),
];

/// Seconds of measuring that deserve a warning.
const LONG: f64 = 10.0;

#[derive(Clone, Copy)]
enum Style {
    Share,
    Spread,
    Mean,
    Count,
    Bytes,
    Seconds,
}

impl Style {
    fn write(self, Summary { mean, sd, .. }: Summary) -> String {
        match (self, sd) {
            (Style::Share, Some(sd)) => format!("{mean:.3} ± {sd:.3}"),
            (Style::Share, None) => format!("{mean:.3}"),
            (Style::Spread, Some(sd)) => format!("{} ± {}", number(mean), short(sd)),
            (Style::Spread | Style::Mean, _) => number(mean),
            (Style::Count, _) => format!("{mean:.0}"),
            (Style::Bytes, _) => bytes(mean),
            (Style::Seconds, _) => format!("{mean:.2}"),
        }
    }
}

fn short(sd: f64) -> String {
    if sd == 0.0 || (1e-3..1e5).contains(&sd) { format!("{sd:.3}") } else { format!("{sd:.0e}") }
}

/// The runs of each algorithm, in the order of the file.
fn groups<'a>(
    experiment: &'a Experiment,
    outcomes: &'a [Outcome],
) -> impl Iterator<Item = (&'a str, Seeds<'a, Outcome>)> {
    let group = move |label: &'a str| (label, Seeds::of(label, outcomes));
    let ran = |(_, seeds): &(_, Seeds<Outcome>)| !seeds.all().is_empty();
    experiment.algorithms.iter().map(move |spec| group(&spec.label)).filter(ran)
}

/// A measure of the algorithms that can be ranked.
fn ranked<'a>(
    experiment: &'a Experiment,
    outcomes: &'a [Outcome],
    name: &str,
) -> Vec<(&'a str, Summary)> {
    let sound = groups(experiment, outcomes).filter(|(_, seeds)| seeds.ranked());
    sound.filter_map(|(label, seeds)| Some((label, seeds.last(name)?))).collect()
}

/// One line per algorithm: mean ± standard deviation over the seeds that did not diverge.
pub fn table(experiment: &Experiment, outcomes: &[Outcome], output: &Output) -> String {
    let measured =
        |name: &str| groups(experiment, outcomes).any(|(_, seeds)| seeds.last(name).is_some());
    let columns: Vec<_> = COLUMNS.into_iter().filter(|(name, _, _)| measured(name)).collect();
    let mut head = vec!["algorithm"];
    head.extend(columns.iter().map(|(_, head, _)| *head));
    let line = |(label, seeds): (&str, Seeds<Outcome>)| {
        let cell = |(name, _, style): &(&str, &str, Style)| {
            seeds.last(name).map_or("–".into(), |summary| style.write(summary))
        };
        let mut cells = vec![seeds.count().named(label)];
        cells.extend(columns.iter().map(cell));
        cells
    };
    output.table(&head, groups(experiment, outcomes).map(line).collect())
}

/// The words for a measure, or its name.
pub fn in_words(measure: &str) -> &str {
    match measure {
        "own_test_accuracy" => "test accuracy on a node's own classes",
        "test_accuracy" => "test accuracy",
        "train_accuracy" => "training accuracy",
        "grad_phi_sq" => "|∇Φ|²",
        "phi" => "Φ(x̄)",
        "x_error" => "|x − x*|²",
        other => other,
    }
}

/// The results in a few sentences.
pub fn closing(experiment: &Experiment, outcomes: &[Outcome]) -> String {
    let sentence = |(label, seeds): (&str, Seeds<Outcome>)| seeds.count().sentence(label);
    let diverged: String = groups(experiment, outcomes)
        .filter_map(sentence)
        .map(|sentence| format!(" {sentence}."))
        .collect();
    let ranking =
        |name| Some((name, ranked(experiment, outcomes, name))).filter(|r| !r.1.is_empty());
    let Some((name, mut ranked)) = DECISIVE.into_iter().find_map(ranking) else {
        return format!("No algorithm can be ranked.{diverged}");
    };
    let (words, more) = (in_words(name), more_is_better(name));
    ranked.sort_by(|(_, a), (_, b)| match more {
        true => b.mean.total_cmp(&a.mean),
        false => a.mean.total_cmp(&b.mean),
    });
    let budget = limits(experiment);
    let (best, Summary { mean, sd, .. }) = ranked[0];
    let figure = |mean: f64| if more { format!("{mean:.3}") } else { number(mean) };
    let Some((second, theirs)) = ranked.get(1) else {
        return format!("With {budget}, {best} ends with {words} {}.{diverged}", figure(mean));
    };
    let mut text = format!("With {budget}, {best} ends with the best {words}, {}", figure(mean));
    let noise = sd.zip(theirs.sd).map(|(ours, theirs)| ours.hypot(theirs));
    let their = figure(theirs.mean);
    text += &match noise {
        None => format!("; {second} follows with {their} (one seed: the spread is unknown)"),
        Some(noise) if (mean - theirs.mean).abs() > 2.0 * noise => {
            format!(", clearly ahead of {second} with {their}")
        }
        Some(_) => {
            let seeds = experiment.run.seeds.len();
            format!("; {second} with {their} is within the spread over {seeds} seeds")
        }
    };
    text += ".";
    text += &unseen(experiment, outcomes, best);
    text += &consensus(experiment, outcomes);
    text += &diverged;
    text
}

/// The best algorithm on all classes, if it is not the best on a node's own.
fn unseen(experiment: &Experiment, outcomes: &[Outcome], best: &str) -> String {
    let all = ranked(experiment, outcomes, "test_accuracy");
    let leading = all.iter().max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean));
    let own = all.iter().find(|(label, _)| *label == best);
    match leading.zip(own) {
        Some(((first, leading), (_, own))) if leading.mean > own.mean + 0.01 => format!(
            " On all classes, {first} leads with {:.3} (a personal model cannot predict \
             classes its node never saw).",
            leading.mean
        ),
        _ => String::new(),
    }
}

/// How much gradient tracking improves consensus.
fn consensus(experiment: &Experiment, outcomes: &[Outcome]) -> String {
    let all = ranked(experiment, outcomes, "consensus");
    let mean = |wanted: &str| Some(all.iter().find(|(label, _)| *label == wanted)?.1.mean);
    match (mean("lopa-gt"), mean("lopa-lg")) {
        (Some(gt), Some(lg)) if gt > 0.0 && lg > 1.5 * gt => format!(
            " Gradient tracking keeps the copies of x {:.0} times closer together than local \
             gradients do (consensus {} against {}).",
            lg / gt,
            number(gt),
            number(lg)
        ),
        _ => String::new(),
    }
}

/// Seconds of all iterations, and of measuring.
fn seconds(outcomes: &[Outcome]) -> (f64, f64) {
    let sum = |of: fn(&Outcome) -> f64| outcomes.iter().map(of).sum();
    (sum(|outcome| outcome.row.seconds), sum(|outcome| outcome.measuring))
}

/// How long the runs took, and measuring them.
pub fn time(outcomes: &[Outcome]) -> String {
    let (iterations, measuring) = seconds(outcomes);
    format!("the runs took {}", bars::time(iterations, measuring))
}

/// A warning where measuring took most of the time, with the remedy.
pub fn slow(run: &RunSpec, outcomes: &[Outcome]) -> Option<String> {
    too_slow(run.exact, run.evaluations, seconds(outcomes))
}

fn too_slow(
    exact: Exactly,
    evaluations: u64,
    (iterations, measuring): (f64, f64),
) -> Option<String> {
    let remedy = match exact {
        Exactly::Always => {
            "`exact = \"end\"` in `[run]` solves exactly at the end only, and a smaller \
                            `evaluations` measures more rarely"
        }
        _ => "a smaller `evaluations` in `[run]` measures more rarely",
    };
    (measuring > LONG && measuring > iterations).then(|| {
        format!(
            "measuring took {measuring:.0} s of {:.0} s (`evaluations = {}`): {remedy}",
            iterations + measuring,
            evaluations
        )
    })
}

/// One digest of all runs.
pub fn digest(outcomes: &[Outcome]) -> String {
    let mut hasher = Sha256::new();
    for outcome in outcomes {
        hasher.update(&outcome.algorithm);
        hasher.update(outcome.seed.to_le_bytes());
        hasher.update(&outcome.digest);
    }
    hex(&hasher.finalize()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measuring_that_dominates_is_answered_with_what_to_set() {
        let said = |exact, times| too_slow(exact, 50, times);
        let text = said(Exactly::Always, (85.0, 341.0)).unwrap();
        assert!(text.starts_with("measuring took 341 s of 426 s (`evaluations = 50`): `exact"));
        let text = said(Exactly::End, (85.0, 341.0)).unwrap();
        assert!(!text.contains("exact") && text.contains("a smaller `evaluations` in `[run]`"));
        assert_eq!(said(Exactly::Always, (400.0, 341.0)), None);
        assert_eq!(said(Exactly::Always, (0.1, 3.0)), None, "nobody minds three seconds");
    }
}
