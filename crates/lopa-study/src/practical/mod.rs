//! Practical step sizes, from local curvature, stability limits and a short calibration run; confirmed at full
//! length on seeds on which they were not chosen, with room above them, and judged on yet others.
//!
//! No theorem supports them. The theorem's step sizes are for the worst problem with the same
//! constants, these for the problem at hand.

pub mod course;
pub mod inspector;
pub mod snapshot;
pub mod spectrum;
mod steps;

pub use steps::{Scheme, Steps};

use serde::Serialize;

use self::inspector::{Depth, Inspector};
use self::snapshot::Snapshot;
use self::spectrum::extreme_eigenvalues;
use crate::parallel;
use lopa::error::Result;
use lopa::experiment::AlgorithmSpec;
use lopa::math::portable::{exp, ln};
use lopa::math::real::{axpy, dot};
use lopa::problem::{At, Bilevel};
use lopa::run::Setup;
use lopa::run::evaluate::exact::solve;

/// The nodes' parts of a problem.
pub type Parts = [Box<dyn Bilevel<f64>>];

/// The indices of all samples of a node.
pub fn all_samples(count: usize) -> Vec<u32> {
    (0..count as u32).collect()
}

/// A common x, with θ_i and θ_i*(x) of every node.
#[derive(Debug, Clone)]
pub struct Point {
    /// x
    pub x: Vec<f64>,
    /// θ_i
    pub theta: Vec<Vec<f64>>,
    /// θ_i*(x)
    pub best: Vec<Vec<f64>>,
}

/// Suggested step sizes, and the reasons for them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suggestion {
    /// The step sizes; γ and τ are the file's. `None` if all step sizes that were tried diverge.
    pub steps: Option<Steps>,
    /// The seeds and the iterations on which they were confirmed.
    pub confirmed: Confirmed,
    /// How they did on seeds that had no part in the choice; `None` if there are none.
    pub judged: Option<Judged>,
    /// Smallest and largest curvature of the g_i at the start and at the end of the run.
    pub curvature: (f64, f64),
    /// β and λ must stay below 2/(μ + L).
    pub limit_beta: f64,
    /// λ must stay below 2/L.
    pub limit_lambda: f64,
    /// Largest curvature of the Φ_i at the start.
    pub smoothness: f64,
    /// The linearised iteration is stable for α below it, for the smallest and the second largest
    /// eigenvalue of W.
    pub limit_alpha: f64,
    /// The trials of the calibration: α, and Φ at its end, `None` if it diverged.
    pub tried: Vec<(f64, Option<f64>)>,
    /// Iterations of the calibration.
    pub iterations: u64,
}

/// The full runs that confirm step sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confirmed {
    /// The seeds: those after the file's.
    pub seeds: Vec<u64>,
    /// Iterations: those that the file sets.
    pub iterations: u64,
    /// How much larger α, β and λ were there than suggested.
    pub room: f64,
    /// The α's that failed, from the calibration's best down.
    pub lost: Vec<f64>,
}

/// Full runs with the suggested step sizes, from which nothing was chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Those on which Φ rose or the run diverged.
    pub failed: Vec<u64>,
}

/// How many seeds confirm step sizes.
const CONFIRM: usize = 4;

/// On how many others they are judged.
const JUDGE: usize = 6;

/// How much larger step sizes are when they are confirmed.
const ROOM: f64 = 1.5;

/// A run fails if Φ ends higher than it began by this share. While θ and v are far from their
/// solutions, Φ may rise a little with any α.
const HIGHER: f64 = 0.01;

/// How often a step size that fails is halved.
const HALVINGS: i32 = 10;

/// The best step sizes in short runs, not yet confirmed in long ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The step sizes; γ and τ are the file's.
    pub best: Steps,
    curvature: (f64, f64),
    smoothness: f64,
    limit_alpha: f64,
    tried: Vec<(f64, Option<f64>)>,
    iterations: u64,
}

