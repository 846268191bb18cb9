//! Settings of Figures 5 to 8 that the paper's text leaves open, tried: which reading comes near
//! its levels?
//!
//! A reading is the experiment file of a figure with some values changed. LoPA-GT runs on it with three
//! step sizes of x, since the paper's were adjusted by hand; the one with the lowest loss counts.

use lopa::config::Source;
use lopa::error::Result;
use lopa::experiment::{Exactly, Experiment, Registries};
use lopa::run::Outcome;
use serde_json::{Value, json};

use super::claims::Panel;
use super::paper::levels;
use lopa_study::seeds::Seeds;
use lopa_study::statistics::Summary;

/// One way to read the text.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// The name of the file it changes, without `.toml`.
    pub file: &'static str,
    /// The difference from the file, in words; empty for the file itself.
    pub reading: &'static str,
    /// The values that differ.
    pub sets: &'static [&'static str],
}

/// How well the paper's levels can be read off its figures.
const NEAR: f64 = 0.01;

/// Step sizes of x are tried at these multiples of the file's.
const ALPHAS: [f64; 3] = [0.1, 1.0, 3.0];

/// The files with the panels whose levels they are compared with, in the order of the page.
pub const FILES: [(&str, &str, Panel); 7] = [
    ("fig5-6-covtype", "Figures 5 and 6, Covertype", ("fig6", "covtype", None)),
    ("fig5-6-cifar10", "Figures 5 and 6, CIFAR-10", ("fig6", "cifar10", None)),
    ("fig5-6-mnist", "Figures 5 and 6, MNIST", ("fig6", "mnist", None)),
    ("fig7-random", "Figure 7, rho = 0.42", ("fig7", "mnist", Some("random"))),
    ("fig8-covtype", "Figure 8, Covertype", ("fig8", "covtype", None)),
    ("fig8-cifar10", "Figure 8, CIFAR-10", ("fig8", "cifar10", None)),
    ("fig8-mnist", "Figure 8, MNIST", ("fig8", "mnist", None)),
];

/// Differences from a file, in words and in values.
type Differences = &'static [(&'static str, &'static [&'static str])];

/// The readings by file, that of the file itself first. Files that share a data set are adjacent.
const LISTED: [(&str, Differences); 7] = [
    ("fig5-6-covtype", COVTYPE),
    ("fig8-covtype", COVTYPE_8),
    ("fig5-6-cifar10", CIFAR),
    ("fig8-cifar10", CIFAR_8),
    ("fig5-6-mnist", MNIST),
    ("fig7-random", MNIST_7),
    ("fig8-mnist", MNIST_8),
];

/// Every reading.
pub fn readings() -> Vec<Reading> {
    let of = |&(file, all): &(&'static str, Differences)| {
        all.iter().map(move |&(reading, sets)| Reading { file, reading, sets })
    };
    LISTED.iter().flat_map(of).collect()
}

const MNIST: Differences = &[
    ("", &[]),
    ("pixels 0 to 255", RAW),
    ("pixels standardised", STANDARD),
    ("pixels centred", &["data.scaling=\"centre\""]),
    ("rows of length 1", &["data.scaling=\"row\""]),
    ("start x = 3", START_3),
    ("start x = 6", START_6),
    ("start x = -6", &["problem.start=-6.0"]),
    ("sums over the minibatch", SUMS),
    ("1200 samples", &["data.samples=1200", "partition.samples=120"]),
    ("100 Hessians", &["run.budget.hessians=100"]),
    ("30 Hessians", &["run.budget.hessians=30"]),
    ("1500 Hessians", &["run.budget.hessians=1500"]),
    (
        "start x = 3, 100 Hessians",
        &[
            "problem.start=3.0",
            "algorithm.lopa-gt.beta=0.02",
            "algorithm.lopa-gt.lambda=0.02",
            "run.budget.hessians=100",
        ],
    ),
];

const MNIST_7: Differences = &[
    ("", &[]),
    ("pixels 0 to 255", RAW),
    ("rows of length 1", &["data.scaling=\"row\""]),
    ("start x = 3", START_3),
    ("start x = 6", START_6),
    ("sums over the minibatch", SUMS),
    ("100 Hessians", &["run.budget.hessians=100"]),
    ("30 Hessians", &["run.budget.hessians=30"]),
    ("600 samples", &["data.samples=600", "partition.samples=60"]),
];

const MNIST_8: Differences = &[
    ("", &[]),
    ("pixels 0 to 255", RAW),
    ("rows of length 1", &["data.scaling=\"row\""]),
    ("start x = 3", START_3),
    ("sums over the minibatch", SUMS),
    ("300 Hessians", &["run.budget.hessians=300"]),
    ("100 Hessians", &["run.budget.hessians=100"]),
];

