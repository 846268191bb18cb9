//! `docs/algorithms.md` is the registry's: `UPDATE=1 cargo test -p lopa --test documentation`
//! writes it.

use lopa::algorithms::cost::Count;
use lopa::algorithms::{Cost, Facts, Task, algorithms};
use lopa::problem::scope::Scope;

const HEAD: &str = "# Algorithms

This table is made from the registry; a test keeps it true. Marks behind a source: [V] the formulas
were read in it, [D] derived here, [K] from general knowledge because its text was not available.
Counts are the calls that a node makes in an iteration with default options, once the first few
iterations are over; N and Q are `inner_steps` and `hv_steps`. Floats are sent to each neighbour in
an iteration. Where two counts stand, the second is that of the global scope, and (+ …) is sent in
the global scope only. A test compares every count with what a run does. Complexity, in samples to
an ε-stationary point, and assumptions are as the authors, or those who compare with them, state
them; they were not checked here.

";

fn table() -> String {
    let mut text = HEAD.to_string();
    text.push_str(
        "| algorithm | scope | loops | sends | floats | ∇_θ g | ∇²_θθ g v | ∇²_xθ g v | ∇_θ f | \
         ∇_x f | complexity | assumes | source |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let registry = algorithms();
    for entry in &registry {
        let Facts { source, scopes, sends, loops, complexity, assumes, .. } = entry.facts;
        let names: Vec<_> = scopes.iter().map(|scope| scope.name()).collect();
        let typical = registry.typical(&entry.name).unwrap().unwrap();
        // In each scope that it serves; once, where the scope does not matter.
        let cost = |show: fn(&Cost) -> &Count| {
            let one = |&scope: &Scope| {
                show(&typical.build.cost(Task { scope, ..Task::default() })).to_string()
            };
            let mut all: Vec<String> = scopes.iter().map(one).collect();
            all.dedup();
            all.join("; ")
        };
        let cells = [
            &format!("`{}`", entry.name),
            &names.join(", "),
            loops,
            sends,
            &cost(|cost| &cost.floats),
            &cost(|cost| &cost.grad_theta_g),
            &cost(|cost| &cost.hess_g),
            &cost(|cost| &cost.cross_g),
            &cost(|cost| &cost.grad_theta_f),
            &cost(|cost| &cost.grad_x_f),
            complexity,
            assumes,
            source,
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push_str("\n## What they are\n\n");
    for entry in &registry {
        text.push_str(&format!("- `{}`: {}.\n", entry.name, entry.about));
    }
    text.push_str("\n## Warnings in the global scope\n\n");
    for entry in &registry {
        if let Some(warning) = entry.facts.warning {
            text.push_str(&format!("- `{}`: {warning}.\n", entry.name));
        }
    }
    text
}

#[test]
fn the_table_of_algorithms_is_the_registrys() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/algorithms.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, table()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == table(), "docs/algorithms.md lags behind: run this test with UPDATE=1");
}

#[test]
fn facts_are_complete() {
    for entry in &algorithms() {
        let Facts { source, scopes, steps, .. } = entry.facts;
        assert!(!source.is_empty() && !scopes.is_empty() && !steps.is_empty(), "{}", entry.name);
        let marked = ["[V]", "[D]", "[K]", "ours"].iter().any(|mark| source.contains(mark));
        assert!(marked, "{}: say how its formulas are known", entry.name);
    }
}
