//! The problems as the tests build them, on small data made here.

use lopa::config::{Choice, NoParams, Source};
use lopa::data::partition::{Partition, Rows, partition_entry};
use lopa::data::{
    Class, Data, Dataset, Features, Part, Raw, Scaling, Scalings, Table, TargetScaling, Targets,
    Usual, Where, source_entry,
};
use lopa::error::Result;
use lopa::experiment::Registries;
use lopa::math::random::{Purpose, Stream};
use lopa::math::real::{Real, cast};
use lopa::problem::builtin::problems;
use lopa::problem::scope::Scope;
use lopa::problem::{AnyProblem, At, Bilevel, Setting};

/// A problem as written in an experiment file.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The `[problem]` section.
    pub text: &'static str,
    /// Classes of the data; 0 where labels are numbers, and without data.
    pub classes: usize,
    /// Numbers to predict.
    pub outputs: usize,
    /// Whether these are a time and an event.
    pub survival: bool,
    /// A lower bound of ⟨v, ∇²g v⟩ / |v|² for |x| ≤ 1.
    pub mu: f64,
}

const fn case(text: &'static str, classes: usize, mu: f64) -> Case {
    Case { text, classes, outputs: 0, survival: false, mu }
}

const fn numbers(text: &'static str, outputs: usize, mu: f64) -> Case {
    Case { text, classes: 0, outputs, survival: false, mu }
}

const fn survival(text: &'static str, mu: f64) -> Case {
    Case { text, classes: 0, outputs: 2, survival: true, mu }
}

/// At least one for each line of the registry.
pub const CASES: &[Case] = &[
    case("name = 'quadratic'\nn = 4\np = 3\ncondition = 5", 0, 0.2),
    case("name = 'quadratic'\nn = 3\np = 4\nnoise = 0.5\nsamples = 7", 0, 0.2 / 3.0),
    case("name = 'hyperparameter'", 2, 0.73),
    case("name = 'hyperparameter'\nscale = 'sum'\nvalidation = 0.3", 3, 0.73),
    case("name = 'hyperparameter'\nbias = true", 2, 0.73),
    case("name = 'hyperparameter'\nbias = true\nvalidation = 0.3", 3, 0.73),
    case("name = 'hyperparameter'\nstrength = 'class'\nspread = 0.5", 3, 0.73),
    case("name = 'hyperparameter'\nstrength = 'class'\nbias = true", 2, 0.73),
    case("name = 'hyperparameter'\ngroups = [2, 1, 2]\nbias = true", 3, 0.73),
    case("name = 'hyperparameter'\ngroups = [4, 1]", 2, 0.73),
    case("name = 'representation'\nhidden = [3]", 3, 0.52),
    case(
        "name = 'representation'\nhidden = [4, 3]\nactivation = 'tanh'\nvalidation = 0.25",
        2,
        0.52,
    ),
    case("name = 'representation'\nhidden = [3]\nscale = 'batch-sum'\nridge = 0.1", 4, 0.1),
    case("name = 'representation'\nhidden = [4, 3]\nbias = false", 3, 0.52),
    case("name = 'representation'\nhidden = [4, 3]\nactivation = 'relu'", 3, 0.52),
    case("name = 'meta-learning'\ntasks = 4\nnu = 1.5", 3, 1.5),
    case("name = 'meta-learning'\ntasks = 1\nscale = 'sum'", 2, 1.0),
    case("name = 'hyper-cleaning'\nridge = 0.1", 3, 0.2),
    case("name = 'hyper-cleaning'\ncorruption = 0\nscale = 'batch-sum'", 2, 0.002),
    case("name = 'hyper-cleaning'\nridge = 0.1\nbias = false\nstart = -0.5\nwrong = 'any'", 3, 0.2),
    case("name = 'hyperparameter'\nloss = 'softmax'", 2, 0.73),
    case("name = 'representation'\nhidden = [3]\nloss = 'logistic'", 2, 0.52),
    numbers("name = 'hyperparameter'", 1, 0.73),
    numbers("name = 'hyperparameter'\nbias = true\nloss = 'huber'\ndelta = 2.5", 2, 0.73),
    numbers(
        "name = 'representation'\nhidden = [4, 3]\nactivation = 'tanh'\nvalidation = 0.25",
        2,
        0.52,
    ),
    numbers("name = 'representation'\nhidden = [3]\nloss = 'huber'", 1, 0.52),
    numbers("name = 'meta-learning'\ntasks = 4\nnu = 1.5\nloss = 'huber'\ndelta = 0.5", 1, 1.5),
    numbers("name = 'hyper-cleaning'\nridge = 0.1\nscale = 'sum'", 2, 0.2),
    case("name = 'reweighting'\nby = 'class'\nridge = 0.1", 3, 0.2),
    case(
        "name = 'reweighting'\nby = 'class'\nridge = 5.0\nscale = 'sum'\nvalidation = 0.5",
        2,
        10.0,
    ),
    numbers("name = 'reweighting'\nby = 'class'\nridge = 0.1\nscale = 'batch-sum'", 2, 0.2),
    survival("name = 'hyperparameter'\nscale = 'sum'\nvalidation = 0.3", 0.73),
    survival("name = 'hyperparameter'\nbias = true\nloss = 'cox'", 0.73),
    survival("name = 'representation'\nhidden = [4, 3]\nactivation = 'tanh'", 0.52),
    survival("name = 'representation'\nhidden = [3]\nvalidation = 0.25\nloss = 'cox'", 0.52),
    survival("name = 'meta-learning'\ntasks = 1\nnu = 1.5", 1.5),
];

