//! What problems say about their rows is true.

use lopa::config::Source;
use lopa::data::{Data, Dataset, Features, Scalings};
use lopa::math::random::{Purpose, Stream};
use lopa::problem::builtin::problems;
use lopa::problem::derivative::Derivative::{self, *};
use lopa::problem::{At, Bilevel, Setting};

const FEATURES: usize = 4;
const ROWS: usize = 12;

/// Two classes; the rows whose numbers are in `other` are drawn differently.
fn data(other: &[usize]) -> Data {
    let mut stream = Stream::new(11, Purpose::Data, 0);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for row in 0..ROWS {
        let label = stream.below(2) as u32;
        let drawn: Vec<f64> = (0..FEATURES).map(|_| stream.normal() + f64::from(label)).collect();
        match other.contains(&row) {
            true => values.extend(drawn.iter().map(|value| 7.0 - 3.0 * value)),
            false => values.extend(drawn),
        }
        labels.push(if other.contains(&row) { 1 - label } else { label });
    }
    let set =
        || Dataset::new(Features::Dense { cols: FEATURES, values: values.clone() }, labels.clone());
    let classes = vec!["a".into(), "b".into()];
    let (scaling, left_out) = (Scalings::default(), Vec::new());
    Data {
        train: set(),
        test: set(),
        classes,
        outputs: Vec::new(),
        survival: false,
        scaling,
        columns: None,
        unnamed: Default::default(),
        own: None,
        left_out,
    }
}

fn part(text: &str, data: &Data) -> Box<dyn Bilevel<f64>> {
    let source = Source::new("test", format!("[problem]\n{text}"));
    let section = source.root().unwrap().required("problem").unwrap();
    let problem = problems().read(section).unwrap();
    let partition = [(0..ROWS as u32).collect::<Vec<_>>()];
    let setting = Setting {
        nodes: 1,
        seed: 3,
        batch: Some(4),
        data: Some(data),
        partition: &partition,
        ..Setting::default()
    };
    problem.build.get::<f64>().parts(&setting, 0..1).unwrap().each.swap_remove(0)
}

const CASES: [&str; 6] = [
    "name = 'hyperparameter'",
    "name = 'hyperparameter'\nbias = true\nscale = 'sum'\nvalidation = 0.25",
    "name = 'representation'\nhidden = [3]",
    "name = 'representation'\nhidden = [3]\nvalidation = 0.25\nscale = 'batch-sum'",
    "name = 'representation'\nhidden = [4, 3]\nactivation = 'tanh'\nbias = false",
    "name = 'representation'\nhidden = [2]\nvalidation = 0.5",
];

fn ask(part: &mut dyn Bilevel<f64>, of: Derivative, batch: &[u32]) -> Vec<f64> {
    let (n, p) = (part.dims().n, part.dims().p);
    let mut stream = Stream::new(5, Purpose::Start, 0);
    let mut draw = |length: usize| (0..length).map(|_| 0.5 * stream.normal()).collect::<Vec<f64>>();
    let (x, theta, v) = (draw(n), draw(p), draw(p));
    let at = At { x: &x, theta: &theta };
    let mut out = vec![f64::NAN; if matches!(of, CrossG | GradXF | GradXG) { n } else { p }];
    match of {
        GradThetaG => part.grad_theta_g(at, batch, &mut out),
        HessG => part.hess_g(at, batch, &v, &mut out),
        CrossG => part.cross_g(at, batch, &v, &mut out),
        GradThetaF => part.grad_theta_f(at, batch, &mut out),
        GradXF => part.grad_x_f(at, batch, &mut out),
        GradXG => part.single_level().unwrap().grad_x_g(at, batch, &mut out),
    }
    out
}

fn samples(part: &dyn Bilevel<f64>, of: Derivative) -> u32 {
    (if of.is_outer() { part.samples_f() } else { part.samples_g() }) as u32
}

#[test]
fn a_batch_is_the_mean_of_its_rows_and_a_part_without_rows() {
    for text in CASES {
        let mut part = part(text, &data(&[]));
        for of in Derivative::ALL {
            let none = ask(&mut *part, of, &[]);
            let all: Vec<u32> = (0..samples(&*part, of)).collect();
            let whole = ask(&mut *part, of, &all);
            let mut sum = vec![0.0; none.len()];
            for &row in &all {
                let one = ask(&mut *part, of, &[row]);
                sum.iter_mut().zip(one.iter().zip(&none)).for_each(|(sum, (a, b))| *sum += a - b);
            }
            for j in 0..none.len() {
                let made = none[j] + sum[j] / all.len() as f64;
                let size = whole[j].abs().max(1.0);
                assert!(
                    (made - whole[j]).abs() < 1e-12 * size,
                    "{text} {of:?}: {made} {}",
                    whole[j]
                );
            }
        }
    }
}

#[test]
fn the_part_without_rows_and_what_is_declared_free_of_them_does_not_depend_on_rows() {
    let (one, other) = (data(&[]), data(&(0..ROWS).collect::<Vec<_>>()));
    for text in CASES {
        let (mut one, mut other) = (part(text, &one), part(text, &other));
        let depend = one.row_sums().unwrap().depend;
        for of in Derivative::ALL {
            let none = ask(&mut *one, of, &[]);
            assert_eq!(none, ask(&mut *other, of, &[]), "{text} {of:?}");
            let all: Vec<u32> = (0..samples(&*one, of)).collect();
            let same = ask(&mut *one, of, &all) == ask(&mut *other, of, &all);
            assert_eq!(same, !depend.contains(&of), "{text} {of:?}");
            if same {
                assert_eq!(none, ask(&mut *one, of, &all), "{text} {of:?}");
            }
        }
    }
}

#[test]
fn whether_f_and_g_have_rows_in_common_is_declared() {
    for text in CASES {
        let all = data(&[]);
        let common = part(text, &all).row_sums().unwrap().common;
        // Some row changes both f and g only if they have it in common.
        let changes = |row: usize, of: Derivative| {
            let changed = data(&[row]);
            let (mut a, mut b) = (part(text, &all), part(text, &changed));
            let every: Vec<u32> = (0..samples(&*a, of)).collect();
            ask(&mut *a, of, &every) != ask(&mut *b, of, &every)
        };
        let both = (0..ROWS).any(|row| changes(row, GradThetaG) && changes(row, GradThetaF));
        assert_eq!(common, both, "{text}");
    }
}

#[test]
fn problems_that_are_no_sums_over_rows_say_why() {
    for text in ["name = 'meta-learning'\ntasks = 2", "name = 'hyper-cleaning'"] {
        assert!(part(text, &data(&[])).row_sums().is_err(), "{text}");
    }
}
