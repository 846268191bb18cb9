//! A small SVG writer. Colours follow the surrounding text colour (`currentColor`): the same drawing
//! works on light and dark pages.

use std::fmt::{Display, Write};

/// Escapes text for XML and HTML, between tags and in attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML does not allow other control characters.
            letter if letter.is_control() && !"\n\t".contains(letter) => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

/// A drawing in progress.
#[derive(Debug, Default)]
pub struct Drawing {
    body: String,
}

/// Which point of a text is placed.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// Its start.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

impl Drawing {
    /// An element without content; `attributes` are written verbatim.
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

    /// A polyline, or a polygon if `closed`.
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

    /// A text turned by 90 degrees, read upwards.
    pub fn upright(&mut self, at: [f64; 2], text: &str, attributes: &str) {
        let [x, y] = at.map(short);
        let rotated = format!("transform=\"rotate(-90 {x} {y})\" {attributes}");
        self.text(at, Anchor::Middle, text, &rotated);
    }

    /// A disc with a tooltip.
    pub fn disc(&mut self, at: [f64; 2], radius: f64, about: &str, attributes: &str) {
        let [x, y, r] = [at[0], at[1], radius].map(short);
        let about = escape(about);
        let _ = writeln!(
            self.body,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {attributes}><title>{about}</title></circle>"
        );
    }

    /// The drawing as part of a page, in the page's text colour.
    pub fn inline(&self, width: f64, height: f64, about: &str) -> String {
        self.whole(width, height, about, "", "")
    }

    /// The drawing as a file: dark on white.
    pub fn standalone(&self, width: f64, height: f64, about: &str) -> String {
        let namespace = " xmlns=\"http://www.w3.org/2000/svg\" color=\"#1b1f24\"";
        self.whole(
            width,
            height,
            about,
            namespace,
            "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        )
    }

    fn whole(
        &self,
        width: f64,
        height: f64,
        about: &str,
        attributes: &str,
        ground: &str,
    ) -> String {
        let ([w, h], about, body) = ([width, height].map(short), escape(about), &self.body);
        format!(
            "<svg{attributes} role=\"img\" aria-label=\"{about}\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" font-family=\"Inter, 'Helvetica Neue', Helvetica, Arial, \
             sans-serif\" font-size=\"12\" fill=\"currentColor\">\n{ground}{body}</svg>\n"
        )
    }
}

/// An upper estimate of a text's width in pixels: that of Inter and 20 % more, because text must not
/// be cut where Inter is missing and a wider font takes its place. Inter's letters take 0.52 em on
/// average, digits 0.63 em, capitals 0.69 em.
pub fn width(text: &str, font_size: f64) -> f64 {
    let em = |letter: char| match letter {
        '\u{304}' => 0.0, // combining macron
        letter if letter.is_ascii_digit() => 0.76,
        letter if letter.is_uppercase() => 0.83,
        _ => 0.63,
    };
    font_size * text.chars().map(em).sum::<f64>()
}

/// The largest font size, at most `font_size`, at which a text is no wider than `max_width`.
pub fn fitted(text: &str, font_size: f64, max_width: f64) -> f64 {
    font_size.min(max_width / width(text, 1.0).max(f64::MIN_POSITIVE))
}

/// A coordinate with two decimals: enough for the eye, and the same bytes on every machine.
pub(crate) fn short(value: f64) -> impl Display {
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
