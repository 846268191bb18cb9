//! Scales of axes, and their ticks at round numbers.

use lopa::math::portable::{log10, powf, powi};

/// An axis from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The smallest value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
    /// Whether it is logarithmic.
    pub log: bool,
}

/// A tick of an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Its position.
    pub value: f64,
    /// Its label; empty for minor ticks.
    pub label: String,
}

impl Scale {
    /// The scale of some values, with a little padding; logarithmic only if some are positive.
    pub fn around(values: impl IntoIterator<Item = f64>, log: bool) -> Scale {
        let finite: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let positive = finite.iter().copied().filter(|value| *value > 0.0);
        if log && let Some((low, high)) = bounds(positive) {
            let padding = powf(high / low, 0.04).max(1.05);
            return Scale { low: low / padding, high: high * padding, log };
        }
        let (low, high) = bounds(finite.into_iter()).unwrap_or((0.0, 1.0));
        let size = low.abs().max(high.abs());
        let padding = if high > low { 0.04 * (high - low) } else { (0.1 * size).max(1e-9) };
        Scale { low: low - padding, high: high + padding, log: false }
    }

    /// The scale of costs: it starts at the smallest value, mostly zero.
    pub fn from_start(values: impl IntoIterator<Item = f64>, log: bool) -> Scale {
        let values: Vec<f64> = values.into_iter().collect();
        if log && values.iter().any(|value| *value > 0.0) {
            return Scale::around(values, true);
        }
        let finite = values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = bounds(finite).unwrap_or((0.0, 1.0));
        Scale { low, high: if high > low { high } else { low + 1.0 }, log: false }
    }

    /// The position of a value, from 0 to 1; `None` if the scale cannot show it.
    pub fn place(&self, value: f64) -> Option<f64> {
        Some(self.position(value)?.clamp(0.0, 1.0))
    }

    /// The position of a value, outside 0 to 1 if it lies outside the axis; `None` if the scale
    /// cannot show it.
    pub fn position(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.log && value <= 0.0) {
            return None;
        }
        let [value, low, high] =
            [value, self.low, self.high].map(|v| if self.log { log10(v) } else { v });
        Some((value - low) / (high - low))
    }

    /// About `wanted` ticks at round numbers; on logarithmic axes, minor ticks between them.
    pub fn ticks(&self, wanted: usize) -> Vec<Tick> {
        match self.log {
            true if self.high / self.low >= 10.0 => self.powers(wanted),
            _ => self.steps(wanted),
        }
    }

    /// Multiples of 1, 2 or 5 times a power of ten.
    fn steps(&self, wanted: usize) -> Vec<Tick> {
        let rough = (self.high - self.low) / wanted.max(1) as f64;
        let power = powf(10.0, log10(rough).floor());
        let multiple = [1.0, 2.0, 5.0].into_iter().find(|multiple| multiple * power >= rough);
        let step = multiple.unwrap_or(10.0) * power;
        let (first, last) = ((self.low / step - 1e-9).ceil(), (self.high / step + 1e-9).floor());
        let count = (last - first).clamp(-1.0, 100.0) as i64;
        let tick = |k: i64| {
            let value = (first + k as f64) * step;
            Tick { value, label: label(value, step) }
        };
        (0..=count).map(tick).collect()
    }

    /// Powers of ten with labels, their multiples without.
    fn powers(&self, wanted: usize) -> Vec<Tick> {
        let first = log10(self.low).floor() as i32;
        let last = log10(self.high).ceil() as i32;
        let every = ((last - first) as usize).div_ceil(wanted.max(1)).max(1) as i32;
        let mut ticks = Vec::new();
        for power in first..=last {
            let labelled = power.rem_euclid(every) == 0;
            for multiple in 1..=9 {
                let value = f64::from(multiple) * powi(10.0, power);
                let shown = multiple == 1 || every == 1;
                if shown && self.low <= value && value <= self.high {
                    let major = multiple == 1 && labelled;
                    let label = if major { power_of_ten(power) } else { String::new() };
                    ticks.push(Tick { value, label });
                }
            }
        }
        // Fewer than two labels would not show the scale.
        if ticks.iter().filter(|tick| !tick.label.is_empty()).count() < 2 {
            for tick in &mut ticks {
                let lead = (tick.value / powf(10.0, log10(tick.value).floor() + 1e-9)).round();
                if [1.0, 2.0, 5.0].contains(&lead) {
                    tick.label = label(tick.value, tick.value);
                }
            }
        }
        ticks
    }
}

