//! The claims: the varied quantity, the measured one, and the paper's prediction.

use toml::Table;

use super::lab::{Lab, Sampled};
use super::{Claim, Points, Sense};
use crate::theory::Scheme::{GradientTracking, LocalGradient};
use crate::theory::{Scheme, Steps};
use lopa::algorithms::{AnyMethod, algorithms};
use lopa::config::Choice;
use lopa::math::portable::{cbrt, ln, powi};

/// Step sizes with this α; the corollaries scale α, β, λ, γ together, here by `factor`.
fn steps(alpha: f64, factor: f64) -> Steps {
    let [alpha, beta, lambda, gamma] = [alpha, 0.9, 0.9, 0.8].map(|step| step * factor);
    Steps { alpha, beta, lambda, gamma, tau: 0.5 }
}

/// Step sizes of which only α varies.
fn only_alpha(alpha: f64) -> Steps {
    steps(alpha, 1.0)
}

/// Step sizes for the logistic regression, whose g is steeper and whose Φ is flatter, all times `factor`.
pub(super) fn gentle(factor: f64) -> Steps {
    let [alpha, beta, lambda, gamma] = [1.0, 0.3, 0.3, 0.8].map(|step| step * factor);
    Steps { alpha, beta, lambda, gamma, tau: 0.5 }
}

const AVERAGE: &str = "mean of |grad Phi|^2 over the run";
const FLOOR: &str = "mean of |grad Phi|^2 over the second half of the run";
const BEST: &str = "mean of |grad Phi|^2 over 1000 iterations, best of six alpha";

const STOCHASTIC: &str = "single samples, noise 1, alpha = 0.4 units at K = 500, all steps proportional to (K/500)^-1/2, K = 500 to 32000";
const BOTH_TERMS: &str = "with these steps the initial decrease alone also has this power: the measurement does not separate the two terms of the corollary";
const STOCHASTIC_LOGISTIC: &str = "logistic regression, 8 nodes on a ring, single samples, alpha = 1 at K = 1000, all steps proportional to (K/1000)^-1/2, K = 1000 to 64000";
const TILTED: &str = "8 quadratics on a ring, <t_i, x> added to f_i with sum t_i = 0, |t_i| of order 8 to 64, alpha = 0.05 units; b measured at the end";
const NETWORKS: &str =
    "16 quadratics, complete, hypercube, grid, ring and path, alpha = 0.025 to 0.8 units";

