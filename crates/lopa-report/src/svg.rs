//! A small writer of SVG. Colours follow the text colour of their surroundings (`currentColor`), so
//! that the same drawing stands on light and dark pages.

use std::fmt::{Display, Write};

/// Text made safe for XML and HTML, between tags and in attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML has no place for other control characters.
            letter if letter.is_control() && !"\n\t".contains(letter) => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

/// A drawing under way.
#[derive(Debug, Default)]
pub struct Drawing {
    body: String,
}

/// Where a text is held.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// At its beginning.
    Start,
    /// In its middle.
    Middle,
    /// At its end.
    End,
}

impl Drawing {
    /// An element without content; attributes are written as they are given.
    pub fn element(&mut self, tag: &str, attributes: &str) {
        let _ = writeln!(self.body, "<{tag} {attributes}/>");
    }

    /// A straight line.
    pub fn line(&mut self, from: [f64; 2], to: [f64; 2], attributes: &str) {
        let [x1, y1, x2, y2] = [from[0], from[1], to[0], to[1]].map(short);
        self.element(
            "line",
            &format!("x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {attributes}"),
        );
    }

    /// A polyline through points.
    pub fn path(&mut self, points: &[[f64; 2]], closed: bool, attributes: &str) {
        if points.is_empty() {
            return;
        }
        let mut data = String::new();
        for (k, [x, y]) in points.iter().enumerate() {
            let _ = write!(data, "{}{} {}", if k == 0 { "M" } else { "L" }, short(*x), short(*y));
        }
        if closed {
            data.push('Z');
        }
        self.element("path", &format!("d=\"{data}\" {attributes}"));
    }

    /// A rectangle.
    pub fn rectangle(&mut self, corner: [f64; 2], size: [f64; 2], attributes: &str) {
        let [x, y, w, h] = [corner[0], corner[1], size[0], size[1]].map(short);
        self.element(
            "rect",
            &format!("x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" {attributes}"),
        );
    }

    /// A text; it is escaped.
    pub fn text(&mut self, at: [f64; 2], anchor: Anchor, text: &str, attributes: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let [x, y] = at.map(short);
        let text = escape(text);
        let _ = writeln!(self.body, "<text x=\"{x}\" y=\"{y}\"{anchor} {attributes}>{text}</text>");
    }

    /// A text that is read upwards.
    pub fn upright(&mut self, at: [f64; 2], text: &str, attributes: &str) {
        let [x, y] = at.map(short);
        let turned = format!("transform=\"rotate(-90 {x} {y})\" {attributes}");
        self.text(at, Anchor::Middle, text, &turned);
    }

    /// A round mark with a text that browsers show over it.
    pub fn disc(&mut self, at: [f64; 2], radius: f64, about: &str, attributes: &str) {
        let [x, y, r] = [at[0], at[1], radius].map(short);
        let about = escape(about);
        let _ = writeln!(
            self.body,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {attributes}><title>{about}</title></circle>"
        );
    }

    /// The whole, for a page: it takes the page's text colour.
    pub fn inline(&self, width: f64, height: f64, about: &str) -> String {
        self.whole(width, height, about, "", "")
    }

    /// The whole, as a file: dark on white.
    pub fn standalone(&self, width: f64, height: f64, about: &str) -> String {
        let space = " xmlns=\"http://www.w3.org/2000/svg\" color=\"#1b1f24\"";
        self.whole(
            width,
            height,
            about,
            space,
            "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        )
    }

    fn whole(&self, width: f64, height: f64, about: &str, more: &str, ground: &str) -> String {
        let ([w, h], about, body) = ([width, height].map(short), escape(about), &self.body);
        format!(
            "<svg{more} role=\"img\" aria-label=\"{about}\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" font-family=\"Inter, 'Helvetica Neue', Helvetica, Arial, \
             sans-serif\" font-size=\"12\" fill=\"currentColor\">\n{ground}{body}</svg>\n"
        )
    }
}

/// About how wide a text is, in pixels at a font size of 12.
pub fn width(text: &str) -> f64 {
    text.chars().filter(|letter| *letter != '\u{304}').count() as f64 * 6.6
}

/// A coordinate with two digits after the point: finer is not seen, and bytes stay the same.
fn short(value: f64) -> impl Display {
    let rounded = (value * 100.0).round() / 100.0;
    if rounded == 0.0 { 0.0 } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_cannot_leave_its_place() {
        let evil = "</text><script>alert(\"1\" & '2')</script>\u{0}";
        let safe = escape(evil);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{0}']));
        assert_eq!(escape("θ & φ"), "θ &amp; φ");
        let mut drawing = Drawing::default();
        drawing.text([1.0, 2.0], Anchor::End, evil, "");
        assert!(!drawing.standalone(9.0, 9.0, evil).contains("<script"));
    }

    #[test]
    fn coordinates_are_short() {
        let mut drawing = Drawing::default();
        drawing.line([1.0 / 3.0, -0.0001], [2.0, 1e-9], "");
        assert_eq!(drawing.body, "<line x1=\"0.33\" y1=\"0\" x2=\"2\" y2=\"0\" />\n");
    }
}
