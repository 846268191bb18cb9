//! PDF from SVG, for LaTeX: the shapes that PNG renders, as vectors. Needs the feature `png`.
//!
//! Our drawings consist of paths and text in plain colours, so that a page is a list of paths: text is
//! outlined with the embedded fonts, and nothing depends on the machine or the day.

use lopa::error::Result;

/// A page of the size of the drawing.
#[cfg(feature = "png")]
pub fn pdf(svg: &str) -> Result<Vec<u8>> {
    let tree = crate::png::tree(svg)?;
    let size = tree.size();
    let mut page = page::Page::default();
    page.group(tree.root(), 1.0)?;
    Ok(page.finish(size.width(), size.height()))
}

/// Fails: this build cannot lay out text.
#[cfg(not(feature = "png"))]
pub fn pdf(svg: &str) -> Result<Vec<u8>> {
    crate::png::png(svg, 1.0)
}

#[cfg(feature = "png")]
mod page {
    use std::fmt::Write;

    use lopa::error::{Error, Result};
    use resvg::tiny_skia::{PathSegment, Point, Transform};
    use resvg::usvg::{Color, FillRule, Group, LineCap, LineJoin, Node, Paint, Path};

    /// Points of a PDF per unit of a drawing: 72 to 96 per inch.
    const POINTS: f32 = 0.75;

    /// The instructions of a page, and the opacities they name.
    #[derive(Default)]
    pub struct Page {
        text: String,
        opacities: Vec<(u32, u32)>, // of fills and of strokes, in thousandths
    }

    impl Page {
        /// Draws a group. Its opacity is that of each of its shapes, which do not overlap here.
        pub fn group(&mut self, group: &Group, opacity: f32) -> Result<()> {
            let opacity = opacity * group.opacity().get();
            if group.clip_path().is_some() || group.mask().is_some() || !group.filters().is_empty()
            {
                return Err(unknown("clipping, masks and filters"));
            }
            group.children().iter().try_for_each(|node| match node {
                Node::Group(group) => self.group(group, opacity),
                Node::Path(path) => self.path(path, opacity),
                Node::Text(text) => self.group(text.flattened(), opacity),
                Node::Image(_) => Err(unknown("images")),
            })
        }

        fn path(&mut self, path: &Path, opacity: f32) -> Result<()> {
            let fill = path.fill();
            let stroke = path.stroke();
            if !path.is_visible() || (fill.is_none() && stroke.is_none()) {
                return Ok(());
            }
            let thousandths =
                |own: Option<f32>| (own.unwrap_or(1.0) * opacity * 1000.0).round() as u32;
            let filled = thousandths(fill.map(|fill| fill.opacity().get()));
            let drawn = thousandths(stroke.map(|stroke| stroke.opacity().get()));
            let state = self.state((filled, drawn));
            let Transform { sx, ky, kx, sy, tx, ty } = path.abs_transform();
            self.line(&format!("q /G{state} gs"));
            self.numbers(&[sx, ky, kx, sy, tx, ty], "cm");
            if let Some(fill) = fill {
                self.colour(fill.paint(), "rg")?;
            }
            if let Some(stroke) = stroke {
                self.colour(stroke.paint(), "RG")?;
                self.numbers(&[stroke.width().get()], "w");
                let cap = match stroke.linecap() {
                    LineCap::Butt => 0,
                    LineCap::Round => 1,
                    LineCap::Square => 2,
                };
                let join = match stroke.linejoin() {
                    LineJoin::Miter | LineJoin::MiterClip => 0,
                    LineJoin::Round => 1,
                    LineJoin::Bevel => 2,
                };
                self.line(&format!("{cap} J {join} j"));
                let dashes = stroke.dasharray().unwrap_or_default();
                let dashes: Vec<String> = dashes.iter().map(|&dash| number(dash)).collect();
                let offset = number(stroke.dashoffset());
                self.line(&format!("[{}] {offset} d", dashes.join(" ")));
            }
            self.segments(path);
            let even = fill.is_some_and(|fill| fill.rule() == FillRule::EvenOdd);
            let paint = match (fill.is_some(), stroke.is_some(), even) {
                (true, true, false) => "B",
                (true, true, true) => "B*",
                (true, false, false) => "f",
                (true, false, true) => "f*",
                (false, ..) => "S",
            };
            self.line(&format!("{paint} Q"));
            Ok(())
        }

        fn segments(&mut self, path: &Path) {
            let mut at = Point::zero();
            for segment in path.data().segments() {
                match segment {
                    PathSegment::MoveTo(to) => self.points(&[to], "m"),
                    PathSegment::LineTo(to) => self.points(&[to], "l"),
                    // A parabola is a cubic whose inner points lie two thirds of the way to its own.
                    PathSegment::QuadTo(by, to) => {
                        let towards = |from: Point| {
                            let share = |from: f32, by: f32| from + (by - from) * 2.0 / 3.0;
                            Point::from_xy(share(from.x, by.x), share(from.y, by.y))
                        };
                        self.points(&[towards(at), towards(to), to], "c");
                    }
                    PathSegment::CubicTo(one, two, to) => self.points(&[one, two, to], "c"),
                    PathSegment::Close => self.line("h"),
                }
                at = match segment {
                    PathSegment::MoveTo(to)
                    | PathSegment::LineTo(to)
                    | PathSegment::QuadTo(_, to)
                    | PathSegment::CubicTo(_, _, to) => to,
                    PathSegment::Close => at,
                };
            }
        }

