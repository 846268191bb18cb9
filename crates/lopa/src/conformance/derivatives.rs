//! The promises of a part's derivatives.

use super::compare::{Comparison, largest, short};
use super::question::{Batch, Point, Question, answers};
use super::subject::Subject;
use super::{broken, ensure};
use crate::error::Result;
use crate::math::random::{Purpose, Stream};
use crate::math::real::{Real, axpy, cast, dot, norm};
use crate::problem::{Bilevel, Directions, Minibatches};

/// Half the width of central differences.
const STEP: f64 = 1e-5;

/// Entries of a gradient that are compared with differences.
const ENTRIES: usize = 50;

/// Results are finite numbers, and outputs are overwritten.
pub(super) fn written<T: Real>(subject: &mut Subject<T>) -> Result<()> {
    subject.each(|part, point, batch| {
        for question in Question::of(part) {
            let name = question.name();
            let values = question.answer(part, point, batch, 0.0)?;
            ensure(values.iter().all(|value| value.is_finite()), "conformance/not-finite", || {
                let j = values.iter().position(|value| !value.is_finite()).unwrap_or(0);
                let value = values[j];
                format!("{name} is not finite: entry {j} is {value}: a division by zero, a log?")
            })?;
            for fill in [f64::NAN, 1.0] {
                let again = question.answer(part, point, batch, fill)?;
                let kept = again.iter().zip(&values).position(|(a, b)| a != b);
                ensure(kept.is_none(), "conformance/not-overwritten", || {
                    let j = kept.unwrap_or(0);
                    let (a, b) = (short(again[j]), short(values[j]));
                    format!(
                        "{name} depends on what its output held: entry {j} is {a} where it held \
                         {fill} and {b} where it held 0: `+=` without a `fill` before?"
                    )
                })?;
            }
        }
        Ok(())
    })
}

/// Results do not depend on earlier calls.
pub(super) fn repeated<T: Real>(subject: &mut Subject<T>) -> Result<()> {
    subject.each_part(|part, points, batches| {
        let questions = Question::of(part);
        let expected = answers(part, &points[0], &batches[0])?;
        let same = |part: &mut dyn Bilevel<T>, question: &Question, want: &Vec<f64>| {
            let again = question.answer(part, &points[0], &batches[0], f64::NAN)?;
            let other = again.iter().zip(want).position(|(a, b)| a.to_bits() != b.to_bits());
            ensure(other.is_none(), "conformance/not-repeatable", || {
                let (j, name) = (other.unwrap_or(0), question.name());
                format!(
                    "{name} depends on the calls before: entry {j} was {} and is {}: scratch \
                     memory that is not reset, or left by another call?",
                    want[j], again[j]
                )
            })
        };
        for (question, want) in questions.iter().zip(&expected) {
            same(part, question, want)?;
        }
        for (question, want) in questions.iter().zip(&expected).rev() {
            answers(part, &points[1], &batches[0])?;
            answers(part, &points[1], &batches[1])?;
            part.metrics(points[1].at());
            same(part, question, want)?;
        }
        Ok(())
    })
}

/// ⟨u, H v⟩ = ⟨v, H u⟩.
pub(super) fn symmetric(subject: &mut Subject<f64>) -> Result<()> {
    subject.each(|part, point, batch| {
        let [mut hu, mut hv] = [(); 2].map(|()| vec![f64::NAN; point.v.len()]);
        part.hess_g(point.at(), &batch.g, &point.u, &mut hu);
        part.hess_g(point.at(), &batch.g, &point.v, &mut hv);
        let (uhv, vhu) = (dot(&point.u, &hv), dot(&point.v, &hu));
        let size = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a * b).abs()).sum::<f64>();
        let rounding = 1e-12 * (1.0 + size(&point.u, &hv) + size(&point.v, &hu));
        ensure((uhv - vhu).abs() <= rounding, "conformance/not-symmetric", || {
            format!(
                "hess_g is not symmetric: ⟨u, H v⟩ is {} and ⟨v, H u⟩ is {}: A v in place of Aᵀ v, \
                 or two indices swapped?",
                short(uhv),
                short(vhu)
            )
        })
    })
}

