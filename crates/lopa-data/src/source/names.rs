//! Numbers for the names of classes and groups.

use crate::encoding::numeral;
use std::collections::HashMap;

/// Between the numbers of a row that has several to predict.
pub const SEPARATOR: char = '\t';

/// Numbers names in the order of their first appearance; [`Names::sorted`] gives the final order.
#[derive(Default)]
pub struct Names {
    /// From a name as written to its number; never iterated over.
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    /// The number of a name; `+1`, `1` and `1.0` are one name. An empty name or NaN has no number.
    pub fn number(&mut self, written: &str) -> Option<u32> {
        if let Some(&number) = self.numbers.get(written) {
            return Some(number);
        }
        let name = match written.parse::<f64>() {
            Ok(number) => numeral(number)?,
            Err(_) if written.is_empty() => return None,
            Err(_) => written.to_string(),
        };
        let number = match self.numbers.get(&name) {
            Some(&number) => number,
            None => {
                self.names.push(name.clone());
                self.names.len() as u32 - 1
            }
        };
        self.numbers.insert(name, number);
        self.numbers.insert(written.to_string(), number);
        Some(number)
    }

    /// The names in their final order (numeric if all are numbers, else alphabetical), and the
    /// final number of each provisional one.
    pub fn sorted(self) -> (Vec<String>, Vec<u32>) {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        let numbers: Option<Vec<f64>> = self.names.iter().map(|name| name.parse().ok()).collect();
        match numbers {
            Some(numbers) => order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b])),
            None => order.sort_by(|&a, &b| self.names[a].cmp(&self.names[b])),
        }
        let mut rank = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            rank[old] = new as u32;
        }
        (order.iter().map(|&old| self.names[old].clone()).collect(), rank)
    }
}
