//! An experiment file: what to solve, on which network, with which algorithms, for how long.

mod checkpoint_spec;
mod file;
pub mod keys;
mod privacy_spec;
mod registries;
mod run_spec;
pub mod schema;

pub use checkpoint_spec::CheckpointSpec;
pub use file::open;
pub use privacy_spec::PrivacySpec;
pub use registries::Registries;
pub use run_spec::{
    BatchSpec, Budget, EachBatch, Exactly, FinalTheta, Full, Precision, RunSpec, Target, Until,
};

use serde::Serialize;
use toml::{Table, Value};

use crate::algorithms::{AnyMethod, Facts};
use crate::config::{Choice, Registry, Section, Source};
use crate::data::partition::PartitionBuild;
use crate::data::{self, Preparation, SourceBuild};
use crate::engine::device::Device;
use crate::engine::messages::{Attack, Messages};
use crate::error::{Error, Result};
use crate::network::time::TimeSpec;
use crate::network::{self, GraphBuild, MAX_NODES, WeightsBuild};
use crate::problem::AnyProblem;
use crate::problem::scope::Scope;

/// A checked experiment, every default filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// The name of its run folder.
    pub name: String,
    /// Whether the inner problem is personal or global.
    pub scope: Scope,
    /// The problem.
    pub problem: Choice<AnyProblem>,
    /// Where its data come from, if it needs any.
    pub data: Option<DataSpec>,
    /// The network.
    pub network: NetworkSpec,
    /// The section `[messages]`, if there is one.
    pub messages: Option<Messages>,
    /// The nodes that lie, if there are any.
    pub attack: Option<Attack>,
    /// The section `[time]`, if there is one.
    pub time: Option<TimeSpec>,
    /// The section `[privacy]`, if there is one.
    pub privacy: Option<PrivacySpec>,
    /// How long, on which seeds, measured how.
    pub run: RunSpec,
    /// The device that computes its iterations: `run.device`.
    pub device: Choice<Device>,
    /// How often it saves its state.
    pub checkpoint: CheckpointSpec,
    /// The algorithms to compare.
    pub algorithms: Vec<AlgorithmSpec>,
}

/// Where data come from, and how they are split over nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSpec {
    /// The source.
    pub source: Choice<SourceBuild>,
    /// The source of each node, where nodes have files of their own.
    pub own: Vec<Choice<SourceBuild>>,
    /// How it is prepared.
    pub preparation: Preparation,
    /// How it is split over nodes.
    pub partition: Choice<PartitionBuild>,
}

impl DataSpec {
    /// The key that names the rows for validation, if one does.
    fn names_validation(&self) -> Option<&str> {
        self.source.params().keys().map(String::as_str).find(|key| key.starts_with("validation_"))
    }
}

/// The network.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkSpec {
    /// m
    pub nodes: usize,
    /// The graph.
    pub graph: Choice<GraphBuild>,
    /// The mixing weights.
    pub weights: Choice<WeightsBuild>,
    /// Draws the graph from this seed instead of the run's, so that all seeds share it.
    pub seed: Option<u64>,
}

/// An algorithm under its name in results.
#[derive(Debug, Clone, PartialEq)]
pub struct AlgorithmSpec {
    /// Its name in results: that of the algorithm, unless a file gives another.
    pub label: String,
    /// The algorithm and its parameters.
    pub choice: Choice<AnyMethod>,
}

const SECTIONS: [&str; 16] = [
    "schema",
    "extends",
    "name",
    "scope",
    "problem",
    "data",
    "partition",
    "network",
    "messages",
    "attack",
    "time",
    "privacy",
    "run",
    "checkpoint",
    "algorithm",
    "tune",
];

impl Experiment {
    /// Whether its messages are modified in any way.
    pub fn mails(&self) -> bool {
        let messages = self.messages.as_ref();
        messages.is_some_and(|messages| *messages != Messages::default()) || self.attack.is_some()
    }

