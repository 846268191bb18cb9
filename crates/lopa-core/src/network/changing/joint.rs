//! The rate of consensus over rounds: the norm of a window's product.

use serde::{Deserialize, Serialize};

use super::{Cursor, Kind, Rounds};
use crate::error::{Error, Result};
use crate::math::portable::{exp, ln};
use crate::math::real::{dot, update};
use crate::network::spectrum;

/// Windows of drawn rounds that are analysed.
const WINDOWS: u64 = 4;

/// After a round that averages completely, the rest of a vector is rounding below this.
const NOTHING: f64 = 1e-13;

/// The effect of a window of rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Joint {
    /// The number of rounds in it, B.
    pub window: u64,
    /// ρ_B = ‖W_{B−1} ⋯ W_0 − 11ᵀ/m‖², squared like ρ; of drawn rounds the geometric mean over the
    /// first few windows.
    pub rho_window: f64,
    /// ρ_B^{1/B}, to be compared with ρ of a fixed W.
    pub rho_round: f64,
    /// Messages per node and round, on average.
    pub messages: f64,
    /// Whether every W is symmetric; otherwise they are doubly stochastic only.
    pub symmetric: bool,
}

impl Rounds {
    /// Analyses the first window; where rounds are drawn, the first few.
    pub fn joint(&self) -> Joint {
        let (m, window) = (self.nodes() as u64, self.window);
        let windows = if matches!(self.kind, Kind::Drawn(_)) { WINDOWS } else { 1 };
        let mut cursor = self.cursor();
        let mut log = 0.0; // of ρ_B
        for number in 0..windows {
            log += log_norm_squared(&mut cursor, number * window, window) / windows as f64;
        }
        let mut sent = 0;
        for round in 0..windows * window {
            cursor.go(round);
            sent += cursor.mixing().arrows();
        }
        Joint {
            window,
            rho_window: exp(log),
            rho_round: exp(log / window as f64),
            messages: sent as f64 / (m * windows * window) as f64,
            symmetric: self.symmetric,
        }
    }
}

impl Joint {
    /// Refuses rounds on which nodes would never agree: those that swap values forever keep ρ_B = 1.
    pub fn check(&self) -> Result<()> {
        match self.rho_window < 1.0 - 1e-12 {
            true => Ok(()),
            false => Err(Error::network(
                "network/never-mixes",
                format!("rho = 1 over {} rounds: nodes would never agree", self.window),
            )
            .hint("use lazy weights, (W + I)/2: `lazy-metropolis`")),
        }
    }
}

/// ln ‖W_{B−1} ⋯ W_0 − 11ᵀ/m‖²: that of the largest eigenvalue of the product with its transpose,
/// orthogonal to 1. Long windows leave numbers too small for a float, so each round is scaled by how
/// much it shrinks a first vector.
fn log_norm_squared(cursor: &mut Cursor, first: u64, window: u64) -> f64 {
    let m = cursor.rounds.nodes();
    if m == 1 {
        return f64::NEG_INFINITY;
    }
    let (mut v, mut image) = (spectrum::start(m), vec![0.0; m]);
    let mut shrinks = Vec::with_capacity(window as usize);
    for round in first..first + window {
        cursor.go(round);
        cursor.mixing().apply(&v, &mut image);
        spectrum::centre(&mut image);
        let shrink = dot(&image, &image).sqrt();
        if shrink < NOTHING {
            return f64::NEG_INFINITY;
        }
        shrinks.push(shrink);
        update(&mut v, [&image], |_, [image]| image / shrink);
    }
    let spectrum::Ends { high: largest, .. } =
        spectrum::ends_of(m, 1.0, spectrum::enough(m), |v, out| {
            image.copy_from_slice(v);
            for (at, shrink) in shrinks.iter().enumerate() {
                cursor.go(first + at as u64);
                cursor.mixing().apply(&image, out);
                spectrum::centre(out);
                update(&mut image, [out], |_, [out]| out / shrink);
            }
            for (at, shrink) in shrinks.iter().enumerate().rev() {
                cursor.go(first + at as u64);
                cursor.mixing().apply_transposed(&image, out);
                spectrum::centre(out);
                update(&mut image, [out], |_, [out]| out / shrink);
            }
            out.copy_from_slice(&image);
        });
    ln(largest.max(0.0)) + 2.0 * shrinks.iter().map(|&shrink| ln(shrink)).sum::<f64>()
}
