//! The paper's claims about its experiments, one by one.

use super::claims::{Claim, Measure, Panel, Test, Topic};

/// The paper's algorithms, with the names that the claims use.
const LOPA: [(&str, &str); 2] = [("lopa-gt", "LoPA-GT"), ("lopa-lg", "LoPA-LG")];

/// Every claim.
pub fn claims() -> Vec<Claim> {
    let mut claims = Vec::new();
    let others = [("spdb", "SPDB"), ("ma-dsbo", "MA-DSBO")];
    let mut cheaper = |figure, panels: Vec<Panel>, cost, named: &str, measure| {
        for (better, ours) in LOPA {
            for (worse, theirs) in others {
                let on = match &panels[..] {
                    [(_, dataset, _)] => format!(" on {dataset}"),
                    _ => " over all data sets".into(),
                };
                let level = measure_name(measure);
                let text = format!("{ours} needs {named} than {theirs} for the same {level}{on}");
                let topic = match (cost, worse) {
                    ("seconds", _) => Topic::Time,
                    (_, "spdb") => Topic::Spdb,
                    _ => Topic::MaDsbo,
                };
                let test = Test::Cheaper { cost, measure, better, worse };
                // The claim about all settings is made of the runs of the others.
                let one = panels.len() == 1;
                let level = measure.trim_start_matches("own_");
                let unit = one.then(|| format!("{figure} {on} {cost} {level} {worse}"));
                let (panels, aspect) = (panels.clone(), "");
                claims.push(Claim { figure, text, topic, panels, test, unit, aspect });
            }
        }
    };
    let sets = ["mnist", "covtype", "cifar10"];
    for figure in ["fig1", "fig2"] {
        let panel = vec![(figure, "mnist", None)];
        cheaper(figure, panel.clone(), "hessians", "fewer Hessians", "loss");
        cheaper(figure, panel.clone(), "hessians", "fewer Hessians", "test_accuracy");
        cheaper(figure, panel, "hessians", "fewer Hessians", "own_test_accuracy");
    }
    for dataset in sets {
        cheaper("fig5", vec![("fig5", dataset, None)], "seconds", "less time", "loss");
    }
    for dataset in sets {
        cheaper("fig6", vec![("fig6", dataset, None)], "hessians", "fewer Hessians", "loss");
    }
    let two = [("fig1", "mnist", None), ("fig2", "mnist", None)];
    let all: Vec<Panel> = two.into_iter().chain(sets.map(|set| ("fig6", set, None))).collect();
    cheaper("all", all.clone(), "hessians", "fewer Hessians", "loss");
    cheaper("all", all, "seconds", "less time", "loss");
    claims.extend(tracking());
    claims.extend(heterogeneity());
    claims.extend(connectivity());
    claims.extend(single_level(&sets));
    claims
}

fn measure_name(measure: Measure) -> &'static str {
    match measure {
        "test_accuracy" => "test accuracy",
        "own_test_accuracy" => "test accuracy on a node's own classes",
        "holdout_accuracy" => "accuracy on a node's own held-out rows",
        "consensus" => "consensus error",
        "phi" => "Φ(x̄)",
        _ => "loss",
    }
}

/// Where nodes lack classes, accuracy is measured on all classes and on those that a node has.
const ON_CLASSES: [(Measure, &str); 2] =
    [("test_accuracy", "on all classes"), ("own_test_accuracy", "on the classes that a node has")];

/// Gradient tracking against local gradients.
fn tracking() -> Vec<Claim> {
    let at = |figure, measure| {
        let text = format!("LoPA-GT ends with a better {} than LoPA-LG", measure_name(measure));
        let test = Test::Ends { measure, better: "lopa-gt", worse: "lopa-lg" };
        let topic = match measure {
            "consensus" => Topic::Consensus,
            _ => Topic::Tracking,
        };
        let unit = Some(format!("{figure} {}", measure.trim_start_matches("own_")));
        let panels = vec![(figure, "mnist", None)];
        Claim { figure, text, topic, panels, test, unit, aspect: "" }
    };
    let measures = ["test_accuracy", "own_test_accuracy", "loss", "consensus"];
    let figures = ["fig1", "fig2"].into_iter();
    figures.flat_map(|figure| measures.map(|measure| at(figure, measure))).collect()
}

