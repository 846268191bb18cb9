//! The `[privacy]` section: how much a run may say about a single row.

use lopa_privacy::{DELTA, SIGMA};

use super::{Exactly, Experiment, FinalTheta, Precision, Until};
use crate::data::{Method, MomentsOf, Preparation, UnknownLabels};
use crate::error::{Error, Fault, Result};
use crate::params;
use crate::problem::private::RowClip;
use crate::problem::scope::Scope;

params! {
    /// How much a run may say about a single row of a node: every derivative is clipped row by row and gets noise. See the
    /// page on privacy.
    #[derive(PartialEq)]
    pub struct PrivacySpec {
        /// ε, the budget; noise is chosen such that all iterations spend it, or, with `noise`, the run ends when
        /// it is spent.
        #[serde(skip_serializing_if = "Option::is_none")]
        epsilon: Option<f64> = None, from_to(0.000_001, 1000.0);
        /// δ, the probability with which the bound may fail: below one over the number of rows.
        delta: f64 = 0.00001, from_to(DELTA.start, 0.5);
        /// C, the largest norm of a row's part of a derivative, beyond which it is shortened: a number, or `"auto"`, which
        /// follows the norms of the rows' parts, within the budget.
        clip: RowClip = RowClip::AUTO;
        /// σ, the deviation of the noise divided by `clip`, in place of one that follows from `epsilon`.
        #[serde(skip_serializing_if = "Option::is_none")]
        noise: Option<f64> = None, from_to(SIGMA.start, SIGMA.end);
        /// Whether agreed moments and measures are summed over the nodes by pairwise masks: each node gets the sum, and none
        /// gets the numbers of another.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        masked: bool = false;
        /// Simulates a private run: samples and noise are drawn from this seed and that of the run, so that a reader
        /// of the file can remove the noise, and no row is protected. Without it, each node draws a key of its own.
        #[serde(skip_serializing_if = "Option::is_none")]
        seed: Option<u64> = None;
    }
    check |privacy| {
        let some = privacy.has_noise() || privacy.masked;
        Fault::without(some, "epsilon", "given, or `noise`, or `masked = true`")?;
        if let RowClip::Number(clip) = privacy.clip {
            let must = "from 0.000001 to 1000000, or \"auto\"";
            Fault::unless(RowClip::RANGE.contains(&clip), "clip", clip, must)?;
        }
        let seed = privacy.seed.unwrap_or_default();
        Fault::unless(seed <= i64::MAX as u64, "seed", seed, "below 2^63")
    }
}

impl PrivacySpec {
    /// Whether derivatives get noise.
    pub fn has_noise(&self) -> bool {
        self.epsilon.is_some() || self.noise.is_some()
    }

    /// Whether its noise comes from a seed that readers of the file have.
    pub fn is_simulated(&self) -> bool {
        self.seed.is_some()
    }
}

