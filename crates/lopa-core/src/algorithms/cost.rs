//! The derivatives that an iteration evaluates, as counts that can be evaluated and shown: `Q − 1`.

use std::fmt;
use std::ops::{Add, Mul, Sub};

use crate::problem::scope::Scope;
use crate::problem::{Dims, Trains};

/// The properties of a problem on which the cost of an algorithm depends.
#[derive(Debug, Clone, Copy, Default)]
pub struct Task {
    /// The scope of the inner problem.
    pub scope: Scope,
    /// The variables that a single-level method trains.
    pub trains: Trains,
}

impl Task {
    /// `inner` in the global scope, where θ and v are also mixed; nothing in the personal scope.
    pub fn if_global(self, inner: Count) -> Count {
        match self.scope {
            Scope::Personal => Count::default(),
            Scope::Global => inner,
        }
    }
}

/// The derivatives of an iteration at one node, after the first few iterations.
#[derive(Debug, Clone, Default)]
pub struct Cost {
    /// Calls of ∇_θ g.
    pub grad_theta_g: Count,
    /// Calls of ∇²_θθ g · v.
    pub hess_g: Count,
    /// Calls of ∇²_xθ g · v.
    pub cross_g: Count,
    /// Calls of ∇_θ f.
    pub grad_theta_f: Count,
    /// Calls of ∇_x f.
    pub grad_x_f: Count,
    /// Calls of ∇_x g.
    pub grad_x_g: Count,
    /// Whether a rule that finds step sizes adds derivatives: one product now and then, at most one per
    /// iteration, and 1 in 32 iterations in the long run.
    pub probes: bool,
}

impl Cost {
    /// The same with those that a rule adds, if it does.
    pub fn probing(self, probes: bool) -> Cost {
        Cost { probes, ..self }
    }

    /// Of a method without inner loops: each of the five derivatives once.
    pub fn loopless() -> Cost {
        let once = || Count::from(1.0);
        Cost {
            grad_theta_g: once(),
            hess_g: once(),
            cross_g: once(),
            grad_theta_f: once(),
            grad_x_f: once(),
            grad_x_g: Count::default(),
            probes: false,
        }
    }
}

/// A number of calls or scalars, in terms of n, p and the lengths of loops.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Count(Vec<(f64, Vec<Symbol>)>);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Symbol {
    N,
    P,
    Loop(&'static str, usize),
}

/// The length of x.
pub fn n() -> Count {
    Count(vec![(1.0, vec![Symbol::N])])
}

/// The length of θ.
pub fn p() -> Count {
    Count(vec![(1.0, vec![Symbol::P])])
}

/// The length of a loop, under its name in the paper: N steps on θ, Q on v.
pub fn steps(name: &'static str, length: usize) -> Count {
    Count(vec![(1.0, vec![Symbol::Loop(name, length)])])
}

impl Count {
    /// Its value.
    pub fn at(&self, dims: Dims) -> f64 {
        let value = |symbol: &Symbol| match symbol {
            Symbol::N => dims.n as f64,
            Symbol::P => dims.p as f64,
            Symbol::Loop(_, length) => *length as f64,
        };
        self.0.iter().map(|(factor, of)| factor * of.iter().map(value).product::<f64>()).sum()
    }
}

impl From<f64> for Count {
    fn from(number: f64) -> Count {
        Count(vec![(number, Vec::new())])
    }
}

impl Add for Count {
    type Output = Count;

    fn add(mut self, other: Count) -> Count {
        for (factor, of) in other.0 {
            match self.0.iter_mut().find(|(_, known)| *known == of) {
                Some((sum, _)) => *sum += factor,
                None => self.0.push((factor, of)),
            }
        }
        self.0.retain(|(factor, _)| *factor != 0.0);
        self
    }
}

impl Sub for Count {
    type Output = Count;

    fn sub(self, other: Count) -> Count {
        self + other * -1.0
    }
}

impl Mul for Count {
    type Output = Count;

    fn mul(self, other: Count) -> Count {
        let mut product = Count::default();
        for (a, of) in &self.0 {
            for (b, and) in &other.0 {
                product = product + Count(vec![(a * b, [&of[..], and].concat())]);
            }
        }
        product
    }
}

impl Mul<f64> for Count {
    type Output = Count;

    fn mul(self, factor: f64) -> Count {
        self * Count::from(factor)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        if self.0.is_empty() {
            return write!(out, "0");
        }
        let halves = self.0.iter().any(|(factor, _)| factor.fract().abs() == 0.5);
        if halves {
            return write!(out, "({})/2", self.clone() * 2.0);
        }
        let common = self.0[0].0.abs();
        let shared = self.0.iter().all(|(factor, _)| factor.abs() == common);
        if shared && common != 1.0 && self.0.len() > 1 {
            let signs = self.0.iter().map(|(factor, of)| (factor.signum(), of.clone()));
            return write!(out, "{common}({})", Count(signs.collect()));
        }
        for (at, (factor, of)) in self.0.iter().enumerate() {
            match (at, *factor < 0.0) {
                (0, true) => write!(out, "−")?,
                (0, false) => {}
                (_, true) => write!(out, " − ")?,
                (_, false) => write!(out, " + ")?,
            }
            let size = factor.abs();
            if size != 1.0 || of.is_empty() {
                write!(out, "{size}")?;
            }
            let mut rest = &of[..];
            while let Some(symbol) = rest.first() {
                let power = rest.iter().take_while(|next| *next == symbol).count();
                write!(out, "{}", symbol.name())?;
                match power {
                    1 => {}
                    2 => write!(out, "²")?,
                    power => write!(out, "^{power}")?,
                }
                rest = &rest[power..];
            }
        }
        Ok(())
    }
}

impl Symbol {
    fn name(self) -> &'static str {
        match self {
            Symbol::N => "n",
            Symbol::P => "p",
            Symbol::Loop(name, _) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_show_what_they_compute() {
        let q = || steps("Q", 7);
        let dims = Dims { n: 10, p: 3 };
        let cases = [
            (Count::default(), "0", 0.0),
            (1.0.into(), "1", 1.0),
            (n() * 2.0 + p() * 4.0, "2n + 4p", 32.0),
            (n() + q() * p() * p(), "n + Qp²", 73.0),
            ((q() - 1.0.into()) * 2.0, "2(Q − 1)", 12.0),
            ((q() - 1.0.into()) * 1.9, "1.9(Q − 1)", 1.9 * 7.0 - 1.9),
            ((q() - 1.0.into()) * 0.5, "(Q − 1)/2", 3.0),
            (n() - n() + p(), "p", 3.0),
        ];
        for (count, shown, value) in cases {
            assert_eq!((count.to_string().as_str(), count.at(dims)), (shown, value));
        }
    }
}
