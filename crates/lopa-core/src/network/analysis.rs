//! The properties of a network.

use serde::Serialize;

use super::{Graph, Mixing, spectrum};

/// A network in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// Number of nodes, m.
    pub nodes: usize,
    /// Number of edges.
    pub edges: usize,
    /// Whether every node can be reached from every other.
    pub connected: bool,
    /// Number of connected components.
    pub components: usize,
    /// Whether W = Wᵀ.
    pub symmetric: bool,
    /// Whether the rows and the columns of W sum to 1.
    pub doubly_stochastic: bool,
    /// ρ = ‖W − 11ᵀ/m‖², squared as in the paper: 0 averages in one step, 1 never.
    pub rho: f64,
    /// Whether ρ and the eigenvalues are inner estimates, so that the true ρ is not smaller: large
    /// networks get a bounded number of Lanczos iterations.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// ‖W − 11ᵀ/m‖, not squared, as in other papers.
    pub sigma: f64,
    /// The second largest eigenvalue of W (0 for one node).
    pub lambda_2: f64,
    /// The smallest eigenvalue of W.
    pub lambda_min: f64,
    /// 1 − ρ.
    pub gap: f64,
    /// The smallest degree.
    pub degree_min: usize,
    /// The mean degree.
    pub degree_mean: f64,
    /// The largest degree.
    pub degree_max: usize,
    /// Edges whose loss disconnects the network.
    pub bridges: Vec<(usize, usize)>,
    /// The largest number of hops between two nodes, if connected and known.
    pub diameter: Option<usize>,
    /// Its bounds from below and from above, where it is not known: it would take a search from every
    /// node of a large network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diameter_between: Option<(usize, usize)>,
}

/// The most neighbours visited for the diameter: enough for ten thousand nodes of degree four.
const DIAMETER_WORK: usize = 500_000_000;

/// How W contracts differences between nodes: the only properties of a network that a run needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spectrum {
    /// ρ = ‖W − 11ᵀ/m‖², squared as in the paper.
    pub rho: f64,
    /// The smallest eigenvalue of W.
    pub lambda_min: f64,
    /// Whether both are inner estimates: the true ρ is not smaller.
    pub estimated: bool,
}

impl Mixing {
    /// The second largest and the smallest eigenvalue of W; for one node 0 and 1.
    pub fn eigenvalues(&self) -> (f64, f64) {
        let ends = self.ends();
        (ends.high, ends.low)
    }

    fn ends(&self) -> spectrum::Ends {
        match self.nodes() {
            1 => spectrum::Ends { low: 1.0, high: 0.0, converged: true },
            _ => spectrum::ends(self.rows(), spectrum::Effort::USUAL),
        }
    }

    /// ρ = ‖W − 11ᵀ/m‖², squared as in the paper.
    pub fn rho(&self) -> f64 {
        self.spectrum().rho
    }

    /// ρ and the smallest eigenvalue.
    pub fn spectrum(&self) -> Spectrum {
        let spectrum::Ends { low, high, converged } = self.ends();
        let rho = sigma(self.nodes(), (high, low)).powi(2);
        Spectrum { rho, lambda_min: low, estimated: !converged }
    }

    /// Analyses W and its graph.
    ///
    /// # Panics
    /// If the graph has another number of nodes.
    pub fn analyse(&self, graph: &Graph) -> Analysis {
        let m = graph.nodes();
        assert_eq!(self.nodes(), m, "a mixing matrix and its graph have the same nodes");
        let spectrum::Ends { low: lambda_min, high: lambda_2, converged } = self.ends();
        let sigma = sigma(m, (lambda_2, lambda_min));
        let rho = sigma * sigma;
        let (edges, components) = (graph.edges().count(), graph.components().len());
        let symmetric = self.check_symmetry().is_ok();
        let diameter = graph.diameter_within(DIAMETER_WORK);
        Analysis {
            nodes: m,
            edges,
            connected: components == 1,
            components,
            symmetric,
            doubly_stochastic: symmetric && self.check_sums().is_ok(),
            rho,
            estimated: !converged,
            sigma,
            lambda_2,
            lambda_min,
            gap: 1.0 - rho,
            degree_min: (0..m).map(|i| graph.degree(i)).min().unwrap_or(0),
            degree_mean: 2.0 * edges as f64 / m as f64,
            degree_max: graph.max_degree(),
            bridges: graph.bridges(),
            diameter: diameter.filter(|(low, high)| low == high).map(|(low, _)| low),
            diameter_between: diameter.filter(|(low, high)| low < high),
        }
    }
}

fn sigma(m: usize, (lambda_2, lambda_min): (f64, f64)) -> f64 {
    if m == 1 { 0.0 } else { lambda_2.abs().max(lambda_min.abs()) }
}

/// Warnings about W's smallest eigenvalue; `tracking` is whether an algorithm tracks gradients or
/// uses an augmented Lagrangian, which negative eigenvalues make unstable.
pub fn warnings(lambda_min: f64, tracking: bool) -> Vec<String> {
    let remedy = "use lazy weights, (W + I)/2: `weights = \"lazy-metropolis\"`";
    match tracking {
        true if lambda_min < -0.9 => vec![format!(
            "the smallest eigenvalue of W is {lambda_min:.3}, near -1: gradient tracking and \
             augmented Lagrangians are likely to diverge; {remedy}"
        )],
        // Milder negative values are common, and harmless at the usual step sizes.
        true if lambda_min < -0.5 => vec![format!(
            "the smallest eigenvalue of W is {lambda_min:.3}: gradient tracking and augmented \
             Lagrangians need smaller steps; if a run diverges, {remedy}"
        )],
        _ => Vec::new(),
    }
}
