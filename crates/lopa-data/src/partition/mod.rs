//! Partitions: which training rows each node holds.

mod class;
mod column;
mod dirichlet;
mod even;
mod file;
mod own;
mod proportion;

use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{Dataset, Groups};
use crate::config::{Choice, Entry, Params, Registry};
use crate::error::{Error, Result};
use crate::math::random::{Purpose, Stream};
use crate::store::bytes::hex;

/// Which training rows each node holds, in random order: any part of a node's list is a fair draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The rows of each node.
    pub nodes: Vec<Vec<u32>>,
}

/// The training rows to split, and the number of nodes.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The class number of each row.
    pub labels: &'a [u32],
    /// The number of classes.
    pub classes: usize,
    /// The training set.
    pub train: &'a Dataset,
    /// The groups of the rows, if they have any.
    pub groups: Option<&'a Groups>,
    /// The rows of each node's own files, if nodes have any.
    pub own: Option<&'a [Range<u32>]>,
    /// The number of nodes.
    pub nodes: usize,
    /// The seed of the draws.
    pub seed: u64,
}

impl<'a> Rows<'a> {
    /// The rows of a training set.
    pub fn of(train: &'a Dataset, classes: usize, nodes: usize, seed: u64) -> Rows<'a> {
        let (labels, groups, own) = (train.labels(), train.groups(), train.owners());
        Rows { labels, classes, train, groups, own, nodes, seed }
    }

    /// How many rows there are.
    fn len(&self) -> usize {
        self.labels.len()
    }

    /// The random numbers of the split itself.
    fn stream(&self) -> Stream {
        let mut stream = Stream::new(self.seed, Purpose::Data, 0);
        stream.seek(SPLIT, 0);
        stream
    }

    /// All rows in random order.
    fn shuffled(&self, stream: &mut Stream) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.len() as u32).collect();
        stream.shuffle(&mut rows);
        rows
    }

    /// The rows of each class, in random order.
    fn by_class(&self, stream: &mut Stream) -> Vec<Vec<u32>> {
        let mut classes = vec![Vec::new(); self.classes];
        for row in self.shuffled(stream) {
            classes[self.labels[row as usize] as usize].push(row);
        }
        classes
    }

    /// Refuses to give every node `each` rows where there are not enough.
    fn enough(&self, each: usize) -> Result<()> {
        match self.nodes.checked_mul(each).is_some_and(|all| all <= self.len()) {
            true => Ok(()),
            false => {
                let (rows, nodes) = (self.len(), self.nodes);
                let message =
                    format!("{nodes} nodes with {each} samples each need more than {rows}");
                Err(Error::data("partition/too-few-samples", message).hint(format!(
                    "there are {} samples for each node; take fewer, or fewer nodes",
                    rows / nodes
                )))
            }
        }
    }
}

// Indices of draws in the stream; the preparation has the first two.
const SPLIT: u64 = 2;
const ORDER: u64 = 3;
const HELD: u64 = 4;

/// Splits rows over nodes.
pub type PartitionBuild = dyn Fn(&Rows) -> Result<Partition> + Send + Sync;

/// The partitions that come with the library.
pub fn partitions() -> Registry<PartitionBuild> {
    let entries = vec![
        partition_entry("iid", "every node gets a fair draw of all samples", even::iid),
        partition_entry(
            "classes",
            "every node holds k of the classes, in equal shares",
            class::classes,
        ),
        partition_entry(
            "shards",
            "samples sorted by label, cut into shards, some shards for each node",
            class::shards,
        ),
        partition_entry(
            "dirichlet-class",
            "each class is spread over the nodes by a Dirichlet draw; sizes vary",
            dirichlet::by_class,
        ),
        partition_entry(
            "dirichlet-node",
            "each node mixes the classes by a Dirichlet draw; sizes are equal",
            dirichlet::by_node,
        ),
        partition_entry(
            "label-proportion",
            "two classes, mostly the first in one half of the nodes and the second in the other",
            proportion::proportion,
        ),
        partition_entry("quantity", "fair draws of different sizes", even::quantity),
        partition_entry(
            "column",
            "samples sorted by a feature and cut into equal parts",
            column::column,
        ),
        partition_entry(
            "group",
            "whole groups, such as hospitals, by the group column of the data",
            column::group,
        ),
        partition_entry(
            own::NAME,
            "every node has the rows of its own files (`nodes` in the data section)",
            own::own,
        ),
        partition_entry("file", "as a partition file says", file::file),
    ];
    Registry::new("partition", entries)
}

/// An entry of the registry: `split` assigns rows to nodes.
pub fn partition_entry<P: Params>(
    name: impl Into<String>,
    about: impl Into<String>,
    split: fn(&P, &Rows) -> Result<Partition>,
) -> Entry<PartitionBuild> {
    Entry::new(name, about, move |params: P| -> Arc<PartitionBuild> {
        Arc::new(move |rows: &Rows| split(&params, rows))
    })
}

/// Splits the rows as chosen; every node gets at least one, and no row goes to two nodes.
pub fn split(choice: &Choice<PartitionBuild>, rows: &Rows) -> Result<Partition> {
    if rows.nodes == 0 {
        return Err(Error::config("partition/no-nodes", "there is no node to hold samples"));
    }
    if choice.name == own::NAME {
        // Files of other nodes may be missing in this process; each file that was read has rows.
        return (choice.build)(rows);
    }
    rows.enough(1)?;
    let partition = (choice.build)(rows)?;
    partition.check(&choice.name, rows)?;
    Ok(partition)
}

