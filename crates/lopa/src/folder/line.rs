//! A line of `metrics.jsonl`: a measurement, its number in the file, and a checksum of both. Lines of
//! earlier versions have neither.
//!
//! ```text
//! {"algorithm":"lopa-gt","seed":1,"iteration":0, …,"check":"12-9af3c2d1"}
//! ```

use flate2::Crc;

use super::MetricsRow;

const CHECK: &str = ",\"check\":\"";

/// The n-th line, from 0, with its end.
pub fn write(row: &MetricsRow, number: u64) -> String {
    let row = serde_json::to_string(row).expect("a row is JSON");
    let row = row.strip_suffix('}').expect("a row is an object");
    format!("{row}{CHECK}{number}-{:08x}\"}}\n", sum_of(row, number))
}

/// The damage of a line with valid JSON, if it is not the n-th line, from 0, as written. `checked`
/// if earlier lines have checksums.
pub fn fault(line: &[u8], number: u64, checked: &mut bool) -> Option<String> {
    let line = std::str::from_utf8(line).unwrap_or_default().trim_end();
    let check = line.rfind(CHECK).and_then(|at| {
        let check = line[at + CHECK.len()..].strip_suffix("\"}")?;
        let (number, sum) = check.split_once('-')?;
        Some((&line[..at], number.parse().ok()?, u32::from_str_radix(sum, 16).ok()?))
    });
    let Some((row, said, known)) = check else {
        return checked.then(|| "it has no checksum".into());
    };
    *checked = true;
    if sum_of(row, said) != known {
        return Some("its checksum does not match".into());
    }
    (said != number)
        .then(|| format!("it is measurement {} at the place of {}", said + 1, number + 1))
}

fn sum_of(row: &str, number: u64) -> u32 {
    sum(&[row.as_bytes(), &number.to_le_bytes()])
}

/// A checksum of bytes.
pub fn sum(parts: &[&[u8]]) -> u32 {
    let mut crc = Crc::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.sum()
}