/// Finds step sizes for an algorithm of the experiment by short runs on the seed of the setup.
pub fn calibrate(
    setup: &Setup,
    spec: &AlgorithmSpec,
    scheme: Scheme,
    own: &Steps,
    points: &[&Point],
    planned: u64,
) -> Result<Calibration> {
    let mut parts = setup.parts()?;
    let curvature = curvature(&mut parts, points);
    let smoothness = smoothness(&mut parts, points[0], setup);
    let (lambda_2, lambda_min) = setup.world.mixing.eigenvalues();
    let limit_alpha = stable_alpha(scheme, smoothness, [lambda_2, lambda_min], own.gamma, own.tau);
    let inner = 1.0 / curvature.1;
    let iterations = (planned / 5).clamp(20.min(planned), 300);
    // Multiples of the limit, and the file's α.
    let mut alphas: Vec<f64> = [1, 0, -1, -2, -3].map(|p| limit_alpha * 2f64.powi(p)).to_vec();
    alphas.push(own.alpha);
    let mut tried = Vec::new();
    for alpha in alphas {
        let steps = Steps { alpha, beta: inner, lambda: inner, ..*own };
        let choice = course::with_steps(spec, scheme, &steps)?;
        let run = course::run(setup, &choice, &[iterations])?;
        let end = match (run.diverged, run.seen.last()) {
            (None, Some((_, seen))) => Some(seen.errors.objective).filter(|phi| phi.is_finite()),
            _ => None,
        };
        tried.push((alpha, end));
    }
    let best = tried.iter().filter_map(|&(alpha, phi)| Some((alpha, phi?)));
    let best = best.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(limit_alpha / 16.0, |best| best.0);
    let best = Steps { alpha: best, beta: inner, lambda: inner, ..*own };
    Ok(Calibration { best, curvature, smoothness, limit_alpha, tried, iterations })
}

/// Suggests step sizes for an algorithm of the experiment.
pub fn suggest(
    setup: &Setup,
    spec: &AlgorithmSpec,
    scheme: Scheme,
    own: &Steps,
    points: &[&Point],
    planned: u64,
) -> Result<Suggestion> {
    let Calibration { best, curvature, smoothness, limit_alpha, tried, iterations } =
        calibrate(setup, spec, scheme, own, points, planned)?;
    let mut fresh = fresh_seeds(setup);
    let judges = fresh.split_off(CONFIRM);
    let mut confirmed =
        Confirmed { seeds: fresh, iterations: planned, room: ROOM, lost: Vec::new() };
    let failed = |steps: &Steps, seed: u64| fails(setup, spec, scheme, steps, seed, planned);
    let mut steps = None;
    for halvings in 0..HALVINGS {
        // α is the usual cause; if it is not, the step sizes of θ and v are also reduced.
        let inner = best.beta / 2f64.powi(halvings / 3);
        let alpha = best.alpha / 2f64.powi(halvings);
        let next = Steps { alpha, beta: inner, lambda: inner, ..best };
        let larger =
            Steps { alpha: ROOM * alpha, beta: ROOM * inner, lambda: ROOM * inner, ..best };
        let mut lost = false;
        for &seed in &confirmed.seeds {
            lost = lost || failed(&larger, seed)?;
        }
        if !lost {
            steps = Some(next);
            break;
        }
        confirmed.lost.push(next.alpha);
    }
    let judged = match &steps {
        None => None,
        Some(steps) => {
            let mut lost = Vec::new();
            for &seed in &judges {
                if failed(steps, seed)? {
                    lost.push(seed);
                }
            }
            Some(Judged { seeds: judges, failed: lost })
        }
    };
    Ok(Suggestion {
        steps,
        confirmed,
        judged,
        curvature,
        limit_beta: 2.0 / (curvature.0 + curvature.1),
        limit_lambda: 2.0 / curvature.1,
        smoothness,
        limit_alpha,
        tried,
        iterations,
    })
}

/// Seeds after all of the file's: those that confirm, then those that judge.
fn fresh_seeds(setup: &Setup) -> Vec<u64> {
    let own = setup.experiment.run.seeds.iter().copied().chain([setup.seed]);
    let used: Vec<u64> = own.collect();
    let first = used.iter().max().map_or(1, |largest| largest.wrapping_add(1));
    let seeds = (0..u64::MAX).map(|step| first.wrapping_add(step));
    seeds.filter(|seed| !used.contains(seed)).take(CONFIRM + JUDGE).collect()
}

/// Whether a run with these step sizes diverges, or raises Φ.
fn fails(
    setup: &Setup,
    spec: &AlgorithmSpec,
    scheme: Scheme,
    steps: &Steps,
    seed: u64,
    iterations: u64,
) -> Result<bool> {
    let choice = course::with_steps(spec, scheme, steps)?;
    let world = setup.experiment.world(setup.data, seed)?;
    let there = Setup { world: &world, seed, ..*setup };
    // A check during the run ends a failed run early.
    let mut looks = vec![0, iterations / 10, iterations];
    looks.dedup();
    let run = course::run(&there, &choice, &looks)?;
    let phi = |at: Option<&(u64, Snapshot)>| at.map(|(_, seen)| seen.errors.objective);
    Ok(match (run.diverged, phi(run.seen.first()), phi(run.seen.last())) {
        (None, Some(start), Some(end)) => end > start + HIGHER * start.abs() + 1e-9,
        _ => true,
    })
}

