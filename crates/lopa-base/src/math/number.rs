//! Numbers formatted for people.

use super::portable::log10;

/// A number with four significant digits.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if !(1e-3..1e5).contains(&size) {
        format!("{value:.2e}")
    } else {
        let digits = (3 - log10(size).floor() as i32).max(0) as usize;
        format!("{value:.digits$}")
    }
}

/// A number as a user may have written it, or with four significant digits if that is long.
pub fn written(value: f64) -> String {
    Some(value.to_string()).filter(|text| text.len() <= 8).unwrap_or_else(|| number(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 0.25, 123.456, -1e5].map(number), ["0", "0.2500", "123.5", "-1.00e5"]);
        assert_eq!(
            [0.3, 1000.0, 1e60, 1.0 / 3.0].map(written),
            ["0.3", "1000", "1.00e60", "0.3333"]
        );
        assert!(number(f64::NAN).len() < 9 && number(1.7e300).len() < 9);
    }
}
