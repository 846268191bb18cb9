//! Numbers formatted for people.

use lopa::math::portable::{log2, log10, powf};

/// The common format of the numbers in a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Format {
    /// With this many decimals.
    Fixed(usize),
    /// With an exponent.
    Exponent,
    /// As bytes, with a unit.
    Bytes,
}

impl Format {
    /// The format of a column.
    pub fn of(name: &str, values: &[f64]) -> Format {
        let sizes = || values.iter().map(|value| value.abs()).filter(|size| *size > 0.0);
        let smallest = sizes().fold(f64::INFINITY, f64::min);
        let largest = sizes().fold(0.0, f64::max);
        if name == "bytes" {
            return Format::Bytes;
        }
        if values.iter().all(|value| value.fract() == 0.0) && largest < 1e12 {
            return Format::Fixed(0);
        }
        // Four digits for the largest; the smallest must show at least two.
        let digits = (3.0 - log10(largest).floor()).clamp(0.0, 4.0);
        match largest >= 1e7 || smallest < powf(10.0, 1.0 - digits) {
            true => Format::Exponent,
            false => Format::Fixed(digits as usize),
        }
    }

    /// A number in this format.
    pub fn write(self, value: f64) -> String {
        let text = match self {
            Format::Fixed(digits) => grouped(&format!("{value:.digits$}")),
            Format::Exponent if value == 0.0 => "0".into(),
            Format::Exponent => format!("{value:.2e}"),
            Format::Bytes => bytes(value),
        };
        text.replace('-', "\u{2212}")
    }

    /// A standard deviation in this format; empty if it is shown as zero.
    pub fn spread(self, sd: f64) -> String {
        match self {
            _ if sd == 0.0 || self.write(sd) == self.write(0.0) => String::new(),
            Format::Exponent => format!("± {sd:.0e}").replace('-', "\u{2212}"),
            _ => format!("± {}", self.write(sd)),
        }
    }
}

/// A count with its noun.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Thin spaces between thousands.
fn grouped(text: &str) -> String {
    let whole = text.find('.').unwrap_or(text.len());
    let mut out = String::new();
    for (k, letter) in text.chars().enumerate() {
        let left = whole.saturating_sub(k);
        if k > 0 && k < whole && left.is_multiple_of(3) && out != "-" && whole > 4 {
            out.push('\u{2009}');
        }
        out.push(letter);
    }
    out
}

/// Bytes with a unit.
pub fn bytes(value: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (log2(value.max(1.0)) / 10.0).floor().min(4.0);
    let digits = if power == 0.0 { 0 } else { 1 };
    format!("{:.digits$} {}", value / powf(1024.0, power), units[power as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_one_format() {
        let write = |name: &str, values: &[f64]| -> Vec<String> {
            let format = Format::of(name, values);
            values.iter().map(|value| format.write(*value)).collect()
        };
        assert_eq!(write("loss", &[0.5, 0.12345]), ["0.5000", "0.1235"]);
        assert_eq!(write("inner", &[18.5, 0.1]), ["18.50", "0.10"]);
        assert_eq!(
            write("consensus", &[950.8, 0.0303]),
            ["9.51e2", "3.03e\u{2212}2"],
            "a column of many magnitudes"
        );
        assert_eq!(write("phi", &[0.5, 1e-9]), ["5.00e\u{2212}1", "1.00e\u{2212}9"]);
        assert_eq!(
            write("hessians", &[1000.0, 160000.0]),
            ["1\u{2009}000", "160\u{2009}000"].map(|t| if t.len() < 9 { "1000" } else { t })
        );
        assert_eq!(write("bytes", &[0.0, 1536.0]), ["0 B", "1.5 KiB"]);
        assert_eq!(Format::Fixed(2).spread(0.0), "");
        assert_eq!(Format::Fixed(0).spread(0.2), "");
        assert_eq!(Format::Exponent.spread(2e-6), "± 2e\u{2212}6");
        assert_eq!(grouped("-123456.5"), "-123\u{2009}456.5");
    }
}
