//! The figures of run folders: training curves, label distributions, networks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lopa::error::{Error, Result, nearest};
use lopa::folder::{Run, WorldNote};
use lopa_base::store::output;
use lopa_study::statistics::Summary;

use crate::figure::{Axes, Content, Curve, Figure, Heat, Network, Panel, Point, Style, style};
use crate::lyapunov::lyapunov;
use crate::pdf;
use crate::png;
use crate::quantity::{self, is_cost};
use crate::saved::Saved;
use crate::statistics::{Trace, traces};

/// Which quantities to draw.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The cost on the horizontal axis; by default Hessian-vector products, or iterations if no
    /// algorithm uses any.
    pub x: Option<String>,
    /// The measures to draw; by default those of the paper.
    pub y: Vec<String>,
}

/// The style of each algorithm, the same in all figures of a report.
#[derive(Debug, Clone)]
pub struct Styles(Vec<String>);

impl Styles {
    /// The styles of all algorithms in these runs.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Saved>) -> Styles {
        Styles::named(runs.into_iter().flat_map(Saved::algorithms))
    }

    /// The styles of curves with these labels.
    pub fn named<'a>(labels: impl IntoIterator<Item = &'a str>) -> Styles {
        let mut known: Vec<String> = Vec::new();
        for label in labels {
            if !known.iter().any(|known| known == label) {
                known.push(label.to_string());
            }
        }
        Styles(known)
    }

    /// The style of an algorithm.
    pub fn style(&self, label: &str) -> Style {
        style(self.0.iter().position(|known| known == label).unwrap_or(self.0.len()))
    }
}

/// The names of all quantities in these traces, costs first.
pub fn quantities(traces: &[Trace]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in traces.iter().flat_map(Trace::quantities) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_string());
        }
    }
    quantity::sort(&mut names);
    names
}

impl View {
    /// Fails if a quantity was measured by none of the runs.
    pub fn check(&self, runs: &[Saved]) -> Result<()> {
        let known: Vec<String> = runs.iter().flat_map(|run| quantities(&traces(run))).collect();
        let flags = self.x.iter().map(|x| ("--x", x)).chain(self.y.iter().map(|y| ("--y", y)));
        for (flag, name) in flags {
            if !known.contains(name) {
                let message = format!("no run measured `{name}`");
                let near = nearest(name, known.iter().map(String::as_str));
                let mut all = known.clone();
                quantity::sort(&mut all);
                all.dedup();
                let hint = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("available: {}", all.join(", ")),
                };
                return Err(Error::config("config/unknown-name", message).at(flag).hint(hint));
            }
        }
        Ok(())
    }

    /// The horizontal axis for these traces.
    pub fn x(&self, traces: &[Trace]) -> String {
        let used = |name: &str| {
            let mut all = traces.iter().flat_map(Trace::quantities);
            all.any(|(of, value)| of == name && value > 0.0)
        };
        match &self.x {
            Some(name) => name.clone(),
            None if used("hessians") => "hessians".into(),
            None => "iteration".into(),
        }
    }

    /// The vertical axes for these traces: those chosen, or the `usual` ones and then others, at
    /// most `limit`.
    pub fn y(&self, traces: &[Trace], usual: &[&str], limit: usize) -> Vec<String> {
        let measured = quantities(traces);
        if !self.y.is_empty() {
            return self.y.iter().filter(|name| measured.contains(name)).cloned().collect();
        }
        let usual = usual.iter().map(|name| name.to_string());
        let mut names: Vec<String> = usual.filter(|name| measured.contains(name)).collect();
        for name in measured.iter().filter(|name| !is_cost(name)) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names.truncate(limit);
        names
    }
}

/// The training curves of a run: one panel per measure.
pub fn curves(saved: &Saved, styles: &Styles, view: &View) -> Figure {
    let traces = traces(saved);
    let x = view.x(&traces);
    let paper = ["loss", "train_accuracy", "test_accuracy", "grad_phi_sq", "consensus"];
    let panels: Vec<Panel> =
        view.y(&traces, &paper, 3).iter().map(|y| panel(&traces, styles, &x, y)).collect();
    let seeds = traces.iter().map(|trace| trace.seeds.len()).max().unwrap_or(0);
    let note = note(&panels, seeds);
    let about = format!("Training curves of {}", saved.title());
    Figure { about, panels, columns: 3, note }
}

