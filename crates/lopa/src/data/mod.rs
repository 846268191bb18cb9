//! Data: features and labels, where they come from, and how they are split over nodes.

mod features;

pub use features::{Features, Samples};

use std::sync::Arc;
use std::sync::OnceLock;

use crate::real::Real;

/// Labelled samples of one kind: a training set, a test set.
#[derive(Debug)]
pub struct Dataset {
    features: Arc<Features<f64>>,
    single: OnceLock<Arc<Features<f32>>>,
    labels: Arc<[u32]>,
}

impl Dataset {
    /// Features and the class number of each row.
    ///
    /// # Panics
    /// If there are not as many labels as rows.
    pub fn new(features: Features<f64>, labels: Vec<u32>) -> Dataset {
        assert_eq!(features.rows(), labels.len(), "one label a row");
        Dataset { features: Arc::new(features), single: OnceLock::new(), labels: labels.into() }
    }

    /// The class number of each row.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The features in double precision.
    pub fn features(&self) -> &Features<f64> {
        &self.features
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Some rows, in the given order, in precision `T`; the features are shared, not copied.
    pub fn samples<T: Real>(&self, rows: Vec<u32>) -> Samples<T> {
        let any: Box<dyn std::any::Any> = match T::BYTES {
            8 => Box::new(self.features.clone()),
            _ => Box::new(self.single.get_or_init(|| Arc::new(self.features.cast())).clone()),
        };
        let features = *any.downcast::<Arc<Features<T>>>().expect("T is f32 or f64");
        Samples::new(features, self.labels.clone(), rows)
    }
}

/// A data set as an experiment uses it.
#[derive(Debug)]
pub struct Data {
    /// What the nodes share out among them.
    pub train: Dataset,
    /// What nobody trains on; empty if there is none.
    pub test: Dataset,
    /// The classes by the names they have in the source, in the order of their numbers.
    pub classes: Vec<String>,
    /// How raw features became these, so that a saved model can be given new raw ones.
    pub scaling: Scaling,
}

/// Feature j becomes (raw − shift[j]) · factor[j]. Empty vectors stand for no change.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Scaling {
    /// Subtracted first.
    pub shift: Vec<f64>,
    /// Multiplied then.
    pub factor: Vec<f64>,
}
