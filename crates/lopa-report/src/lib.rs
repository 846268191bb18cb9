//! Pictures and reports of lopa's runs.
//!
//! [`saved`] holds run folders, [`statistics`] sums them up over seeds, [`figure`] draws them as SVG
//! (and [`png`](mod@png) makes pixels of that), [`html`] writes the report: one file that needs no
//! network. Nothing here looks at the clock: the same run folders give the same bytes.

pub mod figure;
pub mod html;
pub mod lyapunov;
pub mod paper;
pub mod pictures;
pub mod png;
pub mod quantity;
pub mod rates;
pub mod saved;
pub mod statistics;
pub mod svg;
pub mod ticks;
