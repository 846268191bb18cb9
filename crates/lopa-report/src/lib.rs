//! Figures and reports of lopa's runs.
//!
//! [`saved`] holds run folders, [`statistics`] aggregates them over seeds, [`figure`] draws them as
//! SVG ([`png`](mod@png) renders that as PNG, with the feature `png`), and [`html`] writes the
//! report: one file that works offline. [`live`] serves it while runs are under way. [`export`]
//! writes the rows for other tools. Nothing here reads the clock: the same run folders give the
//! same bytes.
//!
//! From `lopa`, this crate uses run folders, traces and the error type. From `lopa-study`, it uses
//! statistics and the terms of the Lyapunov function, which [`lyapunov`] stacks.

pub mod export;
pub mod figure;
pub mod html;
pub mod live;
pub mod lyapunov;
pub mod pdf;
pub mod pictures;
pub mod png;
pub mod quantity;
pub mod saved;
pub mod site;
pub mod statistics;
pub mod svg;
pub mod ticks;
