//! How far each node's x is from the mean of all: what the page draws as agreement.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use lopa::experiment::{AlgorithmSpec, Experiment};
use lopa::problem::Bilevel;
use lopa::run::{Probe, Probing, Setup, Variables};

/// ‖x_i − x̄‖² of each node at the last measurement. Their mean is the measure `consensus`.
#[derive(Clone, Default)]
pub struct Spread(Arc<Mutex<Vec<f64>>>);

impl Spread {
    /// The last distances.
    pub fn last(&self) -> Vec<f64> {
        self.0.lock().map(|last| last.clone()).unwrap_or_default()
    }
}

impl Probe for Spread {
    fn begin(&self, _: &Experiment, _: &AlgorithmSpec) -> Option<Box<dyn Probing>> {
        Some(Box::new(self.clone()))
    }
}

impl Probing for Spread {
    fn measure(
        &mut self,
        _: &Setup,
        nodes: &[Variables],
        _: &mut [Box<dyn Bilevel<f64>>],
    ) -> BTreeMap<String, f64> {
        let x =
            |node: &Variables| node.iter().find(|(name, _)| *name == "x").map(|(_, x)| x.clone());
        let all: Vec<Vec<f64>> = nodes.iter().filter_map(x).collect();
        if let Ok(mut last) = self.0.lock() {
            *last = distances_sq(&all);
        }
        BTreeMap::new() // rows stay those of the program
    }
}

/// ‖x_i − x̄‖² of each.
fn distances_sq(all: &[Vec<f64>]) -> Vec<f64> {
    let mean_at = |at: usize| all.iter().map(|x| x[at]).sum::<f64>() / all.len() as f64;
    let mean: Vec<f64> = (0..all.first().map_or(0, Vec::len)).map(mean_at).collect();
    let distance_sq = |x: &Vec<f64>| x.iter().zip(&mean).map(|(x, mean)| (x - mean).powi(2)).sum();
    all.iter().map(distance_sq).collect()
}