/// ⟨v, H v⟩ > 0 on all samples.
pub(super) fn convex(subject: &mut Subject<f64>) -> Result<()> {
    subject.each_part(|part, points, batches| {
        for point in points {
            for v in [&point.u, &point.v] {
                let mut hv = vec![f64::NAN; v.len()];
                part.hess_g(point.at(), &batches[0].g, v, &mut hv);
                let curvature = dot(v, &hv);
                ensure(curvature > 0.0, "conformance/not-convex", || {
                    let shown = short(curvature);
                    format!("g must be strongly convex in θ, and ⟨v, hess_g v⟩ is {shown} here")
                })
                .map_err(|error| error.hint("add a regularisation such as μ/2 |θ|²"))?;
            }
        }
        Ok(())
    })
}

/// A derivative as the gradient of a function with respect to x or θ.
#[derive(Clone, Copy)]
enum Side {
    X,
    Theta,
}

/// The function whose gradient a derivative is: f, g, or ⟨∇_θ g, v⟩.
fn primitive(question: Question) -> Option<(Side, Question)> {
    match question {
        Question::F | Question::G => None,
        Question::GradXF => Some((Side::X, Question::F)),
        Question::GradThetaF => Some((Side::Theta, Question::F)),
        Question::GradThetaG => Some((Side::Theta, Question::G)),
        Question::HessG => Some((Side::Theta, Question::GradThetaG)),
        Question::CrossG => Some((Side::X, Question::GradThetaG)),
        Question::GradXG => Some((Side::X, Question::G)),
    }
}

/// Every derivative agrees with central differences.
pub(super) fn differences(subject: &mut Subject<f64>) -> Result<()> {
    subject.each(|part, point, batch| {
        for &question in Question::of(part) {
            if let Some((side, of)) = primitive(question) {
                difference(part, (point, batch), question, (side, of))?;
            }
        }
        Ok(())
    })
}

fn difference(
    part: &mut dyn Bilevel<f64>,
    (point, batch): (&Point<f64>, &Batch),
    question: Question,
    (side, of): (Side, Question),
) -> Result<()> {
    let said = question.answer(part, point, batch, f64::NAN)?;
    let at_point = of.answer(part, point, batch, f64::NAN)?;
    let along = |values: &[f64]| if of.is_function() { values[0] } else { dot(values, &point.v) };
    let mut slope = |direction: &[f64]| -> Result<f64> {
        let mut value = |by: f64| -> Result<f64> {
            let mut there = point.clone();
            let moved = match side {
                Side::X => &mut there.x,
                Side::Theta => &mut there.theta,
            };
            axpy(by, direction, moved);
            Ok(along(&of.answer(part, &there, batch, f64::NAN)?))
        };
        Ok((value(STEP)? - value(-STEP)?) / (2.0 * STEP))
    };
    let (entries, direction) = directions_of(said.len());
    let mut found = said.clone();
    let mut unit = vec![0.0; said.len()];
    for j in entries {
        unit[j] = 1.0;
        found[j] = slope(&unit)?;
        unit[j] = 0.0;
    }
    // All entries at once, for those that were left out.
    let rest = slope(&direction)?;
    let along_v = if of.is_function() { "" } else { " along v" };
    let what = format!("{} disagrees with differences of {}{along_v}", question.name(), of.name());
    let compare = |what: String, said: &[f64], found: &[f64]| {
        let rounding = 1e-10 * (along(&at_point).abs() + largest(&at_point));
        let tolerance = 1.5e-8 * (1.0 + largest(found)) + rounding;
        let (id, batch) = (question.id(), question.samples(batch).len());
        let (want, cause) = (("differences give", found), "a term left out, or an index?");
        Comparison { id, what, said, want, tolerance, batch, cause }.check()
    };
    compare(what.clone(), &said, &found)?;
    compare(format!("{what}, in a random direction"), &[dot(&said, &direction)], &[rest])
}

/// The entries to take differences in, and a direction of length 1.
fn directions_of(length: usize) -> (Vec<usize>, Vec<f64>) {
    let count = length.min(ENTRIES);
    let entries = (0..count).map(|t| t * length / count).collect();
    let mut stream = Stream::new(1, Purpose::Sampling, length);
    let mut direction: Vec<f64> = (0..length).map(|_| stream.normal()).collect();
    let norm = dot(&direction, &direction).sqrt();
    direction.iter_mut().for_each(|entry| *entry /= norm);
    (entries, direction)
}

