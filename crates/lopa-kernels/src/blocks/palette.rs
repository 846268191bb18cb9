//! The distinct values of a matrix.

/// The distinct values of a matrix, at most 255 and zero. A value's code is its index; zero has
/// code 0.
pub struct Palette {
    pub values: [f64; 256],
    sorted: Vec<(f64, u8)>,
    recent: Vec<(f64, u8)>, // the last value of each hash, where most are found
    pub unit: Option<f64>,  // that all values are multiples of, if any; codes count it
}

impl Palette {
    pub fn new(all: &[f64]) -> Option<Palette> {
        let (mut sorted, mut recent): (Vec<f64>, _) = (Vec::new(), vec![0.0; HASHES]);
        for &value in all {
            if std::mem::replace(&mut recent[hash(value)], value) == value {
                continue;
            }
            let at = sorted.partition_point(|&known| known < value);
            if sorted.get(at) != Some(&value) {
                if sorted.len() == 255 || !value.is_finite() {
                    return None;
                }
                sorted.insert(at, value);
            }
        }
        let unit = unit(&sorted);
        let code = |(i, &value): (usize, &f64)| match unit {
            Some(unit) => (value, (value / unit).round() as u8),
            None => (value, i as u8 + 1),
        };
        let sorted: Vec<(f64, u8)> = sorted.iter().enumerate().map(code).collect();
        let mut values = [0.0; 256];
        sorted.iter().for_each(|&(value, code)| values[code as usize] = value);
        Some(Palette { values, sorted, recent: vec![(0.0, 0); HASHES], unit })
    }

    /// The code of a value of the matrix.
    pub fn code(&mut self, value: f64) -> u8 {
        let recent = &mut self.recent[hash(value)];
        if recent.0 != value {
            let at = self.sorted.partition_point(|&(known, _)| known < value);
            *recent = self.sorted[at];
        }
        recent.1
    }
}

const HASHES: usize = 4096;

fn hash(value: f64) -> usize {
    (value.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize
}

/// The number that all values are whole multiples of, at most 255 times and up to rounding; any
/// number where there are no values.
fn unit(sorted: &[f64]) -> Option<f64> {
    let (Some(&smallest), Some(&largest)) = (sorted.first(), sorted.last()) else {
        return Some(1.0);
    };
    let is_multiple = |value: f64, unit: f64| {
        ((value / unit).round() * unit - value).abs() <= 2.0 * f64::EPSILON * value
    };
    let units = (1..=255).map(|times| largest / f64::from(times));
    units
        .filter(|_| smallest > 0.0)
        .find(|&unit| sorted.iter().all(|&value| is_multiple(value, unit)))
}
