//! The rules that give a graph its mixing matrix.
//!
//! ```text
//! metropolis        w_ij = 1 / (1 + max(d_i, d_j))
//! lazy-metropolis   (W + I) / 2 with W as above
//! max-degree        W = I − L / (d_max + 1)
//! constant          W = I − L / (m − 1)
//! laplacian         W = I − 2 L / (3 λ_max(L))
//! ```

use std::path::PathBuf;
use std::sync::Arc;

use super::file::{GraphFile, InFile};
use super::parse::read_matrix;
use super::spectrum::{self, Effort};
use super::{Graph, Mixing};
use crate::config::{Entry, NoParams, Params, Registry};
use crate::error::{Error, Fault, Result};
use crate::params;

/// Builds the mixing matrix of a graph.
pub type WeightsBuild = dyn Fn(&Graph) -> Result<Mixing> + Send + Sync;

/// The rules.
pub fn weights() -> Registry<WeightsBuild> {
    let entries = vec![
        weights_entry(
            "metropolis",
            "1 / (1 + the larger degree) on each edge",
            |_: &NoParams, graph| Mixing::on(graph, |i, j| metropolis(graph, i, j)),
        ),
        weights_entry(
            "lazy-metropolis",
            "half Metropolis, half stay: no negative eigenvalue",
            lazy,
        ),
        weights_entry(
            "max-degree",
            "1 / (1 + the largest degree) on every edge",
            |_: &NoParams, graph| Mixing::on(graph, |_, _| 1.0 / (graph.max_degree() as f64 + 1.0)),
        ),
        weights_entry("constant", "1 / (m − 1) on every edge", |_: &NoParams, graph| {
            Mixing::on(graph, |_, _| 1.0 / (graph.nodes() as f64 - 1.0))
        }),
        weights_entry(
            "laplacian",
            "2 / (3 × largest Laplacian eigenvalue) on every edge",
            laplacian,
        ),
        weights_entry("matrix", "a given symmetric, doubly stochastic matrix", matrix),
        weights_entry("file", "the weights that a graph file has on its edges", from_file),
    ];
    Registry::new("weights", entries)
}

/// An entry of the registry: `build` makes the mixing matrix of a graph.
pub fn weights_entry<P: Params>(
    name: impl Into<String>,
    about: impl Into<String>,
    build: fn(&P, &Graph) -> Result<Mixing>,
) -> Entry<WeightsBuild> {
    Entry::new(name, about, move |params: P| -> Arc<WeightsBuild> {
        Arc::new(move |graph: &Graph| build(&params, graph))
    })
}

fn metropolis(graph: &Graph, i: usize, j: usize) -> f64 {
    1.0 / (1.0 + graph.degree(i).max(graph.degree(j)) as f64)
}

fn lazy(_: &NoParams, graph: &Graph) -> Result<Mixing> {
    Mixing::on(graph, |i, j| 0.5 * metropolis(graph, i, j))
}

/// Laplacians of up to this many nodes are iterated until their largest eigenvalue, which is part
/// of the weights, has converged.
const LAPLACIAN: Effort = Effort { exact: 100_000, ..Effort::USUAL };

fn laplacian(_: &NoParams, graph: &Graph) -> Result<Mixing> {
    if graph.nodes() == 1 {
        return Mixing::on(graph, |_, _| 0.0);
    }
    let row = |i: usize| {
        let mut row: Vec<_> = graph.neighbours(i).iter().map(|&j| (j, -1.0)).collect();
        row.push((i, graph.degree(i) as f64));
        row
    };
    let rows: Vec<_> = (0..graph.nodes()).map(row).collect();
    // For large graphs λ_max(L) is underestimated; λ_min(W) still stays above −1.
    let largest = spectrum::ends(&rows, LAPLACIAN).high;
    Mixing::on(graph, |_, _| 2.0 / (3.0 * largest))
}

params! {
    /// A mixing matrix, inline or in a file.
    struct Given {
        /// The rows of W.
        rows: Option<Vec<Vec<f64>>> = None;
        /// A text file with a row of W on each line, entries separated by commas or blanks.
        path: Option<PathBuf> = None;
    }
    check |given| match given.rows.is_some() != given.path.is_some() {
        true => Ok(()),
        false => Err(Fault { key: "rows", message: "give either `rows` or `path`".into() }),
    }
}

fn matrix(given: &Given, graph: &Graph) -> Result<Mixing> {
    let (rows, place) = match (&given.rows, &given.path) {
        (Some(rows), _) => (rows.clone(), None),
        (None, Some(path)) => (read_matrix(path)?, Some(path.display().to_string())),
        (None, None) => unreachable!("checked with the parameters"),
    };
    let built = Mixing::from_matrix(rows).and_then(|mixing| {
        mixing.check_support(graph)?;
        Ok(mixing)
    });
    built.map_err(|error| match place {
        Some(place) => error.at(place),
        None => error,
    })
}

fn from_file(with: &InFile, graph: &Graph) -> Result<Mixing> {
    let place = with.path.display().to_string();
    let file = GraphFile::read(&with.path)?;
    let mixing = file.mixing().map_err(|error| error.at(&place))?.ok_or_else(|| {
        Error::network("network/no-weights", "the graph file has no weights on its edges")
            .at(&place)
            .hint("add them to the file, or let a rule make them: `weights = \"metropolis\"`")
    })?;
    mixing.check_support(graph).map_err(|error| error.at(&place))?;
    Ok(mixing)
}
