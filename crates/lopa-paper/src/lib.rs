//! The paper that introduced LoPA (Niu et al., JMLR 26(76), 2025): its [theory] as code, the [reproduction](reproduce)
//! of its experiments, and its [figures].
//!
//! No other part of the tool needs this crate; the command line includes it with the feature
//! `paper`.

pub mod figures;
pub mod reproduce;
pub mod theory;
