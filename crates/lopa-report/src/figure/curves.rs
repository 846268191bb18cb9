//! Curves with bands on linear or logarithmic axes.

use super::{FONT, Frame, MARGIN, Style, font_size};
use crate::svg::{Anchor, Drawing, fitted, short, width};
use crate::ticks::Scale;

/// Labelled ticks per axis, about.
const TICKS: usize = 5;
/// From the end of a tick's label to the vertical axis.
const TICK_LABEL: f64 = 9.0;
/// Markers per curve, at most.
const MARKS: usize = 6;

/// A panel's axes and curves.
#[derive(Debug, Clone)]
pub struct Axes {
    /// The label of the horizontal axis.
    pub x: String,
    /// The label of the vertical axis.
    pub y: String,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// A curve with a band.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Its label in the legend.
    pub label: String,
    /// Its style.
    pub style: Style,
    /// Its points, from left to right.
    pub points: Vec<Point>,
    /// The seeds that diverged, as points from left to right. They are clipped to the axes and do
    /// not affect them.
    pub lost: Vec<Vec<[f64; 2]>>,
}

/// A point of a curve, with the band there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The abscissa.
    pub x: f64,
    /// The mean.
    pub y: f64,
    /// The lower end of the band.
    pub low: f64,
    /// The upper end of the band.
    pub high: f64,
}

impl Curve {
    /// Whether x never changes: the algorithm does not incur this cost.
    pub fn is_free(&self) -> bool {
        let first = self.points.first().map(|point| point.x);
        self.points.len() > 1 && self.points.iter().all(|point| Some(point.x) == first)
    }

    /// The points to draw: for a free algorithm, a horizontal line at its last value.
    fn drawn(&self, x: &Scale) -> Vec<Point> {
        match self.points.last() {
            Some(last) if self.is_free() => [x.low, x.high].map(|x| Point { x, ..*last }).to_vec(),
            _ => self.points.clone(),
        }
    }
}

impl Axes {
    fn scales(&self) -> [Scale; 2] {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let lost = || self.curves.iter().flat_map(|curve| &curve.lost);
        let ends = lost().flatten().map(|[x, _]| *x);
        let x = Scale::from_start(points().map(|point| point.x).chain(ends), self.log_x);
        // If nothing else is drawn, a diverged run is shown up to ten times its first value.
        let begun = lost().filter(|_| points().next().is_none()).filter_map(|run| run.first());
        let begun = begun.flat_map(|[_, y]| [*y, 10.0 * y]);
        let y = Scale::around(points().flat_map(|p| [p.low, p.y, p.high]).chain(begun), self.log_y);
        [x, y]
    }

    /// From the baseline of the vertical axis's label to the axis.
    fn label_distance(&self) -> f64 {
        let ticks = self.scales()[1].ticks(TICKS);
        let widest = ticks.iter().map(|tick| width(&tick.label, FONT)).fold(0.0, f64::max);
        (TICK_LABEL + widest + 6.0).max(50.0)
    }

    pub(super) fn left(&self) -> f64 {
        self.label_distance() + FONT + 4.0
    }

