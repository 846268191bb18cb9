//! Counts as a table of shades: which node has how much of which class.

use super::Frame;
use crate::svg::{Anchor, Drawing};

/// A table of counts, a row a node and a column a class.
#[derive(Debug, Clone)]
pub struct Heat {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The counts of each row.
    pub counts: Vec<Vec<u64>>,
}

impl Heat {
    pub(super) fn draw(&self, drawing: &mut Drawing, frame: Frame) {
        let (rows, columns) = (self.counts.len(), self.columns.len());
        let most = self.counts.iter().flatten().copied().max().unwrap_or(0).max(1) as f64;
        let cell = [frame.width / columns.max(1) as f64, frame.height / rows.max(1) as f64];
        let numbers = cell[0] >= 22.0 && cell[1] >= 12.0;
        let gap = cell.map(|side| if side > 8.0 { 1.0 } else { 0.0 });
        for (i, row) in self.counts.iter().enumerate() {
            for (c, &count) in row.iter().enumerate() {
                let corner = [frame.left + c as f64 * cell[0], frame.top + i as f64 * cell[1]];
                let size = [cell[0] - gap[0], cell[1] - gap[1]];
                let shade = count as f64 / most;
                let fill = match count {
                    0 => "fill=\"currentColor\" fill-opacity=\"0.05\"".into(),
                    _ => format!("fill=\"#0077BB\" fill-opacity=\"{:.3}\"", 0.1 + 0.9 * shade),
                };
                drawing.rectangle(corner, size, &fill);
                if numbers && count > 0 {
                    let at = [corner[0] + size[0] / 2.0, corner[1] + size[1] / 2.0 + 3.5];
                    let ink = if shade > 0.5 { "#fff" } else { "currentColor" };
                    let look = format!("font-size=\"10\" fill=\"{ink}\"");
                    drawing.text(at, Anchor::Middle, &count.to_string(), &look);
                }
            }
        }
        self.draw_names(drawing, frame, cell);
    }

    fn draw_names(&self, drawing: &mut Drawing, frame: Frame, cell: [f64; 2]) {
        let small = "font-size=\"11\"";
        let every = (14.0 / cell[1]).ceil() as usize;
        for i in (0..self.counts.len()).step_by(every.max(1)) {
            let at = [frame.left - 8.0, frame.top + (i as f64 + 0.5) * cell[1] + 4.0];
            drawing.text(at, Anchor::End, &i.to_string(), small);
        }
        let longest = self.columns.iter().map(|name| crate::svg::width(name)).fold(0.0, f64::max);
        let every = ((longest + 4.0) / cell[0]).ceil() as usize;
        for (c, name) in self.columns.iter().enumerate().step_by(every.max(1)) {
            let at = [frame.left + (c as f64 + 0.5) * cell[0], frame.bottom() + 16.0];
            drawing.text(at, Anchor::Middle, name, small);
        }
        drawing.text([frame.middle()[0], frame.bottom() + 36.0], Anchor::Middle, "Class", "");
        drawing.upright([frame.left - 36.0, frame.middle()[1]], "Node", "");
    }
}
