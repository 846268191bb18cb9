//! The mechanism on vectors that the tests draw.

use lopa::math::random::{Purpose, Stream};
use lopa::problem::At;
use lopa::problem::derivative::Derivative;
use lopa::problem::derivative::{Batches, Counts};
use lopa::problem::private::{Key, Mechanism, Private, Question, RowClip, RowSums};
use proptest::prelude::*;

pub const KEY: Key = Key([7; 32]);

pub fn mechanism(rows: usize, batch: Option<usize>, clip: f64, sigma: f64) -> Mechanism {
    let sums = RowSums { depend: &Derivative::ALL, common: false };
    let clip = RowClip::Number(clip);
    Mechanism { clip, sigma, sums, batches: Batches::all(batch), rows: (rows, rows) }
}

/// The same, with a clip that follows the rows.
pub fn following(rows: usize, batch: Option<usize>, sigma: f64) -> Mechanism {
    Mechanism { clip: RowClip::AUTO, ..mechanism(rows, batch, 1.0, sigma) }
}

/// ∇_θ g in iteration `address`, of rows with the given vectors on top of `base`.
pub fn ask(private: &mut Private<f64>, address: u64, base: &[f64], rows: &[Vec<f64>]) -> Vec<f64> {
    let mut out = vec![0.0; base.len()];
    let at = At { x: &[1.0], theta: base };
    let question = Question { of: Derivative::GradThetaG, address, at, v: &[] };
    private.take(question, &mut out, |batch, out| {
        out.copy_from_slice(base);
        for &row in batch {
            out.iter_mut().zip(&rows[row as usize]).for_each(|(out, term)| *out += term);
        }
    });
    out
}

