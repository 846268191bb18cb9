//! The text of an answer.

use serde_json::Value;

use crate::output::Output;
use lopa::math::portable::log10;

/// The answer of a command: for people, and for scripts.
pub struct Answer {
    pub text: String,
    pub document: Value,
}

/// A section with its heading.
pub fn section(title: &str, body: &str, output: &Output) -> String {
    match output.markdown() {
        true => format!("## {title}\n\n{body}\n\n"),
        false => format!("{title}\n{body}\n\n"),
    }
}

/// A number with three significant digits.
pub fn short(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        _ if !value.is_finite() => "–".into(),
        _ if (0.01..1000.0).contains(&value.abs()) => {
            let digits = (2 - log10(value.abs()).floor() as i32).max(0) as usize;
            format!("{value:.digits$}")
        }
        _ => format!("{value:.1e}"),
    }
}
