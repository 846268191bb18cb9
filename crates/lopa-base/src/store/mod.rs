//! Byte layouts, atomic files, files that users name, limits of reading, and the disk below them.

pub mod bytes;
pub mod disk;
pub mod files;
pub mod limits;
pub mod output;
