//! The paper's figures from small runs.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::experiment::Experiment;
use lopa::folder::complete;
use lopa::run::Context;
use lopa_paper::figures::experiments::{self as paper, Shown};
use lopa_paper::reproduce::claims::Topic;
use lopa_paper::reproduce::claims::{Claim, Judgement, Test, Verdict};
use lopa_report::saved::Saved;
use lopa_study::statistics::Interval;

const ALGORITHMS: &str = "
network = { nodes = 4, graph = 'ring', weights = 'lazy-metropolis' }
run = { seeds = [1, 2], iterations = 20, batch = 5, evaluations = 4 }
[[algorithm]]
name = 'lopa-gt'
alpha = 0.02
beta = 0.5
lambda = 0.5
[[algorithm]]
name = 'dgd'
label = 'dgd-and-co'
alpha = 0.1";

const QUADRATIC: &str = "
name = 'quadratic'
problem = { name = 'quadratic', n = 3, p = 4, condition = 2, heterogeneity = 0.5 }";

const BLOBS: &str = "
name = 'blobs'
problem = { name = 'representation', hidden = [4] }
data = { name = 'blobs' }
partition = { name = 'classes', per_node = 2 }";

/// Runs a small experiment into a folder.
fn run(problem: &str, runs: &Path) -> PathBuf {
    let source = Source::new("small.toml", format!("{problem}{ALGORITHMS}"));
    let experiment = Experiment::read(&source, &lopa::experiment::Registries::default()).unwrap();
    let interrupt = AtomicBool::new(false);
    let context =
        Context { pool: None, data_dir: runs.to_path_buf(), interrupt: &interrupt, probe: None };
    let data = experiment.load_data(&context).unwrap();
    complete(&experiment, data.as_ref(), (runs, 1), &context, &mut ()).unwrap().0
}

#[test]
fn the_papers_figures_are_drawn_from_the_available_runs() {
    let folder = tempfile::tempdir().unwrap();
    let [quadratic, blobs] =
        [QUADRATIC, BLOBS].map(|one| Saved::read(&run(one, folder.path())).unwrap());
    let shown = |figures, variant, steps, saved: &Saved| Shown {
        figures,
        dataset: "blobs",
        variant,
        steps,
        saved: saved.clone(),
    };
    let runs = [
        shown(&["fig1"], None, "given", &quadratic),
        shown(&["fig3"], Some("iid"), "given", &blobs),
        shown(&["fig3"], Some("strong"), "given", &blobs),
        shown(&["fig5", "fig6"], None, "tuned", &blobs),
        shown(&["fig7"], Some("ring"), "given", &blobs),
        shown(&["fig7"], Some("metropolis-92"), "given", &blobs),
    ];
    let figures = paper::figures(&runs, true);
    let names: Vec<&str> = figures.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["fig1", "fig3", "fig4", "fig5-tuned", "fig6-tuned", "fig7", "fig7-metropolis"];
    assert_eq!(names, expected);
    let svg = |name: &str| figures.iter().find(|(known, _)| known == name).unwrap().1.svg();
    assert!(svg("fig3").contains("lopa-gt, iid") && svg("fig3").contains("dgd-and-co, strong"));
    assert!(svg("fig3").contains("Accuracies begin with the first measurement after the start."));
    assert!(svg("fig4").contains(">iid<") && svg("fig4").contains(">Class<"));
    assert!(svg("fig5-tuned").contains("Seconds") && svg("fig6-tuned").contains("Hessian"));
    assert!(svg("fig7").contains("ring, ρ = ") && !svg("fig7").contains("metropolis-92"));
    let untimed = paper::figures(&runs, false);
    assert!(untimed.iter().all(|(name, _)| name != "fig5-tuned"), "seconds were not measured");
    assert_eq!(untimed.len(), figures.len() - 1);
}

#[test]
fn savings_are_drawn_as_factors_with_intervals() {
    let judgement = |figure, worse, steps, interval: Option<[f64; 3]>| {
        let test = Test::Cheaper { cost: "hessians", measure: "loss", better: "lopa-gt", worse };
        let panels = vec![(figure, "mnist", None)];
        let (text, unit, aspect) = (String::new(), None, "");
        let of = Claim { figure, text, topic: Topic::Spdb, panels, test, unit, aspect };
        let interval = interval.map(|log| {
            let [mean, low, high] = log.map(f64::ln);
            Interval { mean, low, high, pairs: 5 }
        });
        let obstacles = match interval {
            Some(_) => Vec::new(),
            None => vec!["ma-dsbo diverged on 2 of 5 seeds & is not ranked".to_string()],
        };
        Judgement {
            figure,
            claim: String::new(),
            test: of.test.words(),
            margin: of.test.margin(),
            of,
            steps,
            verdict: Verdict::Unknown,
            interval,
            ratio: true,
            units: "seeds",
            p: None,
            p_corrected: None,
            p_equal: None,
            p_equal_corrected: None,
            obstacles,
        }
    };
    let judged = [
        judgement("fig1", "spdb", "given", Some([2.0, 1.5, 2.7])),
        judgement("fig1", "ma-dsbo", "given", None),
        judgement("fig2", "spdb", "given", Some([30.0, 20.0, 45.0])),
    ];
    let svg = paper::savings(&judged).unwrap().svg();
    for words in [">SPDB<", ">MA-DSBO<", ">Figure 2, mnist<", "2 of 5 seeds &amp; is not ranked"] {
        assert!(svg.contains(words), "{words}: {svg}");
    }
    assert_eq!(svg.matches(">Figure 1, mnist<").count(), 1, "once for both rows");
    assert!(!svg.contains("Tuned"), "nothing was run with tuned steps");
    assert!(paper::savings(&[]).is_none());
}
