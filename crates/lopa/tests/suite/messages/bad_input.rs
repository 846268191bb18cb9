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

/// Sections that do not go together say which, and what to do.
#[test]
fn company() {
    let text = |network: &str, sections: &str| {
        format!(
            "algorithm = [{{ {GT} }}]
             problem = {{ name = 'quadratic' }}
             network = {{ nodes = 4, graph = {network} }}
             run = {{ iterations = 5 }}
             {sections}"
        )
    };
    let attack = "attack = { nodes = [1], kind = 'noise' }";
    let changing = [
        "'one-peer-exponential'",
        "{ name = 'random-matching', base = 'complete' }",
        "{ name = 'random-edges', base = 'ring', p = 0.5 }",
        "{ name = 'sequence', graphs = ['ring', 'path'], every = 10 }",
    ];
    for graph in changing {
        read(&text(graph, "")).unwrap_or_else(|error| panic!("{error}"));
        for (section, name) in [("messages = { drop = 0.1 }", "[messages]"), (attack, "[attack]")] {
            let error = read(&text(graph, section)).expect_err("refused");
            assert_eq!(error.id, "config/messages-changing", "{graph}: {error}");
            assert!(error.message.contains(name), "{graph}: {error}");
            assert!(error.hint.is_some_and(|hint| hint.contains("fixed graph")), "{graph}");
        }
    }
    let time = "time = { compute = 0.001, links = {} }";
    let fails = ["drop = 0.1", "bursts = { begin = 0.1, end = 0.1 }", "active = 0.9", "late = 0.1"];
    for messages in fails {
        let error = read(&text("'ring'", &format!("{time}\nmessages = {{ {messages} }}")));
        let error = error.expect_err("refused");
        assert_eq!(error.id, "config/messages-timed", "{messages}: {error}");
        assert!(error.hint.is_some_and(|hint| hint.contains(&messages[..4])), "{messages}");
    }
    for fits in ["messages = { compress = 'bf16', clip = 1 }", attack] {
        read(&text("'ring'", &format!("{time}\n{fits}"))).unwrap_or_else(|error| panic!("{error}"));
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
