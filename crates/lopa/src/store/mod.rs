//! Byte layouts and atomic files.

pub mod bytes;
pub mod files;
