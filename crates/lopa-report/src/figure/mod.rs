//! Figures: panels side by side with one legend, as in a paper.

mod curves;
mod heat;
mod network;

pub use curves::{Axes, Curve, Point};
pub use heat::Heat;
pub use network::Network;

use crate::svg::{Anchor, Drawing, width};

/// A figure: panels in rows, a legend above, a remark below.
#[derive(Debug, Clone, Default)]
pub struct Figure {
    /// What it shows, for those who cannot see it.
    pub about: String,
    /// The panels.
    pub panels: Vec<Panel>,
    /// How many panels stand side by side; 0 for all.
    pub columns: usize,
    /// A remark in small type.
    pub note: String,
}

/// One picture of a figure.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Its heading.
    pub title: String,
    /// What it shows.
    pub content: Content,
}

/// What a panel shows.
#[derive(Debug, Clone)]
pub enum Content {
    /// Curves with bands.
    Curves(Axes),
    /// Counts as a table of shades.
    Heat(Heat),
    /// A graph with its weights.
    Network(Network),
}

/// A rectangle of the drawing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Frame {
    fn right(&self) -> f64 {
        self.left + self.width
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    fn middle(&self) -> [f64; 2] {
        [self.left + self.width / 2.0, self.top + self.height / 2.0]
    }
}

/// How a curve looks: a colour that most colour-blind people tell from the others (Paul Tol's
/// vibrant scheme), and a dash pattern for everybody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// The colour.
    pub colour: &'static str,
    /// The dashes, as SVG has them; empty for a full line.
    pub dash: &'static str,
}

const COLOURS: [&str; 7] =
    ["#0077BB", "#EE7733", "#009988", "#EE3377", "#33BBEE", "#CC3311", "#8a8f98"];
const DASHES: [&str; 7] = ["", "7 3", "2 2.5", "8 3 2 3", "", "5 2", "10 4"];

/// The style of the n-th algorithm.
pub fn style(n: usize) -> Style {
    let round = n / COLOURS.len();
    Style { colour: COLOURS[n % COLOURS.len()], dash: DASHES[(n + 2 * round) % DASHES.len()] }
}

const PANEL: [f64; 2] = [292.0, 212.0];
const MARGIN: [f64; 4] = [34.0, 16.0, 48.0, 66.0]; // above, right, below, left
const LEGEND_ROW: f64 = 22.0;

impl Figure {
    /// The figure as an SVG file.
    pub fn svg(&self) -> String {
        let (drawing, width, height) = self.draw();
        drawing.standalone(width, height, &self.about)
    }

    /// The figure as SVG within a page, in the page's text colour.
    pub fn inline(&self) -> String {
        let (drawing, width, height) = self.draw();
        drawing.inline(width, height, &self.about)
    }

    fn draw(&self) -> (Drawing, f64, f64) {
        let columns = match self.columns {
            0 => self.panels.len(),
            columns => columns.min(self.panels.len()),
        }
        .max(1);
        let [above, right, below, left] = MARGIN;
        let cell = [left + PANEL[0] + right, above + PANEL[1] + below];
        let total = columns as f64 * cell[0];
        let legend = self.legend(total - 24.0);
        let mut drawing = Drawing::default();
        let top = 8.0 + legend.len() as f64 * LEGEND_ROW;
        for (row, entries) in legend.iter().enumerate() {
            draw_legend(&mut drawing, entries, total, 20.0 + row as f64 * LEGEND_ROW);
        }
        for (k, panel) in self.panels.iter().enumerate() {
            let (row, column) = (k / columns, k % columns);
            let frame = Frame {
                left: column as f64 * cell[0] + left,
                top: top + row as f64 * cell[1] + above,
                width: PANEL[0],
                height: PANEL[1],
            };
            panel.draw(&mut drawing, frame);
        }
        let rows = self.panels.len().div_ceil(columns);
        let bottom = top + rows as f64 * cell[1];
        let lines = wrap(&self.note, total - 32.0);
        for (k, line) in lines.iter().enumerate() {
            let at = [total / 2.0, bottom + 12.0 + 15.0 * k as f64];
            drawing.text(at, Anchor::Middle, line, "font-size=\"11\" opacity=\"0.65\"");
        }
        (drawing, total, bottom + 15.0 * lines.len() as f64 + 8.0)
    }

    /// The curves of all panels, once each, in rows that fit.
    fn legend(&self, room: f64) -> Vec<Vec<(&str, Style)>> {
        let mut entries: Vec<(&str, Style)> = Vec::new();
        for panel in &self.panels {
            let Content::Curves(axes) = &panel.content else { continue };
            for curve in &axes.curves {
                let entry = (curve.label.as_str(), curve.style);
                if !entries.contains(&entry) {
                    entries.push(entry);
                }
            }
        }
        let mut rows: Vec<Vec<_>> = Vec::new();
        let mut used = f64::INFINITY;
        for entry in entries {
            let size = entry_width(entry.0);
            if used + size > room {
                rows.push(Vec::new());
                used = 0.0;
            }
            used += size;
            rows.last_mut().expect("a row was begun").push(entry);
        }
        rows
    }
}

impl Panel {
    fn draw(&self, drawing: &mut Drawing, frame: Frame) {
        let at = [frame.middle()[0], frame.top - 12.0];
        drawing.text(at, Anchor::Middle, &self.title, "font-size=\"13\" font-weight=\"600\"");
        match &self.content {
            Content::Curves(axes) => axes.draw(drawing, frame),
            Content::Heat(heat) => heat.draw(drawing, frame),
            Content::Network(network) => network.draw(drawing, frame),
        }
    }
}

fn entry_width(label: &str) -> f64 {
    30.0 + width(label) + 20.0
}

fn draw_legend(drawing: &mut Drawing, entries: &[(&str, Style)], total: f64, y: f64) {
    let used: f64 = entries.iter().map(|(label, _)| entry_width(label)).sum();
    let mut x = (total - used + 20.0) / 2.0;
    for (label, style) in entries {
        drawing.line([x, y], [x + 24.0, y], &curves::stroke(*style));
        drawing.text([x + 30.0, y + 4.0], Anchor::Start, label, "");
        x += entry_width(label);
    }
}

/// Breaks a text between words into lines that fit.
fn wrap(text: &str, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) * 0.9 + width(word) < room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fourteen_styles_differ() {
        let styles: Vec<Style> = (0..14).map(style).collect();
        for (k, style) in styles.iter().enumerate() {
            assert!(!styles[..k].contains(style), "style {k}");
        }
    }

    #[test]
    fn long_remarks_are_broken() {
        let lines = wrap("one two three four five six", 80.0);
        assert!(lines.len() > 1);
        assert_eq!(lines.join(" "), "one two three four five six");
        assert!(wrap("", 80.0).is_empty());
    }
}
