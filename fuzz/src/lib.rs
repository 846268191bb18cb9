//! Targets of coverage-guided fuzzing: see `targets.rs`.

pub mod targets;
