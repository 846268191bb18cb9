//! The oracle of kernels/general.cu on the processor: the same halves, scales and tiles. A tensor core adds the sixteen
//! products of a step in an order of its own, here they are added exactly, so that bits may differ.

// Fused products of the card, emulated for tests.
#![allow(clippy::disallowed_methods)]

use lopa::engine::Node;
use lopa::engine::device::DeviceRun;
use lopa::error::Result;
use lopa::math::real::Real;

use super::ORDER;
use super::layout::{Stored, features};
use super::run::of_node;
use super::shape::Shape;
use crate::emulate::Emulation;
use crate::exponential::Exponential;
use crate::halves::{SUBNORMAL, half, power_below, split};
use crate::job::Common;
use crate::plan::{Plan, Table};

/// What x is multiplied by before it is split.
const SCALE: f32 = 64.0;

/// Takes over a run that the kernels support.
pub fn take<T: Exponential>(plan: Plan<T>, nodes: &[Node<T>]) -> Result<Box<dyn DeviceRun<T>>> {
    Ok(Box::new(Emulation::new(plan, nodes, Some(oracle))))
}

/// A step of a tensor core.
fn step(sum: f32, terms: impl Iterator<Item = (f32, f32)>) -> f32 {
    terms.fold(f64::from(sum), |sum, (a, b)| sum + f64::from(a) * f64::from(b)) as f32
}

/// Halves of a number: high and low.
type Halves = [f32; 2];

/// The products of sixteen numbers, high with high and, if there are two terms, with low; added to one sum, as `forward`
/// and `backward` do it.
fn together(mut sum: f32, a: &[Halves], b: &[Halves], both: bool, terms: u32) -> f32 {
    let of = |i: usize, j: usize, sum: f32| step(sum, a.iter().zip(b).map(|(a, b)| (a[i], b[j])));
    sum = of(0, 0, sum);
    if terms == 2 {
        sum = of(0, 1, sum);
    }
    if both { of(1, 0, sum) } else { sum }
}

/// The same with a sum of its own for small terms, as `head` does it.
fn apart(a: &[Halves], b: &[Halves], [mut sum, mut small]: [f32; 2]) -> [f32; 2] {
    for (a, b) in a.chunks(16).zip(b.chunks(16)) {
        let of = |i: usize, j: usize, sum| step(sum, a.iter().zip(b).map(|(a, b)| (a[i], b[j])));
        sum = of(0, 0, sum);
        small = of(0, 1, of(1, 0, small));
    }
    [sum, small]
}

fn single<T: Real>(value: T) -> f32 {
    Real::to_f64(value) as f32
}

/// A row of one of the minibatches.
struct Row {
    slot: usize,
    stored: Vec<Halves>,
    /// With the unit that is 1.
    hidden: Vec<Halves>,
    /// Of d and of h.
    slopes: [Vec<Halves>; 2],
    errors: Vec<Halves>,
}

