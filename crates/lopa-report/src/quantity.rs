//! Costs and measures: their titles, usual axes, and which direction is better.

/// A cost or a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    /// Its name in files.
    pub name: &'static str,
    /// Its title on axes and in tables.
    pub title: &'static str,
    /// Whether its axis is usually logarithmic.
    pub log: bool,
    /// Which direction is better.
    pub better: Better,
}

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Larger is better.
    More,
    /// Smaller is better.
    Less,
    /// Neither.
    Neither,
}

const fn cost(name: &'static str, title: &'static str) -> Quantity {
    Quantity { name, title, log: false, better: Better::Neither }
}

const fn measure(name: &'static str, title: &'static str, log: bool, better: Better) -> Quantity {
    Quantity { name, title, log, better }
}

/// Costs, in menu order.
pub const COSTS: [Quantity; 9] = [
    cost("iteration", "Iterations"),
    cost("hessians", "Hessian-vector products per node"),
    cost("jacobians", "Jacobian-vector products per node"),
    cost("gradients", "Gradients per node"),
    cost("samples", "Samples per node"),
    cost("bytes", "Bytes sent over all links"),
    cost("exchanges", "Communication rounds"),
    cost("virtual_seconds", "Virtual seconds, by [time]"),
    cost("seconds", "Seconds"),
];

/// Known measures, in menu order. Formulas are not broken between lines.
pub const MEASURES: [Quantity; 47] = [
    measure("loss", "Loss", true, Better::Less),
    measure("holdout_accuracy", "Accuracy on own held-out rows", false, Better::More),
    measure("train_accuracy", "Training accuracy", false, Better::More),
    measure("test_accuracy", "Test accuracy", false, Better::More),
    measure("own_test_accuracy", "Test accuracy on own classes", false, Better::More),
    measure("test_majority", "Test accuracy of the majority class", false, Better::Neither),
    measure("own_test_majority", "The majority class on own classes", false, Better::Neither),
    measure("holdout_majority", "The majority class on own held-out rows", false, Better::Neither),
    measure("holdout_r2", "R² on own held-out rows", false, Better::More),
    measure("holdout_rmse", "RMSE on own held-out rows", false, Better::Less),
    measure("holdout_mae", "MAE on own held-out rows", false, Better::Less),
    measure("train_r2", "Training R²", false, Better::More),
    measure("train_rmse", "Training RMSE", false, Better::Less),
    measure("train_mae", "Training MAE", false, Better::Less),
    measure("test_r2", "Test R²", false, Better::More),
    measure("test_rmse", "Test RMSE", false, Better::Less),
    measure("test_mae", "Test MAE", false, Better::Less),
    measure("holdout_concordance", "Concordance on own held-out rows", false, Better::More),
    measure("train_concordance", "Training concordance", false, Better::More),
    measure("test_concordance", "Test concordance", false, Better::More),
    measure("holdout_r2_of_mean", "R² of the mean on own held-out rows", false, Better::Neither),
    measure(
        "holdout_rmse_of_mean",
        "RMSE of the mean on own held-out rows",
        false,
        Better::Neither,
    ),
    measure("holdout_mae_of_mean", "MAE of the mean on own held-out rows", false, Better::Neither),
    measure("test_r2_of_mean", "Test R² of the mean", false, Better::Neither),
    measure("test_rmse_of_mean", "Test RMSE of the mean", false, Better::Neither),
    measure("test_mae_of_mean", "Test MAE of the mean", false, Better::Neither),
    measure("phi", "Φ(x\u{304})", true, Better::Less),
    measure("grad_phi_sq", "Squared gradient of Φ(x\u{304})", true, Better::Less),
    measure("theta_error", "Inner error |θ\u{a0}−\u{a0}θ*|²", true, Better::Less),
    measure("x_error", "Distance |x\u{a0}−\u{a0}x*|²", true, Better::Less),
    measure("consensus", "Consensus error |x\u{a0}−\u{a0}x\u{304}|²", true, Better::Less),
    measure("theta_consensus", "Consensus error |θ\u{a0}−\u{a0}θ\u{304}|²", true, Better::Less),
    measure("tracking", "Tracking error", true, Better::Neither),
    measure("epsilon", "Privacy budget spent, ε", false, Better::Neither),
    measure("lyapunov", "Lyapunov function V", true, Better::Less),
    measure("hv_error", "Hv error |v\u{a0}−\u{a0}v*|²", true, Better::Less),
    measure("average_variance_error", "|∇Φ\u{a0}−\u{a0}z\u{304}|²", true, Better::Less),
    measure("variance_error", "Variance error |∇Φ_i\u{a0}−\u{a0}z_i|²", true, Better::Less),
    measure("unsolved_nodes", "Nodes without an exact inner solution", false, Better::Neither),
    measure("gradient_error", "Gradient error |y\u{a0}−\u{a0}y\u{304}|²", true, Better::Less),
    measure("last_loss", "Loss with the last θ", true, Better::Less),
    measure("step_alpha", "Step size α that was found", true, Better::Neither),
    measure("step_beta", "Step size β that was found", true, Better::Neither),
    measure("step_lambda", "Step size λ that was found", true, Better::Neither),
    measure("curvature", "Curvature of g behind β and λ", true, Better::Neither),
    measure("cuts", "Halvings of β and λ by the safeguard", false, Better::Neither),
    measure("lag", "Lag of θ and v in iterations, which divides α", true, Better::Neither),
];

/// The known quantity of this name.
pub fn known(name: &str) -> Option<Quantity> {
    COSTS.iter().chain(&MEASURES).find(|quantity| quantity.name == name).copied()
}

/// Whether this name is a cost.
pub fn is_cost(name: &str) -> bool {
    COSTS.iter().any(|cost| cost.name == name)
}

/// The title of a quantity; for an unknown one, its name as words.
pub fn title(name: &str) -> String {
    known(name).map_or_else(|| capital(&name.replace('_', " ")), |known| known.title.to_string())
}

/// A text with a capital at its start.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Sorts names into menu order; unknown ones come last, in alphabetical order.
pub fn sort(names: &mut [String]) {
    let position = |name: &String| {
        let all = COSTS.iter().chain(&MEASURES);
        all.map(|quantity| quantity.name).position(|known| known == name).unwrap_or(usize::MAX)
    };
    names.sort_by_key(|name| (position(name), name.clone()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measure_has_words_for_people() {
        for name in lopa::run::trace::MEASURES.into_iter().chain(["unsolved_nodes"]) {
            assert!(known(name).is_some(), "{name}");
        }
        assert_eq!(title("my_own_measure"), "My own measure");
        assert!(!title("unsolved_nodes").contains('_'));
    }
}