/// A setting that is refused: whether it is in the way, its key, why, and the remedy.
type Rule = (bool, &'static str, &'static str, &'static str);

const SIMULATE: &str = "keep one, or simulate the runs with `seed` in `[privacy]`";

/// Partitions that depend on no label and no feature.
const BLIND: [&str; 5] = ["iid", "quantity", "group", "own", "file"];

impl Experiment {
    /// The section `[privacy]`, if derivatives get noise.
    pub fn noise(&self) -> Option<&PrivacySpec> {
        self.privacy.as_ref().filter(|privacy| privacy.has_noise())
    }

    /// Whether its rows are to be protected: by noise that is not a simulation.
    pub fn protects_rows(&self) -> bool {
        self.noise().is_some_and(|privacy| !privacy.is_simulated())
    }

    /// Whether numbers of the nodes are summed by masks.
    pub fn masks(&self) -> bool {
        self.privacy.as_ref().is_some_and(|privacy| privacy.masked)
    }

    /// Refuses settings that the accounting of `[privacy]` does not cover.
    pub(crate) fn check_privacy(&self) -> Result<()> {
        let mut rules = if self.masks() { self.rules_of_masks() } else { Vec::new() };
        if self.noise().is_some() {
            rules.extend(self.rules());
        }
        if self.protects_rows() {
            rules.extend(self.rules_of_protection());
            rules.extend(self.data.iter().flat_map(|data| {
                let blind = BLIND.contains(&&*data.partition.name);
                let partition: Rule = (
                    !blind,
                    "partition",
                    "depends on labels or features, so that one row moves others between nodes",
                    "take \"own\", \"group\", \"file\", \"iid\" or \"quantity\"",
                );
                rules_of_data(&data.preparation).into_iter().chain([partition])
            }));
        }
        let Some((_, key, why, hint)) = rules.into_iter().find(|(broken, ..)| *broken) else {
            return Ok(());
        };
        let message = format!("with `[privacy]`, `{key}` {why}");
        Err(Error::config("privacy/refused", message).at(key).hint(hint))
    }

    fn rules(&self) -> Vec<Rule> {
        let run = &self.run;
        vec![
            (
                run.iterations.is_none(),
                "run.iterations",
                "is missing: noise follows from the number of iterations",
                "give `iterations`",
            ),
            (
                run.until == Until::All,
                "run.until",
                "may continue a run beyond `iterations`, for which its noise is made",
                "leave it out",
            ),
            (
                run.shared_samples,
                "run.shared_samples",
                "uses one sample for several derivatives, and these are counted as independent",
                "leave it out",
            ),
            (
                run.epochs,
                "run.epochs",
                "takes rows in an order, and the account is for rows that are drawn",
                "leave it out",
            ),
            (
                run.finite_differences.is_some(),
                "run.finite_differences",
                "divides the noise by a small width",
                "leave it out",
            ),
            (
                run.target.is_some(),
                "run.target",
                "ends a run by a measure of the rows, which is not counted",
                "leave it out",
            ),
            (
                matches!(run.final_theta, FinalTheta::Solved | FinalTheta::Refitted),
                "run.final_theta",
                "solves for θ on the rows, without noise",
                "leave it out",
            ),
            (
                self.device.build.driver().is_some(),
                "run.device",
                "hides no rows",
                "run on the processor: `device = \"cpu\"`",
            ),
        ]
    }

    fn rules_of_masks(&self) -> Vec<Rule> {
        let agreed = self.data.as_ref().and_then(|data| data.preparation.agreed());
        let largest = matches!(agreed, Some(Method::Unit | Method::Centre));
        let solves = self.scope == Scope::Global && self.run.exact != Exactly::Never;
        vec![
            (
                self.attack.is_some(),
                "attack",
                "lies in sums, of which `masked` hides the parts",
                "leave `[attack]` or `masked` out",
            ),
            (
                agreed.is_some()
                    && self.data.as_ref().is_some_and(|d| d.preparation.scales_numbers()),
                "data.target",
                "is a number, whose moments nodes would send without masks",
                "leave `moments = \"agreed\"` or `masked` out",
            ),
            (
                largest,
                "data.scaling",
                "needs the largest entry of all nodes, which is no sum",
                "set `scaling = \"standardise\"`, or give `moments = { … }`",
            ),
            (
                solves,
                "run.exact",
                "solves one inner problem for all nodes, which sends gradients without masks",
                "set `exact = \"never\"`, or leave `masked` out",
            ),
        ]
    }

    fn rules_of_protection(&self) -> Vec<Rule> {
        let limited = self.privacy.as_ref().is_some_and(|privacy| privacy.epsilon.is_some());
        vec![
            (
                !limited,
                "privacy.epsilon",
                "is missing: the ledger of the rows reserves it before the run",
                "give `epsilon`, also beside `noise`",
            ),
            (
                self.run.seeds.len() > 1,
                "run.seeds",
                "has several seeds, each a run of its own that would spend the budget again",
                SIMULATE,
            ),
            (
                self.algorithms.len() > 1,
                "algorithm",
                "lists several, each a run of its own that would spend the budget again",
                SIMULATE,
            ),
            (
                self.run.precision != Precision::F64,
                "run.precision",
                "must be f64: in single precision, how a table is stored changes more than last bits",
                "leave it out",
            ),
            (self.run.lyapunov, "run.lyapunov", "measures the rows without noise", "leave it out"),
        ]
    }
}

fn rules_of_data(data: &Preparation) -> Vec<Rule> {
    let given = matches!(data.moments, Some(MomentsOf::Given(_)));
    let free = matches!(data.scaling, Some(Method::None | Method::Row | Method::Log));
    vec![
        (
            !given && !free,
            "data.scaling",
            "must not follow from the rows: their moments have no noise",
            "set `scaling = \"none\"`, \"row\" or \"log\", or give `moments = { mean = […], deviation = […] }`",
        ),
        (
            data.scales_numbers(),
            "data.target",
            "is a number, which is scaled by moments of the rows that have no noise",
            "list ranges of it as `classes`",
        ),
        (
            data.predicts_survival(),
            "data.target",
            "is a time: what a row adds to the likelihood depends on the others at risk",
            "list ranges of it as `classes`",
        ),
        (
            data.missing.is_some(),
            "data.missing",
            "fills by means of the rows that have no noise",
            "fill missing values in before",
        ),
        (
            data.classes.is_none(),
            "data.classes",
            "is missing: a class of a single row would show that row",
            "list the classes: `classes = [\"no\", \"yes\"]`",
        ),
        (
            data.unknown_labels == Some(UnknownLabels::Drop),
            "data.unknown_labels",
            "tells other nodes how many rows it leaves out",
            "correct the labels, and leave it out",
        ),
        (
            data.test != Some(0.0),
            "data.test",
            "must be 0: rows are held out class by class, so that one label moves other rows",
            "set `test = 0.0`, and use `holdout` or a file of test rows",
        ),
    ]
}
