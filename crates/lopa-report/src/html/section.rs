//! The section of a run.

use lopa::folder::{Manifest, Status};
use lopa::run::Outcome;
use lopa_study::seeds::{Ended, Seeds};
use lopa_study::sentences;
use serde_json::Value;

use super::about;
use super::tables;
use crate::figure::{Figure, Panel};
use crate::lyapunov::lyapunov;
use crate::pictures::{Styles, View, curves, labels, networks};
use crate::saved::Saved;
use crate::statistics::traces;
use crate::svg::escape;

/// The heading of a run: its experiment's name, or else its folder's.
pub fn heading(saved: &Saved) -> String {
    saved.title().to_string()
}

/// The section of the n-th run. It is readable without scripts; with them, interactive charts
/// replace the static curves.
pub fn section(n: usize, saved: &Saved, styles: &Styles, view: &View) -> String {
    let traces = traces(saved);
    let (heading, name) = (escape(&heading(saved)), escape(&saved.name));
    let curves = curves(saved, styles, view).inline();
    let (facts, closing, notes) = (facts(saved), closing(saved), divergences(saved));
    let (quality, costs) = (tables::quality(&traces, styles), tables::costs(&traces, styles));
    let results = match saved.manifest.status {
        Status::Running => "Results so far",
        _ => "Final results",
    };
    let pictures = pictures(saved);
    let more: String = [
        details("Every node", &tables::nodes(saved)),
        details("Every seed", &tables::runs(saved)),
        details("Settings", &format!("<pre><code>{}</code></pre>", escape(&saved.settings))),
        details("Environment", &environment(&saved.manifest)),
    ]
    .concat();
    format!(
        "<section class=\"run\" id=\"run-{n}\" aria-labelledby=\"heading-{n}\">\n\
         <div class=\"title\"><h2 id=\"heading-{n}\">{heading}</h2><code>{name}</code></div>\n\
         {facts}{closing}{notes}\
         <div class=\"charts\" data-run=\"{n}\"><div class=\"still\">{curves}</div></div>\n\
         <h3>{results}</h3>\n{quality}{costs}{pictures}\
         <div class=\"more\">{more}</div>\n\
         <p class=\"downloads\" data-run=\"{n}\" hidden></p>\n</section>\n"
    )
}

/// A short description of each part of the run.
fn facts(saved: &Saved) -> String {
    let Manifest { algorithms, seeds, status, started, .. } = &saved.manifest;
    let mut facts = about::facts(saved);
    facts.push(("Algorithms", algorithms.len().to_string()));
    let listed: Vec<String> = seeds.iter().take(8).map(u64::to_string).collect();
    facts.push(match seeds.len() {
        n @ ..=8 => ("Seeds", format!("{n} ({})", listed.join(", "))),
        n => ("Seeds", n.to_string()),
    });
    // For a network that is too large to draw.
    if let Some(world) = saved.worlds().first().filter(|world| world.weights.is_empty()) {
        let estimate = if world.estimated { " or more, an estimate" } else { "" };
        facts.push(("ρ", format!("{:.3}{estimate}", world.rho)));
    }
    if *status != Status::Done {
        facts.push(("Status", status.name().into()));
    }
    facts.push(("Started", started.replace('T', " ").replace('Z', " UTC")));
    let fact = |(name, value): (&str, String)| {
        format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value))
    };
    format!("<dl class=\"facts\">{}</dl>\n", facts.into_iter().map(fact).collect::<String>())
}

