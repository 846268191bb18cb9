//! Parquet: plain pages without compression, one per column and row group. Every reader knows these.

use std::ops::Range;

use super::table::{Column, Values, columns};
use super::thrift::{Struct, varint};
use crate::saved::Saved;

const MAGIC: &[u8] = b"PAR1";
/// Rows of a group: what a reader holds at once.
const GROUP: usize = 1 << 16;

// Names and numbers of the format's enumerations.
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
const UTF8: i32 = 0;
const UINT_64: i32 = 14;
const PLAIN: i32 = 0;
const RLE: i32 = 3;

/// The rows of a run as a Parquet file.
pub fn parquet(saved: &Saved) -> Vec<u8> {
    let columns = columns(saved);
    let rows = saved.rows.len();
    let mut file = MAGIC.to_vec();
    let mut groups = Vec::new();
    for start in (0..rows).step_by(GROUP) {
        let part = start..rows.min(start + GROUP);
        let before = file.len();
        let chunks = columns.iter().map(|column| column.write(part.clone(), &mut file)).collect();
        groups.push(
            Struct::default().groups(1, chunks).i64(2, file.len() - before).i64(3, part.len()),
        );
    }
    let root = Struct::default().text(4, "lopa").i32(5, columns.len() as i32);
    let schema = [root].into_iter().chain(columns.iter().map(Column::schema)).collect();
    let run = Struct::default().text(1, "lopa.run").text(2, &saved.name);
    let metadata = Struct::default()
        .i32(1, 1)
        .groups(2, schema)
        .i64(3, rows)
        .groups(4, groups)
        .groups(5, vec![run])
        .text(6, concat!("lopa version ", env!("CARGO_PKG_VERSION")))
        .done();
    file.extend(&metadata);
    file.extend((metadata.len() as u32).to_le_bytes());
    file.extend(MAGIC);
    file
}

impl Column {
    fn schema(&self) -> Struct {
        let (kind, optional, meaning) = match self.values {
            Values::Text(_) => (BYTE_ARRAY, 0, Some(UTF8)),
            Values::Whole(_) => (INT64, 0, Some(UINT_64)),
            Values::Number(_) => (DOUBLE, 1, None),
        };
        let element = Struct::default().i32(1, kind).i32(3, optional).text(4, &self.name);
        match meaning {
            Some(meaning) => element.i32(6, meaning),
            None => element,
        }
    }

    /// Writes some rows of the column as a page; returns the metadata of the chunk.
    fn write(&self, part: Range<usize>, file: &mut Vec<u8>) -> Struct {
        let rows = part.len();
        let (kind, page) = match &self.values {
            Values::Text(values) => (BYTE_ARRAY, values[part].iter().flat_map(text).collect()),
            Values::Whole(values) => {
                (INT64, values[part].iter().flat_map(|value| value.to_le_bytes()).collect())
            }
            Values::Number(values) => (DOUBLE, numbers(&values[part])),
        };
        let data = Struct::default().i32(1, rows as i32).i32(2, PLAIN).i32(3, RLE).i32(4, RLE);
        let size = page.len() as i32;
        let header = Struct::default().i32(1, 0).i32(2, size).i32(3, size).group(5, data).done();
        let (at, whole) = (file.len(), header.len() + page.len());
        file.extend(header);
        file.extend(page);
        let metadata = Struct::default()
            .i32(1, kind)
            .i32s(2, &[PLAIN, RLE])
            .texts(3, &[&self.name])
            .i32(4, 0)
            .i64(5, rows)
            .i64(6, whole)
            .i64(7, whole)
            .i64(9, at);
        Struct::default().i64(2, at).group(3, metadata)
    }
}

fn text(text: &String) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
}

/// Which values are there, as runs of equal levels, then those values.
fn numbers(values: &[Option<f64>]) -> Vec<u8> {
    let mut levels = Vec::new();
    for run in values.chunk_by(|a, b| a.is_some() == b.is_some()) {
        levels.extend(varint((run.len() as u64) << 1));
        levels.push(run[0].is_some().into());
    }
    let mut page = (levels.len() as u32).to_le_bytes().to_vec();
    page.extend(levels);
    page.extend(values.iter().flatten().flat_map(|value| value.to_le_bytes()));
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_numbers_are_levels_without_values() {
        let page = numbers(&[Some(1.5), None, None, Some(2.5)]);
        assert_eq!(page[..4], 6u32.to_le_bytes());
        assert_eq!(page[4..10], [2, 1, 4, 0, 2, 1]);
        assert_eq!(page[10..18], 1.5f64.to_le_bytes());
        assert_eq!(page[18..], 2.5f64.to_le_bytes());
    }
}
