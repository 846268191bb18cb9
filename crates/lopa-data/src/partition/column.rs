//! Partitions by the values of a column.

use super::{Partition, Rows, cut, even};
use crate::config::NoParams;
use crate::error::{Error, Result};
use crate::params;

params! {
    /// Parameters of `column`.
    pub struct Column {
        /// The feature column, numbered from 0.
        column: usize = 0, required;
    }
}

/// Node 0 holds the samples with the lowest values of the column, the last node the highest.
pub fn column(params: &Column, rows: &Rows) -> Result<Partition> {
    let Column { column } = params.clone();
    let cols = rows.train.cols();
    if column >= cols {
        let message = format!("there is no feature column {column}: the data has {cols}");
        return Err(Error::config("data/no-column", message)
            .hint(format!("feature columns are numbered 0 to {}", cols - 1)));
    }
    let mut values = vec![0.0; rows.len()];
    for (row, value) in values.iter_mut().enumerate() {
        rows.train.each(row, |j, entry| {
            if j == column {
                *value = entry;
            }
        });
    }
    // Shuffled before the (stable) sort, so that equal values are split at random.
    let mut sorted = rows.shuffled(&mut rows.stream());
    sorted.sort_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
    Ok(Partition { nodes: cut(&sorted, &even(sorted.len(), rows.nodes)) }.mixed(rows.seed))
}

/// One group per node, in order; if there are more groups, the largest first to the emptiest node.
pub fn group(_: &NoParams, rows: &Rows) -> Result<Partition> {
    let Some(groups) = rows.groups else {
        return Err(Error::config("partition/no-groups", "the data has no groups")
            .hint("name their column: `group = \"hospital\"` in the data section of a CSV"));
    };
    let mut members = vec![Vec::new(); groups.names.len()];
    for row in rows.shuffled(&mut rows.stream()) {
        members[groups.of[row as usize] as usize].push(row);
    }
    members.retain(|members| !members.is_empty());
    if members.len() < rows.nodes {
        let message = format!("{} groups cannot fill {} nodes", members.len(), rows.nodes);
        return Err(Error::data("partition/too-few-groups", message).hint("take fewer nodes"));
    }
    if members.len() > rows.nodes {
        members.sort_by_key(|members| std::cmp::Reverse(members.len()));
    }
    let mut nodes = vec![Vec::new(); rows.nodes];
    for members in members {
        let emptiest = nodes.iter_mut().min_by_key(|node| node.len()).expect("there is a node");
        emptiest.extend(members);
    }
    Ok(Partition { nodes }.mixed(rows.seed))
}