const COVTYPE: Differences = &[
    ("", &[]),
    ("1000 Hessians", &["run.budget.hessians=1000"]),
    ("start x = 3", START_3),
    ("sums over the minibatch", SUMS),
    ("class 2 and the others, standardised", TWO_AND_OTHERS),
    ("the pair of the text, standardised", PAIR),
    ("the pair of the text, raw features", PAIR_RAW),
    ("the pair of the text, divided by the largest value", PAIR_LARGEST),
    ("the pair of the text, as many of either class", BALANCED),
    ("spruce-fir and lodgepole, standardised", SPRUCE),
    ("spruce-fir and lodgepole, raw features", RAW_SPRUCE),
    ("cottonwood and aspen (Figure 8's), standardised", COTTONWOOD),
    ("all seven classes, standardised", SEVEN),
    ("all seven classes, raw features", RAW_SEVEN),
];

const COVTYPE_8: Differences = &[
    ("", &[]),
    ("2000 Hessians", &["run.budget.hessians=2000"]),
    ("start x = 3", START_3),
    ("sums over the minibatch", SUMS),
    ("shares of the other class", &["partition.first=0.2", "partition.second=0.65"]),
    ("cottonwood and aspen, standardised", ASPEN),
];

const CIFAR: Differences = &[
    ("", &[]),
    ("pixels 0 to 1, not centred", CIFAR_UNIT),
    ("pixels 0 to 255", CIFAR_RAW),
    (
        "standardised features",
        &[
            "data.scaling=\"standardise\"",
            "algorithm.lopa-gt.beta=0.001",
            "algorithm.lopa-gt.lambda=0.001",
        ],
    ),
    ("start x = 3", &["problem.start=3.0"]),
    ("3000 Hessians", &["run.budget.hessians=3000"]),
];

const CIFAR_8: Differences = &[
    ("", &[]),
    ("pixels 0 to 1, not centred", CIFAR_UNIT),
    ("pixels 0 to 255", CIFAR_RAW),
    ("start x = 3", &["problem.start=3.0"]),
];

const CIFAR_UNIT: &[&str] =
    &["data.scaling=\"unit\"", "algorithm.lopa-gt.beta=0.002", "algorithm.lopa-gt.lambda=0.002"];
const CIFAR_RAW: &[&str] =
    &["data.scaling=\"none\"", "algorithm.lopa-gt.beta=1e-8", "algorithm.lopa-gt.lambda=1e-8"];
const START_3: &[&str] =
    &["problem.start=3.0", "algorithm.lopa-gt.beta=0.02", "algorithm.lopa-gt.lambda=0.02"];
const START_6: &[&str] =
    &["problem.start=6.0", "algorithm.lopa-gt.beta=0.001", "algorithm.lopa-gt.lambda=0.001"];
const SUMS: &[&str] = &[
    "problem.scale=\"batch-sum\"",
    "algorithm.lopa-gt.beta=0.001",
    "algorithm.lopa-gt.lambda=0.001",
    "algorithm.lopa-gt.alpha=1.0",
];
const RAW: &[&str] =
    &["data.scaling=\"none\"", "algorithm.lopa-gt.beta=1e-6", "algorithm.lopa-gt.lambda=1e-6"];