pub const NODES: usize = 3;
pub const BATCH: usize = 6;
const FEATURES: usize = 5;

/// Clouds of points around a centre for each class, with holes, dense or sparse.
pub fn data(classes: usize, sparse: bool) -> Data {
    let [train, test] =
        clouds(classes).map(|(rows, labels)| Dataset::new(features(&rows, sparse), labels));
    let outputs = Vec::new();
    let classes = (0..classes).map(|class| class.to_string()).collect();
    let (scaling, left_out) = (Scalings::default(), Vec::new());
    Data {
        train,
        test,
        classes,
        outputs,
        survival: false,
        scaling,
        columns: None,
        unnamed: Default::default(),
        own: None,
        left_out,
    }
}

/// The same points with numbers to predict.
pub fn number_data(outputs: usize, sparse: bool) -> Data {
    let [(train, _), (test, _)] = clouds(2);
    let target = TargetScaling::of(&targets(&train, outputs));
    let set = |rows: &[Vec<f64>]| {
        let targets = targets(rows, outputs).scaled(&target);
        Dataset::new(features(rows, sparse), vec![0; rows.len()]).targeted(targets)
    };
    let (train, test) = (set(&train), set(&test));
    let names = (0..outputs).map(|o| format!("y{o}")).collect();
    let scaling = Scalings::all(Scaling { target, ..Scaling::default() });
    Data { train, test, classes: Vec::new(), outputs: names, scaling, ..data(2, sparse) }
}

/// The same points with times, some of them equal, and whether events were seen then.
pub fn survival_data(sparse: bool) -> Data {
    let [(train, _), (test, _)] = clouds(2);
    let set = |rows: &[Vec<f64>]| {
        Dataset::new(features(rows, sparse), vec![0; rows.len()]).targeted(times(rows))
    };
    let (train, test) = (set(&train), set(&test));
    let outputs = vec!["time".into(), "event".into()];
    Data { train, test, classes: Vec::new(), outputs, survival: true, ..data(2, sparse) }
}

fn times(rows: &[Vec<f64>]) -> Targets {
    let times = targets(rows, 1).values;
    let seen = |(row, time): (usize, f64)| [time.round(), f64::from(u8::from(row % 3 != 1))];
    Targets { outputs: 2, values: times.into_iter().enumerate().flat_map(seen).collect() }
}

/// Numbers that a linear model nearly predicts.
fn targets(rows: &[Vec<f64>], outputs: usize) -> Targets {
    let number = |row: &[f64], o: usize| -> f64 {
        let sum: f64 = row.iter().enumerate().map(|(q, s)| s * ((q + o) % 3) as f64).sum();
        20.0 + 5.0 * (sum + 0.3 * (7.0 * sum).sin())
    };
    let values = rows.iter().flat_map(|row| (0..outputs).map(|o| number(row, o))).collect();
    Targets { outputs, values }
}

/// Rows and labels to train on, and to test on.
fn clouds(classes: usize) -> [(Vec<Vec<f64>>, Vec<u32>); 2] {
    let mut stream = Stream::new(7, Purpose::Data, 0);
    [43, 20].map(|count| {
        let mut rows: Vec<Vec<f64>> = Vec::new();
        let labels: Vec<u32> = (0..count).map(|_| stream.below(classes) as u32).collect();
        for &label in &labels {
            let centre = |q: usize| if q % classes == label as usize { 1.2 } else { -0.3 };
            let entry =
                |q| if stream.unit() < 0.3 { 0.0 } else { centre(q) + 0.4 * stream.normal() };
            rows.push((0..FEATURES).map(entry).collect());
        }
        (rows, labels)
    })
}

