//! The oracle of kernels/tensor.cu on the processor: the same halves, scales and tiles. A tensor core adds the sixteen
//! products of a step in an order of its own, here they are added exactly, so that bits may differ.

// Fused products of the card, emulated for tests.
#![allow(clippy::disallowed_methods)]

use lopa::engine::Node;
use lopa::engine::device::DeviceRun;
use lopa::error::Result;
use lopa::math::real::Real;

use super::{CLASSES, ORDER, SLOT, UNITS};
use crate::emulate::Emulation;
use crate::exponential::Exponential;
use crate::halves::{SUBNORMAL, power_below, split};
use crate::job::Common;
use crate::plan::{Plan, Table};

/// As in kernels/tensor.cuh.
const SCALE: f32 = 64.0;
const ROWS: usize = 5 * SLOT as usize;
const BACK: usize = 3 * SLOT as usize;
/// Units and classes, padded to whole tiles.
const ALL_UNITS: usize = 32;
const ALL_CLASSES: usize = 16;
/// The unit that is 1, for the bias of the head.
const ONE: usize = UNITS as usize;

/// Takes over a run that the kernels support.
pub fn take<T: Exponential>(plan: Plan<T>, nodes: &[Node<T>]) -> Result<Box<dyn DeviceRun<T>>> {
    Ok(Box::new(Emulation::new(plan, nodes, Some(oracle))))
}

fn single<T: Real>(value: T) -> f32 {
    Real::to_f64(value) as f32
}

/// A step of a tensor core.
fn step(sum: f32, terms: impl Iterator<Item = (f32, f32)>) -> f32 {
    terms.fold(f64::from(sum), |sum, (a, b)| sum + f64::from(a) * f64::from(b)) as f32
}

type Halves<const N: usize> = [[f32; N]; 2];

fn halves<const N: usize>(values: [f32; N]) -> Halves<N> {
    let both = values.map(split);
    [both.map(|[high, _]| high), both.map(|[_, low]| low)]
}

/// Products of split numbers, without that of the low halves, sixteen at a time.
fn product<const N: usize>(mut sum: f32, a: &Halves<N>, b: &Halves<N>) -> f32 {
    for at in (0..N).step_by(16) {
        let tile = at..at + 16;
        for (i, j) in [(0, 0), (1, 0), (0, 1)] {
            sum = step(sum, tile.clone().map(|k| (a[i][k], b[j][k])));
        }
    }
    sum
}