/// All claims.
pub(super) const CLAIMS: [Claim; 17] = [
    Claim {
        id: "gt-deterministic",
        claim: "LoPA-GT on full batches: 1/K",
        place: "Corollary 4",
        x: "K",
        y: AVERAGE,
        predicted: -1.0,
        sense: Sense::Equal,
        settings: "8 quadratics on a ring, alpha = 0.4 units, K = 500 to 8000",
        remark: "weak evidence: |grad Phi|^2 falls linearly here, and the mean of any sequence with a finite sum falls as 1/K",
        measure: |lab, seed| {
            let ks = [500, 1000, 2000, 4000, 8000].map(|k| lab.iterations(k));
            let trial = lab.trial(seed);
            let run = trial.lopa(GradientTracking, only_alpha(0.4 * trial.unit()?), ks[4])?;
            Ok(ks.iter().map(|&k| (k as f64, run.average(k))).collect())
        },
    },
    Claim {
        id: "lg-deterministic",
        claim: "LoPA-LG on full batches with alpha of order K^-1/3: K^-2/3",
        place: "Corollary 3",
        x: "K",
        y: AVERAGE,
        predicted: -2.0 / 3.0,
        sense: Sense::Equal,
        settings: "8 quadratics on a ring, alpha = 0.1 units at K = 4000, all steps proportional to K^-1/3, K = 4000 to 64000",
        remark: "",
        measure: |lab, seed| {
            let trial = lab.trial(seed);
            let unit = trial.unit()?;
            let at = |k: f64| {
                let last = lab.iterations(k as u64);
                let run = trial.lopa(LocalGradient, steps(0.1 * unit, cbrt(4000.0 / k)), last)?;
                Ok((last as f64, run.average(last)))
            };
            [4000.0, 8000.0, 16_000.0, 32_000.0, 64_000.0].into_iter().map(at).collect()
        },
    },
    Claim {
        id: "lg-floor",
        claim: "LoPA-LG stops at a floor of order alpha^2",
        place: "Theorem 1, third term",
        x: "alpha in units",
        y: FLOOR,
        predicted: 2.0,
        sense: Sense::Equal,
        settings: "8 quadratics on a ring, alpha = 0.003 to 0.025 units, 600/alpha iterations",
        remark: "",
        measure: |lab, seed| {
            let trial = lab.trial(seed);
            let unit = trial.unit()?;
            let at = |alpha: f64| {
                let last = lab.iterations((600.0 / alpha) as u64);
                let run = trial.lopa(LocalGradient, only_alpha(alpha * unit), last)?;
                Ok((alpha, run.floor()))
            };
            [0.003125, 0.00625, 0.0125, 0.025].into_iter().map(at).collect()
        },
    },
    Claim {
        id: "gt-stochastic",
        claim: "LoPA-GT on minibatches with steps of order K^-1/2: K^-1/2",
        place: "Corollary 2",
        x: "K",
        y: AVERAGE,
        predicted: -0.5,
        sense: Sense::Equal,
        settings: STOCHASTIC,
        remark: BOTH_TERMS,
        measure: |lab, seed| stochastic(lab, seed, GradientTracking),
    },
    Claim {
        id: "lg-stochastic",
        claim: "LoPA-LG on minibatches with steps of order K^-1/2: K^-1/2",
        place: "Corollary 1",
        x: "K",
        y: AVERAGE,
        predicted: -0.5,
        sense: Sense::Equal,
        settings: STOCHASTIC,
        remark: BOTH_TERMS,
        measure: |lab, seed| stochastic(lab, seed, LocalGradient),
    },
    Claim {
        id: "speed-up-outer",
        claim: "the part of sigma_c falls as 1/m at a given alpha (as 1/sqrt(m) with the corollary's alpha)",
        place: "remark on linear speed-up",
        x: "m",
        y: FLOOR,
        predicted: -1.0,
        sense: Sense::Equal,
        settings: "equal nodes, complete graph, single samples of grad_x f and the Jacobian, noise 0.5, alpha = 0.1 units, m = 2 to 32",
        remark: "",
        measure: |lab, seed| speed_up(lab, seed, Sampled::Outer),
    },
    Claim {
        id: "speed-up-inner",
        claim: "the part of sigma_p does not fall with m",
        place: "remark on linear speed-up",
        x: "m",
        y: FLOOR,
        predicted: 0.0,
        sense: Sense::Equal,
        settings: "equal nodes, complete graph, single samples of grad_theta f, grad_theta g, Hessian, noise 0.5, alpha = 0.1 units, m = 2 to 32",
        remark: "the remark rests on an upper bound; on quadratics the errors of theta_i and v_i enter \
                 the mean hypergradient linearly and average out over nodes like those of sigma_c, \
                 which the proof, bounding the mean of squares, does not use",
        measure: |lab, seed| speed_up(lab, seed, Sampled::Inner),
    },
    Claim {
        id: "lg-heterogeneity",
        claim: "the floor of LoPA-LG grows as b^2 at a given alpha (as b^2/3 with the corollary's alpha)",
        place: "Theorem 1, third term",
        x: "b",
        y: FLOOR,
        predicted: 2.0,
        sense: Sense::Equal,
        settings: TILTED,
        remark: "so that b grows, and neither Phi nor any second derivative changes",
        measure: |lab, seed| heterogeneity(lab, seed, LocalGradient),
    },
    Claim {
        id: "gt-heterogeneity",
        claim: "LoPA-GT does not depend on b",
        place: "Theorem 2",
        x: "b",
        y: AVERAGE,
        predicted: 0.0,
        sense: Sense::Equal,
        settings: TILTED,
        remark: "",
        measure: |lab, seed| heterogeneity(lab, seed, GradientTracking),
    },
    Claim {
        id: "lg-floor-network",
        claim: "the floor of LoPA-LG grows as 1/(1 - rho)^2 at a given alpha",
        place: "Theorem 1, theta of (67)",
        x: "1/(1 - rho)",
        y: FLOOR,
        predicted: 2.0,
        sense: Sense::AtMost,
        settings: "16 quadratics, complete, hypercube, grid, ring and path, alpha = 0.05 units",
        remark: "an upper bound for the worst heterogeneity; here it lies in all eigenvectors of W",
        measure: |lab, seed| {
            let at = |graph: &str| {
                let trial = lab.trial(seed).network(16, graph);
                let alpha = 0.05 * trial.unit()?;
                let run = trial.lopa(LocalGradient, only_alpha(alpha), lab.iterations(20_000))?;
                Ok((1.0 / (1.0 - trial.rho()?), run.floor()))
            };
            GRAPHS.into_iter().map(at).collect()
        },
    },
    Claim {
        id: "lg-network",
        claim: "with the best alpha, LoPA-LG grows as 1/(1 - rho)",
        place: "Corollary 1",
        x: "1/(1 - rho)",
        y: BEST,
        predicted: 1.0,
        sense: Sense::AtMost,
        settings: NETWORKS,
        remark: "an upper bound",
        measure: |lab, seed| network(lab, seed, LocalGradient),
    },
    Claim {
        id: "gt-network",
        claim: "with the best alpha, LoPA-GT grows as 1/(1 - rho)^2",
        place: "Corollary 2",
        x: "1/(1 - rho)",
        y: BEST,
        predicted: 2.0,
        sense: Sense::AtMost,
        settings: NETWORKS,
        remark: "an upper bound",
        measure: |lab, seed| network(lab, seed, GradientTracking),
    },
    Claim {
        id: "gt-deterministic-logistic",
        claim: "LoPA-GT on full batches, not quadratic: 1/K",
        place: "Corollary 4",
        x: "K",
        y: AVERAGE,
        predicted: -1.0,
        sense: Sense::Equal,
        settings: "logistic regression, 8 nodes on a ring, alpha = 1, K = 1000 to 16000",
        remark: "the mean of a sequence that is not zero cannot fall faster than 1/K",
        measure: |lab, seed| {
            let ks = [1000, 2000, 4000, 16_000].map(|k| lab.iterations(k));
            let trial = lab.logistic(seed)?;
            let run = trial.lopa(GradientTracking, gentle(1.0), ks[3])?;
            Ok(ks.iter().map(|&k| (k as f64, run.average(k))).collect())
        },
    },
    Claim {
        id: "gt-stochastic-logistic",
        claim: "LoPA-GT on minibatches with steps of order K^-1/2, not quadratic: K^-1/2",
        place: "Corollary 2",
        x: "K",
        y: AVERAGE,
        predicted: -0.5,
        sense: Sense::Equal,
        settings: STOCHASTIC_LOGISTIC,
        remark: BOTH_TERMS,
        measure: |lab, seed| stochastic_logistic(lab, seed, GradientTracking),
    },
    Claim {
        id: "lg-stochastic-logistic",
        claim: "LoPA-LG on minibatches with steps of order K^-1/2, not quadratic: K^-1/2",
        place: "Corollary 1",
        x: "K",
        y: AVERAGE,
        predicted: -0.5,
        sense: Sense::Equal,
        settings: STOCHASTIC_LOGISTIC,
        remark: BOTH_TERMS,
        measure: |lab, seed| stochastic_logistic(lab, seed, LocalGradient),
    },
    Claim {
        id: "speed-up-inner-logistic",
        claim: "the part of sigma_p does not fall with m, not quadratic",
        place: "remark on linear speed-up",
        x: "m",
        y: FLOOR,
        predicted: 0.0,
        sense: Sense::Equal,
        settings: "logistic regression, equal nodes, complete graph, single samples, alpha = 0.5, beta = lambda = 0.1, m = 2 to 32",
        remark: "here all noise is that of grad_theta f, grad_theta g and the Hessian, since the Jacobian \
                 depends on no sample",
        measure: |lab, seed| {
            let at = |nodes: usize| {
                let trial = lab.logistic(seed)?.network(nodes, "complete").equal();
                let trial = trial.sampled(Sampled::All, 0.0);
                let steps = Steps { alpha: 0.5, ..gentle(1.0 / 3.0) };
                let run = trial.lopa(GradientTracking, steps, lab.iterations(8000))?;
                Ok((nodes as f64, run.floor()))
            };
            [2, 4, 8, 16, 32].into_iter().map(at).collect()
        },
    },
    Claim {
        id: "hessians",
        claim: "looped baselines need log(1/eps) times the Hessian evaluations of LoPA",
        place: "Table 1, remark on improved complexity",
        x: "log(1/eps)",
        y: "Hessian evaluations of SPDB with its best Q over those of LoPA-GT, to |grad Phi|^2 = eps |grad Phi(x0)|^2",
        predicted: 1.0,
        sense: Sense::Equal,
        settings: "8 quadratics on a ring with condition 10, full batches, eps = 1e-2 to 1e-8, Q of 1, 2, 4, ... 64",
        remark: "",
        measure: hessians,
    },
];

