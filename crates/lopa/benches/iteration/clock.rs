//! Measures short times on a busy machine.

use std::time::Instant;

/// Seconds of a sample: shorter than a time slice of the scheduler, so that some are undisturbed.
const SAMPLE: f64 = 2e-3;

/// Seconds that `once` takes: the minimum of many samples within about `budget` seconds, because
/// other processes can only add to it.
pub fn fastest(budget: f64, mut once: impl FnMut()) -> f64 {
    let mut sample = |calls: usize| {
        let begin = Instant::now();
        (0..calls).for_each(|_| once());
        begin.elapsed().as_secs_f64() / calls as f64
    };
    let first = (0..5).map(|_| sample(1)).fold(f64::INFINITY, f64::min);
    let calls = (SAMPLE / first).clamp(1.0, 1e5) as usize;
    let samples = (budget / (first * calls as f64)).max(5.0) as usize;
    (0..samples).map(|_| sample(calls)).fold(first, f64::min)
}
