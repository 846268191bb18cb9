//! Methods that are lists of sums, in both scopes, agree with the processor.

use super::agree::compare;
use super::{card, hopper, run};

const QUADRATIC: &str = r#"
problem = { name = "quadratic", n = 7, p = 5, noise = 0.3, samples = 40 }
network = { nodes = 6, graph = "ring" }
run = { iterations = 60, batch = 8, evaluations = 3 }
"#;

const LAYER: &str = r#"
problem = { name = "representation", hidden = [9] }
data = "digits"
network = { nodes = 4, graph = "star" }
run = { iterations = 20, batch = 6, precision = "f32", evaluations = 3 }
"#;

const LINEAR: &str = r#"
problem = { name = "hyperparameter" }
data = "digits"
network = { nodes = 5, graph = "path" }
run = { iterations = 40, batch = 7, evaluations = 3 }
"#;

const CLEANING: &str = r#"
problem = { name = "hyper-cleaning", ridge = 0.02 }
data = "digits"
network = { nodes = 4, graph = "ring" }
run = { iterations = 20, batch = 6, evaluations = 3 }
"#;

const BILEVEL: &str = "alpha = { over_sqrt = 0.02 }\nbeta = 0.1\nlambda = 0.05\n";
const SINGLE: &str = "alpha = { over_sqrt = 0.05 }\n";

/// Names with parameters, and whether they have both levels. Those of the last row need one W that stays.
const METHODS: &[(&str, &str, bool)] = &[
    ("lopa-gt", "", true),
    ("lopa-gt", "lazy = true\n", true),
    ("lopa-lg", "", true),
    ("d-soba", "", true),
    ("sldbo", "", true),
    ("zhang", "", true),
    ("zhang", "order = \"alternating\"\n", true),
    ("sparkle", "", true),
    ("sparkle", "upper = \"extra\"\nlower = \"gt\"\n", true),
    ("sparkle", "upper = \"gt\"\nlower = \"extra\"\n", true),
    ("dgd", "", false),
    ("gt-sgd", "", false),
    ("extra", "", false),
    ("exact-diffusion", "", false),
];

fn text(problem: &str, (name, own, both): (&str, &str, bool)) -> String {
    let steps = if both { BILEVEL } else { SINGLE };
    format!("{problem}[[algorithm]]\nname = \"{name}\"\n{steps}{own}")
}

/// Every method on a problem; those with both levels in both scopes.
fn all(problem: &str, sets: &[&str], device: &str) {
    for &method in METHODS {
        let scopes: &[&str] =
            if method.2 { &["scope=personal", "scope=global"] } else { &["scope=personal"] };
        for scope in scopes {
            compare(&text(problem, method), &[sets, &[scope]].concat(), device);
        }
    }
}

/// Those whose derivatives are evaluated together.
fn together(device: &str) {
    for &method in METHODS
        .iter()
        .filter(|(name, own, both)| *both && *name != "sparkle" && !own.contains("alternating"))
    {
        for scope in ["scope=personal", "scope=global"] {
            let sets = [scope, "run.iterations=6", "problem.hidden=[20]"];
            compare(&text(LAYER, method), &sets, device);
        }
    }
}

/// Methods that evaluate directions together, and methods that evaluate them one by one.
pub fn layers() {
    let sets = ["problem.hidden=[7, 5]", "problem.bias=false", "run.iterations=4"];
    all(LAYER, &sets, "layers");
    for (problem, classes) in [(LINEAR, "data.classes=[1, 4, 7]"), (CLEANING, "problem.bias=false")]
    {
        all(problem, &["run.precision=f32", "run.iterations=4", classes], "layers");
    }
}

#[test]
fn emulated_lists_agree_with_the_processor() {
    all(QUADRATIC, &[], "emulated");
    all(LAYER, &[], "emulated");
    all(LINEAR, &["data.classes=[3, 8]"], "emulated");
    all(LINEAR, &["data.classes=[1, 4, 7]", "run.iterations=10"], "emulated");
    all(LAYER, &["problem.hidden=[7, 5]", "problem.bias=false", "run.iterations=10"], "emulated");
    all(CLEANING, &["run.iterations=10"], "emulated");
    together("emulated-general");
}

#[test]
fn lists_on_a_card_agree_with_the_processor() {
    if card() {
        all(QUADRATIC, &[], "cuda");
        all(LAYER, &[], "plain");
        all(LAYER, &["problem.hidden=[7, 5]", "problem.bias=false"], "plain");
        all(CLEANING, &[], "cuda");
        all(LINEAR, &[], "cuda");
    }
    if hopper() {
        together("general");
    }
}

#[test]
fn lists_have_the_same_bits_on_a_card_and_in_its_emulation() {
    if !card() {
        return;
    }
    for problem in [QUADRATIC, LAYER, LINEAR, CLEANING] {
        for &method in METHODS {
            let scope = if method.2 { "scope=global" } else { "scope=personal" };
            let digest = |device| run(&text(problem, method), &[scope, device]).unwrap().0.digest;
            let first = digest("run.device=plain");
            assert_eq!(first, digest("run.device=plain"), "a card repeats itself: {method:?}");
            assert_eq!(first, digest("run.device=emulated"), "{method:?} of {problem}");
        }
    }
}

#[test]
fn what_a_list_cannot_do_is_refused_by_name() {
    let refusal = |own: &str, name: &str| {
        let text = text(QUADRATIC, (name, own, true));
        let error = run(&text, &["run.device=emulated"]).unwrap_err();
        assert_eq!(error.id, "device/refused", "{error}");
        error.message
    };
    assert!(refusal("radius = 3.0\n", "sldbo").contains("`radius`"));
    assert!(refusal("order = \"first\"\n", "d-soba").contains("differences"));
}