/// The results in a few sentences, as `lopa run` ends with them.
fn closing(saved: &Saved) -> String {
    if saved.results.is_empty() || saved.manifest.status == Status::Running {
        return String::new();
    }
    let settings = saved.experiment();
    let run = settings.get("run");
    let number = |value: &toml::Value| value.as_float().or(value.as_integer().map(|n| n as f64));
    let budget = run.and_then(|run| run.get("budget")?.as_table()).into_iter().flatten();
    let budget = budget.filter_map(|(name, value)| Some((name.as_str(), number(value)?)));
    let iterations = run.and_then(|run| number(run.get("iterations")?));
    let limits = sentences::limits(budget.chain(iterations.map(|most| ("iteration", most))));
    let labels: Vec<&str> = saved.manifest.algorithms.iter().map(String::as_str).collect();
    let rows = |accuracy: &str| saved.manifest.judged(accuracy);
    let text = sentences::closing(&labels, &limits, &saved.results, &rows);
    format!("<p class=\"closing\">{}</p>\n", escape(&text))
}

/// The algorithms that diverged, and why, with the diagnosis of the first seed; and the runs that nodes have left.
fn divergences(saved: &Saved) -> String {
    let note = |algorithm: &str| {
        let seeds = Seeds::of(algorithm, &saved.results);
        let lost: Vec<&Outcome> =
            seeds.all().iter().copied().filter(|entry| entry.diverged()).collect();
        let first = lost.first()?;
        let why = first.diagnosis.as_deref().unwrap_or("its values are no longer finite");
        let when = |entry: &&Outcome| {
            format!("seed {} diverged at iteration {}", entry.seed, entry.row.iteration)
        };
        let when: Vec<String> = lost.iter().map(when).collect();
        let label = seeds.count().named(algorithm);
        Some(format!(
            "<li><strong>{}</strong>: {}: {}</li>",
            escape(&label),
            when.join(", "),
            escape(why)
        ))
    };
    let left = |entry: &Outcome| {
        entry.took_part(&saved.manifest.nodes).map(|text| format!("<li>{}</li>", escape(&text)))
    };
    let left = saved.results.iter().filter_map(left);
    let missed = saved
        .manifest
        .missed
        .iter()
        .map(|run| format!("<li>{}: the others ended it without this node</li>", escape(run)));
    let notes = saved.algorithms().into_iter().filter_map(note).chain(left).chain(missed);
    let notes: String = notes.collect();
    if notes.is_empty() { notes } else { format!("<ul class=\"alarm\">{notes}</ul>\n") }
}

/// Each panel is a separate drawing: on a narrow screen they are stacked.
fn pictures(saved: &Saved) -> String {
    let picture = |title: &str, figure: Option<Figure>| {
        let Some(Figure { about, panels, note, .. }) = figure else { return String::new() };
        let draw = |panel: Panel| {
            let (about, panels) = (format!("{about}: {}", panel.title), vec![panel]);
            Figure { about, panels, ..Figure::default() }.inline()
        };
        let drawings: String = panels.into_iter().map(draw).collect();
        let note = escape(&note);
        format!(
            "<figure><h3>{title}</h3><div class=\"drawings\">{drawings}</div>\
             <figcaption class=\"note\">{note}</figcaption></figure>\n"
        )
    };
    let all = picture("Lyapunov function", lyapunov(saved))
        + &picture("Network", networks(saved))
        + &picture("Labels", labels(&[(saved.title(), saved)]));
    format!("<div class=\"pictures\">\n{all}</div>\n")
}

fn details(title: &str, content: &str) -> String {
    match content.is_empty() {
        true => String::new(),
        false => format!("<details><summary>{title}</summary>{content}</details>\n"),
    }
}

/// The manifest, except for entries shown elsewhere.
fn environment(manifest: &Manifest) -> String {
    let Ok(Value::Object(manifest)) = serde_json::to_value(manifest) else {
        return String::new();
    };
    let elsewhere = ["worlds", "classes"];
    let row = |(key, value): (&String, &Value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>", escape(key), escape(&text))
    };
    let rows: String =
        manifest.iter().filter(|(key, _)| !elsewhere.contains(&key.as_str())).map(row).collect();
    format!("<div class=\"wide\"><table class=\"text\"><tbody>{rows}</tbody></table></div>")
}
