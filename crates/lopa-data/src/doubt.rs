//! Columns that are doubtful as features: identifiers, constants, and numbers that mark a missing
//! value.

use std::collections::HashSet;

use serde::Serialize;

/// The reason why a column is doubtful as a feature.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Remark {
    /// Its values name the rows.
    Identifier,
    /// All cells are equal.
    Constant,
    /// A number far from all others that often marks a missing value.
    Sentinel {
        /// The number.
        value: f64,
        /// How many cells have it.
        cells: usize,
    },
}

/// Columns of fewer rows are not called identifiers.
const FEW: usize = 20;

/// Whole numbers that do not repeat in this many rows are identifiers, whatever the column's name.
const MANY: usize = 50;

/// Names of columns that number rows or identify their subjects.
const NAMES: [&str; 18] = [
    "id",
    "idx",
    "index",
    "row",
    "rowid",
    "rownumber",
    "no",
    "nr",
    "number",
    "key",
    "uuid",
    "guid",
    "mrn",
    "ssn",
    "case",
    "patient",
    "subject",
    "unnamed0",
];

/// Whether a column's name is that of an identifier.
fn says_so(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    let lower = name.trim().to_lowercase();
    let ends =
        ["_id", "-id", " id", ".id", "_nr", "_no", "_key"].iter().any(|end| lower.ends_with(end));
    let camel = name.ends_with("Id") || name.ends_with("ID");
    plain.is_empty() || ends || camel || NAMES.contains(&plain.to_lowercase().as_str())
}

/// The distinct values of a column of whole numbers or words, as long as hardly any repeats.
#[derive(Debug, Clone)]
pub struct Values {
    seen: Option<HashSet<u64>>,
    repeats: usize,
    last: Option<f64>,
    rising: bool,
    falling: bool,
}

impl Default for Values {
    fn default() -> Values {
        let seen = Some(HashSet::new());
        Values { seen, repeats: 0, last: None, rising: true, falling: true }
    }
}

impl Values {
    /// Adds the hash of a cell, and its number if it is one.
    pub fn add(&mut self, hash: u64, number: Option<f64>) {
        let Some(seen) = &mut self.seen else { return };
        if !seen.insert(hash) {
            self.repeats += 1;
            if self.repeats > FEW + seen.len() / 10 {
                self.seen = None;
                return;
            }
        }
        if let Some((number, last)) = number.zip(self.last) {
            self.rising &= number > last;
            self.falling &= number < last;
        }
        self.last = number;
    }

    /// Gives up: these are measurements.
    pub fn forget(&mut self) {
        self.seen = None;
    }

    /// Whether no value occurs twice.
    pub fn all_differ(&self) -> bool {
        self.seen.is_some() && self.repeats == 0
    }

    /// Whether they name the rows.
    pub fn identify(&self, rows: usize, name: &str, low: &Edge, high: &Edge) -> bool {
        let Some(seen) = self.seen.as_ref().filter(|_| rows >= FEW) else { return false };
        let named = says_so(name) && 10 * seen.len() >= 9 * rows;
        let dense = -high.value - low.value < 2.0 * rows as f64;
        let ordered = self.rising || self.falling;
        // Words of which none occurs twice describe single rows.
        let words = self.last.is_none();
        named || self.repeats == 0 && (words || ordered || dense || rows >= MANY)
    }
}

/// The smallest number so far, how often it occurs, and the next one.
#[derive(Debug, Clone)]
pub struct Edge {
    pub value: f64,
    pub count: usize,
    next: f64,
}

impl Default for Edge {
    fn default() -> Edge {
        Edge { value: f64::INFINITY, count: 0, next: f64::INFINITY }
    }
}

impl Edge {
    pub fn add(&mut self, value: f64, count: usize) {
        if value < self.value {
            *self = Edge { value, count, next: self.value };
        } else if value == self.value {
            self.count += count;
        } else {
            self.next = self.next.min(value);
        }
    }

    /// Whether the number is a usual mark of a missing value (-999, 9999), and far from the others,
    /// which extend to `end`. `sign` is -1 at the upper end.
    pub fn stands_for_nothing(&self, end: f64, sign: f64) -> bool {
        let value = sign * self.value;
        let digits = format!("{}", value.abs());
        let nines = digits.bytes().all(|digit| digit == b'9');
        let usual = nines && (value < 0.0 || digits.len() > 1) || value.abs() >= 1e20;
        let others = self.next.is_finite() && self.next < end;
        let far = self.next - self.value > end - self.next || value < 0.0 && self.next >= 0.0;
        usual && others && far
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(values: &[f64]) -> (Edge, Edge) {
        let (mut low, mut high) = (Edge::default(), Edge::default());
        for &value in values {
            low.add(value, 1);
            high.add(-value, 1);
        }
        (low, high)
    }

    #[test]
    fn a_number_that_stands_for_a_missing_value_is_found() {
        for (values, at_low, at_high) in [
            (&[-999.0, 20.0, 30.0, 90.0][..], true, false),
            (&[20.0, 30.0, 90.0, 999.0, 999.0], false, true),
            (&[-9.0, 0.0, 1.0, 2.0], true, false),
            (&[-999.0, 0.0, 5000.0], true, false),
            (&[990.0, 995.0, 999.0], false, false),
            (&[-99.0, -98.0, -1.0, 50.0], false, false),
            (&[1.0, 5.0, 9.0], false, false),
            (&[-999.0, 999.0], false, false),
        ] {
            let (low, high) = edges(values);
            assert_eq!(low.stands_for_nothing(-high.value, 1.0), at_low, "{values:?}");
            assert_eq!(high.stands_for_nothing(-low.value, -1.0), at_high, "{values:?}");
        }
    }

    #[test]
    fn an_identifier_is_told_from_a_measurement() {
        let identify = |name: &str, values: &[f64]| {
            let mut all = Values::default();
            values.iter().for_each(|value| all.add(value.to_bits(), Some(*value)));
            let (low, high) = edges(values);
            all.identify(values.len(), name, &low, &high)
        };
        let scattered = |count: usize| -> Vec<f64> {
            (0..count).map(|i| (i * 7919 % 10_007 * 83) as f64).collect()
        };
        let repeated: Vec<f64> = (0..100).map(|i| f64::from(i % 40)).collect();
        assert!(identify("id", &scattered(30)));
        assert!(identify("patient_id", &scattered(30)));
        assert!(identify("PatientID", &scattered(30)));
        assert!(identify("anything", &(1..31).map(f64::from).collect::<Vec<_>>()));
        assert!(identify("anything", &scattered(60)));
        assert!(!identify("anything", &scattered(30)));
        assert!(!identify("id", &scattered(10)));
        assert!(!identify("age", &repeated) && !identify("id", &repeated));
    }
}
