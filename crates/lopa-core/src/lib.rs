//! What runs in every iteration: [problems](problem) of m nodes, [networks](network),
//! [algorithms], the [engines](engine) that move their [messages](engine::messages), and
//! [measures](evaluate).

#![forbid(unsafe_code)]

// The macros refer to `lopa`, which hands on the names of this crate.
extern crate self as lopa;

use lopa_base::{choices, config, error, macros, math, params, store};
use lopa_data as data;

pub mod algorithms;
pub mod engine;
pub mod evaluate;
pub mod network;
pub mod problem;
