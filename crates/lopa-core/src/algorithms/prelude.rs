//! The names that the file of an algorithm needs: `use lopa::algorithms::prelude::*`.

pub use super::cost::{Cost, Count, Task, p, steps};
pub use super::parts::directions::{DirectionBuffers, Estimate};
pub use super::parts::loopless::Loopless;
pub use super::parts::steps::{Given, Rule, Steps};
pub use super::{Algorithm, Facts, Method, Start, Tracker, algorithm_entry};
pub use crate::config::Params;
pub use crate::error::{Error, Fault, Result};
pub use crate::math::real::{Real, Vector, axpy, dot, update};
pub use crate::math::schedule::Schedule;
pub use crate::network::mixed::Mixed;
pub use crate::network::outbox::{Outbox, Round};
pub use crate::problem::At;
pub use crate::problem::oracle::{
    DirectionRequest, FIVE, Oracle, SIGMA1, SIGMA2, TWO, XI1, XI2, XI3,
};
pub use crate::problem::scope::Scope;
pub use crate::variables;
pub use lopa_base::{choices, params};
