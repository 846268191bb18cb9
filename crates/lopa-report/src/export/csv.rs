//! CSV (RFC 4180): numbers that read back to the bit, empty fields for missing measurements.

use lopa::folder::MetricsRow;

use crate::quantity;
use crate::saved::Saved;

/// The rows of a run: algorithm, seed, every cost and measure, and how the run of that algorithm and seed
/// ended (or the status of the folder, if it has not).
pub fn csv(saved: &Saved) -> String {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in saved.rows.iter().flat_map(|row| row.row.quantities()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_string());
        }
    }
    quantity::sort(&mut names);
    let head = ["algorithm", "seed"].into_iter().chain(names.iter().map(String::as_str));
    let mut out = line(head.chain(["stop"]).map(field));
    for row in &saved.rows {
        let values = names.iter().map(|name| number(row, name));
        let first = [field(&row.algorithm), row.seed.to_string()];
        out += &line(first.into_iter().chain(values).chain([field(stop(saved, row))]));
    }
    out
}

fn stop<'a>(saved: &'a Saved, row: &MetricsRow) -> &'a str {
    let end = saved.results.iter().find(|entry| entry.is_of(&row.algorithm, row.seed));
    end.map_or(saved.manifest.status.name(), |entry| entry.stop.name())
}

/// A count, a number that is finite, or nothing.
fn number(MetricsRow { row, .. }: &MetricsRow, name: &str) -> String {
    match name {
        "iteration" => row.iteration.to_string(),
        "exchanges" => row.exchanges.to_string(),
        "bytes" => row.bytes.to_string(),
        _ => match row.value(name).filter(|value| value.is_finite()) {
            Some(value) => format!("{value:?}"),
            None => String::new(),
        },
    }
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
