//! The section of a run.

use lopa::folder::{Manifest, ResultEntry, Status};
use lopa_study::seeds::{Ended, Seeds};
use serde_json::Value;

use super::number::count;
use super::tables;
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
    let (facts, notes) = (facts(saved), divergences(saved));
    let (quality, costs) = (tables::quality(&traces, styles), tables::costs(&traces, styles));
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
         <p class=\"facts\">{facts}</p>\n{notes}\
         <div class=\"charts\" data-run=\"{n}\"><div class=\"still\">{curves}</div></div>\n\
         <h3>Final results</h3>\n{quality}{costs}{pictures}\
         <div class=\"more\">{more}</div>\n\
         <p class=\"downloads\" data-run=\"{n}\" hidden></p>\n</section>\n"
    )
}

/// The run in one line.
fn facts(saved: &Saved) -> String {
    let Manifest { seeds, status, started, .. } = &saved.manifest;
    let mut facts = vec![count(saved.algorithms().len(), "algorithm"), count(seeds.len(), "seed")];
    if let Some(world) = saved.worlds().first().filter(|world| !world.weights.is_empty()) {
        facts.push(count(world.weights.len(), "node"));
    }
    if *status != Status::Done {
        facts.push(format!("status: {}", status.name()));
    }
    facts.push(started.replace('T', " ").replace('Z', " UTC"));
    escape(&facts.join(" · "))
}

/// The algorithms that diverged, and why: the diagnosis of the first seed stands for all.
fn divergences(saved: &Saved) -> String {
    let note = |algorithm: &str| {
        let seeds = Seeds::of(algorithm, &saved.results);
        let lost: Vec<&ResultEntry> =
            seeds.all().iter().copied().filter(|entry| entry.diverged()).collect();
        let first = lost.first()?;
        let why = first.diagnosis.as_deref().unwrap_or("its values are no longer finite");
        let when = |entry: &&ResultEntry| {
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
    let notes: String = saved.algorithms().into_iter().filter_map(note).collect();
    if notes.is_empty() { notes } else { format!("<ul class=\"alarm\">{notes}</ul>\n") }
}

fn pictures(saved: &Saved) -> String {
    let picture = |title: &str, figure: Option<crate::figure::Figure>| {
        figure.map_or(String::new(), |figure| {
            let svg = figure.inline();
            format!("<figure><figcaption><h3>{title}</h3></figcaption><div class=\"wide\">{svg}</div></figure>\n")
        })
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