/// d, h and s of node i.
fn oracle<T: Exponential>(run: &mut Emulation<T>, i: usize) {
    let shape = Shape::new(&run.plan, &run.plan.job, run.hess.is_some());
    let stored = Stored::new(&run.plan, &shape);
    let Common { n, p, classes, tanh, drawn, start, size, .. } = run.plan.job.common;
    let [n, p, classes, drawn] = [n, p, classes, drawn].map(|count| count as usize);
    let (units, inputs) = (shape.units as usize, run.plan.job.features as usize + 1);
    let ridge = single(run.plan.job.ridge);
    let of = |place: usize, length: usize| -> Vec<f32> {
        run.now[place][i * length..(i + 1) * length].iter().map(|&value| single(value)).collect()
    };
    let (x, theta, v) = (of(7, n), of(0, p), of(2, p));
    let weights = of_node(&run.plan.weights[i * 5..(i + 1) * 5]);
    let most = weights[5];
    let terms = shape.terms;
    let both = shape.numbers && terms == 2;
    // Of the head: without the low half if there is one term.
    let halves = |value: f32| if terms == 2 { split(value) } else { [half(value), 0.0] };

    // Scales.
    let top = |values: &[f32]| values.iter().fold(0.0, |top: f32, value| top.max(value.abs()));
    let (top_theta, top_v) = (top(&theta), top(&v));
    let all = 2.0 * (units + 1) as f32;
    let theta_scale = power_below(top_theta.max(top_v), 14);
    let slope_scale = power_below((all * top_v).max(1.0), 14);
    let steepest = if tanh == 1 { 1.0 } else { 0.25 };
    let bound = 2.0 * top_theta + 2.0 * top_v + all * top_theta * top_v;
    let error_scale = power_below(bound * steepest, 14);
    let (score, back) = (1.0 / theta_scale, error_scale / (slope_scale * theta_scale));

    // Second factors: of x by unit, of theta and v by class and by unit.
    let column = |u: usize| -> Vec<Halves> {
        let of =
            |q: usize| x[q * units + u] * SCALE * if q + 1 == inputs { stored.bias } else { 1.0 };
        (0..inputs).map(|q| split(of(q))).collect()
    };
    let columns: Vec<Vec<Halves>> = (0..units).map(column).collect();
    let by_class = |of: &[f32]| -> Vec<Vec<Halves>> {
        let column = |c| (0..=units).map(|u| halves(of[u * classes + c] * theta_scale)).collect();
        (0..classes).map(column).collect()
    };
    let by_unit = |of: &[f32]| -> Vec<Vec<Halves>> {
        let row = |u| (0..classes).map(|c| halves(of[u * classes + c] * theta_scale)).collect();
        (0..units).map(row).collect()
    };
    let scores = [by_class(&theta), by_class(&v)];
    let backs = [by_unit(&theta), by_unit(&v)];

    let mut rows = Vec::new();
    for (slot, batch) in ORDER.into_iter().enumerate() {
        let pad = if batch == 1 { shape.pad } else { 0 };
        for place in 0..size[batch] + pad {
            // Rows that are added have no weight: any sample will do.
            let of = place.min(size[batch] - 1);
            let pick = run.picks[i * drawn + (start[batch] + of) as usize] as usize;
            let values: Vec<Halves> = match &run.plan.table {
                Table::Bytes(bytes) if !shape.numbers => {
                    let own = bytes[pick * (inputs - 1)..(pick + 1) * (inputs - 1)].iter();
                    let byte = |byte: f32| [byte / SUBNORMAL, 0.0];
                    own.map(|&own| byte(f32::from(own))).chain([byte(stored.one)]).collect()
                }
                _ => {
                    let own = features(&run.plan, pick).map(|value| split(value * stored.scale));
                    own.chain([[stored.one, 0.0]]).collect()
                }
            };
            let activation = |u: usize| {
                let tiles = values.chunks(16).zip(columns[u].chunks(16));
                let sum = tiles.fold(0.0, |sum, (a, b)| together(sum, a, b, both, terms));
                let z = sum * (stored.unit / SCALE);
                match tanh {
                    1 => 1.0 - 2.0 / ((z + z).exponential() + 1.0),
                    _ => 1.0 / (1.0 + (-z).exponential()),
                }
            };
            let hidden: Vec<Halves> =
                (0..units).map(|u| halves(activation(u))).chain([[1.0, 0.0]]).collect();
            let total = |of: &[Vec<Halves>]| -> Vec<f32> {
                let one = |column: &Vec<Halves>| apart(&hidden, column, [0.0; 2]);
                of.iter().map(one).map(|[sum, small]| sum + small).collect()
            };
            let mut l: Vec<f32> = total(&scores[0]).into_iter().map(|l| l * score).collect();
            let along = total(&scores[1]);
            let highest = l.iter().fold(f32::NEG_INFINITY, |top, &l| top.max(l));
            l.iter_mut().for_each(|l| *l = (*l - highest).exponential());
            let sum: f32 = l.iter().sum();
            l.iter_mut().for_each(|l| *l *= 1.0 / sum);
            let label = run.plan.labels[pick] as usize;
            let mean = l.iter().zip(&along).fold(0.0, |mean, (&l, &a)| l.mul_add(a, mean));
            let by = slope_scale * if place < size[batch] { weights[slot] } else { 0.0 };
            let q = |c: usize| (l[c] - f32::from(u8::from(c == label))) * by;
            let curve = |c: usize| l[c] * (along[c] - mean) * (score * by);
            let of = |value: &dyn Fn(usize) -> f32| -> Vec<Halves> {
                (0..classes).map(|c| halves(value(c))).collect()
            };
            let none = || of(&|_| 0.0);
            let slopes = match slot {
                0 | 3 => [of(&q), none()],
                1 => [none(), of(&curve)],
                2 => [none(), of(&|c| -q(c))],
                _ => [of(&|c| -curve(c)), of(&|c| -q(c))],
            };
            let error = |u: usize| {
                let mut sums = apart(&slopes[0], &backs[0][u], [0.0; 2]);
                if slot == 4 {
                    sums = apart(&slopes[1], &backs[1][u], sums);
                }
                let a = hidden[u][0] + hidden[u][1];
                let slope = if tanh == 1 { 1.0 - a * a } else { a - a * a };
                let error = (sums[0] + sums[1]) * (back * slope);
                halves(error)
            };
            let errors = if slot < 3 { Vec::new() } else { (0..units).map(error).collect() };
            rows.push(Row { slot, stored: values, hidden, slopes, errors });
        }
    }

    // d and h: sixteen rows, then those of a block, then all.
    let front: Vec<&Row> = rows.iter().filter(|row| row.slot < 3).collect();
    let each = shape.together() as usize;
    for (of, values, place) in [(0, &theta, 1), (1, &v, 3)] {
        for j in 0..p {
            let (u, c) = (j / classes, j % classes);
            let tile = |rows: &[&Row]| {
                [(0, 0), (1, 0), (0, 1)].into_iter().fold(0.0, |sum, (a, b)| {
                    step(sum, rows.iter().map(|row| (row.hidden[u][a], row.slopes[of][c][b])))
                })
            };
            let block = |rows: &[&Row]| -> f32 { rows.chunks(16).map(tile).sum() };
            let direction = |sum: f32| ridge.mul_add(values[j], sum * (most / slope_scale));
            let sum: f32 = front.chunks(each).map(block).sum();
            run.now[place][i * p + j] = T::of(f64::from(direction(sum)));
            if let Some(hess) = run.hess.filter(|_| of == 1) {
                // What the tiles before those of ς₁ add.
                let until = (size[0] + size[1] + shape.pad) as usize;
                let sum: f32 = front[..until].chunks(each).map(block).sum();
                run.now[hess][i * p + j] = T::of(f64::from(direction(sum)));
            }
        }
    }
    // s.
    let back: Vec<&Row> = rows.iter().filter(|row| row.slot >= 3).collect();
    for q in 0..inputs {
        for u in 0..units {
            let mut sum = 0.0;
            for rows in back.chunks(16) {
                let a: Vec<Halves> = rows.iter().map(|row| row.stored[q]).collect();
                let b: Vec<Halves> = rows.iter().map(|row| row.errors[u]).collect();
                sum = together(sum, &a, &b, both, terms);
            }
            let unit = stored.unit * most / error_scale;
            let by = if q + 1 == inputs { unit * stored.bias } else { unit };
            run.now[4][i * n + q * units + u] = T::of(f64::from(sum * by));
        }
    }
}
