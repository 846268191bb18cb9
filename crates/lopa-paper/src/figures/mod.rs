//! The paper's figures, drawn from runs, and those of measured rates.

pub mod experiments;
pub mod rates;
