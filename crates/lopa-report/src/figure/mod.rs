//! Figures: panels with a common legend, as in a paper.

mod curves;
mod forest;
mod heat;
mod network;

pub use curves::{Axes, Curve, Point};
pub use forest::{Forest, ForestRow};
pub use heat::Heat;
pub use network::Network;

use crate::svg::{Anchor, Drawing, fitted, short, width};

/// A figure: panels in rows, a legend above, a note below.
#[derive(Debug, Clone, Default)]
pub struct Figure {
    /// A description for screen readers.
    pub about: String,
    /// The panels.
    pub panels: Vec<Panel>,
    /// Panels per row; 0 for all in one row.
    pub columns: usize,
    /// A note in small type.
    pub note: String,
}

/// One plot of a figure.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// Its content.
    pub content: Content,
}

/// The content of a panel.
#[derive(Debug, Clone)]
pub enum Content {
    /// Curves with bands.
    Curves(Axes),
    /// Factors with their intervals.
    Forest(Forest),
    /// Counts as a heat map.
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

/// The style of a curve: a colour that most colour-blind people can distinguish from the others, on
/// white and on black, and a dash pattern and a marker that need no colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// The colour.
    pub colour: &'static str,
    /// The dash pattern in SVG's notation; empty for a solid line.
    pub dash: &'static str,
    /// The marker as data of an SVG path round the origin, to be filled.
    pub marker: &'static str,
}

const COLOURS: [&str; 8] =
    ["#3366DD", "#EE7733", "#AA4499", "#00A36C", "#CC3311", "#56B4E9", "#997700", "#8A8F98"];
const DASHES: [&str; 8] = ["", "7 3", "2 2.5", "8 3 2 3", "13 3", "4 2", "8 2 2 2 2 2", "1.5 5"];
const MARKERS: [&str; 8] = [
    "M4,0A4,4,0,1,1,-4,0A4,4,0,1,1,4,0Z", // a disc
    "M-3.5,-3.5H3.5V3.5H-3.5Z",           // a square
    "M0,-4.6L4.4,3.2H-4.4Z",              // a triangle
    "M0,-5L4,0L0,5L-4,0Z",                // a diamond
    "M0,4.6L4.4,-3.2H-4.4Z",              // a triangle on its tip
    "M-1.3,-4.4H1.3V-1.3H4.4V1.3H1.3V4.4H-1.3V1.3H-4.4V-1.3H-1.3Z", // a plus
    "M-4,-2.2L-2.2,-4L0,-1.8L2.2,-4L4,-2.2L1.8,0L4,2.2L2.2,4L0,1.8L-2.2,4L-4,2.2L-1.8,0Z", // a cross
    "M-4,-4H4L-4,4H4Z", // an hourglass
];

/// The style of the n-th algorithm.
pub fn style(n: usize) -> Style {
    let round = n / COLOURS.len();
    let turned = |list: [&'static str; 8]| list[(n + 3 * round) % list.len()];
    Style { colour: COLOURS[n % 8], dash: turned(DASHES), marker: turned(MARKERS) }
}

const PANEL: [f64; 2] = [292.0, 212.0];
/// Above, right and below a panel. Half a tick label or column name may extend to the right.
const MARGIN: [f64; 3] = [34.0, 28.0, 48.0];
/// The left margin is at least this; wide tick labels need more.
const MIN_LEFT: f64 = 66.0;
const LEGEND_ROW: f64 = 22.0;
const FONT: f64 = 12.0;
const TITLE_FONT: f64 = 13.0;
const NOTE_FONT: f64 = 11.0;

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
        let [above, right, below] = MARGIN;
        let left = self.panels.iter().map(Panel::left).fold(MIN_LEFT, f64::max);
        let cell = [left + PANEL[0] + right, above + PANEL[1] + below];
        let total = columns as f64 * cell[0];
        let legend_width = total - 24.0;
        let legend = self.legend(legend_width);
        let mut drawing = Drawing::default();
        let top = 8.0 + legend.len() as f64 * LEGEND_ROW;
        for (row, entries) in legend.iter().enumerate() {
            let at = [total / 2.0, 20.0 + row as f64 * LEGEND_ROW];
            draw_legend(&mut drawing, entries, legend_width, at);
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
        let lines = wrap(&self.note, NOTE_FONT, total - 16.0);
        for (k, line) in lines.iter().enumerate() {
            let at = [total / 2.0, bottom + 12.0 + 15.0 * k as f64];
            let look = format!("font-size=\"{NOTE_FONT}\" opacity=\"0.65\"");
            drawing.text(at, Anchor::Middle, line, &look);
        }
        (drawing, total, bottom + 15.0 * lines.len() as f64 + 8.0)
    }

    /// The curves of all panels, each once, in rows of at most `max_width`.
    fn legend(&self, max_width: f64) -> Vec<Vec<(&str, Style)>> {
        let mut entries: Vec<(&str, Style)> = Vec::new();
        for panel in &self.panels {
            let shown: Vec<(&str, Style)> = match &panel.content {
                Content::Curves(axes) => {
                    axes.curves.iter().map(|curve| (curve.label.as_str(), curve.style)).collect()
                }
                Content::Forest(forest) => forest.legend().collect(),
                Content::Heat(_) | Content::Network(_) => continue,
            };
            for entry in shown {
                if !entries.contains(&entry) {
                    entries.push(entry);
                }
            }
        }
        let mut rows: Vec<Vec<_>> = Vec::new();
        let mut used = f64::INFINITY;
        for entry in entries {
            let size = entry_width(entry.0, max_width);
            if used + size > max_width {
                rows.push(Vec::new());
                used = 0.0;
            }
            used += size;
            rows.last_mut().expect("the first entry starts a row").push(entry);
        }
        rows
    }
}

