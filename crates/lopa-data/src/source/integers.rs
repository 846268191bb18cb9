//! Lines of comma-separated integers, the last one the label: covtype, digits.

use std::ops::RangeInclusive;

use crate::Features;
use crate::error::{Error, Result};
use crate::source::raw::Table;

/// Reads `features` numbers and a label from every line. Written by hand for speed: covtype has
/// thirty million numbers.
pub fn read(
    name: &str,
    text: &[u8],
    features: usize,
    allowed: RangeInclusive<u8>,
) -> Result<(Table, Vec<u8>)> {
    let lines = text.iter().filter(|&&byte| byte == b'\n').count() + 1;
    // Never reserves more numbers than the text can hold.
    let mut values = Vec::with_capacity((lines * features).min(text.len() / 2 + 1));
    let mut labels = Vec::with_capacity(lines);
    for (i, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let label = read_line(line, features, &mut values)
            .map_err(|error| error.at(format!("{name}:{}", i + 1)))?;
        let code = u8::try_from(label).ok().filter(|code| allowed.contains(code));
        labels.push(code.ok_or_else(|| {
            let (low, high) = (allowed.start(), allowed.end());
            Error::data(
                "data/bad-label",
                format!("the label {label} is not between {low} and {high}"),
            )
            .at(format!("{name}:{}", i + 1))
        })?);
    }
    if labels.is_empty() {
        return Err(Error::data("data/empty", "the file has no rows").at(name));
    }
    Ok((Table::Numbers(Features::Dense { cols: features, values }), labels))
}

fn read_line(line: &[u8], features: usize, values: &mut Vec<f64>) -> Result<i32> {
    let mut last = None;
    let mut count = 0;
    for cell in line.split(|&byte| byte == b',') {
        values.extend(last.replace(read_cell(cell, count)?).map(f64::from));
        count += 1;
    }
    match (last, count == features + 1) {
        (Some(label), true) => Ok(label),
        _ => Err(Error::data(
            "data/ragged",
            format!("the row has {count} numbers, not {} and a label", features),
        )),
    }
}

fn read_cell(cell: &[u8], column: usize) -> Result<i32> {
    let (negative, digits) = match cell.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, cell),
    };
    let right = (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    if !right {
        let cell = String::from_utf8_lossy(&cell[..cell.len().min(40)]);
        return Err(Error::data(
            "data/bad-number",
            format!("`{cell}` in column {column} is not an integer"),
        ));
    }
    let size = digits.iter().fold(0, |number, digit| number * 10 + i32::from(digit - b'0'));
    Ok(if negative { -size } else { size })
}