/// How to read the panels.
pub fn note(panels: &[Panel], seeds: usize) -> String {
    let mut note = match seeds {
        0 | 1 => String::new(),
        n => format!("Lines: mean over {n} seeds. Bands: minimum to maximum."),
    };
    let any = |is: fn(&Curve) -> bool| {
        panels.iter().any(|panel| match &panel.content {
            Content::Curves(axes) => axes.curves.iter().any(is),
            _ => false,
        })
    };
    if any(Curve::is_free) {
        note += " Horizontal lines: final values of algorithms without this cost.";
    }
    if any(|curve| !curve.lost.is_empty()) {
        note += " Thin dotted lines: seeds that diverged; × is where they leave the picture.";
    }
    note
}

/// The curves of some traces: a measure over a cost.
pub fn panel(traces: &[Trace], styles: &Styles, x: &str, y: &str) -> Panel {
    let log_y = quantity::known(y).is_some_and(|quantity| quantity.log);
    let curve = |trace: &Trace| Curve {
        label: trace.count.named(&trace.algorithm),
        style: styles.style(&trace.algorithm),
        points: points(trace, x, y),
        lost: trace.lost.iter().map(|run| path(run, x, y)).collect(),
    };
    let (x_title, y_title) = (quantity::title(x), quantity::title(y));
    let shown = |curve: &Curve| !(curve.points.is_empty() && curve.lost.is_empty());
    let curves = traces.iter().map(curve).filter(shown).collect();
    let axes = Axes { x: x_title, y: y_title.clone(), log_x: false, log_y, curves };
    Panel { title: y_title, content: Content::Curves(axes) }
}

fn points(trace: &Trace, x: &str, y: &str) -> Vec<Point> {
    let point = |point: &BTreeMap<String, Summary>| {
        let (x, y) = (point.get(x)?, point.get(y)?);
        Some(Point { x: x.mean, y: y.mean, low: y.low, high: y.high })
    };
    trace.points.iter().filter_map(point).collect()
}

/// The course of one run.
fn path(run: &Run, x: &str, y: &str) -> Vec<[f64; 2]> {
    run.rows.iter().filter_map(|row| Some([row.value(x)?, row.value(y)?])).collect()
}

/// How many samples of each class each node has, for the first seed of each run: one panel per run,
/// under its title.
pub fn labels(runs: &[(&str, &Saved)]) -> Option<Figure> {
    let panel = |(title, saved): &(&str, &Saved)| {
        let heat = heat(saved)?;
        Some(Panel { title: title.to_string(), content: Content::Heat(heat) })
    };
    let panels: Vec<Panel> = runs.iter().filter_map(panel).collect();
    let about = "Samples of each class at each node".to_string();
    let note = "Training samples of each class at each node.".to_string();
    (!panels.is_empty()).then_some(Figure { about, panels, columns: 3, note })
}

/// Nodes whose labels are drawn: more would be thinner than a pixel each.
const DRAWN: usize = 1000;

fn heat(saved: &Saved) -> Option<Heat> {
    let row = |row: &Vec<usize>| row.iter().map(|&count| count as u64).collect();
    let counts: Vec<Vec<u64>> = saved.worlds().first()?.class_counts.iter().map(row).collect();
    let columns = saved.manifest.classes.clone()?;
    let whole = !counts.is_empty() && !columns.is_empty() && counts.len() <= DRAWN;
    let names = &saved.manifest.nodes;
    let rows = match names.len() == counts.len() {
        true => names.clone(),
        false => (0..counts.len()).map(|node| node.to_string()).collect(),
    };
    (whole && counts.iter().all(|row| row.len() == columns.len())).then_some(Heat {
        rows,
        columns,
        counts,
    })
}

/// The network of each seed of a run; only one if all are the same.
pub fn networks(saved: &Saved) -> Option<Figure> {
    let worlds = saved.worlds();
    let fixed = worlds.windows(2).all(|pair| pair[0].graph_digest == pair[1].graph_digest);
    let shown = if fixed { worlds.get(..1)? } else { worlds };
    let panel = |world: &WorldNote| {
        let panel = network_panel(world, &saved.manifest.nodes)?;
        Some(match fixed {
            true => panel,
            false => Panel { title: format!("seed {}, {}", world.seed, panel.title), ..panel },
        })
    };
    let panels: Vec<Panel> = shown.iter().filter_map(panel).collect();
    let about = format!("The network of {}", saved.title());
    let note = "Line widths show the mixing weights.".to_string();
    (!panels.is_empty()).then_some(Figure { about, panels, columns: 3, note })
}

