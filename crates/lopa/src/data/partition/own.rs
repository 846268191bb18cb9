//! Nodes that have files of their own.

use super::{Partition, Rows};
use crate::config::NoParams;
use crate::error::{Error, Result};

/// What it is called.
pub const NAME: &str = "own";

/// Each node has the rows of its own files, and nodes elsewhere have none here.
pub fn own(_: &NoParams, rows: &Rows) -> Result<Partition> {
    let Some(own) = rows.own else {
        let message = "the nodes have no files of their own to go by";
        return Err(Error::config("partition/no-files", message)
            .hint("name the nodes in the data section: `nodes = [\"alice\", \"bob\"]`"));
    };
    let nodes = own.iter().map(|range| range.clone().collect()).collect();
    // Each node's order depends on its own rows alone.
    Ok(Partition { nodes }.mixed(rows.seed))
}
