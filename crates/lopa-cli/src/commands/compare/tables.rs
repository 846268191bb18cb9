//! A comparison in tables and a sentence.

use lopa::math::portable::{exp, log10};
use lopa::run::trace::{COSTS, baseline_name};
use lopa_study::compare::{Comparison, Lead, Place, Scale, Standing};
use lopa_study::sentences::in_words;
use lopa_study::statistics::Interval;

use super::Compared;
use crate::output::{Output, bytes, number};

/// Columns of costs that fit on a terminal beside the names of the algorithms.
const ABREAST: usize = 4;
/// The same where the cells have names in them.
const ABREAST_NAMED: usize = 2;

/// The name of a cost as people write it.
pub fn plain(cost: &'static str) -> &'static str {
    match cost {
        "iteration" => "iterations",
        "exchanges" => "rounds",
        other => other,
    }
}

/// The words for a cost.
fn words(cost: &'static str) -> &'static str {
    match cost {
        "hessians" => "Hess·v per node",
        "jacobians" => "Jac·v per node",
        "gradients" => "gradients per node",
        "samples" => "samples per node",
        "bytes" => "sent over all links",
        other => plain(other),
    }
}

/// An amount of a cost with its unit.
fn amount(cost: &str, value: f64) -> String {
    match cost {
        "bytes" => bytes(value),
        "seconds" | "virtual_seconds" => format!("{value:.3} s"),
        _ if value < 1e6 => format!("{value:.0}"),
        _ => number(value),
    }
}

/// All tables of a comparison.
pub fn text(answer: &Comparison, output: &Output) -> String {
    let measure = in_words(&answer.measure);
    let error = match answer.rows {
        None => String::new(),
        Some(rows) => {
            format!("; intervals contain the error of the seeds and of {rows:.0} test rows")
        }
    };
    let mut parts = vec![format!("Best {measure} at each budget{error}"), winners(answer, output)];
    let how =
        if answer.scale.log { "geometric mean ×/÷ its deviation" } else { "mean ± deviation" };
    let count = answer.seeds.len();
    let over = if count == 1 { "one seed".into() } else { format!("{how} over {count} seeds") };
    parts.push(format!("{measure} at these budgets, {over}; values in (…) are not ranked"));
    let baseline = (baseline_name(&answer.measure), answer.majority.map(number));
    parts.extend(grids(&answer.standings, baseline, output, |place, _| level(place, count)));
    if let Some(target) = answer.target {
        let which = if answer.scale.more { "at least" } else { "at most" };
        parts.push(format!("Cost of {measure} of {which} {}", number(target)));
        parts.extend(grids(&answer.races, ("", None), output, |place, cost| {
            price(place, cost, count)
        }));
    }
    parts.join("\n\n")
}

/// Which algorithm is ahead in each of several runs under which cost, and which were not ranked.
pub fn overview(all: &[Compared], output: &Output) -> String {
    let answers = || all.iter().map(|one| &one.answer);
    let costs: Vec<&'static str> = COSTS
        .into_iter()
        .filter(|cost| answers().any(|answer| answer.standing(cost).is_some()))
        .collect();
    let mut measures: Vec<&str> = answers().map(|answer| in_words(&answer.measure)).collect();
    measures.dedup();
    let abreast = if output.markdown() { costs.len().max(1) } else { ABREAST_NAMED };
    let table = |some: &[&'static str]| {
        let head: Vec<&str> =
            std::iter::once("file").chain(some.iter().copied().map(words)).collect();
        let row = |one: &Compared| {
            let cell = |cost: &&'static str| {
                let standing = one.answer.standing(cost);
                standing
                    .and_then(|standing| ahead(standing, &one.answer, output))
                    .unwrap_or("–".into())
            };
            std::iter::once(one.name.clone()).chain(some.iter().map(cell)).collect()
        };
        output.list(&head, all.iter().map(row).collect())
    };
    let mut parts = vec![format!(
        "Best {} at each budget, mean and deviation over seeds. {}: its lead over every other is significant; else the \
         number of those on a par. In (…), what the leader spent most of, as a multiple of the median.",
        measures.join(" or "),
        if output.markdown() { "**Bold**" } else { "*" },
    )];
    parts.extend(costs.chunks(abreast).map(table));
    let absent: Vec<String> = all.iter().filter_map(not_ranked).collect();
    if !absent.is_empty() {
        parts.push(format!(
            "Not ranked, because they diverged (on how many seeds): {}.",
            absent.join("; ")
        ));
    }
    parts.join("\n\n")
}

/// The leader under one cost, its measure, and what its lead is worth.
fn ahead(standing: &Standing, answer: &Comparison, output: &Output) -> Option<String> {
    let Lead { winner, on_a_par, .. } = standing.lead.as_ref()?;
    let place = standing.places.iter().find(|place| place.algorithm == *winner)?;
    let value = level(place, answer.seeds.len());
    let mut text = match on_a_par.len() {
        0 if output.markdown() => format!("**{winner}** {value}"),
        0 => format!("{winner} * {value}"),
        others => format!("{winner} {value}, {others} on a par"),
    };
    if let Some((cost, times)) = standing.dearest() {
        let short = words(cost).trim_end_matches(" per node");
        text += &format!(" (×{times:.0} {})", if cost == "bytes" { "bytes" } else { short });
    }
    Some(text)
}

/// The algorithms of a run that diverged, each with the number of its seeds.
fn not_ranked(one: &Compared) -> Option<String> {
    let places = one.answer.standings.first()?.places.iter().filter(|place| place.diverged > 0);
    let names: Vec<String> =
        places.map(|place| format!("{} ({})", place.algorithm, place.diverged)).collect();
    (!names.is_empty()).then(|| format!("{}: {}", one.name, names.join(", ")))
}

/// One line per cost.
fn winners(answer: &Comparison, output: &Output) -> String {
    let line = |standing: &Standing| {
        let budget = standing.budget.map_or(String::new(), |b| amount(standing.cost, b));
        let mut cells = vec![words(standing.cost).to_string(), budget];
        let count = answer.seeds.len();
        let of = |name: &str| {
            let place = standing.places.iter().find(|place| place.algorithm == name);
            place.map_or(String::new(), |place| level(place, count))
        };
        match &standing.lead {
            None => cells.extend(["none", "", "", ""].map(String::from)),
            Some(Lead { winner, runner_up, by, .. }) => {
                let second = runner_up.clone().unwrap_or_default();
                let lead = by.map_or("unknown".into(), |by| difference(by, answer.scale));
                cells.extend([winner.clone(), of(winner), second, lead]);
            }
        }
        cells.push(standing.lead.as_ref().map_or(String::new(), verdict));
        cells
    };
    let head = ["cost", "budget", "ahead", "with", "next", "lead, 95 % interval", "significant"];
    output.list(&head, answer.standings.iter().map(line).collect())
}

fn verdict(lead: &Lead) -> String {
    match (&lead.runner_up, lead.by) {
        (None, _) => "no other".into(),
        (_, None) => "one seed".into(),
        _ if !lead.significant => format!("no: on a par with {}", few(&lead.on_a_par)),
        _ if lead.on_a_par.is_empty() => "yes".into(),
        // The next is behind on every seed, by a little; another by more on average, but not on every seed.
        _ => format!("over the next; on a par with {}", few(&lead.on_a_par)),
    }
}

/// A difference, or a ratio on a logarithmic scale.
fn difference(Interval { mean, low, high, .. }: Interval, scale: Scale) -> String {
    let shown = |value: f64| if scale.log { number(exp(value)) } else { number(value) };
    let sign = if scale.log { "×" } else { "" };
    format!("{sign}{} ({} to {})", shown(mean), shown(low), shown(high))
}

/// A row per algorithm and one of the majority class or the mean, a column per cost; on terminals a few columns at
/// a time.
fn grids(
    standings: &[Standing],
    (who, baseline): (&str, Option<String>),
    output: &Output,
    cell: impl Fn(&Place, &str) -> String,
) -> Vec<String> {
    let abreast = if output.markdown() { standings.len().max(1) } else { ABREAST };
    let grid = |some: &[Standing]| {
        let mut head = vec!["algorithm"];
        head.extend(some.iter().map(|standing| words(standing.cost)));
        let count = some.first().map_or(0, |standing| standing.places.len());
        let row = |at: usize| {
            let mut cells = vec![some[0].places[at].algorithm.clone()];
            for Standing { cost, places, lead, .. } in some {
                let best = lead.as_ref().is_some_and(|l| l.winner == places[at].algorithm);
                cells.push(format!("{}{}", cell(&places[at], cost), if best { " *" } else { "" }));
            }
            cells
        };
        let line = |value: &String| {
            let cells = some.iter().map(|_| value.clone());
            std::iter::once(who.to_string()).chain(cells).collect()
        };
        output.table(&head, (0..count).map(row).chain(baseline.iter().map(line)).collect())
    };
    standings.chunks(abreast).map(grid).collect()
}

/// The measure of an entry: its mean and spread.
fn level(place: &Place, seeds: usize) -> String {
    let Some(mean) = place.mean else { return "–".into() };
    let text = match (place.geometric, place.sd) {
        (Some((mean, factor)), _) => format!("{} ×/÷ {}", number(mean), short(factor)),
        (None, Some(sd)) => format!("{} ± {}", number(mean), short(sd)),
        (None, None) => number(mean),
    };
    match (place.ranked, place.values.len()) {
        (true, _) => text,
        (false, count) if count == seeds => format!("({text})"),
        (false, count) => format!("({text}, {count} of {seeds} seeds)"),
    }
}

/// A spread with two digits.
fn short(spread: f64) -> String {
    match spread {
        0.0 => "0".into(),
        spread if spread >= 100.0 => format!("{spread:.0e}"),
        spread if spread >= 1.0 => format!("{spread:.1}"),
        spread if spread >= 1e-3 => {
            format!("{spread:.*}", (1.0 - log10(spread).floor()) as usize)
        }
        spread => format!("{spread:.0e}"),
    }
}

/// The cost of the target.
fn price(place: &Place, cost: &str, seeds: usize) -> String {
    match (place.mean, place.values.len()) {
        (Some(mean), count) if count == seeds => amount(cost, mean),
        (Some(_), count) => format!("on {count} of {seeds} seeds"),
        (None, _) => "never".into(),
    }
}

/// At most three names.
fn few(names: &[String]) -> String {
    match names {
        [some @ .., _, _] if some.len() > 1 => {
            format!("{} and {} more", names[..2].join(", "), names.len() - 2)
        }
        _ => names.join(", "),
    }
}

/// The legend of the numbers.
pub fn closing(answer: &Comparison) -> String {
    let measure = in_words(&answer.measure);
    let diverged: String = answer.diverged.iter().map(|one| format!(" {one}.")).collect();
    let Some(leaders) = wins(&answer.standings) else {
        return format!("No ranking: no algorithm was measured on every seed.{diverged}");
    };
    let alone = |standing: &Standing| standing.places.iter().filter(|p| p.ranked).count() < 2;
    let mut text = match answer.standings.iter().all(alone) {
        true => format!("By {measure} at equal budgets, {leaders}: no other can be ranked."),
        false => format!("By {measure} at equal budgets, {leaders}."),
    };
    if let Some(target) = answer.target {
        text += &match wins(&answer.races) {
            Some(leaders) => format!(" To reach {measure} of {}, {leaders}.", number(target)),
            None => {
                format!(" No algorithm reached {measure} of {} on every seed.", number(target))
            }
        };
    }
    let unsure =
        |standing: &&Standing| standing.lead.as_ref().is_some_and(|lead| !lead.on_a_par.is_empty());
    let ties: Vec<&str> =
        answer.standings.iter().filter(unsure).map(|standing| plain(standing.cost)).collect();
    if !ties.is_empty() {
        let under = ties.join(", ");
        let within = match answer.rows {
            None => "the spread over seeds".to_string(),
            Some(rows) => format!("the error of the seeds and of {rows:.0} test rows"),
        };
        text += &format!(" Under {under} others are on a par: the lead is within {within}.");
    }
    text + &diverged
}

/// Which algorithm leads under which costs.
fn wins(standings: &[Standing]) -> Option<String> {
    let mut winners: Vec<(&str, Vec<&str>)> = Vec::new();
    for standing in standings {
        let Some(lead) = &standing.lead else { continue };
        match winners.iter_mut().find(|(winner, _)| *winner == lead.winner) {
            Some((_, costs)) => costs.push(plain(standing.cost)),
            None => winners.push((&lead.winner, vec![plain(standing.cost)])),
        }
    }
    let leaders: Vec<String> = winners
        .iter()
        .map(|(winner, costs)| match costs.len() {
            count if count == standings.len() => format!("{winner} leads under every cost"),
            _ => format!("{winner} leads under {}", costs.join(", ")),
        })
        .collect();
    (!leaders.is_empty()).then(|| leaders.join("; "))
}
