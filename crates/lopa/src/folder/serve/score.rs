//! A model's score on rows with known classes or numbers.
//!
//! ```text
//! accuracy            share of rows whose most probable class is the true one
//! AUC                 mean over classes of P(a row of the class ranks above one of another class)
//! log-loss            mean of −ln p(true class)
//! calibration error   Σ_b n_b/N |accuracy in b − mean confidence in b|,  b: ten equal bins of the
//!                     confidence max_c p(c)
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::data::{Dataset, SURVIVAL, Target, Targets, parsed_label as parsed};
use crate::error::{Error, Result};
use crate::math::concordance::{Seen, concordance};
use crate::math::errors::Errors;
use crate::math::portable::ln;
use crate::math::rank::auc;
use crate::problem::predictor::decide;

/// Bins of the calibration error.
pub const BINS: usize = 10;

/// The smallest probability in the log-loss, so that a confident mistake stays finite.
const LEAST: f64 = 1e-15;

/// The true answers of some rows.
#[derive(Debug, Clone)]
pub enum Answers {
    /// Their classes.
    Classes(Truth),
    /// Their numbers.
    Numbers(Targets),
    /// Their times, and whether events were seen then.
    Survival(Vec<Seen>),
}

impl Answers {
    /// From labels as a file has them, for a model of these classes, or of this many numbers.
    pub fn new(labels: &[String], classes: &[String], target: Target) -> Result<Answers> {
        let outputs = match target {
            Target::Classes(_) => return Ok(Answers::Classes(Truth::new(labels, classes))),
            Target::Numbers(outputs) => outputs,
            Target::Survival => SURVIVAL,
        };
        let mut values = Vec::with_capacity(labels.len() * outputs);
        for (row, label) in labels.iter().enumerate() {
            let at = |error: Error| error.at(format!("row {}", row + 1));
            values.extend(parsed(label, outputs).map_err(at)?);
        }
        let targets = Targets { outputs, values };
        if target != Target::Survival {
            return Ok(Answers::Numbers(targets));
        }
        targets.check_survival()?;
        Ok(Answers::seen(&targets))
    }

    /// Those of some rows of a data set; numbers are as it has them, scaled.
    pub fn of(set: &Dataset, rows: &[u32], target: Target) -> Answers {
        match (set.targets().map(|targets| targets.select(rows)), target) {
            (Some(targets), Target::Survival) => Answers::seen(&targets),
            (Some(targets), _) => Answers::Numbers(targets),
            (None, _) => {
                let label = |&row: &u32| Some(set.labels()[row as usize] as usize);
                let numbers = rows.iter().map(label).collect();
                Answers::Classes(Truth { numbers, unknown: BTreeSet::new() })
            }
        }
    }

    fn seen(targets: &Targets) -> Answers {
        let seen = |row: &[f64]| Seen { time: row[0], event: row[1] > 0.5 };
        Answers::Survival(targets.values.chunks_exact(SURVIVAL).map(seen).collect())
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Answers::Classes(truth) => truth.numbers.len(),
            Answers::Numbers(targets) => targets.values.len() / targets.outputs.max(1),
            Answers::Survival(seen) => seen.len(),
        }
    }

    /// The class of each row, if all are classes of the model, or whether its event was seen; else 0.
    pub fn labels(&self) -> Vec<u32> {
        match self {
            Answers::Classes(truth) => {
                truth.numbers.iter().map(|class| class.unwrap_or(0) as u32).collect()
            }
            Answers::Numbers(_) => vec![0; self.rows()],
            Answers::Survival(seen) => seen.iter().map(|seen| u32::from(seen.event)).collect(),
        }
    }

    /// How well these are predicted: by probabilities of `width` classes, by numbers, or by risks.
    pub fn score(&self, predictions: &[f64], width: usize) -> AnyScore {
        match self {
            Answers::Classes(truth) => AnyScore::Classes(Score::new(truth, predictions, width)),
            Answers::Numbers(Targets { outputs: width, values: truth }) => {
                let (width, rows) = (*width, self.rows());
                let of = |said: &[f64]| Errors::of(truth, said, &vec![1.0; width]);
                let column = |o: usize| truth.iter().skip(o).step_by(width).sum::<f64>();
                let mean: Vec<f64> = (0..width).map(|o| column(o) / rows.max(1) as f64).collect();
                AnyScore::Numbers { rows, errors: of(predictions), of_mean: of(&mean.repeat(rows)) }
            }
            Answers::Survival(seen) => AnyScore::Survival {
                rows: seen.len(),
                events: seen.iter().filter(|seen| seen.event).count(),
                concordance: concordance(seen, predictions),
            },
        }
    }
}

