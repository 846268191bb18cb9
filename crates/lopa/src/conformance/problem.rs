//! The promises of a problem.

use std::ops::Range;

use super::compare::{Comparison, largest};
use super::derivatives::{self, agree, joint, room};
use super::question::{Batch, Point, Question, answers};
use super::subject::{Made, Node, Subject};
use super::{allocations, broken, ensure};
use crate::error::{Error, Result};
use crate::experiment::Registries;
use crate::math::random::{Purpose, Stream};
use crate::math::real::{Real, cast};
use crate::problem::{Ask, Directions, Minibatches};

/// Puts a problem through all checks.
///
/// `text` is the part of an experiment file that describes it: `problem`, and where it needs them
/// `data`, `partition` and `scope`. Three nodes and batches of four are added. Choose few samples
/// and short vectors: derivatives are compared with differences entry by entry, and evaluated on
/// every sample.
///
/// Derivatives must agree with central differences, be unbiased over the samples, and depend only
/// on the point and the batch. The Hessian of g must be symmetric and positive. Parts must be the
/// same however often and for whichever nodes they are made, and nearly the same in single
/// precision. Optional functions (∇_x g, closed forms, calls for all nodes together) are checked if
/// the problem has them.
///
/// # Errors
/// The error of the first check that fails, with an id `conformance/…`, or one of the
/// problem's own.
pub fn problem(registries: &Registries, text: &str) -> Result<()> {
    let made = Made::read(registries, text)?;
    let mut double = Subject::<f64>::new(&made)?;
    starts(&double)?;
    metrics(&mut double)?;
    derivatives::repeated(&mut double)?;
    derivatives::written(&mut double)?;
    derivatives::symmetric(&mut double)?;
    derivatives::differences(&mut double)?;
    derivatives::convex(&mut double)?;
    derivatives::unbiased(&mut double)?;
    derivatives::directions(&mut double)?;
    derivatives::shortcuts(&mut double)?;
    made_again::<f64>(&made)?;
    let mut single = Subject::<f32>::new(&made)?;
    derivatives::repeated(&mut single)?;
    derivatives::written(&mut single)?;
    derivatives::directions(&mut single)?;
    made_again::<f32>(&made)?;
    alike(&mut single, &mut double)?;
    together::<f32>(&made)?;
    together::<f64>(&made)?;
    allocates_nothing(&mut single)?;
    allocates_nothing(&mut double)
}

/// All nodes start at one x; starts are finite and of the right length.
fn starts(subject: &Subject<f64>) -> Result<()> {
    let stream = |node: usize| Stream::new(1, Purpose::Start, node);
    let common = subject.nodes[0].part.start_x(&mut stream(0));
    for (i, Node { label, part, .. }) in subject.nodes.iter().enumerate() {
        let (dims, id) = (part.dims(), "conformance/start");
        let (x, theta) = (part.start_x(&mut stream(0)), part.start_theta(&mut stream(1 + i)));
        let [said, want] = [(x.len(), theta.len()), (dims.n, dims.p)];
        let differs = x.iter().zip(&common).position(|(here, common)| here != common);
        ensure(said == want, id, || {
            format!("start_x and start_theta have {said:?} entries, and dims says {want:?}")
        })
        .and_then(|()| {
            let finite = x.iter().chain(&theta).all(|value| value.is_finite());
            ensure(finite, id, || "start_x or start_theta is not finite".into())
        })
        .and_then(|()| {
            let j = differs.unwrap_or(0);
            let show = || format!("start_x[{j}] is {} here and {} at node 0", x[j], common[j]);
            ensure(differs.is_none(), id, show)
        })
        .map_err(|error| error.at(label).hint("draw start_x from the stream that it is given"))?;
    }
    Ok(())
}

/// Every node measures the same things, a finite `loss` first.
fn metrics(subject: &mut Subject<f64>) -> Result<()> {
    let mut common = None;
    for Node { label, part, points, .. } in &mut subject.nodes {
        let (metrics, id) = (part.metrics(points[0].at()), "conformance/metrics");
        let names: Vec<String> = metrics.iter().map(|(name, _)| name.clone()).collect();
        let common = &*common.get_or_insert_with(|| names.clone());
        let loss = metrics.first().is_some_and(|(name, loss)| name == "loss" && loss.is_finite());
        ensure(loss, id, || format!("metrics must begin with a finite `loss`: {metrics:?}"))
            .and_then(|()| {
                let show = || format!("metrics are {names:?} here and {common:?} at node 0");
                ensure(names == *common, id, show)
            })
            .map_err(|error| error.at(&*label))?;
    }
    Ok(())
}

/// Parts in single precision are nearly those in double precision.
fn alike(single: &mut Subject<f32>, double: &mut Subject<f64>) -> Result<()> {
    for (single, double) in single.nodes.iter_mut().zip(&mut double.nodes) {
        let (part, point) = (&mut *double.part, &double.points[0]);
        for batch in &double.batches {
            let near = answers(&mut *single.part, &point.cast(), batch)?;
            let exact = answers(part, point, batch)?;
            let questions = Question::of(part).iter();
            for (question, (near, exact)) in questions.zip(near.iter().zip(&exact)) {
                Comparison {
                    id: "conformance/precision",
                    what: format!("{} in f32 disagrees with f64", question.name()),
                    said: near,
                    want: ("f64 gives", exact),
                    tolerance: 1e-3 * (1.0 + largest(exact)),
                    batch: question.samples(batch).len(),
                    cause: "a sum that cancels, or an overflow?",
                }
                .check()
                .map_err(|error| error.at(format!("{}, {}", single.label, batch.name)))?;
            }
        }
    }
    Ok(())
}