    /// Reads and checks the text of an experiment file, with the problems, algorithms and data sources of this library.
    pub fn parse(text: &str) -> Result<Experiment> {
        Experiment::read(&Source::new("experiment", text), &Registries::default())
    }

    /// Reads and checks an experiment file with its overrides.
    pub fn read(source: &Source, registries: &Registries) -> Result<Experiment> {
        let mut root = source.root()?;
        let place = root.place_of("schema");
        if let Some(schema @ ..=0 | schema @ 2..) = root.value::<i64>("schema")? {
            return Err(Error::config("config/schema", format!("unknown `schema = {schema}`"))
                .at(place)
                .hint("this version reads `schema = 1`"));
        }
        // Files that are extended were merged when the file was opened.
        let extends_at = root.place_of("extends");
        if root.value::<Value>("extends")?.is_some() {
            let message = "`extends` is read where an experiment file is opened, and only there";
            return Err(Error::config("config/extends", message)
                .at(extends_at)
                .hint("write it at the top of an experiment file"));
        }
        let name_at = root.place_of("name");
        let name: String = root.value("name")?.unwrap_or_else(|| "experiment".into());
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            let message = format!("`name = \"{name}\"` cannot be the name of a folder");
            return Err(Error::config("config/out-of-range", message)
                .at(name_at)
                .hint("use letters, digits, `-`, `_` and `.`"));
        }
        short_enough("name", &name).map_err(|error| error.at(name_at))?;
        let scope: Scope = root.value("scope")?.unwrap_or_default();
        let problem_at = root.place_of("problem");
        let problem = root.required("problem")?;
        let share_at = problem.has("validation").then(|| problem.place_of("validation"));
        let problem = registries.problems.read(problem)?;
        let data = read_data(&mut root, &problem, &problem_at, registries)?;
        check_validation(data.as_ref(), &problem, share_at)?;
        let network_at = root.place_of("network");
        let network = read_network(root.required("network")?, registries)?;
        check_own(data.as_ref(), &network).map_err(|error| error.at(network_at))?;
        let messages = root.section("messages")?;
        let messages = messages.map(|section| Messages::read(section, &registries.compressors));
        let messages = messages.transpose()?;
        let attack = read_attack(&mut root, scope, network.nodes)?;
        let time: Option<TimeSpec> = root.section("time")?.map(Section::read).transpose()?;
        let privacy: Option<PrivacySpec> =
            root.section("privacy")?.map(Section::read).transpose()?;
        let run_section = root.required("run")?;
        let device_at = run_section.place_of("device");
        let budget_at = run_section.place_of("budget");
        let theta_at = run_section.place_of("final_theta");
        let run: RunSpec = run_section.read()?;
        if run.budget.virtual_seconds.is_some() && time.is_none() {
            let message = "a budget in `virtual_seconds` needs a section `[time]`";
            return Err(Error::config("config/missing-key", message)
                .at(budget_at)
                .hint("say what takes how long: `time = { compute = 0.001, links = \"home\" }`"));
        }
        check_refit(&run, &problem, data.as_ref()).map_err(|error| error.at(theta_at))?;
        let device = registries.devices.choose(&run.device, &Table::new());
        let device = device.map_err(|error| Error { place: None, ..error }.at(device_at))?;
        let checkpoint = root.section("checkpoint")?.map(Section::read).transpose()?;
        let checkpoint = checkpoint.unwrap_or_default();
        let algorithms = read_algorithms(&mut root, scope, &registries.algorithms)?;
        if device.build.driver().is_some() && (messages.is_some() || attack.is_some()) {
            let message = format!("`{}` moves messages as they are", device.name);
            return Err(Error::config("device/messages", message)
                .at("run.device")
                .hint("leave `[messages]` and `[attack]` out, or run on the processor"));
        }
        // A run does not depend on `[tune]`: lopa-study reads it.
        root.section("tune")?;
        root.finish(&SECTIONS)?;
        let experiment = Experiment {
            name,
            scope,
            problem,
            data,
            network,
            messages,
            attack,
            time,
            privacy,
            run,
            device,
            checkpoint,
            algorithms,
        };
        experiment.check_privacy()?;
        Ok(experiment)
    }

    /// The file with every default filled in.
    pub fn resolved(&self) -> Table {
        let mut table = Table::new();
        table.insert("schema".into(), Value::Integer(1));
        table.insert("name".into(), self.name.clone().into());
        table.insert("scope".into(), self.scope.name().into());
        let mut problem = self.problem.to_table();
        if self.data.as_ref().and_then(DataSpec::names_validation).is_some() {
            problem.remove("validation");
        }
        table.insert("problem".into(), problem.into());
        if let Some(DataSpec { source, preparation, partition, .. }) = &self.data {
            let mut data = source.to_table();
            data.extend(to_table(preparation));
            table.insert("data".into(), data.into());
            table.insert("partition".into(), partition.to_table().into());
        }
        let mut network = Table::new();
        network.insert("nodes".into(), Value::Integer(self.network.nodes as i64));
        if let Some(seed) = self.network.seed {
            network.insert("seed".into(), Value::Integer(seed as i64));
        }
        network.insert("graph".into(), self.network.graph.to_table().into());
        network.insert("weights".into(), self.network.weights.to_table().into());
        table.insert("network".into(), network.into());
        if let Some(messages) = &self.messages {
            table.insert("messages".into(), messages.to_table().into());
        }
        if let Some(attack) = &self.attack {
            table.insert("attack".into(), to_table(attack).into());
        }
        if let Some(time) = &self.time {
            table.insert("time".into(), to_table(time).into());
        }
        if let Some(privacy) = &self.privacy {
            table.insert("privacy".into(), to_table(privacy).into());
        }
        table.insert("run".into(), to_table(&self.run).into());
        table.insert("checkpoint".into(), to_table(&self.checkpoint).into());
        let algorithm = |spec: &AlgorithmSpec| {
            let mut table = spec.choice.to_table();
            if spec.label != spec.choice.name {
                table.insert("label".into(), spec.label.clone().into());
            }
            Value::Table(table)
        };
        let algorithms = self.algorithms.iter().map(algorithm).collect();
        table.insert("algorithm".into(), Value::Array(algorithms));
        table
    }
}

