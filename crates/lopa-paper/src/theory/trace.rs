//! The terms of V^k as measures of a run, for `run.lyapunov`.

use std::collections::BTreeMap;

use super::measure::{Region, Subject, constants};
use super::{Derived, Scheme, Steps, Weights};
use lopa::algorithms::AnyMethod;
use lopa::config::Choice;
use lopa::experiment::{AlgorithmSpec, Experiment};
use lopa::problem::Bilevel;
use lopa::problem::scope::Scope;
use lopa::run::{Probe, Probing, Setup, Variables};
use lopa_study::practical::snapshot::{Snapshot, State, TERMS};

/// The terms of V^k of one run.
pub struct Trace {
    scheme: Scheme,
    steps: Steps,
    weights: Option<Weights>,
}

impl Trace {
    /// For a run of LoPA; other algorithms have no V^k.
    pub fn of(choice: &Choice<AnyMethod>) -> Option<Trace> {
        let scheme = Scheme::of(&choice.name)?;
        Some(Trace { scheme, steps: Steps::of(&choice.typed()?), weights: None })
    }
}

/// Adds the terms of V^k to runs of LoPA with `run.lyapunov`.
pub struct Lyapunov;

impl Probe for Lyapunov {
    fn begin(
        &self,
        experiment: &Experiment,
        algorithm: &AlgorithmSpec,
    ) -> Option<Box<dyn Probing>> {
        let traced = experiment.run.lyapunov && experiment.scope == Scope::Personal;
        let trace = traced.then(|| Trace::of(&algorithm.choice)).flatten()?;
        Some(Box::new(trace))
    }
}

impl Probing for Trace {
    /// Measures of the current state: each error, `lyapunov_…` for each term with its weight, and
    /// `lyapunov` for their sum. The weights follow from the constants at the start.
    fn measure(
        &mut self,
        setup: &Setup,
        nodes: &[Variables],
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
        let terms = weights.terms(&errors);
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
