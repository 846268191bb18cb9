//! The diagnosis of a divergence, tested by its advice: a user who follows it gets a run that does not
//! diverge, in nine of ten drawn cases.

use lopa::experiment::Experiment;
use lopa::math::random::{Purpose, Stream};
use lopa::run::trace::Stop;

const ITERATIONS: u64 = 800;
const CASES: usize = 100;

/// An experiment whose step sizes may be too large.
struct Case {
    head: String,
    method: &'static str,
    steps: Vec<(&'static str, f64)>,
}

impl Case {
    fn drawn(seed: usize) -> Case {
        let mut stream = Stream::new(7, Purpose::Problem, seed);
        let mut unit = || stream.unit();
        let mut pick = |of: usize| (unit() * of as f64) as usize;
        let methods =
            ["lopa-gt", "lopa-lg", "d-soba", "sldbo", "sparkle", "zhang", "spdb", "ma-dsbo"];
        let method = methods[pick(methods.len())];
        let global = method != "spdb" && pick(2) == 1;
        let scope = if global { "scope = 'global'\n" } else { "" };
        let nodes = 3 + pick(6);
        let graph = ["ring", "path", "star", "complete"][pick(4)];
        let condition = [1, 3, 10, 30][pick(4)];
        let problem = match pick(3) {
            0 => "problem = { name = 'hyperparameter', start = -2 }\ndata = { name = 'blobs', rows = 240, features = 5, centres = 2 }".to_string(),
            _ => format!("problem = {{ name = 'quadratic', n = 4, p = 5, condition = {condition}, noise = 0.1, samples = 20 }}"),
        };
        let head = format!(
            "name = 'drawn'\n{scope}{problem}\nnetwork = {{ nodes = {nodes}, graph = '{graph}' }}\n\
             run = {{ seeds = [{}], iterations = {ITERATIONS}, batch = 5, evaluations = 4 }}\n",
            seed + 1
        );
        let mut ten = |low: f64, high: f64| 10f64.powf(low + (high - low) * unit());
        let steps =
            vec![("alpha", ten(-2.5, 0.0)), ("beta", ten(-1.5, 0.8)), ("lambda", ten(-1.5, 0.8))];
        Case { head, method, steps }
    }

    /// The diagnosis if the run diverges.
    fn diagnosis(&self) -> Option<String> {
        let Case { head, method, steps } = self;
        let steps: String =
            steps.iter().map(|(key, value)| format!("{key} = {value:.6}\n")).collect();
        let text = format!("{head}[[algorithm]]\nname = '{method}'\n{steps}");
        let experiment = Experiment::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let outcome = experiment.run().unwrap().remove(0);
        (outcome.stop == Stop::Diverged).then(|| outcome.diagnosis.expect("a diagnosis"))
    }

    /// The case after its user did what the diagnosis says.
    fn after(self, diagnosis: &str) -> Case {
        let said = diagnosis.split_once("; leave ").or_else(|| diagnosis.split_once("; try "));
        let (_, advice) = said.unwrap_or_else(|| panic!("{diagnosis}"));
        let quoted = advice.split('`').skip(1).step_by(2);
        let mut steps = self.steps;
        for said in quoted {
            match said.split_once(" = ") {
                Some((key, value)) => {
                    let step = steps.iter_mut().find(|(one, _)| *one == key).expect("a step");
                    step.1 = value.parse().expect("a number");
                }
                None => steps.retain(|(key, _)| *key != said),
            }
        }
        Case { steps, ..self }
    }
}

#[test]
fn advice_ends_a_divergence_in_nine_of_ten_drawn_cases() {
    let (mut diverged, mut again) = (0, Vec::new());
    for seed in 0.. {
        let case = Case::drawn(seed);
        let Some(diagnosis) = case.diagnosis() else { continue };
        let (method, steps, head) = (case.method, case.steps.clone(), case.head.clone());
        diverged += 1;
        if let Some(then) = case.after(&diagnosis).diagnosis() {
            again.push(format!("{head}{method} {steps:?}\n  {diagnosis}\n  then {then}\n"));
        }
        if diverged == CASES {
            break;
        }
    }
    assert!(
        again.len() * 10 <= CASES,
        "{} of {CASES} diverged again\n{}",
        again.len(),
        again.join("\n")
    );
}
