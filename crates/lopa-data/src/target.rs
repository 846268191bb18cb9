//! Targets that are numbers: their values, their scaling, and the ranges that stand for classes.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::source::{Odd, Part, Raw, SEPARATOR};
use crate::error::{Error, Result};
use crate::store::bytes::{Reader, Writer};

/// What rows are labelled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// One of this many classes.
    Classes(usize),
    /// This many numbers.
    Numbers(usize),
    /// A time, and whether an event was seen then: 1, or 0 if it is later or never.
    Survival,
}

impl Target {
    /// The numbers of a prediction: a probability for each class, a number for each output, or a risk.
    pub fn width(self) -> usize {
        match self {
            Target::Classes(count) | Target::Numbers(count) => count,
            Target::Survival => 1,
        }
    }
}

/// The ranges of values that stand for classes where rows are dealt or held out by class.
pub const RANGES: usize = 10;

/// The labels of a row with a time and an event.
pub const SURVIVAL: usize = 2;

/// The numbers to predict.
#[derive(Debug, Clone, PartialEq)]
pub struct Targets {
    /// Numbers of a row.
    pub outputs: usize,
    /// rows × outputs entries.
    pub values: Vec<f64>,
}

impl Targets {
    /// The labels of a part, which must be numbers.
    pub fn of(raw: &Raw, part: &Part) -> Result<Targets> {
        let mut numbers: Vec<Option<Vec<f64>>> = vec![None; raw.classes.len()];
        let mut values = Vec::with_capacity(part.labels.len() * raw.outputs);
        for (row, &label) in part.labels.iter().enumerate() {
            let known = &mut numbers[label as usize];
            if known.is_none() {
                *known = Some(
                    parsed(&raw.classes[label as usize].name, raw.outputs)
                        .map_err(|error| error.at(format!("row {} of the labels", row + 1)))?,
                );
            }
            values.extend(known.iter().flatten());
        }
        Ok(Targets { outputs: raw.outputs, values })
    }

    /// Refuses rows that are not a time and whether an event was seen then.
    pub fn check_survival(&self) -> Result<()> {
        if self.outputs != SURVIVAL {
            let message = "`target = \"survival\"` needs a time and an event";
            return Err(Error::data("data/bad-label", message)
                .hint("name both columns: `label = [\"time\", \"event\"]`"));
        }
        let fits = |row: &[f64]| row[0] >= 0.0 && (row[1] == 0.0 || row[1] == 1.0);
        let Some(row) = self.values.chunks_exact(SURVIVAL).position(|row| !fits(row)) else {
            return Ok(());
        };
        let [time, event] = [self.row(row)[0], self.row(row)[1]];
        let (message, hint) = match time < 0.0 {
            true => {
                (format!("the time {time} is negative"), "times count from the start of each row")
            }
            false => (
                format!("the event {event} is neither 0 nor 1"),
                "write 1 where the event was seen at the time, and 0 where the row was last seen \
                 without it; `label` lists the time first",
            ),
        };
        let place = format!("row {} of the labels", row + 1);
        Err(Error::data("data/bad-label", message).at(place).hint(hint))
    }

    /// The numbers of a row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.outputs..(row + 1) * self.outputs]
    }

    /// Some rows, in the given order.
    pub fn select(&self, rows: &[u32]) -> Targets {
        let values = rows.iter().flat_map(|&row| self.row(row as usize)).copied().collect();
        Targets { outputs: self.outputs, values }
    }

    /// Scaled.
    pub fn scaled(mut self, scaling: &TargetScaling) -> Targets {
        let TargetScaling { shift, factor } = scaling;
        for row in self.values.chunks_exact_mut(self.outputs) {
            for ((value, shift), factor) in row.iter_mut().zip(shift).zip(factor) {
                *value = (*value - shift) * factor;
            }
        }
        self
    }

    /// The range of each row's first number, from 0: up to [`RANGES`] of them, with nearly as many rows
    /// each; equal numbers are in the same range.
    pub fn ranges(&self) -> Vec<u32> {
        let first = || self.values.iter().step_by(self.outputs).copied();
        let mut sorted: Vec<f64> = first().collect();
        sorted.sort_by(f64::total_cmp);
        let bound = |range: usize| sorted[range * sorted.len() / RANGES];
        let bounds: Vec<f64> = (1..RANGES).filter(|_| !sorted.is_empty()).map(bound).collect();
        first().map(|value| bounds.iter().filter(|bound| value >= **bound).count() as u32).collect()
    }

    /// How two rows compare by their first number.
    pub fn compare(&self, a: u32, b: u32) -> Ordering {
        self.row(a as usize)[0].total_cmp(&self.row(b as usize)[0])
    }
}

/// The numbers that a label is: `outputs` of them.
pub fn parsed(label: &str, outputs: usize) -> Result<Vec<f64>> {
    let number = |text: &str| {
        text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(|| {
            let remedy = match Odd::of(text) {
                Odd::Word => {
                    "name another column as `label`, or leave `target` out: labels are then \
                              classes"
                        .into()
                }
                Odd::Missing => "leave out rows without a label".into(),
                odd => odd.remedy(text, "…"),
            };
            Error::data("data/bad-label", format!("the label `{text}` is not a number"))
                .hint(remedy)
        })
    };
    let numbers: Vec<f64> = label.split(SEPARATOR).map(number).collect::<Result<_>>()?;
    match numbers.len() == outputs {
        true => Ok(numbers),
        false => {
            let (found, shown) = (numbers.len(), label.replace(SEPARATOR, " "));
            let message =
                format!("the label `{shown}` is {found} numbers, and {outputs} is needed");
            Err(Error::data("data/bad-label", message)
                .hint("a label is one number, or one for each column that `label` lists"))
        }
    }
}