fn heterogeneity() -> Vec<Claim> {
    let panel = |variant| ("fig3", "mnist", Some(variant));
    let (figure, mut claims) = ("fig3", Vec::new());
    for variant in ["iid", "weak", "strong"] {
        for (measure, on) in ON_CLASSES {
            let text = format!("LoPA-GT is more accurate {on} than LoPA-LG, {variant} labels");
            let test = Test::Ends { measure, better: "lopa-gt", worse: "lopa-lg" };
            let (topic, panels) = (Topic::Tracking, vec![panel(variant)]);
            let unit = Some(format!("fig3 {variant}"));
            claims.push(Claim { figure, text, topic, panels, test, unit, aspect: "" });
        }
    }
    for (measure, aspect) in ON_CLASSES {
        for (algorithm, name) in LOPA {
            for (from, to) in [("iid", "weak"), ("weak", "strong")] {
                let text =
                    format!("{name} is less accurate {aspect} with {to} than with {from} labels");
                let test = Test::Falls { measure, algorithm, worse: panel(to) };
                let (topic, panels) = (Topic::Heterogeneity, vec![panel(from)]);
                let unit = Some(format!("{measure} {to}"));
                claims.push(Claim { figure, text, topic, panels, test, unit, aspect });
            }
        }
    }
    for (measure, aspect) in ON_CLASSES {
        let text =
            format!("LoPA-LG loses more accuracy {aspect} than LoPA-GT from iid to strong labels");
        let test =
            Test::FallsMore { measure, more: "lopa-lg", less: "lopa-gt", worse: panel("strong") };
        let (topic, panels) = (Topic::HeterogeneityOfLocal, vec![panel("iid")]);
        let unit = Some(measure.to_string());
        claims.push(Claim { figure, text, topic, panels, test, unit, aspect });
    }
    claims
}

fn connectivity() -> Vec<Claim> {
    let panel = |variant| ("fig7", "mnist", Some(variant));
    let kinds = [
        ("named networks", ["random", "star", "ring"]),
        ("Metropolis graphs", ["metropolis-42", "metropolis-79", "metropolis-92"]),
    ];
    let (figure, aspect, mut claims) = ("fig7", "", Vec::new());
    for (kind, [low, middle, high]) in kinds {
        for measure in ["test_accuracy", "phi", "consensus"] {
            let quantity = measure_name(measure);
            for (algorithm, name) in LOPA {
                let text = format!("{name}'s {quantity} gets worse from rho .42 to .92, {kind}");
                let test = Test::Falls { measure, algorithm, worse: panel(high) };
                let (topic, panels) = (Topic::Connectivity, vec![panel(low)]);
                let unit = Some(format!("{kind} {measure}"));
                claims.push(Claim { figure, text, topic, panels, test, unit, aspect });
            }
            let text = format!(
                "LoPA-GT's {quantity} loses more than LoPA-LG's from rho .79 to .92, {kind}"
            );
            let (more, less) = ("lopa-gt", "lopa-lg");
            let test = Test::FallsMore { measure, more, less, worse: panel(high) };
            let (topic, panels) = (Topic::ConnectivityOfTracking, vec![panel(middle)]);
            let unit = Some(format!("{kind} {measure}"));
            claims.push(Claim { figure, text, topic, panels, test, unit, aspect });
        }
    }
    claims
}

fn single_level(sets: &[&'static str]) -> Vec<Claim> {
    let measures = [
        ("holdout_accuracy", "on a node's own distribution"),
        ("test_accuracy", "on the global mix"),
    ];
    let (figure, mut claims) = ("fig8", Vec::new());
    for (measure, aspect) in measures {
        for &dataset in sets {
            for (better, name) in LOPA {
                let text = format!("{name} is more accurate than DGD {aspect}, {dataset}");
                let test = Test::Ends { measure, better, worse: "dgd" };
                let (topic, panels) = (Topic::SingleLevel, vec![("fig8", dataset, None)]);
                let unit = Some(format!("{measure} {dataset}"));
                claims.push(Claim { figure, text, topic, panels, test, unit, aspect });
            }
        }
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_with_curves_has_claims() {
        let claims = claims();
        for figure in ["fig1", "fig2", "fig3", "fig5", "fig6", "fig7", "fig8", "all"] {
            assert!(claims.iter().any(|claim| claim.figure == figure), "{figure}");
        }
    }

    /// Both variants of LoPA, and both accuracies of a run, are one comparison; all settings together are none.
    #[test]
    fn near_copies_share_a_unit() {
        let claims = claims();
        for claim in claims.iter().filter(|claim| claim.figure != "all") {
            let copy = |other: &&Claim| other.topic == claim.topic && other.unit == claim.unit;
            let copies = claims.iter().filter(|other| claim.unit.is_some() && copy(other)).count();
            assert!(copies <= 4, "{}: {copies}", claim.text);
        }
        assert!(claims.iter().all(|claim| claim.figure != "all" || claim.unit.is_none()));
    }
}
