//! The levels in the paper's figures, read by eye.

use serde_json::Value;

/// The level that a curve of the paper ends at.
pub struct Level {
    /// The figure.
    pub figure: &'static str,
    /// The data set.
    pub dataset: &'static str,
    /// The variant of the figure, if it has any.
    pub variant: Option<&'static str>,
    /// The algorithm.
    pub algorithm: &'static str,
    /// The loss; not given for Figures 5 and 6, where its scale is unknown.
    pub loss: Option<f64>,
    /// The accuracy on training data.
    pub train_accuracy: Option<f64>,
    /// The accuracy on test data.
    pub test_accuracy: f64,
}

const ALGORITHMS: [&str; 4] = ["lopa-gt", "lopa-lg", "spdb", "ma-dsbo"];

/// The paper's level for an entry of the results, if it shows one.
pub fn level(entry: &Value) -> Option<Level> {
    levels().into_iter().find(|level| {
        entry["figure"] == level.figure
            && entry["dataset"] == level.dataset
            && entry["variant"].as_str() == level.variant
            && entry["algorithm"] == level.algorithm
    })
}

/// Every level.
pub fn levels() -> Vec<Level> {
    let mut levels = Vec::new();
    let mut add =
        |figure, dataset, variant, algorithm, on_training: [Option<f64>; 2], test_accuracy| {
            let [loss, train_accuracy] = on_training;
            levels.push(Level {
                figure,
                dataset,
                variant,
                algorithm,
                loss,
                train_accuracy,
                test_accuracy,
            });
        };
    for (figure, loss, train, test) in [
        ("fig1", [0.40, 0.48, 0.57, 0.76], [0.92, 0.89, 0.85, 0.83], [0.71, 0.67, 0.64, 0.61]),
        ("fig2", [0.38, 0.50, 0.59, 0.76], [0.90, 0.87, 0.85, 0.84], [0.64, 0.62, 0.59, 0.56]),
    ] {
        for (i, algorithm) in ALGORITHMS.into_iter().enumerate() {
            add(figure, "mnist", None, algorithm, [Some(loss[i]), Some(train[i])], test[i]);
        }
    }
    let fig3 = [("iid", 0.86, 0.82), ("weak", 0.73, 0.67), ("strong", 0.64, 0.59)];
    for (variant, gt, lg) in fig3 {
        add("fig3", "mnist", Some(variant), "lopa-gt", [None; 2], gt);
        add("fig3", "mnist", Some(variant), "lopa-lg", [None; 2], lg);
    }
    for figure in ["fig5", "fig6"] {
        for (dataset, test) in [
            ("mnist", [0.985, 0.975, 0.95, 0.93]),
            ("covtype", [0.69, 0.68, 0.655, 0.63]),
            ("cifar10", [0.655, 0.63, 0.615, 0.60]),
        ] {
            for (i, algorithm) in ALGORITHMS.into_iter().enumerate() {
                add(figure, dataset, None, algorithm, [None; 2], test[i]);
            }
        }
    }
    for (variants, gt, lg) in [
        (["ring", "metropolis-92"], 0.905, 0.92),
        (["star", "metropolis-79"], 0.96, 0.95),
        (["random", "metropolis-42"], 0.975, 0.96),
    ] {
        for variant in variants {
            add("fig7", "mnist", Some(variant), "lopa-gt", [None; 2], gt);
            add("fig7", "mnist", Some(variant), "lopa-lg", [None; 2], lg);
        }
    }
    for (dataset, [dgd, lg, gt]) in [
        ("mnist", [0.915, 0.935, 0.95]),
        ("covtype", [0.52, 0.62, 0.70]),
        ("cifar10", [0.59, 0.615, 0.635]),
    ] {
        add("fig8", dataset, None, "dgd", [None; 2], dgd);
        add("fig8", dataset, None, "lopa-lg", [None; 2], lg);
        add("fig8", dataset, None, "lopa-gt", [None; 2], gt);
    }
    levels
}