const STANDARD: &[&str] = &[
    "data.scaling=\"standardise\"",
    "algorithm.lopa-gt.beta=0.002",
    "algorithm.lopa-gt.lambda=0.002",
];
const TWO_AND_OTHERS: &[&str] = &[
    "data={name=\"covtype\",classes=[2],others=\"others\",samples=90000,scaling=\"standardise\",columns=[0,1,2,3,4,5,6,7,8,9]}",
];
const PAIR: &[&str] = &[
    "data={name=\"covtype\",classes=[2,3],samples=90000,scaling=\"standardise\",columns=[0,1,2,3,4,5,6,7,8,9]}",
    "algorithm.lopa-gt.alpha=300.0",
    "run.budget.hessians=1000",
];
const PAIR_RAW: &[&str] = &[
    "data={name=\"covtype\",classes=[2,3],samples=90000,scaling=\"none\"}",
    "algorithm.lopa-gt.alpha=300.0",
    "algorithm.lopa-gt.beta=1e-6",
    "algorithm.lopa-gt.lambda=1e-6",
];
const PAIR_LARGEST: &[&str] = &[
    "data={name=\"covtype\",classes=[2,3],samples=90000,scaling=\"unit\"}",
    "algorithm.lopa-gt.alpha=300.0",
];
const BALANCED: &[&str] = &[
    "data={name=\"covtype\",classes=[2,3],samples=250000,scaling=\"standardise\",columns=[0,1,2,3,4,5,6,7,8,9]}",
    "algorithm.lopa-gt.alpha=300.0",
    "partition={name=\"label-proportion\",first=0.5,second=0.5,spread=0.0,samples=5000}",
];
const SPRUCE: &[&str] = &[
    "data={name=\"covtype\",classes=[1,2],samples=90000,scaling=\"standardise\",columns=[0,1,2,3,4,5,6,7,8,9]}",
];
const RAW_SPRUCE: &[&str] = &[
    "data={name=\"covtype\",classes=[1,2],samples=90000,scaling=\"none\"}",
    "algorithm.lopa-gt.alpha=300.0",
    "algorithm.lopa-gt.beta=1e-7",
    "algorithm.lopa-gt.lambda=1e-7",
];
const COTTONWOOD: &[&str] = &[
    "data={name=\"covtype\",classes=[4,5],samples=9000,scaling=\"standardise\",columns=[0,1,2,3,4,5,6,7,8,9]}",
    "partition.samples=900",
];
const SEVEN: &[&str] = &[
    "data={name=\"covtype\",samples=90000,scaling=\"standardise\",columns=[0,1,2,3,4,5,6,7,8,9]}",
    "algorithm.lopa-gt.alpha=300.0",
];
const RAW_SEVEN: &[&str] = &[
    "data={name=\"covtype\",samples=90000,scaling=\"none\"}",
    "algorithm.lopa-gt.alpha=300.0",
    "algorithm.lopa-gt.beta=1e-7",
    "algorithm.lopa-gt.lambda=1e-7",
];
const ASPEN: &[&str] = &[
    "data={name=\"covtype\",classes=[4,5],scaling=\"standardise\",columns=[0,1,2,3,4,5,6,7,8,9],holdout=0.2}",
    "partition={name=\"label-proportion\"}",
];

impl Reading {
    /// The reading in words.
    pub fn words(&self) -> &'static str {
        if self.reading.is_empty() { "as in the file" } else { self.reading }
    }

    /// Its experiments, one per step size of x: LoPA-GT alone, from the figure's file.
    pub fn experiments(
        &self,
        source: &Source,
        seeds: u64,
        registries: &Registries,
    ) -> Result<Vec<(f64, Experiment)>> {
        let read = |more: Option<f64>| {
            let more = more.map(|alpha| format!("algorithm.lopa-gt.alpha={alpha:?}"));
            let sets = self.sets.iter().map(|set| set.to_string()).chain(more).collect();
            let source = Source { sets, ..source.clone() };
            let mut experiment = Experiment::read(&source, registries)?;
            experiment.algorithms.retain(|algorithm| algorithm.choice.name == "lopa-gt");
            experiment.run.seeds = (1..=seeds).collect();
            experiment.run.evaluations = 1;
            experiment.run.exact = Exactly::Never;
            Ok(experiment)
        };
        let usual = read(None)?;
        let alpha = usual.algorithms.first().and_then(|one| one.choice.params().get("alpha"));
        let alpha = alpha.and_then(|alpha| alpha.as_float()).unwrap_or(1.0);
        let at = |factor: f64| Ok((factor * alpha, read(Some(factor * alpha))?));
        ALPHAS.into_iter().map(at).collect()
    }

    /// Its result, from the runs of every step size.
    pub fn found(&self, runs: &[(f64, Vec<Outcome>)]) -> Option<Found> {
        let (_, _, panel) = FILES.into_iter().find(|(file, ..)| *file == self.file)?;
        let level = levels().into_iter().find(|level| {
            (level.figure, level.dataset, level.variant) == panel && level.algorithm == "lopa-gt"
        })?;
        let found = |(alpha, outcomes): &(f64, Vec<Outcome>)| {
            let seeds = Seeds::of("lopa-gt", outcomes);
            Found {
                file: self.file,
                reading: self.words(),
                alpha: *alpha,
                seeds: seeds.all().len(),
                diverged: seeds.count().diverged(),
                loss: seeds.last("loss"),
                accuracy: seeds.last("test_accuracy"),
                majority: seeds.last("test_majority").map(|majority| majority.mean),
                paper: level.test_accuracy,
            }
        };
        // The authors would not have kept a step size that diverges on a seed.
        let rank = |one: &Found| (one.diverged, one.loss.map_or(f64::INFINITY, |loss| loss.mean));
        runs.iter().map(found).min_by(|a, b| {
            let ((lost, low), (others, other)) = (rank(a), rank(b));
            lost.cmp(&others).then(low.total_cmp(&other))
        })
    }
}

/// The result of a reading.
#[derive(Debug, Clone)]
pub struct Found {
    /// The file it changes.
    pub file: &'static str,
    /// The reading.
    pub reading: &'static str,
    /// The step size of x that ended lowest.
    pub alpha: f64,
    /// Seeds that were run.
    pub seeds: usize,
    /// Those of them that diverged at this step size.
    pub diverged: usize,
    /// The mean loss.
    pub loss: Option<Summary>,
    /// The accuracy on test data.
    pub accuracy: Option<Summary>,
    /// The accuracy of the most frequent class.
    pub majority: Option<f64>,
    /// The paper's accuracy.
    pub paper: f64,
}

