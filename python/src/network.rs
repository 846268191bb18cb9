//! Networks and partitions on their own, as JSON with a picture.

use lopa::config::{Choice, Registry};
use lopa::data::partition::{Rows, split};
use lopa::data::{Dataset, Features, Groups};
use lopa::error::{Error, Result};
use lopa::math::random::{Purpose, Stream};
use lopa_report::figure::{Content, Figure, Heat, Network, Panel};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::without;
use crate::{registries, values};

/// An entry of a registry with parameters given as JSON.
fn choose<B: ?Sized>(registry: &Registry<B>, name: &str, params: &str) -> Result<Choice<B>> {
    let wrong = |text: String| Error::config("config/wrong-type", text);
    let json: Value = serde_json::from_str(params).map_err(|error| wrong(error.to_string()))?;
    let params = values::to_toml("", &json)?;
    let params = params.as_table().ok_or_else(|| wrong("parameters are keywords".into()))?;
    // The text was generated: its line numbers are meaningless to users.
    registry.choose(name, params).map_err(|error| Error { place: None, ..error })
}

fn picture(about: String, title: String, content: Content) -> String {
    let panels = vec![Panel { title, content }];
    Figure { about, panels, columns: 1, note: String::new() }.inline()
}

/// A graph of a kind, its weights and properties.
#[pyfunction]
pub fn graph(
    py: Python,
    kind: &str,
    nodes: usize,
    weights: &str,
    seed: u64,
    params: &str,
) -> PyResult<String> {
    without(py, || {
        let all = registries();
        if nodes == 0 {
            let message = "`nodes = 0` must be at least 1";
            return Err(Error::config("config/out-of-range", message).at("nodes"));
        }
        let graph = lopa::network::settled(&all.graphs, choose(&all.graphs, kind, params)?)?;
        let weights = choose(&all.weights, weights, "{}")?;
        let kind = graph;
        let (graph, mixing) = lopa::network::build(&kind, &weights, nodes, seed)?;
        let rounds = lopa::network::rounds(&kind, &weights, (&graph, &mixing), seed)?;
        let joint = rounds.map(|(_, joint)| joint);
        let analysis = mixing.analyse(&graph);
        let network = Network { weights: mixing.rows().to_vec(), names: Vec::new() };
        let rho = joint.map_or(analysis.rho, |joint| joint.rho_round);
        let title = format!("ρ = {rho:.3}");
        let svg = picture(format!("A network of {nodes} nodes"), title, Content::Network(network));
        let edges: Vec<_> = graph.edges().collect();
        let rows = mixing.rows();
        let mut made = json!({ "analysis": analysis, "edges": edges, "weights": rows, "svg": svg });
        if let Some(joint) = joint {
            made["rounds"] = json!(joint);
        }
        Ok(made.to_string())
    })
}

/// The rows of each node, from the class number of each row, and its group where there are groups.
#[pyfunction]
pub fn partition(
    py: Python,
    kind: &str,
    labels: Vec<u32>,
    groups: Option<Vec<u32>>,
    nodes: usize,
    seed: u64,
    params: &str,
) -> PyResult<String> {
    without(py, || {
        let classes = labels.iter().max().map_or(0, |&largest| largest as usize + 1);
        let values = vec![0.0; labels.len()];
        let mut data = Dataset::new(Features::Dense { cols: 1, values }, labels);
        if let Some(of) = groups {
            let count = of.iter().max().map_or(0, |&largest| largest + 1);
            let names = (0..count).map(|number| number.to_string()).collect();
            data = data.grouped(Groups { of, names });
        }
        let choice = choose(&registries().partitions, kind, params)?;
        let partition = split(&choice, &Rows::of(&data, classes, nodes, seed))?;
        let counts = partition.counts(data.labels(), classes);
        let columns = (0..classes).map(|class| class.to_string()).collect();
        let shown = counts.iter().map(|row| row.iter().map(|&n| n as u64).collect()).collect();
        let rows = (0..nodes).map(|node| node.to_string()).collect();
        let heat = Content::Heat(Heat { rows, columns, counts: shown });
        let about = format!("The classes at {nodes} nodes");
        let svg = picture(about, "samples of each class at each node".into(), heat);
        Ok(json!({ "nodes": partition.nodes, "counts": counts, "svg": svg }).to_string())
    })
}

/// The order in which built-in problems keep a node's rows: with it, minibatches are theirs.
#[pyfunction]
pub fn shuffled(mut rows: Vec<u32>, node: usize, seed: u64) -> Vec<u32> {
    let mut stream = Stream::new(seed, Purpose::Data, node);
    stream.seek(1 << 20, 0); // where `lopa::problem::builtin` draws its splits; the tests compare trajectories
    stream.shuffle(&mut rows);
    rows
}
