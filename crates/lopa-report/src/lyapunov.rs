//! The terms of the Lyapunov function as stacked curves.

use lopa_study::practical::snapshot::TERMS;

use crate::figure::{Axes, Content, Curve, Figure, Panel, Point, style};
use crate::quantity;
use crate::saved::Saved;
use crate::statistics::{Trace, traces};

/// The horizontal axis.
const COST: &str = "iteration";

/// The terms of the Lyapunov function, stacked: one panel per algorithm that has them.
///
/// Φ is drawn relative to its lowest mean, so that every layer is positive.
pub fn lyapunov(saved: &Saved) -> Option<Figure> {
    let traces = traces(saved);
    let panel = |trace: &Trace| {
        let curves = layers(trace);
        let axes = Axes {
            x: quantity::title(COST),
            y: "V, terms stacked".into(),
            log_x: false,
            log_y: true,
            curves,
        };
        let title = trace.algorithm.clone();
        (!axes.curves.is_empty()).then_some(Panel { title, content: Content::Curves(axes) })
    };
    let panels: Vec<Panel> = traces.iter().filter_map(panel).collect();
    let about = format!("The terms of the Lyapunov function of {}", saved.title());
    let note = "Each band is one weighted term, stacked on those before it; Phi relative to its \
                lowest value. Means over seeds.";
    (!panels.is_empty()).then_some(Figure { about, panels, columns: 3, note: note.into() })
}

fn layers(trace: &Trace) -> Vec<Curve> {
    let of = |k: usize, term: &str| {
        let found = trace.points[k].get(&format!("lyapunov_{term}"));
        found.map(|summary| summary.mean)
    };
    let shown: Vec<usize> =
        (0..trace.points.len()).filter(|&k| of(k, TERMS[0]).is_some()).collect();
    let lowest = shown.iter().filter_map(|&k| of(k, TERMS[0])).fold(f64::INFINITY, f64::min);
    let mut below = vec![0.0; trace.points.len()];
    let mut curves = Vec::new();
    // The objective last: the errors vanish, and it remains.
    for (n, term) in TERMS.iter().enumerate().skip(1).chain([(0, &TERMS[0])]) {
        let mut points = Vec::new();
        for &k in &shown {
            let (Some(at), Some(own)) = (trace.points[k].get(COST), of(k, term)) else { continue };
            let own = if n == 0 { own - lowest } else { own };
            let low = below[k];
            below[k] += own;
            points.push(Point { x: at.mean, y: below[k], low, high: below[k] });
        }
        if points.iter().any(|point| point.y > point.low) {
            let label = format!("d{n} {term}");
            curves.push(Curve { label, style: style(n), points, lost: Vec::new() });
        }
    }
    curves
}
