//! The paper's figures, in its layout, drawn from reproduced runs.

use crate::reproduce::claims::{Judgement, Test};

use lopa::math::portable::exp;
use lopa_report::figure::{Content, Figure, Forest, ForestRow, Panel, style};
use lopa_report::pictures::{Styles, labels, network_panel, note, panel};
use lopa_report::quantity;
use lopa_report::saved::Saved;
use lopa_report::statistics::{Trace, traces};

/// A run and the part of the paper that it reproduces.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The figures it belongs to.
    pub figures: &'static [&'static str],
    /// The data set.
    pub dataset: &'static str,
    /// The setting that distinguishes it from other runs of the same figure: heterogeneity or
    /// network.
    pub variant: Option<&'static str>,
    /// `given` or `tuned`.
    pub steps: &'static str,
    /// The run.
    pub saved: Saved,
}

/// The figures for which there are runs, with their file names: `fig2` with given step sizes,
/// `fig2-tuned` with tuned ones. Figures over seconds are drawn only if `times` were measured.
pub fn figures(runs: &[Shown], times: bool) -> Vec<(String, Figure)> {
    let mut figures = Vec::new();
    for steps in ["given", "tuned"] {
        let suffix = if steps == "given" { "" } else { "-tuned" };
        let of = |figure: &str, variants: &[&str]| -> Vec<&Shown> {
            let is = |run: &&Shown| {
                let listed = |variant: &str| variants.is_empty() || variants.contains(&variant);
                run.figures.contains(&figure)
                    && run.steps == steps
                    && run.variant.is_none_or(listed)
            };
            runs.iter().filter(is).collect()
        };
        let mut add = |name: &str, runs: &[&Shown], mut panels: Vec<Panel>, columns: usize| {
            if !panels.is_empty() {
                let about = format!("{name} with {steps} step sizes");
                let mut note = note(&panels, seeds(runs));
                if without_chance(&mut panels) {
                    note += " Accuracies begin with the first measurement after the start.";
                }
                figures.push((format!("{name}{suffix}"), Figure { about, panels, columns, note }));
            }
        };
        for name in ["fig1", "fig2"] {
            let runs = of(name, &[]);
            add(name, &runs, by_measure(&runs, &["loss", "train_accuracy", "test_accuracy"]), 3);
        }
        let runs = of("fig3", &[]);
        add("fig3", &runs, by_variant(&runs, &["test_accuracy", "loss"]), 2);
        // Accuracy saturates here; Φ and its gradient distinguish the algorithms.
        for (name, x) in [("fig5", "seconds"), ("fig6", "hessians")] {
            if x == "seconds" && !times {
                continue;
            }
            let runs = of(name, &[]);
            let panels = by_dataset(&runs, x, &["loss", "phi", "grad_phi_sq"]);
            add(name, &runs, panels, runs.len());
        }
        // The same holds for the networks.
        let names = ["ring", "star", "random"];
        let metropolis = ["metropolis-92", "metropolis-79", "metropolis-42"];
        for (name, variants) in [("fig7", names), ("fig7-metropolis", metropolis)] {
            let runs = of("fig7", &variants);
            let networks = runs.iter().filter_map(|run| network_of(run));
            let panels = networks.chain(by_network(&runs, &["phi", "grad_phi_sq", "consensus"]));
            add(name, &runs, panels.collect(), 3);
        }
        let runs = of("fig8", &[]);
        add("fig8", &runs, by_dataset(&runs, "iteration", &["test_accuracy", "loss"]), runs.len());
    }
    let is = |run: &&Shown| run.figures.contains(&"fig3") && run.steps == "given";
    let runs: Vec<(&str, &Saved)> = runs
        .iter()
        .filter(is)
        .map(|run| (run.variant.unwrap_or(run.dataset), &run.saved))
        .collect();
    figures.extend(labels(&runs).map(|figure| ("fig4".to_string(), figure)));
    figures.sort_by(|a, b| a.0.cmp(&b.0));
    figures
}

/// Leaves out accuracies at the start, which are those of chance and would take most of the axis.
fn without_chance(panels: &mut [Panel]) -> bool {
    let mut any = false;
    for panel in panels {
        let Content::Curves(axes) = &mut panel.content else { continue };
        if axes.y.to_lowercase().contains("accuracy") {
            for curve in axes.curves.iter_mut().filter(|curve| curve.points.len() > 2) {
                curve.points.remove(0);
                any = true;
            }
        }
    }
    any
}