impl Panel {
    fn draw(&self, drawing: &mut Drawing, frame: Frame) {
        let at = [frame.middle()[0], frame.top - 12.0];
        let size = fitted(&self.title, TITLE_FONT, frame.width + 2.0 * MARGIN[1] - 8.0);
        let look = format!("font-size=\"{}\" font-weight=\"600\"", short(size));
        drawing.text(at, Anchor::Middle, &self.title, &look);
        match &self.content {
            Content::Curves(axes) => axes.draw(drawing, frame),
            Content::Forest(forest) => forest.draw(drawing, frame),
            Content::Heat(heat) => heat.draw(drawing, frame),
            Content::Network(network) => network.draw(drawing, frame),
        }
    }

    /// The width of the labels to the left of its frame.
    fn left(&self) -> f64 {
        match &self.content {
            Content::Curves(axes) => axes.left(),
            Content::Forest(forest) => forest.left(),
            Content::Heat(heat) => heat.left(),
            Content::Network(_) => 0.0,
        }
    }
}

/// The width of a legend entry without its text: a sample of the line, and a gap to the next entry.
const SAMPLE: f64 = 30.0;
const GAP: f64 = 16.0;

/// The width of a legend entry, and never more than a row: longer labels are set in a smaller font.
fn entry_width(label: &str, max_width: f64) -> f64 {
    (SAMPLE + width(label, FONT) + GAP).min(max_width)
}

fn draw_legend(drawing: &mut Drawing, entries: &[(&str, Style)], max_width: f64, at: [f64; 2]) {
    let widths: Vec<f64> = entries.iter().map(|(label, _)| entry_width(label, max_width)).collect();
    let [middle, y] = at;
    let mut x = middle - (widths.iter().sum::<f64>() - GAP) / 2.0;
    for ((label, style), width) in entries.iter().zip(widths) {
        drawing.line([x, y], [x + 24.0, y], &curves::stroke(*style));
        curves::marker(drawing, [x + 12.0, y], *style);
        let size = fitted(label, FONT, width - SAMPLE - GAP);
        drawing.text([x + SAMPLE, y + 4.0], Anchor::Start, label, &font_size(size));
        x += width;
    }
}

/// The attribute for a font size, if it differs from that of the drawing.
fn font_size(size: f64) -> String {
    if size == FONT { String::new() } else { format!("font-size=\"{}\"", short(size)) }
}

