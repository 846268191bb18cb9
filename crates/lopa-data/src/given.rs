//! Moments that are not those of all training rows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scaling::{self, Method, Scaling};
use super::source::{Table, Usual};
use super::{Features, Preparation};
use crate::error::{Error, Fault, Result};

/// What features are scaled by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum MomentsOf {
    /// As in `moments = "own"`.
    Whose(Whose),
    /// As in `moments = { mean = [36.6, 120], deviation = [0.5, 15] }`.
    Given(Given),
}

/// Whose moments, where nodes have files of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    /// Each node scales by the moments of its own training rows, and tells nobody.
    Own,
    /// All nodes scale by the moments of all training rows: each tells the others its own.
    Agreed,
}

/// Moments in the experiment file, as far as the scaling needs them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// The mean of every column, for `standardise` and `centre`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Vec<f64>>,
    /// The standard deviation of every column, for `standardise`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<Vec<f64>>,
    /// The largest absolute value, for `unit` and `centre`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<f64>,
}

impl Given {
    /// Whether it has exactly the moments that a method needs.
    fn fits(&self, method: Method) -> bool {
        let has = (self.mean.is_some(), self.deviation.is_some(), self.largest.is_some());
        match method {
            Method::Standardise => has == (true, true, false),
            Method::Centre => has == (true, false, true),
            Method::Unit => has == (false, false, true),
            Method::None | Method::Log | Method::Row | Method::TfIdf => false,
        }
    }

    /// The scaling by these moments.
    pub(super) fn scaling(
        &self,
        method: Method,
        listed: Option<&[usize]>,
        cols: usize,
    ) -> Result<Scaling> {
        let column = |values: &Option<Vec<f64>>, name: &str| match values.clone() {
            Some(values) if values.len() == cols => Ok(values),
            values => {
                let found = values.map_or(0, |values| values.len());
                let message = format!("`moments.{name}` has {found} entries for {cols} features");
                Err(Error::config("data/shape-mismatch", message))
            }
        };
        let factor = || scaling::divided(self.largest.unwrap_or(1.0), cols);
        match method {
            Method::Standardise => {
                let deviation = column(&self.deviation, "deviation")?;
                scaling::standard(column(&self.mean, "mean")?, &deviation, listed)
            }
            Method::Centre => {
                let shift = column(&self.mean, "mean")?;
                Ok(Scaling { shift, factor: factor(), ..Scaling::default() })
            }
            _ => Ok(Scaling { factor: factor(), ..Scaling::default() }),
        }
    }
}

impl Preparation {
    /// The method of scaling where nodes have files of their own.
    fn method(&self) -> Method {
        self.scaling.unwrap_or(Method::None)
    }

    /// The method, if the nodes agree on moments.
    pub fn agreed(&self) -> Option<Method> {
        let agreed = self.moments == Some(MomentsOf::Whose(Whose::Agreed));
        agreed.then_some(self.method())
    }

    /// Whether each node has a scaling of its own.
    pub(super) fn scales_each(&self) -> bool {
        let own = matches!(self.moments, None | Some(MomentsOf::Whose(Whose::Own)));
        // Missing values are filled by a node's own means, and numbers to predict are scaled by its own
        // moments unless all agree.
        self.missing.is_some()
            || self.scales_numbers() && self.agreed().is_none()
            || own && !matches!(self.method(), Method::None | Method::Log | Method::Row)
    }

    /// A node's scaling, if the nodes do not agree on one.
    pub(super) fn own_scaling(&self, train: &Features<f64>) -> Result<Scaling> {
        let rows: Vec<u32> = (0..train.rows() as u32).collect();
        let (method, listed) = (self.method(), self.columns.as_deref());
        match &self.moments {
            Some(MomentsOf::Given(given)) => given.scaling(method, listed, train.cols()),
            _ if method == Method::None => Ok(Scaling::default()),
            _ => {
                let table = Table::Numbers(train.clone());
                Scaling::choose(method, &Usual::nothing(), listed, (&table, &rows))
            }
        }
    }

    /// `moments` must fit the scaling.
    pub(super) fn check_moments(&self) -> Result<(), Fault> {
        let Some(moments) = &self.moments else { return Ok(()) };
        let scaled = self.scaling.is_some_and(|method| method != Method::None);
        Fault::unless(scaled, "moments", "…", "left out, or go with a `scaling`")?;
        match moments {
            MomentsOf::Whose(whose) => {
                let name = if *whose == Whose::Own { "own" } else { "agreed" };
                let must = "left out unless nodes have files of their own (`nodes`)";
                Fault::unless(self.nodes.is_some(), "moments", name, must)
            }
            MomentsOf::Given(given) => {
                let must = "what the `scaling` needs: `mean` and `deviation` to standardise, \
                            `largest` for unit, `mean` and `largest` to centre";
                Fault::unless(given.fits(self.method()), "moments", "{ … }", must)
            }
        }
    }
}
