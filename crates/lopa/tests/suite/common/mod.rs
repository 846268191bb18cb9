//! What several tests need.
#![allow(dead_code)]

pub mod bench;
pub mod golden;
pub mod recorder;
