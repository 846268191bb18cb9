//! Reading golden files and running our algorithms from the same start.

use std::collections::BTreeMap;
use std::ops::Deref;

use lopa::algorithms::{Start, algorithms};
use lopa::config::Source;
use lopa::data::{Dataset, Features, Target};
use lopa::engine::{Node, Simulation};
use lopa::network::Mixing;
use lopa::problem::builtin::{self, Local, hyperparameter, representation};
use lopa::problem::derivative::Batches;
use lopa::problem::oracle::Oracle;
use lopa::problem::scope::Scope;
use lopa::problem::{Bilevel, Setting};
use serde_json::Value;

/// Vectors by variable, then node.
pub type Vectors = BTreeMap<String, Vec<Vec<f64>>>;

/// All variables after k iterations.
pub struct State {
    pub vectors: Vectors,
    pub hessians: u64,
}

impl Deref for State {
    type Target = Vectors;
    fn deref(&self) -> &Vectors {
        &self.vectors
    }
}

pub struct Golden {
    file: String,
    json: Value,
}

pub fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(vector).collect()
}

pub fn vector(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

impl Golden {
    pub fn read(file: &str) -> Golden {
        let path = Golden::path(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        Golden { file: file.into(), json: serde_json::from_str(&text).unwrap() }
    }

    fn path(file: &str) -> String {
        format!("{}/tests/golden/{file}.json", env!("CARGO_MANIFEST_DIR"))
    }

    pub fn json(&self) -> &Value {
        &self.json
    }

    pub fn names(&self) -> Vec<String> {
        self.json["algorithms"].as_object().unwrap().keys().cloned().collect()
    }

    pub fn mixing(&self) -> Mixing {
        Mixing::from_matrix(matrix(&self.json["graph"]["W"])).unwrap()
    }

    pub fn hessians(&self, name: &str, k: usize) -> u64 {
        self.json["algorithms"][name]["states"][k]["hvp_count"].as_u64().unwrap()
    }

    /// The golden states, in our names and our layouts.
    pub fn states(&self, name: &str) -> Vec<Vectors> {
        let states = self.json["algorithms"][name]["states"].as_array().unwrap();
        states.iter().map(|state| self.ours(state)).collect()
    }

    /// Our layouts are feature-major, theirs are unit-major; biases come last in both.
    fn ours(&self, state: &Value) -> Vectors {
        let vectors = state.as_object().unwrap().iter().filter(|(name, _)| *name != "hvp_count");
        vectors
            .map(|(name, value)| {
                let ours = if name == "th" { "theta" } else { name };
                let rows = matrix(value).into_iter().map(|row| self.permute(row)).collect();
                (ours.to_string(), rows)
            })
            .collect()
    }

    fn permute(&self, row: Vec<f64>) -> Vec<f64> {
        if !self.file.starts_with("mlp") {
            return row;
        }
        let size = |key: &str| self.json[key].as_u64().unwrap() as usize;
        let (inputs, units) = match row.len() == size("n") {
            true => (size("d"), size("h")),
            false => (size("h"), size("k")),
        };
        let weights = (0..inputs).flat_map(|q| (0..units).map(move |u| u * inputs + q));
        weights.chain(inputs * units..row.len()).map(|at| row[at]).collect()
    }

    pub fn parts(&self) -> Vec<Box<dyn Bilevel<f64>>> {
        let m = self.json["m"].as_u64().unwrap() as usize;
        match self.json["problem"].as_str().unwrap() {
            "quadratic" => {
                let text = format!("name = 'quadratic'\nfile = {:?}", Golden::path(&self.file));
                let source = Source::new("test", text);
                let choice = builtin::problems().read(source.root().unwrap()).unwrap();
                let setting = Setting {
                    nodes: m,
                    scope: Scope::Personal,
                    seed: 0,
                    batch: None,
                    data: None,
                    partition: &[],
                    ..Setting::default()
                };
                choice.build.get::<f64>().parts(&setting, 0..m).unwrap().each
            }
            "logreg_hyper" => (0..m).map(|i| self.logistic(i)).collect(),
            "mlp_head" => (0..m).map(|i| self.network(i)).collect(),
            other => panic!("unknown golden problem {other}"),
        }
    }

    fn set(&self, features: &str, i: usize, labels: Vec<u32>) -> Dataset {
        let rows = matrix(&self.json["data"][features][i]);
        let cols = rows[0].len();
        Dataset::new(Features::Dense { cols, values: rows.concat() }, labels)
    }

    fn logistic(&self, i: usize) -> Box<dyn Bilevel<f64>> {
        let half = |features: &str, labels: &str| {
            let signs = vector(&self.json["data"][labels][i]);
            let labels: Vec<u32> = signs.iter().map(|&b| u32::from(b < 0.0)).collect();
            let all = (0..labels.len() as u32).collect();
            self.set(features, i, labels).samples(all)
        };
        let train = half("S_train", "b_train");
        let empty = Dataset::new(Features::Dense { cols: train.cols(), values: vec![] }, vec![]);
        let local = Local {
            train,
            validation: half("S_val", "b_val"),
            apart: true,
            test: empty.samples(vec![]),
            holdout: empty.samples(vec![]),
            target: Target::Classes(2),
            units: Vec::new(),
            judged: [false; 2],
        };
        let options = toml::from_str::<hyperparameter::Options>("").unwrap();
        Box::new(hyperparameter::Hyperparameter::new(local, &options, None).unwrap())
    }

    fn network(&self, i: usize) -> Box<dyn Bilevel<f64>> {
        let labels: Vec<u32> =
            vector(&self.json["data"]["label"][i]).iter().map(|&label| label as u32).collect();
        let all: Vec<u32> = (0..labels.len() as u32).collect();
        let set = self.set("S", i, labels);
        let empty =
            Dataset::new(Features::Dense { cols: set.features().cols(), values: vec![] }, vec![]);
        let local = Local {
            train: set.samples(all.clone()),
            validation: set.samples(all),
            apart: false,
            test: empty.samples(vec![]),
            holdout: empty.samples(vec![]),
            target: Target::Classes(self.json["k"].as_u64().unwrap() as usize),
            units: Vec::new(),
            judged: [false; 2],
        };
        let text = format!("hidden = [{}]\nridge = {}", self.json["h"], self.json["mu"]);
        let options = toml::from_str::<representation::Options>(&text).unwrap();
        Box::new(representation::Representation::new(local, &options, None).unwrap())
    }

    /// Our name and parameters of a golden algorithm.
    fn ours_for(&self, name: &str) -> (&'static str, String) {
        let entry = &self.json["algorithms"][name];
        let p = &entry["params"];
        let (alpha, beta, gamma) = (&p["alpha"], &p["beta"], &p["gamma"]);
        let (lambda, tau) = (&p["lambda"], &p["tau"]);
        let steps = format!("alpha = {alpha}, beta = {beta}, lambda = {lambda}");
        let lopa =
            |start: &str| format!("{steps}, gamma = {gamma}, tau = {tau}, start = '{start}'");
        let spdb = |consensus: &str, inverse: &str| {
            let q = &entry["Q"];
            format!("{steps}, consensus = '{consensus}', inverse = '{inverse}', hv_steps = {q}")
        };
        let ma_dsbo = |warm: bool| {
            let (n, q) = (&entry["N"], &entry["Q"]);
            format!("{steps}, gamma = {gamma}, inner_steps = {n}, hv_steps = {q}, warm = {warm}")
        };
        match name {
            "lopa_lg_z0_s" => ("lopa-lg", lopa("estimate")),
            "lopa_lg_z0_zero" => ("lopa-lg", lopa("zero")),
            "lopa_gt_z0_s" => ("lopa-gt", lopa("estimate")),
            "lopa_gt_z0_zero" => ("lopa-gt", lopa("zero")),
            "spdb_gt_rand" => ("spdb", spdb("gt", "neumann")),
            "spdb_gt_sum" => ("spdb", spdb("gt", "shia")),
            "spdb_al_rand" => ("spdb", spdb("al", "neumann")),
            "spdb_al_sum" => ("spdb", spdb("al", "shia")),
            "madsbo" => ("ma-dsbo", ma_dsbo(false)),
            "madsbo_warm_v" => ("ma-dsbo", ma_dsbo(true)),
            "dgd" => ("dgd", format!("alpha = {alpha}, mu = {}", p["mu"])),
            other => panic!("unknown golden algorithm {other}"),
        }
    }
}

/// Our states k = 0, …, 5.
pub fn run(golden: &Golden, name: &str) -> Vec<State> {
    let (ours, params) = golden.ours_for(name);
    let source = Source::new("test", format!("algorithm = {{ name = '{ours}', {params} }}"));
    let section = source.root().unwrap().required("algorithm").unwrap();
    let choice = algorithms().read(section).unwrap();
    let start = golden.ours(&golden.json()["init"]);
    let make = |(i, part): (usize, Box<dyn Bilevel<f64>>)| {
        let mut oracle = Oracle::new(part, Batches::all(None), false, 0, i);
        if let Some(lengths) = golden.json()["algorithms"][name].get("q_sequence") {
            oracle.script_truncations(vector(lengths).iter().map(|&q| q as usize).collect());
        }
        let at = |name: &str| start[name][i].clone();
        let scope = Scope::Personal;
        let [x, theta, v] = ["x", "theta", "v"].map(at);
        let [x, theta, v] = [x, theta, v].map(Into::into);
        let start = Start { x, theta, v, rows: None, scope, oracle: &mut oracle };
        let algorithm = choice.build.start(start).unwrap();
        Node { algorithm, oracle }
    };
    let nodes = golden.parts().into_iter().enumerate().map(make).collect();
    let mut simulation = Simulation::new(nodes, &golden.mixing(), None);
    let mut states: Vec<State> = Vec::new();
    for k in 0..=6 {
        let mut state = state(&simulation);
        // M of iterate k is formed when its neighbours' x arrive, in iteration k + 1.
        if let Some(late) = state.vectors.remove("M") {
            if k == 0 {
                state.vectors.insert("M".into(), late);
            } else if k == 1 {
                assert_eq!(states[0]["M"], late, "M is zero until neighbours are heard of");
            } else {
                states[k - 1].vectors.insert("M".into(), late);
            }
        }
        states.push(state);
        simulation.iterate();
    }
    states.pop();
    states
}

fn state(simulation: &Simulation<f64>) -> State {
    let mut vectors = Vectors::new();
    for node in simulation.nodes() {
        for (name, values) in node.algorithm.variables() {
            vectors.entry(name.into()).or_default().push(values.to_vec());
        }
    }
    State { vectors, hessians: simulation.nodes()[0].oracle.counts().hess_g }
}