/// The mean over all single samples is the result on all samples, unless the problem says otherwise.
pub(super) fn unbiased(subject: &mut Subject<f64>) -> Result<()> {
    subject.each_part(|part, points, batches| {
        if !part.adds_up() {
            return Ok(());
        }
        let (point, all) = (&points[0], &batches[0]);
        for &question in Question::of(part) {
            let want = question.answer(part, point, all, f64::NAN)?;
            let (mut mean, mut sizes) = (vec![0.0; want.len()], vec![0.0; want.len()]);
            let count = question.samples(all).len();
            for k in 0..count {
                let one = Batch::single(part, k);
                let said = question.answer(part, point, &one, f64::NAN)?;
                axpy(1.0 / count as f64, &said, &mut mean);
                sizes.iter_mut().zip(&said).for_each(|(size, said)| *size += said.abs());
            }
            let size = largest(&sizes) / count as f64;
            Comparison {
                id: "conformance/biased",
                what: format!("{} is biased in its mean over single samples", question.name()),
                said: &mean,
                want: ("all samples give", &want),
                tolerance: 1e-12 * (1.0 + size + largest(&want)),
                batch: count,
                cause: "a batch that is summed, or a sample that is skipped?",
            }
            .check()?;
        }
        Ok(())
    })
}

/// `directions` agrees with the single derivatives.
pub(super) fn directions<T: Real>(subject: &mut Subject<T>) -> Result<()> {
    subject.each_part(|part, points, batches| {
        let (f, g) = (part.samples_f() as u32, part.samples_g() as u32);
        let on =
            |of: u32, samples: &[u32]| -> Vec<u32> { samples.iter().map(|j| j % of).collect() };
        let xi = [on(g, &[0, 2, 2]), on(g, &[1, 3]), on(g, &[2, 0, 1])];
        let sigma = [on(f, &[1, 0]), on(f, &[0, 1, 1])];
        let apart = Minibatches {
            xi: xi.each_ref().map(|batch| &batch[..]),
            sigma: sigma.each_ref().map(|batch| &batch[..]),
        };
        let [all, small] = batches;
        let [alike, full] = [small, all]
            .map(|batch| Minibatches { xi: [&batch.g[..]; 3], sigma: [&batch.f[..]; 2] });
        for (point, on) in [(0, apart), (1, apart), (0, alike), (1, full), (0, apart)] {
            let point = &points[point];
            let (want, size) = separate(part, point, on);
            let (said, hess) = joint(part, point, on);
            if let Some(error) = part.error() {
                return Err(error);
            }
            agree("conformance/directions", "directions", &said, (&want, size))?;
            product(part, point, on, hess)?;
        }
        Ok(())
    })
}

/// d, h, s.
pub(super) type Three<T> = [Vec<T>; 3];

/// Buffers for d, h, s of a point, filled with NaN.
pub(super) fn room<T: Real>(point: &Point<T>) -> Three<T> {
    let (n, p) = (point.x.len(), point.theta.len());
    [p, p, n].map(|length| vec![T::nan(); length])
}

/// |∇²_θθ ĝ v| is that of the product, where `directions` has it.
fn product<T: Real>(
    part: &mut dyn Bilevel<T>,
    point: &Point<T>,
    on: Minibatches,
    said: f64,
) -> Result<()> {
    let mut product = vec![T::zero(); point.theta.len()];
    part.hess_g(point.at(), on.xi[1], &point.v, &mut product);
    let found = norm(&product);
    let close = (said - found).abs() <= 1e3 * T::epsilon().to_f64() * (1.0 + found);
    ensure(said.is_nan() || close, "conformance/directions", || {
        format!("directions says that |hess_g v| is {}, and it is {}", short(said), short(found))
    })
    .map_err(|error| error.hint("take the norm before grad_theta_f is subtracted"))
}

/// d, h and s in one call, and |∇²_θθ ĝ v|; NaN if it is not computed.
pub(super) fn joint<T: Real>(
    part: &mut dyn Bilevel<T>,
    point: &Point<T>,
    on: Minibatches,
) -> (Three<T>, f64) {
    let mut out = room(point);
    let [d, h, s] = &mut out;
    let scratch = &mut vec![T::nan(); d.len().max(s.len())];
    let mut hess = f64::NAN;
    let into = Directions { d, h, s, hess: Some(&mut hess), scratch };
    part.directions(point.at(), &point.v, on, into);
    (out, hess)
}

