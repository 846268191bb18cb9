//! `lopa report`: an HTML file and figures from run folders.

mod live;
mod site;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use lopa::error::Result;
use lopa_base::store;
use lopa_report::html::Report;
use lopa_report::live::Live;
use lopa_report::pictures::{self, ImageFormat, View};
use serde_json::json;

use crate::args::DataArgs;
use crate::program::Program;

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Run folders
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The report: one self-contained HTML file; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Also write the figures into this folder
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Format of the figures; repeatable [default: all that this build can write]
    #[arg(long, value_name = "FORMAT", value_enum, requires = "figures")]
    figure_format: Vec<FigureFormat>,
    /// Title of the report
    #[arg(long)]
    title: Option<String>,
    /// Cost on the horizontal axis: hessians, iteration, seconds, bytes, ...
    #[arg(long, value_name = "COST")]
    x: Option<String>,
    /// Measure to plot, such as loss or test_accuracy; repeatable
    #[arg(long, value_name = "MEASURE")]
    y: Vec<String>,
    /// File of claims [default: `claims.json` in, beside or above the run folders]
    #[arg(long, value_name = "FILE")]
    claims: Option<PathBuf>,
    /// Instead of writing a file, serve a page on this machine that follows runs under way; Ctrl-C
    /// ends it
    #[arg(long, conflicts_with_all = ["out", "figures"])]
    live: bool,
    /// Port of the page [default: any that is free]
    #[arg(
        long,
        value_name = "PORT",
        requires = "live",
        default_value_t = 0,
        hide_default_value = true
    )]
    port: u16,
    /// Instead of a report of the run, write the page of one site, by its name or number: what it gained, what it
    /// sent, who could learn what
    #[arg(long, value_name = "NODE", conflicts_with_all = ["live", "figures", "x", "y", "title", "claims"])]
    site: Option<String>,
    /// Algorithm of the site's page (its label in the experiment) [default: the first]
    #[arg(short, long, requires = "site")]
    algorithm: Option<String>,
    /// Seed of the site's page [default: the first that did not diverge]
    #[arg(short, long, requires = "site")]
    seed: Option<u64>,
    #[command(flatten)]
    data: DataArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FigureFormat {
    /// SVG
    Svg,
    /// PNG; needs a build with the feature `png`
    Png,
    /// PDF, for LaTeX; needs a build with the feature `png`
    Pdf,
}

pub fn report(args: &ReportArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    if let Some(wanted) = &args.site {
        return site::page(args, wanted, program);
    }
    let read = Report::read(&args.runs, args.claims.as_deref())?;
    let title = args.title.clone().unwrap_or(read.title);
    let view = View { x: args.x.clone(), y: args.y.clone() };
    let report = Report { title, view, ..read };
    let Report { runs, view, .. } = &report;
    // A run under way may not have measured anything yet.
    if !args.live || runs.iter().any(|run| !run.rows.is_empty()) {
        view.check(runs)?;
    }
    let figures = match &args.figures {
        Some(folder) => pictures::write(folder, runs, view, &formats(args))?,
        None => Vec::new(),
    };
    if args.live {
        let live = Live { folders: args.runs.clone(), report, nodes: super::peers::nodes };
        return live::serve(&live, args.port, output);
    }
    store::output::write(&args.out, report.html().as_bytes(), "the report", store::output::OTHER)?;
    let output = &output.beside(&args.out);
    if output.json() {
        let names: Vec<String> = figures.iter().map(|path| path.display().to_string()).collect();
        output.document(&json!({ "report": args.out.display().to_string(), "figures": names }));
    } else {
        let written = figures.iter().chain([&args.out]).map(|path| path.display().to_string());
        output.text(&written.collect::<Vec<_>>().join("\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The requested formats, or all that this build can write.
fn formats(args: &ReportArgs) -> Vec<ImageFormat> {
    let format = |format: &FigureFormat| match format {
        FigureFormat::Svg => ImageFormat::Svg,
        FigureFormat::Png => ImageFormat::Png,
        FigureFormat::Pdf => ImageFormat::Pdf,
    };
    match args.figure_format.is_empty() {
        true => ImageFormat::available().to_vec(),
        false => args.figure_format.iter().map(format).collect(),
    }
}
