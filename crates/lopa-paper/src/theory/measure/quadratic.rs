//! The quadratic: matrices are exact, and everything that depends on x is affine in x, so that over
//! a ball it is bounded by its size at the centre plus the radius times the norm of the linear
//! part.

use super::Region;
use super::heterogeneity;
use crate::theory::{Constants, Known, Parts, all_samples};
use lopa::math::real::{axpy, dot};
use lopa::problem::{At, Bilevel};
use lopa::run::evaluate::exact::{Solution, solve};
use lopa_study::practical::course::affine;
use lopa_study::practical::inspector::Depth;
use lopa_study::practical::snapshot::mean_row;
use lopa_study::practical::spectrum::norm;

const BALL: &str = "middle + radius |linear part|";

/// The constants, given those at the centre of the region.
pub fn constants(seen: &Constants, parts: &mut Parts, region: &Region) -> Constants<Known> {
    let mut known = seen.map(|value| Known::exact(*value, "matrices of the quadratic"));
    for zero in [&mut known.l_g_x_theta, &mut known.l_g_theta_theta] {
        *zero = Known::exact(0.0, "g is quadratic");
    }
    for sigma in [&mut known.sigma_f_x, &mut known.sigma_f_theta] {
        sigma.how = "all samples; the same at every point".into();
    }
    for sigma in [&mut known.sigma_g_x_theta, &mut known.sigma_g_theta_theta] {
        sigma.how = "all samples; largest E|(.) v|^2 of a unit v".into();
    }
    // ∇_θ ĝ − ∇_θ g changes with x and θ by the sampling errors of ∇²_xθ g and ∇²_θθ g.
    let moved =
        seen.sigma_g_x_theta * region.radius + seen.sigma_g_theta_theta * region.theta_radius;
    known.sigma_g_theta = Known::bound(seen.sigma_g_theta + moved, BALL);
    let over = |f: &mut dyn FnMut(&[f64]) -> Vec<f64>| over_ball(f, &region.centre, region.radius);
    let nodes = parts.len();
    let sizes = (0..nodes).map(|i| over(&mut |x| outer_gradient(&mut *parts[i], x)));
    known.c_f_theta = Known::bound(sizes.fold(0.0, f64::max), BALL);
    let b = over(&mut |x| deviations(&solved(parts, x, |own| own.grad)));
    known.b = Known::bound(b, BALL);
    known.b_f = Known::bound(outer(parts, &over), BALL);
    known.b_g = Known::bound(inner(parts, region, &over), BALL);
    known
}

type OverBall<'a> = &'a dyn Fn(&mut dyn FnMut(&[f64]) -> Vec<f64>) -> f64;

/// b_f of Assumption 4 (i) at θ = θ_i*(x), where Lemma 1 uses it.
fn outer(parts: &mut Parts, over: OverBall) -> f64 {
    let nodes = parts.len();
    let in_x = over(&mut |x| {
        let own: Vec<_> = parts.iter_mut().map(|part| grad_x_f(&mut **part, x)).collect();
        deviations(&own)
    });
    let mut at_best = |i: usize| {
        over(&mut |x| {
            let theta = solve(&mut *parts[i], x, &[]).theta;
            let at = At { x, theta: &theta };
            let own: Vec<_> = parts.iter_mut().map(|part| grad_theta_f(&mut **part, at)).collect();
            deviations(&own)
        })
    };
    (0..nodes).map(&mut at_best).fold(in_x, f64::max)
}

/// b_g of Assumption 4 (ii) and (iii).
fn inner(parts: &mut Parts, region: &Region, over: OverBall) -> f64 {
    let gradients = over(&mut |x| {
        let best = solved(parts, x, |own| own.theta);
        heterogeneity::inner_gradients(parts, x, &best)
    });
    let matrices = heterogeneity::at(parts, &region.centre, &region.theta_centre, Depth::QUADRATIC);
    gradients.max(matrices.inner_jacobian.sqrt()).max(matrices.inner_hessian.sqrt())
}

/// The largest ‖F(x)‖ of an affine F over a ball is at most ‖F(c)‖ + r ‖DF‖.
fn over_ball(f: &mut dyn FnMut(&[f64]) -> Vec<f64>, centre: &[f64], radius: f64) -> f64 {
    let (middle, columns) = affine(f, centre);
    let gram = |v: &[f64], out: &mut [f64]| {
        let mut image = vec![0.0; middle.len()];
        columns.iter().zip(v).for_each(|(column, v)| axpy(*v, column, &mut image));
        out.iter_mut().zip(&columns).for_each(|(out, column)| *out = dot(column, &image));
    };
    dot(&middle, &middle).sqrt() + radius * norm(centre.len(), usize::MAX, gram)
}

fn solved(parts: &mut Parts, x: &[f64], take: impl Fn(Solution) -> Vec<f64>) -> Vec<Vec<f64>> {
    parts.iter_mut().map(|part| take(solve(&mut **part, x, &[]))).collect()
}

/// The deviations of the nodes' vectors from their mean, concatenated.
fn deviations(own: &[Vec<f64>]) -> Vec<f64> {
    let mean = mean_row(own);
    own.iter().flat_map(|own| own.iter().zip(&mean).map(|(own, mean)| own - mean)).collect()
}

/// ∇_θ f_i(x, θ_i*(x))
fn outer_gradient(part: &mut dyn Bilevel<f64>, x: &[f64]) -> Vec<f64> {
    let theta = solve(part, x, &[]).theta;
    grad_theta_f(part, At { x, theta: &theta })
}

fn grad_theta_f(part: &mut dyn Bilevel<f64>, at: At<f64>) -> Vec<f64> {
    let mut out = vec![0.0; at.theta.len()];
    let all = all_samples(part.samples_f());
    part.grad_theta_f(at, &all, &mut out);
    out
}

/// ∇_x f_i, which does not depend on θ.
fn grad_x_f(part: &mut dyn Bilevel<f64>, x: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; x.len()];
    let all = all_samples(part.samples_f());
    part.grad_x_f(At { x, theta: &vec![0.0; part.dims().p] }, &all, &mut out);
    out
}
