//! Partitions that ignore labels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dirichlet::dirichlet;
use super::{Partition, Rows, cut, even, near};
use crate::config::Params;
use crate::error::{Error, Fault, Result};

/// Parameters of `iid`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Iid {
    /// Samples per node; by default all are used.
    samples: Option<usize>,
}

impl Params for Iid {
    fn check(&self) -> std::result::Result<(), Fault> {
        check_samples(self.samples)
    }
}

/// Refuses zero samples.
pub fn check_samples(samples: Option<usize>) -> std::result::Result<(), Fault> {
    Fault::unless(samples != Some(0), "samples", 0, "at least 1")
}

/// Samples of every node: the number given, else equal parts of all.
pub fn sizes(rows: &Rows, samples: Option<usize>) -> Result<Vec<usize>> {
    rows.enough(samples.unwrap_or(1))?;
    Ok(samples.map_or_else(|| even(rows.len(), rows.nodes), |each| vec![each; rows.nodes]))
}

pub fn iid(params: &Iid, rows: &Rows) -> Result<Partition> {
    let Iid { samples } = params.clone();
    let sizes = sizes(rows, samples)?;
    Ok(Partition { nodes: cut(&rows.shuffled(&mut rows.stream()), &sizes) })
}

/// Parameters of `quantity`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// The number of samples of each node.
    sizes: Option<Vec<usize>>,
    /// Node i = 1, 2, … gets a share proportional to i to this power (1).
    power: Option<f64>,
    /// Shares are drawn from a Dirichlet distribution with this parameter.
    alpha: Option<f64>,
    /// Minimum samples per node.
    #[serde(default = "one")]
    min_size: usize,
}

/// The default minimum size.
pub fn one() -> usize {
    1
}

impl Params for Quantity {
    fn check(&self) -> std::result::Result<(), Fault> {
        let ways = [self.sizes.is_some(), self.power.is_some(), self.alpha.is_some()];
        if ways.iter().filter(|&&way| way).count() > 1 {
            let message = "only one of `sizes`, `power` and `alpha` can be given".into();
            return Err(Fault { key: "sizes", message });
        }
        let sizes = self.sizes.as_deref().unwrap_or_default();
        Fault::unless(!sizes.contains(&0), "sizes", format_args!("{sizes:?}"), "at least 1 each")?;
        let power = self.power.unwrap_or(1.0);
        Fault::unless(power.abs() <= 100.0, "power", power, "from -100 to 100")?;
        check_alpha(self.alpha.unwrap_or(1.0))?;
        Fault::unless(self.min_size > 0, "min_size", self.min_size, "at least 1")
    }
}

/// Refuses a Dirichlet parameter that is not positive, or too extreme to compute with.
pub fn check_alpha(alpha: f64) -> std::result::Result<(), Fault> {
    Fault::unless((1e-6..=1e6).contains(&alpha), "alpha", alpha, "from 1e-6 to 1e6")
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
            let weight = |i| ((i + 1) as f64 / rows.nodes as f64).powf(power.unwrap_or(1.0));
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
