//! A model's score on rows with known classes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

/// The class of each row, as its index in a model's classes; `None` if the model does not know it.
pub struct Truth {
    pub numbers: Vec<Option<usize>>,
    /// The labels that the model does not know.
    pub unknown: BTreeSet<String>,
}

impl Truth {
    pub fn new(labels: &[String], classes: &[String]) -> Truth {
        let numbers: HashMap<&str, usize> =
            classes.iter().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
        let numbers: Vec<_> = labels.iter().map(|label| numbers.get(&label[..]).copied()).collect();
        let unknown = labels.iter().zip(&numbers).filter(|(_, number)| number.is_none());
        Truth { unknown: unknown.map(|(label, _)| label.clone()).collect(), numbers }
    }

    /// The number of rows of classes that the model does not know.
    pub fn unknown_rows(&self) -> usize {
        self.numbers.iter().filter(|number| number.is_none()).count()
    }
}

/// A model's score on rows with known classes.
pub struct Score<'a> {
    classes: &'a [String],
    rows: usize,
    /// Rows by class and predicted class.
    counts: BTreeMap<(usize, usize), usize>,
}

/// A model's score on one class.
#[derive(Default, Clone)]
struct ClassCounts {
    rows: usize,
    right: usize,
    predicted: usize,
}

impl<'a> Score<'a> {
    pub fn new(classes: &'a [String], truth: &Truth, predicted: &[u32]) -> Score<'a> {
        let mut counts = BTreeMap::new();
        for (is, &predicted) in truth.numbers.iter().zip(predicted) {
            if let Some(is) = is {
                *counts.entry((*is, predicted as usize)).or_default() += 1;
            }
        }
        Score { classes, rows: truth.numbers.len(), counts }
    }

    /// The share of correct rows; rows of unknown classes count as wrong.
    pub fn accuracy(&self) -> f64 {
        let right = self.counts.iter().filter(|((is, predicted), _)| is == predicted);
        right.map(|(_, count)| count).sum::<usize>() as f64 / self.rows as f64
    }

    fn by_class(&self) -> Vec<ClassCounts> {
        let mut all = vec![ClassCounts::default(); self.classes.len()];
        for (&(is, predicted), count) in &self.counts {
            all[is].rows += count;
            all[predicted].predicted += count;
            if is == predicted {
                all[is].right += count;
            }
        }
        all
    }

    /// One line per class: rows, correct ones, recall, precision.
    pub fn lines(&self) -> Vec<Vec<String>> {
        let share = |of: usize, all: usize| match all {
            0 => "–".to_string(),
            _ => format!("{:.3}", of as f64 / all as f64),
        };
        let line = |(name, class): (&String, ClassCounts)| {
            let ClassCounts { rows, right, predicted } = class;
            let counts = [rows.to_string(), right.to_string()];
            let shares = [share(right, rows), share(right, predicted)];
            [name.clone()].into_iter().chain(counts).chain(shares).collect()
        };
        self.classes.iter().zip(self.by_class()).map(line).collect()
    }

    /// (class, class predicted instead, rows), most frequent first.
    pub fn confusions(&self) -> Vec<(&'a str, &'a str, usize)> {
        let wrong = self.counts.iter().filter(|((is, predicted), _)| is != predicted);
        let named = |(&(is, predicted), &count): (&(usize, usize), &usize)| {
            (self.classes[is].as_str(), self.classes[predicted].as_str(), count)
        };
        let mut all: Vec<_> = wrong.map(named).collect();
        all.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
        all
    }

    pub fn to_json(&self, node: usize) -> Value {
        let share = |of: usize, all: usize| (all > 0).then(|| of as f64 / all as f64);
        let class = |(name, class): (&String, ClassCounts)| {
            let ClassCounts { rows, right, predicted } = class;
            json!({
                "class": name,
                "rows": rows,
                "right": right,
                "recall": share(right, rows),
                "precision": share(right, predicted),
            })
        };
        let confusion = |(class, taken_for, rows): &(&str, &str, usize)| json!({ "class": class, "taken_for": taken_for, "rows": rows });
        json!({
            "node": node,
            "accuracy": self.accuracy(),
            "classes": self.classes.iter().zip(self.by_class()).map(class).collect::<Vec<_>>(),
            "confusions": self.confusions().iter().map(confusion).collect::<Vec<_>>(),
        })
    }
}
