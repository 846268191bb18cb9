//! A small plot of measured values against the number of nodes.

use std::fmt::Write;

use lopa::math::portable::log10;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 48.0;
const TOP: f64 = 36.0;

/// An SVG of `points` (nodes, value): nodes on a logarithmic axis, values from 0.
pub fn svg(title: &str, points: &[(usize, f64)]) -> String {
    let logs = |nodes: usize| log10(nodes as f64);
    let (first, last) = (logs(points[0].0), logs(points[points.len() - 1].0));
    let top = 1.5 * points.iter().map(|point| point.1).fold(0.0, f64::max);
    let x = |nodes: usize| LEFT + (logs(nodes) - first) / (last - first) * (WIDTH - LEFT - 20.0);
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - BOTTOM - TOP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\">{title}</text>\n"
    );
    let mut text = |x: f64, y: f64, anchor: &str, text: String| {
        let _ =
            writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
    };
    for (nodes, value) in points {
        text(x(*nodes), HEIGHT - BOTTOM + 18.0, "middle", nodes.to_string());
        text(x(*nodes), y(*value) - 8.0, "middle", format!("{value:.1}"));
    }
    text((LEFT + WIDTH) / 2.0, HEIGHT - 10.0, "middle", "nodes".into());
    text(LEFT - 8.0, y(0.0) + 4.0, "end", "0".into());
    let line: Vec<String> =
        points.iter().map(|&(nodes, v)| format!("{:.1},{:.1}", x(nodes), y(v))).collect();
    let (line, right, zero) = (line.join(" "), WIDTH - 20.0, y(0.0));
    let _ = writeln!(
        out,
        "<path d=\"M{LEFT},{TOP} V{zero} H{right}\" fill=\"none\" stroke=\"black\"/>\n\
         <polyline points=\"{line}\" fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"2\"/>\n</svg>"
    );
    out
}