/// A model's score on classes or on numbers.
#[derive(Debug, Clone)]
pub enum AnyScore {
    /// On classes.
    Classes(Score),
    /// On numbers.
    Numbers {
        /// All rows.
        rows: usize,
        /// The errors, in the units of the numbers; none without rows.
        errors: Option<Errors>,
        /// Those of always naming the mean of these rows.
        of_mean: Option<Errors>,
    },
    /// On times and events.
    Survival {
        /// All rows.
        rows: usize,
        /// Those whose event was seen.
        events: usize,
        /// Harrell's C; none if no two rows can be compared.
        concordance: Option<f64>,
    },
}

impl AnyScore {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        match self {
            AnyScore::Classes(score) => score.rows,
            AnyScore::Numbers { rows, .. } | AnyScore::Survival { rows, .. } => *rows,
        }
    }

    /// A measure that is smaller for better predictions: the log-loss, the RMSE, or the share of pairs in the
    /// wrong order.
    pub fn loss(&self) -> Option<f64> {
        match self {
            AnyScore::Classes(score) => score.log_loss,
            AnyScore::Numbers { errors, .. } => errors.map(|errors| errors.rmse),
            AnyScore::Survival { concordance, .. } => concordance.map(|share| 1.0 - share),
        }
    }
}

/// The class of each row, as its number in a model's classes; `None` if the class is not in the
/// model.
#[derive(Debug, Clone)]
pub struct Truth {
    /// One for each row.
    pub numbers: Vec<Option<usize>>,
    /// Labels that are not in the model.
    pub unknown: BTreeSet<String>,
}

impl Truth {
    /// From labels by name.
    pub fn new(labels: &[String], classes: &[String]) -> Truth {
        let numbers: HashMap<&str, usize> =
            classes.iter().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
        let numbers: Vec<_> = labels.iter().map(|label| numbers.get(&label[..]).copied()).collect();
        let unknown = labels.iter().zip(&numbers).filter(|(_, number)| number.is_none());
        Truth { unknown: unknown.map(|(label, _)| label.clone()).collect(), numbers }
    }

    /// The number of rows whose classes are not in the model.
    pub fn unknown_rows(&self) -> usize {
        self.numbers.iter().filter(|number| number.is_none()).count()
    }

    /// The most frequent class of the model, and its share of all rows: the accuracy of always
    /// predicting it.
    pub fn majority(&self) -> Option<(usize, f64)> {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        self.numbers.iter().flatten().for_each(|&class| *counts.entry(class).or_default() += 1);
        let (class, count) = counts.into_iter().rev().max_by_key(|&(_, count)| count)?;
        Some((class, count as f64 / self.numbers.len() as f64))
    }
}

/// A model's score on rows with known classes.
///
/// Rows whose classes are not in the model count as wrong, and are left out of the measures of
/// probabilities. A measure is `None` if no row contributes to it.
#[derive(Debug, Clone)]
pub struct Score {
    /// All rows.
    pub rows: usize,
    /// Rows by class and predicted class, where there are any.
    pub counts: BTreeMap<(usize, usize), usize>,
    /// The area under the ROC curve, each class against the rest.
    pub auc: Option<f64>,
    /// The mean of −ln p(true class).
    pub log_loss: Option<f64>,
    /// The expected calibration error, with [`BINS`] bins.
    pub calibration: Option<f64>,
    classes: usize,
}

/// A model's score on one class.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ClassCounts {
    /// Rows of the class.
    pub rows: usize,
    /// Those predicted as such.
    pub right: usize,
    /// Rows predicted to be of the class.
    pub predicted: usize,
}

impl Score {
    /// From the probability of each class for each row.
    pub fn new(truth: &Truth, probabilities: &[f64], classes: usize) -> Score {
        let predicted = decide(probabilities, classes);
        let known: Vec<(usize, usize, &[f64])> = truth
            .numbers
            .iter()
            .zip(predicted)
            .zip(probabilities.chunks_exact(classes.max(1)))
            .filter_map(|((is, predicted), p)| Some(((*is)?, predicted as usize, p)))
            .collect();
        let mut counts = BTreeMap::new();
        for &(is, predicted, _) in &known {
            *counts.entry((is, predicted)).or_default() += 1;
        }
        let losses = known.iter().map(|(is, _, p)| -ln(p[*is].max(LEAST)));
        let log_loss = (!known.is_empty()).then(|| losses.sum::<f64>() / known.len() as f64);
        Score {
            rows: truth.numbers.len(),
            counts,
            auc: mean_auc(&known, classes),
            log_loss,
            calibration: calibration(&known),
            classes,
        }
    }

    /// The share of rows that are right.
    pub fn accuracy(&self) -> f64 {
        let right = self.counts.iter().filter(|((is, predicted), _)| is == predicted);
        right.map(|(_, count)| count).sum::<usize>() as f64 / self.rows as f64
    }