/// Any finite number, small or huge, and some that are none.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -3.0..3.0f64,
        1 => Just(1e200),
        1 => Just(-1e308),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(0.0),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Compares all pairs of neighbouring data: each row in turn is taken out; sample and noise stay the same.
    #[test]
    fn a_row_moves_the_sum_by_at_most_the_clip(
        base in prop::collection::vec(-2.0..2.0f64, 1..4),
        numbers in prop::collection::vec(number(), 24),
        clip in 0.01..10.0f64,
        batch in prop::option::of(1usize..8),
        address in 0u64..1000,
    ) {
        let rows: Vec<Vec<f64>> = numbers.chunks(4).map(|row| row[..base.len()].to_vec()).collect();
        let mechanism = mechanism(rows.len(), batch, clip, 0.5);
        let answer = |rows: &[Vec<f64>]| {
            let mut private = Private::new(mechanism, KEY, base.len());
            ask(&mut private, address, &base, rows)
        };
        let whole = answer(&rows);
        prop_assert!(whole.iter().all(|value| value.is_finite()), "{whole:?}");
        let size = batch.unwrap_or(rows.len()).min(rows.len()) as f64;
        for gone in 0..rows.len() {
            let mut without = rows.clone();
            without[gone].fill(0.0);
            let moved = answer(&without);
            let far = whole.iter().zip(&moved).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            prop_assert!(far * size <= clip * (1.0 + 1e-9), "row {gone} moves it by {}", far * size);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The same for a clip that follows the rows. All that is released is seen here: the derivative, and the mark in the
    /// next clip, which a release of many rows without noise gives back.
    #[test]
    fn a_row_moves_the_sum_and_its_mark_by_at_most_a_clip_that_follows(
        base in prop::collection::vec(-2.0..2.0f64, 1..4),
        numbers in prop::collection::vec(number(), 24),
        scale in 0.1..10.0f64,
        address in 0u64..1000,
    ) {
        let row = |row: &[f64]| row[..base.len()].iter().map(|value| value * scale).collect();
        let rows: Vec<Vec<f64>> = numbers.chunks(4).map(row).collect();
        let mechanism = following(rows.len(), None, 1e-6);
        let answer = |rows: &[Vec<f64>]| {
            let mut private = Private::new(mechanism, KEY, base.len());
            let mut out = ask(&mut private, address, &base, rows);
            let next = private.clips()[Derivative::GradThetaG as usize];
            // C ← C (1 + b/4), or C / (1 − b/4).
            let b = if next > 1.0 { 4.0 * (next - 1.0) } else { 4.0 * (1.0 - 1.0 / next) };
            let kappa = (1.0f64 - 0.04).sqrt();
            out.iter_mut().for_each(|out| *out *= kappa);
            out.push(0.2 * b);
            out
        };
        let whole = answer(&rows);
        prop_assert!(whole.iter().all(|value| value.is_finite()), "{whole:?}");
        for gone in 0..rows.len() {
            let mut without = rows.clone();
            without[gone].fill(0.0);
            let moved = answer(&without);
            let far = whole.iter().zip(&moved).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            let far = far * rows.len() as f64;
            prop_assert!(far <= 1.0 + 1e-6, "row {gone} moves it by {far}");
        }
    }
}

#[test]
fn a_clip_that_follows_clips_two_rows_in_five_from_far_away() {
    let mut stream = Stream::new(4, Purpose::Data, 0);
    for scale in [1e-3, 1.0, 1e3] {
        let rows: Vec<Vec<f64>> =
            (0..501).map(|_| vec![scale * stream.normal(), scale * stream.normal()]).collect();
        let mut norms: Vec<f64> = rows.iter().map(|row| row[0].hypot(row[1])).collect();
        norms.sort_by(f64::total_cmp);
        for (batch, sigma) in [(None, 1e-3), (None, 10.0), (Some(100), 3.0)] {
            let mut private = Private::new(following(501, batch, sigma), KEY, 2);
            let (mut sum, late) = (0.0, 80..120);
            for k in 0..late.end {
                private.begin();
                ask(&mut private, k, &[0.0, 0.0], &rows);
                if late.contains(&k) {
                    sum += private.clips()[Derivative::GradThetaG as usize].ln();
                }
            }
            let found = (sum / 40.0).exp();
            let share = norms.iter().filter(|norm| **norm <= found).count() as f64 / 501.0;
            assert!((share - 0.6).abs() < 0.12, "{scale} {batch:?} {sigma}: {share}");
            // Derivatives that nobody asked for have not moved.
            assert_eq!(private.clips()[Derivative::GradXF as usize], 1.0);
        }
    }
}

#[test]
fn the_mean_is_that_of_all_rows_and_the_noise_has_its_deviation() {
    let mut stream = Stream::new(3, Purpose::Data, 0);
    let rows: Vec<Vec<f64>> = (0..30).map(|_| vec![stream.normal(), stream.normal()]).collect();
    let base = [0.4, -1.0];
    // No row is clipped.
    let mut private = Private::new(mechanism(30, Some(6), 100.0, 0.03), KEY, 2);
    let answers: Vec<Vec<f64>> = (0..20_000).map(|k| ask(&mut private, k, &base, &rows)).collect();
    for j in 0..2 {
        let mean =
            |of: &dyn Fn(f64) -> f64| answers.iter().map(|a| of(a[j])).sum::<f64>() / 20_000.0;
        let truth = base[j] + rows.iter().map(|row| row[j]).sum::<f64>() / 30.0;
        let (q, squares) = (0.2, rows.iter().map(|row| row[j] * row[j]).sum::<f64>());
        let variance = (q * (1.0 - q) * squares + 9.0) / 36.0;
        let found = mean(&|value| value);
        assert!((found - truth).abs() < 5.0 * (variance / 20_000.0).sqrt(), "{found} and {truth}");
        let spread = mean(&|value| (value - truth).powi(2));
        assert!((spread / variance - 1.0).abs() < 0.06, "{spread} and {variance}");
    }
}

#[test]
fn noise_follows_from_the_question_and_from_nothing_else() {
    let rows = vec![vec![0.1, 0.2]; 9];
    let base = [0.5, 0.5];
    let new = |key| Private::new(mechanism(9, Some(3), 1.0, 1.0), key, 2);
    let first = ask(&mut new(KEY), 4, &base, &rows);
    assert_eq!(first, ask(&mut new(KEY), 4, &base, &rows));
    // Earlier iterations do not matter.
    let mut later = new(KEY);
    for address in 0..4 {
        later.begin();
        ask(&mut later, address, &base, &rows);
        ask(&mut later, address, &base, &rows);
    }
    later.begin();
    assert_eq!(first, ask(&mut later, 4, &base, &rows));
    // The second call of an iteration, another iteration, another point, another key.
    let off = |answer: &[f64], base: &[f64]| (answer[0] - base[0], answer[1] - base[1]);
    let mut seen = vec![off(&first, &base), off(&ask(&mut later, 4, &base, &rows), &base)];
    seen.push(off(&ask(&mut new(KEY), 5, &base, &rows), &base));
    seen.push(off(&ask(&mut new(KEY), 4, &[0.5, 0.75], &rows), &[0.5, 0.75]));
    seen.push(off(&ask(&mut new(KEY.of("other")), 4, &base, &rows), &base));
    for (i, one) in seen.iter().enumerate() {
        for other in &seen[..i] {
            assert!((one.0 - other.0).abs() > 1e-9 && (one.1 - other.1).abs() > 1e-9, "{seen:?}");
        }
    }
}

#[test]
fn rows_of_f_and_of_g_are_counted_apart_unless_they_are_the_same() {
    let counts = Counts {
        grad_theta_g: 5,
        hess_g: 4,
        cross_g: 3,
        grad_theta_f: 2,
        grad_x_f: 1,
        ..Counts::default()
    };
    let apart = Mechanism { rows: (10, 40), ..mechanism(10, Some(10), 1.0, 2.0) };
    let lists = apart.releases(&counts);
    let of = |at: usize| lists[at].iter().map(|one| (one.q, one.count)).collect::<Vec<_>>();
    assert_eq!(of(0), [(0.25, 5), (0.25, 4), (0.25, 3), (0.25, 0)]);
    assert_eq!(of(1), [(1.0, 2), (1.0, 1)]);
    let common = Mechanism { sums: RowSums { common: true, ..apart.sums }, ..apart };
    assert_eq!(common.releases(&counts).len(), 1);
    assert!(common.epsilon(&counts, 1e-5) > apart.epsilon(&counts, 1e-5));
    // What depends on no row is not counted, and gets no noise.
    let free = Mechanism { sums: RowSums { depend: &[], common: true }, ..apart };
    assert_eq!(free.epsilon(&counts, 1e-5), 0.0);
    let mut private = Private::new(free, KEY, 1);
    assert_eq!(ask(&mut private, 0, &[0.25], &vec![vec![1.0]; 40]), [0.25]);
}