/// The longest name or label: with a seed and an ending, file systems take 255 bytes.
const LONGEST: usize = 200;

fn short_enough(key: &str, name: &str) -> Result<()> {
    match name.len() {
        0..=LONGEST => Ok(()),
        length => {
            let begin: String = name.chars().take(20).collect();
            let message = format!("`{key} = \"{begin}…\"` has {length} letters");
            Err(Error::config("config/out-of-range", message)
                .hint(format!("it becomes part of file names: use at most {LONGEST} letters")))
        }
    }
}

fn to_table(value: &impl Serialize) -> Table {
    Table::try_from(value).expect("specifications are representable in TOML")
}

fn read_data(
    root: &mut Section,
    problem: &Choice<AnyProblem>,
    problem_at: &str,
    registries: &Registries,
) -> Result<Option<DataSpec>> {
    let Registries { sources, partitions, .. } = registries;
    let needs = problem.build.get::<f64>().needs_data();
    let (data_at, partition_at) = (root.place_of("data"), root.place_of("partition"));
    let (data, partition) = (root.section("data")?, root.section("partition")?);
    let name = &problem.name;
    match (needs, data) {
        (false, None) if partition.is_none() => Ok(None),
        (false, None) => Err(unneeded("partition", name, partition_at)),
        (false, Some(_)) => Err(unneeded("data", name, data_at)),
        (true, None) => Err(Error::config(
            "config/missing-key",
            format!("the problem `{name}` needs data, but the section `[data]` is missing"),
        )
        .at(problem_at)
        .hint("for example `data = \"digits\"`; `lopa list data` shows what there is")),
        (true, Some(section)) => {
            let (source, preparation) = data::read(section, sources)?;
            let names = preparation.nodes.as_deref().unwrap_or_default();
            let own = data::each_own(&source, names, sources)?;
            let usual = if preparation.nodes.is_some() { "own" } else { "iid" };
            let partition = match partition {
                Some(section) => partitions.read(section)?,
                None => partitions.choose(usual, &Table::new())?,
            };
            if preparation.nodes.is_some() != (partition.name == "own") {
                let message = format!("the partition `{}` does not fit the data", partition.name);
                return Err(Error::config("partition/own", message)
                    .at(partition_at)
                    .hint("`own` goes with `nodes` in the data section, and nothing else does"));
            }
            Ok(Some(DataSpec { source, own, preparation, partition }))
        }
    }
}

