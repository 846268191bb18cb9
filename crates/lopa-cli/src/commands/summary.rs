//! The results of an experiment, as a table and a few sentences.

use lopa::experiment::Experiment;
use lopa::run::trace::{Stop, more_is_better};
use lopa::run::{Outcome, hex};
use lopa_study::compare::DECISIVE;
use lopa_study::statistics::spread;
use sha2::{Digest, Sha256};

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
    fn write(self, values: &[f64]) -> String {
        let (mean, sd) = spread(values);
        let several = values.len() > 1;
        match self {
            Style::Share if several => format!("{mean:.3} ± {sd:.3}"),
            Style::Share => format!("{mean:.3}"),
            Style::Spread if several => format!("{} ± {}", number(mean), short(sd)),
            Style::Spread => number(mean),
            Style::Mean => number(mean),
            Style::Count => format!("{mean:.0}"),
            Style::Bytes => bytes(mean),
            Style::Seconds => format!("{mean:.2}"),
        }
    }
}

fn short(sd: f64) -> String {
    if sd == 0.0 || (1e-3..1e5).contains(&sd) { format!("{sd:.3}") } else { format!("{sd:.0e}") }
}

/// The finished runs of each algorithm, in the order of the file.
fn groups<'a>(
    experiment: &'a Experiment,
    outcomes: &'a [Outcome],
) -> impl Iterator<Item = (&'a str, Vec<&'a Outcome>)> {
    experiment.algorithms.iter().map(move |spec| {
        let mine = outcomes.iter().filter(|outcome| outcome.algorithm == spec.label);
        (spec.label.as_str(), mine.collect())
    })
}

fn values(runs: &[&Outcome], name: &str) -> Option<Vec<f64>> {
    let sound = runs.iter().filter(|run| run.stop != Stop::Diverged);
    let values: Vec<f64> = sound.map(|run| run.row.value(name)).collect::<Option<_>>()?;
    (!values.is_empty()).then_some(values)
}

/// One line per algorithm: mean ± standard deviation over the seeds.
pub fn table(experiment: &Experiment, outcomes: &[Outcome], output: &Output) -> String {
    let measured =
        |name: &str| groups(experiment, outcomes).any(|(_, runs)| values(&runs, name).is_some());
    let columns: Vec<_> = COLUMNS.into_iter().filter(|(name, _, _)| measured(name)).collect();
    let mut head = vec!["algorithm"];
    head.extend(columns.iter().map(|(_, head, _)| *head));
    let line = |(label, runs): (&str, Vec<&Outcome>)| {
        let diverged = runs.iter().filter(|run| run.stop == Stop::Diverged).count();
        let label = match diverged {
            0 => label.to_string(),
            n => format!("{label} ({n} of {} diverged)", runs.len()),
        };
        let cell = |(name, _, style): &(&str, &str, Style)| {
            values(&runs, name).map_or("–".into(), |values| style.write(&values))
        };
        let mut cells = vec![label];
        cells.extend(columns.iter().map(cell));
        cells
    };
    let ran = groups(experiment, outcomes).filter(|(_, runs)| !runs.is_empty());
    output.table(&head, ran.map(line).collect())
}

/// The decisive measure, its words, and whether more is better.
fn decisive(
    experiment: &Experiment,
    outcomes: &[Outcome],
) -> Option<(&'static str, &'static str, bool)> {
    let measured =
        |name: &&str| groups(experiment, outcomes).any(|(_, runs)| values(&runs, name).is_some());
    let name = DECISIVE.into_iter().find(measured)?;
    Some((name, in_words(name), more_is_better(name)))
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
    let diverged = outcomes.iter().filter(|outcome| outcome.stop == Stop::Diverged).count();
    let diverged = match diverged {
        0 => String::new(),
        n => format!(" {n} of {} runs diverged and are left out of these numbers.", outcomes.len()),
    };
    let Some((name, words, more)) = decisive(experiment, outcomes) else {
        return format!("No run got far enough to be compared.{diverged}");
    };
    let mut ranked: Vec<(&str, f64, f64)> = groups(experiment, outcomes)
        .filter_map(|(label, runs)| {
            let (mean, sd) = spread(&values(&runs, name)?);
            Some((label, mean, sd))
        })
        .collect();
    ranked.sort_by(|a, b| if more { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) });
    let budget = limits(experiment);
    let seeds = experiment.run.seeds.len();
    let (best, mean, sd) = ranked[0];
    let figure = |mean: f64| if more { format!("{mean:.3}") } else { number(mean) };
    if ranked.len() == 1 {
        return format!("With {budget}, {best} ends with {words} {}.{diverged}", figure(mean));
    }
    let mut text = format!("With {budget}, {best} ends with the best {words}, {}", figure(mean));
    if let Some((second, their, theirs)) = ranked.get(1) {
        let apart = (mean - their).abs();
        let noise = (sd * sd + theirs * theirs).sqrt();
        text += &match (seeds, apart > 2.0 * noise) {
            (1, _) => {
                format!(
                    "; {second} follows with {} (one seed: the spread is unknown)",
                    figure(*their)
                )
            }
            (_, true) => format!(", clearly ahead of {second} with {}", figure(*their)),
            (_, false) => format!(
                "; {second} with {} is within the spread over {seeds} seeds",
                figure(*their)
            ),
        };
    }
    text += ".";
    text += &unseen(experiment, outcomes, best);
    text += &consensus(experiment, outcomes);
    text += &diverged;
    text
}

/// The best algorithm on all classes, if it is not the best on a node's own.
fn unseen(experiment: &Experiment, outcomes: &[Outcome], best: &str) -> String {
    let mean = |(label, runs): (_, Vec<&Outcome>)| {
        Some((label, spread(&values(&runs, "test_accuracy")?).0))
    };
    let all: Vec<(&str, f64)> = groups(experiment, outcomes).filter_map(mean).collect();
    let Some(&(first, leading)) = all.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return String::new();
    };
    match all.iter().find(|(label, _)| *label == best) {
        Some((_, own)) if leading > own + 0.01 => format!(
            " On all classes, {first} leads with {leading:.3} (a personal model cannot predict \
             classes its node never saw)."
        ),
        _ => String::new(),
    }
}

/// How much gradient tracking improves consensus.
fn consensus(experiment: &Experiment, outcomes: &[Outcome]) -> String {
    let mean = |wanted: &str| {
        let (_, runs) = groups(experiment, outcomes).find(|(label, _)| *label == wanted)?;
        Some(spread(&values(&runs, "consensus")?).0)
    };
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
