//! The experiment file with its comments.

use std::fmt::Write as _;

use toml::Value;

use super::look::Look;
use super::{Facts, Predicted, Wish, Written, preparation};
use crate::choose;
use lopa::math::number;
use lopa::math::portable::{log10, powi};

/// Wider rows get no hidden layer: its weights would be most of the work.
const WIDE: usize = 2000;

/// The contents of the file.
pub struct Plan {
    pub look: Look,
    pub facts: Facts,
    /// Whether nodes hold rows out to be judged on; else all are judged on common rows.
    pub holdout: bool,
    /// Whether the saved models can use these rows again.
    pub refits: bool,
    /// The problem.
    pub problem: String,
    /// Those that are tried, the better of which is the problem.
    pub problems: Vec<String>,
    /// The privacy budget, if rows are to be protected.
    pub epsilon: Option<f64>,
    grouped: bool,
}

impl Plan {
    pub fn new(look: Look, facts: Facts, wish: &Wish) -> Plan {
        // Noise in a shared layer has an entry for each of its weights.
        let usual: &[&str] = match facts.features > WIDE || wish.epsilon.is_some() {
            true => &["hyperparameter"],
            false => &["representation", "hyperparameter"],
        };
        let usual = || usual.iter().map(|name| name.to_string()).collect();
        let problems: Vec<String> = wish.problem.clone().map_or_else(usual, |name| vec![name]);
        let (problem, epsilon) = (problems[0].clone(), wish.epsilon);
        let grouped = look.data.contains_key("group");
        Plan { look, facts, holdout: true, refits: false, problem, problems, epsilon, grouped }
    }

    /// The file, not yet tried.
    pub fn written(&self) -> Written {
        Written {
            name: self.look.name.clone(),
            text: self.text(None),
            facts: self.facts.clone(),
            guesses: self.look.guesses.clone(),
            tried: Vec::new(),
            baseline: None,
        }
    }

    /// The file with at most this many training rows, for trials.
    pub fn trial(&self, rows: usize) -> String {
        let most = (self.facts.rows > rows && self.look.nodes.is_none()).then_some(rows);
        self.text(most)
    }

    /// The file; `samples` limits its training rows.
    pub fn text(&self, samples: Option<usize>) -> String {
        let Plan { look, facts, .. } = self;
        let per_node = facts.rows / facts.nodes.max(1);
        let mut text = String::new();
        let from_to =
            |[low, mean, high]: &[f64; 3]| format!("from {low} to {high}, mean {}", number(*mean));
        let shown = match &facts.predicted {
            Predicted::Classes(classes) => {
                let each = classes.iter().map(|(name, count)| format!("{name} ({count})"));
                match classes.len() {
                    0..=12 => format!("Classes: {}", each.collect::<Vec<_>>().join(", ")),
                    many => {
                        let first: Vec<_> = each.take(10).collect();
                        format!("Classes: {}, ... {many} in all", first.join(", "))
                    }
                }
            }
            Predicted::Numbers(ranges) => {
                let each: Vec<String> = ranges.iter().map(from_to).collect();
                format!("Predicts numbers {}", each.join("; "))
            }
            Predicted::Survival { times, events } => {
                format!("Predicts risk: times {}, {events} events", from_to(times))
            }
        };
        let counted = match self.epsilon {
            None => {
                format!(": {} rows, {} features.\n# {shown}", facts.rows, facts.features)
            }
            Some(_) => ": no number in this file comes from a row".into(),
        };
        let _ = write!(
            text,
            "# Written by `lopa init`, version {}{counted}.\n\
             # `lopa list` and `lopa list THING NAME` show what else can stand here.\n\
             schema = 1\nname = {}\n\n",
            env!("CARGO_PKG_VERSION"),
            Value::String(look.name.clone()),
        );
        text += &self.problem();
        text += "[data]\n";
        for (key, value) in &look.data {
            let why = match key.as_str() {
                "label" if value.is_array() => "   # the columns to predict",
                "label" => "   # the column to predict",
                "group" => "   # the column that says whose row it is; not a feature",
                "drop" => "   # columns that are not features",
                "categories" => "   # a feature for each of these words",
                "features" => "   # of the widest file",
                "zero_based" => "   # features are numbered from 0",
                "path" if look.nodes.is_some() => "   # a file for each node",
                _ => "",
            };
            let _ = writeln!(text, "{key} = {value}{why}");
        }
        if let Some(nodes) = &look.nodes {
            let nodes: Vec<Value> = nodes.iter().map(|name| name.clone().into()).collect();
            let _ = writeln!(text, "nodes = {}", Value::Array(nodes));
        }
        for (key, value) in preparation(facts, self.epsilon.is_some()) {
            let why = match value.as_str() {
                Some("standardise") => "   # mean 0 and variance 1",
                Some("row") => "   # each row to length 1: needs no other row",
                Some("unit") => "   # divided by the largest value: zeros stay zero",
                Some("mean") => "   # cells without a value get the mean of their column",
                Some("number") => "   # the label is a number to predict",
                Some("survival") => "   # a time, and 1 if an event was seen then",
                _ => "",
            };
            let _ = writeln!(text, "{key} = {value}{why}");
        }
        if self.holdout {
            text += "test = 0.0   # no rows for all nodes to be judged on:\nholdout = 0.2   # each holds this \
                     share of its own out, and is judged on it\n";
        }
        if self.epsilon.is_some() && !self.holdout {
            text += "test = 0.0\n";
        }
        if let Some(samples) = samples {
            let _ = writeln!(text, "samples = {samples}");
        }
        text += &self.division();
        let _ = write!(
            text,
            "[network]\nnodes = {}\ngraph = \"{}\"\nweights = \"lazy-metropolis\"   # safe for \
             gradient tracking on any graph\n\n",
            facts.nodes,
            choose::graph(facts.nodes),
        );
        let batch = match choose::batch(per_node) {
            None => "\"full\"   # so few rows that all of them are used".to_string(),
            Some(rows) => rows.to_string(),
        };
        if let Some(epsilon) = self.epsilon {
            return text + &self.private_run(epsilon, per_node, &batch);
        }
        let theta = match self.holdout && self.refits {
            true => {
                "final_theta = \"refitted\"   # solved for exactly at the end; the saved models use the held-out \
                 rows again\n                           # after nodes were judged on them (\"solved\": they do not)\n"
            }
            false => "final_theta = \"solved\"   # exactly, at the end\n",
        };
        let _ = write!(
            text,
            "[run]\nseeds = [1, 2, 3]   # each draws its own minibatches and start\niterations = 1000\n\
             batch = {batch}\nevaluations = 20\nexact = \"end\"   # exact solves at the end only: the rest \
             is fast\n{theta}\n\
             # Each algorithm finds its own step sizes; `lopa tune` looks for better ones, for the last per cent.\n",
        );
        for (name, what) in [
            ("lopa-gt", "personal models with a shared part"),
            ("local", "each node alone, to compare"),
        ] {
            let _ = write!(text, "[[algorithm]]\nname = \"{name}\"   # {what}\n\n",);
        }
        text.truncate(text.trim_end().len());
        text + "\n"
    }