/// d, h and s from the single derivatives, and the size of their terms.
fn separate<T: Real>(
    part: &mut dyn Bilevel<T>,
    point: &Point<T>,
    on: Minibatches,
) -> (Three<T>, f64) {
    let (at, v) = (point.at(), &point.v);
    let [mut d, mut h, mut s] = room(point);
    let [_, mut grad, mut cross_v] = room(point);
    part.grad_theta_g(at, on.xi[0], &mut d);
    part.hess_g(at, on.xi[1], v, &mut h);
    part.grad_theta_f(at, on.sigma[0], &mut grad);
    part.grad_x_f(at, on.sigma[1], &mut s);
    part.cross_g(at, on.xi[2], v, &mut cross_v);
    let all = [&d, &h, &grad, &s, &cross_v].map(|vector| largest(&cast(vector)));
    axpy(-T::one(), &grad, &mut h);
    axpy(-T::one(), &cross_v, &mut s);
    ([d, h, s], largest(&all))
}

/// Whether d, h and s agree to rounding.
pub(super) fn agree<T: Real>(
    id: &'static str,
    what: &str,
    said: &Three<T>,
    (want, size): (&Three<T>, f64),
) -> Result<()> {
    for (name, (said, want)) in ["d", "h", "s"].into_iter().zip(said.iter().zip(want)) {
        Comparison {
            id,
            what: format!("{name} of {what} disagrees with the single derivatives"),
            said: &cast(said),
            want: ("they give", &cast(want)),
            tolerance: 1000.0 * T::epsilon().to_f64() * (1.0 + size),
            batch: 0,
            cause: "another minibatch, or something left from the call before?",
        }
        .check()?;
    }
    Ok(())
}

/// θ*(x) is stationary, and estimated diagonals of the Hessian are near the true ones.
pub(super) fn shortcuts(subject: &mut Subject<f64>) -> Result<()> {
    subject.each_part(|part, points, batches| {
        for point in points {
            stationary(part, point, &batches[0])?;
            diagonal(part, point, &batches[0])?;
        }
        Ok(())
    })
}

fn stationary(part: &mut dyn Bilevel<f64>, point: &Point<f64>, all: &Batch) -> Result<()> {
    let closed = part.shortcuts().and_then(|known| known.theta_star(&point.x));
    let Some(theta) = closed else { return Ok(()) };
    let (id, p) = ("conformance/theta-star", point.theta.len());
    ensure(theta.len() == p, id, || format!("theta_star has {} entries, not {p}", theta.len()))?;
    let elsewhere = Question::GradThetaG.answer(part, point, all, f64::NAN)?;
    let there = Point { theta, ..point.clone() };
    let gradient = Question::GradThetaG.answer(part, &there, all, f64::NAN)?;
    Comparison {
        id,
        what: "grad_theta_g does not vanish at theta_star".into(),
        said: &gradient,
        want: ("it should be", &vec![0.0; p]),
        tolerance: 1e-9 * (1.0 + largest(&elsewhere)),
        batch: 0,
        cause: "the minimiser of another function, or an iteration that stopped early?",
    }
    .check()
}

fn diagonal(part: &mut dyn Bilevel<f64>, point: &Point<f64>, all: &Batch) -> Result<()> {
    let known = part.shortcuts().and_then(|known| known.hess_diagonal(point.at()));
    let Some(estimate) = known else { return Ok(()) };
    let (id, p) = ("conformance/hess-diagonal", point.theta.len());
    ensure(estimate.len() == p, id, || format!("it has {} entries, not {p}", estimate.len()))?;
    let (entries, _) = directions_of(p);
    for j in entries {
        let mut unit = Point { v: vec![0.0; p], ..point.clone() };
        unit.v[j] = 1.0;
        let truth = Question::HessG.answer(part, &unit, all, f64::NAN)?[j];
        let near = estimate[j] > 0.0 && (0.1..=10.0).contains(&(estimate[j] / truth));
        if !near {
            let (a, b) = (short(estimate[j]), short(truth));
            return Err(broken(
                id,
                format!("hess_diagonal: entry {j} is {a}, and of the Hessian's diagonal {b}"),
            )
            .hint("it must be positive and right within a factor of 10"));
        }
    }
    Ok(())
}