const GRAPHS: [&str; 5] = ["complete", "hypercube", "grid", "ring", "path"];

fn stochastic(lab: &Lab, seed: u64, scheme: Scheme) -> Points {
    let at = |k: f64| {
        let last = lab.iterations(k as u64);
        let trial = lab.trial(seed).sampled(Sampled::All, 1.0);
        let run = trial.lopa(scheme, steps(0.4 * trial.unit()?, (500.0 / k).sqrt()), last)?;
        Ok((last as f64, run.average(last)))
    };
    [500.0, 2000.0, 8000.0, 32000.0].into_iter().map(at).collect()
}

fn stochastic_logistic(lab: &Lab, seed: u64, scheme: Scheme) -> Points {
    let trial = lab.logistic(seed)?.sampled(Sampled::All, 0.0);
    let at = |k: f64| {
        let last = lab.iterations(k as u64);
        let run = trial.lopa(scheme, gentle((1000.0 / k).sqrt()), last)?;
        Ok((last as f64, run.average(last)))
    };
    [1000.0, 4000.0, 16_000.0, 64_000.0].into_iter().map(at).collect()
}

fn speed_up(lab: &Lab, seed: u64, sampled: Sampled) -> Points {
    let at = |nodes: usize| {
        let trial = lab.trial(seed).network(nodes, "complete").problem("heterogeneity", 0.0);
        let trial = trial.sampled(sampled, 0.5);
        let gentle = Steps { beta: 0.2, lambda: 0.2, ..only_alpha(0.1 * trial.unit()?) };
        let run = trial.lopa(GradientTracking, gentle, lab.iterations(8000))?;
        Ok((nodes as f64, run.floor()))
    };
    [2, 4, 8, 16, 32].into_iter().map(at).collect()
}

