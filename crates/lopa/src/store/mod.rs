//! Bytes and files that can be trusted.

pub mod bytes;
pub mod files;