        /// The number of the graphics state with these opacities.
        fn state(&mut self, opacities: (u32, u32)) -> usize {
            let known = self.opacities.iter().position(|known| *known == opacities);
            known.unwrap_or_else(|| {
                self.opacities.push(opacities);
                self.opacities.len() - 1
            })
        }

        fn colour(&mut self, paint: &Paint, operator: &str) -> Result<()> {
            let Paint::Color(Color { red, green, blue }) = paint else {
                return Err(unknown("gradients and patterns"));
            };
            self.numbers(&[*red, *green, *blue].map(|part| f32::from(part) / 255.0), operator);
            Ok(())
        }

        fn points(&mut self, points: &[Point], operator: &str) {
            let flat: Vec<f32> = points.iter().flat_map(|point| [point.x, point.y]).collect();
            self.numbers(&flat, operator);
        }

        fn numbers(&mut self, numbers: &[f32], operator: &str) {
            for &value in numbers {
                self.text += &number(value);
                self.text.push(' ');
            }
            self.line(operator);
        }

        fn line(&mut self, text: &str) {
            self.text += text;
            self.text.push('\n');
        }

        /// The file: a page of this size, in units of the drawing, whose y points down.
        pub fn finish(self, width: f32, height: f32) -> Vec<u8> {
            let [wide, high] = [width, height].map(|side| number(side * POINTS));
            let flip = format!("{} 0 0 {} 0 {high} cm\n", number(POINTS), number(-POINTS));
            let content = flip + &self.text;
            let share = |thousandths: u32| number(thousandths as f32 / 1000.0);
            let states = self.opacities.iter().enumerate().map(|(at, &(fill, stroke))| {
                format!("/G{at} << /ca {} /CA {} >> ", share(fill), share(stroke))
            });
            let objects = [
                "<< /Type /Catalog /Pages 2 0 R >>".to_string(),
                "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_string(),
                format!(
                    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {wide} {high}] /Contents 4 0 R \
                     /Resources << /ExtGState << {}>> >> >>",
                    states.collect::<String>()
                ),
                format!("<< /Length {} >>\nstream\n{content}endstream", content.len()),
            ];
            let mut file = "%PDF-1.4\n".to_string();
            let mut table = "0000000000 65535 f \n".to_string();
            for (at, object) in objects.iter().enumerate() {
                let _ = writeln!(table, "{:010} 00000 n ", file.len());
                let _ = writeln!(file, "{} 0 obj\n{object}\nendobj", at + 1);
            }
            let (start, count) = (file.len(), objects.len() + 1);
            let _ = write!(
                file,
                "xref\n0 {count}\n{table}trailer\n<< /Size {count} /Root 1 0 R >>\n\
                 startxref\n{start}\n%%EOF\n"
            );
            file.into_bytes()
        }
    }

    /// A number in PDF's notation: no exponent, no trailing zeros.
    fn number(value: f32) -> String {
        let text = format!("{value:.4}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        if text == "-0" { "0".into() } else { text.into() }
    }

    fn unknown(what: &str) -> Error {
        let message = format!("a drawing with {what} cannot be written as PDF");
        Error::storage("storage/picture", message).hint("ask for SVG or PNG")
    }
}

#[cfg(all(test, feature = "png"))]
mod tests {
    use super::*;

    const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"20\" \
        font-family=\"Inter, sans-serif\"><path d=\"M0 0L40 20\" stroke=\"#0077BB\" \
        stroke-dasharray=\"4 2\" stroke-opacity=\"0.5\"/><text x=\"2\" y=\"15\">k</text></svg>";

    fn text(svg: &str) -> String {
        String::from_utf8(pdf(svg).unwrap()).unwrap()
    }

    #[test]
    fn a_drawing_becomes_a_page_of_its_size() {
        let file = text(SVG);
        assert!(file.starts_with("%PDF-1.4\n") && file.ends_with("%%EOF\n"));
        assert!(file.contains("/MediaBox [0 0 30 15]"), "{file}");
        assert!(file.contains("0 0.4667 0.7333 RG") && file.contains("[4 2] 0 d"), "{file}");
        assert!(file.contains("/ca 1 /CA 0.5"), "{file}");
        assert!(file.contains("\nf Q"), "letters are filled shapes: {file}");
        assert_eq!(file, text(SVG), "the same bytes every time");
    }

    #[test]
    fn every_object_is_where_the_table_says() {
        let file = text(SVG);
        let start: usize =
            file.rsplit("startxref\n").next().unwrap().lines().next().unwrap().parse().unwrap();
        assert!(file[start..].starts_with("xref\n0 5\n"));
        for (at, line) in file[start..].lines().skip(3).take(4).enumerate() {
            let offset: usize = line[..10].parse().unwrap();
            assert!(file[offset..].starts_with(&format!("{} 0 obj", at + 1)), "{line}");
        }
        let content = file.split("stream\n").nth(1).unwrap().strip_suffix("end").unwrap();
        assert!(file.contains(&format!("/Length {} ", content.len())));
    }

    #[test]
    fn what_it_cannot_draw_is_refused() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"4\" height=\"4\"><clipPath id=\"c\">\
            <rect width=\"2\" height=\"2\"/></clipPath><rect width=\"4\" height=\"4\" clip-path=\"url(#c)\"/></svg>";
        assert_eq!(pdf(svg).unwrap_err().id, "storage/picture");
        assert_eq!(pdf("no SVG").unwrap_err().id, "storage/picture");
    }
}