fn bounds(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    Some((values.clone().reduce(f64::min)?, values.reduce(f64::max)?))
}

/// A tick's number, with the digits that its step needs.
fn label(value: f64, step: f64) -> String {
    if value == 0.0 || value.abs() < step * 1e-6 {
        return "0".into();
    }
    let text = match value.abs() {
        size if size >= 1e4 => return thousands(value),
        _ if step < 1e-4 => format!("{value:.1e}"),
        _ => format!("{value:.*}", (-(log10(step) + 1e-9).floor()).max(0.0) as usize),
    };
    text.replace('-', "\u{2212}")
}

fn thousands(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(unit, _)| value.abs() >= *unit) {
        Some((unit, letter)) if value.abs() < 1e15 => {
            let number = (value / unit * 1000.0).round() / 1000.0;
            format!("{number}{letter}").replace('-', "\u{2212}")
        }
        _ => format!("{value:.0e}").replace('-', "\u{2212}"),
    }
}

fn power_of_ten(power: i32) -> String {
    match power {
        0 => "1".into(),
        1 => "10".into(),
        _ => format!("10{}", raised(power)),
    }
}

fn raised(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raise = |letter: char| letter.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    number.to_string().chars().map(raise).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(low: f64, high: f64, log: bool) -> Vec<String> {
        let ticks = Scale { low, high, log }.ticks(5);
        ticks.into_iter().map(|tick| tick.label).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn round_numbers() {
        assert_eq!(labels(0.0, 1.0, false), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(0.62, 0.71, false), ["0.62", "0.64", "0.66", "0.68", "0.70"]);
        assert_eq!(labels(0.0, 1000.0, false), ["0", "200", "400", "600", "800", "1000"]);
        assert_eq!(labels(0.0, 50_000.0, false), ["0", "10k", "20k", "30k", "40k", "50k"]);
        assert_eq!(labels(-3.0, 3.0, false), ["\u{2212}2", "0", "2"]);
        assert_eq!(labels(0.0, 7.5e8, false), ["0", "200M", "400M", "600M"]);
    }

    #[test]
    fn powers_of_ten() {
        assert_eq!(labels(0.05, 20.0, true), ["10⁻¹", "1", "10"]);
        assert_eq!(labels(1e-20, 1e5, true), ["10⁻²⁰", "10⁻¹⁵", "10⁻¹⁰", "10⁻⁵", "1", "10⁵"]);
        assert_eq!(
            labels(0.3, 5.5, true),
            ["0.5", "1.0", "2", "5"].map(String::from).map(|l| if l == "1.0" {
                "1".into()
            } else {
                l
            })
        );
        assert_eq!(labels(2.0, 4.0, true), ["2.0", "2.5", "3.0", "3.5", "4.0"]);
    }

    proptest! {
        #[test]
        fn ticks_lie_on_their_axis(a in -1e12f64..1e12, size in 1e-9f64..1e12, log: bool) {
            let low = if log { a.abs() + 1e-9 } else { a };
            let scale = Scale { low, high: low + size, log };
            let ticks = scale.ticks(5);
            prop_assert!(ticks.len() <= 100);
            for tick in ticks {
                prop_assert!(scale.place(tick.value).is_some());
                prop_assert!(tick.value >= low - 1e-6 * size && tick.value <= low + size * (1.0 + 1e-6));
            }
        }
    }

    #[test]
    fn values_off_the_scale_have_no_position() {
        let scale = Scale::around([0.0, 1e-3, 10.0, f64::NAN], true);
        assert!(scale.log && scale.low > 0.0);
        assert_eq!(scale.place(0.0), None);
        assert_eq!(scale.place(f64::NAN), None);
        assert!(!Scale::around([0.0, -1.0], true).log);
        assert_eq!(Scale::from_start([5.0, 5.0], false).place(5.0), Some(0.0));
        let single = Scale::around([2.0], false);
        assert!((single.place(2.0).unwrap() - 0.5).abs() < 1e-9);
    }
}
