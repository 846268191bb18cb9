//! Top-k differences against replicas, step by step as an independent implementation has them:
//! `golden/make_messages.py`.

use lopa::algorithms::{Start, algorithms};
use lopa::engine::messages::{Compress, Messages, Rules, compressors};
use lopa::engine::{Node, Simulation};
use lopa::problem::derivative::Batches;
use lopa::problem::oracle::Oracle;
use lopa::problem::scope::Scope;
use serde_json::Value;
use toml::Table;

use crate::common::bench::rows;
use crate::common::golden::{Golden, matrix};

fn table(text: &str) -> Table {
    text.parse().unwrap()
}

fn messages(case: &Value) -> Messages {
    let choice = compressors().choose("top-k", &table(&format!("share = {}", case["share"])));
    let feedback = case["feedback"].as_bool().unwrap();
    let rules = Rules { consensus_step: case["consensus_step"].as_f64(), ..Rules::default() };
    Messages { compress: Some(Compress { choice: choice.unwrap(), feedback }), rules }
}

#[test]
fn top_k_is_as_an_independent_implementation_has_it() {
    let given = Golden::read("quadratic_path3");
    let cases = Golden::read("messages_path3");
    let cases = cases.json().as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let p = &case["params"];
        let params = format!(
            "alpha = {}\nbeta = {}\nlambda = {}\ngamma = {}\ntau = {}",
            p["alpha"], p["beta"], p["lambda"], p["gamma"], p["tau"]
        );
        let name = case["algorithm"].as_str().unwrap();
        let choice = algorithms().choose(name, &table(&params)).unwrap();
        let start = |name: &str, i: usize| matrix(&given.json()["init"][name])[i].clone().into();
        let node = |(i, part)| {
            let mut oracle = Oracle::new(part, Batches::all(None), false, 0, i);
            let [x, theta, v] = ["x", "th", "v"].map(|name| start(name, i));
            let scope = Scope::Personal;
            let start = Start { x, theta, v, rows: None, scope, oracle: &mut oracle };
            Node { algorithm: choice.build.start(start).unwrap(), oracle }
        };
        let nodes = given.parts().into_iter().enumerate().map(node).collect();
        let mixing = given.mixing();
        let simulation = Simulation::<f64>::new(nodes, &mixing, None);
        let mut simulation = simulation.with_messages(&messages(case), None, (&mixing, 1)).unwrap();
        for (k, state) in case["states"].as_array().unwrap().iter().enumerate() {
            for (variable, want) in state.as_object().unwrap() {
                let (got, want) = (rows(&simulation, variable), matrix(want));
                for (got, want) in got.concat().into_iter().zip(want.concat()) {
                    let near = (got - want).abs() <= 1e-11 * want.abs().max(1.0);
                    assert!(near, "{name}, k = {k}: {variable}: {got} is not {want}\n{case}");
                }
            }
            simulation.iterate();
        }
    }
}
