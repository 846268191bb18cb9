//! Partitions that ignore labels.

use super::dirichlet::dirichlet;
use super::{Partition, Rows, cut, near, sizes};
use crate::error::{Error, Fault, Result};
use crate::math::portable::powf;
use crate::params;

params! {
    /// Parameters of `iid`.
    pub struct Iid {
        /// Samples per node; by default all are used.
        samples: Option<usize> = None, at_least(1);
    }
}

pub fn iid(params: &Iid, rows: &Rows) -> Result<Partition> {
    let Iid { samples } = params.clone();
    let sizes = sizes(rows, samples)?;
    Ok(Partition { nodes: cut(&rows.shuffled(&mut rows.stream()), &sizes) })
}

params! {
    /// Parameters of `quantity`.
    pub struct Quantity {
        /// The number of samples of each node.
        sizes: Option<Vec<usize>> = None;
        /// Node i = 1, 2, … gets a share proportional to i to this power (1).
        power: Option<f64> = None, from_to(-100.0, 100.0);
        /// Shares are drawn from a Dirichlet distribution with this parameter.
        alpha: Option<f64> = None, from_to(1e-6, 1e6);
        /// Minimum samples per node.
        min_size: usize = 1, at_least(1);
    }
    check |quantity| {
        let Quantity { sizes, power, alpha, .. } = quantity;
        let ways = [sizes.is_some(), power.is_some(), alpha.is_some()];
        if ways.iter().filter(|&&way| way).count() > 1 {
            let message = "only one of `sizes`, `power` and `alpha` can be given".into();
            return Err(Fault { key: "sizes", message });
        }
        let sizes = sizes.as_deref().unwrap_or_default();
        Fault::unless(!sizes.contains(&0), "sizes", format_args!("{sizes:?}"), "at least 1 each")
    }
}

pub fn quantity(params: &Quantity, rows: &Rows) -> Result<Partition> {
    let Quantity { sizes, power, alpha, min_size } = params.clone();
    rows.enough(min_size)?;
    let mut stream = rows.stream();
    if let Some(sizes) = sizes {
        check_sizes(&sizes, rows)?;
        return Ok(Partition { nodes: cut(&rows.shuffled(&mut stream), &sizes) });
    }
    let shares = match alpha {
        Some(alpha) => dirichlet(&mut stream, alpha, rows.nodes),
        None => {
            let weight = |i| powf((i + 1) as f64 / rows.nodes as f64, power.unwrap_or(1.0));
            let sum: f64 = (0..rows.nodes).map(weight).sum();
            (0..rows.nodes).map(|i| weight(i) / sum).collect()
        }
    };
    let all = rows.shuffled(&mut stream);
    Ok(Partition { nodes: cut(&all, &near(all.len(), &shares)) }.repaired(min_size))
}

fn check_sizes(sizes: &[usize], rows: &Rows) -> Result<()> {
    if sizes.len() != rows.nodes {
        let message = format!("`sizes` has {} numbers for {} nodes", sizes.len(), rows.nodes);
        return Err(Error::config("partition/wrong-nodes", message).hint("give one per node"));
    }
    let wanted = sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
    match wanted.is_some_and(|wanted| wanted <= rows.len()) {
        true => Ok(()),
        false => Err(Error::data(
            "partition/too-few-samples",
            format!("`sizes` adds up to more than the {} available samples", rows.len()),
        )
        .hint("take fewer")),
    }
}
