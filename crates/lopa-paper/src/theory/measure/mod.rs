//! The constants of a problem: exact, bounded in closed form, or estimated at points of a region.
//!
//! | problem | μ_g, L_{g,θ}, C_{f,θ} | the other Lipschitz constants | σ, b |
//! |---|---|---|---|
//! | quadratic | exact; C_{f,θ} over a ball | exact | exact or bounds over a ball |
//! | hyperparameter | closed form | closed form | estimates |
//! | representation | closed form | estimates | estimates |
//! | others | estimates | estimates | estimates |
//!
//! Estimates use Lanczos' method on Hessian-vector products, and differences of gradients and of
//! matrices, at the points of the region; they are lower bounds.

mod closed;
mod estimate;
pub mod heterogeneity;
mod quadratic;

pub use lopa_study::practical::Point;

use rayon::ThreadPool;
use serde::Serialize;

use self::heterogeneity::Dissimilarity;
use super::{Constants, Known, Parts};
use lopa::config::Choice;
use lopa::math::parallel;
use lopa::math::random::{Purpose, Stream};
use lopa::math::real::dot;
use lopa::problem::derivative::Batches;
use lopa::problem::{AnyProblem, Bilevel, Setting};
use lopa::run::Setup;
use lopa::run::evaluate::exact::solve;
use lopa_study::practical::inspector::Depth;
use lopa_study::practical::snapshot::{Snapshot, distance_sq};

/// The region in which constants hold: balls around the start, and the sampled points.
#[derive(Debug, Clone, Serialize)]
pub struct Region {
    /// The centre of the ball in x.
    #[serde(skip)]
    pub centre: Vec<f64>,
    /// The radius of the ball in x.
    pub radius: f64,
    /// The centre of each node's ball in θ.
    #[serde(skip)]
    pub theta_centre: Vec<Vec<f64>>,
    /// The radius of the balls in θ.
    pub theta_radius: f64,
    /// The points of the estimates.
    #[serde(skip)]
    pub points: Vec<Point>,
}

/// Points on the sphere around the region, in addition to those of the run.
const ON_THE_SPHERE: usize = 2;

impl Region {
    /// The region of a run: balls around its start with twice the radius that it reached, sampled
    /// along the run and on the sphere in x.
    pub fn around(parts: &mut Parts, run: &[Snapshot], seed: u64) -> Region {
        let centre = run[0].mean_x.clone();
        let theta_centre: Vec<_> = run[0].exact.iter().map(|own| own.theta.clone()).collect();
        let (mut reach, mut theta_reach) = (0.0f64, 0.0f64);
        for seen in run {
            reach = seen.state.x.iter().fold(reach, |reach, x| reach.max(distance(x, &centre)));
            for (i, middle) in theta_centre.iter().enumerate() {
                let own = [&seen.state.theta[i], &seen.exact[i].theta];
                theta_reach =
                    own.iter().fold(theta_reach, |reach, t| reach.max(distance(t, middle)));
            }
        }
        let radius = if reach > 0.0 { 2.0 * reach } else { 1.0 };
        let mut points: Vec<Point> = Vec::new();
        for seen in run {
            let best: Vec<_> = seen.exact.iter().map(|own| own.theta.clone()).collect();
            let (x, theta) = (seen.mean_x.clone(), seen.state.theta.clone());
            points.push(Point { x, theta, best });
        }
        for k in 0..ON_THE_SPHERE {
            let x = on_sphere(&centre, radius, seed, k);
            let one = |(part, guess): (&mut Box<dyn Bilevel<f64>>, &Vec<f64>)| {
                solve(&mut **part, &x, guess).theta
            };
            let best: Vec<_> = parts.iter_mut().zip(&theta_centre).map(one).collect();
            points.push(Point { x, theta: best.clone(), best });
        }
        let theta_radius = if theta_reach > 0.0 { 2.0 * theta_reach } else { 1.0 };
        Region { centre, radius, theta_centre, theta_radius, points }
    }

    /// A description in words.
    pub fn says(&self) -> String {
        format!(
            "x within {:.3} of its start, theta_i within {:.3} of theta_i*(x0); {} points",
            self.radius,
            self.theta_radius,
            self.points.len()
        )
    }

