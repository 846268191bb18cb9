//! CSV (RFC 4180): numbers that read back to the bit, empty fields for what was not measured.

use super::table::{Values, columns};
use crate::saved::Saved;

/// The rows of a run as CSV.
pub fn csv(saved: &Saved) -> String {
    let columns = columns(saved);
    let mut out = line(columns.iter().map(|column| field(&column.name)));
    for row in 0..saved.rows.len() {
        out += &line(columns.iter().map(|column| match &column.values {
            Values::Text(values) => field(&values[row]),
            Values::Whole(values) => values[row].to_string(),
            Values::Number(values) => {
                values[row].map_or(String::new(), |value| format!("{value:?}"))
            }
        }));
    }
    out
}

fn line(fields: impl Iterator<Item = String>) -> String {
    fields.collect::<Vec<_>>().join(",") + "\n"
}

fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_are_quoted_where_needed() {
        assert_eq!(field("lopa-gt"), "lopa-gt");
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(field("a\"b\n"), "\"a\"\"b\n\"");
    }
}
