//! The accountant by privacy-loss distributions.
//!
//! Of a pair of distributions (P, Q), the loss is ln P(x)/Q(x) with x ~ P. Losses of releases add up, so that their
//! distributions are convolved, and δ(ε) = E[(1 − e^{ε − loss})₊]. Three approximations are made, each upwards:
//!
//! 1. Losses are moved to multiples of a width h. The mass between two of them is divided between both such that its mass
//!    under P and under Q stays the same. Then δ(ε) is interpolated linearly in e^ε, and because it is convex, every
//!    value is at least the true one (Doroshenko and others, 2022). The error is of second order in h.
//! 2. Losses below a bound that is practically never passed are moved up to it; those above another become infinite.
//! 3. Sums of losses are computed modulo a window. The mass outside of it, bounded by Chernoff's inequality, is added
//!    to δ.

use libm::{exp, expm1 as exp_m1, log as ln};

use crate::fft::{Complex, back, power, times, transform};
use crate::renyi::ratio;
use crate::{DELTA, Release};

/// The variance that widths may add, relative to that of the sum of losses.
const BLUR: f64 = 0.003;
/// The longest window.
const LONGEST: usize = 1 << 21;
/// The share of δ that each of the tails may have.
const TAIL: f64 = 1e-4;

/// ε at `delta` of all `releases` together: an upper bound, close to the true value. Infinite if the numbers have no meaning
/// or `delta` is outside of [`DELTA`].
pub fn epsilon(releases: &[Release], delta: f64) -> f64 {
    match composed(releases, delta) {
        Some(orders) => orders.iter().map(|sum| sum.epsilon(delta)).fold(0.0, f64::max),
        None => f64::INFINITY,
    }
}

/// δ at `epsilon`: an upper bound; its error is below `precision`, which is of the size of the δ of interest.
pub fn delta(releases: &[Release], epsilon: f64, precision: f64) -> f64 {
    match composed(releases, precision) {
        Some(orders) => orders.iter().map(|sum| sum.delta(epsilon)).fold(0.0, f64::max),
        None => 1.0,
    }
}

/// The sums of losses in both orders of the two distributions; none if nothing is released.
fn composed(releases: &[Release], delta: f64) -> Option<Vec<Sum>> {
    let valid = releases.iter().all(Release::is_valid) && DELTA.contains(&delta);
    let releases: Vec<Release> = releases.iter().copied().filter(Release::counts).collect();
    let repeated: f64 = releases.iter().map(|release| release.count as f64).sum();
    // With more releases, no width of a cell is both fine enough and coarse enough.
    if !valid || repeated > 1e12 {
        return None;
    }
    if releases.is_empty() {
        return Some(Vec::new());
    }
    let tail = TAIL * delta;
    let order = |with_row| {
        let pair = |release: &Release| (Pair { release: *release, with_row }, release.count);
        let pairs: Vec<(Pair, u64)> = releases.iter().map(pair).collect();
        Sum::new(&pairs, tail, tail / repeated)
    };
    // Without sampling both orders are the same.
    let one = releases.iter().all(|release| release.q == 1.0);
    Some(if one { vec![order(true)] } else { vec![order(true), order(false)] })
}

/// P and Q of a release, in units of σ: if P is the one `with_row`, it is the mixture.
struct Pair {
    release: Release,
    with_row: bool,
}