    pub(super) fn draw(&self, drawing: &mut Drawing, frame: Frame) {
        let [x, y] = self.scales();
        self.draw_axes(drawing, frame, &x, &y);
        let place = |at: f64, value: f64| {
            let (right, up) = (x.place(at)?, y.place(value)?);
            Some([frame.left + right * frame.width, frame.bottom() - up * frame.height])
        };
        for curve in &self.curves {
            let points = curve.drawn(&x);
            let shown = points.iter().filter(|point| place(point.x, point.y).is_some());
            // A lower end that a logarithmic axis cannot show is drawn at its bottom.
            let low = shown.clone().filter_map(|p| place(p.x, p.low).or_else(|| place(p.x, y.low)));
            let mut band: Vec<_> = shown.clone().filter_map(|p| place(p.x, p.high)).collect();
            band.extend(low.collect::<Vec<_>>().into_iter().rev());
            let colour = curve.style.colour;
            drawing.path(&band, true, &format!("fill=\"{colour}\" fill-opacity=\"0.16\""));
        }
        for (k, curve) in self.curves.iter().enumerate() {
            let points = curve.drawn(&x);
            let line: Vec<_> = points.iter().filter_map(|p| place(p.x, p.y)).collect();
            drawing.path(&line, false, &format!("fill=\"none\" {}", stroke(curve.style)));
            // A single point makes no line: it is a marker, and its band a bar.
            if let ([point], [at]) = (&points[..], &line[..]) {
                let ends = [point.low, point.high].map(|end| place(point.x, end).unwrap_or(*at));
                drawing.line(ends[0], ends[1], &stroke(curve.style));
            }
            // Each curve begins at another point, so that markers of close curves do not overlap.
            let step = line.len().div_ceil(MARKS).max(1);
            for at in line.iter().skip(k % step).step_by(step) {
                marker(drawing, *at, curve.style);
            }
            for run in &curve.lost {
                Axes::draw_lost(drawing, frame, [&x, &y], run, curve.style);
            }
        }
    }

    /// A seed that diverged: a thin line that ends in a cross where it leaves the picture.
    fn draw_lost(
        drawing: &mut Drawing,
        frame: Frame,
        [x, y]: [&Scale; 2],
        run: &Lost,
        style: Style,
    ) {
        let mut line: Vec<[f64; 2]> = Vec::new();
        for [at, value] in run {
            let (Some(right), Some(up)) = (x.position(*at), y.position(*value)) else { break };
            if (0.0..=1.0).contains(&up) {
                line.push([right, up]);
                continue;
            }
            if let Some(&[before, from]) = line.last() {
                let edge = up.clamp(0.0, 1.0);
                line.push([before + (right - before) * (edge - from) / (up - from), edge]);
            }
            break;
        }
        let at = |[right, up]: [f64; 2]| {
            [frame.left + right * frame.width, frame.bottom() - up * frame.height]
        };
        let line: Vec<[f64; 2]> = line.into_iter().map(at).collect();
        let stroke = format!("stroke=\"{}\" stroke-width=\"1.1\"", style.colour);
        drawing.path(&line, false, &format!("fill=\"none\" {stroke} stroke-dasharray=\"1.5 3\""));
        if let Some([x, y]) = line.last() {
            for rise in [-4.0, 4.0] {
                drawing.line([x - 4.0, y - rise], [x + 4.0, y + rise], &stroke);
            }
        }
    }

    fn draw_axes(&self, drawing: &mut Drawing, frame: Frame, x: &Scale, y: &Scale) {
        let hair = "stroke=\"currentColor\" stroke-opacity=\"0.13\"";
        let mark = "stroke=\"currentColor\" stroke-opacity=\"0.55\"";
        for tick in y.ticks(TICKS) {
            let Some(up) = y.place(tick.value) else { continue };
            let at = frame.bottom() - up * frame.height;
            if tick.label.is_empty() {
                drawing.line([frame.left - 3.0, at], [frame.left, at], mark);
                continue;
            }
            drawing.line([frame.left, at], [frame.right(), at], hair);
            drawing.line([frame.left - 5.0, at], [frame.left, at], mark);
            drawing.text([frame.left - TICK_LABEL, at + 4.0], Anchor::End, &tick.label, "");
        }
        for tick in x.ticks(TICKS) {
            let Some(right) = x.place(tick.value) else { continue };
            let at = frame.left + right * frame.width;
            let long = if tick.label.is_empty() { 3.0 } else { 5.0 };
            drawing.line([at, frame.bottom()], [at, frame.bottom() + long], mark);
            drawing.text([at, frame.bottom() + 19.0], Anchor::Middle, &tick.label, "");
        }
        drawing.line([frame.left, frame.top], [frame.left, frame.bottom()], mark);
        drawing.line([frame.left, frame.bottom()], [frame.right(), frame.bottom()], mark);
        let middle = frame.middle();
        let below = [middle[0], frame.bottom() + 39.0];
        let size = fitted(&self.x, FONT, frame.width + 2.0 * MARGIN[1] - 8.0);
        drawing.text(below, Anchor::Middle, &self.x, &font_size(size));
        let left = [frame.left - self.label_distance(), middle[1]];
        let size = fitted(&self.y, FONT, frame.height + 2.0 * MARGIN[0]);
        drawing.upright(left, &self.y, &font_size(size));
    }
}

