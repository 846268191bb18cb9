//! The input of every command.

use lopa::experiment::Registries;

use crate::output::Output;

/// What experiment files can choose from, and where results go.
pub struct Program {
    pub registries: Registries,
    pub output: Output,
}
