//! Times and events: Cox's likelihood against scikit-survival, its refusals, and its data.

use lopa::data::{Data, Dataset, Features, Scalings, Target, Targets};
use lopa::error::Error;
use lopa::math::concordance::{Seen, concordance};
use lopa::math::portable::ln;
use lopa::problem::builtin::linalg::{Cholesky, Matrix};
use lopa::problem::{At, Bilevel, Setting};
use serde_json::Value;

use crate::files::load_files;
use crate::problems::cases::{all, build, close, survival_data};

const GOLDEN: &str = include_str!("../golden/cox.json");

struct Golden(Value);

impl Golden {
    fn read() -> Golden {
        Golden(serde_json::from_str(GOLDEN).unwrap())
    }

    fn numbers(&self, path: &str) -> Vec<f64> {
        serde_json::from_value(self.0.pointer(path).unwrap().clone()).unwrap()
    }

    fn data(&self) -> Data {
        let rows: Vec<Vec<f64>> = serde_json::from_value(self.0["features"].clone()).unwrap();
        let (time, event) = (self.numbers("/time"), self.numbers("/event"));
        let values = time.iter().zip(&event).flat_map(|(time, event)| [*time, *event]).collect();
        let count = rows.len();
        let features = Features::Dense { cols: rows[0].len(), values: rows.concat() };
        let train = Dataset::new(features.clone(), vec![0; count]);
        Data {
            train: train.targeted(Targets { outputs: 2, values }),
            test: Dataset::new(features.select(&[]), Vec::new()),
            classes: Vec::new(),
            outputs: vec!["time".into(), "event".into()],
            survival: true,
            scaling: Scalings::default(),
            columns: None,
            unnamed: Default::default(),
            own: None,
            left_out: Vec::new(),
        }
    }
}

fn part(text: &str, data: &Data) -> Box<dyn Bilevel<f64>> {
    let partition = [all(data.train.len())];
    let setting = Setting {
        nodes: 1,
        whole: true,
        data: Some(data),
        partition: &partition,
        ..Setting::default()
    };
    build(text, &setting).unwrap().remove(0)
}

/// The minimiser of g at x, by Newton's method with the part's own derivatives.
fn solved(part: &mut dyn Bilevel<f64>, x: &[f64]) -> Vec<f64> {
    let (p, every) = (part.dims().p, all(part.samples_g()));
    let mut theta = vec![0.0; p];
    for _ in 0..30 {
        let at = At { x, theta: &theta };
        let mut slope = vec![0.0; p];
        part.grad_theta_g(at, &every, &mut slope);
        let mut columns = vec![vec![0.0; p]; p];
        for (q, column) in columns.iter_mut().enumerate() {
            let mut unit = vec![0.0; p];
            unit[q] = 1.0;
            part.hess_g(at, &every, &unit, column);
        }
        let curve = Matrix::from_fn(p, p, |r, q| columns[q][r]);
        let step = Cholesky::new(&curve).unwrap().solve(&slope);
        theta.iter_mut().zip(&step).for_each(|(theta, step)| *theta -= step);
    }
    theta
}

#[test]
fn coefficients_and_concordance_are_those_of_scikit_survival() {
    let golden = Golden::read();
    let data = golden.data();
    assert_eq!(data.target(), Target::Survival);
    let mut part = part("name = 'hyperparameter'\nscale = 'mean'", &data);
    for (at, fit) in golden.0["fits"].as_array().unwrap().iter().enumerate() {
        let x = vec![ln(fit["strength"].as_f64().unwrap()); 4];
        let theta = solved(&mut *part, &x);
        close("theta", &theta, &golden.numbers(&format!("/fits/{at}/scikit_survival")), 1e-12);
        let metrics = part.metrics(At { x: &x, theta: &theta });
        let (name, found) = &metrics[1];
        assert_eq!(
            (&name[..], *found),
            ("train_concordance", fit["concordance"].as_f64().unwrap())
        );
    }
    // Rounded risks: many pairs have the same.
    let seen = |(time, event): (&f64, &f64)| Seen { time: *time, event: *event > 0.5 };
    let (time, event) = (golden.numbers("/time"), golden.numbers("/event"));
    let seen: Vec<Seen> = time.iter().zip(&event).map(seen).collect();
    // numpy rounds halves to even numbers.
    let coarse: Vec<f64> = dense(&data).iter().map(|row| row[0].round_ties_even()).collect();
    let want = golden.0["coarse_concordance"].as_f64().unwrap();
    assert!((concordance(&seen, &coarse).unwrap() - want).abs() < 1e-14);
}

fn dense(data: &Data) -> Vec<Vec<f64>> {
    crate::files::dense(&data.train)
}

fn refused(text: &str, data: &Data) -> Error {
    let partition = [all(data.train.len())];
    let setting =
        Setting { nodes: 1, data: Some(data), partition: &partition, ..Setting::default() };
    build::<f64>(text, &setting).err().unwrap_or_else(|| panic!("{text} was taken"))
}

#[test]
fn a_loss_of_all_rows_together_is_refused_where_rows_have_terms_of_their_own() {
    let data = survival_data(false);
    for (text, says) in [
        ("name = 'hyper-cleaning'", "weighs the loss of each row"),
        ("name = 'meta-learning'\ntasks = 2", "2 tasks"),
        ("name = 'hyperparameter'\nloss = 'squared'", "is not for a time"),
    ] {
        let error = refused(text, &data);
        assert_eq!(error.id, "config/unfit-loss", "{text}");
        assert!(error.message.contains(says) && error.hint.is_some(), "{text}: {}", error.message);
    }
    let classes = crate::problems::cases::data(2, false);
    let error = refused("name = 'representation'\nloss = 'cox'", &classes);
    assert_eq!(error.id, "config/unfit-loss");
    assert!(error.hint.unwrap().contains("target = \"survival\""));
    // With `[privacy]`, rows must have terms of their own.
    for text in ["name = 'hyperparameter'", "name = 'representation'\nhidden = [3]"] {
        assert!(part(text, &data).row_sums().unwrap_err().contains("others at risk"), "{text}");
    }
}

#[test]
fn times_and_events_are_read_and_checked() {
    let text = "a,time,died\n1,3,1\n2,5,0\n0,3.5,1\n4,9,0\n";
    let section = "name = 'csv'\npath = 'a.csv'\nlabel = ['time', 'died']\ntest = 0\n";
    let load = |text: &str, more: &str| {
        load_files(&format!("{section}{more}"), &[("a.csv", text.as_bytes().to_vec())])
    };
    let data = load(text, "target = 'survival'").unwrap();
    assert_eq!(
        (data.target(), &data.outputs[..]),
        (Target::Survival, &["time".into(), "died".into()][..])
    );
    // Times keep their units: the loss uses their order alone.
    assert_eq!(data.train.targets().unwrap().values, [3.0, 1.0, 5.0, 0.0, 3.5, 1.0, 9.0, 0.0]);
    assert!(data.scaling.of(0).target.is_empty());
    for (bad, says) in [("2,-5,0", "negative"), ("2,5,2", "neither 0 nor 1"), ("2,5,yes", "yes")] {
        let error = load(&text.replace("2,5,0", bad), "target = 'survival'").unwrap_err();
        assert_eq!(error.id, "data/bad-label", "{bad}");
        assert!(error.message.contains(says), "{bad}: {}", error.message);
    }
    let one = section.replace("['time', 'died']", "'time'") + "target = 'survival'";
    let error = load_files(&one, &[("a.csv", text.as_bytes().to_vec())]).unwrap_err();
    assert!(error.hint.unwrap().contains("label = [\"time\", \"event\"]"));
}
