//! The problem `python`: two functions in a file, or an object of this process.

use std::ops::Range;
use std::sync::Arc;

use lopa::config::{Entry, Params};
use lopa::error::{Error, Result};
use lopa::math::real::{Both, Real};
use lopa::problem::{AnyProblem, Parts, Problem, Setting};
use pyo3::buffer::Element;
use pyo3::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::errors::keep;
use crate::going::{asked, attached, ending};
use crate::part::{All, Part};
use crate::together::Whole;

/// What a file says; as a problem, one whose code is not run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    /// The Python file and the name of the `lopa.Problem` in it: `mine.py:problem`.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// SHA-256 of its functions, start and data: another one is another experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

impl Params for Named {}

impl<T: Real> Problem<T> for Named {
    fn parts(&self, _: &Setting, _: Range<usize>) -> Result<Parts<T>> {
        let file = self.file.as_deref().unwrap_or("another process");
        let message =
            format!("the problem is Python code of {file}, which this command does not run");
        Err(Error::config("problem/code", message)
            .at("problem.file")
            .hint("read the code, and if you trust it, add `--run-code`"))
    }
}

/// A problem of Python. It is found when a file is read, so that its digest is part of the
/// experiment.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Named")]
pub struct PythonProblem {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    digest: String,
    #[serde(skip)]
    object: Object,
}

/// A `lopa.Problem`.
#[derive(Clone)]
struct Object(Arc<Py<PyAny>>);

impl Default for Object {
    fn default() -> Object {
        Object(Arc::new(Python::attach(|py| py.None())))
    }
}

impl JsonSchema for PythonProblem {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PythonProblem".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Named::json_schema(generator)
    }
}

impl TryFrom<Named> for PythonProblem {
    type Error = String;

    fn try_from(Named { file, digest }: Named) -> Result<PythonProblem, String> {
        let found = attached(|py| {
            let find = || -> PyResult<(Py<PyAny>, String)> {
                let module = py.import("lopa._find")?;
                module.getattr("find")?.call1((&file, &digest))?.extract()
            };
            let (object, digest) = find().map_err(|error| {
                let error = keep(py, error);
                match error.hint {
                    Some(hint) => format!("{}: {hint}", error.message),
                    None => error.message,
                }
            })?;
            Ok(PythonProblem { file: file.clone(), digest, object: Object(Arc::new(object)) })
        });
        found.unwrap_or_else(|| Err(ending().message))
    }
}

impl Params for PythonProblem {}

/// The entry of the registry.
pub fn entry() -> Entry<AnyProblem> {
    Entry::new(
        "python",
        "two functions in Python, differentiated by JAX or PyTorch",
        |params: PythonProblem| both(params),
    )
    .inert(|named: Named| both(named))
}

fn both<P: Problem<f32> + Problem<f64> + 'static>(problem: P) -> Arc<AnyProblem> {
    let problem = Arc::new(problem);
    let (single, double): (Arc<dyn Problem<f32>>, Arc<dyn Problem<f64>>) =
        (problem.clone(), problem);
    Arc::new(Both::new(single, double))
}

impl<T: Real + Element> Problem<T> for PythonProblem {
    fn one_thread(&self) -> bool {
        true
    }

    fn computed_by(&self) -> Option<String> {
        let said = |py: Python| {
            let said = self.object.0.bind(py).call_method0("_computed_by").ok()?;
            said.extract().ok()
        };
        attached(said).flatten()
    }

    fn parts(&self, setting: &Setting, nodes: Range<usize>) -> Result<Parts<T>> {
        asked(|py| {
            let precision = if T::BYTES == 4 { "float32" } else { "float64" };
            let bound = || -> PyResult<_> {
                let args = (precision, setting.nodes, nodes.start, nodes.len());
                let parts = self.object.0.bind(py).call_method1("_parts", args)?;
                let all = Arc::new(All::new(&parts)?);
                let each: Vec<Part<T>> =
                    (0..nodes.len()).map(|at| Part::new(all.clone(), at)).collect();
                Ok((all, each))
            };
            let (all, each) = bound().map_err(|error| keep(py, error))?;
            let mut parts: Parts<T> = each.into_iter().collect();
            parts.together = Some(Box::new(Whole::new(all)));
            Ok(parts)
        })
    }
}
