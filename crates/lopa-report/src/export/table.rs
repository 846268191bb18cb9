//! The rows of a run as typed columns.

use lopa::folder::MetricsRow;

use crate::quantity;
use crate::saved::Saved;

/// A column.
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values, one per row.
    pub values: Values,
}

/// The values of a column.
pub enum Values {
    /// Words.
    Text(Vec<String>),
    /// Counts.
    Whole(Vec<u64>),
    /// Numbers; none where nothing was measured, or nothing finite.
    Number(Vec<Option<f64>>),
}

/// All rows: algorithm, seed, every cost and measure, and how the run of that algorithm and seed
/// ended (or the status of the folder, if it has not).
pub fn columns(saved: &Saved) -> Vec<Column> {
    let rows = &saved.rows;
    let mut names: Vec<String> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| row.row.quantities()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_string());
        }
    }
    quantity::sort(&mut names);
    let stop = |row: &MetricsRow| {
        let end = saved.results.iter().find(|entry| entry.is_of(&row.algorithm, row.seed));
        end.map_or(saved.manifest.status.name(), |entry| entry.stop.name()).to_string()
    };
    let text = |of: &dyn Fn(&MetricsRow) -> String| Values::Text(rows.iter().map(of).collect());
    let mut columns = vec![
        Column { name: "algorithm".into(), values: text(&|row| row.algorithm.clone()) },
        Column { name: "seed".into(), values: whole(rows, |row| row.seed) },
    ];
    columns.extend(names.into_iter().map(|name| Column { values: quantity(rows, &name), name }));
    columns.push(Column { name: "stop".into(), values: text(&stop) });
    columns
}

fn whole(rows: &[MetricsRow], of: impl Fn(&MetricsRow) -> u64) -> Values {
    Values::Whole(rows.iter().map(of).collect())
}

fn quantity(rows: &[MetricsRow], name: &str) -> Values {
    let finite = |row: &MetricsRow| row.row.value(name).filter(|value| value.is_finite());
    match name {
        "iteration" => whole(rows, |row| row.row.iteration),
        "exchanges" => whole(rows, |row| row.row.exchanges),
        "bytes" => whole(rows, |row| row.row.bytes),
        _ => Values::Number(rows.iter().map(finite).collect()),
    }
}
