//! Quadratics from a JSON file: `{"data": {"A": [node][row][column], "B": …, "c": [node][row], …}}`.

use serde::Deserialize;

use super::super::linalg::{Cholesky, Matrix};
use super::Coefficients;
use crate::error::{Error, Result};
use crate::store::limits::{self, read_text};

type Matrices = Vec<Vec<Vec<f64>>>;
type Vectors = Vec<Vec<f64>>;

/// Keys beside `data` are ignored.
#[derive(Deserialize)]
struct File {
    data: Raw,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(rename = "A")]
    a: Matrices,
    #[serde(rename = "B")]
    b: Matrices,
    c: Vectors,
    #[serde(rename = "D")]
    d: Matrices,
    e: Vectors,
    #[serde(rename = "R")]
    r: Matrices,
    q: Vectors,
}

/// Reads the coefficients of every node.
pub(super) fn read(path: &str, nodes: usize) -> Result<Vec<Coefficients>> {
    let text = read_text(path.as_ref(), limits::DATA).map_err(|error| {
        Error::data("data/unreadable", format!("the quadratic's file cannot be read: {error}"))
            .at(path)
            .hint("check `file`; it is looked for from the folder the program runs in")
    })?;
    let File { data } = serde_json::from_str(&text).map_err(|error| {
        let place = format!("{path}:{}:{}", error.line(), error.column());
        Error::data("data/bad-json", format!("this is not a quadratic's file: {error}"))
            .at(place)
            .hint("it must be JSON with `data.A`, `B`, `c`, `D`, `e`, `R`, `q`, one entry a node")
    })?;
    (0..nodes).map(|i| data.node(i, nodes)).collect::<Result<_>>().map_err(|error| error.at(path))
}

impl Raw {
    fn node(&self, i: usize, nodes: usize) -> Result<Coefficients> {
        // Every node has the same x, and a θ of the same length.
        let length = |list: &Vectors| list.first().map_or(0, Vec::len).max(1);
        let (p, n) = (length(&self.c), length(&self.q));
        let c = vector("c", &self.c, i, nodes, p)?;
        let q = vector("q", &self.q, i, nodes, n)?;
        let e = of_node("e", &self.e, i, nodes)?.clone();
        let a = matrix("A", &self.a, i, nodes, [p, p])?;
        let r = matrix("R", &self.r, i, nodes, [n, n])?;
        symmetric("A", &a, i)?;
        symmetric("R", &r, i)?;
        let factor = Cholesky::new(&a).ok_or_else(|| {
            let message = format!("`data.A[{i}]` is not positive definite");
            Error::data("data/not-positive-definite", message)
                .hint("the inner problem needs a positive definite A at every node")
        })?;
        Ok(Coefficients {
            b: matrix("B", &self.b, i, nodes, [p, n])?,
            d: matrix("D", &self.d, i, nodes, [e.len(), p])?,
            a,
            r,
            factor,
            c,
            e,
            q,
        })
    }
}

fn of_node<'a, V>(name: &str, list: &'a [V], i: usize, nodes: usize) -> Result<&'a V> {
    if list.len() != nodes {
        let message = format!("`data.{name}` is for {} node(s), the run has {nodes}", list.len());
        return Err(Error::data("data/wrong-nodes", message)
            .hint("give every node its coefficients, or change the number of nodes"));
    }
    Ok(&list[i])
}

fn vector(name: &str, list: &Vectors, i: usize, nodes: usize, length: usize) -> Result<Vec<f64>> {
    let found = of_node(name, list, i, nodes)?;
    if found.len() != length {
        let message = format!("`data.{name}[{i}]` has {} entries, not {length}", found.len());
        return Err(shape(message));
    }
    Ok(found.clone())
}

fn matrix(
    name: &str,
    list: &Matrices,
    i: usize,
    nodes: usize,
    [rows, cols]: [usize; 2],
) -> Result<Matrix<f64>> {
    let found = of_node(name, list, i, nodes)?;
    if found.len() != rows || found.iter().any(|row| row.len() != cols) {
        return Err(shape(format!("`data.{name}[{i}]` is not {rows} rows of {cols}")));
    }
    Ok(Matrix::from_fn(rows, cols, |row, col| found[row][col]))
}

fn shape(message: String) -> Error {
    Error::data("data/bad-shape", message).hint(
        "A is p × p, B p × n, c p, D r × p, e r, R n × n, q n, the same n and p at every node",
    )
}

fn symmetric(name: &str, m: &Matrix<f64>, i: usize) -> Result<()> {
    let n = m.rows();
    let uneven = (0..n).flat_map(|j| (0..j).map(move |k| (j, k))).find(|&(j, k)| {
        let (low, high) = (m.row(j)[k], m.row(k)[j]);
        (low - high).abs() > 1e-9 * (low.abs() + high.abs())
    });
    match uneven {
        None => Ok(()),
        Some((j, k)) => {
            let message = format!("`data.{name}[{i}]` is not symmetric: [{j}][{k}] ≠ [{k}][{j}]");
            Err(Error::data("data/not-symmetric", message)
                .hint("use the symmetric part, (M + Mᵀ)/2: it is the same quadratic"))
        }
    }
}
