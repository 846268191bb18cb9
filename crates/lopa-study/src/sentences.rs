//! The results of an experiment in a few sentences, for the terminal and the report.

use lopa::math::number;
use lopa::math::portable::{log2, powf};
use lopa::run::trace::more_is_better;

use crate::compare::{DECISIVE, Place, Scale, lead};
use crate::seeds::{Ended, Seeds};
use crate::statistics::Summary;

/// The limits of runs in words, given costs by their names in rows.
pub fn limits<'a>(all: impl IntoIterator<Item = (&'a str, f64)>) -> String {
    let named = |(name, limit): (&str, f64)| match name {
        "hessians" => format!("{limit} Hessian-vector products per node"),
        "jacobians" => format!("{limit} Jacobian-vector products per node"),
        "gradients" | "samples" => format!("{limit} {name} per node"),
        "exchanges" => format!("{limit} rounds"),
        "bytes" => format!("{} sent", bytes(limit)),
        "iteration" => format!("{limit} iterations"),
        "virtual_seconds" => format!("{limit} virtual seconds"),
        _ => format!("{limit} {name}"),
    };
    let all: Vec<String> = all.into_iter().map(named).collect();
    format!("at most {}", all.join(", "))
}

/// The words for a measure, or its name.
pub fn in_words(measure: &str) -> &str {
    match measure {
        "own_test_accuracy" => "test accuracy on a node's own classes",
        "holdout_accuracy" => "accuracy on each node's own held-out rows",
        "test_accuracy" => "test accuracy",
        "train_accuracy" => "training accuracy",
        "holdout_r2" => "R² on each node's own held-out rows",
        "test_r2" => "test R²",
        "train_r2" => "training R²",
        "holdout_concordance" => "concordance on each node's own held-out rows",
        "test_concordance" => "test concordance",
        "train_concordance" => "training concordance",
        "grad_phi_sq" => "|∇Φ|²",
        "phi" => "Φ(x̄)",
        "x_error" => "|x − x*|²",
        other => other,
    }
}

/// The results of the algorithms with these labels in a few sentences; `limits` comes from
/// [`limits`], `rows` is the number of rows that decide an accuracy.
pub fn closing<R: Ended>(
    labels: &[&str],
    limits: &str,
    runs: &[R],
    rows: &dyn Fn(&str) -> Option<f64>,
) -> String {
    let sentence = |label: &&str| Seeds::of(label, runs).count().sentence(label);
    let diverged: String =
        labels.iter().filter_map(sentence).map(|sentence| format!(" {sentence}.")).collect();
    let ranking =
        |name| lead(&places(labels, runs, name), Scale::of(name), rows(name)).zip(Some(name));
    let Some((lead, name)) = DECISIVE.into_iter().find_map(ranking) else {
        return format!("No algorithm can be ranked.{diverged}");
    };
    let (words, best) = (in_words(name), &lead.winner[..]);
    let figure = |label: &str| match Seeds::of(label, runs).last(name).map(|all| all.mean) {
        Some(mean) if more_is_better(name) => format!("{mean:.3}"),
        mean => number(mean.unwrap_or(f64::NAN)),
    };
    let Some(second) = &lead.runner_up else {
        return format!("With {limits}, {best} ends with {words} {}.{diverged}", figure(best));
    };
    let mut text = format!("With {limits}, {best} ends with the best {words}, {}", figure(best));
    let their = figure(second);
    text += &match lead.by {
        None => format!("; {second} follows with {their} (one seed: the spread is unknown)"),
        Some(_) if lead.significant => format!(", clearly ahead of {second} with {their}"),
        Some(_) => {
            let seeds = Seeds::of(best, runs).all().len();
            match lead.rows {
                None => format!("; {second} with {their} is within the spread over {seeds} seeds"),
                Some(rows) => format!(
                    "; {second} with {their} is within the error of {seeds} seeds and {rows:.0} rows"
                ),
            }
        }
    };
    text += ".";
    text += &unseen(labels, runs, best);
    text += &consensus(labels, runs);
    text += &diverged;
    text
}

/// The algorithms that have this measure, for the same ranking as in `lopa compare`.
fn places<R: Ended>(labels: &[&str], runs: &[R], name: &str) -> Vec<Place> {
    let place = |label: &&str| {
        let seeds = Seeds::of(label, runs);
        let values = seeds.lasts(name).filter(|values| !values.is_empty())?;
        Some(Place::new(label, Scale::of(name), values, seeds.count(), None, true))
    };
    labels.iter().filter_map(place).collect()
}

/// A measure of the algorithms that can be ranked.
fn ranked<'a, R: Ended>(labels: &[&'a str], runs: &[R], name: &str) -> Vec<(&'a str, Summary)> {
    let value = |label: &&'a str| {
        let seeds = Seeds::of(label, runs);
        Some((*label, seeds.last(name).filter(|_| seeds.ranked())?))
    };
    labels.iter().filter_map(value).collect()
}

/// The best algorithm on all classes, if it is not the best on a node's own.
fn unseen<R: Ended>(labels: &[&str], runs: &[R], best: &str) -> String {
    let all = ranked(labels, runs, "test_accuracy");
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
fn consensus<R: Ended>(labels: &[&str], runs: &[R]) -> String {
    let all = ranked(labels, runs, "consensus");
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

/// Bytes with a binary unit.
pub fn bytes(value: f64) -> String {
    if value < 1024.0 {
        return format!("{value:.0} B");
    }
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let power = (log2(value) / 10.0).floor().min(4.0);
    format!("{:.1} {}", value / powf(1024.0, power), units[power as usize - 1])
}

#[cfg(test)]
mod tests {
    use lopa::folder::Run;
    use lopa::problem::derivative::Counts;
    use lopa::run::trace::Row;

    use super::*;

    fn runs(numbers: &[(&str, [f64; 3])]) -> Vec<Run> {
        let run = |algorithm: &str, (seed, value): (u64, f64)| {
            let mut row = Row::new(&Counts::default(), 1);
            row.values.insert("own_test_accuracy".into(), value);
            Run { algorithm: algorithm.into(), seed, diverged: false, rows: vec![row] }
        };
        let of = |(label, values): &(&str, [f64; 3])| {
            (1..).zip(*values).map(|seed| run(label, seed)).collect::<Vec<_>>()
        };
        numbers.iter().flat_map(of).collect()
    }

    /// The interval over paired seeds decides, as in `lopa compare`: not the two deviations.
    #[test]
    fn a_lead_is_clear_where_comparing_says_so() {
        let said =
            |numbers: &[(&str, [f64; 3])]| closing(&["a", "b"], "10 s", &runs(numbers), &|_| None);
        let apart = said(&[("a", [0.9590, 0.9575, 0.9560]), ("b", [0.9440, 0.9475, 0.9510])]);
        assert!(apart.contains("b with 0.947 is within the spread over 3 seeds"), "{apart}");
        // The seeds differ, and the lead is the same on each.
        let lead = [("a", [0.90, 0.80, 0.70]), ("b", [0.88, 0.779, 0.679])];
        let paired = said(&lead);
        assert!(paired.contains("clearly ahead of b with 0.779"), "{paired}");
        // A difference that 100 rows cannot show is none; 100 000 rows show it.
        let with = |rows| closing(&["a", "b"], "10 s", &runs(&lead), &|_| Some(rows));
        let few = with(100.0);
        assert!(few.contains("b with 0.779 is within the error of 3 seeds and 100 rows"), "{few}");
        assert!(with(1e5).contains("clearly ahead of b"), "{}", with(1e5));
    }
}