    /// The score on each class.
    pub fn by_class(&self) -> Vec<ClassCounts> {
        let mut all = vec![ClassCounts::default(); self.classes];
        for (&(is, predicted), count) in &self.counts {
            all[is].rows += count;
            all[predicted].predicted += count;
            if is == predicted {
                all[is].right += count;
            }
        }
        all
    }

    /// (class, class predicted instead, rows), most frequent first.
    pub fn confusions(&self) -> Vec<(usize, usize, usize)> {
        let wrong = self.counts.iter().filter(|((is, predicted), _)| is != predicted);
        let mut all: Vec<_> =
            wrong.map(|(&(is, predicted), &count)| (is, predicted, count)).collect();
        all.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
        all
    }
}

/// The mean over the classes that some rows have and others lack.
fn mean_auc(known: &[(usize, usize, &[f64])], classes: usize) -> Option<f64> {
    let mut all = Vec::new();
    for class in 0..classes {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (is, _, p) in known {
            if *is == class { &mut own } else { &mut others }.push(p[class]);
        }
        if !own.is_empty() && !others.is_empty() {
            all.push(auc(&own, &mut others));
        }
    }
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn calibration(known: &[(usize, usize, &[f64])]) -> Option<f64> {
    let mut bins = [(0.0, 0.0); BINS]; // right, confidence
    for (is, predicted, p) in known {
        let confidence = p[*predicted];
        let bin = &mut bins[((confidence * BINS as f64) as usize).min(BINS - 1)];
        bin.0 += f64::from(is == predicted);
        bin.1 += confidence;
    }
    let off: f64 = bins.iter().map(|(right, confidence)| (right - confidence).abs()).sum();
    (!known.is_empty()).then(|| off / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(labels: &[&str]) -> Truth {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        Truth::new(&names(labels), &names(&["a", "b", "c"]))
    }

    #[test]
    fn measures_of_two_classes_are_those_worked_out_by_hand() {
        let truth = truth(&["a", "a", "b", "b"]);
        // b is predicted for rows 1 and 3; of the pairs of p(a), 2 are won, 1 is tied, 1 is lost.
        let p = [0.9, 0.1, 0.4, 0.6, 0.4, 0.6, 0.65, 0.35];
        let score = Score::new(&truth, &p, 2);
        assert_eq!(score.accuracy(), 0.5);
        assert_eq!(score.auc, Some(2.5 / 4.0));
        let loss = -[0.9, 0.4, 0.6, 0.35].map(ln).iter().sum::<f64>() / 4.0;
        assert!((score.log_loss.unwrap() - loss).abs() < 1e-15);
        // Bin 0.9: right, 0.9. Bin 0.6: one of three right, 0.6 + 0.6 + 0.65.
        assert!((score.calibration.unwrap() - (0.1 + 0.85) / 4.0).abs() < 1e-15);
        let counts = BTreeMap::from([((0, 0), 1), ((0, 1), 1), ((1, 0), 1), ((1, 1), 1)]);
        assert_eq!(score.counts, counts);
        assert_eq!(truth.majority(), Some((0, 0.5)));
    }

    #[test]
    fn three_classes_are_averaged_and_unknown_ones_are_wrong() {
        let truth = truth(&["a", "b", "b", "what?"]);
        let p = [0.5, 0.3, 0.2, 0.2, 0.6, 0.2, 0.6, 0.2, 0.2, 1.0, 0.0, 0.0];
        let score = Score::new(&truth, &p, 3);
        assert_eq!((score.rows, score.accuracy()), (4, 0.5));
        // a: 0.5 against 0.2 and 0.6; b: 0.6 and 0.2 against 0.3; c: no row has it.
        assert_eq!(score.auc, Some(0.5));
        assert_eq!(score.confusions(), [(1, 0, 1)]);
        assert_eq!((truth.unknown_rows(), truth.majority()), (1, Some((1, 0.5))));
        let b = ClassCounts { rows: 2, right: 1, predicted: 1 };
        assert_eq!(score.by_class()[1], b);
    }

    #[test]
    fn nothing_known_is_no_number() {
        let truth = truth(&["x"]);
        let score = Score::new(&truth, &[0.5, 0.5, 0.0], 3);
        assert_eq!((score.auc, score.log_loss, score.calibration), (None, None, None));
        assert_eq!((score.accuracy(), truth.majority()), (0.0, None));
        // A confident mistake has a large but finite cost.
        let sure = Score::new(&super::tests::truth(&["a"]), &[0.0, 1.0, 0.0], 3);
        assert!((sure.log_loss.unwrap() - -ln(1e-15)).abs() < 1e-12);
    }
}