/// d, h and s of node i.
fn oracle<T: Exponential>(run: &mut Emulation<T>, i: usize) {
    let Common { n, p, units, classes, tanh, features, drawn, start, size, .. } =
        run.plan.job.common;
    let [n, p, units, classes] = [n, p, units, classes].map(|count| count as usize);
    let [features, drawn] = [features, drawn].map(|count| count as usize);
    let (unit, ridge) = (single(run.plan.job.unit), single(run.plan.job.ridge));
    let Table::Bytes(bytes) = &run.plan.table else { return };
    let x: Vec<f32> = run.now[7][i * n..(i + 1) * n].iter().map(|&x| single(x)).collect();
    let inner = |place: usize| -> Vec<f32> {
        run.now[place][i * p..(i + 1) * p].iter().map(|&value| single(value)).collect()
    };
    let [theta, v] = [inner(0), inner(2)];
    let weights = ORDER.map(|at| single(run.plan.weights[i * 5 + at]));
    let most = weights.iter().fold(0.0, |most: f32, weight| most.max(weight.abs()));
    let most = if most > 0.0 { most } else { 1.0 };

    // Scales, and the factors of the head.
    let top = |values: &[f32]| values.iter().fold(0.0, |top: f32, value| top.max(value.abs()));
    let (top_theta, top_v) = (top(&theta), top(&v));
    let theta_scale = power_below(top_theta.max(top_v), 14);
    let slope_scale = power_below((58.0 * top_v).max(1.0), 14);
    let steepest = if tanh == 1 { 1.0 } else { 0.25 };
    let bound = 2.0 * top_theta + 2.0 * top_v + 58.0 * top_theta * top_v;
    let error_scale = power_below(bound * steepest, 14);
    let entry = |of: &[f32], u: usize, c: usize| match u {
        _ if c >= classes => 0.0,
        ONE => of[units * classes + c] * theta_scale,
        u if u < units => of[u * classes + c] * theta_scale,
        _ => 0.0,
    };
    let by_class = |of: &[f32]| -> Vec<Halves<ALL_UNITS>> {
        let column = |c| halves(std::array::from_fn(|u| entry(of, u, c)));
        (0..classes).map(column).collect()
    };
    let by_unit = |of: &[f32]| -> Vec<Halves<ALL_CLASSES>> {
        let row = |u| halves(std::array::from_fn(|c| entry(of, u, c)));
        (0..units).map(row).collect()
    };
    let scores = [by_class(&theta), by_class(&v)];
    let backs = [by_unit(&theta), by_unit(&v)];
    let split_x: Vec<[f32; 2]> = x.iter().map(|x| split(x * SCALE)).collect();

    // Rows, minibatch after minibatch, each padded to SLOT rows.
    let mut hidden = vec![halves([0.0; ALL_UNITS]); ROWS + 6];
    let mut slopes = vec![[[[0.0; 2]; CLASSES as usize]; 2]; ROWS + 6];
    let mut errors = vec![[[0.0; 2]; UNITS as usize]; ROWS + 6];
    let mut picked = vec![None; ROWS + 6];
    for r in 0..ROWS {
        let (slot, place) = (r / SLOT as usize, r % SLOT as usize);
        let batch = ORDER[slot];
        if place >= size[batch] as usize {
            continue;
        }
        let pick = run.picks[i * drawn + start[batch] as usize + place] as usize;
        picked[r] = Some(pick);
        let row = &bytes[pick * features..(pick + 1) * features];
        let mut a = [0.0; ALL_UNITS];
        for (u, a) in a.iter_mut().enumerate().take(units) {
            let mut sums = [0.0; 2];
            for (tile, row) in row.chunks(16).enumerate() {
                for (half, sum) in sums.iter_mut().enumerate() {
                    let weight = |q: usize| split_x[(tile * 16 + q) * units + u][half];
                    let terms = row.iter().enumerate();
                    *sum = step(
                        *sum,
                        terms.map(|(q, &byte)| (f32::from(byte) / SUBNORMAL, weight(q))),
                    );
                }
            }
            let sum = sums[0] + sums[1];
            let z = sum.mul_add(SUBNORMAL / SCALE * unit, x[features * units + u]);
            *a = match tanh {
                1 => 1.0 - 2.0 / ((z + z).exponential() + 1.0),
                _ => 1.0 / (1.0 + (-z).exponential()),
            };
        }
        a[ONE] = 1.0;
        hidden[r] = halves(a);
        let score = |of: &[Halves<ALL_UNITS>]| -> Vec<f32> {
            of.iter().map(|column| product(0.0, &hidden[r], column)).collect()
        };
        let mut l = score(&scores[0]);
        let along = score(&scores[1]);
        l.iter_mut().for_each(|l| *l *= 1.0 / theta_scale);
        let highest = l.iter().fold(f32::NEG_INFINITY, |top, &l| top.max(l));
        l.iter_mut().for_each(|l| *l = (*l - highest).exponential());
        let sum: f32 = l.iter().sum();
        l.iter_mut().for_each(|l| *l *= 1.0 / sum);
        let label = run.plan.labels[pick] as usize;
        let weight = weights[slot] / most;
        let q = |c: usize| (l[c] - f32::from(u8::from(c == label))) * slope_scale * weight;
        let mean = l.iter().zip(&along).fold(0.0, |mean, (&l, &a)| l.mul_add(a, mean));
        let by = 1.0 / theta_scale * slope_scale * weight;
        let curve = |c: usize| l[c] * (along[c] - mean) * by;
        for c in 0..classes {
            match slot {
                0 => slopes[r][0][c] = split(q(c)),
                1 => slopes[r][1][c] = split(curve(c)),
                2 => slopes[r][1][c] = split(-q(c)),
                _ => {}
            }
        }
        if slot < 3 {
            continue;
        }
        let of = |value: &dyn Fn(usize) -> f32| -> Halves<ALL_CLASSES> {
            halves(std::array::from_fn(|c| if c < classes { value(c) } else { 0.0 }))
        };
        for u in 0..units {
            let sum = match slot {
                3 => product(0.0, &of(&q), &backs[0][u]),
                _ => product(
                    product(0.0, &of(&|c| -curve(c)), &backs[0][u]),
                    &of(&|c| -q(c)),
                    &backs[1][u],
                ),
            };
            let slope = if tanh == 1 { 1.0 - a[u] * a[u] } else { a[u] - a[u] * a[u] };
            errors[r][u] = split(sum * (error_scale / (slope_scale * theta_scale) * slope));
        }
    }

    // d and h: tiles of 16 rows.
    for (of, values, tiles, place) in [(0, &theta, 0..4, 1), (1, &v, 3..10, 3)] {
        for j in 0..p {
            let (u, c) = (if j / classes == units { ONE } else { j / classes }, j % classes);
            let mut sum = 0.0;
            for tile in tiles.clone() {
                for (a, b) in [(0, 0), (1, 0), (0, 1)] {
                    let rows = 16 * tile..16 * (tile + 1);
                    sum = step(sum, rows.map(|r| (hidden[r][a][u], slopes[r][of][c][b])));
                }
            }
            let direction = ridge.mul_add(values[j], sum * (most / slope_scale));
            run.now[place][i * p + j] = T::of(f64::from(direction));
        }
    }
    // s: high and low separately, except for the bias.
    let Table::Bytes(bytes) = &run.plan.table else { return };
    for q in 0..=features {
        for u in 0..units {
            let mut sums = [0.0; 2];
            for tile in BACK / 16..16 {
                for (half, sum) in sums.iter_mut().enumerate() {
                    // Where there is no row, the error is zero.
                    let rows = (16 * tile..16 * (tile + 1)).filter_map(|r| Some((r, picked[r]?)));
                    let value = |pick: usize| match q < features {
                        true => f32::from(bytes[pick * features + q]) / SUBNORMAL,
                        false => 1.0,
                    };
                    *sum = step(*sum, rows.map(|(r, pick)| (value(pick), errors[r][u][half])));
                }
            }
            let by = if q < features { SUBNORMAL * unit } else { 1.0 };
            let s = (sums[0] + sums[1]) * (by * most / error_scale);
            run.now[4][i * n + q * units + u] = T::of(f64::from(s));
        }
    }
}
