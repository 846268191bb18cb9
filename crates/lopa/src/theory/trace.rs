//! The terms of V^k as measures of a run, for `run.lyapunov`.

use std::collections::BTreeMap;

use super::course::Setup;
use super::lyapunov::{Snapshot, State, TERMS};
use super::measure::{Region, Subject, constants};
use super::{Derived, Scheme, Steps, Weights};
use crate::config::Choice;
use crate::engine::Node;
use crate::problem::Bilevel;
use crate::real::Real;
use crate::registry::params;

/// The terms of V^k of one run.
pub struct Trace {
    scheme: Scheme,
    steps: Steps,
    weights: Option<Weights>,
}

impl Trace {
    /// For a run of LoPA; other algorithms have no V^k.
    pub fn of(Choice { name, params: table }: &Choice) -> Option<Trace> {
        let scheme = Scheme::of(name)?;
        Some(Trace { scheme, steps: Steps::of(&params(table)), weights: None })
    }

    /// Measures of where the run stands: each error, `lyapunov_…` for each term with its weight,
    /// and `lyapunov` for their sum. The weights follow from the constants at the start.
    pub fn measure<T: Real>(
        &mut self,
        setup: &Setup,
        nodes: &[Node<T>],
        parts: &mut [Box<dyn Bilevel<f64>>],
    ) -> BTreeMap<String, f64> {
        let Some(state) = State::of(nodes) else { return BTreeMap::new() };
        let seen = Snapshot::new(parts, state, setup.pool);
        let weights = *self.weights.get_or_insert_with(|| {
            let region = Region::around(parts, std::slice::from_ref(&seen), setup.seed);
            let known = constants(&Subject::of(setup), parts, &region, setup.pool).values();
            Weights::of(self.scheme, &known, &Derived::of(&known), &self.steps)
        });
        let errors = seen.errors;
        let terms = errors.weighted(&weights);
        let mut values = BTreeMap::from([
            ("hv_error".to_string(), errors.hv),
            ("average_variance_error".to_string(), errors.average),
            ("variance_error".to_string(), errors.variance),
            ("gradient_error".to_string(), errors.gradient),
            ("lyapunov".to_string(), terms.iter().sum()),
        ]);
        let named = TERMS.iter().zip(terms);
        values.extend(named.map(|(name, term)| (format!("lyapunov_{name}"), term)));
        values
    }
}