/// Abscissae and weights of Gauss and Legendre on (−1, 1).
const RULE: [(f64, f64); 5] = [
    (0.0, 0.568_888_888_888_888_9),
    (0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
    (-0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
    (0.906_179_845_938_664, 0.236_926_885_056_189_08),
    (-0.906_179_845_938_664, 0.236_926_885_056_189_08),
];

/// ∫ of the standard normal density from `a` to `b`.
fn normal(a: f64, b: f64) -> f64 {
    let above = |z: f64| 0.5 * libm::erfc(z * std::f64::consts::FRAC_1_SQRT_2);
    let mass = if a + b > 0.0 { above(a) - above(b) } else { above(-b) - above(-a) };
    mass.max(0.0)
}

fn density(z: f64) -> f64 {
    exp(-0.5 * z * z) / (2.0 * std::f64::consts::PI).sqrt()
}

impl Pair {
    /// ln of the mixture's density over the other's at z. It grows with z.
    fn log_ratio(&self, z: f64) -> f64 {
        let Release { q, sigma, .. } = self.release;
        ratio(q, (z - 0.5 / sigma) / sigma)
    }

    /// The loss at z.
    fn loss(&self, z: f64) -> f64 {
        if self.with_row { self.log_ratio(z) } else { -self.log_ratio(z) }
    }

    /// Where the log ratio is `value`; −∞ where it is larger everywhere.
    fn z_of(&self, value: f64) -> f64 {
        let Release { q, sigma, .. } = self.release;
        // e^u = (e^value − 1 + q) / q
        let u = match value > 0.0 {
            true => value + ln((1.0 - (1.0 - q) * exp(-value)) / q),
            false => ln(1.0 + exp_m1(value) / q),
        };
        if u.is_nan() { f64::NEG_INFINITY } else { sigma * u + 0.5 / sigma }
    }

    /// The mass of (P, Q) from z = `a` to `b`.
    fn masses(&self, a: f64, b: f64) -> (f64, f64) {
        let Release { q, sigma, .. } = self.release;
        let without = normal(a, b);
        let with = (1.0 - q) * without + q * normal(a - 1.0 / sigma, b - 1.0 / sigma);
        if self.with_row { (with, without) } else { (without, with) }
    }

    /// The density of P at z.
    fn density(&self, z: f64) -> f64 {
        let Release { q, sigma, .. } = self.release;
        match self.with_row {
            true => (1.0 - q) * density(z) + q * density(z - 1.0 / sigma),
            false => density(z),
        }
    }

    /// P beyond these z is below `tail` on either side.
    fn ends(&self, tail: f64) -> (f64, f64) {
        // P(z > t) ≤ e^{−t²/2}
        let far = (-2.0 * ln(tail)).sqrt();
        (-far, far + if self.with_row { 1.0 / self.release.sigma } else { 0.0 })
    }

    /// The mean square of the loss.
    fn square(&self) -> f64 {
        let (from, to) = self.ends(1e-12);
        let points = 1000;
        let width = (to - from) / f64::from(points);
        let at = |point: i32| {
            let z = from + width * f64::from(point);
            self.density(z) * self.loss(z).powi(2)
        };
        (0..=points).map(at).sum::<f64>() * width
    }

    /// The loss on multiples of `width`; mass below `tail` may become infinite.
    fn masses_on(&self, width: f64, tail: f64) -> Losses {
        let (from, to) = self.ends(tail);
        let (low, high) = match self.with_row {
            true => (self.loss(from), self.loss(to)),
            false => (self.loss(to), self.loss(from)),
        };
        let (first, last) = ((low / width).floor(), (high / width).ceil());
        let mut masses = vec![0.0; (last - first) as usize + 1];
        let z_at = |at: usize| {
            let loss = (first + at as f64) * width;
            self.z_of(if self.with_row { loss } else { -loss })
        };
        // The mass between two losses lies between two z.
        let between = |a: f64, b: f64| if self.with_row { (a, b) } else { (b, a) };
        let step = -exp_m1(-width);
        let mut here = z_at(0);
        let below = match self.with_row {
            true => self.masses(f64::NEG_INFINITY, here).0,
            false => self.masses(here, f64::INFINITY).0,
        };
        masses[0] += below;
        for at in 0..masses.len() - 1 {
            let next = z_at(at + 1);
            let (a, b) = between(here, next);
            let bottom = (first + at as f64) * width;
            let (mass, upper) = self.divide((a, b), bottom, step);
            masses[at] += mass - upper;
            masses[at + 1] += upper;
            here = next;
        }
        let infinite = match self.with_row {
            true => self.masses(here, f64::INFINITY).0,
            false => self.masses(f64::NEG_INFINITY, here).0,
        };
        Losses { first: first as i64, masses, infinite }
    }

    /// The mass of P between two z, and the part of it that moves up to the next multiple: that of
    /// 1 − e^{bottom − loss}, divided by `step` = 1 − e^{−h}.
    fn divide(&self, (a, b): (f64, f64), bottom: f64, step: f64) -> (f64, f64) {
        let half = 0.5 * (b - a);
        if a >= b {
            return (0.0, 0.0);
        }
        let (mass, gain) = match half < 0.05 && half * a.abs().max(b.abs()) < 0.5 {
            // Without cancellation.
            true => RULE.iter().fold((0.0, 0.0), |(mass, gain), (z, weight)| {
                let z = 0.5 * (a + b) + half * z;
                let here = self.density(z) * weight * half;
                (mass + here, gain - here * exp_m1(bottom - self.loss(z)))
            }),
            false => {
                let (p, q) = self.masses(a, b);
                (p, p - exp(ln(q) + bottom))
            }
        };
        (mass, (gain / step).clamp(0.0, mass))
    }
}

/// The distribution of a loss on multiples of a width.
struct Losses {
    first: i64,
    masses: Vec<f64>,
    infinite: f64,
}

impl Losses {
    /// The masses of blocks of losses, each with its lowest and its highest loss in widths: fewer numbers, for bounds.
    fn coarse(&self) -> Vec<(f64, f64, f64)> {
        let block = self.masses.len().div_ceil(4096);
        let loss = |at: usize| self.first as f64 + at as f64;
        let each = self.masses.chunks(block).enumerate();
        each.map(|(i, masses)| {
            let (low, high) = (i * block, i * block + masses.len() - 1);
            (masses.iter().sum(), loss(low), loss(high))
        })
        .collect()
    }
}

/// The distribution of a sum of losses.
struct Sum {
    width: f64,
    /// The loss of the first mass, in widths.
    first: i64,
    masses: Vec<f64>,
    /// The mass of an infinite loss, and of what the window does not hold.
    infinite: f64,
}

impl Sum {
    /// `tail` is the mass that may be outside of the window, `each` that which one release may lose.
    fn new(pairs: &[(Pair, u64)], tail: f64, each: f64) -> Sum {
        let squares: f64 = pairs.iter().map(|(pair, count)| pair.square() * *count as f64).sum();
        let repeated: f64 = pairs.iter().map(|(_, count)| *count as f64).sum();
        let mut width = 2.0 * (BLUR * squares / repeated).sqrt();
        loop {
            // Of a single release the losses must fit as well.
            let longest = |(pair, _): &(Pair, u64)| {
                let (from, to) = pair.ends(each);
                (pair.loss(to) - pair.loss(from)).abs()
            };
            let longest = pairs.iter().map(longest).fold(0.0, f64::max);
            if longest / width > (LONGEST / 4) as f64 {
                width = longest / (LONGEST / 4) as f64;
            }
            let losses: Vec<(Losses, u64)> =
                pairs.iter().map(|(pair, count)| (pair.masses_on(width, each), *count)).collect();
            let (low, high) = window(&losses, width, tail);
            let length = (high - low) as usize + 1;
            if length <= LONGEST {
                return Sum::within(&losses, width, (low, high), tail);
            }
            width *= 1.1 * length as f64 / LONGEST as f64;
        }
    }

    fn within(losses: &[(Losses, u64)], width: f64, (low, high): (i64, i64), tail: f64) -> Sum {
        let longest = losses.iter().map(|(losses, _)| losses.masses.len()).max().unwrap_or(1);
        let length = ((high - low) as usize + 1).max(longest).next_power_of_two();
        let mut product: Vec<Complex> = vec![(1.0, 0.0); length];
        let mut kept = 1.0;
        let mut first = 0i128;
        for (losses, count) in losses {
            let mut spectrum: Vec<Complex> = vec![(0.0, 0.0); length];
            spectrum.iter_mut().zip(&losses.masses).for_each(|(value, mass)| value.0 = *mass);
            transform(&mut spectrum);
            for (value, one) in product.iter_mut().zip(spectrum) {
                *value = times(*value, power(one, *count));
            }
            kept *= libm::pow(1.0 - losses.infinite, *count as f64);
            first += i128::from(losses.first) * i128::from(*count);
        }
        let found: Vec<f64> = back(&mut product).map(|mass| mass.max(0.0)).collect();
        // found[j] is the mass of all sums that are first + j modulo the length.
        let offset = (i128::from(low) - first).rem_euclid(length as i128) as usize;
        let masses = (0..length).map(|at| found[(offset + at) % length]).collect();
        Sum { width, first: low, masses, infinite: 1.0 - kept + tail }
    }

    /// δ(ε) = E[(1 − e^{ε − loss})₊].
    fn delta(&self, epsilon: f64) -> f64 {
        let loss = |at: usize| (self.first as f64 + at as f64) * self.width;
        let part = |(at, mass): (usize, &f64)| match loss(at) > epsilon {
            true => -mass * exp_m1(epsilon - loss(at)),
            false => 0.0,
        };
        let sum = self.masses.iter().enumerate().map(part).sum::<f64>();
        (self.infinite + sum).min(1.0)
    }

    /// The smallest ε ≥ 0 with δ(ε) ≤ `delta`.
    fn epsilon(&self, delta: f64) -> f64 {
        if self.infinite > delta {
            return f64::INFINITY;
        }
        // At ε = loss of `at`: δ = infinite + above − faded, where `above` is the mass of larger losses and `faded` that
        // mass times e^{ε − loss}.
        let fade = exp(-self.width);
        let (mut above, mut faded) = (0.0, 0.0);
        for at in (0..self.masses.len()).rev() {
            let loss = (self.first as f64 + at as f64) * self.width;
            if self.infinite + above - faded > delta || loss < 0.0 {
                // Between this loss and the next, δ = infinite + above − e^t faded.
                let more = ln((self.infinite + above - delta) / faded);
                return if more.is_finite() { (loss + more).max(0.0) } else { loss.max(0.0) };
            }
            above += self.masses[at];
            faded = (faded + self.masses[at]) * fade;
        }
        0.0
    }
}

/// An upper bound of ln E[e^{t · loss}] over the finite losses, t per width.
fn log_moment(blocks: &[(f64, f64, f64)], t: f64) -> f64 {
    let exponent = |low: f64, high: f64| (t * low).max(t * high);
    let highest = |top: f64, &(_, low, high): &(f64, f64, f64)| top.max(exponent(low, high));
    let top = blocks.iter().fold(f64::NEG_INFINITY, highest);
    let each = blocks.iter().map(|&(mass, low, high)| mass * exp(exponent(low, high) - top));
    top + ln(each.sum::<f64>())
}

/// The first and the last multiple of `width` between which all but `tail` of the sum lies, on either side.
fn window(losses: &[(Losses, u64)], width: f64, tail: f64) -> (i64, i64) {
    let coarse: Vec<_> = losses.iter().map(|(one, count)| (one.coarse(), *count as f64)).collect();
    let end = |sign: f64| {
        // P(sum ≥ u) ≤ E[e^{t sum}] / e^{tu} for every t > 0.
        let bound = |t: f64| {
            let moment = |(blocks, count): &(Vec<(f64, f64, f64)>, f64)| {
                count * log_moment(blocks, sign * t * width)
            };
            (coarse.iter().map(moment).sum::<f64>() - ln(tail)) / t
        };
        // The bound first falls with ln t, then grows: each step drops a third without the least value.
        let (mut low, mut high) = (ln(1e-8), ln(1e8));
        for _ in 0..40 {
            let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            match bound(exp(a)) <= bound(exp(b)) {
                true => high = b,
                false => low = a,
            }
        }
        bound(exp(0.5 * (low + high)))
    };
    // No sum is outside of the sums of the ends.
    let least: f64 = losses.iter().map(|(one, count)| one.first as f64 * *count as f64).sum();
    let most: f64 = losses
        .iter()
        .map(|(one, count)| (one.first as f64 + one.masses.len() as f64 - 1.0) * *count as f64)
        .sum();
    let low = (-end(-1.0) / width).floor().max(least).min(most);
    let high = (end(1.0) / width).ceil().min(most).max(low);
    (low as i64, high as i64)
}
