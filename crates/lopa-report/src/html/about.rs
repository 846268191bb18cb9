//! What a run is about, in words from its experiment file.

use std::path::Path;

use super::number::count;
use crate::saved::Saved;

/// The problem, the data and the network in one line.
pub fn setting(saved: &Saved) -> String {
    let word = |(name, value): (&str, String)| match name {
        "Nodes" => count(value.parse().unwrap_or(0), "node"),
        _ => value,
    };
    facts(saved).into_iter().map(word).collect::<Vec<_>>().join(" · ")
}

/// The problem, the data, the network: names from the experiment file.
pub fn facts(saved: &Saved) -> Vec<(&'static str, String)> {
    let settings = saved.experiment();
    let name = |path: &[&str]| {
        let section = settings.get(path[0])?;
        let value = path[1..].iter().try_fold(section, |value, key| value.get(key))?;
        value.as_str().or_else(|| value.get("name")?.as_str()).map(str::to_string)
    };
    let (data, partition) = (name(&["data"]), name(&["partition"]));
    let (graph, weights) = (name(&["network", "graph"]), name(&["network", "weights"]));
    // A file is shown by its name.
    let file = settings.get("data").and_then(|data| data.get("path")?.as_str());
    let file = file.and_then(|path| Some(Path::new(path).file_name()?.to_string_lossy()));
    let data = data.map(|name| file.map_or(name, |file| file.to_string()));
    let joined = |first: Option<String>, second: Option<String>, word: &str| {
        first.map(|first| second.map_or(first.clone(), |name| format!("{first}, {name} {word}")))
    };
    let nodes = settings.get("network").and_then(|network| network.get("nodes")?.as_integer());
    let in_world = saved.worlds().first().map(|world| world.weights.len()).filter(|n| *n > 0);
    let nodes = nodes.map(|n| n.to_string()).or_else(|| in_world.map(|n| n.to_string()));
    let all = [
        ("Problem", name(&["problem"])),
        ("Data", joined(data, partition, "partition")),
        ("Graph", joined(graph, weights, "weights")),
        ("Nodes", nodes),
    ];
    all.into_iter().filter_map(|(title, value)| Some((title, value?))).collect()
}
