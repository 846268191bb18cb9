//! What several tests need.
#![allow(dead_code)]

pub mod golden;