impl Found {
    /// How far its accuracy is from the paper's.
    pub fn off(&self) -> Option<f64> {
        Some(self.accuracy?.mean - self.paper)
    }

    /// Whether it diverges on no seed, and ends as close to the paper's level as the figure can be
    /// read.
    pub fn is_near(&self) -> bool {
        self.diverged == 0 && self.off().is_some_and(|off| off.abs() <= NEAR)
    }

    /// As a row: file, reading, accuracy, the paper's, the difference, majority, loss, α, seeds.
    pub fn row(&self) -> [String; 9] {
        let spread = |summary: Option<Summary>| {
            summary.map_or("–".into(), |summary| summary.to_thousandths())
        };
        let number = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.3}"));
        [
            self.file.into(),
            self.reading.into(),
            spread(self.accuracy),
            format!("{:.3}", self.paper),
            self.off().map_or("–".into(), |off| format!("{off:+.3}")),
            number(self.majority),
            spread(self.loss),
            format!("{}", self.alpha),
            match self.diverged {
                0 => self.seeds.to_string(),
                diverged => format!("{}, {diverged} diverged", self.seeds),
            },
        ]
    }

    /// For other programs.
    pub fn json(&self) -> Value {
        let mean = |summary: Option<Summary>| summary.map(|summary| summary.mean);
        json!({
            "file": self.file,
            "reading": self.reading,
            "alpha": self.alpha,
            "seeds": self.seeds,
            "diverged": self.diverged,
            "loss": mean(self.loss),
            "test_accuracy": mean(self.accuracy),
            "test_majority": self.majority,
            "paper": self.paper,
        })
    }
}

/// The heads of [`Found::row`].
pub const COLUMNS: [&str; 9] = [
    "file",
    "reading",
    "test accuracy",
    "paper",
    "difference",
    "majority",
    "loss",
    "alpha",
    "seeds",
];

const HEAD: &str = "# Readings of the paper's settings

The paper does not say how the features of Figures 5 to 8 are scaled, where x starts, whether losses are
sums or means, or which step sizes were used, and its levels on Covertype cannot be those of the classes that
it names. So the settings that its text allows, and some that it does not, were tried with LoPA-GT. Each has the step
size of x, out of a tenth, once and three times the file's, that ends with the lowest loss. The paper's
levels are read off its figures by eye, to about 0.01. *Majority* is the accuracy of always naming the most
frequent class.

Readings are evidence, not proof: of many readings some come near by chance, and one that comes near may do so for
another reason than the paper's. ";

const HOW: &str =
    " This page is written by `lopa reproduce readings --data data --page docs/readings.md`.

";

/// The page in Markdown.
pub fn page(found: &[Found]) -> String {
    let near = found.iter().filter(|one| one.is_near()).count();
    let mut text = HEAD.to_string();
    text += &format!(
        "{} readings were tried, with {} step sizes each; {near} end within {NEAR} of the paper's level.{HOW}",
        found.len(),
        ALPHAS.len(),
    );
    for (file, title, _) in FILES {
        let own: Vec<&Found> = found.iter().filter(|one| one.file == file).collect();
        let Some(first) = own.first() else { continue };
        text += &format!(
            "## {title}\n\nThe paper has {:.3}, the file {}. Of {} readings, ",
            first.paper,
            first.row()[2],
            own.len(),
        );
        let words = |one: &&Found| format!("*{}* ({})", one.reading, one.row()[2]);
        let near: Vec<String> = own.iter().filter(|one| one.is_near()).map(words).collect();
        text += &match (near.is_empty(), nearest(&own)) {
            (false, _) => format!("within {NEAR} of the paper's: {}.\n\n", near.join(", ")),
            (true, Some(one)) => {
                format!("none comes within {NEAR} of the paper's; nearest is {}.\n\n", words(&one))
            }
            (true, None) => "every one diverged.\n\n".to_string(),
        };
        text += &format!("| {} |\n|{}\n", COLUMNS[1..].join(" | "), "---|".repeat(8));
        for one in own {
            text += &format!("| {} |\n", one.row()[1..].join(" | "));
        }
        text.push('\n');
    }
    text.trim_end().to_string() + "\n"
}

/// The reading that ends nearest to the paper, among those that diverge on no seed.
fn nearest<'a>(found: &[&'a Found]) -> Option<&'a Found> {
    let off = |one: &Found| one.off().map_or(f64::INFINITY, f64::abs);
    found.iter().filter(|one| one.diverged == 0).min_by(|a, b| off(a).total_cmp(&off(b))).copied()
}
