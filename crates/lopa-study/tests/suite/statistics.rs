//! Statistics against values of scipy and statsmodels (`tests/data/statistics.py`).

use lopa_study::statistics::{Paired, holm, interval};
use serde_json::Value;

fn values() -> Value {
    serde_json::from_str(include_str!("../data/statistics.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1e-3 + b.abs())
}

#[test]
fn paired_differences_agree_with_scipy() {
    let values = values();
    let cases = values["paired"].as_array().unwrap();
    assert_eq!(cases.len(), 21);
    let mut equivalent = 0;
    for case in cases {
        let differences = numbers(&case["differences"]);
        let paired = Paired::of(&differences).unwrap();
        assert!(close(paired.p(), case["p"].as_f64().unwrap()), "{} {}", paired.p(), case["p"]);
        for (level, ends) in case["intervals"].as_object().unwrap() {
            let ours = paired.interval(level.parse().unwrap());
            let ends = numbers(ends);
            assert!(close(ours.low, ends[0]) && close(ours.high, ends[1]), "{ours:?} {ends:?}");
            assert_eq!(ours.pairs, differences.len());
        }
        let theirs = case["p_equivalent"].as_f64().unwrap();
        let ours = paired.p_equal(case["margin"].as_f64().unwrap());
        assert!(close(ours, theirs), "{ours} {theirs}");
        equivalent += usize::from(ours < 0.05);
    }
    assert!((5..16).contains(&equivalent), "both answers occur: {equivalent}");
}

#[test]
fn many_tests_are_corrected_as_statsmodels_does() {
    for case in values()["holm"].as_array().unwrap() {
        let (ours, theirs) = (holm(&numbers(&case["p"])), numbers(&case["adjusted"]));
        assert!(ours.iter().zip(&theirs).all(|(a, b)| close(*a, *b)), "{ours:?} {theirs:?}");
    }
}

/// Of two hypotheses that exclude each other, one is true at most.
#[test]
fn hypotheses_that_exclude_each_other_count_once() {
    let p = [0.01, 0.04, 0.03, 0.9];
    assert_eq!(lopa_study::statistics::holm_of(&p, 2), [0.02, 0.08, 0.06, 0.9]);
    assert_eq!(holm(&p), lopa_study::statistics::holm_of(&p, 4));
}

#[test]
fn differences_without_spread() {
    let same = Paired::of(&[0.0; 4]).unwrap();
    assert_eq!((same.p(), same.p_equal(1e-9)), (1.0, 0.0));
    let shifted = Paired::of(&[2.0; 4]).unwrap();
    assert_eq!((shifted.p(), shifted.p_equal(1.0)), (0.0, 1.0));
    assert_eq!(interval(&[1.0]), None);
    assert_eq!(Paired::of(&[1.0, f64::INFINITY]), None);
}

#[test]
fn a_setting_counts_once_however_many_seeds_it_has() {
    let settings = vec![vec![1.0, 1.1, 0.9, 1.0], vec![-1.0, -0.9], vec![1.0; 40]];
    let pooled = Paired::pooled(&settings).unwrap();
    assert_eq!(pooled, Paired::of(&[1.0, -0.95, 1.0]).unwrap());
    assert!(pooled.p() > 0.5, "three settings that disagree show nothing");
    let seeds: Vec<f64> = settings.concat();
    assert!(Paired::of(&seeds).unwrap().p() < 1e-6, "46 pairs would seem to");
    assert_eq!(Paired::pooled(&settings[..1]).unwrap(), Paired::of(&settings[0]).unwrap());
    assert_eq!(Paired::pooled(&[vec![1.0, 2.0], vec![]]), None);
}
