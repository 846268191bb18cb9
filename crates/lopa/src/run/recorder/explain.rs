//! Why a run diverged.

use super::Recorder;
use super::gather::unpacked;
use crate::engine::{Cluster, Expect};
use crate::error::Result;
use crate::math::number;
use crate::math::real::Real;
use crate::problem::At;
use crate::run::Setup;
use crate::run::evaluate::Point;
use crate::run::evaluate::diagnose::{Conditions, diagnose};
use crate::run::evaluate::watch::Culprit;

/// The mean square of a feature above which it should be scaled.
const LARGE: f64 = 100.0;

impl Recorder<'_> {
    /// Why the run diverged: the process of the node that grew first explains.
    pub(super) fn diagnosis<T: Real>(
        &mut self,
        culprit: Culprit,
        cluster: &mut Cluster<T>,
    ) -> Result<String> {
        if self.job.setup.experiment.protects_rows() {
            let variable = culprit.grown.first().map_or("state", |grown| grown.variable);
            return Ok(format!(
                "{variable} grew without bound at node {}: take smaller steps, or a larger `epsilon`. With `[privacy]`, \
                 rows are not measured to say more",
                self.job.setup.world.node_at(culprit.node)
            ));
        }
        let here = cluster.here();
        let mut ours = vec![Vec::new(); here.len()];
        if here.contains(&culprit.node) {
            let at = culprit.node - here.start;
            let good = self.good.get(at).and_then(|good| unpacked(&cluster.nodes()[at], good));
            let why = good.map(|good| self.explain(&culprit, at, good));
            let why = why.unwrap_or_else(|| "it never had a finite point".into());
            // One line: other nodes refuse control characters.
            ours[at] = why.replace(char::is_control, " ").into_bytes();
        }
        let said = cluster.everyone_bytes(ours, Expect::Text)?;
        Ok(String::from_utf8_lossy(&said[culprit.node]).into_owned())
    }

    /// The remedy where large features make every step too long.
    fn unscaled(&self, node: usize) -> Option<String> {
        let Setup { data, world, .. } = self.job.setup;
        let data = data.filter(|data| data.scaling.of(node).is_none())?;
        let squares = data.train.samples::<f64>(world.partition.nodes[node].clone()).mean_squares();
        let (feature, &square) = squares.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        (square > LARGE).then(|| {
            format!(
                "; the features are not scaled (the root mean square of feature {feature} is {} at \
                 this node), and steps that suit them are tiny: set `scaling = \"standardise\"` in \
                 `[data]`",
                number(square.sqrt())
            )
        })
    }

    /// The diagnosis in words that a user can act on.
    fn explain(&mut self, culprit: &Culprit, evaluator: usize, (x, theta): Point) -> String {
        let part = &mut *self.evaluators[evaluator];
        let params = self.job.algorithm.choice.params();
        let facts = &self.job.algorithm.choice.build.facts;
        let Setup { experiment, world, .. } = self.job.setup;
        let (scope, lambda_min) = (experiment.scope, world.analysis.lambda_min);
        let conditions = Conditions { facts, params, scope, lambda_min };
        let why = diagnose(culprit, &conditions, part, At { x: &x, theta: &theta });
        if let Some(remedy) = self.unscaled(world.node_at(culprit.node)) {
            return why + &remedy;
        }
        match facts.needs_lazy && lambda_min < -1e-9 {
            true => format!(
                "{why}; or use lazy weights: the smallest eigenvalue of W is {lambda_min:.2}, \
                 and this method bears larger steps if it is not negative"
            ),
            false => why,
        }
    }
}