/// Parts that are made a second time, or for some nodes only, are the same.
fn made_again<T: Real>(made: &Made) -> Result<()> {
    let (subject, m) = (Subject::<T>::new(made)?, made.nodes());
    let say = |nodes: Range<usize>| -> Result<Vec<Vec<Vec<f64>>>> {
        let mut said = Vec::new();
        for (i, mut part) in nodes.clone().zip(made.parts::<T>(nodes)?.each) {
            let Node { points, batches, .. } = &subject.nodes[i];
            let [all, some] =
                batches.each_ref().map(|batch| answers(&mut *part, &points[0], batch));
            said.push([all?, some?].concat());
        }
        Ok(said)
    };
    let hint = "draw from a stream of (seed, purpose, node), not from one that all nodes share";
    let expected = say(0..m)?;
    let differs = |nodes: &Range<usize>, said: Vec<Vec<Vec<f64>>>, id, what: String| {
        let other = nodes.clone().zip(&said).find(|(i, said)| **said != expected[*i]);
        let at = other.map_or(0, |(i, _)| i);
        ensure(other.is_none(), id, || what)
            .map_err(|error| error.at(made.label::<T>(at)).hint(hint))
    };
    differs(&(0..m), say(0..m)?, "conformance/parts-differ", "parts made twice differ".into())?;
    for nodes in (0..m).map(|i| i..i + 1).chain(std::iter::once(m / 2..m)) {
        let what = format!("the part made for nodes {nodes:?} differs from that made for all");
        differs(&nodes, say(nodes.clone())?, "conformance/range-differs", what)?;
    }
    Ok(())
}

/// Results for all nodes in one call agree with those of the parts.
fn together<T: Real>(made: &Made) -> Result<()> {
    let Some(mut together) = made.parts::<T>(0..made.nodes())?.together else { return Ok(()) };
    let mut subject = Subject::<T>::new(made)?;
    for (point, batch) in [(0, 0), (1, 1), (0, 1)] {
        let mut found: Vec<_> =
            subject.nodes.iter().map(|node| (room(&node.points[point]), scratch(node))).collect();
        let ask = |(i, (node, (out, scratch)))| -> Ask<T> {
            let (Node { points, batches, .. }, [d, h, s]): (&Node<T>, &mut [Vec<T>; 3]) =
                (node, out);
            let (at, v) = (points[point].at(), &points[point].v);
            Ask {
                node: i,
                at,
                v,
                on: on(&batches[batch]),
                out: Directions { d, h, s, hess: None, scratch },
            }
        };
        let answered = subject.nodes.iter().zip(found.iter_mut().map(|(out, s)| (out, &mut s[..])));
        together.directions(&mut answered.enumerate().map(ask).collect::<Vec<_>>())?;
        for (Node { label, part, points, batches }, (found, _)) in
            subject.nodes.iter_mut().zip(&found)
        {
            let (want, _) = joint(&mut **part, &points[point], on(&batches[batch]));
            let size = want.iter().map(|vector| largest(&cast(vector))).fold(0.0, f64::max);
            agree("conformance/together", "Parts::together", found, (&want, 10.0 * size))
                .map_err(|error: Error| error.at(&*label))?;
        }
    }
    Ok(())
}

fn on(batch: &Batch) -> Minibatches<'_> {
    Minibatches { xi: [&batch.g; 3], sigma: [&batch.f; 2] }
}

fn scratch<T: Real>(node: &Node<T>) -> Vec<T> {
    let dims = node.part.dims();
    vec![T::nan(); dims.n.max(dims.p)]
}

/// Only first calls allocate, as far as allocations are counted.
fn allocates_nothing<T: Real>(subject: &mut Subject<T>) -> Result<()> {
    subject.each_part(|part, points, batches| {
        for &question in Question::of(part) {
            let mut out = vec![T::zero(); question.length(part.dims())];
            let part = &mut *part;
            warm(question.name(), points, |point| {
                for batch in batches {
                    question.ask(part, point, batch, &mut out);
                }
            })?;
        }
        let [mut d, mut h, mut s] = room(&points[0]);
        let mut scratch = vec![T::zero(); d.len().max(s.len())];
        warm("directions", points, |point| {
            for batch in batches {
                let [d, h, s, scratch] = [&mut d, &mut h, &mut s, &mut scratch];
                let out = Directions { d, h, s, hess: None, scratch };
                part.directions(point.at(), &point.v, on(batch), out);
            }
        })
    })
}

/// A call at one point, and one at another that must not allocate.
fn warm<T>(name: &str, points: &[Point<T>; 2], mut call: impl FnMut(&Point<T>)) -> Result<()> {
    call(&points[0]);
    match allocations(|| call(&points[1])) {
        None | Some(0) => Ok(()),
        Some(counted) => {
            let message = format!("{name} allocates {counted} times after its first call");
            Err(broken("conformance/allocates", message).hint("keep scratch memory in the part"))
        }
    }
}
