//! Messages between nodes with files of their own before a run: their columns and, where they agree
//! on a scaling, the moments of their training rows. Rows are never sent.
//!
//! Every process gathers the messages of all nodes and combines them in the order of the nodes: the
//! result has the same bits in every process.

use sha2::{Digest, Sha256};

use super::labels::Unlisted;
use super::moments::Moments;
use super::target::TargetMoments;
use super::{Columns, Data, Dataset, Groups, Preparation, Scaling, Scalings, TargetScaling};
use crate::error::{Error, Kind, Result};
use crate::store::bytes::{Reader, Writer};

/// The message of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// A hash of each column's name, in the order of the file; 0 for columns without names.
    columns: Vec<u64>,
    moments: Moments,
    /// The number of rows whose label is not listed, by the listed class that it resembles; the
    /// last entry is for no class. Empty where labels are numbers to predict.
    unlisted: Vec<u64>,
    /// The moments of numbers to predict, if the nodes agree on moments.
    target: TargetMoments,
}

impl Told {
    /// A node's message about its rows.
    pub(super) fn of(
        train: &Dataset,
        columns: Option<&Columns>,
        preparation: &Preparation,
        out: &[Unlisted],
    ) -> Told {
        let classes = preparation.classes.as_ref().map_or(0, Vec::len);
        let numbers = preparation.predicts_numbers();
        let mut unlisted = if numbers { Vec::new() } else { vec![0; classes + 1] };
        out.iter().for_each(|out| unlisted[out.near.unwrap_or(classes)] += out.rows as u64);
        let columns = hashed(columns, train.cols());
        let moments = match preparation.agreed() {
            Some(method) => Moments::of(method, train),
            None => Moments::default(),
        };
        let target = match (preparation.agreed(), train.targets()) {
            (Some(_), Some(targets)) if preparation.scales_numbers() => TargetMoments::of(targets),
            _ => TargetMoments::default(),
        };
        Told { columns, moments, unlisted, target }
    }

    /// The same without moments: they are summed over the nodes by masks.
    pub fn without_moments(&self) -> Told {
        Told { moments: Moments::default(), ..self.clone() }
    }

    /// The number of its columns.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Its moments, with the columns in the order of another node's; `None` if these are others.
    pub fn moments_like(&self, first: &Told) -> Option<Moments> {
        self.moments.at(&order(&first.columns, &self.columns)?)
    }

    /// Whether its columns are those of another node.
    pub fn is_like(&self, first: &Told) -> bool {
        order(&first.columns, &self.columns).is_some()
    }

    /// As bytes, whose number depends only on the number of columns and on the experiment.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        for numbers in [&self.columns, &self.unlisted] {
            out.u64(numbers.len() as u64);
            numbers.iter().for_each(|&number| out.u64(number));
        }
        self.moments.write(&mut out);
        if self.unlisted.is_empty() {
            self.target.write(&mut out);
        }
        out.done()
    }

    /// Reads the bytes of [`Told::to_bytes`]; `None` if they are malformed.
    pub fn read(bytes: &mut Reader) -> Option<Told> {
        let (columns, unlisted) = (numbers(bytes)?, numbers(bytes)?);
        let moments = Moments::read(bytes)?;
        let target = match unlisted.is_empty() {
            true => TargetMoments::read(bytes)?,
            false => TargetMoments::default(),
        };
        Some(Told { columns, unlisted, moments, target })
    }

    /// The labels that are not listed, as sent to other nodes.
    fn unlisted(&self) -> Vec<Unlisted> {
        let known = self.unlisted.len().saturating_sub(1);
        let one = |(near, &rows): (usize, &u64)| Unlisted {
            label: None,
            near: Some(near).filter(|&near| near < known),
            rows: usize::try_from(rows).unwrap_or(usize::MAX),
        };
        let mut all: Vec<_> = self.unlisted.iter().enumerate().map(one).collect();
        all.retain(|unlisted| unlisted.rows > 0);
        all
    }
}

fn numbers(bytes: &mut Reader) -> Option<Vec<u64>> {
    (0..bytes.u64()?).map(|_| bytes.u64()).collect()
}

impl Told {
    /// `Some` if these bytes may be the messages of this many nodes, each of the same form as this
    /// one.
    pub fn check(&self, bytes: &[u8], nodes: usize) -> Option<()> {
        let mut bytes = Reader::new(bytes);
        for _ in 0..nodes {
            let told = Told::read(&mut bytes)?;
            // Other columns are an operator's mistake, which has its own error.
            let listed = told.unlisted.len() == self.unlisted.len();
            let fits = told.moments.fits(&self.moments, told.columns.len());
            if !listed || !fits || !told.target.fits(&self.target) {
                return None;
            }
        }
        bytes.end()
    }
}

/// The result of all nodes' messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreement {
    columns: Vec<u64>,
    scaling: Option<Scaling>,
    /// The rows of each node that are left out, in words.
    left_out: Vec<Option<String>>,
}

