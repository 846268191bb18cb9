//! The derivatives that methods ask for: the samples that each takes, and how often it was called.

use serde::{Deserialize, Serialize};

use Derivative::{CrossG, GradThetaF, GradThetaG, GradXF, GradXG, HessG};

/// One of the derivatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Derivative {
    /// ∇_θ g.
    GradThetaG,
    /// ∇²_θθ g · v.
    HessG,
    /// ∇²_xθ g · v.
    CrossG,
    /// ∇_θ f.
    GradThetaF,
    /// ∇_x f.
    GradXF,
    /// ∇_x g.
    GradXG,
}

impl Derivative {
    /// All of them.
    pub const ALL: [Derivative; 6] = [GradThetaG, HessG, CrossG, GradThetaF, GradXF, GradXG];

    /// Whether it is one of f.
    pub fn is_outer(self) -> bool {
        matches!(self, GradThetaF | GradXF)
    }

    /// Its batch size.
    pub fn batch(self, batches: Batches) -> Option<usize> {
        match self {
            GradThetaG | GradXG => batches.grad_g,
            HessG => batches.hess_g,
            CrossG => batches.cross_g,
            GradThetaF => batches.grad_theta_f,
            GradXF => batches.grad_x_f,
        }
    }

    /// Its calls.
    pub fn calls(self, mut counts: Counts) -> u64 {
        *self.counter(&mut counts)
    }

    /// Counts a call of it on this many samples.
    pub fn count(self, counts: &mut Counts, samples: u64) {
        counts.samples += samples;
        *self.counter(counts) += 1;
    }

    fn counter(self, counts: &mut Counts) -> &mut u64 {
        match self {
            GradThetaG => &mut counts.grad_theta_g,
            HessG => &mut counts.hess_g,
            CrossG => &mut counts.cross_g,
            GradThetaF => &mut counts.grad_theta_f,
            GradXF => &mut counts.grad_x_f,
            GradXG => &mut counts.grad_x_g,
        }
    }
}

/// Samples per minibatch for each derivative; `None` takes all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batches {
    /// For ∇_θ g and ∇_x g.
    pub grad_g: Option<usize>,
    /// For ∇²_θθ g · v.
    pub hess_g: Option<usize>,
    /// For ∇²_xθ g · v.
    pub cross_g: Option<usize>,
    /// For ∇_θ f.
    pub grad_theta_f: Option<usize>,
    /// For ∇_x f.
    pub grad_x_f: Option<usize>,
}

impl Batches {
    /// The same size for every derivative.
    pub fn all(size: Option<usize>) -> Batches {
        Batches { grad_g: size, hess_g: size, cross_g: size, grad_theta_f: size, grad_x_f: size }
    }
}

/// The number of calls of each derivative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// ∇_θ g.
    pub grad_theta_g: u64,
    /// ∇²_θθ g · v.
    pub hess_g: u64,
    /// ∇²_xθ g · v.
    pub cross_g: u64,
    /// ∇_θ f.
    pub grad_theta_f: u64,
    /// ∇_x f.
    pub grad_x_f: u64,
    /// ∇_x g.
    pub grad_x_g: u64,
    /// Samples these were evaluated on.
    pub samples: u64,
}

impl Counts {
    /// The counts as an array, in the order above.
    pub fn to_array(self) -> [u64; 7] {
        let Counts { grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, samples } =
            self;
        [grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, samples]
    }

    /// The counts from such an array.
    pub fn from_array(counts: [u64; 7]) -> Counts {
        let [grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, samples] = counts;
        Counts { grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, samples }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        let (ours, theirs) = (self.to_array(), other.to_array());
        // Counts read from a file may be of any size.
        *self = Counts::from_array(std::array::from_fn(|at| ours[at].saturating_add(theirs[at])));
    }
}
