//! Figures of measured rates: the points, and a line with the predicted slope.

use crate::theory::rates::{Rate, Sense};
use lopa::math::portable::{exp, ln, powf};
use lopa_study::statistics::Summary;

use lopa_report::figure::{Axes, Content, Curve, Figure, Panel, Point, style};

/// The figure of a claim.
pub fn figure(rate: &Rate) -> Figure {
    let measured = measured(rate);
    let mut curves = vec![Curve {
        label: "measured, mean and range over seeds".into(),
        style: style(0),
        points: measured.clone(),
        lost: Vec::new(),
    }];
    if let (Some(first), Some(last)) = (measured.first(), measured.last()) {
        let line = |slope: f64| -> Vec<Point> {
            let end = first.y * powf(last.x / first.x, slope);
            [(first.x, first.y), (last.x, end)].map(|(x, y)| Point { x, y, low: y, high: y }).into()
        };
        let word = if rate.sense == Sense::AtMost { "bound" } else { "predicted" };
        let label = format!("{word}, exponent {}", rate.prediction());
        let points = line(rate.predicted);
        curves.push(Curve { label, style: style(1), points, lost: Vec::new() });
    }
    let axes = Axes { x: rate.x.into(), y: "measured".into(), log_x: true, log_y: true, curves };
    let fitted = rate.fitted.map_or(String::new(), |f| format!("fitted exponent {:.3}", f.mean));
    Figure {
        about: rate.claim.into(),
        panels: vec![Panel { title: fitted, content: Content::Curves(axes) }],
        columns: 1,
        note: rate.y.into(),
    }
}

/// The points over all seeds: geometric mean and range.
fn measured(rate: &Rate) -> Vec<Point> {
    let longest = rate.points.iter().map(Vec::len).max().unwrap_or(0);
    let at = |k: usize| {
        let of = |pick: fn(&(f64, f64)) -> f64| {
            Summary::of(rate.points.iter().filter_map(|seed| seed.get(k)).map(|p| ln(pick(p))))
        };
        let (x, y) = (of(|p| p.0)?, of(|p| p.1)?);
        Some(Point { x: exp(x.mean), y: exp(y.mean), low: exp(y.low), high: exp(y.high) })
    };
    (0..longest).filter_map(at).collect()
}
