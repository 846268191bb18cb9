//! A heat map of counts: how many samples of each class each node has.

use super::{FONT, Frame, MARGIN, font_size};
use crate::svg::{Anchor, Drawing, fitted, width};

const NUMBER_FONT: f64 = 10.0;
const NAME_FONT: f64 = 11.0;

/// The name of a row takes at most this width; a longer one is set smaller.
const WIDEST: f64 = 90.0;

/// A table of counts: one row per node, one column per class.
#[derive(Debug, Clone)]
pub struct Heat {
    /// The names of the rows.
    pub rows: Vec<String>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The counts of each row.
    pub counts: Vec<Vec<u64>>,
}

impl Heat {
    pub(super) fn draw(&self, drawing: &mut Drawing, frame: Frame) {
        let (rows, columns) = (self.counts.len(), self.columns.len());
        let largest = self.counts.iter().flatten().copied().max().unwrap_or(0).max(1);
        let cell = [frame.width / columns.max(1) as f64, frame.height / rows.max(1) as f64];
        let size = fitted(&largest.to_string(), NUMBER_FONT, cell[0] - 2.0);
        let numbers = size >= 8.0 && cell[1] >= 12.0;
        let gap = cell.map(|side| if side > 8.0 { 1.0 } else { 0.0 });
        for (i, row) in self.counts.iter().enumerate() {
            for (c, &count) in row.iter().enumerate() {
                let corner = [frame.left + c as f64 * cell[0], frame.top + i as f64 * cell[1]];
                let sides = [cell[0] - gap[0], cell[1] - gap[1]];
                let shade = count as f64 / largest as f64;
                let fill = match count {
                    0 => "fill=\"currentColor\" fill-opacity=\"0.05\"".into(),
                    _ => format!("fill=\"#0077BB\" fill-opacity=\"{:.3}\"", 0.1 + 0.9 * shade),
                };
                drawing.rectangle(corner, sides, &fill);
                if numbers && count > 0 {
                    let at = [corner[0] + sides[0] / 2.0, corner[1] + sides[1] / 2.0 + 3.5];
                    let ink = if shade > 0.5 { "#fff" } else { "currentColor" };
                    let look = format!("{} fill=\"{ink}\"", font_size(size));
                    drawing.text(at, Anchor::Middle, &count.to_string(), &look);
                }
            }
        }
        self.draw_names(drawing, frame, cell);
    }

    fn draw_names(&self, drawing: &mut Drawing, frame: Frame, cell: [f64; 2]) {
        let every = (14.0 / cell[1]).ceil() as usize;
        for i in (0..self.counts.len()).step_by(every.max(1)) {
            let at = [frame.left - 8.0, frame.top + (i as f64 + 0.5) * cell[1] + 4.0];
            let name = &self.rows[i];
            drawing.text(at, Anchor::End, name, &font_size(fitted(name, NAME_FONT, WIDEST)));
        }
        // A name may exceed its column by the margin on the right; a longer one is set smaller.
        let size = |name: &str| fitted(name, NAME_FONT, cell[0] + 2.0 * MARGIN[1] - 4.0);
        let widths = self.columns.iter().map(|name| width(name, size(name)));
        let every = ((widths.fold(0.0, f64::max) + 4.0) / cell[0]).ceil() as usize;
        for (c, name) in self.columns.iter().enumerate().step_by(every.max(1)) {
            let at = [frame.left + (c as f64 + 0.5) * cell[0], frame.bottom() + 16.0];
            drawing.text(at, Anchor::Middle, name, &font_size(size(name)));
        }
        drawing.text([frame.middle()[0], frame.bottom() + 36.0], Anchor::Middle, "Class", "");
        let left = [frame.left - self.label_distance(), frame.middle()[1]];
        drawing.upright(left, "Node", "");
    }

    /// From the baseline of the rows' label to the cells.
    fn label_distance(&self) -> f64 {
        let widths = self.rows.iter().map(|name| width(name, NAME_FONT).min(WIDEST));
        (14.0 + widths.fold(0.0, f64::max)).max(36.0)
    }

    pub(super) fn left(&self) -> f64 {
        self.label_distance() + FONT + 4.0
    }
}
