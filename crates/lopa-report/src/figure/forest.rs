//! Factors with their intervals, one row each: a comparison in several settings.

use super::{Frame, MARGIN, Style, curves, font_size};
use crate::svg::{Anchor, Drawing, fitted, width};
use crate::ticks::Scale;

const NAME_FONT: f64 = 11.0;
/// The maximum width of names; longer ones are set in smaller type.
const NAMES: f64 = 150.0;

/// Rows of factors on a logarithmic axis, with a line at 1.
#[derive(Debug, Clone)]
pub struct Forest {
    /// The label of the axis.
    pub x: String,
    /// Factors this near to 1 do not matter.
    pub margin: f64,
    /// The rows, from the top.
    pub rows: Vec<ForestRow>,
}

/// One row of a forest.
#[derive(Debug, Clone)]
pub struct ForestRow {
    /// Its name; rows with the same name in succession show it once.
    pub name: String,
    /// Its group, for the legend.
    pub label: String,
    /// Its look.
    pub style: Style,
    /// The factor with the ends of its interval, or why there is none.
    pub factor: Result<[f64; 3], String>,
}

impl Forest {
    fn scale(&self) -> Scale {
        let factors = self.rows.iter().filter_map(|row| row.factor.as_ref().ok()).flatten();
        let around = [1.0 / self.margin / 1.5, self.margin * 1.5];
        Scale::around(factors.copied().chain(around), true)
    }

    pub(super) fn draw(&self, drawing: &mut Drawing, frame: Frame) {
        let scale = self.scale();
        let across = |factor: f64| {
            let place = scale.position(factor).unwrap_or(0.0).clamp(0.0, 1.0);
            frame.left + place * frame.width
        };
        let (low, high) = (across(1.0 / self.margin), across(self.margin));
        let band = "fill=\"currentColor\" fill-opacity=\"0.07\"";
        drawing.rectangle([low, frame.top], [high - low, frame.height], band);
        let axis = "stroke=\"currentColor\" stroke-opacity=\"0.5\"";
        drawing.line([across(1.0), frame.top], [across(1.0), frame.bottom()], axis);
        drawing.line([frame.left, frame.bottom()], [frame.right(), frame.bottom()], axis);
        for tick in scale.ticks(5) {
            let Some(place) = scale.place(tick.value) else { continue };
            let x = frame.left + place * frame.width;
            drawing.line([x, frame.bottom()], [x, frame.bottom() + 4.0], axis);
            drawing.text([x, frame.bottom() + 17.0], Anchor::Middle, &tick.label, "");
        }
        drawing.text([frame.middle()[0], frame.bottom() + 36.0], Anchor::Middle, &self.x, "");
        let height = frame.height / self.rows.len().max(1) as f64;
        let mut last = "";
        for (k, row) in self.rows.iter().enumerate() {
            let y = frame.top + (k as f64 + 0.5) * height;
            if row.name != last {
                let look = font_size(fitted(&row.name, NAME_FONT, NAMES));
                drawing.text([frame.left - 8.0, y + 4.0], Anchor::End, &row.name, &look);
                last = &row.name;
            }
            match &row.factor {
                Ok([mean, low, high]) => {
                    let look = format!("stroke=\"{}\" stroke-width=\"2\"", row.style.colour);
                    drawing.line([across(*low), y], [across(*high), y], &look);
                    curves::marker(drawing, [across(*mean), y], row.style);
                }
                Err(why) => {
                    let size = fitted(why, NAME_FONT, frame.width - 8.0);
                    let look = format!("font-size=\"{size:.2}\" fill=\"{}\"", row.style.colour);
                    drawing.text([frame.middle()[0], y + 4.0], Anchor::Middle, why, &look);
                }
            }
        }
    }

    pub(super) fn left(&self) -> f64 {
        let names = self.rows.iter().map(|row| width(&row.name, NAME_FONT).min(NAMES));
        names.fold(0.0, f64::max) + 8.0 + MARGIN[1] / 2.0
    }

    pub(super) fn legend(&self) -> impl Iterator<Item = (&str, Style)> {
        self.rows.iter().map(|row| (row.label.as_str(), row.style))
    }
}
