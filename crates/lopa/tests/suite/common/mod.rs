//! Code that several tests share.
#![allow(dead_code)]

pub mod bench;
pub mod golden;
pub mod recorder;
