//! A small part of wide, sparse data, for trials: some rows, and the columns that these rows have.
//!
//! A classifier has a weight for each column and class. Its exact solution takes products of such
//! vectors by the hundred, and more of them where most columns are hardly ever filled. A column that no
//! row has does not matter to any of them, so that it is left out without changing a result.

use lopa::data::{Data, Dataset, Features, Groups};
use lopa::math::random::{Purpose, Stream};

/// The number of rows that a node keeps, if it has as many.
const ROWS_PER_NODE: usize = 20;

/// The data with so few rows that they have at most `weights` columns times classes, if that is
/// possible with some rows for each of the nodes.
pub fn narrow(data: Data, nodes: usize, weights: usize) -> Data {
    let classes = data.target().width().max(1);
    let sparse = matches!(data.train.features(), Features::Sparse { .. });
    if !sparse || data.train.cols() * classes <= weights {
        return data;
    }
    let mut share = 1.0;
    let (rows, columns) = loop {
        let rows = drawn(&data.train, share);
        let columns = occupied(&data.train, &rows);
        if columns.len() * classes <= weights || rows.len() <= ROWS_PER_NODE * nodes {
            break (rows, columns);
        }
        share *= 0.7;
    };
    let train = part(&data.train, &rows, &columns);
    let test = part(&data.test, &drawn(&data.test, share), &columns);
    Data { train, test, columns: None, ..data }
}

/// A random share of the rows, the same for every owner.
fn drawn(set: &Dataset, share: f64) -> Vec<u32> {
    let whole = 0..set.len() as u32;
    let ranges = set.owners().unwrap_or(std::slice::from_ref(&whole));
    let mut all = Vec::new();
    for (owner, range) in ranges.iter().enumerate() {
        let mut rows: Vec<u32> = range.clone().collect();
        Stream::new(0, Purpose::Data, owner).shuffle(&mut rows);
        rows.truncate((share * rows.len() as f64).ceil() as usize);
        rows.sort_unstable();
        all.extend(rows);
    }
    all
}

/// The columns that some rows have.
fn occupied(set: &Dataset, rows: &[u32]) -> Vec<usize> {
    let mut has = vec![false; set.cols()];
    rows.iter().for_each(|&row| set.each(row as usize, |j, _| has[j] = true));
    (0..set.cols()).filter(|&j| has[j]).collect()
}

fn part(set: &Dataset, rows: &[u32], columns: &[usize]) -> Dataset {
    let features = set.features().select(rows).columns_at(columns);
    let labels = rows.iter().map(|&row| set.labels()[row as usize]).collect();
    let mut part = Dataset::new(features, labels);
    if let Some(targets) = set.targets() {
        part = part.targeted(targets.select(rows));
    }
    if let Some(Groups { of, names }) = set.groups() {
        let of = rows.iter().map(|&row| of[row as usize]).collect();
        part = part.grouped(Groups { of, names: names.clone() });
    }
    if let Some(owners) = set.owners() {
        let start =
            |range: &std::ops::Range<u32>| rows.partition_point(|row| *row < range.start) as u32;
        let end =
            |range: &std::ops::Range<u32>| rows.partition_point(|row| *row < range.end) as u32;
        part = part.owned(owners.iter().map(|range| start(range)..end(range)).collect());
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use lopa::data::Scalings;

    /// 200 rows, each with a column of its own and one of ten common ones.
    fn wide() -> Dataset {
        let columns: Vec<u32> = (0..200u32).flat_map(|row| [row % 10, 10 + row]).collect();
        let starts = (0..=200).map(|row| 2 * row).collect();
        let values = (0..400).map(f64::from).collect();
        let labels = (0..200).map(|row| row % 2).collect();
        Dataset::new(Features::Sparse { cols: 1000, starts, columns, values }, labels)
    }

    #[test]
    fn rows_keep_what_they_have_and_no_other_column_stays() {
        let data = Data {
            train: wide(),
            test: wide(),
            classes: vec!["a".into(), "b".into()],
            outputs: Vec::new(),
            survival: false,
            scaling: Scalings::default(),
            columns: None,
            unnamed: Default::default(),
            own: None,
            left_out: Vec::new(),
        };
        let narrow = narrow(data, 2, 150);
        let (rows, cols) = (narrow.train.len(), narrow.train.cols());
        assert!(2 * cols <= 150 && (40..=65).contains(&rows), "{rows} x {cols}");
        let whole = wide();
        let mut found = [false; 200];
        for row in 0..rows {
            let mut values = Vec::new();
            narrow.train.each(row, |_, value| values.push(value));
            let at = (0..200).find(|&at| {
                let mut own = Vec::new();
                whole.each(at, |_, value| own.push(value));
                own == values && whole.labels()[at] == narrow.train.labels()[row]
            });
            found[at.expect("a row of the whole")] = true;
        }
        assert_eq!(found.iter().filter(|found| **found).count(), rows);
    }
}