    /// Whether a run stayed inside.
    pub fn holds(&self, seen: &Snapshot) -> bool {
        let within = |a: &[f64], b: &[f64], r: f64| distance(a, b) <= r * (1.0 + 1e-9);
        let theta =
            |i: usize| within(&seen.state.theta[i], &self.theta_centre[i], self.theta_radius);
        seen.state.x.iter().all(|x| within(x, &self.centre, self.radius))
            && (0..self.theta_centre.len()).all(theta)
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    distance_sq(a, b).sqrt()
}

fn on_sphere(centre: &[f64], radius: f64, seed: u64, k: usize) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::Start, 0);
    stream.seek(1 << 20, k as u32);
    let direction: Vec<f64> = centre.iter().map(|_| stream.normal()).collect();
    let length = dot(&direction, &direction).sqrt();
    centre.iter().zip(&direction).map(|(c, d)| c + radius * d / length).collect()
}

/// The problem whose constants are measured.
pub struct Subject<'a> {
    /// The problem's name and parameters.
    pub problem: &'a Choice<AnyProblem>,
    /// The setting of its parts.
    pub setting: Setting<'a>,
    /// Samples per minibatch.
    pub batches: Batches,
    /// ρ of the mixing matrix.
    pub rho: f64,
}

impl<'a> Subject<'a> {
    /// The subject of an experiment on a seed.
    pub fn of(setup: &Setup<'a>) -> Subject<'a> {
        let experiment = setup.experiment;
        let batches = experiment.run.batch.batches();
        let setting = Setting {
            nodes: experiment.network.nodes,
            seed: setup.seed,
            scope: experiment.scope,
            batch: batches.grad_g,
            data: setup.data,
            partition: &setup.world.partition.nodes,
            holdout: &setup.world.holdout,
            ..Setting::default()
        };
        let rho = setup.world.analysis.rho;
        Subject { problem: &experiment.problem, setting, batches, rho }
    }
}

/// The constants of Assumptions 1 to 5 over a region.
pub fn constants(
    subject: &Subject,
    parts: &mut Parts,
    region: &Region,
    pool: Option<&ThreadPool>,
) -> Constants<Known> {
    let quadratic = subject.problem.name == "quadratic";
    let depth = if quadratic { Depth::QUADRATIC } else { Depth::ESTIMATE };
    let narrowed;
    // A quadratic's matrices are the same everywhere: one point is enough.
    let seen_at = if quadratic {
        narrowed = Region { points: region.points[..1].to_vec(), ..region.clone() };
        &narrowed
    } else {
        region
    };
    let one = |(i, part): (usize, &mut Box<dyn Bilevel<f64>>)| {
        estimate::node(&mut **part, i, seen_at, depth)
    };
    let nodes = parallel::map(pool, parts.iter_mut().enumerate(), one);
    let worst = nodes.into_iter().reduce(estimate::worse).expect("there is a node");
    let seen = Constants { nodes: parts.len(), rho: subject.rho, ..worst };
    let mut known = match quadratic {
        true => quadratic::constants(&seen, parts, region),
        false => closed::constants(subject, estimated(&seen, parts, region), region),
    };
    known.rho = Known::exact(subject.rho, "eigenvalues of W");
    batched(known, &subject.batches)
}

/// The sampling errors of minibatches, given those of single samples.
fn batched(mut known: Constants<Known>, batches: &Batches) -> Constants<Known> {
    let of = |sigma: &mut Known, size: Option<usize>| match size {
        None => *sigma = Known::exact(0.0, "full batches"),
        Some(size) => sigma.value /= (size as f64).sqrt(),
    };
    of(&mut known.sigma_f_x, batches.grad_x_f);
    of(&mut known.sigma_f_theta, batches.grad_theta_f);
    of(&mut known.sigma_g_theta, batches.grad_g);
    of(&mut known.sigma_g_x_theta, batches.cross_g);
    of(&mut known.sigma_g_theta_theta, batches.hess_g);
    known
}

/// Everything as estimates, including the differences between nodes.
fn estimated(seen: &Constants, parts: &mut Parts, region: &Region) -> Constants<Known> {
    let apart = |point: &Point| heterogeneity::at(parts, &point.x, &point.best, Depth::ESTIMATE);
    // There are many pairs of nodes: three points must be enough.
    let every = region.points.len().div_ceil(3);
    let some = region.points.iter().rev().step_by(every);
    let largest: Dissimilarity =
        some.map(apart).reduce(Dissimilarity::max).expect("a region has points");
    let [b_f, b_g, b] = [largest.b_f_sq(), largest.b_g_sq(), largest.hypergradient].map(f64::sqrt);
    let how = |known: &f64| Known::estimate(*known, "largest seen at the region's points");
    Constants { b_f, b_g, b, ..*seen }.map(how)
}
