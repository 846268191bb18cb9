//! The results of an experiment, as a table and a few sentences.

use lopa::experiment::{Exactly, Experiment, RunSpec};
use lopa::folder::Manifest;
use lopa::run::Outcome;
use lopa::run::steps::TOLD;
use lopa::run::trace::Stop;
use lopa_study::seeds::Seeds;
use lopa_study::sentences;
use lopa_study::table::Table;

use super::bars;
use crate::output::{Output, number};

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

/// The limits of the runs.
fn limits(experiment: &Experiment) -> String {
    sentences::limits(experiment.run.limits())
}

/// Seconds of measuring that deserve a warning.
const LONG: f64 = 10.0;

/// The runs of each algorithm, in the order of the file.
fn groups<'a>(
    experiment: &'a Experiment,
    outcomes: &'a [Outcome],
) -> impl Iterator<Item = (&'a str, Seeds<'a, Outcome>)> {
    let group = move |label: &'a str| (label, Seeds::of(label, outcomes));
    let ran = |(_, seeds): &(_, Seeds<Outcome>)| !seeds.all().is_empty();
    experiment.algorithms.iter().map(move |spec| group(&spec.label)).filter(ran)
}

/// One line per algorithm, then what predicts without features.
pub fn table(outcomes: &[Outcome], output: &Output) -> String {
    let Table { head, lines } = Table::of(outcomes);
    output.table(&head.iter().map(String::as_str).collect::<Vec<_>>(), lines)
}

/// The results in a few sentences.
pub fn closing(experiment: &Experiment, outcomes: &[Outcome], manifest: &Manifest) -> String {
    let labels: Vec<&str> = experiment.algorithms.iter().map(|spec| spec.label.as_str()).collect();
    let rows = |accuracy: &str| manifest.judged(accuracy);
    let text = sentences::closing(&labels, &limits(experiment), outcomes, &rows);
    text + unjudged(experiment, outcomes)
}

/// The hint if nodes have rows of their own, but none was judged on them.
fn unjudged(experiment: &Experiment, outcomes: &[Outcome]) -> &'static str {
    let has = |name: &str| outcomes.iter().any(|outcome| outcome.row.value(name).is_some());
    let grouped = experiment.data.as_ref().is_some_and(|spec| spec.partition.name == "group");
    let any = |names: [&str; 3]| names.into_iter().any(has);
    let judged = any(["holdout_accuracy", "holdout_r2", "holdout_concordance"]);
    match grouped && any(["test_accuracy", "test_r2", "test_concordance"]) && !judged {
        true => {
            " Test rows are those of all nodes: `holdout = 0.2` in `[data]` judges each node on its own."
        }
        false => "",
    }
}

/// How many runs had ended when a signal came.
pub fn so_far(experiment: &Experiment, outcomes: &[Outcome]) -> String {
    let ended = outcomes.iter().filter(|outcome| outcome.stop != Stop::Interrupted).count();
    let all = experiment.run.seeds.len() * experiment.algorithms.len();
    format!("{ended} of {all} runs have ended; the table shows how far the others came")
}

/// The last step sizes of algorithms that found them, and how often they were cut back.
pub fn found_steps(experiment: &Experiment, outcomes: &[Outcome]) -> Vec<String> {
    let line = |(label, seeds): (&str, Seeds<Outcome>)| {
        let mean = |name: &str| seeds.last(name).map(|summary| summary.mean);
        let steps = TOLD[..3].iter().filter_map(|name| Some((name, mean(name)?)));
        let steps = steps.filter(|(_, step)| *step > 0.0);
        let said: Vec<String> = steps
            .map(|(name, step)| format!("{} {}", name.trim_start_matches("step_"), number(step)))
            .collect();
        let curvature = mean("curvature").filter(|curvature| *curvature > 0.0);
        let curvature = curvature.map_or(String::new(), |curvature| {
            format!("; the largest curvature of g that was measured is {}", number(curvature))
        });
        let cuts = mean("cuts").filter(|cuts| *cuts > 0.0).map_or(String::new(), |cuts| {
            let often = match cuts < 1.0 {
                true => "at some nodes".into(),
                false => format!("{cuts:.1} times per node"),
            };
            format!("; growth halved the steps of theta and v {often}")
        });
        let lag = mean("lag").filter(|lag| *lag >= 2.0).map_or(String::new(), |lag| {
            format!("; theta and v lag {lag:.0} iterations behind x, which slows x as much")
        });
        (!said.is_empty()).then(|| {
            format!("{label} found its steps, at the end {}{curvature}{lag}{cuts}", said.join(", "))
        })
    };
    groups(experiment, outcomes).filter_map(line).collect()
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
