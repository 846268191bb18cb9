//! The different values of a matrix.

/// The different values of a matrix, if they are at most 255 beside zero, which has place 0.
pub struct Listing {
    pub values: [f64; 256],
    sorted: Vec<(f64, u8)>,
    seen: Vec<(f64, u8)>, // by the first bits of the hash of a value: most are found here
    pub unit: Option<f64>, // what all values are multiples of, and places say how many times
}

impl Listing {
    pub fn new(all: &[f64]) -> Option<Listing> {
        let (mut sorted, mut seen): (Vec<f64>, _) = (Vec::new(), vec![0.0; SEEN]);
        for &value in all {
            if std::mem::replace(&mut seen[slot(value)], value) == value {
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
        let place = |(i, &value): (usize, &f64)| match unit {
            Some(unit) => (value, (value / unit).round() as u8),
            None => (value, i as u8 + 1),
        };
        let sorted: Vec<(f64, u8)> = sorted.iter().enumerate().map(place).collect();
        let mut values = [0.0; 256];
        sorted.iter().for_each(|&(value, place)| values[place as usize] = value);
        Some(Listing { values, sorted, seen: vec![(0.0, 0); SEEN], unit })
    }

    pub fn place(&mut self, value: f64) -> u8 {
        let seen = &mut self.seen[slot(value)];
        if seen.0 != value {
            let at = self.sorted.partition_point(|&(known, _)| known < value);
            *seen = self.sorted[at];
        }
        seen.1
    }
}

const SEEN: usize = 4096;

fn slot(value: f64) -> usize {
    (value.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize
}

/// The number that all are whole multiples of, up to 255 times and to rounding.
fn unit(sorted: &[f64]) -> Option<f64> {
    let (&least, &most) = (sorted.first()?, sorted.last()?);
    let is_multiple = |value: f64, unit: f64| {
        ((value / unit).round() * unit - value).abs() <= 2.0 * f64::EPSILON * value
    };
    let units = (1..=255).map(|times| most / f64::from(times));
    units.filter(|_| least > 0.0).find(|&unit| sorted.iter().all(|&value| is_multiple(value, unit)))
}