lopa::params! {
    /// The data of the cases, as a source.
    struct Clouds {
        /// Classes.
        centres: usize = 2;
        /// Numbers to predict instead.
        outputs: usize = 0;
        /// Whether these are times and events.
        survival: bool = false;
    }
}

impl Clouds {
    fn read(&self, _: &Where) -> Result<Raw> {
        let part = |(rows, labels): (Vec<Vec<f64>>, Vec<u32>)| Part {
            table: Table::Numbers(features(&rows, false)),
            labels,
            groups: Vec::new(),
        };
        let clouds = clouds(self.centres);
        let numbers: Vec<String> = clouds
            .iter()
            .filter(|_| self.outputs > 0)
            .flat_map(|(rows, _)| {
                let targets = match self.survival {
                    true => times(rows),
                    false => targets(rows, self.outputs),
                };
                let rows = (0..rows.len()).map(move |row| targets.row(row).to_vec());
                rows.map(|row| row.iter().map(f64::to_string).collect::<Vec<_>>().join("\t"))
            })
            .collect();
        let [mut train, mut test] = clouds.map(part);
        let class = |class: usize| Class { code: class.to_string(), name: class.to_string() };
        let mut classes: Vec<Class> = (0..self.centres).map(class).collect();
        if self.outputs > 0 {
            let count = train.labels.len() as u32;
            train.labels = (0..count).collect();
            test.labels = (count..numbers.len() as u32).collect();
            classes = numbers.into_iter().map(|n| Class { code: n.clone(), name: n }).collect();
        }
        let (groups, usual) = (Vec::new(), Usual::nothing());
        let (columns, test_at, known) = (None, None, true);
        Ok(Raw {
            train,
            validation: 0,
            test: Some(test),
            classes,
            groups,
            usual,
            columns,
            unnamed: Default::default(),
            test_at,
            known,
            outputs: self.outputs.max(1),
            missing: None,
        })
    }
}

/// The library's registries, with the data and the partition of the cases.
pub fn registries() -> Registries {
    let mut registries = Registries::default();
    registries.sources.add(source_entry("clouds", "clouds of points with holes", Clouds::read));
    let uneven = |_: &NoParams, _: &Rows| Ok(Partition { nodes: partition() });
    registries.partitions.add(partition_entry("uneven", "10, 14 and 19 rows", uneven));
    registries
}

pub fn features(rows: &[Vec<f64>], sparse: bool) -> Features<f64> {
    let cols = rows[0].len();
    if !sparse {
        return Features::Dense { cols, values: rows.concat() };
    }
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        for (q, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            columns.push(q as u32);
            values.push(value);
        }
        starts.push(values.len());
    }
    Features::Sparse { cols, starts, columns, values }
}

/// Rows dealt out unevenly: the nodes hold 10, 14 and 19.
pub fn partition() -> Vec<Vec<u32>> {
    let bounds = [0, 10, 24, 43];
    bounds.windows(2).map(|w| (w[0]..w[1]).collect()).collect()
}

pub fn choice(text: &str) -> Result<Choice<AnyProblem>> {
    let source = Source::new("test", text);
    problems().read(source.root()?)
}

pub fn build<T: Real>(text: &str, setting: &Setting) -> Result<Vec<Box<dyn Bilevel<T>>>> {
    let parts = choice(text)?.build.get::<T>().parts(setting, 0..setting.nodes)?;
    Ok(parts.each)
}

impl Case {
    /// The case as an experiment file, without algorithms.
    pub fn file(&self, sparse: bool) -> String {
        let Case { text, classes, outputs, survival, .. } = self;
        let target = if *survival { "survival" } else { "number" };
        let data = match (classes, outputs) {
            (0, 0) => String::new(),
            (0, _) => format!(
                "data = {{ name = 'clouds', outputs = {outputs}, sparse = {sparse}, target = '{target}', \
                 survival = {survival} }}
                 partition = 'uneven'"
            ),
            _ => format!(
                "data = {{ name = 'clouds', centres = {classes}, sparse = {sparse} }}
                 partition = 'uneven'"
            ),
        };
        format!(
            "network = {{ nodes = {NODES}, graph = 'path' }}
             run = {{ iterations = 1, batch = {BATCH}, seeds = [3] }}
             {data}\n[problem]\n{text}"
        )
    }

