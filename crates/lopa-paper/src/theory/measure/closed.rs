//! Bounds in closed form: logistic and softmax regression, and softmax heads.
//!
//! A loss ℓ(z; y) of scores z = s W has ‖∇ℓ‖ ≤ a, ‖∇²ℓ‖ ≤ b, ‖∇³ℓ‖ ≤ c with
//!
//! ```text
//!             a      b      c
//! logistic    1     1/4   1/(6√3)
//! softmax    √2     1/2    1/√2
//! ```
//!
//! so that derivatives with respect to W are bounded by a |s|, b |s|², c |s|³ and their means over
//! samples.

use super::{Region, Subject};
use crate::theory::{Constants, Known};
use lopa::data::{Data, Samples, Target};
use lopa::math::portable::{exp, hypot, ln};
use lopa::problem::builtin::activation::Activation;
use lopa::problem::builtin::loss::LossName;
use lopa::problem::builtin::{Local, hyperparameter, representation};

struct Loss {
    slope: f64,
    curve: f64,
    third: f64,
}

const LOGISTIC: Loss = Loss { slope: 1.0, curve: 0.25, third: 0.096_225_044_864_937_63 };
const SOFTMAX: Loss =
    Loss { slope: std::f64::consts::SQRT_2, curve: 0.5, third: std::f64::consts::FRAC_1_SQRT_2 };

/// Replaces estimates by bounds where there are any.
pub fn constants(subject: &Subject, seen: Constants<Known>, region: &Region) -> Constants<Known> {
    match subject.problem.name.as_str() {
        "hyperparameter" => hyperparameter(subject, seen, region),
        "representation" => representation(subject, seen),
        _ => seen,
    }
}

/// ∇_θ f and ∇²_θθ f are bounded for all θ, the regulariser over the ball of x, and ∇²_xθ g where g
/// does not exceed its value at θ = 0, as at θ_i*(x).
fn hyperparameter(subject: &Subject, seen: Constants<Known>, region: &Region) -> Constants<Known> {
    let Some(options) = subject.problem.typed::<hyperparameter::Options>() else { return seen };
    let split = Local::<f64>::split(
        "hyperparameter",
        options.validation,
        &subject.setting,
        0..subject.setting.nodes,
    );
    let Ok(locals) = split else { return seen };
    let Target::Classes(classes) = locals[0].target else { return seen };
    let softmax = classes > 2 || options.loss == Some(LossName::Softmax);
    let loss = if softmax { SOFTMAX } else { LOGISTIC };
    let scale = |samples: &Samples<f64>| options.scale.factor(subject.setting.batch, samples.len());
    let over = |of: &dyn Fn(&Local<f64>) -> f64| locals.iter().map(of).fold(0.0, f64::max);
    let lowest = region.centre.iter().copied().fold(f64::INFINITY, f64::min) - region.radius;
    let highest = region.centre.iter().copied().fold(f64::NEG_INFINITY, f64::max) + region.radius;
    let (weakest, strongest) = (2.0 * exp(lowest), 2.0 * exp(highest));
    let norm = |samples: &Samples<f64>, power| mean_norm(samples, options.bias, power);
    let train = |power| over(&|own| scale(&own.train) * norm(&own.train, power));
    let outer = |power| over(&|own| scale(&own.validation) * norm(&own.validation, power));
    // e^{x_q} |θ_q|² ≤ g(x, 0) = c ln C, hence 2 e^{x_q} |θ_q| ≤ 2 (c ln C e^{x_q})^½
    let at_zero = over(&|own| scale(&own.train)) * ln(classes as f64);
    let jacobian = 2.0 * (at_zero * strongest / 2.0).sqrt();
    let third = hypot(loss.third * train(3), strongest);
    Constants {
        mu_g: Known::bound(weakest, "2 e^x, smallest x of the ball"),
        l_f_x: Known::exact(0.0, "f does not depend on x"),
        l_f_theta: Known::bound(loss.curve * outer(2), "curvature of the loss, mean |s|^2"),
        l_g_theta: Known::bound(loss.curve * train(2) + strongest, "loss, mean |s|^2, and 2 e^x"),
        l_g_x_theta: Known::bound(hypot(jacobian, strongest), "where g(x, theta) <= g(x, 0)"),
        l_g_theta_theta: Known::bound(third, "third derivative, mean |s|^3, and 2 e^x"),
        c_f_theta: Known::bound(loss.slope * outer(1), "slope of the loss, mean |s|"),
        c_g_x_theta: Known::bound(jacobian, "where g(x, theta) <= g(x, 0)"),
        ..seen
    }
}

/// The head's inputs h satisfy |(h, 1)|² ≤ units + 1 for every x; those of ReLU have no bound.
fn representation(subject: &Subject, seen: Constants<Known>) -> Constants<Known> {
    let Some(options) = subject.problem.typed::<representation::Options>() else { return seen };
    let numbers = |data: &Data| !matches!(data.target(), Target::Classes(_));
    let logistic = options.loss == Some(LossName::Logistic);
    if logistic || subject.setting.data.is_some_and(numbers) {
        return seen;
    }
    let mu_g = Known::exact(options.ridge, "the ridge: softmax is flat along equal shifts");
    if options.activation == Activation::Relu {
        return Constants { mu_g, ..seen };
    }
    let units = options.hidden.last().copied().unwrap_or(0) as f64;
    let samples = subject.setting.partition.iter().map(Vec::len).max().unwrap_or(1);
    let c = options.scale.factor(subject.setting.batch, samples);
    let size_sq = units + 1.0;
    let seen_value = |known: &Known| format!("{:.3} seen", known.value);
    let (steepest, slope) = (seen_value(&seen.l_g_theta), seen_value(&seen.c_f_theta));
    Constants {
        mu_g,
        l_g_theta: Known::bound(
            c * SOFTMAX.curve * size_sq + options.ridge,
            format!("c (units + 1) / 2 + ridge; {steepest}"),
        ),
        c_f_theta: Known::bound(
            c * SOFTMAX.slope * size_sq.sqrt(),
            format!("c (2 (units + 1))^1/2; {slope}"),
        ),
        ..seen
    }
}

/// The mean of |s|^power over samples; with a bias, s has a 1 at its end.
fn mean_norm(samples: &Samples<f64>, bias: bool, power: i32) -> f64 {
    let norm = |j| {
        let mut sum = f64::from(u8::from(bias));
        samples.each(j, |_, value| sum += value * value);
        sum.sqrt().powi(power)
    };
    (0..samples.len() as u32).map(norm).sum::<f64>() / samples.len() as f64
}
