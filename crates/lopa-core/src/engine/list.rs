//! A listed rule with numbers in place of names, for devices.

use crate::algorithms::update_rule::{Evaluation, Factor, ListedRule, Stage, Sum};

/// An array of every node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Array {
    /// Its name.
    pub name: &'static str,
    /// Whether it is as long as x; else as θ.
    pub wide: bool,
}

/// The steps of an iteration.
#[derive(Default)]
pub struct List {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The numbers that arrays are multiplied by.
    pub factors: Vec<Factor>,
}

/// A step of an iteration.
pub enum Step {
    /// Sums of arrays as long as θ, or as x.
    Sums {
        /// Whether as x.
        wide: bool,
        /// The sums, computed in order.
        sums: Vec<Line>,
    },
    /// The evaluation with this number.
    Evaluate(usize),
}

/// An array ← the sum of some others.
pub struct Line {
    /// The array that it is written to.
    pub to: usize,
    /// Whether it goes to the other buffer, because neighbours read this one in the same step.
    pub flips: bool,
    /// The terms.
    pub parts: Vec<Part>,
}

/// An array times a factor.
pub struct Part {
    /// The array.
    pub from: usize,
    /// Whether it is Σ_j w_ij of it, as it was before the step.
    pub mixed: bool,
    /// The number of the factor.
    pub factor: usize,
    /// Whether it is read from the other buffer, to which this step has written it.
    pub new: bool,
}

/// Arrays by number: those that have a place first, then others as they occur.
#[derive(Debug, Clone, Default)]
pub struct Arrays(pub Vec<Array>);

impl Arrays {
    /// The number of an array, a new one if it has none yet.
    pub fn number(&mut self, name: &'static str, wide: bool) -> usize {
        self.find(name).unwrap_or_else(|| {
            self.0.push(Array { name, wide });
            self.0.len() - 1
        })
    }

    /// The number of an array that is known.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|array| array.name == name)
    }

    /// The arrays of x, θ and v, and for d, h and s, of an evaluation.
    pub fn point(&mut self, evaluation: &Evaluation) -> ([usize; 3], [usize; 3]) {
        let of = |arrays: &mut Arrays, name: &'static str, wide| arrays.number(name, wide);
        let [x, theta, v] = evaluation.at;
        let at = [of(self, x, true), of(self, theta, false), of(self, v, false)];
        let [d, h, s] = evaluation.into;
        let into = [
            of(self, d.unwrap_or("unused_d"), false),
            of(self, h.unwrap_or("unused_h"), false),
            of(self, s.unwrap_or("unused_s"), true),
        ];
        (at, into)
    }
}

impl List {
    /// The list of a rule; arrays that are new get numbers.
    pub fn new(rule: &ListedRule, arrays: &mut Arrays) -> List {
        let mut list = List::default();
        let mut evaluated = 0;
        for stage in &rule.stages {
            match stage {
                Stage::Evaluate(_) => {
                    list.steps.push(Step::Evaluate(evaluated));
                    evaluated += 1;
                }
                Stage::Update { theta, x } => {
                    for (wide, sums) in [(false, theta), (true, x)] {
                        if !sums.is_empty() {
                            let sums = list.lines(wide, sums, arrays);
                            list.steps.push(Step::Sums { wide, sums });
                        }
                    }
                }
            }
        }
        list
    }

    fn lines(&mut self, wide: bool, sums: &[Sum], arrays: &mut Arrays) -> Vec<Line> {
        let terms = || sums.iter().flat_map(|sum| &sum.terms);
        let mixed: Vec<usize> =
            terms().filter(|term| term.mixed).map(|term| arrays.number(term.from, wide)).collect();
        let mut written: Vec<usize> = Vec::new();
        let mut lines = Vec::new();
        for sum in sums {
            let mut parts = Vec::new();
            for term in &sum.terms {
                let from = arrays.number(term.from, wide);
                let new = !term.mixed && mixed.contains(&from) && written.contains(&from);
                parts.push(Part { from, mixed: term.mixed, factor: self.factors.len(), new });
                self.factors.push(term.factor.clone());
            }
            let to = arrays.number(sum.to, wide);
            written.push(to);
            lines.push(Line { to, flips: mixed.contains(&to), parts });
        }
        lines
    }

    /// Whether an array needs two buffers.
    pub fn flips(&self, array: usize) -> bool {
        self.steps.iter().any(|step| step.flips(array))
    }
}

impl Step {
    /// The arrays of which it mixes the old values.
    pub fn mixed(&self) -> Vec<usize> {
        let Step::Sums { sums, .. } = self else { return Vec::new() };
        let parts = sums.iter().flat_map(|line| &line.parts).filter(|part| part.mixed);
        let mut mixed: Vec<usize> = parts.map(|part| part.from).collect();
        mixed.sort_unstable();
        mixed.dedup();
        mixed
    }

    /// Whether it writes this array to its other buffer.
    pub fn flips(&self, array: usize) -> bool {
        match self {
            Step::Sums { sums, .. } => sums.iter().any(|line| line.flips && line.to == array),
            Step::Evaluate(_) => false,
        }
    }
}
