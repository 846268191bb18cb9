//! Constants of problems with data: bounds must lie above measured values.

use lopa_paper::theory::Origin;
use lopa_paper::theory::measure::heterogeneity::lemma_1;

use super::with_study;

const REST: &str = "
    network = { nodes = 3, graph = 'ring' }
    run = { iterations = 20, batch = 8, evaluations = 2 }
    algorithm = [{ name = 'lopa-gt', alpha = 0.1, beta = 0.2, lambda = 0.2 }]";

fn text(problem: &str) -> String {
    format!("problem = {{ {problem} }}\ndata = {{ name = 'blobs' }}\n{REST}")
}

#[test]
fn closed_forms_lie_above_estimates() {
    for problem in
        ["name = 'hyperparameter', start = -2.0", "name = 'representation', hidden = [3]"]
    {
        // Bounds are compared with the curvatures that the practical suggestion measures at the
        // same points.
        with_study(&text(problem), 20, |study| {
            let case = &study.cases[0];
            let suggestion = study.suggestion(case).unwrap();
            let c = study.values();
            assert!(c.mu_g <= suggestion.curvature.0 * (1.0 + 1e-9), "{problem}: mu_g");
            assert!(c.l_g_theta >= suggestion.curvature.1 * (1.0 - 1e-9), "{problem}: L_g,theta");
            assert_eq!(study.constants.l_g_theta.origin, Origin::Bound);
            for (_, seen) in &case.course.seen {
                assert!(seen.dissimilarity() <= lemma_1(&c), "{problem}: Lemma 1");
                for own in &seen.exact {
                    let size = own.v.iter().map(|v| v * v).sum::<f64>().sqrt();
                    assert!(size <= study.derived.m, "{problem}: |v*| = {size}");
                }
            }
            let steps = suggestion.steps.expect("small steps survive");
            assert!(steps.beta < suggestion.limit_beta);
            assert!(steps.lambda < suggestion.limit_lambda);
        });
    }
}

#[test]
fn constants_without_a_bound_are_estimates() {
    with_study(&text("name = 'meta-learning'"), 10, |study| {
        assert_eq!(study.constants.weakest(), Origin::Estimate);
        assert!(study.values().mu_g > 0.0);
    });
}
