//! Links and nodes fail with the given probabilities, and an interrupted run continues unchanged.

use lopa::engine::messages::{Bursts, Failures, Rules};

const LINKS: usize = 40;
const LONG: u64 = 3000;

fn failures(rules: Rules) -> Failures {
    Failures::new(&rules, 9, LINKS + 1)
}

fn near(found: f64, want: f64, tolerance: f64) {
    assert!((found - want).abs() < tolerance, "{found} is not {want}");
}

#[test]
fn frequencies_are_as_said() {
    let rules = Rules { drop: 0.15, late: 0.3, active: 0.8, ..Rules::default() };
    let failures = failures(rules);
    let (mut down, mut late, mut asleep) = (0, 0, 0);
    for k in 1..=LONG {
        for i in 0..LINKS {
            let fate = failures.fate(k, (i, i + 1));
            down += u32::from(!fate.up);
            late += u32::from(fate.late);
            assert!(fate.up || !fate.late);
            asleep += u32::from(!failures.awake(k, i));
        }
    }
    let all = LONG as f64 * LINKS as f64;
    near(f64::from(down) / all, 0.15, 0.005);
    near(f64::from(late) / all, 0.85 * 0.3, 0.005);
    near(f64::from(asleep) / all, 0.2, 0.005);
    assert!((0..LINKS).all(|i| failures.awake(0, i)));
}

/// Outages have the share and the length of Gilbert and Elliott's chain.
#[test]
fn bursts_last() {
    // Steady, then changing more often than not.
    for (begin, end) in [(0.02, 0.1), (0.5, 0.5), (0.9, 0.8)] {
        let rules = Rules { bursts: Some(Bursts { begin, end, drop: 1.0 }), ..Rules::default() };
        let failures = failures(rules);
        let (mut bad, mut begun) = (0, 0);
        for i in 0..LINKS {
            let mut before = true;
            assert!(failures.fate(0, (i, i + 1)).up);
            for k in 0..LONG {
                let up = failures.fate(k, (i, i + 1)).up;
                bad += u32::from(!up);
                begun += u32::from(before && !up);
                before = up;
            }
        }
        let (bad, begun) = (f64::from(bad), f64::from(begun));
        near(bad / (LONG as f64 * LINKS as f64), begin / (begin + end), 0.02);
        near(bad / begun, 1.0 / end, 0.05 / end);
    }
}

/// Searching back gives the same states as going forward.
#[test]
fn links_have_one_history() {
    let bursts = Some(Bursts { begin: 0.3, end: 0.2, drop: 0.5 });
    let failures = failures(Rules { bursts, drop: 0.1, ..Rules::default() });
    let forward: Vec<_> = (0..200).map(|k| failures.fate(k, (3, 7))).collect();
    let back: Vec<_> = (0..200).rev().map(|k| failures.fate(k, (3, 7))).collect();
    assert!(forward.iter().eq(back.iter().rev()));
    assert_ne!(forward, (0..200).map(|k| failures.fate(k, (3, 8))).collect::<Vec<_>>());
}