impl Agreement {
    /// What a model has kept of it.
    pub fn kept(
        columns: Option<&Columns>,
        scaling: &Scaling,
        cols: usize,
        nodes: usize,
    ) -> Agreement {
        let columns = hashed(columns, cols);
        Agreement { columns, scaling: Some(scaling.clone()), left_out: vec![None; nodes] }
    }

    /// From all nodes' messages, in their order.
    pub fn of(told: &[Told], preparation: &Preparation) -> Result<Agreement> {
        Agreement::with(told, None, preparation)
    }

    /// The same, with the moments of all rows if they were summed by masks.
    pub fn with(
        told: &[Told],
        summed: Option<&Moments>,
        preparation: &Preparation,
    ) -> Result<Agreement> {
        let names = preparation.nodes.as_deref().unwrap_or_default();
        let columns = told.first().map_or(Vec::new(), |first| first.columns.clone());
        let (mut moments, mut left_out) = (Vec::new(), Vec::new());
        let classes = match preparation.predicts_numbers() {
            true => 0,
            false => preparation.classes.as_ref().map_or(0, Vec::len) + 1,
        };
        for (node, told) in told.iter().enumerate() {
            let order = order(&columns, &told.columns).ok_or_else(|| {
                let (name, first) = (&names[node], &names[0]);
                Error::data(
                    "data/other-columns",
                    format!("the columns of `{name}` are not those of `{first}`"),
                )
                .hint("all files need the same columns, by name; their order may differ")
            })?;
            moments.push(told.moments.at(&order).ok_or_else(garbled)?);
            if told.unlisted.len() != classes {
                return Err(garbled());
            }
            let name = names.get(node).map(String::as_str);
            left_out.push(preparation.judge_unlisted(&told.unlisted(), name)?);
        }
        let scaling = match preparation.agreed() {
            None => None,
            Some(method) => {
                let listed = preparation.columns.as_deref();
                let joined = match summed {
                    Some(summed) => summed.clone(),
                    None => Moments::joined(&moments).ok_or_else(garbled)?,
                };
                let scaling = joined.scaling(method, listed, columns.len())?;
                let target = match preparation.scales_numbers() {
                    true => {
                        let each: Vec<_> = told.iter().map(|told| told.target.clone()).collect();
                        TargetMoments::joined(&each).ok_or_else(garbled)?.scaling()
                    }
                    false => TargetScaling::default(),
                };
                Some(Scaling { target, ..scaling })
            }
        };
        Ok(Agreement { columns, scaling, left_out })
    }
}

impl Data {
    /// Puts the columns of the nodes of this process in the common order, and scales their rows.
    pub fn settle(&mut self, agreement: &Agreement, preparation: &Preparation) -> Result<()> {
        let Some(own) = self.own.as_mut().filter(|own| !own.settled) else { return Ok(()) };
        own.settled = true;
        let (here, nodes) = (own.here.clone(), preparation.nodes.as_ref().map_or(0, Vec::len));
        let mut scalings = vec![None; nodes];
        let (mut trains, mut tests) = (Vec::new(), Vec::new());
        for ((node, told), fill) in here.clone().zip(&own.told).zip(&own.fills) {
            let order = order(&agreement.columns, &told.columns).ok_or_else(garbled)?;
            let of = |set: &Dataset| {
                let range = set.owners().map_or(0..0, |owners| owners[node].clone());
                let features = set.features().select(&range.clone().collect::<Vec<_>>());
                let labels = set.labels()[range.start as usize..range.end as usize].to_vec();
                let validation = set.validation();
                let validation =
                    validation.map(|all| all[range.start as usize..range.end as usize].to_vec());
                let groups = set.groups().map(|all| Groups {
                    of: all.of[range.start as usize..range.end as usize].to_vec(),
                    names: all.names.clone(),
                });
                let targets = set.targets().map(|all| all.select(&range.collect::<Vec<_>>()));
                let sorted = order.is_sorted();
                let features = if sorted { features } else { features.columns_at(&order) };
                (features, labels, targets, validation, groups)
            };
            let (train, test) = (of(&self.train), of(&self.test));
            let scaling = match &agreement.scaling {
                Some(scaling) => scaling.clone(),
                None => {
                    let targets = train.2.as_ref().filter(|_| preparation.scales_numbers());
                    let target = targets.map(TargetScaling::of).unwrap_or_default();
                    Scaling { target, ..preparation.own_scaling(&train.0)? }
                }
            };
            let fill = match fill.is_empty() {
                true => Vec::new(),
                false => order.iter().map(|&j| fill[j]).collect(),
            };
            let scaling = Scaling { fill, ..scaling };
            for (set, into) in [(train, &mut trains), (test, &mut tests)] {
                let (features, labels, targets, validation, groups) = set;
                let targets = targets.map(|targets| targets.scaled(&scaling.target));
                let set = Dataset::new(scaling.apply(features), labels);
                let set = Dataset { validation, groups, ..set };
                into.push(match targets {
                    None => set,
                    Some(targets) => set.targeted(targets),
                });
            }
            scalings[node] = Some(scaling);
        }
        // A node knows its own labels; the other nodes told it only how many rows they leave out.
        let mut left_out = agreement.left_out.clone();
        let names = preparation.nodes.iter().flatten();
        for ((node, name), unlisted) in names.enumerate().skip(here.start).zip(&own.unlisted) {
            left_out[node] = preparation.judge_unlisted(unlisted, Some(name))?;
        }
        self.left_out = left_out.into_iter().flatten().collect();
        let first = self.columns.as_mut().zip(own.told.first());
        if let Some((columns, told)) = first {
            let order = order(&agreement.columns, &told.columns).ok_or_else(garbled)?;
            columns.features = order.iter().map(|&j| columns.features[j].clone()).collect();
        }
        self.train = Dataset::joined(trains, &here, nodes);
        self.test = Dataset::joined(tests, &here, nodes);
        self.scaling = match preparation.scales_each() {
            true => Scalings::some(scalings),
            false => Scalings::all(scalings.swap_remove(here.start).unwrap_or_default()),
        };
        Ok(())
    }
}

