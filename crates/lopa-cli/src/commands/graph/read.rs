//! The graph that a command line names: a file, or a kind with its parameters.

use std::path::Path;

use clap::Args;
use lopa::config::{Choice, Source};
use lopa::error::{Error, Result};
use lopa::experiment::{Experiment, open};
use lopa::network::{self, Analysis, Graph, GraphBuild, GraphFile, Joint, Mixing, WeightsBuild};
use lopa_base::store::limits::{self, read_text};
use serde_json::{Value, json};

use crate::program::Program;

#[derive(Debug, Args)]
pub struct GraphArgs {
    /// Graph file, experiment file, or kind of graph (`lopa list graphs`)
    pub graph: String,
    /// Number of nodes, for a kind of graph
    #[arg(short = 'm', long)]
    nodes: Option<usize>,
    #[command(flatten)]
    kind: KindArgs,
}

/// The parameters of a kind of graph and of its weights.
#[derive(Debug, Args)]
pub struct KindArgs {
    /// Parameter of the kind, such as `--with p=0.4`; repeatable
    #[arg(long = "with", value_name = "KEY=VALUE")]
    pub with: Vec<String>,
    /// Mixing weights (`lopa list weights`) [default: those of the file, else metropolis]
    #[arg(short, long)]
    pub weights: Option<String>,
    /// Seed of random graphs [default: that of the experiment, else 1]
    #[arg(short, long)]
    seed: Option<u64>,
}

impl KindArgs {
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }
}

/// A graph with its weights; for a changing one, all links and the effect of its rounds.
pub struct Network {
    pub graph: Graph,
    pub mixing: Mixing,
    pub joint: Option<Joint>,
}

/// The graph of a file, or one of a kind, with its weights.
pub fn read(args: &GraphArgs, program: &Program) -> Result<Network> {
    let kinds = &program.registries.graphs;
    let kind = kinds.iter().find(|kind| kind.name == args.graph);
    let path = Path::new(&args.graph);
    if kind.is_none() && (path.exists() || args.graph.contains(['.', '/'])) {
        if let Some(experiment) = experiment(path, program)? {
            return of(&experiment, &args.kind, program);
        }
        let file = GraphFile::read(path)?;
        let (graph, mixing) = weighted(file.graph.clone(), file.mixing()?, &args.kind, program)?;
        return Ok(Network { graph, mixing, joint: None });
    }
    let choice = graph(&args.graph, &args.kind, program)?;
    let nodes = args.nodes.ok_or_else(|| {
        Error::config("config/missing-key", format!("how many nodes does the {} have?", args.graph))
            .at("--nodes")
            .hint("for example `-m 10`")
    })?;
    drawn(&choice, &weights(&args.kind, program)?, nodes, args.kind.seed())
}

/// A graph of a kind with its weights.
fn drawn(
    graph: &Choice<GraphBuild>,
    weights: &Choice<WeightsBuild>,
    nodes: usize,
    seed: u64,
) -> Result<Network> {
    let built = graph.build.graph(nodes, seed)?;
    let mixing = (weights.build)(&built)?;
    let rounds = network::rounds(graph, weights, (&built, &mixing), seed)?;
    Ok(Network { graph: built, mixing, joint: rounds.map(|(_, joint)| joint) })
}

/// The experiment in a file, if it is one: it has a section `network` or extends another file, which no graph
/// file does.
fn experiment(path: &Path, program: &Program) -> Result<Option<Experiment>> {
    const KEYS: [&str; 2] = ["network", "extends"];
    let text = read_text(path, limits::GRAPH).unwrap_or_default();
    let has = |table: toml::Table| KEYS.iter().any(|key| table.contains_key(*key));
    if !(KEYS.iter().any(|key| text.contains(key)) && text.parse().is_ok_and(has)) {
        return Ok(None);
    }
    Experiment::read(&open(path)?, &program.registries).map(Some)
}

/// The network of an experiment, on its first seed or the requested one.
fn of(experiment: &Experiment, args: &KindArgs, program: &Program) -> Result<Network> {
    let spec = &experiment.network;
    let seed = args.seed.or(spec.seed).unwrap_or(experiment.run.seeds[0]);
    match args.weights {
        None => drawn(&spec.graph, &spec.weights, spec.nodes, seed),
        Some(_) => drawn(&spec.graph, &weights(args, program)?, spec.nodes, seed),
    }
}

/// A graph with the requested weights, else with its own, else with the default ones.
fn weighted(
    graph: Graph,
    own: Option<Mixing>,
    args: &KindArgs,
    program: &Program,
) -> Result<(Graph, Mixing)> {
    let mixing = match (&args.weights, own) {
        (None, Some(own)) => own,
        _ => (weights(args, program)?.build)(&graph)?,
    };
    Ok((graph, mixing))
}

/// The requested kind of graph, with its parameters.
pub fn graph(kind: &str, args: &KindArgs, program: &Program) -> Result<Choice<GraphBuild>> {
    let with = &args.with;
    if let Some(bare) = with.iter().find(|pair| !pair.contains('=')) {
        return Err(Error::config("config/bad-override", "a parameter needs a `=`")
            .at(format!("--with {bare}"))
            .hint("write it as `--with p=0.4`"));
    }
    let mut source =
        Source::new("graph", format!("graph = {{ name = {} }}", toml::Value::from(kind)));
    source.sets = with.iter().map(|pair| format!("graph.{pair}")).collect();
    let section = source.root().and_then(|mut root| root.required("graph"));
    let graphs = &program.registries.graphs;
    section.and_then(|section| network::read_graph(graphs, section)).map_err(|error| {
        let with = error.place.as_deref().and_then(|place| place.strip_prefix("--set graph."));
        Error { place: Some(with.map_or(kind.into(), |pair| format!("--with {pair}"))), ..error }
    })
}

/// The requested weights, else Metropolis weights.
pub fn weights(args: &KindArgs, program: &Program) -> Result<Choice<WeightsBuild>> {
    let name = args.weights.as_deref().unwrap_or("metropolis");
    let choice = program.registries.weights.choose(name, &toml::Table::new());
    choice.map_err(|error| Error { place: Some(format!("--weights {name}")), ..error })
}

/// A graph as a document.
pub fn described(graph: &Graph, mixing: &Mixing, analysis: &Analysis) -> Value {
    let edges: Vec<_> = graph.edges().collect();
    json!({ "analysis": analysis, "edges": edges, "weights": mixing.rows() })
}

/// The error for a command that does not apply to a changing graph.
pub fn changes(kind: &str, why: &str) -> Error {
    let message = format!("`{kind}` changes from round to round: {why}");
    Error::network("network/changing", message).at(kind)
}