/// The network of a world, with ρ as its title and the names of nodes that have any.
pub fn network_panel(world: &WorldNote, names: &[String]) -> Option<Panel> {
    let title = match &world.rounds {
        None => format!("ρ = {:.3}", world.rho),
        Some(rounds) => {
            format!("all links; ρ = {:.3} a round, over {} rounds", world.rho, rounds.window)
        }
    };
    Some(Panel { title, content: Content::Network(network(world, names)?) })
}

fn network(WorldNote { weights, .. }: &WorldNote, names: &[String]) -> Option<Network> {
    let inside = |&(j, _): &(usize, f64)| j < weights.len();
    let row = |row: &Vec<(usize, f64)>| row.iter().copied().filter(inside).collect();
    (!weights.is_empty())
        .then(|| Network { weights: weights.iter().map(row).collect(), names: names.to_vec() })
}

/// A file format of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// SVG.
    Svg,
    /// PNG, which only builds with the feature `png` can write.
    Png,
    /// PDF, likewise.
    Pdf,
}

impl ImageFormat {
    /// The formats that this build can write.
    pub fn available() -> &'static [ImageFormat] {
        match png::check() {
            Ok(()) => &[ImageFormat::Svg, ImageFormat::Png, ImageFormat::Pdf],
            Err(_) => &[ImageFormat::Svg],
        }
    }

    /// Fails if this build cannot write the format.
    fn check(self) -> Result<()> {
        match self {
            ImageFormat::Svg => Ok(()),
            ImageFormat::Png | ImageFormat::Pdf => png::check(),
        }
    }

    fn extension(self) -> &'static str {
        match self {
            ImageFormat::Svg => "svg",
            ImageFormat::Png => "png",
            ImageFormat::Pdf => "pdf",
        }
    }

    fn encode(self, svg: &str) -> Result<Vec<u8>> {
        match self {
            ImageFormat::Svg => Ok(svg.as_bytes().to_vec()),
            ImageFormat::Png => png::png(svg, 3.0),
            ImageFormat::Pdf => pdf::pdf(svg),
        }
    }
}

/// Writes all figures of some runs; returns the paths of the files.
pub fn write(
    folder: &Path,
    runs: &[Saved],
    view: &View,
    formats: &[ImageFormat],
) -> Result<Vec<PathBuf>> {
    let styles = Styles::of(runs);
    let mut figures: Vec<(String, Figure)> = Vec::new();
    for run in runs {
        let prefix = if runs.len() == 1 { String::new() } else { format!("{}-", run.name) };
        figures.push((format!("{prefix}curves"), curves(run, &styles, view)));
        figures.extend(lyapunov(run).map(|figure| (format!("{prefix}lyapunov"), figure)));
        figures.extend(networks(run).map(|figure| (format!("{prefix}network"), figure)));
    }
    let all: Vec<(&str, &Saved)> = runs.iter().map(|run| (run.title(), run)).collect();
    figures.extend(labels(&all).map(|figure| ("labels".to_string(), figure)));
    save(folder, &figures, formats)
}

/// Saves figures under their names; returns the paths of the files.
pub fn save(
    folder: &Path,
    figures: &[(String, Figure)],
    formats: &[ImageFormat],
) -> Result<Vec<PathBuf>> {
    formats.iter().try_for_each(|format| format.check())?;
    std::fs::create_dir_all(folder).map_err(|error| cannot(folder, error))?;
    let mut files = Vec::new();
    for (name, figure) in figures {
        let svg = figure.svg();
        for format in formats {
            let path = folder.join(format!("{name}.{}", format.extension()));
            output::write(
                &path,
                &format.encode(&svg)?,
                "a figure",
                "choose another folder with --figures",
            )?;
            files.push(path);
        }
    }
    Ok(files)
}

fn cannot(path: &Path, error: std::io::Error) -> Error {
    Error::storage("storage/write", format!("cannot write the figures: {error}"))
        .at(path.display().to_string())
        .hint("choose a writable folder")
}
