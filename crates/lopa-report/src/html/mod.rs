//! The report: one self-contained HTML file, which makes no network requests.

mod about;
mod data;
pub(crate) mod number;
mod section;
pub(crate) mod tables;

use std::path::{Path, PathBuf};

use lopa::error::Result;
use serde_json::Value;

use crate::pictures::{Styles, View};
use crate::saved::{self, Saved};
use crate::svg::escape;

/// The contents of a report.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Its title.
    pub title: String,
    /// The runs, in the order of the sections.
    pub runs: Vec<Saved>,
    /// Verdicts on claims.
    pub claims: Vec<Value>,
    /// The initial axes of the charts.
    pub view: View,
}

const STYLE: &str = include_str!("../../assets/report.css");
const CHART_STYLE: &str = include_str!("../../assets/uPlot.min.css");
const CHART: &str = include_str!("../../assets/uPlot.iife.min.js");
const CHART_LICENCE: &str = include_str!("../../assets/uPlot-LICENSE");
const SCRIPT: &str = include_str!("../../assets/report.js");

const LIVE_SCRIPT: &str = include_str!("../../assets/live.js");

// Even if markup from data got through, the browser would make no request.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data:; base-uri 'none'; form-action 'none'";

impl Report {
    /// The report of run folders, with the verdicts in a file of claims, or in the one found in, beside or above them.
    pub fn read(folders: &[PathBuf], claims: Option<&Path>) -> Result<Report> {
        let runs = folders.iter().map(|run| Saved::read(run)).collect::<Result<Vec<_>>>()?;
        let claims = match claims {
            Some(path) => Some(saved::claims(path)?),
            None => {
                folders.iter().find_map(|run| saved::find_claims(run).transpose()).transpose()?
            }
        };
        let title = match &runs[..] {
            [run] => format!("{}: results", run.title()),
            _ => format!("{} runs", runs.len()),
        };
        Ok(Report { title, runs, claims: claims.unwrap_or_default(), view: View::default() })
    }

    /// The page.
    pub fn html(&self) -> String {
        self.page("", "", "")
    }

    /// The page with a note on top, and a script that polls this server only.
    pub(crate) fn following(&self, note: &str) -> String {
        let script = format!("<script>{LIVE_SCRIPT}</script>\n");
        self.page("; connect-src 'self'", note, &script)
    }

    fn page(&self, policy: &str, note: &str, script: &str) -> String {
        let styles = Styles::of(&self.runs);
        let sections: String = (0..self.runs.len())
            .map(|n| section::section(n, &self.runs[n], &styles, &self.view))
            .collect();
        let (title, claims) = (escape(&self.title), tables::claims(&self.claims));
        let overview = self.overview();
        let (nav, data) = (self.navigation(), data::script(&self.runs, &styles, &self.view));
        let body = format!(
            "<a class=\"skip\" href=\"#main\">Skip to the results</a>\n\
             <header><h1>{title}</h1>\n<button type=\"button\" id=\"theme\" hidden>Dark</button>\n\
             </header>\n{nav}<main id=\"main\">\n{note}{claims}{overview}{sections}</main>\n\
             <footer>Created by lopa {version} from {count}. \
             Charts by uPlot (MIT licence).</footer>\n{data}\
             <script>/*\n{CHART_LICENCE}\n*/\n{CHART}</script>\n<script>{SCRIPT}</script>\n{script}",
            version = env!("CARGO_PKG_VERSION"),
            count = number::count(self.runs.len(), "run folder"),
        );
        document(&title, policy, CHART_STYLE, &body)
    }

    /// All runs side by side, if there are several.
    fn overview(&self) -> String {
        if self.runs.len() < 2 {
            return String::new();
        }
        let table = tables::overview(&self.runs, &data::titles(&self.runs));
        format!(
            "<section id=\"overview\"><h2>All runs</h2>\n\
             <div class=\"charts\" data-run=\"all\"></div>\n{table}</section>\n"
        )
    }

    fn navigation(&self) -> String {
        if self.runs.len() + usize::from(!self.claims.is_empty()) < 2 {
            return String::new();
        }
        let claims = match self.claims.is_empty() {
            true => "",
            false => "<li><a href=\"#claims\">Claims</a></li>",
        };
        let all = match self.runs.len() {
            0 | 1 => "",
            _ => "<li><a href=\"#overview\">All runs</a></li>",
        };
        let entry = |(n, title): (usize, &String)| {
            format!("<li><a href=\"#run-{n}\">{}</a></li>", escape(title))
        };
        let titles = data::titles(&self.runs);
        let entries: String = titles.iter().enumerate().map(entry).collect();
        format!("<nav aria-label=\"Runs\"><ul>{claims}{all}{entries}</ul></nav>\n")
    }
}

/// A page that makes no requests but those that `policy` adds, with further styles before the report's own.
pub(crate) fn document(title: &str, policy: &str, styles: &str, body: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"lopa {version}\">\n\
         <title>{title}</title>\n<style>{styles}\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}
