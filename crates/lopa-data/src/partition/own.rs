//! Per-node files.

use super::{Partition, Rows};
use crate::config::NoParams;
use crate::error::{Error, Result};

/// Its name.
pub const NAME: &str = "own";

/// Each node has the rows of its files; nodes of other processes have none here.
pub fn own(_: &NoParams, rows: &Rows) -> Result<Partition> {
    let Some(own) = rows.own else {
        let message = "the data has no per-node files";
        return Err(Error::config("partition/no-files", message)
            .hint("name the nodes in the data section: `nodes = [\"alice\", \"bob\"]`"));
    };
    let nodes = own.iter().map(|range| range.clone().collect()).collect();
    // The order of a node's rows depends only on these rows.
    Ok(Partition { nodes }.mixed(rows.seed))
}