/// Rows for validation must be of use, and be named once.
fn check_validation(
    data: Option<&DataSpec>,
    problem: &Choice<AnyProblem>,
    share_at: Option<String>,
) -> Result<()> {
    let Some(key) = data.and_then(DataSpec::names_validation) else { return Ok(()) };
    let (message, place) = match (problem.params(), share_at) {
        (_, Some(place)) => {
            (format!("the rows for validation are those of `{key}`, and not a share"), place)
        }
        (params, _) if !params.contains_key("validation") => {
            (format!("`{}` has no rows for validation", problem.name), format!("data.{key}"))
        }
        (params, _) if params.contains_key("trusted") => (
            format!("the rows for validation are those of `{key}`, and not those of `trusted`"),
            "problem.trusted".into(),
        ),
        _ => return Ok(()),
    };
    let hint = format!("leave it out, or leave `{key}` out of [data]");
    Err(Error::config("config/no-meaning", message).at(place).hint(hint))
}

/// Where nodes have files of their own, every node must be named.
fn check_own(data: Option<&DataSpec>, network: &NetworkSpec) -> Result<()> {
    let named = data.and_then(|data| data.preparation.nodes.as_ref()).map(Vec::len);
    match named {
        Some(named) if named != network.nodes => {
            let nodes = network.nodes;
            let message = format!("the data names {named} nodes, and the network has {nodes}");
            Err(Error::config("config/other-nodes", message))
        }
        _ => Ok(()),
    }
}

/// Models are fitted again only with rows that were held out, and where x fits them.
fn check_refit(run: &RunSpec, problem: &Choice<AnyProblem>, data: Option<&DataSpec>) -> Result<()> {
    if run.final_theta != FinalTheta::Refitted {
        return Ok(());
    }
    let name = &problem.name;
    if !problem.build.get::<f64>().transfers() {
        let message =
            format!("x of `{name}` belongs to the rows that are trained on, and fits no others");
        return Err(Error::config("config/no-meaning", message)
            .hint("`final_theta = \"solved\"` solves theta on the rows that are trained on"));
    }
    match data.and_then(|data| data.preparation.holdout) {
        Some(_) => Ok(()),
        None => Err(Error::config(
            "config/missing-key",
            "`final_theta = \"refitted\"` uses the rows again that nodes hold out, and they hold none out",
        )
        .hint("set `holdout = 0.2` in `[data]`, or `final_theta = \"solved\"`")),
    }
}

fn unneeded(section: &str, problem: &str, place: String) -> Error {
    let message = format!("the problem `{problem}` takes no data, but there is a `[{section}]`");
    Error::config("config/unknown-key", message).at(place).hint("leave the section out")
}