impl Partition {
    /// Every node has rows, and no row belongs to two nodes.
    fn check(&self, name: &str, rows: &Rows) -> Result<()> {
        if let Some(node) = self.nodes.iter().position(Vec::is_empty) {
            let message = format!("the partition `{name}` leaves node {node} without samples");
            return Err(Error::data("partition/empty-node", message)
                .hint("take fewer nodes, or another partition"));
        }
        let mut seen = vec![false; rows.len()];
        let mut once = |&row: &u32| {
            seen.get_mut(row as usize).is_some_and(|seen| !std::mem::replace(seen, true))
        };
        match self.nodes.len() == rows.nodes && self.nodes.iter().flatten().all(&mut once) {
            true => Ok(()),
            false => Err(Error::data(
                "partition/malformed",
                format!(
                    "the partition `{name}` is malformed: it must give {} nodes rows below {}, \
                     each row to one node at most",
                    rows.nodes,
                    rows.len()
                ),
            )),
        }
    }

    /// Puts every node's rows in random order.
    fn mixed(mut self, seed: u64) -> Partition {
        for (node, rows) in self.nodes.iter_mut().enumerate() {
            let mut stream = Stream::new(seed, Purpose::Data, node);
            stream.seek(ORDER, 0);
            stream.shuffle(rows);
        }
        self
    }

    /// Moves rows from the largest node to the smallest until all have `least`.
    fn repaired(mut self, least: usize) -> Partition {
        loop {
            let by_size = |&i: &usize| (self.nodes[i].len(), i);
            let small = (0..self.nodes.len()).min_by_key(by_size).expect("there is a node");
            let large = (0..self.nodes.len()).max_by_key(by_size).expect("there is a node");
            if self.nodes[small].len() >= least || self.nodes[large].len() <= least {
                return self;
            }
            let row = self.nodes[large].pop().expect("the largest node has rows");
            self.nodes[small].push(row);
        }
    }

    /// Takes a share of every node's rows out of the partition and returns them: at least one, and
    /// the same share of each class, up to rounding; none of those for validation. The draw depends
    /// only on the seed and the node: it is the same in every process.
    pub fn hold_out(
        &mut self,
        share: f64,
        labels: &[u32],
        validation: Option<&[bool]>,
        seed: u64,
    ) -> Result<Vec<Vec<u32>>> {
        let mut held = Vec::new();
        for (node, rows) in self.nodes.iter_mut().enumerate() {
            let trains = |at: &usize| validation.is_none_or(|marks| !marks[rows[*at] as usize]);
            let mut order: Vec<usize> = (0..rows.len()).filter(trains).collect();
            let all = order.len();
            if all == 1 {
                let message = format!("node {node} has a single row, and cannot hold one out");
                return Err(Error::data("partition/too-few-samples", message)
                    .hint("leave `holdout` out, or take fewer nodes"));
            }
            // Rows of other nodes' files may be missing in this process.
            let count = ((share * all as f64).round() as usize).clamp(1, all.max(2) - 1).min(all);
            let mut stream = Stream::new(seed, Purpose::Data, node);
            stream.seek(HELD, 0);
            stream.shuffle(&mut order);
            // Sorted by class, and then taken at equal distances.
            order.sort_by_key(|&at| labels[rows[at] as usize]);
            let mut out = vec![false; rows.len()];
            (0..count).for_each(|i| out[order[(2 * i + 1) * all / (2 * count)]] = true);
            let mut own = out.iter();
            let mut taken = Vec::new();
            rows.retain(|&row| {
                let out = own.next() == Some(&true);
                if out {
                    taken.push(row);
                }
                !out
            });
            held.push(taken);
        }
        Ok(held)
    }

    /// How many samples of each class each node has.
    pub fn counts(&self, labels: &[u32], classes: usize) -> Vec<Vec<usize>> {
        let count = |rows: &Vec<u32>| {
            let mut counts = vec![0; classes];
            rows.iter().for_each(|&row| counts[labels[row as usize] as usize] += 1);
            counts
        };
        self.nodes.iter().map(count).collect()
    }

    /// SHA-256, in hexadecimal, of every node's rows in their order.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update((self.nodes.len() as u64).to_le_bytes());
        for rows in &self.nodes {
            hash.update((rows.len() as u64).to_le_bytes());
            rows.iter().for_each(|row| hash.update(row.to_le_bytes()));
        }
        hex(&hash.finalize())
    }
}

/// Cuts a list into consecutive pieces of the given sizes; the rest is dropped.
fn cut(rows: &[u32], sizes: &[usize]) -> Vec<Vec<u32>> {
    let mut rest = rows;
    let piece = |&size: &usize| {
        let (piece, after) = rest.split_at(size);
        rest = after;
        piece.to_vec()
    };
    sizes.iter().map(piece).collect()
}

/// Samples of every node: the number given, else equal parts of all.
fn sizes(rows: &Rows, samples: Option<usize>) -> Result<Vec<usize>> {
    rows.enough(samples.unwrap_or(1))?;
    Ok(samples.map_or_else(|| even(rows.len(), rows.nodes), |each| vec![each; rows.nodes]))
}

/// `total` in `parts` whole numbers that differ by at most one.
fn even(total: usize, parts: usize) -> Vec<usize> {
    (0..parts).map(|part| total / parts + usize::from(part < total % parts)).collect()
}

/// `total` in whole numbers near the given shares, which sum to one.
fn near(total: usize, shares: &[f64]) -> Vec<usize> {
    let mut sum = 0.0;
    let mut ends: Vec<usize> = shares
        .iter()
        .map(|share| {
            sum += share;
            ((sum * total as f64).round() as usize).min(total)
        })
        .collect();
    ends.pop();
    ends.push(total);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, end)| end - start).collect()
}