    pub fn data(&self, sparse: bool) -> Option<Data> {
        match (self.classes, self.outputs) {
            (0, 0) => None,
            (0, _) if self.survival => Some(survival_data(sparse)),
            (0, outputs) => Some(number_data(outputs, sparse)),
            (classes, _) => Some(data(classes, sparse)),
        }
    }

    pub fn parts<T: Real>(&self, sparse: bool) -> Vec<Box<dyn Bilevel<T>>> {
        let (data, partition) = (self.data(sparse), partition());
        let setting = Setting {
            nodes: NODES,
            scope: Scope::Personal,
            seed: 3,
            batch: Some(BATCH),
            data: data.as_ref(),
            partition: &partition,
            ..Setting::default()
        };
        build(self.text, &setting).unwrap()
    }
}

/// A point (x, θ) and a direction v, at random.
pub struct Point {
    pub x: Vec<f64>,
    pub theta: Vec<f64>,
    pub v: Vec<f64>,
}

impl Point {
    pub fn new<T: Real>(part: &dyn Bilevel<T>, number: usize) -> Point {
        let mut stream = Stream::new(11, Purpose::Start, number);
        let mut draw = |count| (0..count).map(|_| stream.between(-1.0, 1.0)).collect::<Vec<_>>();
        let dims = part.dims();
        Point { x: draw(dims.n), theta: draw(dims.p), v: draw(dims.p) }
    }

    pub fn at(&self) -> At<'_, f64> {
        At { x: &self.x, theta: &self.theta }
    }
}

pub fn all(count: usize) -> Vec<u32> {
    (0..count as u32).collect()
}

/// The batches of the oracles of f and of g.
#[derive(Clone)]
pub struct Batches {
    pub f: Vec<u32>,
    pub g: Vec<u32>,
}

impl Batches {
    pub fn full<T: Real>(part: &dyn Bilevel<T>) -> Batches {
        Batches { f: all(part.samples_f()), g: all(part.samples_g()) }
    }

    /// A small one, with a duplicate index.
    pub fn small() -> Batches {
        Batches { f: vec![1, 0, 1], g: vec![2, 0, 2, 3] }
    }
}

pub const ORACLES: [&str; 8] =
    ["f", "g", "grad_x_f", "grad_theta_f", "grad_theta_g", "hess_g", "cross_g", "grad_x_g"];

/// The results of every oracle, in the order of [`ORACLES`]; outputs hold NaN before the call.
pub fn oracles<T: Real>(
    part: &mut dyn Bilevel<T>,
    point: &Point,
    batch: &Batches,
) -> Vec<Vec<f64>> {
    let (x, theta, v): (Vec<T>, Vec<T>, Vec<T>) =
        (cast(&point.x), cast(&point.theta), cast(&point.v));
    let at = At { x: &x, theta: &theta };
    let dims = part.dims();
    let (mut n, mut p) = (vec![T::nan(); dims.n], vec![T::nan(); dims.p]);
    let mut said = vec![vec![part.f(at, &batch.f)], vec![part.g(at, &batch.g)]];
    part.grad_x_f(at, &batch.f, &mut n);
    said.push(cast(&n));
    part.grad_theta_f(at, &batch.f, &mut p);
    said.push(cast(&p));
    p.fill(T::nan());
    part.grad_theta_g(at, &batch.g, &mut p);
    said.push(cast(&p));
    p.fill(T::nan());
    part.hess_g(at, &batch.g, &v, &mut p);
    said.push(cast(&p));
    n.fill(T::nan());
    part.cross_g(at, &batch.g, &v, &mut n);
    said.push(cast(&n));
    n.fill(T::nan());
    part.single_level().unwrap().grad_x_g(at, &batch.g, &mut n);
    said.push(cast(&n));
    said
}

/// |a − b| ≤ tolerance (1 + |b|), in the largest entry.
#[track_caller]
pub fn close(what: &str, a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len(), "{what}: lengths differ");
    let size = b.iter().fold(0.0f64, |most, b| most.max(b.abs()));
    for (j, (a, b)) in a.iter().zip(b).enumerate() {
        let off = (a - b).abs();
        assert!(off <= tolerance * (1.0 + size), "{what}[{j}]: {a} and {b} differ by {off:e}");
    }
}
