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
                claims.push(Claim { figure, text, topic, panels: panels.clone(), test });
            }
        }
    };
    let sets = ["mnist", "covtype", "cifar10"];
    for figure in ["fig1", "fig2"] {
        let panel = vec![(figure, "mnist", None)];
        cheaper(figure, panel.clone(), "hessians", "fewer Hessians", "loss");
        cheaper(figure, panel, "hessians", "fewer Hessians", "test_accuracy");
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
        "consensus" => "consensus error",
        "phi" => "Φ(x̄)",
        _ => "loss",
    }
}

/// Gradient tracking against local gradients.
fn tracking() -> Vec<Claim> {
    let at = |figure, measure| {
        let text = format!("LoPA-GT ends with a better {} than LoPA-LG", measure_name(measure));
        let test = Test::Ends { measure, better: "lopa-gt", worse: "lopa-lg" };
        let topic = match measure {
            "consensus" => Topic::Consensus,
            _ => Topic::Tracking,
        };
        Claim { figure, text, topic, panels: vec![(figure, "mnist", None)], test }
    };
    ["fig1", "fig2"]
        .into_iter()
        .flat_map(|figure| {
            ["test_accuracy", "loss", "consensus"].map(|measure| at(figure, measure))
        })
        .collect()
}

fn heterogeneity() -> Vec<Claim> {
    let panel = |variant| ("fig3", "mnist", Some(variant));
    let measure = "test_accuracy";
    let mut claims = Vec::new();
    for variant in ["iid", "weak", "strong"] {
        let text = format!("LoPA-GT is more accurate than LoPA-LG, {variant} labels");
        let test = Test::Ends { measure, better: "lopa-gt", worse: "lopa-lg" };
        let (topic, panels) = (Topic::Tracking, vec![panel(variant)]);
        claims.push(Claim { figure: "fig3", text, topic, panels, test });
    }
    for (algorithm, name) in LOPA {
        for (from, to) in [("iid", "weak"), ("weak", "strong")] {
            let text = format!("{name} is less accurate with {to} than with {from} labels");
            let test = Test::Falls { measure, algorithm, worse: panel(to) };
            let (topic, panels) = (Topic::Heterogeneity, vec![panel(from)]);
            claims.push(Claim { figure: "fig3", text, topic, panels, test });
        }
    }
    let text = "LoPA-LG loses more accuracy than LoPA-GT from iid to strong labels".into();
    let test =
        Test::FallsMore { measure, more: "lopa-lg", less: "lopa-gt", worse: panel("strong") };
    let (topic, panels) = (Topic::HeterogeneityOfLocal, vec![panel("iid")]);
    claims.push(Claim { figure: "fig3", text, topic, panels, test });
    claims
}

fn connectivity() -> Vec<Claim> {
    let panel = |variant| ("fig7", "mnist", Some(variant));
    let kinds = [
        ("named networks", ["random", "star", "ring"]),
        ("Metropolis graphs", ["metropolis-42", "metropolis-79", "metropolis-92"]),
    ];
    let mut claims = Vec::new();
    for (kind, [low, middle, high]) in kinds {
        for measure in ["test_accuracy", "phi", "consensus"] {
            let quantity = measure_name(measure);
            for (algorithm, name) in LOPA {
                let text = format!("{name}'s {quantity} gets worse from rho .42 to .92, {kind}");
                let test = Test::Falls { measure, algorithm, worse: panel(high) };
                let (topic, panels) = (Topic::Connectivity, vec![panel(low)]);
                claims.push(Claim { figure: "fig7", text, topic, panels, test });
            }
            let text = format!(
                "LoPA-GT's {quantity} loses more than LoPA-LG's from rho .79 to .92, {kind}"
            );
            let (more, less) = ("lopa-gt", "lopa-lg");
            let test = Test::FallsMore { measure, more, less, worse: panel(high) };
            let (topic, panels) = (Topic::ConnectivityOfTracking, vec![panel(middle)]);
            claims.push(Claim { figure: "fig7", text, topic, panels, test });
        }
    }
    claims
}

fn single_level(sets: &[&'static str]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for &dataset in sets {
        for (better, name) in LOPA {
            let text = format!("{name} is more accurate than DGD on {dataset}");
            let test = Test::Ends { measure: "test_accuracy", better, worse: "dgd" };
            let (topic, panels) = (Topic::SingleLevel, vec![("fig8", dataset, None)]);
            claims.push(Claim { figure: "fig8", text, topic, panels, test });
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
}
