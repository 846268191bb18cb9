//! Every key of `[messages]` and `[attack]`, with a wrong type, out of range, or in bad company.

use super::{GT, read};

fn refused(sections: &str) -> lopa::error::Error {
    let text = format!(
        "algorithm = [{{ {GT} }}]
         problem = {{ name = 'quadratic' }}
         network = {{ nodes = 4, graph = 'ring' }}
         run = {{ iterations = 5 }}
         {sections}"
    );
    read(&text).err().unwrap_or_else(|| panic!("{sections} is taken"))
}

#[test]
fn messages() {
    let cases = [
        // Wrong types.
        ("messages = 3", "table"),
        ("messages = 'top-k'", "name"),
        ("messages = { compress = 3 }", "compress"),
        ("messages = { compress = true }", "compress"),
        ("messages = { consensus_step = 'big' }", "consensus_step"),
        ("messages = { drop = 'often' }", "drop"),
        ("messages = { drop = true }", "drop"),
        ("messages = { bursts = 0.1 }", "bursts"),
        ("messages = { active = 'all' }", "active"),
        ("messages = { late = [0.1] }", "late"),
        ("messages = { clip = 'far' }", "clip"),
        ("messages = { clip = true }", "clip"),
        ("messages = { compress = { name = 'top-k', share = 'half' } }", "share"),
        ("messages = { compress = { name = 'random-k', share = 'half' } }", "share"),
        ("messages = { compress = { name = 'quantise', bits = 2.5 } }", "bits"),
        ("messages = { compress = { name = 'top-k', feedback = 1 } }", "feedback"),
        // Out of range.
        ("messages = { consensus_step = 0 }", "consensus_step"),
        ("messages = { consensus_step = 1.01 }", "consensus_step"),
        ("messages = { consensus_step = nan }", "consensus_step"),
        ("messages = { drop = -0.1 }", "drop"),
        ("messages = { drop = 1 }", "drop"),
        ("messages = { drop = nan }", "drop"),
        ("messages = { late = 1.0 }", "late"),
        ("messages = { late = -1 }", "late"),
        ("messages = { active = 0 }", "active"),
        ("messages = { active = 1.5 }", "active"),
        ("messages = { bursts = { begin = 0, end = 0.5 } }", "bursts"),
        ("messages = { bursts = { begin = 0.5, end = 0 } }", "bursts"),
        ("messages = { bursts = { begin = 0.5, end = 2 } }", "bursts"),
        ("messages = { bursts = { begin = 0.5, end = 0.5, drop = 0 } }", "bursts"),
        ("messages = { clip = 0 }", "clip"),
        ("messages = { clip = -1 }", "clip"),
        ("messages = { clip = inf }", "clip"),
        ("messages = { clip = { median = 0 } }", "clip"),
        ("messages = { compress = { name = 'top-k', share = 0 } }", "share"),
        ("messages = { compress = { name = 'top-k', share = 1.1 } }", "share"),
        ("messages = { compress = { name = 'random-k', share = nan } }", "share"),
        ("messages = { compress = { name = 'quantise', bits = 1 } }", "bits"),
        ("messages = { compress = { name = 'quantise', bits = 17 } }", "bits"),
        // Unknown or missing.
        ("messages = { dorp = 0.1 }", "drop"),
        ("messages = { compress = 'topk' }", "top-k"),
        ("messages = { compress = { share = 0.5 } }", "name"),
        ("messages = { compress = { name = 'sign', bits = 1 } }", "bits"),
        ("messages = { compress = { name = 'bf16', share = 1 } }", "share"),
        ("messages = { bursts = { begin = 0.5 } }", "end"),
        ("messages = { bursts = { begin = 0.5, end = 0.5, length = 3 } }", "length"),
        ("messages = { clip = { mean = 1 } }", "clip"),
    ];
    check(&cases);
}

