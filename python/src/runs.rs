//! Run folders, read back.

use std::path::PathBuf;

use lopa::error::{Error, Result};
use lopa::folder::RunReader;
use lopa::folder::model::Model;
use lopa_base::store::output;
use lopa_report::html::Report;
use lopa_report::pictures::{Styles, View, curves, networks};
use lopa_report::saved::{Saved, find_claims};
use lopa_study::table::Table;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;

use crate::arrays::{self, Matrix};
use crate::errors::{raise, without};
use crate::going::detached;
use crate::registries;

/// The manifest, the resolved experiment, the results, the measurements and the table of results, as JSON.
#[pyfunction]
pub fn read_run(py: Python, path: PathBuf) -> PyResult<String> {
    without(py, || {
        let run = RunReader::open(&path)?;
        let resolved = run.resolved()?;
        let parsed: toml::Table = toml::from_str(&resolved.text).map_err(|error| {
            Error::storage("storage/read", error.to_string()).at(&resolved.name)
        })?;
        let results = run.results()?;
        let Table { head, lines } = Table::of(&results);
        Ok(json!({
            "manifest": run.manifest(),
            "experiment": parsed,
            "results": results,
            "rows": run.rows()?,
            "table": [head, lines],
        })
        .to_string())
    })
}

/// The models of a run: metadata as JSON, the number of nodes, then x and theta of all nodes as
/// doubles.
#[pyfunction]
pub fn read_model<'py>(
    py: Python<'py>,
    path: PathBuf,
    algorithm: &str,
    seed: u64,
) -> PyResult<(String, usize, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (about, nodes, x, theta) = without(py, || {
        let model = RunReader::open(&path)?.model(algorithm, seed)?;
        let bytes = |rows: &[Vec<f64>]| -> Vec<u8> {
            rows.iter().flatten().flat_map(|value| value.to_ne_bytes()).collect()
        };
        let (x, theta) = (bytes(&model.x), bytes(&model.theta));
        Ok((json!(model.about).to_string(), model.x.len(), x, theta))
    })?;
    Ok((about, nodes, PyBytes::new(py, &x), PyBytes::new(py, &theta)))
}

/// Of a model file: the features it takes (0 if it predicts nothing), the names of its predictions, which
/// are classes or numbers, and of its nodes.
#[pyfunction]
pub fn model_about(py: Python, path: PathBuf) -> PyResult<(usize, Vec<String>, Vec<String>)> {
    without(py, || {
        let model = Model::load(&path)?;
        let predicts = model.predictor(0, &registries().problems).is_ok();
        let nodes = (0..model.x.len()).map(|node| model.name(node)).collect();
        let (features, predictions) = (model.about.features, model.about.predictions());
        Ok((if predicts { features } else { 0 }, predictions, nodes))
    })
}

/// The probability of each class, or each number, for each row of raw features, by the model of a node in
/// a file.
#[pyfunction]
pub fn model_predictions<'py>(
    py: Python<'py>,
    path: PathBuf,
    node: &str,
    matrix: Matrix<'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    let found = arrays::features(&matrix, py).and_then(|features| {
        detached(py, || {
            let model = Model::load(&path)?;
            let node = model.node(Some(node)).map_err(|error| Error { place: None, ..error });
            model.predictions(
                node.map_err(|error| error.at("node"))?,
                &features,
                &registries().problems,
            )
        })
    });
    let found = found.map_err(|error| raise(py, error))?;
    let bytes: Vec<u8> = found.iter().flat_map(|value| value.to_ne_bytes()).collect();
    Ok(PyBytes::new(py, &bytes))
}

/// Writes a report of some run folders.
#[pyfunction]
pub fn report(
    py: Python,
    paths: Vec<PathBuf>,
    out: PathBuf,
    title: Option<String>,
) -> PyResult<()> {
    without(py, || {
        let runs = paths.iter().map(|path| Saved::read(path)).collect::<Result<Vec<_>>>()?;
        let title = title.unwrap_or_else(|| match &runs[..] {
            [run] => format!("{}: results", run.title()),
            _ => format!("{} runs", runs.len()),
        });
        let claims = paths.iter().find_map(|path| find_claims(path).transpose()).transpose()?;
        let report =
            Report { title, runs, claims: claims.unwrap_or_default(), view: View::default() };
        output::write(&out, report.html().as_bytes(), "the report", "name another file")
    })
}

/// The curves and the networks of a run as SVG; empty where there is nothing to draw.
#[pyfunction]
pub fn pictures(py: Python, path: PathBuf) -> PyResult<(String, String)> {
    without(py, || {
        let saved = Saved::read(&path)?;
        if saved.rows.is_empty() {
            return Ok(Default::default());
        }
        let styles = Styles::of([&saved]);
        let drawn = networks(&saved).map(|figure| figure.inline());
        let all = curves(&saved, &styles, &View::default()).inline();
        Ok((all, drawn.unwrap_or_default()))
    })
}