/// Number o to predict becomes `(raw − shift[o]) · factor[o]`. Empty where labels are classes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetScaling {
    /// Subtracted first.
    pub shift: Vec<f64>,
    /// Multiplied second.
    pub factor: Vec<f64>,
}

impl TargetScaling {
    /// Means to 0 and deviations to 1, over these rows.
    pub fn of(targets: &Targets) -> TargetScaling {
        TargetMoments::of(targets).scaling()
    }

    /// Whether labels are classes.
    pub fn is_empty(&self) -> bool {
        self.shift.is_empty()
    }

    /// What 1 stands for in each scaled number.
    pub fn units(&self) -> Vec<f64> {
        self.factor.iter().map(|factor| factor.recip()).collect()
    }

    /// Predictions in the units of the targets, from scaled ones.
    pub fn undo(&self, said: &mut [f64]) {
        for row in said.chunks_exact_mut(self.shift.len().max(1)) {
            for ((said, shift), factor) in row.iter_mut().zip(&self.shift).zip(&self.factor) {
                *said = *said / factor + shift;
            }
        }
    }

    /// The scaling of a node in another process.
    pub(super) fn unknown(&self) -> TargetScaling {
        let nan = |values: &Vec<f64>| vec![f64::NAN; values.len()];
        TargetScaling { shift: nan(&self.shift), factor: nan(&self.factor) }
    }
}

/// Sums over a node's training rows from which the scaling of targets follows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TargetMoments {
    /// The number of rows.
    pub rows: f64,
    /// The mean of each number.
    pub mean: Vec<f64>,
    /// The sum of its squared deviations from the mean.
    pub square: Vec<f64>,
}

impl TargetMoments {
    /// Of these rows.
    pub fn of(targets: &Targets) -> TargetMoments {
        let Targets { outputs, values } = targets;
        let rows = (values.len() / outputs) as f64;
        let column = |o: usize| values.iter().skip(o).step_by(*outputs).copied();
        let mean: Vec<f64> = (0..*outputs).map(|o| column(o).sum::<f64>() / rows).collect();
        let off = |o: usize| column(o).map(|value: f64| (value - mean[o]).powi(2)).sum::<f64>();
        TargetMoments { rows, square: (0..*outputs).map(off).collect(), mean }
    }

    /// Whether they may be those of a node's rows, with as many numbers as `ours`.
    pub fn fits(&self, ours: &TargetMoments) -> bool {
        let TargetMoments { rows, mean, square } = self;
        let as_many = mean.len() == ours.mean.len() && square.len() == ours.square.len();
        let counted = if ours.rows > 0.0 { *rows >= 1.0 } else { *rows == 0.0 };
        as_many && counted && square.iter().all(|&square| square >= 0.0)
    }

    /// Writes them.
    pub fn write(&self, out: &mut Writer) {
        out.f64(self.rows);
        out.reals(&self.mean);
        out.reals(&self.square);
    }

    /// Reads them; `None` if they are malformed.
    pub fn read(bytes: &mut Reader) -> Option<TargetMoments> {
        let rows = bytes.f64()?;
        let (mean, square): (Vec<f64>, Vec<f64>) = (bytes.reals()?, bytes.reals()?);
        let finite = mean.iter().chain(&square).all(|value| value.is_finite());
        (finite && rows.is_finite()).then_some(TargetMoments { rows, mean, square })
    }

    /// The moments of all rows, from those of each node, in the order of the nodes; `None` if these
    /// differ in length.
    pub fn joined(each: &[TargetMoments]) -> Option<TargetMoments> {
        let outputs = each.first()?.mean.len();
        let alike = |m: &TargetMoments| m.mean.len() == outputs && m.square.len() == outputs;
        if !each.iter().all(alike) {
            return None;
        }
        let rows: f64 = each.iter().map(|m| m.rows).sum();
        let mean = |o: usize| each.iter().map(|m| m.rows * m.mean[o]).sum::<f64>() / rows;
        let mean: Vec<f64> = (0..outputs).map(mean).collect();
        let square = |o: usize| -> f64 {
            each.iter().map(|m| m.square[o] + m.rows * (m.mean[o] - mean[o]).powi(2)).sum()
        };
        Some(TargetMoments { rows, square: (0..outputs).map(square).collect(), mean })
    }

    /// Means to 0 and deviations to 1; a constant is only shifted.
    pub fn scaling(&self) -> TargetScaling {
        let factor = |square: &f64| match (square / self.rows).sqrt() {
            deviation if deviation > 0.0 && deviation.is_finite() => deviation.recip(),
            _ => 1.0,
        };
        TargetScaling { shift: self.mean.clone(), factor: self.square.iter().map(factor).collect() }
    }
}
