//! Partitions by class: some classes per node, or shards of sorted labels.

use super::{Partition, Rows, cut, even};
use crate::error::{Error, Result};
use crate::math::random::Stream;
use crate::params;

params! {
    /// Parameters of `classes`.
    pub struct Classes {
        /// Classes per node.
        per_node: usize = 2, required, at_least(1);
        /// Samples per node, in equal shares of its classes while these last; by default all samples of
        /// the classes in use.
        samples: Option<usize> = None, at_least(1);
    }
}

pub fn classes(params: &Classes, rows: &Rows) -> Result<Partition> {
    let Classes { per_node, samples } = params.clone();
    let mut stream = rows.stream();
    let by_class = rows.by_class(&mut stream);
    let present: Vec<usize> = (0..rows.classes).filter(|&c| !by_class[c].is_empty()).collect();
    if per_node > present.len() {
        let message = format!("a node cannot hold {per_node} of {} classes", present.len());
        return Err(Error::config("partition/too-few-classes", message).hint("lower `per_node`"));
    }
    let held = choose(present, per_node, rows.nodes, &mut stream);
    let stock: Vec<usize> = by_class.iter().map(Vec::len).collect();
    let taken = match samples {
        None => share_out(&held, &stock),
        Some(samples) => {
            rows.enough(samples)?;
            deal(&held, stock, samples).map_err(|node| short(node, samples, &held[node]))?
        }
    };
    let mut nodes = vec![Vec::new(); rows.nodes];
    for (class, all) in by_class.iter().enumerate() {
        let sizes: Vec<usize> = taken.iter().map(|taken| taken[class]).collect();
        for (node, piece) in nodes.iter_mut().zip(cut(all, &sizes)) {
            node.extend(piece);
        }
    }
    Ok(Partition { nodes }.mixed(rows.seed))
}

/// Random classes for every node; the number of nodes per class differs by at most one.
fn choose(
    mut classes: Vec<usize>,
    per_node: usize,
    nodes: usize,
    stream: &mut Stream,
) -> Vec<Vec<usize>> {
    let mut holders = vec![0; classes.iter().max().map_or(0, |&class| class + 1)];
    let mut one = || {
        stream.shuffle(&mut classes);
        classes.sort_by_key(|&class| holders[class]);
        let mut chosen = classes[..per_node].to_vec();
        chosen.iter().for_each(|&class| holders[class] += 1);
        chosen.sort_unstable();
        chosen
    };
    (0..nodes).map(|_| one()).collect()
}

/// Divides all samples of every class equally among the nodes that hold it.
fn share_out(held: &[Vec<usize>], stock: &[usize]) -> Vec<Vec<usize>> {
    let mut taken = vec![vec![0; stock.len()]; held.len()];
    for (class, &stock) in stock.iter().enumerate() {
        let holders: Vec<usize> = (0..held.len()).filter(|&i| held[i].contains(&class)).collect();
        for (&node, share) in holders.iter().zip(even(stock, holders.len().max(1))) {
            taken[node][class] = share;
        }
    }
    taken
}

/// The number of samples of each class that each node takes, `samples` in all from its classes; if
/// there are too few, the node that lacks them.
///
/// Nodes take turns, one sample at a time, from the class they have fewest of. If the classes of a
/// node are exhausted, others swap along an augmenting path: a solution is found if there is one.
fn deal(
    held: &[Vec<usize>],
    mut stock: Vec<usize>,
    samples: usize,
) -> Result<Vec<Vec<usize>>, usize> {
    let mut taken = vec![vec![0; stock.len()]; held.len()];
    for _ in 0..samples {
        for node in 0..held.len() {
            let left = held[node].iter().copied().filter(|&class| stock[class] > 0);
            match left.min_by_key(|&class| (taken[node][class], usize::MAX - stock[class])) {
                Some(class) => {
                    taken[node][class] += 1;
                    stock[class] -= 1;
                }
                None => swap(node, held, &mut stock, &mut taken).ok_or(node)?,
            }
        }
    }
    Ok(taken)
}

/// Frees a sample of one of the node's classes and takes it, if a chain of swaps can do so.
fn swap(
    node: usize,
    held: &[Vec<usize>],
    stock: &mut [usize],
    taken: &mut [Vec<usize>],
) -> Option<()> {
    // Breadth first. For each class reached: the node that takes it, and the class that this node
    // gives up.
    let mut reached: Vec<Option<(usize, usize)>> = vec![None; stock.len()];
    let mut queue = std::collections::VecDeque::from(held[node].clone());
    while let Some(class) = queue.pop_front() {
        for holder in (0..held.len()).filter(|&holder| taken[holder][class] > 0) {
            for &other in &held[holder] {
                if reached[other].is_some() || held[node].contains(&other) {
                    continue;
                }
                reached[other] = Some((holder, class));
                queue.push_back(other);
                if stock[other] == 0 {
                    continue;
                }
                stock[other] -= 1;
                let mut gained = other;
                while let Some((holder, lost)) = reached[gained] {
                    taken[holder][gained] += 1;
                    taken[holder][lost] -= 1;
                    gained = lost;
                }
                taken[node][gained] += 1;
                return Some(());
            }
        }
    }
    None
}

fn short(node: usize, samples: usize, classes: &[usize]) -> Error {
    let message =
        format!("node {node} cannot have {samples} samples: its classes {classes:?} run out");
    Error::data("partition/too-few-samples", message).hint("lower `samples`, or raise `per_node`")
}

params! {
    /// Parameters of `shards`.
    pub struct Shards {
        /// Shards per node.
        per_node: usize = 2, at_least(1);
    }
}

pub fn shards(params: &Shards, rows: &Rows) -> Result<Partition> {
    let Shards { per_node } = params.clone();
    rows.enough(per_node)?;
    let mut stream = rows.stream();
    let sorted = rows.by_class(&mut stream).concat();
    let mut shards = cut(&sorted, &even(sorted.len(), per_node * rows.nodes));
    stream.shuffle(&mut shards);
    let nodes = shards.chunks(per_node).map(|shards| shards.concat()).collect();
    Ok(Partition { nodes }.mixed(rows.seed))
}