fn read_network(mut section: Section, registries: &Registries) -> Result<NetworkSpec> {
    let nodes_at = section.place_of("nodes");
    let Some(nodes) = section.value::<usize>("nodes")? else {
        return Err(Error::config("config/missing-key", "`nodes` is missing in `network`")
            .at(nodes_at)
            .hint("say how many nodes there are: `nodes = 8`"));
    };
    if !(1..=MAX_NODES).contains(&nodes) {
        let message = format!("`nodes = {nodes}` must be from 1 to {MAX_NODES}");
        return Err(Error::config("config/out-of-range", message).at(nodes_at));
    }
    let seed_at = section.place_of("seed");
    let seed: Option<u64> = section.value("seed")?;
    if let Some(seed) = seed.filter(|&seed| seed > i64::MAX as u64) {
        let message = format!("`seed = {seed}` must be below 2^63");
        return Err(Error::config("config/out-of-range", message).at(seed_at));
    }
    let graph = network::read_graph(&registries.graphs, section.required("graph")?)?;
    let weights = match section.section("weights")? {
        Some(section) => registries.weights.read(section)?,
        None => registries.weights.choose("metropolis", &Table::new())?,
    };
    section.finish(&["nodes", "graph", "weights", "seed"])?;
    Ok(NetworkSpec { nodes, graph, weights, seed })
}

/// Lying nodes must exist, and some nodes must be honest.
fn read_attack(root: &mut Section, scope: Scope, nodes: usize) -> Result<Option<Attack>> {
    let place = root.place_of("attack");
    let Some(section) = root.section("attack")? else { return Ok(None) };
    let nodes_at = section.place_of("nodes");
    let attack: Attack = section.read()?;
    if let Some(node) = attack.nodes.iter().find(|&&node| node >= nodes) {
        let message = format!("there is no node {node}: the network has {nodes} nodes");
        return Err(Error::config("config/out-of-range", message)
            .at(nodes_at)
            .hint("nodes are counted from 0"));
    }
    if attack.nodes.len() == nodes {
        let message = "all nodes lie: no node is left to be measured";
        return Err(Error::config("config/out-of-range", message).at(nodes_at));
    }
    if scope == Scope::Global {
        let message = "`[attack]` serves `scope = \"personal\"` only: the measures of the global \
                       scope are of all nodes, liars among them";
        return Err(Error::config("config/wrong-scope", message).at(place));
    }
    Ok(Some(attack))
}

/// An algorithm must support the file's scope.
fn serves(registry: &Registry<AnyMethod, Facts>, name: &str, scope: Scope) -> Result<()> {
    if registry.find(name)?.facts.scopes.contains(&scope) {
        return Ok(());
    }
    let all = registry.iter().filter(|entry| entry.facts.scopes.contains(&scope));
    let names: Vec<_> = all.map(|entry| entry.name.as_str()).collect();
    let message = format!("`{name}` does not serve `scope = \"{}\"`", scope.name());
    Err(Error::config("config/wrong-scope", message)
        .hint(format!("these do: {}", names.join(", "))))
}

fn read_algorithms(
    root: &mut Section,
    scope: Scope,
    registry: &Registry<AnyMethod, Facts>,
) -> Result<Vec<AlgorithmSpec>> {
    let root_at = root.place_of("algorithm");
    let mut specs: Vec<AlgorithmSpec> = Vec::new();
    for mut section in root.list("algorithm")? {
        let (place, label_at) = (section.place_of("name"), section.place_of("label"));
        let label: Option<String> = section.value("label")?;
        let choice = registry.read(section)?;
        serves(registry, &choice.name, scope).map_err(|error| error.at(&place))?;
        let label = label.unwrap_or_else(|| choice.name.clone());
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if label.is_empty() || !label.chars().all(plain) {
            let message = format!("the label `{label}` cannot be part of a file's name");
            return Err(Error::config("config/out-of-range", message)
                .at(label_at)
                .hint("use letters, digits, `-`, `_` and `.`"));
        }
        short_enough("label", &label).map_err(|error| error.at(label_at))?;
        if specs.iter().any(|spec| spec.label == label) {
            let message = format!("two algorithms are called `{label}`");
            return Err(Error::config("config/duplicate", message)
                .at(place)
                .hint("give one of them a `label` of its own"));
        }
        specs.push(AlgorithmSpec { label, choice });
    }
    if specs.is_empty() {
        return Err(Error::config("config/missing-key", "there is no `[[algorithm]]` to run")
            .at(root_at)
            .hint("`lopa list algorithms` shows what there is"));
    }
    Ok(specs)
}