#[test]
fn attack() {
    let cases = [
        ("attack = 3", "attack"),
        ("attack = 'noise'", "name"),
        ("attack = { kind = 'noise' }", "nodes"),
        ("attack = { nodes = [1] }", "kind"),
        ("attack = { nodes = 1, kind = 'noise' }", "nodes"),
        ("attack = { nodes = [-1], kind = 'noise' }", "nodes"),
        ("attack = { nodes = ['a'], kind = 'noise' }", "nodes"),
        ("attack = { nodes = [], kind = 'noise' }", "nodes"),
        ("attack = { nodes = [1, 1], kind = 'noise' }", "nodes"),
        ("attack = { nodes = [4], kind = 'noise' }", "no node 4"),
        ("attack = { nodes = [0, 1, 2, 3], kind = 'noise' }", "all nodes"),
        ("attack = { nodes = [1], kind = 'nosie' }", "noise"),
        ("attack = { nodes = [1], kind = 3 }", "kind"),
        ("attack = { nodes = [1], kind = 'noise', size = 'big' }", "size"),
        ("attack = { nodes = [1], kind = 'noise', size = inf }", "size"),
        ("attack = { nodes = [1], kind = 'noise', scale = 1 }", "scale"),
        ("scope = 'global'\nattack = { nodes = [1], kind = 'noise' }", "personal"),
    ];
    check(&cases);
}

/// Messages, changing graphs and the clock can be combined, except for links that work in one
/// direction.
#[test]
fn company() {
    let text = |nodes: usize, graph: &str, sections: &str| {
        format!(
            "algorithm = [{{ {GT} }}]
             problem = {{ name = 'quadratic' }}
             network = {{ nodes = {nodes}, graph = {graph} }}
             time = {{ compute = 0.001, links = {{}} }}
             run = {{ iterations = 5 }}
             {sections}"
        )
    };
    let world = |text: String| read(&text).and_then(|read| read.world(None, 1).map(|_| ()));
    let sections = [
        "messages = { compress = 'bf16', clip = 1 }",
        "messages = { drop = 0.1 }",
        "messages = { bursts = { begin = 0.1, end = 0.1 } }",
        "messages = { active = 0.9 }",
        "messages = { late = 0.1 }",
        "attack = { nodes = [1], kind = 'noise' }",
    ];
    let graphs = [
        "'ring'",
        "'one-peer-exponential'",
        "{ name = 'random-matching', base = 'complete' }",
        "{ name = 'random-edges', base = 'ring', p = 0.5 }",
        "{ name = 'sequence', graphs = ['ring', 'path'], every = 10 }",
    ];
    for section in sections {
        for graph in graphs {
            world(text(4, graph, section)).unwrap_or_else(|error| panic!("{error}"));
        }
        let error = world(text(5, graphs[1], section)).expect_err("refused");
        assert_eq!(error.id, "config/messages-one-way", "{section}: {error}");
        assert_eq!(error.kind, lopa::error::Kind::Config);
        assert!(error.place.is_some_and(|place| place.contains("graph")), "{section}");
        assert!(error.hint.is_some_and(|hint| hint.contains("power of two")), "{section}");
    }
    for graph in &graphs[1..] {
        let error =
            world(text(4, graph, "messages = { clip = { median = 1 } }")).expect_err("refused");
        assert_eq!(error.id, "config/clip-changing", "{graph}: {error}");
        assert!(error.place.is_some_and(|place| place.contains("clip")), "{graph}");
        assert!(error.hint.is_some_and(|hint| hint.contains("radius")), "{graph}");
    }
    // An empty section changes nothing.
    world(text(5, graphs[1], "messages = {}")).unwrap_or_else(|error| panic!("{error}"));
    // An error in one of them is still reported there.
    for (graph, section, named) in [
        (graphs[1], "messages = { drop = 2 }", "drop"),
        ("{ name = 'random-edges', base = 'ring', p = 2 }", sections[0], "p = 2"),
        ("{ name = 'random-matching', window = 1 }", sections[1], "window"),
    ] {
        let error = world(text(4, graph, section)).expect_err("refused").to_string();
        assert!(error.contains(named), "{graph}, {section}: {error}");
    }
}

fn check(cases: &[(&str, &str)]) {
    for (text, named) in cases {
        let error = refused(text);
        let said = error.to_string();
        assert!(said.contains(named), "{text}: {said}");
        assert_eq!(error.kind, lopa::error::Kind::Config, "{text}: {said}");
        assert!(error.place.is_some(), "{text}: {said}");
    }
}