    /// The rest of a file that protects rows: one run, whose method finds its steps from what has noise already.
    fn private_run(&self, epsilon: f64, per_node: usize, batch: &str) -> String {
        let delta = powi(10.0, -log10(per_node.max(10) as f64).ceil() as i32 - 1);
        format!(
            "[run]\nseeds = [1]   # each seed is a run of its own, and spends the budget again\n\
             iterations = 40   # more of them need more noise in each\nbatch = {batch}\nevaluations = 4\n\
             exact = \"never\"\n\n\
             [privacy]\nepsilon = {epsilon:?}   # what all that is sent or published may say about one row\n\
             delta = {delta:?}   # the probability with which that may fail: a tenth of one over a node's rows\n\
             clip = \"auto\"   # the largest part that a row has in a derivative: found within the budget\n\n\
             [[algorithm]]\nname = \"lopa-gt\"   # personal models with a shared part; it finds its own step sizes\n"
        )
    }

    fn problem(&self) -> String {
        let name = Value::String(self.problem.clone());
        let model = match self.facts.predicted {
            Predicted::Classes(_) => "a personal classifier (theta)",
            Predicted::Numbers(_) => "a personal linear model (theta)",
            Predicted::Survival { .. } => "a personal risk score (theta)",
        };
        match self.problem.as_str() {
            "representation" => {
                let hidden = choose::HIDDEN;
                format!(
                    "[problem]\nname = {name}   # a shared hidden layer (x), {model}\n\
                     hidden = [{hidden}]\nactivation = \"tanh\"\nridge = 0.02\n\n"
                )
            }
            "hyperparameter" => format!(
                "[problem]\nname = {name}   # {model}, shared regularisation (x)\n\
                 start = -4.0   # little regularisation to begin with\nbias = true\n\n"
            ),
            _ => format!("[problem]\nname = {name}\n\n"),
        }
    }

    fn division(&self) -> String {
        match (&self.look.nodes, self.grouped) {
            (Some(_), _) => "\n".into(),
            (None, true) => {
                "\n[partition]\nname = \"group\"   # each group's rows to a node\n\n".into()
            }
            (None, false) => {
                "\n[partition]\nname = \"iid\"   # rows are dealt at random; a column that \
                              says whose they are: `group` in [data]\n\n"
                    .into()
            }
        }
    }
}