/// The error for a message that no lopa of this version sends.
pub fn garbled() -> Error {
    Error::new(Kind::Run, "engine/garbled", "malformed message from another process")
}

/// A short hash of each name.
fn hashes(names: &[String]) -> Vec<u64> {
    let hash = |name: &String| {
        let hash = Sha256::digest(name);
        u64::from_le_bytes(std::array::from_fn(|at| hash[at])) | 1
    };
    names.iter().map(hash).collect()
}

/// A hash of each column's name; 0 for columns without names.
fn hashed(columns: Option<&Columns>, cols: usize) -> Vec<u64> {
    columns.map_or_else(|| vec![0; cols], |columns| hashes(&columns.features))
}

/// The index of each column among the others; by position where a table has no names.
fn order(columns: &[u64], others: &[u64]) -> Option<Vec<usize>> {
    if columns.len() != others.len() {
        return None;
    }
    let unnamed = [columns, others].iter().any(|table| table.iter().all(|&hash| hash == 0));
    if unnamed || columns == others {
        return Some((0..columns.len()).collect());
    }
    let at: std::collections::HashMap<u64, usize> =
        others.iter().enumerate().map(|(at, &hash)| (hash, at)).collect();
    let order: Vec<usize> =
        columns.iter().map(|hash| at.get(hash).copied()).collect::<Option<_>>()?;
    // Names that occur twice match nothing.
    (at.len() == columns.len()).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(columns: u64, rows: f64, first: &[f64], second: &[f64]) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(columns);
        (0..columns).for_each(|hash| out.u64(2 * hash + 1));
        [1, 0].into_iter().for_each(|number| out.u64(number));
        [rows, 0.0].into_iter().for_each(|number| out.f64(number));
        out.reals(first);
        out.reals(second);
        out.done()
    }

    /// Moments of other lengths would be read beyond their ends.
    #[test]
    fn what_a_node_tells_is_like_what_this_one_tells() {
        let ours = told(2, 10.0, &[0.5, 1.0], &[2.0, 3.0]);
        let ours = Told::read(&mut Reader::new(&ours)).unwrap();
        let check = |bytes: &[u8]| ours.check(bytes, 1);
        assert_eq!(check(&told(2, 7.0, &[0.1, 0.2], &[0.0, 9.0])), Some(()));
        assert_eq!(check(&told(3, 7.0, &[0.1; 3], &[9.0; 3])), Some(()), "an error of its own");
        let unlisted = |count: u64| {
            let mut bytes = told(2, 7.0, &[0.1, 0.2], &[0.0, 9.0]);
            let after = 8 * (1 + 2);
            let words: Vec<u8> = std::iter::once(count)
                .chain((0..count).map(|_| 0))
                .flat_map(u64::to_le_bytes)
                .collect();
            bytes.splice(after..after + 16, words);
            bytes
        };
        for (name, bytes) in [
            ("no counts of labels", unlisted(0)),
            ("counts of other labels", unlisted(2)),
            ("no moments", told(2, 7.0, &[], &[])),
            ("no deviations", told(2, 7.0, &[0.1, 0.2], &[])),
            ("too few moments", told(2, 7.0, &[0.1], &[9.0])),
            ("too many moments", told(2, 7.0, &[0.1; 3], &[9.0; 3])),
            ("no rows", told(2, 0.0, &[0.1, 0.2], &[0.0, 9.0])),
            ("rows below zero", told(2, -7.0, &[0.1, 0.2], &[0.0, 9.0])),
            ("not finite", told(2, f64::NAN, &[0.1, 0.2], &[0.0, 9.0])),
            ("a deviation below zero", told(2, 7.0, &[0.1, 0.2], &[-1.0, 9.0])),
            ("nothing", Vec::new()),
            ("two nodes", told(2, 7.0, &[0.1, 0.2], &[0.0, 9.0]).repeat(2)),
            ("a count of all ones", vec![0xff; 80]),
        ] {
            assert_eq!(check(&bytes), None, "{name}");
        }
    }
}