fn heterogeneity(lab: &Lab, seed: u64, scheme: Scheme) -> Points {
    let at = |tilt: f64| {
        let trial = lab.trial(seed).tilted(tilt);
        let alpha = 0.05 * trial.unit()?;
        let run = trial.lopa(scheme, only_alpha(alpha), lab.iterations(20_000))?;
        let measured = match scheme {
            LocalGradient => run.floor(),
            GradientTracking => run.average(run.squares.len() as u64 - 1),
        };
        Ok((run.b_sq.sqrt(), measured))
    };
    [8.0, 16.0, 32.0, 64.0].into_iter().map(at).collect()
}

fn network(lab: &Lab, seed: u64, scheme: Scheme) -> Points {
    let at = |graph: &str| {
        let trial = lab.trial(seed).network(16, graph);
        let (last, unit) = (lab.iterations(1000), trial.unit()?);
        let mut best = f64::INFINITY;
        for alpha in [0.025, 0.05, 0.1, 0.2, 0.4, 0.8] {
            // A step size that diverges is not the best.
            if let Ok(run) = trial.lopa(scheme, only_alpha(alpha * unit), last) {
                best = best.min(run.average(last));
            }
        }
        Ok((1.0 / (1.0 - trial.rho()?), best))
    };
    GRAPHS.into_iter().map(at).collect()
}

fn hessians(lab: &Lab, seed: u64) -> Points {
    let trial = lab.trial(seed).problem("condition", 10.0);
    let last = lab.iterations(20_000);
    let alpha = 0.2 * trial.unit()?;
    let lopa = trial.lopa(GradientTracking, only_alpha(alpha), last)?;
    let mut looped = Vec::new();
    for q in [1, 2, 4, 8, 16, 32, 64] {
        looped.extend(trial.run(&spdb(alpha, q)?, last, 1e-9));
    }
    let to_reach = |eps: f64, run: &super::lab::Watched| {
        let at = run.squares.iter().position(|&now| now <= eps * run.squares[0])?;
        Some(run.hessians[at])
    };
    let at = |power: i32| {
        let eps = powi(10.0, -power);
        let ours = to_reach(eps, &lopa)?;
        let theirs = looped.iter().filter_map(|run| to_reach(eps, run)).reduce(f64::min)?;
        Some((ln(1.0 / eps), theirs / ours))
    };
    Ok([2, 3, 4, 5, 6, 7, 8].into_iter().filter_map(at).collect())
}

fn spdb(alpha: f64, hv_steps: i64) -> lopa::error::Result<Choice<AnyMethod>> {
    let mut params = Table::new();
    for (key, value) in [("alpha", alpha), ("beta", 0.9), ("lambda", 1.0)] {
        params.insert(key.into(), value.into());
    }
    params.insert("hv_steps".into(), hv_steps.into());
    params.insert("inverse".into(), "shia".into());
    algorithms().choose("spdb", &params)
}
