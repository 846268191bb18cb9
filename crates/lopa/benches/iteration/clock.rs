//! How long something takes on a machine that also does other things.

use std::time::Instant;

/// A spell is shorter than the turns that a busy system gives out, so that some are undisturbed.
const SPELL: f64 = 2e-3;

/// Seconds that `once` takes: the least over many spells within about `budget` seconds, since
/// whatever else the machine does only adds to it.
pub fn least(budget: f64, mut once: impl FnMut()) -> f64 {
    let mut spell = |turns: usize| {
        let begin = Instant::now();
        (0..turns).for_each(|_| once());
        begin.elapsed().as_secs_f64() / turns as f64
    };
    let first = (0..5).map(|_| spell(1)).fold(f64::INFINITY, f64::min);
    let turns = (SPELL / first).clamp(1.0, 1e5) as usize;
    let spells = (budget / (first * turns as f64)).max(5.0) as usize;
    (0..spells).map(|_| spell(turns)).fold(first, f64::min)
}
