//! `docs/algorithms.md` is the registry's: `UPDATE=1 cargo test -p lopa --test documentation`
//! writes it.

use lopa::algorithms::{Facts, algorithms};
use lopa::problem::scope::Scope;

const HEAD: &str = "# Algorithms

This table is made from the registry; a test keeps it true. Marks behind a source: [V] the formulas
were read in it, [D] derived here, [K] from general knowledge, its text was not available. Counts
are calls a node makes in an iteration; N and Q are `inner_steps` and `hv_steps`; floats go to each
neighbour in an iteration (personal; global); (+ …) is sent in the global scope only; where there are
two counts, the second is that of `order = \"first\"`. Complexity, in samples to
an ε-stationary point, and assumptions are as the authors, or those who compare with them, state
them; they were not checked here.

";

fn table() -> String {
    let mut text = HEAD.to_string();
    text.push_str(
        "| algorithm | scope | loops | sends | floats | ∇_θ g | ∇²_θθ g v | ∇²_xθ g v | ∇_θ f | \
         ∇_x f | complexity | assumes | source |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let registry = algorithms::<f64>();
    for entry in &registry {
        let Facts { source, scopes, sends, floats, hessians, calls, .. } = entry.build.facts;
        let Facts { loops, complexity, assumes, .. } = entry.build.facts;
        let scopes: Vec<_> = scopes.iter().map(|scope| scope.name()).collect();
        let [theta_g, cross, theta_f, x_f] = calls;
        let cells = [
            &format!("`{}`", entry.name),
            &scopes.join(", "),
            loops,
            sends,
            &floats.join("; "),
            theta_g,
            hessians,
            cross,
            theta_f,
            x_f,
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
        if let Some(warning) = entry.build.facts.warning {
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
    for entry in algorithms::<f64>() {
        let Facts { source, scopes, floats, steps, .. } = entry.build.facts;
        assert!(!source.is_empty() && !scopes.is_empty() && !steps.is_empty(), "{}", entry.name);
        let marked = ["[V]", "[D]", "[K]", "ours"].iter().any(|mark| source.contains(mark));
        assert!(marked, "{}: say how its formulas are known", entry.name);
        for (scope, floats) in [Scope::Personal, Scope::Global].iter().zip(floats) {
            assert_eq!(scopes.contains(scope), floats != "–", "{}: {floats}", entry.name);
        }
    }
}