/// The extreme eigenvalues of ∇²_θθ g_i over nodes and points.
fn curvature(parts: &mut Parts, points: &[&Point]) -> (f64, f64) {
    let mut found = (f64::INFINITY, 0.0f64);
    for (i, part) in parts.iter_mut().enumerate() {
        let mut inspector = Inspector::new(&mut **part, Depth::ESTIMATE);
        for point in points {
            let (low, high) = inspector.curvatures(At { x: &point.x, theta: &point.theta[i] });
            found = (found.0.min(low), found.1.max(high));
        }
    }
    found
}

/// The largest |eigenvalue| of ∇²Φ_i at a point over nodes, by central differences of ∇Φ_i.
pub fn smoothness(parts: &mut Parts, point: &Point, setup: &Setup) -> f64 {
    let one = |(part, guess): (&mut Box<dyn Bilevel<f64>>, &Vec<f64>)| {
        let h = 1e-4 * (1.0 + dot(&point.x, &point.x).sqrt());
        let (low, high) = extreme_eigenvalues(point.x.len(), 6, |v, out| {
            let mut x = point.x.clone();
            axpy(h, v, &mut x);
            out.copy_from_slice(&solve(&mut **part, &x, guess).grad);
            axpy(-2.0 * h, v, &mut x);
            axpy(-1.0, &solve(&mut **part, &x, guess).grad, out);
            out.iter_mut().for_each(|out| *out /= 2.0 * h);
        });
        low.abs().max(high)
    };
    let all = parallel::map(setup.pool, parts.iter_mut().zip(&point.best), one);
    all.into_iter().fold(0.0, f64::max)
}

/// The largest α for which LoPA is stable on Φ_i = h/2 |x|², with exact θ and v, for each
/// eigenvalue of W and for the mean.
///
/// A smallest eigenvalue of W near −1 hurts gradient tracking here.
pub fn stable_alpha(scheme: Scheme, h: f64, of_w: [f64; 2], gamma: f64, tau: f64) -> f64 {
    let stable = |alpha: f64| {
        let mean = radius(local_mode(1.0, h, alpha, gamma, tau));
        let apart = of_w.iter().filter(|w| w.abs() < 1.0).map(|&w| match scheme {
            Scheme::LocalGradient => radius(local_mode(w, h, alpha, gamma, tau)),
            Scheme::GradientTracking => radius(tracking_mode(w, h, alpha, gamma, tau)),
        });
        apart.fold(mean, f64::max) < 1.0
    };
    if h <= 0.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (1e-9 / h, 1e9 / h);
    for _ in 0..80 {
        let middle = (low * high).sqrt();
        match stable(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// (x, y, z) ↦ their next values along an eigenvector of W, with y = z.
fn local_mode(w: f64, h: f64, alpha: f64, gamma: f64, tau: f64) -> [[f64; 3]; 3] {
    let keep = 1.0 - tau + tau * w;
    [[keep, 0.0, -tau * alpha], [0.0, 0.0, 0.0], [gamma * h, 0.0, 1.0 - gamma]]
}

/// (x, y, z) ↦ their next values along an eigenvector of W, with y⁺ = w y + z⁺ − z.
fn tracking_mode(w: f64, h: f64, alpha: f64, gamma: f64, tau: f64) -> [[f64; 3]; 3] {
    let keep = 1.0 - tau + tau * w;
    [[keep, -tau * alpha, 0.0], [gamma * h, w, -gamma], [gamma * h, 0.0, 1.0 - gamma]]
}

/// The spectral radius, by squaring: ‖M^(2^k)‖^(1/2^k).
fn radius(mut m: [[f64; 3]; 3]) -> f64 {
    let mut log = 0.0;
    for k in 0..40 {
        let size = m.iter().flatten().fold(0.0f64, |largest, entry| largest.max(entry.abs()));
        if size == 0.0 {
            return 0.0;
        }
        log += ln(size) / 2f64.powi(k);
        m.iter_mut().flatten().for_each(|entry| *entry /= size);
        let before = m;
        m = std::array::from_fn(|i| {
            std::array::from_fn(|j| (0..3).map(|l| before[i][l] * before[l][j]).sum())
        });
    }
    exp(log)
}