/// One picture of LoPA's savings: in every setting, the Hessian-vector products that others need
/// for the loss that both reach, divided by those of LoPA-GT; `None` if none of this was judged.
pub fn savings(judged: &[Judgement]) -> Option<Figure> {
    let names = [("spdb", "SPDB"), ("ma-dsbo", "MA-DSBO")];
    let row = |one: &Judgement| {
        let Test::Cheaper { cost: "hessians", measure: "loss", better: "lopa-gt", worse } =
            one.of.test
        else {
            return None;
        };
        let [(figure, dataset, _)] = one.of.panels[..] else { return None };
        let at = names.iter().position(|(name, _)| *name == worse)?;
        let number = figure.trim_start_matches("fig");
        Some(ForestRow {
            name: format!("Figure {number}, {dataset}"),
            label: names[at].1.to_string(),
            style: style(2 + at),
            factor: match &one.interval {
                Some(by) => Ok([by.mean, by.low, by.high].map(exp)),
                None => Err(one.obstacles.first().cloned().unwrap_or("cannot be told".into())),
            },
        })
    };
    let panel = |(steps, title): (&str, &str)| {
        let rows: Vec<_> = judged.iter().filter(|one| one.steps == steps).filter_map(row).collect();
        let x = "Hessian-vector products, over LoPA-GT's".to_string();
        let content = Content::Forest(Forest { x, margin: 1.1, rows });
        Panel { title: title.to_string(), content }
    };
    let panels: Vec<Panel> = [("given", "Given step sizes"), ("tuned", "Tuned step sizes")]
        .map(panel)
        .into_iter()
        .filter(
            |panel| matches!(&panel.content, Content::Forest(forest) if !forest.rows.is_empty()),
        )
        .collect();
    (!panels.is_empty()).then(|| Figure {
        about: "How many times LoPA-GT's Hessian-vector products others need for the same loss"
            .into(),
        panels,
        columns: 2,
        note:
            "Right of 1: LoPA-GT needs fewer. Mean and 95 % interval over seeds; in the grey band \
               the difference does not matter."
                .into(),
    })
}

fn seeds(runs: &[&Shown]) -> usize {
    let traces = runs.iter().flat_map(|run| traces(&run.saved));
    traces.map(|trace| trace.seeds.len()).max().unwrap_or(0)
}

/// One panel per run and measure.
fn by_measure(runs: &[&Shown], measures: &[&str]) -> Vec<Panel> {
    let one = |run: &&Shown| {
        let traces = traces(&run.saved);
        let styles = Styles::of([&run.saved]);
        measures.iter().map(|y| panel(&traces, &styles, "hessians", y)).collect::<Vec<_>>()
    };
    runs.iter().flat_map(one).collect()
}

/// One row per measure, one column per data set.
fn by_dataset(runs: &[&Shown], x: &str, measures: &[&str]) -> Vec<Panel> {
    let styles = Styles::of(runs.iter().map(|run| &run.saved));
    let one = |y: &&str| {
        let panel = |run: &&Shown| Panel {
            title: format!("{}: {}", run.dataset, quantity::title(y)),
            ..panel(&traces(&run.saved), &styles, x, y)
        };
        runs.iter().map(panel).collect::<Vec<_>>()
    };
    measures.iter().flat_map(one).collect()
}

/// One panel per measure, one curve per algorithm and variant.
fn by_variant(runs: &[&Shown], measures: &[&str]) -> Vec<Panel> {
    let named = |run: &&Shown| named(run, |trace, variant| format!("{trace}, {variant}"));
    let all: Vec<Trace> = runs.iter().flat_map(named).collect();
    let styles = Styles::named(all.iter().map(|trace| trace.algorithm.as_str()));
    let shown = if all.is_empty() { &[] } else { measures };
    shown.iter().map(|y| panel(&all, &styles, "hessians", y)).collect()
}

/// One row per algorithm, one column per measure, one curve per network.
fn by_network(runs: &[&Shown], measures: &[&str]) -> Vec<Panel> {
    let algorithms = runs.first().map_or(Vec::new(), |run| run.saved.algorithms());
    let styles = Styles::named(runs.iter().filter_map(|run| run.variant));
    let one = |y: &str, algorithm: &str| {
        let of_run = |run: &&Shown| {
            let own = traces(&run.saved).into_iter().filter(|one| one.algorithm == algorithm);
            let variant = run.variant.unwrap_or_default().to_string();
            own.map(|one| Trace { algorithm: variant.clone(), ..one }).collect::<Vec<_>>()
        };
        let traces: Vec<Trace> = runs.iter().flat_map(of_run).collect();
        let title = format!("{algorithm}: {}", quantity::title(y));
        Panel { title, ..panel(&traces, &styles, "hessians", y) }
    };
    let row = |algorithm: &&str| measures.iter().map(|y| one(y, algorithm)).collect::<Vec<_>>();
    algorithms.iter().flat_map(row).collect()
}

fn named(run: &Shown, name: impl Fn(&str, &str) -> String) -> Vec<Trace> {
    let variant = run.variant.unwrap_or(run.dataset);
    let rename = |trace: Trace| Trace { algorithm: name(&trace.algorithm, variant), ..trace };
    traces(&run.saved).into_iter().map(rename).collect()
}

fn network_of(run: &Shown) -> Option<Panel> {
    let panel = network_panel(run.saved.worlds().first()?, &[])?;
    let title = format!("{}, {}", run.variant.unwrap_or_default(), panel.title);
    Some(Panel { title, ..panel })
}