/// Breaks a text between words into lines of at most `max_width`.
fn wrap(text: &str, font_size: f64, max_width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), font_size) <= max_width => {
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
    fn the_first_sixteen_styles_differ() {
        let styles: Vec<Style> = (0..16).map(style).collect();
        for (k, style) in styles.iter().enumerate() {
            assert!(!styles[..k].contains(style), "style {k}");
        }
        // Any two of the first eight differ in every respect.
        for (k, style) in styles[..8].iter().enumerate() {
            for other in &styles[..k] {
                assert_ne!(style.dash, other.dash, "style {k}");
                assert_ne!(style.marker, other.marker, "style {k}");
                assert!(apart(style.colour, other.colour) > 80.0, "style {k}: {other:?}");
            }
        }
    }

    /// The perceived distance between two colours, roughly (black and white: 765).
    fn apart(a: &str, b: &str) -> f64 {
        let part = |colour: &str, at: usize| {
            f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap())
        };
        let [r, g, b2] = [1, 3, 5].map(|at| part(a, at) - part(b, at));
        let red = (part(a, 1) + part(b, 1)) / 2.0;
        let weights = [2.0 + red / 256.0, 4.0, 2.0 + (255.0 - red) / 256.0];
        (weights[0] * r * r + weights[1] * g * g + weights[2] * b2 * b2).sqrt()
    }

    #[test]
    fn long_notes_are_wrapped() {
        let lines = wrap("one two three four five six", 12.0, 80.0);
        assert!(lines.len() > 1);
        assert_eq!(lines.join(" "), "one two three four five six");
        assert!(wrap("", 12.0, 80.0).is_empty());
    }

    /// The texts of a drawing: font size, x, y, anchor, whether it is upright, and the text itself.
    fn texts(svg: &str) -> Vec<(f64, [f64; 2], String, bool, String)> {
        let attribute = |tag: &str, name: &str| {
            let start = format!("{name}=\"");
            let from = tag.find(&start)? + start.len();
            Some(tag[from..].split('"').next()?.to_string())
        };
        let number = |tag: &str, name: &str| attribute(tag, name)?.parse::<f64>().ok();
        let text = |piece: &str| {
            let (tag, rest) = piece.split_once('>').unwrap();
            let at = [number(tag, " x").unwrap(), number(tag, " y").unwrap()];
            let anchor = attribute(tag, "text-anchor").unwrap_or("start".into());
            let words = rest.split('<').next().unwrap().to_string();
            let size = number(tag, "font-size").unwrap_or(FONT);
            (size, at, anchor, tag.contains("rotate"), words)
        };
        svg.split("<text").skip(1).map(text).collect()
    }

    fn long_figure(words: &str) -> Figure {
        let point = |x: f64| Point { x, y: 1e-7 * x, low: 0.0, high: 2e-7 * x };
        let curve = |n: usize| Curve {
            label: format!("{words} {n}"),
            style: style(n),
            points: [0.0, 500.0, 1000.0].map(point).to_vec(),
            lost: Vec::new(),
        };
        let axes = Axes {
            x: words.into(),
            y: words.into(),
            log_x: false,
            log_y: false,
            curves: (0..3).map(curve).collect(),
        };
        let columns: Vec<String> = (0..10).map(|c| format!("{words} {c}")).collect();
        let rows = (0..2000).map(|node: i32| node.to_string()).collect();
        let heat = Heat { rows, counts: vec![vec![123_456; 10]; 2000], columns };
        let panel = |content: Content| Panel { title: words.into(), content };
        let panels = vec![panel(Content::Curves(axes)), panel(Content::Heat(heat))];
        Figure { about: words.into(), panels, columns: 0, note: format!("{words} ").repeat(9) }
    }

    #[test]
    fn no_text_is_cut_in_wider_fonts() {
        // Inter's averages, and 20 % more.
        let em = |letter: char| match letter {
            'A'..='Z' => 0.69,
            '0'..='9' => 0.63,
            _ => 0.52,
        };
        let width = |text: &str| 1.2 * text.chars().map(em).sum::<f64>();
        for words in ["loss", "Test accuracy on own classes", &"Hessians and ABC ".repeat(6)] {
            for columns in [0, 1] {
                let figure = Figure { columns, ..long_figure(words.trim()) };
                let (drawing, right, bottom) = figure.draw();
                for (size, [x, y], anchor, upright, text) in texts(&drawing.inline(1.0, 1.0, "")) {
                    let width = size * width(&text);
                    let before = match anchor.as_str() {
                        "start" => 0.0,
                        "middle" => width / 2.0,
                        _ => width,
                    };
                    let (low, high, limit) = match upright {
                        true => (y - before, y - before + width, bottom),
                        false => (x - before, x - before + width, right),
                    };
                    assert!(low >= 0.0 && high <= limit, "{text}: {low} to {high} of {limit}");
                    assert!(!upright || x - size >= 0.0, "{text} at {x}");
                }
            }
        }
    }
}