/// The course of a run that diverged.
type Lost = [[f64; 2]];

/// The marker of a style.
pub(super) fn marker(drawing: &mut Drawing, at: [f64; 2], style: Style) {
    let ([x, y], Style { colour, marker, .. }) = (at.map(short), style);
    let place = format!("transform=\"translate({x} {y})\"");
    drawing.element("path", &format!("d=\"{marker}\" {place} fill=\"{colour}\""));
}

/// The stroke of a style.
pub(super) fn stroke(style: Style) -> String {
    let dash = match style.dash {
        "" => String::new(),
        dash => format!(" stroke-dasharray=\"{dash}\""),
    };
    format!("stroke=\"{}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"{dash}", style.colour)
}

#[cfg(test)]
mod tests {
    use super::super::style;
    use super::*;

    fn curve(xs: &[f64]) -> Curve {
        let point = |x: &f64| Point { x: *x, y: 1.0 + x, low: 0.0, high: 2.0 + x };
        let points = xs.iter().map(point).collect();
        Curve { label: "a".into(), style: style(0), points, lost: Vec::new() }
    }

    fn axes(curves: Vec<Curve>, log_y: bool) -> Axes {
        Axes { x: "x".into(), y: "y".into(), log_x: false, log_y, curves }
    }

    #[test]
    fn a_seed_that_diverged_does_not_set_the_axis() {
        let exploded = vec![[0.0, 2.0], [1.0, 3.0], [2.0, 2.8e144]];
        for log_y in [false, true] {
            let alone = axes(vec![curve(&[0.0, 1.0, 5.0])], log_y);
            let mut both = alone.clone();
            both.curves[0].lost = vec![exploded.clone()];
            assert_eq!(both.scales()[1], alone.scales()[1]);
            let frame = Frame { left: 0.0, top: 0.0, width: 100.0, height: 50.0 };
            let mut drawing = Drawing::default();
            both.draw(&mut drawing, frame);
            let text = drawing.inline(100.0, 50.0, "");
            // The line goes to the top of the frame and ends there in a cross.
            let path = text.split("<path d=\"").find(|path| path.contains("1.5 3")).unwrap();
            let end = path.split('"').next().unwrap().rsplit('L').next().unwrap();
            assert!(end.ends_with(" 0"), "{path}");
            assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains("e1"));
        }
        // If it is the only curve, its beginning is shown.
        let mut lost = curve(&[]);
        lost.lost = vec![exploded];
        let y = axes(vec![lost], true).scales()[1];
        assert!(y.low > 1.0 && y.high < 30.0, "{y:?}");
    }

    #[test]
    fn a_free_algorithm_is_a_horizontal_line() {
        assert!(curve(&[0.0, 0.0, 0.0]).is_free());
        assert!(!curve(&[0.0, 1.0]).is_free());
        assert!(!curve(&[0.0]).is_free());
        let scale = Scale { low: 0.0, high: 9.0, log: false };
        let line = curve(&[0.0, 0.0]).drawn(&scale);
        assert_eq!([line[0].x, line[1].x], [0.0, 9.0]);
    }

    #[test]
    fn a_band_stays_in_its_frame_on_a_logarithmic_axis() {
        let axes = Axes {
            x: "x".into(),
            y: "y".into(),
            log_x: false,
            log_y: true,
            curves: vec![curve(&[0.0, 1.0, 5.0])],
        };
        let mut drawing = Drawing::default();
        axes.draw(&mut drawing, Frame { left: 0.0, top: 0.0, width: 100.0, height: 50.0 });
        let text = drawing.inline(100.0, 50.0, "");
        assert!(text.contains("fill-opacity=\"0.16\""));
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }
}
